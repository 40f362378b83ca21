//! `dram`: everything in fast memory (A1, DRAM-only).
//!
//! A heap that is made with it needs no table: there is one memory, and nothing to choose.

use super::Entry;
use crate::header::Header;
use crate::plan::{FastIsFull, Object, Origin, Places, Plan, Space};
use varve_pima::Tier;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: DRAM-only",
    usual: true,
    colours: true,
    ..Entry::new("dram", "everything in fast memory", |_, _| {
        Ok(Box::new(Dram))
    })
};

/// Everything in one memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dram;

impl Plan for Dram {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn tiers(&self) -> u8 {
        1
    }

    fn place(&self, _: Object) -> Space {
        Space::Old(Tier::FAST)
    }
}

impl Places for Dram {
    const SEVERAL: bool = false;

    fn plan(&self) -> &dyn Plan {
        self
    }

    fn plan_mut(&mut self) -> &mut dyn Plan {
        self
    }

    fn begin(&mut self, _: FastIsFull) {}

    fn moves_old(&self) -> bool {
        false
    }

    #[inline(always)]
    fn place(&self, _: Header, _: bool, _: Origin) -> Space {
        Space::Old(Tier::FAST)
    }
}
