//! The grids of MG: where their points lie, the accesses of each loop, and the loops themselves.

use varve_access::{Kind, Op};

use crate::init::INSTRUCTIONS_PER_LINE;
use crate::layout::Array;
use crate::loops::{Work, run};

/// Real data behind the arrays of a [`Grid`].
pub struct MgArrays {
    /// The solution, or its correction, on all levels.
    pub u: Vec<f64>,
    /// The right-hand side on the finest level.
    pub v: Vec<f64>,
    /// The residual on all levels.
    pub r: Vec<f64>,
    /// Coefficients of the smoother by distance from the centre.
    pub smoother: [f64; 4],
}

/// Coefficients of the residual, by distance from the centre.
pub const A: [f64; 4] = [-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0];

/// One loop over a grid; the number is a level, 0 the finest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// u = 0
    Zero(usize),
    /// u += interpolation of the next coarser u
    Interpolate(usize),
    /// r = v - A u on the finest level
    ResidualOfV,
    /// r = r - A u
    ResidualOfR(usize),
    /// u += C r
    Smooth(usize),
    /// r of the next coarser level = restriction of r
    Restrict(usize),
    /// ghost planes of u
    WrapU(usize),
    /// ghost planes of r
    WrapR(usize),
}

/// Points of a row per step.
const BLOCK: usize = 256;
/// Instructions per line and run of a stencil; see the documentation of the kernel.
const PER_STENCIL_LINE: u32 = 5;
/// Instructions per line of a copy.
const PER_COPY_LINE: u32 = 4;

/// One level: a box of points, ghosts included, within the arrays of all levels. Finest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MgLevel {
    /// Points along the axes, with a ghost at either end; the first varies fastest.
    pub n: [usize; 3],
    /// Number of points in finer levels.
    pub offset: usize,
}

impl MgLevel {
    /// Levels from `edges` points down to two along the shortest axis.
    pub fn hierarchy(edges: [u64; 3]) -> Vec<MgLevel> {
        let count = edges.iter().min().map_or(1, |edge| edge.ilog2().max(1));
        let mut levels = Vec::new();
        let mut offset = 0;
        for level in 0..count {
            let n = edges.map(|edge| (edge >> level) as usize + 2);
            levels.push(MgLevel { n, offset });
            offset += n[0] * n[1] * n[2];
        }
        levels
    }

    /// Number of points, with ghosts.
    pub fn points(&self) -> u64 {
        (self.n[0] * self.n[1] * self.n[2]) as u64
    }

    /// Index of the first point of row `j` of plane `k` in an array of all levels.
    pub fn row(&self, j: usize, k: usize) -> usize {
        self.offset + (k * self.n[1] + j) * self.n[0]
    }
}

/// All levels and their places in memory.
pub struct Grid {
    /// Finest first.
    pub levels: Vec<MgLevel>,
    /// The solution (on coarse levels, its correction).
    pub u: Array,
    /// The right-hand side.
    pub v: Array,
    /// The residual.
    pub r: Array,
}

/// The nine rows around row `j` of plane `k`: that row, its four neighbours that share a face, its four that share an edge.
fn around(level: &MgLevel, j: usize, k: usize) -> [usize; 9] {
    let row = |dj: usize, dk: usize| level.row(j + dj - 1, k + dk - 1);
    [
        row(1, 1),
        row(0, 1),
        row(2, 1),
        row(1, 0),
        row(1, 2),
        row(0, 0),
        row(2, 0),
        row(0, 2),
        row(2, 2),
    ]
}

/// Applies a 27-point stencil to the points `low..high` of a row and hands each result to `each`.
/// `c` holds the coefficients by distance: centre, face, edge, corner.
fn stencil(
    from: &[f64],
    rows: [usize; 9],
    c: [f64; 4],
    low: usize,
    high: usize,
    mut each: impl FnMut(usize, f64),
) {
    let mut faces = [0.0; BLOCK + 2];
    let mut edges = [0.0; BLOCK + 2];
    for i in low - 1..high + 1 {
        let at = |row: usize| from[rows[row] + i];
        faces[i + 1 - low] = at(1) + at(2) + at(3) + at(4);
        edges[i + 1 - low] = at(5) + at(6) + at(7) + at(8);
    }
    for i in low..high {
        let centre = &from[rows[0] + i - 1..=rows[0] + i + 1];
        let b = i + 1 - low;
        let face = centre[0] + centre[2] + faces[b];
        let edge = edges[b] + faces[b - 1] + faces[b + 1];
        let corner = edges[b - 1] + edges[b + 1];
        each(
            i,
            c[0] * centre[1] + c[1] * face + c[2] * edge + c[3] * corner,
        );
    }
}

impl Grid {
    /// Loop iterations of `task` that threads share.
    pub fn items(&self, task: Task) -> u64 {
        let inner = |level: usize| self.levels[level].n[2] as u64 - 2;
        match task {
            Task::Zero(level) => self.levels[level].n[2] as u64,
            Task::Interpolate(level) => inner(level + 1) + 1,
            Task::ResidualOfV => inner(0),
            Task::ResidualOfR(level) | Task::Smooth(level) => inner(level),
            Task::Restrict(level) => inner(level + 1),
            Task::WrapU(level) | Task::WrapR(level) => self.levels[level].n[1] as u64,
        }
    }

    /// Does a block of a row of `task`.
    pub fn step(
        &self,
        task: Task,
        data: Option<&mut MgArrays>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        match task {
            Task::Zero(level) => self.zero(level, data, work, out),
            Task::Interpolate(level) => self.interpolate(level, data, work, out),
            Task::ResidualOfV => self.residual(0, self.v, data, work, out),
            Task::ResidualOfR(level) => self.residual(level, self.r, data, work, out),
            Task::Smooth(level) => self.smooth(level, data, work, out),
            Task::Restrict(level) => self.restrict(level, data, work, out),
            Task::WrapU(level) => self.wrap(level, self.u, data.map(|data| &mut data.u), work, out),
            Task::WrapR(level) => self.wrap(level, self.r, data.map(|data| &mut data.r), work, out),
        }
    }

    /// One access per line of the points `low..high` of a row.
    fn row_ops(kind: Kind, array: Array, row: usize, low: usize, high: usize, out: &mut Vec<Op>) {
        let at = array.at((row + low) as u64);
        run(out, kind, at, ((high - low) * 8) as u64, PER_STENCIL_LINE);
    }

    fn zero(&self, level: usize, data: Option<&mut MgArrays>, work: &mut Work, out: &mut Vec<Op>) {
        let n = self.levels[level].n;
        let row = self.levels[level].row(work.within as usize, work.at as usize);
        let bytes = 8 * n[0] as u64;
        run(
            out,
            Kind::Write,
            self.u.at(row as u64),
            bytes,
            INSTRUCTIONS_PER_LINE,
        );
        if let Some(data) = data {
            data.u[row..row + n[0]].fill(0.0);
        }
        work.within += 1;
        if work.within == n[1] as u64 {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    fn residual(
        &self,
        level: usize,
        of: Array,
        mut data: Option<&mut MgArrays>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let level = &self.levels[level];
        let block = Block::of(level, work);
        let rows = around(level, block.j, block.k);
        let (low, high) = (block.low, block.high);
        for row in rows {
            Self::row_ops(Kind::Read, self.u, row, low - 1, high + 1, out);
        }
        Self::row_ops(Kind::Read, of, rows[0], low, high, out);
        Self::row_ops(Kind::Write, self.r, rows[0], low, high, out);
        match data.as_deref_mut() {
            Some(MgArrays { u, v, r, .. }) if of == self.v => {
                stencil(u, rows, A, low, high, |i, sum| {
                    r[rows[0] + i] = v[rows[0] + i] - sum;
                })
            }
            Some(MgArrays { u, r, .. }) => {
                stencil(u, rows, A, low, high, |i, sum| r[rows[0] + i] -= sum)
            }
            None => {}
        }
        block.finish(level, self.r, data.map(|data| &mut data.r), work, out);
    }

    fn smooth(
        &self,
        level: usize,
        mut data: Option<&mut MgArrays>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let level = &self.levels[level];
        let block = Block::of(level, work);
        let rows = around(level, block.j, block.k);
        let (low, high) = (block.low, block.high);
        for row in rows {
            Self::row_ops(Kind::Read, self.r, row, low - 1, high + 1, out);
        }
        Self::row_ops(Kind::Update, self.u, rows[0], low, high, out);
        if let Some(MgArrays { u, r, smoother, .. }) = data.as_deref_mut() {
            stencil(r, rows, *smoother, low, high, |i, sum| {
                u[rows[0] + i] += sum
            });
        }
        block.finish(level, self.u, data.map(|data| &mut data.u), work, out);
    }

    /// Full weighting: the coarse point lies on the fine one with twice its index.
    fn restrict(
        &self,
        fine: usize,
        mut data: Option<&mut MgArrays>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let (coarse, fine) = (&self.levels[fine + 1], &self.levels[fine]);
        let block = Block::of(coarse, work);
        let rows = around(fine, 2 * block.j, 2 * block.k);
        let (low, high) = (block.low, block.high);
        let target = coarse.row(block.j, block.k);
        for row in rows {
            Self::row_ops(Kind::Read, self.r, row, 2 * low - 1, 2 * high, out);
        }
        Self::row_ops(Kind::Write, self.r, target, low, high, out);
        if let Some(MgArrays { r, .. }) = data.as_deref_mut() {
            let (fine, coarse_values) = r.split_at_mut(coarse.offset);
            let target = target - coarse.offset;
            // The fine points that `stencil` has room for at a time.
            for part in (low..high).step_by(BLOCK / 2) {
                let end = (part + BLOCK / 2).min(high);
                stencil(
                    fine,
                    rows,
                    [0.5, 0.25, 0.125, 0.0625],
                    2 * part,
                    2 * end - 1,
                    |i, sum| {
                        if i % 2 == 0 {
                            coarse_values[target + i / 2] = sum;
                        }
                    },
                );
            }
        }
        block.finish(coarse, self.r, data.map(|data| &mut data.r), work, out);
    }

    /// Trilinear interpolation: coarse row `j`, plane `k` feed fine rows `2j`, `2j + 1` of planes `2k`, `2k + 1`.
    fn interpolate(
        &self,
        fine: usize,
        data: Option<&mut MgArrays>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let (coarse, fine) = (&self.levels[fine + 1], &self.levels[fine]);
        let width = coarse.n[0] - 1;
        let blocks = width.div_ceil(BLOCK / 4);
        let (j, k) = (work.within as usize / blocks, work.at as usize);
        let low = work.within as usize % blocks * (BLOCK / 4);
        let high = (low + BLOCK / 4).min(width);
        let sources = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dj, dk)| coarse.row(j + dj, k + dk));
        let targets =
            [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dj, dk)| fine.row(2 * j + dj, 2 * k + dk));
        for row in sources {
            Self::row_ops(Kind::Read, self.u, row, low, high + 1, out);
        }
        for row in targets {
            Self::row_ops(Kind::Update, self.u, row, 2 * low, 2 * high, out);
        }
        if let Some(data) = data {
            let (fine, from) = data.u.split_at_mut(coarse.offset);
            let at = |source: usize, i: usize| from[sources[source] - coarse.offset + i];
            let sum = |target: usize, i: usize| match target {
                0 => at(0, i),
                1 => 0.5 * (at(1, i) + at(0, i)),
                2 => 0.5 * (at(2, i) + at(0, i)),
                _ => 0.25 * (at(3, i) + at(2, i) + at(1, i) + at(0, i)),
            };
            for (target, row) in targets.into_iter().enumerate() {
                for i in low..high {
                    let (here, next) = (sum(target, i), sum(target, i + 1));
                    fine[row + 2 * i] += here;
                    fine[row + 2 * i + 1] += 0.5 * (here + next);
                }
            }
        }
        work.within += 1;
        if work.within as usize == (coarse.n[1] - 1) * blocks {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    /// Copies row `j` of the first and last inner planes to the opposite ghost planes.
    fn wrap(
        &self,
        level: usize,
        array: Array,
        data: Option<&mut Vec<f64>>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let level = &self.levels[level];
        let (j, planes, width) = (work.at as usize, level.n[2], level.n[0]);
        let copies = [(planes - 2, 0), (1, planes - 1)]
            .map(|(from, to)| (level.row(j, from), level.row(j, to)));
        for (from, to) in copies {
            copy_ops(array, from, to, width, out);
        }
        if let Some(values) = data {
            for (from, to) in copies {
                values.copy_within(from..from + width, to);
            }
        }
        work.at += 1;
    }
}

fn copy_ops(array: Array, from: usize, to: usize, count: usize, out: &mut Vec<Op>) {
    run(
        out,
        Kind::Read,
        array.at(from as u64),
        8 * count as u64,
        PER_COPY_LINE,
    );
    run(
        out,
        Kind::Write,
        array.at(to as u64),
        8 * count as u64,
        PER_COPY_LINE,
    );
}

/// A part of a row of inner points: a step of a loop over planes.
#[derive(Clone, Copy)]
struct Block {
    j: usize,
    k: usize,
    low: usize,
    high: usize,
}

impl Block {
    /// The block that `work` is at: item = inner plane, within = row and block.
    fn of(level: &MgLevel, work: &Work) -> Block {
        let width = level.n[0] - 2;
        let blocks = width.div_ceil(BLOCK);
        let within = work.within as usize;
        let low = 1 + within % blocks * BLOCK;
        let high = (low + BLOCK).min(width + 1);
        Block {
            j: 1 + within / blocks,
            k: 1 + work.at as usize,
            low,
            high,
        }
    }

    /// Goes on to the next block. A thread that has written a row sets the row's two ghosts, and after the plane's
    /// last row the plane's two ghost rows.
    fn finish(
        self,
        level: &MgLevel,
        array: Array,
        mut values: Option<&mut Vec<f64>>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let width = level.n[0];
        work.within += 1;
        if self.high < width - 1 {
            return;
        }
        let row = level.row(self.j, self.k);
        for (from, to) in [(row + width - 2, row), (row + 1, row + width - 1)] {
            copy_ops(array, from, to, 1, out);
            if let Some(values) = values.as_deref_mut() {
                values[to] = values[from];
            }
        }
        if self.j < level.n[1] - 2 {
            return;
        }
        for (from, to) in [(level.n[1] - 2, 0), (1, level.n[1] - 1)] {
            let (from, to) = (level.row(from, self.k), level.row(to, self.k));
            copy_ops(array, from, to, width, out);
            if let Some(values) = values.as_deref_mut() {
                values.copy_within(from..from + width, to);
            }
        }
        (work.at, work.within) = (work.at + 1, 0);
    }
}
