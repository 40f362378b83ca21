//! YCSB's core workloads A, B, C, D and F over the store.
//!
//! The mixes are those of YCSB's own property files; E (range scans) is left out as in the paper. Requests choose records
//! by a scrambled Zipf distribution; D chooses among the latest by Zipf over their age. An update overwrites the value
//! without reading it, a read-modify-write reads it first; both are in place under the item's lock. In the host, an
//! item's value is one word to which every write adds a random number, so that the final contents do not depend on
//! the order of the threads.

use varve_access::{Kind, Op, Program, Region};

use super::btree::BTree;
use super::implicit::Implicit;
use super::load::{LoadPhase, REQUEST_OPS, node_room, spare_items};
use super::store::{ITEM, Store};
use super::tree::Tree;
use crate::entry::WorkloadEntry;
use crate::layout::{Array, Layout};
use crate::limit::{Limit, TIME};
use crate::node::NODE;
use varve_access::random::{Permutation, Rng, mix};
use varve_access::zipf::Zipf;
use varve_spec::{Error, Param, Values, Want};

/// Instructions of the client between two requests: a random number, Zipf's power (100), scrambling and making the key,
/// choosing the operation, the call.
const CLIENT: u32 = 180;

/// Largest real tree, in items: about 2 GB of the host's memory.
const REAL_LIMIT: u64 = 64_000_000;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "ycsb",
    about: "key-value store: B+-tree over 128 B items under YCSB A, B, C, D or F (Masstree)",
    params: &[
        Param::scaled("items", Want::COUNT, "1G", "items at the start"),
        Param::new(
            "mix",
            Want::Word(&["A", "B", "C", "D", "F"]),
            "C",
            "YCSB's core workload",
        ),
        Param::new(
            "theta",
            Want::Part,
            "0.99",
            "skew of the Zipf distribution; 0 is even, below 1",
        ),
        Param::new(
            "tree",
            Want::Word(&["implicit", "real"]),
            "implicit",
            "computed, of any size; or held and checked, up to 64M items",
        ),
        Param::new(
            "load",
            Want::Word(&["touch", "inserts"]),
            "touch",
            "initialization touches the loaded store's memory, or inserts every item (real tree only)",
        ),
        Param::new(
            "requests",
            Want::COUNT,
            "625k",
            "requests per thread; 0: no such limit",
        ),
        TIME,
    ],
    build: |values| Ok(Box::new(Ycsb::new(values)?)),
};

/// Classes of requests, in the order of their `End` marks.
const CLASSES: [&str; 4] = ["read", "update", "insert", "rmw"];
const READ: usize = 0;
const UPDATE: usize = 1;
const INSERT: usize = 2;
const RMW: usize = 3;

/// Percentages of the classes.
fn mix_of(name: &str) -> [u64; 4] {
    match name {
        "A" => [50, 50, 0, 0],
        "B" => [95, 5, 0, 0],
        "C" => [100, 0, 0, 0],
        "D" => [95, 0, 5, 0],
        _ => [50, 0, 0, 50],
    }
}

/// The running store and its clients.
pub struct Ycsb {
    layout: Layout,
    store: Store,
    buffers: Array,
    tree: Tree,
    /// Items at the start, now, and at most.
    items: u64,
    present: u64,
    room: u64,
    percent: [u64; 4],
    latest: bool,
    zipf: Zipf,
    scramble: Permutation,
    setup: LoadPhase,
    limit: Limit,
    threads: Vec<Thread>,
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    rng: Rng,
    counts: [u64; 4],
}

impl Ycsb {
    /// Reads the parameters of [`ENTRY`].
    ///
    /// # Errors
    /// No items, too many for a real tree, a skew of 1, inserts into an implicit tree at loading, or no limit.
    pub fn new(values: &Values) -> Result<Ycsb, Error> {
        let threads = values.count("threads") as usize;
        let items = values.count_in("items", 1, 1 << 36)?;
        let real = values.word("tree") == "real";
        if real && items > REAL_LIMIT {
            let want = "a real tree holds up to 64M items; raise `scale` or set tree=implicit";
            return Err(values.refuse("items", want));
        }
        let theta = values.part("theta");
        if theta >= 1.0 {
            return Err(values.refuse("theta", "must be below 1"));
        }
        let by_inserts = values.word("load") == "inserts";
        if by_inserts && !real {
            return Err(values.refuse("load", "inserts need tree=real"));
        }
        let percent = mix_of(values.word("mix"));
        let limit = Limit::new(values, "requests", threads)?;
        let spare = spare_items(
            items,
            percent[INSERT],
            values.count("requests"),
            threads as u64,
        );
        let room = items + spare;
        let mut layout = Layout::new();
        let nodes = layout.array("index", node_room(items, spare), NODE);
        let store = Store {
            nodes,
            items: layout.array("items", room, ITEM),
        };
        let buffers = layout.array("buffers", threads as u64, 4096);
        let seed = values.count("seed");
        let mut tree = match real {
            true => Tree::Real(BTree::new(), vec![0; room as usize]),
            false => Tree::Implicit(Implicit::new(items, seed)),
        };
        let setup = if by_inserts {
            LoadPhase::inserts(items, threads)
        } else {
            tree.load(items, &store);
            LoadPhase::touch(
                &store,
                &buffers,
                tree.nodes(),
                items,
                values.count("touch"),
                threads,
            )
        };
        let thread = |thread| Thread {
            rng: Rng::new(seed, thread as u64),
            counts: [0; 4],
        };
        Ok(Ycsb {
            layout,
            store,
            buffers,
            tree,
            items,
            present: items,
            room,
            percent,
            latest: percent[INSERT] > 0,
            zipf: Zipf::new(items, theta),
            scramble: Permutation::new(items, mix(seed ^ 3)),
            setup,
            limit,
            threads: (0..threads).map(thread).collect(),
            failure: None,
        })
    }

    /// The record that the next request is about.
    #[inline]
    fn choose(&self, rng: &mut Rng) -> u64 {
        let rank = self.zipf.draw(rng);
        if self.latest {
            self.present - 1 - rank
        } else {
            self.scramble.at(rank)
        }
    }

    fn request(&mut self, thread: usize, out: &mut Vec<Op>) {
        let mut rng = self.threads[thread].rng;
        let mut draw = rng.below(100);
        let mut class = READ;
        while draw >= self.percent[class] {
            draw -= self.percent[class];
            class += 1;
        }
        let buffer = self.buffers.at(thread as u64);
        out.push(Op::new(Kind::Begin, 0, 0, CLIENT));
        if class == INSERT {
            self.insert(buffer, out);
        } else {
            let record = self.choose(&mut rng);
            if let Err(error) = self.tree.find(record, &self.store, out) {
                self.failure = Some(error);
            }
            if matches!(class, READ | RMW) {
                self.store.read_item(record, buffer, out);
            }
            if matches!(class, UPDATE | RMW) {
                self.store.write_item(record, buffer, out);
                self.tree.change(record, rng.bits());
            }
        }
        out.push(Op::mark(Kind::End, class as u64));
        self.threads[thread].rng = rng;
        self.threads[thread].counts[class] += 1;
    }

    fn insert(&mut self, buffer: u64, out: &mut Vec<Op>) {
        let record = self.present;
        if record == self.room {
            self.failure = Some(format!("ycsb: no room for more than {record} items"));
            return;
        }
        self.present += 1;
        self.store.new_item(record, buffer, out);
        self.tree.insert(record, &self.store, out);
    }
}

impl Program for Ycsb {
    fn name(&self) -> String {
        "ycsb".into()
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn regions(&self) -> Vec<Region> {
        self.layout.regions().to_vec()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        let buffer = self.buffers.at(thread as u64);
        let loading = self
            .setup
            .fill(thread, &mut self.tree, &self.store, buffer, out);
        if loading {
            return true;
        }
        loop {
            if self.failure.is_some() || self.limit.allow(thread, now, 1) == 0 {
                return false;
            }
            self.request(thread, out);
            if out.len() + REQUEST_OPS > out.capacity() {
                return true;
            }
        }
    }

    fn classes(&self) -> Vec<String> {
        CLASSES.map(String::from).to_vec()
    }

    fn answers(&self) -> Vec<(String, String)> {
        let count = |class: usize| -> u64 { self.threads.iter().map(|t| t.counts[class]).sum() };
        let mut answers: Vec<(String, String)> = CLASSES
            .iter()
            .enumerate()
            .map(|(class, name)| (name.to_string(), count(class).to_string()))
            .collect();
        answers.push(("items".into(), self.present.to_string()));
        answers.push(("inserted".into(), (self.present - self.items).to_string()));
        answers.push(("levels".into(), self.tree.levels().to_string()));
        answers.push(("nodes".into(), self.tree.nodes().to_string()));
        if let Some(checksum) = self.tree.checksum(self.present) {
            answers.push(("checksum".into(), format!("{checksum:016x}")));
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
