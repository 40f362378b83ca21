//! Which old objects a program uses: pages of sampled objects are looked at for a short while.
//!
//! The kernel tells for each of a process's mappings how much of it was used since it was told to forget (`used`). A page whose memory is not to be dumped is a mapping of its own. So a few pages get that
//! mark, the kernel forgets, the program goes on for a while, and each of these pages was used or not. Then the marks go.
//!
//! An object stays where it is between two collections, with collectors that move none while the program runs. What was seen while
//! objects were collected counts for nothing: the collector reads them too.

use super::used::Mapping;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Pages that are looked at at once, at most: each is two or three mappings of the 65,530 that a process may have.
pub const MOST: usize = 1024;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a large page.
pub const LARGE: u64 = 2 << 20;

/// A sampled object that is old.
#[derive(Clone, Copy, Debug)]
pub struct OldObject {
    /// Where it is.
    pub address: u64,
    /// How large it is.
    pub size: u64,
    /// Its site.
    pub site: u32,
    /// Bytes that it stands for.
    pub stands_for: f64,
}

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

/// Chooses pages of `bytes` each, one of each object, at most [`MOST`] of them. Pages side by side would be one mapping: of these the first counts. `random` gives numbers.
pub fn choose(objects: &[OldObject], bytes: u64, mut random: impl FnMut() -> u64) -> Vec<Watched> {
    let mut watched = Vec::new();
    let mut pages = BTreeSet::new();
    // From somewhere on, so that all have their turn.
    let from = random() as usize % objects.len().max(1);
    for object in objects[from..].iter().chain(&objects[..from]) {
        let (address, size) = (object.address, object.size);
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
            site: object.site,
            bytes: object.stands_for,
            page,
        });
    }
    watched
}

/// Whether the pages were used, of those that are mappings of their own.
pub fn used(mappings: &[Mapping], pages: &BTreeSet<u64>) -> BTreeMap<u64, bool> {
    let own = mappings.iter().filter(|m| pages.contains(&m.start));
    own.map(|m| (m.start, m.used > 0)).collect()
}

/// Bytes of the pages that memory of a range has: large ones if any of it is in such.
pub fn page_bytes(mappings: &[Mapping], range: &Range<u64>) -> u64 {
    let huge = |m: &Mapping| range.contains(&m.start) && m.huge > 0;
    if mappings.iter().any(huge) {
        LARGE
    } else {
        PAGE
    }
}
