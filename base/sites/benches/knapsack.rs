//! `cargo bench -p varve-sites`: choosing cold sites among those of large programs (tradesoap has 16 266: Olson et al.,
//! TACO 2018, table 3), and among 100 000.
#![allow(
    missing_docs,
    reason = "criterion's macro makes a public function without"
)]

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use varve_sites::classify::cold_by_knapsack;
use varve_sites::knapsack::{Item, fast};
use varve_sites::{Counts, Key, Profile, SiteProfile};

/// Sites as programs have them: a few with most of the bytes, and others with most of the accesses (both fall with their rank).
fn items(sites: u64) -> Vec<Item> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = |below: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % below
    };
    let mut item = |rank: u64| Item {
        value: 1 + (1 << 34) / (rank + 1) / (1 + draw(100)),
        weight: {
            let rank = draw(sites);
            draw(1 + (1 << 36) / (1 + rank))
        },
    };
    (0..sites).map(&mut item).collect()
}

fn profile(sites: u64) -> Profile {
    let site = |(nth, i): (usize, Item)| SiteProfile {
        key: Key {
            function: format!("f{nth}"),
            ..Key::default()
        },
        counts: Counts {
            objects: 1,
            bytes: i.value,
            reads: i.weight,
            ..Counts::default()
        },
        ..SiteProfile::default()
    };
    Profile {
        program: "bench".into(),
        sites: items(sites).into_iter().enumerate().map(site).collect(),
    }
}

fn benches(c: &mut Criterion) {
    let program = profile(16_000);
    for capacity in [0.01, 0.05, 0.2] {
        c.bench_function(&format!("knapsack, 16 000 sites, {capacity}"), |b| {
            b.iter(|| cold_by_knapsack(black_box(&program), capacity));
        });
    }
    let many = items(100_000);
    let capacity = many.iter().map(|i| i.weight).sum::<u64>() / 20;
    c.bench_function("fast knapsack, 100 000 sites, 0.05", |b| {
        b.iter(|| fast(black_box(&many), capacity));
    });
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(10);
    targets = benches
}
criterion_main!(all);
