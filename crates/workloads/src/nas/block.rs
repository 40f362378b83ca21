//! 5 x 5 blocks and vectors of five components.

/// Five components at a point.
pub type Vector = [f64; 5];

/// A matrix, by rows.
pub type Matrix = [[f64; 5]; 5];

/// `a x`
#[inline]
pub fn apply(a: &Matrix, x: &Vector) -> Vector {
    std::array::from_fn(|i| (0..5).map(|j| a[i][j] * x[j]).sum())
}

/// `a b`
#[inline]
pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..5).map(|k| a[i][k] * b[k][j]).sum()))
}

/// `a - b`
#[inline]
pub fn minus(a: &Vector, b: &Vector) -> Vector {
    std::array::from_fn(|i| a[i] - b[i])
}

/// `factor` times the unit matrix.
pub fn unit(factor: f64) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| if i == j { factor } else { 0.0 }))
}

/// Solves `a [x, y] = [b, c]` for a matrix and a vector at once, by elimination without pivoting: for blocks whose
/// diagonal dominates.
#[inline]
pub fn solve(mut a: Matrix, mut b: Matrix, mut c: Vector) -> (Matrix, Vector) {
    for pivot in 0..5 {
        let inverse = 1.0 / a[pivot][pivot];
        for k in 0..5 {
            a[pivot][k] *= inverse;
            b[pivot][k] *= inverse;
        }
        c[pivot] *= inverse;
        for row in 0..5 {
            if row != pivot {
                let factor = a[row][pivot];
                for k in 0..5 {
                    a[row][k] -= factor * a[pivot][k];
                    b[row][k] -= factor * b[pivot][k];
                }
                c[row] -= factor * c[pivot];
            }
        }
    }
    (b, c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn solutions_solve(numbers in prop::collection::vec(-1.0..1.0f64, 55)) {
            let a: Matrix =
                std::array::from_fn(|i| std::array::from_fn(|j| numbers[5 * i + j] + if i == j { 6.0 } else { 0.0 }));
            let b: Matrix = std::array::from_fn(|i| std::array::from_fn(|j| numbers[25 + 5 * i + j]));
            let c: Vector = std::array::from_fn(|i| numbers[50 + i]);
            let (x, y) = solve(a, b, c);
            let (back, back_vector) = (product(&a, &x), apply(&a, &y));
            for i in 0..5 {
                prop_assert!((back_vector[i] - c[i]).abs() < 1e-12);
                for j in 0..5 {
                    prop_assert!((back[i][j] - b[i][j]).abs() < 1e-12);
                }
            }
        }
    }
}
