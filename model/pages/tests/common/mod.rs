//! Helpers that the tests of policies share.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::HashMap;

use varve_access::{Fault, Move, Pager, Sample, Source};
use varve_pages::{NodeFrames, Placement, Topology};

/// A socket in memory mode: `frames` pages of slow memory behind a cache of `bins` pages.
pub fn cached(frames: u32, bins: u32) -> Topology {
    let node = NodeFrames {
        frames,
        fast: false,
        socket: 0,
        bins: Some(bins),
        ways: 1,
        dimms: 0,
    };
    Topology {
        page_bytes: 2 << 20,
        nodes: vec![node],
    }
}

/// A socket with `fast` pages of DRAM and `slow` pages of PM.
pub fn tiered(fast: u32, slow: u32) -> Topology {
    let node = |frames, fast| NodeFrames {
        frames,
        fast,
        socket: 0,
        bins: None,
        ways: 1,
        dimms: 0,
    };
    Topology {
        page_bytes: 2 << 20,
        nodes: vec![node(fast, true), node(slow, false)],
    }
}

/// The first touch of `vpn` by a thread on socket 0.
pub fn touch(vpn: u64) -> Fault {
    Fault {
        vpn,
        thread: 0,
        socket: 0,
        write: true,
        now: 0,
    }
}

/// Touches `pages` pages in order; their frames.
pub fn fill(placement: &mut Placement, pages: u64) -> Vec<u32> {
    (0..pages)
        .map(|vpn| placement.fault(&touch(vpn)).unwrap())
        .collect()
}

/// Pages in each bin that has any.
pub fn per_bin(frames: &[u32], bins: u32) -> HashMap<u32, u32> {
    let mut count = HashMap::new();
    frames
        .iter()
        .for_each(|frame| *count.entry(frame % bins).or_default() += 1);
    count
}

/// A specification of `entry` with something for each parameter that has no default.
pub fn spec(entry: &varve_pages::policies::Entry) -> String {
    let needed = entry.params.iter().filter(|param| param.default.is_empty());
    let given: Vec<String> = needed
        .map(|param| format!("{}=0+16MiB", param.key))
        .collect();
    format!("{}:{}", entry.name, given.join(","))
}

/// Two sockets in memory mode with two ways, the smaller caches deliberately uneven.
pub fn two_sockets_cached() -> Topology {
    let node = |socket, frames| NodeFrames {
        frames,
        fast: false,
        socket,
        bins: Some(7),
        ways: 2,
        dimms: 0,
    };
    Topology {
        page_bytes: 2 << 20,
        nodes: vec![node(0, 45), node(1, 31)],
    }
}

/// Sockets with four DIMMs of `frames` pages each, and no interleaving.
pub fn with_dimms(sockets: u32, frames: u32) -> Topology {
    let node = |socket| NodeFrames {
        frames: 4 * frames,
        fast: true,
        socket,
        bins: None,
        ways: 1,
        dimms: 4,
    };
    Topology {
        page_bytes: 2 << 20,
        nodes: (0..sockets).map(node).collect(),
    }
}

/// Two sockets, each with DRAM and slow memory.
pub fn two_sockets_tiered() -> Topology {
    let node = |socket, frames, fast| NodeFrames {
        frames,
        fast,
        socket,
        bins: None,
        ways: 1,
        dimms: 0,
    };
    let nodes = vec![
        node(0, 9, true),
        node(1, 7, true),
        node(0, 30, false),
        node(1, 20, false),
    ];
    Topology {
        page_bytes: 2 << 20,
        nodes,
    }
}

/// Samples an access to `vpn` in `frame` `times` times.
pub fn sample(placement: &mut Placement, vpn: u64, frame: u32, source: Source, times: usize) {
    for _ in 0..times {
        placement.sample(&Sample {
            vpn,
            frame,
            source,
            thread: 0,
            now: 0,
        });
    }
}

/// Wakes the daemon; the moves that it wants.
pub fn tick(placement: &mut Placement) -> Vec<Move> {
    let mut moves = Vec::new();
    placement.tick(0, &mut moves);
    moves
}

/// Wakes the daemon and carries out its moves; returns their number.
pub fn carry_out(placement: &mut Placement) -> usize {
    let moves = tick(placement);
    moves.iter().for_each(|done| placement.moved(done));
    moves.len()
}
