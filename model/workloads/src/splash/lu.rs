//! SPLASH-2x lu_cb and lu_ncb: a dense matrix into triangles, by square blocks and without pivoting.
//!
//! As in the originals (`ext/splash2x/kernels/lu_cb/src/lu.C`, `lu_ncb/src/lu.C` of cirosantilli/parsec-benchmark;
//! `codes/kernels/lu` of SakalisC/Splash-3), for each block K of the diagonal, with a barrier after each loop but the
//! last:
//!
//! ```text
//! diagonal   K, K              by its owner
//! perimeter  I, K and K, J     blocks below by I modulo threads, blocks to the right by J
//! interior   I, J -= I,K K,J   row after row of blocks; block I, J is of thread (I + J blocks) modulo threads
//! ```
//!
//! Native input: n = 8096 and blocks of 32 (`run.sh`), 253 x 253 of them, 500 MiB. `lu_cb` has each block in one piece,
//! and those of a thread one after the other; `lu_ncb` has whole columns, in which a block has a piece of each. A row's
//! block I, K stays in the first cache, the blocks K, J (2 MiB) in the last, and every block of the interior is read
//! and written once for each K.
//!
//! # Scale
//!
//! As `hpl` does, blocks shrink by the root of `scale`, and a step counts as often as a block is narrower: the work for
//! each line that comes from memory is that of full size. A block has at least a line of doubles in its columns. A
//! matrix then has fewer blocks than the original's, and is factored as often as makes up for it; and blocks that are
//! only read, which caches hold, are read in as many columns as they would have in proportion.
//!
//! # Instructions
//!
//! A column of a block takes a multiple of another (`daxpy`), by SSE2, which is what gcc makes of the loop at -O3: for
//! two numbers a load, a multiplication, an addition from memory, a store, and three quarters of an instruction of the
//! loop; and 12 for the call, for 32 numbers.

use super::threads::THREADS;
use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{Loops, Stage, StagedKernel, Work, run};
use varve_access::random::mix;
use varve_access::{Kind, Op, Region};
use varve_spec::{Error, Param, Values, Want};

/// Doubles of a line.
const LINE: usize = 8;
/// Instructions for a line and a column: see the module.
const PER_LINE: f64 = 4.0 * 4.75 + 12.0 / 4.0;
/// Largest matrix of the host.
const HOST_BYTES: u64 = 8 << 30;

macro_rules! entry {
    ($name:literal, $about:literal, $contiguous:literal) => {
        WorkloadEntry {
            name: $name,
            about: $about,
            params: &[
                Param::scaled("bytes", Want::Bytes, "500MiB", "memory of the matrix"),
                Param::new(
                    "block",
                    Want::COUNT,
                    "32",
                    "columns of a block at full size, which scale divides by its root",
                ),
                Param::new(
                    "passes",
                    Want::COUNT,
                    "1",
                    "times that the matrix is factored",
                ),
                THREADS,
            ],
            build: |values| Ok(Box::new(program(values, $contiguous)?)),
        }
    };
}

/// `lu_cb`.
pub const CONTIGUOUS: WorkloadEntry = entry!(
    "lu_cb",
    "SPLASH-2x lu_cb: a dense matrix into triangles, each block in one piece",
    true
);

/// `lu_ncb`.
pub const IN_COLUMNS: WorkloadEntry = entry!(
    "lu_ncb",
    "SPLASH-2x lu_ncb: a dense matrix into triangles, blocks in pieces of its columns",
    false
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Diagonal,
    Perimeter,
    Interior,
}

/// The kernel, for [`Loops`].
pub struct Lu {
    contiguous: bool,
    regions: Vec<Region>,
    a: Array,
    seed: u64,
    /// Rows and columns.
    n: usize,
    /// Those of a block.
    block: usize,
    /// Blocks of a row and of a column.
    blocks: usize,
    threads: usize,
    /// Where each block is, row after row: those of a thread follow each other, in the order in which it updates them.
    slots: Vec<usize>,
    /// Columns that a block would have in proportion, at least one.
    narrow: usize,
    /// How often a step counts.
    times: f64,
    /// Factorizations that are left, with the one at hand.
    left: u64,
    at: At,
    /// The block of the diagonal.
    k: usize,
    /// By columns; the host's copy.
    values: Vec<f64>,
}

/// Makes the program.
///
/// # Errors
/// Sizes out of range.
pub fn program(values: &Values, contiguous: bool) -> Result<Loops<Lu>, Error> {
    let threads = values.count("threads") as usize;
    let bytes = values.count_in("bytes", 1 << 11, HOST_BYTES)?;
    let whole = values.count_in("block", LINE as u64, 4096)? as f64;
    let narrow = whole / (values.scale() as f64).sqrt();
    let block = (narrow as usize / LINE).max(1) * LINE;
    // An odd number of blocks, as 253 is: with an even one, owners of a row's blocks would be few.
    let blocks = ((bytes as f64 / 8.0).sqrt() as usize / block).max(1);
    let blocks = blocks - usize::from(blocks.is_multiple_of(2));
    let n = block * blocks;
    let passes = values.count_in("passes", 1, 1 << 40)? as f64;
    let mut layout = Layout::new();
    let a = layout.array("lu.a", (n * n) as u64, 8);
    let touch = values.count_in("touch", 64, u64::MAX)?;
    let kernel = Lu {
        contiguous,
        regions: layout.regions().to_vec(),
        a,
        seed: values.count("seed"),
        n,
        block,
        blocks,
        threads,
        slots: slots(blocks, threads),
        narrow: (narrow.ceil() as usize).min(block),
        times: whole / block as f64,
        left: (passes * block as f64 / narrow).round().max(1.0) as u64,
        at: At::Start,
        k: 0,
        values: Vec::new(),
    };
    let init = FirstTouch::new(FirstTouch::ranges(&[a]), touch, By::All, threads);
    Ok(Loops::new(kernel, Some(init), threads))
}

/// Places of blocks, row after row, when each thread has its own in one piece.
fn slots(blocks: usize, threads: usize) -> Vec<usize> {
    let owner = |at: usize| (at / blocks + at % blocks * blocks) % threads;
    let mut order: Vec<usize> = (0..blocks * blocks).collect();
    order.sort_by_key(|&at| owner(at));
    let mut slots = vec![0; order.len()];
    for (slot, at) in order.into_iter().enumerate() {
        slots[at] = slot;
    }
    slots
}

impl Lu {
    /// A number of the matrix before it is factored: at random, the diagonal larger than a row's sum.
    pub fn drawn(&self, row: usize, column: usize) -> f64 {
        let word = mix(self.seed ^ mix((row * self.n + column) as u64));
        let x = (word >> 11) as f64 / (1u64 << 53) as f64;
        if row == column {
            10.0 * self.n as f64 * (0.5 + x)
        } else {
            x
        }
    }

    /// Both triangles, by columns; the diagonal is that of the upper one.
    pub fn triangles(&self) -> &[f64] {
        &self.values
    }

    fn fill(&mut self) {
        let n = self.n;
        self.values = (0..n * n).map(|i| self.drawn(i % n, i / n)).collect();
    }

    /// Where column `column` of a block starts.
    fn place(&self, (i, j): (usize, usize), column: usize) -> u64 {
        let b = self.block;
        let at = match self.contiguous {
            true => self.slots[i * self.blocks + j] * b * b + column * b,
            false => (j * b + column) * self.n + i * b,
        };
        self.a.at(at as u64)
    }

    /// Every line of a block once; of one that is read, the columns that it would have in proportion.
    fn access(&self, kind: Kind, block: (usize, usize), per_line: u32, out: &mut Vec<Op>) {
        let columns = match kind {
            Kind::Read => self.narrow,
            _ => self.block,
        };
        for column in 0..columns {
            run(
                out,
                kind,
                self.place(block, column),
                8 * self.block as u64,
                per_line,
            );
        }
    }

    /// Instructions for a line of a block of which each column takes this share of the columns of another.
    fn per_line(&self, share: f64) -> u32 {
        (share * PER_LINE * self.times * self.block as f64).round() as u32
    }

    fn owner(&self, (i, j): (usize, usize)) -> usize {
        (i + j * self.blocks) % self.threads
    }

    /// `values[to..]` -= `values[from..]` times a factor, for some rows.
    fn subtract(&mut self, rows: std::ops::Range<usize>, to: usize, from: usize, factor: f64) {
        for row in rows {
            self.values[to * self.n + row] -= factor * self.values[from * self.n + row];
        }
    }

    /// Rows and columns of a block.
    fn range(&self, block: usize) -> std::ops::Range<usize> {
        block * self.block..(block + 1) * self.block
    }

    /// The diagonal's block into triangles, or with it a block below: its part of the lower one.
    fn divide(&mut self, i: usize) {
        for pivot in self.range(self.k) {
            let diagonal = self.values[pivot * self.n + pivot];
            let rows = self.range(i).start.max(pivot + 1)..self.range(i).end;
            for row in rows.clone() {
                self.values[pivot * self.n + row] /= diagonal;
            }
            for column in pivot + 1..self.range(self.k).end {
                let factor = self.values[column * self.n + pivot];
                self.subtract(rows.clone(), column, pivot, factor);
            }
        }
    }

    /// A block right of the diagonal's: its part of the upper triangle.
    fn solve(&mut self, j: usize) {
        for pivot in self.range(self.k) {
            for column in self.range(j) {
                let factor = self.values[column * self.n + pivot];
                let rows = pivot + 1..self.range(self.k).end;
                self.subtract(rows, column, pivot, factor);
            }
        }
    }

    /// A block of the interior.
    fn update(&mut self, (i, j): (usize, usize)) {
        for pivot in self.range(self.k) {
            for column in self.range(j) {
                let factor = self.values[column * self.n + pivot];
                self.subtract(self.range(i), column, pivot, factor);
            }
        }
    }

    /// The blocks of the perimeter, those below first, that a thread has.
    fn perimeter(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let left = self.blocks - self.k - 1;
        let (threads, k) = (self.threads, self.k);
        let mine = |at: usize| match at.checked_sub(left) {
            None => (k + 1 + at) % threads == thread,
            Some(at) => ((k + 1 + at) % threads + threads / 2) % threads == thread,
        };
        let from = work.within as usize;
        let Some(at) = (from..2 * left).find(|&at| mine(at)) else {
            *work = Work {
                at: work.end,
                ..Work::default()
            };
            return;
        };
        work.within = at as u64 + 1;
        let each = self.per_line(0.5);
        self.access(Kind::Read, (k, k), 1, out);
        match at.checked_sub(left) {
            None => {
                self.access(Kind::Update, (k + 1 + at, k), each, out);
                self.divide(k + 1 + at);
            }
            Some(at) => {
                self.access(Kind::Update, (k, k + 1 + at), each, out);
                self.solve(k + 1 + at);
            }
        }
    }

    /// The next block of the interior that a thread has, row after row.
    fn interior(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let (k, left) = (self.k, self.blocks - self.k - 1);
        let block = |at: usize| (k + 1 + at / left, k + 1 + at % left);
        let from = work.within as usize;
        let Some(at) = (from..left * left).find(|&at| self.owner(block(at)) == thread) else {
            *work = Work {
                at: work.end,
                ..Work::default()
            };
            return;
        };
        // The row's own block stays in the first cache: read when the thread comes to the row.
        let before = (at / left * left..at).any(|at| self.owner(block(at)) == thread);
        work.within = at as u64 + 1;
        let (i, j) = block(at);
        if !before {
            self.access(Kind::Read, (i, k), 1, out);
        }
        self.access(Kind::Read, (k, j), 1, out);
        self.access(Kind::Update, (i, j), self.per_line(1.0), out);
        self.update((i, j));
    }
}

impl StagedKernel for Lu {
    fn name(&self) -> String {
        if self.contiguous { "lu_cb" } else { "lu_ncb" }.into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        match self.at {
            At::Diagonal => self.at = At::Perimeter,
            At::Perimeter => self.at = At::Interior,
            At::Start | At::Interior => {
                self.k += usize::from(self.at == At::Interior);
                if self.k == self.blocks {
                    self.left -= 1;
                    if self.left == 0 {
                        return None;
                    }
                }
                self.k %= self.blocks;
                if self.k == 0 {
                    self.fill();
                }
                self.at = At::Diagonal;
                return Some(Stage::serial(1).starts_iteration());
            }
        }
        // An item for each thread, which finds its own blocks.
        Some(Stage::parallel(self.threads as u64))
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        match self.at {
            At::Start => {}
            At::Diagonal => {
                let each = self.per_line(1.0 / 3.0);
                self.access(Kind::Update, (self.k, self.k), each, out);
                self.divide(self.k);
                work.at += 1;
            }
            At::Perimeter => self.perimeter(thread, work, out),
            At::Interior => self.interior(thread, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let least = (0..self.n.min(self.values.len()))
            .map(|i| self.values[i * self.n + i].abs())
            .fold(f64::INFINITY, f64::min);
        vec![
            ("equations".into(), self.n.to_string()),
            ("smallest pivot".into(), format!("{least:.3}")),
        ]
    }
}
