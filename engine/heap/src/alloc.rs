//! How objects are born: in the nursery if they fit, among the large ones if not, after a collection if there is no room.

use std::sync::atomic::Ordering::Relaxed;

use crate::config::Stress;
use crate::header::Header;
use crate::heap::Heap;
use crate::large::large_bytes;
use crate::layout::*;
use crate::mutator::Mutator;
use crate::observer::{Moved, Observer};
use crate::plan::{Origin, Places, Space};
use crate::reference::Ref;
use crate::remembered::Remembered;
use crate::roots::Roots;
use crate::stats::{Cause, Kind};
use varve_pima::Tier;

/// There is no room for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of memory: no room for {requested} bytes, {used} of at most {max} are in use after collecting everything"
)]
pub struct OutOfMemory {
    /// Bytes of the object.
    pub requested: u64,
    /// Bytes in use.
    pub used: u64,
    /// The heap's maximum in bytes.
    pub max: u64,
}

impl<P: Places, O: Observer> Heap<P, O> {
    /// Allocates what compiled code found no room for. `bytes` is the object's size, a multiple of
    /// the [alignment](crate::ObjectAlign). The object is zero but for its header, which is `header`, a value of [`new_header`], with
    /// collector bits added: the caller must not write the header again. An array's length is the caller's to
    /// write, before anything else may collect.
    ///
    /// May collect first: all references but those that `roots` visits are invalid afterwards. On an error nothing
    /// was allocated.
    pub fn alloc_slow(
        &mut self,
        mutator: &mut Mutator,
        header: u64,
        bytes: u64,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        debug_assert!(self.config.align.is_aligned(bytes) && bytes > 0);
        self.stress(mutator, roots);
        if bytes > self.max_born_in_nursery() {
            return self.alloc_large(mutator, header, bytes, roots);
        }
        if let Some(r) = self.alloc_in_nursery(mutator, header, bytes) {
            return Ok(r);
        }
        let full = self.sizing.full_is_due(self.used()) || self.nursery.size() == 0;
        if !full {
            self.collect_for(mutator, self.minor(), Cause::NurseryFull, roots);
            if let Some(r) = self.alloc_in_nursery(mutator, header, bytes) {
                return Ok(r);
            }
        }
        self.collect_for(
            mutator,
            Kind::Full,
            if full { Cause::Growth } else { Cause::HeapFull },
            roots,
        );
        self.alloc_in_nursery(mutator, header, bytes)
            .ok_or_else(|| self.out_of_memory(bytes))
    }

    /// Allocates an object with a header that [`new_header`] made, all zero but for that and, in an array, the
    /// length, which counts for arrays alone.
    pub fn alloc(
        &mut self,
        mutator: &mut Mutator,
        header: u64,
        length: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        let type_index = Header(header).type_index();
        let bytes = self.shapes.object_size(type_index, length);
        let r = self.alloc_bytes(mutator, header, bytes, roots)?;
        if self.shapes.info(type_index).is_array() {
            self.tables.memory.write(
                self.tables.memory.offset(r) + ARRAY_LENGTH as u64,
                &length.to_ne_bytes(),
            );
        }
        Ok(r)
    }

    /// Allocates a struct of a type, all zero.
    pub fn alloc_struct(
        &mut self,
        mutator: &mut Mutator,
        type_index: u32,
        site: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        let bytes = self.shapes.object_size(type_index, 0);
        self.alloc_bytes(mutator, new_header(type_index, site, 0), bytes, roots)
    }

    /// Allocates an array of a type, all zero.
    pub fn alloc_array(
        &mut self,
        mutator: &mut Mutator,
        type_index: u32,
        site: u32,
        length: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        self.alloc(mutator, new_header(type_index, site, 0), length, roots)
    }

    /// Allocates a host object that holds `handle`. [`Roots::host_died`] is called with it once the object is dead.
    pub fn alloc_host(
        &mut self,
        mutator: &mut Mutator,
        type_index: u32,
        handle: u64,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        assert!(
            self.shapes.info(type_index).is_host,
            "type {type_index} is not a host object's"
        );
        let r = self.alloc(mutator, new_header(type_index, 0, 0), 0, roots)?;
        self.tables.memory.write(
            self.tables.memory.offset(r) + HOST_HANDLE as u64,
            &handle.to_ne_bytes(),
        );
        self.hosts.young.push(r);
        Ok(r)
    }

    #[inline]
    fn alloc_bytes(
        &mut self,
        mutator: &mut Mutator,
        header: u64,
        bytes: u64,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        match mutator.bump(bytes) {
            Some(at) => Ok(self.begin_object(at, header)),
            None => self.alloc_slow(mutator, header, bytes, roots),
        }
    }

    fn alloc_in_nursery(&mut self, mutator: &mut Mutator, header: u64, bytes: u64) -> Option<Ref> {
        let stressed = self.config.stress != Stress::Off;
        let zeroed = self
            .nursery
            .extend(&self.tables.memory, mutator, bytes, stressed)?;
        if O::WATCHES && !zeroed.is_empty() {
            let address = self.tables.memory.base_address() + zeroed.start;
            self.observer.write(address, zeroed.end - zeroed.start);
        }
        let at = mutator.bump(bytes)?;
        // Programs that never fill a nursery need no room for survivors.
        if !self.ahead.is_running() && self.nursery.used(mutator) > self.nursery.size() / 4 {
            self.touch_ahead(0);
        }
        if stressed {
            mutator.limit = mutator.cursor;
        }
        Some(self.begin_object(at, header))
    }

    /// Writes the header of an object that is born at an offset.
    #[inline(always)]
    fn begin_object(&self, at: u64, header: u64) -> Ref {
        let memory = &self.tables.memory;
        memory.checked_long(at).store(header, Relaxed);
        memory.reference(at)
    }

    fn alloc_large(
        &mut self,
        mutator: &mut Mutator,
        header: u64,
        bytes: u64,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        let pages = large_bytes(bytes);
        if pages > self.sizing.max() {
            return Err(self.out_of_memory(bytes));
        }
        let used = self.used();
        if self.sizing.full_is_due(used + pages) || !self.sizing.has_room(used, pages) {
            self.collect_for(mutator, Kind::Full, Cause::LargeObject, roots);
        }
        if !self.sizing.has_room(self.used(), pages) || !self.tables.chunks.reserve_is_whole() {
            return Err(self.out_of_memory(bytes));
        }
        self.plan.look();
        let tier = match self.plan.place(Header(header), true, Origin::Birth) {
            Space::Old(Tier::FAST) if self.fast_left() < pages => {
                usize::from(Tier::SLOW.0).min(self.large.len() - 1)
            }
            Space::Old(tier) => usize::from(tier.0),
            Space::Observer => unreachable!("large objects have no observer space"),
        };
        let run = self.large[tier]
            .alloc(&self.tables, bytes, false)
            .ok_or_else(|| self.out_of_memory(bytes))?;
        let r = self.config.align.reference(run.at);
        if run.fresh {
            // Zero from the system, or from the backing.
        } else if pages >= CHUNK_SIZE && self.tables.backing.is_none() {
            self.tables.memory.discard(run.at, pages);
        } else {
            self.tables.memory.zero(run.at, pages);
            if O::WATCHES {
                let address = self.tables.memory.base_address() + run.at;
                self.observer.write(address, pages);
            }
        }
        // It is born outside of the nursery and will hold references into it before any store logs it: it is
        // remembered from the beginning.
        let word = self.tables.memory.checked_long(run.at);
        word.store(Header(header).with(LARGE | self.mark).0, Relaxed);
        mutator.remember(Remembered::Object(r));
        if O::WATCHES {
            let address = self.tables.memory.base_address() + run.at;
            self.observer.moved(Moved {
                header: Header(header),
                bytes,
                from: Origin::Birth,
                from_address: address,
                to: Space::Old(Tier(tier as u8)),
                to_address: address,
                to_ref: r,
            });
        }
        self.stats.allocated += bytes;
        if Header(header).temperature() & HOT != 0 && tier != usize::from(Tier::FAST.0) {
            self.hot += bytes;
        }
        // The memory of this object is no longer available to survivors.
        self.nursery.shrink(self.sizing.nursery(self.used()));
        Ok(r)
    }

    /// Opens the reserve for a program that handles a full heap: a small nursery, beyond the maximum if need be. Closed, it holds what was born
    /// there, and has no room for more. Returns whether there was anything to open: objects that programs keep of it add up, and the same room is not
    /// lent twice.
    pub fn lend(&mut self, mutator: &mut Mutator, open: bool) -> bool {
        let used = self.used();
        let lent = self.sizing.lend(open, used) && self.has_reserve(used);
        let has_nursery = self.nursery.size() > 0;
        match open {
            true if lent && !has_nursery => {
                self.start_nursery(mutator, self.sizing.nursery(used));
            }
            true => {}
            false => self.nursery.shrink(self.sizing.nursery(used)),
        }
        lent || has_nursery
    }

    fn max_born_in_nursery(&self) -> u64 {
        (self.nursery.size() / 8).max(LARGE_THRESHOLD)
    }

    fn out_of_memory(&self, requested: u64) -> OutOfMemory {
        OutOfMemory {
            requested,
            used: self.used(),
            max: self.sizing.max(),
        }
    }

    fn stress(&mut self, mutator: &mut Mutator, roots: &mut dyn Roots) {
        let (every, kind) = match self.config.stress {
            Stress::Off => return,
            Stress::Minor(every) => (every, self.minor()),
            Stress::Full(every) => (every, Kind::Full),
        };
        self.until_stress = self.until_stress.saturating_sub(1);
        if self.until_stress == 0 {
            self.until_stress = every.max(1);
            self.collect_for(mutator, kind, Cause::Stress, roots);
        }
    }
}
