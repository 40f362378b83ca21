//! `channels`: pages in turn over all DIMMs, as channel interleaving does, by pages. It is `trays` without a cold page.

use super::TrayPolicy;
use super::entry::{Entry, Live, Needs};
use crate::frames::Frames;
use crate::trays::{Colour, DimmMap, Trays};

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Olson et al., TACO 2018, section 8.1: the baseline",
    needs: Needs::Trays,
    live: Live::Frames,
    ..Entry::new(
        "channels",
        "pages in turn over all DIMMs, as channel interleaving does, by pages",
        |_, topology| {
            let trays = Trays::new(&DimmMap::of(topology)?, 0, None)?;
            let policy = TrayPolicy::new(trays, Box::new(|f| (Colour::Hot, f.socket)), None, 0);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    )
};
