//! `cgz+pima`: both memories are tried for objects of the sites of `cgz-f` alone (A8).

use super::cgz_f::THRESHOLD;
use super::pima::TriesBoth;
use super::{Entry, Hot};
use varve_pima::params::{ALPHA, HOLD_OFF, INTERVALS, TOGETHER, WARM_UP, settled};
use varve_sites::classify;

/// The registry entry of this plan.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: CGZ+PIMA",
    profile: true,
    intervals: true,
    params: &[THRESHOLD, ALPHA, INTERVALS, HOLD_OFF, WARM_UP, TOGETHER],
    ..Entry::new(
        "cgz+pima",
        "the same for the sites of cgz-f alone, others in slow memory",
        |v, p| {
            let hot = classify::by_frequency(p, v.number(THRESHOLD.key));
            let about = Some(Hot::Profiled(hot));
            Ok(Box::new(TriesBoth::new(ENTRY.name, settled(v)?, about)))
        },
    )
};
