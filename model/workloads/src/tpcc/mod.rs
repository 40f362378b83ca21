//! An in-memory database running transactions in the manner of TPC-C.
//!
//! Stands for Silo (SOSP 2013) as Johnny Cache runs it (OSDI 2023, section 5.5): records behind B+-trees, optimistic
//! concurrency control with a version word (TID) in each record, the five transactions in the standard mix, each thread
//! with warehouses of its own. The database is loaded table by table, warehouses and districts first, so that the small
//! hot tables come before the large cold ones in memory; section 5.5 depends on that.
//!
//! The values are real: money, counts, quantities and order lines, checked by the consistency conditions of TPC-C
//! (clause 3.3.2). The initial contents of the database are functions of its keys and take no memory of the host until
//! they are changed; text columns are sizes only. Rows have the sizes of the specification's clause 1.3 as its own
//! table of storage lists them (clause 4.2.2), after a header of 16 bytes (TID and previous version).
//!
//! Differences to the full specification: no think times or terminals (as in Silo); last names are given to customers
//! alike in every district; the number of lines of the initial orders runs evenly through 5 to 15. Of indexes: initial
//! leaves are full, since keys are loaded in order; a growing index gets fresh leaves, but inner nodes are not split.

use crate::entry::WorkloadEntry;

pub mod check;
pub mod data;
pub mod db;
pub mod index;
pub mod program;
pub mod tables;
pub mod transactions;
pub mod tx;

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[program::ENTRY];
