//! Name, parameters and description of a workload.

use varve_access::Program;
use varve_spec::{Error, Param, Values, Want};

/// The word for a workload in errors.
pub(crate) const KIND: &str = "workload";

/// Parameters that every workload has. One that declares such a key itself has another default, or another help.
pub const COMMON: &[Param] = &[
    THREADS,
    Param::new("seed", Want::COUNT, "1", "seed of every random choice"),
    Param::new(
        "scale",
        Want::Count {
            min: 1,
            max: 1 << 40,
        },
        "1",
        "divide every size and time by this, to go with a machine that is scaled down by the same factor",
    ),
    Param::new(
        TOUCH,
        Want::Bytes,
        "4KiB",
        "bytes between two first touches at initialization: 64 writes every line, 4KiB every page once",
    ),
];

/// Simulated threads, 16 of them.
pub const THREADS: Param = Param::new(
    "threads",
    Want::Count { min: 1, max: 1024 },
    "16",
    "simulated threads",
);

const TOUCH: &str = "touch";

/// One workload: its name, parameters and constructor.
#[derive(Clone, Copy)]
pub struct WorkloadEntry {
    /// The name in a specification, such as `gups`.
    pub name: &'static str,
    /// One line: its work, and the real program that it stands for.
    pub about: &'static str,
    /// Its own parameters; [`COMMON`] come on top.
    pub params: &'static [Param],
    /// Makes it, ready to run.
    pub build: fn(&Values) -> Result<Box<dyn Program>, Error>,
}

impl WorkloadEntry {
    /// Reads its parameters, `key=value,...`.
    ///
    /// # Errors
    /// The first parameter that is unknown, repeated or unreadable.
    pub fn values(&self, text: &str) -> Result<Values, Error> {
        let values = Values::parse(KIND, self.name, self.params, COMMON, text)?;
        values.count_in(TOUCH, 1, u64::MAX)?;
        Ok(values)
    }
}
