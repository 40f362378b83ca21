//! `Frames` beside the obvious way of keeping them: a flag per frame, bins as plain vectors, linear scans.

use proptest::prelude::*;
use varve_pages::{Frames, NodeFrames, Topology};

struct SlowNode {
    first: u32,
    frames: u32,
    bins: u32,
    binned: bool,
    used: Vec<bool>,
    /// Bins below were taken from before.
    touched: u32,
    /// Bins in the order in which they wait, with their heat.
    line: Vec<(u32, u32)>,
}

impl SlowNode {
    fn frames_of(&self, bin: u32) -> Vec<u32> {
        (0..self.frames)
            .filter(|frame| frame % self.bins == bin)
            .collect()
    }

    fn free_in(&self, bin: u32) -> Option<u32> {
        self.frames_of(bin)
            .into_iter()
            .find(|&frame| !self.used[frame as usize])
    }

    fn choose(&self) -> Option<u32> {
        let open = self
            .line
            .iter()
            .filter(|(bin, _)| self.free_in(*bin).is_some());
        self.free_in(open.min_by_key(|(_, heat)| *heat)?.0)
    }

    fn requeue(&mut self, bin: u32, change: impl Fn(u32) -> u32) {
        let at = self.line.iter().position(|(b, _)| *b == bin).unwrap();
        let (bin, heat) = self.line.remove(at);
        self.line.push((bin, change(heat)));
    }

    fn take(&mut self) -> Option<u32> {
        let frame = self.choose()?;
        self.used[frame as usize] = true;
        self.touched = self.touched.max(frame % self.bins + 1);
        self.requeue(frame % self.bins, |heat| heat);
        Some(self.first + frame)
    }

    fn give(&mut self, frame: u32) {
        let bin = frame % self.bins;
        let was_full = self.free_in(bin).is_none();
        self.used[frame as usize] = false;
        if was_full {
            self.requeue(bin, |heat| heat);
        }
    }

    fn cool(&mut self) {
        self.line.sort_by_key(|&(_, heat)| heat);
        self.line.iter_mut().for_each(|(_, heat)| *heat /= 2);
    }
}

fn topology() -> impl Strategy<Value = Topology> {
    let node = (1u32..40, prop::option::of(1u32..12), 0u32..2);
    prop::collection::vec(node, 1..4).prop_map(|nodes| Topology {
        page_bytes: 4096,
        nodes: nodes
            .into_iter()
            .map(|(frames, bins, socket)| NodeFrames {
                frames,
                fast: false,
                socket,
                bins,
                ways: 1,
                dimms: 0,
            })
            .collect(),
    })
}

proptest! {
    #[test]
    fn frames_agree_with_a_linear_scan(
        topology in topology(),
        binned in any::<bool>(),
        withheld in any::<bool>(),
        levels in 1u32..40,
        steps in prop::collection::vec((0u8..10, any::<prop::sample::Index>(), 0i32..9), 1..200),
    ) {
        let mut fast =
            if binned { Frames::in_bins(&topology, levels) } else { Frames::in_order(&topology) };
        if withheld {
            fast.withhold();
        }
        let mut first = 0;
        let mut slow: Vec<SlowNode> = Vec::new();
        for node in &topology.nodes {
            let bins = node.bins.filter(|_| binned).map_or(1, |bins| bins.min(node.frames));
            slow.push(SlowNode {
                first,
                frames: node.frames,
                bins,
                binned: binned && node.bins.is_some(),
                used: vec![withheld; node.frames as usize],
                touched: if withheld { bins } else { 0 },
                line: (0..bins).map(|bin| (bin, 0)).collect(),
            });
            first += node.frames;
        }
        for (what, index, by) in steps {
            let at = index.index(slow.len());
            let frame = index.index(first as usize) as u32;
            let home = slow.iter().position(|n| (n.first..n.first + n.frames).contains(&frame)).unwrap();
            let local = frame - slow[home].first;
            let used = slow[home].used[local as usize];
            match what {
                0 => {
                    fast.cool();
                    slow.iter_mut().for_each(SlowNode::cool);
                }
                1..5 => prop_assert_eq!(fast.take_from(at), slow[at].take()),
                5 => {
                    let bin = local % slow[home].bins;
                    let expected = !used && (!slow[home].binned || bin < slow[home].touched);
                    prop_assert_eq!(fast.take(frame), expected);
                    if expected {
                        slow[home].used[local as usize] = true;
                        slow[home].requeue(bin, |heat| heat);
                    }
                }
                6..8 => {
                    prop_assert_eq!(fast.give(frame), used);
                    if used {
                        slow[home].give(local);
                    }
                }
                _ if used && slow[home].binned => {
                    let by = by - 3;
                    fast.warm(frame, by);
                    let bin = local % slow[home].bins;
                    slow[home].requeue(bin, |h| h.saturating_add_signed(by).min(levels - 1));
                }
                _ => {}
            }
            for (node, plain) in slow.iter().enumerate() {
                let free = plain.used.iter().filter(|used| !**used).count();
                prop_assert_eq!(fast.free(node) as usize, free);
                prop_assert_eq!(fast.peek(node), plain.choose().map(|frame| plain.first + frame));
                let heats: u32 = fast.heat_histogram(node).iter().sum();
                prop_assert_eq!(heats, if plain.binned { plain.bins } else { 0 });
                for local in 0..plain.frames {
                    let frame = plain.first + local;
                    prop_assert_eq!(fast.is_used(frame), plain.used[local as usize]);
                    prop_assert_eq!(fast.node_of(frame), Some(node));
                    if plain.binned {
                        let heat = plain.line.iter().find(|b| b.0 == local % plain.bins).unwrap().1;
                        prop_assert_eq!(fast.bin_heat(frame), heat);
                        let mates: Vec<u32> = fast.bin_mates(frame).map(|f| f - plain.first).collect();
                        prop_assert_eq!(mates, plain.frames_of(local % plain.bins));
                    }
                }
            }
            prop_assert_eq!(fast.used(), slow.iter().flat_map(|n| &n.used).filter(|u| **u).count() as u64);
        }
    }
}

#[test]
fn frames_that_do_not_exist_are_refused() {
    let node = NodeFrames {
        frames: 10,
        fast: false,
        socket: 0,
        bins: Some(4),
        ways: 1,
        dimms: 0,
    };
    let mut frames = Frames::in_bins(
        &Topology {
            page_bytes: 4096,
            nodes: vec![node],
        },
        4,
    );
    assert!(!frames.give(10) && !frames.take(10) && !frames.is_used(10));
    assert!(!frames.give(3), "a free frame cannot be given back");
    assert_eq!((frames.node_of(10), frames.bin_heat(10)), (None, 0));
    frames.warm(10, 1);
}
