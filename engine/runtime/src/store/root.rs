//! References that the host holds.

use super::AsContextMut;
use crate::error::{Error, Result};

/// A reference to an object of the heap, held by the host. The object lives, wherever it moves, until the scope in which the
/// handle was made ends: a host function's call, a [`RootScope`], or else the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rooted {
    pub(crate) store: u64,
    index: u32,
    stamp: u64,
}

/// The handles of a store, as a stack.
pub(crate) struct Roots {
    slots: Vec<u32>,
    stamps: Vec<u64>,
    last_stamp: u64,
    store: u64,
}

/// A height of the stack of handles.
#[derive(Clone, Copy)]
pub(crate) struct Mark(usize);

impl Roots {
    pub fn new(store: u64) -> Roots {
        Roots {
            slots: vec![],
            stamps: vec![],
            last_stamp: 0,
            store,
        }
    }

    pub fn push(&mut self, raw: u32) -> Rooted {
        self.last_stamp += 1;
        self.slots.push(raw);
        self.stamps.push(self.last_stamp);
        Rooted {
            store: self.store,
            index: self.slots.len() as u32 - 1,
            stamp: self.last_stamp,
        }
    }

    /// The reference, unless the handle's scope ended.
    pub fn get(&self, handle: &Rooted) -> Option<u32> {
        let i = handle.index as usize;
        (handle.store == self.store && self.stamps.get(i) == Some(&handle.stamp))
            .then(|| self.slots[i])
    }

    pub fn resolve(&self, handle: &Rooted) -> Result<u32> {
        self.get(handle).ok_or_else(|| {
            Error::usage("a reference is used in another store, or after the scope that it was made in has ended")
        })
    }

    pub fn mark(&self) -> Mark {
        Mark(self.slots.len())
    }

    pub fn release(&mut self, mark: Mark) {
        self.slots.truncate(mark.0);
        self.stamps.truncate(mark.0);
    }

    pub fn slots_mut(&mut self) -> &mut [u32] {
        &mut self.slots
    }
}

/// A scope of handles: those made in it end with it.
pub struct RootScope<C: AsContextMut> {
    store: C,
    mark: Mark,
}

impl<C: AsContextMut> RootScope<C> {
    /// Opens a scope. The store is used through it until it ends.
    pub fn new(mut store: C) -> Self {
        let mark = store.as_context_mut().vm().roots.mark();
        RootScope { store, mark }
    }
}

impl<C: AsContextMut> AsContextMut for RootScope<C> {
    type Data = C::Data;
    fn as_context_mut(&mut self) -> super::StoreContextMut<'_, C::Data> {
        self.store.as_context_mut()
    }
}

impl<C: AsContextMut> Drop for RootScope<C> {
    fn drop(&mut self) {
        let mark = self.mark;
        self.store.as_context_mut().vm().roots.release(mark);
    }
}
