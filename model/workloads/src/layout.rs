//! Virtual addresses for a workload's arrays, as a real program would have got them from `mmap`.

use varve_access::Region;

/// Alignment of every region: the large page of x86-64, so that a page of either size holds one array only.
pub const ALIGN: u64 = 2 << 20;

/// Unmapped bytes between two regions: an access past the end of an array then lies in no region.
pub const GUARD: u64 = 2 << 20;

/// Where the first region starts. Any canonical address would do; this one keeps below 2^47 with 100 TB above it.
pub const BASE: u64 = 0x1000_0000_0000;

/// Hands out regions in the order of the calls, upward from [`BASE`].
///
/// Only addresses are handed out: pages get their frames at first touch, so the order that a placement policy
/// sees is the order in which the workload initializes its arrays (see [`crate::init`]).
#[derive(Clone, Debug)]
pub struct Layout {
    next: u64,
    regions: Vec<Region>,
}

/// A one-dimensional array of equal elements at modelled addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Address of element 0.
    pub base: u64,
    /// Number of elements.
    pub len: u64,
    /// Bytes per element.
    pub size: u64,
}

impl Array {
    /// Address of element `index`.
    #[inline(always)]
    pub fn at(self, index: u64) -> u64 {
        debug_assert!(
            index < self.len,
            "element {index} of an array of {}",
            self.len
        );
        self.base + index * self.size
    }

    /// Bytes of the whole array.
    pub fn bytes(self) -> u64 {
        self.len * self.size
    }
}

impl Default for Layout {
    fn default() -> Layout {
        Layout::new()
    }
}

impl Layout {
    /// An empty layout from [`BASE`] on.
    pub fn new() -> Layout {
        Layout {
            next: BASE,
            regions: Vec::new(),
        }
    }

    /// The next region of `bytes` bytes (at least one); returns its first address.
    pub fn region(&mut self, name: &str, bytes: u64) -> u64 {
        let bytes = bytes.max(1);
        let base = self.next;
        self.regions.push(Region {
            name: name.to_string(),
            base,
            bytes,
        });
        self.next = (base + bytes).next_multiple_of(ALIGN) + GUARD;
        base
    }

    /// A region that holds `len` elements of `size` bytes.
    pub fn array(&mut self, name: &str, len: u64, size: u64) -> Array {
        Array {
            base: self.region(name, len * size),
            len,
            size,
        }
    }

    /// Every region so far, by rising address.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Sum of the regions' lengths in bytes: the footprint once all is touched.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_aligned_apart_and_in_order() {
        let mut layout = Layout::new();
        let small = layout.region("small", 1);
        let large = layout.region("large", 3 * ALIGN);
        let empty = layout.region("empty", 0);
        assert_eq!(small, BASE);
        assert_eq!(large, BASE + ALIGN + GUARD);
        assert_eq!(empty, large + 3 * ALIGN + GUARD);
        assert_eq!(layout.bytes(), 1 + 3 * ALIGN + 1);
        assert_eq!(layout.regions()[1].name, "large");
    }

    #[test]
    fn elements_follow_each_other() {
        let mut layout = Layout::new();
        let array = layout.array("a", 10, 24);
        assert_eq!(array.at(3), array.base + 72);
        assert_eq!(array.bytes(), 240);
    }
}
