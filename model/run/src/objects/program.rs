//! A recorded program whose objects are where a [`Layout`] puts them.

use super::layout::Layout;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use varve_access::{Op, Program, Stretch};
use varve_machine::model::Owners;
use varve_trace::TraceProgram;

/// A layout that the program changes while the model asks it.
#[derive(Clone)]
pub struct SharedLayout(Arc<Mutex<Layout>>);

impl SharedLayout {
    /// Shares a layout.
    pub fn new(layout: Layout) -> SharedLayout {
        SharedLayout(Arc::new(Mutex::new(layout)))
    }

    /// The layout as it is now.
    pub fn get(&self) -> MutexGuard<'_, Layout> {
        // It holds after each step, so that a holder that ended in between left it as well as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The owner of an address is its site. The program is ahead of the model by the ops that were fetched and did not run yet: of
/// memory that was freed and given to another site in between, it is the new one.
impl Owners for SharedLayout {
    fn owner(&mut self, address: u64) -> u32 {
        self.get().site(address)
    }
}

/// See the module.
pub struct PlacedProgram {
    trace: TraceProgram,
    layout: SharedLayout,
}

impl PlacedProgram {
    /// A trace as such a program.
    pub fn new(trace: TraceProgram, layout: SharedLayout) -> PlacedProgram {
        PlacedProgram { trace, layout }
    }
}

impl Program for PlacedProgram {
    fn name(&self) -> String {
        self.trace.name()
    }

    fn threads(&self) -> usize {
        self.trace.threads()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        self.trace.pull(thread, out, &mut *self.layout.get())
    }

    fn code(&mut self, thread: usize, steps: &mut Vec<(u32, u32)>) {
        self.trace.code(thread, steps);
    }

    fn code_name(&self, number: u32) -> Vec<String> {
        self.trace.code_name(number)
    }

    fn stretches(&self) -> Option<Vec<Stretch>> {
        self.trace.stretches()
    }

    fn failure(&self) -> Option<String> {
        self.trace.failure()
    }
}
