//! Memory reserved for candidates: mapped, populated, and unmapped after the choice.

use super::bins::{Bins, HUGE, PAGE, PAGES_PER_HUGE};
use super::choose::NO_BIN;
use super::error::PlaceError;
use super::huge;
use super::pagemap::Pagemap;
use super::sys;

/// Size of the pages that are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 4 KiB pages.
    Base,
    /// 2 MiB pages.
    Huge,
}

impl Unit {
    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Unit::Base => PAGE,
            Unit::Huge => HUGE,
        }
    }

    /// Base pages in one.
    pub fn pages(self) -> usize {
        match self {
            Unit::Base => 1,
            Unit::Huge => PAGES_PER_HUGE,
        }
    }
}

/// Asks for base or huge pages in a range, then has the kernel give it memory now.
///
/// # Safety
/// The range must be mapped private, anonymous, readable and writable.
pub unsafe fn populate(start: usize, bytes: usize, unit: Unit) -> Result<(), PlaceError> {
    let advice = match unit {
        Unit::Base => sys::MADV_NOHUGEPAGE,
        Unit::Huge => sys::MADV_HUGEPAGE,
    };
    // SAFETY: this advice changes no content. A kernel without transparent huge pages refuses it, and then
    // all pages are base pages, which `huge` finds out.
    let _ = unsafe { sys::madvise(start, bytes, advice) };
    // SAFETY: populating keeps contents.
    match unsafe { sys::madvise(start, bytes, sys::MADV_POPULATE_WRITE) } {
        Ok(()) => Ok(()),
        Err(e) if e.raw_os_error() == Some(22) => {
            // Linux before 5.14 has no such advice: touch every page, keeping what it holds.
            for page in (start..start + bytes).step_by(PAGE) {
                // SAFETY: mapped and writable by this function's contract; an atomic add of zero keeps the
                // content even when another thread writes it.
                unsafe { &*(page as *const std::sync::atomic::AtomicU8) }
                    .fetch_add(0, std::sync::atomic::Ordering::Relaxed);
            }
            Ok(())
        }
        Err(e) => Err(PlaceError::System("cannot populate memory", e)),
    }
}

/// A mapping of candidates.
struct Chunk {
    /// Index of its first unit.
    first: usize,
    /// Address of that unit.
    start: usize,
    /// The mapping: address and bytes.
    mapping: (usize, usize),
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: mapped by `Pool::grow`; pages that were moved away left holes, but the mapping stayed ours.
        let _ = unsafe { sys::munmap(self.mapping.0, self.mapping.1) };
    }
}

/// Populated candidates of one size, addressed by a running index, and the bin of each.
///
/// A pool may be kept from one placement to the next: the frames in it are those that did not fit, and while
/// they are held the kernel offers others.
pub struct Pool {
    unit: Unit,
    chunks: Vec<Chunk>,
    /// In bins of the unit's size; `NO_BIN` for a candidate that was used or is of no use.
    bins: Vec<u32>,
}

impl Pool {
    /// Nothing reserved yet.
    pub fn new(unit: Unit) -> Pool {
        Pool {
            unit,
            chunks: Vec::new(),
            bins: Vec::new(),
        }
    }

    /// Reserves and populates `units` more; returns the index of the first.
    ///
    /// # Errors
    /// [`PlaceError::System`] when the kernel has no memory or address space left, and those of reading
    /// frame numbers.
    pub fn grow(
        &mut self,
        units: usize,
        pagemap: &Pagemap,
        bins: Bins,
    ) -> Result<usize, PlaceError> {
        let size = self.unit.bytes();
        // Room to align: the kernel aligns a mapping to base pages only.
        let map_bytes = units * size + (size - PAGE);
        let prot = sys::PROT_READ | sys::PROT_WRITE;
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
        // SAFETY: no MAP_FIXED, so only unused addresses are taken.
        let mapping = unsafe { sys::mmap(0, map_bytes, prot, flags, -1, 0) }
            .map_err(|e| PlaceError::System("cannot reserve memory for candidates", e))?;
        let start = mapping.next_multiple_of(size);
        let chunk = Chunk {
            first: self.bins.len(),
            start,
            mapping: (mapping, map_bytes),
        };
        // SAFETY: mapped above as private anonymous read-write memory.
        unsafe { populate(start, units * size, self.unit) }?;
        let new = unit_bins(pagemap, start, units, self.unit, bins)?;
        self.bins.extend(new);
        let first = chunk.first;
        self.chunks.push(chunk);
        Ok(first)
    }

    /// Bins of all candidates.
    pub fn bins(&self) -> &[u32] {
        &self.bins
    }

    /// Bytes of the candidates that are left.
    pub fn bytes(&self) -> usize {
        self.bins.iter().filter(|&&b| b != NO_BIN).count() * self.unit.bytes()
    }

    /// Which mapping candidate `index` lies in.
    pub fn mapping(&self, index: usize) -> usize {
        self.chunks.partition_point(|c| c.first <= index) - 1
    }

    /// Address of candidate `index`.
    pub fn address(&self, index: usize) -> usize {
        let chunk = &self.chunks[self.mapping(index)];
        chunk.start + (index - chunk.first) * self.unit.bytes()
    }

    /// Candidate `index` was moved away.
    pub fn used(&mut self, index: usize) {
        self.bins[index] = NO_BIN;
    }

    /// Gives back mappings without candidates, and the oldest ones until no more than `bytes` are left.
    pub fn trim(&mut self, bytes: usize) {
        let mut over = self.bytes().saturating_sub(bytes);
        let mut kept_bins = Vec::new();
        let mut kept_chunks = Vec::new();
        let ends: Vec<usize> = self
            .chunks
            .iter()
            .skip(1)
            .map(|c| c.first)
            .chain([self.bins.len()])
            .collect();
        for (mut chunk, end) in self.chunks.drain(..).zip(ends) {
            let bins = &self.bins[chunk.first..end];
            let left = bins.iter().filter(|&&b| b != NO_BIN).count() * self.unit.bytes();
            if left == 0 || over > 0 {
                over = over.saturating_sub(left);
                continue;
            }
            chunk.first = kept_bins.len();
            kept_bins.extend_from_slice(bins);
            kept_chunks.push(chunk);
        }
        (self.bins, self.chunks) = (kept_bins, kept_chunks);
    }
}

/// The pools of both sizes.
pub struct Pools {
    /// 4 KiB candidates.
    pub base: Pool,
    /// 2 MiB candidates.
    pub huge: Pool,
}

impl Pools {
    /// Empty ones.
    pub fn new() -> Pools {
        Pools {
            base: Pool::new(Unit::Base),
            huge: Pool::new(Unit::Huge),
        }
    }

    /// The pool of this size.
    pub fn of(&mut self, unit: Unit) -> &mut Pool {
        match unit {
            Unit::Base => &mut self.base,
            Unit::Huge => &mut self.huge,
        }
    }

    /// Bytes held in both.
    pub fn bytes(&self) -> usize {
        self.base.bytes() + self.huge.bytes()
    }

    /// Trims both, see [`Pool::trim`].
    pub fn trim(&mut self, bytes: usize) {
        self.base.trim(bytes);
        self.huge.trim(bytes.saturating_sub(self.base.bytes()));
    }
}

/// Bins of `units` candidates from `start` on, in bins of the unit's size; `NO_BIN` for those not in memory or
/// not of that size.
///
/// # Errors
/// [`PlaceError::Hidden`], [`PlaceError::System`]; [`PlaceError::Geometry`] when huge pages straddle bins.
pub fn unit_bins(
    pagemap: &Pagemap,
    start: usize,
    units: usize,
    unit: Unit,
    bins: Bins,
) -> Result<Vec<u32>, PlaceError> {
    match unit {
        Unit::Base => page_bins(pagemap, start, units, bins),
        Unit::Huge => {
            let huge_bins = bins.huge().ok_or_else(|| {
                PlaceError::Geometry(
                    "the cache is not a whole number of 2 MiB pages in each way; use 4 KiB pages"
                        .into(),
                )
            })?;
            let frames = huge::frames(pagemap, start, units)?;
            let of = |f: u64| huge_bins.of_frame(f / unit.pages() as u64);
            Ok(frames.into_iter().map(|f| f.map_or(NO_BIN, of)).collect())
        }
    }
}

/// Bins of base pages as the page map shows them now; `NO_BIN` for a page not in memory.
///
/// # Errors
/// [`PlaceError::Hidden`], [`PlaceError::System`].
pub fn page_bins(
    pagemap: &Pagemap,
    start: usize,
    pages: usize,
    bins: Bins,
) -> Result<Vec<u32>, PlaceError> {
    let mut of_page = Vec::with_capacity(pages);
    let mut hidden = false;
    pagemap.read(start, pages, |_, entry| {
        hidden |= entry.hidden();
        of_page.push(entry.frame().map_or(NO_BIN, |f| bins.of_frame(f)));
    })?;
    if hidden {
        Err(PlaceError::Hidden)
    } else {
        Ok(of_page)
    }
}
