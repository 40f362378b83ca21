//! The numbers of MG: its right-hand side, and the norm that it is judged by.

use super::lcg::Lcg;
use super::mg_grid::{Grid, MgArrays};

/// How many points of each sign the right-hand side has.
const CHARGES: usize = 10;

impl MgArrays {
    /// Zero, and a right-hand side of ten points +1 and ten points -1: where the random numbers of the benchmark's
    /// generator, one per point in storage order, are largest and smallest.
    pub fn new(grid: &Grid, edges: [u64; 3], smoother: [f64; 4], mut generator: Lcg) -> MgArrays {
        let finest = &grid.levels[0];
        // (number, point), the largest first; and the smallest first.
        let mut largest: Vec<(f64, usize)> = Vec::new();
        let mut smallest: Vec<(f64, usize)> = Vec::new();
        for k in 0..edges[2] as usize {
            for j in 0..edges[1] as usize {
                for i in 0..edges[0] as usize {
                    let number = generator.unit();
                    let point = finest.row(j + 1, k + 1) + i + 1;
                    keep(&mut largest, (number, point), |a, b| a > b);
                    keep(&mut smallest, (number, point), |a, b| a < b);
                }
            }
        }
        let mut v = vec![0.0; finest.points() as usize];
        smallest.into_iter().for_each(|(_, point)| v[point] = -1.0);
        largest.into_iter().for_each(|(_, point)| v[point] = 1.0);
        // The benchmark wraps the charges' ghosts too, but never reads them.
        let points = grid.u.len as usize;
        MgArrays {
            u: vec![0.0; points],
            v,
            r: vec![0.0; points],
            smoother,
        }
    }

    /// Root mean square of the residual on the finest level.
    pub fn norm(&self, grid: &Grid) -> f64 {
        let level = &grid.levels[0];
        let mut sum = 0.0;
        for k in 1..level.n[2] - 1 {
            for j in 1..level.n[1] - 1 {
                let row = level.row(j, k);
                sum += self.r[row + 1..row + level.n[0] - 1]
                    .iter()
                    .map(|r| r * r)
                    .sum::<f64>();
            }
        }
        let points = (level.n[0] - 2) * (level.n[1] - 2) * (level.n[2] - 2);
        (sum / points as f64).sqrt()
    }
}

/// Keeps the first [`CHARGES`] by `before`, in order.
fn keep(kept: &mut Vec<(f64, usize)>, new: (f64, usize), before: impl Fn(f64, f64) -> bool) {
    if kept.len() == CHARGES && !before(new.0, kept[CHARGES - 1].0) {
        return;
    }
    let place = kept
        .iter()
        .position(|old| before(new.0, old.0))
        .unwrap_or(kept.len());
    kept.insert(place, new);
    kept.truncate(CHARGES);
}
