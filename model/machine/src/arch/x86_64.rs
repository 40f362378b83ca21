//! x86-64: SSE2, which all have, and AVX2 with BMI where the processor has them.

use crate::model::host::{InstructionLevel, Work};

/// Has the processor bring the line of an address near. No address is wrong.
#[inline(always)]
pub fn fetch(at: *const u8) {
    // SAFETY: a prefetch reads nothing that the program can observe, and faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
}

/// One bit for each of 8 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_8(numbers: &[u32; 8], wanted: u32) -> u32 {
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
}

/// One bit for each of 12 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_12(numbers: &[u32; 12], wanted: u32) -> u32 {
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
}

/// One bit for each of 16 numbers that equals `wanted`.
#[inline(always)]
pub fn equal_among_16(numbers: &[u32; 16], wanted: u32) -> u32 {
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
}

/// AVX2, BMI and the other extensions of x86-64-v3. Only [`Newer::detect`] makes one, if the processor has them.
#[derive(Clone, Copy, Debug)]
pub struct Newer(());

impl Newer {
    /// Asks the processor.
    pub fn detect() -> Option<Newer> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt"))
        .then_some(Newer(()))
    }
}

impl InstructionLevel for Newer {
    #[inline(always)]
    fn run<W: Work>(self, work: W) -> W::Out {
        // SAFETY: the processor has these instructions: there is no `Newer` otherwise.
        unsafe { with_newer(self, work) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
fn with_newer<W: Work>(level: Newer, work: W) -> W::Out {
    work.work(level)
}
