//! STREAM: copy, scale, add and triad over three arrays of doubles.
//!
//! Stands for McCalpin's STREAM benchmark (the OpenMP version compiled with 32-byte vectors): arrays `a`, `b`, `c`,
//! a static schedule, a barrier after each loop. With `values` the arrays are really held (up to 1 GiB each) and
//! end with the values that the benchmark's own check computes.

use varve_access::{Kind, Op, Program, Region};

use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch, chunk};
use crate::layout::{Array, Layout};
use varve_spec::{Error, Param, Values, Want};

/// Doubles per vector of 32 bytes (AVX2), the step of the loops.
const LANES: u64 = 4;

/// Bytes per vector.
const VECTOR: u64 = LANES * 8;

/// Instructions of an iteration beside its loads, stores and arithmetic: add, compare and branch.
const LOOP_INSTRUCTIONS: u32 = 3;

/// The scalar of scale and triad, as in the original.
const SCALAR: f64 = 3.0;

/// Values the arrays start with, as in the original: a, b, c.
const START: [f64; 3] = [1.0, 2.0, 0.0];

/// Barrier numbers start here, after that of initialization.
const BARRIER_LOOP: u64 = 1;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "stream",
    about: "copy, scale, add, triad over three arrays of doubles (McCalpin's STREAM)",
    params: &[
        Param::scaled(
            "bytes",
            Want::Bytes,
            "24GiB",
            "size of the three arrays together",
        ),
        Param::new(
            "op",
            Want::Word(&["all", "copy", "scale", "add", "triad"]),
            "all",
            "which loop; all: the four in turn",
        ),
        Param::new("passes", Want::COUNT, "10", "how often"),
        Param::new("nt", Want::Flag, "false", "non-temporal stores"),
        Param::new(
            "values",
            Want::Flag,
            "false",
            "hold and compute the arrays (up to 3GiB)",
        ),
    ],
    build: |values| Ok(Box::new(Stream::new(values)?)),
};

/// One of the four loops: which arrays it reads and writes.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// Index of the arrays read.
    reads: &'static [usize],
    write: usize,
    /// Arithmetic instructions per vector.
    arithmetic: u32,
    compute: fn(f64, f64) -> f64,
}

const COPY: Loop = Loop {
    reads: &[0],
    write: 2,
    arithmetic: 0,
    compute: |a, _| a,
};
const SCALE: Loop = Loop {
    reads: &[2],
    write: 1,
    arithmetic: 1,
    compute: |c, _| SCALAR * c,
};
const ADD: Loop = Loop {
    reads: &[0, 1],
    write: 2,
    arithmetic: 1,
    compute: |a, b| a + b,
};
const TRIAD: Loop = Loop {
    reads: &[1, 2],
    write: 0,
    arithmetic: 1,
    compute: |b, c| b + SCALAR * c,
};

/// The running benchmark.
pub struct Stream {
    layout: Layout,
    arrays: [Array; 3],
    loops: Vec<Loop>,
    passes: u64,
    store: Kind,
    init: FirstTouch,
    threads: Vec<Thread>,
    values: Option<[Vec<f64>; 3]>,
}

/// Where a thread is: the loop number since the start, and the vectors of it that are left.
#[derive(Clone, Copy, Debug)]
struct Thread {
    turn: u64,
    next: u64,
    low: u64,
    high: u64,
}

impl Stream {
    /// Reads the parameters of [`ENTRY`].
    ///
    /// # Errors
    /// Arrays with less than one vector per thread, or too large to hold.
    pub fn new(values: &Values) -> Result<Stream, Error> {
        let threads = values.count("threads") as usize;
        let bytes = values.count_in("bytes", 3 * VECTOR * threads as u64, 1 << 46)?;
        let held = values.flag("values");
        if held && bytes > 3 << 30 {
            let want =
                "values are held up to 3GiB; raise `scale`, lower `bytes`, or leave `values`";
            return Err(values.refuse("bytes", want));
        }
        let vectors = bytes / 3 / VECTOR;
        let mut layout = Layout::new();
        let arrays = ["a", "b", "c"].map(|name| layout.array(name, vectors, VECTOR));
        let ranges = FirstTouch::ranges(&arrays);
        let loops = match values.word("op") {
            "copy" => vec![COPY],
            "scale" => vec![SCALE],
            "add" => vec![ADD],
            "triad" => vec![TRIAD],
            _ => vec![COPY, SCALE, ADD, TRIAD],
        };
        let thread = |thread| {
            let (low, high) = chunk(vectors, thread, threads);
            Thread {
                turn: 0,
                next: low,
                low,
                high,
            }
        };
        Ok(Stream {
            layout,
            arrays,
            loops,
            passes: values.count_in("passes", 1, u64::MAX)?,
            store: if values.flag("nt") {
                Kind::NtWrite
            } else {
                Kind::Write
            },
            init: FirstTouch::new(ranges, values.count("touch"), By::All, threads),
            threads: (0..threads).map(thread).collect(),
            values: held.then(|| START.map(|start| vec![start; (vectors * LANES) as usize])),
        })
    }

    fn vectors(&mut self, which: Loop, from: u64, to: u64, out: &mut Vec<Op>) {
        let instructions = LOOP_INSTRUCTIONS + which.arithmetic + 1;
        for vector in from..to {
            for &read in which.reads {
                out.push(Op::read(self.arrays[read].at(vector), VECTOR as u16, 1));
            }
            let target = self.arrays[which.write].at(vector);
            out.push(Op::new(self.store, target, VECTOR as u16, instructions));
        }
        if let Some(values) = &mut self.values {
            let last = which.reads[which.reads.len() - 1];
            ((from * LANES) as usize..(to * LANES) as usize).for_each(|index| {
                let value = (which.compute)(values[which.reads[0]][index], values[last][index]);
                values[which.write][index] = value;
            });
        }
    }
}

impl Program for Stream {
    fn name(&self) -> String {
        "stream".into()
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn regions(&self) -> Vec<Region> {
        self.layout.regions().to_vec()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        if self.init.fill(thread, out) {
            return true;
        }
        let state = self.threads[thread];
        let turns = self.passes * self.loops.len() as u64;
        let which = self.loops[(state.turn % self.loops.len() as u64) as usize];
        let room = (out.capacity() - out.len()) / 3;
        let to = state.high.min(state.next + room.max(1) as u64);
        self.vectors(which, state.next, to, out);
        let state = &mut self.threads[thread];
        state.next = to;
        if to == state.high {
            if self.store == Kind::NtWrite {
                out.push(Op::mark(Kind::Fence, 0));
            }
            out.push(Op::mark(Kind::Barrier, BARRIER_LOOP + state.turn));
            state.next = state.low;
            state.turn += 1;
        }
        state.turn < turns
    }

    fn answers(&self) -> Vec<(String, String)> {
        let done = self
            .threads
            .iter()
            .map(|thread| thread.turn)
            .min()
            .unwrap_or(0);
        let mut answers = vec![("loops".into(), done.to_string())];
        if let Some(values) = &self.values {
            for (name, array) in ["a", "b", "c"].iter().zip(values) {
                let mean = array.iter().sum::<f64>() / array.len() as f64;
                answers.push((format!("mean of {name}"), format!("{mean:.6e}")));
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness;

    fn make(text: &str) -> Stream {
        Stream::new(&ENTRY.values(text).unwrap()).unwrap()
    }

    #[test]
    fn the_arrays_end_as_the_benchmarks_own_check_says() {
        let mut stream = make("bytes=1MiB,threads=3,passes=4,values");
        harness::run(&mut stream, harness::CallOrder::Random(1), 1 << 22);
        let [mut a, mut b, mut c] = START;
        for _ in 0..4 {
            c = a;
            b = SCALAR * c;
            c = a + b;
            a = b + SCALAR * c;
        }
        for (array, want) in stream.values.unwrap().iter().zip([a, b, c]) {
            assert!(array.iter().all(|&value| value == want));
        }
    }

    #[test]
    fn order_does_not_matter_and_every_vector_is_visited() {
        for (op, reads) in [("copy", 1), ("scale", 1), ("add", 2), ("triad", 2)] {
            let tally = harness::assert_order_does_not_matter(
                || {
                    Box::new(make(&format!(
                        "bytes=300000,threads=7,passes=2,values,nt,op={op}"
                    )))
                },
                1 << 20,
            );
            let vectors = 300_000 / 3 / VECTOR;
            assert_eq!(tally.of(Kind::NtWrite), 2 * vectors);
            assert_eq!(tally.of(Kind::Read), 2 * vectors * reads);
            assert_eq!(tally.of(Kind::Fence), 14);
        }
    }
}
