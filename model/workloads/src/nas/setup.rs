//! Shared by the NAS-like kernels: classes, sizes, and whether there is real data behind the addresses.

use super::lcg::Lcg;
use varve_spec::{Error, Param, Values, Want};

/// A problem class of the NAS parallel benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Sample: for tests.
    S,
    /// Workstation.
    W,
    /// The smallest of the original problems.
    A,
    /// About four times A.
    B,
    /// About four times B.
    C,
    /// About sixteen times C.
    D,
    /// About sixteen times D.
    E,
}

const CLASSES: &[&str] = &["S", "W", "A", "B", "C", "D", "E"];

/// Parameters of every kernel.
pub const PARAMS: &[Param] = &[
    Param::new(
        "class",
        Want::Word(CLASSES),
        "A",
        "problem class, which sets sizes and iterations",
    ),
    Param::new(
        "seed",
        Want::COUNT,
        "1",
        "seed of every random choice; 1: the benchmark's own numbers",
    ),
    Param::new(
        "size",
        Want::COUNT,
        "0",
        "another size than the class's: points along an edge of the grid (ft, mg), rows (cg), keys (is), pairs (ep); 0: the class's",
    ),
    Param::new(
        "iterations",
        Want::COUNT,
        "0",
        "iterations of the outer loop; 0: the class's",
    ),
    Param::new(
        "data",
        Want::Word(&["auto", "real", "addresses"]),
        "auto",
        "real: compute on real data; addresses: the same accesses without data; auto: real up to 2 GiB of host memory",
    ),
];

/// Host memory up to which `data=auto` computes for real.
const AUTO_BYTES: u64 = 2 << 30;
/// Host memory up to which `data=real` is accepted.
const MOST_BYTES: u64 = 12 << 30;

/// The checked parameters of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct NasSetup {
    /// Problem class.
    pub class: Class,
    /// Size that replaces the class's.
    pub size: Option<u64>,
    /// Iterations that replace the class's.
    pub iterations: Option<u64>,
    /// Seed; 1 gives the benchmark's own random numbers.
    pub seed: u64,
    /// Divisor of the footprint.
    pub scale: u64,
    /// Bytes between two first touches.
    pub touch: u64,
    /// Threads.
    pub threads: usize,
    /// `auto`, `real` or `addresses`.
    pub data: &'static str,
}

/// The error that a value breaks a rule.
pub fn refuse(
    workload: &str,
    key: &str,
    value: impl std::fmt::Display,
    rule: impl Into<String>,
) -> Error {
    Error::rule("workload", workload, key, value, rule)
}

impl NasSetup {
    /// Reads the common parameters.
    ///
    /// # Errors
    /// A value out of range.
    pub fn new(values: &Values) -> Result<NasSetup, Error> {
        let class = match values.word("class") {
            "S" => Class::S,
            "W" => Class::W,
            "A" => Class::A,
            "B" => Class::B,
            "C" => Class::C,
            "D" => Class::D,
            _ => Class::E,
        };
        let given = |key| Some(values.count(key)).filter(|&count| count > 0);
        Ok(NasSetup {
            class,
            size: given("size"),
            iterations: given("iterations"),
            seed: values.count("seed"),
            scale: values.scale(),
            touch: values.count_in("touch", 64, u64::MAX)?,
            threads: values.count("threads") as usize,
            data: values.word("data"),
        })
    }

    /// A setup for tests: one thread's worth of defaults at an explicit size, real data or not.
    #[cfg(test)]
    pub fn tiny(class: Class, size: u64, iterations: u64, threads: usize, real: bool) -> NasSetup {
        let data = if real { "real" } else { "addresses" };
        let given = |count| Some(count).filter(|&count| count > 0);
        NasSetup {
            class,
            size: given(size),
            iterations: given(iterations),
            seed: 1,
            scale: 1,
            touch: 4096,
            threads,
            data,
        }
    }

    /// The benchmark's generator with its `start`, moved on to another part of its period (2^44) by a seed other than 1.
    pub fn generator(&self, start: u64) -> Lcg {
        // An odd stride near the golden section of the period: parts of near seeds lie far from each other.
        Lcg(start).skip(self.seed.wrapping_sub(1).wrapping_mul(0x9E3_779B_97F5))
    }

    /// Is there to be real data, which would take `bytes` of host memory?
    ///
    /// # Errors
    /// Real data were asked for and are too large.
    pub fn real(&self, workload: &str, bytes: u64) -> Result<bool, Error> {
        match self.data {
            "addresses" => Ok(false),
            "real" if bytes > MOST_BYTES => {
                let rule = format!(
                    "the data would take {} GiB of host memory, more than {} GiB; take data=addresses, a smaller class or a larger scale",
                    bytes >> 30,
                    MOST_BYTES >> 30
                );
                Err(refuse(workload, "data", "real", rule))
            }
            "real" => Ok(true),
            _ => Ok(bytes <= AUTO_BYTES),
        }
    }

    /// Refuses a size below `least` or above `most`.
    ///
    /// # Errors
    /// It is outside.
    pub fn check_size(
        &self,
        workload: &str,
        size: u64,
        least: u64,
        most: u64,
    ) -> Result<(), Error> {
        if (least..=most).contains(&size) {
            return Ok(());
        }
        let scale = self.scale;
        let rule = format!("must be from {least} to {most}, after dividing by scale={scale}");
        Err(refuse(workload, "size", size, rule))
    }

    /// Powers of two whose product is divided by the scale (rounded down to a power of two): the longest edge is
    /// halved, the last one first among equals, none below `least`.
    pub fn scaled_powers(&self, mut edges: [u64; 3], least: u64) -> [u64; 3] {
        for _ in 0..self.scale.ilog2() {
            let longest = (0..3).max_by_key(|&i| (edges[i], i)).unwrap_or(2);
            if edges[longest] > least {
                edges[longest] /= 2;
            }
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_divides_the_volume() {
        let setup = NasSetup {
            scale: 64,
            ..NasSetup::tiny(Class::D, 0, 0, 1, false)
        };
        assert_eq!(setup.scaled_powers([1024, 1024, 1024], 4), [256, 256, 256]);
        let setup = NasSetup { scale: 2, ..setup };
        assert_eq!(setup.scaled_powers([512, 512, 512], 4), [512, 512, 256]);
        assert_eq!(
            setup.scaled_powers([2048, 1024, 1024], 4),
            [1024, 1024, 1024]
        );
    }

    #[test]
    fn data_that_do_not_fit_are_refused_by_name_or_left_out() {
        let setup = NasSetup::tiny(Class::D, 0, 0, 1, true);
        let error = setup.real("ft", 80 << 30).unwrap_err().to_string();
        assert!(
            error.starts_with("workload `ft`: `data=real`: the data would take 80 GiB"),
            "{error}"
        );
        assert!(
            !NasSetup {
                data: "auto",
                ..setup
            }
            .real("ft", 80 << 30)
            .unwrap()
        );
        assert!(
            NasSetup {
                data: "auto",
                ..setup
            }
            .real("ft", 1 << 30)
            .unwrap()
        );
    }
}
