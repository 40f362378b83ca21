//! Preloaded into an unmodified program under QEMU: reports every allocation and its callers to the plugin.
//!
//! The allocator stays the program's own; each function calls the next one of its name and then makes a system call
//! with a number of our own, which the plugin sees and which the kernel refuses without effect. Needs nothing but
//! `core`: it must not allocate, and it runs before anything else is initialized.

#![no_std]

#[path = "../../src/arch/x86_64/shim.rs"]
mod arch;
mod callers;
#[path = "../../src/arch/x86_64/entry.rs"]
mod entry;
mod environment;

use arch::{system, thread};
use callers::Callers;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use entry::{with_callers, with_callers_of_six};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NEXT`: the next library that has the function.
const NEXT: *mut c_void = usize::MAX as *mut c_void;

/// Runs before the program.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn(c_int, *mut *mut c_char, *mut *mut u8) = environment::on_load;

/// See `calls.rs` of the plugin.
const CALL_ALLOC: usize = 0x7661_0001;
const CALL_FREE: usize = 0x7661_0002;
const CALL_MAPPED: usize = 0x7661_0003;
const CALL_COLORED: usize = 0x7661_0008;

fn tell_free(pointer: *mut c_void) {
    system(CALL_FREE, [pointer as usize, 0, 0, 0, 0, 0]);
}

fn told(pointer: *mut c_void, bytes: usize, from: Callers) -> *mut c_void {
    if !pointer.is_null() {
        let [back, place, frame] = from.words();
        system(
            CALL_ALLOC,
            [pointer as usize, bytes, back, place, frame, thread()],
        );
    }
    pointer
}

/// Memory for allocations of `dlsym` itself while the next function is being looked up; it is never freed.
static mut EARLY: [u128; 4096] = [0; 4096];
static EARLY_USED: AtomicUsize = AtomicUsize::new(0);

fn early(bytes: usize) -> *mut c_void {
    let units = bytes.div_ceil(16).max(1);
    let at = EARLY_USED.fetch_add(units, Relaxed);
    if at + units > 4096 {
        return null_mut();
    }
    // SAFETY: the range [at, at + units) was reserved for this call alone.
    unsafe { (&raw mut EARLY).cast::<u128>().add(at).cast() }
}

fn is_early(pointer: *mut c_void) -> bool {
    let start = (&raw const EARLY) as usize;
    (start..start + 4096 * 16).contains(&(pointer as usize))
}

/// A function of the next library, found when it is first called.
struct Next {
    name: &'static core::ffi::CStr,
    function: AtomicPtr<c_void>,
}

const PAGE: usize = 4096;

/// Stands for a function that is being looked up.
const LOOKING: *mut c_void = core::ptr::without_provenance_mut(1);

impl Next {
    const fn new(name: &'static core::ffi::CStr) -> Next {
        Next {
            name,
            function: AtomicPtr::new(null_mut()),
        }
    }

    /// The function; `None` while `dlsym` searches for it (and allocates).
    fn get(&self) -> Option<*mut c_void> {
        let known = self.function.load(Acquire);
        if known > LOOKING {
            return Some(known);
        }
        if known == LOOKING {
            return None;
        }
        self.function.store(LOOKING, Release);
        // SAFETY: the name ends in a zero byte.
        let found = unsafe { dlsym(NEXT, self.name.as_ptr()) };
        self.function.store(found, Release);
        (!found.is_null()).then_some(found)
    }
}

type OneSize = unsafe extern "C" fn(usize) -> *mut c_void;
type TwoSizes = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Map = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
type Attach = unsafe extern "C" fn(c_int, *const c_void, c_int) -> *mut c_void;
type Control = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;
type Resize = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type ResizeArray = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
type Release = unsafe extern "C" fn(*mut c_void);
type Placed = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;

with_callers!(malloc = on_malloc, 1);
with_callers!(valloc = on_valloc, 1);
with_callers!(pvalloc = on_pvalloc, 1);
with_callers!(calloc = on_calloc, 2);
with_callers!(varve_shim_malloc = on_asked, 2);
with_callers!(realloc = on_realloc, 2);
with_callers!(memalign = on_memalign, 2);
with_callers!(aligned_alloc = on_aligned_alloc, 2);
with_callers!(reallocarray = on_reallocarray, 3);
with_callers!(posix_memalign = on_posix_memalign, 3);
with_callers!(shmat = on_shmat, 3);

with_callers_of_six!(mmap = on_mmap);
with_callers_of_six!(mmap64 = on_mmap);

static SHMAT: Next = Next::new(c"shmat");
static SHMCTL: Next = Next::new(c"shmctl");
static MMAP: Next = Next::new(c"mmap");
static MALLOC: Next = Next::new(c"malloc");
static VALLOC: Next = Next::new(c"valloc");
static PVALLOC: Next = Next::new(c"pvalloc");
static CALLOC: Next = Next::new(c"calloc");
static REALLOC: Next = Next::new(c"realloc");
static REALLOCARRAY: Next = Next::new(c"reallocarray");
static MEMALIGN: Next = Next::new(c"memalign");
static ALIGNED_ALLOC: Next = Next::new(c"aligned_alloc");
static POSIX_MEMALIGN: Next = Next::new(c"posix_memalign");
static FREE: Next = Next::new(c"free");

/// Memory that the program maps itself: the C library's own mappings do not come here.
extern "C" fn on_mmap(
    at: *mut c_void,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    from: Callers,
) -> *mut c_void {
    const ANONYMOUS: c_int = 0x20;
    const FAILED: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
    let Some(next) = MMAP.get() else {
        return FAILED;
    };
    // SAFETY: the C library's function of this type, with the program's own arguments.
    let pointer = unsafe {
        core::mem::transmute::<*mut c_void, Map>(next)(at, bytes, rights, flags, file, offset)
    };
    if pointer != FAILED && flags & ANONYMOUS != 0 {
        let [back, place, frame] = from.words();
        system(
            CALL_MAPPED,
            [pointer as usize, bytes, back, place, frame, thread()],
        );
    }
    pointer
}

/// A segment of System V, which other processes may have attached too.
extern "C" fn on_shmat(
    segment: c_int,
    at: *const c_void,
    flags: c_int,
    from: Callers,
) -> *mut c_void {
    const FAILED: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
    const STAT: c_int = 2;
    /// `struct shmid_ds` has its size after six words, and 23 words in all.
    const BYTES: usize = 6;
    let Some(next) = SHMAT.get() else {
        return FAILED;
    };
    // SAFETY: the C library's function of this type, with the program's own arguments.
    let pointer = unsafe { core::mem::transmute::<*mut c_void, Attach>(next)(segment, at, flags) };
    let mut about = [0usize; 23];
    let known = pointer != FAILED
        && SHMCTL.get().is_some_and(|next| {
            let room = about.as_mut_ptr().cast();
            // SAFETY: the C library's function of this type, with room for what it writes.
            unsafe { core::mem::transmute::<*mut c_void, Control>(next)(segment, STAT, room) == 0 }
        });
    if known {
        let [back, place, frame] = from.words();
        let words = [pointer as usize, about[BYTES], back, place, frame, 0];
        system(CALL_MAPPED, words);
    }
    pointer
}

extern "C" fn on_malloc(bytes: usize, from: Callers) -> *mut c_void {
    match MALLOC.get() {
        // SAFETY: the C library's function of this type.
        Some(next) => told(
            unsafe { core::mem::transmute::<*mut c_void, OneSize>(next)(bytes) },
            bytes,
            from,
        ),
        None => early(bytes),
    }
}

/// `varve.h`: a block in fast memory, 0, or in slow memory, 1. Its color comes before it, so that it is born with it.
extern "C" fn on_asked(bytes: usize, tier: c_int, from: Callers) -> *mut c_void {
    let Some(next) = MALLOC.get() else {
        return null_mut();
    };
    // SAFETY: the C library's function of this type.
    let pointer = unsafe { core::mem::transmute::<*mut c_void, OneSize>(next)(bytes) };
    if !pointer.is_null() {
        varve_shim_mcolor(pointer, bytes, tier);
    }
    told(pointer, bytes, from)
}

/// `varve.h`: memory has a color from here on, hot, 0, or cold, 1.
#[unsafe(no_mangle)]
pub extern "C" fn varve_shim_mcolor(start: *mut c_void, bytes: usize, color: c_int) -> c_int {
    system(
        CALL_COLORED,
        [start as usize, bytes, color as usize, 0, 0, 0],
    );
    0
}

extern "C" fn on_valloc(bytes: usize, from: Callers) -> *mut c_void {
    in_pages(&VALLOC, bytes, bytes, from)
}

/// As `valloc`, of whole pages.
extern "C" fn on_pvalloc(bytes: usize, from: Callers) -> *mut c_void {
    let rounded = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes);
    in_pages(&PVALLOC, bytes, rounded, from)
}

/// `valloc` or `pvalloc` of `bytes`, which gives `given`.
fn in_pages(function: &Next, bytes: usize, given: usize, from: Callers) -> *mut c_void {
    match function.get() {
        Some(next) => {
            // SAFETY: the C library's function of this type.
            let pointer = unsafe { core::mem::transmute::<*mut c_void, OneSize>(next)(bytes) };
            told(pointer, given, from)
        }
        None => null_mut(),
    }
}

extern "C" fn on_calloc(count: usize, bytes: usize, from: Callers) -> *mut c_void {
    match CALLOC.get() {
        Some(next) => {
            // SAFETY: the C library's function of this type.
            let pointer =
                unsafe { core::mem::transmute::<*mut c_void, TwoSizes>(next)(count, bytes) };
            told(pointer, count.wrapping_mul(bytes), from)
        }
        // fresh static memory is zero already
        None => count.checked_mul(bytes).map_or(null_mut(), early),
    }
}

extern "C" fn on_realloc(old: *mut c_void, bytes: usize, from: Callers) -> *mut c_void {
    if is_early(old) {
        return move_early(old, bytes, from);
    }
    match REALLOC.get() {
        Some(next) => {
            // SAFETY: the C library's function of this type.
            let pointer = unsafe { core::mem::transmute::<*mut c_void, Resize>(next)(old, bytes) };
            retold(old, pointer, bytes, from)
        }
        None => null_mut(),
    }
}

/// The C library's own would call `realloc`, which is ours.
extern "C" fn on_reallocarray(
    old: *mut c_void,
    count: usize,
    bytes: usize,
    from: Callers,
) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(bytes) => on_realloc(old, bytes, from),
        // It refuses that, and says why in `errno`.
        None => match REALLOCARRAY.get() {
            // SAFETY: the C library's function of this type.
            Some(next) => unsafe {
                core::mem::transmute::<*mut c_void, ResizeArray>(next)(old, count, bytes)
            },
            None => null_mut(),
        },
    }
}

/// Reports a `realloc`: the old block is gone unless it failed.
fn retold(old: *mut c_void, new: *mut c_void, bytes: usize, from: Callers) -> *mut c_void {
    if !old.is_null() && (!new.is_null() || bytes == 0) {
        tell_free(old);
    }
    told(new, bytes, from)
}

/// A block from the early memory grows: its size is not known, so as much as there can be is copied.
fn move_early(old: *mut c_void, bytes: usize, from: Callers) -> *mut c_void {
    let new = on_malloc(bytes, from);
    if !new.is_null() {
        let rest = (&raw const EARLY) as usize + 4096 * 16 - old as usize;
        for at in 0..bytes.min(rest) {
            // SAFETY: `new` has `bytes` bytes, and the early memory has `rest` from `old` on. Byte by byte, since
            // the C library's copy may not be usable yet.
            unsafe {
                new.cast::<u8>()
                    .add(at)
                    .write_volatile(old.cast::<u8>().add(at).read())
            };
        }
    }
    new
}

extern "C" fn on_memalign(alignment: usize, bytes: usize, from: Callers) -> *mut c_void {
    match MEMALIGN.get() {
        // SAFETY: the C library's function of this type.
        Some(next) => told(
            unsafe { core::mem::transmute::<*mut c_void, TwoSizes>(next)(alignment, bytes) },
            bytes,
            from,
        ),
        None => null_mut(),
    }
}

extern "C" fn on_aligned_alloc(alignment: usize, bytes: usize, from: Callers) -> *mut c_void {
    match ALIGNED_ALLOC.get() {
        // SAFETY: the C library's function of this type.
        Some(next) => told(
            unsafe { core::mem::transmute::<*mut c_void, TwoSizes>(next)(alignment, bytes) },
            bytes,
            from,
        ),
        None => null_mut(),
    }
}

extern "C" fn on_posix_memalign(
    place: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
    from: Callers,
) -> c_int {
    const NO_MEMORY: c_int = 12;
    match POSIX_MEMALIGN.get() {
        Some(next) => {
            // SAFETY: the C library's function of this type; `place` is the program's.
            let code = unsafe {
                core::mem::transmute::<*mut c_void, Placed>(next)(place, alignment, bytes)
            };
            if code == 0 {
                // SAFETY: the call succeeded, so it has written the pointer.
                told(unsafe { *place }, bytes, from);
            }
            code
        }
        None => NO_MEMORY,
    }
}

/// Frees like the C library.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(pointer: *mut c_void) {
    if pointer.is_null() || is_early(pointer) {
        return;
    }
    tell_free(pointer);
    if let Some(next) = FREE.get() {
        // SAFETY: the C library's function of this type.
        unsafe { core::mem::transmute::<*mut c_void, Release>(next)(pointer) }
    }
}
