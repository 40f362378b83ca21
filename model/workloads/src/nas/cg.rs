//! CG: the smallest eigenvalue of a sparse matrix by inverse iteration, each step 25 steps of conjugate gradients
//! (NAS report RNR-94-007, section 2.4).
//!
//! | array | bytes | accessed |
//! |---|---|---|
//! | `cg.a` | 8 × elements | read in runs, 26 times per iteration |
//! | `cg.colidx` | 4 × elements | beside it |
//! | `cg.rowstr` | 4 (n + 1) | twice per row |
//! | `cg.p`, `cg.z` | 8 n each | read at random, once per element |
//! | `cg.x`, `cg.q`, `cg.r` | 8 n each | in runs |
//!
//! with about n (nonzer + 1)^2 elements (see [`super::cg_matrix`]). The benchmark's untimed iteration before the
//! first is left out: it starts from the same vector again.

use varve_access::{Kind, Op, Region};

use super::cg_matrix::{Rows, Vectors};
use super::lcg::SEED;
use super::setup::{Class, NasSetup};
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{LINE, Loops, Stage, StagedKernel, Work};
use varve_spec::Error;

/// Steps of conjugate gradients per iteration.
const STEPS: u32 = 25;
/// Elements of a vector per step.
const BLOCK: u64 = 512;
/// Per matrix element: load the column, load the vector's element, multiply and add with the matrix element from
/// memory, advance, compare, branch; the compiler does not unroll a sum whose order it must keep.
const PER_ELEMENT: u32 = 5;
/// Per row: two row pointers, loop set-up, exit, store.
const PER_ROW: u32 = 9;
/// Per line and array of a vector loop: two 32-byte loads or stores with their arithmetic, a share of the loop.
const PER_VECTOR_LINE: u32 = 6;

/// Sizes of NPB 3.4: rows, random elements per vector, shift, iterations.
fn sizes(class: Class) -> (u64, usize, f64, u64) {
    match class {
        Class::S => (1400, 7, 10.0, 15),
        Class::W => (7000, 8, 12.0, 15),
        Class::A => (14_000, 11, 20.0, 15),
        Class::B => (75_000, 13, 60.0, 75),
        Class::C => (150_000, 15, 110.0, 75),
        Class::D => (1_500_000, 21, 500.0, 100),
        Class::E => (9_000_000, 26, 1500.0, 100),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    /// q = z = 0, r = p = x, r·r
    Reset,
    /// q = A p, p·q
    Multiply,
    /// z += alpha p, r -= alpha q, r·r
    Advance,
    /// p = r + beta p
    Direction,
    /// r = A z, |x - r|
    Residual,
    /// x·z, z·z
    Norms,
    /// x = z / |z|
    Scale,
}

#[derive(Clone, Copy)]
struct Places {
    a: Array,
    colidx: Array,
    rowstr: Array,
    x: Array,
    z: Array,
    p: Array,
    q: Array,
    r: Array,
}

/// The kernel, for [`Loops`].
pub struct Cg {
    n: u64,
    shift: f64,
    iterations: u64,
    iteration: u64,
    steps_done: u32,
    at: At,
    regions: Vec<Region>,
    places: Places,
    starts: Vec<u64>,
    vectors: Option<Vectors>,
    /// Columns of the row at hand, without data.
    columns: Vec<u32>,
    data: Option<Data>,
    /// Per thread, partial sums of the stage.
    sums: Vec<[f64; 2]>,
    rho: f64,
    alpha: f64,
    beta: f64,
    norm: f64,
    zeta: f64,
    residual: f64,
}

struct Data {
    matrix: Rows,
    x: Vec<f64>,
    z: Vec<f64>,
    p: Vec<f64>,
    q: Vec<f64>,
    r: Vec<f64>,
}

/// Makes the program.
///
/// # Errors
/// A size out of range, or data that do not fit.
pub fn program(setup: &NasSetup) -> Result<Loops<Cg>, Error> {
    let (n, nonzer, shift, iterations) = sizes(setup.class);
    let n = setup.size.unwrap_or(n) / setup.scale;
    setup.check_size("cg", n, 4 * nonzer as u64, 1 << 25)?;
    let square = (nonzer as u64 + 1).pow(2);
    let real = setup.real("cg", n * (12 * square + 64))?;
    let (vectors, values) = Vectors::draw(n as usize, nonzer, real, setup.generator(SEED));
    let starts = vectors.starts();
    let elements = starts[n as usize];
    let mut layout = Layout::new();
    let places = Places {
        a: layout.array("cg.a", elements, 8),
        colidx: layout.array("cg.colidx", elements, 4),
        rowstr: layout.array("cg.rowstr", n + 1, 4),
        x: layout.array("cg.x", n, 8),
        z: layout.array("cg.z", n, 8),
        p: layout.array("cg.p", n, 8),
        q: layout.array("cg.q", n, 8),
        r: layout.array("cg.r", n, 8),
    };
    // The matrix is assembled by rows, each thread its own; then the vectors are set.
    let p = &places;
    let touched = [p.rowstr, p.a, p.colidx, p.x, p.q, p.z, p.r, p.p];
    let init = FirstTouch::new(
        FirstTouch::ranges(&touched),
        setup.touch,
        By::All,
        setup.threads,
    );
    let (vectors, data) = if real {
        let rows = n as usize;
        let matrix = vectors.matrix(&values, shift);
        let zero = vec![0.0; rows];
        let data = Data {
            matrix,
            x: vec![1.0; rows],
            z: zero.clone(),
            p: zero.clone(),
            q: zero.clone(),
            r: zero,
        };
        (None, Some(data))
    } else {
        (Some(vectors), None)
    };
    let kernel = Cg {
        n,
        shift,
        iterations: setup.iterations.unwrap_or(iterations),
        iteration: 0,
        steps_done: 0,
        at: At::Start,
        regions: layout.regions().to_vec(),
        places,
        starts,
        vectors,
        columns: Vec::new(),
        data,
        sums: vec![[0.0; 2]; setup.threads],
        rho: 0.0,
        alpha: 0.0,
        beta: 0.0,
        norm: 1.0,
        zeta: 0.0,
        residual: 0.0,
    };
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

/// Accesses of a step of a loop over vectors: `kind` of the elements `low..high` of each array, line by line.
pub(crate) fn vector_ops(arrays: &[(Kind, Array)], low: u64, high: u64, out: &mut Vec<Op>) {
    let mut at = low;
    while at < high {
        let end = (at + LINE / 8).min(high);
        for &(kind, array) in arrays {
            out.push(Op::new(
                kind,
                array.at(at),
                ((end - at) * 8) as u16,
                PER_VECTOR_LINE,
            ));
        }
        at = end;
    }
}

impl Cg {
    /// The estimate of the eigenvalue, shift included.
    pub fn zeta(&self) -> f64 {
        self.zeta
    }

    /// The norm of the last linear system's residual.
    pub fn residual(&self) -> f64 {
        self.residual
    }

    fn sum(&mut self, which: usize) -> f64 {
        self.sums.iter().map(|sums| sums[which]).sum()
    }

    fn multiply(&mut self, row: usize, out: &mut Vec<Op>) -> f64 {
        let places = self.places;
        let (first, last) = (self.starts[row], self.starts[row + 1]);
        let pointer = places.rowstr.at(row as u64);
        if pointer % LINE == LINE - 4 {
            out.push(Op::read(pointer, 4, 1));
            out.push(Op::read(pointer + 4, 4, PER_ROW - 2));
        } else {
            out.push(Op::read(pointer, 8, PER_ROW - 1));
        }
        let columns: &[u32] = match (&self.data, &self.vectors) {
            (Some(data), _) => &data.matrix.columns[first as usize..last as usize],
            (None, Some(vectors)) => {
                vectors.row(row, &mut self.columns);
                &self.columns
            }
            (None, None) => &[],
        };
        let (source, target) = if self.at == At::Residual {
            (places.z, places.r)
        } else {
            (places.p, places.q)
        };
        let mut at = first;
        while at < last {
            let end = (at / 8 * 8 + 8).min(last);
            let count = (end - at) as u16;
            out.push(Op::read(places.a.at(at), 8 * count, 0));
            if at == first || at % 16 == 0 {
                let line_end = (at / 16 * 16 + 16).min(last);
                out.push(Op::read(
                    places.colidx.at(at),
                    4 * (line_end - at) as u16,
                    0,
                ));
            }
            for &column in &columns[(at - first) as usize..(end - first) as usize] {
                out.push(Op::read(source.at(u64::from(column)), 8, PER_ELEMENT));
            }
            at = end;
        }
        out.push(Op::write(target.at(row as u64), 8, 1));
        let Some(data) = &self.data else {
            return 0.0;
        };
        let from = if self.at == At::Residual {
            &data.z
        } else {
            &data.p
        };
        let values = &data.matrix.values[first as usize..last as usize];
        values
            .iter()
            .zip(columns)
            .map(|(value, &column)| value * from[column as usize])
            .sum()
    }

    fn vector_step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        use Kind::{Read, Update, Write};
        let p = self.places;
        let (low, high) = (work.at * BLOCK, ((work.at + 1) * BLOCK).min(self.n));
        work.at += 1;
        let range = low as usize..high as usize;
        let sums = &mut self.sums[thread];
        match self.at {
            At::Reset => {
                vector_ops(
                    &[
                        (Read, p.x),
                        (Write, p.q),
                        (Write, p.z),
                        (Write, p.r),
                        (Write, p.p),
                    ],
                    low,
                    high,
                    out,
                );
                if let Some(data) = &mut self.data {
                    for i in range {
                        (data.q[i], data.z[i]) = (0.0, 0.0);
                        (data.r[i], data.p[i]) = (data.x[i], data.x[i]);
                        sums[0] += data.x[i] * data.x[i];
                    }
                }
            }
            At::Advance => {
                vector_ops(
                    &[(Read, p.p), (Update, p.z), (Read, p.q), (Update, p.r)],
                    low,
                    high,
                    out,
                );
                if let Some(data) = &mut self.data {
                    for i in range {
                        data.z[i] += self.alpha * data.p[i];
                        data.r[i] -= self.alpha * data.q[i];
                        sums[0] += data.r[i] * data.r[i];
                    }
                }
            }
            At::Direction => {
                vector_ops(&[(Read, p.r), (Update, p.p)], low, high, out);
                if let Some(data) = &mut self.data {
                    for i in range {
                        data.p[i] = data.r[i] + self.beta * data.p[i];
                    }
                }
            }
            At::Norms => {
                vector_ops(&[(Read, p.x), (Read, p.z)], low, high, out);
                if let Some(data) = &self.data {
                    for i in range {
                        sums[0] += data.x[i] * data.z[i];
                        sums[1] += data.z[i] * data.z[i];
                    }
                }
            }
            _ => {
                vector_ops(&[(Read, p.z), (Write, p.x)], low, high, out);
                if let Some(data) = &mut self.data {
                    for i in range {
                        data.x[i] = self.norm * data.z[i];
                    }
                }
            }
        }
    }

    fn vector_stage(&mut self, at: At) -> Stage {
        self.at = at;
        Stage::parallel(self.n.div_ceil(BLOCK))
    }

    fn row_stage(&mut self, at: At) -> Stage {
        self.at = at;
        Stage::parallel(self.n)
    }

    fn start_iteration(&mut self) -> Option<Stage> {
        if self.iteration == self.iterations {
            return None;
        }
        self.iteration += 1;
        self.steps_done = 0;
        Some(self.vector_stage(At::Reset).starts_iteration())
    }
}

impl StagedKernel for Cg {
    fn name(&self) -> String {
        "cg".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        let (first, second) = (self.sum(0), self.sum(1));
        self.sums.fill([0.0; 2]);
        match self.at {
            At::Start | At::Scale => self.start_iteration(),
            At::Reset => {
                self.rho = first;
                Some(self.row_stage(At::Multiply))
            }
            At::Multiply => {
                self.alpha = self.rho / first;
                Some(self.vector_stage(At::Advance))
            }
            At::Advance => {
                self.beta = first / self.rho;
                self.rho = first;
                Some(self.vector_stage(At::Direction))
            }
            At::Direction => {
                self.steps_done += 1;
                let at = if self.steps_done < STEPS {
                    At::Multiply
                } else {
                    At::Residual
                };
                Some(self.row_stage(at))
            }
            At::Residual => {
                self.residual = first.sqrt();
                Some(self.vector_stage(At::Norms))
            }
            At::Norms => {
                self.zeta = self.shift + 1.0 / first;
                self.norm = 1.0 / second.sqrt();
                Some(self.vector_stage(At::Scale))
            }
        }
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let row = work.at as usize;
        match self.at {
            At::Multiply => {
                let sum = self.multiply(row, out);
                if let Some(data) = &mut self.data {
                    data.q[row] = sum;
                    self.sums[thread][0] += data.p[row] * sum;
                }
                work.at += 1;
            }
            At::Residual => {
                let sum = self.multiply(row, out);
                if let Some(data) = &mut self.data {
                    data.r[row] = sum;
                    self.sums[thread][0] += (data.x[row] - sum).powi(2);
                }
                work.at += 1;
            }
            _ => self.vector_step(thread, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        if self.data.is_none() {
            return Vec::new();
        }
        vec![
            ("rows".into(), self.n.to_string()),
            ("zeta".into(), format!("{:.10}", self.zeta)),
            ("residual norm".into(), format!("{:.3e}", self.residual)),
        ]
    }
}

#[cfg(test)]
mod tests;
