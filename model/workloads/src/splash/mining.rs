//! Frequent sets by FP-growth: transactions, and the arrays that a tree of them is turned into.

use varve_access::random::Rng;

/// Transactions, each its items by rising number: 0 is the most frequent.
pub struct Transactions {
    /// Items of all.
    pub of: Vec<Vec<u16>>,
}

/// Word r, from 1, is in this share of all documents over r.
const FIRST: f64 = 11.0;
/// And in no more than this share.
const MOST: f64 = 0.6;

impl Transactions {
    /// Draws them, with the items that are expected to be in at least half of the share `support`.
    pub fn draw(count: u64, support: f64, seed: u64) -> Transactions {
        let mut rng = Rng::new(seed, 0x6672_6571);
        let items = (2.0 * FIRST / support) as u16;
        let share = |r: u16| (FIRST / f64::from(r + 1)).min(MOST);
        let mut draw = || {
            (0..items)
                .filter(|&r| (rng.below(1 << 32) as f64) < share(r) * 4_294_967_296.0)
                .collect()
        };
        Transactions {
            of: (0..count).map(|_| draw()).collect(),
        }
    }
}

/// A node of a tree, in the list of its item.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where the items between it and the root start, in the array of paths.
    pub path: u64,
    /// How many these are.
    pub length: u16,
    /// Transactions that it stands for.
    pub count: u32,
}

/// A tree as arrays.
pub struct FpTree {
    /// Nodes of item after item.
    entries: Vec<Entry>,
    /// First entry of each item, and the end.
    starts: Vec<usize>,
    /// Items from a node to the root, one path after the other.
    paths: Vec<u16>,
}

/// A node of a tree under construction.
struct Node {
    item: u16,
    count: u32,
    parent: u32,
    /// First child and next sibling; 0 for none.
    child: u32,
    sibling: u32,
}

impl FpTree {
    /// The tree of all transactions, with the items that are in at least `least` of them.
    pub fn of(transactions: &Transactions, least: u64) -> FpTree {
        let paths = || transactions.of.iter().map(|t| (t.iter().copied(), 1));
        FpTree::grow(paths, least, &mut |_, _| {})
    }

    /// The tree of the paths of an item's nodes. `visit` is told the nodes that inserting visits, and whether it stays
    /// there.
    pub fn without(&self, item: u16, least: u64, visit: &mut impl FnMut(u64, bool)) -> FpTree {
        let paths = || {
            self.list(item).map(|(_, entry)| {
                let path = entry.path as usize..entry.path as usize + usize::from(entry.length);
                (self.paths[path].iter().rev().copied(), entry.count)
            })
        };
        FpTree::grow(paths, least, visit)
    }

    fn grow<P, I>(paths: impl Fn() -> P, least: u64, visit: &mut impl FnMut(u64, bool)) -> FpTree
    where
        P: Iterator<Item = (I, u32)>,
        I: Iterator<Item = u16>,
    {
        let mut counts: Vec<u64> = Vec::new();
        for (path, count) in paths() {
            for item in path {
                let item = usize::from(item);
                if counts.len() <= item {
                    counts.resize(item + 1, 0);
                }
                counts[item] += u64::from(count);
            }
        }
        // New numbers by frequency; the old number decides between equals.
        let mut order: Vec<u16> = (0..counts.len() as u16)
            .filter(|&item| counts[usize::from(item)] >= least)
            .collect();
        order.sort_by_key(|&item| (std::cmp::Reverse(counts[usize::from(item)]), item));
        let mut number = vec![u16::MAX; counts.len()];
        for (new, &old) in order.iter().enumerate() {
            number[usize::from(old)] = new as u16;
        }
        let mut nodes = vec![Node {
            item: u16::MAX,
            count: 0,
            parent: 0,
            child: 0,
            sibling: 0,
        }];
        let mut items = Vec::new();
        for (path, count) in paths() {
            items.clear();
            let frequent = path.map(|item| number[usize::from(item)]);
            items.extend(frequent.filter(|&item| item != u16::MAX));
            items.sort_unstable();
            insert(&mut nodes, &items, count, visit);
        }
        FpTree::arrays(&nodes, order.len())
    }

    /// Turns it into arrays: each leaf's path is in one piece, and its nodes start within.
    fn arrays(nodes: &[Node], items: usize) -> FpTree {
        let mut lists: Vec<Vec<Entry>> = vec![Vec::new(); items];
        let mut paths = Vec::new();
        let mut placed = vec![false; nodes.len()];
        for leaf in 1..nodes.len() {
            if nodes[leaf].child != 0 {
                continue;
            }
            let (mut at, start) = (leaf, paths.len());
            while at != 0 {
                paths.push(nodes[at].item);
                at = nodes[at].parent as usize;
            }
            let (mut at, mut place) = (leaf, start);
            while at != 0 && !placed[at] {
                placed[at] = true;
                lists[usize::from(nodes[at].item)].push(Entry {
                    path: place as u64 + 1,
                    length: (paths.len() - place - 1) as u16,
                    count: nodes[at].count,
                });
                (at, place) = (nodes[at].parent as usize, place + 1);
            }
        }
        // So that an empty path starts somewhere.
        paths.push(u16::MAX);
        let mut tree = FpTree {
            entries: Vec::new(),
            starts: vec![0],
            paths,
        };
        for list in lists {
            tree.entries.extend(list);
            tree.starts.push(tree.entries.len());
        }
        tree
    }

    /// Items that it has.
    pub fn frequent(&self) -> u16 {
        (self.starts.len() - 1) as u16
    }

    /// Nodes.
    pub fn entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Items of all paths.
    pub fn items(&self) -> u64 {
        self.paths.len() as u64
    }

    /// The nodes of an item, each with its place among all.
    pub fn list(&self, item: u16) -> impl Iterator<Item = (u64, Entry)> + '_ {
        let item = usize::from(item);
        let range = self.starts[item]..self.starts[item + 1];
        range.map(|at| (at as u64, self.entries[at]))
    }
}

fn insert(nodes: &mut Vec<Node>, items: &[u16], count: u32, visit: &mut impl FnMut(u64, bool)) {
    let mut at = 0;
    for &item in items {
        let mut child = nodes[at].child as usize;
        while child != 0 && nodes[child].item != item {
            visit(child as u64, false);
            child = nodes[child].sibling as usize;
        }
        if child == 0 {
            child = nodes.len();
            nodes.push(Node {
                item,
                count: 0,
                parent: at as u32,
                child: 0,
                sibling: nodes[at].child,
            });
            nodes[at].child = child as u32;
        }
        visit(child as u64, true);
        nodes[child].count += count;
        at = child;
    }
}

/// A tree whose items are mined, the rarest first.
pub struct Frame {
    /// The tree.
    pub tree: FpTree,
    /// Where it is on the thread's stack.
    pub from: u64,
    left: u16,
}

impl Frame {
    /// All of its items are left.
    pub fn new(tree: FpTree, from: u64) -> Frame {
        let left = tree.frequent();
        Frame { tree, from, left }
    }
}

impl Iterator for Frame {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        Some(self.left)
    }
}
