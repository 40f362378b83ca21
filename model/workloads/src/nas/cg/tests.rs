//! CG against published values and slow, obvious solutions.

use super::*;
use crate::harness::{self, CallOrder};
use crate::loops::drain;

fn zeta(class: Class, threads: usize) -> f64 {
    let mut cg = program(&NasSetup::tiny(class, 0, 0, threads, true)).unwrap();
    drain(&mut cg);
    assert!(cg.kernel.residual() < 1e-9, "{}", cg.kernel.residual());
    cg.kernel.zeta()
}

#[test]
fn class_s_zeta_is_the_published_one() {
    // NPB verification value of class S.
    for threads in [1, 3] {
        assert!((zeta(Class::S, threads) - 8.5971775078648).abs() < 1e-10);
    }
}

#[test]
fn the_solution_is_that_of_gaussian_elimination() {
    let setup = NasSetup::tiny(Class::S, 60, 1, 2, true);
    let mut cg = program(&setup).unwrap();
    let starts = cg.kernel.starts.clone();
    let matrix = cg.kernel.data.as_ref().unwrap().matrix.clone();
    harness::run(&mut cg, CallOrder::RoundRobin, u64::MAX);
    let mut dense = vec![vec![0.0; 60]; 60];
    for row in 0..60 {
        for at in starts[row] as usize..starts[row + 1] as usize {
            dense[row][matrix.columns[at] as usize] += matrix.values[at];
        }
    }
    let want = super::super::dense::solve(dense, vec![1.0; 60]);
    for (ours, want) in cg.kernel.data.as_ref().unwrap().z.iter().zip(want) {
        assert!(
            (ours - want).abs() < 1e-6 * want.abs().max(1.0),
            "{ours} {want}"
        );
    }
}

#[test]
fn the_same_accesses_without_data() {
    let tally = |real| {
        let mut cg = program(&NasSetup::tiny(Class::S, 0, 1, 3, real)).unwrap();
        harness::run(&mut cg, CallOrder::Random(1), u64::MAX)
    };
    assert_eq!(tally(true), tally(false));
}
