//! The work of a measuring thread: the patterns of published studies, in plain loops over memory of its own.

use crate::arch::{fence, store_and_write_back, stream};
use crate::probe::memory::{STEP, next_random};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The access to each line of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Load all of it.
    Read,
    /// Load its first word, which says where the next line is. Blocks, order and pace do not count.
    Chase,
    /// Store all of it past the caches. No fence: as in the published runs, stores wait for buffers alone.
    NtStore,
    /// Store all of it and write it back (CLWB). No fence.
    StoreClwb,
    /// Load blocks of the first half in sequence, or store blocks of the second half past the caches: this many loads
    /// in a hundred.
    Mix(u8),
}

/// Which block is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrder {
    /// The one behind.
    Sequential,
    /// Any one.
    Random,
}

/// One thread's work.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Its access.
    pub how: How,
    /// In which order.
    pub order: BlockOrder,
    /// Words of a block: whole lines.
    pub block: usize,
    /// Turns of an idle loop after each block.
    pub pace: u32,
}

/// Words that are touched between two readings of the clock: a few microseconds.
const WORDS_AT_ONCE: usize = 16 << 10;
/// ... and loads of a chase.
const LOADS_AT_ONCE: u64 = 512;

const WARMING: u8 = 0;
const COUNTING: u8 = 1;
const OVER: u8 = 2;

/// One thread's work while it counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Lines.
    pub lines: u64,
    /// Time, ns.
    pub ns: f64,
}

impl Rate {
    /// Bytes per ns.
    pub fn gb_per_s(self) -> f64 {
        self.lines as f64 * 64.0 / self.ns
    }

    /// Time of one line, ns.
    pub fn ns_per_line(self) -> f64 {
        self.ns / self.lines as f64
    }
}

/// Runs one thread per part, each on its hardware thread, warms up for a quarter of `time` and counts for the rest.
/// Each thread divides by its own time, so that a late start of one does not count against others.
pub fn together(jobs: Vec<(Pattern, &mut [u64], u32)>, time: Duration) -> Vec<Rate> {
    let ready = Barrier::new(jobs.len() + 1);
    let phase = AtomicU8::new(WARMING);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0u64..)
            .zip(jobs)
            .map(|(thread, (pattern, part, cpu))| {
                let (ready, phase) = (&ready, &phase);
                scope.spawn(move || {
                    crate::probe::cpus::stay_on(cpu);
                    ready.wait();
                    pattern.run(part, thread, phase)
                })
            })
            .collect();
        ready.wait();
        std::thread::sleep(time / 4);
        phase.store(COUNTING, Relaxed);
        std::thread::sleep(time * 3 / 4);
        phase.store(OVER, Relaxed);
        let rates = handles.into_iter().map(|h| h.join());
        rates.map(Result::unwrap_or_default).collect()
    })
}

impl Pattern {
    /// Works on `part` until the phase is over.
    fn run(&self, part: &mut [u64], thread: u64, phase: &AtomicU8) -> Rate {
        let mut walk = Walk::new(self, part.len(), thread);
        let mut begun: Option<(Instant, u64)> = None;
        let mut lines = 0;
        loop {
            lines += walk.some(part);
            let now = phase.load(Relaxed);
            match (begun, now) {
                (None, COUNTING | OVER) => begun = Some((Instant::now(), lines)),
                // At least one piece is counted, however late the thread came.
                (Some((since, before)), OVER) => {
                    // All counted stores must be complete.
                    fence();
                    return Rate {
                        lines: lines - before,
                        ns: since.elapsed().as_nanos() as f64,
                    };
                }
                _ => {}
            }
        }
    }
}

/// Where a thread is.
struct Walk {
    pattern: Pattern,
    /// Blocks of the part, or of half of it for a mix.
    blocks: usize,
    block: usize,
    /// Blocks read and written by a mix.
    reads: usize,
    writes: usize,
    /// Word that a chase is at.
    at: u64,
    random: u64,
}

impl Walk {
    fn new(pattern: &Pattern, words: usize, thread: u64) -> Walk {
        let half = matches!(pattern.how, How::Mix(_));
        let blocks = (words / if half { 2 } else { 1 } / pattern.block).max(1);
        let mut walk = Walk {
            pattern: *pattern,
            blocks,
            block: 0,
            reads: 0,
            writes: 0,
            at: 0,
            random: 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(thread + 1),
        };
        // Threads in step would all be at one channel at once.
        walk.block = walk.any_block();
        walk
    }

    fn any_block(&mut self) -> usize {
        ((u128::from(next_random(&mut self.random)) * self.blocks as u128) >> 64) as usize
    }

    /// Does a piece of the work; returns the lines.
    fn some(&mut self, part: &mut [u64]) -> u64 {
        if self.pattern.how == How::Chase {
            let mut at = self.at;
            for _ in 0..LOADS_AT_ONCE {
                at = part[at as usize];
            }
            self.at = black_box(at);
            return LOADS_AT_ONCE;
        }
        let block = self.pattern.block;
        let count = (WORDS_AT_ONCE / block).max(1);
        for _ in 0..count {
            self.one(part);
            idle(self.pattern.pace);
        }
        (count * block / STEP) as u64
    }

    fn one(&mut self, part: &mut [u64]) {
        let (block, half) = (self.pattern.block, part.len() / 2);
        let words = |at: usize| at..at + block;
        if let How::Mix(share) = self.pattern.how {
            // Both kinds are spread evenly: three in four is rrrw, not a hundred at a time.
            let done = self.reads + self.writes;
            let share = usize::from(share);
            if (done + 1) * share / 100 > done * share / 100 {
                load(&part[words(self.reads % self.blocks * block)]);
                self.reads += 1;
            } else {
                stream(&mut part[half..][words(self.writes % self.blocks * block)]);
                self.writes += 1;
            }
            return;
        }
        let here = &mut part[words(self.block * block)];
        match self.pattern.how {
            How::Read => load(here),
            How::NtStore => stream(here),
            How::StoreClwb => store_and_write_back(here),
            How::Chase | How::Mix(_) => unreachable!("handled above"),
        }
        self.block = match self.pattern.order {
            BlockOrder::Sequential => (self.block + 1) % self.blocks,
            BlockOrder::Random => self.any_block(),
        };
    }
}

/// Turns of a loop that the compiler keeps.
fn idle(turns: u32) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// Loads every word; none waits for another.
fn load(words: &[u64]) {
    let mut all = [0u64; STEP];
    for line in words.as_chunks::<STEP>().0 {
        for (a, w) in all.iter_mut().zip(line) {
            *a ^= w;
        }
    }
    black_box(all);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{can_stream, can_write_back};

    fn pattern(how: How, order: BlockOrder, block: usize) -> Pattern {
        let pace = 0;
        Pattern {
            how,
            order,
            block,
            pace,
        }
    }

    #[test]
    fn stores_reach_every_line_in_sequence() {
        let lines = WORDS_AT_ONCE / STEP;
        for how in [How::NtStore, How::StoreClwb] {
            if !can_stream() || how == How::StoreClwb && !can_write_back() {
                varve_skip::skip!("this processor cannot {how:?}");
                continue;
            }
            let mut words = vec![0; WORDS_AT_ONCE];
            let mut walk = Walk::new(
                &pattern(how, BlockOrder::Sequential, 4 * STEP),
                WORDS_AT_ONCE,
                3,
            );
            assert_eq!(walk.some(&mut words), lines as u64);
            assert!(words.iter().all(|w| *w == 1), "{how:?}");
        }
    }

    #[test]
    fn a_mix_reads_the_share_that_it_says_and_writes_its_second_half_alone() {
        if !can_stream() {
            return varve_skip::skip!("this processor cannot store past its caches");
        }
        for share in [0, 1, 25, 50, 67, 100] {
            let mut words = vec![0; WORDS_AT_ONCE];
            let mut walk = Walk::new(
                &pattern(How::Mix(share), BlockOrder::Sequential, STEP),
                words.len(),
                0,
            );
            for _ in 0..1000 {
                walk.one(&mut words);
            }
            assert_eq!(
                (walk.reads, walk.reads + walk.writes),
                (10 * usize::from(share), 1000)
            );
            let (first, second) = words.split_at(WORDS_AT_ONCE / 2);
            assert!(first.iter().all(|w| *w == 0));
            assert_eq!(second.contains(&1), share < 100);
        }
    }

    #[test]
    fn random_blocks_stay_inside_and_meet_all() {
        let blocks = 64;
        let p = pattern(How::Read, BlockOrder::Random, STEP);
        let mut walk = Walk::new(&p, blocks * STEP, 1);
        let seen: std::collections::BTreeSet<usize> = (0..2000).map(|_| walk.any_block()).collect();
        assert_eq!(seen, (0..blocks).collect());
    }

    #[test]
    fn a_chase_goes_on_where_it_was() {
        let lines = 700;
        let mut words = vec![0; lines * STEP];
        crate::probe::memory::link_in_order(&mut words, lines);
        let mut walk = Walk::new(
            &pattern(How::Chase, BlockOrder::Sequential, STEP),
            words.len(),
            0,
        );
        walk.some(&mut words);
        walk.some(&mut words);
        assert_eq!(
            walk.at as usize,
            (2 * LOADS_AT_ONCE as usize % lines) * STEP
        );
    }

    #[test]
    fn threads_count_what_they_do() {
        let mut words = vec![0; 4 * WORDS_AT_ONCE];
        let (a, b) = words.split_at_mut(2 * WORDS_AT_ONCE);
        let p = pattern(How::Read, BlockOrder::Sequential, 4 * STEP);
        let rates = together(vec![(p, a, 0), (p, b, 0)], Duration::from_millis(4));
        assert_eq!(rates.len(), 2);
        for r in rates {
            assert!(r.lines > 0 && r.ns > 0.0, "{r:?}");
            assert_eq!(r.lines % (WORDS_AT_ONCE / STEP) as u64, 0);
            let product = r.gb_per_s() * r.ns_per_line();
            assert!((product - 64.0).abs() < 1e-6, "{product}");
        }
    }
}
