//! Observed stores: the accesses of the program and its collector, in order, as input of a model of a machine.
//!
//! Compiled code appends to a buffer by itself (`compile/observe.rs`); helpers and the collector append here. A full buffer
//! goes to the [`Sink`].
//!
//! Addresses are not the host's, which differ from run to run:
//!
//! ```text
//! 1 TiB        the heap's base; the store's region right before it
//! 2 TiB        linear memories, 16 GiB each
//! 3 TiB        all else, such as the collector's tables, in the order in which it is met
//! 4 TiB        compiled code
//! 8 TiB        the system's cache of files, 16 GiB each, in the order in which they are met
//! ```

use super::Vm;
use crate::error::{Error, Result};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use varve_access::{Kind, Op};
use varve_durable::domain::MediumStep;
use varve_durable::layout::CACHE_LINE;
use varve_heap::{Backing, Kind as GcKind, ObjectAlign, Observer, Stage, Tier, layout};

use super::region::REGION;
use super::slower::Slower;
use crate::compile::isa::Level;

/// Where the heap's base is.
pub(crate) const HEAP: u64 = 1 << 40;
/// Where the first linear memory is, and the distance to the next one.
const MEMORIES: u64 = 2 << 40;
pub(crate) const MEMORY: u64 = 16 << 30;
const OTHERS: u64 = 3 << 40;
/// Where the code of the first module is, and how far it is from there to that of the next.
const CODE: u64 = 4 << 40;
const MODULE: u64 = 1 << 32;
/// Where the cache of the first file is, and the distance to that of the next one.
const FILES: u64 = 8 << 40;
const FILE: u64 = 16 << 30;
/// Instructions of a call of the system that reads or writes a file in its cache, besides the copy. To read one byte so took 0.37 us (`pread`,
/// a million calls, Linux 6.18 on a virtual machine): the time of this number of instructions at two a cycle and 2.8 GHz.
const SYSTEM_CALL: u64 = 2_000;
/// Bytes of code for a byte of bytecode: measured of `graph` and `strings`, 9.4 and 10.5 in baseline code with its counters, 3.8 and
/// 4.0 in optimized code, inlined code counted in both.
const BASELINE: u64 = 10;
const OPTIMIZED: u64 = 4;
const PAGE: u64 = 4096;

/// Accesses after which the buffer counts as full.
const ACCESSES: usize = 4096;
/// Accesses for which there is room beyond: straight code checks only now and then whether the buffer is full.
pub(crate) const SLACK: usize = 128;
/// Bytes that an instruction of a loop reads or writes which copies or fills memory: AVX's.
const VECTOR_BYTES: u32 = 32;
/// Bytes of an access at most; longer ones are several.
const MOST_BYTES: u64 = 4096;

/// Where code is, by the instance and how far its bytecode is from that of the first function.
pub(crate) fn code_at(instance: u32, offset: u64) -> u64 {
    CODE + u64::from(instance) * MODULE + BASELINE * offset
}

/// The approximate size of the code of `bytes` bytes of bytecode.
pub(crate) fn code_bytes(bytes: u64, level: Level) -> u64 {
    bytes
        * match level {
            Level::Baseline => BASELINE,
            Level::Optimizing => OPTIMIZED,
        }
}

/// Where a linear memory is, by its number in the store.
pub(crate) fn memory_at(memory: u32) -> u64 {
    MEMORIES + u64::from(memory) * MEMORY
}

/// The purpose of an observed program's memory, by the address that a [`Sink`] gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Objects, and the engine's data right before them.
    Heap,
    /// A linear memory.
    Linear,
    /// Tables of the collector and other memory of the engine.
    Tables,
    /// Compiled code.
    Code,
    /// The system's cache of files.
    Files,
    /// None of these.
    Other,
}

impl Part {
    /// The part of memory that an address is in.
    pub fn at(address: u64) -> Part {
        match address {
            // The range right before the heap's base is the store's own.
            MEMORIES..OTHERS => Part::Linear,
            OTHERS..CODE => Part::Tables,
            CODE..FILES => Part::Code,
            FILES.. => Part::Files,
            _ if address >= HEAP / 2 => Part::Heap,
            _ => Part::Other,
        }
    }
}

/// Bytes that the system copied between a file and a linear memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// The file, by its device and number.
    pub file: (u64, u64),
    /// Where in the file.
    pub offset: u64,
    /// Where in the memory.
    pub at: u64,
    pub bytes: u64,
    /// The operation on the file.
    pub kind: Kind,
}

/// Receives every access of a program and its collector, in order.
pub trait Sink: Send {
    /// Accesses. `false`: takes no more, and the program is to end.
    fn take(&mut self, ops: &[Op]) -> bool;

    /// From now on `bytes` at `address` are to be memory of tier `tier` (0 is the fastest). Whole pages.
    fn bind(&mut self, address: u64, bytes: u64, tier: u8);

    /// `bytes` at `address` are not needed any more, and memory of no tier until they are bound again. Whole pages.
    fn release(&mut self, address: u64, bytes: u64) {
        let _ = (address, bytes);
    }

    /// The time when all accesses so far are done.
    fn now(&mut self) -> Duration;
}

/// The part of the buffer that compiled code uses.
#[repr(C)]
struct Cursor {
    next: *mut Op,
    end: *mut Op,
    /// Instructions since the last access, as far as they were in other blocks of code.
    instructions: u64,
}

/// The buffer, and its sink. One thread uses it: the store's.
#[repr(C)]
pub(crate) struct Recording {
    cursor: UnsafeCell<Cursor>,
    rest: Mutex<Rest>,
}

struct Rest {
    /// Owned; only reached through pointers.
    buffer: *mut [Op],
    sink: Box<dyn Sink>,
    /// The host's address of the heap's base.
    heap: u64,
    align: ObjectAlign,
    /// Ranges elsewhere that were bound: address, bytes, and where they are for the sink.
    ranges: Vec<(u64, u64, u64)>,
    /// Where other pages of the host are, by their numbers.
    pages: HashMap<u64, u64>,
    /// Files by device and number, in the order in which they were met.
    files: HashMap<(u64, u64), u64>,
    /// Where the next of either will be.
    next: u64,
    /// Ranges bound before the heap had an address.
    early: Vec<(u64, u64, Tier)>,
    /// The memory of code.
    code: Tier,
    /// How often an instruction of the program counts.
    slower: Slower,
    listens: bool,
}

// SAFETY: a recording belongs to one store, which one thread at a time uses; that the collector and the clock hold it too changes
// nothing, since they run on the store's thread. The pointers are to memory that it owns.
unsafe impl Send for Recording {}
// SAFETY: as above: no second thread calls. A heap that is recorded collects on the store's thread alone.
unsafe impl Sync for Recording {}

impl Recording {
    /// Offsets of the fields that compiled code uses.
    pub const NEXT: i32 = offset_of!(Cursor, next) as i32;
    pub const END: i32 = offset_of!(Cursor, end) as i32;
    pub const INSTRUCTIONS: i32 = offset_of!(Cursor, instructions) as i32;

    pub fn new(sink: Box<dyn Sink>, slower: f64) -> Recording {
        let empty = vec![Op::read(0, 0, 0); ACCESSES + SLACK].into_boxed_slice();
        let buffer = Box::into_raw(empty);
        let start = buffer.cast::<Op>();
        Recording {
            cursor: UnsafeCell::new(Cursor {
                next: start,
                end: start.wrapping_add(ACCESSES),
                instructions: 0,
            }),
            rest: Mutex::new(Rest {
                buffer,
                sink,
                heap: 0,
                align: ObjectAlign::default(),
                ranges: Vec::new(),
                pages: HashMap::new(),
                files: HashMap::new(),
                next: OTHERS,
                early: Vec::new(),
                code: Tier::FAST,
                slower: Slower::new(slower),
                listens: true,
            }),
        }
    }

    /// The address that compiled code has as a constant.
    pub fn address(&self) -> i64 {
        self.cursor.get() as i64
    }

    fn rest(&self) -> std::sync::MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The heap's base on the host, once it is known.
    pub fn set_heap(&self, base: u64, align: ObjectAlign) {
        let early = {
            let mut rest = self.rest();
            (rest.heap, rest.align) = (base, align);
            std::mem::take(&mut rest.early)
        };
        for (address, bytes, tier) in early {
            self.bind(address, bytes, tier);
        }
    }

    /// Empties the buffer. `false` if the sink takes no more.
    pub fn drain(&self) -> bool {
        self.drain_into(&mut self.rest())
    }

    fn drain_into(&self, rest: &mut Rest) -> bool {
        let start = rest.buffer.cast::<Op>();
        // SAFETY: only this thread uses the cursor, and compiled code waits. It began at `start` and passed only ops that
        // were written; the buffer was initialized besides.
        let ops = unsafe {
            let cursor = &mut *self.cursor.get();
            let len = cursor.next.offset_from_unsigned(start);
            assert!(len <= ACCESSES + SLACK, "compiled code looks too seldom");
            cursor.next = start;
            std::slice::from_raw_parts_mut(start, len)
        };
        if !ops.is_empty() && rest.listens {
            rest.slower.count(ops);
            rest.listens = rest.sink.take(ops);
        }
        rest.listens
    }

    /// Records an access to `bytes` at an address of the host.
    pub fn record(&self, kind: Kind, address: u64, bytes: u64) {
        let mut rest = self.rest();
        self.pieces(&mut rest, kind, address, bytes, Rest::place);
    }

    /// The same at an address that the sink knows.
    pub fn record_at(&self, kind: Kind, address: u64, bytes: u64) {
        let mut rest = self.rest();
        self.pieces(&mut rest, kind, address, bytes, |_, at| at);
    }

    fn pieces(
        &self,
        rest: &mut Rest,
        kind: Kind,
        address: u64,
        bytes: u64,
        place: fn(&mut Rest, u64) -> u64,
    ) {
        let mut from = address;
        while from < address + bytes {
            let at = place(rest, from);
            // Up to the page's end: the next one may be elsewhere. It is the page that the sink knows: a table begins anywhere in one
            // of the host's, and elsewhere in the next run.
            let left = MOST_BYTES - at % MOST_BYTES;
            let to = (from + left).min(address + bytes);
            self.push(rest, kind, at, (to - from) as u16);
            from = to;
        }
    }

    /// Appends an op, of an instruction for each vector of its bytes.
    fn push(&self, rest: &mut Rest, kind: Kind, at: u64, bytes: u16) {
        // SAFETY: as in `drain_into`: `next` is inside of the buffer whenever no code appends.
        let full = unsafe {
            let cursor = &mut *self.cursor.get();
            let own = u32::from(bytes).div_ceil(VECTOR_BYTES).max(1);
            let instructions = std::mem::take(&mut cursor.instructions) as u32 + own;
            cursor.next.write(Op::new(kind, at, bytes, instructions));
            cursor.next = cursor.next.add(1);
            cursor.next >= cursor.end
        };
        if full {
            self.drain_into(rest);
        }
    }

    /// Records a durable region's operations on its medium, which is memory of the slow tier: the persistent one.
    pub fn medium(&self, step: MediumStep) {
        match step {
            MediumStep::Grown(address, bytes) => self.bind(address, bytes, Tier::SLOW),
            MediumStep::Stored(address, bytes) => self.record(Kind::Write, address, bytes),
            MediumStep::WrittenBack(line) => self.record(Kind::Flush, line, CACHE_LINE),
            MediumStep::Fenced(_) => self.push(&mut self.rest(), Kind::Fence, 0, 0),
        }
    }

    /// Instructions that the runtime executes before the next access, besides those that are reported with accesses.
    pub fn execute(&self, instructions: u64) {
        // SAFETY: as in `drain_into`.
        unsafe { (*self.cursor.get()).instructions += instructions }
    }

    /// Records the system's work for a program that reads or writes a file: a call, and a copy between its cache and a linear memory.
    /// Its instructions count once, as the collector's do.
    fn copy(&self, memory: u32, moved: &Moved) {
        self.collecting(true);
        self.execute(SYSTEM_CALL);
        let cached = {
            let mut rest = self.rest();
            let next = rest.files.len() as u64;
            let file = *rest.files.entry(moved.file).or_insert(next);
            FILES + file * FILE + moved.offset % FILE
        };
        let own = memory_at(memory) + moved.at;
        let (from, to) = match moved.kind {
            Kind::Read => (cached, own),
            _ => (own, cached),
        };
        let mut done = 0;
        while done < moved.bytes {
            let bytes = PAGE.min(moved.bytes - done);
            self.record_at(Kind::Read, from + done, bytes);
            self.record_at(Kind::Write, to + done, bytes);
            done += bytes;
        }
        self.collecting(false);
    }

    fn sleep(&self, time: Duration) {
        let mut rest = self.rest();
        self.drain_into(&mut rest);
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        rest.listens &= rest.sink.take(&[Op::mark(Kind::Sleep, ns)]);
    }

    /// The sink's time.
    pub fn now(&self) -> Duration {
        let mut rest = self.rest();
        self.drain_into(&mut rest);
        rest.sink.now()
    }

    fn bind(&self, address: u64, bytes: u64, tier: Tier) {
        let mut rest = self.rest();
        if rest.heap == 0 {
            rest.early.push((address, bytes, tier));
            return;
        }
        // Earlier accesses were to other memory.
        self.drain_into(&mut rest);
        // Tables begin anywhere in a page of the host; for the sink they begin where a page does.
        let inside = rest.is_in_heap(address);
        let at = match inside {
            true => rest.place(address),
            false => rest.add_range(address, bytes),
        };
        rest.sink.bind(at, bytes.next_multiple_of(PAGE), tier.0);
    }
}

impl Recording {
    /// Says which memory code is to be in.
    pub fn set_code(&self, tier: Tier) {
        self.rest().code = tier;
    }

    /// Binds memory for the code of an instance with `bytes` bytes of bytecode.
    pub fn bind_code(&self, instance: u32, bytes: u64) {
        let mut rest = self.rest();
        self.drain_into(&mut rest);
        let tier = rest.code;
        let bytes = code_bytes(bytes, Level::Baseline).next_multiple_of(PAGE);
        rest.sink.bind(code_at(instance, 0), bytes, tier.0);
    }

    /// From now on the collector executes, or the program.
    fn collecting(&self, collecting: bool) {
        let mut rest = self.rest();
        if rest.slower.is_scaled() {
            self.drain_into(&mut rest);
            rest.slower.collecting = collecting;
        }
    }

    /// Gives back a range of the heap.
    fn release(&self, address: u64, bytes: u64) {
        let mut rest = self.rest();
        self.drain_into(&mut rest);
        let at = rest.place(address);
        rest.sink.release(at, bytes);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.drain();
        // SAFETY: `new` made it of a box, and only this frees it.
        drop(unsafe { Box::from_raw(self.rest().buffer) });
    }
}

impl Rest {
    fn is_in_heap(&self, address: u64) -> bool {
        (self.heap - REGION as u64..self.heap + self.align.span()).contains(&address)
    }

    /// Gives a range of the host pages of its own.
    fn add_range(&mut self, address: u64, bytes: u64) -> u64 {
        let at = self.next;
        self.next += bytes.next_multiple_of(PAGE);
        self.ranges.push((address, bytes, at));
        at
    }

    /// Where an address of the host is for the sink.
    fn place(&mut self, address: u64) -> u64 {
        if self.is_in_heap(address) {
            return address.wrapping_sub(self.heap).wrapping_add(HEAP);
        }
        let holds =
            |&&(start, bytes, _): &&(u64, u64, u64)| (start..start + bytes).contains(&address);
        if let Some(&(start, _, at)) = self.ranges.iter().rev().find(holds) {
            return at + (address - start);
        }
        let (page, next) = (address / PAGE, self.next);
        let at = *self.pages.entry(page).or_insert(next);
        if at == next {
            self.next += PAGE;
        }
        at + address % PAGE
    }
}

/// The collector's side of a recording.
pub(crate) struct Watch(pub Arc<Recording>);

impl Observer for Watch {
    fn read(&self, address: u64, bytes: u64) {
        self.0.record(Kind::Read, address, bytes);
    }

    fn write(&self, address: u64, bytes: u64) {
        self.0.record(Kind::Write, address, bytes);
    }

    fn execute(&self, instructions: u64) {
        self.0.execute(instructions);
    }

    fn stage(&self, kind: GcKind, stage: Stage) {
        match stage {
            Stage::Roots => self.0.collecting(true),
            Stage::Trace | Stage::Rest => {}
            Stage::End => self.0.collecting(false),
        }
        if matches!((kind, stage), (GcKind::Minor, Stage::End)) {
            self.0.push(&mut self.0.rest(), Kind::Cycle, 0, 0);
        }
    }

    fn now(&self) -> Option<Duration> {
        Some(self.0.now())
    }
}

/// Which memory the heap wants where.
pub(crate) struct Bound(pub Arc<Recording>);

impl Backing for Bound {
    unsafe fn bind(&self, address: u64, bytes: u64, tier: Tier) {
        self.0.bind(address, bytes, tier);
    }

    unsafe fn release(&self, address: u64, bytes: u64) -> bool {
        self.0.release(address, bytes);
        false
    }
}

/// The source of a program's clocks: the host's time, or that of the observer of its accesses.
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Host,
    /// The host's, but for the clock that never goes back.
    Processor,
    Observed(Arc<Recording>),
    /// Nanoseconds since the program began.
    Counted(Arc<AtomicU64>),
}

/// The time between two reads of a counted clock.
const LOOK: Duration = Duration::from_micros(1);

impl Clock {
    /// The host's time, but for the clock that never goes back: it shows for how long processors ran the program's thread. Other activity of the
    /// machine is not in that, nor are the collector's other threads.
    pub fn processor() -> Clock {
        Clock(Source::Processor)
    }

    /// A microsecond passes with each read of a clock, sleep takes none of the host's time, and 1970 has just begun: a program that does the
    /// same sees the same.
    pub fn counted() -> Clock {
        Clock(Source::Counted(Arc::default()))
    }

    pub(crate) fn of(recording: Option<Arc<Recording>>) -> Clock {
        Clock(recording.map_or(Source::Host, Source::Observed))
    }

    /// Whether the clock that never goes back is the processors'.
    pub(crate) fn is_processor(&self) -> bool {
        matches!(self.0, Source::Processor)
    }

    /// The time since the program began, if that is not the host's.
    ///
    /// Called on the program's own thread.
    pub(crate) fn virtual_time(&self) -> Option<Duration> {
        match &self.0 {
            Source::Host | Source::Processor => None,
            Source::Observed(recording) => Some(recording.now()),
            Source::Counted(time) => Some(Clock::pass(time, LOOK)),
        }
    }

    /// Lets a program sleep whose time is not the host's; `false` if it is.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        match &self.0 {
            Source::Host | Source::Processor => return false,
            Source::Observed(recording) => recording.sleep(time),
            Source::Counted(now) => {
                Clock::pass(now, time);
            }
        }
        true
    }

    fn pass(now: &AtomicU64, time: Duration) -> Duration {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(now.fetch_add(ns, Ordering::Relaxed))
    }

    /// The time since 1970; a program whose time is not the host's begins then.
    pub(crate) fn date(&self) -> Duration {
        self.virtual_time().unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.unwrap_or_default()
        })
    }
}

impl Vm {
    /// Records an access to bytes of the host, if accesses are observed.
    #[inline]
    pub(crate) fn observe(&self, kind: Kind, address: *const u8, bytes: usize) {
        if let Some(recording) = &self.recording {
            recording.record(kind, address as u64, bytes as u64);
        }
    }

    /// Records a copy between a file and a linear memory, if accesses are observed.
    pub(crate) fn observe_file(&self, memory: u32, moved: &Moved) {
        if let Some(recording) = &self.recording {
            recording.copy(memory, moved);
        }
    }

    /// The same for bytes of a linear memory.
    pub(crate) fn observe_memory(&self, kind: Kind, memory: u32, at: u64, bytes: u64) {
        if let Some(recording) = &self.recording {
            recording.record_at(kind, memory_at(memory) + at, bytes);
        }
    }

    /// Records that the header and the length of an array were written.
    pub(crate) fn observe_birth(&self, array: u32) {
        let bytes = layout::ARRAY_NARROW_BASE as usize;
        self.observe(Kind::Write, self.object(array), bytes);
    }

    /// The same as compiled code after a store into an object, if the plan monitors writes.
    pub(crate) fn note_write(&self, reference: u32) {
        if !self.heap().monitors() {
            return;
        }
        let at = self
            .object(reference)
            .wrapping_add(layout::TEMPERATURE_BYTE as usize);
        // SAFETY: the byte is in the header of a live object.
        unsafe { at.write(at.read() | layout::WRITTEN) };
        self.observe(Kind::Update, at, 1);
    }

    /// Passes all buffered records to the sink.
    ///
    /// # Errors
    /// If the sink takes no more.
    pub(crate) fn tell(&mut self) -> Result<()> {
        match &self.recording {
            Some(recording) if !recording.drain() => Err(Error::Unobserved),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<Op>>>);

    impl Sink for Heard {
        fn take(&mut self, ops: &[Op]) -> bool {
            self.0.lock().unwrap().extend_from_slice(ops);
            true
        }

        fn bind(&mut self, _: u64, _: u64, _: u8) {}

        fn now(&mut self) -> Duration {
            Duration::ZERO
        }
    }

    /// The records of accesses all over a table that begins at an address of the host.
    fn told(table: u64) -> Vec<Op> {
        let heard = Heard::default();
        let recording = Recording::new(Box::new(heard.clone()), 1.0);
        recording.set_heap(1 << 46, ObjectAlign::default());
        recording.bind(table, 3 * PAGE, Tier::FAST);
        for at in (0..2 * PAGE).step_by(100) {
            recording.record(Kind::Write, table + at, 1 + at / 3);
        }
        recording.drain();
        heard.0.lock().unwrap().clone()
    }

    /// A table of the collector begins anywhere in a page of the host, and in the same process elsewhere than in the run before.
    #[test]
    fn where_the_host_has_a_table_is_not_told() {
        let page = 5 << 40;
        let first = told(page);
        let bytes: u64 = first.iter().map(|o| u64::from(o.size)).sum();
        let all: u64 = (0..2 * PAGE).step_by(100).map(|at| 1 + at / 3).sum();
        assert_eq!(bytes, all);
        for inside in [16, 2064, 4080] {
            assert!(told(page + inside) == first, "{inside}");
        }
    }
}
