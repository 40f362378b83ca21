//! Atomic operations: the compiler leaves doing them to the runtime. Always in the strongest order, which every
//! weaker one allows.

use crate::access::{READ, UPDATE, WRITE, record};
use crate::arch;
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst, compiler_fence, fence,
};

/// The operations on one width. `$atomic` is an atomic of `$value`.
macro_rules! atomics {
    ($value:ty, $atomic:ty, $bytes:literal: $load:ident $store:ident $exchange:ident $cas:ident $weak:ident $val:ident
     $($fetch:ident = $operation:ident),*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $load(at: *const $value, _: c_int) -> $value {
            record(at as usize, READ, $bytes, 0);
            // SAFETY: the program's own atomic object.
            unsafe { <$atomic>::from_ptr(at.cast_mut()) }.load(SeqCst)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $store(at: *mut $value, value: $value, _: c_int) {
            record(at as usize, WRITE, $bytes, 0);
            // SAFETY: the program's own atomic object.
            unsafe { <$atomic>::from_ptr(at) }.store(value, SeqCst);
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $exchange(at: *mut $value, value: $value, _: c_int) -> $value {
            record(at as usize, UPDATE, $bytes, 0);
            // SAFETY: the program's own atomic object.
            unsafe { <$atomic>::from_ptr(at) }.swap(value, SeqCst)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $val(at: *mut $value, expected: $value, value: $value, _: c_int, _: c_int) -> $value {
            record(at as usize, UPDATE, $bytes, 0);
            // SAFETY: the program's own atomic object.
            match unsafe { <$atomic>::from_ptr(at) }.compare_exchange(expected, value, SeqCst, SeqCst) {
                Ok(found) | Err(found) => found,
            }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cas(at: *mut $value, expected: *mut $value, value: $value, _: c_int, _: c_int) -> c_int {
            record(at as usize, UPDATE, $bytes, 0);
            // SAFETY: the program's own atomic object, and its own variable.
            unsafe {
                match <$atomic>::from_ptr(at).compare_exchange(*expected, value, SeqCst, SeqCst) {
                    Ok(_) => 1,
                    Err(found) => {
                        *expected = found;
                        0
                    }
                }
            }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $weak(at: *mut $value, expected: *mut $value, value: $value, a: c_int, b: c_int) -> c_int {
            // SAFETY: the same contract.
            unsafe { $cas(at, expected, value, a, b) }
        }

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $fetch(at: *mut $value, value: $value, _: c_int) -> $value {
                record(at as usize, UPDATE, $bytes, 0);
                // SAFETY: the program's own atomic object.
                unsafe { <$atomic>::from_ptr(at) }.$operation(value, SeqCst)
            }
        )*
    };
}

atomics!(u8, AtomicU8, 1: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange
    __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak __tsan_atomic8_compare_exchange_val
    __tsan_atomic8_fetch_add = fetch_add, __tsan_atomic8_fetch_sub = fetch_sub, __tsan_atomic8_fetch_and = fetch_and,
    __tsan_atomic8_fetch_or = fetch_or, __tsan_atomic8_fetch_xor = fetch_xor, __tsan_atomic8_fetch_nand = fetch_nand);
atomics!(u16, AtomicU16, 2: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange
    __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak __tsan_atomic16_compare_exchange_val
    __tsan_atomic16_fetch_add = fetch_add, __tsan_atomic16_fetch_sub = fetch_sub, __tsan_atomic16_fetch_and = fetch_and,
    __tsan_atomic16_fetch_or = fetch_or, __tsan_atomic16_fetch_xor = fetch_xor, __tsan_atomic16_fetch_nand = fetch_nand);
atomics!(u32, AtomicU32, 4: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange
    __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak __tsan_atomic32_compare_exchange_val
    __tsan_atomic32_fetch_add = fetch_add, __tsan_atomic32_fetch_sub = fetch_sub, __tsan_atomic32_fetch_and = fetch_and,
    __tsan_atomic32_fetch_or = fetch_or, __tsan_atomic32_fetch_xor = fetch_xor, __tsan_atomic32_fetch_nand = fetch_nand);
atomics!(u64, AtomicU64, 8: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange
    __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak __tsan_atomic64_compare_exchange_val
    __tsan_atomic64_fetch_add = fetch_add, __tsan_atomic64_fetch_sub = fetch_sub, __tsan_atomic64_fetch_and = fetch_and,
    __tsan_atomic64_fetch_or = fetch_or, __tsan_atomic64_fetch_xor = fetch_xor, __tsan_atomic64_fetch_nand = fetch_nand);

/// 16 bytes: the standard library has no such atomic, the processor has.
struct Wide(*mut u128);

impl Wide {
    /// Puts `value` where `expected` was; returns the old value.
    fn compare_exchange(&self, expected: u128, value: u128) -> u128 {
        // SAFETY: the program's own atomic object, aligned to 16 bytes.
        unsafe { arch::compare_exchange(self.0, expected, value) }
    }

    fn load(&self) -> u128 {
        self.compare_exchange(0, 0)
    }

    fn update(&self, change: impl Fn(u128) -> u128) -> u128 {
        let mut before = self.load();
        loop {
            let found = self.compare_exchange(before, change(before));
            if found == before {
                return before;
            }
            before = found;
        }
    }
}

macro_rules! wide {
    ($($name:ident = |$old:ident, $value:ident| $result:expr),*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(at: *mut u128, $value: u128, _: c_int) -> u128 {
                record(at as usize, UPDATE, 16, 0);
                Wide(at).update(|$old| $result)
            }
        )*
    };
}

wide!(
    __tsan_atomic128_exchange = |_old, value| value,
    __tsan_atomic128_fetch_add = |old, value| old.wrapping_add(value),
    __tsan_atomic128_fetch_sub = |old, value| old.wrapping_sub(value),
    __tsan_atomic128_fetch_and = |old, value| old & value,
    __tsan_atomic128_fetch_or = |old, value| old | value,
    __tsan_atomic128_fetch_xor = |old, value| old ^ value,
    __tsan_atomic128_fetch_nand = |old, value| !(old & value)
);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_load(at: *mut u128, _: c_int) -> u128 {
    record(at as usize, READ, 16, 0);
    Wide(at).load()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_store(at: *mut u128, value: u128, _: c_int) {
    record(at as usize, WRITE, 16, 0);
    Wide(at).update(|_| value);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_val(
    at: *mut u128,
    expected: u128,
    value: u128,
    _: c_int,
    _: c_int,
) -> u128 {
    record(at as usize, UPDATE, 16, 0);
    Wide(at).compare_exchange(expected, value)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_strong(
    at: *mut u128,
    expected: *mut u128,
    value: u128,
    _: c_int,
    _: c_int,
) -> c_int {
    record(at as usize, UPDATE, 16, 0);
    // SAFETY: the program's own variable.
    let wanted = unsafe { *expected };
    let found = Wide(at).compare_exchange(wanted, value);
    // SAFETY: the same variable.
    unsafe { *expected = found };
    c_int::from(found == wanted)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_weak(
    at: *mut u128,
    expected: *mut u128,
    value: u128,
    a: c_int,
    b: c_int,
) -> c_int {
    // SAFETY: the same contract.
    unsafe { __tsan_atomic128_compare_exchange_strong(at, expected, value, a, b) }
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_thread_fence(_: c_int) {
    fence(SeqCst);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(_: c_int) {
    compiler_fence(SeqCst);
}
