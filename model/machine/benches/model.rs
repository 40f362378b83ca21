//! Accesses per second of the model: a stream that stays in the caches, random lines through the full path, a stream
//! behind the caches, and many threads. Run with `cargo bench -p varve-machine`.
#![allow(
    missing_docs,
    reason = "criterion's macro makes a public function without"
)]

mod pattern;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pattern::{InOrder, Pattern};
use varve_access::Kind;
use varve_machine::Machine;
use varve_machine::model::{self, Options};

/// Accesses of one run: enough that setting the machine up does not count.
const ACCESSES: u64 = 2_000_000;

fn accesses(c: &mut Criterion) {
    let mut group = c.benchmark_group("accesses");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(ACCESSES));
    let flat = "optane-6230";
    let cached = "optane-6230-memory-mode";
    // Name, machine, page, footprint, step (0 is random), kind, threads.
    let cases = [
        (
            "resident stream",
            cached,
            2 << 20,
            16 << 10,
            8,
            Kind::Read,
            1,
        ),
        ("random, flat", flat, 2 << 20, 1 << 30, 0, Kind::Read, 1),
        (
            "random, memory mode",
            cached,
            2 << 20,
            1 << 30,
            0,
            Kind::Read,
            1,
        ),
        (
            "random, 4 KiB pages",
            cached,
            4096,
            1 << 30,
            0,
            Kind::Read,
            1,
        ),
        ("stream, flat", flat, 2 << 20, 1 << 30, 8, Kind::Read, 1),
        (
            "behind the caches",
            cached,
            2 << 20,
            1 << 30,
            64,
            Kind::NtWrite,
            1,
        ),
        (
            "updates, 16 threads",
            cached,
            2 << 20,
            1 << 30,
            0,
            Kind::Update,
            16,
        ),
        (
            "updates, 96 GiB, 16 threads",
            cached,
            2 << 20,
            96 << 30,
            0,
            Kind::Update,
            16,
        ),
    ];
    for (name, machine, page_bytes, bytes, step, kind, threads) in cases {
        let machine = Machine::load(machine).expect("a built-in machine");
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut program = Pattern::new(bytes, step, kind, threads, ACCESSES);
                let mut pager = InOrder {
                    page_bytes,
                    next: 0,
                };
                let options = Options::default();
                model::run(
                    &machine,
                    &mut pager,
                    &mut [&mut program],
                    &options,
                    &mut |_| true,
                )
                .expect("the pattern fits the machine")
            })
        });
    }
    group.finish();
}

criterion_group!(benches, accesses);
criterion_main!(benches);
