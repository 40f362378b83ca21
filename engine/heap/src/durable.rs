//! The durable objects that a collection finds referred to. The collector reports them and does not trace them.

use std::sync::{Mutex, PoisonError};

use crate::reference::Ref;

/// Durable objects that something outside of their range refers to.
#[derive(Default)]
pub struct DurableMarks {
    seen: Mutex<Vec<Ref>>,
}

impl DurableMarks {
    /// Adds the results of a thread.
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
