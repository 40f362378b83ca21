//! One lock around the shim's state that knows its owner.
//!
//! The shim calls the C library while it holds the lock, and the C library may call `malloc` or `free`, which
//! are ours: such a nested call must notice and pass straight on instead of waiting for itself.

use crate::place::sys;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A value behind an owner-aware lock.
pub struct OwnedLock<T> {
    /// 0 free, 1 taken, 2 taken and a thread waits.
    word: AtomicU32,
    /// The owner's mark, 0 for none.
    owner: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the lock only.
unsafe impl<T: Send> Sync for OwnedLock<T> {}

/// Different for every living thread, and known without thread-local storage of our own.
fn me() -> usize {
    sys::errno_address()
}

impl<T> OwnedLock<T> {
    /// A free lock.
    pub const fn new(value: T) -> OwnedLock<T> {
        OwnedLock {
            word: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock; `None` when the calling thread holds it already.
    pub fn lock(&self) -> Option<Guard<'_, T>> {
        if self.owner.load(Ordering::Relaxed) == me() {
            return None;
        }
        if self
            .word
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            while self.word.swap(2, Ordering::Acquire) != 0 {
                sys::futex_wait(&self.word, 2);
            }
        }
        self.owner.store(me(), Ordering::Relaxed);
        Some(Guard(self))
    }

    /// As [`OwnedLock::lock`], but gives up after `patience`.
    pub fn lock_within(&self, patience: std::time::Duration) -> Option<Guard<'_, T>> {
        let begun = std::time::Instant::now();
        while self
            .word
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            if self.owner.load(Ordering::Relaxed) == me() || begun.elapsed() > patience {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        self.owner.store(me(), Ordering::Relaxed);
        Some(Guard(self))
    }

    /// Keeps the lock beyond this function, for `fork`.
    pub fn hold(&self) {
        std::mem::forget(self.lock());
    }

    /// Ends [`OwnedLock::hold`].
    ///
    /// # Safety
    /// The calling thread must hold the lock through `hold`.
    pub unsafe fn release(&self) {
        self.owner.store(0, Ordering::Relaxed);
        if self.word.swap(0, Ordering::Release) == 2 {
            sys::futex_wake(&self.word);
        }
    }
}

/// The lock, held.
pub struct Guard<'a, T>(&'a OwnedLock<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only way to the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only way to the value.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: a guard exists only while its thread holds the lock.
        unsafe { self.0.release() }
    }
}
