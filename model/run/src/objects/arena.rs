//! Memory of one tier, allocated as mimalloc does, which is the allocator that places objects live: objects of one size
//! beside each other, large ones by pages. Its numbers are those of mimalloc 2 (`src/page-queue.c`, `src/segment.c`).

use super::address_map::PAGE;

/// Objects larger than this are made of pages of their own.
pub const MOST_SMALL: u64 = 64 << 10;
/// Bytes that objects of one size class get at a time, small and medium.
const SLAB: u64 = 64 << 10;
const LARGE_SLAB: u64 = 512 << 10;
/// Largest objects of a small slab.
const MOST_IN_SLAB: u64 = 8 << 10;
/// Up to this size there is a class for each 16 bytes.
const EXACT: u64 = 128;
/// Size classes of each doubling above that.
const STEPS: u64 = 4;

/// A size class: its number and the bytes that its objects take.
fn class(bytes: u64) -> (usize, u64) {
    let bytes = bytes.max(1).next_multiple_of(16);
    if bytes <= EXACT {
        return ((bytes / 16) as usize, bytes);
    }
    let doubling = u64::from((bytes - 1).ilog2());
    let step = (1 << doubling) / STEPS;
    let rounded = bytes.next_multiple_of(step);
    let within = rounded / step - STEPS;
    let doubling = doubling - u64::from(EXACT.ilog2());
    ((EXACT / 16 + doubling * STEPS + within) as usize, rounded)
}

/// The first object of a slab. Those of small classes do not begin where the slab does: otherwise the first ones of all classes
/// would share one set of each cache.
fn first(slab: u64, size: u64) -> u64 {
    let skipped = match size {
        0..=64 => 3 * size,
        65..=512 => size,
        _ => 0,
    };
    (slab.next_multiple_of(size) + skipped).next_multiple_of(16)
}

#[derive(Clone, Default)]
struct Class {
    free: Vec<u64>,
    next: u64,
    end: u64,
}

/// See the module.
pub struct Arena {
    next: u64,
    free_pages: Vec<u64>,
    classes: Vec<Class>,
    /// Pages that ever held something: the free parts of them are kept for other objects.
    pages: u64,
    /// The most of these there may be.
    most: u64,
}

impl Arena {
    /// Addresses from `base` on, and at most `most` pages.
    pub fn new(base: u64, most: u64) -> Arena {
        Arena {
            next: base,
            free_pages: Vec::new(),
            classes: Vec::new(),
            pages: 0,
            most,
        }
    }

    /// Pages in use.
    #[cfg(test)]
    fn pages(&self) -> u64 {
        self.pages
    }

    /// A place for an object of at most [`MOST_SMALL`] bytes; `None` if there is no room.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let (number, size) = class(bytes);
        if self.classes.len() <= number {
            self.classes.resize(number + 1, Class::default());
        }
        if let Some(at) = self.classes[number].free.pop() {
            return Some(at);
        }
        let slab = match size <= MOST_IN_SLAB {
            true => SLAB,
            false => LARGE_SLAB,
        };
        let Class { next, end, .. } = self.classes[number];
        // Pages from `begun` on no object of this slab has touched.
        let (begun, at, end) = match next + size <= end {
            true => (next.next_multiple_of(PAGE), next, end),
            false => {
                let begun = self.next.next_multiple_of(slab);
                (begun, first(begun, size), begun + slab)
            }
        };
        let fresh = (at + size).next_multiple_of(PAGE).saturating_sub(begun) / PAGE;
        if self.pages + fresh > self.most {
            return None;
        }
        self.pages += fresh;
        self.next = self.next.max(end);
        let class = &mut self.classes[number];
        (class.next, class.end) = (at + size, end);
        Some(at)
    }

    /// An object of [`Arena::take`] is gone.
    pub fn give(&mut self, at: u64, bytes: u64) {
        let (number, _) = class(bytes);
        self.classes[number].free.push(at);
    }

    /// A page; `None` if there is no room.
    pub fn take_page(&mut self) -> Option<u64> {
        if let Some(free) = self.free_pages.pop() {
            return Some(free);
        }
        if self.pages >= self.most {
            return None;
        }
        self.pages += 1;
        let at = self.next.next_multiple_of(PAGE);
        self.next = at + PAGE;
        Some(at)
    }

    /// A page of [`Arena::take_page`] is free again.
    pub fn give_page(&mut self, at: u64) {
        self.free_pages.push(at / PAGE * PAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn size_classes_are_in_order_and_waste_little() {
        let mut last = (0, 0);
        for bytes in 1..=MOST_SMALL {
            let (number, size) = class(bytes);
            assert!(size >= bytes && size % 16 == 0, "{bytes}");
            assert!(
                size <= bytes.next_multiple_of(16) * 5 / 4,
                "{bytes}: {size}"
            );
            assert!(
                (number, size) == last || number > last.0 && size > last.1,
                "{bytes}: {number}"
            );
            last = (number, size);
        }
    }

    proptest! {
        /// Nothing overlaps, all pages that hold something are counted, and the limit holds.
        #[test]
        fn objects_lie_apart_and_pages_are_counted(
            steps in prop::collection::vec((prop::option::of(0usize..40), 1u64..20_000), 1..200), most in 1u64..200
        ) {
            let mut arena = Arena::new(1 << 44, most);
            let mut live: Vec<(u64, u64)> = Vec::new();
            let mut touched = std::collections::HashSet::new();
            for (free, bytes) in steps {
                if let Some(which) = free && which < live.len() {
                    let (at, bytes) = live.swap_remove(which);
                    arena.give(at, bytes);
                    continue;
                }
                let Some(at) = arena.take(bytes) else { continue };
                prop_assert!(at % 16 == 0);
                for &(other, length) in &live {
                    prop_assert!(at + bytes <= other || other + length <= at, "{at:#x} {other:#x}");
                }
                touched.extend(at / PAGE..=(at + bytes - 1) / PAGE);
                live.push((at, bytes));
                prop_assert!(arena.pages() <= most);
                prop_assert!(touched.len() as u64 <= arena.pages());
            }
        }
    }
}
