//! How hosts read and change objects. Compiled code does the same by itself.

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

    /// An object's header. Panics outside of the heap.
    pub fn header(&self, object: Ref) -> Header {
        self.tables.memory.checked_header(object)
    }

    /// How many elements an array has. Panics outside of the heap.
    pub fn array_length(&self, array: Ref) -> u32 {
        self.tables.memory.checked_array_length(array)
    }

    /// The handle in a host object. Panics outside of the heap.
    pub fn host_handle(&self, object: Ref) -> u64 {
        self.tables.memory.host_handle(object)
    }

    /// Bytes that an object takes. Panics outside of the heap, and may where there is no object.
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
        self.tables.memory.read(self.place(object, offset), into);
    }

    /// Writes bytes at `offset` in an object; references must go through [`Heap::write_ref`]. Panics outside of the
    /// heap.
    pub fn write(&mut self, object: Ref, offset: u64, from: &[u8]) {
        self.tables.memory.write(self.place(object, offset), from);
        self.note_write(object);
    }

    /// Reads the reference at `offset`, a multiple of 4, in an object. Panics outside of the heap.
    pub fn read_ref(&self, object: Ref, offset: u64) -> Ref {
        let word = self.tables.memory.checked_word(self.place(object, offset));
        Ref(word.load(Relaxed))
    }

    /// Writes the reference at `offset`, a multiple of 4, in an object, and logs the object if that is needed. Panics
    /// outside of the heap.
    pub fn write_ref(&mut self, mutator: &mut Mutator, object: Ref, offset: u64, value: Ref) {
        let memory = &self.tables.memory;
        let header = memory.checked_long(memory.offset(object));
        let word = memory.checked_word(self.place(object, offset));
        word.store(value.0, Relaxed);
        mutator.barrier(header, object);
        self.note_write(object);
    }

    /// Reads an element of an array of references. Panics if it has none of that number.
    pub fn read_element(&self, array: Ref, index: u32) -> Ref {
        self.read_ref(array, self.element(array, index))
    }

    /// Writes an element of an array of references, and logs it if that is needed. Panics if it has none of that number.
    pub fn write_element(&mut self, mutator: &mut Mutator, array: Ref, index: u32, value: Ref) {
        let memory = &self.tables.memory;
        let header = memory.checked_long(memory.offset(array));
        let element = self.place(array, self.element(array, index));
        memory.checked_word(element).store(value.0, Relaxed);
        mutator.element_barrier(header, array, element);
        self.note_write(array);
    }

    /// Bytes from the heap's base to `offset` in an object. On overflow, a number outside of every heap.
    fn place(&self, object: Ref, offset: u64) -> u64 {
        self.config.align.offset(object).saturating_add(offset)
    }

    /// Where an array of references has an element.
    fn element(&self, array: Ref, index: u32) -> u64 {
        let length = self.array_length(array);
        assert!(index < length, "element {index} of {length}");
        u64::from(ARRAY_NARROW_BASE) + 4 * u64::from(index)
    }

    /// The write barrier of compiled code after each store of any type into an object, while the plan [monitors].
    ///
    /// [monitors]: crate::plan::Plan::monitors
    #[inline(always)]
    fn note_write(&self, object: Ref) {
        if P::SEVERAL && self.monitors {
            let memory = &self.tables.memory;
            let word = memory.checked_long(memory.offset(object));
            word.store(Header(word.load(Relaxed)).written().0, Relaxed);
        }
    }
}
