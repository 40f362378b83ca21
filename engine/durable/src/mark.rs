//! Marks reachable objects, a little at a time, while the program goes on: a snapshot at the beginning.
//!
//! Objects that were reachable when marking began stay, and so do all that were made since. For that, the old values of overwritten references are
//! followed too ([`Marker::stored_over`]). No other action of the program matters: every object that it can reach was reachable then, or is new.

use crate::alloc::{Allocator, set};
use crate::image::Image;
use crate::layout::*;
use crate::types::Info;
use crate::walk::object_at;
use std::collections::VecDeque;
use varve_heap::layout::ARRAY_LENGTH;
use varve_heap::{Header, Ref};

/// Slots of an array that are scanned together: longer ones are scanned in turns.
const SLOTS: u32 = 1024;
/// References whose objects are fetched while others are scanned: most of marking is waiting for memory.
const AHEAD: usize = 16;

/// The data that marking reads, all borrowed from the region.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub image: &'a Image,
    pub infos: &'a [Info],
    pub addresses: Addresses,
    /// Offset of the first object.
    pub first: u64,
    pub alloc: &'a Allocator,
}

/// The objects found so far, and the references still to be followed.
#[derive(Default)]
pub(crate) struct Marker {
    /// One bit for each granule: some object that was found is in it. Where its first granule is, an object was found.
    granules: Vec<u64>,
    /// Bytes of a granule: the alignment of objects.
    granule: u64,
    /// References to be followed.
    pending: Vec<Ref>,
    /// The next of them, whose objects are being fetched.
    ahead: VecDeque<Ref>,
    /// Arrays that are not scanned as a whole yet, and the first of their slots that was not.
    arrays: Vec<(u64, u32)>,
    /// Bytes of objects that were found.
    pub bytes: u64,
    /// The first inconsistency found, if any: then none of the results are to be trusted.
    pub damage: Option<String>,
}

impl Marker {
    /// For a file of `bytes` bytes, where objects are at multiples of `granule`.
    pub fn new(bytes: u64, granule: u64) -> Marker {
        Marker {
            granules: vec![0; (bytes / granule).div_ceil(64) as usize],
            granule,
            ..Marker::default()
        }
    }

    /// Queues a reference to be followed: the object that it leads to now stays.
    #[inline]
    pub fn follow(&mut self, r: Ref) {
        if r.is_object() {
            self.pending.push(r);
        }
    }

    /// The next reference, while those after it are being fetched.
    fn next(&mut self, view: View<'_>) -> Option<Ref> {
        while self.ahead.len() < AHEAD
            && let Some(r) = self.pending.pop()
        {
            if let Place::File(at) = view.addresses.place(r) {
                view.image.fetch(at);
            }
            self.ahead.push_back(r);
        }
        self.ahead.pop_front()
    }

    /// Marks the target of a reference, and scans it. Returns the number of its references.
    fn mark(&mut self, view: View<'_>, r: Ref) -> u64 {
        let at = match view.addresses.place(r) {
            Place::File(at) => at,
            // Class data are no garbage, and hold nothing durable.
            Place::Constant(_) => return 0,
            Place::Outside => {
                self.damage = Some(format!("{r:?} leads out of the region"));
                return 0;
            }
        };
        if self.has(at) || view.alloc.is_recent(at) {
            return 0;
        }
        let found = object_at(view.image, view.infos, view.addresses.0, view.first, at);
        let (ty, bytes) = match found {
            Ok(found) => found,
            Err(what) => {
                self.damage = Some(format!("object at {at:#x}: {what}"));
                return 0;
            }
        };
        self.take(at, bytes);
        self.bytes += bytes;
        match view.infos[ty as usize].refs.is_empty() {
            true => 0,
            false => self.look_into(view, at, 0),
        }
    }

    #[inline]
    fn has(&self, at: u64) -> bool {
        let at = at / self.granule;
        let word = self.granules.get((at / 64) as usize).copied();
        word.unwrap_or(0) >> (at % 64) & 1 != 0
    }

    fn take(&mut self, at: u64, bytes: u64) {
        let (from, to) = (at / self.granule, (at + bytes).div_ceil(self.granule));
        let words = to.div_ceil(64) as usize;
        if self.granules.len() < words {
            self.granules.resize(words, 0);
        }
        set(&mut self.granules, from, to);
    }

    /// References of an object are about to be stored over: those that are there are followed.
    pub fn stored_over(&mut self, view: View<'_>, object: u64, at: u64, bytes: u64) {
        let ty = Header(view.image.u64(object)).type_index();
        let Some(info) = view.infos.get(ty as usize) else {
            return;
        };
        if info.element == 0 {
            let over = |slot: u64| slot + 4 > at && slot < at + bytes;
            for &(slot, _) in info.refs.iter().filter(|(slot, _)| over((*slot).into())) {
                self.follow(Ref(view.image.u32(object + u64::from(slot))));
            }
        } else if !info.refs.is_empty() {
            for slot in (at / 4 * 4..at + bytes).step_by(4) {
                self.follow(Ref(view.image.u32(object + slot)));
            }
        }
    }

    /// Marks until `bytes` bytes were found, or about `references` references were followed. Returns whether marking is complete.
    pub fn step(&mut self, view: View<'_>, bytes: u64, references: u64) -> bool {
        let enough = self.bytes.saturating_add(bytes);
        let mut followed = 0;
        while self.bytes < enough && followed < references && self.damage.is_none() {
            followed += 1 + match self.next(view) {
                Some(r) => self.mark(view, r),
                None => match self.arrays.pop() {
                    Some((at, from)) => self.look_into(view, at, from),
                    None => return true,
                },
            };
        }
        self.is_done()
    }

    /// Follows some references of an object; how many.
    fn look_into(&mut self, view: View<'_>, at: u64, from: u32) -> u64 {
        let ty = Header(view.image.u64(at)).type_index();
        let info = &view.infos[ty as usize];
        if info.element == 0 {
            for &(offset, _) in &info.refs {
                self.follow(Ref(view.image.u32(at + u64::from(offset))));
            }
            return info.refs.len() as u64;
        }
        let length = view.image.u32(at + ARRAY_LENGTH as u64);
        let to = length.min(from.saturating_add(SLOTS));
        if to < length {
            self.arrays.push((at, to));
        }
        for slot in from..to {
            let slot = at + u64::from(info.size) + 4 * u64::from(slot);
            self.follow(Ref(view.image.u32(slot)));
        }
        u64::from(to.saturating_sub(from))
    }

    /// Whether nothing is left to be followed.
    pub fn is_done(&self) -> bool {
        let nothing = self.pending.is_empty() && self.ahead.is_empty() && self.arrays.is_empty();
        nothing || self.damage.is_some()
    }

    /// One bit for each granule with something that was found.
    pub fn granules(&self) -> &[u64] {
        &self.granules
    }
}
