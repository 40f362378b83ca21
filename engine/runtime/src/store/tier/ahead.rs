//! Baseline code of functions before they are called.
//!
//! A program that begins calls one function after the other for the first time, and waits for the code of each. So when a function is first
//! called, those that it calls directly are translated, too, those that these call, and so on, in the order in which they will be called.
//! Another thread generates their code meanwhile. If the program calls such a function before that has begun, it generates the code itself: the
//! program and this thread share the work.
//!
//! To translate a function takes about as long as to generate its code, so that nothing is won by one that is never called. So only calls are
//! followed that the function comes to whenever it is called: none on an arm of an `if` or `switch`, behind a branch, or right before an
//! exception is thrown.

use super::super::Vm;
use super::super::func::FuncKind;
use crate::compile::Generated;
use crate::compile::isa::Level;
use crate::compile::resume::What;
use crate::compile::worker::Work;
use crate::engine::Tier;
use crate::error::Result;
use rustc_hash::FxHashMap as HashMap;
use std::time::{Duration, Instant};

/// Functions that wait for the thread, at most. To translate them takes the program's time, and functions far ahead may never be called.
const MOST_WAITING: usize = 32;
/// How long a program waits for code that the thread has begun. Code of most functions takes a tenth of that, so that the thread then has
/// no processor.
const PATIENCE: Duration = Duration::from_millis(2);
/// Functions that were not called yet and have code, or wait for it, at most: some KiB each.
const MOST: usize = 1024;

/// Functions that were not called yet.
#[derive(Default)]
pub(super) struct Ahead {
    functions: HashMap<u32, Early>,
    /// Those that wait, by their tickets.
    waiting: HashMap<u64, u32>,
}

/// A function whose code was asked for.
struct Early {
    ticket: u64,
    /// Functions that it calls.
    called: Vec<u32>,
    /// Once it is generated. An error is none of the program before it calls the function.
    code: Option<Result<Generated>>,
}

impl Ahead {
    /// Keeps generated code until its function is called.
    pub fn keep(&mut self, ticket: u64, code: Result<Generated>) {
        if let Some(func) = self.waiting.remove(&ticket)
            && let Some(early) = self.functions.get_mut(&func)
        {
            early.code = Some(code);
        }
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < MOST_WAITING && self.functions.len() < MOST
    }
}

impl Vm {
    /// Baseline code of a function that is first called now. Requests the code of its callees.
    pub(super) fn generate_and_look_ahead(&mut self, func: u32) -> Result<*const u8> {
        let Some(early) = self.code.tiers.ahead.functions.remove(&func) else {
            let job = self.job(func, Level::Baseline);
            let (mut unit, isa) = self.translate(job)?;
            self.ask_ahead(std::mem::take(&mut unit.called));
            let code = unit.generate(&*isa, &mut self.code.scratch)?;
            return self.add_code(code, Level::Baseline);
        };
        self.code.tiers.stats.ahead += 1;
        self.ask_ahead(early.called);
        let code = match early.code {
            Some(code) => code?,
            None => self.wait_for(func, early.ticket)?,
        };
        self.add_code(code, Level::Baseline)
    }

    /// Code that was asked for.
    fn wait_for(&mut self, func: u32, ticket: u64) -> Result<Generated> {
        self.code.tiers.ahead.waiting.remove(&ticket);
        if let Some(Work { unit, isa, .. }) = self.engine.worker().take_back(ticket) {
            return unit.generate(&*isa, &mut self.code.scratch);
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(done) = self.code.tiers.results.receiver.recv_timeout(left) else {
                break;
            };
            if done.ticket == ticket {
                self.code.scratch.recycle(done.function);
                return done.code;
            }
            self.take(done)?;
        }
        let job = self.job(func, Level::Baseline);
        let (unit, isa) = self.translate(job)?;
        unit.generate(&*isa, &mut self.code.scratch)
    }

    /// Has code generated of functions that are about to be called in this order, and of their callees. A function that cannot be translated is
    /// skipped: if the program calls it, it gets the error.
    fn ask_ahead(&mut self, mut called: Vec<u32>) {
        let config = self.engine.config();
        if !config.background || config.tier == Tier::Optimizing {
            return;
        }
        let mut works = Vec::new();
        // The next is last.
        called.reverse();
        while self.code.tiers.ahead.has_room()
            && let Some(func) = called.pop()
        {
            if self.is_new(func)
                && let Ok((work, calls)) = self.translate_ahead(func)
            {
                called.extend(calls.into_iter().rev());
                works.push(work);
            }
        }
        if !works.is_empty() {
            self.engine.worker().generate_ahead(works);
        }
    }

    /// A function for the thread, and its callees.
    fn translate_ahead(&mut self, func: u32) -> Result<(Work, Vec<u32>)> {
        self.prepare_feedback(func)?;
        let job = self.job(func, Level::Baseline);
        let (mut unit, isa) = self.translate(job)?;
        let called = std::mem::take(&mut unit.called);
        let ticket = self.engine.worker().ticket();
        let early = Early {
            ticket,
            called: called.clone(),
            code: None,
        };
        let tiers = &mut self.code.tiers;
        tiers.ahead.functions.insert(func, early);
        tiers.ahead.waiting.insert(ticket, func);
        let work = Work {
            unit,
            isa,
            ticket,
            done: tiers.results.sender.clone(),
        };
        Ok((work, called))
    }

    /// Whether a function's code was not requested yet.
    fn is_new(&self, func: u32) -> bool {
        let tiers = &self.code.tiers;
        let what = What::Function(func);
        matches!(self.funcs[func as usize].kind, FuncKind::Wasm { .. })
            && !tiers.versions.contains_key(&func)
            && !tiers.ahead.functions.contains_key(&func)
            && !tiers.keeping.has(what, Level::Baseline)
            && !tiers.keeping.has(what, Level::Optimizing)
    }

    /// Whether a function was translated, and not called yet.
    pub(in crate::store) fn is_ahead(&self, func: u32) -> bool {
        self.code.tiers.ahead.functions.contains_key(&func)
    }

    /// Functions not called yet will not be called.
    pub(in crate::store) fn leave_ahead(&mut self) {
        for (ticket, _) in self.code.tiers.ahead.waiting.drain() {
            self.engine.worker().take_back(ticket);
        }
    }
}
