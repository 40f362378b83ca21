//! Shared state of the programs of a run: turns, and times of events.

use crate::policy::order::{Dispatcher, Reason};
use std::sync::{Arc, Mutex, MutexGuard};

/// One program's life, in virtual nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Life {
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub reason: Option<Reason>,
    /// Threads that have not ended.
    pub threads: usize,
    /// It took longer than it may, or failed.
    pub failed: Option<String>,
}

pub struct Stage {
    dispatcher: Dispatcher,
    pub lives: Vec<Life>,
    /// Programs whose pages have been touched, and are to move; `true` once they are.
    pub claimed: Vec<bool>,
    /// A failure ends all.
    stop_all: bool,
    pub stopped: bool,
}

impl Stage {
    pub fn new(dispatcher: Dispatcher, threads: &[usize], stop_all: bool) -> Stage {
        let life = |&threads: &usize| Life {
            threads,
            ..Life::default()
        };
        let mut stage = Stage {
            dispatcher,
            lives: threads.iter().map(life).collect(),
            claimed: vec![false; threads.len()],
            stop_all,
            stopped: false,
        };
        stage.turns(0);
        stage
    }

    /// Starts the programs whose turn it is.
    fn turns(&mut self, now: u64) {
        if self.stopped {
            return;
        }
        while let Some((i, reason)) = self.dispatcher.start() {
            self.lives[i].start = Some(now);
            self.lives[i].reason = Some(reason);
        }
    }

    /// Room was made for a program.
    pub fn ready(&mut self, program: usize, now: u64) {
        self.dispatcher.ready(program);
        self.turns(now);
    }

    /// A program failed: it ends, and others with it if the group wants that.
    pub fn fail(&mut self, program: usize, why: String) {
        self.lives[program].failed.get_or_insert(why);
        self.stopped |= self.stop_all;
    }

    /// A thread of a program has ended.
    pub fn thread_ended(&mut self, program: usize, now: u64) {
        let life = &mut self.lives[program];
        life.threads -= 1;
        life.end = Some(life.end.map_or(now, |e| e.max(now)));
        if life.threads == 0 {
            self.dispatcher.ended(program);
            self.turns(now);
        }
    }
}

/// A stage that several hold. The model runs one thread after the other, so the lock is never contended.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Stage>>);

impl Shared {
    pub fn new(stage: Stage) -> Shared {
        Shared(Arc::new(Mutex::new(stage)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}
