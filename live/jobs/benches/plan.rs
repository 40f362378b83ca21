//! `cargo bench -p varve-jobs`: reading a group of twenty programs whose demands are known, planning it with all three
//! optimizations, and explaining the plan.
#![allow(
    missing_docs,
    reason = "criterion's macro makes a public function without"
)]

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use varve_jobs::class::Limits;
use varve_jobs::policy::place::Capacity;
use varve_jobs::{Demand, Group, Host, Memory, Point, Strategy, explain, group, plan};

/// Twenty programs of 1 to 5 GiB, every third one after another, as a user would write them.
fn text(at_once: u32) -> String {
    let program = |i: u64| {
        let after = match i % 3 {
            2 => format!("after = [\"p{}\"]\n", i - 1),
            _ => String::new(),
        };
        let gib = 1 + i % 5;
        format!(
            "[[program]]\nname = \"p{i}\"\nworkload = \"npb_mg:bytes={gib}GiB\"\nthreads = 16\n{after}"
        )
    };
    let head = format!("fast = \"24GiB\"\nat_once = {at_once}\n");
    (0..20).fold(head, |text, i| text + &program(i))
}

/// Demands of all kinds: bound by the processor, by the latency and by the bandwidth of either memory, measured with every number of
/// threads.
fn demands(group: &Group, cores: u32) -> Vec<Demand> {
    let demand = |(i, name): (u64, &str)| {
        let gib = 1 + i % 5;
        let point = |memory: Memory, threads: u32| {
            let most = match (memory, i % 3) {
                (_, 0) => cores,
                (Memory::Fast, _) => cores / 2,
                (Memory::Slow, _) => 2,
            };
            let slower = match (memory, i % 3) {
                (Memory::Slow, 1 | 2) => 3.0,
                _ => 1.0,
            };
            let seconds = slower * (10 + i) as f64 / f64::from(threads.min(most));
            Point {
                threads,
                seconds,
                read_gbps: Some(400.0 / seconds),
                write_gbps: Some((i % 4) as f64 * 50.0 / seconds),
                ..Point::default()
            }
        };
        Demand {
            name: name.into(),
            bytes: gib << 30,
            curves: Memory::ALL.map(|m| (1..=cores).map(|t| point(m, t)).collect()),
            ..Demand::default()
        }
    };
    let names = group.programs.iter().map(|p| p.name.as_str());
    (0..).zip(names).map(demand).collect()
}

fn benches(c: &mut Criterion) {
    for (at_once, cores) in [(1, 20), (0, 20), (0, 128)] {
        let text = text(at_once);
        let host = Host {
            name: "bench".into(),
            cores,
            capacity: Capacity {
                fast: 24 << 30,
                slow: 256 << 30,
            },
            limits: Limits {
                slow_write_gbps: Some(12.0),
            },
            alike: false,
        };
        let Ok(known) = group::parse(&text, "bench.toml") else {
            panic!("the group of the bench is wrong")
        };
        let demands = demands(&known, cores);
        let turns = match at_once {
            0 => "all at once".into(),
            n => format!("{n} at once in each memory"),
        };
        c.bench_function(&format!("plan, 20 programs, {turns}, {cores} cores"), |b| {
            b.iter(|| {
                let group = group::parse(black_box(&text), "bench.toml").ok()?;
                let plan = plan(&group, black_box(&demands), &host, Strategy::ALL).ok()?;
                Some(explain(&plan, &group, &host))
            });
        });
    }
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(20);
    targets = benches
}
criterion_main!(all);
