//! The one program that all curves are measured with: threads that read or write blocks of a size, in sequence or at
//! random, one after the other or as many at once as the core can, and that keep their own time as benchmarks do.

use varve_access::random::{Rng, mix};
use varve_access::{Kind, Op, Program};

/// Access of a thread to each 64 B of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// One load of 64 B (AVX-512).
    Read,
    /// Like `Read`, each address computed from the load before it.
    Chase,
    /// One non-temporal store of 64 B.
    NtStore,
    /// A store of 64 B and its write-back (CLWB).
    StoreClwb,
    /// Stores of 64 B, and the write-backs (CLWB) of all of them at the end of the block.
    StoreThenClwb,
    /// A store of 64 B, which the caches write back when they are full.
    Store,
    /// A store of 8 B and a fence: the line is fetched, changed, and some day written back.
    Write,
    /// Load a block of one array, or store one of another non-temporally: this percentage of blocks is loaded.
    Mix(u8),
    /// The same with one array for both.
    Blend(u8),
    /// One line of this number is stored, the others are loaded. The stored one is read first and written back by the caches, so that
    /// there are as many reads of memory as lines, for each write (Intel Memory Latency Checker's mixes of that ratio).
    Traffic(u8),
}

/// Which block comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The next one.
    Sequential,
    /// Any one.
    Random,
}

/// First virtual address of every pattern.
const BASE: u64 = 1 << 32;

/// Lines that are given to the model at a time.
const CHUNK: u64 = 16;

/// ... and loads of a chase, which takes long for each when others fill the queues.
const CHASE_CHUNK: u64 = 2;

/// Progress of one thread.
#[derive(Clone, Debug, Default)]
struct Worker {
    random: Rng,
    /// Block that is being worked on, and the line in it that is next.
    block: u64,
    line: u64,
    /// The block it began with, and how many it has done since.
    start: u64,
    blocks: u64,
    lines: u64,
    /// Is the block that is being worked on one of the loads?
    is_read: bool,
    /// Bytes since the last fence.
    unfenced: u64,
    /// Clock and lines at the first call after the warm-up, and at the latest.
    first: Option<(u64, u64)>,
    last: (u64, u64),
    /// Time of each block after the warm-up, ns, if blocks are timed.
    times: Vec<u32>,
}

/// Threads that all do the same, each in a region of its own, for ever.
#[derive(Clone, Debug)]
pub struct Pattern {
    how: How,
    order: Order,
    /// Bytes of a block.
    block: u64,
    /// Bytes of one thread's region.
    region: u64,
    /// Instructions of each access: pacing, when large.
    instructions: u32,
    /// Bytes between two fences; 0: no fence.
    fence: u64,
    /// Is each block timed by itself?
    timed: bool,
    /// Virtual time before which nothing counts, ns.
    warm_ns: u64,
    workers: Vec<Worker>,
}

impl Pattern {
    /// `threads` threads over blocks of `block` bytes (a multiple of 64) in regions of `region` bytes.
    pub fn new(how: How, order: Order, threads: usize, block: u64, region: u64) -> Pattern {
        let workers = (0..threads as u64)
            .map(|t| {
                let mut w = Worker {
                    random: Rng::from_state(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(t + 1)),
                    ..Worker::default()
                };
                // Threads that run in step would all be at the same device at once; real ones drift apart.
                w.block = w.random.bits() % (region / block);
                w.start = w.block;
                w
            })
            .collect();
        Pattern {
            how,
            order,
            block,
            region,
            instructions: 2,
            fence: 0,
            timed: false,
            warm_ns: 0,
            workers,
        }
    }

    /// The same with this number of instructions between two accesses.
    pub fn paced(mut self, instructions: u32) -> Pattern {
        self.instructions = instructions;
        self
    }

    /// The same with a fence after each block.
    pub fn fenced(self) -> Pattern {
        let block = self.block;
        self.fenced_each(block)
    }

    /// The same with a fence each time a thread has accessed `bytes` bytes.
    pub fn fenced_each(mut self, bytes: u64) -> Pattern {
        self.fence = bytes;
        self
    }

    /// The same, and the time of each block is recorded ([`Pattern::block_ns`]). A block then begins when the one
    /// before is issued, with a fence when it is done.
    pub fn timed(mut self) -> Pattern {
        self.timed = true;
        self
    }

    /// Time that this part of the blocks takes at most, ns: `block_ns(0.99)` is the 99th percentile, `block_ns(1.0)`
    /// the maximum. `None` if no block was timed.
    pub fn block_ns(&self, part: f64) -> Option<u32> {
        let mut all: Vec<u32> = self
            .workers
            .iter()
            .flat_map(|w| &w.times)
            .copied()
            .collect();
        let at = (all.len() as f64 * part).ceil().max(1.0) as usize - 1;
        let last = all.len().checked_sub(1)?;
        Some(*all.select_nth_unstable(at.min(last)).1)
    }

    /// The same with a warm-up, ns.
    pub fn warm(mut self, ns: u64) -> Pattern {
        self.warm_ns = ns;
        self
    }

    /// Is the line at an address one that caches dropped without a change when they last had it, once the pattern has run over
    /// its memory many times? Those of a blend are drawn by 2 MiB.
    pub fn leaves_clean(&self, address: u64) -> bool {
        let inside = (address - BASE) % self.region;
        match self.how {
            // Written back by instruction, lines stay where they are, clean.
            How::Read | How::Chase | How::StoreClwb | How::StoreThenClwb => true,
            How::NtStore | How::Store | How::Write => false,
            How::Mix(_) => inside < self.region / 2,
            How::Blend(reads) => mix(address >> 21) % 100 < u64::from(reads),
            How::Traffic(reads) => !mix(address >> 21).is_multiple_of(u64::from(reads)),
        }
    }

    /// Bytes that all threads touch together, from the first virtual address on.
    pub fn footprint(&self) -> u64 {
        self.region * self.workers.len() as u64
    }

    /// 64 B accesses in a second of virtual time after the warm-up, all threads together, times 64 B: GB/s.
    pub fn gbps(&self) -> f64 {
        self.workers.iter().map(|w| w.lines_per_ns() * 64.0).sum()
    }

    /// Time between two accesses of one thread, ns: the latency, when each waits for the one before.
    pub fn ns_per_access(&self) -> f64 {
        let rate: f64 = self.workers.iter().map(Worker::lines_per_ns).sum();
        self.workers.len() as f64 / rate
    }
}

impl Worker {
    fn lines_per_ns(&self) -> f64 {
        let (from, lines) = self.first.unwrap_or_default();
        let time = self.last.0.saturating_sub(from);
        if time == 0 {
            return 0.0;
        }
        (self.last.1 - lines) as f64 / time as f64
    }
}

impl Program for Pattern {
    fn name(&self) -> String {
        format!("{:?} {:?}", self.how, self.order).to_lowercase()
    }

    fn threads(&self) -> usize {
        self.workers.len()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        let (block, blocks, n) = (self.block, self.region / self.block, self.instructions);
        let base = BASE + thread as u64 * self.region;
        let half = self.region / 2;
        let w = &mut self.workers[thread];
        if now >= self.warm_ns {
            if self.timed && w.first.is_some() {
                w.times.push((now - w.last.0) as u32);
            }
            w.first.get_or_insert((now, w.lines));
            w.last = (now, w.lines);
        }
        let chunk = match self.how {
            _ if self.timed => block / 64,
            How::Chase => CHASE_CHUNK,
            _ => CHUNK,
        };
        for _ in 0..chunk {
            let at = base + w.block * block + w.line * 64;
            match self.how {
                How::Read => out.push(Op::read(at, 64, n)),
                How::Chase => out.push(Op::read(at, 8, n).after_load()),
                How::NtStore => out.push(Op::new(Kind::NtWrite, at, 64, n)),
                How::StoreClwb => {
                    out.push(Op::write(at, 64, n));
                    out.push(Op::new(Kind::Flush, at, 64, 1));
                }
                How::Store | How::StoreThenClwb => out.push(Op::write(at, 64, n)),
                How::Write => {
                    out.push(Op::write(at, 8, n));
                    out.push(Op::mark(Kind::Fence, 0));
                }
                How::Mix(reads) => {
                    // Blocks of both kinds are spread evenly: 3 in 4 is rrrw, not a hundred at a time.
                    let r = u64::from(reads);
                    let reads = (w.start + w.blocks) * r / 100;
                    let is_read = (w.start + w.blocks + 1) * r / 100 > reads;
                    // Two arrays, each in sequence, as copying programs have.
                    let (array, nth) = match is_read {
                        true => (0, reads),
                        false => (half, w.start + w.blocks - reads),
                    };
                    let nth = match self.order {
                        Order::Sequential => nth,
                        Order::Random => w.block,
                    };
                    let at = base + array + (nth * block + w.line * 64) % half;
                    out.push(match is_read {
                        true => Op::read(at, 64, n),
                        false => Op::new(Kind::NtWrite, at, 64, n),
                    });
                }
                How::Traffic(reads) => out.push(match w.lines % u64::from(reads) {
                    0 => Op::write(at, 64, n),
                    _ => Op::read(at, 64, n),
                }),
                How::Blend(_) => out.push(match w.is_read {
                    true => Op::read(at, 64, n),
                    false => Op::new(Kind::NtWrite, at, 64, n),
                }),
            }
            w.lines += 1;
            w.line += 1;
            w.unfenced += 64;
            if w.line * 64 >= block {
                if self.how == How::StoreThenClwb {
                    let first = base + w.block * block;
                    let lines = (first..first + block).step_by(64);
                    out.extend(lines.map(|at| Op::new(Kind::Flush, at, 64, 1)));
                }
                w.line = 0;
                w.blocks += 1;
                w.block = match self.order {
                    Order::Sequential => (w.block + 1) % blocks,
                    Order::Random => w.random.bits() % blocks,
                };
                if let How::Blend(reads) = self.how {
                    w.is_read = w.random.below(100) < u64::from(reads);
                }
            }
            if self.fence != 0 && w.unfenced >= self.fence {
                w.unfenced = 0;
                out.push(Op::mark(Kind::Fence, 0));
            }
        }
        true
    }
}
