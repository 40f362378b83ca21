//! Objects of the heap as the runtime's own code sees them.

use super::Vm;
use crate::error::{Result, TrapKind};
use crate::types::{Storage, TypeIndex, ValType, array_base};
use varve_access::Kind as Access;
use varve_heap::{Ref, layout};

/// An array in its place; valid until the next allocation.
pub(crate) struct Array {
    base: *mut u8,
    pub len: u32,
    pub storage: Storage,
}

impl Array {
    /// The address of an element.
    pub fn address(&self, index: u32) -> *mut u8 {
        self.base
            .wrapping_add(index as usize * self.storage.bytes() as usize)
    }
}

impl Vm {
    /// The address of an object; valid until the next allocation.
    pub(crate) fn object(&self, reference: u32) -> *mut u8 {
        debug_assert!(reference != 0 && reference & layout::I31_TAG == 0);
        (self.heap_base + self.align.offset(Ref(reference)) as usize) as *mut u8
    }

    /// Where an object is, which may have become durable.
    pub(crate) fn resolve(&self, reference: u32) -> u32 {
        if reference & layout::I31_TAG != 0 || reference == 0 || self.engine.checks().is_none() {
            return reference;
        }
        // SAFETY: references are of live objects, which begin with a header.
        let header = varve_heap::Header(unsafe { self.object(reference).cast::<u64>().read() });
        match header.has(layout::FORWARDED) {
            true => header.forwarded_to().0,
            false => reference,
        }
    }

    /// The type of an object.
    pub(crate) fn type_of(&self, reference: u32) -> TypeIndex {
        // SAFETY: references are of live objects, which begin with a header.
        let header = unsafe { self.object(reference).cast::<u32>().read() };
        header & ((1 << layout::TYPE_BITS) - 1)
    }

    /// The array that `reference`, not null, points at.
    pub(crate) fn array(&self, reference: u32) -> Array {
        let reference = self.resolve(reference);
        let storage = self.engine.types().element(self.type_of(reference)).storage;
        let object = self.object(reference);
        // SAFETY: an array has its length there.
        let len = unsafe {
            object
                .add(layout::ARRAY_LENGTH as usize)
                .cast::<u32>()
                .read()
        };
        Array {
            base: object.wrapping_add(array_base(storage.bytes()) as usize),
            len,
            storage,
        }
    }

    /// Writes the low bytes of `bits` as `storage` says. No barrier.
    ///
    /// # Safety
    /// The address is that of a field or element of that storage type in a live object.
    pub(crate) unsafe fn write(&self, address: *mut u8, storage: Storage, bits: impl Into<u128>) {
        let bits = bits.into();
        // SAFETY: the caller's promise.
        unsafe {
            match storage.bytes() {
                1 => address.write(bits as u8),
                2 => address.cast::<u16>().write(bits as u16),
                4 => address.cast::<u32>().write(bits as u32),
                8 => address.cast::<u64>().write(bits as u64),
                _ => address.cast::<u128>().write_unaligned(bits),
            }
        }
    }

    /// Reads a field or element, zero-extended.
    ///
    /// # Safety
    /// As [`Vm::write`].
    pub(crate) unsafe fn read(&self, address: *const u8, storage: Storage) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            match storage.bytes() {
                1 => address.read() as u64,
                2 => address.cast::<u16>().read() as u64,
                4 => address.cast::<u32>().read() as u64,
                _ => address.cast::<u64>().read(),
            }
        }
    }

    /// The same of any value, vectors too.
    ///
    /// # Safety
    /// As [`Vm::write`].
    pub(crate) unsafe fn read_any(&self, address: *const u8, storage: Storage) -> u128 {
        // SAFETY: the caller's promise.
        unsafe {
            match storage {
                Storage::Val(ValType::V128) => address.cast::<u128>().read_unaligned(),
                _ => self.read(address, storage).into(),
            }
        }
    }

    /// Writes `len` elements of an array that holds no references, from `start` on, and records the writes for
    /// observers.
    ///
    /// # Errors
    /// If the reference is null, or the array has no such elements.
    ///
    /// # Safety
    /// `from` has that number of elements, does not overlap the array, and stays valid: nothing is allocated here.
    pub(crate) unsafe fn write_elements(
        &mut self,
        reference: u32,
        start: u32,
        from: *const u8,
        len: u32,
    ) -> Result<()> {
        if reference == 0 {
            return Err(TrapKind::NullReference.into());
        }
        let a = self.array(reference);
        if u64::from(start) + u64::from(len) > u64::from(a.len) {
            return Err(TrapKind::ArrayOutOfBounds.into());
        }
        let reference = self.resolve(reference);
        let width = a.storage.bytes();
        let bytes = u64::from(len) * u64::from(width);
        let at = u64::from(array_base(width)) + u64::from(start) * u64::from(width);
        let durable = self.durable_offset(reference).filter(|_| bytes > 0);
        if let Some(object) = durable {
            self.before_durable(object, at, bytes)?;
        }
        // SAFETY: as this function; the bounds were checked.
        unsafe { std::ptr::copy_nonoverlapping(from, a.address(start), bytes as usize) };
        match durable {
            Some(object) => self.after_durable(object, at, bytes),
            None => {
                self.observe(Access::Write, a.address(start), bytes as usize);
                self.note_write(reference);
                Ok(())
            }
        }
    }

    /// Tells the collector that references were stored into an object.
    pub(crate) fn barrier(&mut self, reference: u32) {
        let byte = self
            .object(reference)
            .wrapping_add(layout::COLLECTOR_BYTE as usize);
        // SAFETY: the byte is in the object's header.
        if unsafe { byte.read() } & layout::UNLOGGED != 0 {
            self.log(reference);
        }
    }

    /// A struct with these field values. References among them are resolved by `bits` after the allocation.
    pub(crate) fn new_struct(
        &mut self,
        ty: TypeIndex,
        site: u32,
        bits: impl Fn(&Vm, usize) -> u128,
    ) -> Result<u32> {
        let reference = self.alloc_struct(ty, site)?;
        let (offsets, fields) = {
            let types = self.engine.types();
            (
                types.get(ty).layout.offsets.clone(),
                types.fields(ty).to_vec(),
            )
        };
        let object = self.object(reference);
        for (i, (offset, field)) in offsets.into_iter().zip(fields).enumerate() {
            let address = object.wrapping_add(offset as usize);
            // SAFETY: a field of the object just made; the type says where it is and what it holds.
            unsafe { self.write(address, field.storage, bits(self, i)) };
        }
        self.barrier(reference);
        Ok(reference)
    }

    /// A field of a struct or exception, zero-extended, with its type.
    pub(crate) fn field(&self, reference: u32, index: usize) -> (u128, ValType) {
        let reference = self.resolve(reference);
        let ty = self.type_of(reference);
        let (offset, storage) = {
            let types = self.engine.types();
            (
                types.get(ty).layout.offsets[index],
                types.fields(ty)[index].storage,
            )
        };
        let address = self.object(reference).wrapping_add(offset as usize);
        // SAFETY: a field of a live object; its type says where it is and what it holds.
        let bits = unsafe { self.read_any(address, storage) };
        (bits, storage.unpacked())
    }
}
