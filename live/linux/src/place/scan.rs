//! `PAGEMAP_SCAN` (Linux 6.7): which pages are in memory, and which are huge, without reading entry by entry.

use super::bins::PAGE;
use super::pagemap::Pagemap;
use super::sys;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

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

/// A found region: adjacent pages of the same categories.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Region {
    /// The first address.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
    categories: u64,
}

const PAGEMAP_SCAN: u64 = sys::iowr::<Scan>(b'f' as u64, 16);
/// Pages of files and of shared memory (`PAGE_IS_FILE`).
pub const FILE: u64 = 1 << 2;
/// Pages in memory (`PAGE_IS_PRESENT`).
pub const PRESENT: u64 = 1 << 3;
/// Pages mapped as a huge page (`PAGE_IS_HUGE`).
pub const HUGE_PAGE: u64 = 1 << 6;

/// Calls `each(start, end)` for the regions of all of `category` in a range, in order. `false` when the kernel
/// does not have the call.
pub fn regions(
    pagemap: &Pagemap,
    start: usize,
    end: usize,
    category: u64,
    mut each: impl FnMut(usize, usize),
) -> bool {
    walk(pagemap, start..end, category, 0, &mut |region| {
        each(region.start as usize, region.end as usize);
    })
}

/// As [`regions`], in one walk of the page table with whether each region is of `also`, too.
#[cfg(not(varve_live_shim))]
pub fn regions_told_apart(
    pagemap: &Pagemap,
    range: Range<usize>,
    category: u64,
    also: u64,
    mut each: impl FnMut(usize, usize, bool),
) -> bool {
    walk(pagemap, range, category, also, &mut |region| {
        let is_also = region.categories & also == also;
        each(region.start as usize, region.end as usize, is_also);
    })
}

fn walk(
    pagemap: &Pagemap,
    range: Range<usize>,
    category: u64,
    told: u64,
    each: &mut dyn FnMut(&Region),
) -> bool {
    let mut regions = [Region::default(); 128];
    let (mut from, end) = (range.start as u64, range.end as u64);
    while from < end {
        let scanned = scan_for(pagemap, from..end, 0, (category, told), &mut regions);
        let Ok((found, walked)) = scanned else {
            return false;
        };
        regions[..found].iter().for_each(&mut *each);
        if walked <= from {
            return false;
        }
        from = walked;
    }
    true
}

/// Scans a range for pages of `category` until it ends or `regions` is full; returns the number of regions and the end of the scan.
///
/// # Errors
/// The kernel does not have the call, or refuses it.
pub fn scan(
    pagemap: &Pagemap,
    range: Range<u64>,
    flags: u64,
    category: u64,
    regions: &mut [Region],
) -> io::Result<(usize, u64)> {
    scan_for(pagemap, range, flags, (category, 0), regions)
}

/// The same for pages of the first categories, told apart by the second ones.
fn scan_for(
    pagemap: &Pagemap,
    range: Range<u64>,
    flags: u64,
    (category, told): (u64, u64),
    regions: &mut [Region],
) -> io::Result<(usize, u64)> {
    let mut arg = Scan {
        size: size_of::<Scan>() as u64,
        flags,
        start: range.start,
        end: range.end,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        category_mask: category,
        return_mask: category | told,
        ..Scan::default()
    };
    // SAFETY: the request reads and writes a `Scan`, and `regions` as far as `vec_len` says.
    let found = unsafe { sys::ioctl(pagemap.file().as_raw_fd(), PAGEMAP_SCAN, &mut arg) }?;
    Ok((found, arg.walk_end))
}

/// Does the kernel offer the call? Tries it on the caller's own stack, whose page is in memory.
pub fn works() -> bool {
    let probe = 1u8;
    let page = std::hint::black_box(&raw const probe) as usize / PAGE * PAGE;
    let mut found = 0;
    Pagemap::own().is_ok_and(|map| regions(&map, page, page + PAGE, PRESENT, |_, _| found += 1))
        && found == 1
}
