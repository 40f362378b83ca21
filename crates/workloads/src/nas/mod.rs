//! Kernels in the manner of the NAS parallel benchmarks.

use crate::registry::Entry;

/// The workloads of this module.
pub const ENTRIES: &[Entry] = &[];
