//! A managed program as one of several programs of a model, of whatever kind the others are: its engine runs in a thread of its own and
//! passes on every access. All of its heap is in one memory, which the model's pager says, unless a plan divides it.

use super::pages::Tiers;
use super::program::{End, Failed, ManagedProgram, SEED};
use super::stream::{self, AccessStream};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use varve_access::{Op, Program};
use varve_run::PlacedMember;
use varve_runtime::Config;
use varve_sites::Profile;

/// See the module. It begins when the model first asks for its accesses, and ends when it is dropped.
pub struct ManagedMember {
    program: ManagedProgram,
    config: Config,
    tiers: Arc<Tiers>,
    state: State,
    failure: Option<String>,
}

enum State {
    Waiting,
    Running(AccessStream, JoinHandle<Result<End, Failed>>),
    Ended,
}

impl ManagedMember {
    /// A program on a model with such pages.
    pub fn new(program: ManagedProgram, page_bytes: u64) -> ManagedMember {
        ManagedMember {
            program,
            config: Config {
                // The same every time.
                background: false,
                ..Config::default()
            },
            tiers: Arc::new(Tiers::new(page_bytes)),
            state: State::Waiting,
            failure: None,
        }
    }

    /// The same under a heap plan, with at most this number of bytes of fast memory.
    pub fn placed(
        program: ManagedProgram,
        page_bytes: u64,
        plan: &str,
        profile: Option<Arc<Profile>>,
        fast_max: Option<u64>,
    ) -> PlacedMember {
        let mut member = ManagedMember::new(program, page_bytes);
        member.config.plan = Some(plan.into());
        member.config.profile = profile;
        member.config.fast_max = fast_max;
        let tiers = Arc::clone(&member.tiers);
        PlacedMember {
            program: Box::new(member),
            is_fast: Box::new(move |address| tiers.of(address / page_bytes) == 0),
        }
    }

    fn begin(&mut self) {
        let (sink, stream) = stream::pair(0, self.tiers.clone());
        let config = self.config.clone();
        let program = self.program.clone();
        let thread = Builder::new().spawn(move || program.observed(config, SEED, Box::new(sink)));
        self.state = match thread {
            Ok(thread) => State::Running(stream, thread),
            Err(e) => {
                self.failure = Some(format!("no thread for its engine: {e}"));
                State::Ended
            }
        };
    }

    /// The program has sent all its accesses, or the model takes no more: returns how it ended.
    fn end(&mut self) -> Option<std::thread::Result<Result<End, Failed>>> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Running(stream, thread) => {
                drop(stream);
                Some(thread.join())
            }
            State::Waiting | State::Ended => None,
        }
    }
}

impl Program for ManagedMember {
    fn name(&self) -> String {
        self.program.name().into()
    }

    fn threads(&self) -> usize {
        1
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        if matches!(self.state, State::Waiting) {
            self.begin();
        }
        if let State::Running(stream, _) = &mut self.state
            && stream.fill(thread, now, out)
        {
            return true;
        }
        match self.end() {
            Some(Ok(end)) => self.failure = why(end),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => {}
        }
        false
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

impl Drop for ManagedMember {
    fn drop(&mut self) {
        // The outcome is not needed any more.
        let _ = self.end();
    }
}

/// Why a program did not end well, in a line, with the last one that it said.
fn why(end: Result<End, Failed>) -> Option<String> {
    let (what, said) = match end {
        Ok(end) if end.code == 0 => return None,
        Ok(end) => (format!("ended with exit code {}", end.code), end.err),
        Err(failed) => (failed.error.to_string(), failed.err),
    };
    let what = what.lines().next().unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    Some(match said.lines().rev().find(|l| !l.trim().is_empty()) {
        Some(last) => format!("{what}; it said: {last}"),
        None => what.into(),
    })
}
