//! Objects that each run of a program makes anew but treats as the same ones, other than constants of enumerations: values of static fields of the
//! language's library (`Boolean.TRUE`, an empty list, a sentinel), elements of its caches, string literals, and objects without fields that the
//! program's own final static fields hold. If one becomes durable, the region records its name. In the next run the object that has that name is
//! the durable one: its original forwards to it, as that of any object that became durable.
//!
//! All of them are known by globals of the module: `Class#field` holds a static field, `teavm@string<N>...` a literal. Each
//! assignment of such a global is examined, and before the program has its first root all existing ones, since caches are filled and literals
//! get their texts after they are assigned.

use super::classes::Classes;
use crate::error::Result;
use crate::module::ModuleInner;
use crate::store::Vm;
use crate::types::{Composite, HeapType, TypeIndex, ValType};
use std::collections::HashMap;
use std::sync::Arc;
use varve_durable::{Known, Named, Tables};
use varve_heap::{Header, Ref, layout};

/// How the compiler's globals with literals begin.
const LITERALS: &str = "teavm@string<";

/// How names of the language's library begin.
const LIBRARY: &str = "java.";

/// The prefix of names that belong to the runtime.
const OTHERS: [&str; 3] = ["org.teavm.", "varve.host.", "varve.teavm."];

/// Most elements of an array that are examined: caches are short.
const MOST_ELEMENTS: u32 = 1024;

/// Where the program has a canonical object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// In a global.
    Global(u32),
    /// In an array that a global holds.
    Element(u32, u32),
}

/// Canonical objects of a program with a region.
#[derive(Default)]
pub(crate) struct Canonical {
    /// Names of static fields, by their globals.
    fields: HashMap<u32, Arc<str>>,
    literals: Vec<u32>,
    /// The type that all of the language's objects extend, and how many fields it has.
    object: Option<(TypeIndex, usize)>,
    /// Whether the program has asked for a root.
    settled: bool,
    /// Those that are not durable yet, with their names.
    places: HashMap<Place, Arc<str>>,
    /// The same by their references, as of the collection of that number.
    now: Arc<varve_durable::Canonical>,
    as_of: u64,
}

impl Canonical {
    /// Collects a module's static fields and literals.
    pub fn of(module: &ModuleInner, tables: &Tables) -> Canonical {
        let mut all = Canonical::default();
        let object = module.type_names.iter().find(|t| t.1 == "java.lang.Object");
        let Some((&object, _)) = object else {
            return all;
        };
        let object = module.types[object as usize];
        let fields = match &tables.types[object as usize].kind {
            varve_durable::Kind::Struct { fields, .. } => fields.len(),
            _ => 0,
        };
        all.object = Some((object, fields));
        let finals = Classes::of(module).finals;
        for (&index, name) in &module.global_names {
            let ty = module.globals.get(index as usize).map(|g| g.0.ty);
            if ty.is_none_or(|ty| !ty.is_managed()) {
                continue;
            }
            if name.starts_with(LITERALS) {
                all.literals.push(index);
            } else if let Some((class, field)) = name.split_once('#')
                // The library makes some on first use. Its defaults are chosen anew in each run.
                && (finals.contains(name)
                    || (class.starts_with(LIBRARY) && !field.starts_with("default")))
                && !OTHERS.iter().any(|other| class.starts_with(other))
            {
                all.fields.insert(index, name.as_str().into());
            }
        }
        all.literals.sort_unstable();
        all
    }

    /// Whether a global holds a static field whose object may be canonical.
    pub fn is_field(&self, global: u32) -> bool {
        self.fields.contains_key(&global)
    }
}

impl Vm {
    /// Before the program has its first root: canonical objects that are durable become the durable ones.
    pub(super) fn settle_canonical(&mut self) -> Result<()> {
        let Some(durable) = self.durable.as_mut() else {
            return Ok(());
        };
        if std::mem::replace(&mut durable.canonical.settled, true) {
            return Ok(());
        }
        let mut fields: Vec<u32> = durable.canonical.fields.keys().copied().collect();
        fields.sort_unstable();
        let literals = durable.canonical.literals.clone();
        for global in fields {
            self.settle_field(global)?;
        }
        self.settle_literals(&literals)?;
        self.forget_canonical();
        Ok(())
    }

    /// A static field has another object.
    pub(crate) fn canonical_set(&mut self, global: u32) -> Result<()> {
        self.settle_field(global)?;
        self.forget_canonical();
        Ok(())
    }

    fn settle_field(&mut self, global: u32) -> Result<()> {
        let name = match self.durable.as_ref() {
            Some(d) => d.canonical.fields[&global].clone(),
            None => return Ok(()),
        };
        let recorded = self.named_objects().iter().rev();
        let mut recorded = recorded.filter(|n| n.of.as_deref() == Some(&name));
        let known = recorded.next().map(|n| n.object.0);
        let Some(object) = self.canonical_at(Place::Global(global)) else {
            return match known {
                Some(known) => self.restore_field(global, known),
                None => Ok(()),
            };
        };
        if !self.may_be_canonical(object, &name) || !self.is_full(object) {
            return Ok(());
        }
        let elements = self.elements_of(object);
        match known {
            Some(known)
                if self.type_of(known) == self.type_of(object)
                    && self.elements_of(known) == elements
                    && self.is_full(known) =>
            {
                for i in 0..elements.unwrap_or_default() {
                    let new = self.element(object, i).filter(|r| !Ref(*r).is_durable());
                    if let (Some(new), Some(old)) = (new, self.element(known, i))
                        && self.type_of(new) == self.type_of(old)
                    {
                        self.become_durable(new, old)?;
                    }
                }
                self.become_durable(object, known)
            }
            // Another object has the name already.
            Some(_) => Ok(()),
            None => {
                for i in 0..elements.unwrap_or_default() {
                    self.add_canonical(Place::Element(global, i), &name);
                }
                self.add_canonical(Place::Global(global), &name);
                Ok(())
            }
        }
    }

    /// Objects that the library makes on first use are there already: it tests whether the field is null.
    fn restore_field(&mut self, global: u32, known: u32) -> Result<()> {
        let place = self.instances[0].globals[global as usize];
        let ty = self.instances[0].module.globals[global as usize].0.ty;
        let fits = match ty {
            ValType::Ref(r) => {
                let types = self.engine.types();
                match r.heap {
                    HeapType::Concrete(to, _) => types.is_subtype_index(self.type_of(known), to),
                    _ => false,
                }
            }
            _ => false,
        };
        let is_library = self
            .durable
            .as_ref()
            .is_some_and(|d| d.canonical.fields[&global].starts_with(LIBRARY));
        if fits && is_library && self.global_bits(place) as u32 == 0 {
            self.begin_to_check()?;
            self.set_global_bits(place, ty, known.into());
        }
        Ok(())
    }

    fn settle_literals(&mut self, literals: &[u32]) -> Result<()> {
        let recorded = self.named_objects().iter();
        let recorded = recorded.filter(|n| n.of.as_deref() == Some(Named::LITERAL));
        let recorded: Vec<u32> = recorded.map(|n| n.object.0).collect();
        let known: HashMap<Vec<u8>, u32> =
            recorded.into_iter().map(|r| (self.text_of(r), r)).collect();
        let name: Arc<str> = Named::LITERAL.into();
        for &global in literals {
            let place = Place::Global(global);
            let Some(literal) = self.canonical_at(place) else {
                continue;
            };
            let found = match known.is_empty() {
                true => None,
                false => known.get(&self.text_of(literal)).copied(),
            };
            match found {
                Some(found) if self.type_of(found) == self.type_of(literal) => {
                    self.become_durable(literal, found)?;
                }
                _ => self.add_canonical(place, &name),
            }
        }
        Ok(())
    }

    /// Has a new object of the program forward to the durable one that it is.
    pub(super) fn become_durable(&mut self, object: u32, durable: u32) -> Result<()> {
        self.begin_to_check()?;
        let header = self.object(object).cast::<u64>();
        // SAFETY: a live object begins with its header; compiled code waits.
        unsafe { header.write(Header(header.read()).became_durable(Ref(durable)).0) };
        Ok(())
    }

    /// Canonical objects that are not durable, by where they are now.
    pub(super) fn canonical_now(&mut self) -> Arc<varve_durable::Canonical> {
        let collected = self.collected;
        let Some(durable) = self.durable.as_ref() else {
            return Arc::default();
        };
        if durable.canonical.as_of == collected {
            return durable.canonical.now.clone();
        }
        let places = durable.canonical.places.iter();
        let now = places.filter_map(|(place, name)| {
            let object = self.canonical_at(*place)?;
            let known = match place {
                Place::Global(_) => Known::Itself(name.clone()),
                Place::Element(global, _) => Known::In(*global),
            };
            Some((object, known))
        });
        let now = Arc::new(now.collect::<varve_durable::Canonical>());
        if let Some(durable) = self.durable.as_mut() {
            durable.canonical.now = now.clone();
            durable.canonical.as_of = collected;
        }
        now
    }

    /// Drops the result of [`Vm::canonical_now`], so that it is looked up again.
    fn forget_canonical(&mut self) {
        if let Some(durable) = self.durable.as_mut() {
            durable.canonical.as_of = u64::MAX;
        }
    }

    fn add_canonical(&mut self, place: Place, name: &Arc<str>) {
        if let Some(durable) = self.durable.as_mut() {
            durable.canonical.places.insert(place, name.clone());
        }
    }

    /// Makes arrays durable of which elements became durable: these are known by where they are in them.
    pub(super) fn persist_wanted(&mut self) -> Result<()> {
        let Some(space) = self.region_in_use() else {
            return Ok(());
        };
        for global in space.take_wanted() {
            if let Some(array) = self.canonical_at(Place::Global(global)) {
                self.persist(array)?;
            }
        }
        Ok(())
    }

    fn named_objects(&self) -> &[Named] {
        let space = self.durable.as_ref().and_then(|d| d.space());
        space.map_or(&[], |s| s.named())
    }

    /// The volatile object at a place, if there is one.
    fn canonical_at(&self, place: Place) -> Option<u32> {
        let raw = match place {
            Place::Global(global) => {
                let place = *self.instances.first()?.globals.get(global as usize)?;
                self.global_bits(place) as u32
            }
            Place::Element(global, i) => {
                let array = self.canonical_at(Place::Global(global))?;
                self.element(array, i)?
            }
        };
        if raw == 0 || raw & layout::I31_TAG != 0 {
            return None;
        }
        let object = self.resolve(raw);
        (!Ref(object).is_durable()).then_some(object)
    }

    /// An element of an array of the program, resolved, if it is there.
    fn element(&self, object: u32, i: u32) -> Option<u32> {
        let elements = self.array_in(object)?;
        let array = self.array(elements);
        if i >= array.len {
            return None;
        }
        // SAFETY: an element of a live array of references.
        let raw = unsafe { array.address(i).cast::<u32>().read() };
        (raw != 0 && raw & layout::I31_TAG == 0).then(|| self.resolve(raw))
    }

    /// Elements of an object that is an array of objects to the program; none of others.
    fn elements_of(&self, object: u32) -> Option<u32> {
        let elements = self.array_in(object)?;
        let len = self.array(elements).len;
        (len <= MOST_ELEMENTS).then_some(len)
    }

    /// Whether all elements of an array are there: a cache that is filled after it was made is none yet, and values stored into it must not
    /// replace those of the region. An object that is no array is full; an array too long to be a cache is not.
    fn is_full(&self, object: u32) -> bool {
        match (self.array_in(object), self.elements_of(object)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(count)) => (0..count).all(|i| self.element(object, i).is_some()),
        }
    }

    /// The array of references that an object of the program wraps: its only own field.
    fn array_in(&self, object: u32) -> Option<u32> {
        let (_, inherited) = self.durable.as_ref()?.canonical.object?;
        let offset = {
            let types = self.engine.types();
            let canonical = types.get(self.type_of(object));
            let Composite::Struct(fields) = &canonical.ty.composite else {
                return None;
            };
            (fields.len() == inherited + 1 && fields[inherited].storage.is_managed())
                .then(|| canonical.layout.offsets[inherited])?
        };
        let held = self.reference_at(object, offset);
        if held == 0 {
            return None;
        }
        let types = self.engine.types();
        let is_refs = match &types.get(self.type_of(held)).ty.composite {
            Composite::Array(element) => element.storage.is_managed(),
            _ => false,
        };
        is_refs.then_some(held)
    }

    /// Whether an object may be the same in each run: constants of enumerations have names of their own, and values of the program's own fields
    /// must be nothing but itself, since the next version may mean something else by the field.
    fn may_be_canonical(&self, object: u32, name: &str) -> bool {
        let Some(durable) = self.durable.as_ref() else {
            return false;
        };
        let (ty, types) = (self.type_of(object), self.engine.types());
        let Some((root, inherited)) = durable.canonical.object else {
            return false;
        };
        let constant = durable
            .enumeration
            .is_some_and(|e| types.is_subtype_index(ty, e.ty));
        let fields = match &types.get(ty).ty.composite {
            Composite::Struct(fields) => fields.len(),
            _ => return false,
        };
        !constant
            && !durable.is_class_data(ty)
            && types.is_subtype_index(ty, root)
            && (name.starts_with(LIBRARY) || fields == inherited)
    }
}
