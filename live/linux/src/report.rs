//! The report of a live run.

use crate::place::conflicts::Conflicts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::process::ExitStatus;

/// The result of a program that ran with our library inside.
#[derive(Debug)]
pub struct Ran<P> {
    /// How the command ended.
    pub status: ExitStatus,
    /// Wall-clock time of the command, seconds.
    pub seconds: f64,
    /// Its processes' reports, in the order in which they ended.
    pub processes: Vec<P>,
    /// Failures, one line each.
    pub notes: Vec<String>,
}

/// The result of [`crate::run`].
#[derive(Debug)]
pub struct LiveReport {
    /// The run. Processes are those that used large memory.
    pub ran: Ran<ProcessReport>,
    /// Conflicts in the kernel's page maps, read from outside, over all processes of the run together, when most pages
    /// were there: all large private memory, whether placed or not. `None` when no process had any, or none
    /// lived long enough to be sampled.
    pub seen: Option<Conflicts>,
    /// Pages of `seen` that the kernel itself chose: memory that was not placed, or came later, and the working
    /// memory of the shim.
    pub seen_unplaced: u64,
}

/// One process's report at its end. Counts are over its life unless noted otherwise.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct ProcessReport {
    /// Process number.
    pub pid: u32,
    /// Name of the program, as the kernel knows it.
    pub program: String,
    /// Why nothing at all could be placed, when that is so.
    pub idle: Option<String>,
    /// Mappings, blocks and heap extensions placed.
    pub placed_ranges: u64,
    /// 4 KiB pages placed.
    pub placed_pages: u64,
    /// Of these, in huge pages.
    pub huge_pages: u64,
    /// Of these, pages whose first frame was exchanged for a better one.
    pub moved_pages: u64,
    /// Time spent placing, nanoseconds; it contains the kernel's zeroing of the pages.
    pub placing_ns: u64,
    /// Most memory held for candidates at a time, bytes.
    pub extra_bytes: u64,
    /// Ranges left to the kernel because the memory limit did not allow them.
    pub left_no_memory: u64,
    /// Ranges left to the kernel because frame numbers were hidden.
    pub left_hidden: u64,
    /// Ranges left to the kernel for another reason.
    pub left_failed: u64,
    /// Pages that the program released with `madvise`; the kernel chooses their next frames.
    pub dropped_pages: u64,
    /// Placed pages at the end.
    pub pages_at_end: u64,
    /// Of these, pages that had another frame by then: swapped, or moved by the kernel.
    pub other_frame_at_end: u64,
    /// The last failure in words, empty without one.
    pub last_failure: String,
    /// Conflicts with the frames that the kernel gave first, when most pages were placed.
    ///
    /// Frames that a placement rejects and frees are the first that the kernel offers again, so a program
    /// that asks for much memory in small pieces looks worse here than it would be by itself; a run that
    /// only counts shows that.
    pub before: Conflicts,
    /// Conflicts as placed, read back from the page map, at the same moment.
    pub after: Conflicts,
}

/// Reads the lines of a report file; a line that is cut short is left out and counted.
pub(crate) fn read_lines<T: DeserializeOwned>(text: &str) -> (Vec<T>, usize) {
    let mut bad = 0;
    let mut reports = Vec::new();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(report) => reports.push(report),
            Err(_) => bad += 1,
        }
    }
    (reports, bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_does_not_hide_the_others() {
        let text = "{\"pid\":7,\"program\":\"a\",\"placed_pages\":3,\"after\":{\"pages\":3,\"bins_used\":3}}\n{\"pid\":8,";
        let (reports, bad) = read_lines::<ProcessReport>(text);
        assert_eq!(bad, 1);
        assert_eq!(
            (
                reports[0].pid,
                reports[0].placed_pages,
                reports[0].after.bins_used
            ),
            (7, 3, 3)
        );
    }
}
