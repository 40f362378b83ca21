//! A heap's spaces on the memory nodes of this machine.

use std::sync::{Mutex, PoisonError};
use varve_live::nodes::NodeMemory;
use varve_runtime::{GcBacking, GcTier};

/// Gives a heap the memory that its plan wants: tier 0 is fast, all others are slow.
pub struct OnNodes {
    memory: NodeMemory,
    /// What went wrong first. All later collections would say the same.
    failure: Mutex<Option<String>>,
}

impl OnNodes {
    /// Memory on these nodes.
    pub fn new(memory: NodeMemory) -> OnNodes {
        let failure = Mutex::new(None);
        OnNodes { memory, failure }
    }
}

impl GcBacking for OnNodes {
    fn bind(&self, address: u64, bytes: u64, tier: GcTier) {
        // The program is about to end then; its collection goes on in any memory.
        if self.failure().is_some() {
            return;
        }
        if let Err(e) = self.memory.bind(address, bytes, tier.0) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| e.to_string());
        }
    }

    fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }
}
