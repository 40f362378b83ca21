//! PARSEC freqmine: sets of items that occur together in enough of many transactions, by FP-growth on arrays.
//!
//! As in the original (`pkgs/apps/freqmine/src/fp_tree.cpp` of cirosantilli/parsec-benchmark): a tree of all
//! transactions, the most frequent items next to its root, is turned into arrays before it is mined. For every item
//! there is a list of its nodes (where the node's path to the root starts, and how often it occurs: 8 bytes), and all
//! paths are in one array of items. Mining an item reads its list and all of its paths twice: to count their items
//! (`scan1_DB`), then to put those that are frequent with it into a smaller tree (`FPArray_scan2_DB`, `insert`), which
//! is mined in turn. Trees of a thread are on a stack of its own. Threads take the next item of the whole tree when
//! they are free (`schedule(dynamic,1)`).
//!
//! Mining is real, and its number of sets is an answer ([`super::mining`]). Building the first tree is not modelled,
//! but its memory is there, with that of the threads' trees; 512 MiB in all is a guess.
//!
//! # Input
//!
//! Native input is `webdocs_250k.dat 11000`: 250,000 documents, sets of words in 11,000 of them. The file is not here.
//! Transactions are drawn instead, each with each word by chance: word r in 11 / r of them, at most in 60 % (an
//! **assumption**). With the five million words of the whole file, that is its mean length of 177 words (Lucchese et
//! al., "WebDocs: a real-life huge transactional dataset", FIMI 2004). Real words go together, so real sets are longer.
//!
//! # Scale
//!
//! Fewer transactions, and as much of them that makes a set frequent. The number of sets grows by chance: 214,000 at 1/64,
//! 227,000 at 1/512, 374,000 at 1/2048. Below that transactions are no fewer.

use super::mining::{FpTree, Frame, Transactions};
use super::threads::THREADS;
use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{LINE, Loops, Share, Stage, StagedKernel, Work};
use varve_access::{Kind, Op, Region};
use varve_spec::{Error, Param, Values, Want};

/// Bytes of an entry of a node's list, of an item in a path, and of a node of a tree under construction.
const ENTRY_BYTES: u64 = 8;
const ITEM_BYTES: u64 = 2;
const NODE_BYTES: u64 = 24;

/// Instructions for a node of a list: load both, start the path, a share of the loop.
const PER_PATH: u32 = 8;
/// For an item that is counted: load, add to its count, compare with the mark, a share of the loop.
const PER_COUNTED: u32 = 6;
/// For an item that is looked up in the second scan: load, its place in the new order, compare, mark, loop.
const PER_SORTED: u32 = 8;
/// For a node of a tree that is visited: load its name, compare, follow.
const PER_VISITED: u32 = 4;
/// For an item that is inserted: add to the node's count, or make one; the loop.
const PER_INSERTED: u32 = 10;
/// For a node that is turned into arrays: two stores, walk on.
const PER_CONVERTED: u32 = 12;

/// Documents that a frequent set is in, at least: of few documents nearly all sets of words are in two, and mining never ends.
const FEWEST: f64 = 5.0;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "freqmine",
    about: "PARSEC freqmine: sets of words that are frequent in documents, by FP-growth on arrays",
    params: &[
        Param::scaled("documents", Want::COUNT, "250k", "documents"),
        Param::scaled(
            "bytes",
            Want::Bytes,
            "512MiB",
            "memory of the arrays; the threads' own trees have what the documents leave, some 370 bytes each",
        ),
        Param::new(
            "support",
            Want::Part,
            "0.044",
            "share of the documents that makes a set frequent: 11,000 of 250,000",
        ),
        Param::new("passes", Want::COUNT, "1", "times that they are mined"),
        THREADS,
    ],
    build: |values| Ok(Box::new(program(values)?)),
};

/// A thread's mining.
#[derive(Default)]
struct Miner {
    /// Trees of sets, each with one item more.
    frames: Vec<Frame>,
    /// Accesses that are not yet handed over, and how many were.
    ops: Vec<Op>,
    given: usize,
    sets: u64,
}

/// The kernel, for [`Loops`].
pub struct Freqmine {
    regions: Vec<Region>,
    lists: Array,
    paths: Array,
    stacks: Vec<Array>,
    tree: FpTree,
    least: u64,
    left: u64,
    miners: Vec<Miner>,
}

/// Makes the program.
///
/// # Errors
/// Sizes out of range.
pub fn program(values: &Values) -> Result<Loops<Freqmine>, Error> {
    let threads = values.count("threads") as usize;
    let bytes = values.count_in("bytes", 1 << 12, 1 << 46)?;
    let support = values.part("support").max(0.001);
    let documents = values.count_in("documents", 1, 10_000_000)?;
    let count = documents.max((FEWEST / support).ceil() as u64);
    let least = (support * count as f64).ceil() as u64;
    let drawn = Transactions::draw(count, support, values.count("seed"));
    let tree = FpTree::of(&drawn, least);
    let mut layout = Layout::new();
    let lists = layout.array("freqmine.lists", tree.entries().max(1), ENTRY_BYTES);
    let paths = layout.array("freqmine.paths", tree.items().max(1), ITEM_BYTES);
    let left = bytes.saturating_sub(lists.bytes() + paths.bytes());
    let stack = (left / NODE_BYTES / threads as u64).max(64);
    let stacks: Vec<Array> = (0..threads)
        .map(|i| layout.array(&format!("freqmine.trees.{i}"), stack, NODE_BYTES))
        .collect();
    let touch = values.count_in("touch", 64, u64::MAX)?;
    let arrays: Vec<Array> = [lists, paths].into_iter().chain(stacks.clone()).collect();
    let init = FirstTouch::new(FirstTouch::ranges(&arrays), touch, By::All, threads);
    let kernel = Freqmine {
        regions: layout.regions().to_vec(),
        lists,
        paths,
        stacks,
        tree,
        least,
        left: values.count_in("passes", 1, u64::MAX)?,
        miners: (0..threads).map(|_| Miner::default()).collect(),
    };
    Ok(Loops::new(kernel, Some(init), threads))
}

/// Where a tree's arrays are: the first one's, or a part of a thread's stack.
#[derive(Clone, Copy)]
enum Where {
    First(Array, Array),
    Stack(Array, u64),
}

impl Where {
    /// The list's entry.
    fn entry(self, index: u64) -> u64 {
        match self {
            Where::First(lists, _) => lists.at(index),
            Where::Stack(stack, from) => on(stack, from * NODE_BYTES + index * ENTRY_BYTES),
        }
    }

    /// An item of a path, which follow the lists.
    fn item(self, index: u64, entries: u64) -> u64 {
        match self {
            Where::First(_, paths) => paths.at(index),
            Where::Stack(stack, from) => {
                let lists = entries * ENTRY_BYTES;
                on(stack, from * NODE_BYTES + lists + index * ITEM_BYTES)
            }
        }
    }
}

/// A byte of a stack, which begins anew should it be too small.
fn on(stack: Array, byte: u64) -> u64 {
    stack.base + byte % (stack.bytes() - LINE)
}

impl Freqmine {
    /// Frequent sets that were found.
    pub fn sets(&self) -> u64 {
        self.miners.iter().map(|m| m.sets).sum()
    }

    /// Mines an item of a tree: counts, makes the smaller tree, and the accesses of both.
    fn mine(
        &self,
        thread: usize,
        tree: &FpTree,
        item: u16,
        at: u64,
        place: Where,
        out: &mut Vec<Op>,
    ) -> FpTree {
        let entries = tree.entries();
        for per_item in [PER_COUNTED, PER_SORTED] {
            for (index, entry) in tree.list(item) {
                out.push(Op::read(place.entry(index), ENTRY_BYTES as u16, PER_PATH));
                let (mut from, left) = (place.item(entry.path, entries), u64::from(entry.length));
                let end = from + left * ITEM_BYTES;
                while from < end {
                    let next = ((from / LINE + 1) * LINE).min(end);
                    let items = ((next - from) / ITEM_BYTES) as u32;
                    out.push(Op::read(
                        from,
                        (next - from) as u16,
                        per_item * items.max(1),
                    ));
                    from = next;
                }
            }
        }
        let stack = self.stacks[thread];
        let visit = &mut |node: u64, new: bool| {
            let at = on(stack, (at + node) * NODE_BYTES);
            out.push(match new {
                false => Op::read(at, 16, PER_VISITED).after_load(),
                true => Op::new(Kind::Update, at, 16, PER_INSERTED),
            });
        };
        let smaller = tree.without(item, self.least, visit);
        let to = Where::Stack(stack, at);
        for index in 0..smaller.entries() {
            let at = to.entry(index);
            out.push(Op::write(at, ENTRY_BYTES as u16, PER_CONVERTED));
        }
        smaller
    }
}

impl StagedKernel for Freqmine {
    fn name(&self) -> String {
        "freqmine".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        self.left = self.left.checked_sub(1)?;
        self.miners.iter_mut().for_each(|m| m.sets = 0);
        let stage = Stage::parallel(self.tree.frequent().into());
        Some(
            Stage {
                share: Share::Dynamic(1),
                ..stage
            }
            .starts_iteration(),
        )
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let mut miner = std::mem::take(&mut self.miners[thread]);
        if miner.given < miner.ops.len() {
            let to = (miner.given + 256).min(miner.ops.len());
            out.extend_from_slice(&miner.ops[miner.given..to]);
            miner.given = to;
        } else {
            miner.ops.clear();
            miner.given = 0;
            self.go_on(thread, &mut miner, work);
        }
        if miner.given == miner.ops.len() && miner.frames.is_empty() && work.within > 0 {
            (work.at, work.within) = (work.at + 1, 0);
        }
        self.miners[thread] = miner;
    }

    fn answers(&self) -> Vec<(String, String)> {
        vec![
            ("frequent words".into(), self.tree.frequent().to_string()),
            ("frequent sets".into(), self.sets().to_string()),
        ]
    }
}

impl Freqmine {
    /// The next item: of the whole tree, the rarest first, or of the smallest tree at hand.
    fn go_on(&self, thread: usize, miner: &mut Miner, work: &mut Work) {
        let ops = &mut miner.ops;
        if work.within == 0 {
            work.within = 1;
            let item = self.tree.frequent() - 1 - work.at as u16;
            let place = Where::First(self.lists, self.paths);
            let tree = self.mine(thread, &self.tree, item, 0, place, ops);
            miner.sets += 1;
            miner.frames.push(Frame::new(tree, 0));
        }
        loop {
            let Some(top) = miner.frames.last_mut() else {
                return;
            };
            let Some(item) = top.next() else {
                miner.frames.pop();
                continue;
            };
            miner.sets += 1;
            let (from, tree) = (top.from, &top.tree);
            // Its arrays end where those of the next one begin.
            let at = from + tree.entries();
            let place = Where::Stack(self.stacks[thread], from);
            let smaller = self.mine(thread, tree, item, at, place, ops);
            miner.frames.push(Frame::new(smaller, at));
            if ops.len() >= 256 {
                return;
            }
        }
    }
}
