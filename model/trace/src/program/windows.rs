//! A trace that holds parts of a run: reports their begins to the model, and touches the pages that the program had
//! touched before.

use super::stretches::{Measured, equal, stretches};
use super::thin::{Pace, Thin};
use crate::error::TraceError;
use crate::format::{Event, Part};
use crate::listener::Listener;
use crate::reader::TraceReader;
use crate::writer::WindowShare;
use std::collections::VecDeque;
use varve_access::{Kind, Op, Stretch};

const PAGE: u64 = 4096;

/// See the module. A window of a sample is a phase that warms caches, and one that is measured.
pub(super) struct Windows {
    part: Option<Part>,
    /// The replay has windows of its own until the first recorded one begins.
    thin: Option<Thin>,
    /// How many of those began.
    thinned: u32,
    /// The last recorded one that began.
    number: u32,
    /// The last phase that began.
    phase: u64,
    /// Which part of the run that is.
    of: u64,
    /// Phases that are measured.
    measured: Vec<Measured>,
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
        let windows = Windows {
            part: reader.part(),
            thin: None,
            thinned: 0,
            number: 0,
            phase: 0,
            of: 0,
            measured: Vec::new(),
            warm: Vec::new(),
            touches: vec![VecDeque::new(); threads],
        };
        let path = || reader.path().into();
        match reader.end() {
            _ if !windows.sampled() => {}
            None => return Err(TraceError::CutSample { path: path() }),
            Some(end) if end.instructions == 0 => {
                return Err(TraceError::NoWindow {
                    path: path(),
                    skipped: end.skipped_instructions,
                });
            }
            Some(_) => {}
        }
        Ok(windows)
    }

    /// The replay is to end in time.
    pub fn thin(&mut self) {
        self.thin = Some(Thin::new(self.touches.len()));
    }

    /// Nothing is measured, and no time passes.
    pub fn skips(&self) -> bool {
        self.number == 0
            && self
                .thin
                .as_ref()
                .is_some_and(|thin| thin.pace == Pace::Skips)
    }

    /// Is what a thread does now measured?
    fn measures(&self) -> bool {
        let thinned = self.number == 0
            && self
                .thin
                .as_ref()
                .is_some_and(|thin| thin.pace != Pace::Measures);
        self.phase > 0 && self.warm.is_empty() && !thinned
    }

    /// Does each one stand for a part of the run? If not, all of them are one phase.
    pub fn sampled(&self) -> bool {
        self.thin.is_some() || matches!(self.part, Some(Part::Sample { .. } | Part::Thinning))
    }

    /// The stretches of the run that windows stand for, if they do.
    pub fn stretches(&self, reader: &TraceReader) -> Option<Vec<Stretch>> {
        let end = reader.end().filter(|_| self.sampled())?;
        let skipped = end.skipped_instructions;
        let recorded = match end.windows.is_empty() {
            true => equal(self.number, skipped),
            false => end.windows.clone(),
        };
        let Some(thin) = &self.thin else {
            return Some(stretches(&self.measured, &recorded, skipped));
        };
        // Phases of the replay's own windows, and those of recorded ones, have nothing to do with each other.
        let mut shares = thin.shares();
        let phases = shares.iter().map(|share| share.phase).max().unwrap_or(0);
        shares.extend(recorded.iter().map(|share| WindowShare {
            phase: match share.phase {
                0 => 0,
                known => known + phases,
            },
            ..*share
        }));
        Some(stretches(&self.measured, &shares, skipped + thin.skipped))
    }

    /// The program runs: its beginning may be a window.
    pub fn begin(&mut self, out: &mut Vec<Op>) {
        let whole = self.thin.is_some() || self.part == Some(Part::Thinning);
        if whole && self.phase == 0 {
            self.measure(out);
        }
    }

    /// The next part of the run begins.
    pub fn part_begins(&mut self, out: &mut Vec<Op>) {
        self.of += 1;
        let thin = self.thin.as_mut().filter(|_| self.number == 0);
        thin.into_iter().for_each(Thin::part_begins);
        if !self.sampled() {
            out.push(Op::mark(Kind::Phase, self.of));
        } else if self.measures() {
            self.measure(out);
        }
    }

    /// What follows is measured.
    fn measure(&mut self, out: &mut Vec<Op>) {
        self.phase += 1;
        self.measured.push(Measured {
            phase: self.phase,
            window: self.thinned + self.number,
            part: self.of,
        });
        out.push(Op::mark(Kind::Phase, self.phase));
    }

    /// An event of a thread.
    pub fn event(&mut self, thread: usize, event: &Event, out: &mut Vec<Op>) {
        match *event {
            Event::Touched { addr, bytes } => self.touches[thread].push_back((addr, addr + bytes)),
            // the first thread that comes into a window opens it for all
            Event::Window { number, warm, .. } if number > self.number => {
                let first = self.number == 0;
                self.number = number;
                if !self.sampled() {
                    if first {
                        out.push(Op::mark(Kind::Phase, 1));
                    }
                    return;
                }
                if warm == 0 {
                    self.warm.clear();
                    return self.measure(out);
                }
                self.warm = vec![warm; self.touches.len()];
                self.phase += 1;
                out.push(Op::mark(Kind::Phase, self.phase));
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

    /// Ops of a thread, which `reader` takes, until the first recorded window: where the replay has windows of its own, it skips the rest.
    fn thinned(
        &mut self,
        thread: usize,
        mut ops: &[Op],
        reader: &mut impl Listener,
        out: &mut Vec<Op>,
    ) {
        while !ops.is_empty()
            && let Some(thin) = &mut self.thin
        {
            let pace = thin.pace;
            let (now, later) = ops.split_at(thin.fitting(ops));
            ops = later;
            match pace {
                Pace::Skips => reader.passed(now, &thin.touches(thread, now), out),
                Pace::Measures | Pace::Warms => {
                    thin.sees(thread, now);
                    reader.ops(now, out);
                }
            }
            if !thin.turns() {
                continue;
            }
            match thin.pace {
                Pace::Skips => {
                    self.phase += 1;
                    out.push(Op::mark(Kind::Phase, self.phase));
                }
                Pace::Measures => {
                    self.thinned += 1;
                    self.measure(out);
                }
                Pace::Warms => {}
            }
        }
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
        if self.number == 0 && self.thin.is_some() {
            return self.thinned(thread, ops, reader, out);
        }
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
        self.warm.clear();
        self.measure(out);
        let instructions = op.instructions - left as u32;
        reader.ops(&[Op { instructions, ..op }], out);
        reader.ops(&ops[at + 1..], out);
    }
}
