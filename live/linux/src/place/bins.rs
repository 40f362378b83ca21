//! Which bin of the DRAM cache a frame maps to.

use super::error::PlaceError;

/// Bytes of the base page. Placement counts, reports and accounts in these.
pub const PAGE: usize = 4096;
/// Base pages in a 2 MiB huge page.
pub const PAGES_PER_HUGE: usize = 512;
/// Bytes of a huge page.
pub const HUGE: usize = PAGE * PAGES_PER_HUGE;
/// Smallest cache accepted, bytes: keeps the 16-bit load of one bin from overflowing below 1 TiB of placed pages.
pub const MIN_CACHE_BYTES: u64 = 16 << 20;

/// The geometry of a DRAM cache at page level.
///
/// A cache of `sets * ways` pages; frame `f` maps to bin `f mod sets`, and each bin holds `ways` pages
/// without conflict. A direct-mapped cache has one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bins {
    /// Number of bins (sets of the cache, in base pages).
    pub sets: u32,
    /// Pages that share a bin without conflict.
    pub ways: u32,
}

impl Bins {
    /// The bins of a cache of `bytes` with `ways` ways.
    ///
    /// # Errors
    /// [`PlaceError::Geometry`] when the cache is smaller than 16 MiB, larger than 16 TiB, has no way, or
    /// does not split into whole 4 KiB pages per way.
    pub fn of_cache(bytes: u64, ways: u32) -> Result<Bins, PlaceError> {
        if ways == 0 {
            return Err(PlaceError::Geometry(format!(
                "a cache of {bytes} bytes needs at least one way"
            )));
        }
        if !(MIN_CACHE_BYTES..=16 << 40).contains(&bytes) {
            return Err(PlaceError::Geometry(format!(
                "a DRAM cache of {bytes} bytes is outside 16 MiB to 16 TiB; give the DRAM that acts as cache, such as 48GiB"
            )));
        }
        let way_bytes = PAGE as u64 * u64::from(ways);
        if !bytes.is_multiple_of(way_bytes) {
            return Err(PlaceError::Geometry(format!(
                "a DRAM cache of {bytes} bytes is not a whole number of 4 KiB pages in each of {ways} ways"
            )));
        }
        // 16 TiB of 4 KiB pages is 2^32: one less than that still fits the index.
        let sets = u32::try_from(bytes / way_bytes).map_err(|_| {
            PlaceError::Geometry(format!(
                "a DRAM cache of {bytes} bytes has more bins than fit 32 bits"
            ))
        })?;
        Ok(Bins { sets, ways })
    }

    /// The bin of frame number `frame`.
    #[inline]
    pub fn of_frame(&self, frame: u64) -> u32 {
        (frame % u64::from(self.sets)) as u32
    }

    /// The bins of huge pages: every 512 base bins form one. `None` when the cache does not split that way,
    /// so that a huge page would straddle two.
    pub fn huge(&self) -> Option<Bins> {
        self.sets
            .is_multiple_of(PAGES_PER_HUGE as u32)
            .then_some(Bins {
                sets: self.sets / PAGES_PER_HUGE as u32,
                ways: self.ways,
            })
    }

    /// Bytes of the cache.
    pub fn cache_bytes(&self) -> u64 {
        u64::from(self.sets) * u64::from(self.ways) * PAGE as u64
    }
}
