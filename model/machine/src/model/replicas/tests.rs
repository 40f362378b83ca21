//! Results of replication against those of runs of every instance.

use super::share;
use crate::Machine;
use crate::model::Backing;
use crate::model::tests::Fixed;
use crate::model::{self, Options, nodes};
use varve_access::{Fault, Kind, Op, OutOfFrames, Pager, Program};

const PAGE: u64 = 2 << 20;

/// Frames of one node, drawn by chance as a system that has run for a while hands them out.
pub struct Scattered {
    first: u64,
    frames: u64,
    drawn: u64,
    /// Whether frames wait to be zeroed, all the time.
    pub zeroes: bool,
}

impl Scattered {
    pub fn on(machine: &Machine, backing: Backing) -> Scattered {
        let all = nodes(machine);
        let node = all.iter().find(|n| n.backing == backing).unwrap();
        Scattered {
            first: node.base / PAGE,
            frames: node.bytes / PAGE,
            drawn: 0,
            zeroes: false,
        }
    }
}

impl Pager for Scattered {
    fn page_bytes(&self) -> u64 {
        PAGE
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        // An odd step through all frames meets each of them once.
        self.drawn = (self.drawn + 40_503) % self.frames;
        Ok((self.first + self.drawn) as u32)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
    fn to_zero(&mut self) -> Option<u32> {
        if !self.zeroes {
            return None;
        }
        self.drawn = (self.drawn + 40_503) % self.frames;
        Some((self.first + self.drawn) as u32)
    }
}

/// Reads and writes by chance over `bytes`, `gap` instructions apart, with a run of neighbours now and then.
pub fn program(bytes: u64, gap: u32, writes: u64, n: usize, seed: u64) -> Vec<Op> {
    let mut x = seed;
    let mut ops = Vec::new();
    while ops.len() < n {
        x = super::scatter(x);
        let at = (1 << 32) + x % bytes / 64 * 64;
        let kind = match x >> 32 & 7 {
            k if k < writes => Kind::Write,
            _ => Kind::Read,
        };
        let run = if x >> 40 & 15 == 0 { 16 } else { 1 };
        ops.extend((0..run).map(|i| Op::new(kind, at + 64 * i, 8, gap)));
    }
    ops
}

/// A program that works a while with few accesses, and then collects with many, again and again.
pub fn cycles(bytes: u64, seed: u64) -> Vec<Op> {
    let mut ops = Vec::new();
    for cycle in 0..12 {
        ops.extend(program(bytes, 400, 1, 4_000, seed * 64 + 2 * cycle));
        ops.extend(program(bytes, 8, 4, 2_000, seed * 64 + 2 * cycle + 1));
        ops.push(Op::mark(Kind::Cycle, 0));
    }
    ops
}

/// Mean time of an instance, ns: of all when they run, and of the one that stands for all.
fn both(backing: Backing, instances: u32, of: impl Fn(u64) -> Vec<Op>) -> (f64, f64) {
    let machine = Machine::load("optane-6242").unwrap();
    let make = |i: u64| Fixed::new(vec![of(i + 1)]);
    let run = |programs: &mut [Fixed], replicas: u32| {
        let mut all: Vec<&mut dyn Program> = Vec::new();
        all.extend(programs.iter_mut().map(|p| p as &mut dyn Program));
        let options = Options {
            replicas,
            // Windows have tests of their own.
            every_request: true,
            instances_apart: true,
            ..Options::default()
        };
        let mut pager = Scattered::on(&machine, backing);
        let out = model::run(&machine, &mut pager, &mut all, &options, &mut |_| true).unwrap();
        out.thread_ns.iter().sum::<u64>() as f64 / out.thread_ns.len() as f64
    };
    let mut every: Vec<Fixed> = (0..u64::from(instances)).map(make).collect();
    (run(&mut every, 1), run(&mut [make(0)], instances))
}

/// A program by name: its ops, by the number of its instance.
type Named<'a> = (&'a str, &'a dyn Fn(u64) -> Vec<Op>);

/// On both kinds of memory, `instances` instances of each program take as long as one with replicas, within a part
/// `most`.
fn as_long_as_they(instances: [u32; 3], programs: &[Named], most: f64) {
    let mut worst: f64 = 0.0;
    let mut table = String::new();
    for backing in [Backing::Dram, Backing::Pm] {
        for instances in instances {
            for (what, of) in programs {
                let (every, one) = both(backing, instances, of);
                let off = one / every - 1.0;
                worst = worst.max(off.abs());
                table += &format!(
                    "{backing:?} {instances:>2} instances{what}: {every:>9.0} ns and {one:>9.0} ns, {:+.1} %\n",
                    100.0 * off
                );
            }
        }
    }
    println!("{table}");
    assert!(
        worst < most,
        "replication is off by more than {} %:\n{table}",
        100.0 * most
    );
}

#[test]
fn one_instance_in_the_place_of_many_takes_as_long_as_they() {
    let of = |gap, writes| move |seed| program(48 << 20, gap, writes, 16_000, seed);
    let programs: [Named; 3] = [
        (", 400 instructions, 0/8 writes", &of(400, 0)),
        (",  40 instructions, 2/8 writes", &of(40, 2)),
        (",   8 instructions, 4/8 writes", &of(8, 4)),
    ];
    as_long_as_they([4, 16, 32], &programs, 0.15);
}

#[test]
fn instances_that_collect_do_so_at_different_times_whether_run_or_not() {
    as_long_as_they([2, 8, 16], &[("", &|seed| cycles(48 << 20, seed))], 0.15);
}

/// A program that stores to new memory, line after line, as a nursery is filled.
pub fn filled(lines: u64, seed: u64) -> Vec<Op> {
    let from = (1 << 32) + (seed << 28);
    (0..lines)
        .map(|i| Op::new(Kind::Write, from + 64 * i, 8, 60))
        .collect()
}

/// Lines of one media line leave the caches after one another. How many of them combine depends on how many wait to
/// leave, which is no more for the instances that are not run.
#[test]
fn stores_of_instances_that_are_not_run_combine_as_others_do() {
    let lines = (24 << 20) / 64;
    as_long_as_they([2, 8, 16], &[("", &|seed| filled(lines, seed))], 0.2);
}

#[test]
fn a_shared_cache_is_divided_among_those_on_its_socket() {
    assert_eq!(share(22 << 20, 1, false, 2), 22 << 20);
    assert_eq!(share(22 << 20, 4, false, 2), (22 << 20) / 4);
    assert_eq!(share(22 << 20, 4, true, 2), (22 << 20) / 2);
    assert_eq!(share(22 << 20, 5, true, 2), (22 << 20) / 3);
}
