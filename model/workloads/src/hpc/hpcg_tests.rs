//! HPCG against the same method on dense matrices, slow and obvious.

use super::hpcg::{Hpcg, solver};
use crate::harness::{self, CallOrder};
use crate::init::chunk;
use crate::loops::{Loops, drain};
use crate::nas::dense;
use varve_access::Kind;

type Dense = Vec<Vec<f64>>;

/// A point's place.
fn place(n: [usize; 3], point: usize) -> [usize; 3] {
    [point % n[0], point / n[0] % n[1], point / n[0] / n[1]]
}

/// 26 on the diagonal, -1 between points that touch.
fn stencil(n: [usize; 3]) -> Dense {
    let points = n.iter().product();
    let number = |a: usize, b: usize| {
        let (pa, pb) = (place(n, a), place(n, b));
        let near = (0..3).all(|axis| pa[axis].abs_diff(pb[axis]) <= 1);
        match (a == b, near) {
            (true, _) => 26.0,
            (false, true) => -1.0,
            (false, false) => 0.0,
        }
    };
    (0..points)
        .map(|a| (0..points).map(|b| number(a, b)).collect())
        .collect()
}

fn times(a: &Dense, x: &[f64]) -> Vec<f64> {
    a.iter().map(|row| dot(row, x)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A sweep of Gauss-Seidel and back, as triangular systems: each thread's rows alone, with the values outside of them
/// held.
fn sweep(n: [usize; 3], threads: usize, b: &[f64], x: &mut [f64]) {
    let a = stencil(n);
    let held = x.to_owned();
    for thread in 0..threads {
        let (low, high) = chunk((n[1] * n[2]) as u64, thread, threads);
        let own = low as usize * n[0]..high as usize * n[0];
        let outside = |row: usize| -> f64 {
            (0..x.len())
                .filter(|c| !own.contains(c))
                .map(|c| a[row][c] * held[c])
                .sum()
        };
        let b: Vec<f64> = own.clone().map(|row| b[row] - outside(row)).collect();
        let part = |keep: &dyn Fn(usize, usize) -> bool| -> Dense {
            let row = |r: usize| {
                own.clone()
                    .map(|c| if keep(r, c) { a[r][c] } else { 0.0 })
                    .collect()
            };
            own.clone().map(row).collect()
        };
        let mut mine: Vec<f64> = x[own.clone()].to_vec();
        for forward in [true, false] {
            let solved = part(&|r, c| if forward { c <= r } else { c >= r });
            let moved = part(&|r, c| if forward { c > r } else { c < r });
            let right = times(&moved, &mine);
            let right = b.iter().zip(right).map(|(b, m)| b - m).collect();
            mine = dense::solve(solved, right);
        }
        x[own].copy_from_slice(&mine);
    }
}

/// The preconditioner applied to `r`, on `levels` levels.
fn preconditioned(n: [usize; 3], threads: usize, levels: usize, r: &[f64]) -> Vec<f64> {
    let mut x = vec![0.0; r.len()];
    sweep(n, threads, r, &mut x);
    if levels > 1 {
        let half = n.map(|n| n / 2);
        let points: usize = half.iter().product();
        let fine = |point: usize| {
            let [i, j, k] = place(half, point).map(|at| 2 * at);
            i + n[0] * (j + n[1] * k)
        };
        let ax = times(&stencil(n), &x);
        let coarse: Vec<f64> = (0..points).map(|c| r[fine(c)] - ax[fine(c)]).collect();
        let coarse = preconditioned(half, threads, levels - 1, &coarse);
        for (point, value) in coarse.iter().enumerate() {
            x[fine(point)] += value;
        }
        sweep(n, threads, r, &mut x);
    }
    x
}

/// Norms of the residual of preconditioned conjugate gradients.
fn norms(n: [usize; 3], threads: usize, levels: usize, iterations: usize) -> Vec<f64> {
    let a = stencil(n);
    let mut r: Vec<f64> = a.iter().map(|row| row.iter().sum()).collect();
    let mut p = vec![0.0; r.len()];
    let mut before = f64::INFINITY;
    let mut norms = vec![dot(&r, &r).sqrt()];
    for _ in 0..iterations {
        let z = preconditioned(n, threads, levels, &r);
        let rz = dot(&r, &z);
        p = z.iter().zip(&p).map(|(z, p)| z + rz / before * p).collect();
        before = rz;
        let ap = times(&a, &p);
        let alpha = rz / dot(&p, &ap);
        r = r.iter().zip(&ap).map(|(r, ap)| r - alpha * ap).collect();
        norms.push(dot(&r, &r).sqrt());
    }
    norms
}

fn solved(n: [usize; 3], iterations: u64, threads: usize) -> Loops<Hpcg> {
    let mut program = solver(n, iterations, threads, 4096);
    drain(&mut program);
    program
}

#[test]
fn residuals_fall_as_those_of_dense_matrices() {
    for (n, levels, threads) in [
        ([8, 4, 4], 2, 1),
        ([4, 8, 8], 2, 3),
        ([5, 3, 4], 1, 2),
        ([8, 8, 8], 3, 4),
    ] {
        let ours = solved(n, 5, threads);
        let want = norms(n, threads, levels, 5);
        let first = want[0];
        for (ours, want) in ours.kernel.norms().iter().zip(&want) {
            let off = (ours - want).abs();
            assert!(off < 1e-10 * first, "{n:?}: {ours}, should be {want}");
        }
        assert_eq!(ours.kernel.norms().len(), want.len());
    }
}

#[test]
fn all_unknowns_are_found_to_be_one() {
    let program = solved([16, 16, 16], 20, 3);
    let off = program.kernel.solution().iter().map(|x| (x - 1.0).abs());
    assert!(off.fold(0.0, f64::max) < 1e-9);
}

#[test]
fn the_same_whatever_the_order_of_threads() {
    let make = || -> Box<dyn varve_access::Program> { Box::new(solver([8, 8, 8], 2, 3, 4096)) };
    harness::assert_order_does_not_matter(make, u64::MAX);
}

/// Two sweeps there and back and a product, on the finest level one more for the step; on the coarsest one sweep.
#[test]
fn the_matrix_is_read_as_often_as_sweeps_and_products_are_made() {
    let mut program = solver([8, 8, 8], 1, 2, 4096);
    let regions = varve_access::Program::regions(&program);
    let mut bytes = [0u64; 3];
    harness::each(&mut program, CallOrder::RoundRobin, |_, op| {
        for (l, bytes) in bytes.iter_mut().enumerate() {
            let name = format!("hpcg.{l}.numbers");
            let region = regions.iter().find(|r| r.name == name).unwrap();
            if op.kind == Kind::Read && (region.base..region.base + region.bytes).contains(&op.addr)
            {
                *bytes += u64::from(op.size);
            }
        }
    });
    // Numbers of a grid with n points along an edge: (3 n - 2)^3.
    let matrix = |n: u64| 8 * (3 * n - 2).pow(3);
    assert_eq!(bytes, [6 * matrix(8), 5 * matrix(4), 2 * matrix(2)]);
}
