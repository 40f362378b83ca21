//! A complex fast Fourier transform of one pencil: Stockham's radix-2 algorithm, which needs no bit reversal.

/// A complex number.
pub type Complex = [f64; 2];

/// Roots of unity for every power-of-two length up to a largest one.
pub struct Fft {
    longest: usize,
    /// exp(2 pi i j / longest) for j below half of it.
    roots: Vec<Complex>,
}

/// The product of two complex numbers.
#[inline(always)]
pub fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

impl Fft {
    /// Roots for lengths up to `longest`, a power of two.
    pub fn new(longest: usize) -> Fft {
        let angle = |j: usize| std::f64::consts::TAU * j as f64 / longest as f64;
        let roots = (0..longest / 2)
            .map(|j| [angle(j).cos(), angle(j).sin()])
            .collect();
        Fft { longest, roots }
    }

    /// Replaces `a` by its transform with exponent sign `sign` (+1 or -1), not divided by the length; `b` is scratch
    /// space of the same length, a power of two.
    pub fn transform(&self, sign: f64, a: &mut [Complex], b: &mut [Complex]) {
        let n = a.len();
        let (mut from, mut to) = (a, b);
        let (mut half, mut stride) = (n / 2, 1);
        let mut passes = 0;
        while half >= 1 {
            for p in 0..half {
                let root = self.roots[p * stride * (self.longest / n)];
                let root = [root[0], sign * root[1]];
                for q in 0..stride {
                    let (x, y) = (from[q + stride * p], from[q + stride * (p + half)]);
                    to[q + stride * 2 * p] = [x[0] + y[0], x[1] + y[1]];
                    to[q + stride * (2 * p + 1)] = times([x[0] - y[0], x[1] - y[1]], root);
                }
            }
            std::mem::swap(&mut from, &mut to);
            (half, stride) = (half / 2, stride * 2);
            passes += 1;
        }
        // After an odd number of passes the result lies in the scratch space.
        if passes % 2 == 1 {
            to.copy_from_slice(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_transform_is_the_sum_that_defines_it(
            log in 0u32..7,
            forward in any::<bool>(),
            numbers in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64), 64),
        ) {
            let n = 1usize << log;
            let sign = if forward { 1.0 } else { -1.0 };
            let mut a: Vec<Complex> = numbers[..n].iter().map(|&(x, y)| [x, y]).collect();
            let input = a.clone();
            Fft::new(64).transform(sign, &mut a, &mut vec![[0.0; 2]; n]);
            for (k, ours) in a.iter().enumerate() {
                let mut want = [0.0; 2];
                for (j, &x) in input.iter().enumerate() {
                    let angle = sign * std::f64::consts::TAU * (j * k) as f64 / n as f64;
                    let term = times(x, [angle.cos(), angle.sin()]);
                    want = [want[0] + term[0], want[1] + term[1]];
                }
                prop_assert!((ours[0] - want[0]).abs() < 1e-11 && (ours[1] - want[1]).abs() < 1e-11);
            }
        }

        #[test]
        fn there_and_back_is_the_length(numbers in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64), 256)) {
            let mut a: Vec<Complex> = numbers.iter().map(|&(x, y)| [x, y]).collect();
            let (input, mut scratch, fft) = (a.clone(), a.clone(), Fft::new(256));
            fft.transform(1.0, &mut a, &mut scratch);
            fft.transform(-1.0, &mut a, &mut scratch);
            for (ours, want) in a.iter().zip(&input) {
                prop_assert!((ours[0] / 256.0 - want[0]).abs() < 1e-13);
                prop_assert!((ours[1] / 256.0 - want[1]).abs() < 1e-13);
            }
        }
    }
}
