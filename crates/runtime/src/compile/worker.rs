//! A thread that generates optimized code while the program runs on.

use super::{Scratch, Unit};
use crate::error::Result;
use cranelift_codegen::isa::OwnedTargetIsa;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

/// A unit with the ticket under which its code was asked for.
pub(crate) type Done = (u64, Result<Unit>);

/// A unit whose code is to be generated.
pub(crate) struct Work {
    pub unit: Unit,
    pub isa: OwnedTargetIsa,
    pub ticket: u64,
    /// Where it goes then.
    pub done: Sender<Done>,
}

/// The thread, once there is work. It ends with its engine, after the function that it works on.
#[derive(Default)]
pub(crate) struct Worker {
    queue: Mutex<Option<Sender<Work>>>,
}

impl Worker {
    /// Generates code on the thread.
    pub fn generate(&self, mut work: Work) {
        let mut queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
        if queue.is_none() {
            *queue = start();
        }
        if let Some(sender) = &*queue {
            match sender.send(work) {
                Ok(()) => return,
                Err(back) => work = back.0,
            }
        }
        // There is no thread to be had: it is done here.
        run(work, &mut Scratch::default());
    }
}

fn start() -> Option<Sender<Work>> {
    let (sender, queue) = channel();
    std::thread::Builder::new()
        .name("varve-compiler".into())
        .spawn(move || {
            let mut scratch = Scratch::default();
            queue.into_iter().for_each(|work| run(work, &mut scratch));
        })
        .ok()?;
    Some(sender)
}

fn run(work: Work, scratch: &mut Scratch) {
    let Work {
        mut unit,
        isa,
        ticket,
        done,
    } = work;
    let result = unit.generate(&*isa, scratch).map(|()| unit);
    // Nobody waits for it any more if the store is gone.
    let _ = done.send((ticket, result));
}
