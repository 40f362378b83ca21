//! LU against a dense solver, and in time.

use super::dense;
use super::flow::{Cube, Flow};
use super::lcg::{Lcg, SEED};
use super::lu::{Lu, program};
use super::setup::{Class, Setup};
use crate::harness::{self, Order};
use crate::loops::{Loops, drain};

fn ran(size: u64, iterations: u64, threads: usize) -> Loops<Lu> {
    let mut lu = program(&Setup::tiny(Class::S, size, iterations, threads, true)).unwrap();
    drain(&mut lu);
    lu
}

/// The benchmark's step with dense triangular matrices: (D + w L) D^-1 (D + w U) x = dt R, then x / (w (2 - w)).
fn dense_step(flow: &Flow) -> Vec<f64> {
    let cube = flow.cube;
    let points: Vec<(usize, usize, usize)> = cube.inner().collect();
    let size = 5 * points.len();
    let (half, spread) = flow.implicit();
    let (diagonal, omega) = (1.0 + 6.0 * spread, 1.2);
    let mut lower = vec![vec![0.0; size]; size];
    let mut upper = lower.clone();
    for (row, &(i, j, k)) in points.iter().enumerate() {
        for m in 0..5 {
            lower[5 * row + m][5 * row + m] = diagonal;
            upper[5 * row + m][5 * row + m] = diagonal;
        }
        for (column, &(a, b, c)) in points.iter().enumerate() {
            let distance = [
                a as i64 - i as i64,
                b as i64 - j as i64,
                c as i64 - k as i64,
            ];
            if distance.iter().map(|d| d.abs()).sum::<i64>() != 1 {
                continue;
            }
            let axis = distance.iter().position(|&d| d != 0).unwrap();
            let sign = distance[axis] as f64;
            let carry = flow.derived(cube.at(a, b, c)).carry(axis);
            let side = if sign < 0.0 { &mut lower } else { &mut upper };
            for m in 0..5 {
                for l in 0..5 {
                    let spread = if m == l { spread } else { 0.0 };
                    side[5 * row + m][5 * column + l] =
                        omega * (sign * half * carry[m][l] - spread);
                }
            }
        }
    }
    let rhs = points
        .iter()
        .flat_map(|&(i, j, k)| flow.rhs[cube.at(i, j, k)])
        .collect();
    let middle: Vec<f64> = dense::solve(lower, rhs)
        .iter()
        .map(|x| x * diagonal)
        .collect();
    dense::solve(upper, middle)
}

#[test]
fn a_step_is_that_of_dense_triangular_systems() {
    let cube = Cube::new(7);
    let mut flow = Flow::new(cube, Lcg(SEED));
    flow.whole_rhs();
    let want = dense_step(&flow);
    for threads in [1, 2, 5, 9] {
        let lu = ran(7, 1, threads);
        let ours = lu.kernel.flow().unwrap();
        for (row, (i, j, k)) in cube.inner().enumerate() {
            for m in 0..5 {
                let difference = ours.rhs[cube.at(i, j, k)][m] - want[5 * row + m];
                assert!(
                    difference.abs() < 1e-12,
                    "{threads} threads, {i} {j} {k} {m}: {difference}"
                );
            }
        }
    }
}

#[test]
fn time_leads_to_the_exact_solution() {
    let lu = ran(12, 100, 4);
    assert!(
        lu.kernel.flow().unwrap().error() < 1e-7,
        "{}",
        lu.kernel.flow().unwrap().error()
    );
}

#[test]
fn the_same_accesses_without_data_whatever_the_order() {
    let make = |real| program(&Setup::tiny(Class::S, 9, 2, 3, real)).unwrap();
    let tally = harness::assert_order_does_not_matter(|| Box::new(make(true)), u64::MAX);
    assert_eq!(
        harness::run(&mut make(false), Order::Random(1), u64::MAX),
        tally
    );
}
