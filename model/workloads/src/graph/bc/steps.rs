//! Work of a thread for one vertex of a level, forward and backward, and its accesses.

use varve_access::{Kind, Op};

use super::{Betweenness, UNSEEN};
use crate::host::prefetch;
use crate::loops::Work;

// Instructions, counted on the loops as a compiler for x86-64 emits them at -O2.
/// Per vertex of a level: queue element, two row pointers, loop set-up and exit.
const PER_VERTEX: u32 = 12;
/// Per edge: load the neighbour, advance, compare, branch.
const PER_EDGE: u32 = 4;
/// Per edge forward: load its depth, two compares, two branches.
const PER_DEPTH: u32 = 5;
/// More when it is unseen: compare-and-swap, store into the local queue.
const PER_FIND: u32 = 8;
/// Per edge on a shortest path: an atomic add of a double is a load, add and compare-and-swap loop.
const PER_COUNT: u32 = 8;
/// Per edge on a shortest path: shift, mask and an atomic or of its bit.
const PER_SET: u32 = 6;
/// Per edge backward: shift, test, branch, advance.
const PER_TEST: u32 = 5;
/// Per successor backward: convert, divide, add, multiply, add.
const PER_DELTA: u32 = 6;

/// Edges of one vertex per step; a multiple of the 64 edges of a bitmap word.
const EDGES_PER_STEP: u64 = 64;

/// Edges of a vertex that the host prefetches, at most.
const EDGES_AHEAD: u64 = 32;

/// Names in a thread's queue buffer.
pub const LOCAL: usize = 1024;

impl Betweenness {
    /// The reads that every visit of a vertex starts with: its queue entry and its two row pointers.
    fn visit(&self, position: usize, u: u32, out: &mut Vec<Op>) {
        let id = self.setting.id as u16;
        out.push(Op::read(self.places.queue.at(position as u64), id, 2));
        let pointers = self.build.index.at(u64::from(u));
        if pointers % 64 == 56 {
            out.push(Op::read(pointers, 8, 1));
            out.push(Op::read(pointers + 8, 8, PER_VERTEX - 3));
        } else {
            out.push(Op::read(pointers, 16, PER_VERTEX - 2));
        }
    }

    /// Prefetches into the host's cache the data of the level's next vertices, and of the neighbours of the vertex at
    /// hand: the host would otherwise wait for its own memory most of the time.
    #[inline]
    fn look_ahead(&self, position: usize, end: usize, low: u64, high: u64) {
        let queue = &self.queue[position..end];
        if let Some(&v) = queue.get(12) {
            self.graph.prefetch_range(v);
        }
        if let Some(&v) = queue.get(6) {
            self.graph.prefetch_row(v);
        }
        if let Some(&v) = queue.get(2) {
            let (low, high) = self.graph.range(v);
            for &v in self.graph.edges(low, high.min(low + EDGES_AHEAD)) {
                prefetch(&self.vertices, v as usize);
            }
        }
        // Of the vertex at hand, the data of the next step.
        for &v in self.graph.edges((low + EDGES_AHEAD).min(high), high) {
            prefetch(&self.vertices, v as usize);
        }
    }

    pub(super) fn forward(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let position = self.levels[self.levels.len() - 2] + work.at as usize;
        let u = self.queue[position];
        let (low, high) = self.graph.range(u);
        let mut first = work.within == 0;
        if first {
            self.visit(position, u, out);
        }
        let id = self.setting.id;
        let per_line = 64 / id;
        let paths = self.vertices[u as usize].count;
        let mut edge = low + work.within;
        let to = high.min(edge + EDGES_PER_STEP);
        let end = self.levels[self.levels.len() - 1];
        self.look_ahead(
            position,
            end,
            edge,
            high.min(edge + EDGES_PER_STEP + EDGES_AHEAD),
        );
        while edge < to {
            let next = to.min((edge / per_line + 1) * per_line);
            let count = (next - edge) as u32;
            let bytes = (u64::from(count) * id) as u16;
            let mut line = Op::read(self.build.neighbours.at(edge), bytes, PER_EDGE * count);
            // Row start from the row pointer just loaded; later lines of the row come from a running prefetch.
            line.dependent = u8::from(first);
            out.push(line);
            if first {
                out.push(Op::read(self.places.counts.at(u64::from(u)), 8, 1));
            }
            let mut bits = 0u64;
            let mut dependent = u8::from(first);
            first = false;
            for (i, &v) in self.graph.edges(edge, next).iter().enumerate() {
                let address = self.places.depths.at(u64::from(v));
                let vertex = &mut self.vertices[v as usize];
                let mut op = Op::read(address, id as u16, PER_DEPTH);
                op.dependent = std::mem::take(&mut dependent);
                if vertex.depth == UNSEEN {
                    vertex.depth = self.depth;
                    op.kind = Kind::Update;
                    op.instructions += PER_FIND;
                    self.local[thread].push(v);
                }
                out.push(op);
                if vertex.depth == self.depth {
                    bits |= 1 << i;
                    vertex.count += paths;
                    out.push(Op::new(
                        Kind::Update,
                        self.places.counts.at(u64::from(v)),
                        8,
                        PER_COUNT,
                    ));
                }
            }
            if bits != 0 {
                let word = edge / 64;
                self.successors[word as usize] |= bits << (edge % 64);
                let sets = PER_SET * bits.count_ones();
                out.push(Op::new(
                    Kind::Update,
                    self.places.successors.at(word),
                    8,
                    sets,
                ));
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
    pub(super) fn flush(&mut self, thread: usize, out: &mut Vec<Op>) {
        let found = &mut self.local[thread];
        if found.is_empty() {
            return;
        }
        let id = self.setting.id;
        let (count, tail) = (found.len() as u64, self.queue.len() as u64);
        out.push(Op::new(Kind::Update, self.places.tail.at(0), 8, 10));
        let local = self.places.local.at((thread * LOCAL) as u64);
        // A load and a store per 32-byte vector, and the loop.
        crate::loops::run(out, Kind::Read, local, count * id, 3);
        crate::loops::run(out, Kind::Write, self.places.queue.at(tail), count * id, 4);
        self.queue.append(found);
    }

    pub(super) fn backward(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let position = self.levels[self.level] + work.at as usize;
        let u = self.queue[position];
        let (low, high) = self.graph.range(u);
        let mut first = work.within == 0;
        if first {
            self.visit(position, u, out);
            out.push(Op::read(self.places.counts.at(u64::from(u)), 8, 1));
            self.partial[thread] = 0.0;
        }
        let id = self.setting.id;
        let per_line = 64 / id;
        let paths = self.vertices[u as usize].count;
        let mut delta = self.partial[thread];
        let mut edge = low + work.within;
        let to = high.min(edge + EDGES_PER_STEP);
        let end = self.levels[self.level + 1];
        self.look_ahead(
            position,
            end,
            edge,
            high.min(edge + EDGES_PER_STEP + EDGES_AHEAD),
        );
        let mut word_read = u64::MAX;
        while edge < to {
            let next = to.min((edge / per_line + 1) * per_line);
            let count = (next - edge) as u32;
            let word = edge / 64;
            if word != word_read {
                word_read = word;
                let mut op = Op::read(self.places.successors.at(word), 8, PER_TEST * count);
                op.dependent = u8::from(first);
                out.push(op);
            } else if let Some(last) = out.last_mut() {
                last.instructions += PER_TEST * count;
            }
            let mask = (1u64 << count) - 1;
            let mut bits = self.successors[word as usize] >> (edge % 64) & mask;
            if bits != 0 {
                let bytes = (u64::from(count) * id) as u16;
                out.push(Op::read(
                    self.build.neighbours.at(edge),
                    bytes,
                    bits.count_ones(),
                ));
            }
            let row = self.graph.edges(edge, next);
            let mut dependent = u8::from(first);
            first = false;
            while bits != 0 {
                let v = u64::from(row[bits.trailing_zeros() as usize]);
                bits &= bits - 1;
                let mut op = Op::read(self.places.counts.at(v), 8, 2);
                op.dependent = std::mem::take(&mut dependent);
                out.push(op);
                out.push(Op::read(self.places.deltas.at(v), 4, PER_DELTA));
                let vertex = &self.vertices[v as usize];
                delta += (paths / vertex.count) as f32 * (1.0 + vertex.delta);
            }
            edge = next;
        }
        work.within = edge - low;
        self.partial[thread] = delta;
        if edge == high {
            (work.at, work.within) = (work.at + 1, 0);
            self.vertices[u as usize].delta = delta;
            self.scores[u as usize] += delta;
            out.push(Op::write(self.places.deltas.at(u64::from(u)), 4, 1));
            out.push(Op::new(
                Kind::Update,
                self.places.scores.at(u64::from(u)),
                4,
                3,
            ));
        }
    }
}
