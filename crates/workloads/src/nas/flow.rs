//! The model problem of BT, LU and SP: five coupled quantities carried and spread in a box, marched in time to a
//! known steady state.
//!
//! The benchmarks solve the compressible Navier-Stokes equations; here the equations are simpler, the arrays, their
//! shapes and the sweeps over them are those of the benchmarks. With u = (u0..u4) and the velocities w_d = u_{d+1} / u0,
//!
//! R(u) = forcing - sum over d of [ (F_d(+) - F_d(-)) / 2h - nu (u(+) - 2 u + u(-)) / h^2 + eps D4_d u ],
//!
//! F_d = M_d u + b (square - qs) e_{d+1}, M_d = H_d diag(w, w, w, w + s, w - s) H_d,
//!
//! with w = w_d and s = `SOUND` / u0, H_d a constant reflection (so that M_d couples all five), D4 the fourth difference with the
//! benchmarks' formulas beside the boundary. The forcing is such that R vanishes at a given smooth field: the answer.

use super::block::{Matrix, Vector};
use super::lcg::Lcg;

/// Diffusion constant.
const NU: f64 = 0.1;
/// Coefficient of the fourth differences.
pub const EPS: f64 = 0.1;
/// Coefficient of the coupling of the momenta.
const COUPLING: f64 = 0.1;
/// Speed of sound times density.
const SOUND: f64 = 0.5;
/// Relative noise of the start.
const NOISE: f64 = 0.05;
/// Level around which the exact solution varies.
const BASE: Vector = [1.2, 0.3, 0.2, 0.25, 1.5];

/// Shape of a cube of `n` points along each edge, boundary included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cube {
    /// Points along an edge.
    pub n: usize,
    /// Points from one row to the next: `n`, made odd as in the benchmarks.
    pub row: usize,
}

impl Cube {
    /// A cube with edges of `n` points.
    pub fn new(n: usize) -> Cube {
        Cube {
            n,
            row: n / 2 * 2 + 1,
        }
    }

    /// Number of points, padding included.
    pub fn points(self) -> usize {
        self.n * self.n * self.row
    }

    /// Index of a point.
    #[inline(always)]
    pub fn at(self, i: usize, j: usize, k: usize) -> usize {
        (k * self.n + j) * self.row + i
    }

    /// From one point to the next along an axis.
    #[inline(always)]
    pub fn stride(self, axis: usize) -> usize {
        [1, self.row, self.row * self.n][axis]
    }

    /// Distance of points.
    pub fn h(self) -> f64 {
        1.0 / (self.n - 1) as f64
    }

    /// Inner points.
    pub fn inner(self) -> impl Iterator<Item = (usize, usize, usize)> {
        let range = 1..self.n - 1;
        range.clone().flat_map(move |k| {
            let range = range.clone();
            range
                .clone()
                .flat_map(move |j| range.clone().map(move |i| (i, j, k)))
        })
    }
}

/// What is derived from u at a point.
#[derive(Clone, Copy, Debug, Default)]
pub struct Derived {
    /// 1 / u0
    pub rho_i: f64,
    /// The velocities along the axes.
    pub w: [f64; 3],
    /// Kinetic energy.
    pub square: f64,
    /// Kinetic energy over u0.
    pub qs: f64,
}

/// The fields, real data.
pub struct Flow {
    /// Their shape.
    pub cube: Cube,
    /// Step in time.
    pub dt: f64,
    /// The solution.
    pub u: Vec<Vector>,
    /// The right-hand side, then the update.
    pub rhs: Vec<Vector>,
    forcing: Vec<Vector>,
    derived: Vec<Derived>,
}

/// Host memory per point, in bytes.
pub const HOST_BYTES_PER_POINT: u64 = 3 * 40 + 48;

/// The exact solution at a point of the unit cube.
fn exact(x: f64, y: f64, z: f64) -> Vector {
    std::array::from_fn(|m| {
        let a = (m + 1) as f64;
        BASE[m] + 0.1 * (0.3 * a * x - 0.4 * y * y + 0.2 * a * z * z * z + 0.5 * x * y * z)
    })
}

/// The unit vector that the reflection of an axis mirrors.
fn mirror(axis: usize) -> Vector {
    [
        [0.5, 0.5, 0.5, 0.5, 0.0],
        [0.0, 0.5, -0.5, 0.5, 0.5],
        [0.5, 0.0, 0.5, -0.5, 0.5],
    ][axis]
}

/// H_d x, its own inverse.
#[inline]
pub fn reflect(axis: usize, x: &Vector) -> Vector {
    let v = mirror(axis);
    let dot: f64 = (0..5).map(|m| v[m] * x[m]).sum();
    std::array::from_fn(|m| x[m] - 2.0 * dot * v[m])
}

impl Derived {
    /// The speeds at which the reflected components are carried along an axis.
    #[inline]
    pub fn speeds(&self, axis: usize) -> Vector {
        let (w, s) = (self.w[axis], SOUND * self.rho_i);
        [w, w, w, w + s, w - s]
    }

    /// M_d as a matrix.
    #[inline]
    pub fn carry(&self, axis: usize) -> Matrix {
        // H diag(s) H with H = 1 - 2 v v' is diag(s) - 2 (v p' + p v') + 4 (v'p) v v', p = diag(s) v.
        let (v, speeds) = (mirror(axis), self.speeds(axis));
        let p: Vector = std::array::from_fn(|i| speeds[i] * v[i]);
        let dot: f64 = (0..5).map(|i| v[i] * p[i]).sum();
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                let diagonal = if i == j { speeds[i] } else { 0.0 };
                diagonal - 2.0 * (v[i] * p[j] + p[i] * v[j]) + 4.0 * dot * v[i] * v[j]
            })
        })
    }
}

impl Flow {
    /// The problem on a cube: the forcing of the exact solution, that solution at the boundary, a constant with some
    /// noise inside.
    pub fn new(cube: Cube, mut generator: Lcg) -> Flow {
        let points = cube.points();
        let zero = vec![[0.0; 5]; points];
        let mut flow = Flow {
            cube,
            dt: cube.h(),
            u: zero.clone(),
            rhs: zero.clone(),
            forcing: zero,
            derived: vec![Derived::default(); points],
        };
        let n = cube.n;
        for k in 0..n {
            for j in 0..n {
                for i in 0..n {
                    flow.u[cube.at(i, j, k)] = flow.exact_at(i, j, k);
                }
            }
        }
        flow.dt = 1.0;
        flow.whole_rhs();
        flow.dt = cube.h();
        for (i, j, k) in cube.inner() {
            let at = cube.at(i, j, k);
            flow.forcing[at] = flow.rhs[at].map(|r| -r);
            flow.u[at] = BASE.map(|base| base * (1.0 + NOISE * (2.0 * generator.unit() - 1.0)));
        }
        flow
    }

    fn exact_at(&self, i: usize, j: usize, k: usize) -> Vector {
        let h = self.cube.h();
        exact(i as f64 * h, j as f64 * h, k as f64 * h)
    }

    /// Derives from u at points `low..high` of a row.
    pub fn derive_row(&mut self, low: usize, high: usize, j: usize, k: usize) {
        for i in low..high {
            let at = self.cube.at(i, j, k);
            let u = &self.u[at];
            let rho_i = 1.0 / u[0];
            let w = [u[1] * rho_i, u[2] * rho_i, u[3] * rho_i];
            let square = 0.5 * (u[1] * w[0] + u[2] * w[1] + u[3] * w[2]);
            self.derived[at] = Derived {
                rho_i,
                w,
                square,
                qs: square * rho_i,
            };
            self.rhs[at] = self.forcing[at];
        }
    }

    /// What is derived at a point.
    #[inline(always)]
    pub fn derived(&self, at: usize) -> &Derived {
        &self.derived[at]
    }

    fn flux(&self, axis: usize, at: usize) -> Vector {
        let derived = &self.derived[at];
        let mut x = reflect(axis, &self.u[at]);
        for (x, speed) in x.iter_mut().zip(derived.speeds(axis)) {
            *x *= speed;
        }
        let mut flux = reflect(axis, &x);
        flux[axis + 1] += COUPLING * (derived.square - derived.qs);
        flux
    }

    /// Adds an axis' part of the right-hand side at inner points `low..high` of a row; after the last axis, times
    /// the step in time.
    pub fn rhs_row(&mut self, axis: usize, low: usize, high: usize, j: usize, k: usize) {
        let (cube, h) = (self.cube, self.cube.h());
        let stride = cube.stride(axis);
        for i in low..high {
            let at = cube.at(i, j, k);
            let (before, after) = (self.flux(axis, at - stride), self.flux(axis, at + stride));
            let weights = fourth([i, j, k][axis], cube.n);
            for m in 0..5 {
                let u = |offset: usize| self.u[at + offset * stride - 2 * stride][m];
                let mut sum = -(after[m] - before[m]) / (2.0 * h);
                sum += NU * (u(3) - 2.0 * u(2) + u(1)) / (h * h);
                for (offset, weight) in weights.into_iter().enumerate() {
                    if weight != 0.0 {
                        sum -= EPS * weight * u(offset);
                    }
                }
                self.rhs[at][m] += sum;
                if axis == 2 {
                    self.rhs[at][m] *= self.dt;
                }
            }
        }
    }

    /// The right-hand side at every inner point, from u as it is.
    pub fn whole_rhs(&mut self) {
        let n = self.cube.n;
        for k in 0..n {
            for j in 0..n {
                self.derive_row(0, n, j, k);
            }
        }
        for axis in 0..3 {
            for k in 1..n - 1 {
                for j in 1..n - 1 {
                    self.rhs_row(axis, 1, n - 1, j, k);
                }
            }
        }
    }

    /// Half a central difference and the diffusion, per step in time: what stands beside the diagonal of the implicit
    /// operator of an axis, and what diffusion adds to the diagonal.
    pub fn implicit(&self) -> (f64, f64) {
        let h = self.cube.h();
        (self.dt / (2.0 * h), self.dt * NU / (h * h))
    }

    /// Root mean square over inner points and components of the distance from the exact solution.
    pub fn error(&self) -> f64 {
        self.mean(|flow, (i, j, k)| {
            let (u, exact) = (flow.u[flow.cube.at(i, j, k)], flow.exact_at(i, j, k));
            (0..5).map(|m| (u[m] - exact[m]).powi(2)).sum()
        })
    }

    /// Root mean square over inner points and components of the right-hand side or update.
    pub fn rhs_norm(&self) -> f64 {
        self.mean(|flow, (i, j, k)| flow.rhs[flow.cube.at(i, j, k)].iter().map(|r| r * r).sum())
    }

    fn mean(&self, square: impl Fn(&Flow, (usize, usize, usize)) -> f64) -> f64 {
        let sum: f64 = self.cube.inner().map(|point| square(self, point)).sum();
        (sum / (5 * (self.cube.n - 2).pow(3)) as f64).sqrt()
    }
}

/// Weights of the fourth difference at offsets -2..=2 of the point with coordinate `c`: one-sided beside the boundary.
pub fn fourth(c: usize, n: usize) -> [f64; 5] {
    if c == 1 {
        [0.0, 0.0, 5.0, -4.0, 1.0]
    } else if c == 2 {
        [0.0, -4.0, 6.0, -4.0, 1.0]
    } else if c == n - 3 {
        [1.0, -4.0, 6.0, -4.0, 0.0]
    } else if c == n - 2 {
        [1.0, -4.0, 5.0, 0.0, 0.0]
    } else {
        [1.0, -4.0, 6.0, -4.0, 1.0]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::block::apply;
    use super::super::lcg::SEED;
    use super::*;

    /// One axis' factor of the implicit operator, applied to `x` as it is defined, point by point.
    pub fn apply_factor(flow: &Flow, axis: usize, fourth_too: bool, x: &[Vector]) -> Vec<Vector> {
        let (cube, h) = (flow.cube, flow.cube.h());
        let stride = cube.stride(axis);
        let mut result = vec![[0.0; 5]; x.len()];
        for (i, j, k) in cube.inner() {
            let at = cube.at(i, j, k);
            let carried = |at: usize| apply(&flow.derived(at).carry(axis), &x[at]);
            let (before, after) = (carried(at - stride), carried(at + stride));
            let weights = super::fourth([i, j, k][axis], cube.n);
            for m in 0..5 {
                let second = x[at + stride][m] - 2.0 * x[at][m] + x[at - stride][m];
                let mut sum = (after[m] - before[m]) / (2.0 * h) - NU * second / (h * h);
                for (offset, weight) in weights.into_iter().enumerate() {
                    if fourth_too && weight != 0.0 {
                        sum += EPS * weight * x[at + offset * stride - 2 * stride][m];
                    }
                }
                result[at][m] = x[at][m] + flow.dt * sum;
            }
        }
        result
    }

    #[test]
    fn the_exact_solution_is_steady() {
        let mut flow = Flow::new(Cube::new(9), Lcg(SEED));
        let cube = flow.cube;
        assert!(flow.error() > 0.01);
        for (i, j, k) in cube.inner() {
            flow.u[cube.at(i, j, k)] = flow.exact_at(i, j, k);
        }
        flow.whole_rhs();
        assert!(flow.rhs_norm() < 1e-14, "{}", flow.rhs_norm());
    }

    #[test]
    fn the_carrying_matrix_is_reflected_speeds() {
        let derived = Derived {
            rho_i: 0.8,
            w: [0.3, -0.2, 0.7],
            square: 1.0,
            qs: 0.8,
        };
        let x = [1.0, -2.0, 3.0, 0.5, 4.0];
        for axis in 0..3 {
            let mut want = reflect(axis, &x);
            want.iter_mut()
                .zip(derived.speeds(axis))
                .for_each(|(x, speed)| *x *= speed);
            let (want, ours) = (reflect(axis, &want), apply(&derived.carry(axis), &x));
            assert!((0..5).all(|m| (ours[m] - want[m]).abs() < 1e-14), "{axis}");
        }
    }

    #[test]
    fn reflections_undo_themselves() {
        let x = [1.0, -2.0, 3.0, 0.5, 4.0];
        for axis in 0..3 {
            let back = reflect(axis, &reflect(axis, &x));
            assert!((0..5).all(|m| (back[m] - x[m]).abs() < 1e-14));
        }
    }
}
