//! Whole-model tests: stories about programs on machines.

use crate::Machine;
use crate::model::{self, Options, Outcome};
use varve_access::{Daemons, Fault, Kind, Op, OutOfFrames, Pager, Program, Sample};

/// Frames in the order of their first touch.
pub struct InOrder {
    pub page_bytes: u64,
    pub next: u32,
}

impl Pager for InOrder {
    fn page_bytes(&self) -> u64 {
        self.page_bytes
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.next += 1;
        Ok(self.next - 1)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

/// Threads that each run a fixed list of ops.
pub struct Fixed(pub Vec<Vec<Op>>, Vec<usize>);

impl Fixed {
    pub fn new(threads: Vec<Vec<Op>>) -> Fixed {
        let n = threads.len();
        Fixed(threads, vec![0; n])
    }
}

impl Program for Fixed {
    fn name(&self) -> String {
        "fixed".into()
    }
    fn threads(&self) -> usize {
        self.0.len()
    }
    fn fill(&mut self, t: usize, _: u64, out: &mut Vec<Op>) -> bool {
        let from = self.1[t];
        let to = (from + 300).min(self.0[t].len());
        out.extend_from_slice(&self.0[t][from..to]);
        self.1[t] = to;
        to < self.0[t].len()
    }
}

fn run(machine: &str, page_bytes: u64, threads: Vec<Vec<Op>>) -> Outcome {
    let m = Machine::load(machine).unwrap();
    let mut pager = InOrder {
        page_bytes,
        next: 0,
    };
    let mut program = Fixed::new(threads);
    model::run(
        &m,
        &mut pager,
        &mut [&mut program],
        &Options::default(),
        &mut |_| true,
    )
    .unwrap()
}

fn random(kind: Kind, bytes: u64, n: usize, seed: u64) -> Vec<Op> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            Op::new(
                kind,
                (1 << 32) + (((x >> 33) * (bytes >> 6)) >> 31 << 6),
                8,
                8,
            )
        })
        .collect()
}

#[test]
fn sixteen_threads_share_the_bandwidth_and_nobody_starves() {
    for kind in [Kind::Read, Kind::Update, Kind::Write, Kind::NtWrite] {
        let threads = (1..=16).map(|t| random(kind, 1 << 30, 4000, t)).collect();
        let out = run("optane-6230-memory-mode", 2 << 20, threads);
        let slowest = *out.thread_ns.iter().max().unwrap() as f64;
        let fastest = *out.thread_ns.iter().min().unwrap() as f64;
        // 64,000 lines of 64 B at no more than a few GB/s of partial PM writes.
        assert!(slowest < 20e6, "{kind:?}: {slowest} ns");
        assert!(
            slowest / fastest < 1.2,
            "{kind:?}: {fastest} to {slowest} ns"
        );
    }
}

/// `ops`, each of `instructions`, with a wait for its data behind it.
fn one_by_one(ops: &[Op], instructions: u32) -> Vec<Op> {
    let wait = Op::mark(Kind::Fence, Op::LOADS);
    ops.iter()
        .flat_map(|&op| [Op { instructions, ..op }, wait])
        .collect()
}

#[test]
fn an_access_with_a_wait_behind_it_takes_its_latency_and_its_instructions() {
    let (n, instructions) = (2000, 500);
    let m = Machine::load("optane-6230").unwrap();
    let ops = random(Kind::Read, 1 << 30, n, 1);
    // Latency alone: each access waits for the one before, and no instruction passes.
    let chain = ops.iter().map(|op| {
        let op = Op {
            instructions: 0,
            ..*op
        };
        op.after_load()
    });
    let latency = run("optane-6230", 2 << 20, vec![chain.collect()]).ns as f64;
    let work = n as f64 * f64::from(instructions) / (m.core.ghz * m.core.ipc);
    let both = run("optane-6230", 2 << 20, vec![one_by_one(&ops, instructions)]).ns as f64;
    assert!(
        latency > 0.3 * work && work > 0.3 * latency,
        "{latency} {work}"
    );
    assert!(
        (both / (latency + work) - 1.0).abs() < 0.02,
        "{both} {latency} {work}"
    );
}

#[test]
fn one_access_in_flight_is_never_faster_than_many() {
    for machine in ["optane-6230", "optane-6230-memory-mode"] {
        for (kind, threads) in [(Kind::Read, 1), (Kind::Update, 1), (Kind::Update, 16)] {
            let ops = |t| random(kind, 1 << 30, 2000, t);
            let many = run(machine, 2 << 20, (1..=threads).map(ops).collect());
            let alone = (1..=threads).map(|t| one_by_one(&ops(t), 8)).collect();
            let one = run(machine, 2 << 20, alone);
            assert!(
                one.ns >= many.ns,
                "{machine} {kind:?}: {} {}",
                one.ns,
                many.ns
            );
        }
    }
}

/// Counts the samples of its pages, one in 7 accesses.
struct Sampled(InOrder, Vec<u64>);

impl Pager for Sampled {
    fn page_bytes(&self) -> u64 {
        self.0.page_bytes()
    }
    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        self.0.fault(fault)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
    fn daemons(&self) -> Daemons {
        Daemons {
            sample_period: 7,
            ..Daemons::default()
        }
    }
    fn sample(&mut self, sample: &Sample) {
        self.1.push(sample.vpn);
    }
}

#[test]
fn sampling_sees_the_program_and_not_the_kernel() {
    let zeroing = |at: u64| (0..1000u64).map(move |i| Op::write(at + 64 * i, 64, 3));
    let run = |ops: Vec<Op>| {
        let m = Machine::load("optane-6230").unwrap();
        let in_order = InOrder {
            page_bytes: 2 << 20,
            next: 0,
        };
        let mut pager = Sampled(in_order, Vec::new());
        let mut program = Fixed::new(vec![ops]);
        let options = Options::default();
        model::run(&m, &mut pager, &mut [&mut program], &options, &mut |_| true).unwrap();
        pager.1
    };
    let (kernel, program) = (Op::mark(Kind::Kernel, 1), Op::mark(Kind::Kernel, 0));
    let (first, second) = (1u64 << 32, 1u64 << 33);
    let alone = run(zeroing(second).collect());
    // Entered twice, left twice: nothing is counted twice.
    let mut ops = vec![kernel, kernel];
    ops.extend(zeroing(first));
    ops.extend([program, program]);
    ops.extend(zeroing(second));
    assert_eq!(run(ops.clone()), alone);
    // Each line is loaded, and each store counts.
    assert!(alone.len() >= 1000 / 7, "{}", alone.len());
    ops.retain(|op| op.kind != Kind::Kernel);
    assert!(run(ops).len() > alone.len() + 1000 / 8);
}

/// Frames of slow memory, of which freed ones are zeroed beside the program, or not at all.
struct Recycled {
    first: u32,
    free: Vec<u32>,
    dirty: Vec<u32>,
    zeroes: bool,
    last: Option<u32>,
}

impl Pager for Recycled {
    fn page_bytes(&self) -> u64 {
        4096
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.last = None;
        if let Some(frame) = self.free.pop() {
            return Ok(self.first + frame);
        }
        self.last = self.dirty.pop();
        let none = OutOfFrames {
            pages: 0,
            page_bytes: 4096,
        };
        self.last.ok_or(none)
    }
    fn unmap(&mut self, _: u64, frame: u32) {
        self.dirty.push(frame);
    }
    fn to_zero(&mut self) -> Option<u32> {
        self.zeroes.then(|| self.dirty.pop()).flatten()
    }
    fn zeroed(&mut self, frame: u32) {
        self.free.push(frame - self.first);
    }
    fn is_dirty(&self, frame: u32) -> bool {
        self.last == Some(frame)
    }
}

/// A thread that touches a page and frees it, over and over, with a gap of `gap` in between.
fn recycle(zeroes: bool, gap: u64) -> Outcome {
    let m = Machine::load("optane-6242").unwrap();
    let slow = model::nodes(&m)
        .into_iter()
        .find(|n| n.backing == model::Backing::Pm);
    let mut pager = Recycled {
        first: (slow.unwrap().base / 4096) as u32,
        free: vec![0],
        dirty: Vec::new(),
        zeroes,
        last: None,
    };
    let mut ops = Vec::new();
    for _ in 0..50 {
        ops.push(Op::write(1 << 32, 8, 10));
        ops.push(Op::new(Kind::Unmap, 1 << 32, 1, 0));
        ops.push(Op::mark(Kind::Sleep, gap));
    }
    let mut program = Fixed::new(vec![ops]);
    let options = Options::default();
    model::run(&m, &mut pager, &mut [&mut program], &options, &mut |_| true).unwrap()
}

#[test]
fn pages_are_zeroed_beside_the_program_or_by_it() {
    // A page is zeroed in a quarter of a millisecond.
    let gap = 400_000;
    let (beside, itself) = (recycle(true, gap), recycle(false, gap));
    let moves = |o: &Outcome| {
        (
            o.last().moves.zeroed / 4096,
            o.last().moves.zeroed_late / 4096,
        )
    };
    // The last one may still be under way.
    assert!(
        matches!(moves(&beside), (49 | 50, 0)),
        "{:?}",
        moves(&beside)
    );
    assert_eq!(moves(&itself), (0, 49));
    // 64 lines to a page, and a write for each that memory keeps.
    let written = |o: &Outcome| o.last().memory().pm.writes;
    assert!(written(&beside) >= 49 * 64 && written(&itself) >= 49 * 64);
    // The program waits for its own until the controllers have taken it: their queues hold most of a page.
    let lost = |o: &Outcome| o.last().stalls.system;
    let longer = (lost(&itself) - lost(&beside)) / 1000 / 49;
    assert!((50..2000).contains(&longer), "{longer} ns a page");
    assert!(itself.ns > beside.ns);
}

/// At most this number of frames.
struct Few(InOrder, u32);

impl Pager for Few {
    fn page_bytes(&self) -> u64 {
        self.0.page_bytes()
    }
    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        if self.0.next == self.1 {
            return Err(OutOfFrames {
                pages: self.1.into(),
                page_bytes: self.page_bytes(),
            });
        }
        self.0.fault(fault)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

#[test]
fn memory_that_is_full_ends_the_run_wherever_it_is() {
    let m = Machine::load("optane-6242").unwrap();
    for kind in [
        Kind::Read,
        Kind::Write,
        Kind::Fetch,
        Kind::NtWrite,
        Kind::Flush,
    ] {
        for frames in [0, 1, 5, 40, 200] {
            let inner = InOrder {
                page_bytes: 4096,
                next: 0,
            };
            let mut pager = Few(inner, frames);
            let mut program = Fixed::new(vec![random(kind, 1 << 30, 600, 7); 2]);
            let ended = model::run(
                &m,
                &mut pager,
                &mut [&mut program],
                &Options::default(),
                &mut |_| true,
            );
            let full = OutOfFrames {
                pages: frames.into(),
                page_bytes: 4096,
            };
            assert_eq!(ended.err(), Some(model::RunError::OutOfFrames(full)));
        }
    }
}

/// A thread whose ops are of code by turns: `each` of one, then of the next.
struct ByTurns {
    ops: Fixed,
    each: usize,
    codes: u32,
    /// Ops that it gave before the last, and with them.
    before: usize,
    after: usize,
}

impl Program for ByTurns {
    fn name(&self) -> String {
        self.ops.name()
    }
    fn threads(&self) -> usize {
        1
    }
    fn fill(&mut self, t: usize, now: u64, out: &mut Vec<Op>) -> bool {
        let goes_on = self.ops.fill(t, now, out);
        (self.before, self.after) = (self.after, self.after + out.len());
        goes_on
    }
    fn code(&mut self, _: usize, steps: &mut Vec<(u32, u32)>) {
        let turns = (self.before..self.after).filter(|at| at % self.each == 0);
        steps.extend(turns.map(|at| {
            let code = (at / self.each) as u32 % self.codes + 1;
            ((at - self.before) as u32, code)
        }));
    }
}

/// All memory is one owner's.
struct One;

impl model::Owners for One {
    fn owner(&mut self, _: u64) -> u32 {
        3
    }
}

#[test]
fn the_code_waits_that_asked_for_the_line() {
    // Turns of 1000 ops that chase pointers all over memory, and of 1000 that stay in the first level.
    let chase = random(Kind::Read, 1 << 30, 20_000, 7);
    let near = (0..20_000).map(|at| Op::read((1 << 32) + at % 8 * 64, 8, 8));
    let mut ops: Vec<Op> = chase.into_iter().map(Op::after_load).collect();
    for (at, op) in near.enumerate().filter(|(at, _)| at / 1000 % 2 == 1) {
        ops[at] = op;
    }
    let m = Machine::load("optane-6230").unwrap();
    let run = |each, owners: bool| {
        let mut pager = InOrder {
            page_bytes: 4096,
            next: 0,
        };
        let mut program = ByTurns {
            ops: Fixed::new(vec![ops.clone()]),
            each,
            codes: 2,
            before: 0,
            after: 0,
        };
        let programs: &mut [&mut dyn Program] = &mut [&mut program];
        let options = Options::default();
        match owners {
            true => {
                model::run_by_owner(&m, &mut pager, programs, &options, &mut One, &mut |_| true)
            }
            false => model::run(&m, &mut pager, programs, &options, &mut |_| true),
        }
        .unwrap()
    };
    let told = run(1000, true);
    let all: u64 = told.owners.iter().map(|counts| counts.stall_ps).sum();
    assert_eq!(told.code.iter().sum::<u64>(), all);
    assert!(told.code[1] > 99 * told.code[2], "{:?}", told.code);
    // Code that changes with every op waits for half of the time each.
    let mixed = run(1, true);
    let [_, odd, even] = mixed.code[..] else {
        panic!("{:?}", mixed.code)
    };
    assert_eq!(odd + even, all);
    assert!(odd.abs_diff(even) < all / 20, "{odd} and {even}");
    let plain = run(1000, false);
    assert!(plain.code.is_empty());
    assert_eq!(
        plain.ns, told.ns,
        "who is asked about is as slow as who is not"
    );
}
