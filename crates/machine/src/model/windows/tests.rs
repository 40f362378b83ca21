//! What windows say beside what every request says.

use crate::model::replicas::tests::{Scattered, cycles, program};
use crate::model::tests::Fixed;
use crate::model::{self, Backing, Options, Outcome};
use crate::{Kind, Machine, Op};

const INSTANCES: u32 = 16;

fn run(backing: Backing, ops: Vec<Op>, every_request: bool) -> Outcome {
    let machine = Machine::load("optane-6242").unwrap();
    let mut pager = Scattered::on(&machine, backing);
    let mut program = Fixed::new(vec![ops]);
    let options = Options {
        replicas: INSTANCES,
        every_request,
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

/// Lines that memory read and wrote, and what of these went to the media.
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

/// Long runs of several kinds: light and heavy loads, and collections.
fn runs(n: usize) -> Vec<(&'static str, Vec<Op>)> {
    let of = |gap, writes| program(48 << 20, gap, writes, n, 7);
    let collecting = (0..n / 72_000 + 1).flat_map(|i| cycles(48 << 20, 100 + i as u64));
    vec![
        ("light", of(400, 0)),
        ("middling", of(40, 2)),
        ("heavy", of(8, 4)),
        ("collecting", collecting.collect()),
    ]
}

#[test]
fn windows_tell_what_every_request_tells() {
    let mut worst = [0.0f64; 5];
    let mut table = String::new();
    for backing in [Backing::Dram, Backing::Pm] {
        for (name, ops) in runs(150_000) {
            let every = run(backing, ops.clone(), true);
            let windows = run(backing, ops, false);
            let times = windows.ns as f64 / every.ns as f64 - 1.0;
            let (a, b) = (lines(&windows), lines(&every));
            let mut off = [times, 0.0, 0.0, 0.0, 0.0];
            for i in 0..4 {
                off[i + 1] = if b[i] == 0.0 { 0.0 } else { a[i] / b[i] - 1.0 };
            }
            for i in 0..5 {
                worst[i] = worst[i].max(off[i].abs());
            }
            let off = off.map(|o| format!("{:+.1}", 100.0 * o)).join(" ");
            table += &format!(
                "{backing:?} {name:10} {:>7.1} ms  {off} %\n",
                every.ns as f64 / 1e6
            );
        }
    }
    println!("{table}time, reads, writes, media reads or rows, media writes");
    assert!(
        worst.iter().all(|&off| off < 0.05),
        "windows are off by more than 5 %:\n{table}"
    );
}

/// What a snapshot, a phase and the end of a run say never goes back, whenever they come.
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
    // Phases are what lies between two readings: together all.
    let last = out.ranks.iter().flatten().flatten();
    for rank in last {
        let all = rank.active + rank.standby + rank.powerdown + rank.selfrefresh;
        let off = all as f64 / (out.ns as f64 * 1e3) - 1.0;
        assert!(off.abs() < 0.001, "a rank was {off} longer than the run");
    }
}

#[test]
fn scratch() {
    let big = |k: u64, seed: u64| {
        let mut ops = Vec::new();
        for cycle in 0..12 {
            ops.extend(program(
                48 << 20,
                400,
                1,
                4_000 * k as usize,
                seed * 64 + 2 * cycle,
            ));
            ops.extend(program(
                48 << 20,
                8,
                4,
                2_000 * k as usize,
                seed * 64 + 2 * cycle + 1,
            ));
            ops.push(Op::mark(Kind::Cycle, 0));
        }
        ops
    };
    for seed in [7, 8, 9] {
        for (name, ops) in [
            ("middling", program(48 << 20, 40, 2, 300_000, seed)),
            ("cycles x4", big(4, seed)),
            ("cycles x16", big(16, seed)),
        ] {
            let every = run(Backing::Pm, ops.clone(), true);
            let windows = run(Backing::Pm, ops, false);
            println!(
                "{name} {seed} every {:.2} ms windows {:.2} ms  {:+.1} %",
                every.ns as f64 / 1e6,
                windows.ns as f64 / 1e6,
                100.0 * (windows.ns as f64 / every.ns as f64 - 1.0)
            );
        }
    }
}
