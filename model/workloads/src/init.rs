//! A program's first phase: touching its memory, which is when pages get their frames.

use varve_access::{Kind, Op};

use crate::layout::Array;

/// Phase number of initialization, in `Kind::Phase` marks.
pub const PHASE_INIT: u64 = 0;

/// Phase number of the measured part of the run.
pub const PHASE_RUN: u64 = 1;

/// Barrier number that ends initialization.
pub const BARRIER_INIT: u64 = 0;

/// Instructions per line of a `memset`: with 32-byte vector stores two stores and a share of the loop's
/// pointer add, compare and branch (unrolled by four).
pub const INSTRUCTIONS_PER_LINE: u32 = 3;

/// Threads that touch the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Thread 0 walks every array from its start to its end, in order.
    First,
    /// Every thread walks its own contiguous share of each array in turn, as an OpenMP loop does.
    All,
}

/// Touches a list of byte ranges, in order, once every `stride` bytes.
///
/// A stride of 64 writes every line, as zeroing does. A larger one (a page) puts every page in its place with one
/// access each, so that setting up a machine at full size does not dominate the run; it omits the traffic of the
/// zeroing and the state that this leaves in the caches.
#[derive(Clone, Debug)]
pub struct FirstTouch {
    ranges: Vec<(u64, u64)>,
    stride: u64,
    kind: Kind,
    kernel: bool,
    by: By,
    threads: usize,
    cursors: Vec<Cursor>,
}

#[derive(Clone, Copy, Debug)]
struct Cursor {
    range: usize,
    next: u64,
    end: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Walk,
    Barrier,
    Done,
}

impl FirstTouch {
    /// Touches `ranges` (address and bytes) by writes every `stride` bytes (at least 1).
    pub fn new(ranges: Vec<(u64, u64)>, stride: u64, by: By, threads: usize) -> FirstTouch {
        let cursor = Cursor {
            range: 0,
            next: 0,
            end: 0,
            stage: Stage::Start,
        };
        let cursors = vec![cursor; threads];
        FirstTouch {
            ranges,
            stride: stride.max(1),
            kind: Kind::Write,
            kernel: false,
            by,
            threads,
            cursors,
        }
    }

    /// The same with non-temporal stores, as a large `memset` of the C library does.
    pub fn non_temporal(mut self) -> FirstTouch {
        self.kind = Kind::NtWrite;
        self
    }

    /// The same by the kernel, as for a mapping that is populated at once (`MAP_POPULATE`): no sampling sees it.
    pub fn by_kernel(mut self) -> FirstTouch {
        self.kernel = true;
        self
    }

    /// The ranges of some arrays.
    pub fn ranges(arrays: &[Array]) -> Vec<(u64, u64)> {
        arrays
            .iter()
            .map(|array| (array.base, array.bytes()))
            .collect()
    }

    /// Appends the next ops of `thread`: the mark of [`PHASE_INIT`], the touches, the barrier. Returns `true` as long
    /// as there was initialization to do; `false` once the thread is to go on with the program proper, the first
    /// time with the mark of [`PHASE_RUN`] appended.
    pub fn fill(&mut self, thread: usize, out: &mut Vec<Op>) -> bool {
        let limit = out.capacity().max(64);
        if self.cursors[thread].stage == Stage::Done {
            return false;
        }
        if self.cursors[thread].stage == Stage::Barrier {
            self.cursors[thread].stage = Stage::Done;
            out.push(Op::mark(Kind::Phase, PHASE_RUN));
            return false;
        }
        if self.cursors[thread].stage == Stage::Start {
            out.push(Op::mark(Kind::Phase, PHASE_INIT));
            if self.kernel {
                out.push(Op::mark(Kind::Kernel, 1));
            }
            self.cursors[thread].stage = Stage::Walk;
            self.enter(thread, 0);
        }
        while out.len() + 3 < limit {
            let cursor = &mut self.cursors[thread];
            if cursor.next < cursor.end {
                let size = (cursor.end - cursor.next).min(self.stride).min(64) as u16;
                out.push(Op::new(self.kind, cursor.next, size, INSTRUCTIONS_PER_LINE));
                cursor.next += self.stride;
            } else if cursor.range + 1 < self.ranges.len() {
                let next = cursor.range + 1;
                self.enter(thread, next);
            } else {
                cursor.stage = Stage::Barrier;
                if self.kind == Kind::NtWrite {
                    out.push(Op::mark(Kind::Fence, 0));
                }
                if self.kernel {
                    out.push(Op::mark(Kind::Kernel, 0));
                }
                out.push(Op::mark(Kind::Barrier, BARRIER_INIT));
                return true;
            }
        }
        true
    }

    fn enter(&mut self, thread: usize, range: usize) {
        let cursor = &mut self.cursors[thread];
        cursor.range = range;
        let Some(&(base, bytes)) = self.ranges.get(range) else {
            (cursor.next, cursor.end) = (0, 0);
            return;
        };
        let (low, high) = match self.by {
            By::First if thread == 0 => (0, bytes),
            By::First => (0, 0),
            By::All => {
                let steps = bytes.div_ceil(self.stride);
                let (low, high) = chunk(steps, thread, self.threads);
                (low * self.stride, (high * self.stride).min(bytes))
            }
        };
        (cursor.next, cursor.end) = (base + low, base + high);
    }
}

/// The half-open share of `0..n` of `thread` among `threads`, as a static OpenMP schedule divides it: contiguous,
/// the first `n % threads` shares one longer.
pub fn chunk(n: u64, thread: usize, threads: usize) -> (u64, u64) {
    let (thread, threads) = (thread as u64, threads as u64);
    let (each, rest) = (n / threads, n % threads);
    let low = thread * each + thread.min(rest);
    (low, low + each + u64::from(thread < rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(by: By, threads: usize, ranges: &[(u64, u64)], stride: u64) -> Vec<(u64, u16)> {
        let mut init = FirstTouch::new(ranges.to_vec(), stride, by, threads);
        let mut all = Vec::new();
        for thread in 0..threads {
            let mut out = Vec::with_capacity(64);
            while init.fill(thread, &mut out) {
                let accesses = out.iter().filter(|op| op.kind.is_access());
                all.extend(accesses.map(|op| (op.addr, op.size)));
                out.clear();
            }
        }
        all
    }

    #[test]
    fn every_line_is_written_once_whoever_does_it() {
        let ranges = [(1 << 20, 1000), (1 << 30, 640), (1 << 31, 1)];
        let alone = touched(By::First, 3, &ranges, 64);
        let mut shared = touched(By::All, 3, &ranges, 64);
        assert_eq!(
            alone.iter().map(|&(_, size)| u64::from(size)).sum::<u64>(),
            1641
        );
        shared.sort_unstable();
        assert_eq!(alone, shared);
    }

    #[test]
    fn the_kernel_does_its_touches_and_nothing_else() {
        for by in [By::First, By::All] {
            let mut init = FirstTouch::new(vec![(0, 10_000)], 64, by, 2).by_kernel();
            let (mut inside, mut touched) = ([false; 2], 0);
            for (thread, inside) in inside.iter_mut().enumerate() {
                let mut out = Vec::with_capacity(64);
                while init.fill(thread, &mut out) {
                    for op in out.drain(..) {
                        match op.kind {
                            Kind::Kernel => *inside = op.addr == 1,
                            Kind::Barrier => assert!(!*inside),
                            kind if kind.is_access() => {
                                assert!(*inside);
                                touched += u64::from(op.size);
                            }
                            _ => {}
                        }
                    }
                }
            }
            assert_eq!((inside, touched), ([false; 2], 10_000));
        }
    }

    #[test]
    fn a_page_stride_touches_every_page() {
        let pages = touched(By::All, 2, &[(0, 10 * 4096 + 1)], 4096);
        assert_eq!(pages.len(), 11);
    }

    #[test]
    fn shares_cover_everything_once() {
        for n in [0, 1, 7, 64, 1000] {
            for threads in 1..9 {
                let mut at = 0;
                for thread in 0..threads {
                    let (low, high) = chunk(n, thread, threads);
                    assert_eq!(low, at);
                    at = high;
                }
                assert_eq!(at, n);
            }
        }
    }
}
