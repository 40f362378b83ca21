//! Machine code of a store: where it is, and what each address in it means.

pub(crate) mod cache;
pub(crate) mod jitdump;
pub(crate) mod link;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod perf;
pub(crate) mod signals;
pub(crate) mod walk;
