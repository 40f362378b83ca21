//! IS against sorting, and against the benchmark's own spot checks.

use super::is::{Is, program};
use super::lcg::{Lcg, SEED};
use super::setup::{Class, NasSetup};
use crate::harness::{self, CallOrder};
use crate::loops::{Loops, drain};

fn ran(class: Class, size: u64, iterations: u64, threads: usize) -> Loops<Is> {
    let mut is = program(&NasSetup::tiny(class, size, iterations, threads, true)).unwrap();
    drain(&mut is);
    is
}

/// Compares the ranks of five keys, given by their number in the list of keys, after the last iteration.
fn assert_ranks(is: &Loops<Is>, largest: f64, numbers: [u64; 5], ranks: [u32; 5]) {
    assert_eq!(is.kernel.verify(), Some(true));
    for (number, rank) in numbers.into_iter().zip(ranks) {
        let mut generator = Lcg(SEED).skip(4 * number);
        let sum = generator.unit() + generator.unit() + generator.unit() + generator.unit();
        let key = (largest / 4.0 * sum) as u32;
        assert_eq!(is.kernel.rank(key), Some(rank), "key number {number}");
    }
}

// NPB's partial verification: ranks of a table, plus the iteration (10) less a constant for the small ones, minus the
// iteration for the large ones.

#[test]
fn class_s_ranks_are_the_published_ones() {
    let ranks = [10, 18 + 10, 346 + 10, 64917 - 10, 65463 - 10];
    let numbers = [48427, 17148, 23627, 62548, 4431];
    assert_ranks(&ran(Class::S, 0, 0, 5), 2048.0, numbers, ranks);
}

#[test]
fn class_w_ranks_are_the_published_ones() {
    let ranks = [
        1249 + 8,
        11698 + 8,
        1_039_987 - 10,
        1_043_896 - 10,
        1_048_018 - 10,
    ];
    let numbers = [357_773, 934_767, 875_723, 898_999, 404_505];
    assert_ranks(&ran(Class::W, 0, 0, 3), 65536.0, numbers, ranks);
}

#[test]
fn any_number_of_threads_sorts() {
    for threads in [1, 2, 7] {
        assert_eq!(
            ran(Class::W, 10_000, 3, threads).kernel.verify(),
            Some(true)
        );
    }
}

#[test]
fn without_data_only_places_within_a_bucket_differ() {
    let accesses = |real| {
        let mut is = program(&NasSetup::tiny(Class::A, 1 << 16, 2, 3, real)).unwrap();
        let region = varve_access::Program::regions(&is);
        let ranks = region
            .iter()
            .find(|region| region.name == "is.ranks")
            .unwrap()
            .clone();
        let part = ranks.bytes / 1024;
        let mut all = Vec::new();
        harness::each(&mut is, CallOrder::RoundRobin, |thread, op| {
            let mut op = *op;
            if op.addr >= ranks.base && op.addr < ranks.base + ranks.bytes {
                op.addr = (op.addr - ranks.base) / part;
            }
            all.push((thread, op));
        });
        all
    };
    assert!(accesses(true) == accesses(false));
}
