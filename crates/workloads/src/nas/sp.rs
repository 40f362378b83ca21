//! SP: the model problem of [`super::flow`] by alternating directions, each made diagonal in the five components, so
//! that five scalar pentadiagonal systems per line remain (NAS reports RNR-94-007, section 3.4, and NAS-95-020).
//!
//! Arrays: [`super::flow_ops`], and per thread the factors of a plane's systems, `sp.lhs`, `sp.lhsp`, `sp.lhsm`, 40 bytes per
//! point each: one for the three components that are carried with the flow, one each for those that run ahead and
//! behind. A plane is solved in three passes (set up, forward, backward) over its rows, whatever the direction of
//! the systems, so that accesses run along x; along y and z the recurrence goes from row to row.

use varve_machine::{Kind, Op, Region};

use super::flow::{Cube, EPS, Flow, HOST_BYTES_PER_POINT, fourth, reflect};
use super::flow_ops::{BLOCK, PER_READ_LINE, Piece, Places, answers, edge};
use super::lcg::SEED;
use super::setup::{Class, Setup};
use crate::layout::{Array, Layout};
use crate::loops::{Kernel, Loops, Stage, Work, run};
use varve_spec::Error;

// Instructions per line of 1.6 points, of 150 per point and direction besides right-hand side and changes of
// variables (see `flow_ops`): 40 to set up, 85 forward, 25 backward.
const PER_SETUP_LINE: u32 = 64;
const PER_FORWARD_LINE: u32 = 136;
const PER_BACKWARD_LINE: u32 = 40;
/// Instructions per line of a change of variables: 20 per point.
const PER_CHANGE_LINE: u32 = 32;

/// Sizes of NPB 3.4: points along an edge, iterations.
fn sizes(class: Class) -> (u64, u64) {
    match class {
        Class::S => (12, 100),
        Class::W => (36, 400),
        Class::A => (64, 400),
        Class::B => (102, 400),
        Class::C => (162, 400),
        Class::D => (408, 500),
        Class::E => (1020, 500),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Derive,
    RightHandSide(usize),
    /// To the variables in which an axis' systems are diagonal; 3: back to the original ones.
    Change(usize),
    Solve(usize),
    Add,
}

/// The kernel, for [`Loops`].
pub struct Sp {
    iterations: u64,
    iteration: u64,
    at: At,
    places: Places,
    /// `lhs`, `lhsp`, `lhsm` of all threads.
    factors: [Array; 3],
    flow: Option<Flow>,
    line: Line,
}

/// Scratch space of one line: what elimination leaves above the diagonal, and the values.
struct Line {
    upper: Vec<[f64; 2]>,
    value: Vec<f64>,
}

/// Makes the program.
///
/// # Errors
/// A size out of range, or data that do not fit.
pub fn program(setup: &Setup) -> Result<Loops<Sp>, Error> {
    let (of_class, iterations) = sizes(setup.class);
    let cube = edge("sp", setup, of_class)?;
    let mut layout = Layout::new();
    let scalars = ["us", "vs", "ws", "qs", "rho_i", "speed", "square"];
    let mut places = Places::new(&mut layout, "sp", cube, &scalars);
    let plane = (cube.row * cube.n * setup.threads) as u64;
    let factors = ["sp.lhs", "sp.lhsp", "sp.lhsm"].map(|name| layout.array(name, plane, 40));
    places.regions = layout.regions().to_vec();
    let init = places.first_touch(&factors, setup);
    let real = setup.real("sp", cube.points() as u64 * HOST_BYTES_PER_POINT)?;
    let kernel = Sp {
        iterations: setup.iterations.unwrap_or(iterations),
        iteration: 0,
        at: At::Start,
        places,
        factors,
        flow: real.then(|| Flow::new(cube, setup.generator(SEED))),
        line: Line::new(cube.n),
    };
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

impl Line {
    fn new(n: usize) -> Line {
        // Two more at either end, which stay zero.
        Line {
            upper: vec![[0.0; 2]; n + 2],
            value: vec![0.0; n + 2],
        }
    }

    /// Solves the five scalar systems along the line of inner points from `start` on, in place.
    fn solve(&mut self, flow: &mut Flow, axis: usize, start: usize) {
        let (n, stride) = (flow.cube.n, flow.cube.stride(axis));
        let (half, spread) = flow.implicit();
        let damping = flow.dt * EPS;
        for m in 0..5 {
            let speed =
                |flow: &Flow, c: usize| half * flow.derived(start + c * stride).speeds(axis)[m];
            for c in 1..n - 1 {
                let weights = fourth(c, n).map(|weight| damping * weight);
                let before = weights[1] - speed(flow, c - 1) - spread;
                let diagonal = weights[2] + 1.0 + 2.0 * spread;
                let after = weights[3] + speed(flow, c + 1) - spread;
                let [second, first] = if c > 1 {
                    [self.upper[c - 2], self.upper[c - 1]]
                } else {
                    [[0.0; 2]; 2]
                };
                let [value2, value1] = if c > 1 {
                    [self.value[c - 2], self.value[c - 1]]
                } else {
                    [0.0; 2]
                };
                let before = before - weights[0] * second[0];
                let inverse = 1.0 / (diagonal - weights[0] * second[1] - before * first[0]);
                self.upper[c] = [(after - before * first[1]) * inverse, weights[4] * inverse];
                let value = flow.rhs[start + c * stride][m];
                self.value[c] = (value - weights[0] * value2 - before * value1) * inverse;
            }
            let mut next = [0.0; 2];
            for c in (1..n - 1).rev() {
                let x = self.value[c] - self.upper[c][0] * next[0] - self.upper[c][1] * next[1];
                flow.rhs[start + c * stride][m] = x;
                next = [x, next[0]];
            }
        }
    }

    fn solve_plane(&mut self, flow: &mut Flow, axis: usize, plane: usize) {
        let cube = flow.cube;
        for line in 1..cube.n - 1 {
            self.solve(flow, axis, line_start(cube, axis, line, plane));
        }
    }
}

fn line_start(cube: Cube, axis: usize, line: usize, plane: usize) -> usize {
    match axis {
        0 => cube.at(0, line, plane),
        1 => cube.at(line, 0, plane),
        _ => cube.at(line, plane, 0),
    }
}

/// The change of variables before an axis' systems: out of those of the axis before, into its own.
fn change(axis: usize, x: &mut [f64; 5]) {
    if axis > 0 {
        *x = reflect(axis - 1, x);
    }
    if axis < 3 {
        *x = reflect(axis, x);
    }
}

impl Sp {
    /// The fields; `None` without data.
    pub fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    fn change_step(&mut self, axis: usize, work: &mut Work, out: &mut Vec<Op>) {
        let Piece {
            row: j,
            plane: k,
            low,
            high,
        } = Piece::next(work, 1, self.places.cube.n - 1);
        let row = self.places.cube.at(0, j, k);
        // The first and the last change depend on the flow, those between only on their variables.
        let scalars: &[Array] = if axis == 0 || axis == 3 {
            &self.places.scalars[..6]
        } else {
            &[]
        };
        for &scalar in scalars {
            Places::row_ops(Kind::Read, scalar, row, low, high, PER_READ_LINE, out);
        }
        if axis == 3 {
            Places::row_ops(
                Kind::Read,
                self.places.u,
                row,
                low,
                high,
                PER_READ_LINE,
                out,
            );
        }
        Places::row_ops(
            Kind::Update,
            self.places.rhs,
            row,
            low,
            high,
            PER_CHANGE_LINE,
            out,
        );
        if let Some(flow) = &mut self.flow {
            flow.rhs[row + low..row + high]
                .iter_mut()
                .for_each(|x| change(axis, x));
        }
    }

    fn solve_step(&mut self, axis: usize, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let inner = self.places.cube.n - 2;
        let blocks = inner.div_ceil(BLOCK);
        let pass_steps = inner * blocks;
        let within = work.within as usize;
        let (pass, step) = (within / pass_steps, within % pass_steps);
        let step = if pass == 2 {
            pass_steps - 1 - step
        } else {
            step
        };
        let low = 1 + step % blocks * BLOCK;
        let high = (low + BLOCK).min(inner + 1);
        let plane = 1 + work.at as usize;
        if within == 2 * pass_steps
            && let Some(flow) = &mut self.flow
        {
            self.line.solve_plane(flow, axis, plane);
        }
        let rows = Rows {
            sp: self,
            axis,
            thread,
            plane,
            row: 1 + step / blocks,
            low,
            high,
        };
        match pass {
            0 => rows.set_up(out),
            1 => rows.forward(out),
            _ => rows.backward(out),
        }
        work.within += 1;
        if work.within as usize == 3 * pass_steps {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }
}

/// A piece of a row of a plane that is being solved.
struct Rows<'a> {
    sp: &'a Sp,
    axis: usize,
    thread: usize,
    plane: usize,
    row: usize,
    low: usize,
    high: usize,
}

impl Rows<'_> {
    /// Accesses to the factors of row `row` of the plane, the last of the three runs with `per_line` instructions.
    fn factors(&self, kind: Kind, row: usize, per_line: u32, out: &mut Vec<Op>) {
        let cube = self.sp.places.cube;
        let start = (self.thread * cube.n + row) * cube.row + self.low;
        let bytes = (self.high - self.low) as u64 * 40;
        for (i, array) in self.sp.factors.iter().enumerate() {
            let per_line = if i == 2 { per_line } else { PER_READ_LINE };
            run(out, kind, array.at(start as u64), bytes, per_line);
        }
    }

    fn points(&self, kind: Kind, array: Array, row: usize, per_line: u32, out: &mut Vec<Op>) {
        let cube = self.sp.places.cube;
        let start = if self.axis == 2 {
            cube.at(0, self.plane, row)
        } else {
            cube.at(0, row, self.plane)
        };
        Places::row_ops(kind, array, start, self.low, self.high, per_line, out);
    }

    fn set_up(&self, out: &mut Vec<Op>) {
        let scalars = &self.sp.places.scalars;
        for array in [scalars[self.axis], scalars[4], scalars[5]] {
            self.points(Kind::Read, array, self.row, PER_READ_LINE, out);
        }
        self.factors(Kind::Write, self.row, PER_SETUP_LINE, out);
    }

    fn forward(&self, out: &mut Vec<Op>) {
        let rhs = self.sp.places.rhs;
        if self.axis == 0 {
            self.factors(Kind::Update, self.row, PER_READ_LINE, out);
            self.points(Kind::Update, rhs, self.row, PER_FORWARD_LINE, out);
            return;
        }
        self.factors(Kind::Read, self.row, PER_READ_LINE, out);
        self.points(
            Kind::Read,
            rhs,
            self.row,
            PER_FORWARD_LINE - 6 * PER_READ_LINE,
            out,
        );
        // What the row takes out of the two after it.
        for row in self.row + 1..(self.row + 3).min(self.sp.places.cube.n - 1) {
            self.factors(Kind::Update, row, PER_READ_LINE, out);
            self.points(Kind::Update, rhs, row, PER_READ_LINE, out);
        }
    }

    fn backward(&self, out: &mut Vec<Op>) {
        let rhs = self.sp.places.rhs;
        self.factors(Kind::Read, self.row, PER_READ_LINE, out);
        if self.axis > 0 {
            for row in self.row + 1..(self.row + 3).min(self.sp.places.cube.n - 1) {
                self.points(Kind::Read, rhs, row, PER_READ_LINE, out);
            }
        }
        self.points(Kind::Update, rhs, self.row, PER_BACKWARD_LINE, out);
    }
}

impl Kernel for Sp {
    fn name(&self) -> String {
        "sp".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.places.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        self.at = match self.at {
            At::Start | At::Add if self.iteration == self.iterations => return None,
            At::Start | At::Add => At::Derive,
            At::Derive => At::RightHandSide(0),
            At::RightHandSide(2) => At::Change(0),
            At::RightHandSide(axis) => At::RightHandSide(axis + 1),
            At::Change(3) => At::Add,
            At::Change(axis) => At::Solve(axis),
            At::Solve(axis) => At::Change(axis + 1),
        };
        if self.at == At::Derive {
            self.iteration += 1;
            return Some(self.places.planes(false).starts_iteration());
        }
        Some(self.places.planes(true))
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let flow = self.flow.as_mut();
        match self.at {
            At::Start | At::Derive => self.places.derive(flow, work, out),
            At::RightHandSide(axis) => self.places.right_hand_side(axis, flow, work, out),
            At::Change(axis) => self.change_step(axis, work, out),
            At::Solve(axis) => self.solve_step(axis, thread, work, out),
            At::Add => self.places.add(1.0, flow, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        answers(self.flow.as_ref())
    }
}

#[cfg(test)]
mod tests;
