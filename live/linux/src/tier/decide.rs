//! What is told to whoever decides, and what comes back.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A page of a process that is tiered: the process's number in this run, and the address divided by the size of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(u64);

/// Bits of an address divided by 4096: programs have 47 bits of addresses, or 48.
const NUMBER_BITS: u32 = 36;

impl Page {
    /// Page `number` of process `process` of this run.
    pub fn new(process: u32, number: u64) -> Page {
        Page(u64::from(process) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1))
    }

    /// The process's number in this run, from 0 on.
    pub fn process(self) -> u32 {
        (self.0 >> NUMBER_BITS) as u32
    }

    /// Its address divided by the size of pages.
    pub fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }

    /// Both in one number. Of the first process that is [`Page::number`].
    pub fn key(self) -> u64 {
        self.0
    }

    /// The page of a key.
    pub fn of_key(key: u64) -> Page {
        Page(key)
    }
}

/// Tables by page, which every look goes through: numbers of pages that follow each other need no better mixing than this.
pub type Pages<T> = HashMap<Page, T, BuildHasherDefault<PageHasher>>;

/// See [`Pages`].
#[derive(Default)]
pub struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd number without a pattern: 2^64 over the golden ratio, after Knuth. Tables take the upper and the lower bits.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A page that is to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which one.
    pub page: Page,
    /// To fast memory, or to slow memory.
    pub fast: bool,
    /// The page whose place it takes: that one has to be moved first.
    pub after: Option<Page>,
}

/// Whoever decides in which memory pages are. It is told what is seen, and never sees a process or a node.
pub trait Decide {
    /// A page was found, in fast memory or not. The answer is whether it is to be in fast memory; `None`: nothing is known of it from
    /// now on, and it stays where it is.
    fn appeared(&mut self, page: Page, fast: bool) -> Option<bool>;

    /// A page is no more.
    fn gone(&mut self, page: Page);

    /// A page was seen in use. `fast` is where it is.
    fn used(&mut self, page: Page, writes: bool, fast: bool);

    /// Appends what is to be moved, in order. Those that were not moved since the last time are forgotten.
    fn decide(&mut self, wishes: &mut Vec<Wish>);

    /// A wish of the last [`Decide::decide`] was carried out.
    fn moved(&mut self, wish: &Wish);

    /// Where a page is now, whoever moved it: in fast memory or in slow memory; `None`: it is no more. Told of those too of which nothing
    /// is decided. Decisions need it not, but who shows where pages are does.
    fn is_at(&mut self, _page: Page, _fast: Option<bool>) {}

    /// Whether a page is thought to be hot.
    fn is_hot(&self, page: Page) -> bool;

    /// Whether it wants to be told what is in use.
    fn wants_uses(&self) -> bool;
}
