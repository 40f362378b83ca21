//! A trace that several programs replay: each block is decoded once, by the first reading that needs it, and kept until
//! all have taken it.
//!
//! Readings go in step. One that is further ahead than the blocks that are kept may reach waits for the last one, and
//! lets another continue meanwhile. So the trace takes bounded memory, however long it is. The ops that a reading gets
//! do not depend on the others. As long as fewer readings than may run at once want to, blocks are decoded ahead of
//! them.

use crate::error::TraceError;
use crate::format::OpDecoder;
use crate::parts::Block;
use crate::reader::TraceReader;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Blocks that are kept for readings that have not taken them, besides two for each thread of the trace: of 65,536 ops
/// of 16 B each, 32 MiB.
const KEPT: usize = 32;
/// Blocks that are decoded before any reading asks for them.
const AHEAD: usize = 4;

/// See the module.
pub struct SharedTrace {
    reader: TraceReader,
    /// Readings that go on at once.
    at_once: usize,
    /// Blocks are decoded with the functions that run.
    with_code: bool,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// By block.
    places: Box<[Place]>,
    /// By number, those that have ended too.
    readings: Vec<Progress>,
    /// Places that are not empty.
    kept: usize,
    /// How many may be kept.
    most: usize,
    /// Readings that run, and threads that decode ahead of them.
    running: usize,
    /// Blocks whose memory is used again.
    spare: Vec<Block>,
}

/// One block.
#[derive(Default)]
struct Place {
    slot: Slot,
    /// Readings that have yet to take it.
    left: u32,
}

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    /// A thread decodes it.
    Coming,
    Here(Arc<Block>),
}

/// How far a reading is.
#[derive(Default)]
struct Progress {
    /// By block. `None` for a reading that came late: no block is kept for it.
    taken: Option<Vec<bool>>,
    count: usize,
    waits: Option<Waits>,
    /// The block that others wait for while it decodes it.
    decodes: Option<usize>,
    ended: bool,
}

/// Condition that a reading waits for.
#[derive(Clone, Copy)]
enum Waits {
    ToBegin,
    ForBlock(usize),
}

impl SharedTrace {
    /// Opens a trace of which `at_once` readings go on at a time, each in a thread of its own; with `code`, some of them want to
    /// know which functions run.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn open(path: &Path, at_once: usize, code: bool) -> Result<Arc<SharedTrace>, TraceError> {
        let reader = TraceReader::open(path)?;
        let places = reader.blocks().iter().map(|_| Place::default());
        let state = State {
            places: places.collect(),
            readings: Vec::new(),
            kept: 0,
            most: KEPT + 2 * reader.threads() as usize,
            running: 0,
            spare: Vec::new(),
        };
        Ok(Arc::new(SharedTrace {
            with_code: code && reader.has_code(),
            reader,
            at_once: at_once.max(1),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    /// Whether its blocks have the functions that run.
    pub(crate) fn has_code(&self) -> bool {
        self.with_code
    }

    /// The trace.
    pub fn reader(&self) -> &TraceReader {
        &self.reader
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It holds after each step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let state = self.changed.wait(state);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// A reading waits until it is its turn.
    fn pause<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        number: usize,
        what: Waits,
    ) -> MutexGuard<'a, State> {
        state.readings[number].waits = Some(what);
        self.changed.notify_all();
        while !state.is_next(number, self.at_once) {
            state = self.wait(state);
        }
        state.readings[number].waits = None;
        state.running += 1;
        self.changed.notify_all();
        state
    }

    fn decode(
        &self,
        block: usize,
        decoder: &mut OpDecoder,
        mut into: Block,
    ) -> Result<Arc<Block>, TraceError> {
        match self.with_code {
            true => self
                .reader
                .read_block_with_code(block, decoder, &mut into)?,
            false => self.reader.read_block(block, decoder, &mut into)?,
        }
        Ok(Arc::new(into))
    }

    /// Decodes blocks before they are asked for, while fewer readings than may go on at once want to.
    fn decode_ahead(&self) {
        let mut decoder = OpDecoder::default();
        let mut state = self.state();
        for block in 0..self.reader.blocks().len() {
            while state.running >= self.at_once || state.kept >= AHEAD {
                if state.readings.iter().all(|reading| reading.ended) {
                    return;
                }
                state = self.wait(state);
            }
            if !state.keep(block) {
                continue;
            }
            state.running += 1;
            let into = state.spare.pop().unwrap_or_default();
            drop(state);
            // A block that cannot be read is read again by those who need it, who report why.
            let decoded = self.decode(block, &mut decoder, into).ok();
            state = self.state();
            state.running -= 1;
            state.came(block, decoded.as_ref());
            self.changed.notify_all();
        }
    }
}

impl State {
    /// Begins to fill a place for readings that have yet to take it; returns whether there are any, and it was empty.
    fn keep(&mut self, block: usize) -> bool {
        let place = &mut self.places[block];
        let keeps = place.left > 0 && matches!(place.slot, Slot::Empty);
        if keeps {
            place.slot = Slot::Coming;
            self.kept += 1;
        }
        keeps
    }

    /// A block that was to come is there, or cannot be read.
    fn came(&mut self, block: usize, decoded: Option<&Arc<Block>>) {
        let place = &mut self.places[block];
        match decoded.filter(|_| place.left > 0) {
            Some(decoded) => place.slot = Slot::Here(decoded.clone()),
            None => {
                place.slot = Slot::Empty;
                self.kept -= 1;
            }
        }
    }

    /// A reading has no more need of a block.
    fn leave(&mut self, block: usize) {
        let place = &mut self.places[block];
        place.left -= 1;
        if place.left == 0 && matches!(place.slot, Slot::Here(_)) {
            place.slot = Slot::Empty;
            self.kept -= 1;
        }
    }

    /// A reading takes a block.
    fn take(&mut self, number: usize, block: usize) {
        let reading = &mut self.readings[number];
        if let Some(taken) = &mut reading.taken
            && !std::mem::replace(&mut taken[block], true)
        {
            reading.count += 1;
            self.leave(block);
        }
    }

    /// The readings that others wait for.
    fn in_step(&self) -> impl Iterator<Item = (usize, &Progress)> {
        let readings = self.readings.iter().enumerate();
        readings.filter(|(_, reading)| !reading.ended && reading.taken.is_some())
    }

    /// May a reading decode a block now, even if it will not be kept? One that is behind all others never waits.
    fn may_decode(&self, number: usize, block: usize) -> bool {
        let own = &self.readings[number];
        own.taken.is_none()
            || self.kept < self.most
            || self.places[block].left <= 1
            || self.in_step().all(|(_, other)| other.count >= own.count)
    }

    /// Is it the turn of a reading that waits: the one that is furthest behind of those that could go on?
    fn is_next(&self, number: usize, at_once: usize) -> bool {
        let able = |number: usize| match self.readings[number].waits {
            None => false,
            Some(Waits::ToBegin) => true,
            Some(Waits::ForBlock(block)) => {
                !matches!(self.places[block].slot, Slot::Empty) || self.may_decode(number, block)
            }
        };
        let readings = self.readings.iter().enumerate();
        let waiting = readings.filter(|(number, _)| able(*number));
        let next = waiting.min_by_key(|(number, reading)| (reading.count, *number));
        self.running < at_once && next.is_some_and(|(next, _)| next == number)
    }
}

/// One program's way through a [`SharedTrace`].
pub(crate) struct Reading {
    trace: Arc<SharedTrace>,
    number: usize,
    decoder: OpDecoder,
}

impl Reading {
    /// Waits until it may begin, at a block. Blocks are kept for it unless others are far ahead of it.
    pub fn begin(trace: &Arc<SharedTrace>, first: usize) -> Reading {
        let mut state = trace.state();
        let number = state.readings.len();
        let late = state.in_step().any(|(_, other)| other.count > state.most);
        let mut progress = Progress::default();
        if !late {
            let blocks = state.places.len();
            progress.taken = Some((0..blocks).map(|block| block < first).collect());
            for place in &mut state.places[first.min(blocks)..] {
                place.left += 1;
            }
        }
        state.readings.push(progress);
        drop(trace.pause(state, number, Waits::ToBegin));
        if number == 0 && trace.at_once > 1 {
            let trace = trace.clone();
            thread::spawn(move || trace.decode_ahead());
        }
        Reading {
            trace: trace.clone(),
            number,
            decoder: OpDecoder::default(),
        }
    }

    pub fn reader(&self) -> &TraceReader {
        &self.trace.reader
    }
}

/// Where a walk has its blocks from.
pub(crate) trait Blocks {
    /// The block with a number, in place of another one that is not needed any more.
    fn next(&mut self, number: usize, old: Arc<Block>) -> Result<Arc<Block>, TraceError>;
}

impl Blocks for Reading {
    fn next(&mut self, block: usize, old: Arc<Block>) -> Result<Arc<Block>, TraceError> {
        let (trace, number) = (&*self.trace, self.number);
        let mut state = trace.state();
        state.spare.extend(Arc::into_inner(old));
        loop {
            match &state.places[block].slot {
                Slot::Here(here) => {
                    let here = here.clone();
                    state.take(number, block);
                    trace.changed.notify_all();
                    return Ok(here);
                }
                Slot::Coming => state = trace.wait(state),
                Slot::Empty if state.may_decode(number, block) => break,
                Slot::Empty => {
                    state.running -= 1;
                    state = trace.pause(state, number, Waits::ForBlock(block));
                }
            }
        }
        // Kept, if another reading has yet to take it.
        state.take(number, block);
        let keeps = state.kept < state.most && state.keep(block);
        state.readings[number].decodes = keeps.then_some(block);
        let into = state.spare.pop().unwrap_or_default();
        drop(state);
        let decoded = trace.decode(block, &mut self.decoder, into);
        if keeps {
            let mut state = trace.state();
            state.readings[number].decodes = None;
            state.came(block, decoded.as_ref().ok());
            trace.changed.notify_all();
        }
        decoded
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut state = self.trace.state();
        let progress = &mut state.readings[self.number];
        progress.ended = true;
        let (decodes, taken) = (progress.decodes.take(), progress.taken.take());
        for (block, taken) in taken.unwrap_or_default().into_iter().enumerate() {
            if !taken {
                state.leave(block);
            }
        }
        // Only if decoding it ended in a panic.
        if let Some(block) = decodes {
            state.came(block, None);
        }
        state.running -= 1;
        self.trace.changed.notify_all();
    }
}

/// The blocks of a trace for a single reading.
pub(crate) struct Alone<'a> {
    reader: &'a TraceReader,
    decoder: OpDecoder,
}

impl<'a> Alone<'a> {
    pub fn new(reader: &'a TraceReader) -> Alone<'a> {
        Alone {
            reader,
            decoder: OpDecoder::default(),
        }
    }
}

impl Blocks for Alone<'_> {
    fn next(&mut self, number: usize, old: Arc<Block>) -> Result<Arc<Block>, TraceError> {
        let mut block = Arc::into_inner(old).unwrap_or_default();
        self.reader
            .read_block(number, &mut self.decoder, &mut block)?;
        Ok(Arc::new(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BLOCK_OPS, End, FileHeader, TraceWriter};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use varve_access::Op;

    /// A trace of `blocks` blocks of each of `threads` threads, by turns.
    fn trace(blocks: usize, threads: u32, at_once: usize) -> (tempfile::TempDir, Arc<SharedTrace>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = TraceWriter::new(file, &path, &FileHeader::default()).unwrap();
        let ops = vec![Op::read(64, 8, 1); BLOCK_OPS];
        for block in 0..blocks {
            for thread in 0..threads {
                let first = Op::read((block as u64) << 20 | u64::from(thread), 8, 1);
                writer.push(thread, &[first]).unwrap();
                writer.push(thread, &ops[1..]).unwrap();
            }
        }
        writer.finish(End::default()).unwrap();
        let shared = SharedTrace::open(&path, at_once, false).unwrap();
        assert_eq!(shared.reader.blocks().len(), blocks * threads as usize);
        (folder, shared)
    }

    fn next(reading: &mut Reading, number: usize) -> Arc<Block> {
        let block = reading.next(number, Arc::default()).unwrap();
        let mut alone = Alone::new(reading.reader());
        assert_eq!(block, alone.next(number, Arc::default()).unwrap());
        block
    }

    #[test]
    fn a_block_is_decoded_once_for_all_and_kept_until_the_last_has_taken_it() {
        let (_folder, shared) = trace(3, 1, 3);
        let [mut a, mut b, mut c] = [0; 3].map(|_| Reading::begin(&shared, 0));
        let first = next(&mut a, 0);
        assert!(Arc::ptr_eq(&first, &next(&mut b, 0)));
        assert!(Arc::ptr_eq(&first, &next(&mut c, 0)));
        assert!(matches!(shared.state().places[0].slot, Slot::Empty));
        // The memory of a block is used again once no reading holds it.
        drop(first);
        let second = next(&mut a, 1);
        next(&mut b, 1);
        drop(c);
        assert!(matches!(shared.state().places[1].slot, Slot::Empty));
        drop((a, b, second));
        let state = shared.state();
        assert!(state.readings.iter().all(|reading| reading.ended));
    }

    #[test]
    fn alone_it_keeps_nothing_and_a_late_one_is_waited_for_by_nobody() {
        let (_folder, shared) = trace(KEPT + 6, 1, 1);
        let mut one = Reading::begin(&shared, 0);
        for number in 0..KEPT + 4 {
            next(&mut one, number);
            assert_eq!(shared.state().kept, 0);
        }
        drop(one);
        let (_folder, shared) = trace(KEPT + 6, 1, 2);
        shared.state().running += 1; // so that nothing is decoded ahead
        let mut early = Reading::begin(&shared, 0);
        for number in 0..KEPT + 4 {
            next(&mut early, number);
        }
        shared.state().running -= 1;
        let mut late = Reading::begin(&shared, 0);
        next(&mut early, KEPT + 4);
        next(&mut late, 0);
        assert!(shared.state().kept <= AHEAD);
    }

    /// Readings of different speed, of which some end early, get the blocks that are in the file; the number of kept
    /// blocks stays bounded; and no more run at a time than may.
    #[test]
    fn readings_in_step_get_the_same_however_fast_they_are() {
        for (threads, at_once, readings) in [(1, 1, 3), (1, 2, 5), (3, 2, 4), (40, 4, 3)] {
            let blocks = (KEPT + 2 * threads as usize + 9).div_ceil(threads as usize);
            let (_folder, shared) = trace(blocks, threads, at_once);
            let (busy, most) = (AtomicUsize::new(0), shared.state().most);
            thread::scope(|scope| {
                for number in 0..readings {
                    let (shared, busy) = (&shared, &busy);
                    scope.spawn(move || {
                        let mut reading = Reading::begin(shared, 0);
                        let all = shared.reader.blocks().len();
                        // Threads of a trace go on by turns of their own.
                        let mut order: Vec<usize> = (0..all).collect();
                        for piece in order.chunks_mut(7) {
                            piece.rotate_left(number % piece.len());
                        }
                        let ends = if number == 1 { all / 2 } else { all };
                        for &block in &order[..ends] {
                            assert!(busy.fetch_add(1, Ordering::SeqCst) < at_once);
                            for _ in 0..number {
                                thread::yield_now();
                            }
                            busy.fetch_sub(1, Ordering::SeqCst);
                            next(&mut reading, block);
                            assert!(shared.state().kept <= most);
                        }
                    });
                }
            });
            assert_eq!(shared.state().kept, 0, "an unneeded block is kept");
        }
    }

    #[test]
    fn nobody_gets_further_ahead_than_what_is_kept() {
        let (_folder, shared) = trace(2 * KEPT, 1, 2);
        let mut slow = Reading::begin(&shared, 0);
        let most = shared.state().most;
        thread::scope(|scope| {
            let shared = &shared;
            let fast = Reading::begin(shared, 0);
            scope.spawn(move || {
                let mut fast = fast;
                (0..2 * KEPT).for_each(|block| drop(next(&mut fast, block)));
            });
            for block in 0..2 * KEPT {
                let counts = shared.state().readings[1].count;
                assert!(counts <= block + most + 1, "{counts} at {block}");
                next(&mut slow, block);
            }
        });
    }
}
