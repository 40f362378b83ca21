//! Traffic behind the last-level cache against a slow, obvious reference of memory mode's flow.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// Lines of a DRAM cache small enough to be full at once.
const CACHE_LINES: u64 = 256;

fn machine() -> Machine {
    let mut m = Machine::load("optane-6230-memory-mode").unwrap();
    if let Some(c) = &mut m.dram_cache {
        c.bytes.0 = CACHE_LINES * 64;
    }
    m
}

/// Johnny Cache's Figure 1, a map from slot to its contents.
#[derive(Default)]
struct RefCache {
    slots: HashMap<u64, (u64, bool)>,
    dram_reads: u64,
    dram_writes: u64,
    pm_reads: u64,
    pm_writes: u64,
    conflicts: u64,
    hits: u64,
}

impl RefCache {
    fn access(&mut self, line: u64, write: bool) {
        let slot = line % CACHE_LINES;
        match self.slots.get_mut(&slot) {
            Some((there, dirty)) if *there == line => {
                self.hits += 1;
                *dirty |= write;
                // The tag lies in the DRAM line: a read brings both. A write of a line that is there needs no lookup.
                self.dram_reads += !write as u64;
                self.dram_writes += write as u64;
            }
            other => {
                self.dram_reads += 1;
                if let Some((_, dirty)) = other {
                    self.conflicts += 1;
                    self.pm_writes += *dirty as u64;
                }
                // A written line is whole and needs no fetch; a read one is fetched and put into DRAM.
                self.pm_reads += !write as u64;
                self.dram_writes += 1;
                self.slots.insert(slot, (line, write));
            }
        }
    }
}

proptest! {
    #[test]
    fn memory_mode_does_what_its_figure_says(ops in prop::collection::vec((0u64..1024, any::<bool>()), 1..600)) {
        let m = machine();
        let mut memory = MemorySystem::new(&m);
        let mut reference = RefCache::default();
        let mut now = 1_000_000;
        for (line, write) in ops {
            now += 1_000_000;
            if write { memory.write(now, line * 64, 0, Store::Evicted); } else { memory.read(now, line * 64, 0); }
            reference.access(line, write);
        }
        let c = &memory.counts()[0];
        prop_assert_eq!(c.dram.reads, reference.dram_reads);
        prop_assert_eq!(c.dram.writes, reference.dram_writes);
        prop_assert_eq!(c.pm.reads, reference.pm_reads);
        prop_assert_eq!(c.pm.writes, reference.pm_writes);
        prop_assert_eq!(c.conflicts, reference.conflicts);
        prop_assert_eq!(c.dirty_evictions, reference.pm_writes);
        prop_assert_eq!(c.cache_hits + c.cache_write_hits, reference.hits);
    }
}

#[test]
fn a_miss_takes_as_long_as_both_memories() {
    let mut m = machine();
    m.dram.powerdown_after_ns = 1e9;
    let mut memory = MemorySystem::new(&m);
    let now = 1_000_000;
    let miss = memory.read(now, 0, 0).done - now;
    let later = now + 10_000_000;
    let hit = memory.read(later, 0, 0).done - later;
    let pm = m.pm.as_ref().unwrap();
    let slow = ps(pm.buffer_ns + pm.media_read_ns);
    assert!(
        miss > hit + slow,
        "hit {hit} ps, miss {miss} ps, PM alone {slow} ps"
    );
}

#[test]
fn slow_writes_hold_up_fast_ones_in_the_shared_queue() {
    let mut m = Machine::load("optane-6230n").unwrap();
    m.dram.channels = 1;
    m.pm.as_mut().unwrap().dimms = 1;
    let pm_base = nodes(&m)
        .iter()
        .find(|n| n.backing == Backing::Pm)
        .unwrap()
        .base;
    // 64 DRAM writes one after the other, alone and behind 400 scattered PM writes.
    let last = |pm_writes: u64| {
        let mut memory = MemorySystem::new(&m);
        let now = 1_000_000;
        for i in 0..pm_writes {
            memory.write(now, pm_base + i * 4096, 0, Store::Evicted);
        }
        (0..64).fold(now, |at, i| memory.write(at, i * 64, 0, Store::Evicted)) - now
    };
    let (alone, beside) = (last(0), last(400));
    assert!(
        beside > 2 * alone,
        "alone {alone} ps, beside slow writes {beside} ps"
    );
}
