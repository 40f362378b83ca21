//! Which memory is used when: a grid of address ranges and intervals, both of which become coarser as a run goes on, so that the grid
//! has a size that no run exceeds.

use std::collections::HashMap;

/// Limit of the ranges; when there are more, neighbours become one.
const MOST_RANGES: usize = 512;
/// Intervals.
const INTERVALS: usize = 256;
/// The first interval, ns. It doubles.
const FIRST_NS: u64 = 1_000;
/// The finest range, as a power of two of bytes: a page of the processor.
const FINEST: u32 = 12;
/// Ranges that are found without a lookup in the table.
const RECENT: usize = 64;

/// Accesses to a range in one interval, and its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeatCell {
    /// Accesses to it.
    pub accesses: u64,
    /// Bytes of it in fast memory, at the end of the interval.
    pub fast_bytes: u64,
    /// Bytes of it in slow memory then.
    pub slow_bytes: u64,
}

/// A range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatRange {
    /// Its first address. Those of the second program of a run begin at 2^48, and so on.
    pub begin: u64,
    /// Behind its last one.
    pub end: u64,
    /// One cell for each interval.
    pub cells: Vec<HeatCell>,
}

/// Memory over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    /// Ranges that were used, in the order of addresses.
    pub ranges: Vec<HeatRange>,
    /// When the last interval ends, ns.
    pub end_ns: u64,
    /// Whether there are two memories.
    pub tiers: bool,
}

/// Counts of an interval: accesses; bytes that came to fast and to slow memory, less those that went.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    accesses: u64,
    fast: i64,
    slow: i64,
}

impl Bin {
    fn add(&mut self, other: &Bin) {
        self.accesses += other.accesses;
        self.fast += other.fast;
        self.slow += other.slow;
    }
}

/// The grid in the making.
pub struct Grid {
    /// Bytes of a range, as a power of two.
    shift: u32,
    /// An interval, ns.
    width: u64,
    /// Numbers of ranges, each with its place.
    places: HashMap<u64, usize>,
    /// Number of the range at each place.
    numbers: Vec<u64>,
    /// [`INTERVALS`] of each.
    bins: Vec<Bin>,
    /// Numbers and places that were asked for lately.
    recent: [(u64, usize); RECENT],
}

impl Grid {
    /// For pages of `page_bytes` bytes.
    pub fn new(page_bytes: u64) -> Grid {
        Grid {
            shift: page_bytes.max(1).ilog2().max(FINEST),
            width: FIRST_NS,
            places: HashMap::new(),
            numbers: Vec::new(),
            bins: Vec::new(),
            recent: [(u64::MAX, 0); RECENT],
        }
    }

    /// An access at a time.
    pub fn access(&mut self, now: u64, address: u64) {
        self.bin(now, address).accesses += 1;
    }

    /// `bytes` bytes more, or less, are in fast or in slow memory from `now` on.
    pub fn place(&mut self, now: u64, address: u64, fast: bool, bytes: i64) {
        let bin = self.bin(now, address);
        match fast {
            true => bin.fast += bytes,
            false => bin.slow += bytes,
        }
    }

    #[inline]
    fn bin(&mut self, now: u64, address: u64) -> &mut Bin {
        while now >= self.width * INTERVALS as u64 {
            self.widen();
        }
        let interval = (now / self.width) as usize;
        let place = self.range(address);
        &mut self.bins[place * INTERVALS + interval]
    }

    #[inline]
    fn range(&mut self, address: u64) -> usize {
        let number = address >> self.shift;
        let recent = &mut self.recent[number as usize % RECENT];
        if recent.0 == number {
            return recent.1;
        }
        let next = self.numbers.len();
        let place = *self.places.entry(number).or_insert(next);
        *recent = (number, place);
        if place < next {
            return place;
        }
        self.numbers.push(number);
        self.bins
            .resize(self.bins.len() + INTERVALS, Bin::default());
        if self.numbers.len() <= MOST_RANGES {
            return place;
        }
        while self.numbers.len() > MOST_RANGES {
            self.coarsen();
        }
        self.range(address)
    }

    /// Two intervals become one.
    #[cold]
    fn widen(&mut self) {
        self.width *= 2;
        for bins in self.bins.chunks_mut(INTERVALS) {
            for at in 0..INTERVALS {
                let sum = match 2 * at < INTERVALS {
                    true => {
                        let mut sum = bins[2 * at];
                        sum.add(&bins[2 * at + 1]);
                        sum
                    }
                    false => Bin::default(),
                };
                bins[at] = sum;
            }
        }
    }

    /// Two ranges become one, where both are there.
    #[cold]
    fn coarsen(&mut self) {
        let mut coarse = Grid {
            shift: self.shift + 1,
            places: HashMap::new(),
            numbers: Vec::new(),
            bins: Vec::new(),
            recent: [(u64::MAX, 0); RECENT],
            ..*self
        };
        for (&number, bins) in self.numbers.iter().zip(self.bins.chunks(INTERVALS)) {
            let next = coarse.numbers.len();
            let place = *coarse.places.entry(number >> 1).or_insert(next);
            if place == next {
                coarse.numbers.push(number >> 1);
                coarse
                    .bins
                    .resize(coarse.bins.len() + INTERVALS, Bin::default());
            }
            let sums = &mut coarse.bins[place * INTERVALS..];
            sums.iter_mut()
                .zip(bins)
                .for_each(|(sum, bin)| sum.add(bin));
        }
        *self = coarse;
    }

    /// The heat of a run that ended at `end`. Times grow by the factor.
    pub fn heat(&self, end: u64, factor: u64, tiers: bool) -> Heat {
        let intervals = ((end / self.width) as usize + 1).min(INTERVALS);
        let mut order: Vec<usize> = (0..self.numbers.len()).collect();
        order.sort_by_key(|&place| self.numbers[place]);
        let range = |place: usize| {
            let begin = self.numbers[place] << self.shift;
            let (mut fast, mut slow) = (0, 0);
            let bins = &self.bins[place * INTERVALS..][..intervals];
            let cells = bins.iter().map(|bin| {
                fast += bin.fast;
                slow += bin.slow;
                HeatCell {
                    accesses: bin.accesses,
                    fast_bytes: fast.max(0) as u64,
                    slow_bytes: slow.max(0) as u64,
                }
            });
            HeatRange {
                begin,
                end: begin.saturating_add(1 << self.shift),
                cells: cells.collect(),
            }
        };
        Heat {
            ranges: order.into_iter().map(range).collect(),
            end_ns: intervals as u64 * self.width * factor,
            tiers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However much there is, the grid has its size, every access is in it once, in the range and interval that it was in.
        #[test]
        fn all_accesses_are_counted_where_they_were(
            steps in prop::collection::vec((0u64..20_000, prop_oneof![0u64..1 << 16, 0u64..1 << 40]), 1..2000)
        ) {
            let mut grid = Grid::new(4096);
            let mut now = 0;
            let mut all = Vec::new();
            for (later, address) in steps {
                now += later;
                grid.access(now, address);
                all.push((now, address));
            }
            let heat = grid.heat(now, 1, true);
            prop_assert!(heat.ranges.len() <= MOST_RANGES);
            prop_assert!(heat.ranges.windows(2).all(|w| w[0].end <= w[1].begin));
            let width = heat.end_ns / heat.ranges[0].cells.len() as u64;
            for range in &heat.ranges {
                for (number, cell) in range.cells.iter().enumerate() {
                    let here = |(at, address): &&(u64, u64)| {
                        (range.begin..range.end).contains(address) && at / width == number as u64
                    };
                    prop_assert_eq!(cell.accesses, all.iter().filter(here).count() as u64);
                }
            }
        }
    }

    #[test]
    fn pages_are_where_they_are_until_they_move() {
        let mut grid = Grid::new(4096);
        grid.place(0, 0x1000, true, 4096);
        grid.access(1_500, 0x1000);
        grid.place(2_000, 0x1000, true, -4096);
        grid.place(2_000, 0x1000, false, 4096);
        let heat = grid.heat(3_500, 10, true);
        let cells = &heat.ranges[0].cells;
        let bytes: Vec<(u64, u64)> = cells.iter().map(|c| (c.fast_bytes, c.slow_bytes)).collect();
        assert_eq!(bytes, [(4096, 0), (4096, 0), (0, 4096), (0, 4096)]);
        assert_eq!(cells[1].accesses, 1);
        assert_eq!(
            (heat.ranges[0].begin, heat.ranges[0].end, heat.end_ns),
            (0x1000, 0x2000, 40_000)
        );
    }
}
