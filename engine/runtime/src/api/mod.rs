//! The embedding API besides engine, module and store.

pub(crate) mod extern_;
pub(crate) mod func;
pub(crate) mod host;
pub(crate) mod instance;
pub(crate) mod linker;
pub(crate) mod reference;
pub(crate) mod typed;
pub(crate) mod val;
