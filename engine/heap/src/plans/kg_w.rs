//! `kg-w`: Kingsguard-writers (A4). Survivors of the nursery wait in an observer space in fast memory. Those that
//! were written to there go to fast memory, the others to slow memory.
//!
//! ```text
//!   nursery ----> observer ----> written? fast
//!     |              (fast)      else     slow
//!     +-- large ------------------------> slow
//!
//!   and whenever everything is collected, old objects by whether they were written to since the last time
//! ```
//!
//! Section 5.3 of the paper stops at the observer space. That old objects are watched as well is how Kingsguard's
//! own authors describe it; `old=kept` leaves them where they were sorted to.
//!
//! The price is real: compiled code records every write to every object in its header, and an object is copied twice.

use super::Entry;
use crate::plan::{Object, Origin, Plan, Space};
use varve_pima::Tier;
use varve_spec::{Param, Want};

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: Kingsguard-writers",
    usual: true,
    params: &[Param::new(
        "old",
        Want::Word(&["watched", "kept"]),
        "watched",
        "whether old objects are sorted again whenever everything is collected",
    )],
    ..Entry::new(
        "kg-w",
        "survivors are watched; those written to in fast memory, others in slow memory",
        |v, _| {
            Ok(Box::new(KgW {
                old: v.word("old") == "watched",
            }))
        },
    )
};

/// By writes.
#[derive(Clone, Copy, Debug)]
pub struct KgW {
    /// Whether old objects are watched too.
    pub old: bool,
}

impl Plan for KgW {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn observer(&self) -> Option<Tier> {
        Some(Tier::FAST)
    }

    fn monitors(&self) -> bool {
        true
    }

    fn place(&self, o: Object) -> Space {
        let by_writes = if o.written { Tier::FAST } else { Tier::SLOW };
        match o.from {
            Origin::Nursery if !o.large => Space::Observer,
            Origin::Birth | Origin::Nursery => Space::Old(Tier::SLOW),
            Origin::Old(tier) if !self.old => Space::Old(tier),
            Origin::Observer | Origin::Old(_) => Space::Old(by_writes),
        }
    }
}
