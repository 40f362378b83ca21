//! Instances of programs that run at the same time and sample together: see [`Coordinator`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use varve_pima::Coordinator;

/// A [`Coordinator`] that the heaps of several threads share. No heap blocks: each asks, when its program
/// reports an interval, whether all are ready.
#[derive(Debug, Default)]
pub struct Instances {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    coordinator: Coordinator,
    /// Places that heaps took so far.
    taken: u32,
    /// Places that were there from the beginning.
    expected: u32,
    /// Instances that may begin a sample and were not notified yet.
    may_start: Vec<u32>,
}

impl Instances {
    /// Places for as many heaps as there will be. No sample begins before all of them are there; heaps beyond are welcome.
    pub fn new(expected: u32) -> Instances {
        let mut state = State {
            expected,
            ..State::default()
        };
        (0..expected).for_each(|instance| state.coordinator.join(instance));
        Instances {
            state: Mutex::new(state),
        }
    }

    /// Takes a place. When the returned seat is dropped, the place is free again, and no sample waits for it.
    pub fn join(self: &Arc<Instances>) -> Seat {
        let mut state = self.lock();
        let instance = state.taken;
        state.taken += 1;
        if instance >= state.expected {
            state.coordinator.join(instance);
        }
        drop(state);
        Seat {
            instances: Arc::clone(self),
            instance,
            ready: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One heap's place among [`Instances`].
#[derive(Debug)]
pub struct Seat {
    instances: Arc<Instances>,
    instance: u32,
    /// That it wants to sample was said.
    ready: bool,
}

impl Seat {
    /// This instance wants to sample: whether all do, so that it may begin.
    pub fn may_start(&mut self) -> bool {
        let mut state = self.instances.lock();
        if !std::mem::replace(&mut self.ready, true) {
            let all = state.coordinator.ready(self.instance);
            state.may_start.extend(all);
        }
        let mine = state.may_start.iter().position(|&i| i == self.instance);
        let Some(place) = mine else {
            return false;
        };
        state.may_start.swap_remove(place);
        self.ready = false;
        true
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.instances.lock();
        state.may_start.retain(|&i| i != self.instance);
        let all = state.coordinator.leave(self.instance);
        state.may_start.extend(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_begins_when_the_last_one_is_ready_and_everybody_hears_of_it_once() {
        let instances = Arc::new(Instances::new(2));
        let mut one = instances.join();
        assert!(!one.may_start(), "the other one is not there yet");
        let mut two = instances.join();
        assert!(!one.may_start());
        assert!(two.may_start());
        assert!(one.may_start());
        assert!(!two.may_start() && one.may_start(), "and again");
    }

    #[test]
    fn nobody_waits_for_one_that_ended() {
        let instances = Arc::new(Instances::new(3));
        let (mut one, mut two, three) = (instances.join(), instances.join(), instances.join());
        assert!(!one.may_start() && !two.may_start());
        drop(three);
        assert!(one.may_start() && two.may_start());
        assert!(!one.may_start());
        drop(two);
        assert!(one.may_start());
        assert!(one.may_start(), "a single instance does not wait");
    }

    /// Threads that end after different numbers of samples: none of them ever waits, and all samples of the shortest
    /// one were everybody's.
    #[test]
    fn threads_that_end_early_stop_nobody() {
        let instances = Arc::new(Instances::new(4));
        let counts: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=4u32)
                .map(|samples| {
                    let mut seat = instances.join();
                    scope.spawn(move || {
                        let mut begun = 0;
                        while begun < samples {
                            begun += u32::from(seat.may_start());
                            std::thread::yield_now();
                        }
                        begun
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(counts, [1, 2, 3, 4]);
    }
}
