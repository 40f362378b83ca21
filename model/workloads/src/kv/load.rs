//! How the store gets into memory: how much, in which order, and by which threads.

use varve_access::{Kind, Op};

use super::store::Store;
use super::tree::Tree;
use crate::init::{BARRIER_INIT, By, FirstTouch, PHASE_INIT, PHASE_RUN, chunk};
use crate::layout::Array;
use crate::node::mean_entries;

/// Room that one request may take in the buffer of ops: two walks of nine levels and a split on each.
pub(super) const REQUEST_OPS: usize = 64;

/// The first phase of the run.
pub enum LoadPhase {
    /// The loaded store's memory is touched.
    Touch(FirstTouch),
    /// Every item is inserted.
    Inserts(Vec<Loader>),
}

/// Inserts that a thread has still to make.
#[derive(Clone, Copy, Debug)]
pub struct Loader {
    next: u64,
    high: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Start,
    Load,
    Barrier,
    Done,
}

impl LoadPhase {
    /// By touching `items` loaded items and `nodes` nodes.
    pub fn touch(
        store: &Store,
        buffers: &Array,
        nodes: u64,
        items: u64,
        stride: u64,
        threads: usize,
    ) -> LoadPhase {
        let ranges = pieces(store, buffers, nodes, items);
        LoadPhase::Touch(FirstTouch::new(ranges, stride, By::All, threads))
    }

    /// By inserting `items` items.
    pub fn inserts(items: u64, threads: usize) -> LoadPhase {
        let loader = |thread| {
            let (next, high) = chunk(items, thread, threads);
            Loader {
                next,
                high,
                stage: Stage::Start,
            }
        };
        LoadPhase::Inserts((0..threads).map(loader).collect())
    }

    /// Appends the next ops of `thread`, as [`FirstTouch::fill`] does; an inserted item is copied from `buffer`.
    pub fn fill(
        &mut self,
        thread: usize,
        tree: &mut Tree,
        store: &Store,
        buffer: u64,
        out: &mut Vec<Op>,
    ) -> bool {
        match self {
            LoadPhase::Touch(touch) => touch.fill(thread, out),
            LoadPhase::Inserts(loaders) => loaders[thread].fill(tree, store, buffer, out),
        }
    }
}

impl Loader {
    fn fill(&mut self, tree: &mut Tree, store: &Store, buffer: u64, out: &mut Vec<Op>) -> bool {
        match self.stage {
            Stage::Done => return false,
            Stage::Barrier => {
                self.stage = Stage::Done;
                out.push(Op::mark(Kind::Phase, PHASE_RUN));
                return false;
            }
            Stage::Start => {
                self.stage = Stage::Load;
                out.push(Op::mark(Kind::Phase, PHASE_INIT));
            }
            Stage::Load => {}
        }
        while self.next < self.high {
            store.new_item(self.next, buffer, out);
            tree.insert(self.next, store, out);
            self.next += 1;
            if out.len() + REQUEST_OPS > out.capacity() {
                return true;
            }
        }
        self.stage = Stage::Barrier;
        out.push(Op::mark(Kind::Barrier, BARRIER_INIT));
        true
    }
}

/// Items that the run may insert: its share of the requests and five standard deviations; a tenth of the items when the
/// number of requests is not limited.
pub fn spare_items(items: u64, percent: u64, requests: u64, threads: u64) -> u64 {
    if percent == 0 {
        return 0;
    }
    let mean = requests as f64 * threads as f64 * percent as f64 / 100.0;
    if requests == 0 {
        items / 10 + 1024
    } else {
        (mean + 5.0 * mean.sqrt()) as u64 + 16
    }
}

/// Nodes to make room for: the mean and 2 % for the items that are loaded; the most, half-full nodes, for inserts.
pub fn node_room(items: u64, spare: u64) -> u64 {
    let mean = mean_entries();
    let loaded = items as f64 / (mean - 1.0) * 1.02;
    loaded as u64 + spare / 7 + 64
}

/// The memory of a loaded store in the order in which loading takes it: nodes and items side by side.
fn pieces(store: &Store, buffers: &Array, nodes: u64, items: u64) -> Vec<(u64, u64)> {
    const PIECES: u64 = 64;
    let mut ranges = vec![(buffers.base, buffers.bytes())];
    for piece in 0..PIECES {
        for (array, used) in [(store.nodes, nodes), (store.items, items)] {
            let (low, high) = chunk(used, piece as usize, PIECES as usize);
            if low < high {
                ranges.push((array.at(low), (high - low) * array.size));
            }
        }
    }
    ranges
}
