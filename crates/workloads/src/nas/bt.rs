//! BT: the model problem of [`super::flow`] by alternating directions, each a block-tridiagonal system of 5 x 5 blocks
//! per line (NAS reports RNR-94-007, section 3.3, and NAS-95-020).
//!
//! (1 + dt L_x)(1 + dt L_y)(1 + dt L_z) update = dt R(u). Arrays: [`super::flow_ops`]. Per direction and point, u,
//! `rho_i`, `qs`, `square` are read for the blocks and the right-hand side is read and written twice, forward and
//! backward, along lines at a stride of 40 bytes, a row, or a plane. The blocks of one line (600 bytes per point, 245 KB in
//! class D) are the thread's own and stay in its second cache: they are left to the instruction count.

use varve_machine::{Kind, Op, Region};

use super::block::{Matrix, Vector, apply, minus, product, solve, unit};
use super::flow::{Flow, HOST_BYTES_PER_POINT};
use super::flow_ops::{PER_READ_LINE, Places, answers, edge};
use super::lcg::SEED;
use super::setup::{Class, Setup};
use crate::layout::{Array, Layout};
use crate::loops::{Kernel, Loops, Stage, Work, run};
use varve_spec::Error;

/// Points of a line per step.
const CHUNK: usize = 48;
/// Per point and direction forward, of 1000 in all (see [`super::flow_ops`]): two Jacobians, elimination of a block
/// column, two block products.
const PER_FORWARD: u32 = 900;
/// Per point and direction backward: a block times a vector.
const PER_BACKWARD: u32 = 60;

/// Sizes of NPB 3.4: points along an edge, iterations.
fn sizes(class: Class) -> (u64, u64) {
    match class {
        Class::S => (12, 60),
        Class::W => (24, 200),
        Class::A => (64, 200),
        Class::B => (102, 200),
        Class::C => (162, 200),
        Class::D => (408, 250),
        Class::E => (1020, 250),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Derive,
    RightHandSide(usize),
    Solve(usize),
    Add,
}

/// The kernel, for [`Loops`].
pub struct Bt {
    iterations: u64,
    iteration: u64,
    at: At,
    places: Places,
    flow: Option<Flow>,
    line: Line,
}

/// Scratch space of one line: what elimination leaves beside the diagonal, and the vectors.
struct Line {
    upper: Vec<Matrix>,
    vector: Vec<Vector>,
}

/// Makes the program.
///
/// # Errors
/// A size out of range, or data that do not fit.
pub fn program(setup: &Setup) -> Result<Loops<Bt>, Error> {
    let (of_class, iterations) = sizes(setup.class);
    let cube = edge("bt", setup, of_class)?;
    let mut layout = Layout::new();
    let scalars = ["us", "vs", "ws", "qs", "rho_i", "square"];
    let places = Places::new(&mut layout, "bt", cube, &scalars);
    let init = places.first_touch(&[], setup);
    let real = setup.real("bt", cube.points() as u64 * HOST_BYTES_PER_POINT)?;
    let kernel = Bt {
        iterations: setup.iterations.unwrap_or(iterations),
        iteration: 0,
        at: At::Start,
        places,
        flow: real.then(|| Flow::new(cube, setup.generator(SEED))),
        line: Line {
            upper: vec![unit(0.0); cube.n],
            vector: vec![[0.0; 5]; cube.n],
        },
    };
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

impl Line {
    /// Solves (1 + dt L) x = rhs along the line of inner points from `start` on, in place.
    fn solve(&mut self, flow: &mut Flow, axis: usize, start: usize) {
        let stride = flow.cube.stride(axis);
        let (half, spread) = flow.implicit();
        let inner = 1..flow.cube.n - 1;
        let beside = |flow: &Flow, at: usize, sign: f64| {
            let mut block = flow
                .derived(at)
                .carry(axis)
                .map(|row| row.map(|a| sign * half * a));
            (0..5).for_each(|m| block[m][m] -= spread);
            block
        };
        for c in inner.clone() {
            let at = start + c * stride;
            let mut diagonal = unit(1.0 + 2.0 * spread);
            let mut vector = flow.rhs[at];
            if c > 1 {
                let lower = beside(flow, at - stride, -1.0);
                let taken = product(&lower, &self.upper[c - 1]);
                diagonal = std::array::from_fn(|i| minus(&diagonal[i], &taken[i]));
                vector = minus(&vector, &apply(&lower, &self.vector[c - 1]));
            }
            let upper = beside(flow, at + stride, 1.0);
            (self.upper[c], self.vector[c]) = solve(diagonal, upper, vector);
        }
        let mut next = [0.0; 5];
        for c in inner.rev() {
            next = minus(&self.vector[c], &apply(&self.upper[c], &next));
            flow.rhs[start + c * stride] = next;
        }
    }
}

impl Bt {
    /// The fields; `None` without data.
    pub fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    /// A step of a line: 48 of its points forward, or backward.
    fn solve_step(&mut self, axis: usize, work: &mut Work, out: &mut Vec<Op>) {
        let cube = self.places.cube;
        let chunks = (cube.n - 2).div_ceil(CHUNK);
        let within = work.within as usize;
        let (line, step) = (1 + within / (2 * chunks), within % (2 * chunks));
        let plane = 1 + work.at as usize;
        let start = match axis {
            0 => cube.at(0, line, plane),
            1 => cube.at(line, 0, plane),
            _ => cube.at(line, plane, 0),
        };
        let forward = step < chunks;
        let chunk = if forward { step } else { 2 * chunks - 1 - step };
        let low = 1 + chunk * CHUNK;
        let high = (low + CHUNK).min(cube.n - 1);
        self.line_ops(axis, start, low, high, forward, out);
        if step == chunks
            && let Some(flow) = &mut self.flow
        {
            self.line.solve(flow, axis, start);
        }
        work.within += 1;
        if work.within as usize == (cube.n - 2) * 2 * chunks {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    fn line_ops(
        &self,
        axis: usize,
        start: usize,
        low: usize,
        high: usize,
        forward: bool,
        out: &mut Vec<Op>,
    ) {
        let places = &self.places;
        let [_, _, _, qs, rho_i, square] = places.scalars[..] else {
            return;
        };
        let reads = [places.u, rho_i, qs, square];
        let reads: &[Array] = if forward { &reads } else { &[] };
        let instructions = if forward { PER_FORWARD } else { PER_BACKWARD };
        if axis == 0 {
            for &array in reads {
                Places::row_ops(Kind::Read, array, start, low, high, PER_READ_LINE, out);
            }
            // A line holds 1.6 points.
            Places::row_ops(
                Kind::Update,
                places.rhs,
                start,
                low,
                high,
                instructions * 8 / 5,
                out,
            );
            return;
        }
        let stride = places.cube.stride(axis);
        let mut point = |c: usize| {
            let at = (start + c * stride) as u64;
            for &array in reads {
                run(out, Kind::Read, array.at(at), array.size, PER_READ_LINE);
            }
            run(
                out,
                Kind::Update,
                places.rhs.at(at),
                40,
                instructions * 8 / 5,
            );
        };
        if forward {
            (low..high).for_each(&mut point);
        } else {
            (low..high).rev().for_each(&mut point);
        }
    }
}

impl Kernel for Bt {
    fn name(&self) -> String {
        "bt".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.places.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        self.at = match self.at {
            At::Start | At::Add if self.iteration == self.iterations => return None,
            At::Start | At::Add => At::Derive,
            At::Derive => At::RightHandSide(0),
            At::RightHandSide(2) => At::Solve(0),
            At::RightHandSide(axis) => At::RightHandSide(axis + 1),
            At::Solve(2) => At::Add,
            At::Solve(axis) => At::Solve(axis + 1),
        };
        if self.at == At::Derive {
            self.iteration += 1;
            return Some(self.places.planes(false).starts_iteration());
        }
        Some(self.places.planes(true))
    }

    fn step(&mut self, _thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let flow = self.flow.as_mut();
        match self.at {
            At::Start | At::Derive => self.places.derive(flow, work, out),
            At::RightHandSide(axis) => self.places.right_hand_side(axis, flow, work, out),
            At::Solve(axis) => self.solve_step(axis, work, out),
            At::Add => self.places.add(1.0, flow, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        answers(self.flow.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::Cube;
    use super::super::flow::tests::apply_factor;
    use super::super::lcg::Lcg;
    use super::*;
    use crate::harness::{self, Order};
    use crate::loops::drain;

    #[test]
    fn the_three_factors_applied_to_the_update_give_the_right_hand_side() {
        let cube = Cube::new(8);
        let mut flow = Flow::new(cube, Lcg(SEED));
        flow.whole_rhs();
        let want = flow.rhs.clone();
        let mut line = Line {
            upper: vec![unit(0.0); 8],
            vector: vec![[0.0; 5]; 8],
        };
        for a in 1..7 {
            (1..7).for_each(|b| line.solve(&mut flow, 0, cube.at(0, b, a)));
        }
        for a in 1..7 {
            (1..7).for_each(|b| line.solve(&mut flow, 1, cube.at(b, 0, a)));
        }
        for a in 1..7 {
            (1..7).for_each(|b| line.solve(&mut flow, 2, cube.at(b, a, 0)));
        }
        let mut back = flow.rhs.clone();
        for axis in [2, 1, 0] {
            back = apply_factor(&flow, axis, false, &back);
        }
        for (i, j, k) in cube.inner() {
            let at = cube.at(i, j, k);
            for m in 0..5 {
                assert!((back[at][m] - want[at][m]).abs() < 1e-12, "{i} {j} {k} {m}");
            }
        }
    }

    #[test]
    fn time_leads_to_the_exact_solution() {
        for threads in [1, 4] {
            let mut bt = program(&Setup::tiny(Class::S, 0, 120, threads, true)).unwrap();
            drain(&mut bt);
            let flow = bt.kernel.flow().unwrap();
            assert!(flow.error() < 1e-6, "{}", flow.error());
        }
    }

    #[test]
    fn the_same_accesses_without_data_whatever_the_order() {
        let make = |real| program(&Setup::tiny(Class::S, 9, 2, 3, real)).unwrap();
        let tally = harness::assert_order_does_not_matter(|| Box::new(make(true)), u64::MAX);
        assert_eq!(
            harness::run(&mut make(false), Order::Random(1), u64::MAX),
            tally
        );
    }
}
