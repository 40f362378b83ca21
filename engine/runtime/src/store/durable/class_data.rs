//! Class data: objects with functions in them that other objects refer to, such as tables of methods. They are made anew in each run, and
//! must be where durable objects look for them: in a range of their own, each at a place that the region's tables name.
//!
//! Which objects are class data: those that immutable globals begin with, if they have references to functions, and all others of the same
//! types. Programs make some of them on demand; if durable objects refer to those, the region says how to make them again. So it is with the
//! objects that stand for classes in the program, `Thing.class` in Java: tables of methods lead to them.

use super::Durable;
use crate::error::{Error, Result};
use crate::store::Vm;
use crate::types::{Composite, Registry, Storage, TypeIndex, ValType};
use std::collections::HashMap;
use varve_durable::{Constant, Held, Late};
use varve_heap::{Header, ObjectAlign, Ref, layout};

/// Bytes that class data may take.
const ROOM: usize = 64 << 20;

/// The range of class data.
pub(crate) struct Constants {
    base: usize,
    /// Their alignment, as of all objects.
    align: ObjectAlign,
    next: u32,
    /// Those that the program began with.
    named: Vec<Constant>,
    /// All of them, with the offsets of their references.
    all: Vec<(u32, TypeIndex, std::rc::Rc<[u32]>)>,
}

// SAFETY: the counted slices are shared within this value alone, which moves as a whole.
unsafe impl Send for Constants {}

impl Constants {
    /// # Safety
    /// `ROOM` bytes at `base`, the begin of the durable range, are reserved, not used by other code, and outlive the result.
    pub unsafe fn new(base: usize, align: ObjectAlign) -> Result<Constants> {
        let at = std::ptr::with_exposed_provenance_mut::<libc::c_void>(base);
        // SAFETY: as this function.
        let failed = unsafe { libc::mprotect(at, ROOM, libc::PROT_READ | libc::PROT_WRITE) };
        if failed != 0 {
            let e = std::io::Error::last_os_error();
            return Err(Error::System(format!("no memory for class data: {e}")));
        }
        Ok(Constants {
            base,
            align,
            next: 0,
            named: Vec::new(),
            all: Vec::new(),
        })
    }

    /// Those that the program began with.
    pub fn named(&self) -> &[Constant] {
        &self.named
    }

    fn word(&self, offset: u32) -> *mut u32 {
        debug_assert!((offset as usize) < ROOM);
        std::ptr::with_exposed_provenance_mut(self.base + offset as usize)
    }

    /// Calls `visit` with each reference in them.
    pub fn visit(&mut self, visit: &mut dyn FnMut(&mut u32)) {
        for (at, _, refs) in &self.all {
            for &offset in refs.iter() {
                // SAFETY: a field of an object in the range; no other code has it while the store is visited.
                visit(unsafe { &mut *self.word(at + offset) });
            }
        }
    }

    /// A zeroed object at an offset, or after the last one.
    fn add(&mut self, ty: TypeIndex, at: Option<u32>, types: &Registry) -> Result<u32> {
        let size = types.get(ty).layout.size;
        let size = self.align.object_size(size.into()) as u32;
        let at = at.unwrap_or(self.next);
        if at < self.next || at as usize + size as usize > ROOM {
            return Err(Error::usage(
                "there is no room for the program's class data in the durable range",
            ));
        }
        self.next = at + size;
        // SAFETY: the object lies in the range, where nothing else was yet.
        unsafe {
            self.word(at)
                .cast::<u64>()
                .write(layout::new_header(ty, 0, 0))
        };
        let known = self.all.iter().rev().find(|a| a.1 == ty);
        let refs = known.map(|a| a.2.clone());
        let refs = refs.unwrap_or_else(|| refs_of(ty, types).into());
        self.all.push((at, ty, refs));
        Ok(at)
    }

    fn reference(&self, at: u32) -> u32 {
        let offset = self.align.durable_start() + u64::from(at);
        self.align.reference(offset).0
    }

    /// The offset of class data that a reference leads to.
    fn offset(&self, reference: u32) -> Option<u32> {
        let offset = self.align.offset(Ref(reference));
        let offset = offset.checked_sub(self.align.durable_start())?;
        (reference & layout::I31_TAG == 0 && offset < u64::from(self.next)).then_some(offset as u32)
    }
}

/// The identity hash code of the object that stands for a class, as a reference to a small integer: the same in each run.
fn identity(name: &str) -> u32 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (hash & 0x3fff_ffff) << 1 | layout::I31_TAG
}

fn refs_of(ty: TypeIndex, types: &Registry) -> Vec<u32> {
    let fields = types.fields(ty).iter().zip(&types.get(ty).layout.offsets);
    let refs = fields.filter(|(f, _)| f.storage.is_managed());
    refs.map(|(_, &offset)| offset).collect()
}

/// Whether objects of a type are never durable: they refer to functions, or hold vectors, which regions do not know.
pub(crate) fn never_survives(types: &Registry, ty: TypeIndex) -> bool {
    let is_func = |s: &Storage| match s {
        Storage::Val(ValType::Ref(r)) => !r.heap.is_managed(),
        Storage::Val(ValType::V128) => true,
        _ => false,
    };
    match &types.get(ty).ty.composite {
        Composite::Struct(fields) => fields.iter().any(|f| is_func(&f.storage)),
        Composite::Array(e) => is_func(&e.storage),
        Composite::Func(_) => false,
    }
}

impl Vm {
    /// Moves the class data of an instance's globals to their range.
    pub(super) fn place_class_data(&mut self, instance: u32) -> Result<()> {
        let data = &self.instances[instance as usize];
        let module = data.module.clone();
        let mut moved: HashMap<u32, u32> = HashMap::new();
        let globals: Vec<_> = module
            .globals
            .iter()
            .zip(data.globals.clone())
            .enumerate()
            .collect();
        for (index, ((ty, init), place)) in globals {
            if ty.mutable || init.is_none() || !ty.ty.is_managed() {
                continue;
            }
            let word = self.region.address::<u32>(place);
            // SAFETY: places of globals hold 8 bytes; a reference is in the low four.
            let raw = unsafe { word.read() };
            if raw == 0 || raw & layout::I31_TAG != 0 {
                continue;
            }
            if let Some(&to) = moved.get(&raw) {
                // SAFETY: as above.
                unsafe { word.write(to) };
                continue;
            }
            let kind = self.type_of(raw);
            let types = self.engine.types();
            let is_struct = types.fields_of(kind).is_some() && !types.get(kind).opaque;
            if !is_struct || !never_survives(&types, kind) {
                continue;
            }
            let durable = self.durable.as_mut().expect("asked while there is one");
            durable.class_types.insert(kind);
            let at = durable.constants.add(kind, None, &types)?;
            let size = types.get(kind).layout.size as usize;
            let name = module.global_names.get(&(index as u32)).cloned();
            durable.constants.named.push(Constant {
                name: name.unwrap_or_else(|| format!("global {index}")),
                offset: at,
                ty: kind,
            });
            let to = durable.constants.word(at).cast::<u8>();
            let new = durable.constants.reference(at);
            drop(types);
            let from = self.object(raw);
            // SAFETY: both objects have the type's size; the bytes after the header are copied, and the original forwards to the copy.
            unsafe {
                std::ptr::copy_nonoverlapping(from.add(8), to.add(8), size - 8);
                let header = Header(from.cast::<u64>().read());
                from.cast::<u64>().write(header.became_durable(Ref(new)).0);
                word.write(new);
            }
            moved.insert(raw, new);
        }
        Ok(())
    }

    /// Class data that the program makes while it runs.
    pub(crate) fn alloc_class_data(&mut self, ty: TypeIndex) -> Result<u32> {
        let types = self.engine.types();
        let durable = self.durable.as_mut().expect("code asks while there is one");
        let at = durable.constants.add(ty, None, &types)?;
        Ok(durable.constants.reference(at))
    }

    /// Makes class data again that durable objects refer to and programs make on demand.
    pub(super) fn restore_class_data(&mut self, instance: u32, late: &[Late]) -> Result<()> {
        let mut in_order: Vec<&Late> = late.iter().collect();
        in_order.sort_by_key(|l| l.offset);
        {
            let types = self.engine.types();
            let durable = self.durable.as_mut().expect("asked while there is one");
            for l in &in_order {
                if l.ty as usize >= types.len()
                    || types
                        .fields_of(l.ty)
                        .is_none_or(|f| f.len() != l.held.len())
                {
                    return Err(Error::usage(
                        "the region's class data fit no type of the program",
                    ));
                }
                durable.constants.add(l.ty, Some(l.offset), &types)?;
            }
        }
        for l in in_order {
            self.fill_class_data(instance, l)?;
        }
        Ok(())
    }

    fn fill_class_data(&mut self, instance: u32, late: &Late) -> Result<()> {
        let (offsets, fields) = {
            let types = self.engine.types();
            (
                types.get(late.ty).layout.offsets.clone(),
                types.fields(late.ty).to_vec(),
            )
        };
        for ((held, field), offset) in late.held.iter().zip(fields).zip(offsets) {
            let bits = match held {
                Held::Bits(bits) => *bits,
                Held::Null => 0,
                Held::Class(at) => u64::from(self.known_class(*at)?),
                Held::Func(name, index) => u64::from(self.function_place(instance, name, *index)?),
            };
            let bits = match self.identity_of_class(late.ty) == Some(offset) && bits == 0 {
                true => u64::from(identity(&late.name)),
                false => bits,
            };
            let word = self.constants().word(late.offset + offset).cast::<u8>();
            // SAFETY: a field of class data, as its type says.
            unsafe { self.write(word, field.storage, bits) };
        }
        if let Some((base, at)) = late.link {
            self.known_class(base)?;
            let reference = self.constants().reference(late.offset);
            let word = self.constants().word(base + at);
            // SAFETY: a field of class data that are there. The program finds what it would make otherwise.
            unsafe {
                if word.read() == 0 {
                    word.write(reference);
                }
            }
        }
        Ok(())
    }

    /// The offset of the identity hash code in objects that stand for classes, which Java's compiler keeps in the field of the monitor.
    fn identity_of_class(&self, ty: TypeIndex) -> Option<u32> {
        let durable = self.durable.as_ref()?;
        let space = durable.space.as_ref()?;
        if durable.class_objects != Some(ty) {
            return None;
        }
        match &space.tables().types.get(ty as usize)?.kind {
            varve_durable::Kind::Struct { fields, .. } => {
                let monitor = fields.iter().find(|f| f.name == "monitor");
                monitor.map(|f| f.offset)
            }
            _ => None,
        }
    }

    fn constants(&self) -> &Constants {
        &self
            .durable
            .as_ref()
            .expect("asked while there is one")
            .constants
    }

    /// The reference of class data at an offset, which a file gave.
    fn known_class(&self, offset: u32) -> Result<u32> {
        let all = &self.constants().all;
        match all.iter().any(|a| a.0 == offset) {
            true => Ok(self.constants().reference(offset)),
            false => Err(Error::usage(
                "the region's class data refer to some that are not there",
            )),
        }
    }

    fn function_place(&self, instance: u32, name: &str, index: u32) -> Result<u32> {
        let data = &self.instances[instance as usize];
        let named = |i: &u32| data.module.names.get(i).is_some_and(|n| n == name);
        let found = match name.is_empty() || named(&index) {
            true => Some(index),
            false => (0..data.funcs.len() as u32).find(named),
        };
        let place = found.and_then(|i| data.funcs.get(i as usize).copied());
        place.ok_or_else(|| {
            Error::usage(format!(
                "the durable region needs the function {name}, which the program does not have: it is of another version of the program"
            ))
        })
    }

    /// Records class data that durable objects came to refer to.
    pub(super) fn record_class_data(&mut self, offsets: Vec<u32>) -> Result<()> {
        let mut pending = offsets;
        while let Some(at) = pending.pop() {
            let named = self.constants().named.iter().any(|c| c.offset == at);
            let known = self.space()?.late().iter().any(|l| l.offset == at);
            if named || known {
                continue;
            }
            let late = self.describe_class_data(at);
            pending.extend(late.link.map(|(base, _)| base));
            pending.extend(late.held.iter().filter_map(|h| match h {
                Held::Class(at) => Some(*at),
                _ => None,
            }));
            self.space()?.add_late(late)?;
        }
        Ok(())
    }

    fn describe_class_data(&self, at: u32) -> Late {
        let constants = self.constants();
        let own = constants.all.iter().find(|a| a.0 == at);
        let ty = own.expect("a reference into the range is of an object").1;
        let is_class = self
            .durable
            .as_ref()
            .is_some_and(|d| d.class_objects == Some(ty));
        let types = self.engine.types();
        let fields = types.fields(ty).iter().zip(&types.get(ty).layout.offsets);
        let name = self.class_data_name(at, 8);
        let hashed = self.identity_of_class(ty);
        let held = fields.map(|(field, &offset)| {
            let word = constants.word(at + offset).cast::<u8>();
            // SAFETY: a field of class data, as its type says.
            let bits = unsafe { self.read(word, field.storage) };
            match field.storage {
                Storage::Val(ValType::Ref(r)) if !r.heap.is_managed() => match bits {
                    0 => Held::Null,
                    place => self.held_function(place as u32),
                },
                // Maps know the class by its hash code, in each run.
                _ if hashed == Some(offset) => {
                    if bits == 0 {
                        let word = constants.word(at + offset);
                        // SAFETY: a field of class data, which no other code has while compiled code waits.
                        unsafe { word.write(identity(&name)) };
                        return Held::Bits(identity(&name).into());
                    }
                    match bits as u32 & layout::I31_TAG {
                        0 => Held::Null,
                        _ => Held::Bits(bits),
                    }
                }
                s if s.is_managed() => match constants.offset(bits as u32) {
                    Some(at) => Held::Class(at),
                    None => Held::Null,
                },
                // Values computed for a class in this run, such as its name, are not there in the next.
                _ if is_class => Held::Bits(0),
                _ => Held::Bits(bits),
            }
        });
        let held = held.collect();
        Late {
            offset: at,
            ty,
            link: self.link_of(at),
            held,
            name,
        }
    }

    /// Where other class data refer to these: by offset, and the offset of the field.
    fn link_of(&self, at: u32) -> Option<(u32, u32)> {
        let constants = self.constants();
        let reference = constants.reference(at);
        let others = constants.all.iter().filter(|a| a.0 != at);
        others.into_iter().find_map(|(base, _, refs)| {
            // SAFETY: fields of class data.
            let refers = |&&o: &&u32| unsafe { constants.word(base + o).read() } == reference;
            refs.iter().find(refers).map(|&o| (*base, o))
        })
    }

    /// The name that class data would have if the program began with them, derived from those that refer to them.
    fn class_data_name(&self, at: u32, depth: u32) -> String {
        let tables = self
            .durable
            .as_ref()
            .and_then(|d| d.space.as_ref())
            .map(|s| s.tables());
        let Some(tables) = tables.filter(|_| depth > 0) else {
            return String::new();
        };
        if let Some(named) = tables.constants.iter().find(|c| c.offset == at) {
            return named.name.clone();
        }
        let Some((base, field)) = self.link_of(at) else {
            return String::new();
        };
        let of = self.class_data_name(base, depth - 1);
        let ty = self
            .constants()
            .all
            .iter()
            .find(|a| a.0 == base)
            .map(|a| a.1);
        let fields = match ty
            .and_then(|ty| tables.types.get(ty as usize))
            .map(|t| &t.kind)
        {
            Some(varve_durable::Kind::Struct { fields, .. }) => &fields[..],
            _ => &[],
        };
        let field = fields
            .iter()
            .find(|f| f.offset == field)
            .map(|f| f.name.as_str());
        match (of.strip_suffix("@class"), field) {
            (Some(class), Some("arrayType")) => format!("Array<{class}>@class"),
            (Some(class), Some("vtable")) => format!("{class}@vt"),
            _ => String::new(),
        }
    }

    fn held_function(&self, place: u32) -> Held {
        match self.funcs[self.func_at(place) as usize].kind {
            crate::store::FuncKind::Wasm { instance, index } => {
                let names = &self.instances[instance as usize].module.names;
                Held::Func(names.get(&index).cloned().unwrap_or_default(), index)
            }
            crate::store::FuncKind::Host(..) => Held::Null,
        }
    }
}

impl Durable {
    /// Whether objects of a type are class data.
    pub fn is_class_data(&self, ty: TypeIndex) -> bool {
        self.class_types.contains(&ty)
    }
}
