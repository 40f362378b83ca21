//! The slow paths of persistence checks.

use super::arrays::helper;
use crate::error::Result;
use crate::store::Vm;

helper! {
    /// A store into an object that is durable or has become so: `at` bytes from its start, of `width` bytes, or a
    /// [reference](crate::store::durable::REFERENCE). Collects nothing: references in the compiled code around stay where they are.
    store(vm, holder: u32, at: u64, bits: u64, width: u32) { vm.store_durable(holder, at, bits, width) }
}

helper! {
    /// A constant of an enumeration has its name and number. Collects nothing.
    constant_made(vm, constant: u32) { vm.constant_made(constant) }
}

helper! {
    /// A static field has another object. Collects nothing.
    canonical_set(vm, global: u32) { vm.canonical_set(global) }
}

helper! {
    /// Class data, which are at a place of their own.
    alloc_class_data(vm, ty: u32) -> u32 { vm.alloc_class_data(ty) }
}
