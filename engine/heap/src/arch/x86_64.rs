//! x86-64.

/// Has the processor bring the line of an address near.
#[inline(always)]
pub fn fetch(at: *const u8) {
    // SAFETY: a prefetch has no effect that a program could see, whatever the address is.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
}
