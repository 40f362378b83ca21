//! The tracer: follows references, marks objects that stay, copies objects that move.
//!
//! One body serves all collections. `FULL` collections reach every object; others stop at everything that is not in
//! the nursery. With `PAR` several threads trace at once: the thread that changes a header first moves the object. The usual alignment of
//! objects is known when this is compiled.
//!
//! Order of work: references that are found wait in a short ring while the processor fetches the headers behind
//! them; objects that were reached are scanned last in, first out, while their lines are still in the cache.
//!
//! Nothing that is followed is checked: roots, slots and the remembered set hold references that the heap gave. Compilers
//! and hosts see to that, and [`Heap::verify`](crate::Heap::verify) finds errors.

mod room;
mod work;

use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::time::Duration;

use crate::align::Aligned;
use crate::blocks::is_evacuated;
use crate::durable::DurableMarks;
use crate::header::Header;
use crate::large::Large;
use crate::layout::*;
use crate::lines::{live_value, mark};
use crate::mature::{Bump, Mature, Tables};
use crate::memory::View;
use crate::observed::ObserverSpace;
use crate::observer::{Moved, Observer};
use crate::plan::{Origin, Places, Space};
use crate::pool::{Entry, Pool};
use crate::reference::Ref;
use crate::remembered::Remembered;
use crate::shape::{Info, Shapes};
use varve_pima::{MAX_TIERS, Tier};

/// References that wait for their target's header. A power of two; about the number of a core's miss buffers.
const RING: usize = 16;
/// Elements of an array that are scanned at a time, so that threads can share large ones and stacks stay short.
const SEGMENT: u64 = 1024;
/// Objects between two checks whether another thread wants work.
const SHARE_EVERY: u32 = 64;
/// Objects after which other threads are woken: to start one takes as long as to scan thousands.
const HELP_AFTER: u32 = if cfg!(miri) { 64 } else { 32 << 10 };
/// Entries that a thread keeps for itself. Few: in a tree, the oldest entry is half of the work.
const SHARE_ABOVE: usize = 4;
/// Bytes of evacuation budget that a thread takes at a time.
const ALLOWANCE: i64 = 64 << 10;

/// The state that all threads of one collection share.
pub(crate) struct Trace<'h, P, O> {
    pub tables: &'h Tables,
    pub shapes: &'h Shapes,
    pub mature: &'h [Mature],
    pub large: &'h [Large],
    pub plan: &'h P,
    pub observer: &'h O,
    /// The range that is emptied, as half of its first reference, and half of the number of references that it spans: the nursery, and the part of
    /// the observer space that is sorted.
    pub young: (u32, u32),
    /// The nursery alone.
    pub nursery: (u32, u32),
    /// Where survivors may wait.
    pub observed: &'h ObserverSpace,
    /// The mark value of live objects.
    pub mark: u8,
    /// Half the number of references to the collected range, from the first one on: durable objects come after them.
    pub span: u32,
    /// Where references to durable objects are reported, if the host has requested that.
    pub durable: Option<&'h DurableMarks>,
    /// Bytes that may still be copied out of evacuated blocks. Survivors of the nursery do not count.
    pub budget: AtomicI64,
    pub pool: Pool,
}

/// The counters of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bytes that survived the nursery, by tier.
    pub promoted: [u64; MAX_TIERS as usize],
    /// Bytes that went to the observer space.
    pub observed: u64,
    /// Bytes that left the observer space, by tier.
    pub sorted: [u64; MAX_TIERS as usize],
    /// Bytes that moved from one tier to another, by the new one.
    pub moved: [u64; MAX_TIERS as usize],
    /// Bytes evacuated from fragmented blocks.
    pub evacuated: u64,
    /// Bytes found live and left in place.
    pub marked: u64,
    /// Bytes of hot objects among those outside of the observer space and of fast memory.
    pub hot: u64,
    /// For how long young objects were scanned and copied. Of all threads together.
    pub tracing: Duration,
}

impl Counts {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Counts) {
        for (mine, theirs) in [
            (&mut self.promoted, other.promoted),
            (&mut self.sorted, other.sorted),
            (&mut self.moved, other.moved),
        ] {
            mine.iter_mut()
                .zip(theirs)
                .for_each(|(mine, more)| *mine += more);
        }
        self.observed += other.observed;
        self.evacuated += other.evacuated;
        self.marked += other.marked;
        self.hot += other.hot;
    }

    /// Bytes of everything that was reached.
    pub fn live(&self) -> u64 {
        let by_tier = self.promoted.iter().chain(&self.sorted).chain(&self.moved);
        by_tier.sum::<u64>() + self.observed + self.evacuated + self.marked
    }
}

impl<P, O> Trace<'_, P, O> {
    #[inline(always)]
    pub fn is_young(&self, r: Ref) -> bool {
        r.is_object_in(self.young.0, self.young.1)
    }

    /// Whether `r` refers to a durable object, or to another address in their range.
    pub fn is_durable(&self, r: Ref) -> bool {
        r.is_object() && !r.is_object_in(1, self.span)
    }

    /// Where `r` is after tracing; `None` if it died.
    pub fn resolve(&self, r: Ref, full: bool) -> Option<Ref> {
        if !r.is_object() || self.is_durable(r) {
            return Some(r);
        }
        let header = self.tables.memory.checked_header(r);
        if header.has(FORWARDED) {
            return Some(header.forwarded_to());
        }
        let alive = !self.is_young(r) && (!full || header.is_marked(self.mark));
        alive.then_some(r)
    }
}

/// One thread of a collection.
pub(crate) struct Worker<'t, 'h, P, O, A, const FULL: bool, const PAR: bool> {
    trace: &'t Trace<'h, P, O>,
    bumps: &'t mut [Bump],
    stack: Vec<Entry>,
    /// References that wait, with the slots that hold them as offsets in units of 4 bytes; slot 0 is none. A slot can be there twice, of an array
    /// that was remembered by line and as a whole: its earlier value counts, not its current one.
    ring: [(u32, Ref); RING],
    at: u32,
    allowance: i64,
    pub counts: Counts,
    // Data that every step needs, copied here because the compiler must assume that other threads change shared memory.
    memory: View<A>,
    infos: &'h [Info],
    lines: &'h [AtomicU8],
    blocks: &'h [AtomicU8],
    young: (u32, u32),
    span: u32,
    mark: u8,
    live: u8,
    moves_old: bool,
    /// The first byte after nursery and observer space, if there is one.
    old: u64,
    /// The rest of this thread's share of the observer space: its first byte, and the first one after it.
    share: (u64, u64),
    /// The slots of the large array that was scanned last because of a line of it.
    card_slots: Range<u32>,
    /// Slots of old objects that refer to the observer space now.
    pub old_to_observed: Vec<u32>,
    /// References to durable objects that were found, if the host has requested them.
    pub(crate) durable: Vec<Ref>,
}

impl<'t, 'h, P: Places, O: Observer, A: Aligned, const FULL: bool, const PAR: bool>
    Worker<'t, 'h, P, O, A, FULL, PAR>
{
    /// A thread that allocates from `bumps`, one per tier.
    pub fn new(trace: &'t Trace<'h, P, O>, bumps: &'t mut [Bump], align: A) -> Self {
        Worker {
            trace,
            bumps,
            stack: Vec::new(),
            ring: [(0, Ref::NULL); RING],
            at: 0,
            allowance: 0,
            counts: Counts::default(),
            memory: trace.tables.memory.view().aligned(align),
            infos: trace.shapes.infos(),
            lines: trace.tables.lines.bytes(),
            blocks: trace.tables.blocks.bytes(),
            young: trace.young,
            span: trace.span,
            mark: trace.mark,
            live: live_value(trace.mark),
            moves_old: trace.plan.moves_old(),
            old: trace.observed.end(),
            share: (0, 0),
            card_slots: 0..0,
            old_to_observed: Vec::new(),
            durable: Vec::new(),
        }
    }

    /// Whether a collection of this kind has to follow `r`.
    #[inline(always)]
    fn is_interesting(&self, r: Ref) -> bool {
        if FULL {
            r.is_object_in(1, self.span)
        } else {
            self.is_young(r)
        }
    }

    /// Reports a reference to a durable object.
    #[inline(always)]
    fn note_durable(&mut self, r: Ref) {
        if FULL && r.is_object() && !r.is_object_in(1, self.span) {
            self.tell_durable(r);
        }
    }

    #[cold]
    fn tell_durable(&mut self, r: Ref) {
        if self.trace.durable.is_some() {
            self.durable.push(r);
        }
    }

    #[inline(always)]
    fn is_young(&self, r: Ref) -> bool {
        r.is_object_in(self.young.0, self.young.1)
    }

    /// Follows a reference from outside of the heap, and returns its new value.
    pub fn root(&mut self, r: Ref) -> Ref {
        if self.is_interesting(r) {
            self.reach(r)
        } else {
            self.note_durable(r);
            r
        }
    }

    /// Has the references followed in an object or line that was stored into; the next store will log it again.
    pub fn remembered(&mut self, entry: Remembered) {
        match entry {
            Remembered::Object(r) => self.logged(r),
            Remembered::Line(line) => self.card(line),
        }
    }

    fn logged(&mut self, r: Ref) {
        if P::SEVERAL && self.is_young(r) {
            return; // It is sorted in this collection, if anything still refers to it.
        }
        let memory = self.memory;
        // SAFETY: a remembered reference is an object.
        unsafe { memory.set_header(r, memory.header(r).with(UNLOGGED)) };
        self.stack.push(Entry::from(r.0));
    }

    /// Has the reference in a slot of an old object followed.
    pub fn old_slot(&mut self, slot: u32) {
        self.note_read(place(slot), 4);
        self.slot(slot);
    }

    /// Has the references followed that are in one line, counted from the heap's base, of a large array.
    fn card(&mut self, line: u32) {
        let units = (LINE_SIZE >> SLOT_SHIFT) as u32;
        let of_line = line * units..(line + 1) * units;
        // Many lines of one array follow each other.
        if !self.card_slots.contains(&of_line.start)
            && !self.card_slots.contains(&(of_line.end - 1))
        {
            self.card_slots = self.slots_of_large(u64::from(line) * LINE_SIZE);
        }
        let of_array = self.card_slots.clone();
        let slots = of_line.start.max(of_array.start)..of_line.end.min(of_array.end);
        self.note_read(place(slots.start), LINE_SIZE);
        slots.for_each(|slot| self.slot(slot));
    }

    /// The slots of the large array of references around `offset`.
    fn slots_of_large(&self, offset: u64) -> Range<u32> {
        let tier = usize::from(self.trace.tables.blocks.tier(offset));
        let array = self.trace.large[tier].around(offset);
        let array = array.expect("lines are noted of large arrays alone");
        let first = slot_at(array + u64::from(ARRAY_NARROW_BASE));
        // SAFETY: the space has an object there, and only lines of arrays are logged.
        let length = unsafe { self.memory.array_length(self.memory.reference(array)) };
        first..first + length
    }

    /// Works until no thread has anything left. `busy` is called now and then once this thread has had much to do.
    pub fn drain(&mut self, mut busy: impl FnMut()) {
        let mut steps = 0u32;
        loop {
            while let Some(entry) = self.next() {
                self.scan(entry);
                if PAR {
                    steps = steps.wrapping_add(1);
                    if steps.is_multiple_of(SHARE_EVERY) && self.stack.len() > SHARE_ABOVE {
                        if steps >= HELP_AFTER {
                            busy();
                        }
                        self.share();
                    }
                }
            }
            if !PAR {
                return;
            }
            match self.trace.pool.take() {
                Some(packet) => self.stack = packet,
                None => return,
            }
        }
    }

    /// Gives the older half of the stack, which leads to more, to a waiting thread.
    fn share(&mut self) {
        if self.trace.pool.is_hungry() {
            let half = self.stack.len() / 2;
            self.trace.pool.offer(self.stack.drain(..half).collect());
        }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Entry> {
        self.stack.pop().or_else(|| self.next_from_ring())
    }

    fn next_from_ring(&mut self) -> Option<Entry> {
        for _ in 0..RING {
            self.exchange(0, Ref::NULL);
            if let Some(entry) = self.stack.pop() {
                return Some(entry);
            }
        }
        None
    }

    /// Puts a slot and its reference into the ring, and follows the one that has been there longest.
    #[inline(always)]
    fn exchange(&mut self, slot: u32, child: Ref) {
        let turn = &mut self.ring[self.at as usize % RING];
        let (oldest, old) = std::mem::replace(turn, (slot, child));
        self.at = self.at.wrapping_add(1);
        if oldest != 0 {
            self.trace.observer.execute(work::FOLLOW);
            let new = self.reach(old);
            if new != old {
                // SAFETY: slots in the ring are of objects.
                let word = unsafe { self.memory.word(place(oldest)) };
                word.store(new.0, Ordering::Relaxed);
                self.note_write(place(oldest), 4);
            }
            if P::SEVERAL && self.is_old_to_observed(oldest, new) {
                self.old_to_observed.push(oldest);
            }
        }
    }

    /// Scans the references in an object, or in a segment of an array.
    #[inline(always)]
    fn scan(&mut self, entry: Entry) {
        let trace = self.trace;
        let memory = self.memory;
        let r = Ref(entry as u32);
        let at = memory.offset(r);
        // SAFETY: entries are of objects that were reached.
        let info = self.info(unsafe { memory.header(r) });
        if info.is_array() {
            if !info.has_refs {
                return;
            }
            // SAFETY: its shape says that it is an array.
            let length = u64::from(unsafe { memory.array_length(r) });
            let first = (entry >> 32) * SEGMENT;
            let end = length.min(first + SEGMENT);
            if end < length {
                self.stack.push(entry + (1 << 32));
            }
            trace
                .observer
                .execute(work::SCAN + (end - first) * work::SLOT);
            self.note_read(at, (end - first) * 4);
            let base = slot_at(at + u64::from(ARRAY_NARROW_BASE));
            for index in first as u32..end as u32 {
                self.slot(base + index);
            }
        } else if info.listed == 0 {
            let mut bits = info.bits;
            let slots = u64::from(bits.count_ones());
            trace.observer.execute(work::SCAN + slots * work::SLOT);
            self.note_read(at, u64::from(info.size));
            let base = slot_at(at + u64::from(STRUCT_BASE));
            while bits != 0 {
                self.slot(base + bits.trailing_zeros());
                bits &= bits - 1;
            }
        } else {
            let listed = trace.shapes.listed(info);
            let slots = listed.len() as u64;
            trace.observer.execute(work::SCAN + slots * work::SLOT);
            self.note_read(at, u64::from(info.size));
            for &offset in listed {
                self.slot(slot_at(at + u64::from(offset)));
            }
        }
    }

    /// Has the reference in a slot followed, soon.
    #[inline(always)]
    fn slot(&mut self, slot: u32) {
        let memory = self.memory;
        // SAFETY: slots are of objects, by their shapes or as they were logged.
        let child = Ref(unsafe { memory.word(place(slot)) }.load(Ordering::Relaxed));
        if self.is_interesting(child) {
            memory.prefetch(child);
            self.exchange(slot, child);
        } else {
            self.note_durable(child);
            if P::SEVERAL && self.is_old_to_observed(slot, child) {
                self.old_to_observed.push(slot);
            }
        }
    }

    /// Whether a reference in a slot has to be known when the observer space is sorted. Nothing that lives is in the
    /// nursery when this is asked, or will be changed by the collection that asks.
    #[inline(always)]
    fn is_old_to_observed(&self, slot: u32, child: Ref) -> bool {
        place(slot) >= self.old && self.is_before_old(child) && child.is_object()
    }

    /// Whether a reference leads to the nursery or the observer space, if it leads to an object.
    #[inline(always)]
    fn is_before_old(&self, r: Ref) -> bool {
        self.memory.offset(r) < self.old
    }

    /// Makes sure that an object lives on, and gives its place.
    #[inline(always)]
    fn reach(&mut self, r: Ref) -> Ref {
        let trace = self.trace;
        // SAFETY: references that are followed are of objects.
        let header = Header(unsafe { self.memory.header_word(r) }.load(Ordering::Acquire));
        if FULL && header.is_marked(self.mark) {
            return r;
        }
        if header.has(FORWARDED) {
            let to = header.forwarded_to();
            self.note_durable(to);
            return to;
        }
        if !FULL || self.is_young(r) {
            // Behind the nursery, or before it, what is young is in the observer space.
            let (start, span) = trace.nursery;
            let from = match P::SEVERAL && !r.is_object_in(start, span) {
                true => Origin::Observer,
                false => Origin::Nursery,
            };
            return self.copy(r, header, from);
        }
        let evacuated = !header.has(LARGE) && is_evacuated(self.blocks, self.memory.offset(r));
        if P::SEVERAL && self.moves_old || evacuated {
            let tier = Tier(trace.tables.blocks.tier(self.memory.offset(r)));
            let from = Origin::Old(tier);
            if evacuated || trace.plan.place(header, header.has(LARGE), from) != Space::Old(tier) {
                return self.copy(r, header, from);
            }
        }
        self.mark(r, header)
    }

    /// Marks an object in place. Two threads may do so at the same time: both write the same, and both scan the
    /// object, which is rare and costs less than to exclude each other from every object.
    #[inline(always)]
    fn mark(&mut self, r: Ref, header: Header) -> Ref {
        let marked = self.seen(header).marked(self.mark);
        // SAFETY: the header was read from there.
        unsafe { self.memory.set_header(r, marked) };
        self.note_write(self.memory.offset(r), u64::from(HEADER_SIZE));
        let info = self.info(header);
        let bytes = self.object_size(r, info);
        self.keep_in_place(r, header, info, bytes);
        r
    }

    /// The header of an object after a plan saw whether it was written to.
    #[inline(always)]
    fn seen(&self, header: Header) -> Header {
        match P::SEVERAL {
            true => header.unwritten(),
            false => header,
        }
    }

    #[inline(always)]
    fn keep_in_place(&mut self, r: Ref, header: Header, info: &Info, bytes: u64) {
        self.trace.observer.execute(work::MARK);
        if !header.has(LARGE) {
            self.mark_lines(r, bytes);
        }
        self.counts.marked += bytes;
        if P::SEVERAL && header.temperature() & HOT != 0 {
            self.count_hot(
                Tier(self.trace.tables.blocks.tier(self.memory.offset(r))),
                bytes,
            );
        }
        if info.has_refs {
            self.stack.push(Entry::from(r.0));
        }
    }

    /// Counts a hot object that is in a memory now.
    #[inline(always)]
    fn count_hot(&mut self, tier: Tier, bytes: u64) {
        if tier != Tier::FAST {
            self.counts.hot += bytes;
        }
    }

    #[inline(always)]
    fn mark_lines(&self, r: Ref, bytes: u64) {
        let at = self.memory.offset(r);
        mark(self.lines, at, bytes, self.live);
        let table = self.lines.as_ptr().addr() as u64;
        self.trace
            .observer
            .write(table + at / LINE_SIZE, bytes.div_ceil(LINE_SIZE));
    }

    /// Copies an object to the space that the plan chooses, unless another thread does.
    fn copy(&mut self, r: Ref, mut header: Header, from: Origin) -> Ref {
        let memory = self.memory;
        // SAFETY: the header was read from there.
        let word = unsafe { memory.header_word(r) };
        if PAR {
            loop {
                if header.has(FORWARDED) {
                    let to = header.forwarded_to();
                    self.note_durable(to);
                    return to;
                }
                if FULL && matches!(from, Origin::Old(_)) && header.is_marked(self.mark) {
                    return r; // There was no room to move it.
                }
                if header.has(FORWARDING) {
                    std::hint::spin_loop();
                    header = Header(word.load(Ordering::Acquire));
                    continue;
                }
                let claimed = header.with(FORWARDING).0;
                match word.compare_exchange_weak(
                    header.0,
                    claimed,
                    Ordering::Acquire,
                    Ordering::Acquire,
                ) {
                    Ok(_) => break,
                    Err(now) => header = Header(now),
                }
            }
        }
        let info = self.info(header);
        let bytes = self.object_size(r, info);
        let Some((to, bits)) = self.room(header, bytes, from) else {
            word.store(self.seen(header).marked(self.mark).0, Ordering::Release);
            self.keep_in_place(r, header, info, bytes);
            return r;
        };
        // SAFETY: the header says that this thread copies `r`; `to` was just allocated by it; both have `bytes`
        // bytes.
        unsafe {
            memory.copy_payload(r, to, bytes);
            memory.set_header(to, self.seen(header).survived(bits));
        }
        self.trace.observer.execute(work::COPY);
        word.store(Header::forwarded(to).0, Ordering::Release);
        self.note_read(memory.offset(r), bytes);
        self.note_write(memory.offset(to), bytes);
        self.note_write(memory.offset(r), u64::from(HEADER_SIZE));
        let observed = P::SEVERAL && self.is_before_old(to);
        if O::WATCHES {
            self.tell_moved(header, bytes, from, r, to);
        }
        if FULL && bits & LARGE == 0 && !observed {
            self.mark_lines(to, bytes);
        }
        if info.has_refs {
            self.stack.push(Entry::from(to.0));
        }
        to
    }

    fn tell_moved(&self, header: Header, bytes: u64, from: Origin, r: Ref, to: Ref) {
        let (base, at) = (self.memory.base_address(), self.memory.offset(to));
        self.trace.observer.moved(Moved {
            header,
            bytes,
            from,
            from_address: base + self.memory.offset(r),
            to: match at < self.old {
                true => Space::Observer,
                false => Space::Old(Tier(self.trace.tables.blocks.tier(at))),
            },
            to_address: base + at,
            to_ref: to,
        });
    }

    #[inline(always)]
    fn info(&self, header: Header) -> &'h Info {
        &self.infos[header.type_index() as usize]
    }

    #[inline(always)]
    fn object_size(&self, r: Ref, info: &Info) -> u64 {
        if info.is_array() {
            // SAFETY: its shape says that it is an array.
            let length = unsafe { self.memory.array_length(r) };
            self.memory.align().array_size(info.element_size, length)
        } else {
            u64::from(info.size)
        }
    }

    #[inline(always)]
    fn note_read(&self, at: u64, bytes: u64) {
        self.trace
            .observer
            .read(self.memory.base_address() + at, bytes);
    }

    #[inline(always)]
    fn note_write(&self, at: u64, bytes: u64) {
        self.trace
            .observer
            .write(self.memory.base_address() + at, bytes);
    }
}

/// Bytes from the heap's base to a slot.
#[inline(always)]
fn place(slot: u32) -> u64 {
    u64::from(slot) << SLOT_SHIFT
}

/// The slot at an offset from the heap's base.
#[inline(always)]
pub(crate) fn slot_at(offset: u64) -> u32 {
    (offset >> SLOT_SHIFT) as u32
}
