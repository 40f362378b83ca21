//! A thread that generates code while the program runs on: optimized code of hot functions, and, as long as there is none of that to do,
//! baseline code of functions that the program may soon call.

use super::{Generated, Scratch, Unit};
use crate::error::{Error, Result};
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::OwnedTargetIsa;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The result of a job.
pub(crate) struct Done {
    pub ticket: u64,
    pub code: Result<Generated>,
    /// An empty one with memory, for another unit.
    pub function: Function,
}

/// A unit whose code is to be generated.
pub(crate) struct Work {
    pub unit: Unit,
    pub isa: OwnedTargetIsa,
    /// Of [`Worker::ticket`].
    pub ticket: u64,
    /// Where it goes then.
    pub done: Sender<Done>,
}

/// The queue of the thread.
#[derive(Default)]
struct Queue {
    hot: VecDeque<Work>,
    ahead: VecDeque<Work>,
    /// Whether there is a thread.
    started: bool,
    /// Whether the engine is gone.
    ended: bool,
}

impl Queue {
    fn next(&mut self) -> Option<Work> {
        self.hot.pop_front().or_else(|| {
            // The first is what the program needs next, and then generates itself sooner than it has waited for it.
            let at = self.ahead.len().min(2).checked_sub(1)?;
            self.ahead.remove(at)
        })
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something in the queue, or the engine is gone.
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The thread, once there is work. It ends with its engine, after the function that it works on.
#[derive(Default)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    tickets: AtomicU64,
}

impl Worker {
    /// Generates code on the thread, as soon as earlier requests are done.
    pub fn generate(&self, work: Work) {
        match self.running_queue() {
            Some(mut queue) => queue.hot.push_back(work),
            // There is no thread to be had: it is done here.
            None => return run(work, &mut Scratch::default()),
        }
        self.shared.changed.notify_one();
    }

    /// Generates code on the thread when nothing else is to be done there: in the order of the list, and before other lists.
    pub fn generate_ahead(&self, works: Vec<Work>) {
        let Some(mut queue) = self.running_queue() else {
            let mut scratch = Scratch::default();
            return works.into_iter().for_each(|work| run(work, &mut scratch));
        };
        for work in works.into_iter().rev() {
            queue.ahead.push_front(work);
        }
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// Takes work back that was to be done ahead, if it was not begun.
    pub fn take_back(&self, ticket: u64) -> Option<Work> {
        let mut queue = self.shared.queue();
        let at = queue.ahead.iter().position(|w| w.ticket == ticket)?;
        queue.ahead.remove(at)
    }

    /// An unused ticket.
    pub fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// The queue of a thread that runs.
    fn running_queue(&self) -> Option<MutexGuard<'_, Queue>> {
        let mut queue = self.shared.queue();
        if !queue.started {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("varve-compiler".into());
            queue.started = thread.spawn(move || work_on(&shared)).is_ok();
        }
        queue.started.then_some(queue)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.queue().ended = true;
        self.shared.changed.notify_one();
    }
}

fn work_on(shared: &Shared) {
    let mut scratch = Scratch::default();
    let mut queue = shared.queue();
    while !queue.ended {
        match queue.next() {
            Some(work) => {
                drop(queue);
                run(work, &mut scratch);
                queue = shared.queue();
            }
            None => {
                let woken = shared.changed.wait(queue);
                queue = woken.unwrap_or_else(|e| e.into_inner());
            }
        }
    }
}

fn run(work: Work, scratch: &mut Scratch) {
    let Work {
        unit,
        isa,
        ticket,
        done,
    } = work;
    // The program may wait for the result: it must get an error even if the compiler fails in an unforeseen way.
    let generated = catch_unwind(AssertUnwindSafe(|| unit.generate(&*isa, scratch)));
    let code = generated.unwrap_or_else(|_| {
        *scratch = Scratch::default();
        let what = "code generation: the compiler panicked".into();
        Err(Error::Internal(what))
    });
    let function = scratch.function();
    // The store may be gone and no longer wait for the result.
    let _ = done.send(Done {
        ticket,
        code,
        function,
    });
}
