//! The benchmark as a program: threads with home warehouses, running the mix.

use varve_access::{Op, Program, Region};

use super::check::check;
use super::data::TpccDatabase;
use super::db::Db;
use super::tables::Tables;
use super::transactions::{CLASSES, PERCENT, Worker};
use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch, chunk};
use crate::layout::Layout;
use crate::limit::{Limit, TIME};
use varve_access::random::Rng;
use varve_spec::{Error, Param, Values, Want};

/// Most warehouses: about 2.2 MB of the host's memory each.
const WAREHOUSES: u64 = 4000;

/// Shortest transaction in nanoseconds, to find how many may fit in a given time: a fifth of Silo's mean at its best
/// (SOSP 2013: about 700,000 transactions a second on 32 cores, 46 us each).
const SHORTEST: u64 = 9_000;

/// Up to this many warehouses the answers include the consistency check of every order.
const CHECKED: usize = 64;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "tpcc",
    about: "TPC-C-like transactions on an in-memory database with optimistic concurrency (Silo)",
    params: &[
        Param::scaled("warehouses", Want::COUNT, "1100", "warehouses, 91 MB each"),
        Param::new(
            "transactions",
            Want::COUNT,
            "100k",
            "per thread; 0: no such limit",
        ),
        TIME,
    ],
    build: |values| Ok(Box::new(Tpcc::new(values)?)),
};

/// The running benchmark.
pub struct Tpcc {
    layout: Layout,
    /// The database; public to the checks of this module.
    db: Db,
    init: FirstTouch,
    limit: Limit,
    workers: Vec<Worker>,
    committed: [u64; 5],
    rolled_back: u64,
    failure: Option<String>,
}

impl Tpcc {
    /// Reads the parameters of [`ENTRY`].
    ///
    /// # Errors
    /// No warehouse or too many for the host's memory; no limit.
    pub fn new(values: &Values) -> Result<Tpcc, Error> {
        let threads = values.count("threads") as usize;
        let warehouses = values.count_in("warehouses", 1, WAREHOUSES)?;
        let limit = Limit::new(values, "transactions", threads)?;
        let transactions = match values.count("transactions") {
            0 => values.count("time") / SHORTEST + 1,
            transactions => transactions,
        };
        let mut layout = Layout::new();
        let tables = Tables::new(&mut layout, warehouses, threads, transactions);
        let ranges = FirstTouch::ranges(&tables.loaded());
        let seed = values.count("seed");
        let worker = |thread: usize| {
            // A thread owns some warehouses; with fewer warehouses than threads, several share one.
            let (low, high) = match chunk(warehouses, thread, threads) {
                (low, high) if low < high => (low, high),
                _ => (thread as u64 % warehouses, thread as u64 % warehouses + 1),
            };
            let rng = Rng::new(seed, thread as u64);
            Worker {
                rng,
                thread,
                low: low as u32,
                high: high as u32,
            }
        };
        Ok(Tpcc {
            layout,
            db: Db::new(TpccDatabase::new(warehouses, seed), tables),
            init: FirstTouch::new(ranges, values.count("touch"), By::All, threads),
            limit,
            workers: (0..threads).map(worker).collect(),
            committed: [0; 5],
            rolled_back: 0,
            failure: None,
        })
    }

    fn transaction(&mut self, thread: usize, out: &mut Vec<Op>) {
        let mut worker = self.workers[thread];
        let mut draw = worker.rng.below(100);
        let mut class = 0;
        while draw >= PERCENT[class] {
            draw -= PERCENT[class];
            class += 1;
        }
        if self.db.run(class, &mut worker, out) {
            self.committed[class] += 1;
        } else {
            self.rolled_back += 1;
        }
        self.workers[thread] = worker;
        let lacking = self.db.tables.heaps[thread].lacking;
        if lacking > 0 {
            self.failure = Some(format!(
                "tpcc: thread {thread} has no room for {lacking} bytes of new records"
            ));
        }
    }
}

impl Program for Tpcc {
    fn name(&self) -> String {
        "tpcc".into()
    }

    fn threads(&self) -> usize {
        self.workers.len()
    }

    fn regions(&self) -> Vec<Region> {
        self.layout.regions().to_vec()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        if self.init.fill(thread, out) {
            return true;
        }
        if self.failure.is_some() || self.limit.allow(thread, now, 1) == 0 {
            return false;
        }
        self.transaction(thread, out);
        true
    }

    fn classes(&self) -> Vec<String> {
        CLASSES.map(String::from).to_vec()
    }

    fn answers(&self) -> Vec<(String, String)> {
        let mut answers: Vec<(String, String)> = CLASSES
            .iter()
            .zip(self.committed)
            .map(|(name, count)| (name.to_string(), count.to_string()))
            .collect();
        answers.push(("rolled back".into(), self.rolled_back.to_string()));
        let taken: i64 = self.db.data.warehouses.iter().sum();
        answers.push((
            "money taken".into(),
            format!("{}.{:02}", taken / 100, taken % 100),
        ));
        if self.db.data.warehouses.len() <= CHECKED {
            let consistent = check(&self.db).map_or_else(|error| error, |()| "yes".into());
            answers.push(("consistent".into(), consistent));
        }
        answers
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
