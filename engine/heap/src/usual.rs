//! Distances and sizes at the usual alignment of objects, 8 bytes, for code that works with no other. All other code uses the heap's
//! [`ObjectAlign`].

use crate::align::ObjectAlign;
use crate::reference::Ref;

/// [`ObjectAlign::shift`].
pub const REF_SHIFT: u32 = ObjectAlign::LEAST.shift();
/// [`ObjectAlign::bytes`].
pub const OBJECT_ALIGN: u64 = ObjectAlign::LEAST.bytes();
/// [`ObjectAlign::durable_start`].
pub const DURABLE_START: u64 = ObjectAlign::LEAST.durable_start();
/// [`ObjectAlign::durable_end`].
pub const DURABLE_END: u64 = ObjectAlign::LEAST.durable_end();

/// [`ObjectAlign::object_size`].
pub const fn object_size(bytes: u64) -> u64 {
    ObjectAlign::LEAST.object_size(bytes)
}

/// [`ObjectAlign::array_size`].
pub const fn array_size(element_size: u32, length: u32) -> u64 {
    ObjectAlign::LEAST.array_size(element_size, length)
}

impl Ref {
    /// [`ObjectAlign::offset`].
    pub const fn offset(self) -> u64 {
        ObjectAlign::LEAST.offset(self)
    }
}
