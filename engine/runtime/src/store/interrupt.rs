//! Stopping a program from another thread.
//!
//! Functions compare the stack pointer with the stack's limit when they are entered, and loops do so too in stores that can be
//! interrupted. An interrupt raises that limit above every stack: the next comparison traps.

use super::Store;
use super::region::Context;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The limit of a stack on which nothing may run any more.
const NOTHING: usize = usize::MAX;

/// The limit's address, until the store is dropped.
#[derive(Default)]
pub(crate) struct Limit(Arc<Mutex<Option<Word>>>);

/// The word with the limit.
struct Word(*mut usize);

// SAFETY: it is only used as an atomic, by the thread that holds the lock; see `Interrupt::now`.
unsafe impl Send for Word {}

impl Limit {
    /// # Safety
    /// `context` lives until the result is dropped.
    pub unsafe fn new(context: *mut Context) -> Limit {
        // SAFETY: as this function.
        let word = unsafe { &raw mut (*context).stack_limit };
        Limit(Arc::new(Mutex::new(Some(Word(word)))))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Context {
    /// Whether the program was interrupted.
    pub fn interrupted(&self) -> bool {
        self.stack_limit == NOTHING
    }
}

/// Stops the program of a store, from any thread.
#[derive(Clone)]
pub struct Interrupt(Arc<Mutex<Option<Word>>>);

impl Interrupt {
    /// Has the program end, now and whenever it is called again, with a trap of the kind
    /// [`Interrupted`](crate::TrapKind::Interrupted): at the next function that is entered, or, if the store's engine has
    /// [`Config::interruptible`](crate::Config::interruptible), at the next iteration of a loop. A function of the host that waits
    /// goes on waiting. Nothing happens once the store is gone.
    pub fn now(&self) {
        let word = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Word(limit)) = &*word {
            // SAFETY: the store clears the word before its context goes, and waits for the lock; code reads the limit, aligned,
            // at once.
            unsafe { AtomicUsize::from_ptr(*limit) }.store(NOTHING, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

impl<T> Store<T> {
    /// The handle that stops the store's program.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt(Arc::clone(&self.vm().limit.0))
    }
}
