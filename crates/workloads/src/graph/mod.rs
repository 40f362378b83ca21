//! Graph kernels.

use crate::registry::Entry;

/// The workloads of this module.
pub const ENTRIES: &[Entry] = &[];
