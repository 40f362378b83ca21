//! Strings as JavaScript has them: immutable arrays of 16-bit units, objects of the heap like others but with contents that no module can access.
//! Modules have them as external references.

use super::Vm;
use crate::error::{Error, Result, TrapKind};
use crate::types::{STRING_TYPE, array_base};
use varve_access::Kind;
use varve_heap::layout;

impl Vm {
    /// Whether a reference is to a string.
    pub(crate) fn is_string(&self, reference: u32) -> bool {
        reference != 0
            && reference & layout::I31_TAG == 0
            && self.type_of(self.resolve(reference)) == STRING_TYPE
    }

    /// The units of a string.
    ///
    /// # Errors
    /// If the reference is null or to something else.
    pub(crate) fn string(&self, reference: u32) -> Result<&[u16]> {
        if reference == 0 {
            return Err(TrapKind::NullReference.into());
        }
        if !self.is_string(reference) {
            return Err(TrapKind::CastFailure.into());
        }
        let object = self.object(reference);
        // SAFETY: a string is an array of 16-bit elements, with its length there. Nothing allocates, and so moves it, while the store is borrowed.
        Ok(unsafe {
            let len = object
                .add(layout::ARRAY_LENGTH as usize)
                .cast::<u32>()
                .read();
            let units = object.add(array_base(2) as usize).cast::<u16>();
            std::slice::from_raw_parts(units, len as usize)
        })
    }

    /// A string of these units.
    ///
    /// # Errors
    /// If the heap is full.
    pub(crate) fn new_string(&mut self, units: &[u16]) -> Result<u32> {
        self.string_with(units.len() as u64, [], |_, [], to| {
            to.copy_from_slice(units)
        })
    }

    /// A string of `len` units, which `fill` gives: it gets the store, the references `from`, which the allocation may have moved, and the place of
    /// the units.
    ///
    /// # Errors
    /// If the heap is full.
    pub(crate) fn string_with<const N: usize>(
        &mut self,
        len: u64,
        from: [u32; N],
        fill: impl FnOnce(&Vm, [u32; N], &mut [u16]),
    ) -> Result<u32> {
        let len = u32::try_from(len).map_err(|_| Error::from(TrapKind::OutOfMemory))?;
        let mark = self.roots.mark();
        let handles = from.map(|raw| self.roots.push(raw));
        let allocated = self.alloc_array(STRING_TYPE, len, 0);
        let from = handles.map(|h| self.roots.get(&h).expect("just pushed"));
        self.roots.release(mark);
        let reference = allocated?;
        let units = self.object(reference).wrapping_add(array_base(2) as usize);
        // SAFETY: the object was just allocated with room for `len` zeroed units, and no other code has a reference to it.
        let to = unsafe { std::slice::from_raw_parts_mut(units.cast::<u16>(), len as usize) };
        fill(self, from, to);
        self.observe_birth(reference);
        self.observe(Kind::Write, units, 2 * len as usize);
        Ok(reference)
    }
}
