//! What BT, LU and SP share: their arrays, and the loops that make the right-hand side and add the update.
//!
//! | array | bytes |
//! |---|---|
//! | `u`, `rhs`, `forcing` | 40 per point |
//! | `rho_i`, `us`, `vs`, `ws`, `square`, `qs` and, in SP, `speed` (LU: only `rho_i`, `qs`) | 8 per point |
//!
//! Loops are shared among threads by planes. The benchmarks' loops for fluxes and for fourth differences along one
//! axis follow each other row by row and find the row in cache; here they are one.

use varve_machine::{Kind, Op, Region};

use super::flow::{Cube, Flow};
use super::setup::Setup;
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{Stage, Work, run};
use varve_spec::Error;

/// Points of a row per step.
pub const BLOCK: usize = 48;

// Instructions. The report (RNR-94-007, table 1) gives 181.3, 102.0 and 64.57 x 10^9 floating-point operations for class A
// of BT, SP and LU: 3458, 973 and 985 per point and iteration. About 400 of them make the right-hand side. One
// instruction per operation: fused and vector operations save about what loads, stores and loops add. They are charged
// to the access that ends the work on a line; the others on the line are charged their load or store.
/// Per line (1.6 points) of deriving: a division, 15 operations, copying the forcing.
const PER_DERIVE_LINE: u32 = 50;
/// Per line of the fluxes and differences along one axis: 125 per point.
const PER_RHS_LINE: u32 = 200;
/// Per line of adding the update.
const PER_ADD_LINE: u32 = 12;
/// Per line that is only read.
pub const PER_READ_LINE: u32 = 3;

/// The arrays in memory.
pub struct Places {
    /// Their shape.
    pub cube: Cube,
    /// The solution.
    pub u: Array,
    /// The right-hand side, then the update.
    pub rhs: Array,
    /// What makes the exact solution steady.
    pub forcing: Array,
    /// What is derived from u: one number per point each.
    pub scalars: Vec<Array>,
    /// All of memory.
    pub regions: Vec<Region>,
}

/// The edge of the cube for a setup.
///
/// # Errors
/// It is out of range.
pub fn edge(workload: &str, setup: &Setup, of_class: u64) -> Result<Cube, Error> {
    let edge = setup.scaled_edge(setup.size.unwrap_or(of_class));
    setup.check_size(workload, edge, 7, 4096)?;
    Ok(Cube::new(edge as usize))
}

/// A part of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The row within its plane.
    pub row: usize,
    /// The plane, an item of a stage.
    pub plane: usize,
    /// First point.
    pub low: usize,
    /// One past the last point.
    pub high: usize,
}

impl Piece {
    /// The piece that `work` is at, and `work` moved on to the next, in a loop over planes of rows of points, all
    /// three from `first` to `last`.
    pub fn next(work: &mut Work, first: usize, last: usize) -> Piece {
        let blocks = (last - first).div_ceil(BLOCK);
        let within = work.within as usize;
        let low = first + within % blocks * BLOCK;
        let piece = Piece {
            row: first + within / blocks,
            plane: first + work.at as usize,
            low,
            high: (low + BLOCK).min(last),
        };
        work.within += 1;
        if work.within as usize == (last - first) * blocks {
            (work.at, work.within) = (work.at + 1, 0);
        }
        piece
    }
}

impl Places {
    /// Arrays for a cube, named after `workload`; `scalars` names those derived.
    pub fn new(layout: &mut Layout, workload: &str, cube: Cube, scalars: &[&str]) -> Places {
        let points = cube.points() as u64;
        let mut array =
            |name: &str, size| layout.array(&format!("{workload}.{name}"), points, size);
        let u = array("u", 40);
        let scalars = scalars.iter().map(|name| array(name, 8)).collect();
        let (forcing, rhs) = (array("forcing", 40), array("rhs", 40));
        Places {
            cube,
            u,
            rhs,
            forcing,
            scalars,
            regions: layout.regions().to_vec(),
        }
    }

    /// First touches in the order of the benchmarks: u is set first, the forcing next, the rest when first computed.
    pub fn first_touch(&self, more: &[Array], setup: &Setup) -> FirstTouch {
        let mut touched = vec![self.u, self.forcing];
        touched.extend(&self.scalars);
        touched.push(self.rhs);
        touched.extend(more);
        FirstTouch::new(
            FirstTouch::ranges(&touched),
            setup.touch,
            By::All,
            setup.threads,
        )
    }

    /// Planes with or without the boundary, shared among threads.
    pub fn planes(&self, inner: bool) -> Stage {
        Stage::parallel(self.cube.n as u64 - if inner { 2 } else { 0 })
    }

    /// One access per line of points `low..high` of the row that starts at point `row`.
    #[inline]
    pub fn row_ops(
        kind: Kind,
        array: Array,
        row: usize,
        low: usize,
        high: usize,
        per_line: u32,
        out: &mut Vec<Op>,
    ) {
        run(
            out,
            kind,
            array.at((row + low) as u64),
            (high - low) as u64 * array.size,
            per_line,
        );
    }

    /// Derives from u, and starts the right-hand side with the forcing.
    pub fn derive(&self, flow: Option<&mut Flow>, work: &mut Work, out: &mut Vec<Op>) {
        let Piece {
            row: j,
            plane: k,
            low,
            high,
        } = Piece::next(work, 0, self.cube.n);
        let row = self.cube.at(0, j, k);
        Self::row_ops(Kind::Read, self.u, row, low, high, PER_READ_LINE, out);
        for &scalar in &self.scalars {
            Self::row_ops(Kind::Write, scalar, row, low, high, PER_READ_LINE, out);
        }
        Self::row_ops(Kind::Read, self.forcing, row, low, high, PER_READ_LINE, out);
        Self::row_ops(Kind::Write, self.rhs, row, low, high, PER_DERIVE_LINE, out);
        if let Some(flow) = flow {
            flow.derive_row(low, high, j, k);
        }
    }

    /// Adds an axis' part to the right-hand side.
    pub fn right_hand_side(
        &self,
        axis: usize,
        flow: Option<&mut Flow>,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let Piece {
            row: j,
            plane: k,
            low,
            high,
        } = Piece::next(work, 1, self.cube.n - 1);
        let (row, n) = (self.cube.at(0, j, k), self.cube.n);
        if axis == 0 {
            let (low, high) = (low.saturating_sub(2), (high + 2).min(n));
            Self::row_ops(Kind::Read, self.u, row, low, high, PER_READ_LINE, out);
            for &scalar in &self.scalars {
                Self::row_ops(Kind::Read, scalar, row, low, high, PER_READ_LINE, out);
            }
        } else {
            let (at, stride) = ([0, j, k][axis], self.cube.stride(axis));
            for offset in 0..5 {
                // Beside the boundary the fourth difference is one-sided.
                if (2..n + 2).contains(&(at + offset)) {
                    let row = row + offset * stride - 2 * stride;
                    Self::row_ops(Kind::Read, self.u, row, low, high, PER_READ_LINE, out);
                }
            }
            for &scalar in &self.scalars {
                for row in [row - stride, row, row + stride] {
                    Self::row_ops(Kind::Read, scalar, row, low, high, PER_READ_LINE, out);
                }
            }
        }
        Self::row_ops(Kind::Update, self.rhs, row, low, high, PER_RHS_LINE, out);
        if let Some(flow) = flow {
            flow.rhs_row(axis, low, high, j, k);
        }
    }

    /// u += factor × rhs
    pub fn add(&self, factor: f64, flow: Option<&mut Flow>, work: &mut Work, out: &mut Vec<Op>) {
        let Piece {
            row: j,
            plane: k,
            low,
            high,
        } = Piece::next(work, 1, self.cube.n - 1);
        let row = self.cube.at(0, j, k);
        Self::row_ops(Kind::Read, self.rhs, row, low, high, PER_READ_LINE, out);
        Self::row_ops(Kind::Update, self.u, row, low, high, PER_ADD_LINE, out);
        if let Some(flow) = flow {
            for at in row + low..row + high {
                for m in 0..5 {
                    flow.u[at][m] += factor * flow.rhs[at][m];
                }
            }
        }
    }
}

/// The answers of all three.
pub fn answers(flow: Option<&Flow>) -> Vec<(String, String)> {
    let Some(flow) = flow else {
        return Vec::new();
    };
    vec![
        (
            "distance from the exact solution".into(),
            format!("{:.9e}", flow.error()),
        ),
        (
            "norm of the last update".into(),
            format!("{:.9e}", flow.rhs_norm()),
        ),
    ]
}
