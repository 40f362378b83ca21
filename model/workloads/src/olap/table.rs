//! The hash table of the join: a directory of chains, and entries that hold the sums of their group.

use varve_access::random::mix;

/// No entry.
pub const NONE: u64 = u64::MAX;

/// An order that passed the filters, and the sum of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinEntry {
    /// Its number.
    pub order: u64,
    /// The next one of the chain.
    pub next: u64,
    /// Cents and hundredths of them, of lines that passed.
    pub revenue: u64,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The first entry of each chain; a power of two.
    pub directory: Vec<u64>,
    /// By thread one after the other, with room for all orders of each.
    pub entries: Vec<JoinEntry>,
}

impl Table {
    /// An empty table for `orders` orders.
    pub fn new(orders: u64) -> Table {
        let empty = JoinEntry {
            order: NONE,
            next: NONE,
            revenue: 0,
        };
        Table {
            directory: vec![NONE; buckets(orders) as usize],
            entries: vec![empty; orders as usize],
        }
    }

    /// The chain that an order is in.
    pub fn bucket(&self, order: u64) -> u64 {
        mix(order) & (self.directory.len() as u64 - 1)
    }

    /// Puts an order first in its chain, as entry number `at`.
    pub fn insert(&mut self, at: u64, order: u64) {
        let bucket = self.bucket(order) as usize;
        let next = std::mem::replace(&mut self.directory[bucket], at);
        self.entries[at as usize] = JoinEntry {
            order,
            next,
            revenue: 0,
        };
    }

    /// The entries of a chain, the first one first.
    pub fn chain(&self, bucket: u64) -> impl Iterator<Item = u64> {
        let entry = |at: u64| (at != NONE).then_some(at);
        let first = entry(self.directory[bucket as usize]);
        std::iter::successors(first, move |&at| entry(self.entries[at as usize].next))
    }
}

/// Number of chains for `orders` orders: a tenth of the orders is expected to pass the filters, and chains to have one
/// entry or two.
pub fn buckets(orders: u64) -> u64 {
    (orders / 8).next_power_of_two()
}
