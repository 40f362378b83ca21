//! Activity counts of a socket's memory.

use super::dram::DramCounts;
use super::pm::PmCounts;
use super::tally::tally;

/// Activity counts of a socket's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// DRAM, summed over channels.
    pub dram: DramCounts,
    /// PM, summed over DIMMs.
    pub pm: PmCounts,
    /// 64 B reads and writes of the CXL expander.
    pub cxl_reads: u64,
    /// 64 B writes to the CXL expander.
    pub cxl_writes: u64,
    /// DRAM-cache reads that hit.
    pub cache_hits: u64,
    /// DRAM-cache reads that missed.
    pub cache_misses: u64,
    /// Write-backs from the processor that hit the DRAM cache.
    pub cache_write_hits: u64,
    /// Write-backs from the processor that missed it.
    pub cache_write_misses: u64,
    /// Lines pushed out of the DRAM cache by another (conflicts).
    pub conflicts: u64,
    /// ... of which dirty, and so written to slow memory.
    pub dirty_evictions: u64,
}

impl SocketCounts {
    /// The difference to an earlier reading, if there is one.
    pub fn since(&self, earlier: Option<&SocketCounts>) -> SocketCounts {
        let Some(e) = earlier else {
            return self.clone();
        };
        SocketCounts {
            dram: self.dram.since(&e.dram),
            pm: self.pm.since(&e.pm),
            cxl_reads: self.cxl_reads - e.cxl_reads,
            cxl_writes: self.cxl_writes - e.cxl_writes,
            cache_hits: self.cache_hits - e.cache_hits,
            cache_misses: self.cache_misses - e.cache_misses,
            cache_write_hits: self.cache_write_hits - e.cache_write_hits,
            cache_write_misses: self.cache_write_misses - e.cache_write_misses,
            conflicts: self.conflicts - e.conflicts,
            dirty_evictions: self.dirty_evictions - e.dirty_evictions,
        }
    }

    /// All counts times `factor`, rounded.
    pub fn times(&self, factor: f64) -> SocketCounts {
        let times = |count: u64| (count as f64 * factor).round() as u64;
        SocketCounts {
            dram: self.dram.times(factor),
            pm: self.pm.times(factor),
            cxl_reads: times(self.cxl_reads),
            cxl_writes: times(self.cxl_writes),
            cache_hits: times(self.cache_hits),
            cache_misses: times(self.cache_misses),
            cache_write_hits: times(self.cache_write_hits),
            cache_write_misses: times(self.cache_write_misses),
            conflicts: times(self.conflicts),
            dirty_evictions: times(self.dirty_evictions),
        }
    }

    /// Adds another socket's counts.
    pub fn add(&mut self, o: &SocketCounts) {
        self.dram.add(&o.dram);
        self.pm.add(&o.pm);
        self.cxl_reads += o.cxl_reads;
        self.cxl_writes += o.cxl_writes;
        self.cache_hits += o.cache_hits;
        self.cache_misses += o.cache_misses;
        self.cache_write_hits += o.cache_write_hits;
        self.cache_write_misses += o.cache_write_misses;
        self.conflicts += o.conflicts;
        self.dirty_evictions += o.dirty_evictions;
    }
}

tally! {
    /// Counts of one thread.
    pub struct ThreadCounts {
        /// Instructions retired.
        pub instructions: u64,
        /// Loads, stores, updates (one each), fetches.
        pub accesses: u64,
        /// Updates among them.
        pub updates: u64,
        /// Requests ended.
        pub requests: u64,
        /// First-level misses.
        pub l1_misses: u64,
        /// Second-level misses.
        pub l2_misses: u64,
        /// Last-level misses: demand reads from memory.
        pub llc_misses: u64,
        /// ... of which served by slow memory.
        pub slow: u64,
        /// Lines prefetched from beyond the second level.
        pub prefetches: u64,
        /// First-level TLB misses.
        pub tlb_misses: u64,
        /// Page walks.
        pub walks: u64,
        /// Page faults.
        pub faults: u64,
        /// Samples taken.
        pub samples: u64,
    }
}
