//! `slow`: all pages in slow memory, an end that everything else lies within.

use super::Only;
use super::entry::{Entry, Live, Needs};
use crate::frames::Frames;

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "the other end of the scale",
    needs: Needs::Flat,
    live: Live::Nodes,
    ..Entry::new(
        "slow",
        "slow memory only, to show the benefit of DRAM",
        |_, topology| {
            let policy = Only::new(topology, false);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};
