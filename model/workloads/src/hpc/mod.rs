//! The two benchmarks of the TOP500 list: High-Performance Linpack, which computes, and HPCG, which waits for memory.

use crate::entry::WorkloadEntry;

pub mod grid;
pub mod hpcg;
pub mod hpl;
pub mod matrix;

#[cfg(test)]
mod hpcg_tests;

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[hpcg::ENTRY, hpl::ENTRY];
