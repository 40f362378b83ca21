//! An adversary for placement that counts pages: hot pages that share a bin of the cache although every bin holds
//! equally many pages.
//!
//! Johnny Cache (OSDI 2023, section 6) says that such programs can be made by hand and does not show one; this is ours.
//! The program touches an array of twice the cache, page after page. A policy that puts each new page in a bin with
//! the fewest pages fills every bin once with the first half and once more with the second. Later, the hot pages are
//! the first ones of both halves, so:
//!
//! - where equally loaded bins are taken in a fixed order (a list, as in the paper), page i and page i + capacity
//!   share a bin, and every hot page meets another;
//! - where they are taken at random, a hot page meets another with a chance of `hot`; no program can do better against
//!   that unless it knows where its pages lie.
//!
//! All hot pages together fit the cache as long as `hot` is at most 50 %, so a policy that sees heat can part them.

use varve_access::{Kind, Op};

use crate::entry::WorkloadEntry;
use crate::layout::{Array, Layout};
use crate::limit::TIME;
use crate::steady::{Steady, SteadyKernel};
use varve_access::random::Rng;
use varve_spec::{Error, Param, Values, Want};

/// Bytes of an item.
const ITEM: u64 = 8;

/// Instructions per update; the loop of [`crate::gups`] with a second hot part to choose.
const INSTRUCTIONS: u32 = 30;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "adversary",
    about: "updates to hot pages that share a cache bin although bins hold equally many pages",
    params: &[
        Param::scaled(
            "cache",
            Want::Bytes,
            "48GiB",
            "capacity of the machine's DRAM cache",
        ),
        Param::new(
            "hot",
            Want::Part,
            "25%",
            "share of each half of the array that is hot",
        ),
        Param::new(
            "to_hot",
            Want::Part,
            "90%",
            "share of the updates that go to hot pages",
        ),
        Param::new(
            "updates",
            Want::COUNT,
            "1M",
            "updates per thread; 0: no such limit",
        ),
        TIME,
    ],
    build: |values| Ok(Box::new(Adversary::new(values)?)),
};

/// The running kernel.
pub struct Adversary {
    array: Array,
    /// Items in half of the array, and how many of them are hot.
    half: u64,
    hot: u64,
    to_hot: u64,
    threads: Vec<Rng>,
}

impl Adversary {
    /// Reads the parameters of [`ENTRY`].
    ///
    /// # Errors
    /// A cache of less than a page, or no limit.
    pub fn new(values: &Values) -> Result<Steady<Adversary>, Error> {
        let threads = values.count("threads") as usize;
        let half = values.count_in("cache", 4096, 1 << 45)? / ITEM;
        let mut layout = Layout::new();
        let array = layout.array("array", 2 * half, ITEM);
        let seed = values.count("seed");
        let adversary = Adversary {
            array,
            half,
            hot: ((half as f64 * values.part("hot")) as u64).max(1),
            to_hot: (values.part("to_hot") * (1u64 << 32) as f64) as u64,
            threads: (0..threads)
                .map(|thread| Rng::new(seed, thread as u64))
                .collect(),
        };
        Steady::new(values, layout, &[array], adversary)
    }
}

impl SteadyKernel for Adversary {
    const NAME: &'static str = ENTRY.name;
    const STEPS: &'static str = "updates";

    fn advance(&mut self, thread: usize, _: u64, count: u64, out: &mut Vec<Op>) {
        let mut rng = self.threads[thread];
        let (array, to_hot, hot, half) = (self.array, self.to_hot, self.hot, self.half);
        out.extend((0..count).map(|_| {
            let number = rng.bits();
            let part = if number >> 32 < to_hot { hot } else { half };
            let item = rng.below(part) + (number & 1) * half;
            Op::new(Kind::Update, array.at(item), ITEM as u16, INSTRUCTIONS)
        }));
        self.threads[thread] = rng;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::harness::{self, CallOrder};

    fn make(text: &str) -> Steady<Adversary> {
        Adversary::new(&ENTRY.values(text).unwrap()).unwrap()
    }

    /// The slow obvious placement: bins in a row, each page into the first bin with the fewest pages.
    #[test]
    fn counting_pages_pairs_every_hot_page_with_a_hot_page() {
        let bins = 64;
        let mut adversary = make("cache=256KiB,threads=2,updates=50k");
        let mut bin_of: HashMap<u64, usize> = HashMap::new();
        let mut load = vec![0u32; bins];
        let mut heat: HashMap<u64, u32> = HashMap::new();
        harness::each(&mut adversary, CallOrder::RoundRobin, |_, op| {
            let page = op.addr >> 12;
            if op.kind.is_access() {
                bin_of.entry(page).or_insert_with(|| {
                    let bin = (0..bins).min_by_key(|&bin| load[bin]).unwrap();
                    load[bin] += 1;
                    bin
                });
            }
            if op.kind == Kind::Update {
                *heat.entry(page).or_default() += 1;
            }
        });
        assert!(load.iter().all(|&pages| pages == 2), "page counts are even");
        let mut hot_in_bin = vec![0u32; bins];
        for (page, bin) in &bin_of {
            hot_in_bin[*bin] += u32::from(heat[page] > 1000);
        }
        let pairs = hot_in_bin.iter().filter(|&&hot| hot == 2).count();
        let alone = hot_in_bin.iter().filter(|&&hot| hot == 1).count();
        assert_eq!((pairs, alone), (16, 0));
    }

    #[test]
    fn order_does_not_matter() {
        harness::assert_order_does_not_matter(
            || Box::new(make("cache=256KiB,threads=3,updates=500")),
            1 << 20,
        );
    }
}
