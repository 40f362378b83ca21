//! Memory of the host for large data that is accessed at random.

/// An empty vector with room for `capacity` elements, on large pages where the host has them: at random, half of
/// the time of a simulation would otherwise go into the host's page table walks.
pub fn large_vec<T>(capacity: usize) -> Vec<T> {
    let vec: Vec<T> = Vec::with_capacity(capacity);
    #[cfg(target_os = "linux")]
    {
        let (first, bytes) = (vec.as_ptr() as usize, capacity * size_of::<T>());
        let start = first.next_multiple_of(LARGE_PAGE);
        let end = (first + bytes) / LARGE_PAGE * LARGE_PAGE;
        if end > start {
            // SAFETY: the range lies within the vector's own allocation. The advice changes the size of the pages
            // that back it, never its contents. It may be refused, and nothing is lost then.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    vec
}

/// Asks the host's cache for an element that will be needed soon; an index past the end asks for nothing.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of a live element; a prefetch reads nothing and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slice.get(index);
}

/// Bytes of the host's large pages.
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_vectors_are_vectors() {
        for capacity in [0, 1, 3 << 20] {
            let mut vec: Vec<u64> = large_vec(capacity);
            assert!(vec.is_empty() && vec.capacity() >= capacity);
            vec.extend(0..capacity as u64);
            assert!(vec.iter().enumerate().all(|(i, &x)| i as u64 == x));
        }
    }
}
