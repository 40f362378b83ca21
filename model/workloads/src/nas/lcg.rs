//! The linear congruential generator of the NAS parallel benchmarks (report RNR-94-007, section 2.3):
//! x' = a x mod 2^46 with a = 5^13, numbers x / 2^46 in (0, 1).

/// Multiplier, 5^13.
pub const A: u64 = 1_220_703_125;

/// Seed of most kernels.
pub const SEED: u64 = 314_159_265;

const MASK: u64 = (1 << 46) - 1;

/// The generator's state, the last number as an integer below 2^46.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lcg(pub u64);

impl Lcg {
    /// The next number.
    #[inline(always)]
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(A) & MASK;
        self.0 as f64 * (1.0 / (1u64 << 46) as f64)
    }

    /// The generator after `n` more numbers.
    pub fn skip(self, n: u64) -> Lcg {
        let (mut power, mut factor, mut left) = (1u64, A, n);
        while left > 0 {
            if left & 1 == 1 {
                power = power.wrapping_mul(factor) & MASK;
            }
            factor = factor.wrapping_mul(factor) & MASK;
            left >>= 1;
        }
        Lcg(self.0.wrapping_mul(power) & MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_is_stepping() {
        let mut slow = Lcg(SEED);
        for n in 0..200 {
            assert_eq!(Lcg(SEED).skip(n), slow);
            let unit = slow.unit();
            assert!(unit > 0.0 && unit < 1.0);
        }
    }

    #[test]
    fn products_are_exact_modulo_two_to_the_46th() {
        // 128-bit arithmetic as the obvious reference.
        let mut fast = Lcg(271_828_183);
        let mut slow = 271_828_183u128;
        for _ in 0..1000 {
            fast.unit();
            slow = slow * u128::from(A) % (1 << 46);
            assert_eq!(u128::from(fast.0), slow);
        }
    }
}
