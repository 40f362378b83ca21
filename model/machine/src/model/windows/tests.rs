//! Results of windows against those of every request.

use crate::Machine;
use crate::model::replicas::tests::{Scattered, cycles, filled, program};
use crate::model::tests::Fixed;
use crate::model::{self, Backing, Options, Outcome};
use varve_access::{Kind, Op};

const INSTANCES: u32 = 16;

/// Runs with windows at other times.
const SEEDS: u64 = 4;

/// `seed`: of the windows; every request is run without one.
fn run(backing: Backing, ops: Vec<Op>, seed: Option<u64>) -> Outcome {
    let machine = Machine::load("optane-6242").unwrap();
    let mut pager = Scattered::on(&machine, backing);
    // A program that gives memory back has it zeroed beside itself, in the slow memory.
    pager.zeroes = ops.iter().any(|op| op.kind == Kind::Unmap);
    let mut program = Fixed::new(vec![ops]);
    let options = Options {
        replicas: INSTANCES,
        every_request: seed.is_none(),
        seed: seed.unwrap_or_default(),
        ..Options::default()
    };
    model::run(
        &machine,
        &mut pager,
        &mut [&mut program],
        &options,
        &mut |_| true,
    )
    .unwrap()
}

/// Lines that memory read and wrote, and the part of these that went to the media.
fn lines(out: &Outcome) -> [f64; 4] {
    let mut all = model::SocketCounts::default();
    for phase in &out.phases {
        all.add(&phase.memory());
    }
    let (dram, pm) = (all.dram, all.pm);
    [
        dram.reads + pm.reads,
        dram.writes + pm.writes,
        dram.activates + pm.media_reads,
        pm.media_writes,
    ]
    .map(|n| n as f64)
}

/// Long runs of several kinds: light and heavy loads, collections, and stores to new memory.
fn runs(n: usize) -> Vec<(&'static str, Vec<Op>)> {
    let of = |gap, writes| program(48 << 20, gap, writes, n, 7);
    let collecting = (0..n / 72_000 + 1).flat_map(|i| cycles(48 << 20, 100 + i as u64));
    let mut zeroing = collecting.clone().collect::<Vec<_>>();
    zeroing.insert(1, Op::new(Kind::Unmap, 1 << 32, 1, 0));
    vec![
        ("zeroing", zeroing),
        ("light", of(400, 0)),
        ("middling", of(40, 2)),
        ("heavy", of(8, 4)),
        ("collecting", collecting.collect()),
        ("filling", filled(4 * n as u64, 0)),
    ]
}

#[test]
fn windows_tell_what_every_request_tells() {
    let mut worst = [0.0f64; 5];
    let mut table = String::new();
    // DRAM is faster, and its runs have more to do.
    for (backing, n) in [(Backing::Dram, 500_000), (Backing::Pm, 150_000)] {
        for (name, ops) in runs(n) {
            let every = run(backing, ops.clone(), None);
            let counts = lines(&every);
            let mut off = [0.0; 5];
            // Which part of a cycle some twenty windows meet is chance: their mean must be right.
            for seed in 0..SEEDS {
                let windows = run(backing, ops.clone(), Some(seed));
                off[0] += (windows.ns as f64 / every.ns as f64 - 1.0) / SEEDS as f64;
                for (off, (a, b)) in off[1..].iter_mut().zip(lines(&windows).iter().zip(counts)) {
                    *off += if b == 0.0 {
                        0.0
                    } else {
                        (a / b - 1.0) / SEEDS as f64
                    };
                }
            }
            for (worst, off) in worst.iter_mut().zip(off) {
                *worst = worst.max(off.abs());
            }
            let ms = every.ns as f64 / 1e6;
            let off = off.map(|o| format!("{:+5.1}", 100.0 * o)).join(" ");
            table += &format!("{backing:?} {name:10} {ms:>7.1} ms  {off} %\n");
        }
    }
    println!("{table}off: time, reads, writes, media reads or rows, media writes");
    assert!(worst[0] < 0.05, "times are off by more than 5 %:\n{table}");
    assert!(
        worst.iter().all(|&off| off < 0.09),
        "counts are off by more than 9 %:\n{table}"
    );
}

/// Counts of a snapshot, a phase and the end of a run never go back, whenever they come.
#[test]
fn counts_grow_with_time() {
    let mut ops = program(48 << 20, 40, 2, 60_000, 3);
    for i in (1..60).rev() {
        ops.insert(1000 * i, Op::mark(Kind::Phase, i as u64));
    }
    let machine = Machine::load("optane-6242").unwrap();
    let mut pager = Scattered::on(&machine, Backing::Pm);
    let mut program = Fixed::new(vec![ops]);
    let options = Options {
        replicas: INSTANCES,
        snapshot_ns: 7_000,
        ..Options::default()
    };
    let out = model::run(
        &machine,
        &mut pager,
        &mut [&mut program],
        &options,
        &mut |_| true,
    )
    .unwrap();
    let reads: Vec<u64> = (out.activity.iter())
        .map(|sockets| {
            sockets
                .iter()
                .flatten()
                .filter_map(|c| c.pm)
                .map(|pm| pm.reads)
                .sum()
        })
        .collect();
    assert!(reads.is_sorted(), "{reads:?}");
    // Phases are the differences between two readings: together they are all.
    let last = out.ranks.iter().flatten().flatten();
    for rank in last {
        let all = rank.active + rank.standby + rank.powerdown + rank.selfrefresh;
        let off = all as f64 / (out.ns as f64 * 1e3) - 1.0;
        assert!(off.abs() < 0.01, "a rank was {off} longer than the run");
    }
}
