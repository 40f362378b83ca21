//! Values outside of the managed heap: the way that a program in a managed language reaches a store that is native. The program has keys and
//! values as objects, as it has for stores of its own; to be kept they are serialized, handed over, and made objects again when they are read.
//!
//! ```text
//! mailbox -> key, value as objects -> bytes (`Wire.java`) | -> tree -> cache lines, written back and fenced
//! mailbox <- value as an object    <- bytes               | <- tree
//!            the program                                  |    native code
//! ```

mod calls;
mod records;
mod tree;

pub use calls::{Outside, open};

use crate::store::Meta;

/// Where things are in the serialized form; see `Wire.java`.
pub mod wire {
    pub const KEY_LENGTH: usize = 0;
    pub const KEY: usize = 8;
    pub const FLAGS: usize = KEY + 256;
    pub const LENGTH: usize = FLAGS + 4;
    pub const EXPIRY: usize = FLAGS + 8;
    pub const UNIQUE: usize = FLAGS + 16;
    pub const VALUE: usize = FLAGS + 24;
    /// Bytes of a value's metadata, which are before it.
    pub const HEAD: usize = VALUE - FLAGS;
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at - wire::FLAGS + i])
}

/// The metadata of a serialized value, and the size of the value.
pub fn head(bytes: &[u8]) -> (Meta, usize) {
    let flags = u32::from_le_bytes(field(bytes, wire::FLAGS));
    let expiry = i64::from_le_bytes(field(bytes, wire::EXPIRY));
    let unique = u64::from_le_bytes(field(bytes, wire::UNIQUE));
    let length = u32::from_le_bytes(field(bytes, wire::LENGTH));
    (Meta::unpacked(flags, expiry, unique), length as usize)
}

/// Writes a value's metadata, except its length, into its serialized form.
pub fn set_head(bytes: &mut [u8], meta: Meta) {
    let mut put = |at: usize, from: &[u8]| {
        bytes[at - wire::FLAGS..][..from.len()].copy_from_slice(from);
    };
    put(wire::FLAGS, &meta.flags.to_le_bytes());
    put(wire::EXPIRY, &meta.packed_expiry().to_le_bytes());
    put(wire::UNIQUE, &meta.cas.to_le_bytes());
}
