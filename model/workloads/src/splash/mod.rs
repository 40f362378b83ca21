//! Programs of SPLASH-2x and PARSEC that compute: the suites' loops over arrays of the suites' sizes, written from what
//! the originals do (their sources name the files that were read; no line of them is here).
//!
//! Their sizes are those of the suites' largest inputs (`native`). Nothing that a paper measured of them went in:
//! bandwidths and slowdowns are answers.

use crate::entry::WorkloadEntry;

pub mod freqmine;
pub mod lu;
pub mod mining;
pub mod ocean;
mod threads;

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[
    ocean::ENTRY,
    lu::CONTIGUOUS,
    lu::IN_COLUMNS,
    freqmine::ENTRY,
];

#[cfg(test)]
mod tests;
