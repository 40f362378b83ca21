//! How large pages are, and how many of them may be in fast memory.

use super::memory::{BASE, by_node, shared_by_node};
use super::options::{Room, TierOptions};
use super::room::MachineNodes;
use crate::nodes::Kinds;
use crate::probe::Topology;
use crate::probe::sysfs::bytes_of;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Entries of the page table without --page: the page size is the smallest that this allows. A scan of this many takes about
/// 20 ms (`bench/live-tier cost`), which is the CPU budget of one scan per second.
const PAGES: u64 = 1 << 16;
const HUGE: u64 = 2 << 20;

/// Bytes of all memory of a process by kind, as /proc/PID/smaps_rollup names them; 0 where it has none, or may not be asked.
pub(super) fn rollup<const N: usize>(process: u32, names: [&str; N]) -> [u64; N] {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"));
    let text = text.unwrap_or_default();
    names.map(|name| bytes_of(&text, name))
}

/// Bytes of fast memory that some processes could have: what they use there now, plus what is free there.
pub fn fast_bytes(processes: &BTreeSet<u32>, kinds: &Kinds) -> u64 {
    let (topology, _) = Topology::read(Path::new("/"));
    let nodes = MachineNodes::new(kinds.clone(), &topology);
    used_and_free(processes, kinds, &nodes)
}

fn used_and_free(processes: &BTreeSet<u32>, kinds: &Kinds, nodes: &MachineNodes) -> u64 {
    let on_fast = |there: io::Result<BTreeMap<u32, u64>>| -> u64 {
        let there = there.unwrap_or_default().into_iter();
        let fast = there.filter(|(node, _)| kinds.fast.contains(node));
        fast.map(|(_, bytes)| bytes).sum()
    };
    let own: u64 = processes.iter().map(|p| on_fast(by_node(*p))).sum();
    // What one of them shares the others have, too.
    let shared = processes.iter().map(|p| on_fast(shared_by_node(*p))).max();
    own + shared.unwrap_or(0) + nodes.room_of(true)
}

/// Sizes, from what there is.
pub fn room(
    roots: &BTreeSet<u32>,
    options: &TierOptions,
    topology: &Topology,
    nodes: &MachineNodes,
) -> Room {
    let bytes_of = |all: &[u32]| -> u64 {
        let some = topology.nodes.iter().filter(|n| all.contains(&n.id));
        some.map(|n| n.bytes).sum()
    };
    let total = bytes_of(&options.kinds.fast) + bytes_of(&options.kinds.slow);
    let (mut resident, mut huge) = (0, 0);
    for process in roots {
        // A page that several of them have counts in parts.
        let names = ["Pss", "AnonHugePages", "ShmemPmdMapped"];
        let [all, large, large_shared] = rollup(*process, names);
        (resident, huge) = (resident + all, huge + large + large_shared);
    }
    let page_bytes = options.page_bytes.unwrap_or_else(|| {
        // Of a command nothing is known but what it may come to.
        let (all, has_huge) = match roots.is_empty() {
            true => {
                let mode = "/sys/kernel/mm/transparent_hugepage/enabled";
                let mode = std::fs::read_to_string(mode).unwrap_or_default();
                (total, mode.contains("[always]"))
            }
            false => (resident, huge * 10 >= resident.max(1)),
        };
        match has_huge {
            true => HUGE,
            false => (all / PAGES).next_power_of_two().clamp(BASE, HUGE),
        }
    });
    let could = || used_and_free(roots, &options.kinds, nodes);
    let fast = options.fast_bytes.unwrap_or_else(could);
    let fast = fast.min(bytes_of(&options.kinds.fast));
    Room {
        page_bytes,
        fast_pages: (fast / page_bytes).max(1),
        slow_pages: (bytes_of(&options.kinds.slow) / page_bytes).max(1),
    }
}
