//! Host-level helpers of the hot path: division by a number known only at run time, prefetching, and looking for a
//! number among a few.

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
        if rest >= self.value {
            (q + 1, rest - self.value)
        } else {
            (q, rest)
        }
    }
}

/// Asks the processor that runs the model to bring a place of an array near; it has no effect on what is computed. A
/// place outside of the array is as harmless as one inside.
#[inline(always)]
pub fn prefetch<T>(array: &[T], place: usize) {
    let at = array.as_ptr().wrapping_add(place);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can observe, and faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// One bit for each of 8 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_8(numbers: &[u32; 8], wanted: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of every x86-64 processor; the two unaligned loads read the 32 B array.
    unsafe {
        use std::arch::x86_64::*;
        let at = numbers.as_ptr().cast::<__m128i>();
        let w = _mm_set1_epi32(wanted as i32);
        let low = _mm_cmpeq_epi32(_mm_loadu_si128(at), w);
        let high = _mm_cmpeq_epi32(_mm_loadu_si128(at.add(1)), w);
        let words = _mm_packs_epi32(low, high);
        _mm_movemask_epi8(_mm_packs_epi16(words, _mm_setzero_si128())) as u32
    }
    #[cfg(not(target_arch = "x86_64"))]
    (0..8).fold(0, |mask, i| mask | ((numbers[i] == wanted) as u32) << i)
}

/// One bit for each of 12 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_12(numbers: &[u32; 12], wanted: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of every x86-64 processor; the three unaligned loads read the 48 B array.
    unsafe {
        use std::arch::x86_64::*;
        let at = numbers.as_ptr().cast::<__m128i>();
        let w = _mm_set1_epi32(wanted as i32);
        let four = |i| _mm_cmpeq_epi32(_mm_loadu_si128(at.add(i)), w);
        let low = _mm_packs_epi32(four(0), four(1));
        let high = _mm_packs_epi32(four(2), _mm_setzero_si128());
        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
    }
    #[cfg(not(target_arch = "x86_64"))]
    (0..12).fold(0, |mask, i| mask | ((numbers[i] == wanted) as u32) << i)
}

/// One bit for each of 16 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_16(numbers: &[u32; 16], wanted: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of every x86-64 processor; the four unaligned loads read the 64 B array.
    unsafe {
        use std::arch::x86_64::*;
        let at = numbers.as_ptr().cast::<__m128i>();
        let w = _mm_set1_epi32(wanted as i32);
        let four = |i| _mm_cmpeq_epi32(_mm_loadu_si128(at.add(i)), w);
        let low = _mm_packs_epi32(four(0), four(1));
        let high = _mm_packs_epi32(four(2), four(3));
        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
    }
    #[cfg(not(target_arch = "x86_64"))]
    (0..16).fold(0, |mask, i| mask | ((numbers[i] == wanted) as u32) << i)
}

#[cfg(test)]
mod tests {
    use super::{Divisor, equal_among_8, equal_among_12, equal_among_16};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_all(numbers in prop::collection::vec(0u32..6, 16), wanted in 0u32..7) {
            let expected = (0..16).fold(0, |m, i| m | ((numbers[i] == wanted) as u32) << i);
            prop_assert_eq!(equal_among_16(numbers[..].try_into().unwrap(), wanted), expected);
            prop_assert_eq!(equal_among_12(numbers[..12].try_into().unwrap(), wanted), expected & 0xfff);
            prop_assert_eq!(equal_among_8(numbers[..8].try_into().unwrap(), wanted), expected & 0xff);
        }
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
