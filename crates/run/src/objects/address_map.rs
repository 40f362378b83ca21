//! Where the bytes of a recorded program are in a layout of our own: for each 16 bytes of its memory an address and an
//! allocation site.

/// Bytes that are told apart: allocators align to as much.
const GRANULE: u64 = 16;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
const GRANULES: usize = (PAGE / GRANULE) as usize;
/// Pages of a leaf: 1 GiB.
const LEAF: usize = 1 << 18;
/// Addresses have 48 bits.
const ROOTS: usize = 1 << 18;
/// Bits of a site's number.
const SITE_BITS: u32 = 19;
/// Says that a page's entry is the number of a [`Fine`] page.
const FINE: u64 = 1 << 63;

/// The most sites that can be told apart.
pub const MOST_SITES: usize = 1 << SITE_BITS;

/// Where a byte is, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Address in the new layout.
    pub address: u64,
    /// Number of the site.
    pub site: u32,
}

/// A place of the first byte of a granule or page, in one word; 0 is none.
fn pack(address: u64, site: u32) -> u64 {
    (address / GRANULE) << SITE_BITS | u64::from(site)
}

fn unpack(packed: u64, offset: u64) -> Place {
    Place {
        address: (packed >> SITE_BITS) * GRANULE + offset,
        site: packed as u32 & (MOST_SITES as u32 - 1),
    }
}

/// A page of several objects.
struct Fine {
    granules: [u64; GRANULES],
    /// Where the page's other bytes are.
    rest: u64,
}

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
    pub fn get(&self, address: u64) -> Option<Place> {
        let entry = self.leaves[self.index(address)];
        if entry & FINE == 0 {
            return (entry != 0).then(|| unpack(entry, address % PAGE));
        }
        let page = &self.fine[(entry & !FINE) as usize];
        let granule = page.granules[(address % PAGE / GRANULE) as usize];
        if granule != 0 {
            return Some(unpack(granule, address % GRANULE));
        }
        (page.rest != 0).then(|| unpack(page.rest, address % PAGE))
    }

    /// The bytes of a page of which nothing was said are from `to` on, a page.
    pub fn set_rest(&mut self, address: u64, to: u64, site: u32) {
        let packed = pack(to, site);
        let entry = *self.entry(address);
        match entry & FINE {
            0 => *self.entry(address) = packed,
            _ => self.fine[(entry & !FINE) as usize].rest = packed,
        }
    }

    /// A whole page is from `to` on, a page.
    pub fn set_page(&mut self, address: u64, to: u64, site: u32) {
        self.forget(address);
        *self.entry(address) = pack(to, site);
    }

    /// Nothing is known of a page any more. Where its bytes were of which nothing was said, if they were anywhere.
    pub fn forget(&mut self, address: u64) -> Option<Place> {
        let entry = std::mem::take(self.entry(address));
        let rest = match entry & FINE {
            0 => entry,
            _ => {
                let number = (entry & !FINE) as u32;
                self.spare.push(number);
                self.fine[number as usize].rest
            }
        };
        (rest != 0).then(|| unpack(rest, 0))
    }

    /// The granules from `address` on that lie in `bytes`, all on one page, are from `to` on.
    pub fn set_part(&mut self, address: u64, bytes: u64, to: u64, site: u32) {
        let first = address / GRANULE * GRANULE;
        let to = to - (address - first);
        let page = self.fine_page(address);
        let last = (address + bytes.max(1) - 1) / GRANULE * GRANULE;
        for at in (first..=last).step_by(GRANULE as usize) {
            page.granules[(at % PAGE / GRANULE) as usize] = pack(to + (at - first), site);
        }
    }

    /// As [`AddressMap::set_part`] for one granule, unless something is said of it.
    pub fn set_free_granule(&mut self, address: u64, to: u64, site: u32) {
        let page = self.fine_page(address);
        let granule = &mut page.granules[(address % PAGE / GRANULE) as usize];
        if *granule == 0 {
            *granule = pack(to, site);
        }
    }

    fn fine_page(&mut self, address: u64) -> &mut Fine {
        let entry = *self.entry(address);
        if entry & FINE != 0 {
            return &mut self.fine[(entry & !FINE) as usize];
        }
        let empty = Fine {
            granules: [0; GRANULES],
            rest: entry,
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Step {
        Part(u64, u64, u32),
        Page(u64, u32),
        Rest(u64, u32),
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
            (page.clone(), 1u32..9).prop_map(|(p, s)| Step::Rest(p * PAGE, s)),
            page.prop_map(|p| Step::Forget(p * PAGE)),
        ]
    }

    proptest! {
        /// Against a plain table of granules, and one of what pages have besides.
        #[test]
        fn each_granule_is_where_it_was_said_to_be(all in prop::collection::vec(steps(), 0..40)) {
            let mut map = AddressMap::new();
            let mut granules: HashMap<u64, Place> = HashMap::new();
            let mut rest: HashMap<u64, Place> = HashMap::new();
            // places of their own for each step
            let mut to = 1 << 40;
            for step in all {
                to += 1 << 20;
                match step {
                    Step::Part(at, bytes, site) => {
                        map.set_part(at, bytes, to, site);
                        for offset in (0..bytes).step_by(GRANULE as usize) {
                            granules.insert(at + offset, Place { address: to + offset, site });
                        }
                    }
                    Step::Page(page, site) => {
                        map.set_page(page, to, site);
                        granules.retain(|at, _| at / PAGE != page / PAGE);
                        rest.insert(page, Place { address: to, site });
                    }
                    Step::Rest(page, site) => {
                        map.set_rest(page, to, site);
                        rest.insert(page, Place { address: to, site });
                    }
                    Step::Forget(page) => {
                        prop_assert_eq!(map.forget(page), rest.remove(&page));
                        granules.retain(|at, _| at / PAGE != page / PAGE);
                    }
                }
                for at in (0..4 * PAGE).step_by(GRANULE as usize) {
                    let page = at / PAGE * PAGE;
                    let other = rest.get(&page).map(|p| Place { address: p.address + at - page, ..*p });
                    let expected = granules.get(&at).copied().or(other);
                    prop_assert_eq!(map.get(at), expected);
                    let inside = map.get(at + 5);
                    prop_assert_eq!(inside, expected.map(|p| Place { address: p.address + 5, ..p }));
                }
            }
        }
    }
}
