//! What a program accesses, interval by interval of its run: from it one tells the phases of the run.

use crate::error::TraceError;
use crate::format::Event;
use crate::listener::Listener;
use crate::program::{RunPlace, Step, Walk};
use crate::reader::TraceReader;
use crate::shared::Alone;
use crate::spaces::Spaces;
use std::collections::HashMap;
use varve_access::{Kind, Op};

/// The most intervals of a run.
const MOST: u64 = 128;
/// The least accesses of an interval, on average.
const LEAST: u64 = 16 << 10;
/// Bytes of a region, whose accesses are counted together: 16 pages.
const REGION_SHIFT: u32 = 16;
const PAGE_SHIFT: u32 = 12;
/// The most regions of an [`Interval`]. Larger ones take their place where a program has more.
const REGIONS: usize = 1024;

/// An interval of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Pages of 4 KiB that are accessed for the first time.
    pub new_pages: u64,
    /// Accesses.
    pub accesses: u64,
    /// Loads and stores of each region, by number of the region: those that have any.
    pub regions: Vec<(u32, [u32; 2])>,
}

/// The intervals of a run, each with about as many accesses as the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunIntervals {
    /// In order.
    pub all: Vec<Interval>,
    /// Where each of them begins.
    pub begins: Vec<RunPlace>,
    /// Regions of memory that are accessed.
    pub regions: usize,
}

impl RunIntervals {
    /// Reads a trace. It has no intervals if it is a part of a run, is not whole, or is too short.
    ///
    /// # Errors
    /// A block is damaged.
    pub fn read(reader: &TraceReader) -> Result<RunIntervals, TraceError> {
        let ops = reader.end().map_or(0, |end| end.ops);
        let count = (ops / LEAST).min(MOST);
        if reader.header().part.is_some() || count < MOST / 4 {
            return Ok(RunIntervals::default());
        }
        let mut counter = Counter {
            each: ops.div_ceil(count),
            ..Counter::default()
        };
        let mut walk = Walk::new(reader, 0);
        let mut spaces = Spaces::new(walk.threads());
        let mut done = vec![0; walk.threads()];
        walk.each(&mut Alone::new(reader), |thread, step| match step {
            Step::Ops(ops, _) => {
                let place = RunPlace {
                    thread,
                    ops: done[thread],
                };
                counter.begin(place, ops.len() as u64);
                done[thread] += ops.len() as u64;
                let mut spaces = spaces.listen(thread, &mut counter);
                spaces.ops(ops, &mut Vec::new());
            }
            Step::Event(event) => spaces
                .listen(thread, &mut counter)
                .event(event, &mut Vec::new()),
            Step::Waits | Step::Ended => {}
        });
        match walk.damage {
            Some(damage) => Err(damage),
            None => Ok(counter.finish()),
        }
    }
}

/// A region of the program's memory.
#[derive(Default)]
struct Region {
    address: u64,
    /// Its pages that were accessed, a bit each.
    pages: u16,
    /// In this interval.
    accesses: [u32; 2],
}

/// Counts while the trace is read.
#[derive(Default)]
struct Counter {
    /// Ops of an interval.
    each: u64,
    /// Ops of the last one.
    ops: u64,
    intervals: RunIntervals,
    /// The number of each region.
    numbers: HashMap<u64, u32>,
    regions: Vec<Region>,
    /// Those with accesses in this interval.
    current: Vec<u32>,
    /// The region of the access before.
    last: (u64, u32),
}

impl Counter {
    /// Ops come, from this place on.
    fn begin(&mut self, place: RunPlace, ops: u64) {
        if self.intervals.all.is_empty() || self.ops >= self.each {
            self.end();
            self.intervals.all.push(Interval::default());
            self.intervals.begins.push(place);
            self.ops = 0;
        }
        self.ops += ops;
    }

    /// The last interval is over.
    fn end(&mut self) {
        let Some(interval) = self.intervals.all.last_mut() else {
            return;
        };
        for number in self.current.drain(..) {
            let accesses = std::mem::take(&mut self.regions[number as usize].accesses);
            interval.regions.push((number, accesses));
        }
    }

    fn access(&mut self, op: &Op) {
        let address = op.addr >> REGION_SHIFT;
        if self.regions.is_empty() || self.last.0 != address {
            let next = self.regions.len() as u32;
            let number = *self.numbers.entry(address).or_insert(next);
            if number == next {
                self.regions.push(Region {
                    address,
                    ..Region::default()
                });
            }
            self.last = (address, number);
        }
        let (region, interval) = (
            &mut self.regions[self.last.1 as usize],
            self.intervals.all.last_mut().expect("begun"),
        );
        let page = 1u16 << (op.addr >> PAGE_SHIFT & 15);
        if region.pages & page == 0 {
            region.pages |= page;
            interval.new_pages += 1;
        }
        if region.accesses == [0; 2] {
            self.current.push(self.last.1);
        }
        let stores = matches!(op.kind, Kind::Write | Kind::NtWrite);
        let count = &mut region.accesses[usize::from(stores)];
        *count = count.saturating_add(1);
        interval.accesses += 1;
    }

    /// The intervals, with regions that are few enough: neighbours are one.
    fn finish(mut self) -> RunIntervals {
        self.end();
        let mut addresses: Vec<u64> = self.regions.iter().map(|region| region.address).collect();
        let of = loop {
            let mut all = addresses.clone();
            all.sort_unstable();
            all.dedup();
            if all.len() <= REGIONS {
                self.intervals.regions = all.len();
                let number = |address: &u64| all.partition_point(|other| other < address) as u32;
                break addresses.iter().map(number).collect::<Vec<u32>>();
            }
            addresses.iter_mut().for_each(|address| *address >>= 1);
        };
        for interval in &mut self.intervals.all {
            let mut merged = vec![[0u32; 2]; self.intervals.regions];
            for (region, accesses) in interval.regions.drain(..) {
                let merged = &mut merged[of[region as usize] as usize];
                for (sum, count) in merged.iter_mut().zip(accesses) {
                    *sum = sum.saturating_add(count);
                }
            }
            let accessed = (0..)
                .zip(merged)
                .filter(|(_, accesses)| *accesses != [0; 2]);
            interval.regions = accessed.collect();
        }
        self.intervals
    }
}

impl Listener for Counter {
    fn ops(&mut self, ops: &[Op], _out: &mut Vec<Op>) {
        for op in ops.iter().filter(|op| op.kind.is_access()) {
            self.access(op);
        }
    }

    fn event(&mut self, _event: &Event, _before: &mut Vec<Op>) {}
}
