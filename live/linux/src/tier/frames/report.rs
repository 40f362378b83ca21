//! Observations and exchanges of frames, beside [`crate::tier::TierCounts`].

use super::pages::{Kind, Unplaced};
use crate::tier::decide::FrameState;
use std::collections::BTreeMap;

/// Sums over a run, in bytes unless something else is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameReport {
    /// Pages that came into another frame than the chosen one.
    pub elsewhere: u64,
    /// Pages that were on their way when the second move was refused, and were brought home later.
    pub brought_home: u64,
    /// Pages that are still on another node.
    pub away: u64,
    /// The reserve.
    pub reserve: u64,
    /// Pages in the account at the end, by kind.
    pub kinds: BTreeMap<Kind, u64>,
    /// Memory of the processes that is in no account, by reason.
    pub unplaced: BTreeMap<Unplaced, u64>,
    /// Most misplaced hot pages at a time, in pages.
    pub most_misplaced: u64,
    /// Power of the DRAM before the first exchange and after the last one, W, where it is counted.
    pub watts: Option<(f64, f64)>,
    /// How things were at the end.
    pub state: FrameState,
}
