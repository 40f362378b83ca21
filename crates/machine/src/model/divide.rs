//! Host-level helpers of the hot path: division by a number known only at run time, prefetching, and looking for a
//! number among a few.

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

/// The first place of `wanted` among `numbers`, whose length is a multiple of 8.
#[inline(always)]
pub fn find(numbers: &[u32], wanted: u32) -> Option<usize> {
    for (k, eight) in numbers.chunks_exact(8).enumerate() {
        let mask = equal_among_8(eight.try_into().expect("chunks of 8"), wanted);
        if mask != 0 {
            return Some(k * 8 + mask.trailing_zeros() as usize);
        }
    }
    None
}

/// One bit for each of 8 numbers that equals `wanted`.
#[inline(always)]
fn equal_among_8(numbers: &[u32; 8], wanted: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE2; the two unaligned loads of 16 B stay within the 32 B array.
    unsafe {
        use std::arch::x86_64::*;
        let at = numbers.as_ptr().cast::<__m128i>();
        let w = _mm_set1_epi32(wanted as i32);
        let low = _mm_cmpeq_epi32(_mm_loadu_si128(at), w);
        let high = _mm_cmpeq_epi32(_mm_loadu_si128(at.add(1)), w);
        let words = _mm_packs_epi32(low, high);
        _mm_movemask_epi8(_mm_packs_epi16(words, words)) as u32 & 0xff
    }
    #[cfg(not(target_arch = "x86_64"))]
    (0..8).fold(0, |mask, i| mask | ((numbers[i] == wanted) as u32) << i)
}

#[cfg(test)]
mod tests {
    use super::{Divisor, find};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_first(numbers in prop::collection::vec(0u32..6, 24), wanted in 0u32..7) {
            prop_assert_eq!(find(&numbers, wanted), numbers.iter().position(|n| *n == wanted));
        }
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
