//! Who watches the collector's own accesses: a model of a machine, or nobody.

/// Sees every access of the collector to the heap's objects, with its address. Collector threads call at the same
/// time.
///
/// With [`Unobserved`] nothing is left of it after compilation.
pub trait Observer: Send + Sync {
    /// `bytes` were read at `address`.
    fn read(&self, address: u64, bytes: u64);

    /// `bytes` were written at `address`.
    fn write(&self, address: u64, bytes: u64);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    #[inline(always)]
    fn read(&self, _: u64, _: u64) {}

    #[inline(always)]
    fn write(&self, _: u64, _: u64) {}
}
