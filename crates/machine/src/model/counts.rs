//! What the memory of a socket did, in numbers.

use super::dram::DramCounts;
use super::pm::PmCounts;

/// What a socket's memory did.
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
            dram: DramCounts {
                reads: self.dram.reads - e.dram.reads,
                writes: self.dram.writes - e.dram.writes,
                row_hits: self.dram.row_hits - e.dram.row_hits,
                activates: self.dram.activates - e.dram.activates,
            },
            pm: PmCounts {
                reads: self.pm.reads - e.pm.reads,
                writes: self.pm.writes - e.pm.writes,
                buffer_hits: self.pm.buffer_hits - e.pm.buffer_hits,
                media_reads: self.pm.media_reads - e.pm.media_reads,
                media_writes: self.pm.media_writes - e.pm.media_writes,
                partial_writes: self.pm.partial_writes - e.pm.partial_writes,
            },
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

    /// Adds another socket's counts.
    pub fn add(&mut self, o: &SocketCounts) {
        self.dram.reads += o.dram.reads;
        self.dram.writes += o.dram.writes;
        self.dram.row_hits += o.dram.row_hits;
        self.dram.activates += o.dram.activates;
        self.pm.reads += o.pm.reads;
        self.pm.writes += o.pm.writes;
        self.pm.buffer_hits += o.pm.buffer_hits;
        self.pm.media_reads += o.pm.media_reads;
        self.pm.media_writes += o.pm.media_writes;
        self.pm.partial_writes += o.pm.partial_writes;
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
