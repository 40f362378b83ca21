//! One kind of access in one pattern, by every thread, as fast as it goes or at a pace.
//!
//! Stands for the classic bandwidth and interference kernels (`memrw`, Intel's memory latency checker, the patterns of
//! "An empirical guide to the behavior and use of scalable persistent memory", FAST 2020). A sequential thread walks
//! its own share of the array round and round; a random one goes anywhere in the array. Durable writes follow each
//! store of a block by its write-back (`flush`) or use non-temporal stores (`nt`), with a fence after a fixed number of
//! blocks. No values are computed: the loads are summed and the stores are of a constant in the original.

use varve_access::{Kind, Op};

use crate::entry::WorkloadEntry;
use crate::init::{By, chunk};
use crate::layout::{Array, Layout};
use crate::limit::TIME;
use crate::steady::{Steady, SteadyKernel};
use varve_access::random::Rng;
use varve_spec::{Error, Param, Values, Want};

/// Bytes per op: one cache line. A larger block is several ops in a row.
const LINE: u64 = 64;

/// Instructions per line: two 32-byte vector accesses; the block's address and loop follow.
const PER_LINE: u32 = 2;

/// Instructions per block: next address (a random one is a multiply and two shifts), compare, branch.
const PER_BLOCK: u32 = 6;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "access",
    about: "sequential or random reads, writes, updates, non-temporal or flushed writes",
    params: &[
        Param::scaled("bytes", Want::Bytes, "16GiB", "size of the array"),
        Param::new(
            "pattern",
            Want::Word(&["sequential", "random"]),
            "sequential",
            "each thread through its share in order, or anywhere",
        ),
        Param::new(
            "op",
            Want::Word(&["read", "write", "update", "nt", "flush"]),
            "read",
            "load, store, load and store, non-temporal store, store and write back",
        ),
        Param::new(
            "block",
            Want::Bytes,
            "64",
            "bytes accessed at each place, in lines of 64",
        ),
        Param::new(
            "fence",
            Want::COUNT,
            "1",
            "blocks between two fences of nt and flush; 0: none",
        ),
        Param::new("delay", Want::Time, "0", "pause after each block"),
        Param::new(
            "blocks",
            Want::COUNT,
            "1M",
            "blocks per thread; 0: no such limit",
        ),
        TIME,
    ],
    build: |values| Ok(Box::new(Access::new(values)?)),
};

/// The running kernel.
pub struct Access {
    blocks: Array,
    random: bool,
    kind: Kind,
    flush: bool,
    fence: u64,
    delay: u64,
    threads: Vec<Thread>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    rng: Rng,
    low: u64,
    high: u64,
    next: u64,
    unfenced: u64,
}

impl Access {
    /// Reads the parameters of [`ENTRY`].
    ///
    /// # Errors
    /// An array with less than a block per thread; a block that is no multiple of a line; no limit.
    pub fn new(values: &Values) -> Result<Steady<Access>, Error> {
        let threads = values.count("threads") as usize;
        let block = values.count_in("block", LINE, 1 << 20)?;
        if !block.is_multiple_of(LINE) {
            return Err(values.refuse("block", "must be a multiple of 64 bytes"));
        }
        let bytes = values.count_in("bytes", block * threads as u64, 1 << 46)?;
        let mut layout = Layout::new();
        let blocks = layout.array("array", bytes / block, block);
        let (kind, flush) = match values.word("op") {
            "read" => (Kind::Read, false),
            "write" => (Kind::Write, false),
            "update" => (Kind::Update, false),
            "nt" => (Kind::NtWrite, false),
            _ => (Kind::Write, true),
        };
        let ordered = flush || kind == Kind::NtWrite;
        let seed = values.count("seed");
        let thread = |thread: usize| {
            let (low, high) = chunk(blocks.len, thread, threads);
            Thread {
                rng: Rng::new(seed, thread as u64),
                low,
                high,
                next: low,
                unfenced: 0,
            }
        };
        let access = Access {
            blocks,
            random: values.word("pattern") == "random",
            kind,
            flush,
            fence: if ordered { values.count("fence") } else { 0 },
            delay: values.count("delay"),
            threads: (0..threads).map(thread).collect(),
        };
        Steady::new(values, layout, &[blocks], access)
    }
}

impl SteadyKernel for Access {
    const NAME: &'static str = ENTRY.name;
    const STEPS: &'static str = "blocks";
    const TOUCHED: By = By::All;

    fn ops(&self) -> u64 {
        self.blocks.size / LINE * (1 + u64::from(self.flush)) + 2
    }

    fn advance(&mut self, thread: usize, _: u64, count: u64, out: &mut Vec<Op>) {
        let mut state = self.threads[thread];
        let lines = self.blocks.size / LINE;
        for _ in 0..count {
            let block = if self.random {
                state.rng.below(self.blocks.len)
            } else {
                state.next
            };
            state.next = if state.next + 1 == state.high {
                state.low
            } else {
                state.next + 1
            };
            let base = self.blocks.at(block);
            let mut instructions = PER_BLOCK + PER_LINE;
            for line in 0..lines {
                out.push(Op::new(
                    self.kind,
                    base + line * LINE,
                    LINE as u16,
                    instructions,
                ));
                instructions = PER_LINE;
            }
            if self.flush {
                for line in 0..lines {
                    out.push(Op::new(Kind::Flush, base + line * LINE, LINE as u16, 1));
                }
            }
            state.unfenced += 1;
            if state.unfenced == self.fence {
                state.unfenced = 0;
                out.push(Op::new(Kind::Fence, 0, 0, 1));
            }
            if self.delay > 0 {
                out.push(Op::mark(Kind::Sleep, self.delay));
            }
        }
        self.threads[thread] = state;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::harness::{self, CallOrder};

    fn make(text: &str) -> Steady<Access> {
        Access::new(&ENTRY.values(text).unwrap()).unwrap()
    }

    #[test]
    fn two_rounds_of_a_sequential_walk_visit_every_line_twice() {
        let mut access = make("bytes=64KiB,threads=4,block=256,blocks=128");
        let mut visits: BTreeMap<u64, u32> = BTreeMap::new();
        harness::each(&mut access, CallOrder::RoundRobin, |_, op| {
            if op.kind == Kind::Read {
                *visits.entry(op.addr).or_default() += 1;
            }
        });
        assert_eq!(visits.len(), 1024);
        assert!(visits.values().all(|&count| count == 2));
    }

    #[test]
    fn random_blocks_cover_the_array_evenly() {
        let mut access = make("bytes=64KiB,threads=4,pattern=random,blocks=25600,op=update");
        let mut visits = vec![0u32; 1024];
        let base = access.kernel.blocks.base;
        harness::each(&mut access, CallOrder::RoundRobin, |_, op| {
            if op.kind == Kind::Update {
                visits[((op.addr - base) / LINE) as usize] += 1;
            }
        });
        // 100 on average; six standard deviations either way.
        assert!(visits.iter().all(|&count| (40..160).contains(&count)));
    }

    #[test]
    fn flushed_and_non_temporal_writes_are_fenced_as_asked() {
        let cases = [
            ("op=nt", Kind::NtWrite, 0, 200),
            ("op=nt,fence=10", Kind::NtWrite, 0, 20),
            ("op=nt,fence=0", Kind::NtWrite, 0, 0),
            ("op=flush,fence=4", Kind::Write, 400, 50),
            ("op=write", Kind::Write, 0, 0),
        ];
        for (text, kind, flushes, fences) in cases {
            // One touch at initialization per thread: the share of each thread is a page.
            let text = format!("bytes=8KiB,threads=2,block=128,blocks=100,delay=7ns,{text}");
            let tally = harness::assert_order_does_not_matter(|| Box::new(make(&text)), 1 << 20);
            let touches = if kind == Kind::Write { 2 } else { 0 };
            assert_eq!(tally.of(kind), 400 + touches, "{text}");
            assert_eq!(tally.of(Kind::Flush), flushes, "{text}");
            assert_eq!(tally.of(Kind::Fence), fences, "{text}");
            assert_eq!(tally.of(Kind::Sleep), 200, "{text}");
        }
    }

    #[test]
    fn a_block_is_whole_lines() {
        let values = ENTRY.values("block=100").unwrap();
        let error = Access::new(&values).err().unwrap().to_string();
        assert_eq!(
            error,
            "workload `access`: `block=100`: must be a multiple of 64 bytes"
        );
    }
}
