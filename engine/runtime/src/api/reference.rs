//! Operations of the host on references.

use super::val::Val;
use crate::error::{Error, Result};
use crate::store::AsContextMut;
use crate::store::root::Rooted;
use crate::types::Storage;
use std::any::Any;
use varve_heap::layout::I31_TAG;

impl Rooted {
    /// An external reference to a value of the host. The value lives as long as the program can reach it.
    ///
    /// # Errors
    /// If the heap is full.
    pub fn external(mut store: impl AsContextMut, value: impl Any + Send) -> Result<Rooted> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.new_host_object(Box::new(value))?;
        Ok(vm.roots.push(raw))
    }

    /// The host's value, if this stands for one of type `V`.
    pub fn host_value<'a, V: Any + Send, C: AsContextMut>(
        &self,
        store: &'a mut C,
    ) -> Option<&'a mut V> {
        let mut store = store.as_context_mut();
        let raw = store.vm().roots.get(self)?;
        let vm = store.vm_ptr();
        // SAFETY: the store is borrowed for 'a through `store`; nothing else can use it meanwhile.
        unsafe { (*vm).host_value(raw) }?.downcast_mut()
    }

    /// A string of JavaScript: an object that modules have as an external reference, and work on by imports of `wasm:js-string`.
    ///
    /// # Errors
    /// If the heap is full.
    pub fn string(mut store: impl AsContextMut, units: &[u16]) -> Result<Rooted> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.new_string(units)?;
        Ok(vm.roots.push(raw))
    }

    /// The 16-bit units of a string of JavaScript; none if this is something else.
    ///
    /// # Errors
    /// If the handle's scope has ended.
    pub fn string_units(&self, mut store: impl AsContextMut) -> Result<Option<Vec<u16>>> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        Ok(match vm.is_string(raw) {
            true => Some(vm.string(raw)?.to_vec()),
            false => None,
        })
    }

    /// A 31-bit integer as a reference: the low bits of `value`.
    pub fn i31(mut store: impl AsContextMut, value: i32) -> Rooted {
        store
            .as_context_mut()
            .vm()
            .roots
            .push((value << 1) as u32 | I31_TAG)
    }

    /// The integer, if this is one.
    ///
    /// # Errors
    /// If the handle's scope has ended.
    pub fn as_i31(&self, mut store: impl AsContextMut) -> Result<Option<i32>> {
        let mut store = store.as_context_mut();
        let raw = store.vm().roots.resolve(self)?;
        Ok((raw & I31_TAG != 0).then_some(raw as i32 >> 1))
    }

    /// Whether both are the same object.
    ///
    /// # Errors
    /// If a handle's scope has ended.
    pub fn same(&self, other: &Rooted, mut store: impl AsContextMut) -> Result<bool> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let place = |r: &Rooted| vm.roots.resolve(r).map(|raw| vm.resolve(raw));
        Ok(place(self)? == place(other)?)
    }

    /// Whether this is a struct, an array, or neither.
    ///
    /// # Errors
    /// If the handle's scope has ended.
    pub fn kind(&self, mut store: impl AsContextMut) -> Result<Option<crate::types::Kind>> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        Ok(match super::val::heap_type_of(vm, raw) {
            crate::types::HeapType::Concrete(_, kind) => Some(kind),
            _ => None,
        })
    }

    /// The name that a module of the store gives to the object's type in its name section.
    ///
    /// # Errors
    /// If the handle's scope has ended.
    pub fn type_name(&self, mut store: impl AsContextMut) -> Result<Option<String>> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        if raw & I31_TAG != 0 {
            return Ok(None);
        }
        let ty = vm.type_of(raw);
        Ok(vm
            .instances
            .iter()
            .find_map(|i| i.module.name_of_type(ty).cloned()))
    }

    /// A field of a struct. Packed fields come zero-extended.
    ///
    /// # Errors
    /// If this is no struct with such a field.
    pub fn field(&self, mut store: impl AsContextMut, index: usize) -> Result<Val> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        if raw & I31_TAG != 0
            || vm
                .engine
                .types()
                .fields_of(vm.type_of(raw))
                .is_none_or(|f| index >= f.len())
        {
            return Err(Error::usage(format!(
                "the reference is to no struct with a field {index}"
            )));
        }
        let (bits, ty) = vm.field(raw, index);
        Ok(Val::from_bits(vm, ty, bits))
    }

    /// The number of elements of an array.
    ///
    /// # Errors
    /// If this is no array.
    pub fn len(&self, mut store: impl AsContextMut) -> Result<u32> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        array_of(vm, raw).map(|a| a.len)
    }

    /// An element of an array. Packed elements come zero-extended.
    ///
    /// # Errors
    /// If this is no array with such an element.
    pub fn element(&self, mut store: impl AsContextMut, index: u32) -> Result<Val> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        let a = array_of(vm, raw)?;
        if index >= a.len {
            return Err(Error::usage(format!(
                "element {index} of an array of {}",
                a.len
            )));
        }
        // SAFETY: it has such an element.
        let bits = unsafe { vm.read_any(a.address(index), a.storage) };
        Ok(Val::from_bits(vm, a.storage.unpacked(), bits))
    }

    /// The elements of an array of 16-bit integers, as strings have them.
    ///
    /// # Errors
    /// If this is no such array.
    pub fn u16_elements(&self, mut store: impl AsContextMut) -> Result<Vec<u16>> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        let a = array_of(vm, raw)?;
        if a.storage != Storage::I16 {
            return Err(Error::usage("the array has no 16-bit elements"));
        }
        Ok((0..a.len)
            // SAFETY: the array has these elements.
            .map(|i| unsafe { vm.read(a.address(i), a.storage) } as u16)
            .collect())
    }

    /// Writes 16-bit elements of an array, from `start` on.
    ///
    /// # Errors
    /// If this is no such array, or too short.
    pub fn write_u16_elements(
        &self,
        mut store: impl AsContextMut,
        start: u32,
        values: &[u16],
    ) -> Result<()> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let raw = vm.roots.resolve(self)?;
        let a = array_of(vm, raw)?;
        if a.storage != Storage::I16 || start as u64 + values.len() as u64 > a.len as u64 {
            return Err(Error::usage("the array has no 16-bit elements, or too few"));
        }
        // SAFETY: the values are the host's.
        unsafe { vm.write_elements(raw, start, values.as_ptr().cast(), values.len() as u32) }
    }
}

fn array_of(vm: &crate::store::Vm, raw: u32) -> Result<crate::store::objects::Array> {
    match super::val::heap_type_of(vm, raw) {
        crate::types::HeapType::Concrete(_, crate::types::Kind::Array) => Ok(vm.array(raw)),
        _ => Err(Error::usage("the reference is to no array")),
    }
}
