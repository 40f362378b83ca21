//! Things that instances import and export.

use super::func::Func;
use super::val::Val;
use crate::error::{Error, Result};
use crate::module::{GlobalType, MemoryType, TableType};
use crate::store::AsContextMut;
use crate::types::{RefType, ValType};

/// A function, table, memory, global or tag of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extern {
    pub(crate) store: u64,
    pub(crate) id: ExternId,
}

/// Numbers in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExternId {
    Func(u32),
    Table(u32),
    Memory(u32),
    Global(u32),
    Tag(u32),
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $into:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            pub(crate) store: u64,
            pub(crate) id: u32,
        }

        impl From<$name> for Extern {
            fn from(h: $name) -> Extern {
                Extern { store: h.store, id: ExternId::$name(h.id) }
            }
        }

        impl Extern {
            /// The thing, if it is of this kind.
            pub fn $into(self) -> Option<$name> {
                match self.id {
                    ExternId::$name(id) => Some($name { store: self.store, id }),
                    _ => None,
                }
            }
        }
    };
}

handle! {
    /// A table of references.
    Table, into_table
}
handle! {
    /// A linear memory.
    Memory, into_memory
}
handle! {
    /// A global variable.
    Global, into_global
}
handle! {
    /// A kind of exceptions.
    Tag, into_tag
}

impl From<Func> for Extern {
    fn from(f: Func) -> Extern {
        Extern {
            store: f.store,
            id: ExternId::Func(f.id),
        }
    }
}

impl Extern {
    /// The function, if it is one.
    pub fn into_func(self) -> Option<Func> {
        match self.id {
            ExternId::Func(id) => Some(Func {
                store: self.store,
                id,
            }),
            _ => None,
        }
    }
}

/// The error of a handle that is used with a store it does not belong to.
pub(crate) fn same_store(handle: u64, store: u64) -> Result<()> {
    if handle == store {
        Ok(())
    } else {
        Err(Error::usage(
            "a handle is used with another store than its own",
        ))
    }
}

impl Table {
    /// A table of at least `min` elements, all `value` in the beginning.
    ///
    /// # Errors
    /// If the value is not of the element's type, or the table too large.
    pub fn new(
        mut store: impl AsContextMut,
        element: RefType,
        min: u32,
        max: Option<u32>,
        value: Val,
    ) -> Result<Table> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = value.to_bits(vm, ValType::Ref(element))? as u32;
        let ty = TableType {
            element,
            min: min.into(),
            max: max.map(u64::from),
            wide: false,
        };
        let id = vm.new_table(ty, raw)?;
        Ok(Table { store: vm.id, id })
    }

    /// The number of elements.
    ///
    /// # Errors
    /// If the store is not the table's.
    pub fn size(&self, mut store: impl AsContextMut) -> Result<u32> {
        let mut store = store.as_context_mut();
        same_store(self.store, store.vm().id)?;
        Ok(store.vm().tables[self.id as usize].elements().len() as u32)
    }

    /// An element; none beyond the end.
    ///
    /// # Errors
    /// If the store is not the table's.
    pub fn get(&self, mut store: impl AsContextMut, index: u32) -> Result<Option<Val>> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let table = &vm.tables[self.id as usize];
        let ty = ValType::Ref(table.ty.element);
        let Some(&raw) = table.elements().get(index as usize) else {
            return Ok(None);
        };
        Ok(Some(Val::from_bits(vm, ty, raw as u64)))
    }

    /// Sets an element.
    ///
    /// # Errors
    /// If the index is beyond the end, or the value not of the element's type.
    pub fn set(&self, mut store: impl AsContextMut, index: u32, value: Val) -> Result<()> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let raw = value.to_bits(vm, ValType::Ref(vm.tables[self.id as usize].ty.element))? as u32;
        let table = vm.tables[self.id as usize].elements_mut();
        let len = table.len();
        let element = table
            .get_mut(index as usize)
            .ok_or_else(|| Error::usage(format!("element {index} of a table of {len}")))?;
        *element = raw;
        Ok(())
    }
}

impl Memory {
    /// A linear memory of at least `min` and at most `max` pages of 64 KiB.
    ///
    /// # Errors
    /// If the host gives no memory.
    pub fn new(mut store: impl AsContextMut, min: u32, max: Option<u32>) -> Result<Memory> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let id = vm.new_memory(MemoryType {
            min_pages: min.into(),
            max_pages: max.map(u64::from),
            wide: false,
        })?;
        Ok(Memory { store: vm.id, id })
    }

    /// Its bytes.
    ///
    /// # Errors
    /// If the store is not the memory's.
    pub fn data<'a, C: AsContextMut>(&self, store: &'a mut C) -> Result<&'a mut [u8]> {
        let mut store = store.as_context_mut();
        same_store(self.store, store.vm().id)?;
        let vm = store.vm_ptr();
        // SAFETY: the store, and so the memory, is borrowed for 'a through `store`; nothing else can use it meanwhile.
        Ok(unsafe { (&mut (*vm).memories)[self.id as usize].bytes_mut() })
    }

    /// Grows it; the old size in pages.
    ///
    /// # Errors
    /// If it cannot grow so far.
    pub fn grow(&self, mut store: impl AsContextMut, pages: u32) -> Result<u32> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let old = vm.grow_memory(self.id, pages.into());
        old.map(|pages| pages as u32).ok_or_else(|| {
            Error::usage(format!(
                "the memory cannot grow by {pages} pages: see its maximum, and Config::linear_max"
            ))
        })
    }
}

impl Global {
    /// A global with its first value.
    ///
    /// # Errors
    /// If the value is not of the type.
    pub fn new(
        mut store: impl AsContextMut,
        ty: ValType,
        mutable: bool,
        value: Val,
    ) -> Result<Global> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let bits = value.to_any_bits(vm, ty)?;
        vm.new_global(GlobalType { ty, mutable }, bits)?;
        Ok(Global {
            store: vm.id,
            id: vm.globals.len() as u32 - 1,
        })
    }

    /// Its value.
    ///
    /// # Errors
    /// If the store is not the global's.
    pub fn get(&self, mut store: impl AsContextMut) -> Result<Val> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let (place, ty) = (
            vm.globals[self.id as usize].place,
            vm.globals[self.id as usize].ty.ty,
        );
        let bits = match ty {
            ValType::V128 => vm.global_vector(place),
            _ => vm.global_bits(place).into(),
        };
        Ok(Val::from_bits(vm, ty, bits))
    }

    /// Sets its value.
    ///
    /// # Errors
    /// If it is immutable, or the value not of its type.
    pub fn set(&self, mut store: impl AsContextMut, value: Val) -> Result<()> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let (place, ty) = (
            vm.globals[self.id as usize].place,
            vm.globals[self.id as usize].ty,
        );
        if !ty.mutable {
            return Err(Error::usage("the global is immutable"));
        }
        let bits = value.to_any_bits(vm, ty.ty)?;
        vm.set_global_bits(place, ty.ty, bits);
        Ok(())
    }
}
