//! A dense solver for tests: slow and obvious.

/// Solves `a x = b` by Gaussian elimination with partial pivoting.
pub fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs()))
            .unwrap();
        a.swap(column, pivot);
        b.swap(column, pivot);
        for row in column + 1..n {
            let factor = a[row][column] / a[column][column];
            if factor != 0.0 {
                let (above, below) = a.split_at_mut(row);
                for k in column..n {
                    below[0][k] -= factor * above[column][k];
                }
                b[row] -= factor * b[column];
            }
        }
    }
    for row in (0..n).rev() {
        for k in row + 1..n {
            b[row] -= a[row][k] * b[k];
        }
        b[row] /= a[row][row];
    }
    b
}
