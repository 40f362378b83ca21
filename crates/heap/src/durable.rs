//! What a heap knows of durable objects: where they may be, and that they are none of its business.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::heap::Heap;
use crate::observer::Observer;
use crate::plan::Places;
use crate::reference::Ref;

/// Durable objects that something outside of their range refers to.
#[derive(Default)]
pub struct DurableMarks {
    seen: Mutex<HashSet<u32>>,
}

impl DurableMarks {
    /// Notes a reference. Collector threads call.
    pub(crate) fn mark(&self, r: Ref) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(r.0);
    }

    /// All of them, each once, in no order.
    pub fn into_refs(self) -> Vec<Ref> {
        let seen = self.seen.into_inner();
        let seen = seen.unwrap_or_else(PoisonError::into_inner);
        seen.into_iter().map(Ref).collect()
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
