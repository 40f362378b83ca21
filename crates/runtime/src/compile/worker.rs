//! A thread that generates optimized code while the program runs on.

use super::Unit;
use crate::error::Result;
use cranelift_codegen::isa::OwnedTargetIsa;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Where the code will come from.
pub(crate) type Pending = Receiver<Result<Unit>>;

struct Work {
    unit: Unit,
    isa: OwnedTargetIsa,
    done: Sender<Result<Unit>>,
}

/// The thread, once there is work. It ends with its engine, after the function that it works on.
#[derive(Default)]
pub(crate) struct Worker {
    queue: Mutex<Option<Sender<Work>>>,
}

impl Worker {
    /// Generates code for a function on the thread.
    pub fn generate(&self, unit: Unit, isa: OwnedTargetIsa) -> Pending {
        let (done, pending) = channel();
        let mut work = Work { unit, isa, done };
        let mut queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
        if queue.is_none() {
            *queue = start();
        }
        if let Some(sender) = &*queue {
            match sender.send(work) {
                Ok(()) => return pending,
                Err(back) => work = back.0,
            }
        }
        // There is no thread to be had: it is done here.
        run(work);
        pending
    }
}

fn start() -> Option<Sender<Work>> {
    let (sender, queue) = channel();
    std::thread::Builder::new()
        .name("varve-compiler".into())
        .spawn(move || queue.into_iter().for_each(run))
        .ok()?;
    Some(sender)
}

fn run(work: Work) {
    let Work {
        mut unit,
        isa,
        done,
    } = work;
    let result = unit.generate(&*isa).map(|()| unit);
    // Nobody waits for it any more if the store is gone.
    let _ = done.send(result);
}
