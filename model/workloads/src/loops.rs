//! Parallel loops with barriers between them, the shape of an OpenMP program, as a [`Program`].
//!
//! A kernel is a sequence of stages. Each stage is one loop over `items`, shared among the threads; a thread walks its
//! share in small steps and then waits at a barrier. Between two stages, when every thread has arrived, the kernel
//! chooses the next one: there it swaps buffers or adds up partial sums, on the host and in a fixed order, so that
//! answers do not depend on how the model interleaved the threads.

use varve_access::{Kind, Op, Program, Region};

use crate::init::{FirstTouch, PHASE_RUN, chunk};

/// How the items of a stage are shared among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Contiguous shares of equal size, as OpenMP's `schedule(static)`.
    Static,
    /// Everything by thread 0; the others wait.
    Serial,
    /// A free thread takes the next items, at most this number, as OpenMP's `schedule(dynamic, n)`.
    Dynamic(u64),
}

/// One loop between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Number of loop iterations.
    pub items: u64,
    /// How threads share them.
    pub share: Share,
    /// The program enters this phase here.
    pub phase: Option<u64>,
    /// An iteration of the program's outer loop starts here (and the one before it ends): a request of thread 0.
    pub iteration: bool,
}

impl Stage {
    /// A stage whose items every thread shares statically.
    pub fn parallel(items: u64) -> Stage {
        Stage {
            items,
            share: Share::Static,
            phase: None,
            iteration: false,
        }
    }

    /// A stage that thread 0 does alone.
    pub fn serial(items: u64) -> Stage {
        Stage {
            share: Share::Serial,
            ..Stage::parallel(items)
        }
    }

    /// The same stage as the start of an iteration.
    pub fn starts_iteration(mut self) -> Stage {
        self.iteration = true;
        self
    }

    /// The same stage as the start of the measured phase.
    pub fn starts_run(mut self) -> Stage {
        self.phase = Some(PHASE_RUN);
        self
    }
}

/// Work that a thread has still to do in a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The next item.
    pub at: u64,
    /// One past the last item.
    pub end: u64,
    /// How far the kernel has got within item `at`; the kernel's own to use, 0 at the start of a stage.
    pub within: u64,
}

/// A kernel made of stages.
pub trait StagedKernel: Send {
    /// Short name.
    fn name(&self) -> String;

    /// The ranges of virtual memory that it uses.
    fn regions(&self) -> Vec<Region>;

    /// Goes on to the next stage, all threads having finished the one before; `None` at the end of the program.
    fn next_stage(&mut self) -> Option<Stage>;

    /// Does a small step (a row, a vertex, up to about 512 ops) of `thread`'s share: at least moves `work` on
    /// by one item or a part of one, and appends the accesses.
    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>);

    /// Called once per thread and stage when its share is done, before its barrier; may append accesses.
    fn finish_share(&mut self, _thread: usize, _out: &mut Vec<Op>) {}

    /// Results that it computed.
    fn answers(&self) -> Vec<(String, String)>;
}

/// A call may append this many ops, and a step more: a bound, so that buffers do not creep up.
const MOST_OPS: usize = 512;

/// Runs a [`StagedKernel`] on `threads` threads.
pub struct Loops<K> {
    /// The kernel; public so that tests can check its data.
    pub kernel: K,
    init: Option<FirstTouch>,
    threads: Vec<Thread>,
    stage: Stage,
    /// Number of the stage, from 1; it names the barrier that ends it.
    number: u64,
    /// First item that no thread has taken, of a dynamic stage.
    untaken: u64,
    over: bool,
    /// Is thread 0 inside an iteration?
    iterating: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    work: Work,
    /// The last stage that the thread entered.
    number: u64,
    arrived: bool,
}

impl<K: StagedKernel> Loops<K> {
    /// A program of `threads` threads that first does `init`, if any, and then the stages of `kernel`.
    pub fn new(kernel: K, init: Option<FirstTouch>, threads: usize) -> Loops<K> {
        let thread = Thread {
            arrived: true,
            ..Thread::default()
        };
        Loops {
            kernel,
            init,
            threads: vec![thread; threads],
            stage: Stage::parallel(0),
            number: 0,
            untaken: 0,
            over: false,
            iterating: false,
        }
    }

    /// The first thread past a barrier moves the whole program to the next stage.
    fn next_stage(&mut self) {
        let Some(stage) = self.kernel.next_stage() else {
            self.over = true;
            return;
        };
        self.stage = stage;
        self.number += 1;
        self.untaken = 0;
    }

    fn enter(&mut self, index: usize, out: &mut Vec<Op>) {
        let items = self.stage.items;
        let (at, end) = match self.stage.share {
            Share::Static => chunk(items, index, self.threads.len()),
            Share::Serial if index == 0 => (0, items),
            Share::Serial | Share::Dynamic(_) => (0, 0),
        };
        self.threads[index] = Thread {
            work: Work { at, end, within: 0 },
            number: self.number,
            arrived: false,
        };
        // Every thread marks it, so that the first one counts whatever their order.
        if let Some(phase) = self.stage.phase {
            out.push(Op::mark(Kind::Phase, phase));
        }
        if self.stage.iteration && index == 0 {
            if self.iterating {
                out.push(Op::mark(Kind::End, 0));
            }
            out.push(Op::mark(Kind::Begin, 0));
            self.iterating = true;
        }
    }

    /// Takes the next items of a dynamic stage; `false` when none are left.
    fn take(&mut self, index: usize) -> bool {
        let Share::Dynamic(grain) = self.stage.share else {
            return false;
        };
        if self.untaken >= self.stage.items {
            return false;
        }
        let end = (self.untaken + grain).min(self.stage.items);
        self.threads[index].work = Work {
            at: self.untaken,
            end,
            within: 0,
        };
        self.untaken = end;
        true
    }
}

impl<K: StagedKernel> Program for Loops<K> {
    fn name(&self) -> String {
        self.kernel.name()
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn regions(&self) -> Vec<Region> {
        self.kernel.regions()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        if let Some(init) = &mut self.init
            && init.fill(thread, out)
        {
            return true;
        }
        if self.threads[thread].arrived {
            if self.threads[thread].number == self.number && !self.over {
                self.next_stage();
            }
            if self.over {
                if thread == 0 && self.iterating {
                    out.push(Op::mark(Kind::End, 0));
                }
                return false;
            }
            self.enter(thread, out);
        }
        let limit = out.capacity().clamp(64, MOST_OPS);
        loop {
            let mut work = self.threads[thread].work;
            while work.at < work.end && out.len() < limit {
                self.kernel.step(thread, &mut work, out);
            }
            self.threads[thread].work = work;
            if work.at < work.end {
                break;
            }
            if !self.take(thread) {
                self.kernel.finish_share(thread, out);
                out.push(Op::mark(Kind::Barrier, self.number));
                self.threads[thread].arrived = true;
                break;
            }
            if out.len() >= limit {
                break;
            }
        }
        true
    }

    fn classes(&self) -> Vec<String> {
        vec!["iteration".into()]
    }

    fn answers(&self) -> Vec<(String, String)> {
        self.kernel.answers()
    }
}

/// Bytes of a cache line, the unit in which runs of elements are handed to the model.
pub const LINE: u64 = 64;

/// Appends one access of `kind` per cache line that `bytes` bytes from `addr` on touch, `per_line` instructions each
/// (in proportion for a part of a line, at least one).
#[inline]
pub fn run(out: &mut Vec<Op>, kind: Kind, addr: u64, bytes: u64, per_line: u32) {
    let end = addr + bytes;
    let mut at = addr;
    while at < end {
        let next = ((at / LINE + 1) * LINE).min(end);
        let size = (next - at) as u32;
        let instructions = if size == LINE as u32 {
            per_line
        } else {
            (per_line * size / LINE as u32).max(1)
        };
        out.push(Op::new(kind, at, size as u16, instructions));
        at = next;
    }
}

/// Runs a program to its end without reading its accesses, threads in turn; returns the number of ops.
#[cfg(test)]
pub fn drain<K: StagedKernel>(program: &mut Loops<K>) -> u64 {
    let (mut ops, mut out) = (0, Vec::with_capacity(MOST_OPS));
    let mut ended = vec![false; program.threads.len()];
    while ended.contains(&false) {
        for (thread, ended) in ended.iter_mut().enumerate() {
            while !*ended {
                out.clear();
                *ended = !program.fill(thread, 0, &mut out);
                ops += out.len() as u64;
                if out.last().is_some_and(|op| op.kind == Kind::Barrier) {
                    break;
                }
            }
        }
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, CallOrder};

    /// Counts to `rounds`; some thread does each item of a stage once.
    struct Count {
        rounds: u64,
        share: Share,
        seen: Vec<u32>,
        by_zero: u64,
    }

    impl StagedKernel for Count {
        fn name(&self) -> String {
            "count".into()
        }
        fn regions(&self) -> Vec<Region> {
            let name = "count".into();
            vec![Region {
                name,
                base: 0,
                bytes: 1 << 20,
            }]
        }
        fn next_stage(&mut self) -> Option<Stage> {
            self.rounds = self.rounds.checked_sub(1)?;
            let stage = Stage::parallel(self.seen.len() as u64).starts_iteration();
            Some(Stage {
                share: self.share,
                ..stage
            })
        }
        fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
            out.push(Op::read(work.at * 8, 8, 1));
            self.seen[work.at as usize] += 1;
            self.by_zero += u64::from(thread == 0);
            work.at += 1;
        }
        fn answers(&self) -> Vec<(String, String)> {
            vec![("seen".into(), format!("{:?}", self.seen))]
        }
    }

    fn counted(share: Share, order: CallOrder, threads: usize) -> (Count, harness::Tally) {
        let count = Count {
            rounds: 5,
            share,
            seen: vec![0; 1001],
            by_zero: 0,
        };
        let mut program = Loops::new(count, None, threads);
        let tally = harness::run(&mut program, order, 100_000);
        (program.kernel, tally)
    }

    #[test]
    fn every_item_is_done_once_per_stage_however_it_is_shared() {
        for share in [Share::Static, Share::Serial, Share::Dynamic(7)] {
            for order in [
                CallOrder::RoundRobin,
                CallOrder::OneByOne,
                CallOrder::Random(3),
            ] {
                let (count, tally) = counted(share, order, 4);
                assert!(count.seen.iter().all(|&n| n == 5), "{share:?} {order:?}");
                assert_eq!(tally.of(Kind::Barrier), 5 * 4);
                assert_eq!(tally.requests[&0], 5);
                if share == Share::Serial {
                    assert_eq!(count.by_zero, 5005);
                }
            }
        }
    }

    #[test]
    fn a_run_touches_each_line_once_and_every_byte() {
        let mut out = Vec::new();
        run(&mut out, Kind::Read, 1000, 200, 16);
        let lines: Vec<(u64, u16)> = out.iter().map(|op| (op.addr, op.size)).collect();
        assert_eq!(lines, [(1000, 24), (1024, 64), (1088, 64), (1152, 48)]);
        assert_eq!(out[0].instructions, 6);
        assert_eq!(out[1].instructions, 16);
    }
}
