//! Loops with one access pattern each: to measure a machine, to disturb a neighbour, to defeat a policy.

use crate::entry::Entry;

pub mod access;
pub mod adversary;
pub mod chase;
pub mod membench;
pub mod stream;

/// The workloads of this module.
pub const ENTRIES: &[Entry] = &[
    stream::ENTRY,
    access::ENTRY,
    chase::ENTRY,
    adversary::ENTRY,
    membench::ENTRY,
];
