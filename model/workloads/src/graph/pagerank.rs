//! PageRank by pulling, as in the GAP suite (`pr_spmv`): every vertex adds up the contributions of its neighbours.
//!
//! | array | bytes | accessed, per sweep |
//! |---|---|---|
//! | `csr.index` | 8 (n + 1) | twice in runs |
//! | `csr.neighbours` | id × m | in runs |
//! | `pr.scores` | 4 n | read and written in runs |
//! | `pr.contributions` | 4 n | written in runs, read at random, once per edge |
//!
//! An iteration is one sweep over all vertices. Vertices without neighbours keep the base score; their contributions
//! are lost, as in the suite. Sums are taken in the order of the rows, so that scores do not depend on threads.

use std::sync::Arc;

use varve_access::{Kind, Op, Region};

use super::build::Build;
use super::csr::Csr;
use crate::host::{large_vec, prefetch};
use crate::layout::{Array, Layout};
use crate::loops::{Share, Stage, StagedKernel, Work, run};

/// Share of a score that follows edges.
const DAMPING: f32 = 0.85;
/// Vertices per step of the first loop.
const BLOCK: u64 = 256;
/// Edges of one vertex per step of the second loop.
const EDGES_PER_STEP: u64 = 256;
/// Prefetch distance on the host, in edges.
const EDGES_AHEAD: u64 = 32;

// Instructions, counted on the loops as a compiler for x86-64 emits them at -O2.
/// First loop, per line of 16 scores: sixteen subtractions of row pointers, conversions, divisions, vectorized by eight.
const PER_SHARE_LINE: u32 = 20;
/// Second loop, per vertex: row pointers, loop set-up and exit, the new score, the change's absolute value.
const PER_VERTEX: u32 = 16;
/// Per edge: load the neighbour, load and add its contribution, advance, compare, branch.
const PER_EDGE: u32 = 5;

/// How it is run and modelled.
#[derive(Clone, Copy, Debug)]
pub struct PageRankSetting {
    /// Sweeps.
    pub iterations: usize,
    /// Edges generated before loops and duplicates went.
    pub generated: u64,
    /// Bytes per vertex name, 4 or 8.
    pub id: u64,
    /// How vertices are shared among threads in the second loop.
    pub share: Share,
    /// Bytes between two first touches.
    pub touch: u64,
    /// Threads.
    pub threads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Build,
    Contribute,
    Pull,
}

/// The kernel, for [`crate::loops::Loops`].
pub struct PageRank {
    graph: Arc<Csr>,
    setting: PageRankSetting,
    regions: Vec<Region>,
    build: Build,
    score_array: Array,
    contribution_array: Array,
    at: At,
    begun: usize,
    scores: Vec<f32>,
    contributions: Vec<f32>,
    /// Per thread: the sum that its step is in the middle of, and its vertices' changes.
    sums: Vec<(f32, f64)>,
    change: f64,
}

impl PageRank {
    /// PageRank of `graph`.
    pub fn new(graph: Arc<Csr>, setting: PageRankSetting) -> PageRank {
        let mut layout = Layout::new();
        let (n, m) = (graph.vertices() as u64, graph.directed_edges());
        let mut build = Build::new(
            &mut layout,
            n,
            setting.generated.max(1),
            m.max(1),
            setting.id,
            setting.touch,
        );
        let score_array = layout.array("pr.scores", n, 4);
        let contribution_array = layout.array("pr.contributions", n, 4);
        build.then_touch(score_array);
        build.then_touch(contribution_array);
        let mut contributions = large_vec(n as usize);
        contributions.resize(n as usize, 0.0);
        PageRank {
            regions: layout.regions().to_vec(),
            build,
            score_array,
            contribution_array,
            at: At::Build,
            begun: 0,
            scores: vec![1.0 / n as f32; n as usize],
            contributions,
            sums: vec![(0.0, 0.0); setting.threads],
            change: 0.0,
            graph,
            setting,
        }
    }

    /// The scores after the last sweep.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The contribution of each vertex along each of its edges.
    fn contribute(&mut self, work: &mut Work, out: &mut Vec<Op>) {
        let low = work.at * BLOCK;
        let high = (low + BLOCK).min(self.graph.vertices() as u64);
        run(
            out,
            Kind::Read,
            self.score_array.at(low),
            4 * (high - low),
            2,
        );
        run(
            out,
            Kind::Read,
            self.build.index.at(low),
            8 * (high - low + 1),
            2,
        );
        run(
            out,
            Kind::Write,
            self.contribution_array.at(low),
            4 * (high - low),
            PER_SHARE_LINE,
        );
        for v in low as usize..high as usize {
            let degree = self.graph.neighbours(v as u32).len();
            self.contributions[v] = if degree == 0 {
                0.0
            } else {
                self.scores[v] / degree as f32
            };
        }
        work.at += 1;
    }

    fn pull(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let u = work.at;
        let (low, high) = self.graph.range(u as u32);
        if work.within == 0 {
            // The second pointer is the next vertex' first.
            out.push(Op::read(self.build.index.at(u + 1), 8, PER_VERTEX - 2));
            self.sums[thread].0 = 0.0;
        }
        let id = self.setting.id;
        let per_line = 64 / id;
        let mut edge = low + work.within;
        let to = high.min(edge + EDGES_PER_STEP);
        for &v in self
            .graph
            .edges_within(edge + EDGES_AHEAD, to + EDGES_AHEAD)
        {
            prefetch(&self.contributions, v as usize);
        }
        let mut sum = self.sums[thread].0;
        while edge < to {
            let next = to.min((edge / per_line + 1) * per_line);
            // Rows follow each other: the neighbours are one long run, whatever the vertices.
            out.push(Op::read(
                self.build.neighbours.at(edge),
                ((next - edge) * id) as u16,
                1,
            ));
            for &v in self.graph.edges(edge, next) {
                out.push(Op::read(
                    self.contribution_array.at(u64::from(v)),
                    4,
                    PER_EDGE,
                ));
                sum += self.contributions[v as usize];
            }
            edge = next;
        }
        work.within = edge - low;
        self.sums[thread].0 = sum;
        if edge == high {
            (work.at, work.within) = (u + 1, 0);
            let score = (1.0 - DAMPING) / self.graph.vertices() as f32 + DAMPING * sum;
            out.push(Op::new(Kind::Update, self.score_array.at(u), 4, 2));
            self.sums[thread].1 += f64::from((score - self.scores[u as usize]).abs());
            self.scores[u as usize] = score;
        }
    }

    fn start_sweep(&mut self) -> Option<Stage> {
        if self.begun == self.setting.iterations {
            return None;
        }
        self.begun += 1;
        self.at = At::Contribute;
        let stage =
            Stage::parallel((self.graph.vertices() as u64).div_ceil(BLOCK)).starts_iteration();
        Some(if self.begun == 1 {
            stage.starts_run()
        } else {
            stage
        })
    }
}

impl StagedKernel for PageRank {
    fn name(&self) -> String {
        "pagerank".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        match self.at {
            At::Build => self.build.next_stage().or_else(|| self.start_sweep()),
            At::Contribute => {
                self.at = At::Pull;
                let stage = Stage::parallel(self.graph.vertices() as u64);
                Some(Stage {
                    share: self.setting.share,
                    ..stage
                })
            }
            At::Pull => {
                self.change = self.sums.iter().map(|sums| sums.1).sum();
                self.sums.fill((0.0, 0.0));
                self.start_sweep()
            }
        }
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        match self.at {
            At::Build => self.build.step(work, out),
            At::Contribute => self.contribute(work, out),
            At::Pull => self.pull(thread, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let best =
            (0..self.scores.len()).max_by(|&a, &b| self.scores[a].total_cmp(&self.scores[b]));
        let sum: f64 = self.scores.iter().map(|&score| f64::from(score)).sum();
        vec![
            ("vertices".into(), self.graph.vertices().to_string()),
            (
                "directed edges".into(),
                self.graph.directed_edges().to_string(),
            ),
            ("highest vertex".into(), best.unwrap_or(0).to_string()),
            ("sum of scores".into(), format!("{sum:.6}")),
            (
                "change in the last sweep".into(),
                format!("{:.3e}", self.change),
            ),
        ]
    }
}
