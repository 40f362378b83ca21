//! The nodes of this machine, and how much room each has.

use super::nodes::Nodes;
use crate::nodes::Kinds;
use crate::probe::Topology;
use crate::probe::sysfs::{bytes_of, meminfo};
use std::collections::BTreeMap;
use std::fs;

/// Nodes by kind, with the memory that each can give.
pub struct MachineNodes {
    kinds: Kinds,
    /// Nodes of either kind from each node, the nearest first.
    order: BTreeMap<(bool, u32), Vec<u32>>,
    /// Memory to leave free on each node: with less, the kernel begins to reclaim by itself.
    reserve: BTreeMap<u32, u64>,
    room: BTreeMap<u32, u64>,
}

impl MachineNodes {
    pub fn new(kinds: Kinds, topology: &Topology) -> MachineNodes {
        let mut order = BTreeMap::new();
        for from in &topology.nodes {
            let distance = |node: &u32| topology.distance(from, *node);
            for (fast, nodes) in [(true, &kinds.fast), (false, &kinds.slow)] {
                let mut nodes = nodes.clone();
                nodes.sort_by_key(|node| (distance(node), *node));
                order.insert((fast, from.id), nodes);
            }
        }
        let zones = fs::read_to_string("/proc/zoneinfo").unwrap_or_default();
        let mut all = MachineNodes {
            kinds,
            order,
            reserve: reserves(&zones),
            room: BTreeMap::new(),
        };
        all.refresh();
        all
    }

    /// Bytes that all nodes of a kind can give.
    pub fn room_of(&self, fast: bool) -> u64 {
        let nodes = match fast {
            true => &self.kinds.fast,
            false => &self.kinds.slow,
        };
        let room = |node: &u32| self.room.get(node).copied().unwrap_or(0);
        nodes.iter().map(room).sum()
    }
}

impl Nodes for MachineNodes {
    fn is_of(&self, fast: bool, node: u32) -> bool {
        // A node of neither kind is not fast, and its pages are misplaced.
        match fast {
            true => self.kinds.fast.contains(&node),
            false => self.kinds.slow.contains(&node) || !self.kinds.fast.contains(&node),
        }
    }

    fn refresh(&mut self) {
        for &node in self.kinds.fast.iter().chain(&self.kinds.slow) {
            self.room.insert(node, room_of(node, &self.reserve));
        }
    }

    fn choose(&self, fast: bool, from: u32, bytes: u64) -> Option<u32> {
        let nodes = self.order.get(&(fast, from))?;
        let has = |node: &&u32| self.room.get(node).is_some_and(|room| *room >= bytes);
        nodes.iter().find(has).copied()
    }

    fn went(&mut self, from: u32, to: u32, bytes: u64) {
        *self.room.entry(from).or_default() += bytes;
        let room = self.room.entry(to).or_default();
        *room = room.saturating_sub(bytes);
    }
}

/// Free memory of a node, without what is the kernel's.
pub(super) fn room_of(node: u32, kept: &BTreeMap<u32, u64>) -> u64 {
    let free = bytes_of(&meminfo(node), "MemFree");
    free.saturating_sub(kept.get(&node).copied().unwrap_or(0))
}

/// Free memory of each node with which the kernel stops to make room (the zones' `high` of `/proc/zoneinfo`).
pub(super) fn reserves(zoneinfo: &str) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    let mut node = 0;
    for line in zoneinfo.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            let number = rest.split(',').next().unwrap_or_default();
            node = number.parse().unwrap_or(0);
        }
        let mut words = line.split_whitespace();
        if let (Some("high"), Some(pages), None) = (words.next(), words.next(), words.next()) {
            *all.entry(node).or_default() += pages.parse::<u64>().unwrap_or(0) * 4096;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_keeps_free_is_not_taken() {
        let zones = "\
Node 0, zone      DMA
  pages free     3840
        boost    0
        min      10
        low      12
        high     15
Node 0, zone   Normal
        high     100
              high:  186
Node 1, zone   Normal
        high     7
";
        let all = reserves(zones);
        assert_eq!(all[&0], 115 * 4096);
        assert_eq!(all[&1], 7 * 4096);
    }

    #[test]
    fn the_nearest_node_with_room_is_chosen() {
        use crate::probe::cpus::node;
        let topology = Topology {
            nodes: vec![
                node(0, &[], &[10, 20, 30]),
                node(2, &[], &[20, 10, 15]),
                node(5, &[], &[30, 15, 10]),
            ],
            ..Topology::default()
        };
        let kinds = Kinds {
            fast: vec![0],
            slow: vec![2, 5],
        };
        let mut nodes = MachineNodes::new(kinds, &topology);
        nodes.room = [(0, 100), (2, 50), (5, 100)].into();
        assert_eq!(nodes.choose(false, 0, 40), Some(2));
        nodes.went(0, 2, 40);
        assert_eq!(nodes.choose(false, 0, 40), Some(5));
        assert_eq!(
            nodes.choose(true, 5, 140),
            Some(0),
            "what left has made room"
        );
        assert_eq!(nodes.choose(true, 5, 141), None);
    }
}
