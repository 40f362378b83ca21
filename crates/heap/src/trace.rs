//! The tracer: follows references, marks what stays, copies what moves.
//!
//! One body serves all collections. `FULL` collections reach every object; others stop at everything that is not in
//! the nursery. With `PAR` several threads trace at once: who changes a header first moves the object.
//!
//! Order of work: references that are found wait in a short ring while the processor fetches the headers behind
//! them; objects that were reached are scanned last in, first out, while their lines are still in the cache.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use crate::blocks::is_evacuated;
use crate::header::Header;
use crate::large::Large;
use crate::layout::*;
use crate::lines::{live_value, mark};
use crate::mature::{Bump, Mature, Tables};
use crate::memory::View;
use crate::observer::Observer;
use crate::plan::{From, MAX_TIERS, Plan};
use crate::pool::{Entry, Pool};
use crate::reference::Ref;
use crate::shape::{Info, Shapes};

/// References that wait for their target's header. A power of two; about as many as a core has miss buffers.
const RING: usize = 16;
/// Elements of an array that are scanned at a time, so that threads can share large ones and stacks stay short.
const SEGMENT: u64 = 1024;
/// Objects between two looks at whether somebody wants work.
const SHARE_EVERY: u32 = 64;
/// Objects after which other threads are woken: to start one takes as long as to scan thousands.
const HELP_AFTER: u32 = if cfg!(miri) { 64 } else { 32 << 10 };
/// Entries that a thread keeps for itself. Few: in a tree, the oldest entry is half of the work.
const SHARE_ABOVE: usize = 4;
/// Bytes of evacuation budget that a thread takes at a time.
const ALLOWANCE: i64 = 64 << 10;

/// What all threads of one collection share.
pub(crate) struct Trace<'h, P, O> {
    pub tables: &'h Tables,
    pub shapes: &'h Shapes,
    pub mature: &'h [Mature],
    pub large: &'h [Large],
    pub plan: &'h P,
    pub observer: &'h O,
    /// Half of the nursery's first reference, and half of how many references it spans.
    pub nursery: (u32, u32),
    /// What live objects are marked with.
    pub mark: u8,
    /// Bytes that may still be copied out of evacuated blocks. Survivors of the nursery do not count.
    pub budget: AtomicI64,
    pub pool: Pool,
}

/// What one thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bytes that survived the nursery, by tier.
    pub promoted: [u64; MAX_TIERS as usize],
    /// Objects that survived the nursery.
    pub promoted_objects: u64,
    /// Bytes evacuated from fragmented blocks.
    pub evacuated: u64,
    /// Bytes found live and left in place.
    pub marked: u64,
}

impl Counts {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Counts) {
        for (mine, theirs) in self.promoted.iter_mut().zip(other.promoted) {
            *mine += theirs;
        }
        self.promoted_objects += other.promoted_objects;
        self.evacuated += other.evacuated;
        self.marked += other.marked;
    }
}

impl<P, O> Trace<'_, P, O> {
    #[inline(always)]
    pub fn in_nursery(&self, r: Ref) -> bool {
        r.is_object_in(self.nursery.0, self.nursery.1)
    }

    /// Where `r` is after tracing; `None` if it died.
    pub fn resolve(&self, r: Ref, full: bool) -> Option<Ref> {
        if !r.is_object() {
            return Some(r);
        }
        let header = self.tables.memory.header(r);
        if header.has(FORWARDED) {
            return Some(header.forwarded_to());
        }
        let alive = !self.in_nursery(r) && (!full || header.is_marked(self.mark));
        alive.then_some(r)
    }
}

/// One thread of a collection.
pub(crate) struct Worker<'t, 'h, P, O, const FULL: bool, const PAR: bool> {
    trace: &'t Trace<'h, P, O>,
    bumps: &'t mut [Bump],
    stack: Vec<Entry>,
    /// Slots whose references wait, as offsets in units of 4 bytes; 0 is none.
    ring: [u32; RING],
    at: u32,
    allowance: i64,
    pub counts: Counts,
    // What every step needs, copied here because the compiler must assume that other threads change what is shared.
    memory: View,
    infos: &'h [Info],
    lines: &'h [AtomicU8],
    blocks: &'h [AtomicU8],
    nursery: (u32, u32),
    mark: u8,
    live: u8,
}

impl<'t, 'h, P: Plan, O: Observer, const FULL: bool, const PAR: bool>
    Worker<'t, 'h, P, O, FULL, PAR>
{
    /// A thread that allocates from `bumps`, one per tier.
    pub fn new(trace: &'t Trace<'h, P, O>, bumps: &'t mut [Bump]) -> Self {
        Worker {
            trace,
            bumps,
            stack: Vec::new(),
            ring: [0; RING],
            at: 0,
            allowance: 0,
            counts: Counts::default(),
            memory: trace.tables.memory.view(),
            infos: trace.shapes.infos(),
            lines: trace.tables.lines.bytes(),
            blocks: trace.tables.blocks.bytes(),
            nursery: trace.nursery,
            mark: trace.mark,
            live: live_value(trace.mark),
        }
    }

    /// Whether a collection of this kind has to look at what `r` refers to.
    #[inline(always)]
    fn is_interesting(&self, r: Ref) -> bool {
        if FULL {
            r.is_object()
        } else {
            self.in_nursery(r)
        }
    }

    #[inline(always)]
    fn in_nursery(&self, r: Ref) -> bool {
        r.is_object_in(self.nursery.0, self.nursery.1)
    }

    /// Follows a reference from outside of the heap, and gives what it is to be now.
    pub fn root(&mut self, r: Ref) -> Ref {
        if self.is_interesting(r) {
            self.reach(r)
        } else {
            r
        }
    }

    /// Has the references in an object that was stored into followed; the next store will log it again.
    pub fn remembered(&mut self, r: Ref) {
        let memory = self.memory;
        memory.set_header(r, memory.header(r).with(UNLOGGED));
        self.stack.push(Entry::from(r.0));
    }

    /// Has the references followed that are in one line, counted from the heap's base, of a large array.
    pub fn card(&mut self, array: Ref, line: u32) {
        let units = (LINE_SIZE >> REF_SHIFT) as u32;
        let first = array.0 + (ARRAY_NARROW_BASE >> REF_SHIFT);
        let end = first + self.memory.array_length(array);
        let slots = first.max(line * units)..end.min((line + 1) * units);
        self.note_read(Ref(slots.start), LINE_SIZE);
        slots.for_each(|slot| self.slot(slot));
    }

    /// Works until nobody has anything left. `busy` is called now and then once this thread has had much to do.
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

    /// Gives the older half of the stack, which leads to more, to somebody who waits.
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
            self.exchange(0);
            if let Some(entry) = self.stack.pop() {
                return Some(entry);
            }
        }
        None
    }

    /// Puts a slot into the ring, and follows the one that has been there longest.
    #[inline(always)]
    fn exchange(&mut self, slot: u32) {
        let oldest = std::mem::replace(&mut self.ring[self.at as usize % RING], slot);
        self.at = self.at.wrapping_add(1);
        if oldest != 0 {
            let memory = self.memory;
            let word = memory.word(u64::from(oldest) << REF_SHIFT);
            let old = Ref(word.load(Ordering::Relaxed));
            let new = self.reach(old);
            if new != old {
                word.store(new.0, Ordering::Relaxed);
                self.note_write(Ref(oldest), 4);
            }
        }
    }

    /// Looks at the references in an object, or in a segment of an array.
    #[inline(always)]
    fn scan(&mut self, entry: Entry) {
        let trace = self.trace;
        let memory = self.memory;
        let r = Ref(entry as u32);
        let info = self.info(memory.header(r));
        if info.is_array() {
            if !info.has_refs {
                return;
            }
            let (length, first) = (u64::from(memory.array_length(r)), (entry >> 32) * SEGMENT);
            let end = length.min(first + SEGMENT);
            if end < length {
                self.stack.push(entry + (1 << 32));
            }
            self.note_read(r, (end - first) * 4);
            let base = r.0 + (ARRAY_NARROW_BASE >> REF_SHIFT);
            for index in first as u32..end as u32 {
                self.slot(base + index);
            }
        } else if info.listed == 0 {
            self.note_read(r, u64::from(info.size));
            let base = r.0 + (STRUCT_BASE >> REF_SHIFT);
            let mut bits = info.bits;
            while bits != 0 {
                self.slot(base + bits.trailing_zeros());
                bits &= bits - 1;
            }
        } else {
            self.note_read(r, u64::from(info.size));
            for offset in trace.shapes.listed(info) {
                self.slot(r.0 + (offset >> REF_SHIFT));
            }
        }
    }

    /// Has the reference in a slot followed, soon.
    #[inline(always)]
    fn slot(&mut self, slot: u32) {
        let memory = self.memory;
        let child = Ref(memory
            .word(u64::from(slot) << REF_SHIFT)
            .load(Ordering::Relaxed));
        if self.is_interesting(child) {
            memory.prefetch(child);
            self.exchange(slot);
        }
    }

    /// Makes sure that an object lives on, and gives its place.
    #[inline(always)]
    fn reach(&mut self, r: Ref) -> Ref {
        let trace = self.trace;
        let header = Header(self.memory.header_word(r).load(Ordering::Acquire));
        if FULL && header.is_marked(self.mark) {
            return r;
        }
        if header.has(FORWARDED) {
            return header.forwarded_to();
        }
        if !FULL || self.in_nursery(r) {
            return self.copy(r, header, From::Nursery);
        }
        if !header.has(LARGE) && is_evacuated(self.blocks, r.offset()) {
            let tier = crate::plan::Tier(trace.tables.blocks.tier(r.offset()));
            return self.copy(r, header, From::Mature(tier));
        }
        self.mark(r, header)
    }

    /// Marks an object in place. Two threads may do so at the same time: both write the same, and both scan the
    /// object, which is rare and costs less than to exclude each other from every object.
    #[inline(always)]
    fn mark(&mut self, r: Ref, header: Header) -> Ref {
        self.memory.set_header(r, header.marked(self.mark));
        self.note_write(r, u64::from(HEADER_SIZE));
        let info = self.info(header);
        let bytes = self.object_size(r, info);
        self.keep_in_place(r, header, info, bytes);
        r
    }

    #[inline(always)]
    fn keep_in_place(&mut self, r: Ref, header: Header, info: &Info, bytes: u64) {
        if !header.has(LARGE) {
            mark(self.lines, r.offset(), bytes, self.live);
        }
        self.counts.marked += bytes;
        if info.has_refs {
            self.stack.push(Entry::from(r.0));
        }
    }

    /// Copies an object to the space that the plan chooses, unless another thread does.
    fn copy(&mut self, r: Ref, mut header: Header, from: From) -> Ref {
        let memory = self.memory;
        if PAR {
            let word = memory.header_word(r);
            loop {
                if header.has(FORWARDED) {
                    return header.forwarded_to();
                }
                if FULL && from != From::Nursery && header.is_marked(self.mark) {
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
            memory
                .header_word(r)
                .store(header.marked(self.mark).0, Ordering::Release);
            self.keep_in_place(r, header, info, bytes);
            return r;
        };
        // SAFETY: the header says that this thread copies `r`; `to` was just allocated by it; both have `bytes`
        // bytes.
        unsafe { memory.copy_payload(r, to, bytes) };
        memory.set_header(to, header.survived(bits));
        memory
            .header_word(r)
            .store(Header::forwarded(to).0, Ordering::Release);
        self.note_read(r, bytes);
        self.note_write(to, bytes);
        self.note_write(r, u64::from(HEADER_SIZE));
        if FULL && bits & LARGE == 0 {
            mark(self.lines, to.offset(), bytes, self.live);
        }
        if info.has_refs {
            self.stack.push(Entry::from(to.0));
        }
        to
    }

    /// Room for a copy, and the collector bits it will have. `None`: it may stay where it is, and must.
    #[inline(always)]
    fn room(&mut self, header: Header, bytes: u64, from: From) -> Option<(Ref, u8)> {
        let trace = self.trace;
        let tier = usize::from(trace.plan.survival(header, bytes, from).0);
        let bits = UNLOGGED | self.mark;
        if from != From::Nursery {
            if self.allowance < bytes as i64 {
                let more = ALLOWANCE.max(bytes as i64);
                if trace.budget.fetch_sub(more, Ordering::Relaxed) < more {
                    trace.budget.store(0, Ordering::Relaxed);
                    return None;
                }
                self.allowance += more;
            }
            let to = self.bumps[tier].alloc(&trace.mature[tier], trace.tables, bytes)?;
            self.allowance -= bytes as i64;
            self.counts.evacuated += bytes;
            return Some((to, bits));
        }
        self.counts.promoted[tier] += bytes;
        self.counts.promoted_objects += 1;
        // The address range that is kept for collections holds a whole nursery: see `Chunks` and
        // `Config::emergency_chunks`.
        if bytes >= LARGE_THRESHOLD {
            let to = trace.large[tier]
                .alloc(trace.tables, bytes, true)
                .expect("collections keep room for a nursery");
            return Some((to, bits | LARGE));
        }
        let to = self.bumps[tier].alloc(&trace.mature[tier], trace.tables, bytes);
        Some((to.expect("collections keep room for a nursery"), bits))
    }

    #[inline(always)]
    fn info(&self, header: Header) -> &'h Info {
        &self.infos[header.type_index() as usize]
    }

    #[inline(always)]
    fn object_size(&self, r: Ref, info: &Info) -> u64 {
        if info.is_array() {
            array_size(info.element_size, self.memory.array_length(r))
        } else {
            u64::from(info.size)
        }
    }

    #[inline(always)]
    fn note_read(&self, r: Ref, bytes: u64) {
        self.trace
            .observer
            .read(self.memory.base_address() + r.offset(), bytes);
    }

    #[inline(always)]
    fn note_write(&self, r: Ref, bytes: u64) {
        self.trace
            .observer
            .write(self.memory.base_address() + r.offset(), bytes);
    }
}
