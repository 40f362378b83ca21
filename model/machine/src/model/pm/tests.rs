//! A PM DIMM against a slow, obvious one: a list of buffered lines, any of them replaced.

use super::*;
use crate::Machine;
use proptest::prelude::*;

fn pm() -> Pm {
    Machine::load("optane-8260").unwrap().pm.unwrap()
}

/// A fully associative buffer of media lines.
struct RefDimm {
    lines: Vec<(u64, [bool; 4])>,
    capacity: usize,
    random: u64,
    counts: PmCounts,
}

impl RefDimm {
    fn new(p: &Pm) -> RefDimm {
        RefDimm {
            lines: Vec::new(),
            capacity: (p.buffer_bytes.0 / p.line_bytes.0) as usize,
            random: 99,
            counts: PmCounts::default(),
        }
    }

    /// The place of a line in the buffer, and whether it was there before.
    fn find(&mut self, line: u64) -> (usize, bool) {
        if let Some(i) = self.lines.iter().position(|l| l.0 == line) {
            return (i, true);
        }
        if self.lines.len() == self.capacity {
            self.random = self
                .random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let victim = (self.random >> 33) as usize % self.capacity;
            let (_, newer) = self.lines.swap_remove(victim);
            if newer.contains(&true) {
                self.counts.partial_writes += 1;
                self.counts.media_reads += 1;
                self.counts.media_writes += 1;
            }
        }
        self.lines.push((line, [false; 4]));
        (self.lines.len() - 1, false)
    }

    fn read(&mut self, address: u64) {
        self.counts.reads += 1;
        let (_, hit) = self.find(address / 256);
        if hit {
            self.counts.buffer_hits += 1;
        } else {
            self.counts.media_reads += 1;
        }
    }

    fn write(&mut self, address: u64) {
        self.counts.writes += 1;
        let (i, _) = self.find(address / 256);
        let newer = &mut self.lines[i].1;
        newer[(address / 64 % 4) as usize] = true;
        if *newer == [true; 4] {
            *newer = [false; 4];
            self.counts.media_writes += 1;
        }
    }
}

/// Far apart in time, so that nothing waits and the order is the program's.
fn run(ops: &[(u64, bool)]) -> (PmCounts, PmCounts) {
    let p = pm();
    let t = PmTiming::of(&p);
    let (mut fast, mut slow) = (Dimm::new(&t), RefDimm::new(&p));
    let mut now = 0;
    for &(address, write) in ops {
        now += 1_000_000;
        if write {
            let wait = fast.write(now, address, &t);
            fast.admitted(now, now + wait);
            slow.write(address);
        } else {
            fast.read(now, address, &t);
            slow.read(address);
        }
    }
    (fast.counts, slow.counts)
}

proptest! {
    /// While the lines fit into the buffer nothing is replaced, and both are equal.
    #[test]
    fn what_fits_is_combined_and_found_exactly(
        base in 0u64..1000,
        ops in prop::collection::vec((0u64..32, any::<bool>()), 1..400)
    ) {
        // Eight neighbouring lines lie in eight sets.
        let ops: Vec<(u64, bool)> = ops.into_iter().map(|(part, w)| (base * 2048 + part * 64, w)).collect();
        let (fast, slow) = run(&ops);
        prop_assert_eq!(fast, slow);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Beyond that, eight sets of eight ways are nearly as good as one set of 64.
    #[test]
    fn what_does_not_fit_is_replaced_about_as_often(seed in 1u64..1_000_000, lines in 80u64..400) {
        let mut x = seed;
        let ops: Vec<(u64, bool)> = (0..6000)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((x >> 33) % (lines * 4) * 64, x >> 62 == 0)
            })
            .collect();
        let (fast, slow) = run(&ops);
        let near = |a: u64, b: u64| (a as f64 - b as f64).abs() <= 0.12 * b as f64 + 60.0;
        prop_assert!(near(fast.buffer_hits, slow.buffer_hits), "{:?} {:?}", fast, slow);
        prop_assert!(near(fast.media_reads, slow.media_reads), "{:?} {:?}", fast, slow);
        prop_assert!(near(fast.partial_writes, slow.partial_writes), "{:?} {:?}", fast, slow);
    }

    /// However many wait, every write but those that still wait has reached the buffer, once.
    #[test]
    fn no_write_is_lost_in_the_crowd(writers in 1u64..24, blocks in 1u64..60) {
        let t = PmTiming::of(&pm());
        let mut dimm = Dimm::new(&t);
        // Every writer has a block of its own and writes it whole, all at once; the DIMM takes them when it can.
        let mut now = 1;
        let mut last = 0;
        for block in 0..blocks {
            for part in 0..4 {
                for w in 0..writers {
                    let wait = dimm.write(now, (w << 20) + block * 256 + part * 64, &t);
                    last = (now + wait).max(last);
                    dimm.admitted(now, last);
                }
            }
            now += 1000;
        }
        let parts = |d: &Dimm| -> u64 {
            let buffered: u32 = d.buffer.iter().flat_map(|s| s.newer).map(u8::count_ones).sum();
            buffered as u64 + d.crowd.lines.len() as u64
        };
        // A line that left the buffer whole is four writes; one that left in parts is one to three each.
        let gone = dimm.counts.writes - parts(&dimm);
        let whole = dimm.counts.media_writes - dimm.counts.partial_writes;
        let partial = gone - whole * 4;
        prop_assert!(partial >= dimm.counts.partial_writes);
        prop_assert!(partial <= dimm.counts.partial_writes * 3);
    }
}

#[test]
fn four_writers_combine_and_many_do_not() {
    let t = PmTiming::of(&pm());
    let amplification = |writers: u64| {
        let mut dimm = Dimm::new(&t);
        let (mut now, mut last) = (1, 0);
        for block in 0..400 {
            let mut taken = now;
            for w in 0..writers {
                for part in 0..4 {
                    let wait = dimm.write(now, (w << 20) + block * 256 + part * 64, &t);
                    last = (now + wait).max(last);
                    dimm.admitted(now, last);
                    taken = last;
                }
            }
            // Each writer waits for its block before it goes on.
            now = taken + 1;
        }
        dimm.counts.media_writes as f64 * 4.0 / dimm.counts.writes as f64
    };
    let (one, many) = (amplification(1), amplification(24));
    assert!(
        (one - 1.0).abs() < 0.02,
        "one writer: {one} media lines a line"
    );
    assert!(many > 1.2, "24 writers: {many} media lines a line");
}

#[test]
fn a_read_pays_for_the_media_once_a_line() {
    let p = pm();
    let t = PmTiming::of(&p);
    let mut dimm = Dimm::new(&t);
    let first = dimm.read(1_000_000, 0, &t);
    assert_eq!(first, (0, ps(p.buffer_ns) + ps(p.media_read_ns)));
    for part in 1..4 {
        let next = dimm.read(1_000_000 + part * 500_000, part * 64, &t);
        assert_eq!(next, (0, ps(p.buffer_ns)));
    }
    assert_eq!(dimm.counts.media_reads, 1);
}
