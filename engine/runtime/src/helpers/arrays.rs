//! Objects: the slow ways of allocation, whole-array operations, deep type tests.

use crate::error::{Result, TrapKind};
use crate::store::Vm;
use crate::store::objects::Array;
use crate::types::{Storage, array_base};
use varve_access::Kind;

macro_rules! helper {
    ($(#[$doc:meta])* $name:ident($vm:ident $(, $p:ident: $t:ty)*) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Called by compiled code of this store, with operands of validated types.
        pub(super) unsafe extern "C" fn $name(vm: *mut Vm $(, $p: $t)*) $(-> $r)? {
            let work = |$vm: &mut Vm| -> Result<helper!(@result $($r)?)> { $body };
            // SAFETY: as this function.
            unsafe { super::run(vm, work) }
        }
    };
    (@result) => { () };
    (@result $r:ty) => { $r };
}
pub(super) use helper;

/// Whether `len` items from `start` lie within `limit`.
pub(super) fn check(
    start: impl Into<u64>,
    len: impl Into<u64>,
    limit: u64,
    trap: TrapKind,
) -> Result<()> {
    match start.into().checked_add(len.into()) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(trap.into()),
    }
}

/// Bytes of elements.
fn bytes_of(a: &Array, len: u32) -> usize {
    len as usize * a.storage.bytes() as usize
}

fn array(vm: &Vm, reference: u32) -> Result<Array> {
    if reference == 0 {
        return Err(TrapKind::NullReference.into());
    }
    Ok(vm.array(reference))
}

helper! {
    /// A struct, when the nursery is full.
    alloc_struct(vm, ty: u32, site: u32) -> u32 { vm.alloc_struct(ty, site) }
}

helper! {
    /// An array, when the nursery is full or the array is long.
    alloc_array(vm, ty: u32, len: u32, site: u32) -> u32 { vm.alloc_array(ty, len, site) }
}

helper! {
    /// Whether one type extends another, for types too deep for the rows.
    is_subtype(vm, sub: u32, sup: u32) -> u32 { Ok(vm.engine.types().is_subtype_index(sub, sup) as u32) }
}

helper! {
    /// The write barrier's slow path in baseline code.
    log(vm, reference: u32) {
        vm.log(reference);
        Ok(())
    }
}

helper! {
    /// The same for a store into an element, at an address.
    log_element(vm, reference: u32, address: u64) {
        vm.log_element(reference, address);
        Ok(())
    }
}

helper! {
    /// `array.fill`
    fill(vm, reference: u32, start: u32, value: u64, len: u32) {
        let a = array(vm, reference)?;
        let reference = vm.resolve(reference);
        check(start, len, a.len as u64, TrapKind::ArrayOutOfBounds)?;
        if let Some(object) = vm.durable_offset(reference) {
            return durable(vm, object, &a, start, len, |vm, storage| match storage.is_managed() {
                true => Ok(vec![u64::from(vm.persist(value as u32)?); len as usize]),
                false => Ok(vec![value; len as usize]),
            });
        }
        for i in start..start + len {
            // SAFETY: the bounds were checked.
            unsafe { vm.write(a.address(i), a.storage, value) };
        }
        vm.observe(Kind::Write, a.address(start), bytes_of(&a, len));
        vm.note_write(reference);
        if a.storage.is_managed() && len > 0 {
            vm.barrier(reference);
        }
        Ok(())
    }
}

helper! {
    /// `array.fill` with a vector, whose arrays are never durable.
    fill_vector(vm, reference: u32, start: u32, low: u64, high: u64, len: u32) {
        let a = array(vm, reference)?;
        check(start, len, a.len as u64, TrapKind::ArrayOutOfBounds)?;
        let value = u128::from(high) << 64 | u128::from(low);
        for i in start..start + len {
            // SAFETY: the bounds were checked.
            unsafe { vm.write(a.address(i), a.storage, value) };
        }
        vm.observe(Kind::Write, a.address(start), bytes_of(&a, len));
        vm.note_write(reference);
        Ok(())
    }
}

helper! {
    /// `array.copy`
    copy(vm, to: u32, to_start: u32, from: u32, from_start: u32, len: u32) {
        let (t, f) = (array(vm, to)?, array(vm, from)?);
        let to = vm.resolve(to);
        check(to_start, len, t.len as u64, TrapKind::ArrayOutOfBounds)?;
        check(from_start, len, f.len as u64, TrapKind::ArrayOutOfBounds)?;
        if let Some(object) = vm.durable_offset(to) {
            return durable(vm, object, &t, to_start, len, |vm, storage| {
                // SAFETY: the bounds were checked, and elements of both arrays are stored alike.
                let read = |vm: &Vm, i| unsafe { vm.read(f.address(from_start + i), storage) };
                let values = (0..len).map(|i| match storage.is_managed() {
                    true => vm.persist(read(vm, i) as u32).map(u64::from),
                    false => Ok(read(vm, i)),
                });
                values.collect()
            });
        }
        let bytes = len as usize * t.storage.bytes() as usize;
        // SAFETY: both ranges lie in their arrays, whose elements are of the same size; they may overlap.
        unsafe { std::ptr::copy(f.address(from_start), t.address(to_start), bytes) };
        vm.observe(Kind::Read, f.address(from_start), bytes);
        vm.observe(Kind::Write, t.address(to_start), bytes);
        vm.note_write(to);
        if t.storage.is_managed() && len > 0 {
            vm.barrier(to);
        }
        Ok(())
    }
}

/// Writes elements of a durable array, all of them with one wait for the medium.
fn durable(
    vm: &mut Vm,
    object: u64,
    a: &Array,
    start: u32,
    len: u32,
    values: impl FnOnce(&mut Vm, Storage) -> Result<Vec<u64>>,
) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    // All values are there before the first is written: source and target may be the same.
    let values = values(vm, a.storage)?;
    let width = u64::from(a.storage.bytes());
    let at = u64::from(array_base(a.storage.bytes())) + u64::from(start) * width;
    vm.before_durable(object, at, u64::from(len) * width)?;
    for (i, &bits) in values.iter().enumerate() {
        // SAFETY: the caller checked the bounds, and gave as many values.
        unsafe { vm.write(a.address(start + i as u32), a.storage, bits) };
    }
    vm.after_durable(object, at, u64::from(len) * width)
}

/// The bytes of a data segment that hold `len` elements, as an address: nothing while it is used can move it.
fn data(
    vm: &Vm,
    instance: u32,
    segment: u32,
    offset: u32,
    len: u32,
    storage: Storage,
) -> Result<(*const u8, usize)> {
    let bytes = vm.data(instance, segment);
    let want = len as u64 * storage.bytes() as u64;
    if offset as u64 + want > bytes.len() as u64 {
        return Err(TrapKind::MemoryOutOfBounds.into());
    }
    Ok((bytes[offset as usize..].as_ptr(), want as usize))
}

/// An instance, and the number of one of its segments, from compiled code's values for both.
fn segment_of(packed: u64) -> (u32, u32) {
    ((packed >> 32) as u32, packed as u32)
}

helper! {
    /// `array.new_data`
    new_data(vm, segment: u64, ty: u32, offset: u32, len: u32, site: u32) -> u32 {
        let (instance, segment) = segment_of(segment);
        let storage = vm.engine.types().element(ty).storage;
        let (from, bytes) = data(vm, instance, segment, offset, len, storage)?;
        let reference = vm.alloc_array(ty, len, site)?;
        // SAFETY: the segment holds the bytes, and the new array has room for them.
        unsafe { std::ptr::copy_nonoverlapping(from, vm.array(reference).address(0), bytes) };
        vm.observe_birth(reference);
        vm.observe(Kind::Write, vm.array(reference).address(0), bytes);
        Ok(reference)
    }
}

helper! {
    /// `array.init_data`
    init_data(vm, instance: u32, segment: u32, reference: u32, start: u32, offset: u32, len: u32) {
        let a = array(vm, reference)?;
        check(start, len, a.len as u64, TrapKind::ArrayOutOfBounds)?;
        let (from, bytes) = data(vm, instance, segment, offset, len, a.storage)?;
        let reference = vm.resolve(reference);
        let object = vm.durable_offset(reference);
        let at = u64::from(array_base(a.storage.bytes())) + u64::from(start) * u64::from(a.storage.bytes());
        if let Some(object) = object {
            vm.before_durable(object, at, bytes as u64)?;
        }
        // SAFETY: both ranges were checked.
        unsafe { std::ptr::copy_nonoverlapping(from, a.address(start), bytes) };
        if let Some(object) = object {
            return vm.after_durable(object, at, bytes as u64);
        }
        vm.observe(Kind::Write, a.address(start), bytes);
        vm.note_write(reference);
        Ok(())
    }
}

helper! {
    /// `array.new_elem`
    new_elem(vm, segment: u64, ty: u32, offset: u32, len: u32, site: u32) -> u32 {
        let (instance, segment) = segment_of(segment);
        check(offset, len, vm.elements(instance, segment).len() as u64, TrapKind::TableOutOfBounds)?;
        let reference = vm.alloc_array(ty, len, site)?;
        // After the allocation, which may have moved what the segment refers to.
        let a = vm.array(reference);
        for i in 0..len {
            let v = vm.elements(instance, segment)[(offset + i) as usize];
            // SAFETY: the array was made with these elements.
            unsafe { vm.write(a.address(i), a.storage, v as u64) };
        }
        vm.observe_birth(reference);
        vm.observe(Kind::Write, a.address(0), bytes_of(&a, len));
        if len > 0 {
            vm.barrier(reference);
        }
        Ok(reference)
    }
}

helper! {
    /// `array.init_elem`
    init_elem(vm, instance: u32, segment: u32, reference: u32, start: u32, offset: u32, len: u32) {
        let a = array(vm, reference)?;
        check(start, len, a.len as u64, TrapKind::ArrayOutOfBounds)?;
        check(offset, len, vm.elements(instance, segment).len() as u64, TrapKind::TableOutOfBounds)?;
        let reference = vm.resolve(reference);
        if let Some(object) = vm.durable_offset(reference) {
            return durable(vm, object, &a, start, len, |vm, _| {
                let values = (0..len).map(|i| {
                    let v = vm.elements(instance, segment)[(offset + i) as usize];
                    vm.persist(v).map(u64::from)
                });
                values.collect()
            });
        }
        for i in 0..len {
            let v = vm.elements(instance, segment)[(offset + i) as usize];
            // SAFETY: the bounds were checked.
            unsafe { vm.write(a.address(start + i), a.storage, v as u64) };
        }
        vm.observe(Kind::Write, a.address(start), bytes_of(&a, len));
        vm.note_write(reference);
        if len > 0 {
            vm.barrier(reference);
        }
        Ok(())
    }
}

helper! {
    /// Marks an object as critical, unless it is null.
    mark(vm, reference: u32) {
        vm.mark(reference);
        Ok(())
    }
}
