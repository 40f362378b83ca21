//! The target of an access, as data that the stages of [`super::pipeline`] read.
//!
//! | kind | address | a fault means |
//! |---|---|---|
//! | field | object and offset | null |
//! | element | object, offset of the first one, index | nothing: null and bounds were checked |
//! | length, field of an exception | object and offset | null |
//! | header, part of a new object | object and offset | nothing |
//! | global | store's region | nothing |
//! | linear memory | memory and index | out of bounds |

use super::alias::Region;
use super::signatures::{REFERENCE, clif_type};
use super::translate::Translator;
use crate::error::TrapKind;
use crate::store::region::{Place, displacement};
use crate::types::{Storage, TypeIndex, ValType, array_base};
use cranelift_codegen::ir::{Type, Value, types};
use varve_heap::layout;

/// The accessed location. Types are those of the engine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Field {
        ty: TypeIndex,
        field: u32,
    },
    Element {
        ty: TypeIndex,
        index: Value,
    },
    Length,
    /// A field of an exception.
    Exception,
    Header,
    /// A field or element of an object that has just been allocated, and gets its first value.
    New,
    Global {
        place: Place,
    },
    /// Bytes of a linear memory, by its number in the store, at an index and the operator's offset.
    Memory {
        memory: u32,
        index: Value,
        offset: u64,
    },
}

/// How a value is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width {
    /// In memory, where there may be only its low bytes.
    pub part: Type,
    /// On the operand stack.
    pub whole: Type,
    /// Whether low bytes are read with sign.
    pub signed: bool,
}

impl Width {
    pub fn whole(ty: ValType) -> Width {
        let whole = clif_type(ty);
        let part = match ty {
            ValType::Ref(_) => types::I32,
            _ => whole,
        };
        Width {
            part,
            whole,
            signed: false,
        }
    }

    /// The low bytes of a value.
    pub fn part(part: Type, ty: ValType, signed: bool) -> Width {
        Width {
            part,
            whole: clif_type(ty),
            signed,
        }
    }

    pub fn of(storage: Storage, signed: bool) -> Width {
        match storage {
            Storage::I8 => Width::part(types::I8, ValType::I32, signed),
            Storage::I16 => Width::part(types::I16, ValType::I32, signed),
            Storage::Val(v) => Width::whole(v),
        }
    }

    /// Whether the stored bytes are the whole value: of a reference too, whose upper half is always 0.
    pub fn is_whole(self) -> bool {
        self.part == self.whole || self.is_reference()
    }

    /// Whether, of values in objects, only references are stored so.
    pub fn is_reference(self) -> bool {
        (self.part, self.whole, self.signed) == (types::I32, REFERENCE, false)
    }

    /// Bytes that are accessed.
    pub fn bytes(self) -> u32 {
        self.part.bytes()
    }
}

/// Where something is loaded from or stored to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The object, if it is in one.
    pub reference: Option<Value>,
    pub kind: Kind,
    pub width: Width,
    /// Bytes from the address that the kind leads to.
    pub offset: i32,
    /// The alias region: no access to another region touches it.
    pub region: Region,
    /// The trap for a fault at the access; none if it cannot fault.
    pub trap: Option<TrapKind>,
    /// Whether it is a reference that the collector follows.
    pub managed: bool,
    /// Whether a profile counts it.
    pub counted: bool,
    /// Whether it is read ahead of the operators that want it: its object is not null.
    pub ahead: bool,
}

impl Slot {
    /// Four bytes of an object at an offset: neither a field nor an element.
    fn word(reference: Value, kind: Kind, offset: i32, region: Region) -> Slot {
        Slot {
            reference: Some(reference),
            kind,
            width: Width::whole(ValType::I32),
            offset,
            region,
            trap: None,
            managed: false,
            counted: false,
            ahead: false,
        }
    }

    /// The length of an array, as a check of bounds reads it.
    pub fn length(reference: Value) -> Slot {
        Slot {
            trap: Some(TrapKind::NullReference),
            ..Slot::word(
                reference,
                Kind::Length,
                layout::ARRAY_LENGTH,
                Region::Lengths,
            )
        }
    }

    /// The half of an object's header with its type. The reference is not null.
    pub fn header(reference: Value) -> Slot {
        Slot::word(reference, Kind::Header, 0, Region::Headers)
    }

    /// A field of an exception.
    pub fn exception(reference: Value, ty: ValType, offset: u32) -> Slot {
        Slot {
            width: Width::whole(ty),
            trap: Some(TrapKind::NullReference),
            managed: ty.is_managed(),
            ..Slot::word(
                reference,
                Kind::Exception,
                offset as i32,
                Region::Exceptions,
            )
        }
    }

    /// A global, by its place in the store's region.
    pub fn global(place: Place, ty: ValType) -> Slot {
        Slot {
            reference: None,
            kind: Kind::Global { place },
            width: Width::whole(ty),
            offset: displacement(place),
            region: Region::Global(place),
            trap: None,
            managed: ty.is_managed(),
            counted: false,
            ahead: false,
        }
    }

    /// Bytes of a linear memory, by its number in the store.
    pub fn memory(memory: u32, index: Value, offset: u64, width: Width) -> Slot {
        Slot {
            reference: None,
            kind: Kind::Memory {
                memory,
                index,
                offset,
            },
            width,
            // An offset that does not fit is added to the address.
            offset: i32::try_from(offset).unwrap_or(0),
            region: Region::Memory(memory),
            trap: Some(TrapKind::MemoryOutOfBounds),
            managed: false,
            counted: false,
            ahead: false,
        }
    }

    /// A part of an object that has just been allocated, and that no other code refers to yet.
    pub fn of_new(reference: Value, storage: Storage, offset: u32, region: Region) -> Slot {
        Slot {
            width: Width::of(storage, false),
            managed: storage.is_managed(),
            ..Slot::word(reference, Kind::New, offset as i32, region)
        }
    }
}

impl Translator<'_, '_> {
    /// A field of a struct; `signed` says how one is read that is smaller than a value.
    pub(super) fn field_slot(
        &self,
        reference: Value,
        ty: TypeIndex,
        field: u32,
        signed: bool,
    ) -> Slot {
        let storage = self.env.types.fields(ty)[field as usize].storage;
        Slot {
            reference: Some(reference),
            kind: Kind::Field { ty, field },
            width: Width::of(storage, signed),
            offset: self.env.types.get(ty).layout.offsets[field as usize] as i32,
            region: self.field_region(ty, field),
            trap: Some(TrapKind::NullReference),
            managed: storage.is_managed(),
            counted: true,
            ahead: false,
        }
    }

    /// An element of an array.
    pub(super) fn element_slot(
        &self,
        reference: Value,
        ty: TypeIndex,
        index: Value,
        signed: bool,
    ) -> Slot {
        let storage = self.env.types.element(ty).storage;
        Slot {
            reference: Some(reference),
            kind: Kind::Element { ty, index },
            width: Width::of(storage, signed),
            offset: array_base(storage.bytes()) as i32,
            region: self.element_region(ty),
            trap: None,
            managed: storage.is_managed(),
            counted: true,
            ahead: false,
        }
    }
}
