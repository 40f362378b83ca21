//! `hints+pima`: both memories are tried for objects of marked sites alone (A8).

use super::pima::TriesBoth;
use super::{Entry, Hot};
use varve_pima::params::{PARAMS, settled};

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: CH+PIMA",
    intervals: true,
    params: PARAMS,
    ..Entry::new(
        "hints+pima",
        "the same for marked sites alone, others in slow memory",
        |v, _| {
            let about = Some(Hot::Hinted);
            Ok(Box::new(TriesBoth::new(ENTRY.name, settled(v)?, about)))
        },
    )
};
