//! Where the bytes of a recorded program are in a layout of our own: for each 16 bytes of its memory an address and an
//! allocation site.

/// Bytes of a granule, the smallest unit with a place of its own: allocators align to as much, but for the smallest
/// objects.
pub const GRANULE: u64 = 16;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a line.
pub const LINE: u64 = 64;
const GRANULES: usize = (PAGE / GRANULE) as usize;
/// Pages of a leaf: 1 GiB.
const LEAF: usize = 1 << 18;
/// Addresses have 48 bits.
const ROOTS: usize = 1 << 18;
/// Bits of a site's number.
const SITE_BITS: u32 = 19;
/// Marks a page's entry as the number of a [`Fine`] page.
const FINE: u64 = 1 << 63;
/// Marks a granule whose object is gone.
const FREE: u64 = 1 << 63;

/// The most sites that the map can distinguish.
pub const MOST_SITES: usize = 1 << SITE_BITS;

/// Where a byte is, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedByte {
    /// Address in the new layout.
    pub address: u64,
    /// Number of the site.
    pub site: u32,
}

/// A place of the first byte of a granule or page, in one word; 0 is none.
fn pack(address: u64, site: u32) -> u64 {
    (address / GRANULE) << SITE_BITS | u64::from(site)
}

fn unpack(packed: u64, offset: u64) -> MappedByte {
    MappedByte {
        address: ((packed & !FREE) >> SITE_BITS) * GRANULE + offset,
        site: packed as u32 & (MOST_SITES as u32 - 1),
    }
}

/// The granules of the line of a byte, by their numbers in its page.
fn line_of(address: u64) -> std::ops::Range<usize> {
    let granules = (LINE / GRANULE) as usize;
    let first = (address % PAGE / LINE) as usize * granules;
    first..first + granules
}

/// A page of several objects. Its other bytes, which are an allocator's, go with the object before them, or else behind them.
type Fine = [u64; GRANULES];

/// See the module.
pub struct AddressMap {
    /// Which leaf a GiB has; the first one, which stays empty, if none.
    roots: Box<[u32]>,
    leaves: Vec<u64>,
    fine: Vec<Fine>,
    /// Fine pages that are not in use.
    spare: Vec<u32>,
}

impl AddressMap {
    /// Nothing is anywhere.
    pub fn new() -> AddressMap {
        AddressMap {
            roots: vec![0; ROOTS].into(),
            leaves: vec![0; LEAF],
            fine: Vec::new(),
            spare: Vec::new(),
        }
    }

    fn index(&self, address: u64) -> usize {
        let page = address / PAGE;
        let root = self.roots[(page as usize / LEAF) % ROOTS] as usize;
        root * LEAF + page as usize % LEAF
    }

    fn entry(&mut self, address: u64) -> &mut u64 {
        let root = (address / PAGE) as usize / LEAF % ROOTS;
        if self.roots[root] == 0 {
            self.roots[root] = (self.leaves.len() / LEAF) as u32;
            self.leaves.resize(self.leaves.len() + LEAF, 0);
        }
        let index = self.index(address);
        &mut self.leaves[index]
    }

    /// Where a byte is, if that was said.
    #[inline]
    pub fn get(&self, address: u64) -> Option<MappedByte> {
        let entry = self.leaves[self.index(address)];
        if entry & FINE == 0 {
            return (entry != 0).then(|| unpack(entry, address % PAGE));
        }
        let page = &self.fine[(entry & !FINE) as usize];
        let number = (address % PAGE / GRANULE) as usize;
        if page[number] != 0 {
            return Some(unpack(page[number], address % GRANULE));
        }
        neighbour(page, number).map(|granule| unpack(granule, address % GRANULE))
    }

    /// A whole page is from `to` on, a page.
    pub fn set_page(&mut self, address: u64, to: u64, site: u32) {
        self.forget(address);
        *self.entry(address) = pack(to, site);
    }

    /// Where a page is that is in one piece.
    pub fn whole(&self, address: u64) -> Option<MappedByte> {
        let entry = self.leaves[self.index(address)];
        (entry != 0 && entry & FINE == 0).then(|| unpack(entry, 0))
    }

    /// The first page from this one on of whose GiB something is known.
    pub fn next_known(&self, page: u64) -> Option<u64> {
        let gib = page as usize / PAGE as usize / LEAF;
        match *self.roots.get(gib)? {
            0 => {
                let more = self.roots[gib..].iter().position(|leaf| *leaf != 0)?;
                Some(((gib + more) * LEAF) as u64 * PAGE)
            }
            _ => Some(page),
        }
    }

    /// The parts of a page that is not in one piece: offset in the page, bytes, and the site of granules that follow one another
    /// in the layout too.
    pub fn parts(&self, address: u64) -> Vec<(u64, u64, u32)> {
        let entry = self.leaves[self.index(address)];
        if entry & FINE == 0 {
            return Vec::new();
        }
        let page = &self.fine[(entry & !FINE) as usize];
        let mut parts: Vec<(u64, u64, u32)> = Vec::new();
        let mut next = None;
        for (number, &granule) in page
            .iter()
            .enumerate()
            .filter(|(_, granule)| **granule != 0)
        {
            let (offset, place) = (number as u64 * GRANULE, unpack(granule, 0));
            match parts.last_mut() {
                Some((_, bytes, site))
                    if next == Some((offset, place.address)) && *site == place.site =>
                {
                    *bytes += GRANULE
                }
                _ => parts.push((offset, GRANULE, place.site)),
            }
            next = Some((offset + GRANULE, place.address + GRANULE));
        }
        parts
    }

    /// Whether `is` holds for the address of a granule on the line of a byte: one of an object that is there, or else any that is known.
    /// None if the page is in one piece, or nothing of the line is known.
    #[inline]
    pub fn line_has(&self, address: u64, is: impl Fn(u64) -> bool) -> Option<bool> {
        let entry = self.leaves[self.index(address)];
        if entry & FINE == 0 {
            return None;
        }
        let line = &self.fine[(entry & !FINE) as usize][line_of(address)];
        let known = |free: u64| {
            line.iter()
                .filter(move |granule| **granule != 0 && **granule & FREE == free)
                .map(|granule| is(unpack(*granule, 0).address))
                .reduce(|one, other| one || other)
        };
        known(0).or_else(|| known(FREE))
    }

    /// The object is gone that had the granules from `address` on that lie in `bytes`. They stay where they are until something else has
    /// their line.
    pub fn release(&mut self, address: u64, bytes: u64) {
        let first = address / GRANULE * GRANULE;
        let end = address + bytes.max(1);
        let mut at = first;
        while at < end {
            let next = (at / PAGE * PAGE + PAGE).min(end);
            let entry = self.leaves[self.index(at)];
            if entry & FINE != 0 {
                let page = &mut self.fine[(entry & !FINE) as usize];
                let granules = page[(at % PAGE / GRANULE) as usize..].iter_mut();
                let count = (next - at).div_ceil(GRANULE) as usize;
                for granule in granules.take(count).filter(|granule| **granule != 0) {
                    *granule |= FREE;
                }
            }
            at = next;
        }
    }

    /// Nothing is known of a page any more.
    pub fn forget(&mut self, address: u64) {
        let entry = std::mem::take(self.entry(address));
        if entry & FINE != 0 {
            self.spare.push((entry & !FINE) as u32);
        }
    }

    /// The granules from `address` on that lie in `bytes`, all on one page, are from `to` on. A page that was in one piece is not so
    /// any more: of its other granules nothing is known.
    pub fn set_part(&mut self, address: u64, bytes: u64, to: u64, site: u32) {
        let first = address / GRANULE * GRANULE;
        let to = to - (address - first);
        let page = self.fine_page(address);
        let last = (address + bytes.max(1) - 1) / GRANULE * GRANULE;
        for at in (first..=last).step_by(GRANULE as usize) {
            page[(at % PAGE / GRANULE) as usize] = pack(to + (at - first), site);
        }
        // What is free on its lines goes with it.
        for line in [first, last] {
            for number in line_of(line) {
                if page[number] & FREE != 0 {
                    let site = unpack(page[number], 0).site;
                    let at = first / PAGE * PAGE + number as u64 * GRANULE;
                    page[number] = FREE | pack((to + at).wrapping_sub(first), site);
                }
            }
        }
    }

    /// As [`AddressMap::set_part`] for one granule, unless something is said of it.
    pub fn set_free_granule(&mut self, address: u64, to: u64, site: u32) {
        let page = self.fine_page(address);
        let granule = &mut page[(address % PAGE / GRANULE) as usize];
        if *granule == 0 {
            *granule = pack(to, site);
        }
    }

    fn fine_page(&mut self, address: u64) -> &mut Fine {
        let entry = *self.entry(address);
        if entry & FINE != 0 {
            return &mut self.fine[(entry & !FINE) as usize];
        }
        let empty = [0; GRANULES];
        let number = match self.spare.pop() {
            Some(number) => {
                self.fine[number as usize] = empty;
                number as usize
            }
            None => {
                self.fine.push(empty);
                self.fine.len() - 1
            }
        };
        *self.entry(address) = FINE | number as u64;
        &mut self.fine[number]
    }
}

/// The known granule nearest to an unknown one.
#[cold]
fn neighbour(page: &Fine, number: usize) -> Option<u64> {
    let known = |granule: &&u64| **granule != 0;
    let before = page[..number].iter().rev().find(known);
    before
        .or_else(|| page[number..].iter().find(known))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Step {
        Part(u64, u64, u32),
        Page(u64, u32),
        Forget(u64),
    }

    fn steps() -> impl Strategy<Value = Step> {
        let page = 0u64..4;
        prop_oneof![
            (page.clone(), 0u64..200, 1u64..56, 1u32..9).prop_map(|(p, g, n, s)| Step::Part(
                p * PAGE + g * GRANULE,
                n * GRANULE,
                s
            )),
            (page.clone(), 1u32..9).prop_map(|(p, s)| Step::Page(p * PAGE, s)),
            page.prop_map(|p| Step::Forget(p * PAGE)),
        ]
    }

    proptest! {
        /// Against a plain table of granules.
        #[test]
        fn each_granule_is_where_it_was_said_to_be(all in prop::collection::vec(steps(), 0..40)) {
            let mut map = AddressMap::new();
            let mut granules: HashMap<u64, MappedByte> = HashMap::new();
            let mut whole: HashMap<u64, MappedByte> = HashMap::new();
            // places of their own for each step
            let mut to = 1 << 40;
            for step in all {
                to += 1 << 20;
                match step {
                    Step::Part(at, bytes, site) => {
                        map.set_part(at, bytes, to, site);
                        if whole.remove(&(at / PAGE)).is_some() {
                            granules.retain(|other, _| other / PAGE != at / PAGE);
                        }
                        for offset in (0..bytes).step_by(GRANULE as usize) {
                            granules.insert(at + offset, MappedByte { address: to + offset, site });
                        }
                    }
                    Step::Page(page, site) => {
                        map.set_page(page, to, site);
                        whole.insert(page / PAGE, MappedByte { address: to, site });
                        for offset in (0..PAGE).step_by(GRANULE as usize) {
                            granules.insert(page + offset, MappedByte { address: to + offset, site });
                        }
                    }
                    Step::Forget(page) => {
                        map.forget(page);
                        whole.remove(&(page / PAGE));
                        granules.retain(|at, _| at / PAGE != page / PAGE);
                    }
                }
                for at in (0..4 * PAGE).step_by(GRANULE as usize) {
                    let page = at / PAGE * PAGE;
                    prop_assert_eq!(map.whole(page), whole.get(&(at / PAGE)).copied());
                    let before = (page / GRANULE..=at / GRANULE).rev().map(|granule| granule * GRANULE);
                    let behind = (at..page + PAGE).step_by(GRANULE as usize);
                    let expected = before.chain(behind).find_map(|near| granules.get(&near)).copied();
                    prop_assert_eq!(map.get(at), expected);
                    let inside = map.get(at + 5);
                    prop_assert_eq!(inside, expected.map(|p| MappedByte { address: p.address + 5, ..p }));
                }
            }
        }
    }
}
