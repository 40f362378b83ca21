//! The shim's list of mappings, against a plain table of pages.

#[allow(dead_code, reason = "what is not looked at here, the shim uses")]
#[path = "../objects/src/pieces.rs"]
mod pieces;

use pieces::{Piece, Pieces};
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    /// Mappings come, and are freed whole, in parts and several at a time: every page is known or told of, once.
    #[test]
    fn every_page_is_known_until_it_is_taken(
        steps in prop::collection::vec((any::<bool>(), 1usize..60, 1usize..20, 0usize..3), 1..60)
    ) {
        let mut pieces: Pieces<1000> = Pieces::new();
        let mut pages: BTreeMap<usize, (usize, u64)> = BTreeMap::new();
        for (add, start, length, group) in steps {
            let (end, tier) = (start + length, group as u64 % 2);
            let mut told = BTreeMap::new();
            pieces.take(start, end, |p| {
                for page in p.start..p.end {
                    assert!(told.insert(page, (p.group, p.tier)).is_none());
                }
            });
            let expected: BTreeMap<_, _> = pages.range(start..end).map(|(p, g)| (*p, *g)).collect();
            prop_assert_eq!(told, expected);
            pages.retain(|page, _| !(start..end).contains(page));
            if add {
                let added = pieces.add(Piece { start, end, group, tier });
                prop_assert!(added);
                pages.extend((start..end).map(|page| (page, (group, tier))));
            }
            let known = pieces.all().iter().flat_map(|p| (p.start..p.end).map(|page| (page, (p.group, p.tier))));
            prop_assert_eq!(known.clone().count(), pages.len());
            prop_assert_eq!(known.collect::<BTreeMap<_, _>>(), pages.clone());
        }
    }
}

#[test]
fn what_finds_no_room_is_forgotten_and_nothing_else() {
    let piece = |start, end| Piece {
        start,
        end,
        group: 0,
        tier: 0,
    };
    let mut pieces: Pieces<2> = Pieces::new();
    assert!(pieces.add(piece(0, 10)) && pieces.add(piece(20, 30)));
    assert!(!pieces.add(piece(40, 50)));
    // three pieces would be left
    pieces.take(4, 6, |_| {});
    pieces.sort();
    assert_eq!(pieces.all(), [piece(0, 4), piece(20, 30)]);
    assert_eq!(piece(4, 6).moved(4, 104), piece(104, 106));
}
