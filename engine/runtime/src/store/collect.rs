//! Between the store and its heap: allocation, and the roots of collections.

use super::Vm;
use super::heap::{Heap, Mutator};
use crate::code::walk;
use crate::error::{Error, Result, TrapKind};
use crate::types::{HOST_TYPE, TypeIndex};
use varve_heap::{Kind, OutOfMemory, Ref, Roots, layout};

/// Beside a site's number: the programmer marked its objects.
pub(crate) const MARKED: u32 = 1 << 31;
const _: () = assert!(MARKED >> layout::SITE_BITS != 0);

impl Vm {
    /// Works with the heap while the rest of the store is its roots.
    pub(super) fn with_heap<R>(
        &mut self,
        work: impl FnOnce(&mut Heap, &mut Mutator, &mut Vm) -> R,
    ) -> R {
        let mut heap = self.heap.take().expect("a collection does not allocate");
        // SAFETY: the context lives as long as the store; nothing that a collection visits refers to the mutator.
        let mutator = unsafe { &mut (*self.context).mutator };
        if let Some(limit) = self.stopped.take() {
            mutator.go_on(limit);
        }
        let result = work(&mut *heap, mutator, self);
        self.heap = Some(heap);
        result
    }

    fn allocate(
        &mut self,
        work: impl FnOnce(&mut Heap, &mut Mutator, &mut Vm) -> Result<Ref, OutOfMemory>,
    ) -> Result<u32> {
        self.keep_code_in_time();
        let stress = self.engine.config().gc_stress;
        if self
            .durable
            .as_ref()
            .is_some_and(|d| d.wants_collection(stress))
        {
            self.begin_durable_collection();
        } else if stress {
            self.stress_durable();
        }
        let outcome = self.with_heap(work);
        self.check_memory()?;
        match outcome {
            Ok(r) => Ok(r.0),
            Err(_) => Err(TrapKind::OutOfMemory.into()),
        }
    }

    /// Statistics of collections so far.
    pub(super) fn gc_stats(&self) -> varve_heap::Stats {
        // SAFETY: as `with_heap`; no code changes the mutator meanwhile.
        let mutator = unsafe { &(*self.context).mutator };
        self.heap().stats_now(mutator)
    }

    /// Whether all memory that the heap's plan asked for was there.
    pub(super) fn check_memory(&self) -> Result<()> {
        match self.heap().failure() {
            None => Ok(()),
            Some(failure) => Err(Error::System(failure)),
        }
    }

    /// The heap, which is only away while it collects or allocates.
    pub(crate) fn heap(&self) -> &Heap {
        self.heap.as_deref().expect("a collection calls no store")
    }

    pub(crate) fn heap_mut(&mut self) -> &mut Heap {
        self.heap
            .as_deref_mut()
            .expect("a collection calls no store")
    }

    /// A struct with its header; the rest is zero.
    pub(crate) fn alloc_struct(&mut self, ty: TypeIndex, site: u32) -> Result<u32> {
        self.alloc_array(ty, 0, site)
    }

    /// An array with its header and length; the rest is zero.
    pub(crate) fn alloc_array(&mut self, ty: TypeIndex, len: u32, site: u32) -> Result<u32> {
        let header = layout::new_header(ty, site & !MARKED, self.temperature(site));
        self.allocate(|heap, mutator, roots| heap.alloc(mutator, header, len, roots))
    }

    /// The temperature that compiled code itself sets in the headers of objects that it allocates. A large object has it before its place is chosen.
    fn temperature(&self, site: u32) -> u8 {
        let known = self.sites.temperature(site & !MARKED);
        match site & MARKED {
            0 => known,
            _ => known | self.heap().marked(),
        }
    }

    /// An object that stands for the host's value with this handle.
    pub(super) fn alloc_host(&mut self, handle: u64) -> Result<u32> {
        self.allocate(|heap, mutator, roots| heap.alloc_host(mutator, HOST_TYPE, handle, roots))
    }

    /// The write barrier's slow path.
    pub(crate) fn log(&mut self, reference: u32) {
        // SAFETY: as `with_heap`; the reference is of an object of this heap.
        unsafe { varve_heap::log_slow(&raw mut (*self.context).mutator, reference) };
    }

    /// The same for a store into an element of an array of references, at `address`.
    pub(crate) fn log_element(&mut self, array: u32, address: u64) {
        // SAFETY: as `log`; the address is of an element of the array.
        unsafe {
            varve_heap::log_element_slow(&raw mut (*self.context).mutator, array, address);
        }
    }

    /// Collects everything.
    ///
    /// # Errors
    /// If code that a collection calls requests a collection.
    pub(crate) fn collect(&mut self) -> Result<()> {
        if self.heap.is_none() {
            return Err(Error::Internal("a collection within a collection".into()));
        }
        self.with_heap(|heap, mutator, roots| heap.collect(mutator, Kind::Full, roots));
        self.check_memory()
    }
}

/// Handles of the host, globals, tables, segments, and the frames of compiled code.
impl Roots for Vm {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Ref)) {
        self.collected += 1;
        let mut visit = |raw: &mut u32| {
            let mut r = Ref(*raw);
            f(&mut r);
            *raw = r.0;
        };
        self.roots.slots_mut().iter_mut().for_each(&mut visit);
        for global in self.globals.iter().filter(|g| g.ty.ty.is_managed()) {
            // SAFETY: places of globals hold 8 bytes; a reference is in the low four.
            visit(unsafe { &mut *self.region.address::<u32>(global.place) });
        }
        if let Some(durable) = &mut self.durable {
            durable.constants.visit(&mut visit);
        }
        for table in self.tables.iter_mut().filter(|t| t.is_managed()) {
            table.elements_mut().iter_mut().for_each(&mut visit);
        }
        for instance in &mut self.instances {
            for (segment, _) in instance
                .elements
                .iter_mut()
                .zip(&instance.managed_elements)
                .filter(|(_, m)| **m)
            {
                segment.iter_mut().for_each(&mut visit);
            }
        }
        // SAFETY: a collection runs while compiled code waits, or none is active.
        unsafe {
            walk::all(self, &mut |frame| {
                if let Some(map) = frame.info.stack_map(frame.pc) {
                    let sp = frame.fp - map.frame_size as usize;
                    for &slot in &map.slots {
                        // The compiler spilled a live reference there for this call.
                        visit(&mut *((sp + slot as usize) as *mut u32));
                    }
                }
                true
            });
        }
    }

    fn host_died(&mut self, handle: u64) {
        self.host_values.remove(handle as usize);
    }
}
