//! `fast`: all pages in fast memory, an end that everything else lies within.

use super::Only;
use super::entry::{Entry, Live, Needs};
use crate::frames::Frames;

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Johnny Cache, section 5.3: Linux-DRAM",
    needs: Needs::Flat,
    live: Live::Nodes,
    ..Entry::new(
        "fast",
        "DRAM only; a footprint larger than DRAM is out of memory",
        |_, topology| {
            let policy = Only::new(topology, true);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};
