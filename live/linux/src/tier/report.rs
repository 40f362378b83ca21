//! Observations and migrations, in numbers.

use super::frames::FrameReport;
use super::mapped::SharedKind;
use super::memory::{MoveOutcome, Refusal};
use std::collections::BTreeMap;

/// Sums over a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Intervals.
    pub intervals: u64,
    /// Observed accesses to pages.
    pub uses: u64,
    /// Migrations that the policy requested.
    pub wishes: u64,
    /// Bytes promoted to fast memory, and demoted to slow memory.
    pub to_fast: u64,
    /// See `to_fast`.
    pub to_slow: u64,
    /// Bytes that were exchanged into chosen frames.
    pub exchanged: u64,
    /// Bytes that did not migrate, by reason.
    pub refused: BTreeMap<Refusal, u64>,
    /// Pages that backed off because the kernel refused them repeatedly.
    pub rested: u64,
    /// Bytes that the kernel or other programs migrated between fast and slow memory, or to other frames.
    pub by_others: u64,
    /// Pages for which the policy had no place.
    pub without_place: u64,
    /// Times that a page was not promoted because the budget of fast memory was used up.
    pub over_budget: u64,
    /// Times that a page did not migrate because no node had room.
    pub full: u64,
    /// Times that a page did not migrate because the interval's bytes were used up.
    pub over_rate: u64,
}

impl TierCounts {
    /// Times that pages waited, and why.
    pub fn waited(&self) -> [(u64, &'static str); 3] {
        [
            (self.over_budget, "the budget of fast memory was used up"),
            (self.full, "the node was full"),
            (self.over_rate, "that second's bytes were moved"),
        ]
    }

    /// Adds a page's outcome.
    pub fn add(&mut self, fast: bool, outcome: &MoveOutcome) {
        match fast {
            true => self.to_fast += outcome.bytes,
            false => self.to_slow += outcome.bytes,
        }
        if let Some(why) = outcome.refused {
            *self.refused.entry(why).or_default() += outcome.left;
        }
    }
}

/// A tiered process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TieredProcess {
    /// Its number.
    pub pid: u32,
    /// Its name in the kernel.
    pub name: String,
    /// The way its accesses were observed.
    pub observer: &'static str,
    /// Bytes of its memory without files on nodes of fast memory, by `numa_maps` at the end or shortly before.
    pub on_fast: u64,
    /// The same on nodes of slow memory.
    pub on_slow: u64,
    /// Bytes of huge pages that are larger than the pages of this run, and did not migrate.
    pub huge_left: u64,
    /// Bytes of explicit huge pages (hugetlbfs), which do not migrate.
    pub hugetlb: u64,
}

/// What tiered processes shared: each of its pages counts once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TieredObject {
    /// Its kind.
    pub kind: SharedKind,
    /// Its name, as `/proc/PID/maps` has it.
    pub name: String,
    /// Processes that had some of it.
    pub processes: usize,
    /// Bytes on nodes of fast memory that some process had used, as `move_pages` said last.
    pub on_fast: u64,
    /// The same on nodes of slow memory.
    pub on_slow: u64,
}

/// The report of a run of `tier`.
#[derive(Clone, Debug, Default)]
pub struct TierReport {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Limit of fast memory for all processes together.
    pub fast_bytes: u64,
    /// Sums.
    pub counts: TierCounts,
    /// The processes.
    pub processes: Vec<TieredProcess>,
    /// What they shared, the largest first.
    pub shared: Vec<TieredObject>,
    /// Hot pages at the end in bytes, and how many bytes of these were in fast memory.
    pub hot: (u64, u64),
    /// Seconds of the run.
    pub seconds: f64,
    /// Seconds of processor time that the run took.
    pub cpu_seconds: f64,
    /// Seconds of processor time that the kernel's monitor took for it.
    pub monitor_seconds: f64,
    /// Notes, a sentence each.
    pub notes: Vec<String>,
    /// The report on frames, for policies that choose frames.
    pub frames: Option<FrameReport>,
    /// How a command ended.
    pub status: Option<std::process::ExitStatus>,
}
