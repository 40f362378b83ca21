//! Every workload by name.

use varve_machine::Program;

pub use varve_spec::{Error, Param, Values, Want};

/// What a workload is called in errors.
const KIND: &str = "workload";

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
        "divide every size by this, to go with a machine that is scaled down by the same factor",
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

/// One workload: what it is called, what it takes, how it is made.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in a specification, such as `gups`.
    pub name: &'static str,
    /// One line: what it does and what real program it stands for.
    pub about: &'static str,
    /// Its own parameters; [`COMMON`] come on top.
    pub params: &'static [Param],
    /// Makes it, ready to run.
    pub build: fn(&Values) -> Result<Box<dyn Program>, Error>,
}

impl Entry {
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

/// Every workload, in the order of the documentation.
pub fn list() -> Vec<Entry> {
    let modules = [
        crate::gups::ENTRIES,
        crate::kv::ENTRIES,
        crate::tpcc::ENTRIES,
        crate::streams::ENTRIES,
        crate::graph::ENTRIES,
        crate::nas::ENTRIES,
        crate::apps::ENTRIES,
    ];
    modules.concat()
}

/// Reads a specification, `NAME` or `NAME:key=value,...`, without making the workload.
///
/// # Errors
/// An unknown name, or the first parameter that is unknown, repeated or unreadable.
pub fn parse(line: &str) -> Result<(Entry, Values), Error> {
    let list = list();
    let entry = *varve_spec::find(KIND, line, &list, |entry| entry.name)?;
    let values = entry.values(varve_spec::split(line).1)?;
    Ok((entry, values))
}

/// Makes the workload that `line` specifies, such as `gups:bytes=96GiB,hot=10%,threads=16`.
///
/// # Errors
/// As [`parse`]; and values that are readable but do not fit together or the host.
pub fn build(line: &str) -> Result<Box<dyn Program>, Error> {
    let (entry, values) = parse(line)?;
    (entry.build)(&values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, Order};

    #[test]
    fn every_default_reads_and_names_are_unique() {
        let mut names = Vec::new();
        for entry in list() {
            assert!(entry.values("").is_ok(), "{}", entry.name);
            assert!(!entry.about.is_empty());
            names.push(entry.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), list().len());
    }

    /// Whatever is added to the list is built, run for a while and held to the rules of a program.
    #[test]
    fn every_workload_keeps_the_rules_and_repeats_itself() {
        for entry in list() {
            let classed = entry.params.iter().any(|param| param.key == "class");
            let size = if classed { "class=S" } else { "scale=1024" };
            let line = format!("{}:{size},threads=3,seed=5", entry.name);
            let run = || {
                let mut program = build(&line).unwrap();
                assert_eq!(program.threads(), 3, "{line}");
                assert!(!program.regions().is_empty(), "{line}");
                harness::start(&mut *program, Order::Random(1), 200_000)
            };
            let tally = run();
            assert!(
                tally.accesses() > 1000 && tally.instructions > 1000,
                "{line}: {tally:?}"
            );
            assert_eq!(tally, run(), "{line} repeats itself");
        }
    }

    #[test]
    fn an_unknown_workload_is_named() {
        let error = parse("gupps:bytes=1").err().unwrap().to_string();
        assert!(
            error.starts_with("no workload is called `gupps`; there are "),
            "{error}"
        );
        assert!(error.ends_with("(did you mean `gups`?)"), "{error}");
    }
}
