//! A trace that holds parts of a run: reports their begins to the model, and touches the pages that the program had
//! touched before.

use crate::error::TraceError;
use crate::format::{Event, Part};
use crate::listener::Listener;
use crate::reader::TraceReader;
use std::collections::VecDeque;
use varve_access::{Kind, Op};

const PAGE: u64 = 4096;

/// See the module. Phase 2n warms caches for window n, and phase 2n + 1 measures it.
pub(super) struct Windows {
    /// The last one that began.
    number: u32,
    /// Each one is measured for itself. If not, all of them are one phase.
    sampled: bool,
    /// By thread: instructions that it has left of the part that only warms caches. That part ends for all with the first
    /// thread that has had it: the one that came first may wait, or be at its end. Empty while a window measures.
    warm: Vec<u64>,
    /// By thread: first address and end of pages that it is to touch.
    touches: Vec<VecDeque<(u64, u64)>>,
}

impl Windows {
    /// Those of a trace.
    ///
    /// # Errors
    /// It is a sample, and no window fell into the run, or its end is missing.
    pub fn of(reader: &TraceReader, threads: usize) -> Result<Windows, TraceError> {
        let sampled = matches!(reader.header().part, Some(Part::Sample { .. }));
        let path = || reader.path().into();
        match reader.end() {
            _ if !sampled => {}
            None => return Err(TraceError::CutSample { path: path() }),
            Some(end) if end.instructions == 0 => {
                return Err(TraceError::NoWindow {
                    path: path(),
                    skipped: end.skipped_instructions,
                });
            }
            Some(_) => {}
        }
        Ok(Windows {
            number: 0,
            sampled,
            warm: Vec::new(),
            touches: vec![VecDeque::new(); threads],
        })
    }

    /// An event of a thread.
    pub fn event(&mut self, thread: usize, event: &Event, out: &mut Vec<Op>) {
        match *event {
            Event::Touched { addr, bytes } => self.touches[thread].push_back((addr, addr + bytes)),
            // the first thread that comes into a window opens it for all
            Event::Window { number, warm, .. } if number > self.number => {
                let goes_on = !self.sampled && self.number > 0;
                self.number = number;
                if goes_on {
                    return;
                }
                let threads = if warm == 0 { 0 } else { self.touches.len() };
                self.warm = vec![warm; threads];
                let measures = u64::from(warm == 0);
                out.push(Op::mark(Kind::Phase, 2 * u64::from(number) + measures));
            }
            _ => {}
        }
    }

    /// Touches that a thread has to make next, of at most `most` pages; none when there is nothing.
    pub fn touches(&mut self, thread: usize, most: usize) -> Option<Vec<Op>> {
        let touches = self.touches.get_mut(thread)?;
        let (at, end) = touches.front_mut()?;
        let pages = (*end - *at).div_ceil(PAGE).min(most as u64);
        let ops = (0..pages).map(|page| Op::new(Kind::Touch, *at + page * PAGE, 1, 0));
        let ops = ops.collect();
        *at += pages * PAGE;
        if at >= end {
            touches.pop_front();
        }
        Some(ops)
    }

    /// Ops of a thread, which `reader` takes. Where the part that warms caches ends, measuring begins, between two ops or between
    /// the instructions before one.
    pub fn ops(
        &mut self,
        thread: usize,
        ops: &[Op],
        reader: &mut impl Listener,
        out: &mut Vec<Op>,
    ) {
        let Some(mut left) = self.warm.get(thread).copied() else {
            return reader.ops(ops, out);
        };
        let over = |op: &Op| {
            let rest = left.checked_sub(u64::from(op.instructions));
            left = rest.unwrap_or(left);
            rest.is_none()
        };
        let Some(at) = ops.iter().position(over) else {
            self.warm[thread] = left;
            return reader.ops(ops, out);
        };
        reader.ops(&ops[..at], out);
        let op = ops[at];
        out.push(Op::new(Kind::Sleep, 0, 0, left as u32));
        out.push(Op::mark(Kind::Phase, 2 * u64::from(self.number) + 1));
        let instructions = op.instructions - left as u32;
        reader.ops(&[Op { instructions, ..op }], out);
        reader.ops(&ops[at + 1..], out);
        self.warm.clear();
    }
}
