//! Is a 2 MiB range really backed by one huge page?

use super::bins::{HUGE, PAGE, PAGES_PER_HUGE};
use super::error::PlaceError;
use super::pagemap::Pagemap;
use super::sys;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

// linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const PAGEMAP_SCAN: u64 = sys::iowr::<Scan>(b'f' as u64, 16);
const PAGE_IS_HUGE: u64 = 1 << 6;
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
    if let Some(huge) = scan(pagemap, start, units) {
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
fn scan(pagemap: &Pagemap, start: usize, units: usize) -> Option<Vec<bool>> {
    let mut huge = vec![false; units];
    let mut regions = [Region::default(); 128];
    let end = (start + units * HUGE) as u64;
    let mut from = start as u64;
    while from < end {
        let mut arg = Scan {
            size: size_of::<Scan>() as u64,
            start: from,
            end,
            vec: regions.as_mut_ptr() as u64,
            vec_len: regions.len() as u64,
            category_mask: PAGE_IS_HUGE,
            return_mask: PAGE_IS_HUGE,
            ..Scan::default()
        };
        // SAFETY: the request reads and writes a `Scan`, and `regions` as far as `vec_len` says.
        let found =
            unsafe { sys::ioctl(pagemap.file().as_raw_fd(), PAGEMAP_SCAN, &mut arg) }.ok()?;
        for region in &regions[..found] {
            let (a, b) = (region.start as usize - start, region.end as usize - start);
            for flag in &mut huge[a.div_ceil(HUGE)..b / HUGE] {
                *flag = true;
            }
        }
        if arg.walk_end <= from {
            return None;
        }
        from = arg.walk_end;
    }
    debug_assert_eq!(start % PAGE, 0);
    Some(huge)
}

/// Does the kernel offer `PAGEMAP_SCAN`? Tries it on the caller's own stack.
pub fn pagemap_scan_works() -> bool {
    let probe = 1u8;
    let address = std::hint::black_box(&raw const probe) as usize / PAGE * PAGE;
    let Ok(pagemap) = Pagemap::own() else {
        return false;
    };
    let mut regions = [Region::default(); 1];
    let mut arg = Scan {
        size: size_of::<Scan>() as u64,
        start: address as u64,
        end: (address + PAGE) as u64,
        vec: regions.as_mut_ptr() as u64,
        vec_len: 1,
        // PAGE_IS_PRESENT: the page of a local variable is in memory, so one region must come back.
        category_mask: 1 << 3,
        return_mask: 1 << 3,
        ..Scan::default()
    };
    // SAFETY: as in `scan`.
    let found = unsafe { sys::ioctl(pagemap.file().as_raw_fd(), PAGEMAP_SCAN, &mut arg) };
    matches!(found, Ok(1))
}
