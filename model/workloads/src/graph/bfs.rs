//! Breadth-first search from vertex to parent, as Graph500 does it: top down, level by level, with a tree of parents.
//!
//! The kernel 2 of the benchmark's shared-memory reference (`omp-csr`): threads take vertices of the level at hand,
//! read the parent of each neighbour, and claim those that have none. Arrays, for n vertices, m directed edges and
//! names of `id` bytes (the reference's are 8):
//!
//! | array | bytes | accessed |
//! |---|---|---|
//! | `csr.index` | 8 (n + 1) | twice per vertex reached, at random |
//! | `csr.neighbours` | id × m | in runs that start at random |
//! | `bfs.parents` | id × n | at random, once per edge |
//! | `bfs.queue`, `bfs.local` | id × n, 1024 id per thread | in runs |
//!
//! Which vertex becomes the parent of another depends on which thread comes first, as in the reference. Levels do not.
//! Where this differs: vertices are handed out 64 at a time unless the schedule is static, and the tree is checked
//! once, at the end, on the host.

use std::sync::Arc;

use varve_access::{Kind, Op, Region};

use super::build::{Build, fill_block, fill_stage};
use super::csr::Csr;
use super::search::SearchSetting;
use crate::host::prefetch;
use crate::layout::{Array, Layout};
use crate::loops::{Share, Stage, StagedKernel, Work, run};

/// No parent yet.
pub const NOBODY: u32 = u32::MAX;

/// Names in a thread's queue buffer.
const LOCAL: usize = 1024;
/// Edges of one vertex per step.
const EDGES_PER_STEP: u64 = 64;
/// Edges of a vertex that the host prefetches, at most.
const EDGES_AHEAD: u64 = 32;

// Instructions, counted on the loops as a compiler for x86-64 emits them at -O2.
/// Per vertex of a level: queue element, two row pointers, loop set-up and exit.
const PER_VERTEX: u32 = 12;
/// Per edge: load the neighbour, load its parent, compare, branch, advance, compare, branch.
const PER_EDGE: u32 = 7;
/// More when it has no parent: compare-and-swap, test, store into the local queue, test whether that is full.
const PER_FIND: u32 = 10;

struct Places {
    parents: Array,
    queue: Array,
    local: Array,
    tail: Array,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Build,
    Fill,
    Search,
}

/// The kernel, for [`crate::loops::Loops`].
pub struct Search {
    graph: Arc<Csr>,
    setting: SearchSetting,
    regions: Vec<Region>,
    build: Build,
    places: Places,
    at: At,
    /// Number of sources begun.
    begun: usize,
    parents: Vec<u32>,
    queue: Vec<u32>,
    /// The level at hand is this part of the queue.
    level: (usize, usize),
    local: Vec<Vec<u32>>,
    /// Vertices, levels and directed edges of all searches that have ended.
    reached: u64,
    levels: u64,
    edges: u64,
}

impl Search {
    /// Searches of `graph` from the setting's sources.
    pub fn new(graph: Arc<Csr>, setting: SearchSetting) -> Search {
        let mut layout = Layout::new();
        let (n, m) = (graph.vertices() as u64, graph.directed_edges());
        let (id, generated) = (setting.id, setting.generated.max(1));
        let mut build = Build::new(&mut layout, n, generated, m.max(1), id, setting.touch);
        let places = Places {
            parents: layout.array("bfs.parents", n, id),
            queue: layout.array("bfs.queue", n, id),
            local: layout.array("bfs.local", (setting.threads * LOCAL) as u64, id),
            tail: layout.array("bfs.tail", 1, 8),
        };
        let p = &places;
        for array in [p.parents, p.queue, p.local, p.tail] {
            build.then_touch(array);
        }
        Search {
            regions: layout.regions().to_vec(),
            build,
            places,
            at: At::Build,
            begun: 0,
            parents: vec![NOBODY; n as usize],
            queue: Vec::with_capacity(n as usize),
            level: (0, 0),
            local: vec![Vec::with_capacity(LOCAL); setting.threads],
            reached: 0,
            levels: 0,
            edges: 0,
            graph,
            setting,
        }
    }

    /// The parents that the last search found; a source is its own, and [`NOBODY`] is that of unreached vertices.
    pub fn parents(&self) -> &[u32] {
        &self.parents
    }

    fn start_source(&mut self) -> Option<Stage> {
        if self.begun == self.setting.sources.len() {
            return None;
        }
        self.begun += 1;
        self.at = At::Fill;
        let stage = fill_stage(self.places.parents, Share::Static).starts_iteration();
        Some(if self.begun == 1 {
            stage.starts_run()
        } else {
            stage
        })
    }

    /// The next level, or the next source when nothing new was found.
    fn next_level(&mut self) -> Option<Stage> {
        self.level = (self.level.1, self.queue.len());
        let items = self.level.1 - self.level.0;
        if items == 0 {
            let degrees = self.queue.iter().map(|&v| self.graph.range(v));
            self.edges += degrees.map(|(low, high)| high - low).sum::<u64>();
            self.reached += self.queue.len() as u64;
            return self.start_source();
        }
        self.levels += 1;
        Some(Stage {
            share: self.setting.share,
            ..Stage::parallel(items as u64)
        })
    }

    fn start_search(&mut self) -> Option<Stage> {
        let source = self.setting.sources[self.begun - 1];
        self.parents[source as usize] = source;
        self.queue.clear();
        self.queue.push(source);
        self.level = (0, 0);
        self.at = At::Search;
        self.next_level()
    }

    /// Prefetches into the host's cache the data of the level's next vertices.
    #[inline]
    fn look_ahead(&self, position: usize) {
        let queue = &self.queue[position..self.level.1];
        if let Some(&v) = queue.get(8) {
            self.graph.prefetch_range(v);
        }
        if let Some(&v) = queue.get(4) {
            self.graph.prefetch_row(v);
        }
        if let Some(&v) = queue.get(1) {
            let (low, high) = self.graph.range(v);
            for &v in self.graph.edges(low, high.min(low + EDGES_AHEAD)) {
                prefetch(&self.parents, v as usize);
            }
        }
    }

    fn search(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let position = self.level.0 + work.at as usize;
        let u = self.queue[position];
        let (low, high) = self.graph.range(u);
        self.look_ahead(position);
        let id = self.setting.id;
        let mut first = work.within == 0;
        if first {
            let queue = self.places.queue.at(position as u64);
            out.push(Op::read(queue, id as u16, 2));
            let pointer = self.build.index.at(u64::from(u));
            out.push(Op::read(pointer, 8, 1).after_load());
            out.push(Op::read(pointer + 8, 8, PER_VERTEX - 3));
        }
        let per_line = 64 / id;
        let mut edge = low + work.within;
        let to = high.min(edge + EDGES_PER_STEP);
        while edge < to {
            let next = to.min((edge / per_line + 1) * per_line);
            let mut line = Op::read(
                self.build.neighbours.at(edge),
                ((next - edge) * id) as u16,
                1,
            );
            // The row's start comes from the pointer just loaded; its later lines are prefetched.
            line.dependent = u8::from(std::mem::take(&mut first));
            out.push(line);
            for &v in self.graph.edges(edge, next) {
                let at = self.places.parents.at(u64::from(v));
                let parent = &mut self.parents[v as usize];
                if *parent == NOBODY {
                    *parent = u;
                    self.local[thread].push(v);
                    out.push(Op::new(Kind::Update, at, id as u16, PER_EDGE + PER_FIND));
                } else {
                    out.push(Op::read(at, id as u16, PER_EDGE));
                }
            }
            edge = next;
        }
        work.within = edge - low;
        if edge == high {
            (work.at, work.within) = (work.at + 1, 0);
        }
        if self.local[thread].len() + EDGES_PER_STEP as usize > LOCAL {
            self.flush(thread, out);
        }
    }

    /// Moves a thread's finds to the shared queue: one atomic to reserve room, then a copy.
    fn flush(&mut self, thread: usize, out: &mut Vec<Op>) {
        let found = &mut self.local[thread];
        if found.is_empty() {
            return;
        }
        let id = self.setting.id;
        let (count, tail) = (found.len() as u64, self.queue.len() as u64);
        out.push(Op::new(Kind::Update, self.places.tail.at(0), 8, 10));
        let local = self.places.local.at((thread * LOCAL) as u64);
        // A load and a store per 32-byte vector, and the loop.
        run(out, Kind::Read, local, count * id, 3);
        let queue = self.places.queue.at(tail);
        run(out, Kind::Write, queue, count * id, 4);
        self.queue.append(found);
    }

    fn wrong(&self) -> usize {
        match self.begun.checked_sub(1) {
            Some(last) => wrong(&self.graph, self.setting.sources[last], &self.parents),
            None => 0,
        }
    }
}

/// How many vertices break a rule of the benchmark's validation: a tree edge is one of the graph, parents lead to the source
/// without a circle, and an edge of the graph is between neighbouring levels, or between vertices that were not reached.
pub fn wrong(graph: &Csr, source: u32, parents: &[u32]) -> usize {
    let levels = levels(source, parents);
    let right = |v: u32| {
        let (level, row) = (levels[v as usize], graph.neighbours(v));
        let linked = match parents[v as usize] {
            NOBODY => true,
            _ if v == source => true,
            parent => level.is_some() && row.binary_search(&parent).is_ok(),
        };
        let near = |&w: &u32| match (level, levels[w as usize]) {
            (Some(a), Some(b)) => a.abs_diff(b) <= 1,
            (a, b) => a == b,
        };
        linked && row.iter().all(near)
    };
    let all = 0..parents.len() as u32;
    all.filter(|&v| !right(v)).count()
}

/// Steps from each vertex to the source by its parents; `None` where they do not lead there.
fn levels(source: u32, parents: &[u32]) -> Vec<Option<u32>> {
    let mut levels = vec![None; parents.len()];
    levels[source as usize] = Some(0);
    let mut path = Vec::new();
    for start in 0..parents.len() as u32 {
        let mut v = start;
        while v != NOBODY && levels[v as usize].is_none() && path.len() <= parents.len() {
            path.push(v);
            v = parents[v as usize];
        }
        let mut level = levels.get(v as usize).copied().flatten();
        while let Some(v) = path.pop() {
            level = level.map(|level| level + 1);
            levels[v as usize] = level;
        }
    }
    levels
}

impl StagedKernel for Search {
    fn name(&self) -> String {
        "bfs".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        match self.at {
            At::Build => self.build.next_stage().or_else(|| self.start_source()),
            At::Fill => self.start_search(),
            At::Search => self.next_level(),
        }
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        match self.at {
            At::Build => self.build.step(work, out),
            At::Fill => {
                let range = fill_block(self.places.parents, work.at, out);
                self.parents[range].fill(NOBODY);
                work.at += 1;
            }
            At::Search => self.search(thread, work, out),
        }
    }

    fn finish_share(&mut self, thread: usize, out: &mut Vec<Op>) {
        if self.at == At::Search {
            self.flush(thread, out);
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let each = |sum: u64| (sum / self.begun.max(1) as u64).to_string();
        let tree = match self.wrong() {
            0 => "valid".to_string(),
            wrong => format!("{wrong} vertices are wrong"),
        };
        vec![
            ("vertices".into(), self.graph.vertices().to_string()),
            ("sources".into(), self.begun.to_string()),
            ("vertices reached per source".into(), each(self.reached)),
            ("levels per source".into(), each(self.levels)),
            ("directed edges per source".into(), each(self.edges)),
            ("last tree".into(), tree),
        ]
    }
}
