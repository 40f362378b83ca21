//! The numbers of HPL: a random matrix with its right-hand side, and operations on its rows.

use varve_access::random::mix;

/// Doubles of a cache line.
pub const LINE: usize = 8;

/// Largest residual of a solution that HPL accepts (`HPL.dat`, threshold).
pub const ACCEPTED: f64 = 16.0;

/// A square matrix by rows, with the right-hand side as one column more. Rows start at a line.
pub struct Matrix {
    /// Equations.
    pub n: usize,
    /// Doubles from one row to the next.
    pub stride: usize,
    seed: u64,
    values: Vec<f64>,
}

impl Matrix {
    /// `n` equations with numbers from -0.5 to 0.5, as HPL draws them; `n` is a multiple of [`LINE`].
    pub fn new(n: usize, seed: u64) -> Matrix {
        let stride = n + LINE;
        let mut values = vec![0.0; n * stride];
        for row in 0..n {
            for column in 0..=n {
                values[row * stride + column] = drawn(seed, row, column);
            }
        }
        Matrix {
            n,
            stride,
            seed,
            values,
        }
    }

    /// The number that was drawn at the start, whatever is there now; column `n` is the right-hand side.
    pub fn drawn(&self, row: usize, column: usize) -> f64 {
        drawn(self.seed, row, column)
    }

    /// The row, of those from `from` to `to`, whose number in `column` is largest; the first of equals.
    pub fn pivot(&self, column: usize, from: usize, to: usize) -> Option<(f64, usize)> {
        let of = |row: usize| (self.values[row * self.stride + column].abs(), row);
        let larger = |a: (f64, usize), b: (f64, usize)| if b.0 > a.0 { b } else { a };
        (from..to).map(of).reduce(larger)
    }

    /// Swaps two rows from a column on.
    pub fn swap(&mut self, a: usize, b: usize, from: usize) {
        if a != b {
            let (low, high) = (a.min(b), a.max(b));
            let (above, below) = self.values.split_at_mut(high * self.stride);
            above[low * self.stride + from..(low + 1) * self.stride]
                .swap_with_slice(&mut below[from..self.stride]);
        }
    }

    /// Eliminates `column` from a row: the multiplier takes its place, and the columns up to `to` follow.
    pub fn eliminate(&mut self, row: usize, column: usize, to: usize) {
        let (above, below) = self.values.split_at_mut(row * self.stride);
        let pivot = &above[column * self.stride..][..self.stride];
        let factor = below[column] / pivot[column];
        below[column] = factor;
        for j in column + 1..to {
            below[j] -= factor * pivot[j];
        }
    }

    /// Subtracts the rows `above` from `columns` of a row, times the multipliers that stand in their columns.
    pub fn update(
        &mut self,
        row: usize,
        rows: std::ops::Range<usize>,
        columns: std::ops::Range<usize>,
    ) {
        let (above, below) = self.values.split_at_mut(row * self.stride);
        let below = &mut below[..self.stride];
        for k in rows {
            let factor = below[k];
            let from = &above[k * self.stride..][columns.clone()];
            for (to, from) in below[columns.clone()].iter_mut().zip(from) {
                *to -= factor * from;
            }
        }
    }

    /// Solves the triangle that is left.
    pub fn solve(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.n];
        for row in (0..self.n).rev() {
            let values = &self.values[row * self.stride..][..self.n + 1];
            let known = values[row + 1..self.n].iter().zip(&x[row + 1..]);
            let sum: f64 = known.map(|(a, x)| a * x).sum();
            x[row] = (values[self.n] - sum) / values[row];
        }
        x
    }

    /// HPL's residual of a solution: `|A x - b| / (eps (|A| |x| + |b|) n)`, all norms the largest.
    pub fn residual(&self, x: &[f64]) -> f64 {
        let (mut off, mut of_a, mut of_b) = (0.0f64, 0.0f64, 0.0f64);
        for row in 0..self.n {
            let b = self.drawn(row, self.n);
            let (mut sum, mut norm) = (-b, 0.0);
            for (column, x) in x.iter().enumerate() {
                let a = self.drawn(row, column);
                sum += a * x;
                norm += a.abs();
            }
            (off, of_a, of_b) = (off.max(sum.abs()), of_a.max(norm), of_b.max(b.abs()));
        }
        let of_x = x.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        off / (f64::EPSILON * (of_a * of_x + of_b) * self.n as f64)
    }
}

fn drawn(seed: u64, row: usize, column: usize) -> f64 {
    let bits = mix(mix(seed ^ (row as u64) << 32) ^ column as u64);
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64) - 0.5
}
