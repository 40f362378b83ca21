//! IS: ranks integer keys by buckets (NAS report RNR-94-007, section 2.5, and the bucketed variant of NPB 3).
//!
//! | array | bytes | accessed, per iteration |
//! |---|---|---|
//! | `is.keys` | key × keys | read twice, in runs |
//! | `is.bucketed` | key × keys | written at 1024 places at once, read in runs |
//! | `is.ranks` | key × largest key | cleared, counted up at random within a bucket's part, summed |
//! | `is.counts` | 4 × 1024 × threads | read once by every thread |
//! | `is.pointers` | 4 × 1024 × threads | written with the above |
//!
//! A key has 4 bytes, in classes D and E 8. A thread's own 4 KiB of bucket counters and 4 KiB of pointers stay in its
//! first cache while it walks its keys, and are left to the instruction counts there.
//!
//! Without data the keys are made again by the generator wherever their bucket matters; where a key is read back from
//! `is.bucketed`, its place within the bucket's part of `is.ranks` is a hash and not the key (the only
//! addresses that differ from those of the run with data, and by less than the part).

use varve_access::{Op, Region};

use super::lcg::{Lcg, SEED};
use super::setup::{Class, NasSetup};
use crate::init::{By, FirstTouch, chunk};
use crate::layout::{Array, Layout};
use crate::loops::{Loops, Stage, StagedKernel, Work};
use varve_spec::Error;

mod steps;

/// Sizes of NPB 3.4: base-2 logarithms of keys, of the largest key and of the buckets; iterations are 10.
fn sizes(class: Class) -> (u32, u32, u32) {
    match class {
        Class::S => (16, 11, 9),
        Class::W => (20, 16, 10),
        Class::A => (23, 19, 10),
        Class::B => (25, 21, 10),
        Class::C => (27, 23, 10),
        Class::D => (31, 27, 10),
        Class::E => (35, 31, 10),
    }
}

/// Iterations of every class.
const ITERATIONS: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Count,
    Point,
    Place,
    Rank,
}

/// The kernel, for [`Loops`].
pub struct Is {
    keys: u64,
    largest: u64,
    /// Base-2 logarithm of the keys in one bucket's part.
    shift: u32,
    buckets: u64,
    iterations: u64,
    iteration: u64,
    threads: usize,
    at: At,
    regions: Vec<Region>,
    key_array: Array,
    bucketed_array: Array,
    rank_array: Array,
    counts_array: Array,
    pointers_array: Array,
    /// By thread and bucket.
    counts: Vec<u64>,
    /// By thread and bucket: where the thread puts its next key.
    pointers: Vec<u64>,
    start: Lcg,
    /// Per thread: the generator, and the number of the key that it makes next.
    generators: Vec<(Lcg, u64)>,
    data: Option<Data>,
}

struct Data {
    keys: Vec<u32>,
    bucketed: Vec<u32>,
    ranks: Vec<u32>,
}

/// Makes the program.
///
/// # Errors
/// A size out of range, or data that do not fit.
pub fn program(setup: &NasSetup) -> Result<Loops<Is>, Error> {
    let (log_keys, log_largest, log_buckets) = sizes(setup.class);
    let keys = setup.size.unwrap_or(1 << log_keys) / setup.scale;
    setup.check_size("is", keys, 64, 1 << 35)?;
    // Another number of keys keeps the class's keys per value.
    let log_largest = keys.ilog2().saturating_sub(log_keys - log_largest).max(4);
    let log_buckets = log_buckets.min(log_largest);
    let (largest, buckets) = (1u64 << log_largest, 1u64 << log_buckets);
    let key = if setup.class >= Class::D { 8 } else { 4 };
    let mut layout = Layout::new();
    let threads = setup.threads as u64;
    let key_array = layout.array("is.keys", keys, key);
    let bucketed_array = layout.array("is.bucketed", keys, key);
    let rank_array = layout.array("is.ranks", largest, key);
    let counts_array = layout.array("is.counts", buckets * threads, 4);
    let pointers_array = layout.array("is.pointers", buckets * threads, 4);
    // The order of the benchmark: keys are made first; the others are cleared before the timed loop.
    let touched = [
        key_array,
        counts_array,
        pointers_array,
        bucketed_array,
        rank_array,
    ];
    let init = FirstTouch::new(
        FirstTouch::ranges(&touched),
        setup.touch,
        By::All,
        setup.threads,
    );
    let real = setup.real("is", 4 * (2 * keys + largest))? && keys < 1 << 32;
    let mut kernel = Is {
        keys,
        largest,
        shift: log_largest - log_buckets,
        buckets,
        iterations: setup.iterations.unwrap_or(ITERATIONS),
        iteration: 0,
        threads: setup.threads,
        at: At::Start,
        regions: layout.regions().to_vec(),
        key_array,
        bucketed_array,
        rank_array,
        counts_array,
        pointers_array,
        counts: vec![0; (buckets * threads) as usize],
        pointers: vec![0; (buckets * threads) as usize],
        start: setup.generator(SEED),
        generators: vec![(setup.generator(SEED), 0); setup.threads],
        data: None,
    };
    if real {
        let mut generator = kernel.start;
        let keys = (0..keys)
            .map(|_| kernel.random_key(&mut generator) as u32)
            .collect();
        let bucketed = vec![0; kernel.keys as usize];
        let ranks = vec![0; largest as usize];
        kernel.data = Some(Data {
            keys,
            bucketed,
            ranks,
        });
    }
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

impl Is {
    /// A key as the benchmark draws it: the mean of four uniform numbers.
    #[inline]
    fn random_key(&self, generator: &mut Lcg) -> u64 {
        let sum = generator.unit() + generator.unit() + generator.unit() + generator.unit();
        ((self.largest / 4) as f64 * sum) as u64
    }

    /// Key number `index`, which the thread's generator is at; two keys change with each iteration.
    #[inline]
    fn remade_key(&mut self, thread: usize, index: u64) -> u64 {
        let (mut generator, next) = self.generators[thread];
        if next != index {
            generator = self.start.skip(4 * index);
        }
        let key = self.random_key(&mut generator);
        self.generators[thread] = (generator, index + 1);
        let mask = self.largest - 1;
        if (1..=self.iteration).contains(&index) {
            index & mask
        } else if (self.iterations + 1..=self.iterations + self.iteration).contains(&index) {
            self.largest.wrapping_sub(index - self.iterations) & mask
        } else {
            key
        }
    }

    #[inline]
    fn key(&mut self, thread: usize, index: u64) -> u64 {
        match &self.data {
            Some(data) => u64::from(data.keys[index as usize]),
            None => self.remade_key(thread, index),
        }
    }

    /// Where the keys of bucket `bucket` lie in `is.bucketed`, once they are counted.
    fn bounds(&self, bucket: u64) -> (u64, u64) {
        // After the keys are placed, the last thread's pointer stands at the end of the bucket.
        let last = (self.threads - 1) as u64 * self.buckets;
        let end = |bucket: u64| self.pointers[(last + bucket) as usize];
        (if bucket == 0 { 0 } else { end(bucket - 1) }, end(bucket))
    }

    fn start_iteration(&mut self) -> Option<Stage> {
        if self.iteration == self.iterations {
            return None;
        }
        self.iteration += 1;
        self.counts.fill(0);
        if let Some(data) = &mut self.data {
            // Two keys are replaced, so that every iteration has work to do (and no compiler leaves it out).
            let (small, large) = (self.iteration, self.largest.wrapping_sub(self.iteration));
            let places = [
                (self.iteration, small),
                (self.iteration + self.iterations, large),
            ];
            for (index, key) in places {
                if let Some(slot) = data.keys.get_mut(index as usize) {
                    *slot = (key & (self.largest - 1)) as u32;
                }
            }
        }
        self.at = At::Count;
        Some(Stage::parallel(self.keys).starts_iteration())
    }

    /// How many keys are smaller than `key`, as ranked last; `None` without data.
    pub fn rank(&self, key: u32) -> Option<u32> {
        let data = self.data.as_ref()?;
        Some(if key == 0 {
            0
        } else {
            data.ranks[key as usize - 1]
        })
    }

    /// Puts every key at its rank and checks whether the result is sorted; `None` without data.
    pub fn verify(&self) -> Option<bool> {
        let data = self.data.as_ref()?;
        let mut ends = data.ranks.clone();
        let mut sorted = vec![u32::MAX; data.keys.len()];
        for &key in &data.keys {
            let end = ends.get_mut(key as usize)?;
            let Some(place) = end.checked_sub(1) else {
                return Some(false);
            };
            *end = place;
            sorted[place as usize] = key;
        }
        Some(sorted.windows(2).all(|pair| pair[0] <= pair[1]) && sorted.last() != Some(&u32::MAX))
    }
}

impl StagedKernel for Is {
    fn name(&self) -> String {
        "is".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        match self.at {
            At::Start | At::Rank => self.start_iteration(),
            At::Count => {
                self.at = At::Point;
                // Every thread sums the tables of all: one share of `threads` items each.
                Some(Stage::parallel((self.threads * self.threads) as u64))
            }
            At::Point => {
                self.at = At::Place;
                Some(Stage::parallel(self.keys))
            }
            At::Place => {
                self.at = At::Rank;
                Some(Stage::parallel(self.buckets))
            }
        }
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        match self.at {
            At::Start => work.at = work.end,
            At::Count => self.step_count(thread, work, out),
            At::Point => {
                let (first, _) = chunk((self.threads * self.threads) as u64, thread, self.threads);
                let mut own = Work {
                    at: work.at - first,
                    end: self.threads as u64,
                    within: 0,
                };
                self.step_point(thread, &mut own, out);
                work.at = first + own.at;
            }
            At::Place => self.step_place(thread, work, out),
            At::Rank => self.step_rank(work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let Some(sorted) = self.verify() else {
            return Vec::new();
        };
        vec![
            ("keys".into(), self.keys.to_string()),
            ("sorted".into(), sorted.to_string()),
        ]
    }
}
