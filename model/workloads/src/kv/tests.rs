//! The store under YCSB, held to a sorted map and to itself.

use std::collections::BTreeMap;

use super::super::tree::{first_value, key_of};
use super::*;
use crate::harness::{self, CallOrder, Tally};

const LIMIT: u64 = 1 << 26;

fn make(text: &str) -> Ycsb {
    Ycsb::new(&ENTRY.values(text).unwrap()).unwrap()
}

fn run(text: &str) -> (Ycsb, Tally) {
    let mut ycsb = make(text);
    let tally = harness::run(&mut ycsb, CallOrder::RoundRobin, LIMIT);
    assert_eq!(ycsb.failure(), None);
    (ycsb, tally)
}

/// The expected contents of the store after a run without inserts, by a sorted map and the same random numbers.
fn reference(ycsb: &Ycsb, requests: u64) -> BTreeMap<u64, u64> {
    let mut map: BTreeMap<u64, u64> = (0..ycsb.items)
        .map(|record| (key_of(record), first_value(record)))
        .collect();
    for thread in 0..ycsb.threads.len() {
        let mut rng = Rng::new(1, thread as u64);
        for _ in 0..requests {
            let reads_only = rng.below(100) < ycsb.percent[READ];
            let record = ycsb.scramble.at(ycsb.zipf.draw(&mut rng));
            if !reads_only {
                let value = map.get_mut(&key_of(record)).unwrap();
                *value = value.wrapping_add(rng.bits());
            }
        }
    }
    map
}

fn contents(ycsb: &Ycsb) -> BTreeMap<u64, u64> {
    let Tree::Real(tree, words) = &ycsb.tree else {
        panic!("no real tree")
    };
    tree.entries()
        .into_iter()
        .map(|(key, item)| (key, words[item as usize]))
        .collect()
}

#[test]
fn the_store_ends_as_a_sorted_map_does() {
    for mix in ["A", "B", "C", "F"] {
        for load in ["touch", "inserts"] {
            let text = format!("items=20k,tree=real,threads=3,requests=3k,mix={mix},load={load}");
            let (ycsb, _) = run(&text);
            assert!(contents(&ycsb) == reference(&ycsb, 3000), "{text}");
        }
    }
}

#[test]
fn latest_requests_find_what_was_inserted() {
    let (ycsb, tally) = run("items=10k,tree=real,threads=4,requests=5k,mix=D");
    let inserted = tally.requests[&(INSERT as u64)];
    assert!((850..1150).contains(&inserted), "{inserted}");
    let keys: Vec<u64> = contents(&ycsb).into_keys().collect();
    let mut want: Vec<u64> = (0..10_000 + inserted).map(key_of).collect();
    want.sort_unstable();
    assert_eq!(keys, want);
}

#[test]
fn order_does_not_matter() {
    for (items, rest) in [
        ("3k", "mix=A,tree=real"),
        ("3k", "mix=F,tree=real"),
        ("5M", "mix=C"),
    ] {
        let text = format!("items={items},threads=3,requests=500,{rest}");
        harness::assert_order_does_not_matter(|| Box::new(make(&text)), LIMIT);
    }
}

#[test]
fn requests_come_in_the_shares_of_the_mix() {
    for (mix, want) in [
        ("A", [50, 50, 0, 0]),
        ("B", [95, 5, 0, 0]),
        ("F", [50, 0, 0, 50]),
    ] {
        let (_, tally) = run(&format!("items=1M,threads=2,requests=20k,mix={mix}"));
        for (class, percent) in want.into_iter().enumerate() {
            let got = tally.requests.get(&(class as u64)).copied().unwrap_or(0);
            assert!(
                got.abs_diff(percent * 400) < 600,
                "{mix} class {class}: {got}"
            );
        }
    }
}

/// The implicit tree stands for the real one: depth, memory and accesses agree at a size that both can have.
#[test]
fn the_implicit_tree_is_like_the_real_one() {
    for mix in ["A", "C", "D", "F"] {
        let common = format!("items=300k,threads=2,requests=10k,mix={mix}");
        let (real, by_real) = run(&format!("{common},tree=real"));
        let (implicit, by_implicit) = run(&format!("{common},tree=implicit"));
        assert_eq!(real.tree.levels(), implicit.tree.levels());
        let close = |what: &str, a: u64, b: u64| {
            let ratio = a as f64 / b as f64;
            assert!(
                (ratio - 1.0).abs() < 0.03,
                "{mix}: {what}: real {a}, implicit {b}"
            );
        };
        close("nodes", real.tree.nodes(), implicit.tree.nodes());
        close("accesses", by_real.accesses(), by_implicit.accesses());
        close(
            "instructions",
            by_real.instructions,
            by_implicit.instructions,
        );
        close("pages", by_real.pages, by_implicit.pages);
        for kind in [Kind::Read, Kind::Write, Kind::Update] {
            let bytes = |tally: &Tally| tally.bytes.get(&(kind as u8)).copied().unwrap_or(1);
            close("bytes", bytes(&by_real), bytes(&by_implicit));
        }
    }
}

#[test]
fn full_size_is_made_at_once() {
    let ycsb = make("items=1G,threads=16");
    // 128 GB of items and about 26 GB of index.
    let bytes = ycsb.layout.bytes() as f64;
    assert!((bytes / 154e9 - 1.0).abs() < 0.02, "{bytes}");
    assert_eq!(ycsb.tree.levels(), 9);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let say = |text: &str| {
        let values = ENTRY.values(text).unwrap();
        Ycsb::new(&values).err().unwrap().to_string()
    };
    assert_eq!(
        say("load=inserts"),
        "workload `ycsb`: `load=inserts`: inserts need tree=real"
    );
    assert!(say("tree=real").contains("`items=1G`: a real tree holds up to 64M items"));
    assert!(say("theta=1").contains("`theta=1`: must be below 1"));
    assert!(say("items=10,scale=20").contains("0 after dividing by scale=20"));
}
