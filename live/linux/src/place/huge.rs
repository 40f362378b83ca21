//! Is a 2 MiB range really backed by one huge page?

use super::bins::{HUGE, PAGES_PER_HUGE};
use super::error::PlaceError;
use super::pagemap::Pagemap;
use super::scan;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bit of /proc/kpageflags for a page of a transparent huge page (linux/kernel-page-flags.h).
const KPF_THP: u64 = 1 << 22;

/// For each of the `units` 2 MiB ranges from `start` on: the frame number of its first page when the range is
/// backed by one huge page, else `None`.
///
/// The frames must be adjacent and aligned, and the kernel must say that the page is huge: by `PAGEMAP_SCAN`
/// (Linux 6.7), else by /proc/kpageflags; where neither can be read, adjacent and aligned frames are
/// enough, since they are all that matters to the bins.
///
/// # Errors
/// [`PlaceError::Hidden`] when frame numbers are hidden, [`PlaceError::System`] when the page map cannot be read.
pub fn frames(
    pagemap: &Pagemap,
    start: usize,
    units: usize,
) -> Result<Vec<Option<u64>>, PlaceError> {
    let mut frames = Vec::with_capacity(units);
    let mut first = None;
    let mut whole = true;
    let mut hidden = false;
    pagemap.read(start, units * PAGES_PER_HUGE, |i, entry| {
        let within = i % PAGES_PER_HUGE;
        hidden |= entry.hidden();
        if within == 0 {
            first = entry
                .frame()
                .filter(|f| f.is_multiple_of(PAGES_PER_HUGE as u64));
            whole = first.is_some();
        } else {
            whole &= entry.frame() == first.map(|f| f + within as u64);
        }
        if within == PAGES_PER_HUGE - 1 {
            frames.push(first.filter(|_| whole));
        }
    })?;
    if hidden {
        return Err(PlaceError::Hidden);
    }
    if let Some(huge) = huge_by_scan(pagemap, start, units) {
        for (frame, huge) in frames.iter_mut().zip(huge) {
            *frame = frame.filter(|_| huge);
        }
    } else if let Ok(flags) = File::open("/proc/kpageflags") {
        for frame in &mut frames {
            *frame = frame.filter(|f| {
                let mut raw = [0u8; 8];
                flags.read_exact_at(&mut raw, f * 8).is_ok()
                    && u64::from_ne_bytes(raw) & KPF_THP != 0
            });
        }
    }
    Ok(frames)
}

/// Which ranges are huge by `PAGEMAP_SCAN`; `None` when the kernel does not have it.
fn huge_by_scan(pagemap: &Pagemap, start: usize, units: usize) -> Option<Vec<bool>> {
    let mut huge = vec![false; units];
    let found = scan::regions(
        pagemap,
        start,
        start + units * HUGE,
        scan::HUGE_PAGE,
        |from, to| {
            let (a, b) = (from - start, to - start);
            for flag in &mut huge[a.div_ceil(HUGE)..b / HUGE] {
                *flag = true;
            }
        },
    );
    found.then_some(huge)
}
