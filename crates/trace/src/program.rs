//! A recorded trace as a program that runs on the model.

use crate::error::TraceError;
use crate::format::{Event, OpDecoder};
use crate::reader::{Block, TraceReader};
use std::path::Path;
use varve_machine::{Kind, Op, Program, Region};

/// Virtual time that a thread sleeps before it looks again whether it may go on: doubled from the first to the last.
const FIRST_SLEEP_NS: u64 = 500;
const LAST_SLEEP_NS: u64 = 32_000;

/// Where one thread of the trace is.
struct Cursor {
    /// Its blocks, as numbers of the reader.
    blocks: Vec<usize>,
    next_block: usize,
    block: Block,
    op: usize,
    event: usize,
    /// The last tick that it has passed, or the one that it waits at.
    tick: u64,
    /// It waits until the others have come as far as `tick`.
    waits: bool,
    sleep: u64,
    ended: bool,
}

/// Replays a trace. Threads keep the order that the recorder saw: one that had waited goes on when the others have
/// come as far as they had then.
pub struct TraceProgram {
    reader: TraceReader,
    decoder: OpDecoder,
    cursors: Vec<Cursor>,
    failure: Option<String>,
    replayed: u64,
}

impl TraceProgram {
    /// Opens a trace for replay from its beginning.
    ///
    /// # Errors
    /// The file cannot be read or is no trace. A trace that is merely cut is no error here: it is replayed as far as
    /// it goes, and [`Program::failure`] says where it stops.
    pub fn open(path: &Path) -> Result<TraceProgram, TraceError> {
        Ok(TraceProgram::from_reader(TraceReader::open(path)?, 0))
    }

    /// Replays from the block that holds an instruction (of all threads together) on.
    ///
    /// # Errors
    /// As [`TraceProgram::open`].
    pub fn open_at(path: &Path, instruction: u64) -> Result<TraceProgram, TraceError> {
        let reader = TraceReader::open(path)?;
        let first = reader.block_at(instruction);
        Ok(TraceProgram::from_reader(reader, first))
    }

    fn from_reader(reader: TraceReader, first: usize) -> TraceProgram {
        let mut cursors: Vec<Cursor> = (0..reader.threads().max(1))
            .map(|_| Cursor {
                blocks: Vec::new(),
                next_block: 0,
                block: Block::default(),
                op: 0,
                event: 0,
                tick: 0,
                waits: false,
                sleep: FIRST_SLEEP_NS,
                ended: false,
            })
            .collect();
        for (number, place) in reader.blocks().iter().enumerate().skip(first) {
            cursors[place.header.thread as usize].blocks.push(number);
        }
        TraceProgram {
            reader,
            decoder: OpDecoder::default(),
            cursors,
            failure: None,
            replayed: 0,
        }
    }

    /// The trace behind it.
    pub fn reader(&self) -> &TraceReader {
        &self.reader
    }

    /// Decodes the next block of a thread. `false` when there is none, or it cannot be read.
    fn next_block(&mut self, thread: usize) -> bool {
        let cursor = &mut self.cursors[thread];
        let Some(&number) = cursor.blocks.get(cursor.next_block) else {
            return false;
        };
        cursor.next_block += 1;
        cursor.op = 0;
        cursor.event = 0;
        match self
            .reader
            .read_block(number, &mut self.decoder, &mut cursor.block)
        {
            Ok(()) => true,
            Err(error) => {
                self.failure = Some(error.to_string());
                cursor.block = Block::default();
                false
            }
        }
    }

    /// Has every other thread come as far as `tick`?
    fn others_reached(&self, thread: usize, tick: u64) -> bool {
        self.cursors
            .iter()
            .enumerate()
            .all(|(other, cursor)| other == thread || cursor.ended || cursor.tick >= tick)
    }

    fn ends(&mut self, thread: usize) -> bool {
        self.cursors[thread].ended = true;
        self.cursors[thread].block = Block::default();
        false
    }
}

impl Program for TraceProgram {
    fn name(&self) -> String {
        let command = &self.reader.header().command;
        let first = command.first().map_or("trace", String::as_str);
        first.rsplit('/').next().unwrap_or(first).to_string()
    }

    fn threads(&self) -> usize {
        self.cursors.len()
    }

    fn regions(&self) -> Vec<Region> {
        Vec::new()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        let wanted = out.capacity().saturating_sub(out.len()).max(1);
        let start = out.len();
        while out.len() - start < wanted {
            if self.cursors[thread].waits {
                let tick = self.cursors[thread].tick;
                if !self.others_reached(thread, tick) {
                    let cursor = &mut self.cursors[thread];
                    if out.len() == start {
                        out.push(Op::mark(Kind::Sleep, cursor.sleep));
                        cursor.sleep = (cursor.sleep * 2).min(LAST_SLEEP_NS);
                    }
                    return true;
                }
                self.cursors[thread].waits = false;
                self.cursors[thread].sleep = FIRST_SLEEP_NS;
            }
            let cursor = &mut self.cursors[thread];
            let until = cursor
                .block
                .events
                .get(cursor.event)
                .map_or(cursor.block.ops.len(), |event| event.at as usize);
            if cursor.op < until {
                let end = until.min(cursor.op + (wanted - (out.len() - start)));
                out.extend_from_slice(&cursor.block.ops[cursor.op..end]);
                self.replayed += (end - cursor.op) as u64;
                cursor.op = end;
                continue;
            }
            if let Some(event) = cursor.block.events.get(cursor.event) {
                cursor.event += 1;
                match event.event {
                    Event::Start { tick } | Event::Wait { tick } => {
                        (cursor.tick, cursor.waits) = (tick, true)
                    }
                    Event::Tick { tick } => cursor.tick = tick,
                    Event::Exit { .. } => return self.ends(thread),
                    Event::Alloc { .. }
                    | Event::Free { .. }
                    | Event::Map { .. }
                    | Event::Unmap { .. } => {}
                }
                continue;
            }
            if !self.next_block(thread) {
                return self.ends(thread);
            }
        }
        true
    }

    fn failure(&self) -> Option<String> {
        if self.failure.is_some() {
            return self.failure.clone();
        }
        let path = self.reader.path().display();
        if let Some(cut) = self.reader.cut() {
            return Some(format!(
                "{path}: stops at byte {}: {}; {} ops were replayed",
                cut.offset, cut.why, self.replayed
            ));
        }
        let signal = self.reader.end()?.signal?;
        Some(format!(
            "{path}: the recorded program was ended by signal {signal}"
        ))
    }
}
