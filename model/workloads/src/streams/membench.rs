//! MemBench: hot objects written in random order with a pause between two, among ten times as many cold ones.
//!
//! Stands for the benchmark of "Cross-layer memory management" (TACO 2018, section 6), a Java program: objects with one
//! integer field each, reached through an array of references. Threads walk their part of the array of hot
//! references and write each object's field; cold objects are only allocated. With `organize` hot and cold objects lie
//! in two regions (the runtime told them apart); without, they are mixed in one region in random order.
//! Every write stores the number of the round, and `answers` gives the sum of all fields.

use varve_access::{Kind, Op};

use crate::entry::WorkloadEntry;
use crate::init::chunk;
use crate::layout::{Array, Layout};
use crate::limit::{Limit, TIME};
use crate::registry;
use crate::steady::{Steady, SteadyKernel};
use varve_access::random::Permutation;
use varve_spec::{Error, Param, Values, Want};

/// Bytes of an object: HotSpot's 12-byte header with compressed class pointers and the 4-byte integer.
const OBJECT: u64 = 16;

/// Where the integer lies in the object.
const FIELD: u64 = 12;

/// Bytes of a compressed reference.
const REFERENCE: u64 = 4;

/// Instructions to load a reference: bounds check, load, decode (shift and add).
const PER_REFERENCE: u32 = 4;

/// Instructions to store the field: null and type check (4), store, loop (3).
const PER_STORE: u32 = 8;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "membench",
    about: "writes to hot objects among cold ones, with a pause between two (MemBench)",
    params: &[
        Param {
            default: "12",
            ..registry::THREADS
        },
        Param::scaled("hot", Want::Bytes, "200MB", "size of all hot objects"),
        Param::scaled("cold", Want::Bytes, "2GB", "size of all cold objects"),
        Param::new("delay", Want::Time, "0", "pause after each write"),
        Param::new(
            "organize",
            Want::Flag,
            "false",
            "hot and cold objects in regions of their own",
        ),
        Param::new(
            "shuffle",
            Want::Flag,
            "true",
            "hot objects in random order; false: one after the other, as they lie",
        ),
        Param::new(
            "remote",
            Want::COUNT,
            "0",
            "percent of the hot objects that lie in a region of their own, for the other socket (NUMABench)",
        ),
        Param::new(
            "writes",
            Want::COUNT,
            "1M",
            "writes per thread; 0: no such limit",
        ),
        TIME,
    ],
    build: |values| Ok(Box::new(MemBench::new(values)?)),
};

/// The running benchmark.
pub struct MemBench {
    references: Array,
    objects: Array,
    /// Hot objects in a region of their own.
    remote: Array,
    /// Which of the hot objects each hot reference is of, where some are remote: those are the first ones.
    mixed: Option<Permutation>,
    /// Object number behind each hot reference that is not remote.
    places: Option<Permutation>,
    delay: u64,
    threads: Vec<Thread>,
}

/// A thread's part of the hot references, and where it is.
#[derive(Clone, Copy, Debug)]
struct Thread {
    low: u64,
    high: u64,
    next: u64,
}

impl MemBench {
    /// Reads the parameters of [`ENTRY`].
    ///
    /// # Errors
    /// Fewer hot objects than threads, or no limit.
    pub fn new(values: &Values) -> Result<Steady<MemBench>, Error> {
        let threads = values.count("threads") as usize;
        let hot = values.count_in("hot", OBJECT * threads as u64, 1 << 40)? / OBJECT;
        let cold = values.count_in("cold", 0, 1 << 40)? / OBJECT;
        let far = hot * values.count_in("remote", 0, 100)? / 100;
        let near = hot - far;
        let mut layout = Layout::new();
        let references = layout.array("hot references", hot, REFERENCE);
        let remote = layout.array("remote hot objects", far, OBJECT);
        let mut touched = vec![references, remote];
        let objects = if values.flag("organize") {
            let objects = layout.array("hot objects", near, OBJECT);
            touched.extend([objects, layout.array("cold objects", cold, OBJECT)]);
            objects
        } else {
            let objects = layout.array("objects", near + cold, OBJECT);
            touched.push(objects);
            objects
        };
        touched.retain(|array| array.len > 0);
        let thread = |thread| {
            let (low, high) = chunk(hot, thread, threads);
            Thread {
                low,
                high,
                next: low,
            }
        };
        let bench = MemBench {
            references,
            objects,
            remote,
            mixed: (far > 0).then(|| Permutation::new(hot, !values.count("seed"))),
            places: (values.flag("shuffle") && objects.len > 0)
                .then(|| Permutation::new(objects.len, values.count("seed"))),
            delay: values.count("delay"),
            threads: (0..threads).map(thread).collect(),
        };
        Steady::new(values, layout, &touched, bench)
    }

    /// Where the object of a hot reference is.
    fn object(&self, hot: u64) -> u64 {
        let number = match &self.mixed {
            None => hot,
            Some(mixed) => mixed.at(hot),
        };
        match number.checked_sub(self.remote.len) {
            None => self.remote.at(number),
            Some(near) => {
                let place = self.places.as_ref().map_or(near, |p| p.at(near));
                self.objects.at(place)
            }
        }
    }

    /// Sum of the hot objects' fields: each holds the number of the last round in which it was written.
    fn sum(&self, limit: &Limit) -> u64 {
        let of_thread = |(thread, state): (usize, &Thread)| {
            let (done, part) = (limit.done(thread), state.high - state.low);
            let (rounds, rest) = (done / part, done % part);
            rounds * part + rest
        };
        self.threads.iter().enumerate().map(of_thread).sum()
    }
}

impl SteadyKernel for MemBench {
    const NAME: &'static str = ENTRY.name;
    const STEPS: &'static str = "writes";

    fn ops(&self) -> u64 {
        3
    }

    fn advance(&mut self, thread: usize, _: u64, count: u64, out: &mut Vec<Op>) {
        let mut state = self.threads[thread];
        for _ in 0..count {
            let hot = state.next;
            state.next = if hot + 1 == state.high {
                state.low
            } else {
                hot + 1
            };
            let object = self.object(hot);
            out.push(Op::read(
                self.references.at(hot),
                REFERENCE as u16,
                PER_REFERENCE,
            ));
            out.push(Op::write(object + FIELD, 4, PER_STORE).after_load());
            if self.delay > 0 {
                out.push(Op::mark(Kind::Sleep, self.delay));
            }
        }
        self.threads[thread] = state;
    }

    fn answers(&self, limit: &Limit) -> Vec<(String, String)> {
        vec![
            ("writes".into(), limit.total().to_string()),
            ("sum of fields".into(), self.sum(limit).to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::harness::{self, CallOrder};
    use varve_access::Program;

    fn make(text: &str) -> Steady<MemBench> {
        MemBench::new(&ENTRY.values(text).unwrap()).unwrap()
    }

    #[test]
    fn hot_objects_lie_apart_only_when_organized() {
        for (organize, spread) in [("organize", 1000), ("organize=false", 11_000)] {
            let mut bench = make(&format!(
                "threads=3,hot=16kB,cold=160kB,writes=700,touch=16,{organize}"
            ));
            let base = bench.kernel.objects.base;
            // The expected values of the fields, by brute force.
            let mut fields: HashMap<u64, u64> = HashMap::new();
            let mut rounds: HashMap<(usize, u64), u64> = HashMap::new();
            let mut running = [false; 3];
            harness::each(&mut bench, CallOrder::Random(3), |thread, op| {
                running[thread] |= op.kind == Kind::Phase && op.addr == crate::init::PHASE_RUN;
                if op.kind == Kind::Write && running[thread] {
                    assert_eq!(op.dependent, 1);
                    let round = rounds.entry((thread, op.addr)).or_default();
                    *round += 1;
                    fields.insert((op.addr - base) / OBJECT, *round);
                }
            });
            assert_eq!(fields.len(), 1000);
            let last = *fields.keys().max().unwrap();
            assert!(
                last < spread && last > spread * 9 / 10,
                "{organize}: {last}"
            );
            let sum = fields.values().sum::<u64>().to_string();
            assert_eq!(bench.answers()[1], ("sum of fields".into(), sum));
        }
    }

    #[test]
    fn so_many_hot_objects_are_remote_and_all_are_written() {
        let mut bench =
            make("threads=2,hot=16kB,cold=160kB,writes=500,touch=16,remote=30,organize");
        let far = bench.kernel.remote.base..bench.kernel.remote.base + 300 * OBJECT;
        let (mut near, mut remote) = (HashMap::new(), HashMap::new());
        let mut running = [false; 2];
        harness::each(&mut bench, CallOrder::Random(3), |thread, op| {
            running[thread] |= op.kind == Kind::Phase && op.addr == crate::init::PHASE_RUN;
            if op.kind == Kind::Write && running[thread] {
                let to = if far.contains(&op.addr) {
                    &mut remote
                } else {
                    &mut near
                };
                *to.entry(op.addr).or_insert(0) += 1;
            }
        });
        assert_eq!((near.len(), remote.len()), (700, 300), "each once");
        let in_order = make("threads=1,hot=1600B,cold=0B,writes=5,shuffle=false").kernel;
        assert_eq!(in_order.object(7), in_order.objects.at(7));
    }

    #[test]
    fn order_does_not_matter() {
        let text = "threads=4,hot=16kB,cold=160kB,writes=300,delay=100ns";
        let tally = harness::assert_order_does_not_matter(|| Box::new(make(text)), 1 << 20);
        assert_eq!(tally.of(Kind::Sleep), 1200);
    }
}
