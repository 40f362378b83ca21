//! Counts of each site.

/// Counts of a site: allocations and accesses of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Objects that were allocated.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were freed.
    pub freed: u64,
    /// Bytes that the program allocated between the birth and the death of each of these, together.
    pub lifetime_bytes: u64,
    /// Bytes of objects that are alive.
    pub live_bytes: u64,
    /// The most of these at a time.
    pub peak_bytes: u64,
    /// Loads.
    pub reads: u64,
    /// Whether it maps memory itself: then its bytes are those of pages that were touched.
    pub mapped: bool,
    /// Stores; accesses that load and store count for both.
    pub writes: u64,
    /// Bytes of its pages and objects in fast memory, in a layout by site.
    pub fast_bytes: u64,
}
