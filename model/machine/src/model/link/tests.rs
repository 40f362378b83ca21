//! The directory against a set of addresses, and the link's bounds on a whole machine.

use super::super::memory::{Backing, MemorySystem, nodes};
use super::*;
use crate::Machine;
use crate::calibrate::{self, Bench, How, Order, Pattern};
use proptest::prelude::*;
use std::collections::HashSet;

fn machine() -> Machine {
    Machine::load("optane-8260").unwrap()
}

/// Where the memory of socket 1 begins.
fn far(m: &Machine, backing: Backing) -> u64 {
    let node = nodes(m)
        .into_iter()
        .find(|n| (n.backing, n.socket) == (backing, 1));
    node.unwrap().base
}

proptest! {
    #[test]
    fn marks_are_a_set(from in 0u64..3, ops in prop::collection::vec((0u64..200, 0u64..3, 0u8..3), 1..300)) {
        let begin = from << BLOCK_SHIFT..(from + 1) << BLOCK_SHIFT;
        let mut marks = Marks::new(vec![begin.clone()]);
        // Lines of the set are those that are not as in the beginning.
        let mut changed = HashSet::new();
        for (line, block, what) in ops {
            let address = (block << BLOCK_SHIFT) + line * 64;
            let all = begin.contains(&address);
            let has = changed.contains(&address) != all;
            match what {
                0 => {
                    prop_assert_eq!(marks.set(address + 5), !has);
                    if !has { if all { changed.remove(&address); } else { changed.insert(address); } }
                }
                1 => {
                    marks.clear(address);
                    if has { if all { changed.insert(address); } else { changed.remove(&address); } }
                }
                _ => prop_assert_eq!(marks.has(address + 63), has),
            }
        }
    }

    /// Directory writes that reads cause: one for a line, until it is written back.
    #[test]
    fn a_line_is_marked_once(ops in prop::collection::vec((0u64..40, 0u8..5), 1..120)) {
        let m = machine();
        let mut memory = MemorySystem::new(&m);
        let base = far(&m, Backing::Dram);
        let mut marked = HashSet::new();
        let (mut reads, mut writes, mut now) = (0, 0, 1_000_000);
        for (line, what) in ops {
            now += 1_000_000;
            let at = base + line * 64;
            match what {
                0 | 1 => {
                    // From far and from near.
                    memory.read(now, at, usize::from(what));
                    reads += 1;
                    writes += u64::from(what == 0 && marked.insert(line));
                }
                2 => {
                    memory.write(now, at, 0, Store::Cleaned);
                    writes += 1;
                }
                3 => {
                    memory.write(now, at, 0, Store::Evicted);
                    marked.remove(&line);
                    writes += 1;
                }
                _ => {
                    memory.write(now, at, 0, Store::Streamed);
                    reads += 1;
                    writes += 1 + u64::from(!marked.remove(&line));
                }
            }
        }
        let dram = memory.counts()[1].dram;
        prop_assert_eq!((dram.reads, dram.writes), (reads, writes));
    }
}

#[test]
fn a_marked_line_is_read_at_home_no_sooner_than_the_other_socket_answers() {
    let m = machine();
    let link = LinkTiming::of(m.link.as_ref());
    let mut memory = MemorySystem::new(&m);
    let at = far(&m, Backing::Dram);
    let alone = memory.read(1_000_000, at, 1).done - 1_000_000;
    let from_far = memory.read(2_000_000, at, 0).done - 2_000_000;
    assert_eq!(from_far, alone + link.whole);
    // Memory takes longer than the question here: the answer is there before.
    assert_eq!(
        memory.read(3_000_000, at, 1).done - 3_000_000,
        alone.max(link.whole)
    );
    let mut slow = m.clone();
    slow.link.as_mut().unwrap().ns = 300.0;
    let mut memory = MemorySystem::new(&slow);
    memory.read(1_000_000, at, 0);
    assert_eq!(memory.read(2_000_000, at, 1).done - 2_000_000, 300_000);
}

/// GB/s of all cores on another socket's memory.
fn all_out(m: &Machine, how: How, memory: calibrate::MeasuredMemory) -> f64 {
    let p = Pattern::new(
        how,
        Order::Sequential,
        m.core.per_socket as usize,
        256,
        64 << 20,
    );
    Bench::new(m).alone(p, memory).gbps()
}

#[test]
fn each_direction_is_bounded_and_both_are_more_than_one() {
    let mut m = machine();
    for gbps in [20.8, 41.6] {
        m.link.as_mut().unwrap().gbps = gbps;
        let most = gbps * 8.0 / 9.0;
        let [reads, writes, both] = [How::Read, How::NtStore, How::Mix(67)]
            .map(|how| all_out(&m, how, calibrate::MeasuredMemory::RemoteDram));
        assert!(
            reads > 0.9 * most && reads < 1.01 * most,
            "{reads} of {most}"
        );
        // A request goes before each line that is written.
        assert!(writes < 1.01 * most, "{writes} of {most}");
        assert!(both > 1.1 * reads && both < 2.0 * most, "{both} of {most}");
    }
}

/// First reads of remote PM write it: they reach no more than writes do. Later ones are not bounded so, and a machine without a
/// directory knows no first ones.
#[test]
fn first_reads_of_remote_pm_are_slow() {
    let mut m = machine();
    let p = Pattern::new(How::Read, Order::Sequential, 16, 256, 64 << 20);
    let pm = m.pm.clone().unwrap();
    let writes = pm.media_write_gbps * f64::from(pm.dimms);
    let first = |m: &Machine| {
        Bench::new(m)
            .cold()
            .alone(p.clone(), calibrate::MeasuredMemory::RemotePm)
            .gbps()
    };
    let later = Bench::new(&m)
        .alone(p.clone(), calibrate::MeasuredMemory::RemotePm)
        .gbps();
    assert!(first(&m) < writes, "{} of {writes}", first(&m));
    assert!(later > 1.5 * writes, "{later}");
    m.link.as_mut().unwrap().directory = Directory::None;
    assert!(
        (first(&m) / later - 1.0).abs() < 0.02,
        "{} and {later}",
        first(&m)
    );
}

/// The same however long it is measured: no queue grows for ever.
#[test]
fn remote_stores_are_steady() {
    let m = machine();
    let gbps = |us: u64| {
        let p = Pattern::new(How::NtStore, Order::Sequential, 8, 256, 64 << 20);
        let bench = Bench::new(&m).window(us * 1000);
        bench.alone(p, calibrate::MeasuredMemory::RemotePm).gbps()
    };
    let (short, long) = (gbps(200), gbps(3000));
    assert!((short / long - 1.0).abs() < 0.15, "{short} and {long}");
}
