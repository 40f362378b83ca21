//! One level of HPCG's grids: its matrix, its vectors, and the loops over its rows.
//!
//! The matrix has 26 on its diagonal and -1 for each of a point's up to 26 neighbours. Its numbers are known, so the host
//! holds none of them; the modelled program loads them all.

use varve_access::{Kind, Op};

use crate::layout::{Array, Layout};
use crate::loops::{LINE, run};

/// Most numbers of a row.
const ROW: u64 = 27;
/// The diagonal.
pub const DIAGONAL: f64 = 26.0;

// Instructions, counted on the loops as a compiler for x86-64 emits them at -O2.
/// Per number of a row: load the column, load the vector's element, multiply and add with the number from memory, advance, branch.
const PER_NUMBER: u64 = 5;
/// Per row: three pointers and the row's length, loop set-up, exit, store.
const PER_ROW: u32 = 12;
/// More in a smoother's row: the right-hand side, the diagonal out of the sum and below it.
const PER_SMOOTHED: u32 = 6;
/// Per line of a coarse grid that is read or written: gathers are not vectorized.
const PER_COARSE_LINE: u32 = 16;

/// A row of points along x: `j + k * n[1]`.
pub type Pencil = usize;

/// A level.
pub struct GridLevel {
    /// Points along each axis.
    pub n: [usize; 3],
    numbers: Array,
    columns: Array,
    /// Three pointers and a length for each row.
    rows: Array,
    /// Where each point of the next coarser level is on this one.
    coarse: Array,
    /// The unknowns; on the finest level the result of the preconditioner for the residual.
    pub x: Array,
    /// The right-hand side; on the finest level the residual.
    pub b: Array,
    /// The matrix times `x`.
    pub ax: Array,
    /// Numbers of `x`, `b` and `ax`.
    pub data: [Vec<f64>; 3],
    /// `x` before a sweep, for the points of other threads.
    before: Vec<f64>,
}

/// Numbers in [`GridLevel::data`].
pub const X: usize = 0;
/// See [`X`].
pub const B: usize = 1;
/// See [`X`].
pub const AX: usize = 2;

impl GridLevel {
    /// GridLevel number `l` with `n` points in each direction.
    pub fn new(layout: &mut Layout, l: usize, n: [usize; 3]) -> GridLevel {
        let points = n.iter().product::<usize>();
        let mut array = |name: &str, of: u64, size: u64| {
            layout.array(&format!("hpcg.{l}.{name}"), points as u64 * of, size)
        };
        GridLevel {
            n,
            numbers: array("numbers", ROW, 8),
            columns: array("columns", ROW, 4),
            rows: array("rows", 1, 32),
            coarse: array("coarse", 1, 4),
            x: array("x", 1, 8),
            b: array("b", 1, 8),
            ax: array("ax", 1, 8),
            data: [(); 3].map(|()| vec![0.0; points]),
            before: Vec::new(),
        }
    }

    /// Every array.
    pub fn arrays(&self) -> [Array; 7] {
        [
            self.numbers,
            self.columns,
            self.rows,
            self.coarse,
            self.x,
            self.b,
            self.ax,
        ]
    }

    /// Points.
    pub fn points(&self) -> usize {
        self.n.iter().product()
    }

    /// Rows of points along x.
    pub fn pencils(&self) -> usize {
        self.n[1] * self.n[2]
    }

    /// Calls `each` with the first point and the number of points of every run of neighbours of point `i` of a pencil, itself
    /// included, and with the pencil that they are in.
    fn neighbours(&self, pencil: Pencil, i: usize, mut each: impl FnMut(Pencil, usize, usize)) {
        let [nx, ny, nz] = self.n;
        let (j, k) = (pencil % ny, pencil / ny);
        let near = |at: usize, n: usize| at.saturating_sub(1)..(at + 2).min(n);
        let across = near(i, nx);
        for k in near(k, nz) {
            for j in near(j, ny) {
                let pencil = j + k * ny;
                each(pencil, pencil * nx + across.start, across.len());
            }
        }
    }

    /// Numbers in the row of a point.
    pub fn row_length(&self, point: usize) -> usize {
        let (mut all, nx) = (0, self.n[0]);
        self.neighbours(point / nx, point % nx, |_, _, count| all += count);
        all
    }

    /// Loads of a row, with the elements of `vector` in its columns.
    fn row(&self, pencil: Pencil, i: usize, vector: Array, out: &mut Vec<Op>) {
        let point = (pencil * self.n[0] + i) as u64;
        out.push(Op::read(self.rows.at(point), 32, PER_ROW - 1));
        let first = out.len();
        let mut all = 0;
        self.neighbours(pencil, i, |_, start, count| {
            let (at, bytes) = (vector.at(start as u64), 8 * count as u64);
            let within = bytes.min(LINE - at % LINE);
            let instructions = PER_NUMBER * count as u64;
            out.push(Op::read(at, within as u16, instructions as u32));
            if within < bytes {
                out.push(Op::read(at + within, (bytes - within) as u16, 0));
            }
            all += count as u64;
        });
        // The numbers and their columns come line by line beside the vector's elements, and cost no instructions of their own.
        let vector = out.split_off(first);
        run(out, Kind::Read, self.numbers.at(point * ROW), 8 * all, 0);
        run(out, Kind::Read, self.columns.at(point * ROW), 4 * all, 0);
        out.extend(vector);
    }

    /// `target = A vector` for points of a pencil; the numbers go to `each`.
    pub fn multiply(
        &self,
        pencil: Pencil,
        points: std::ops::Range<usize>,
        (vector, from): (Array, &[f64]),
        target: Array,
        out: &mut Vec<Op>,
        mut each: impl FnMut(usize, f64),
    ) {
        for i in points {
            self.row(pencil, i, vector, out);
            let point = pencil * self.n[0] + i;
            out.push(Op::write(target.at(point as u64), 8, 1));
            let mut sum = (DIAGONAL + 1.0) * from[point];
            self.neighbours(pencil, i, |_, start, count| {
                sum -= from[start..start + count].iter().sum::<f64>();
            });
            each(point, sum);
        }
    }

    /// Keeps `x` as it is, for a sweep that begins.
    pub fn keep(&mut self) {
        self.before.clone_from(&self.data[X]);
    }

    /// A step of Gauss-Seidel for a point of a pencil. For pencils outside `own` it uses the values before the sweep.
    pub fn smooth(
        &mut self,
        pencil: Pencil,
        i: usize,
        own: &std::ops::Range<usize>,
        out: &mut Vec<Op>,
    ) {
        self.row(pencil, i, self.x, out);
        let point = pencil * self.n[0] + i;
        out.push(Op::read(self.b.at(point as u64), 8, 1));
        out.push(Op::write(self.x.at(point as u64), 8, PER_SMOOTHED));
        let mut sum = self.data[B][point];
        self.neighbours(pencil, i, |pencil, start, count| {
            let from = match own.contains(&pencil) {
                true => &self.data[X],
                false => &self.before,
            };
            sum += from[start..start + count].iter().sum::<f64>();
        });
        self.data[X][point] = (sum - self.data[X][point]) / DIAGONAL;
    }

    /// The point of this level where a point of the next coarser one is: every second along each axis.
    pub fn fine(&self, coarse: &GridLevel, point: usize) -> usize {
        let [nx, ny, _] = coarse.n;
        let (i, j, k) = (point % nx, point / nx % ny, point / nx / ny);
        2 * i + self.n[0] * (2 * j + self.n[1] * 2 * k)
    }

    /// The accesses of restriction (`up`: from this level to the coarse one) or of prolongation, for a coarse pencil.
    pub fn between(&self, coarse: &GridLevel, pencil: Pencil, up: bool, out: &mut Vec<Op>) {
        let nx = coarse.n[0];
        let point = pencil * nx;
        let fine = self.fine(coarse, point) as u64;
        let (bytes, spread) = (8 * nx as u64, 8 * (2 * nx - 1) as u64);
        let each = PER_COARSE_LINE;
        run(
            out,
            Kind::Read,
            self.coarse.at(point as u64),
            4 * nx as u64,
            each,
        );
        if up {
            run(out, Kind::Read, self.b.at(fine), spread, each);
            run(out, Kind::Read, self.ax.at(fine), spread, each);
            run(out, Kind::Write, coarse.b.at(point as u64), bytes, each);
        } else {
            run(out, Kind::Read, coarse.x.at(point as u64), bytes, each);
            run(out, Kind::Update, self.x.at(fine), spread, each);
        }
    }
}
