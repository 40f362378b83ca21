//! Breadth-first search against one with a queue and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::bfs::{NOBODY, Search, wrong};
use super::csr::{Csr, Kronecker};
use super::search::SearchSetting;
use crate::harness::{self, CallOrder, Tally};
use crate::loops::{Loops, Share};
use varve_access::{Kind, Program};

/// How far each vertex is from `source`.
fn distances(graph: &Csr, source: u32) -> Vec<Option<u32>> {
    let mut distances = vec![None; graph.vertices()];
    distances[source as usize] = Some(0);
    let mut queue = VecDeque::from([(source, 0)]);
    while let Some((v, distance)) = queue.pop_front() {
        for &w in graph.neighbours(v) {
            if distances[w as usize].is_none() {
                distances[w as usize] = Some(distance + 1);
                queue.push_back((w, distance + 1));
            }
        }
    }
    distances
}

/// How many steps it is from each vertex to the source along its parents.
fn steps(parents: &[u32], source: u32) -> Vec<Option<u32>> {
    let walk = |mut v: u32| {
        let mut steps = 0;
        while v != source {
            v = match parents[v as usize] {
                NOBODY => return None,
                parent => parent,
            };
            steps += 1;
            assert!(steps <= parents.len() as u32, "parents in a circle");
        }
        Some(steps)
    };
    (0..parents.len() as u32).map(walk).collect()
}

fn searched(
    graph: &Arc<Csr>,
    sources: &[u32],
    share: Share,
    order: CallOrder,
) -> (Loops<Search>, Tally) {
    let setting = SearchSetting {
        sources: sources.to_vec(),
        generated: 100,
        id: 8,
        share,
        touch: 4096,
        threads: 3,
    };
    let mut program = Loops::new(Search::new(graph.clone(), setting), None, 3);
    let tally = harness::run(&mut program, order, 100_000_000);
    (program, tally)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_tree_leads_to_the_source_by_shortest_paths(
        edges in prop::collection::vec((0u32..40, 0u32..40), 1..90),
        sources in prop::collection::vec(0u32..40, 1..4),
        dynamic in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let graph = Arc::new(Csr::from_edges(40, &edges));
        let share = if dynamic { Share::Dynamic(2) } else { Share::Static };
        let (program, tally) = searched(&graph, &sources, share, CallOrder::Random(seed));
        let source = sources[sources.len() - 1];
        let parents = program.kernel.parents();
        prop_assert_eq!(steps(parents, source), distances(&graph, source));
        for (v, &parent) in parents.iter().enumerate() {
            let linked = parent == NOBODY || v as u32 == source
                || graph.neighbours(v as u32).contains(&parent);
            prop_assert!(linked, "{} hangs on {}", v, parent);
        }
        prop_assert_eq!(wrong(&graph, source, parents), 0);
        prop_assert_eq!(tally.requests[&0], sources.len() as u64);
    }
}

#[test]
fn a_tree_that_breaks_a_rule_is_found_out() {
    // A ring of six, from 0: levels 0 1 2 3 2 1.
    let ring: Vec<(u32, u32)> = (0..6).map(|v| (v, (v + 1) % 6)).collect();
    let graph = Csr::from_edges(6, &ring);
    assert_eq!(wrong(&graph, 0, &[0, 0, 1, 2, 5, 0]), 0);
    for (tree, why) in [
        (
            [0, 0, 1, 2, 3, 0],
            "4 is 4 steps away, and its neighbour 5 one",
        ),
        ([0, 0, 0, 2, 5, 0], "0 and 2 are no neighbours"),
        ([0, 0, 3, 2, 5, 0], "2 and 3 are a circle"),
        ([0, 0, 1, NOBODY, 5, 0], "3 was left out"),
    ] {
        assert!(wrong(&graph, 0, &tree) > 0, "{why}");
    }
}

#[test]
fn the_parent_of_every_neighbour_is_looked_at_once_per_search() {
    let shape = Kronecker {
        scale: 11,
        degree: 16,
        seed: 5,
    };
    let graph = Arc::new(shape.build());
    let sources = graph.sources(3, 1);
    let answers = |order| {
        let (program, _) = searched(&graph, &sources, Share::Dynamic(64), order);
        program.answers()
    };
    let want = answers(CallOrder::OneByOne);
    assert_eq!(want[5].1, "valid");
    for order in [CallOrder::RoundRobin, CallOrder::Random(4)] {
        assert_eq!(answers(order), want, "{order:?}");
    }

    let (mut edges, mut reached) = (0, 0);
    for &source in &sources {
        for (v, distance) in distances(&graph, source).iter().enumerate() {
            if distance.is_some() {
                edges += graph.neighbours(v as u32).len();
                reached += 1;
            }
        }
    }
    let setting = SearchSetting {
        sources,
        generated: 100,
        id: 4,
        share: Share::Static,
        touch: 4096,
        threads: 2,
    };
    let mut program = Loops::new(Search::new(graph, setting), None, 2);
    let regions = program.regions();
    let is_parent = |addr: u64| {
        let r = regions.iter().find(|r| r.name == "bfs.parents").unwrap();
        (r.base..r.base + r.bytes).contains(&addr)
    };
    let (mut looked, mut found) = (0, 0);
    harness::each(&mut program, CallOrder::RoundRobin, |_, op| {
        if is_parent(op.addr) {
            found += usize::from(op.kind == Kind::Update);
            looked += usize::from(matches!(op.kind, Kind::Read | Kind::Update));
        }
    });
    assert_eq!((looked, found), (edges, reached - 3));
}
