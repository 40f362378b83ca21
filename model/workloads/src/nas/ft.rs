//! FT: a diffusion equation solved in frequency space, by three-dimensional fast Fourier transforms
//! (NAS report RNR-94-007, section 2.4.4).
//!
//! | array | bytes | accessed, per iteration |
//! |---|---|---|
//! | `ft.u0` | 16 (nx + 1) ny nz | multiplied by `ft.twiddle`, in runs |
//! | `ft.u1` | 16 (nx + 1) ny nz | written, then read and written along each axis in turn |
//! | `ft.twiddle` | 8 (nx + 1) ny nz | read in runs |
//! | `ft.work` | 256 × longest edge × threads | 16 pencils on their way through a transform |
//!
//! Rows are padded by one element as in the benchmark. A transform copies 16 pencils at a time (256 contiguous bytes
//! at a stride of a row or a plane along y and z) into the thread's work array, transforms them and copies them back.
//! The passes over the work array in between (twice its size, at most 1 MiB, each of log2(length) times) stay in the
//! thread's second cache, and are left to the instruction count: a butterfly takes 10 operations and 8 loads and
//! stores, four pencils at a time in vectors, so 4.5 per pencil.

use varve_access::{Kind, Op, Region};

use super::fft::{Complex, Fft, times};
use super::lcg::{Lcg, SEED};
use super::setup::{Class, NasSetup, refuse};
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{Loops, Stage, StagedKernel, Work, run};
use varve_spec::Error;

/// Pencils transformed at once.
const PENCILS: usize = 16;
/// Rows of 16 elements (256 bytes) that are copied per step.
const ROWS: usize = 32;
/// Elements of a row per step of a multiplication.
const BLOCK: usize = 256;
/// Per line of a copy: two 32-byte loads or stores, and a share of the loop.
const PER_COPY_LINE: u32 = 4;
/// Per line of four complex numbers and pass of a transform: two butterflies' 4.5 instructions.
const PER_PASS_LINE: u32 = 9;
/// Per line of the multiplication: loads, products, stores of four complex numbers.
const PER_EVOLVE_LINE: u32 = 6;
/// Per element of the checksum: three remainders, an index, two sums.
const PER_CHECK: u32 = 30;
/// Elements that a checksum adds.
const CHECKED: u64 = 1024;
/// Diffusion constant.
const ALPHA: f64 = 1e-6;

/// Sizes of NPB 3.4: points along x, y, z, iterations.
fn sizes(class: Class) -> ([u64; 3], u64) {
    match class {
        Class::S => ([64, 64, 64], 6),
        Class::W => ([128, 128, 32], 6),
        Class::A => ([256, 256, 128], 6),
        Class::B => ([512, 256, 256], 20),
        Class::C => ([512, 512, 512], 20),
        Class::D => ([2048, 1024, 1024], 25),
        Class::E => ([4096, 2048, 2048], 25),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    /// Forward transform along an axis.
    Forward(usize),
    Evolve,
    /// Inverse transform along an axis.
    Inverse(usize),
    Check,
}

/// The kernel, for [`Loops`].
pub struct Ft {
    n: [usize; 3],
    iterations: u64,
    iteration: u64,
    at: At,
    regions: Vec<Region>,
    u0: Array,
    u1: Array,
    twiddle: Array,
    work_array: Array,
    longest: usize,
    data: Option<Data>,
    /// Per thread, its part of the checksum.
    partial: Vec<Complex>,
    checksums: Vec<Complex>,
}

struct Data {
    u0: Vec<Complex>,
    u1: Vec<Complex>,
    twiddle: Vec<f64>,
    fft: Fft,
    pencil: Vec<Complex>,
    scratch: Vec<Complex>,
}

/// Makes the program.
///
/// # Errors
/// Edges that are no powers of two or out of range, or data that do not fit.
pub fn program(setup: &NasSetup) -> Result<Loops<Ft>, Error> {
    let (edges, iterations) = sizes(setup.class);
    let edges = setup.size.map_or(edges, |edge| [edge; 3]);
    let edges = setup.scaled_powers(edges, PENCILS as u64);
    for edge in edges {
        setup.check_size("ft", edge, PENCILS as u64, 1 << 13)?;
        if !edge.is_power_of_two() {
            return Err(refuse("ft", "size", edge, "must be a power of two"));
        }
    }
    let points = (edges[0] + 1) * edges[1] * edges[2];
    let longest = edges.into_iter().max().unwrap_or(1);
    let mut layout = Layout::new();
    let u0 = layout.array("ft.u0", points, 16);
    let u1 = layout.array("ft.u1", points, 16);
    let twiddle = layout.array("ft.twiddle", points, 8);
    let room = setup.threads as u64 * longest * PENCILS as u64;
    let work_array = layout.array("ft.work", room, 16);
    let touched = FirstTouch::ranges(&[u0, u1, twiddle, work_array]);
    let init = FirstTouch::new(touched, setup.touch, By::All, setup.threads);
    let n = edges.map(|edge| edge as usize);
    let real = setup.real("ft", 40 * points)?;
    let kernel = Ft {
        n,
        iterations: setup.iterations.unwrap_or(iterations),
        iteration: 0,
        at: At::Start,
        regions: layout.regions().to_vec(),
        u0,
        u1,
        twiddle,
        work_array,
        longest: longest as usize,
        data: real.then(|| Data::new(n, setup.generator(SEED))),
        partial: vec![[0.0; 2]; setup.threads],
        checksums: Vec::new(),
    };
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

/// Index of the first element of a row.
fn row(n: [usize; 3], j: usize, k: usize) -> usize {
    (k * n[1] + j) * (n[0] + 1)
}

impl Data {
    fn new(n: [usize; 3], mut generator: Lcg) -> Data {
        let points = (n[0] + 1) * n[1] * n[2];
        let longest = n.into_iter().max().unwrap_or(1);

        let mut data = Data {
            u0: vec![[0.0; 2]; points],
            u1: vec![[0.0; 2]; points],
            twiddle: vec![0.0; points],
            fft: Fft::new(longest),
            pencil: vec![[0.0; 2]; longest],
            scratch: vec![[0.0; 2]; longest],
        };
        // Frequencies run from -n/2 to n/2 - 1.
        let square = |i: usize, n: usize| {
            let i = if i < n / 2 {
                i as f64
            } else {
                i as f64 - n as f64
            };
            i * i
        };
        let factor = -4.0 * ALPHA * std::f64::consts::PI * std::f64::consts::PI;
        for k in 0..n[2] {
            for j in 0..n[1] {
                for i in 0..n[0] {
                    let at = row(n, j, k) + i;
                    data.u1[at] = [generator.unit(), generator.unit()];
                    data.twiddle[at] =
                        (factor * (square(i, n[0]) + square(j, n[1]) + square(k, n[2]))).exp();
                }
            }
        }
        data
    }

    /// Transforms the pencils of a block along `axis`, from `u1` to `u1` or, along z forward, to `u0`.
    fn transform(&mut self, n: [usize; 3], axis: usize, sign: f64, outer: usize, first: usize) {
        let length = n[axis];
        for pencil in first..first + PENCILS {
            let (start, stride) = match axis {
                0 => (row(n, pencil, outer), 1),
                1 => (row(n, 0, outer) + pencil, row(n, 1, 0)),
                _ => (row(n, outer, 0) + pencil, row(n, 0, 1)),
            };
            for (i, value) in self.pencil[..length].iter_mut().enumerate() {
                *value = self.u1[start + i * stride];
            }
            self.fft.transform(
                sign,
                &mut self.pencil[..length],
                &mut self.scratch[..length],
            );
            let target = if axis == 2 && sign > 0.0 {
                &mut self.u0
            } else {
                &mut self.u1
            };
            for (i, &value) in self.pencil[..length].iter().enumerate() {
                target[start + i * stride] = value;
            }
        }
    }
}

impl Ft {
    /// The checksum of each iteration.
    pub fn checksums(&self) -> &[Complex] {
        &self.checksums
    }

    /// Planes that the loop over an axis' pencils is shared by: along z those of constant y, else of constant z.
    fn transform_stage(&self, axis: usize) -> Stage {
        Stage::parallel(if axis == 2 { self.n[1] } else { self.n[2] } as u64)
    }

    /// A step of a block of pencils: copies 32 rows of 256 bytes in, or, the transform done, out.
    fn transform(
        &mut self,
        axis: usize,
        sign: f64,
        thread: usize,
        work: &mut Work,
        out: &mut Vec<Op>,
    ) {
        let length = self.n[axis];
        let steps = length.div_ceil(ROWS);
        let blocks = self.n[if axis == 0 { 1 } else { 0 }] / PENCILS;
        let (block, step) = (
            work.within as usize / (2 * steps),
            work.within as usize % (2 * steps),
        );
        let (outer, first) = (work.at as usize, block * PENCILS);
        let copy_in = step < steps;
        let source = if !copy_in && axis == 2 && sign > 0.0 {
            self.u0
        } else {
            self.u1
        };
        let (here, there, instructions) = if copy_in {
            (Kind::Read, Kind::Write, PER_COPY_LINE)
        } else {
            (
                Kind::Write,
                Kind::Read,
                PER_COPY_LINE + PER_PASS_LINE * length.ilog2(),
            )
        };
        let room = self.work_array.at((thread * self.longest * PENCILS) as u64);
        let low = step % steps * ROWS;
        let high = (low + ROWS).min(length);
        for i in low..high {
            // Along x a row of 16 is a piece of one pencil, else one element of each.
            let at = match axis {
                0 => {
                    row(self.n, first + i / (length / PENCILS), outer)
                        + i % (length / PENCILS) * PENCILS
                }
                1 => row(self.n, i, outer) + first,
                _ => row(self.n, outer, i) + first,
            };
            let (source, room) = (source.at(at as u64), room + (i * PENCILS * 16) as u64);
            let bytes = (PENCILS * 16) as u64;
            if copy_in {
                run(out, here, source, bytes, instructions);
                run(out, there, room, bytes, PER_COPY_LINE);
            } else {
                run(out, there, room, bytes, PER_COPY_LINE);
                run(out, here, source, bytes, instructions);
            }
        }
        if step == steps
            && let Some(data) = &mut self.data
        {
            data.transform(self.n, axis, sign, outer, first);
        }
        work.within += 1;
        if work.within as usize == blocks * 2 * steps {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    /// u1 = u0 = u0 × twiddle, a block of a row.
    fn evolve(&mut self, work: &mut Work, out: &mut Vec<Op>) {
        let blocks = self.n[0].div_ceil(BLOCK);
        let (j, block) = (work.within as usize / blocks, work.within as usize % blocks);
        let start = row(self.n, j, work.at as usize);
        let (low, high) = (
            start + block * BLOCK,
            start + ((block + 1) * BLOCK).min(self.n[0]),
        );
        let count = (high - low) as u64;
        run(
            out,
            Kind::Update,
            self.u0.at(low as u64),
            16 * count,
            PER_EVOLVE_LINE,
        );
        run(
            out,
            Kind::Read,
            self.twiddle.at(low as u64),
            8 * count,
            PER_EVOLVE_LINE,
        );
        run(
            out,
            Kind::Write,
            self.u1.at(low as u64),
            16 * count,
            PER_EVOLVE_LINE,
        );
        if let Some(data) = &mut self.data {
            for at in low..high {
                let factor = data.twiddle[at];
                data.u0[at] = times(data.u0[at], [factor, 0.0]);
                data.u1[at] = data.u0[at];
            }
        }
        work.within += 1;
        if work.within as usize == blocks * self.n[1] {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    fn check(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let j = work.at as usize + 1;
        let at = row(self.n, 3 * j % self.n[1], 5 * j % self.n[2]) + j % self.n[0];
        out.push(Op::read(self.u1.at(at as u64), 16, PER_CHECK));
        if let Some(data) = &self.data {
            let sum = &mut self.partial[thread];
            *sum = [sum[0] + data.u1[at][0], sum[1] + data.u1[at][1]];
        }
        work.at += 1;
    }

    fn end_iteration(&mut self) {
        let points = (self.n[0] * self.n[1] * self.n[2]) as f64;
        let mut sum = [0.0; 2];
        for part in &mut self.partial {
            sum = [sum[0] + part[0], sum[1] + part[1]];
            *part = [0.0; 2];
        }
        self.checksums.push([sum[0] / points, sum[1] / points]);
    }
}

impl StagedKernel for Ft {
    fn name(&self) -> String {
        "ft".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        if self.at == At::Check {
            self.end_iteration();
        }
        self.at = match self.at {
            At::Start => At::Forward(0),
            At::Forward(axis) if axis < 2 => At::Forward(axis + 1),
            At::Forward(_) | At::Check => At::Evolve,
            At::Evolve => At::Inverse(2),
            At::Inverse(0) => At::Check,
            At::Inverse(axis) => At::Inverse(axis - 1),
        };
        match self.at {
            At::Forward(axis) | At::Inverse(axis) => Some(self.transform_stage(axis)),
            At::Evolve if self.iteration == self.iterations => None,
            At::Evolve => {
                self.iteration += 1;
                Some(Stage::parallel(self.n[2] as u64).starts_iteration())
            }
            At::Start | At::Check => Some(Stage::parallel(CHECKED)),
        }
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        match self.at {
            At::Forward(axis) => self.transform(axis, 1.0, thread, work, out),
            At::Inverse(axis) => self.transform(axis, -1.0, thread, work, out),
            At::Evolve => self.evolve(work, out),
            At::Start | At::Check => self.check(thread, work, out),
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        if self.data.is_none() {
            return Vec::new();
        }
        let say = |(i, sum): (usize, &Complex)| {
            (
                format!("checksum {}", i + 1),
                format!("{:.9e} {:.9e}", sum[0], sum[1]),
            )
        };
        self.checksums.iter().enumerate().map(say).collect()
    }
}

#[cfg(test)]
mod tests;
