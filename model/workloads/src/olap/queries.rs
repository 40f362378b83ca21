//! Both queries, pass after pass, by several threads that share the rows of each table equally.
//!
//! ```text
//! Q1   lineitem  shipped by a day                        -> sums of each thread by flag and status, in the first cache
//! Q3   customer  of a segment                            -> a bit for each
//!      orders    before a day, of such customers         -> hash table by order
//!      lineitem  shipped after the day, order in there   -> revenue, in the entry of the order
//!      entries                                           -> the ten of most revenue
//! ```
//!
//! | array | bytes of a row | accessed |
//! |---|---|---|
//! | `lineitem.shipped`, `.flag`, `.status` | 4, 1, 1 | in runs; the last two by Q1 |
//! | `lineitem.quantity`, `.price`, `.discount`, `.tax` | 8 each | in runs by Q1; price and discount by Q3 where an order is found |
//! | `lineitem.order` | 8 | in runs, where a line is shipped late enough |
//! | `orders.day`, `orders.customer` | 4, 8 | in runs; customers where the day is early enough |
//! | `customer.segment`, `customer.bits` | 1, 1/8 | in runs; bits at random |
//! | `join.directory` | 8 | at random, once for each order that passes and each line |
//! | `join.entries` | 32 | written in runs, read and added to at random, after the directory |
//!
//! Columns are not compressed. A line of memory of a column is read when one of its rows is needed. Engines differ most
//! in the instructions for a row; the counts here are those of compiled loops without vectors (an assumption).

use varve_access::{Kind, Op, Region};

use super::data::{OlapTables, PATTERN, Q1_DAY, Q3_DAY, Q3_SEGMENT};
use super::groups::{GROUPS, Groups, Sums, group};
use super::table::{NONE, Table, buckets};
use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch, chunk};
use crate::layout::{Array, Layout};
use crate::loops::{Loops, Stage, StagedKernel, Work, run};
use varve_spec::{Error, Param, Values, Want};

/// Rows of a step.
const BLOCK: u64 = 64;
/// Orders that Q3 returns.
const BEST: usize = 10;
/// Bytes of an entry: order, next, day and priority, revenue.
const ENTRY_BYTES: u64 = 32;

// Instructions, counted on the loops as a compiler for x86-64 emits them at -O2.
/// Q1, for a row: load the date, compare, branch, advance, compare, branch.
const PER_DATE: u32 = 6;
/// More for one that passes: load six columns, find the group (two loads, shift, add, shift, add), two subtractions or
/// additions and two multiplications, a load, an add and a store for six sums (one of them of two words).
const PER_SUMMED: u32 = 44;
/// Q3, for an order or a line whose key is hashed: two multiplications, three shifts, three exclusive ors, a mask.
const PER_HASH: u32 = 9;
/// To test a customer's bit.
const PER_BIT: u32 = 5;
/// To put an order into the table: compare-and-swap of the chain, four stores, a bump of the next entry.
const PER_INSERT: u32 = 12;
/// For an entry of a chain: load key, compare, branch, load next.
const PER_ENTRY: u32 = 4;
/// To add a line's revenue: subtract, multiply, an atomic add.
const PER_REVENUE: u32 = 6;
/// For a customer: load, compare, set the bit, advance.
const PER_CUSTOMER: u32 = 5;
/// For an entry that is compared with the tenth best.
const PER_BEST: u32 = 5;

/// Most lines: 32 bytes of the host's memory for each order.
const LINES: u64 = 1 << 30;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "olap",
    about: "analytical queries on columns: a scan with sums (TPC-H Q1) and a hash join (Q3)",
    params: &[
        Param::scaled(
            "lines",
            Want::COUNT,
            "60M",
            "rows of the largest table, 62 bytes each with their part of the others; TPC-H's scale factor 10",
        ),
        Param::new(
            "passes",
            Want::COUNT,
            "12",
            "times that both queries are answered",
        ),
    ],
    build: |values| Ok(Box::new(program(values)?)),
};

/// The stages of a pass, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Sum,
    Customers,
    Clear,
    Orders,
    Probe,
    Best,
}

const STAGES: [At; 6] = [
    At::Sum,
    At::Customers,
    At::Clear,
    At::Orders,
    At::Probe,
    At::Best,
];

struct Places {
    shipped: Array,
    flag: Array,
    status: Array,
    /// Quantity, price, discount, tax.
    amounts: [Array; 4],
    order: Array,
    day: Array,
    customer: Array,
    segment: Array,
    bits: Array,
    directory: Array,
    entries: Array,
    /// A line for each group and thread.
    sums: Array,
}

/// The kernel, for [`Loops`].
pub struct Queries {
    data: OlapTables,
    regions: Vec<Region>,
    places: Places,
    threads: usize,
    passes: u64,
    begun: u64,
    /// Stages begun of the pass.
    stage: usize,
    /// Each thread's groups, then entries that it has made, then orders of most revenue.
    groups: Vec<Groups>,
    made: Vec<u64>,
    best: Vec<Vec<(u64, u64)>>,
    bits: Vec<u64>,
    table: Table,
}

/// Makes the program.
///
/// # Errors
/// A size out of range.
pub fn program(values: &Values) -> Result<Loops<Queries>, Error> {
    let lines = values.count_in("lines", PATTERN, LINES)?;
    let passes = values.count_in("passes", 1, u64::MAX)?;
    let threads = values.count("threads") as usize;
    let data = OlapTables::new(lines, values.count("seed"));
    let mut layout = Layout::new();
    let (lines, orders, customers) = (data.lines, data.orders(), data.customers());
    let places = Places {
        shipped: layout.array("lineitem.shipped", lines, 4),
        flag: layout.array("lineitem.flag", lines, 1),
        status: layout.array("lineitem.status", lines, 1),
        amounts: ["quantity", "price", "discount", "tax"]
            .map(|name| layout.array(&format!("lineitem.{name}"), lines, 8)),
        order: layout.array("lineitem.order", lines, 8),
        day: layout.array("orders.day", orders, 4),
        customer: layout.array("orders.customer", orders, 8),
        segment: layout.array("customer.segment", customers, 1),
        bits: layout.array("customer.bits", customers.div_ceil(64), 8),
        directory: layout.array("join.directory", buckets(orders), 8),
        entries: layout.array("join.entries", orders, ENTRY_BYTES),
        sums: layout.array("q1.sums", (threads * GROUPS) as u64, 64),
    };
    let p = &places;
    // Entries are touched as they are made.
    let mut loaded = vec![p.shipped, p.flag, p.status, p.order, p.day, p.customer];
    loaded.extend(p.amounts);
    loaded.extend([p.segment, p.bits, p.directory, p.sums]);
    let touch = values.count_in("touch", 64, u64::MAX)?;
    let init = FirstTouch::new(FirstTouch::ranges(&loaded), touch, By::All, threads);
    let kernel = Queries {
        regions: layout.regions().to_vec(),
        threads,
        passes,
        begun: 0,
        stage: STAGES.len(),
        groups: vec![[Sums::default(); GROUPS]; threads],
        made: vec![0; threads],
        best: vec![Vec::new(); threads],
        bits: vec![0; places.bits.len as usize],
        table: Table::new(orders),
        places,
        data,
    };
    Ok(Loops::new(kernel, Some(init), threads))
}

/// Appends a read of every line of memory in which `wanted` rows of a column are, `low..high` being the rows of a block.
fn column(out: &mut Vec<Op>, array: Array, low: u64, wanted: u64, high: u64) {
    let per_line = 64 / array.size;
    let mut at = low;
    while at < high {
        let end = ((at / per_line + 1) * per_line).min(high);
        let rows = (wanted >> (at - low)) & (u64::MAX >> (64 - (end - at)));
        if rows != 0 {
            let bytes = ((end - at) * array.size) as u16;
            out.push(Op::read(array.at(at), bytes, 0));
        }
        at = end;
    }
}

impl Queries {
    /// Q1's answer: the sums by group.
    pub fn groups(&self) -> Groups {
        let mut all = [Sums::default(); GROUPS];
        for groups in &self.groups {
            for (all, sums) in all.iter_mut().zip(groups) {
                all.merge(sums);
            }
        }
        all
    }

    /// Q3's answer: the ten orders of most revenue with their revenue, the most first; of equals the lowest number.
    pub fn best(&self) -> Vec<(u64, u64)> {
        let mut all = self.best.concat();
        keep(&mut all);
        all.into_iter()
            .map(|(revenue, order)| (order, revenue))
            .collect()
    }

    fn rows(&self, at: At) -> u64 {
        match at {
            At::Sum | At::Probe => self.data.lines,
            At::Customers => self.data.customers(),
            At::Orders => self.data.orders(),
            At::Clear => self.table.directory.len() as u64,
            // Each thread reads its own entries.
            At::Best => self.threads as u64 * BLOCK,
        }
    }

    /// First entry of a thread.
    fn first_entry(&self, thread: usize) -> u64 {
        let (low, _) = chunk(self.data.orders().div_ceil(BLOCK), thread, self.threads);
        low * BLOCK
    }

    fn sum(&mut self, thread: usize, low: u64, high: u64, out: &mut Vec<Op>) {
        let p = &self.places;
        column(out, p.shipped, low, u64::MAX, high);
        let mut wanted = 0;
        let mut sums = Vec::new();
        for at in low..high {
            let line = self.data.line(at);
            if line.shipped > Q1_DAY {
                continue;
            }
            wanted |= 1 << (at - low);
            let group = group(&line);
            self.groups[thread][group].add(&line);
            let place = p.sums.at((thread * GROUPS + group) as u64);
            sums.push(Op::new(Kind::Update, place, 56, PER_SUMMED));
        }
        for array in [p.flag, p.status].into_iter().chain(p.amounts) {
            column(out, array, low, wanted, high);
        }
        out.extend(sums);
        charge(out, PER_DATE * (high - low) as u32);
    }

    fn customers(&mut self, low: u64, high: u64, out: &mut Vec<Op>) {
        let p = &self.places;
        column(out, p.segment, low, u64::MAX, high);
        // A block is a word of bits.
        let asked = (low..high).filter(|&c| self.data.segment(c) == Q3_SEGMENT);
        self.bits[(low / BLOCK) as usize] = asked.fold(0, |bits, c| bits | 1 << (c - low));
        let instructions = PER_CUSTOMER * (high - low) as u32;
        out.push(Op::write(p.bits.at(low / BLOCK), 8, instructions));
    }

    fn clear(&self, low: u64, high: u64, out: &mut Vec<Op>) {
        let at = self.places.directory.at(low);
        let each = crate::init::INSTRUCTIONS_PER_LINE;
        run(out, Kind::Write, at, 8 * (high - low), each);
    }

    fn orders(&mut self, thread: usize, low: u64, high: u64, out: &mut Vec<Op>) {
        let p = &self.places;
        column(out, p.day, low, u64::MAX, high);
        let early = |&at: &u64| self.data.order(at).day < Q3_DAY;
        let early: Vec<u64> = (low..high).filter(early).collect();
        let wanted = early.iter().fold(0, |rows, at| rows | 1 << (at - low));
        column(out, p.customer, low, wanted, high);
        charge(out, PER_DATE * (high - low) as u32);
        for order in early {
            let customer = self.data.order(order).customer;
            let word = customer / 64;
            out.push(Op::read(p.bits.at(word), 8, PER_BIT));
            if self.bits[word as usize] >> (customer % 64) & 1 == 0 {
                continue;
            }
            let at = self.first_entry(thread) + self.made[thread];
            self.made[thread] += 1;
            let chain = p.directory.at(self.table.bucket(order));
            out.push(Op::write(p.entries.at(at), 32, PER_INSERT));
            out.push(Op::new(Kind::Update, chain, 8, PER_HASH));
            self.table.insert(at, order);
        }
    }

    fn probe(&mut self, low: u64, high: u64, out: &mut Vec<Op>) {
        let p = &self.places;
        column(out, p.shipped, low, u64::MAX, high);
        let late = |&at: &u64| self.data.line(at).shipped > Q3_DAY;
        let late: Vec<u64> = (low..high).filter(late).collect();
        let wanted = late.iter().fold(0, |rows, at| rows | 1 << (at - low));
        column(out, p.order, low, wanted, high);
        charge(out, PER_DATE * (high - low) as u32);
        let (mut probes, mut found) = (Vec::new(), 0);
        for at in late {
            let line = self.data.line(at);
            let bucket = self.table.bucket(line.order);
            probes.push(Op::read(p.directory.at(bucket), 8, PER_HASH));
            let mut hit = None;
            for entry in self.table.chain(bucket) {
                probes.push(Op::read(p.entries.at(entry), 16, PER_ENTRY).after_load());
                if self.table.entries[entry as usize].order == line.order {
                    hit = Some(entry);
                    break;
                }
            }
            if let Some(entry) = hit {
                found |= 1 << (at - low);
                let revenue = p.entries.at(entry) + 24;
                probes.push(Op::new(Kind::Update, revenue, 8, PER_REVENUE));
                self.table.entries[entry as usize].revenue += line.price * (100 - line.discount);
            }
        }
        let [_, price, discount, _] = p.amounts;
        out.extend(probes);
        for array in [price, discount] {
            column(out, array, low, found, high);
        }
    }

    /// The entries that a thread has made.
    fn choose(&mut self, thread: usize, part: u64, out: &mut Vec<Op>) {
        let first = self.first_entry(thread);
        // One part for each row in a block.
        let each = self.made[thread].div_ceil(BLOCK);
        let low = first + (part * each).min(self.made[thread]);
        let high = first + ((part + 1) * each).min(self.made[thread]);
        let best = &mut self.best[thread];
        for at in low..high {
            let entry = self.table.entries[at as usize];
            out.push(Op::read(self.places.entries.at(at), 32, PER_BEST));
            if entry.revenue > 0 {
                best.push((entry.revenue, entry.order));
            }
        }
        keep(best);
    }
}

/// Keeps the ten of most revenue, in order.
fn keep(best: &mut Vec<(u64, u64)>) {
    best.sort_unstable_by_key(|&(revenue, order)| (std::cmp::Reverse(revenue), order));
    best.truncate(BEST);
}

/// Instructions of a block that belong to no access of their own.
fn charge(out: &mut [Op], instructions: u32) {
    if let Some(op) = out.last_mut() {
        op.instructions += instructions;
    }
}

impl StagedKernel for Queries {
    fn name(&self) -> String {
        "olap".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        let starts = self.stage == STAGES.len();
        if starts {
            if self.begun == self.passes {
                return None;
            }
            self.begun += 1;
            self.stage = 0;
            self.groups.fill([Sums::default(); GROUPS]);
            self.made.fill(0);
            self.best.fill(Vec::new());
        }
        let at = STAGES[self.stage];
        self.stage += 1;
        if at == At::Clear {
            // At once: where a thread is ended early, chains of the pass before would go into those of this one, and in circles.
            self.table.directory.fill(NONE);
        }
        let stage = Stage::parallel(self.rows(at).div_ceil(BLOCK));
        Some(Stage {
            iteration: starts,
            ..stage
        })
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let at = STAGES[self.stage - 1];
        if at == At::Best {
            self.choose(thread, work.within, out);
            work.within += 1;
            if work.within == BLOCK {
                (work.at, work.within) = (work.at + 1, 0);
            }
            return;
        }
        let low = work.at * BLOCK;
        let high = (low + BLOCK).min(self.rows(at));
        work.at += 1;
        match at {
            At::Sum => self.sum(thread, low, high, out),
            At::Customers => self.customers(low, high, out),
            At::Clear => self.clear(low, high, out),
            At::Orders => self.orders(thread, low, high, out),
            At::Probe | At::Best => self.probe(low, high, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let groups = self.groups();
        let sum = |of: fn(&Sums) -> u128| groups.iter().map(of).sum::<u128>();
        let best = self.best();
        let (order, revenue) = best.first().copied().unwrap_or_default();
        vec![
            ("lines".into(), self.data.lines.to_string()),
            ("lines in Q1".into(), sum(|s| s.lines.into()).to_string()),
            (
                "Q1, sum of charges".into(),
                format!("{:.2}", sum(|s| s.charged) as f64 / 1e6),
            ),
            (
                "orders joined in Q3".into(),
                self.made.iter().sum::<u64>().to_string(),
            ),
            ("Q3, best order".into(), order.to_string()),
            (
                "Q3, its revenue".into(),
                format!("{:.2}", revenue as f64 / 1e4),
            ),
        ]
    }
}
