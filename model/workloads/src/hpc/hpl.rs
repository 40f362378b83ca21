//! High-Performance Linpack: a dense system of equations by blocked elimination with partial pivoting.
//!
//! For each panel of `block` columns, as in the benchmark (right-looking):
//!
//! ```text
//!            panel  right of it
//!          +-------+-----------+    pivot, eliminate   8 columns of the panel at a time, one after the other
//!  block   | L, U  |     U     |    swap               the pivots' rows right of the panel
//!          +-------+-----------+    triangle           U, from the panel's first rows
//!          |   L   |   A - LU  |    update             all the rest: nearly all of the work
//!          +-------+-----------+    solve              once, at the end
//! ```
//!
//! The update is a matrix product, blocked for the caches as BLIS does it on Skylake's servers: strips of columns, whose part
//! of U stays in the last cache; 240 rows of a strip at a time, whose part of L stays in the second; and tiles of 8 x 8
//! numbers in registers, while the panel's columns pass. Threads share the rows of a strip.
//!
//! | array | bytes | accessed |
//! |---|---|---|
//! | `hpl.a` | 8 n (n + 8) | read and written once for each panel left of it; panels again and again in the caches |
//! | `hpl.x` | 8 n | at the end |
//!
//! # Scale
//!
//! A machine that is scaled down by `scale` has caches smaller by as much, so a block has fewer columns by its root. An
//! elimination of n x n numbers takes n^3 steps: on a matrix smaller by `scale` it would be shorter by `scale` and by
//! its root once more. So each step of an update counts as often as a block has fewer columns. Work for each byte that
//! comes from memory is then that of full size, and time is divided by `scale` as memory is. Parts that take n^2 steps
//! count once.
//!
//! # Instructions
//!
//! One multiplies and adds eight doubles by AVX-512, and takes one factor from memory (`{1to8}`). For 8 of them there is one
//! load, and a quarter of the loop (an assumption: unrolled by four). A machine of two instructions a cycle then has the two
//! units of a Xeon Gold busy 86 % of the time. Frequencies do not fall under AVX-512 (an assumption).
//!
//! Where this differs from the benchmark: threads share one matrix, none sends anything, and no panel is factored ahead
//! while others update. The matrix is stored strip by strip, and a strip by rows. BLIS copies its operands into that
//! layout; here it is permanent. Prefetching then finds long runs at every scale, as it does at full size.

use super::matrix::{ACCEPTED, LINE, Matrix};
use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{Loops, Stage, StagedKernel, Work, run};
use varve_access::{Kind, Op, Region};
use varve_spec::{Error, Param, Values, Want};

/// Rows of a tile, and columns.
const TILE: usize = LINE;
/// Columns of a strip at full size, and rows of it at a time. Rows are BLIS's for doubles (`config/skx`: MC). Its
/// columns (NC, 3752) are for one thread. Here a strip's part of U and the rows that eight threads update at a time fit
/// a last cache of 27.5 MiB together: `(384 + 8 * 240) * 1536` doubles.
const STRIP: [f64; 2] = [1536.0, 240.0];
/// Rows of a step in loops over a column.
const ROWS: usize = 64;

/// Vector instructions for a tile and a column of the panel: see the module.
const PER_TILE: f64 = TILE as f64 + 1.0 + 0.25;
/// To compare a row's number with the largest: load, mask the sign, compare, two moves, a share of the loop.
const PER_PIVOT: u32 = 6;
/// To eliminate a number of a row: load, multiply, store, a vector instruction for the rest of the line, a share of the loop.
const PER_ELIMINATED: u32 = 7;
/// To swap two lines: two loads, two stores, a share of the loop.
const PER_SWAP: u32 = 5;

/// Largest matrix of the host.
const HOST_BYTES: u64 = 8 << 30;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "hpl",
    about: "High-Performance Linpack: dense equations by blocked elimination with partial pivoting",
    params: &[
        Param::scaled("bytes", Want::Bytes, "4GiB", "memory of the matrix"),
        Param::new(
            "block",
            Want::COUNT,
            "384",
            "columns of a panel at full size, which scale divides by its root; Intel's guide to oneMKL recommends it for AVX-512",
        ),
    ],
    build: |values| Ok(Box::new(program(values)?)),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    /// The largest number of the column.
    Pivot,
    /// The column out of the rows below, within its line.
    Eliminate,
    /// The effect of eight columns on the rest of their panel, and of the panel on the columns right of it; in this
    /// order.
    Swap,
    Triangle,
    Update,
    Solve,
}

/// The kernel, for [`Loops`].
pub struct Hpl {
    matrix: Matrix,
    regions: Vec<Region>,
    a: Array,
    x: Array,
    /// Columns of a panel.
    block: usize,
    /// Columns of a strip, and rows of it at a time.
    strip: [usize; 2],
    /// How often a step of an update counts.
    times: f64,
    at: At,
    /// The column that is eliminated.
    column: usize,
    /// The eliminated columns, by whose rows the others are updated.
    done: std::ops::Range<usize>,
    /// The columns that are to be updated.
    columns: std::ops::Range<usize>,
    /// Each thread's largest number in the column.
    largest: Vec<Option<(f64, usize)>>,
    /// Rows that were swapped with those of the panel.
    pivots: Vec<(usize, usize)>,
    solution: Vec<f64>,
}

/// Makes the program.
///
/// # Errors
/// Sizes out of range.
pub fn program(values: &Values) -> Result<Loops<Hpl>, Error> {
    let threads = values.count("threads") as usize;
    let scale = values.scale() as f64;
    let bytes = values.count_in("bytes", 1 << 12, HOST_BYTES)?;
    let whole = values.count_in("block", LINE as u64, 4096)? as f64;
    let lines = |columns: f64| (columns as usize / LINE).max(1) * LINE;
    let block = lines(whole / scale.sqrt());
    let [strip, rows] = STRIP.map(|edge| lines(edge / scale.sqrt()));
    let n = lines((bytes as f64 / 8.0).sqrt());
    let matrix = Matrix::new(n, values.count("seed"));
    let mut layout = Layout::new();
    let a = layout.array("hpl.a", (n * matrix.stride) as u64, 8);
    let x = layout.array("hpl.x", n as u64, 8);
    let touch = values.count_in("touch", 64, u64::MAX)?;
    let ranges = FirstTouch::ranges(&[a, x]);
    let kernel = Hpl {
        regions: layout.regions().to_vec(),
        a,
        x,
        block,
        // Panels do not go beyond strips.
        strip: [(strip / block).max(1) * block, rows],
        times: whole / block as f64,
        at: At::Start,
        column: 0,
        done: 0..0,
        columns: 0..0,
        largest: vec![None; threads],
        pivots: Vec::new(),
        solution: Vec::new(),
        matrix,
    };
    let init = FirstTouch::new(ranges, touch, By::All, threads);
    Ok(Loops::new(kernel, Some(init), threads))
}

impl Hpl {
    /// The solution, once the program has ended.
    pub fn solution(&self) -> &[f64] {
        &self.solution
    }

    /// HPL's residual of the solution.
    pub fn residual(&self) -> f64 {
        self.matrix.residual(&self.solution)
    }

    /// Where a number is. A strip's rows follow each other, as in the copies that products work on.
    fn place(&self, row: usize, column: usize) -> u64 {
        let [across, _] = self.strip;
        let first = column / across * across;
        let width = across.min(self.matrix.stride - first);
        self.a
            .at((first * self.matrix.n + row * width + column - first) as u64)
    }

    /// Instructions that count as often as they stand for.
    fn often(&self, instructions: f64) -> u32 {
        (instructions * self.times).round().max(1.0) as u32
    }

    /// First column of the panel that a column is in, and the first one after it.
    fn panel(&self, column: usize) -> (usize, usize) {
        let first = column / self.block * self.block;
        (first, (first + self.block).min(self.matrix.n))
    }

    fn below(&self, row: usize) -> Stage {
        Stage::parallel((self.matrix.n - row).div_ceil(ROWS) as u64)
    }

    fn start_column(&mut self) -> Stage {
        self.at = At::Pivot;
        self.largest.fill(None);
        self.below(self.column)
    }

    /// The column has been eliminated: the next one of its line, or the part right of that.
    fn after_column(&mut self) -> Stage {
        self.column += 1;
        let n = self.matrix.n;
        let (first, end) = self.panel(self.column - 1);
        if !self.column.is_multiple_of(LINE) {
            return self.start_column();
        }
        if self.column < end {
            (self.done, self.columns) = (self.column - LINE..self.column, self.column..end);
            return self.start_triangle();
        }
        // The right-hand side has a line of its own.
        (self.done, self.columns) = (first..end, end..n + LINE);
        self.at = At::Swap;
        Stage::parallel((self.columns.len() / LINE) as u64)
    }

    fn start_triangle(&mut self) -> Stage {
        self.at = At::Triangle;
        Stage::parallel((self.columns.len() / LINE) as u64)
    }

    /// The next strip of columns, if one is left.
    fn next_update(&mut self) -> Option<Stage> {
        self.at = At::Update;
        let rows = self.matrix.n - self.done.end;
        let items = rows.div_ceil(self.strip[1]) as u64;
        (!self.columns.is_empty()).then(|| Stage::parallel(items))
    }

    /// Everything has been updated: the next columns of the panel, or the next panel.
    fn next_columns(&mut self) -> Option<Stage> {
        if self.column == self.matrix.n {
            self.at = At::Solve;
            return Some(Stage::serial(self.matrix.n as u64));
        }
        let starts = self.column.is_multiple_of(self.block);
        if starts {
            self.pivots.clear();
        }
        let stage = self.start_column();
        Some(if starts {
            stage.starts_iteration()
        } else {
            stage
        })
    }

    /// Rows of an item of a loop below `row`.
    fn rows(&self, row: usize, item: u64) -> std::ops::Range<usize> {
        let from = row + item as usize * ROWS;
        from..(from + ROWS).min(self.matrix.n)
    }

    fn search(&mut self, thread: usize, item: u64, out: &mut Vec<Op>) {
        let rows = self.rows(self.column, item);
        let read = |row| Op::read(self.place(row, self.column), 8, PER_PIVOT);
        out.extend(rows.clone().map(read));
        let found = self.matrix.pivot(self.column, rows.start, rows.end);
        let mine = &mut self.largest[thread];
        if mine.is_none_or(|mine| found.is_some_and(|found| found.0 > mine.0)) {
            *mine = found;
        }
    }

    fn eliminate(&mut self, item: u64, out: &mut Vec<Op>) {
        let line = self.column / LINE * LINE;
        out.push(Op::read(self.place(self.column, line), 64, 1));
        for row in self.rows(self.column + 1, item) {
            let at = self.place(row, line);
            out.push(Op::new(Kind::Update, at, 64, PER_ELIMINATED));
            self.matrix.eliminate(row, self.column, line + LINE);
        }
    }

    /// The accesses of all swaps of the panel in a line of columns; the numbers were swapped when the pivot was found.
    fn swap(&mut self, work: &mut Work, out: &mut Vec<Op>) {
        let column = self.columns.start + work.at as usize * LINE;
        for &(a, b) in self.pivots.iter().filter(|(a, b)| a != b) {
            for (row, instructions) in [(a, PER_SWAP - 1), (b, 1)] {
                let at = self.place(row, column);
                out.push(Op::new(Kind::Update, at, 64, instructions));
            }
        }
        work.at += 1;
    }

    /// One row of U in a line of columns.
    fn triangle(&mut self, work: &mut Work, out: &mut Vec<Op>) {
        let column = self.columns.start + work.at as usize * LINE;
        let row = self.done.start + work.within as usize;
        let above = work.within as usize;
        // A multiplication for each row above, with one load; U itself is in the first cache.
        let each = self.often(2.25 * above as f64);
        run(
            out,
            Kind::Read,
            self.place(row, self.done.start),
            8 * above as u64,
            1,
        );
        out.push(Op::new(Kind::Update, self.place(row, column), 64, each));
        self.matrix
            .update(row, self.done.start..row, column..column + LINE);
        work.within += 1;
        if row + 1 == self.done.end {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    /// Columns of the strip at hand.
    fn strip(&self) -> std::ops::Range<usize> {
        let from = self.columns.start;
        from..self
            .columns
            .end
            .min((from / self.strip[0] + 1) * self.strip[0])
    }

    /// One tile.
    fn update(&mut self, work: &mut Work, out: &mut Vec<Op>) {
        let from = self.done.end + work.at as usize * self.strip[1];
        let down = (self.matrix.n - from).min(self.strip[1]) / TILE;
        let tile = work.within as usize;
        let column = self.strip().start + tile / down * TILE;
        let first = from + tile % down * TILE;
        work.within += 1;
        if tile + 1 == down * self.strip().len() / TILE {
            (work.at, work.within) = (work.at + 1, 0);
        }
        let steps = self.done.len();
        // Between all lines of L and U that pass, and those of the tile.
        let lines = (2 * steps + TILE) as u32;
        let all = self.often(PER_TILE * steps as f64);
        let (each, rest) = (all / lines, all % lines);
        for row in first..first + TILE {
            let at = self.place(row, self.done.start);
            run(out, Kind::Read, at, 8 * steps as u64, each);
        }
        for row in self.done.clone() {
            out.push(Op::read(self.place(row, column), 64, each));
        }
        for row in first..first + TILE {
            let at = self.place(row, column);
            out.push(Op::new(Kind::Update, at, 64, each + rest / TILE as u32));
            let columns = column..column + LINE;
            self.matrix.update(row, self.done.clone(), columns);
        }
    }

    /// One row of the triangle, from the last one up.
    fn solve(&mut self, work: &mut Work, out: &mut Vec<Op>) {
        let n = self.matrix.n;
        let row = n - 1 - work.at as usize;
        if work.at == 0 {
            self.solution = self.matrix.solve();
        }
        // A vector multiplication and a load for each line of the row and of the solution.
        let mut column = row;
        while column < n {
            let end = n.min((column / self.strip[0] + 1) * self.strip[0]);
            let bytes = 8 * (end - column) as u64;
            run(out, Kind::Read, self.place(row, column), bytes, 3);
            column = end;
        }
        out.push(Op::read(self.place(row, n), 8, 1));
        out.push(Op::write(self.x.at(row as u64), 8, 20));
        work.at += 1;
    }
}

impl StagedKernel for Hpl {
    fn name(&self) -> String {
        "hpl".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        match self.at {
            At::Start => self.next_columns(),
            At::Pivot => {
                let larger =
                    |a: (f64, usize), b: (f64, usize)| if (b.0, a.1) > (a.0, b.1) { b } else { a };
                let found = self.largest.iter().copied().flatten().reduce(larger);
                let row = found.map_or(self.column, |(_, row)| row);
                let (first, _) = self.panel(self.column);
                self.matrix.swap(self.column, row, first);
                self.pivots.push((self.column, row));
                self.at = At::Eliminate;
                Some(self.below(self.column + 1))
            }
            At::Eliminate => Some(self.after_column()),
            At::Swap => Some(self.start_triangle()),
            At::Triangle => self.next_update(),
            At::Update => {
                self.columns.start = self.strip().end;
                self.next_update().or_else(|| self.next_columns())
            }
            At::Solve => None,
        }
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        match self.at {
            At::Start => {}
            At::Pivot => {
                self.search(thread, work.at, out);
                work.at += 1;
            }
            At::Eliminate => {
                self.eliminate(work.at, out);
                work.at += 1;
            }
            At::Swap => self.swap(work, out),
            At::Triangle => self.triangle(work, out),
            At::Update => self.update(work, out),
            At::Solve => self.solve(work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let (n, residual) = (self.matrix.n, self.residual());
        let word = if residual < ACCEPTED {
            "passed"
        } else {
            "failed"
        };
        vec![
            ("equations".into(), n.to_string()),
            (
                "multiplications".into(),
                format!("{:.3e}", (n as f64).powi(3) / 3.0),
            ),
            ("residual".into(), format!("{residual:.3e}")),
            ("HPL's check".into(), word.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, CallOrder};
    use crate::loops::drain;
    use crate::nas::dense;

    fn made(line: &str) -> Loops<Hpl> {
        let (entry, values) = crate::registry::parse(line).unwrap();
        assert_eq!(entry.name, ENTRY.name);
        program(&values).unwrap()
    }

    #[test]
    fn the_solution_is_that_of_plain_elimination() {
        for (bytes, block, threads) in [
            (8 * 24 * 24, 8, 1),
            (8 * 72 * 72, 16, 3),
            (8 * 150 * 150, 64, 5),
        ] {
            let mut hpl = made(&format!(
                "hpl:bytes={bytes},block={block},threads={threads},seed=7"
            ));
            drain(&mut hpl);
            let (matrix, n) = (&hpl.kernel.matrix, hpl.kernel.matrix.n);
            let row = |i: usize| (0..n).map(|j| matrix.drawn(i, j)).collect();
            let want = dense::solve(
                (0..n).map(row).collect(),
                (0..n).map(|i| matrix.drawn(i, n)).collect(),
            );
            let largest = want.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            for (ours, want) in hpl.kernel.solution().iter().zip(&want) {
                assert!(
                    (ours - want).abs() < 1e-9 * largest,
                    "n = {n}: {ours}, should be {want}"
                );
            }
            assert!(hpl.kernel.residual() < ACCEPTED);
        }
    }

    #[test]
    fn a_wrong_solution_does_not_pass() {
        let mut hpl = made("hpl:bytes=128KiB,block=16,threads=2");
        drain(&mut hpl);
        assert_eq!(
            crate::loops::StagedKernel::answers(&hpl.kernel)[3].1,
            "passed"
        );
        hpl.kernel.solution[5] += 1e-9;
        assert_eq!(
            crate::loops::StagedKernel::answers(&hpl.kernel)[3].1,
            "failed"
        );
    }

    #[test]
    fn the_same_whatever_the_order_of_threads() {
        let make = || -> Box<dyn varve_access::Program> {
            Box::new(made("hpl:bytes=128KiB,block=32,threads=3"))
        };
        harness::assert_order_does_not_matter(make, u64::MAX);
    }

    /// A matrix of a sixteenth of the bytes counts a sixteenth of the instructions, although it has a 64th of the multiplications.
    #[test]
    fn work_is_divided_by_the_scale() {
        let count = |scale: u32| {
            let line = format!("hpl:bytes=8MiB,block=64,threads=2,scale={scale}");
            harness::run(&mut made(&line), CallOrder::RoundRobin, u64::MAX).instructions as f64
        };
        let ratio = count(1) / count(16);
        assert!((14.0..18.0).contains(&ratio), "{ratio}");
    }
}
