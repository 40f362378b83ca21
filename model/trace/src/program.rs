//! A recorded trace as a program that runs on the model.

use crate::error::TraceError;
use crate::format::{CodeAt, Event, Part};
use crate::listener::Listener;
use crate::parts::Block;
use crate::reader::TraceReader;
use crate::shared::{Blocks, Reading, SharedTrace};
use crate::spaces::Spaces;
use code::Code;
use marks::Marks;
pub use marks::RunPlace;
use std::path::Path;
use std::sync::Arc;
pub(crate) use stretches::{Measured, equal, stretches};
use varve_access::{Kind, Op, Program, Stretch};
use varve_sites::native::names;
use windows::Windows;

mod code;
mod marks;
mod stretches;
mod thin;
mod windows;

/// Virtual time that a thread sleeps before it checks again whether it may continue: doubled from the first to the
/// last.
const FIRST_SLEEP_NS: u64 = 500;
const LAST_SLEEP_NS: u64 = 32_000;

/// Instructions of a run that is long: the replay of less, some 70 million accesses, under the usual plans takes a minute.
const LONG: u64 = 200_000_000;
/// Ops that a thread skips before others have a turn.
const SKIPS: usize = 1 << 14;

/// Where one thread of the trace is.
struct Cursor {
    /// Its blocks, as numbers of the reader.
    blocks: Vec<usize>,
    next_block: usize,
    block: Arc<Block>,
    op: usize,
    event: usize,
    /// The last tick that it has passed, or the one that it waits at.
    tick: u64,
    /// It waits until the others have come as far as `tick`.
    waits: bool,
    ended: bool,
}

/// Functions of ops that are a part of a block.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a> {
    code: &'a [CodeAt],
    first: u32,
}

impl Steps<'_> {
    /// Number of the op, and of the function that it is the first of.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u32)> {
        let steps = self.code.iter();
        steps.map(|step| ((step.at - self.first) as usize, step.function))
    }
}

/// Next step of a thread of a trace.
pub(crate) enum Step<'a> {
    /// These ops, and the functions that they are of, each from one of them on.
    Ops(&'a [Op], Steps<'a>),
    /// This event.
    Event(&'a Event),
    /// Nothing until other threads have gone on.
    Waits,
    /// Nothing any more.
    Ended,
}

/// Walks through a trace, thread by thread, in an order that the recorder could have seen: a thread that had waited
/// goes on when the others have come as far as they had then.
pub(crate) struct Walk {
    cursors: Vec<Cursor>,
    /// The first block that could not be read.
    pub damage: Option<TraceError>,
}

impl Walk {
    /// Starts at block `first` of the reader.
    pub fn new(reader: &TraceReader, first: usize) -> Walk {
        let cursor = |_| Cursor {
            blocks: Vec::new(),
            next_block: 0,
            block: Arc::default(),
            op: 0,
            event: 0,
            tick: 0,
            waits: false,
            ended: false,
        };
        let mut cursors: Vec<Cursor> = (0..reader.threads().max(1)).map(cursor).collect();
        for (number, place) in reader.blocks().iter().enumerate().skip(first) {
            cursors[place.header.thread as usize].blocks.push(number);
        }
        Walk {
            cursors,
            damage: None,
        }
    }

    pub fn threads(&self) -> usize {
        self.cursors.len()
    }

    /// All steps of all threads, in turns.
    pub fn each(&mut self, blocks: &mut impl Blocks, mut take: impl FnMut(usize, Step)) {
        /// Ops of a thread before the next one has its turn.
        const TURN_OPS: usize = 1 << 12;
        let mut alive = vec![true; self.threads()];
        while alive.contains(&true) {
            for (thread, alive) in alive.iter_mut().enumerate() {
                while *alive {
                    let step = self.step(blocks, thread, TURN_OPS);
                    let goes_on = matches!(step, Step::Event(_));
                    *alive = !matches!(step, Step::Ended);
                    take(thread, step);
                    if !*alive {
                        self.end(thread);
                    }
                    if !goes_on {
                        break;
                    }
                }
            }
        }
    }

    /// The next step of a thread, at most `most` ops.
    pub fn step(&mut self, blocks: &mut impl Blocks, thread: usize, most: usize) -> Step<'_> {
        if self.cursors[thread].waits {
            let tick = self.cursors[thread].tick;
            let reached = |(other, cursor): (usize, &Cursor)| {
                other == thread || cursor.ended || cursor.tick >= tick
            };
            if !self.cursors.iter().enumerate().all(reached) {
                return Step::Waits;
            }
            self.cursors[thread].waits = false;
        }
        while self.cursors[thread].is_at_end_of_block() {
            if !self.next_block(blocks, thread) {
                let cursor = &mut self.cursors[thread];
                (cursor.block, cursor.op, cursor.event) = (Arc::default(), 0, 0);
                return Step::Ended;
            }
        }
        let cursor = &mut self.cursors[thread];
        let until = cursor
            .block
            .events
            .get(cursor.event)
            .map_or(cursor.block.ops.len(), |event| event.at as usize);
        if cursor.op < until {
            let start = cursor.op;
            cursor.op = until.min(start + most);
            let code = &cursor.block.code;
            let place = |op: usize| code.partition_point(|step| (step.at as usize) < op);
            let steps = Steps {
                code: &code[place(start)..place(cursor.op)],
                first: start as u32,
            };
            return Step::Ops(&cursor.block.ops[start..cursor.op], steps);
        }
        let event = &cursor.block.events[cursor.event].event;
        cursor.event += 1;
        match *event {
            Event::Start { tick } | Event::Wait { tick } | Event::Window { tick, .. } => {
                (cursor.tick, cursor.waits) = (tick, true)
            }
            Event::Tick { tick } => cursor.tick = tick,
            _ => {}
        }
        Step::Event(event)
    }

    /// All that a thread did is done: others wait for it no more.
    pub fn end(&mut self, thread: usize) {
        self.cursors[thread].ended = true;
    }

    /// Goes on to the next block of a thread. `false` when there is none, or it cannot be read.
    fn next_block(&mut self, blocks: &mut impl Blocks, thread: usize) -> bool {
        let cursor = &mut self.cursors[thread];
        let Some(&number) = cursor.blocks.get(cursor.next_block) else {
            return false;
        };
        cursor.next_block += 1;
        (cursor.op, cursor.event) = (0, 0);
        match blocks.next(number, std::mem::take(&mut cursor.block)) {
            Ok(block) => {
                cursor.block = block;
                true
            }
            Err(error) => {
                cursor.next_block = cursor.blocks.len();
                self.damage.get_or_insert(error);
                false
            }
        }
    }
}

impl Cursor {
    fn is_at_end_of_block(&self) -> bool {
        self.op == self.block.ops.len() && self.event == self.block.events.len()
    }
}

/// Replays a trace. Threads keep the order that the recorder saw: one that had waited goes on when the others have
/// come as far as they had then.
pub struct TraceProgram {
    reading: Reading,
    walk: Walk,
    /// How long each thread sleeps when it has to wait next.
    sleeps: Vec<u64>,
    replayed: u64,
    windows: Windows,
    marks: Marks,
    spaces: Spaces,
    /// The functions that run, if the caller wants them.
    code: Option<Code>,
}

impl TraceProgram {
    /// Opens a trace for replay from its beginning.
    ///
    /// # Errors
    /// The file cannot be read, is no trace, or is cut off before its first block is whole. One that is cut later is
    /// replayed as far as it goes, and [`Program::failure`] reports where it stops.
    pub fn open(path: &Path) -> Result<TraceProgram, TraceError> {
        TraceProgram::new(&SharedTrace::open(path, 1, false)?, 0, false)
    }

    /// The same, and [`Program::code`] reports which functions run, if the trace has them.
    ///
    /// # Errors
    /// As [`TraceProgram::open`].
    pub fn open_with_code(path: &Path) -> Result<TraceProgram, TraceError> {
        TraceProgram::new(&SharedTrace::open(path, 1, true)?, 0, true)
    }

    /// One of several programs that replay a trace, each from its beginning and in a thread of its own. Waits until it
    /// may begin; [`Program::fill`] may wait for the others. With `code` it reports which functions run, if the trace
    /// has them and was opened so.
    ///
    /// # Errors
    /// As [`TraceProgram::open`].
    pub fn of(trace: &Arc<SharedTrace>, code: bool) -> Result<TraceProgram, TraceError> {
        TraceProgram::new(trace, 0, code)
    }

    fn new(trace: &Arc<SharedTrace>, first: usize, code: bool) -> Result<TraceProgram, TraceError> {
        let reader = trace.reader();
        if let Some(cut) = reader.cut().filter(|_| reader.blocks().is_empty()) {
            return Err(TraceError::CutOff {
                path: reader.path().into(),
                offset: cut.offset,
                why: cut.why.clone(),
            });
        }
        let walk = Walk::new(reader, first);
        let windows = Windows::of(reader, walk.threads())?;
        let sleeps = vec![FIRST_SLEEP_NS; walk.threads()];
        let tells = code && trace.has_code();
        let code = tells.then(|| Code::of(walk.threads()));
        Ok(TraceProgram {
            reading: Reading::begin(trace, first),
            spaces: Spaces::of(reader, walk.threads()),
            marks: Marks::new(walk.threads(), &[]),
            walk,
            sleeps,
            replayed: 0,
            windows,
            code,
        })
    }

    /// Phase `n + 1` of the run begins at the place `n` of these.
    pub fn with_phases(mut self, places: &[RunPlace]) -> TraceProgram {
        self.marks = Marks::new(self.walk.threads(), places);
        self
    }

    /// The replay of a long run ends in time: it measures the beginning, and windows of the rest, which stand for it. Where several
    /// threads do the work, all that was recorded is replayed: side by side they are not, after a part that is skipped.
    pub fn in_time(mut self) -> TraceProgram {
        let mut threads = vec![0; self.walk.threads()];
        for place in self.reader().blocks() {
            threads[place.header.thread as usize] += place.header.instructions;
        }
        let all: u64 = threads.iter().sum();
        let busiest = threads.into_iter().max().unwrap_or(0);
        // Without an end, what windows stand for is unknown.
        if self.reader().end().is_none() || busiest < all / 10 * 9 {
            return self;
        }
        let long = all > LONG;
        match self.reader().part() {
            None if long => self.windows.thin(),
            Some(Part::Thinning) => self.windows.thin(),
            _ => {}
        }
        self
    }

    /// As [`Program::fill`]; besides, `reader` is notified of each step, in the order of the trace.
    pub fn pull(&mut self, thread: usize, out: &mut Vec<Op>, reader: &mut impl Listener) -> bool {
        let wanted = out.capacity().saturating_sub(out.len()).max(1);
        let start = out.len();
        if let Some(code) = &mut self.code {
            code.begin(thread);
        }
        self.windows.begin(out);
        let mut skipped = 0;
        while out.len() - start < wanted {
            if skipped > SKIPS {
                // Time goes on a little, so that the others come.
                out.push(Op::mark(Kind::Sleep, 1));
                return true;
            }
            let left = wanted - (out.len() - start);
            if let Some(ops) = self.windows.touches(thread, left) {
                self.spaces.listen(thread, reader).ops(&ops, out);
                continue;
            }
            for _ in 0..self.marks.due(thread) {
                self.windows.part_begins(out);
            }
            let left = left.min(self.marks.left(thread));
            match self.walk.step(&mut self.reading, thread, left) {
                Step::Ops(ops, steps) => {
                    self.marks.done(thread, ops.len());
                    if self.windows.skips() {
                        skipped += ops.len();
                    }
                    let mut reader = self.spaces.listen(thread, reader);
                    match &mut self.code {
                        None => self.windows.ops(thread, ops, &mut reader, out),
                        Some(code) => {
                            let mut reader = code.listen(thread, steps, &mut reader);
                            self.windows.ops(thread, ops, &mut reader, out);
                        }
                    }
                    self.replayed += ops.len() as u64;
                    self.sleeps[thread] = FIRST_SLEEP_NS;
                }
                Step::Event(event) => {
                    self.spaces.listen(thread, reader).event(event, out);
                    self.windows.event(thread, event, out);
                }
                Step::Waits if out.len() > start => return true,
                Step::Waits => {
                    out.push(Op::mark(Kind::Sleep, self.sleeps[thread]));
                    self.sleeps[thread] = (self.sleeps[thread] * 2).min(LAST_SLEEP_NS);
                    return true;
                }
                // Its last ops, with which its memory goes, are still to be done.
                Step::Ended if out.len() > start => return true,
                Step::Ended => {
                    self.walk.end(thread);
                    return false;
                }
            }
        }
        true
    }

    /// The trace behind it.
    pub fn reader(&self) -> &TraceReader {
        self.reading.reader()
    }
}

impl Program for TraceProgram {
    fn name(&self) -> String {
        let command = &self.reader().header().command;
        let first = command.first().map_or("trace", String::as_str);
        first.rsplit('/').next().unwrap_or(first).to_string()
    }

    fn threads(&self) -> usize {
        self.walk.threads()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        self.pull(thread, out, &mut ())
    }

    fn code(&mut self, thread: usize, steps: &mut Vec<(u32, u32)>) {
        if let Some(code) = &self.code {
            steps.extend_from_slice(code.told(thread));
        }
    }

    fn code_name(&self, number: u32) -> Vec<String> {
        let place = (number as usize).checked_sub(1);
        let function = place.and_then(|place| self.reader().functions().get(place));
        function.map_or(Vec::new(), |function| names::functions(&function.frame()))
    }

    fn stretches(&self) -> Option<Vec<Stretch>> {
        self.windows.stretches(self.reader())
    }

    fn failure(&self) -> Option<String> {
        if let Some(damage) = &self.walk.damage {
            return Some(damage.to_string());
        }
        let path = self.reader().path().display();
        if let Some(cut) = self.reader().cut() {
            return Some(format!(
                "{path}: stops at byte {}: {}; {} ops were replayed",
                cut.offset, cut.why, self.replayed
            ));
        }
        // Often the file is a temporary one.
        let signal = self.reader().end()?.signal?;
        Some(format!("the recorded program was ended by signal {signal}"))
    }
}
