//! SPLASH-2x ocean_cp: currents of an ocean on 25 square grids, and two equations a time step by multigrid.
//!
//! As in the original (`ext/splash2x/apps/ocean_cp/src` of cirosantilli/parsec-benchmark, `codes/apps/ocean` of
//! SakalisC/Splash-3). A time step (`slave2.C`) is loops over whole grids, ten phases with a barrier after each
//! (`PHASES`), and two solutions (`multi.C`) by red and black relaxation of nested grids:
//!
//! ```text
//! q, right-hand side   finest    red, black; even rows of a thread's part first, then odd ones
//!                      coarser   what is left over, summed; zero; red, black; and so on
//!                      back      interpolated, added; red, black
//! ```
//!
//! Native input: `-n4098` (`run.sh`), 25 grids of 4098 x 4098 doubles, and two of all levels: 3.5 GiB. Two days in
//! steps of four hours are the 12 steps.
//!
//! Numbers are not computed, only the accesses of the loops made. So how often a solution relaxes is an input, from the
//! original's own sample (`correct.out`, n = 258): after the first one, twelve solutions do the work of 5.9 relaxations
//! of the finest grid on average. Here one does 5.7: two relaxations of the finest grid and one of each coarser one on
//! the way down, three and one on the way up.
//!
//! Where this differs: threads share rows, not rectangles, so that there may be any number of them. Copies of borders,
//! the averages over days and the last two of a relaxation's four barriers are omitted. Rows are whole lines.
//!
//! # Instructions
//!
//! Loops over neighbouring points are vectors of two doubles (SSE2, gcc's default for x86-64), three quarters of an
//! instruction of the loop for each. A relaxation takes every second point, so it is scalar: four points of a line,
//! each 16 instructions, one of which is a division that keeps its unit for four cycles (Skylake), 7 more at two a
//! cycle.

use super::threads::THREADS;
use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{LINE, Loops, Stage, StagedKernel, Work};
use varve_access::{Kind, Op, Region};
use varve_spec::{Error, Param, Values, Want};

const GRIDS: [&str; 25] = [
    "psi.0", "psi.1", "psim.0", "psim.1", "psium", "psilm", "psib", "ga", "gb", "work1.0",
    "work1.1", "work2", "work3", "work4.0", "work4.1", "work5.0", "work5.1", "work6", "work7.0",
    "work7.1", "temp.0", "temp.1", "tauz", "oldga", "oldgb",
];

// Places in `GRIDS`, and after them the finest grids of a solution.
const PSI: usize = 0;
const PSIM: usize = 2;
const PSIB: usize = 6;
const GA: usize = 7;
const GB: usize = 8;
const WORK1: usize = 9;
const WORK2: usize = 11;
const WORK3: usize = 12;
const WORK4: usize = 13;
const WORK5: usize = 15;
const WORK6: usize = 17;
const WORK7: usize = 18;
const TEMP: usize = 20;
const TAUZ: usize = 22;
const OLDGA: usize = 23;
const OLDGB: usize = 24;
const Q: usize = 25;
const RHS: usize = 26;

/// A loop over the points of a grid.
struct Sweep {
    /// Grids of which each point's neighbours are read, in three rows.
    around: &'static [usize],
    read: &'static [usize],
    updated: &'static [usize],
    written: &'static [usize],
    /// Instructions for a line.
    instructions: u32,
}

const fn sweep(
    around: &'static [usize],
    read: &'static [usize],
    updated: &'static [usize],
    written: &'static [usize],
    instructions: u32,
) -> Sweep {
    Sweep {
        around,
        read,
        updated,
        written,
        instructions,
    }
}

/// Four vectors: a store.
const ZERO: u32 = 7;
/// A load more.
const COPY: u32 = 11;
/// To subtract, or to multiply by a constant.
const SUBTRACT: u32 = 15;
/// Two products and their sum, or a product added.
const COMBINE: u32 = 27;
/// Five loads, of which two are unaligned, four additions, two products.
const LAPLACE: u32 = 56;
/// Eight terms of nine points of two grids, each some eight instructions.
const JACOBI: u32 = 300;
/// Six loads, fourteen products and sums, two stores.
const TENDENCY: u32 = 91;

/// The phases of a time step; where a solution is, see [`step_of_time`].
const PHASES: [&[Sweep]; 12] = [
    &[
        sweep(&[], &[], &[], &[GA], ZERO),
        sweep(&[], &[], &[], &[GB], ZERO),
        sweep(&[PSI], &[], &[], &[WORK1], LAPLACE),
        sweep(&[PSI + 1], &[], &[], &[WORK1 + 1], LAPLACE),
        sweep(&[], &[PSI, PSI + 1], &[], &[WORK2], SUBTRACT),
        sweep(&[], &[PSI, PSI + 1], &[], &[WORK3], COMBINE),
        sweep(&[], &[PSIM], &[], &[TEMP], COPY),
        sweep(&[], &[PSIM + 1], &[], &[TEMP + 1], COPY),
    ],
    &[
        sweep(&[], &[PSI], &[], &[PSIM], COPY),
        sweep(&[], &[PSI + 1], &[], &[PSIM + 1], COPY),
        sweep(&[PSIM], &[], &[], &[WORK7], LAPLACE),
        sweep(&[PSIM + 1], &[], &[], &[WORK7 + 1], LAPLACE),
        sweep(&[], &[], &[WORK1], &[], SUBTRACT),
        sweep(&[], &[], &[WORK1 + 1], &[], SUBTRACT),
    ],
    &[
        sweep(&[WORK1, TEMP], &[], &[], &[WORK5], JACOBI),
        sweep(&[WORK1 + 1, TEMP + 1], &[], &[], &[WORK5 + 1], JACOBI),
        sweep(&[], &[TEMP], &[], &[PSIM], COPY),
        sweep(&[], &[TEMP + 1], &[], &[PSIM + 1], COPY),
        sweep(&[WORK7], &[], &[], &[WORK4], LAPLACE),
        sweep(&[WORK7 + 1], &[], &[], &[WORK4 + 1], LAPLACE),
    ],
    &[
        sweep(&[WORK2, WORK3], &[], &[], &[WORK6], JACOBI),
        sweep(&[WORK4], &[], &[], &[WORK7], LAPLACE),
        sweep(&[WORK4 + 1], &[], &[], &[WORK7 + 1], LAPLACE),
    ],
    &[sweep(
        &[],
        &[WORK5, WORK5 + 1, WORK6, TAUZ, WORK7, WORK7 + 1],
        &[],
        &[GA, GB],
        TENDENCY,
    )],
    &[sweep(&[], &[GA, OLDGA], &[], &[RHS, Q], COPY + SUBTRACT)],
    &[sweep(&[], &[Q], &[], &[GA, OLDGA], COPY + ZERO)],
    &[sweep(&[], &[GA], &[], &[], COPY)],
    &[
        sweep(&[], &[PSIB], &[GA], &[], COMBINE),
        sweep(&[], &[GB, OLDGB], &[], &[RHS, Q], COPY + SUBTRACT),
    ],
    &[sweep(&[], &[Q], &[], &[GB, OLDGB], COPY + ZERO)],
    &[sweep(
        &[],
        &[GA, GB],
        &[],
        &[WORK2, WORK3],
        COMBINE + SUBTRACT,
    )],
    &[
        sweep(&[], &[WORK3], &[PSI], &[], COMBINE),
        sweep(&[], &[WORK2], &[PSI + 1], &[], COMBINE),
    ],
];

/// A line of one colour: see the module.
const RELAX: u32 = 4 * 23;
/// For a line of the coarser grid, eight points: two remainders of five points each, interpolated, some 40 instructions
/// a point.
const RESTRICT: u32 = 320;
/// For a line of the coarser grid: four points of the finer for each, from four of the coarser.
const INTERPOLATE: u32 = 240;

/// Relaxations of the finest grid, and of each other one, on the way down and up.
const RELAXATIONS: [[u32; 2]; 2] = [[2, 3], [1, 1]];

/// A coarsest grid has at least this many rows.
const COARSEST: u64 = 4;
/// Largest grid in rows.
const ROWS: u64 = 1 << 20;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "ocean_cp",
    about: "SPLASH-2x ocean_cp: currents of an ocean on 25 grids, by multigrid (accesses only)",
    params: &[
        Param::scaled("bytes", Want::Bytes, "3.5GiB", "memory of all grids"),
        Param::new("passes", Want::COUNT, "12", "time steps"),
        THREADS,
    ],
    build: |values| Ok(Box::new(program(values)?)),
};

/// What a stage does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A phase, by its place in `PHASES`.
    Phase(usize),
    /// All points of a level whose row and column are together even (0) or odd (1).
    Relax(usize, u64),
    /// What is left over at this level, as right-hand side of the next coarser one.
    Restrict(usize),
    /// The solution of this level is nothing yet.
    Zero(usize),
    /// The solution of this level, added to the next finer one.
    Interpolate(usize),
}

/// The parts of a solution on this number of levels.
fn solution(levels: usize) -> Vec<Part> {
    let relax = |level: usize, way: usize| {
        let times = RELAXATIONS[usize::from(level > 0)][way];
        (0..times).flat_map(move |_| [Part::Relax(level, 0), Part::Relax(level, 1)])
    };
    let mut parts: Vec<Part> = relax(0, 0).collect();
    for level in 1..levels {
        parts.extend([Part::Restrict(level - 1), Part::Zero(level)]);
        parts.extend(relax(level, 0));
    }
    for level in (0..levels - 1).rev() {
        parts.extend(relax(level + 1, 1));
        parts.push(Part::Interpolate(level + 1));
    }
    parts.extend(relax(0, 1));
    parts
}

/// The parts of a time step: each solution is after the phase that copies its right-hand side.
fn step_of_time(levels: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    for phase in 0..PHASES.len() {
        parts.push(Part::Phase(phase));
        if matches!(phase, 5 | 8) {
            parts.extend(solution(levels));
        }
    }
    parts
}

/// A square grid, rows of whole lines with a border.
#[derive(Clone, Copy)]
struct Grid {
    array: Array,
    /// Rows without the borders.
    rows: u64,
    /// Lines of a row.
    lines: u64,
}

impl Grid {
    fn new(layout: &mut Layout, name: &str, rows: u64) -> Grid {
        let lines = (8 * (rows + 2)).div_ceil(LINE);
        let array = layout.array(name, (rows + 2) * lines, LINE);
        Grid { array, rows, lines }
    }

    fn at(self, row: u64, line: u64) -> u64 {
        self.array.at(row * self.lines + line.min(self.lines - 1))
    }
}

/// The kernel, for [`Loops`].
pub struct Ocean {
    regions: Vec<Region>,
    /// [`GRIDS`], and the finest of the solution.
    grids: Vec<Grid>,
    /// The solution and the right-hand side of each level, the finest first.
    levels: Vec<[Grid; 2]>,
    parts: Vec<Part>,
    /// Time steps that are left, with the one at hand.
    left: u64,
    /// Steps done.
    done: u64,
    at: usize,
}

/// Makes the program.
///
/// # Errors
/// Sizes out of range.
pub fn program(values: &Values) -> Result<Loops<Ocean>, Error> {
    let threads = values.count("threads") as usize;
    let bytes = values.count_in("bytes", 1 << 16, 8 * 28 * ROWS * ROWS)?;
    // Grids of all levels are a third larger.
    let grids = GRIDS.len() as f64 + 2.0 * 4.0 / 3.0;
    let points = (bytes as f64 / 8.0 / grids).sqrt() as u64;
    let rows = (points / 8).max(1) * 8 - 2;
    let mut layout = Layout::new();
    let mut all: Vec<Grid> = GRIDS
        .iter()
        .map(|name| Grid::new(&mut layout, &format!("ocean.{name}"), rows))
        .collect();
    let mut levels = Vec::new();
    let mut of = rows;
    while levels.is_empty() || of >= COARSEST {
        levels.push(["q", "rhs"].map(|name| {
            let name = format!("ocean.{name}.{}", levels.len());
            Grid::new(&mut layout, &name, of)
        }));
        of /= 2;
    }
    all.extend(levels[0]);
    let touch = values.count_in("touch", 64, u64::MAX)?;
    let coarser = levels[1..].iter().flatten();
    let arrays: Vec<Array> = all.iter().chain(coarser).map(|g| g.array).collect();
    let init = FirstTouch::new(FirstTouch::ranges(&arrays), touch, By::All, threads);
    let kernel = Ocean {
        regions: layout.regions().to_vec(),
        grids: all,
        parts: step_of_time(levels.len()),
        levels,
        left: values.count_in("passes", 1, u64::MAX)?,
        done: 0,
        at: usize::MAX,
    };
    Ok(Loops::new(kernel, Some(init), threads))
}

impl Ocean {
    fn part(&self) -> Part {
        self.parts[self.at.min(self.parts.len() - 1)]
    }

    /// Rows that the part at hand goes over, without the borders.
    fn rows(&self) -> u64 {
        match self.part() {
            Part::Phase(_) => self.grids[0].rows,
            Part::Relax(level, _) | Part::Zero(level) => self.levels[level][0].rows,
            Part::Restrict(level) => self.levels[level + 1][0].rows,
            Part::Interpolate(level) => self.levels[level][0].rows,
        }
    }

    /// A row, from 1, of a sweep.
    fn sweep(&self, sweep: &Sweep, row: u64, out: &mut Vec<Op>) {
        let ops =
            3 * sweep.around.len() + sweep.read.len() + sweep.updated.len() + sweep.written.len();
        let each = (sweep.instructions / ops as u32).max(1);
        for line in 0..self.grids[0].lines {
            let mut op = |kind, grid: usize, row| {
                let at = self.grids[grid].at(row, line);
                out.push(Op::new(kind, at, LINE as u16, each));
            };
            for &grid in sweep.around {
                (row - 1..=row + 1).for_each(|row| op(Kind::Read, grid, row));
            }
            sweep.read.iter().for_each(|&g| op(Kind::Read, g, row));
            sweep.updated.iter().for_each(|&g| op(Kind::Update, g, row));
            sweep.written.iter().for_each(|&g| op(Kind::Write, g, row));
        }
    }

    /// The points of one colour in a row: the rows around it, the right-hand side, the row itself.
    fn relax(&self, level: usize, row: u64, out: &mut Vec<Op>) {
        let [q, rhs] = self.levels[level];
        for line in 0..q.lines {
            let mut op = |kind, at| out.push(Op::new(kind, at, LINE as u16, RELAX / 4));
            op(Kind::Read, q.at(row - 1, line));
            op(Kind::Read, q.at(row + 1, line));
            op(Kind::Read, rhs.at(row, line));
            op(Kind::Update, q.at(row, line));
        }
    }

    /// A row of the next coarser level, from five of this one's solution and two of its right-hand side.
    fn restrict(&self, level: usize, row: u64, out: &mut Vec<Op>) {
        let ([q, rhs], [_, coarse]) = (self.levels[level], self.levels[level + 1]);
        let last = 2 * row;
        for line in 0..coarse.lines {
            let mut op = |kind, at| out.push(Op::new(kind, at, LINE as u16, RESTRICT / 15));
            for line in [2 * line, 2 * line + 1] {
                for from in last.saturating_sub(3)..=last + 1 {
                    op(Kind::Read, q.at(from, line));
                }
                op(Kind::Read, rhs.at(last - 1, line));
                op(Kind::Read, rhs.at(last, line));
            }
            op(Kind::Write, coarse.at(row, line));
        }
    }

    /// A row of a level to two of the next finer one.
    fn interpolate(&self, level: usize, row: u64, out: &mut Vec<Op>) {
        let ([coarse, _], [fine, _]) = (self.levels[level], self.levels[level - 1]);
        for line in 0..coarse.lines {
            let mut op = |kind, at| out.push(Op::new(kind, at, LINE as u16, INTERPOLATE / 6));
            op(Kind::Read, coarse.at(row - 1, line));
            op(Kind::Read, coarse.at(row, line));
            for line in [2 * line, 2 * line + 1] {
                op(Kind::Update, fine.at(2 * row - 1, line));
                op(Kind::Update, fine.at(2 * row, line));
            }
        }
    }
}

/// The row that comes `index`-th when those of a share, `low..high`, that are even are taken before the others.
fn even_first(low: u64, high: u64, index: u64) -> u64 {
    let first = low.next_multiple_of(2);
    let even = high.saturating_sub(first).div_ceil(2);
    match index.checked_sub(even) {
        None => first + 2 * index,
        Some(index) => low + u64::from(low.is_multiple_of(2)) + 2 * index,
    }
}

impl StagedKernel for Ocean {
    fn name(&self) -> String {
        "ocean_cp".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        self.at = self.at.wrapping_add(1);
        if self.at == self.parts.len() {
            self.left -= 1;
            self.done += 1;
            if self.left == 0 {
                return None;
            }
            self.at = 0;
        }
        let stage = Stage::parallel(self.rows());
        Some(match self.at {
            0 => stage.starts_iteration(),
            _ => stage,
        })
    }

    fn step(&mut self, _: usize, work: &mut Work, out: &mut Vec<Op>) {
        let rows = work.end - work.at;
        let (pass, index) = (work.within / rows, work.within % rows);
        // Items are rows from 0, borders not counted.
        let row = work.at + index + 1;
        let passes = match self.part() {
            Part::Phase(phase) => {
                self.sweep(&PHASES[phase][pass as usize], row, out);
                PHASES[phase].len() as u64
            }
            Part::Relax(level, _) => {
                let row = even_first(work.at + 1, work.end + 1, index);
                self.relax(level, row, out);
                1
            }
            Part::Zero(level) => {
                let q = self.levels[level][0];
                let zero = |line| Op::new(Kind::Write, q.at(row, line), LINE as u16, ZERO);
                out.extend((0..q.lines).map(zero));
                1
            }
            Part::Restrict(level) => {
                self.restrict(level, row, out);
                1
            }
            Part::Interpolate(level) => {
                self.interpolate(level, row, out);
                1
            }
        };
        work.within += 1;
        if work.within == passes * rows {
            (work.at, work.within) = (work.end, 0);
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        vec![
            ("rows".into(), (self.grids[0].rows + 2).to_string()),
            ("levels".into(), self.levels.len().to_string()),
            ("time steps".into(), self.done.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_rows_come_first_whatever_the_share() {
        for (low, high) in [(1, 9), (2, 9), (1, 8), (4, 5), (5, 6), (6, 10)] {
            let order: Vec<u64> = (0..high - low).map(|i| even_first(low, high, i)).collect();
            let even = (low..high).filter(|row| row % 2 == 0);
            let odd = (low..high).filter(|row| row % 2 == 1);
            assert_eq!(order, even.chain(odd).collect::<Vec<_>>(), "{low}..{high}");
        }
    }

    /// Work in relaxations of the finest grid; the original's sample has 5.9 for a solution.
    #[test]
    fn a_solution_does_the_work_of_six_relaxations() {
        let of = |part: Part| match part {
            Part::Relax(level, _) => 0.5 / f64::from(1 << (2 * level)),
            _ => 0.0,
        };
        let work: f64 = solution(11).into_iter().map(of).sum();
        assert!((5.6..5.7).contains(&work), "{work}");
    }
}
