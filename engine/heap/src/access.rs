//! How hosts look into objects and change them. Compiled code does the same by itself.

use std::sync::atomic::Ordering::Relaxed;

use crate::header::Header;
use crate::heap::Heap;
use crate::layout::*;
use crate::mutator::Mutator;
use crate::observer::Observer;
use crate::plan::Places;
use crate::reference::Ref;

impl<P: Places, O: Observer> Heap<P, O> {
    /// Whether a reference leads into the range that the heap leaves to durable objects.
    pub(crate) fn is_in_durable_range(&self, r: Ref) -> bool {
        self.config.durable
            && r.is_durable()
            && self.config.align.offset(r) < self.config.align.durable_end()
    }

    /// An object's header.
    pub fn header(&self, object: Ref) -> Header {
        self.tables.memory.header(object)
    }

    /// How many elements an array has.
    pub fn array_length(&self, array: Ref) -> u32 {
        self.tables.memory.array_length(array)
    }

    /// The handle in a host object.
    pub fn host_handle(&self, object: Ref) -> u64 {
        self.tables.memory.host_handle(object)
    }

    /// Bytes that an object takes.
    pub fn object_size(&self, object: Ref) -> u64 {
        let type_index = self.header(object).type_index();
        let length = if self.shapes.info(type_index).is_array() {
            self.array_length(object)
        } else {
            0
        };
        self.shapes.object_size(type_index, length)
    }

    /// Reads bytes at `offset` in an object. Panics outside of the heap; which bytes belong to the object is the
    /// caller's knowledge.
    pub fn read(&self, object: Ref, offset: u64, into: &mut [u8]) {
        self.tables
            .memory
            .read(self.tables.memory.offset(object) + offset, into);
    }

    /// Writes bytes at `offset` in an object; references must go through [`Heap::write_ref`].
    pub fn write(&mut self, object: Ref, offset: u64, from: &[u8]) {
        self.tables
            .memory
            .write(self.tables.memory.offset(object) + offset, from);
        self.note_write(object);
    }

    /// Reads the reference at `offset`, a multiple of 4, in an object.
    pub fn read_ref(&self, object: Ref, offset: u64) -> Ref {
        Ref(self
            .tables
            .memory
            .word(self.tables.memory.offset(object) + offset)
            .load(Relaxed))
    }

    /// Writes the reference at `offset`, a multiple of 4, in an object, and logs the object if that is needed.
    pub fn write_ref(&mut self, mutator: &mut Mutator, object: Ref, offset: u64, value: Ref) {
        let memory = &self.tables.memory;
        let at = memory.offset(object);
        memory.word(at + offset).store(value.0, Relaxed);
        mutator.barrier(memory.long(at), object);
        self.note_write(object);
    }

    /// Reads an element of an array of references.
    pub fn read_element(&self, array: Ref, index: u32) -> Ref {
        debug_assert!(index < self.array_length(array));
        self.read_ref(array, u64::from(ARRAY_NARROW_BASE) + 4 * u64::from(index))
    }

    /// Writes an element of an array of references, and logs it if that is needed.
    pub fn write_element(&mut self, mutator: &mut Mutator, array: Ref, index: u32, value: Ref) {
        debug_assert!(index < self.array_length(array));
        let memory = &self.tables.memory;
        let at = memory.offset(array);
        let element = at + u64::from(ARRAY_NARROW_BASE) + 4 * u64::from(index);
        memory.word(element).store(value.0, Relaxed);
        mutator.element_barrier(memory.long(at), array, element);
        self.note_write(array);
    }

    /// What compiled code does after each store of anything into an object, while the plan [monitors].
    ///
    /// [monitors]: crate::plan::Plan::monitors
    #[inline(always)]
    fn note_write(&self, object: Ref) {
        if P::SEVERAL && self.monitors {
            let header = self.tables.memory.header(object);
            self.tables.memory.set_header(object, header.written());
        }
    }
}
