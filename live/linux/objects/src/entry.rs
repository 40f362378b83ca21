//! The entry points for programs. The C functions keep the registers in which a walk of the stack begins, and go on in [`crate::alloc`]:
//! the return address, the stack pointer behind it, and the frame pointer, which no callee has changed yet.

use crate::alloc;
use crate::mapped;
use crate::modules;
use libmimalloc_sys as mi;
use std::arch::naked_asm;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicU8;

/// 1 once it is known that this process has no site map: then all goes to mimalloc at once.
pub static PLAIN: AtomicU8 = AtomicU8::new(0);

/// Where a call came from.
#[derive(Clone, Copy)]
pub struct Caller {
    /// The return address.
    pub address: usize,
    /// The caller's stack pointer once it goes on.
    pub stack: usize,
    /// The caller's frame pointer, if it keeps one.
    pub frame: usize,
}

/// A function of the C library: straight to mimalloc without a site map, else to ours with the caller in the three
/// registers after the arguments.
macro_rules! entry {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $plain:path, $placed:path, $at:literal, $sp:literal, $bp:literal;)*) => {$(
        /// As the C library's.
        ///
        /// # Safety
        /// As for the C function.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            naked_asm!(
                "cmp byte ptr [rip + {flag}], 0",
                "jne {plain}",
                concat!("mov ", $at, ", [rsp]"),
                concat!("lea ", $sp, ", [rsp + 8]"),
                concat!("mov ", $bp, ", rbp"),
                "jmp {placed}",
                flag = sym PLAIN,
                plain = sym $plain,
                placed = sym $placed,
            )
        }
    )*};
}

entry! {
    malloc(size: usize) -> *mut c_void, mi::mi_malloc, alloc::malloc, "rsi", "rdx", "rcx";
    calloc(count: usize, size: usize) -> *mut c_void, mi::mi_calloc, alloc::calloc, "rdx", "rcx", "r8";
    realloc(old: *mut c_void, size: usize) -> *mut c_void, alloc::plain_realloc, alloc::realloc, "rdx", "rcx", "r8";
    reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void, alloc::plain_reallocarray, alloc::reallocarray, "rcx", "r8", "r9";
    posix_memalign(to: *mut *mut c_void, align: usize, size: usize) -> c_int, alloc::plain_posix_memalign, alloc::posix_memalign, "rcx", "r8", "r9";
    aligned_alloc(align: usize, size: usize) -> *mut c_void, alloc::plain_memalign, alloc::memalign, "rdx", "rcx", "r8";
    memalign(align: usize, size: usize) -> *mut c_void, alloc::plain_memalign, alloc::memalign, "rdx", "rcx", "r8";
    valloc(size: usize) -> *mut c_void, alloc::plain_valloc, alloc::valloc, "rsi", "rdx", "rcx";
    pvalloc(size: usize) -> *mut c_void, alloc::plain_pvalloc, alloc::pvalloc, "rsi", "rdx", "rcx";
}

/// As the C library's.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: passed on.
    unsafe { alloc::free(block) }
}

/// As the C library's.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: passed on.
    unsafe { alloc::free(block) }
}

/// As the C library's.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: passed on.
    unsafe { alloc::usable(block) }
}

/// `varve.h`: a block in the memory of a tier, 0 for fast and 1 for slow. Without a site map, memory of any kind.
///
/// # Safety
/// As for `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn varve_shim_malloc(size: usize, tier: c_int) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { alloc::asked(size, tier) }
}

/// `varve.h`: whole mapped pages in the memory of a color, 0 for hot and 1 for cold. Without a site map nothing happens.
#[unsafe(no_mangle)]
pub extern "C" fn varve_shim_mcolor(start: *mut c_void, bytes: usize, color: c_int) -> c_int {
    mapped::color(start as usize, bytes, color);
    0
}

/// `mmap` with its caller on the stack, behind the six arguments that registers hold.
macro_rules! mmap_entry {
    ($($name:ident)*) => {$(
        /// As the C library's.
        ///
        /// # Safety
        /// As for the C function.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(
            at: *mut c_void,
            bytes: usize,
            protection: c_int,
            flags: c_int,
            file: c_int,
            offset: i64,
        ) -> *mut c_void {
            naked_asm!(
                "cmp byte ptr [rip + {flag}], 0",
                "jne {plain}",
                "mov rax, [rsp]",
                "lea r10, [rsp + 8]",
                "push rbp",
                "push r10",
                "push rax",
                "call {placed}",
                "add rsp, 24",
                "ret",
                flag = sym PLAIN,
                plain = sym mapped::plain_mmap,
                placed = sym mapped::mmap,
            )
        }
    )*};
}

mmap_entry! { mmap mmap64 }

/// As the C library's.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: passed on.
    unsafe { mapped::munmap(at, bytes) }
}

/// As the C library's: its caller stays who it was, since that decides where a library is looked for.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {expect}",
        "call {next}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        expect = sym modules::expect,
        next = sym next_dlopen,
    )
}

/// The C library's own.
extern "C" fn next_dlopen() -> *const c_void {
    alloc::next(c"dlopen").map_or(std::ptr::null(), |next| next.cast_const())
}

/// As the C library's.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    let Some(next) = alloc::next(c"dlclose") else {
        return -1;
    };
    // SAFETY: the C library's function, with the program's own argument.
    let result = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(next)(
            library,
        )
    };
    modules::gone();
    result
}

/// As the C library's, whose last argument need not be there.
///
/// # Safety
/// As for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { mapped::mremap(old, old_bytes, new_bytes, flags, to) }
}
