//! IS against sorting, and against the benchmark's own spot checks.

use super::is::{Is, program};
use super::setup::{Class, Setup};
use crate::harness::{self, Order};
use crate::loops::Loops;

fn ran(class: Class, size: u64, iterations: u64, threads: usize) -> Loops<Is> {
    let mut is = program(&Setup::tiny(class, size, iterations, threads, true)).unwrap();
    harness::run(&mut is, Order::Random(4), u64::MAX);
    is
}

#[test]
fn class_s_ranks_are_the_published_ones() {
    // NPB's partial verification: the ranks of five keys (by their number in the list of keys) after the last
    // iteration, 10; for class S the first three are the table's plus the iteration, the others minus it.
    let is = ran(Class::S, 0, 0, 5);
    assert_eq!(is.kernel.verify(), Some(true));
    let numbers = [48427u64, 17148, 23627, 62548, 4431];
    let ranks = [10, 18 + 10, 346 + 10, 64917 - 10, 65463 - 10];
    for (number, rank) in numbers.into_iter().zip(ranks) {
        let mut generator = super::lcg::Lcg(super::lcg::SEED).skip(4 * number);
        let sum = generator.unit() + generator.unit() + generator.unit() + generator.unit();
        let key = (512.0 * sum) as u32;
        assert_eq!(is.kernel.rank(key), Some(rank), "key number {number}");
    }
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
        let mut is = program(&Setup::tiny(Class::A, 1 << 16, 2, 3, real)).unwrap();
        let region = varve_machine::Program::regions(&is);
        let ranks = region
            .iter()
            .find(|region| region.name == "is.ranks")
            .unwrap()
            .clone();
        let part = ranks.bytes / 1024;
        let mut all = Vec::new();
        harness::each(&mut is, Order::RoundRobin, |thread, op| {
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
