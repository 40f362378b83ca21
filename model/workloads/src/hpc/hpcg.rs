//! HPCG: conjugate gradients on a 27-point stencil, with multigrid of symmetric Gauss-Seidel sweeps as preconditioner.
//!
//! As the benchmark's reference does it (Dongarra, Heroux, Luszczek: "HPCG benchmark: a new metric for ranking high
//! performance computing systems", 2015): up to four levels, each with half the points along an edge; one symmetric sweep
//! before and one after the coarser level, one on the coarsest. The matrix is stored as any sparse one. For each of the p
//! points of a level:
//!
//! | array | bytes | accessed |
//! |---|---|---|
//! | `hpcg.L.numbers`, `hpcg.L.columns` | 27 x 8 p, 27 x 4 p | in runs, five times an iteration; six times on the finest level, twice on the coarsest |
//! | `hpcg.L.rows` | 32 p | beside them: pointers, and how long the row is |
//! | `hpcg.L.x` | 8 p | nine runs of three for each row, mostly cached |
//! | `hpcg.L.b`, `hpcg.L.ax` | 8 p | in runs |
//! | `hpcg.L.coarse` | 4 p | an eighth of it, in runs, twice |
//! | `hpcg.solution`, `hpcg.p`, `hpcg.ap` | 8 p each | in runs |
//!
//! A thread stands for a rank of the benchmark: its sweeps take the points of others as they were before. Its points are rows
//! along x that follow each other, where the benchmark's are a box. The right-hand side is such that all unknowns are 1. The
//! first guess is 0.
//!
//! Not modelled: within a sweep each row waits for the row before, since its values depend on it; the addresses do not.

use varve_access::{Kind, Op, Region};

use super::grid::{AX, B, DIAGONAL, GridLevel, X};
use crate::entry::WorkloadEntry;
use crate::init::{By, FirstTouch, chunk};
use crate::layout::{Array, Layout};
use crate::loops::{Loops, Stage, StagedKernel, Work};
use crate::nas::cg::vector_ops;
use varve_spec::{Error, Param, Values, Want};

/// Most levels, as in the benchmark.
const LEVELS: usize = 4;
/// Elements of a vector per step.
const BLOCK: usize = 512;
/// Rows of the matrix per step.
const ROWS: usize = 16;
/// Most points that the host holds: about 100 bytes each.
const POINTS: u64 = 1 << 26;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "hpcg",
    about: "HPCG: conjugate gradients with multigrid on a 27-point stencil",
    params: &[
        Param::scaled(
            "points",
            Want::COUNT,
            "16777216",
            "points of the finest grid, rounded down to a power of two: 256 along each edge, about 450 B each",
        ),
        Param::new(
            "iterations",
            Want::COUNT,
            "50",
            "iterations, as in a set of the benchmark",
        ),
    ],
    build: |values| Ok(Box::new(program(values)?)),
};

/// One loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Zero(usize),
    Forward(usize),
    Backward(usize),
    /// The matrix times `x` on a level.
    Multiply(usize),
    Restrict(usize),
    Prolong(usize),
    /// r z
    Dot,
    /// p = z + beta p
    Direction,
    /// A p, and p A p
    Step,
    /// The solution moves on by alpha p, r by -alpha A p
    Advance,
}

/// The loops of an iteration.
fn iteration(levels: usize) -> Vec<Task> {
    let sweep = |l| [Task::Forward(l), Task::Backward(l)];
    let mut tasks = Vec::new();
    for l in 0..levels - 1 {
        tasks.push(Task::Zero(l));
        tasks.extend(sweep(l));
        tasks.extend([Task::Multiply(l), Task::Restrict(l)]);
    }
    tasks.push(Task::Zero(levels - 1));
    tasks.extend(sweep(levels - 1));
    for l in (0..levels - 1).rev() {
        tasks.push(Task::Prolong(l));
        tasks.extend(sweep(l));
    }
    tasks.extend([Task::Dot, Task::Direction, Task::Step, Task::Advance]);
    tasks
}

/// The kernel, for [`Loops`].
pub struct Hpcg {
    iterations: u64,
    begun: u64,
    tasks: Vec<Task>,
    /// The task after the one at hand.
    next: usize,
    threads: usize,
    regions: Vec<Region>,
    levels: Vec<GridLevel>,
    /// The solution, p and A p.
    vectors: [Array; 3],
    data: [Vec<f64>; 3],
    /// Each thread's part of a sum.
    sums: Vec<f64>,
    rz: f64,
    alpha: f64,
    beta: f64,
    /// Norms of the residual, at the start and after each iteration.
    norms: Vec<f64>,
}

/// Makes the program.
///
/// # Errors
/// A size out of range.
pub fn program(values: &Values) -> Result<Loops<Hpcg>, Error> {
    let points = values.count_in("points", 64, POINTS)?;
    let edges = [0, 1, 2].map(|axis| 1usize << ((points.ilog2() + axis) / 3));
    let threads = values.count("threads") as usize;
    let touch = values.count_in("touch", 64, u64::MAX)?;
    let iterations = values.count_in("iterations", 1, 1 << 20)?;
    Ok(solver(edges, iterations, threads, touch))
}

/// The program on a grid of these edges.
pub fn solver(edges: [usize; 3], iterations: u64, threads: usize, touch: u64) -> Loops<Hpcg> {
    let mut layout = Layout::new();
    let mut levels = vec![GridLevel::new(&mut layout, 0, edges)];
    let mut n = edges;
    while levels.len() < LEVELS && n.iter().all(|&n| n >= 4 && n % 2 == 0) {
        n = n.map(|n| n / 2);
        levels.push(GridLevel::new(&mut layout, levels.len(), n));
    }
    let points = levels[0].points();
    let vectors =
        ["solution", "p", "ap"].map(|name| layout.array(&format!("hpcg.{name}"), points as u64, 8));
    // All unknowns are 1.
    levels[0].data[B] = (0..points)
        .map(|point| DIAGONAL + 1.0 - levels[0].row_length(point) as f64)
        .collect();
    let norm = levels[0].data[B].iter().map(|b| b * b).sum::<f64>().sqrt();
    let arrays: Vec<Array> = levels
        .iter()
        .flat_map(GridLevel::arrays)
        .chain(vectors)
        .collect();
    let kernel = Hpcg {
        iterations,
        begun: 0,
        tasks: Vec::new(),
        next: 0,
        threads,
        regions: layout.regions().to_vec(),
        vectors,
        data: [(); 3].map(|()| vec![0.0; points]),
        sums: vec![0.0; threads],
        rz: 0.0,
        alpha: 0.0,
        beta: 0.0,
        norms: vec![norm],
        levels,
    };
    let init = FirstTouch::new(FirstTouch::ranges(&arrays), touch, By::All, threads);
    Loops::new(kernel, Some(init), threads)
}

impl Hpcg {
    /// Norms of the residual, at the start and after each iteration.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// The solution so far.
    pub fn solution(&self) -> &[f64] {
        &self.data[0]
    }

    /// How a task is shared: rows of the matrix by pencils, vectors by blocks.
    fn items(&self, task: Task) -> usize {
        match task {
            Task::Forward(l) | Task::Backward(l) | Task::Multiply(l) => self.levels[l].pencils(),
            Task::Restrict(l) | Task::Prolong(l) => self.levels[l + 1].pencils(),
            Task::Zero(l) => self.levels[l].points().div_ceil(BLOCK),
            Task::Step => self.levels[0].pencils(),
            Task::Dot | Task::Direction | Task::Advance => self.levels[0].points().div_ceil(BLOCK),
        }
    }

    /// Ends a task that all threads have done.
    fn end(&mut self, task: Task) {
        let sum: f64 = self.sums.iter().sum();
        self.sums.fill(0.0);
        match task {
            Task::Dot => {
                self.beta = match self.begun {
                    1 => 0.0,
                    _ => sum / self.rz,
                };
                self.rz = sum;
            }
            Task::Step => self.alpha = self.rz / sum,
            Task::Advance => self.norms.push(sum.sqrt()),
            _ => {}
        }
    }

    /// Rows of the matrix: some points of a pencil.
    fn rows(&mut self, task: Task, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let (Task::Forward(l) | Task::Backward(l) | Task::Multiply(l)) = task else {
            return self.step_rows(thread, work, out);
        };
        let level = &mut self.levels[l];
        let (pencil, nx) = (work.at as usize, level.n[0]);
        let points = advance(work, nx);
        let (low, high) = chunk(level.pencils() as u64, thread, self.threads);
        let own = low as usize..high as usize;
        match task {
            Task::Forward(_) => points.for_each(|i| level.smooth(pencil, i, &own, out)),
            Task::Backward(_) => {
                // The same points from the last to the first.
                let pencil = own.start + own.end - 1 - pencil;
                points.for_each(|i| level.smooth(pencil, nx - 1 - i, &own, out));
            }
            _ => {
                let mut ax = std::mem::take(&mut level.data[AX]);
                let from = (level.x, &level.data[X][..]);
                level.multiply(pencil, points, from, level.ax, out, |at, sum| ax[at] = sum);
                level.data[AX] = ax;
            }
        }
    }

    /// Rows of A p.
    fn step_rows(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let level = &self.levels[0];
        let pencil = work.at as usize;
        let points = advance(work, level.n[0]);
        let [_, p, ap] = &mut self.data;
        let [_, p_array, ap_array] = self.vectors;
        let sum = &mut self.sums[thread];
        level.multiply(pencil, points, (p_array, p), ap_array, out, |at, value| {
            ap[at] = value;
            *sum += p[at] * value;
        });
    }

    /// A coarse pencil, from or to the level above.
    fn between(&mut self, l: usize, up: bool, work: &mut Work, out: &mut Vec<Op>) {
        let (above, below) = self.levels.split_at_mut(l + 1);
        let (fine, coarse) = (&mut above[l], &mut below[0]);
        let (pencil, nx) = (work.at as usize, coarse.n[0]);
        work.at += 1;
        fine.between(coarse, pencil, up, out);
        for point in pencil * nx..(pencil + 1) * nx {
            let at = fine.fine(coarse, point);
            if up {
                coarse.data[B][point] = fine.data[B][at] - fine.data[AX][at];
            } else {
                fine.data[X][at] += coarse.data[X][point];
            }
        }
    }

    /// A block of vectors.
    fn block(&mut self, task: Task, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        use Kind::{Read, Update, Write};
        let low = work.at as usize * BLOCK;
        work.at += 1;
        let l = match task {
            Task::Zero(l) => l,
            _ => 0,
        };
        let level = &mut self.levels[l];
        let range = low..(low + BLOCK).min(level.points());
        let [x, p, ap] = self.vectors;
        let (z, r) = (level.x, level.b);
        let arrays: &[(Kind, Array)] = match task {
            Task::Zero(_) => &[(Write, z)],
            Task::Dot => &[(Read, r), (Read, z)],
            Task::Direction => &[(Read, z), (Update, p)],
            _ => &[(Read, p), (Update, x), (Read, ap), (Update, r)],
        };
        vector_ops(arrays, range.start as u64, range.end as u64, out);
        let [z, r, _] = &mut level.data;
        let [x, p, ap] = &mut self.data;
        for i in range {
            match task {
                Task::Zero(_) => z[i] = 0.0,
                Task::Dot => self.sums[thread] += r[i] * z[i],
                Task::Direction => p[i] = z[i] + self.beta * p[i],
                _ => {
                    x[i] += self.alpha * p[i];
                    r[i] -= self.alpha * ap[i];
                    self.sums[thread] += r[i] * r[i];
                }
            }
        }
    }
}

/// The next points of a pencil of `nx`.
fn advance(work: &mut Work, nx: usize) -> std::ops::Range<usize> {
    let from = work.within as usize;
    let to = (from + ROWS).min(nx);
    work.within = to as u64;
    if to == nx {
        (work.at, work.within) = (work.at + 1, 0);
    }
    from..to
}

impl StagedKernel for Hpcg {
    fn name(&self) -> String {
        "hpcg".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        if let Some(&task) = self.next.checked_sub(1).and_then(|i| self.tasks.get(i)) {
            self.end(task);
        }
        let starts = self.next == self.tasks.len();
        if starts {
            if self.begun == self.iterations {
                return None;
            }
            self.begun += 1;
            self.tasks = iteration(self.levels.len());
            self.next = 0;
        }
        let task = self.tasks[self.next];
        self.next += 1;
        if let Task::Forward(l) = task {
            self.levels[l].keep();
        }
        let stage = Stage::parallel(self.items(task) as u64);
        Some(Stage {
            iteration: starts,
            ..stage
        })
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let task = self.tasks[self.next - 1];
        match task {
            Task::Forward(_) | Task::Backward(_) | Task::Multiply(_) | Task::Step => {
                self.rows(task, thread, work, out);
            }
            Task::Restrict(l) => self.between(l, true, work, out),
            Task::Prolong(l) => self.between(l, false, work, out),
            _ => self.block(task, thread, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        let (first, last) = (self.norms[0], self.norms[self.norms.len() - 1]);
        let off = self.data[0].iter().map(|x| (x - 1.0).abs());
        vec![
            ("points".into(), self.levels[0].points().to_string()),
            ("levels".into(), self.levels.len().to_string()),
            ("iterations".into(), (self.norms.len() - 1).to_string()),
            (
                "residual over the first".into(),
                format!("{:.6e}", last / first),
            ),
            (
                "largest error".into(),
                format!("{:.3e}", off.fold(0.0, f64::max)),
            ),
        ]
    }
}
