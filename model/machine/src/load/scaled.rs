//! A smaller machine with the same proportions.

use crate::describe::{Cache, Machine};
use varve_spec::Bytes;

impl Machine {
    /// The machine with time and capacity divided by `s`: virtual seconds on it times `s` are seconds on the real one.
    ///
    /// Memories, DRAM cache, L1, L2 and LLC shrink by `s`, so does each fixed cost of the operating system; bandwidths,
    /// latencies, queues and TLB entries stay, since the pages that they hold shrink with the program. A cache keeps
    /// at least one set, L1 at least 4 KiB, and no level falls below the one above it; a memory keeps at least one page
    /// of 4 KiB. Programs for this machine must divide their footprints by `s` too. 0 counts as 1.
    pub fn scaled(&self, s: u32) -> Machine {
        let s = u64::from(s.max(1));
        let mut m = self.clone();
        if s == 1 {
            return m;
        }
        m.l1.bytes = shrink(&self.l1, s, 4096);
        m.l2.bytes = shrink(&self.l2, s, m.l1.bytes.0);
        m.llc.bytes = shrink(&self.llc, s, m.l2.bytes.0);
        m.dram.dimm_bytes = pages(self.dram.dimm_bytes, s, 1);
        if let Some(pm) = &mut m.pm {
            pm.dimm_bytes = pages(pm.dimm_bytes, s, 1);
        }
        if let Some(cxl) = &mut m.cxl {
            cxl.bytes = pages(cxl.bytes, s, 1);
        }
        if let Some(cache) = &mut m.dram_cache {
            cache.bytes = pages(cache.bytes, s, cache.ways.max(1).into());
        }
        // An interleave unit larger than a DIMM would leave the others empty.
        m.dram.interleave_bytes = within(m.dram.interleave_bytes, m.dram.dimm_bytes);
        if let Some(pm) = &mut m.pm {
            pm.interleave_bytes = within(pm.interleave_bytes, pm.dimm_bytes);
        }
        for ns in [
            &mut m.os.fault_ns,
            &mut m.os.sample_ns,
            &mut m.os.remap_ns,
            &mut m.os.shootdown_ns,
            &mut m.os.slice_ns,
        ] {
            *ns /= s as f64;
        }
        m
    }
}

/// A cache's capacity over `s`, whole sets, at least `least` bytes unless it never had as many.
fn shrink(cache: &Cache, s: u64, least: u64) -> Bytes {
    let set = u64::from(cache.ways.max(1)) * 64;
    let sets = (cache.bytes.0 / s / set).max(least.div_ceil(set)).max(1);
    Bytes((sets * set).min(cache.bytes.0.max(set)))
}

/// An interleave unit, at most the largest power of two that fits the DIMM.
fn within(unit: Bytes, dimm: Bytes) -> Bytes {
    unit.min(Bytes(1 << dimm.0.max(1).ilog2()))
}

/// A memory's capacity over `s` in whole 4 KiB pages, a multiple of `ways` and at least one of each.
fn pages(bytes: Bytes, s: u64, ways: u64) -> Bytes {
    let unit = 4096 * ways;
    Bytes((bytes.0 / s / unit).max(1) * unit)
}
