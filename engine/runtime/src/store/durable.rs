//! Objects that survive the program: between the store and its durable region.

mod canonical;
pub(crate) mod class_data;
mod classes;
mod stats;
mod types;

pub(crate) use class_data::Constants;
pub(crate) use stats::CHECK_COUNTERS;
pub use stats::{CheckStats, SiteStats};

use super::Vm;
use super::observe::Recording;
use crate::engine::{Checks, DurableFile};
use crate::error::{Error, Result};
use crate::types::TypeIndex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use varve_durable::domain::Modelled;
use varve_durable::layout::Addresses;
use varve_durable::{Medium, Opened, Space, Volatile, open_in_place};
use varve_heap::{ObjectAlign, Ref, layout};

/// A store's durable region, and the constants that its objects refer to.
pub(crate) struct Durable {
    /// The file, until there is an instance whose objects could be in it.
    opened: Option<Opened>,
    space: Option<Space>,
    pub constants: Constants,
    /// Types whose objects are constants, those made later too.
    class_types: HashSet<TypeIndex>,
    /// The type of objects that stand for classes, which are class data too: the same objects in each run.
    class_objects: Option<TypeIndex>,
    heap_base: usize,
    align: ObjectAlign,
    /// The offset of the file's first byte from the heap's base.
    file_start: u64,
    /// Former names of constants of enumerations.
    renamed: Vec<varve_durable::Renamed>,
    /// Enumerations of the program, whose constants are the same objects in each run.
    pub enumeration: Option<types::Enumeration>,
    /// Types of classes by their numbers in the module: the program asks which of them the region has objects of.
    kept: Vec<Option<TypeIndex>>,
    /// Other objects that are the same in each run.
    pub canonical: canonical::Canonical,
    /// The name of a root while the program spells it, in UTF-16.
    name: Vec<u16>,
    /// Stores, objects and logged lines whose instructions were reported.
    told: [u64; 3],
    /// The longest pause of the program for a durable collection.
    pub longest_pause: Duration,
    /// Whether operations are committed together: see [`Space::set_grouped`].
    grouped: bool,
}

/// The width that is passed to a store's helper for a reference.
pub(crate) const REFERENCE: u32 = 16;

/// Instructions that the runtime executes for a store into a durable object, for an object that becomes durable, and for a cache line that is
/// logged: of `durable.wasm farray` (854 an object) and `fararray --operations 2000` (247 a store with its part of 0.083 logged lines, 181 without),
/// counted by callgrind with its functions' inclusive costs, 23 November 2026. They are reported if a machine is modelled.
const WORK: [u64; 3] = [180, 850, 580];

impl Durable {
    /// Instructions that the runtime executed since this was asked last.
    fn take_work(&mut self) -> u64 {
        let Some(space) = &self.space else { return 0 };
        let now = space.stats();
        let done = [now.stores, now.moved, now.logged];
        let before = std::mem::replace(&mut self.told, done);
        let parts = done.iter().zip(before).zip(WORK);
        parts
            .map(|((now, before), each)| (now - before) * each)
            .sum()
    }

    /// Opens and locks the file, and maps it and the constants among the addresses that the heap leaves. If accesses are observed, the medium is that
    /// of the modelled machine: write-backs and fences are reported, and not executed.
    ///
    /// # Safety
    /// The heap at `heap_base` leaves its durable range to the result, and outlives it.
    pub unsafe fn open(
        file: &DurableFile,
        heap_base: usize,
        align: ObjectAlign,
        recording: Option<&Arc<Recording>>,
    ) -> Result<Durable> {
        let constants_start = align.durable_start();
        let file_start = Addresses(align).file_start();
        let first = heap_base + file_start as usize;
        let at = std::ptr::with_exposed_provenance_mut::<u8>(first);
        let medium = match recording {
            Some(_) => Medium::Memory,
            None => file.medium,
        };
        // SAFETY: as this function.
        let mut opened = unsafe { open_in_place(&file.path, medium, at, align) }?;
        if file.verify {
            opened = opened.verified();
        }
        if let Some(recording) = recording.cloned() {
            let medium = Modelled::new(first as u64, move |step| recording.medium(step));
            opened = opened.on(Box::new(medium));
        }
        // SAFETY: as this function.
        let constants = unsafe { Constants::new(heap_base + constants_start as usize, align) }?;
        Ok(Durable {
            opened: Some(opened),
            space: None,
            constants,
            align,
            class_types: HashSet::new(),
            class_objects: None,
            renamed: Vec::new(),
            heap_base,
            file_start,
            enumeration: None,
            kept: Vec::new(),
            canonical: canonical::Canonical::default(),
            name: Vec::new(),
            told: [0; 3],
            longest_pause: Duration::ZERO,
            grouped: false,
        })
    }

    /// Whether a durable collection is worth beginning; under stress, whether it is possible.
    pub fn wants_collection(&self, stress: bool) -> bool {
        let can = |s: &Space| !s.in_region() && !s.is_collecting();
        let wants = |s: &Space| s.wants_collection() || (stress && can(s));
        self.space.as_ref().is_some_and(wants)
    }

    /// Continues marking for a durable collection, if one has begun and a step is due.
    #[inline]
    fn collect_some(&mut self) {
        if self.space.as_ref().is_some_and(|s| s.due().is_some()) {
            self.pause(Space::collect_some);
        }
    }

    /// Has the program wait during a step of a durable collection.
    fn pause(&mut self, work: impl FnOnce(&mut Space)) {
        let begun = Instant::now();
        if let Some(space) = &mut self.space {
            work(space);
        }
        self.longest_pause = self.longest_pause.max(begun.elapsed());
    }

    /// The region, which is there from the first instance on.
    pub fn space(&self) -> Option<&Space> {
        self.space.as_ref()
    }

    fn volatile(&self) -> Volatile {
        let base = std::ptr::with_exposed_provenance_mut::<u8>(self.heap_base);
        // SAFETY: the store's heap lives as long; helpers call while compiled code waits.
        unsafe { Volatile::new(base, self.align) }
    }
}

impl Durable {
    /// Closes the region file in order: rolls back an open failure-atomic region.
    fn close(&mut self) -> Result<()> {
        Ok(self.space.take().map_or(Ok(()), Space::close)?)
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        // If the medium fails now, the next opening recovers the region; nothing is lost. A caller that needs the error calls `close`.
        let _ = self.close();
    }
}

impl Vm {
    /// Closes the region, if there is one.
    pub(super) fn close_region(&mut self) -> Result<()> {
        self.durable
            .as_mut()
            .map_or(Ok(()), |region| region.close())
    }

    /// The region, if there is one.
    pub(super) fn region_in_use(&mut self) -> Option<&mut Space> {
        self.durable.as_mut()?.space.as_mut()
    }

    /// The region in use.
    fn space(&mut self) -> Result<&mut Space> {
        let space = self.region_in_use();
        space.ok_or_else(|| Error::Internal("a durable object without a region".into()))
    }

    /// Once an instance has its globals, before its code runs: class data go to their places, and the region is opened for its types.
    pub(super) fn begin_durable(&mut self, instance: u32) -> Result<()> {
        let Some(durable) = &self.durable else {
            return Ok(());
        };
        if durable.space.is_some() {
            return Err(Error::usage(
                "a durable region is for the objects of one instance: run others in a store of their own",
            ));
        }
        self.place_class_data(instance)?;
        // Nothing refers to where they were.
        self.collect()?;
        let tables = self.durable_tables(instance);
        let enumeration = self.enumeration(instance);
        let module = self.instances[instance as usize].module.clone();
        let class_objects = self.class_objects(instance);
        let kept = self.kept_classes(instance);
        let durable = self.durable.as_mut().expect("looked at above");
        durable.class_types.extend(class_objects);
        durable.class_objects = class_objects;
        let fields = tables.renamed.iter().filter(|r| r.field.is_some());
        durable.renamed = fields.cloned().collect();
        durable.enumeration = enumeration;
        durable.kept = kept;
        durable.canonical = canonical::Canonical::of(&module, &tables);
        let opened = durable.opened.take().expect("opened with the store");
        // The file changes only once nothing can refuse the program any more.
        let prepared = opened.prepare(&tables)?;
        self.restore_class_data(instance, prepared.late())?;
        let mut space = prepared.open()?;
        let durable = self.durable.as_mut().expect("looked at above");
        space.set_grouped(durable.grouped)?;
        for (ty, offset) in types::forgotten(&tables) {
            space.forget_field(ty, offset);
        }
        durable.space = Some(space);
        Ok(())
    }

    /// Has operations be committed together from now on, or each by itself.
    pub(super) fn group_durable(&mut self, grouped: bool) -> Result<()> {
        let Some(durable) = &mut self.durable else {
            return Ok(());
        };
        durable.grouped = grouped;
        match &mut durable.space {
            Some(space) => Ok(space.set_grouped(grouped)?),
            None => Ok(()),
        }
    }

    /// Has all that was stored be in the medium.
    pub(super) fn commit_durable(&mut self) -> Result<()> {
        match self.region_in_use() {
            Some(space) => Ok(space.commit_now()?),
            None => Ok(()),
        }
    }

    /// Whether anything that was stored waits for a commit.
    pub(super) fn uncommitted(&self) -> bool {
        let space = self.durable.as_ref().and_then(|d| d.space.as_ref());
        space.is_some_and(Space::uncommitted)
    }

    /// Begins a durable collection, for durable objects that neither roots nor the program reach: collects the heap first, to find its references to
    /// them.
    pub(super) fn begin_durable_collection(&mut self) {
        let begun = Instant::now();
        let held = self.with_heap(|heap, mutator, roots| heap.collect_durable(mutator, roots));
        if let Some(durable) = &mut self.durable {
            durable.pause(|space| space.begin_collection(&held));
            durable.longest_pause = durable.longest_pause.max(begun.elapsed());
        }
    }

    /// Frees all that is durable and that neither roots nor the program reach.
    pub(super) fn collect_durable(&mut self) {
        if let Some(durable) = &mut self.durable {
            durable.pause(|space| {
                space.finish_collection();
            });
        }
        self.begin_durable_collection();
        if let Some(durable) = &mut self.durable {
            durable.pause(|space| {
                space.finish_collection();
            });
        }
    }

    /// Under stress: a small step of a durable collection.
    pub(super) fn stress_durable(&mut self) {
        if let Some(durable) = &mut self.durable {
            durable.pause(|space| space.step(u64::MAX, 8));
        }
    }

    /// Rolls back a region that the program left open when it was ended by something that it cannot catch.
    pub(super) fn take_back_left_open(&mut self) -> Result<()> {
        match self.region_in_use() {
            Some(space) if space.in_region() => Ok(space.roll_back_all()?),
            _ => Ok(()),
        }
    }

    /// Whether anything of the program is durable, as far as it knows.
    pub(super) fn has_durable(&self) -> bool {
        // SAFETY: the region's context is the store's own.
        unsafe { (*self.region.context()).durable != 0 }
    }

    /// Before the program has its first reference to something durable: code that relies on nothing being so is left.
    fn begin_to_check(&mut self) -> Result<()> {
        if self.has_durable() {
            return Ok(());
        }
        // SAFETY: as above; compiled code waits.
        unsafe { (*self.region.context()).durable = 1 };
        match self.engine.checks() {
            Some(Checks::Quick) => self.give_up_unchecked(),
            _ => Ok(()),
        }
    }

    /// Makes an object durable with all that it reaches: its place.
    pub(crate) fn persist(&mut self, reference: u32) -> Result<u32> {
        if self.durable.is_some() {
            self.begin_to_check()?;
        }
        let canonical = self.canonical_now();
        let Some(durable) = self.durable.as_deref_mut() else {
            return Ok(reference);
        };
        let heap = durable.volatile().with_canonical(canonical);
        let space = durable
            .space
            .as_mut()
            .ok_or_else(|| Error::Internal("no region is open yet".into()))?;
        let mut classes = Vec::new();
        let placed = space.persist(&heap, Ref(reference), &mut classes)?;
        if !classes.is_empty() {
            self.record_class_data(classes)?;
        }
        self.persist_wanted()?;
        self.look_for_garbage();
        Ok(placed.0)
    }

    /// Continues a durable collection. If there may be much garbage, lets the program's next allocation begin one, as the program's references are
    /// known there.
    fn look_for_garbage(&mut self) {
        if let Some(durable) = &mut self.durable {
            durable.collect_some();
        }
        let wants = self
            .durable
            .as_ref()
            .is_some_and(|d| d.wants_collection(false));
        if wants && self.stopped.is_none() {
            // SAFETY: the context lives as long as the store; compiled code waits.
            self.stopped = Some(unsafe { (*self.context).mutator.stop() });
        }
    }

    /// A store into an object that is durable or became so: `at` bytes from its start.
    pub(crate) fn store_durable(
        &mut self,
        holder: u32,
        at: u64,
        bits: u64,
        width: u32,
    ) -> Result<()> {
        let holder = self.resolve(holder);
        let bytes = bits.to_le_bytes();
        let (bytes, count) = match width == REFERENCE {
            true => (u64::from(self.persist(bits as u32)?).to_le_bytes(), 4),
            false => (bytes, width as usize),
        };
        let object = self.file_offset(holder);
        self.space()?.store(object, at, &bytes[..count])?;
        self.tell_work();
        Ok(())
    }

    /// Reports the instructions that the runtime executed for durable objects, if accesses are observed.
    fn tell_work(&mut self) {
        if let (Some(recording), Some(durable)) = (&self.recording, &mut self.durable) {
            recording.execute(durable.take_work());
        }
    }

    /// The offset in the region's file of an object, if it is durable. The object has not become durable elsewhere.
    pub(crate) fn durable_offset(&self, reference: u32) -> Option<u64> {
        self.durable.as_ref()?;
        // SAFETY: references are of live objects, which begin with a header.
        let byte = unsafe {
            self.object(reference)
                .add(layout::COLLECTOR_BYTE as usize)
                .read()
        };
        (byte & layout::DURABLE != 0).then(|| self.file_offset(reference))
    }

    /// The offset in the region's file of an object that is durable.
    fn file_offset(&self, reference: u32) -> u64 {
        let start = self.durable.as_ref().map_or(0, |d| d.file_start);
        self.align.offset(Ref(reference)) - start
    }

    /// Before a range of an object's bytes is written by the runtime.
    pub(crate) fn before_durable(&mut self, object: u64, at: u64, bytes: u64) -> Result<()> {
        Ok(self.space()?.before_store(object, at, bytes)?)
    }

    /// After it was written.
    pub(crate) fn after_durable(&mut self, object: u64, at: u64, bytes: u64) -> Result<()> {
        match bytes {
            0 => Ok(()),
            _ => {
                self.space()?.after_store(object + at, bytes)?;
                self.tell_work();
                Ok(())
            }
        }
    }

    // ---- what programs call -----------------------------------------------------------------------------------------------------

    /// Whether there is a region.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable.is_some()
    }

    /// Adds a character to the name that the program spells.
    pub(crate) fn spell_root(&mut self, unit: u32) {
        if let Some(d) = &mut self.durable {
            d.name.push(unit as u16);
        }
    }

    /// Whether the region may have objects of a class, by its number in the module.
    pub(crate) fn class_lives(&self, number: u32) -> bool {
        let durable = self.durable.as_ref();
        let found = durable.and_then(|d| Some((d.space()?, d.kept.get(number as usize)?)));
        found.is_some_and(|(space, ty)| ty.is_some_and(|ty| space.may_have_had(ty)))
    }

    fn spelled(&mut self) -> String {
        let units = self.durable.as_mut().map(|d| std::mem::take(&mut d.name));
        String::from_utf16_lossy(&units.unwrap_or_default())
    }

    /// The root of the name that was spelled; 0 if there is none.
    pub(crate) fn find_root(&mut self) -> Result<u32> {
        let name = self.spelled();
        self.settle_canonical()?;
        let found = self.space()?.root(&name);
        if found.is_some() {
            self.begin_to_check()?;
        }
        Ok(found.map_or(0, |r| r.0))
    }

    /// Has the name that was spelled stand for an object.
    pub(crate) fn publish_root(&mut self, object: u32) -> Result<()> {
        let name = self.spelled();
        self.settle_canonical()?;
        let object = self.persist(object)?;
        self.space()?.set_root(&name, Ref(object))?;
        self.tell_work();
        Ok(())
    }

    /// Begins a failure-atomic region.
    pub(crate) fn begin_region(&mut self) {
        if let Ok(space) = self.space() {
            space.begin();
        }
    }

    /// Ends it.
    pub(crate) fn end_region(&mut self) -> Result<()> {
        match self.is_durable() {
            true => {
                self.space()?.end()?;
                self.look_for_garbage();
                Ok(())
            }
            false => Ok(()),
        }
    }

    /// Rolls back the one that was begun last.
    pub(crate) fn roll_back_region(&mut self) -> Result<()> {
        match self.is_durable() {
            true => Ok(self.space()?.roll_back()?),
            false => Ok(()),
        }
    }
}
