//! A program that runs on the model while it runs.

use super::coder::Expander;
use super::memory::ThreadState;
use super::record::Recorder;
use crate::writer::End;
use varve_access::{Kind, Op, Program};

/// Virtual time that a thread sleeps before it is asked again: long for slots without a thread, short for threads
/// in a system call.
const UNBORN_NS: u64 = 20_000;
const WAITING_NS: u64 = 2_000;
/// Milliseconds of real time between checks whether the program still lives.
const LOOK_EVERY_MS: u32 = 20;

/// Calls between checks whether the program still lives, when there is no need to wait.
const ASK_EVERY: u64 = 256;

/// A running program as a stream of ops per thread.
///
/// The number of threads is fixed for a run on the model, so threads that do not exist yet, and threads that wait
/// in a system call while others run, sleep for a moment of virtual time and are asked again. With one thread the ops
/// are the same in every run; with more, their interleaving is the host's. Record a trace where that matters.
pub struct LiveProgram {
    recorder: Recorder,
    batch: Expander,
    ops: u64,
    lost_ops: u64,
    asked: u64,
}

impl Recorder {
    /// The program as the model runs it, while it runs.
    pub fn live(self) -> LiveProgram {
        LiveProgram::new(self)
    }
}

impl LiveProgram {
    fn new(recorder: Recorder) -> LiveProgram {
        LiveProgram {
            recorder,
            batch: Expander::default(),
            ops: 0,
            lost_ops: 0,
            asked: 0,
        }
    }

    /// How the program ended, once it has.
    pub fn end(&self) -> End {
        let mut end = self.recorder.end();
        end.ops = self.ops;
        if self.lost_ops > 0 {
            let most = self.recorder.max_threads();
            end.warnings.push(format!("{} accesses of threads beyond {most} at once did not reach the model; allow more threads", self.lost_ops));
        }
        end
    }

    /// Has the process ended? Asks the system only now and then, since most calls find a chunk.
    fn has_ended(&mut self) -> bool {
        self.asked += 1;
        if self.asked.is_multiple_of(ASK_EVERY) {
            self.recorder.has_ended()
        } else {
            self.recorder.known_to_have_ended()
        }
    }

    /// Threads without a place on the model must not stop for lack of room.
    fn drop_surplus(&mut self) {
        for slot in self.recorder.max_threads()..self.recorder.memory.slots() {
            while self.recorder.take(slot, &mut self.batch) {
                self.lost_ops += self.batch.ops.len() as u64;
                self.batch.ops.clear();
            }
        }
    }

    /// Takes the next chunk of a thread straight into `out`.
    fn take(&mut self, thread: usize, out: &mut Vec<Op>) -> bool {
        std::mem::swap(&mut self.batch.ops, out);
        let took = self.recorder.take(thread, &mut self.batch);
        std::mem::swap(&mut self.batch.ops, out);
        took
    }

    /// Whether any thread but this one runs, or has a chunk to take.
    fn others_can_go_on(&self, thread: usize) -> bool {
        let memory = &self.recorder.memory;
        (0..memory.slots()).any(|slot| {
            slot != thread && (memory.has_chunk(slot) || memory.state(slot) == ThreadState::Running)
        })
    }
}

impl Program for LiveProgram {
    fn name(&self) -> String {
        self.recorder.name()
    }

    fn threads(&self) -> usize {
        self.recorder.max_threads()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        let before = out.len();
        loop {
            self.drop_surplus();
            // checked before the last chunks are taken, so that none can be missed
            let ended = self.has_ended();
            while self.take(thread, out) {
                if out.len() > before {
                    self.ops += (out.len() - before) as u64;
                    return true;
                }
            }
            if ended {
                std::mem::swap(&mut self.batch.ops, out);
                self.recorder.take_rest(thread, &mut self.batch);
                std::mem::swap(&mut self.batch.ops, out);
                self.ops += (out.len() - before) as u64;
                return false;
            }
            let memory = &self.recorder.memory;
            // A thread without room has chunks to give; when it is this one, the mark outlives the chunk by a moment.
            let stalled = |memory: &super::memory::SharedMemory| {
                memory
                    .header()
                    .stalled
                    .load(std::sync::atomic::Ordering::SeqCst)
                    != 0
                    && (0..memory.slots()).any(|slot| slot != thread && memory.has_chunk(slot))
            };
            match memory.state(thread) {
                // once no other thread runs, the process takes real time to end, not virtual time
                ThreadState::Ended if self.others_can_go_on(thread) => {
                    out.push(Op::mark(Kind::Sleep, UNBORN_NS));
                    return true;
                }
                ThreadState::Unborn if thread > 0 => {
                    out.push(Op::mark(Kind::Sleep, UNBORN_NS));
                    return true;
                }
                ThreadState::Waiting if self.others_can_go_on(thread) => {
                    out.push(Op::mark(Kind::Sleep, WAITING_NS));
                    return true;
                }
                // another thread has no room, and this one may be waiting for it
                _ if stalled(memory) => {
                    out.push(Op::mark(Kind::Sleep, WAITING_NS));
                    return true;
                }
                _ => {
                    memory.sleep_unless(LOOK_EVERY_MS, |memory| {
                        memory.has_chunk(thread) || stalled(memory)
                    });
                    self.recorder.has_ended();
                }
            }
        }
    }

    fn failure(&self) -> Option<String> {
        if let Err(error) = self.recorder.check_probe() {
            return Some(error.to_string());
        }
        let signal = self.recorder.end().signal?;
        Some(format!("{} was ended by signal {signal}", self.name()))
    }
}
