//! The allocator that would be used without the shim: the next one in the order of loading.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const std::ffi::c_char) -> *mut c_void;
}

/// `RTLD_NEXT` of the GNU C library.
const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

/// True while a symbol is looked up: allocations made by the lookup itself come from `FIRST`.
static RESOLVING: AtomicBool = AtomicBool::new(false);

/// A few blocks for the lookup itself, never freed.
const FIRST_BYTES: usize = 64 * 1024;
#[repr(align(16))]
struct First(std::cell::UnsafeCell<[u8; FIRST_BYTES]>);
// SAFETY: parts of it are handed out once each, by an atomic counter.
unsafe impl Sync for First {}
static FIRST: First = First(std::cell::UnsafeCell::new([0; FIRST_BYTES]));
static FIRST_USED: AtomicUsize = AtomicUsize::new(0);

/// A block of zeroed memory for the lookup; null when it has taken all.
fn first_block(bytes: usize) -> *mut c_void {
    let need = bytes.next_multiple_of(16);
    let at = FIRST_USED.fetch_add(need, Ordering::Relaxed);
    if at + need > FIRST_BYTES {
        return std::ptr::null_mut();
    }
    // SAFETY: within the array, and handed out once.
    unsafe { FIRST.0.get().cast::<u8>().add(at).cast() }
}

/// Was this block allocated during the lookup of a symbol?
pub fn is_first(block: *mut c_void) -> bool {
    let base = FIRST.0.get() as usize;
    (base..base + FIRST_BYTES).contains(&(block as usize))
}

/// A function of the next allocator, looked up at its first use.
struct Next {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next {
            name,
            address: AtomicUsize::new(0),
        }
    }

    /// The address; 0 while the lookup itself asks, or when there is no such function.
    #[inline]
    fn get(&self) -> usize {
        let address = self.address.load(Ordering::Relaxed);
        if address != 0 {
            address
        } else {
            self.resolve()
        }
    }

    #[cold]
    fn resolve(&self) -> usize {
        if RESOLVING.swap(true, Ordering::Acquire) {
            return 0;
        }
        // SAFETY: the name is a C string.
        let address = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.address.store(address, Ordering::Relaxed);
        RESOLVING.store(false, Ordering::Release);
        address
    }
}

/// The result of a function without one.
type Nothing = ();

macro_rules! next {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $symbol:literal, $fallback:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the C function.
        #[inline]
        pub unsafe fn $name($($arg: $ty),*) -> $ret {
            static NEXT: Next = Next::new($symbol);
            let address = NEXT.get();
            if address == 0 {
                return $fallback;
            }
            // SAFETY: the symbol of this name has this type.
            let function: unsafe extern "C" fn($($ty),*) -> $ret = unsafe { std::mem::transmute(address) };
            // SAFETY: passed on.
            unsafe { function($($arg),*) }
        }
    )*};
}

next! {
    /// The next `malloc`.
    malloc(size: usize) -> *mut c_void, c"malloc", first_block(size);
    /// The next `calloc`.
    calloc(count: usize, size: usize) -> *mut c_void, c"calloc", first_block(count.saturating_mul(size));
    /// The next `realloc`.
    realloc(old: *mut c_void, size: usize) -> *mut c_void, c"realloc", std::ptr::null_mut();
    /// The next `memalign`.
    memalign(align: usize, size: usize) -> *mut c_void, c"memalign", std::ptr::null_mut();
    /// The next `malloc_usable_size`.
    malloc_usable_size(block: *mut c_void) -> usize, c"malloc_usable_size", 0;
    /// The next `free`.
    free(block: *mut c_void) -> Nothing, c"free", Nothing::default();
}

/// Is the next allocator the C library's own? Only then does `mallopt` steer it.
pub fn is_c_library() -> bool {
    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> *mut c_void;
    }
    // SAFETY: the name is a C string.
    let next = unsafe { dlsym(RTLD_NEXT, c"malloc".as_ptr()) } as usize;
    // SAFETY: as above.
    let own = unsafe { dlsym(RTLD_NEXT, c"__libc_malloc".as_ptr()) } as usize;
    next != 0 && (next == own || next == __libc_malloc as *const () as usize)
}

/// Bytes from a block of the lookup to the end of all such blocks.
pub fn first_bytes_from(block: *mut c_void) -> usize {
    FIRST.0.get() as usize + FIRST_BYTES - block as usize
}
