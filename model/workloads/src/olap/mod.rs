//! Analytical queries over columns in memory, in the manner of TPC-H: Q1 scans and sums up, Q3 joins by hashing.
//!
//! ```text
//! data.rs     the tables: the values of each column, computed from the number of its row
//! groups.rs   Q1's groups and their sums
//! table.rs    the hash table of the join
//! queries.rs  the program: both queries, row by row
//! ```

use crate::entry::WorkloadEntry;

pub mod data;
pub mod groups;
pub mod queries;
pub mod table;

#[cfg(test)]
mod tests;

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[queries::ENTRY];
