//! The parameter that all of these programs have.

use crate::entry;
use varve_spec::Param;

/// Fewer than other workloads have, as the patterns of suites' programs.
pub(super) const THREADS: Param = Param {
    default: "8",
    ..entry::THREADS
};
