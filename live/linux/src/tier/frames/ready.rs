//! Preconditions of exchanging frames: more than one node, frame numbers, a reserve.

use super::super::sizes::rollup;
use super::exchange::LiveExchanger;
use super::spans::{DimmFrames, DimmRange, Spans};
use crate::place::pagemap::frames_readable;
use crate::tier::options::TierOptions;
use crate::tier::room::{reserves, room_of};
use std::collections::BTreeSet;

/// The options for frames.
#[derive(Clone, Debug, Default)]
pub struct FrameOptions {
    /// Bytes of the reserve of each node.
    pub reserve: u64,
    /// Whether that was asked for, rather than a default.
    pub reserve_given: bool,
    /// Names of mappings whose pages are called hot.
    pub hot: Vec<String>,
    /// DIMMs, where frames are chosen by them.
    pub dimms: Vec<DimmRange>,
}

/// All is there.
pub struct Ready {
    pub spans: Spans,
    pub dimms: Vec<DimmFrames>,
    pub exchanger: LiveExchanger,
    pub notes: Vec<String>,
}

/// Bytes of a page: 2 MiB where half of the memory or more is in such, unless something else is asked for.
pub fn frame_bytes(roots: &BTreeSet<u32>, options: &TierOptions) -> u64 {
    options.page_bytes.unwrap_or_else(|| {
        let (mut resident, mut huge) = (0, 0);
        for process in roots {
            let [all, large] = rollup(*process, ["Rss", "AnonHugePages"]);
            (resident, huge) = (resident + all, huge + large);
        }
        match huge * 2 >= resident.max(1) {
            true => 2 << 20,
            false => 4096,
        }
    })
}

/// Probes the machine, and allocates the reserve.
///
/// # Errors
/// One line that says what is missing, and what helps.
pub fn ready(options: &FrameOptions, page_bytes: u64) -> Result<Ready, String> {
    frames_readable().map_err(|e| e.to_string())?;
    let zones = std::fs::read_to_string("/proc/zoneinfo").unwrap_or_default();
    let mut spans = Spans::parse(&zones, page_bytes)?;
    if spans.nodes().len() < 2 {
        return Err(
            "frames cannot be exchanged here: a page comes into another frame by way of another node, and this machine has one; numa=fake=2 on the kernel's command line makes two of it"
                .into(),
        );
    }
    let mut dimms = Vec::new();
    if !options.dimms.is_empty() {
        (spans, dimms) = spans.by_dimm(&options.dimms)?;
    }
    let mut notes = Vec::new();
    let kept = reserves(&zones);
    let mut reserve = Vec::new();
    for span in spans.nodes() {
        let free = room_of(span.node, &kept);
        let least = options.reserve.min(free / 4) / page_bytes * page_bytes;
        if options.reserve_given && least < options.reserve / page_bytes * page_bytes {
            notes.push(format!(
                "node {} has {} MiB for the reserve: at most a quarter of the free memory there is taken",
                span.node,
                least >> 20
            ));
        }
        reserve.push((span.node, least));
    }
    let exchanger = LiveExchanger::new(&spans, page_bytes, &reserve)?;
    if !exchanger.moves_shared() {
        notes.push(
            "memory that several processes share stays where it is: moving it needs the right to (root, or CAP_SYS_NICE)"
                .into(),
        );
    }
    Ok(Ready {
        spans,
        dimms,
        exchanger,
        notes,
    })
}
