//! The graph kernels against slow, obvious ones.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use varve_access::Kind;

use super::bc::Betweenness;
use super::csr::{Csr, Kronecker};
use super::search::SearchSetting;
use crate::harness::{self, CallOrder, Tally};
use crate::loops::{Loops, Share};
use varve_access::random::Rng;

/// Brandes' algorithm as he wrote it down, one thread, double precision.
fn brandes(graph: &Csr, sources: &[u32]) -> Vec<f64> {
    let n = graph.vertices();
    let mut scores = vec![0.0; n];
    for &source in sources {
        let mut stack = Vec::new();
        let mut before = vec![Vec::new(); n];
        let mut paths = vec![0.0; n];
        let mut depth = vec![-1i64; n];
        paths[source as usize] = 1.0;
        depth[source as usize] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(v) = queue.pop_front() {
            stack.push(v);
            for &w in graph.neighbours(v) {
                if depth[w as usize] < 0 {
                    depth[w as usize] = depth[v as usize] + 1;
                    queue.push_back(w);
                }
                if depth[w as usize] == depth[v as usize] + 1 {
                    paths[w as usize] += paths[v as usize];
                    before[w as usize].push(v);
                }
            }
        }
        let mut delta = vec![0.0; n];
        while let Some(w) = stack.pop() {
            for &v in &before[w as usize] {
                delta[v as usize] +=
                    paths[v as usize] / paths[w as usize] * (1.0 + delta[w as usize]);
            }
            if w != source {
                scores[w as usize] += delta[w as usize];
            }
        }
    }
    scores
}

fn ours(
    graph: &Arc<Csr>,
    sources: &[u32],
    id: u64,
    share: Share,
    order: CallOrder,
) -> (Vec<f32>, Tally) {
    let setting = SearchSetting {
        sources: sources.to_vec(),
        generated: 100,
        id,
        share,
        touch: 4096,
        threads: 3,
    };
    let mut program = Loops::new(Betweenness::new(graph.clone(), setting), None, 3);
    let tally = harness::run(&mut program, order, 100_000_000);
    (program.kernel.scores().to_vec(), tally)
}

fn assert_close(ours: &[f32], want: &[f64]) {
    let most = want.iter().copied().fold(1.0, f64::max);
    for (v, (&a, &b)) in ours.iter().zip(want).enumerate() {
        // Single-precision sums, as in the suite.
        assert!(
            (f64::from(a) - b).abs() <= 1e-4 * b.max(most * 1e-3),
            "vertex {v}: {a}, should be {b}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn betweenness_is_that_of_brandes(
        edges in prop::collection::vec((0u32..30, 0u32..30), 1..120),
        sources in prop::collection::vec(0u32..30, 1..4),
        wide in any::<bool>(),
        dynamic in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let graph = Arc::new(Csr::from_edges(30, &edges));
        let share = if dynamic { Share::Dynamic(2) } else { Share::Static };
        let id = if wide { 8 } else { 4 };
        let (scores, _) = ours(&graph, &sources, id, share, CallOrder::Random(seed));
        assert_close(&scores, &brandes(&graph, &sources));
    }

    #[test]
    fn renaming_vertices_renames_their_scores(
        edges in prop::collection::vec((0u32..20, 0u32..20), 1..60),
        source in 0u32..20,
        seed in any::<u64>(),
    ) {
        let mut names: Vec<u32> = (0..20).collect();
        let mut rng = Rng::new(seed, 0);
        for i in (1..20).rev() {
            names.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let renamed: Vec<(u32, u32)> =
            edges.iter().map(|&(a, b)| (names[a as usize], names[b as usize])).collect();
        let (before, _) =
            ours(&Arc::new(Csr::from_edges(20, &edges)), &[source], 4, Share::Static, CallOrder::RoundRobin);
        let (after, _) = ours(
            &Arc::new(Csr::from_edges(20, &renamed)),
            &[names[source as usize]], 4, Share::Static, CallOrder::RoundRobin,
        );
        let want: Vec<f64> = (0..20).map(|v| f64::from(before[v])).collect();
        let back: Vec<f32> = (0..20).map(|v| after[names[v] as usize]).collect();
        assert_close(&back, &want);
    }
}

#[test]
fn a_power_law_graph_gives_the_same_scores_in_any_order_of_threads() {
    let shape = Kronecker {
        scale: 11,
        degree: 16,
        seed: 5,
    };
    let graph = Arc::new(shape.build());
    let sources = graph.sources(3, 1);
    let (scores, tally) = ours(&graph, &sources, 4, Share::Static, CallOrder::RoundRobin);
    assert_close(&scores, &brandes(&graph, &sources));
    assert_eq!(tally.requests[&0], 3);
    for (order, share) in [
        (CallOrder::OneByOne, Share::Static),
        (CallOrder::Random(9), Share::Dynamic(64)),
    ] {
        let (again, other) = ours(&graph, &sources, 4, share, order);
        // Bit for bit: counts are whole numbers and dependencies are added in the order of the edges.
        assert_eq!(scores, again, "{order:?}");
        // Which thread finds a vertex first differs; the accesses do not.
        assert!(tally.of(Kind::Update).abs_diff(other.of(Kind::Update)) < 200);
    }
}

#[test]
fn forward_accesses_are_one_depth_per_edge() {
    // A star of 1 + 40 vertices, from the hub: 40 edges out and 40 back.
    let edges: Vec<(u32, u32)> = (1..41).map(|v| (0, v)).collect();
    let graph = Arc::new(Csr::from_edges(41, &edges));
    let setting = SearchSetting {
        sources: vec![0],
        generated: 40,
        id: 4,
        share: Share::Static,
        touch: 4096,
        threads: 1,
    };
    let mut program = Loops::new(Betweenness::new(graph, setting), None, 1);
    let regions = varve_access::Program::regions(&program);
    let depths = regions
        .iter()
        .find(|region| region.name == "bc.depths")
        .unwrap()
        .clone();
    let mut found = 0;
    let mut looked = 0;
    harness::each(&mut program, CallOrder::RoundRobin, |_, op| {
        if op.addr >= depths.base && op.addr < depths.base + depths.bytes {
            found += u32::from(op.kind == Kind::Update);
            looked += u32::from(op.kind == Kind::Read);
        }
    });
    assert_eq!((found, looked), (40, 40));
}

/// PageRank with a dense matrix, double precision.
fn dense_ranks(graph: &Csr, sweeps: usize) -> Vec<f64> {
    let n = graph.vertices();
    let mut give = vec![vec![0.0; n]; n];
    for v in 0..n as u32 {
        let neighbours = graph.neighbours(v);
        for &w in neighbours {
            give[w as usize][v as usize] = 1.0 / neighbours.len() as f64;
        }
    }
    let mut scores = vec![1.0 / n as f64; n];
    for _ in 0..sweeps {
        let sum = |row: &Vec<f64>| row.iter().zip(&scores).map(|(a, x)| a * x).sum::<f64>();
        scores = give
            .iter()
            .map(|row| 0.15 / n as f64 + 0.85 * sum(row))
            .collect();
    }
    scores
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn ranks_are_those_of_the_dense_matrix(
        edges in prop::collection::vec((0u32..30, 0u32..30), 1..200),
        dynamic in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let graph = Arc::new(Csr::from_edges(30, &edges));
        let share = if dynamic { Share::Dynamic(4) } else { Share::Static };
        let setting =
            super::pagerank::PageRankSetting { iterations: 7, generated: 100, id: 8, share, touch: 4096, threads: 3 };
        let mut program = Loops::new(super::pagerank::PageRank::new(graph.clone(), setting), None, 3);
        let tally = harness::run(&mut program, CallOrder::Random(seed), 1_000_000);
        prop_assert_eq!(tally.requests[&0], 7);
        for (ours, want) in program.kernel.scores().iter().zip(dense_ranks(&graph, 7)) {
            prop_assert!((f64::from(*ours) - want).abs() < 1e-6, "{} {}", ours, want);
        }
    }
}

#[test]
fn pagerank_reads_one_contribution_per_edge_and_sweep_whatever_the_order() {
    let graph = Arc::new(
        Kronecker {
            scale: 9,
            degree: 8,
            seed: 2,
        }
        .build(),
    );
    let make = || -> Box<dyn varve_access::Program> {
        let setting = super::pagerank::PageRankSetting {
            iterations: 2,
            generated: 4096,
            id: 4,
            share: Share::Static,
            touch: 4096,
            threads: 3,
        };
        Box::new(Loops::new(
            super::pagerank::PageRank::new(graph.clone(), setting),
            None,
            3,
        ))
    };
    harness::assert_order_does_not_matter(make, 10_000_000);
    let mut program = make();
    let regions = program.regions();
    let region = regions
        .iter()
        .find(|region| region.name == "pr.contributions")
        .unwrap();
    let mut reads = 0;
    harness::each(&mut *program, CallOrder::RoundRobin, |_, op| {
        reads += u64::from(
            op.kind == Kind::Read && (region.base..region.base + region.bytes).contains(&op.addr),
        );
    });
    assert_eq!(reads, 2 * graph.directed_edges());
}
