//! Betweenness centrality (Brandes 2001), parallel over the vertices of a level, as in the GAP suite.
//!
//! For each source a breadth-first search counts shortest paths and records in a bitmap which edges lie on one; a
//! second pass walks the levels backward and adds up dependencies. Arrays, for n vertices, m directed edges and names
//! of `id` bytes (GAP is built with 4; with 8, edge list and rows of a graph of 2^27 vertices take 34 GB each):
//!
//! | array | bytes | accessed |
//! |---|---|---|
//! | `csr.index` | 8 (n + 1) | twice per vertex and source, at random |
//! | `csr.neighbours` | id × m | in runs, forward all of it, backward the lines with a successor |
//! | `bc.scores` | 4 n | once per vertex, backward |
//! | `bc.counts` | 8 n | at random, per edge on a shortest path, twice |
//! | `bc.successors` | m / 8 | beside the edges |
//! | `bc.queue`, `bc.local` | id × n, 1024 id per thread | in runs |
//! | `bc.depths` | id × n | at random, per edge forward |
//! | `bc.deltas` | 4 n | at random, per edge on a shortest path, backward |
//!
//! Vertices of a level are handed out 64 at a time, as in GAP. With a static schedule the hubs, which a search finds
//! early, all fall to the first threads, and the others wait at the barrier.
//!
//! Where this differs from GAP: arrays are allocated once and not per source; a thread's queue buffer holds 1024
//! names and not 16 Ki; the source itself gets no score (as in Brandes' definition); the closing division of
//! scores by their maximum is done on the answer and not as accesses.

use std::sync::Arc;

use varve_access::{Op, Region};

use super::build::{Build, fill_block, fill_stage};
use super::csr::Csr;
use super::search::SearchSetting;
use crate::host::large_vec;
use crate::layout::{Array, Layout};
use crate::loops::{Share, Stage, StagedKernel, Work};
use steps::LOCAL;

mod steps;

const UNSEEN: u32 = u32::MAX;

/// State per vertex on the host. The modelled program has an array of each field; here they share a line of the host's
/// cache, which halves the misses of a simulation.
#[derive(Clone, Copy, Default)]
struct Vertex {
    count: f64,
    depth: u32,
    delta: f32,
}

struct Places {
    scores: Array,
    counts: Array,
    successors: Array,
    queue: Array,
    depths: Array,
    deltas: Array,
    local: Array,
    tail: Array,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Build,
    FillCounts,
    ResetSuccessors,
    FillDepths,
    Forward,
    FillDeltas,
    Backward,
}

/// The kernel, for [`crate::loops::Loops`].
pub struct Betweenness {
    graph: Arc<Csr>,
    setting: SearchSetting,
    regions: Vec<Region>,
    build: Build,
    places: Places,
    at: At,
    /// Number of sources begun.
    begun: usize,
    depth: u32,
    /// Where each level starts in the queue; the last entry is its end.
    levels: Vec<usize>,
    /// The level that the backward pass is at.
    level: usize,
    vertices: Vec<Vertex>,
    successors: Vec<u64>,
    scores: Vec<f32>,
    queue: Vec<u32>,
    local: Vec<Vec<u32>>,
    /// Per thread, the dependency of the vertex that its step is in the middle of.
    partial: Vec<f32>,
    reached: u64,
}

impl Betweenness {
    /// Betweenness of `graph` from the setting's sources.
    pub fn new(graph: Arc<Csr>, setting: SearchSetting) -> Betweenness {
        let mut layout = Layout::new();
        let (n, m) = (graph.vertices() as u64, graph.directed_edges());
        let id = setting.id;
        let mut build = Build::new(
            &mut layout,
            n,
            setting.generated.max(1),
            m.max(1),
            id,
            setting.touch,
        );
        let places = Places {
            scores: layout.array("bc.scores", n, 4),
            counts: layout.array("bc.counts", n, 8),
            successors: layout.array("bc.successors", m.div_ceil(64).max(1), 8),
            queue: layout.array("bc.queue", n, id),
            depths: layout.array("bc.depths", n, id),
            deltas: layout.array("bc.deltas", n, 4),
            local: layout.array("bc.local", (setting.threads * LOCAL) as u64, id),
            tail: layout.array("bc.tail", 1, 8),
        };
        let p = &places;
        for array in [
            p.scores,
            p.counts,
            p.successors,
            p.queue,
            p.depths,
            p.deltas,
            p.local,
            p.tail,
        ] {
            build.then_touch(array);
        }
        let mut vertices = large_vec(n as usize);
        vertices.resize(n as usize, Vertex::default());
        Betweenness {
            regions: layout.regions().to_vec(),
            build,
            at: At::Build,
            begun: 0,
            depth: 0,
            levels: Vec::new(),
            level: 0,
            scores: vec![0.0; n as usize],
            queue: Vec::with_capacity(n as usize),
            vertices,
            successors: vec![0; places.successors.len as usize],
            local: vec![Vec::with_capacity(LOCAL); setting.threads],
            partial: vec![0.0; setting.threads],
            reached: 0,
            places,
            graph,
            setting,
        }
    }

    /// Betweenness so far: sums over sources, not divided by anything.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    fn level_stage(&self, level: usize) -> Stage {
        let items = self.levels[level + 1] - self.levels[level];
        Stage {
            share: self.setting.share,
            ..Stage::parallel(items as u64)
        }
    }

    fn start_source(&mut self) -> Option<Stage> {
        if self.begun == self.setting.sources.len() {
            return None;
        }
        self.begun += 1;
        self.at = At::FillCounts;
        let stage = fill_stage(self.places.counts, Share::Static).starts_iteration();
        Some(if self.begun == 1 {
            stage.starts_run()
        } else {
            stage
        })
    }

    fn start_search(&mut self) -> Stage {
        let source = self.setting.sources[self.begun - 1];
        self.vertices[source as usize].depth = 0;
        self.vertices[source as usize].count = 1.0;
        self.queue.clear();
        self.queue.push(source);
        (self.levels, self.depth) = (vec![0, 1], 1);
        self.at = At::Forward;
        self.level_stage(0)
    }

    /// After a level: the next one, or the backward pass when nothing new was found.
    fn after_level(&mut self) -> Stage {
        let end = self.queue.len();
        if end > self.levels[self.levels.len() - 1] {
            self.levels.push(end);
            self.depth += 1;
            return self.level_stage(self.levels.len() - 2);
        }
        self.reached += end as u64;
        self.level = self.levels.len() - 1;
        self.at = At::FillDeltas;
        fill_stage(self.places.deltas, Share::Static)
    }
}

impl StagedKernel for Betweenness {
    fn name(&self) -> String {
        "bc".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        match self.at {
            At::Build => self.build.next_stage().or_else(|| self.start_source()),
            At::FillCounts => {
                self.at = At::ResetSuccessors;
                // The suite's bitmap is cleared by one thread.
                Some(fill_stage(self.places.successors, Share::Serial))
            }
            At::ResetSuccessors => {
                self.at = At::FillDepths;
                Some(fill_stage(self.places.depths, Share::Static))
            }
            At::FillDepths => Some(self.start_search()),
            At::Forward => Some(self.after_level()),
            At::FillDeltas | At::Backward => {
                self.at = At::Backward;
                // Level 0 is the source alone, whose score does not count.
                if self.level <= 1 {
                    return self.start_source();
                }
                self.level -= 1;
                Some(self.level_stage(self.level))
            }
        }
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        match self.at {
            At::Build => self.build.step(work, out),
            At::Forward => self.forward(thread, work, out),
            At::Backward => self.backward(thread, work, out),
            At::FillCounts => {
                let range = fill_block(self.places.counts, work.at, out);
                self.vertices[range]
                    .iter_mut()
                    .for_each(|vertex| vertex.count = 0.0);
                work.at += 1;
            }
            At::ResetSuccessors => {
                let range = fill_block(self.places.successors, work.at, out);
                self.successors[range].fill(0);
                work.at += 1;
            }
            At::FillDepths => {
                let range = fill_block(self.places.depths, work.at, out);
                self.vertices[range]
                    .iter_mut()
                    .for_each(|vertex| vertex.depth = UNSEEN);
                work.at += 1;
            }
            At::FillDeltas => {
                let range = fill_block(self.places.deltas, work.at, out);
                self.vertices[range]
                    .iter_mut()
                    .for_each(|vertex| vertex.delta = 0.0);
                work.at += 1;
            }
        }
    }

    fn finish_share(&mut self, thread: usize, out: &mut Vec<Op>) {
        if self.at == At::Forward {
            self.flush(thread, out);
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let best =
            (0..self.scores.len()).max_by(|&a, &b| self.scores[a].total_cmp(&self.scores[b]));
        let best = best.unwrap_or(0);
        let most = self.scores.get(best).copied().unwrap_or(0.0);
        let sum: f64 = self.scores.iter().map(|&score| f64::from(score)).sum();
        vec![
            ("vertices".into(), self.graph.vertices().to_string()),
            (
                "directed edges".into(),
                self.graph.directed_edges().to_string(),
            ),
            ("sources".into(), self.begun.to_string()),
            (
                "vertices reached per source".into(),
                (self.reached / self.begun.max(1) as u64).to_string(),
            ),
            ("most central vertex".into(), best.to_string()),
            (
                "mean score over highest".into(),
                format!(
                    "{:.6e}",
                    sum / self.scores.len().max(1) as f64 / f64::from(most.max(f32::MIN_POSITIVE))
                ),
            ),
        ]
    }
}
