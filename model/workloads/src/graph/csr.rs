//! Undirected graphs as compressed sparse rows, and the Kronecker generator that makes them.

use super::levels::Levels;
use crate::host::{large_vec, prefetch};
use varve_access::random::Rng;

/// An undirected graph: the neighbours of each vertex in rising order, no loops, no parallel edges; every edge is
/// stored in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csr {
    /// `neighbours[start[v]..start[v + 1]]` are those of `v`; one entry more than vertices.
    start: Vec<u64>,
    neighbours: Vec<u32>,
}

/// Shape of a Kronecker graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kronecker {
    /// Base-2 logarithm of the number of vertices, 1 to 31.
    pub scale: u32,
    /// Generated edges per vertex, before loops and duplicates are dropped. Graph500 and GAP: 16.
    pub degree: u32,
    /// Seed of edges and of the vertices' permutation.
    pub seed: u64,
}

/// Edges per independent stream of random numbers.
const BLOCK: u64 = 1 << 16;

impl Kronecker {
    /// Number of generated edges.
    pub fn edges(self) -> u64 {
        u64::from(self.degree) << self.scale
    }

    /// Calls `each` with every generated edge (loops and duplicates included), vertices already permuted.
    fn generate(self, permutation: &[u32], mut each: impl FnMut(u32, u32)) {
        let edges = self.edges();
        let (three, rest) = (Levels::new(3), Levels::new(self.scale % 3));
        for block in 0..edges.div_ceil(BLOCK) {
            let mut rng = Rng::new(self.seed, block);
            for _ in block * BLOCK..edges.min((block + 1) * BLOCK) {
                let (mut from, mut to) = if !self.scale.is_multiple_of(3) {
                    rest.draw(&mut rng)
                } else {
                    (0, 0)
                };
                for _ in 0..self.scale / 3 {
                    let (f, t) = three.draw(&mut rng);
                    (from, to) = (from << 3 | f, to << 3 | t);
                }
                each(permutation[from as usize], permutation[to as usize]);
            }
        }
    }

    /// Generates the graph: edges, then vertices renamed at random so that a name does not depend on a degree.
    ///
    /// Takes at most `24 * degree + 16` bytes of host memory per vertex.
    pub fn build(self) -> Csr {
        let n = 1u64 << self.scale;
        let mut permutation: Vec<u32> = large_vec(n as usize);
        permutation.extend(0..n as u32);
        let mut rng = Rng::new(self.seed, u64::MAX);
        for i in (1..n).rev() {
            permutation.swap(i as usize, rng.below(i + 1) as usize);
        }
        let mut parts = Parts::new(n, 2 * self.edges());
        self.generate(&permutation, |a, b| parts.add(a, b));
        drop(permutation);
        parts.into_csr()
    }
}

/// Directed edges on their way into rows, divided by the first vertex so that each part is sorted within the
/// host's caches.
struct Parts {
    vertices: u64,
    /// Vertices `i << shift ..` belong to part `i`.
    shift: u32,
    /// `from << 32 | to`.
    parts: Vec<Vec<u64>>,
}

impl Parts {
    fn new(vertices: u64, directed: u64) -> Parts {
        // About 2^17 edges (1 MiB) in a part, but not more parts than a host's TLB has entries.
        let wanted = (directed >> 17).clamp(1, 1024).next_power_of_two();
        let bits = 64 - vertices.saturating_sub(1).leading_zeros();
        let shift = bits.saturating_sub(wanted.ilog2());
        let parts = ((vertices.max(1) - 1) >> shift) + 1;
        let each = (directed / parts + directed / parts / 16) as usize;
        Parts {
            vertices,
            shift,
            parts: (0..parts).map(|_| large_vec(each)).collect(),
        }
    }

    /// Adds an edge in both directions, unless it is a loop.
    #[inline]
    fn add(&mut self, a: u32, b: u32) {
        if a != b {
            self.parts[(a >> self.shift) as usize].push(u64::from(a) << 32 | u64::from(b));
            self.parts[(b >> self.shift) as usize].push(u64::from(b) << 32 | u64::from(a));
        }
    }

    fn into_csr(self) -> Csr {
        let most: usize = self.parts.iter().map(Vec::len).sum();
        let mut start = vec![0u64; self.vertices as usize + 1];
        let mut neighbours = large_vec(most);
        for mut part in self.parts {
            part.sort_unstable();
            part.dedup();
            for &edge in &part {
                start[(edge >> 32) as usize + 1] += 1;
            }
            neighbours.extend(part.iter().map(|&edge| edge as u32));
        }
        for v in 1..start.len() {
            start[v] += start[v - 1];
        }
        neighbours.shrink_to_fit();
        Csr { start, neighbours }
    }
}

impl Csr {
    /// A graph of `n` vertices from a list of edges; loops and duplicates are dropped.
    pub fn from_edges(n: usize, edges: &[(u32, u32)]) -> Csr {
        let mut parts = Parts::new(n as u64, 2 * edges.len() as u64);
        edges.iter().for_each(|&(a, b)| parts.add(a, b));
        parts.into_csr()
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.start.len() - 1
    }

    /// Number of stored edges, both directions counted.
    pub fn directed_edges(&self) -> u64 {
        self.neighbours.len() as u64
    }

    /// Where the neighbours of `v` are stored: a half-open range of edge numbers.
    #[inline(always)]
    pub fn range(&self, v: u32) -> (u64, u64) {
        (self.start[v as usize], self.start[v as usize + 1])
    }

    /// The neighbours with edge numbers `low..high`.
    #[inline(always)]
    pub fn edges(&self, low: u64, high: u64) -> &[u32] {
        &self.neighbours[low as usize..high as usize]
    }

    /// Asks the host's cache for the row pointers of `v`.
    #[inline(always)]
    pub fn prefetch_range(&self, v: u32) {
        prefetch(&self.start, v as usize);
    }

    /// Asks the host's cache for the start of the row of `v`.
    #[inline(always)]
    pub fn prefetch_row(&self, v: u32) {
        let low = self.start[v as usize] as usize;
        prefetch(&self.neighbours, low);
        prefetch(&self.neighbours, low + 16);
    }

    /// The neighbours with edge numbers `low..high` as far as there are that many.
    #[inline(always)]
    pub fn edges_within(&self, low: u64, high: u64) -> &[u32] {
        let end = self.neighbours.len();
        &self.neighbours[(low as usize).min(end)..(high as usize).min(end)]
    }

    /// The neighbours of `v`, rising.
    pub fn neighbours(&self, v: u32) -> &[u32] {
        let (low, high) = self.range(v);
        self.edges(low, high)
    }

    /// `count` start vertices with at least one neighbour, drawn with `seed`, as the GAP suite picks them.
    pub fn sources(&self, count: usize, seed: u64) -> Vec<u32> {
        let mut rng = Rng::new(seed, 0x50u64);
        let mut sources = Vec::with_capacity(count);
        if self.neighbours.is_empty() {
            return sources;
        }
        while sources.len() < count {
            let v = rng.below(self.vertices() as u64) as u32;
            if !self.neighbours(v).is_empty() {
                sources.push(v);
            }
        }
        sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn rows_are_the_sets_of_neighbours(edges in prop::collection::vec((0u32..20, 0u32..20), 0..80)) {
            let graph = Csr::from_edges(20, &edges);
            let mut sets = vec![BTreeSet::new(); 20];
            for &(a, b) in edges.iter().filter(|(a, b)| a != b) {
                sets[a as usize].insert(b);
                sets[b as usize].insert(a);
            }
            for (v, set) in sets.iter().enumerate() {
                let want: Vec<u32> = set.iter().copied().collect();
                prop_assert_eq!(graph.neighbours(v as u32), &want[..]);
            }
        }
    }

    #[test]
    fn quadrants_come_with_their_probabilities() {
        // Without a permutation, the top bits of an edge say its first quadrant.
        let shape = Kronecker {
            scale: 14,
            degree: 16,
            seed: 3,
        };
        let identity: Vec<u32> = (0..1 << 14).collect();
        let mut counts = [0u64; 4];
        shape.generate(&identity, |a, b| {
            counts[(a >> 13 << 1 | b >> 13) as usize] += 1
        });
        let shares = counts.map(|count| count as f64 / shape.edges() as f64);
        for (share, want) in shares.into_iter().zip([0.57, 0.19, 0.19, 0.05]) {
            assert!((share - want).abs() < 0.005, "{shares:?}");
        }
    }

    #[test]
    fn a_kronecker_graph_is_symmetric_skewed_and_repeatable() {
        let shape = Kronecker {
            scale: 12,
            degree: 16,
            seed: 1,
        };
        let graph = shape.build();
        assert_eq!(graph, shape.build());
        assert_ne!(graph, Kronecker { seed: 2, ..shape }.build());
        assert!(graph.directed_edges() <= 2 * shape.edges());
        assert!(graph.directed_edges() > shape.edges());
        let mut degrees: Vec<usize> = Vec::new();
        for v in 0..graph.vertices() as u32 {
            degrees.push(graph.neighbours(v).len());
            for &w in graph.neighbours(v) {
                assert!(graph.neighbours(w).binary_search(&v).is_ok());
            }
        }
        degrees.sort_unstable();
        let top: usize = degrees[degrees.len() - 41..].iter().sum();
        // A power law: the top 1 % of vertices hold far more than 1 % of the edges.
        assert!(top as u64 * 8 > graph.directed_edges(), "{top}");
    }
}
