//! When each of several instances runs: not always all of them, as with a load that changes, or with fewer hardware threads than threads.

use super::stream::AccessStream;
use varve_access::{Kind, Op, Program};

/// Runs for a given time, wherever the programs are then, and which instances run when. All instances are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shifts {
    /// The end, ns of the machine's time.
    pub end_ns: u64,
    /// The instances that run until then.
    pub who: Who,
}

/// Which instances run at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// All of them.
    All,
    /// They come and go: a number of instances runs in each span, the first ones.
    First {
        /// Instances by span; none run after the last.
        counts: Vec<u32>,
        /// Time of a span, ns.
        span_ns: u64,
    },
    /// There is a hardware thread too few: in each of `turns` slices, which go round, the instance of that number rests.
    AllButOne {
        /// Slices in a round, one for each thread that wants a hardware thread.
        turns: u32,
        /// Time of a slice, ns.
        slice_ns: u64,
        /// How long it rests, ns, up to a slice.
        rest_ns: u64,
    },
}

/// The activity of an instance at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Run,
    /// Pauses for this number of ns.
    Rest(u64),
    End,
}

impl Shifts {
    /// How long an instance's hardware thread is busy in a run of `seconds`, s.
    pub(super) fn busy(&self, instance: u32, seconds: f64) -> f64 {
        match &self.who {
            Who::First { counts, span_ns } => {
                let spans = counts.iter().filter(|n| instance < **n).count();
                (spans as f64 * *span_ns as f64 / 1e9).min(seconds)
            }
            // A resting instance has left the time to another one.
            Who::All | Who::AllButOne { .. } => seconds,
        }
    }

    /// The activity of an instance at `now`. It has rested in all rounds before number `round`, which goes on when it rests again.
    fn turn(&self, instance: u32, now: u64, round: &mut u64) -> Turn {
        if now >= self.end_ns {
            return Turn::End;
        }
        match &self.who {
            Who::All => Turn::Run,
            Who::First { counts, span_ns } => {
                let span = now / span_ns.max(&1);
                let mut left = counts.iter().skip(span as usize);
                match left.position(|n| instance < *n) {
                    Some(0) => Turn::Run,
                    Some(later) => Turn::Rest((span + later as u64) * span_ns - now),
                    None => Turn::Rest(self.end_ns - now),
                }
            }
            Who::AllButOne {
                turns,
                slice_ns,
                rest_ns,
            } => {
                // It gets the time after some accesses: it rests as long, only later.
                let due = (*round * u64::from(*turns) + u64::from(instance)) * slice_ns;
                if now < due {
                    return Turn::Run;
                }
                *round += 1;
                Turn::Rest(*rest_ns)
            }
        }
    }
}

/// An instance's accesses, when it is its turn.
pub(super) struct OnShift {
    stream: AccessStream,
    shifts: Option<Shifts>,
    instance: u32,
    round: u64,
}

impl OnShift {
    /// Of instance number `instance`, which runs always if there are no shifts.
    pub fn new(stream: AccessStream, shifts: Option<Shifts>, instance: u32) -> OnShift {
        OnShift {
            stream,
            shifts,
            instance,
            round: 0,
        }
    }
}

impl Program for OnShift {
    fn name(&self) -> String {
        self.stream.name()
    }

    fn threads(&self) -> usize {
        self.stream.threads()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        let turn = match &self.shifts {
            Some(shifts) => shifts.turn(self.instance, now, &mut self.round),
            None => Turn::Run,
        };
        match turn {
            Turn::Run => self.stream.fill(thread, now, out),
            Turn::Rest(ns) => {
                out.push(Op::mark(Kind::Sleep, ns));
                true
            }
            Turn::End => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_come_and_go_by_spans_and_all_end_with_the_last() {
        let load = Shifts {
            end_ns: 300,
            who: Who::First {
                counts: vec![2, 1, 2],
                span_ns: 100,
            },
        };
        let turn = |instance, now| load.turn(instance, now, &mut 0);
        assert_eq!([0, 150, 299].map(|now| turn(0, now)), [Turn::Run; 3]);
        assert_eq!((turn(1, 50), turn(1, 130)), (Turn::Run, Turn::Rest(70)));
        assert_eq!(turn(2, 130), Turn::Rest(170), "never its turn");
        assert_eq!((turn(0, 300), turn(5, 1000)), (Turn::End, Turn::End));
        assert_eq!([0, 1, 2].map(|i| load.busy(i, 1.0)), [3e-7, 2e-7, 0.0]);
    }

    #[test]
    fn each_rests_once_a_round_however_late_it_hears_of_the_time() {
        let shifts = Shifts {
            end_ns: 30_000,
            who: Who::AllButOne {
                turns: 3,
                slice_ns: 100,
                rest_ns: 100,
            },
        };
        let mut round = 0;
        let rests = |now| shifts.turn(1, now, &mut round) != Turn::Run;
        let asked = [0, 99, 130, 230, 399, 499, 700];
        assert_eq!(
            asked.map(rests),
            [false, false, true, false, false, true, true]
        );
        let rested = |instance: u32| {
            let (mut now, mut round, mut rested) = (0, 0, 0);
            loop {
                match shifts.turn(instance, now, &mut round) {
                    Turn::Run => now += 7,
                    Turn::Rest(ns) => (now, rested) = (now + ns, rested + ns),
                    Turn::End => return rested,
                }
            }
        };
        assert_eq!([0, 1, 2].map(rested), [10_000; 3], "a third of the time");
        assert_eq!(shifts.busy(1, 2.0), 2.0);
    }
}
