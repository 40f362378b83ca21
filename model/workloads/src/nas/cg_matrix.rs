//! The sparse matrix of CG: a weighted sum of outer products of sparse random vectors
//! (NAS report RNR-94-007, section 2.4, and `makea` of NPB).
//!
//! A = sum over i of w_i x_i x_i' + (0.1 - shift) I, where x_i has `nonzer` random elements and element i of x_i is 1/2, and
//! the weights fall geometrically from 1 to 0.1. Vectors are drawn as the benchmark draws them, so that results agree with its
//! verification values.
//!
//! Rows differ from the benchmark's in the order of their elements: the diagonal first, then vector by vector and not
//! by rising column, and an off-diagonal element that two vectors share stands twice. So a row can be computed from the
//! vectors alone, which take `8 (nonzer + 1)` bytes per row and not 12 (nonzer + 1)^2: at sizes at which the matrix
//! does not fit the host, its pattern still does.

use super::lcg::Lcg;

/// Condition number of the sum, inverted (`rcond`).
const RCOND: f64 = 0.1;

/// The sparse vectors, and which of them have an element in a given row.
pub struct Vectors {
    /// Room for one vector's elements.
    stride: usize,
    /// Vector `i` has elements at `columns[i * stride ..][.. length[i]]`.
    columns: Vec<u32>,
    length: Vec<u8>,
    /// Row `r` has elements of the vectors `of_row[row_start[r]..row_start[r + 1]]`.
    of_row: Vec<u32>,
    row_start: Vec<u32>,
}

/// The matrix as compressed rows, and where each row starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Elements, row by row.
    pub values: Vec<f64>,
    /// Their columns.
    pub columns: Vec<u32>,
}

impl Vectors {
    /// Draws the vectors of a matrix of `n` rows with `nonzer` random elements each (below 255), and their values if
    /// asked for (else none).
    pub fn draw(
        n: usize,
        nonzer: usize,
        keep_values: bool,
        mut generator: Lcg,
    ) -> (Vectors, Vec<f64>) {
        let stride = nonzer + 1;
        let mut columns = vec![0u32; n * stride];
        let mut length = vec![0u8; n];
        let mut values = if keep_values {
            vec![0.0; n * stride]
        } else {
            Vec::new()
        };
        // The benchmark's main program draws one number before the matrix.
        generator.unit();
        let power = n.next_power_of_two() as f64;
        for i in 0..n {
            let row = &mut columns[i * stride..(i + 1) * stride];
            let mut found = 0;
            while found < nonzer {
                let value = generator.unit();
                let column = (power * generator.unit()) as usize;
                if column < n && !row[..found].contains(&(column as u32)) {
                    row[found] = column as u32;
                    if keep_values {
                        values[i * stride + found] = value;
                    }
                    found += 1;
                }
            }
            let own = row[..found]
                .iter()
                .position(|&column| column == i as u32)
                .unwrap_or(found);
            row[own] = i as u32;
            if keep_values {
                values[i * stride + own] = 0.5;
            }
            length[i] = found.max(own + 1) as u8;
        }
        let mut vectors = Vectors {
            stride,
            columns,
            length,
            of_row: Vec::new(),
            row_start: Vec::new(),
        };
        vectors.index(n);
        (vectors, values)
    }

    fn index(&mut self, n: usize) {
        let mut start = vec![0u32; n + 1];
        for i in 0..n {
            for &column in self.columns_of(i) {
                start[column as usize + 1] += 1;
            }
        }
        for row in 0..n {
            start[row + 1] += start[row];
        }
        let mut of_row = vec![0u32; start[n] as usize];
        let mut next = start.clone();
        for i in 0..n {
            for k in 0..usize::from(self.length[i]) {
                let row = self.columns[i * self.stride + k] as usize;
                of_row[next[row] as usize] = i as u32;
                next[row] += 1;
            }
        }
        (self.of_row, self.row_start) = (of_row, start);
    }

    fn columns_of(&self, i: usize) -> &[u32] {
        &self.columns[i * self.stride..][..usize::from(self.length[i])]
    }

    fn of_row(&self, row: usize) -> &[u32] {
        &self.of_row[self.row_start[row] as usize..self.row_start[row + 1] as usize]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.length.len()
    }

    /// The columns of a row in the order in which its elements are stored.
    pub fn row(&self, row: usize, columns: &mut Vec<u32>) {
        columns.clear();
        columns.push(row as u32);
        for &i in self.of_row(row) {
            columns.extend(
                self.columns_of(i as usize)
                    .iter()
                    .filter(|&&column| column != row as u32),
            );
        }
    }

    /// Where each row starts in the list of all elements, and their number.
    pub fn starts(&self) -> Vec<u64> {
        let mut starts = Vec::with_capacity(self.rows() + 1);
        let mut sum = 0u64;
        for row in 0..self.rows() {
            starts.push(sum);
            let others = self
                .of_row(row)
                .iter()
                .map(|&i| u64::from(self.length[i as usize]) - 1);
            sum += 1 + others.sum::<u64>();
        }
        starts.push(sum);
        starts
    }

    /// The matrix itself.
    pub fn matrix(&self, values: &[f64], shift: f64) -> Rows {
        let n = self.rows();
        let ratio = RCOND.powf(1.0 / n as f64);
        let mut weights = Vec::with_capacity(n);
        let mut weight = 1.0;
        for _ in 0..n {
            weights.push(weight);
            weight *= ratio;
        }
        let mut rows = Rows::default();
        for row in 0..n {
            let diagonal = rows.values.len();
            rows.columns.push(row as u32);
            rows.values.push(RCOND - shift);
            for &i in self.of_row(row) {
                let i = i as usize;
                let columns = self.columns_of(i);
                let own = columns
                    .iter()
                    .position(|&column| column == row as u32)
                    .unwrap_or(0);
                let scale = weights[i] * values[i * self.stride + own];
                for (k, &column) in columns.iter().enumerate() {
                    let product = scale * values[i * self.stride + k];
                    if column == row as u32 {
                        rows.values[diagonal] += product;
                    } else {
                        rows.columns.push(column);
                        rows.values.push(product);
                    }
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_symmetric_and_its_pattern_is_told_from_the_vectors() {
        let (vectors, values) = Vectors::draw(50, 3, true, Lcg(super::super::lcg::SEED));
        let matrix = vectors.matrix(&values, 5.0);
        let starts = vectors.starts();
        let mut dense = vec![[0.0; 50]; 50];
        let mut columns = Vec::new();
        for row in 0..50 {
            let range = starts[row] as usize..starts[row + 1] as usize;
            vectors.row(row, &mut columns);
            assert_eq!(matrix.columns[range.clone()], columns[..]);
            for at in range {
                dense[row][matrix.columns[at] as usize] += matrix.values[at];
            }
        }
        assert_eq!(starts[50] as usize, matrix.values.len());
        for (row, elements) in dense.iter().enumerate() {
            for (column, element) in elements.iter().enumerate() {
                assert!((element - dense[column][row]).abs() < 1e-15);
            }
        }
    }
}
