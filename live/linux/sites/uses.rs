//! Which old objects a program uses: pages of sampled objects are looked at for a short while.
//!
//! The kernel tells for each of a process's mappings how much of it was used since it was told to forget (`clear_refs` and
//! `Referenced` in `smaps`, see proc(5)). A page whose memory is not to be dumped is a mapping of its own. So a few pages get that
//! mark, the kernel forgets, the program goes on for a while, and each of these pages was used or not. Then the marks go.
//!
//! An object stays where it is between two collections, with collectors that move none while the program runs. What was seen while
//! objects were collected counts for nothing: the collector reads them too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::ops::Range;

/// Pages that are looked at at once, at most: each is two or three mappings of the 65,530 that a process may have.
pub const MOST: usize = 1024;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a large page.
pub const LARGE: u64 = 2 << 20;

/// An object of which a page is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    /// Its site.
    pub site: u32,
    /// Bytes that it stands for.
    pub bytes: f64,
    /// First address of the page.
    pub page: u64,
}

/// Chooses pages of `bytes` each, one of each object (its address, its size, its site, the bytes that it stands for), at most [`MOST`]
/// of them. Pages side by side would be one mapping: of these the first counts. `random` gives numbers.
pub fn choose(
    objects: &[(u64, u64, u32, f64)],
    bytes: u64,
    mut random: impl FnMut() -> u64,
) -> Vec<Watched> {
    let mut watched = Vec::new();
    let mut pages = BTreeSet::new();
    // From somewhere on, so that all have their turn.
    let from = random() as usize % objects.len().max(1);
    for &(address, size, site, stands_for) in objects[from..].iter().chain(&objects[..from]) {
        // One that is the object's alone, if it has such.
        let (first, last) = (
            address.next_multiple_of(bytes),
            (address + size) & !(bytes - 1),
        );
        let page = match last.checked_sub(first).filter(|own| *own > 0) {
            Some(own) => first + random() % (own / bytes) * bytes,
            None => (address + random() % size.max(1)) & !(bytes - 1),
        };
        let beside = [page.wrapping_sub(bytes), page + bytes];
        if beside.iter().any(|page| pages.contains(page)) {
            continue;
        }
        if !pages.contains(&page) && pages.len() == MOST {
            break;
        }
        pages.insert(page);
        watched.push(Watched {
            site,
            bytes: stands_for,
            page,
        });
    }
    watched
}

/// What `smaps` says of mappings that begin at these addresses: whether they were used. Those that it does not have are left out.
pub fn read(mut smaps: impl BufRead, pages: &BTreeSet<u64>) -> BTreeMap<u64, bool> {
    let mut used = BTreeMap::new();
    let (mut line, mut at) = (String::new(), None);
    while smaps.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let first = line.split('-').next().unwrap_or_default();
        if let Some(kib) = line.strip_prefix("Referenced:") {
            let kib = kib.trim().trim_end_matches(" kB");
            if let (Some(page), Ok(kib)) = (at, kib.parse::<u64>()) {
                used.insert(page, kib > 0);
            }
        } else if let (true, Ok(begin)) = (first.len() < line.len(), u64::from_str_radix(first, 16))
        {
            at = Some(begin).filter(|begin| pages.contains(begin));
        }
        line.clear();
    }
    used
}

/// Bytes of the pages that memory of a range has, by `smaps`: large ones if any of it is in such.
pub fn page_bytes(mut smaps: impl BufRead, range: &Range<u64>) -> u64 {
    let (mut line, mut inside) = (String::new(), false);
    while smaps.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let first = line.split('-').next().unwrap_or_default();
        if let Some(kib) = line.strip_prefix("AnonHugePages:") {
            if inside && kib.trim() != "0 kB" {
                return LARGE;
            }
        } else if let (true, Ok(begin)) = (first.len() < line.len(), u64::from_str_radix(first, 16))
        {
            inside = range.contains(&begin);
        }
        line.clear();
    }
    PAGE
}
