//! A module's types as durable regions have them.

use super::REFERENCE;
use super::class_data::never_survives;
use super::classes::{self, Classes};
use crate::error::{Error, Result};
use crate::module::ModuleInner;
use crate::store::Vm;
use crate::types::{Canonical, Composite, HeapType, Hierarchy, Storage, TypeIndex, ValType};
use std::collections::HashMap;
use varve_durable::{Field, Heap, Kind, Tables, Target, Type};
use varve_heap::layout;

/// Types of Java whose objects have a meaning only through other references to them in one run of a program.
const IDENTITIES: [(&str, &str); 3] = [
    ("java.lang.Thread", "threads end with the program"),
    (
        "java.io.OutputStream",
        "streams belong to files that this run has open",
    ),
    (
        "java.util.GenericEnumSet",
        "an EnumSet has the numbers of its constants, which are others once constants are added or moved: keep a HashSet",
    ),
];

/// The type of Java whose objects are class data for programs: each class has one.
const CLASS: &str = "java.lang.Class";

/// The type of Java that all others extend.
const OBJECT: &str = "java.lang.Object";

/// The type of Java whose objects, the constants of enumerations, are the same in each run by their names.
const ENUMERATION: &str = "java.lang.Enum";
/// Why they are refused where the program was built without.
const NAMELESS: &str = "constants of an enum are other objects in each run, and the program keeps no names of them: keep their ordinal()";

/// Where constants of enumerations have their names and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enumeration {
    /// The type that all enumerations extend.
    pub ty: TypeIndex,
    /// Offset of the reference to the name.
    name: u32,
    /// The field with the number, which is written last of the two, and its offset.
    pub number: (u32, u32),
}

impl Vm {
    /// The type of enumerations, if the program has any and describes their layout: a reference and a number beyond those of all objects.
    pub(super) fn enumeration(&self, instance: u32) -> Option<Enumeration> {
        let module = &self.instances[instance as usize].module;
        let names = names(module);
        let (&ty, _) = names.iter().find(|(_, (name, _))| name == ENUMERATION)?;
        let types = self.engine.types();
        let inherited = types.get(ty).ty.supertype;
        let inherited = inherited.map_or(0, |s| types.fields(s).len());
        let offsets = &types.get(ty).layout.offsets;
        let fields = types.fields(ty);
        let own = |wanted: fn(Storage) -> bool| {
            (inherited..fields.len()).find(|&i| wanted(fields[i].storage))
        };
        let name = own(|s| s.is_managed())?;
        let number = own(|s| s == Storage::Val(ValType::I32))?;
        Some(Enumeration {
            ty,
            name: offsets[name],
            number: (number as u32, offsets[number]),
        })
    }

    /// A constant of an enumeration has its name and its number now: if one of that name is durable, both are the same object.
    pub(crate) fn constant_made(&mut self, constant: u32) -> Result<()> {
        let Some(own) = self.durable.as_ref().and_then(|d| d.enumeration) else {
            return Ok(());
        };
        let ty = self.type_of(constant);
        let enumeration = self.enumeration_of(ty, own);
        let own_name = self.reference_at(constant, own.name);
        let name = self.text_of(own_name);
        let constants = self.durable.as_ref().and_then(|d| d.space());
        let constants = constants.map_or(&[][..], |s| s.named()).iter();
        let constants: Vec<u32> = constants
            .filter(|n| n.of.is_none())
            .map(|n| n.object.0)
            .collect();
        let named = |name: &[u8]| {
            constants.iter().copied().find(|&r| {
                self.enumeration_of(self.type_of(r), own) == enumeration
                    && self.text_of(self.reference_at(r, own.name)) == name
            })
        };
        let before = || {
            self.old_names(enumeration, &name)
                .iter()
                .find_map(|old| named(old))
        };
        let (found, renamed) = match named(&name) {
            Some(found) => (found, false),
            None => match before() {
                Some(found) => (found, true),
                None => return Ok(()),
            },
        };
        let was = self.type_of(found);
        if was != ty {
            let tables = self.space()?.tables();
            return Err(Error::usage(format!(
                "a constant of the durable region is a {} there, and a {} in the program: it got or lost code of its own, so that it cannot be the same object",
                tables.name(was),
                tables.name(ty)
            )));
        }
        self.become_durable(constant, found)?;
        // A program that was built anew may count otherwise.
        let number = |r| {
            let at = self.object(r).wrapping_add(own.number.1 as usize);
            // SAFETY: the field lies in the object.
            unsafe { at.cast::<u32>().read_unaligned() }
        };
        let (new, old) = (number(constant), number(found));
        if new != old {
            self.store_durable(found, own.number.1.into(), new.into(), 4)?;
        }
        match renamed {
            true => self.store_durable(found, own.name.into(), own_name.into(), REFERENCE),
            false => Ok(()),
        }
    }

    /// The former names of a constant, as the program's strings have them.
    fn old_names(&self, enumeration: TypeIndex, name: &[u8]) -> Vec<Vec<u8>> {
        let Some(durable) = self.durable.as_ref() else {
            return Vec::new();
        };
        let class = durable.space().map(|s| s.tables().name(enumeration));
        let units = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>()
        };
        let of = |r: &&varve_durable::Renamed| {
            Some(&r.class) == class.as_ref() && r.field.as_deref().is_some_and(|f| units(f) == name)
        };
        let old = durable.renamed.iter().filter(of);
        old.map(|r| units(&r.was)).collect()
    }

    /// The enumeration that a constant is of: its type, or that of which its type is one constant's own.
    fn enumeration_of(&self, ty: TypeIndex, own: Enumeration) -> TypeIndex {
        let types = self.engine.types();
        let display = &types.get(ty).display;
        let below = display.iter().position(|&t| t == own.ty);
        below
            .and_then(|i| display.get(i + 1).copied())
            .unwrap_or(ty)
    }

    /// The reference in a field of an object, resolved; 0 if it is to none.
    pub(super) fn reference_at(&self, object: u32, offset: u32) -> u32 {
        let at = self.object(object).wrapping_add(offset as usize);
        // SAFETY: the field lies in the object.
        let held = unsafe { at.cast::<u32>().read_unaligned() };
        match held & layout::I31_TAG {
            0 if held != 0 => self.resolve(held),
            _ => 0,
        }
    }

    /// The numbers in arrays that an object leads to: a string's characters, in any language's representation.
    pub(super) fn text_of(&self, object: u32) -> Vec<u8> {
        let mut text = Vec::new();
        self.add_text(object, 3, &mut text);
        text
    }

    fn add_text(&self, object: u32, depth: u32, text: &mut Vec<u8>) {
        if object == 0 || depth == 0 {
            return;
        }
        let ty = self.type_of(object);
        // The types are let go before anything else asks for them.
        let (is_text, held): (bool, Vec<u32>) = {
            let types = self.engine.types();
            match &types.get(ty).ty.composite {
                Composite::Array(element) => (!element.storage.is_managed(), vec![]),
                Composite::Struct(fields) if !never_survives(&types, ty) => {
                    let offsets = types.get(ty).layout.offsets.iter();
                    let managed = fields.iter().zip(offsets);
                    let managed = managed.filter(|(f, _)| f.storage.is_managed());
                    (false, managed.map(|(_, &offset)| offset).collect())
                }
                _ => (false, vec![]),
            }
        };
        if is_text {
            let array = self.array(object);
            let bytes = array.len as usize * array.storage.bytes() as usize;
            // SAFETY: the array's elements, which no code writes while compiled code waits.
            text.extend(unsafe { std::slice::from_raw_parts(array.address(0), bytes) });
        }
        for offset in held {
            self.add_text(self.reference_at(object, offset), depth - 1, text);
        }
    }

    /// The type of a program's objects that stand for classes, if it has any.
    pub(super) fn class_objects(&self, instance: u32) -> Option<TypeIndex> {
        let module = &self.instances[instance as usize].module;
        let found = module.type_names.iter().find(|(_, name)| *name == CLASS);
        found.map(|(&i, _)| module.types[i as usize])
    }

    /// Types of the classes that a module says it keeps, in its order.
    pub(super) fn kept_classes(&self, instance: u32) -> Vec<Option<TypeIndex>> {
        let module = &self.instances[instance as usize].module;
        let by_name: HashMap<String, TypeIndex> = names(module)
            .into_iter()
            .map(|(ty, (name, _))| (name, ty))
            .collect();
        let kept = Classes::of(module).kept;
        kept.iter().map(|name| by_name.get(name).copied()).collect()
    }

    /// The region's tables for an instance: all types, and its class data.
    pub(super) fn durable_tables(&self, instance: u32) -> Tables {
        let module = &self.instances[instance as usize].module;
        let names = names(module);
        let enumeration = self.enumeration(instance);
        let classes = Classes::of(module);
        let types = self.engine.types();
        let mut all: Vec<Type> = Vec::new();
        // Types come after those that they extend, and have their fields first.
        for i in 0..types.len() as TypeIndex {
            let t = types.get(i);
            let inherited =
                t.ty.supertype
                    .map_or(&[][..], |s| match &all[s as usize].kind {
                        Kind::Struct { fields, .. } => fields,
                        _ => &[],
                    });
            all.push(describe(t, names.get(&i), inherited, module, &classes));
        }
        let mut locals: HashMap<String, u32> = HashMap::new();
        for local in all.iter().filter_map(|t| classes::local_name(&t.name)) {
            *locals.entry(local).or_default() += 1;
        }
        let object = names.iter().find(|(_, name)| name.0 == OBJECT);
        let object = object.map(|(&ty, _)| ty);
        let is_object = |i: u32| object.is_some_and(|o| types.is_subtype_index(i, o));
        let mut left_out = Vec::new();
        for i in 0..all.len() {
            let class = names.get(&(i as u32)).filter(|_| is_object(i as u32));
            left_out.push(class.and_then(|(name, _)| classes.left_out(name)));
            let named = IDENTITIES.iter().find(|(name, _)| all[i].name == *name);
            let own = named.map(|(_, why)| why.to_string());
            let nameless = all[i].name == ENUMERATION && enumeration.is_none();
            let own = own.or(nameless.then(|| NAMELESS.into()));
            let own = own.or_else(|| classes::unstable(&all[i].name, &classes, &locals));
            let of_super = all[i]
                .supertype
                .and_then(|s| all[s as usize].refused.clone());
            all[i].refused = own.or(of_super);
            let extends = |e: &Enumeration| types.is_subtype_index(i as u32, e.ty);
            all[i].named_by = enumeration.filter(extends).map(|e| e.name);
        }
        for (ty, left_out) in all.iter_mut().zip(left_out) {
            ty.refused = ty.refused.take().or(left_out);
        }
        let durable = self.durable.as_ref().expect("asked while there is one");
        let mut constants = durable.constants.named().to_vec();
        for constant in &mut constants {
            constant.name = classes.known_as(&constant.name);
        }
        Tables {
            types: all,
            constants,
            from_source: classes.said,
            applied: None,
            renamed: classes.renamed,
        }
    }
}

/// The type of Java that all exceptions extend, and its fields that belong to a run: the stack trace, and the host's data.
const EXCEPTION: (&str, [&str; 2]) = ("java.lang.Throwable", ["lazyStackTrace", "nativeRef"]);

/// Fields that are null in a region, by their types and offsets.
pub(super) fn forgotten(tables: &Tables) -> Vec<(u32, u32)> {
    let exception = tables.types.iter().position(|t| t.name == EXCEPTION.0);
    let Some(Kind::Struct { fields, .. }) = exception.map(|i| &tables.types[i].kind) else {
        return Vec::new();
    };
    let fields = fields.iter().filter(|f| {
        let foreign = matches!(&f.storage, varve_durable::Storage::Ref(t) if t.to == Heap::Foreign);
        foreign && EXCEPTION.1.contains(&f.name.as_str())
    });
    let offsets: Vec<u32> = fields.map(|f| f.offset).collect();
    let is = |mut ty: u32| loop {
        match tables.types[ty as usize].supertype {
            _ if Some(ty as usize) == exception => break true,
            Some(parent) => ty = parent,
            None => break false,
        }
    };
    let exceptions = (0..tables.types.len() as u32).filter(|&ty| is(ty));
    exceptions
        .flat_map(|ty| offsets.iter().map(move |&offset| (ty, offset)))
        .collect()
}

/// Names of types with those of their fields, by the engine's index.
fn names(module: &ModuleInner) -> HashMap<TypeIndex, (String, u32)> {
    let named = module.types.iter().enumerate().filter_map(|(i, &ty)| {
        let name = module.type_names.get(&(i as u32))?;
        Some((ty, (name.clone(), i as u32)))
    });
    named.collect()
}

/// A type as regions have it; `inherited` are the fields of the one that it extends.
fn describe(
    ty: &Canonical,
    name: Option<&(String, u32)>,
    inherited: &[Field],
    module: &ModuleInner,
    classes: &Classes,
) -> Type {
    let known_as = name.map(|n| classes.known_as(&n.0)).unwrap_or_default();
    let kind = match &ty.ty.composite {
        _ if ty.opaque || has_vectors(&ty.ty.composite) => Kind::Opaque,
        Composite::Func(_) => Kind::Opaque,
        Composite::Array(e) => Kind::Array(storage(e.storage)),
        Composite::Struct(fields) => {
            let made = |i: usize| {
                let key = (name?.1, i as u32);
                module.field_names.get(&key).cloned()
            };
            let first = inherited.len().min(fields.len());
            let made: Vec<String> = (first..fields.len())
                .map(|i| made(i).unwrap_or_default())
                .collect();
            let class = name.map_or("", |n| n.0.as_str());
            let mut all = inherited[..first].to_vec();
            let own = classes.fields(class, &made).into_iter();
            for (i, (field, is_char)) in (first..).zip(own) {
                // A superclass may have a field of that name.
                let taken = !field.is_empty() && inherited.iter().any(|f| f.name == field);
                all.push(Field {
                    name: if taken {
                        format!("{known_as}.{field}")
                    } else {
                        field
                    },
                    offset: ty.layout.offsets[i],
                    storage: match storage(fields[i].storage) {
                        varve_durable::Storage::I16 if is_char => varve_durable::Storage::U16,
                        storage => storage,
                    },
                });
            }
            for (i, field) in all[..first].iter_mut().enumerate() {
                field.offset = ty.layout.offsets[i];
            }
            Kind::Struct {
                size: ty.layout.size,
                fields: all,
            }
        }
    };
    Type {
        name: known_as,
        supertype: ty.ty.supertype,
        kind,
        refused: None,
        named_by: None,
    }
}

/// The format of regions has no vectors.
fn has_vectors(ty: &Composite) -> bool {
    let is_vector = |s: &Storage| matches!(s, Storage::Val(ValType::V128));
    match ty {
        Composite::Struct(fields) => fields.iter().any(|f| is_vector(&f.storage)),
        Composite::Array(e) => is_vector(&e.storage),
        Composite::Func(_) => false,
    }
}

fn storage(s: Storage) -> varve_durable::Storage {
    use varve_durable::Storage as S;
    match s {
        Storage::I8 => S::I8,
        Storage::I16 => S::I16,
        Storage::Val(ValType::I32) => S::I32,
        Storage::Val(ValType::I64) => S::I64,
        Storage::Val(ValType::F32) => S::F32,
        Storage::Val(ValType::F64) => S::F64,
        Storage::Val(ValType::V128) => unreachable!("types with vectors are opaque"),
        Storage::Val(ValType::Ref(r)) => match r.heap.hierarchy() {
            Hierarchy::Func => S::Func,
            _ => S::Ref(Target {
                nullable: r.nullable,
                to: heap(r.heap),
            }),
        },
    }
}

fn heap(h: HeapType) -> Heap {
    match h {
        HeapType::Any | HeapType::Eq => Heap::Any,
        HeapType::I31 => Heap::I31,
        HeapType::Struct => Heap::Struct,
        HeapType::Array => Heap::Array,
        HeapType::None => Heap::None,
        HeapType::Concrete(i, _) => Heap::Type(i),
        _ => Heap::Foreign,
    }
}
