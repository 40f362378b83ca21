//! How collector threads share work: packets of objects to scan, and the detection that no thread has any left.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// An object to scan, with the segment of its elements if it is an array.
pub(crate) type Entry = u64;

/// The packets that threads have to spare.
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    /// Threads that wait for a packet: busy ones check this now and then.
    hungry: AtomicUsize,
}

struct State {
    packets: Vec<Vec<Entry>>,
    /// Threads that may still produce packets.
    working: usize,
}

impl Pool {
    /// A pool for one thread that is working.
    pub fn new() -> Pool {
        Pool {
            state: Mutex::new(State {
                packets: Vec::new(),
                working: 1,
            }),
            changed: Condvar::new(),
            hungry: AtomicUsize::new(0),
        }
    }

    /// One more thread works from now on.
    pub fn join(&self) {
        self.lock().working += 1;
    }

    /// A thread that joined does not work after all.
    pub fn leave(&self) {
        self.lock().working -= 1;
    }

    /// Whether a thread waits for a packet.
    pub fn is_hungry(&self) -> bool {
        self.hungry.load(Relaxed) > 0
    }

    /// Offers a packet to the other threads.
    pub fn offer(&self, packet: Vec<Entry>) {
        self.lock().packets.push(packet);
        self.changed.notify_one();
    }

    /// A packet for a thread that ran out of work, or `None` once all did.
    pub fn take(&self) -> Option<Vec<Entry>> {
        let mut state = self.lock();
        state.working -= 1;
        loop {
            if let Some(packet) = state.packets.pop() {
                state.working += 1;
                return Some(packet);
            }
            if state.working == 0 {
                self.changed.notify_all();
                return None;
            }
            self.hungry.fetch_add(1, Relaxed);
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            self.hungry.fetch_sub(1, Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every entry `n` stands for a task that spawns `n` tasks `n - 1`; all threads together do all of them exactly
    /// once.
    #[test]
    fn everybody_stops_when_all_is_done_and_not_before() {
        let pool = Pool::new();
        pool.join();
        pool.join();
        pool.offer(vec![6]);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some(mut stack) = pool.take() {
                        while let Some(n) = stack.pop() {
                            done.fetch_add(1, Relaxed);
                            stack.extend((0..n).map(|_| n - 1));
                            if pool.is_hungry() && stack.len() > 1 {
                                pool.offer(stack.drain(..1).collect());
                            }
                        }
                    }
                });
            }
        });
        // tasks(n) = 1 + n * tasks(n - 1)
        assert_eq!(done.into_inner(), (1..=6).fold(1, |below, n| 1 + n * below));
    }
}
