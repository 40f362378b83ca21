//! What a heap knows of durable objects: where they may be, and that they are none of its business.

use std::sync::{Mutex, PoisonError};

use crate::heap::Heap;
use crate::observer::Observer;
use crate::plan::Places;
use crate::reference::Ref;

/// Durable objects that something outside of their range refers to.
#[derive(Default)]
pub struct DurableMarks {
    seen: Mutex<Vec<Ref>>,
}

impl DurableMarks {
    /// Notes what a thread found.
    pub(crate) fn add(&self, mut found: Vec<Ref>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.append(&mut found);
    }

    /// All of them, in no order; one may be there several times.
    pub fn into_refs(self) -> Vec<Ref> {
        let seen = self.seen.into_inner();
        seen.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Places, O: Observer> Heap<P, O> {
    /// Whether a reference leads into the range that the heap leaves to durable objects.
    pub(crate) fn is_in_durable_range(&self, r: Ref) -> bool {
        self.config.durable
            && r.is_durable()
            && self.config.align.offset(r) < self.config.align.durable_end()
    }
}
