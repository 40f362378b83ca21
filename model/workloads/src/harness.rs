//! Runs a workload without a machine: counts its ops and checks that it keeps the rules of a [`Program`]. For tests,
//! and for a workload's mix.

use std::collections::BTreeMap;

use varve_access::{Kind, Op, Program};

use varve_access::random::{Rng, mix};

/// In what order the harness calls threads that are free to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOrder {
    /// Each in turn.
    RoundRobin,
    /// Thread 0 as far as it gets, then thread 1, and so on.
    OneByOne,
    /// At random.
    Random(u64),
}

/// Ops of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ops by kind.
    pub ops: BTreeMap<u8, u64>,
    /// Bytes accessed by kind.
    pub bytes: BTreeMap<u8, u64>,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Accesses by the phase that their thread last named.
    pub phases: BTreeMap<u64, u64>,
    /// Ended requests by class.
    pub requests: BTreeMap<u64, u64>,
    /// A sum over all ops of a hash of (thread, op): equal for the same multiset of ops in whatever order.
    pub multiset: u64,
    /// Accesses marked as waiting for the load before them.
    pub dependent: u64,
    /// Distinct 4 KiB pages accessed.
    pub pages: u64,
    phase: Vec<u64>,
}

impl Tally {
    /// Ops of `kind`.
    pub fn of(&self, kind: Kind) -> u64 {
        self.ops.get(&(kind as u8)).copied().unwrap_or(0)
    }

    /// Accesses of every kind.
    pub fn accesses(&self) -> u64 {
        Kind::ALL
            .into_iter()
            .filter(|kind| kind.is_access())
            .map(|kind| self.of(kind))
            .sum()
    }
}

/// How much the harness asks for at once.
const CAPACITY: usize = 256;

/// Virtual time per op that the harness pretends, in nanoseconds: any value will do.
const NS_PER_OP: u64 = 10;

/// Runs `program` to its end.
///
/// # Panics
/// When the program breaks a rule: an access outside its regions or across a region's end, a request that ends
/// without a beginning, threads that end while others wait at a barrier for a different number, ops after a barrier in the same call, a call that appends
/// nothing and does not end the thread, or more than `limit` ops.
pub fn run(program: &mut dyn Program, order: CallOrder, limit: u64) -> Tally {
    let tally = start(program, order, limit.saturating_add(1));
    let total: u64 = tally.ops.values().sum();
    assert!(
        total <= limit,
        "more than {limit} ops: does the program ever end?"
    );
    tally
}

/// Runs the first `ops` ops of `program`, or all of it when it ends before.
///
/// # Panics
/// As [`run`], without a limit.
pub fn start(program: &mut dyn Program, order: CallOrder, ops: u64) -> Tally {
    let mut runner = Runner::new(program, order);
    let mut tally = Tally {
        phase: vec![0; program.threads()],
        ..Tally::default()
    };
    let mut total = 0;
    while total < ops
        && let Some((thread, batch)) = runner.next(program)
    {
        for op in batch {
            tally.add(thread, op);
        }
        total += batch.len() as u64;
    }
    tally.pages = runner.pages.len() as u64;
    tally
}

/// Runs `program` and hands every op to `each`.
///
/// # Panics
/// As [`run`], without a limit.
pub fn each(program: &mut dyn Program, order: CallOrder, mut each: impl FnMut(usize, &Op)) {
    let mut runner = Runner::new(program, order);
    while let Some((thread, ops)) = runner.next(program) {
        for op in ops {
            each(thread, op);
        }
    }
}

impl Tally {
    fn add(&mut self, thread: usize, op: &Op) {
        *self.ops.entry(op.kind as u8).or_default() += 1;
        self.instructions += u64::from(op.instructions);
        let packed = u64::from(op.size)
            | (op.kind as u64) << 16
            | u64::from(op.dependent) << 24
            | u64::from(op.instructions) << 32;
        let hash = mix(mix(thread as u64 ^ packed.rotate_left(7)) ^ op.addr);
        self.multiset = self.multiset.wrapping_add(hash);
        if op.kind.is_access() {
            *self.bytes.entry(op.kind as u8).or_default() += u64::from(op.size);
            self.dependent += u64::from(op.dependent);
            *self.phases.entry(self.phase[thread]).or_default() += 1;
        }
        match op.kind {
            Kind::End => *self.requests.entry(op.addr).or_default() += 1,
            Kind::Phase => self.phase[thread] = op.addr,
            _ => {}
        }
    }
}

struct Runner {
    order: CallOrder,
    rng: Rng,
    regions: Vec<(u64, u64)>,
    states: Vec<State>,
    clocks: Vec<u64>,
    open: Vec<bool>,
    turn: usize,
    buffer: Vec<Op>,
    pages: std::collections::HashSet<u64>,
    classes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Waiting(u64),
    Ended,
}

impl Runner {
    fn new(program: &dyn Program, order: CallOrder) -> Runner {
        let threads = program.threads();
        let mut regions: Vec<(u64, u64)> = program
            .regions()
            .iter()
            .map(|region| (region.base, region.base + region.bytes))
            .collect();
        regions.sort_unstable();
        let seed = if let CallOrder::Random(seed) = order {
            seed
        } else {
            0
        };
        Runner {
            order,
            rng: Rng::new(seed, 0),
            regions,
            states: vec![State::Free; threads],
            clocks: vec![0; threads],
            open: vec![false; threads],
            turn: 0,
            buffer: Vec::with_capacity(CAPACITY),
            pages: Default::default(),
            classes: program.classes().len() as u64,
        }
    }

    /// Lets one thread go on; `None` when all have ended.
    fn next(&mut self, program: &mut dyn Program) -> Option<(usize, &[Op])> {
        let thread = self.choose()?;
        self.buffer.clear();
        let more = program.fill(thread, self.clocks[thread], &mut self.buffer);
        assert!(
            !self.buffer.is_empty() || !more,
            "thread {thread}: no ops, but not ended"
        );
        let last = self.buffer.len().saturating_sub(1);
        for index in 0..self.buffer.len() {
            let op = self.buffer[index];
            self.check(thread, &op);
            self.clocks[thread] += if op.kind == Kind::Sleep {
                op.addr
            } else {
                NS_PER_OP
            };
            if op.kind == Kind::Barrier {
                assert!(
                    index == last,
                    "thread {thread}: ops after its barrier in one call"
                );
                self.states[thread] = State::Waiting(op.addr);
            }
        }
        if !more {
            assert!(!self.open[thread], "thread {thread} ends inside a request");
            self.states[thread] = State::Ended;
        }
        Some((thread, &self.buffer))
    }

    fn choose(&mut self) -> Option<usize> {
        let live = self
            .states
            .iter()
            .filter(|state| **state != State::Ended)
            .count();
        if live == 0 {
            return None;
        }
        let mut waiting = self.states.iter().filter_map(|state| match state {
            State::Waiting(barrier) => Some(*barrier),
            _ => None,
        });
        if let Some(first) = waiting.next() {
            let (same, others) = waiting.fold((1, 0), |(same, others), barrier| {
                if barrier == first {
                    (same + 1, others)
                } else {
                    (same, others + 1)
                }
            });
            if same + others == live {
                assert_eq!(others, 0, "threads wait at different barriers");
                let latest = self.clocks.iter().copied().max().unwrap_or(0);
                for (state, clock) in self.states.iter_mut().zip(&mut self.clocks) {
                    if *state != State::Ended {
                        (*state, *clock) = (State::Free, latest);
                    }
                }
            }
        }
        let threads = self.states.len();
        let start = match self.order {
            CallOrder::RoundRobin => self.turn + 1,
            CallOrder::OneByOne => self.turn,
            CallOrder::Random(_) => self.rng.below(threads as u64) as usize,
        };
        let free = (0..threads).map(|step| (start + step) % threads);
        self.turn = free
            .into_iter()
            .find(|&thread| self.states[thread] == State::Free)?;
        Some(self.turn)
    }

    fn check(&mut self, thread: usize, op: &Op) {
        match op.kind {
            Kind::Begin => {
                assert!(
                    !self.open[thread],
                    "thread {thread}: a request begins inside another"
                );
                self.open[thread] = true;
            }
            Kind::End => {
                assert!(
                    self.open[thread],
                    "thread {thread}: a request ends that never began"
                );
                assert!(op.addr < self.classes, "class {} has no name", op.addr);
                self.open[thread] = false;
            }
            kind if kind.is_access() => {
                let after = self.regions.partition_point(|&(base, _)| base <= op.addr);
                let inside = after > 0 && op.addr + u64::from(op.size) <= self.regions[after - 1].1;
                assert!(inside, "thread {thread}: {op:x?} lies in no region");
                assert!(op.size > 0, "thread {thread}: {op:x?} accesses nothing");
                self.pages.insert(op.addr >> 12);
            }
            _ => {}
        }
    }
}

/// Asserts that a workload does the same ops and gives the same answers whatever the order of its threads.
///
/// # Panics
/// When it does not, or breaks a rule as in [`run`].
pub fn assert_order_does_not_matter(make: impl Fn() -> Box<dyn Program>, limit: u64) -> Tally {
    let mut program = make();
    let tally = run(&mut *program, CallOrder::RoundRobin, limit);
    let answers = program.answers();
    for order in [
        CallOrder::OneByOne,
        CallOrder::Random(1),
        CallOrder::Random(2),
    ] {
        let mut again = make();
        assert_eq!(
            run(&mut *again, order, limit),
            tally,
            "{order:?} does other ops"
        );
        assert_eq!(again.answers(), answers, "{order:?} gives other answers");
    }
    tally
}

/// A digest of the regions, the answers and the first 100,000 ops, in the order in which threads give them in turn.
#[cfg(test)]
pub fn digest(program: &mut dyn Program) -> u64 {
    let (mut ops, mut digest) = (0, 0);
    let mut add = |word: u64| digest = varve_access::random::mix(digest ^ word);
    for region in program.regions() {
        region.name.bytes().for_each(|byte| add(byte.into()));
        [region.base, region.bytes].into_iter().for_each(&mut add);
    }
    each(program, CallOrder::RoundRobin, |thread, op| {
        ops += 1;
        if ops <= 100_000 {
            add(thread as u64 | (op.kind as u64) << 16 | u64::from(op.size) << 32);
            add(u64::from(op.dependent) | u64::from(op.instructions) << 32);
            add(op.addr);
        }
    });
    assert!(ops >= 100_000, "{}: {ops}", program.name());
    let said = format!("{} {:?}", program.name(), program.answers());
    said.bytes().for_each(|byte| add(byte.into()));
    digest
}
