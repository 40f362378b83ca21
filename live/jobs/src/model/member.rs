//! A program of a group: it waits for its turn, runs, and says when it has ended.

use super::stage::Shared;
use varve_access::{Kind, Op, Program, Region};

/// Interval at which a waiting program checks for its turn, virtual ns.
const LOOK_NS: u64 = 1000;

/// Number of the barrier at which the threads of a program wait for its turn; no program has that many of its own.
const TURN: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its pages are touched one after the other, up to this one, since they are to be where it was before.
    Claiming(u64),
    Waiting,
    Running,
    /// Everything was handed out; when asked again, it has been done.
    Ending,
}

/// See the module.
pub struct Member {
    inner: Box<dyn Program>,
    number: usize,
    stage: Shared,
    states: Vec<State>,
    page_bytes: u64,
    /// Most time that it may take, virtual ns.
    limit: Option<u64>,
}

impl Member {
    /// Program `number` of a stage. `claims`: its pages are in memory before anything starts, as those of a program that came
    /// earlier are.
    pub fn new(
        inner: Box<dyn Program>,
        number: usize,
        stage: Shared,
        claims: bool,
        page_bytes: u64,
        limit: Option<u64>,
    ) -> Member {
        let mut states = vec![State::Waiting; inner.threads().max(1)];
        if claims {
            states[0] = State::Claiming(0);
        }
        Member {
            inner,
            number,
            stage,
            states,
            page_bytes,
            limit,
        }
    }

    /// The page number `n` of all regions, if there are as many.
    fn claim(&self, from: u64, out: &mut Vec<Op>) -> Option<u64> {
        let mut number = 0;
        for region in self.inner.regions() {
            let pages = region.bytes.div_ceil(self.page_bytes);
            while number + pages > from + out.len() as u64 {
                if out.len() >= out.capacity().max(2) {
                    return Some(from + out.len() as u64);
                }
                let page = from + out.len() as u64 - number;
                let at = region.base + page * self.page_bytes;
                out.push(Op::write(at.min(region.base + region.bytes - 1), 1, 1));
            }
            number += pages;
        }
        None
    }

    fn wait(&mut self, thread: usize, out: &mut Vec<Op>) -> bool {
        if thread != 0 {
            out.push(Op::mark(Kind::Barrier, TURN));
            self.states[thread] = State::Running;
            return true;
        }
        let stage = self.stage.lock();
        if stage.stopped {
            drop(stage);
            return self.end(thread, out);
        }
        match stage.lives[self.number].start {
            Some(_) => {
                out.push(Op::mark(Kind::Barrier, TURN));
                self.states[thread] = State::Running;
            }
            None => out.push(Op::mark(Kind::Sleep, LOOK_NS)),
        }
        true
    }

    /// The next call comes when all that was handed out is done.
    fn end(&mut self, thread: usize, out: &mut Vec<Op>) -> bool {
        self.states[thread] = State::Ending;
        out.push(Op::mark(Kind::Sleep, 0));
        true
    }

    fn run(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        {
            let mut stage = self.stage.lock();
            let start = stage.lives[self.number].start;
            if let (Some(limit), Some(start)) = (self.limit, start)
                && now > start + limit
            {
                stage.fail(self.number, "it took longer than its time limit".into());
            }
            if stage.stopped || stage.lives[self.number].failed.is_some() {
                drop(stage);
                return self.end(thread, out);
            }
        }
        let more = self.inner.fill(thread, now, out);
        // Phases split the books of a single program, and there are several here.
        out.retain(|op| op.kind != Kind::Phase);
        if !more {
            if let Some(why) = self.inner.failure() {
                self.stage.lock().fail(self.number, why);
            }
            return self.end(thread, out);
        }
        if out.is_empty() {
            out.push(Op::mark(Kind::Sleep, 0));
        }
        true
    }
}

impl Program for Member {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn threads(&self) -> usize {
        self.states.len()
    }

    fn regions(&self) -> Vec<Region> {
        self.inner.regions()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        match self.states[thread] {
            State::Claiming(from) => {
                match self.claim(from, out) {
                    Some(next) => self.states[thread] = State::Claiming(next),
                    None => {
                        // Told when the last page has been touched: at the next call.
                        if out.is_empty() {
                            self.stage.lock().claimed[self.number] = true;
                            self.states[thread] = State::Waiting;
                            out.push(Op::mark(Kind::Sleep, 0));
                        } else {
                            self.states[thread] = State::Claiming(from + out.len() as u64);
                        }
                    }
                }
                true
            }
            State::Waiting => self.wait(thread, out),
            State::Running => self.run(thread, now, out),
            State::Ending => {
                self.stage.lock().thread_ended(self.number, now);
                false
            }
        }
    }

    fn failure(&self) -> Option<String> {
        // The results report a program that fails; the others continue.
        None
    }
}
