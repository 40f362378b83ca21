//! What the kernels compute, held against slow references; their accesses, against counts.

use super::{freqmine, lu};
use crate::harness::{self, CallOrder};
use crate::loops::{Loops, drain};
use crate::registry::{build, parse};
use std::collections::BTreeMap;
use varve_access::{Kind, Program};

fn lu_of(line: &str) -> Loops<lu::Lu> {
    let (entry, values) = parse(line).unwrap();
    lu::program(&values, entry.name == "lu_cb").unwrap()
}

#[test]
fn triangles_are_those_of_plain_elimination() {
    for line in [
        "lu_cb:bytes=40KiB,block=8,threads=3",
        "lu_ncb:bytes=80KiB,block=16,threads=4",
    ] {
        let mut program = lu_of(line);
        drain(&mut program);
        let (kernel, n) = (
            &program.kernel,
            (program.kernel.triangles().len() as f64).sqrt() as usize,
        );
        let mut a: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| kernel.drawn(i, j)).collect())
            .collect();
        for k in 0..n {
            for i in k + 1..n {
                a[i][k] /= a[k][k];
                for j in k + 1..n {
                    a[i][j] -= a[i][k] * a[k][j];
                }
            }
        }
        for (i, row) in a.iter().enumerate() {
            for (j, want) in row.iter().enumerate() {
                let ours = kernel.triangles()[j * n + i];
                assert!(
                    (ours - want).abs() < 1e-9,
                    "{line}: {i}, {j}: {ours}, {want}"
                );
            }
        }
    }
}

/// Blocks of the interior are updated once for each block of the diagonal above and left of them; those of the
/// perimeter and the diagonal, once.
#[test]
fn every_block_is_updated_as_often_as_the_algorithm_says() {
    for name in ["lu_cb", "lu_ncb"] {
        let line = format!("{name}:bytes=40KiB,block=8,passes=2,threads=3");
        let mut program = lu_of(&line);
        let tally = harness::run(&mut program, CallOrder::RoundRobin, u64::MAX);
        // Seven blocks of 8 lines in a row: an odd number.
        let squares: u64 = (1..=7).map(|k| k * k).sum();
        assert_eq!(tally.of(Kind::Update), 2 * 8 * squares, "{line}");
    }
}

/// A matrix of a sixteenth of the bytes counts a sixteenth of the instructions and of the lines updated.
#[test]
fn work_is_divided_by_the_scale() {
    let count = |scale: u32| {
        let line = format!("lu_cb:bytes=8MiB,block=64,threads=2,scale={scale}");
        let tally = harness::run(&mut lu_of(&line), CallOrder::RoundRobin, u64::MAX);
        [tally.instructions as f64, tally.of(Kind::Update) as f64]
    };
    for (large, small) in count(1).into_iter().zip(count(16)) {
        let ratio = large / small;
        assert!((13.0..20.0).contains(&ratio), "{ratio}");
    }
}

/// The sets of a small drawing, one item added at a time, each counted in all transactions.
fn slowly(transactions: &[Vec<u16>], least: usize) -> u64 {
    fn grow(of: &[&Vec<u16>], from: u16, least: usize) -> u64 {
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        for item in of.iter().copied().flatten().filter(|&&item| item >= from) {
            *counts.entry(*item).or_default() += 1;
        }
        let frequent = counts.into_iter().filter(|&(_, count)| count >= least);
        frequent
            .map(|(item, _)| {
                let with: Vec<_> = of.iter().copied().filter(|t| t.contains(&item)).collect();
                1 + grow(&with, item + 1, least)
            })
            .sum()
    }
    grow(&transactions.iter().collect::<Vec<_>>(), 0, least)
}

#[test]
fn frequent_sets_are_those_of_counting_them_all() {
    for (seed, threads) in [(1, 1), (2, 3)] {
        let (_, values) = parse(&format!(
            "freqmine:documents=100,support=0.2,seed={seed},threads={threads}"
        ))
        .unwrap();
        let mut program = freqmine::program(&values).unwrap();
        drain(&mut program);
        let drawn = super::mining::Transactions::draw(100, 0.2, seed);
        assert_eq!(program.kernel.sets(), slowly(&drawn.of, 20));
    }
}

#[test]
fn ocean_has_the_same_work_whatever_the_threads() {
    let count = |threads: u32| {
        let line = format!("ocean_cp:bytes=8MiB,passes=2,threads={threads}");
        let tally = harness::run(&mut *build(&line).unwrap(), CallOrder::Random(5), u64::MAX);
        (tally.accesses(), tally.instructions)
    };
    // First touches by page differ in number.
    let ((one, steps), (many, same)) = (count(1), count(7));
    assert!(many - one < 200, "{one}, {many}");
    assert!(same - steps < 600);
}

#[test]
fn the_same_whatever_the_order_of_threads() {
    for line in [
        "ocean_cp:bytes=1MiB,passes=1,threads=3",
        "lu_ncb:bytes=40KiB,threads=3",
    ] {
        let make = || -> Box<dyn Program> { build(line).unwrap() };
        harness::assert_order_does_not_matter(make, u64::MAX);
    }
}

/// A digest of each, of 64 bits, as the first version has it.
const DIGESTS: &str = "\
9cc113b5e211b1d6 ocean_cp:bytes=1MiB,passes=4
123cd60a8c423c63 lu_cb:bytes=1MiB,block=8
e8254c4e95606efb lu_ncb:bytes=16MiB,block=32,scale=16
51e68d23057db835 freqmine:documents=200,bytes=1MiB
";

/// Results that were published stand on these ops: a change of any of them is a change of the workload.
#[test]
fn the_ops_are_those_of_all_versions_before() {
    let now = DIGESTS.lines().map(|row| {
        let (_, line) = row.split_once(' ').unwrap();
        format!(
            "{:016x} {line}\n",
            harness::digest(&mut *build(&format!("{line},threads=5")).unwrap())
        )
    });
    assert_eq!(now.collect::<String>(), DIGESTS);
}
