//! MG: V-cycles for the Poisson equation on a periodic grid, 27-point stencils (NAS report RNR-94-007, section 2.4.3).
//!
//! | array | bytes | accessed |
//! |---|---|---|
//! | `mg.u` | 8 × (points with ghosts, all levels: about 8/7 of the finest) | read and written in planes |
//! | `mg.v` | 8 × points of the finest level | read once per iteration and residual |
//! | `mg.r` | as `mg.u` | read and written in planes |
//!
//! Each loop is shared among threads by planes, as in the benchmark, so that on the coarse levels few threads
//! work. The ghosts of a plane are set by the thread that wrote it; ghost planes in a loop of their own.
//!
//! Instructions: with vectors of four doubles a stencil takes some 27 loads, adds and multiplications per four points; with
//! eleven runs of lines of eight points that is 5 per line and run.
//!
//! The norms are computed on the host and make no accesses; the benchmark's untimed first iteration is left out.

use varve_access::{Op, Region};

use super::lcg::SEED;
use super::mg_grid::{Grid, MgArrays, MgLevel, Task};
use super::setup::{Class, NasSetup, refuse};
use crate::init::{By, FirstTouch};
use crate::layout::Layout;
use crate::loops::{Loops, Stage, StagedKernel, Work};
use varve_spec::Error;

/// Coefficients of the smoother for classes S, W and A.
const C_SMALL: [f64; 4] = [-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0];
/// Coefficients of the smoother for the larger classes.
const C_LARGE: [f64; 4] = [-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0, 0.0];

/// Sizes of NPB 3.4: points along an edge, iterations.
fn sizes(class: Class) -> (u64, u64) {
    match class {
        Class::S => (32, 4),
        Class::W => (128, 4),
        Class::A => (256, 4),
        Class::B => (256, 20),
        Class::C => (512, 20),
        Class::D => (1024, 50),
        Class::E => (2048, 50),
    }
}

/// The loops of one V-cycle on `levels` levels and the residual after it.
fn cycle(levels: usize) -> Vec<Task> {
    let coarsest = levels - 1;
    let mut tasks = Vec::new();
    for level in 0..coarsest {
        tasks.extend([Task::Restrict(level), Task::WrapR(level + 1)]);
    }
    tasks.extend([
        Task::Zero(coarsest),
        Task::Smooth(coarsest),
        Task::WrapU(coarsest),
    ]);
    for level in (1..coarsest).rev() {
        tasks.extend([Task::Zero(level), Task::Interpolate(level)]);
        tasks.extend([Task::ResidualOfR(level), Task::WrapR(level)]);
        tasks.extend([Task::Smooth(level), Task::WrapU(level)]);
    }
    if coarsest > 0 {
        tasks.extend([Task::Interpolate(0), Task::ResidualOfV, Task::WrapR(0)]);
        tasks.extend([Task::Smooth(0), Task::WrapU(0)]);
    }
    tasks.extend([Task::ResidualOfV, Task::WrapR(0)]);
    tasks
}

/// The kernel, for [`Loops`].
pub struct Mg {
    iterations: u64,
    iteration: u64,
    /// The loops to do, and which one is next.
    tasks: Vec<Task>,
    next: usize,
    regions: Vec<Region>,
    grid: Grid,
    data: Option<MgArrays>,
}

/// Makes the program.
///
/// # Errors
/// An edge that is no power of two or out of range, or data that do not fit.
pub fn program(setup: &NasSetup) -> Result<Loops<Mg>, Error> {
    let (edge, iterations) = sizes(setup.class);
    let edge = setup.size.unwrap_or(edge);
    if !edge.is_power_of_two() {
        return Err(refuse("mg", "size", edge, "must be a power of two"));
    }
    let edges = setup.scaled_powers([edge; 3], 4);
    setup.check_size("mg", edges[2], 4, 4096)?;
    let levels: Vec<MgLevel> = MgLevel::hierarchy(edges);
    let points: u64 = levels.iter().map(MgLevel::points).sum();
    let finest = levels[0].points();
    let mut layout = Layout::new();
    let u = layout.array("mg.u", points, 8);
    let v = layout.array("mg.v", finest, 8);
    let r = layout.array("mg.r", points, 8);
    let init = FirstTouch::new(
        FirstTouch::ranges(&[u, v, r]),
        setup.touch,
        By::All,
        setup.threads,
    );
    let smoother = if setup.class <= Class::A {
        C_SMALL
    } else {
        C_LARGE
    };
    let grid = Grid { levels, u, v, r };
    let real = setup.real("mg", 8 * (2 * points + finest))?;
    let kernel = Mg {
        iterations: setup.iterations.unwrap_or(iterations),
        iteration: 0,
        // Before the first iteration, the residual of u = 0.
        tasks: vec![Task::ResidualOfV, Task::WrapR(0)],
        next: 0,
        regions: layout.regions().to_vec(),
        data: real.then(|| MgArrays::new(&grid, edges, smoother, setup.generator(SEED))),
        grid,
    };
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

impl Mg {
    /// Root mean square of the residual on the finest level; `None` without data.
    pub fn norm(&self) -> Option<f64> {
        self.data.as_ref().map(|data| data.norm(&self.grid))
    }
}

impl StagedKernel for Mg {
    fn name(&self) -> String {
        "mg".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        let mut starts = false;
        if self.next == self.tasks.len() {
            if self.iteration == self.iterations {
                return None;
            }
            self.iteration += 1;
            if self.iteration == 1 {
                self.tasks = cycle(self.grid.levels.len());
            }
            self.next = 0;
            starts = true;
        }
        self.next += 1;
        let stage = Stage::parallel(self.grid.items(self.tasks[self.next - 1]));
        Some(Stage {
            iteration: starts,
            ..stage
        })
    }

    fn step(&mut self, _thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        self.grid
            .step(self.tasks[self.next - 1], self.data.as_mut(), work, out);
    }

    fn answers(&self) -> Vec<(String, String)> {
        let Some(norm) = self.norm() else {
            return Vec::new();
        };
        vec![("residual norm".into(), format!("{norm:.12e}"))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, CallOrder};
    use crate::loops::drain;

    fn norm(class: Class, size: u64, iterations: u64, threads: usize) -> f64 {
        let mut mg = program(&NasSetup::tiny(class, size, iterations, threads, true)).unwrap();
        drain(&mut mg);
        mg.kernel.norm().unwrap()
    }

    #[test]
    fn class_s_norm_is_the_published_one() {
        // NPB verification value of class S.
        for threads in [1, 3, 40] {
            let norm = norm(Class::S, 0, 0, threads);
            assert!((norm / 0.5307707005734e-4 - 1.0).abs() < 1e-10, "{norm}");
        }
    }

    #[test]
    fn cycles_converge_at_a_rate_that_does_not_depend_on_the_size() {
        for (size, scale) in [(16, 1), (32, 1), (64, 1), (64, 2), (64, 4)] {
            let norms = [2, 3, 4].map(|iterations| {
                let setup = NasSetup {
                    scale,
                    ..NasSetup::tiny(Class::S, size, iterations, 2, true)
                };
                let mut mg = program(&setup).unwrap();
                drain(&mut mg);
                mg.kernel.norm().unwrap()
            });
            for pair in norms.windows(2) {
                assert!(
                    pair[1] < 0.4 * pair[0],
                    "edge {size}, volume by {scale}: {norms:?}"
                );
            }
        }
    }

    #[test]
    fn the_same_accesses_without_data_whatever_the_order() {
        let make = |real| program(&NasSetup::tiny(Class::S, 16, 2, 3, real)).unwrap();
        let tally = harness::assert_order_does_not_matter(|| Box::new(make(true)), u64::MAX);
        assert_eq!(
            harness::run(&mut make(false), CallOrder::Random(1), u64::MAX),
            tally
        );
    }

    #[test]
    fn an_odd_edge_is_refused() {
        let error = program(&NasSetup::tiny(Class::S, 33, 1, 1, false))
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "workload `mg`: `size=33`: must be a power of two"
        );
    }
}
