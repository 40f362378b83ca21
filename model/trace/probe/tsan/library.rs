//! Functions of the C library that access or allocate memory, or wait. The linker sends the program's calls here
//! (`--wrap`), since the library itself is not instrumented.

use crate::access::{READ, WRITE, range, record};
use crate::entry::{after_call, with_caller};
use crate::ring::*;
use crate::thread::{
    called_from, find_slot, is_recorded, number_of, replacing, shared, slot, waiting,
};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering::SeqCst;

/// Declares `__real_NAME`, and defines `__wrap_NAME` as the body, in which `real` calls the former.
macro_rules! wrap {
    ($($real:ident as $wrapper:ident ($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $wrapper($($arg: $type),*) -> $result {
                unsafe extern "C" { fn $real($($arg: $type),*) -> $result; }
                #[allow(unused_macros)]
                macro_rules! real {
                    // SAFETY: the program's own arguments, passed on as they are.
                    () => { unsafe { $real($($arg),*) } };
                }
                $body
            }
        )*
    };
}

/// Bytes up to and with the final zero, but at most `most`.
fn length(text: *const c_char, most: usize) -> usize {
    // SAFETY: the program guarantees a string here, of at most `most` bytes; read byte by byte to its end.
    (0..most)
        .find(|&at| unsafe { text.add(at).read() } == 0)
        .map_or(most, |zero| zero + 1)
}

/// Bytes that a comparison of two strings reads.
fn common(a: *const c_char, b: *const c_char, most: usize) -> usize {
    for at in 0..most {
        // SAFETY: both strings reach at least as far as they are equal and not ended.
        let (x, y) = unsafe { (a.add(at).read(), b.add(at).read()) };
        if x != y || x == 0 {
            return at + 1;
        }
    }
    most
}

wrap! {
    __real_memcpy as __wrap_memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
        range(from as usize, bytes, READ);
        range(to as usize, bytes, WRITE);
        real!()
    }
    __real_memmove as __wrap_memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
        range(from as usize, bytes, READ);
        range(to as usize, bytes, WRITE);
        real!()
    }
    __real_mempcpy as __wrap_mempcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
        range(from as usize, bytes, READ);
        range(to as usize, bytes, WRITE);
        real!()
    }
    __real_memset as __wrap_memset(to: *mut c_void, value: c_int, bytes: usize) -> *mut c_void {
        range(to as usize, bytes, WRITE);
        real!()
    }
    __real_memcmp as __wrap_memcmp(a: *const c_void, b: *const c_void, bytes: usize) -> c_int {
        range(a as usize, bytes, READ);
        range(b as usize, bytes, READ);
        real!()
    }
    __real_memchr as __wrap_memchr(at: *const c_void, byte: c_int, bytes: usize) -> *mut c_void {
        let found = real!();
        range(at as usize, if found.is_null() { bytes } else { found as usize - at as usize + 1 }, READ);
        found
    }
    __real_strlen as __wrap_strlen(text: *const c_char) -> usize {
        let length = real!();
        range(text as usize, length + 1, READ);
        length
    }
    __real_strnlen as __wrap_strnlen(text: *const c_char, most: usize) -> usize {
        let length = real!();
        range(text as usize, (length + 1).min(most), READ);
        length
    }
    __real_strcmp as __wrap_strcmp(a: *const c_char, b: *const c_char) -> c_int {
        let looked_at = common(a, b, usize::MAX);
        range(a as usize, looked_at, READ);
        range(b as usize, looked_at, READ);
        real!()
    }
    __real_strncmp as __wrap_strncmp(a: *const c_char, b: *const c_char, most: usize) -> c_int {
        let looked_at = common(a, b, most);
        range(a as usize, looked_at, READ);
        range(b as usize, looked_at, READ);
        real!()
    }
    __real_strcpy as __wrap_strcpy(to: *mut c_char, from: *const c_char) -> *mut c_char {
        let bytes = length(from, usize::MAX);
        range(from as usize, bytes, READ);
        range(to as usize, bytes, WRITE);
        real!()
    }
    __real_strncpy as __wrap_strncpy(to: *mut c_char, from: *const c_char, most: usize) -> *mut c_char {
        range(from as usize, length(from, most), READ);
        range(to as usize, most, WRITE);
        real!()
    }
    __real_strcat as __wrap_strcat(to: *mut c_char, from: *const c_char) -> *mut c_char {
        let (old, added) = (length(to, usize::MAX), length(from, usize::MAX));
        range(to as usize, old, READ);
        range(from as usize, added, READ);
        range(to as usize + old - 1, added, WRITE);
        real!()
    }
    __real_strchr as __wrap_strchr(text: *const c_char, byte: c_int) -> *mut c_char {
        let found = real!();
        range(text as usize, if found.is_null() { length(text, usize::MAX) } else { found as usize - text as usize + 1 }, READ);
        found
    }
    __real_strrchr as __wrap_strrchr(text: *const c_char, byte: c_int) -> *mut c_char {
        range(text as usize, length(text, usize::MAX), READ);
        real!()
    }

    __real_mmap as __wrap_mmap(at: *mut c_void, bytes: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void {
        let result = real!();
        if result as isize != -1 {
            tell(EVENT_MAP, &[result as usize as u64, bytes as u64]);
            if let Some((object, private)) = object(flags, fd) {
                let words = [result as usize as u64, bytes as u64, object, offset as u64, u64::from(private)];
                tell(EVENT_SHARED, &words);
            }
        }
        result
    }
    __real_munmap as __wrap_munmap(at: *mut c_void, bytes: usize) -> c_int {
        let result = real!();
        if result == 0 {
            tell(EVENT_UNMAP, &[at as usize as u64, bytes as u64]);
        }
        result
    }
    __real_madvise as __wrap_madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int {
        let result = real!();
        // MADV_DONTNEED, MADV_FREE, MADV_REMOVE
        if result == 0 && matches!(advice, 4 | 8 | 9) {
            tell(EVENT_DISCARD, &[at as usize as u64, bytes as u64]);
        }
        result
    }

    __real_pthread_join as __wrap_pthread_join(thread: usize, result: *mut *mut c_void) -> c_int { waiting(|| real!()) }
    __real_pthread_cond_wait as __wrap_pthread_cond_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int { waiting(|| real!()) }
    __real_pthread_cond_timedwait as __wrap_pthread_cond_timedwait(condition: *mut c_void, mutex: *mut c_void, until: *const c_void) -> c_int {
        waiting(|| real!())
    }
    __real_pthread_barrier_wait as __wrap_pthread_barrier_wait(barrier: *mut c_void) -> c_int { waiting(|| real!()) }
    __real_sem_wait as __wrap_sem_wait(semaphore: *mut c_void) -> c_int { waiting(|| real!()) }
    __real_pthread_mutex_lock as __wrap_pthread_mutex_lock(mutex: *mut c_void) -> c_int {
        unsafe extern "C" { fn pthread_mutex_trylock(mutex: *mut c_void) -> c_int; }
        record(mutex as usize, crate::access::UPDATE, 4, 0);
        // SAFETY: the program's own mutex.
        if unsafe { pthread_mutex_trylock(mutex) } == 0 {
            return 0;
        }
        waiting(|| real!())
    }
    __real_pthread_mutex_unlock as __wrap_pthread_mutex_unlock(mutex: *mut c_void) -> c_int {
        record(mutex as usize, crate::access::UPDATE, 4, 0);
        real!()
    }
    __real_read as __wrap_read(fd: c_int, to: *mut c_void, bytes: usize) -> isize { waiting(|| real!()) }
    __real_poll as __wrap_poll(files: *mut c_void, count: u64, milliseconds: c_int) -> c_int { waiting(|| real!()) }
    __real_epoll_wait as __wrap_epoll_wait(epoll: c_int, events: *mut c_void, most: c_int, milliseconds: c_int) -> c_int { waiting(|| real!()) }
    __real_accept as __wrap_accept(socket: c_int, address: *mut c_void, length: *mut u32) -> c_int { waiting(|| real!()) }
    __real_recv as __wrap_recv(socket: c_int, to: *mut c_void, bytes: usize, flags: c_int) -> isize { waiting(|| real!()) }
    __real_nanosleep as __wrap_nanosleep(time: *const c_void, left: *mut c_void) -> c_int { waiting(|| real!()) }
    __real_usleep as __wrap_usleep(microseconds: u32) -> c_int { waiting(|| real!()) }
    __real_sleep as __wrap_sleep(seconds: u32) -> u32 { waiting(|| real!()) }

    __real_free as __wrap_free(pointer: *mut c_void) -> () { freed(pointer); real!() }
    __real__ZdlPv as __wrap__ZdlPv(pointer: *mut c_void) -> () { freed(pointer); real!() }
    __real__ZdaPv as __wrap__ZdaPv(pointer: *mut c_void) -> () { freed(pointer); real!() }
    __real__ZdlPvm as __wrap__ZdlPvm(pointer: *mut c_void, bytes: usize) -> () { freed(pointer); real!() }
    __real__ZdaPvm as __wrap__ZdaPvm(pointer: *mut c_void, bytes: usize) -> () { freed(pointer); real!() }
    __real__ZdlPvSt11align_val_t as __wrap__ZdlPvSt11align_val_t(pointer: *mut c_void, align: usize) -> () { freed(pointer); real!() }
    __real__ZdlPvmSt11align_val_t as __wrap__ZdlPvmSt11align_val_t(pointer: *mut c_void, bytes: usize, align: usize) -> () {
        freed(pointer);
        real!()
    }
}

/// The program is about to become another one, which is not recorded unless it was compiled so too.
extern "C" fn replaced() {
    let slot = slot();
    if is_recorded() && !slot.is_null() {
        shared().publish(number_of(slot));
        replacing();
    }
}

/// The program has started another process; whether that one is recorded shows when it arrives.
fn spawned(result: c_int) {
    if result == 0 && is_recorded() {
        shared().header().spawned.fetch_add(1, SeqCst);
    }
}

wrap! {
    __real_posix_spawn as __wrap_posix_spawn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, args: *const c_void, environment: *const c_void) -> c_int {
        let result = real!();
        spawned(result);
        result
    }
    __real_posix_spawnp as __wrap_posix_spawnp(pid: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, args: *const c_void, environment: *const c_void) -> c_int {
        let result = real!();
        spawned(result);
        result
    }
    __real_system as __wrap_system(command: *const c_char) -> c_int {
        if !command.is_null() {
            spawned(0);
        }
        waiting(|| real!())
    }
    __real_popen as __wrap_popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
        let result = real!();
        spawned(c_int::from(result.is_null()));
        result
    }
    __real_waitpid as __wrap_waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int { waiting(|| real!()) }
    __real_wait as __wrap_wait(status: *mut c_int) -> c_int { waiting(|| real!()) }
}

// Functions that replace the program.
after_call!(__wrap_execve = __real_execve after replaced);
after_call!(__wrap_execv = __real_execv after replaced);
after_call!(__wrap_execvp = __real_execvp after replaced);
after_call!(__wrap_execvpe = __real_execvpe after replaced);
after_call!(__wrap_execl = __real_execl after replaced);
after_call!(__wrap_execlp = __real_execlp after replaced);
after_call!(__wrap_execle = __real_execle after replaced);

/// The object that a mapping with these flags is of, and whether writes are private; none for memory of the process alone.
fn object(flags: c_int, file: c_int) -> Option<(u64, bool)> {
    /// `struct stat` of x86-64 has 18 words: first the device and the file's number; the file's type is in the fourth.
    type Stat = [u64; 18];
    unsafe extern "C" {
        fn fstat(file: c_int, about: *mut Stat) -> c_int;
    }
    const SHARED: c_int = 1;
    const ANONYMOUS: c_int = 0x20;
    const TYPE: u64 = 0o170_000;
    const REGULAR: u64 = 0o100_000;
    static OBJECTS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    let private = flags & SHARED == 0;
    let mut about: Stat = [0; 18];
    // SAFETY: a descriptor of the program's, and room for what the call writes.
    let is_file = flags & ANONYMOUS == 0 && unsafe { fstat(file, &mut about) } == 0;
    let [device, inode, _, mode, ..] = about;
    if is_file && mode & TYPE == REGULAR {
        return Some((file_object_of(device, inode), private));
    }
    // The kernel makes one for this call.
    let number =
        || OBJECTS.fetch_add(1, SeqCst) | u64::from(crate::thread::process()) << 40 | 1 << 63;
    (!private).then(|| (number(), false))
}

fn tell(event: u64, words: &[u64]) {
    let mut slot = slot();
    if slot.is_null() {
        slot = find_slot();
    }
    if !slot.is_null() {
        shared().put(number_of(slot), event, words);
    }
}

fn freed(pointer: *mut c_void) {
    let slot = slot();
    if !slot.is_null() && !pointer.is_null() {
        shared().put(number_of(slot), EVENT_FREE, &[pointer as u64]);
    }
}

fn allocated(pointer: *mut c_void, bytes: usize, caller: usize) -> *mut c_void {
    if !pointer.is_null() {
        let mut words = [pointer as u64, bytes as u64, caller as u64, 0, 0, 0];
        let mut used = 3;
        for (level, word) in words.iter_mut().skip(3).enumerate() {
            match called_from(level) {
                0 => break,
                back => *word = back as u64,
            }
            used += 1;
        }
        tell(EVENT_ALLOC, words.get(..used).unwrap_or(&[]));
    }
    pointer
}

/// Bytes of a page.
const PAGE: usize = 4096;

/// Allocating functions: the wrapper passes its return address on behind the arguments, whose number comes first.
macro_rules! allocate {
    ($($arguments:tt: $real:ident as $wrapper:ident = $inner:ident ($($arg:ident: $type:ty),*) |$caller:ident, $pointer:ident| $told:expr;)*) => {
        $(
            extern "C" fn $inner($($arg: $type,)* $caller: usize) -> *mut c_void {
                unsafe extern "C" { fn $real($($arg: $type),*) -> *mut c_void; }
                // SAFETY: the program's own arguments, passed on as they are.
                let $pointer = unsafe { $real($($arg),*) };
                $told
            }

            with_caller!($wrapper = $inner, $arguments);
        )*
    };
}

allocate! {
    1: __real_malloc as __wrap_malloc = on_malloc(bytes: usize) |caller, pointer| allocated(pointer, bytes, caller);
    2: __real_calloc as __wrap_calloc = on_calloc(count: usize, bytes: usize)
        |caller, pointer| allocated(pointer, count.wrapping_mul(bytes), caller);
    2: __real_realloc as __wrap_realloc = on_realloc(old: *mut c_void, bytes: usize) |caller, pointer| {
        if !pointer.is_null() || bytes == 0 {
            freed(old);
        }
        allocated(pointer, bytes, caller)
    };
    3: __real_reallocarray as __wrap_reallocarray = on_reallocarray(old: *mut c_void, count: usize, bytes: usize) |caller, pointer| {
        let bytes = count.wrapping_mul(bytes);
        if !pointer.is_null() || bytes == 0 {
            freed(old);
        }
        allocated(pointer, bytes, caller)
    };
    1: __real_valloc as __wrap_valloc = on_valloc(bytes: usize) |caller, pointer| allocated(pointer, bytes, caller);
    1: __real_pvalloc as __wrap_pvalloc = on_pvalloc(bytes: usize)
        |caller, pointer| allocated(pointer, bytes.wrapping_add(PAGE - 1) / PAGE * PAGE, caller);
    2: __real_memalign as __wrap_memalign = on_memalign(align: usize, bytes: usize) |caller, pointer| allocated(pointer, bytes, caller);
    2: __real_aligned_alloc as __wrap_aligned_alloc = on_aligned_alloc(align: usize, bytes: usize)
        |caller, pointer| allocated(pointer, bytes, caller);
    1: __real_strdup as __wrap_strdup = on_strdup(text: *const c_char) |caller, pointer| {
        let bytes = length(text, usize::MAX);
        range(text as usize, bytes, READ);
        if !pointer.is_null() {
            range(pointer as usize, bytes, WRITE);
        }
        allocated(pointer, bytes, caller)
    };
    2: __real_strndup as __wrap_strndup = on_strndup(text: *const c_char, most: usize) |caller, pointer| {
        let bytes = length(text, most);
        range(text as usize, bytes, READ);
        if !pointer.is_null() {
            range(pointer as usize, bytes, WRITE);
        }
        allocated(pointer, bytes.min(most) + 1, caller)
    };
    2: __real__ZnwmRKSt9nothrow_t as __wrap__ZnwmRKSt9nothrow_t = on_new_or_null(bytes: usize, tag: *const c_void)
        |caller, pointer| allocated(pointer, bytes, caller);
    2: __real__ZnamRKSt9nothrow_t as __wrap__ZnamRKSt9nothrow_t = on_new_array_or_null(bytes: usize, tag: *const c_void)
        |caller, pointer| allocated(pointer, bytes, caller);
    1: __real__Znwm as __wrap__Znwm = on_new(bytes: usize) |caller, pointer| allocated(pointer, bytes, caller);
    1: __real__Znam as __wrap__Znam = on_new_array(bytes: usize) |caller, pointer| allocated(pointer, bytes, caller);
    2: __real__ZnwmSt11align_val_t as __wrap__ZnwmSt11align_val_t = on_new_aligned(bytes: usize, align: usize)
        |caller, pointer| allocated(pointer, bytes, caller);
}

extern "C" fn on_posix_memalign(
    place: *mut *mut c_void,
    align: usize,
    bytes: usize,
    caller: usize,
) -> c_int {
    unsafe extern "C" {
        fn __real_posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int;
    }
    // SAFETY: the program's own arguments; the place is written when the call succeeds.
    unsafe {
        let code = __real_posix_memalign(place, align, bytes);
        if code == 0 {
            allocated(*place, bytes, caller);
        }
        code
    }
}

with_caller!(__wrap_posix_memalign = on_posix_memalign, 3);

/// Clang calls these for copies that it makes itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the program's own arguments.
    unsafe { __wrap_memcpy(to, from, bytes) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memmove(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the program's own arguments.
    unsafe { __wrap_memmove(to, from, bytes) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memset(to: *mut c_void, value: c_int, bytes: usize) -> *mut c_void {
    // SAFETY: the program's own arguments.
    unsafe { __wrap_memset(to, value, bytes) }
}

// C programs have no C++ allocator: these may stay undefined, since their wrappers are never called then.
core::arch::global_asm!(
    ".weak __real__Znwm",
    ".weak __real__ZnwmRKSt9nothrow_t",
    ".weak __real__ZnamRKSt9nothrow_t",
    ".weak __real__Znam",
    ".weak __real__ZnwmSt11align_val_t",
    ".weak __real__ZdlPv",
    ".weak __real__ZdaPv",
    ".weak __real__ZdlPvm",
    ".weak __real__ZdaPvm",
    ".weak __real__ZdlPvSt11align_val_t",
    ".weak __real__ZdlPvmSt11align_val_t",
);
