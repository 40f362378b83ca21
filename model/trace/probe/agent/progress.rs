//! How far the program has come: its allocation, and for how long it ran.
//!
//! Known when a collection has ended. With generations that have places of their own, a collection begins when the
//! space of new objects is full; then that space is what was allocated since the last one. Objects that went straight
//! to the old generation are added if the machine's counters change between collections (those of JDK 17 do, those of
//! JDK 25 do not).

use super::counters::Allocation;
use std::sync::{Mutex, PoisonError};

/// Sums since the machine began.
#[derive(Clone, Copy, PartialEq)]
pub struct Progress {
    /// Collections.
    pub pauses: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Time that the machine did not stand still, ns.
    pub ran_ns: u64,
    /// Bytes of objects in the old generation.
    pub old: u64,
}

struct State {
    progress: Progress,
    /// The space of new objects, and bytes that went straight to the old generation, when the collection began.
    eden: u64,
    straight: u64,
}

static STATE: Mutex<State> = Mutex::new(State {
    progress: Progress {
        pauses: 0,
        allocated: 0,
        ran_ns: 0,
        old: 0,
    },
    eden: 0,
    straight: 0,
});

/// A collection begins.
pub fn pause(now: &Allocation) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.eden = now.eden();
    state.straight = now.old().saturating_sub(state.progress.old);
}

/// It has ended, and the machine has run for so long without pauses.
pub fn resume(now: &Allocation, ran_ns: u64) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let born = now.born(state.eden) + state.straight;
    state.progress = Progress {
        pauses: state.progress.pauses + 1,
        allocated: state.progress.allocated + born,
        ran_ns,
        old: now.old(),
    };
}

/// As of the last collection.
pub fn progress() -> Progress {
    STATE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .progress
}
