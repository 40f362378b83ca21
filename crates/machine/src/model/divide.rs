//! Two host-level helpers of the hot path: division by a number known only at run time, and prefetching.

/// Divides by multiplication. Exact for dividends below 2^40 and divisors below 2^24.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    value: u64,
    magic: u64,
}

impl Divisor {
    /// A divisor, at least 1.
    pub fn new(value: u64) -> Divisor {
        let value = value.max(1);
        assert!(value < 1 << 24, "divisors beyond 2^24 are not exact");
        // floor(2^64 / value) + 1: the error term stays below 2^-24 of a step for the dividends allowed.
        let magic = if value == 1 {
            0
        } else {
            (u64::MAX / value).wrapping_add(1)
        };
        Divisor { value, magic }
    }

    /// The divisor itself.
    #[inline(always)]
    pub fn value(self) -> u64 {
        self.value
    }

    /// Quotient and remainder.
    #[inline(always)]
    pub fn divide(self, n: u64) -> (u64, u64) {
        debug_assert!(n < 1 << 40);
        if self.value == 1 {
            return (n, 0);
        }
        let q = ((n as u128 * self.magic as u128) >> 64) as u64;
        (q, n - q * self.value)
    }
}

/// Asks the processor that runs the model to bring `place` near; it has no effect on what is computed.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of a valid reference reads nothing that the program can observe.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::Divisor;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides_exactly(n in 0u64..1 << 40, d in 1u64..1 << 24) {
            prop_assert_eq!(Divisor::new(d).divide(n), (n / d, n % d));
        }
        #[test]
        fn divides_exactly_near_multiples(q in 0u64..1 << 16, d in 1u64..1 << 24) {
            for n in [(q * d).saturating_sub(1), q * d, q * d + 1] {
                if n < 1 << 40 {
                    prop_assert_eq!(Divisor::new(d).divide(n), (n / d, n % d));
                }
            }
        }
    }
}
