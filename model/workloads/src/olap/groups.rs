//! Q1's groups: sums by return flag and line status.

use super::data::LineItem;

/// Sums of a group. Prices are in cents, with a discount in hundredths of them, with a tax in hundredths of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Lines.
    pub lines: u64,
    /// Pieces.
    pub quantity: u64,
    /// Percent.
    pub discount: u64,
    /// Cents.
    pub price: u64,
    /// See [`Sums`].
    pub discounted: u64,
    /// See [`Sums`].
    pub charged: u128,
}

/// A flag has two bits and a status one.
pub const GROUPS: usize = 8;

/// The sums of all groups.
pub type Groups = [Sums; GROUPS];

/// The group of a line.
pub fn group(line: &LineItem) -> usize {
    let flag = match line.flag {
        b'A' => 0,
        b'N' => 2,
        _ => 4,
    };
    flag + usize::from(line.status == b'O')
}

impl Sums {
    /// One line more.
    pub fn add(&mut self, line: &LineItem) {
        let discounted = line.price * (100 - line.discount);
        self.lines += 1;
        self.quantity += line.quantity;
        self.discount += line.discount;
        self.price += line.price;
        self.discounted += discounted;
        self.charged += u128::from(discounted * (100 + line.tax));
    }

    /// Adds the sums of another thread.
    pub fn merge(&mut self, other: &Sums) {
        self.lines += other.lines;
        self.quantity += other.quantity;
        self.discount += other.discount;
        self.price += other.price;
        self.discounted += other.discounted;
        self.charged += other.charged;
    }
}
