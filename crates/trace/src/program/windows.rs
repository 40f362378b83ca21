//! A trace that holds parts of a run: says to the model where they begin, and touches what the program had touched before.

use super::Listener;
use crate::error::TraceError;
use crate::format::{Event, Part};
use crate::reader::TraceReader;
use std::collections::VecDeque;
use varve_machine::{Kind, Op};

const PAGE: u64 = 4096;

/// See the module. Phase 2n warms caches for window n, and phase 2n + 1 measures it.
pub(super) struct Windows {
    /// The last one that began, and the thread that came first.
    number: u32,
    opener: usize,
    /// Instructions that are left of the part of it that only warms caches, of that thread.
    warm: u64,
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
            opener: 0,
            warm: 0,
            touches: vec![VecDeque::new(); threads],
        })
    }

    /// An event of a thread.
    pub fn event(&mut self, thread: usize, event: &Event, out: &mut Vec<Op>) {
        match *event {
            Event::Touched { addr, bytes } => self.touches[thread].push_back((addr, addr + bytes)),
            // the first thread that comes into a window opens it for all
            Event::Window { number, warm, .. } if number > self.number => {
                (self.number, self.warm, self.opener) = (number, warm, thread);
                let measures = u64::from(warm == 0);
                out.push(Op::mark(Kind::Phase, 2 * u64::from(number) + measures));
            }
            _ => {}
        }
    }

    /// What a thread has to touch next, at most `most` pages; none when there is nothing.
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
        let mut left = self.warm;
        let over = |op: &Op| {
            let over = u64::from(op.instructions) > left;
            left = left.saturating_sub(u64::from(op.instructions));
            over
        };
        if self.warm == 0 || thread != self.opener {
            return reader.ops(ops, out);
        }
        let Some(at) = ops.iter().position(over) else {
            self.warm = left.max(1);
            return reader.ops(ops, out);
        };
        reader.ops(&ops[..at], out);
        let op = ops[at];
        out.push(Op::new(Kind::Sleep, 0, 0, left as u32));
        out.push(Op::mark(Kind::Phase, 2 * u64::from(self.number) + 1));
        let instructions = op.instructions - left as u32;
        reader.ops(&[Op { instructions, ..op }], out);
        reader.ops(&ops[at + 1..], out);
        self.warm = 0;
    }
}
