//! EP: pairs of normal deviates by Marsaglia's polar method (NAS report RNR-94-007, section 2.2).
//!
//! Batches of 2^16 pairs: a thread fills its `ep.numbers` (2^17 doubles, 1 MiB) with uniform numbers, then reads
//! them in pairs. That is all the memory there is; the rest is arithmetic. The ten counters and the two sums of a
//! thread live in registers and its first cache, and are left to the instruction counts.
//!
//! Instructions per uniform number 12 (46-bit product in double precision by halves, as the benchmark's `vranlc`
//! does); per pair 10 for the test, and for the 79 % within the circle another 60 for logarithm, square root, division
//! and sums.
//!
//! The host computes each pair once, as the modelled thread reads it; that costs more time than producing accesses.

use varve_access::{Kind, Op, Region};

use super::lcg::Lcg;
use super::setup::{Class, NasSetup};
use crate::init::{By, FirstTouch};
use crate::layout::{Array, Layout};
use crate::loops::{LINE, Loops, Stage, StagedKernel, Work};
use varve_spec::Error;

/// Pairs in a batch (the benchmark's MK = 16).
const BATCH: u64 = 1 << 16;
/// Seed of this kernel.
const SEED: u64 = 271_828_183;
/// Doubles per line.
const PER_LINE: u64 = LINE / 8;
/// Lines per step.
const STEP: u64 = 64;
/// Instructions per line of eight new numbers.
const PER_FILL: u32 = 8 * 12;
/// Instructions per line of four pairs.
const PER_PAIRS: u32 = 4 * (10 + 47);

/// Base-2 logarithm of the number of pairs: problem sizes of NPB 3.4.
fn log_pairs(class: Class) -> u32 {
    match class {
        Class::S => 24,
        Class::W => 25,
        Class::A => 28,
        Class::B => 30,
        Class::C => 32,
        Class::D => 36,
        Class::E => 40,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    x: f64,
    y: f64,
    rings: [u64; 10],
}

/// The kernel, for [`Loops`].
pub struct Ep {
    batches: u64,
    begun: bool,
    regions: Vec<Region>,
    numbers: Array,
    real: bool,
    sums: Vec<Sums>,
    start: Lcg,
    generators: Vec<Lcg>,
}

/// Makes the program.
///
/// # Errors
/// A size out of range.
pub fn program(setup: &NasSetup) -> Result<Loops<Ep>, Error> {
    let pairs = setup.size.unwrap_or(1 << log_pairs(setup.class)) / setup.scale;
    setup.check_size("ep", pairs, BATCH, 1 << 40)?;
    let mut layout = Layout::new();
    let threads = setup.threads as u64;
    let numbers = layout.array("ep.numbers", threads * 2 * BATCH, 8);
    let init = FirstTouch::new(
        FirstTouch::ranges(&[numbers]),
        setup.touch,
        By::All,
        setup.threads,
    );
    let kernel = Ep {
        batches: pairs / BATCH,
        begun: false,
        regions: layout.regions().to_vec(),
        numbers,
        real: setup.real("ep", 0)?,
        sums: vec![Sums::default(); setup.threads],
        start: setup.generator(SEED),
        generators: vec![Lcg(SEED); setup.threads],
    };
    Ok(Loops::new(kernel, Some(init), setup.threads))
}

impl Ep {
    /// Sums of the deviates' two coordinates.
    pub fn sums(&self) -> (f64, f64) {
        // Threads in order: the result depends on their number, not on their timing.
        self.sums
            .iter()
            .fold((0.0, 0.0), |(x, y), sums| (x + sums.x, y + sums.y))
    }

    /// How many deviates have their larger coordinate in `l..l + 1`.
    pub fn rings(&self) -> [u64; 10] {
        let mut rings = [0; 10];
        for sums in &self.sums {
            for (ring, count) in rings.iter_mut().zip(sums.rings) {
                *ring += count;
            }
        }
        rings
    }
}

fn add_pairs(generator: &mut Lcg, sums: &mut Sums, pairs: u64) {
    for _ in 0..pairs {
        let x = 2.0 * generator.unit() - 1.0;
        let y = 2.0 * generator.unit() - 1.0;
        let square = x * x + y * y;
        if square <= 1.0 {
            let factor = (-2.0 * square.ln() / square).sqrt();
            let (x, y) = (x * factor, y * factor);
            sums.rings[x.abs().max(y.abs()) as usize % 10] += 1;
            sums.x += x;
            sums.y += y;
        }
    }
}

impl StagedKernel for Ep {
    fn name(&self) -> String {
        "ep".into()
    }

    fn regions(&self) -> Vec<Region> {
        self.regions.clone()
    }

    fn next_stage(&mut self) -> Option<Stage> {
        if std::mem::replace(&mut self.begun, true) {
            return None;
        }
        Some(Stage::parallel(self.batches).starts_iteration())
    }

    fn step(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let lines = 2 * BATCH / PER_LINE;
        let (fill, line) = (work.within < lines, work.within % lines);
        let base = self.numbers.at(thread as u64 * 2 * BATCH) + line * LINE;
        let (kind, instructions) = if fill {
            (Kind::Write, PER_FILL)
        } else {
            (Kind::Read, PER_PAIRS)
        };
        crate::loops::run(out, kind, base, STEP * LINE, instructions);
        if !fill && self.real {
            if line == 0 {
                self.generators[thread] = self.start.skip(work.at * 2 * BATCH);
            }
            add_pairs(
                &mut self.generators[thread],
                &mut self.sums[thread],
                STEP * PER_LINE / 2,
            );
        }
        work.within += STEP;
        if work.within == 2 * lines {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    fn answers(&self) -> Vec<(String, String)> {
        if !self.real {
            return Vec::new();
        }
        let (x, y) = self.sums();
        vec![
            ("sum of x".into(), format!("{x:.9e}")),
            ("sum of y".into(), format!("{y:.9e}")),
            (
                "gaussian pairs".into(),
                self.rings().iter().sum::<u64>().to_string(),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, CallOrder};
    use crate::loops::drain;

    #[test]
    fn class_s_sums_are_the_published_ones() {
        let mut ep = program(&NasSetup::tiny(Class::S, 0, 0, 3, true)).unwrap();
        drain(&mut ep);
        let (x, y) = ep.kernel.sums();
        // NPB verification values of class S.
        assert!((x / -3.247_834_652_034_74e3 - 1.0).abs() < 1e-8, "{x}");
        assert!((y / -6.958_407_078_382_297e3 - 1.0).abs() < 1e-8, "{y}");
        let gaussian: u64 = ep.kernel.rings().iter().sum();
        let share = gaussian as f64 / f64::from(1 << 24);
        assert!(
            (share - std::f64::consts::FRAC_PI_4).abs() < 1e-3,
            "{share}"
        );
    }

    #[test]
    fn the_same_accesses_without_data() {
        let tally = |real| {
            let mut ep = program(&NasSetup::tiny(Class::S, 1 << 18, 0, 3, real)).unwrap();
            harness::run(&mut ep, CallOrder::Random(1), u64::MAX)
        };
        assert_eq!(tally(true), tally(false));
    }
}
