//! Moves objects into the region: each that becomes reachable from a durable object, and all that it reaches.
//!
//! Copies are made first, written back and fenced, and only then may anything durable refer to them. The originals become forwarding objects
//! (see [`Header::became_durable`]): they keep their contents, and the next full collection updates all references to them.

use super::Space;
use crate::domain::Fence;
use crate::error::{Error, Result};
use crate::layout::{PAGE, Place};
use crate::walk::header_of;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use varve_heap::layout::*;
use varve_heap::{Header, ObjectAlign, Ref};

/// The identity of objects that the program makes anew in each run but treats as the same ones, by their current references.
pub type Canonical = FxHashMap<u32, Known>;

/// The identity of a volatile object that the program makes in each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// The object with this name.
    Itself(Arc<str>),
    /// An element of the array that has this number to the caller: see [`Space::take_wanted`].
    In(u32),
}

/// A heap of objects that do not survive, reached as its compiled code does.
pub struct Volatile {
    base: *mut u8,
    align: ObjectAlign,
    canonical: Arc<Canonical>,
}

impl Volatile {
    /// # Safety
    /// `base` is the base of a heap with [`durable`](varve_heap::Config::durable) set that lives longer than this, which no other code uses while a
    /// method of [`Space`] is given this.
    pub unsafe fn new(base: *mut u8, align: ObjectAlign) -> Volatile {
        Volatile {
            base,
            align,
            canonical: Arc::default(),
        }
    }

    /// The same, of which some objects are the same in each run.
    pub fn with_canonical(self, canonical: Arc<Canonical>) -> Volatile {
        Volatile { canonical, ..self }
    }

    fn at(&self, r: Ref, offset: u64) -> *mut u8 {
        debug_assert!(r.is_object() && !r.is_durable());
        self.base
            .wrapping_add((self.align.offset(r) + offset) as usize)
    }

    fn header(&self, r: Ref) -> Header {
        // SAFETY: references of the heap are of live objects, which begin with a header.
        Header(unsafe { self.at(r, 0).cast::<u64>().read() })
    }

    fn set_header(&self, r: Ref, header: Header) {
        // SAFETY: as above.
        unsafe { self.at(r, 0).cast::<u64>().write(header.0) }
    }

    fn length(&self, r: Ref) -> u32 {
        // SAFETY: arrays have their length there.
        unsafe { self.at(r, ARRAY_LENGTH as u64).cast::<u32>().read() }
    }

    /// Where an object is now.
    pub fn resolve(&self, r: Ref) -> Ref {
        if !r.is_object() || r.is_durable() {
            return r;
        }
        let header = self.header(r);
        match header.has(FORWARDED) {
            true => header.forwarded_to(),
            false => r,
        }
    }
}

impl Space {
    /// Arrays some of whose elements became durable since the last call: the caller makes the arrays durable too, so that the elements are identified
    /// by them.
    pub fn take_wanted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.wanted)
    }

    /// Makes an object durable with all that it reaches, and gives its place. Outside of regions all of it is in the medium then.
    ///
    /// # Errors
    /// If there is no room, or some object must not survive. Nothing has changed then for the program.
    ///
    /// Class data that durable objects now refer to and that neither tables nor records name are added to `classes`, by their offset in
    /// constants: the caller records them ([`Space::add_late`]) before anything refers to the result.
    pub fn persist(&mut self, heap: &Volatile, value: Ref, classes: &mut Vec<u32>) -> Result<Ref> {
        let value = heap.resolve(value);
        if !value.is_object() {
            return Ok(value);
        }
        if value.is_durable() {
            self.note_class(value, classes);
            return Ok(value);
        }
        let named = self.new_named.len();
        // The lists are kept: most moves are small, and there are many.
        let mut work = std::mem::take(&mut self.moving);
        let done = work.run(self, heap, value, classes);
        match &done {
            Ok(_) => self.moved(&work, named)?,
            Err(_) => {
                for &(r, header) in &work.forwarded {
                    heap.set_header(r, header);
                }
                self.new_named.truncate(named);
                // Copies that nothing refers to, and that never reach the medium.
                for &(from, to) in &work.spans {
                    self.unsettled.extend(from / PAGE..to.div_ceil(PAGE));
                }
            }
        }
        work.clear();
        self.moving = work;
        done
    }

    /// Has copies in the medium, and what is to be known of them.
    fn moved(&mut self, work: &Moving, named: usize) -> Result<()> {
        self.made = true;
        self.stats.moved += work.forwarded.len() as u64;
        for &(from, to) in &work.spans {
            self.stats.moved_bytes += to - from;
            self.flush(from, to - from);
        }
        if self.in_region() {
            return Ok(());
        }
        self.fence(Fence::Copied)?;
        match self.new_named.len() > named {
            true => self.add_named(),
            false => Ok(()),
        }
    }

    /// Adds class data that have no record yet.
    #[inline]
    fn note_class(&self, r: Ref, classes: &mut Vec<u32>) {
        if let Place::Constant(offset) = self.addresses.place(r)
            && r.is_object()
            && offset >= self.named_end
        {
            let offset = offset as u32;
            if self.late().iter().all(|late| late.offset != offset) && !classes.contains(&offset) {
                classes.push(offset);
            }
        }
    }
}

/// The state of a move in progress.
#[derive(Default)]
pub(crate) struct Moving {
    /// Originals with the headers that they had.
    forwarded: Vec<(Ref, Header)>,
    /// Copies whose references are still those of the originals: offsets in the file.
    pending: Vec<u64>,
    /// Where copies are.
    spans: Vec<(u64, u64)>,
}

/// Most entries of lists that are kept for the next move.
const KEPT: usize = 1 << 16;

impl Moving {
    fn clear(&mut self) {
        if self.forwarded.capacity() > KEPT {
            *self = Moving::default();
        }
        self.forwarded.clear();
        self.pending.clear();
        self.spans.clear();
    }

    fn run(
        &mut self,
        space: &mut Space,
        heap: &Volatile,
        value: Ref,
        classes: &mut Vec<u32>,
    ) -> Result<Ref> {
        let to = self.copy(space, heap, value, None)?;
        while let Some(at) = self.pending.pop() {
            let ty = Header(space.image.u64(at)).type_index();
            let info = &space.infos[ty as usize];
            let (element, first, slots) = (info.element, u64::from(info.size), info.refs.len());
            let forgets = info.forgets.len();
            for i in 0..forgets {
                let slot = at + u64::from(space.infos[ty as usize].forgets[i]);
                space.image.write(slot, &[0; 4]);
            }
            let slots = match element {
                0 => slots,
                _ => space.image.u32(at + ARRAY_LENGTH as u64) as usize,
            };
            for i in 0..slots {
                let slot = match element {
                    0 => at + u64::from(space.infos[ty as usize].refs[i].0),
                    _ => at + first + 4 * i as u64,
                };
                let held = Ref(space.image.u32(slot));
                let child = heap.resolve(held);
                let child = match child.is_object() && !child.is_durable() {
                    true => self.copy(space, heap, child, Some(ty))?,
                    false => {
                        space.note_class(child, classes);
                        child
                    }
                };
                if child != held {
                    space.image.write(slot, &child.0.to_le_bytes());
                }
            }
        }
        Ok(to)
    }

    /// Copies an object of the heap that was not copied yet.
    fn copy(
        &mut self,
        space: &mut Space,
        heap: &Volatile,
        r: Ref,
        from: Option<u32>,
    ) -> Result<Ref> {
        let header = heap.header(r);
        let ty = header.type_index();
        let info = &space.infos[ty as usize];
        if let Some(why) = &info.refused {
            return Err(Error::Refused {
                ty: space.tables.name(ty),
                from: from.map_or("a root or a durable object".into(), |ty| {
                    space.tables.name(ty)
                }),
                why: why.clone(),
            });
        }
        let bytes = match info.element {
            0 => u64::from(info.size),
            element => info.align.array_size(element, heap.length(r)),
        };
        let (refers, named) = (!info.refs.is_empty(), info.named);
        let of = heap.canonical.get(&r.0).cloned();
        let at = space.allocate(bytes)?;
        let to = space.image.place_to_write(at, bytes);
        // SAFETY: the object has `bytes` bytes in the heap, and so has its new place in the image; they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(heap.at(r, 0), to, bytes as usize) };
        space.image.set_u64(at, header_of(ty));
        match self.spans.last_mut() {
            Some((_, end)) if *end == at => *end = at + bytes,
            _ => self.spans.push((at, at + bytes)),
        }
        let new = space.addresses.reference(at);
        heap.set_header(r, header.became_durable(new));
        self.forwarded.push((r, header));
        if refers {
            self.pending.push(at);
        }
        match of {
            Some(Known::Itself(of)) => space.new_named.push((at, Some(of.to_string()))),
            Some(Known::In(array)) => space.wanted.push(array),
            None if named => space.new_named.push((at, None)),
            None => {}
        }
        Ok(new)
    }
}
