//! LU: the model problem of [`super::flow`] by symmetric successive over-relaxation, a lower and an upper triangular sweep
//! per step (NAS reports RNR-94-007, section 3.2, and NAS-95-020).
//!
//! Arrays: [`super::flow_ops`] (of the derived ones `rho_i` and `qs`), and `lu.a` to `lu.d`, the 5 x 5 blocks of one plane, 200 bytes per
//! point each, shared by all threads.
//!
//! A sweep is a pipeline, as in the benchmark's OpenMP version: every thread has its rows of every plane, and does
//! plane k when the thread before it has done its rows of that plane. The benchmark waits for that neighbour only;
//! here all threads meet at a barrier between planes, n + threads - 3 of them per sweep.

use varve_machine::{Kind, Op, Region};

use super::block::{Vector, apply};
use super::flow::{Cube, Flow, HOST_BYTES_PER_POINT};
use super::flow_ops::{PER_READ_LINE, Places, answers, edge};
use super::lcg::SEED;
use super::setup::{Class, Setup};
use crate::init::chunk;
use crate::layout::{Array, Layout};
use crate::loops::{Kernel, Loops, Stage, Work, run};
use varve_spec::Error;

/// Points of a row per step.
const BLOCK: usize = 16;
/// Over-relaxation factor of the benchmark.
const OMEGA: f64 = 1.2;
/// Instructions per point and sweep, of 290 (see `flow_ops`): making four blocks, 150, charged line by line of the blocks
/// (12.5 lines per point);
const PER_BLOCK_LINE: u32 = 12;
/// and three products of a block and a vector and a solution with the diagonal's, 140, per line of 1.6 points.
const PER_SWEEP_LINE: u32 = 224;

/// Sizes of NPB 3.4: points along an edge, iterations.
fn sizes(class: Class) -> (u64, u64) {
    match class {
        Class::S => (12, 50),
        Class::W => (33, 300),
        Class::A => (64, 250),
        Class::B => (102, 250),
        Class::C => (162, 250),
        Class::D => (408, 300),
        Class::E => (1020, 300),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Derive,
    RightHandSide(usize),
    /// The lower sweep's pipeline at this step.
    Lower(usize),
    /// The upper sweep's pipeline at this step.
    Upper(usize),
    Add,
}

/// The kernel, for [`Loops`].
pub struct Lu {
    iterations: u64,
    iteration: u64,
    at: At,
    threads: usize,
    places: Places,
    /// The blocks of the diagonal and of the three directions, of one plane.
    blocks: [Array; 4],
    flow: Option<Flow>,
}

/// Makes the program.
///
/// # Errors
/// A size out of range, or data that do not fit.
pub fn program(setup: &Setup) -> Result<Loops<Lu>, Error> {
    let (of_class, iterations) = sizes(setup.class);
    let cube = edge("lu", setup, of_class)?;
    let mut layout = Layout::new();
    let mut places = Places::new(&mut layout, "lu", cube, &["rho_i", "qs"]);
    let plane = (cube.row * cube.n) as u64;
    let blocks = ["lu.a", "lu.b", "lu.c", "lu.d"].map(|name| layout.array(name, plane, 200));
    places.regions = layout.regions().to_vec();
    let init = places.first_touch(&blocks, setup);
    let real = setup.real("lu", cube.points() as u64 * HOST_BYTES_PER_POINT)?;
    let kernel = Lu {
        iterations: setup.iterations.unwrap_or(iterations),
        iteration: 0,
        at: At::Start,
        threads: setup.threads,
        places,
        blocks,
        flow: real.then(|| Flow::new(cube, setup.generator(SEED))),
    };
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

/// One step of the lower sweep at a point: x = (rhs - omega sum of the blocks before times x there) / diagonal.
/// Of the upper sweep: x -= omega sum of the blocks after times x there / diagonal.
fn relax(flow: &mut Flow, at: usize, place: [usize; 3], lower: bool) {
    let (half, spread) = flow.implicit();
    let inverse = 1.0 / (1.0 + 6.0 * spread);
    let mut sum: Vector = [0.0; 5];
    for (axis, c) in place.into_iter().enumerate() {
        let stride = flow.cube.stride(axis);
        let (beside, inside, sign) = if lower {
            (at - stride, c > 1, -1.0)
        } else {
            (at + stride, c < flow.cube.n - 2, 1.0)
        };
        if inside {
            let x = &flow.rhs[beside];
            let carried = apply(&flow.derived(beside).carry(axis), x);
            for m in 0..5 {
                sum[m] += sign * half * carried[m] - spread * x[m];
            }
        }
    }
    let x = &mut flow.rhs[at];
    for m in 0..5 {
        x[m] = if lower {
            (x[m] - OMEGA * sum[m]) * inverse
        } else {
            x[m] - OMEGA * sum[m] * inverse
        };
    }
}

impl Lu {
    /// The fields; `None` without data.
    pub fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    /// Steps of a sweep's pipeline.
    fn pipeline(&self) -> usize {
        self.places.cube.n - 2 + self.threads - 1
    }

    /// A step of a thread's rows of the plane that the pipeline has it at. The item is the thread.
    fn sweep(&mut self, step: usize, lower: bool, work: &mut Work, out: &mut Vec<Op>) {
        let (cube, thread) = (self.places.cube, work.at as usize);
        let inner = cube.n - 2;
        let (first, last) = chunk(inner as u64, thread, self.threads);
        let rows = (last - first) as usize;
        // The upper sweep starts at the last thread's rows of the last plane.
        let behind = if lower {
            thread
        } else {
            self.threads - 1 - thread
        };
        let plane = step
            .checked_sub(behind)
            .filter(|&plane| plane < inner && rows > 0);
        let Some(plane) = plane else {
            work.at += 1;
            return;
        };
        let blocks = inner.div_ceil(BLOCK);
        let within = work.within as usize;
        let forward = (within / blocks, within % blocks);
        let (row, block) = if lower {
            forward
        } else {
            (rows - 1 - forward.0, blocks - 1 - forward.1)
        };
        let k = 1 + if lower { plane } else { inner - 1 - plane };
        let j = 1 + first as usize + row;
        let low = 1 + block * BLOCK;
        let high = (low + BLOCK).min(inner + 1);
        self.sweep_ops(j, k, low, high, lower, out);
        if let Some(flow) = &mut self.flow {
            let mut at = |i: usize| relax(flow, cube.at(i, j, k), [i, j, k], lower);
            if lower {
                (low..high).for_each(&mut at);
            } else {
                (low..high).rev().for_each(&mut at);
            }
        }
        work.within += 1;
        if work.within as usize == rows * blocks {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    fn sweep_ops(
        &self,
        j: usize,
        k: usize,
        low: usize,
        high: usize,
        lower: bool,
        out: &mut Vec<Op>,
    ) {
        let places = &self.places;
        let Cube { row: width, .. } = places.cube;
        let row = places.cube.at(0, j, k);
        let beside = |axis: usize| {
            let stride = places.cube.stride(axis);
            if lower { row - stride } else { row + stride }
        };
        // Blocks from u and what is derived from it, here and beside.
        for row in [row, beside(1), beside(2)] {
            for array in [places.u, places.scalars[0], places.scalars[1]] {
                Places::row_ops(Kind::Read, array, row, low, high, PER_READ_LINE, out);
            }
        }
        for array in self.blocks {
            Places::row_ops(
                Kind::Write,
                array,
                j * width,
                low,
                high,
                PER_BLOCK_LINE,
                out,
            );
        }
        // The sweep itself.
        for array in self.blocks {
            Places::row_ops(Kind::Read, array, j * width, low, high, PER_READ_LINE, out);
        }
        for row in [beside(1), beside(2)] {
            Places::row_ops(Kind::Read, places.rhs, row, low, high, PER_READ_LINE, out);
        }
        let own = places.rhs.at((row + low) as u64);
        run(
            out,
            Kind::Update,
            own,
            40 * (high - low) as u64,
            PER_SWEEP_LINE,
        );
    }
}

impl Kernel for Lu {
    fn name(&self) -> String {
        "lu".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.places.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        let last = self.pipeline() - 1;
        self.at = match self.at {
            At::Start | At::Add if self.iteration == self.iterations => return None,
            At::Start | At::Add => At::Derive,
            At::Derive => At::RightHandSide(0),
            At::RightHandSide(2) => At::Lower(0),
            At::RightHandSide(axis) => At::RightHandSide(axis + 1),
            At::Lower(step) if step == last => At::Upper(0),
            At::Lower(step) => At::Lower(step + 1),
            At::Upper(step) if step == last => At::Add,
            At::Upper(step) => At::Upper(step + 1),
        };
        match self.at {
            At::Derive => {
                self.iteration += 1;
                Some(self.places.planes(false).starts_iteration())
            }
            At::Lower(_) | At::Upper(_) => Some(Stage::parallel(self.threads as u64)),
            _ => Some(self.places.planes(true)),
        }
    }

    fn step(&mut self, _thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let flow = self.flow.as_mut();
        match self.at {
            At::Start | At::Derive => self.places.derive(flow, work, out),
            At::RightHandSide(axis) => self.places.right_hand_side(axis, flow, work, out),
            At::Lower(step) => self.sweep(step, true, work, out),
            At::Upper(step) => self.sweep(step, false, work, out),
            At::Add => self
                .places
                .add(1.0 / (OMEGA * (2.0 - OMEGA)), flow, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        answers(self.flow.as_ref())
    }
}
