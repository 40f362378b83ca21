//! What a program accesses, interval by interval of its run: from it one tells the phases of the run.

use crate::error::TraceError;
use crate::format::{Event, Part};
use crate::listener::Listener;
use crate::program::{Measured, RunPlace, Step, Walk, equal, stretches};
use crate::reader::TraceReader;
use crate::shared::Alone;
use crate::spaces::Spaces;
use crate::writer::End;
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
    /// Reads a trace. It has no intervals if it is a window that was chosen, is not whole, or is too short. Where there are windows
    /// all over the run, an interval has what was accessed in the next one.
    ///
    /// # Errors
    /// A block is damaged.
    pub fn read(reader: &TraceReader) -> Result<RunIntervals, TraceError> {
        let Some(end) = reader.end() else {
            return Ok(RunIntervals::default());
        };
        let ops = (end.ops - end.touches) as f64;
        let by_instruction = ops / (end.instructions as f64).max(1.0);
        let sampled = match reader.part() {
            Some(Part::Window) => return Ok(RunIntervals::default()),
            Some(Part::Sample { .. } | Part::Thinning) => true,
            None => false,
        };
        let whole = match sampled {
            true => ops + end.skipped_instructions as f64 * by_instruction,
            false => ops,
        };
        let count = (whole / LEAST as f64).min(MOST as f64).floor();
        if count < (MOST / 4) as f64 {
            return Ok(RunIntervals::default());
        }
        let mut counter = Counter {
            each: (whole / count).ceil() as u64,
            ..Counter::default()
        };
        let mut walk = Walk::new(reader, 0);
        let mut spaces = Spaces::of(reader, walk.threads());
        let mut done = vec![0; walk.threads()];
        walk.each(&mut Alone::new(reader), |thread, step| match step {
            Step::Ops(ops, _) => {
                let work = ops.iter().filter(|op| op.kind != Kind::Touch);
                counter.begin(&done, work.count() as u64);
                done[thread] += ops.len() as u64;
                let mut spaces = spaces.listen(thread, &mut counter);
                spaces.ops(ops, &mut Vec::new());
            }
            Step::Event(event) => {
                if let Event::Window { number, .. } = event {
                    counter.window(*number);
                }
                let mut spaces = spaces.listen(thread, &mut counter);
                spaces.event(event, &mut Vec::new());
            }
            Step::Waits | Step::Ended => {}
        });
        match walk.damage {
            Some(damage) => Err(damage),
            None => {
                let (windows, own) = (counter.windows.clone(), counter.own.clone());
                let intervals = counter.finish();
                Ok(match sampled {
                    true => {
                        let weights = weights(&windows, &own, end, by_instruction);
                        intervals.evenly(&weights, count as usize)
                    }
                    false => intervals,
                })
            }
        }
    }

    /// As many intervals that stand for equal parts of the run, where these stand for parts of such weights.
    fn evenly(self, weights: &[f64], count: usize) -> RunIntervals {
        let whole: f64 = weights.iter().sum();
        let mut even = RunIntervals {
            regions: self.regions,
            ..RunIntervals::default()
        };
        let mut before = 0.0;
        // What is too short for an interval of its own is a part of the next.
        let mut sum = Interval::default();
        let mut begin = None;
        for ((interval, place), weight) in self.all.into_iter().zip(self.begins).zip(weights) {
            let place = begin.get_or_insert(place).clone();
            let number = |weight: f64| (weight / whole * count as f64).round() as usize;
            let times = number(before + weight) - number(before);
            before += weight;
            sum.add(interval, *weight / whole);
            if times == 0 {
                continue;
            }
            let mut each = std::mem::take(&mut sum).scaled();
            each.new_pages = each.new_pages.div_ceil(times as u64);
            for _ in 0..times {
                even.all.push(each.clone());
                even.begins.push(place.clone());
            }
            begin = None;
        }
        even
    }
}

/// Accesses of an interval of equal ones.
const EQUAL: f64 = 1e6;

impl Interval {
    /// Adds another one, whose accesses count by this weight.
    fn add(&mut self, other: Interval, weight: f64) {
        let times = weight * 1e9 / (other.accesses.max(1)) as f64;
        self.new_pages += other.new_pages;
        for (region, accesses) in other.regions {
            let accesses = accesses.map(|count| (f64::from(count) * times) as u32);
            match self.regions.binary_search_by_key(&region, |of| of.0) {
                Ok(at) => {
                    let sum = self.regions[at].1.iter_mut().zip(accesses);
                    sum.for_each(|(sum, count)| *sum = sum.saturating_add(count));
                }
                Err(at) => self.regions.insert(at, (region, accesses)),
            }
        }
    }

    /// The same with as many accesses as all others.
    fn scaled(mut self) -> Interval {
        let all = self.regions.iter().flat_map(|(_, accesses)| accesses);
        let all: f64 = all.map(|count| f64::from(*count)).sum();
        let scaled = |count: u32| (f64::from(count) / all.max(1.0) * EQUAL).round() as u32;
        for (_, accesses) in &mut self.regions {
            *accesses = accesses.map(scaled);
        }
        self.accesses = EQUAL as u64;
        self
    }
}

/// How much of the run each interval stands for, in ops: `own` of them, and what was not recorded near its window.
fn weights(windows: &[u32], own: &[u64], end: &End, by_instruction: f64) -> Vec<f64> {
    let measured: Vec<Measured> = (0..)
        .zip(windows)
        .map(|(phase, window)| Measured {
            phase,
            window: *window,
            part: 0,
        })
        .collect();
    let skipped = end.skipped_instructions;
    let shares = match end.windows.is_empty() {
        true => equal(windows.last().copied().unwrap_or(0), skipped),
        false => end.windows.clone(),
    };
    let stretches = stretches(&measured, &shares, skipped);
    let weight =
        |(own, of): (&u64, &varve_access::Stretch)| *own as f64 + of.unseen as f64 * by_instruction;
    own.iter().zip(&stretches).map(weight).collect()
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
    /// Ops of each one, and the window that it is in.
    own: Vec<u64>,
    windows: Vec<u32>,
    /// The window that is open.
    window: u32,
    /// The last interval is over, and the next has not begun.
    between: bool,
    /// Pages that were accessed for the first time, of the interval that is not over.
    new_pages: u64,
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
    /// Ops come, after what each thread has done.
    fn begin(&mut self, done: &[u64], ops: u64) {
        let full = self.own.last().is_none_or(|own| *own >= self.each);
        let other = self.windows.last().is_some_and(|of| *of != self.window);
        // A window of a sample is one interval.
        if other || full && self.window == 0 {
            if !std::mem::take(&mut self.between) {
                self.end();
            }
            self.intervals.all.push(Interval::default());
            self.intervals.begins.push(RunPlace(done.to_vec()));
            self.own.push(0);
            self.windows.push(self.window);
        }
        if let Some(own) = self.own.last_mut() {
            *own += ops;
        }
    }

    /// A window opens, if it is not open.
    fn window(&mut self, number: u32) {
        if number > self.window {
            self.window = number;
            self.end();
            self.between = true;
        }
    }

    /// The last interval is over.
    fn end(&mut self) {
        let Some(interval) = self.intervals.all.last_mut() else {
            return;
        };
        interval.new_pages = std::mem::take(&mut self.new_pages);
        for number in self.current.drain(..) {
            let accesses = std::mem::take(&mut self.regions[number as usize].accesses);
            interval.regions.push((number, accesses));
        }
    }

    /// A page is accessed, maybe for the first time. Returns its region.
    fn page(&mut self, address: u64) -> usize {
        let page = 1u16 << (address >> PAGE_SHIFT & 15);
        let address = address >> REGION_SHIFT;
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
        let number = self.last.1 as usize;
        let region = &mut self.regions[number];
        if region.pages & page == 0 {
            region.pages |= page;
            self.new_pages += 1;
        }
        number
    }

    fn access(&mut self, op: &Op) {
        let number = self.page(op.addr);
        let (region, interval) = (
            &mut self.regions[number],
            self.intervals.all.last_mut().expect("begun"),
        );
        if region.accesses == [0; 2] {
            self.current.push(number as u32);
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
        for op in ops {
            match op.kind {
                // It was accessed while it was not recorded.
                Kind::Touch => _ = self.page(op.addr),
                kind if kind.is_access() => self.access(op),
                _ => {}
            }
        }
    }

    fn event(&mut self, event: &Event, _before: &mut Vec<Op>) {
        if let Event::Touched { addr, bytes } = *event {
            for page in (addr..addr + bytes).step_by(1 << PAGE_SHIFT) {
                self.page(page);
            }
        }
    }
}
