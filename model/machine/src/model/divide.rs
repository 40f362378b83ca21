//! Host-level helpers of the hot path: division by a number known only at run time, and prefetching.

use crate::arch;
use std::hint::select_unpredictable;

/// Divides by shifting or by multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    value: u64,
    /// floor((2^64 - 1) / value), or 0 for a power of two.
    magic: u64,
    /// The divisor less 1.
    mask: u64,
    shift: u32,
}

impl Divisor {
    /// A divisor, at least 1.
    pub fn new(value: u64) -> Divisor {
        let value = value.max(1);
        Divisor {
            value,
            magic: if value.is_power_of_two() {
                0
            } else {
                u64::MAX / value
            },
            mask: value - 1,
            shift: value.ilog2(),
        }
    }

    /// The divisor itself.
    #[inline(always)]
    pub fn value(self) -> u64 {
        self.value
    }

    /// Quotient and remainder of a dividend below 2^63.
    #[inline(always)]
    pub fn divide(self, n: u64) -> (u64, u64) {
        if self.magic == 0 {
            return (n >> self.shift, n & self.mask);
        }
        // The estimate is the quotient or one less: n * magic / 2^64 > n / value - 2 n / 2^64.
        let q = ((n as u128 * self.magic as u128) >> 64) as u64;
        let rest = n - q * self.value;
        // Which of them it is depends on chance: that is to be no jump.
        let less = rest >= self.value;
        let above = select_unpredictable(less, self.value, 0);
        (q + u64::from(less), rest - above)
    }
}

/// Asks the processor that runs the model to prefetch a place of an array; it has no effect on results. A place outside
/// of the array is as harmless as one inside.
#[inline(always)]
pub fn prefetch<T>(array: &[T], place: usize) {
    let at = array.as_ptr().wrapping_add(place);
    arch::fetch(at.cast());
}

#[cfg(test)]
mod tests {
    use super::Divisor;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides_exactly(n in 0u64..1 << 63, d in 1u64..1 << 62, shift in 0u32..62) {
            let d = (d >> shift).max(1);
            prop_assert_eq!(Divisor::new(d).divide(n), (n / d, n % d));
        }
        #[test]
        fn divides_exactly_near_multiples(q in 0u64..1 << 32, d in 1u64..1 << 31, shift in 0u32..31) {
            let d = (d >> shift).max(1);
            for n in [(q * d).saturating_sub(1), q * d, q * d + 1] {
                prop_assert_eq!(Divisor::new(d).divide(n), (n / d, n % d));
            }
        }
        #[test]
        fn divides_exactly_by_powers_of_two(n in 0u64..1 << 63, shift in 0u32..62) {
            prop_assert_eq!(Divisor::new(1 << shift).divide(n), (n >> shift, n % (1 << shift)));
        }
    }
}
