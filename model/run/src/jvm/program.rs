//! A recorded Java program whose collections the model times: each pause is a request of the thread that collects.

use super::ranges::Ranges;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use varve_access::{Kind, Op, Program, Stretch};
use varve_machine::model::Owners;
use varve_trace::{Event, Listener, TraceProgram, Use};

/// Classes of pauses, by number.
pub const MINOR: u64 = 0;
pub const FULL: u64 = 1;
pub const OTHER: u64 = 2;
/// Their names.
pub const CLASSES: [&str; 3] = ["minor", "full", "other"];

/// Number of owners of memory: uses by their codes and 1, and memory without a use.
pub const OWNERS: usize = Use::ALL.len() + 1;

/// The number of a use of memory.
pub fn owner(what: Option<Use>) -> u32 {
    what.map_or(0, |what| what as u32 + 1)
}

/// Uses of the program's memory at the current point of the replay.
#[derive(Clone, Default)]
pub struct LiveRanges(Arc<Mutex<Ranges>>);

impl LiveRanges {
    fn get(&self) -> MutexGuard<'_, Ranges> {
        // It holds after each step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owners for LiveRanges {
    fn owner(&mut self, address: u64) -> u32 {
        owner(self.get().at(address))
    }
}

/// Events of a Java virtual machine as the model wants them.
struct Marks<'a>(&'a LiveRanges);

impl Listener for Marks<'_> {
    fn event(&mut self, event: &Event, before: &mut Vec<Op>) {
        match *event {
            Event::Range { what, addr, bytes } => self.0.get().set(addr, bytes, what),
            Event::Pause => before.push(Op::mark(Kind::Begin, 0)),
            Event::Resume { minor, full } => {
                let class = match (minor, full) {
                    (0, 0) => OTHER,
                    (_, 0) => MINOR,
                    _ => FULL,
                };
                before.push(Op::mark(Kind::End, class));
                if class == MINOR {
                    before.push(Op::mark(Kind::Cycle, 0));
                }
            }
            _ => {}
        }
    }
}

/// See the module.
pub struct JavaProgram {
    trace: TraceProgram,
    live: LiveRanges,
}

impl JavaProgram {
    /// A trace as such a program.
    pub fn new(trace: TraceProgram, live: LiveRanges) -> JavaProgram {
        JavaProgram { trace, live }
    }
}

impl Program for JavaProgram {
    fn name(&self) -> String {
        self.trace.name()
    }

    fn threads(&self) -> usize {
        self.trace.threads()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        self.trace.pull(thread, out, &mut Marks(&self.live))
    }

    fn code(&mut self, thread: usize, steps: &mut Vec<(u32, u32)>) {
        self.trace.code(thread, steps);
    }

    fn code_name(&self, number: u32) -> Vec<String> {
        self.trace.code_name(number)
    }

    fn classes(&self) -> Vec<String> {
        CLASSES.map(String::from).into()
    }

    fn stretches(&self) -> Option<Vec<Stretch>> {
        self.trace.stretches()
    }

    fn failure(&self) -> Option<String> {
        self.trace.failure()
    }
}
