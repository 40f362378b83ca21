//! Options of a live run or a placer.

use crate::place::bins::Bins;
use crate::place::engine::PlacementLimits;
use crate::place::error::PlaceError;
use crate::place::reserve::Unit;
use std::path::PathBuf;

/// Size of the pages that are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// The kernel's own choice: 2 MiB when transparent huge pages are on for all programs
    /// (`always` in /sys/kernel/mm/transparent_hugepage/enabled), else 4 KiB.
    #[default]
    Auto,
    /// 4 KiB.
    Base,
    /// 2 MiB where the kernel has them and they fit, 4 KiB elsewhere.
    Huge,
}

impl PageSize {
    /// The size that is meant on this machine.
    pub(crate) fn unit(self) -> Unit {
        match self {
            PageSize::Base => Unit::Base,
            PageSize::Huge => Unit::Huge,
            PageSize::Auto => {
                let enabled =
                    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
                if enabled.is_ok_and(|text| text.contains("[always]")) {
                    Unit::Huge
                } else {
                    Unit::Base
                }
            }
        }
    }
}

/// How to place the pages of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveOptions {
    /// The DRAM that acts as cache, bytes.
    pub cache_bytes: u64,
    /// Ways of that cache; 1 for a direct-mapped one.
    pub ways: u32,
    /// Page size.
    pub pages: PageSize,
    /// Smallest mapping or block that is placed, bytes. It gets all its memory at once.
    pub threshold_bytes: usize,
    /// From this size on, bytes, memory is placed where it is touched, by a thread within the program; so
    /// are mappings that the program itself calls sparse (`MAP_NORESERVE`). Needs Linux 6.8: before it, all
    /// memory is placed at once, and sparse mappings are not placed.
    pub lazy_bytes: usize,
    /// Limits of the memory that is reserved in search of better frames.
    pub limits: PlacementLimits,
    /// Also place the heap and zeroed data (Linux 6.8; the C library's allocator only, which then keeps a single heap).
    pub heap: bool,
    /// Place nothing, but populate, count and report in the same way: the baseline of a comparison.
    pub count_only: bool,
    /// Directory of the load tables that all placed programs share.
    pub table_dir: PathBuf,
}

impl LiveOptions {
    /// The usual settings for a direct-mapped cache of this many bytes.
    pub fn new(cache_bytes: u64) -> LiveOptions {
        LiveOptions {
            cache_bytes,
            ways: 1,
            pages: PageSize::Auto,
            threshold_bytes: 1 << 20,
            lazy_bytes: 64 << 20,
            limits: PlacementLimits::default(),
            heap: true,
            count_only: false,
            table_dir: PathBuf::from("/dev/shm"),
        }
    }

    /// The bins of the cache.
    ///
    /// # Errors
    /// [`PlaceError::Geometry`] when it cannot be split into bins.
    pub fn bins(&self) -> Result<Bins, PlaceError> {
        Bins::of_cache(self.cache_bytes, self.ways)
    }

    /// The limits in force.
    pub(crate) fn effective_limits(&self) -> PlacementLimits {
        PlacementLimits {
            rounds: if self.count_only {
                0
            } else {
                self.limits.rounds
            },
            ..self.limits
        }
    }
}
