//! Costs of a policy to its caller on a machine of 1 TB: a fault and an unmap, a sample, a wake-up of the daemon. Run
//! with `cargo bench -p varve-pages`.
#![allow(
    missing_docs,
    reason = "criterion's macro makes a public function without"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use varve_access::{Fault, Pager, Sample, Source};
use varve_pages::{NodeFrames, Placement, Topology};

/// 1 TB of 2 MiB pages behind (or beside) 128 GB of DRAM.
fn terabyte(spec: &str) -> Topology {
    let node = |frames, fast, bins| NodeFrames {
        frames,
        fast,
        socket: 0,
        bins,
        ways: 1,
        dimms: 0,
    };
    let nodes = match spec {
        "hotset" => vec![node(64 << 10, true, None), node(512 << 10, false, None)],
        _ => vec![node(512 << 10, false, Some(64 << 10))],
    };
    Topology {
        page_bytes: 2 << 20,
        nodes,
    }
}

fn touch(vpn: u64) -> Fault {
    Fault {
        vpn,
        thread: 0,
        socket: 0,
        write: true,
        now: 0,
    }
}

/// A machine with half of its memory in use, and the frame of each page.
fn half_full(spec: &str) -> (Placement, Vec<u32>) {
    let mut placement = Placement::on(spec, terabyte(spec)).expect("the policy fits");
    let pages = 256 << 10;
    let frames = (0..pages).map(|vpn| placement.fault(&touch(vpn)).expect("there is room"));
    let frames = frames.collect();
    (placement, frames)
}

/// A page number from a counter, well spread (the multiplier is odd, so that it visits all).
fn spread(i: u64, pages: usize) -> usize {
    (i.wrapping_mul(0x9E37_79B1) % pages as u64) as usize
}

fn faults(c: &mut Criterion) {
    let mut group = c.benchmark_group("fault+unmap");
    group.throughput(Throughput::Elements(1));
    for spec in ["first-touch", "random", "static", "dynamic", "hotset"] {
        let (mut placement, mut frames) = half_full(spec);
        let mut i = 0;
        group.bench_function(spec, |b| {
            b.iter(|| {
                i += 1;
                let vpn = spread(i, frames.len());
                placement.unmap(vpn as u64, frames[vpn]);
                frames[vpn] = placement.fault(&touch(vpn as u64)).expect("there is room");
            });
        });
    }
    group.finish();
}

fn samples(c: &mut Criterion) {
    let mut group = c.benchmark_group("sample");
    group.throughput(Throughput::Elements(1));
    for spec in ["dynamic", "hotset"] {
        let (mut placement, frames) = half_full(spec);
        let mut i = 0;
        group.bench_function(spec, |b| {
            b.iter(|| {
                i += 1;
                let vpn = spread(i, frames.len());
                let source = if i % 2 == 0 {
                    Source::Slow
                } else {
                    Source::Store
                };
                let (vpn, frame) = (vpn as u64, frames[vpn]);
                placement.sample(&Sample {
                    vpn,
                    frame,
                    source,
                    thread: 0,
                    now: 0,
                });
            });
        });
    }
    group.finish();
}

fn ticks(c: &mut Criterion) {
    let mut group = c.benchmark_group("tick");
    for spec in ["dynamic", "hotset"] {
        let (mut placement, _) = half_full(spec);
        let mut moves = Vec::new();
        group.bench_function(format!("{spec}, nothing to do"), |b| {
            b.iter(|| {
                placement.tick(0, &mut moves);
                black_box(moves.len())
            });
        });
        // 40 pages are made hot: each shares a bin with a hot one, or is in slow memory.
        group.bench_function(format!("{spec}, 40 pages to move"), |b| {
            b.iter_batched_ref(
                || {
                    let (mut placement, frames) = half_full(spec);
                    for vpn in (0..40).chain(65_536..65_576) {
                        let frame = frames[vpn as usize];
                        for _ in 0..8 {
                            let source = Source::Slow;
                            placement.sample(&Sample {
                                vpn,
                                frame,
                                source,
                                thread: 0,
                                now: 0,
                            });
                        }
                    }
                    (placement, Vec::new())
                },
                |(placement, moves)| {
                    placement.tick(0, moves);
                    assert!(moves.len() >= 40);
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = faults, samples, ticks
}
criterion_main!(benches);
