//! The tables, as TPC-H's clause 4.2.3 has them: `lineitem`, `orders` and `customer`, with the columns of both queries.
//!
//! The values of a column are a function of the row's number and take no memory of the host. Money is in cents, dates
//! are days since 1992-01-01. Orders have one to seven lines, four on average, and the lines of an order follow each
//! other.

use varve_access::random::mix;

/// Lines of seven orders, which have these numbers of them: the pattern repeats.
const LINES: [u64; 7] = [4, 1, 7, 2, 6, 3, 5];
/// Lines of a pattern.
pub const PATTERN: u64 = 28;

/// Last day of Q1: 1998-12-01 less 90 days.
pub const Q1_DAY: u32 = 2436;
/// Q3's day, 1995-03-15.
pub const Q3_DAY: u32 = 1169;
/// Q3's segment of the market, of five.
pub const Q3_SEGMENT: u64 = 1;
/// Segments.
const SEGMENTS: u64 = 5;
/// The current date of the specification: 1995-06-17.
const TODAY: u32 = 1263;
/// Days on which orders were made, to 1998-08-02.
const ORDER_DAYS: u64 = 2406;

/// A line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineItem {
    /// Its order.
    pub order: u64,
    /// Pieces, 1 to 50.
    pub quantity: u64,
    /// Cents.
    pub price: u64,
    /// Percent, 0 to 10.
    pub discount: u64,
    /// Percent, 0 to 8.
    pub tax: u64,
    /// Day of shipping.
    pub shipped: u32,
    /// `A`, `N` or `R`.
    pub flag: u8,
    /// `F` or `O`.
    pub status: u8,
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlapOrder {
    /// Its customer.
    pub customer: u64,
    /// Day of the order.
    pub day: u32,
}

/// All tables of a size.
#[derive(Clone, Copy, Debug)]
pub struct OlapTables {
    /// Rows of `lineitem`.
    pub lines: u64,
    seed: u64,
}

impl OlapTables {
    /// Tables with about `lines` lines, at least [`PATTERN`].
    pub fn new(lines: u64, seed: u64) -> OlapTables {
        OlapTables {
            lines: (lines / PATTERN).max(1) * PATTERN,
            seed,
        }
    }

    /// Rows of `orders`.
    pub fn orders(&self) -> u64 {
        self.lines / PATTERN * LINES.len() as u64
    }

    /// Rows of `customer`.
    pub fn customers(&self) -> u64 {
        (self.orders() / 10).max(1)
    }

    /// A random number for a row of a table.
    fn random(&self, table: u64, row: u64) -> u64 {
        mix(mix(self.seed ^ table << 56) ^ row)
    }

    /// The order that a line belongs to.
    pub fn order_of(&self, line: u64) -> u64 {
        let mut left = line % PATTERN;
        let mut order = line / PATTERN * LINES.len() as u64;
        for lines in LINES {
            if left < lines {
                break;
            }
            left -= lines;
            order += 1;
        }
        order
    }

    /// A row of `orders`.
    pub fn order(&self, order: u64) -> OlapOrder {
        let random = self.random(1, order);
        OlapOrder {
            customer: (random >> 32) % self.customers(),
            day: (random % ORDER_DAYS) as u32,
        }
    }

    /// The segment of a customer.
    pub fn segment(&self, customer: u64) -> u64 {
        self.random(2, customer) % SEGMENTS
    }

    /// A row of `lineitem`.
    pub fn line(&self, line: u64) -> LineItem {
        let order = self.order_of(line);
        let (a, b) = (self.random(3, line), self.random(4, line));
        let part = |random: u64, shift: u32, below: u64| ((random >> shift & 0xFFFF) * below) >> 16;
        let quantity = 1 + part(a, 0, 50);
        let shipped = self.order(order).day + 1 + part(a, 16, 121) as u32;
        let received = shipped + 1 + part(a, 32, 30) as u32;
        LineItem {
            order,
            quantity,
            // Of a piece, from 900 to 2,100 dollars.
            price: quantity * (90_000 + part(a, 48, 2000) * 60),
            discount: part(b, 0, 11),
            tax: part(b, 16, 9),
            shipped,
            flag: match received <= TODAY {
                true if b >> 32 & 1 == 0 => b'R',
                true => b'A',
                false => b'N',
            },
            status: if shipped > TODAY { b'O' } else { b'F' },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn orders_have_one_to_seven_lines_that_follow_each_other() {
        let data = OlapTables::new(1000, 1);
        assert_eq!((data.lines, data.orders()), (980, 245));
        let mut lines = BTreeMap::<u64, u64>::new();
        let mut before = 0;
        for line in 0..data.lines {
            let order = data.line(line).order;
            assert!(order == before || order == before + 1);
            *lines.entry(order).or_default() += 1;
            before = order;
        }
        assert_eq!(lines.len() as u64, data.orders());
        let mut first: Vec<u64> = lines.values().take(7).copied().collect();
        first.sort_unstable();
        assert_eq!(first, [1, 2, 3, 4, 5, 6, 7]);
    }

    /// Shares of TPC-H's own data: nearly all lines are in Q1, about half are shipped after Q3's day, a fifth of customers is
    /// asked for.
    #[test]
    fn values_have_the_ranges_and_shares_of_the_specification() {
        let data = OlapTables::new(280_000, 1);
        let share = |count: usize, of: u64| count as f64 / of as f64;
        let lines: Vec<LineItem> = (0..data.lines).map(|line| data.line(line)).collect();
        for line in &lines {
            assert!((1..=50).contains(&line.quantity) && line.discount <= 10 && line.tax <= 8);
            assert!((90_000..=210_000).contains(&(line.price / line.quantity)));
        }
        let of = |keep: &dyn Fn(&&LineItem) -> bool| {
            share(lines.iter().filter(keep).count(), data.lines)
        };
        assert!((0.97..0.995).contains(&of(&|l| l.shipped <= Q1_DAY)));
        assert!((0.5..0.58).contains(&of(&|l| l.shipped > Q3_DAY)));
        let segment = (0..data.customers()).filter(|&c| data.segment(c) == Q3_SEGMENT);
        assert!((0.18..0.22).contains(&share(segment.count(), data.customers())));
    }
}
