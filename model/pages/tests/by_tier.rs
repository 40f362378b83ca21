//! Pages in the memory that their addresses want.

mod common;

use common::{touch, two_sockets_tiered};
use varve_access::Pager;
use varve_pages::policies::ByTier;
use varve_pages::{Frames, Placement};

/// The nodes of `pages` pages, placed by the numbers that `tiers` wants on two sockets with two memories.
fn by_tier(pages: u64, tiers: impl FnOnce(ByTier) -> ByTier) -> Vec<Option<usize>> {
    let topology = two_sockets_tiered();
    let nodes = [false, true].map(|fast| topology.nodes_of(fast));
    // Every third page is cold.
    let policy = tiers(ByTier::new(nodes, |vpn| vpn % 3 != 0));
    let frames = Frames::in_order(&topology);
    let mut placement = Placement::with("by-tier", topology, frames, Box::new(policy));
    let faults = (0..pages).map(|vpn| placement.fault(&touch(vpn)).ok());
    let placed: Vec<Option<u32>> = faults.collect();
    let node = |frame: Option<u32>| placement.frames().node_of(frame?);
    placed.into_iter().map(node).collect()
}

#[test]
fn a_page_is_in_the_memory_that_it_wants_or_nowhere() {
    // Nodes 0 and 1 are fast and have 9 and 7 frames, nodes 2 and 3 are slow.
    let placed = by_tier(30, |policy| policy);
    for (vpn, node) in placed.into_iter().enumerate() {
        let hot_before = 2 * vpn / 3;
        let wanted = match (vpn % 3, hot_before) {
            (0, _) => Some(2),
            (_, 0..9) => Some(0),
            (_, 9..16) => Some(1),
            _ => None,
        };
        assert_eq!(node, wanted, "{vpn}");
    }
}

#[test]
fn a_page_may_go_to_the_other_memory_when_its_own_is_full() {
    // One page per frame.
    let placed = by_tier(66, |policy| policy.or_other(true));
    for (vpn, node) in placed.into_iter().enumerate() {
        let fast = vpn % 3 != 0 && 2 * vpn / 3 < 16;
        assert_eq!(node.map(|node| node < 2), Some(fast), "{vpn}");
    }
}

#[test]
fn pages_take_turns_on_the_nodes_of_fast_memory_alone() {
    for (vpn, node) in by_tier(15, |policy| policy.in_turn(true))
        .into_iter()
        .enumerate()
    {
        let due = if vpn % 3 == 0 { 2 } else { vpn % 2 };
        assert_eq!(node, Some(due), "{vpn}");
    }
}
