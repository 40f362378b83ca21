//! Every workload by name.

use varve_access::Program;

use crate::entry::KIND;
pub use crate::entry::{COMMON, THREADS, WorkloadEntry};
pub use varve_spec::{Error, Param, Values, Want};

/// Every workload, in the order of the documentation.
pub fn list() -> Vec<WorkloadEntry> {
    let modules = [
        crate::gups::ENTRIES,
        crate::kv::ENTRIES,
        crate::tpcc::ENTRIES,
        crate::olap::ENTRIES,
        crate::streams::ENTRIES,
        crate::graph::ENTRIES,
        crate::nas::ENTRIES,
        crate::hpc::ENTRIES,
        crate::splash::ENTRIES,
        crate::apps::ENTRIES,
    ];
    modules.concat()
}

/// Reads a specification, `NAME` or `NAME:key=value,...`, without making the workload.
///
/// # Errors
/// An unknown name, or the first parameter that is unknown, repeated or unreadable.
pub fn parse(line: &str) -> Result<(WorkloadEntry, Values), Error> {
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

/// The specification of a workload that makes `times` times as many passes over its memory; `None` if it makes no
/// passes.
///
/// # Errors
/// As [`parse`].
pub fn longer(line: &str, times: f64) -> Result<Option<String>, Error> {
    let (entry, values) = parse(line)?;
    if !entry.params.iter().any(|param| param.key == PASSES) {
        return Ok(None);
    }
    let passes = (values.count(PASSES) as f64 * times).round().max(1.0);
    Ok(Some(varve_spec::with(line, PASSES, passes)))
}

/// The parameter of workloads that go over their memory again and again.
const PASSES: &str = "passes";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, CallOrder};

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
                harness::start(&mut *program, CallOrder::Random(1), 200_000)
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
    fn a_longer_workload_takes_more_passes() {
        let longer = |line, times| super::longer(line, times).unwrap();
        let named = "lu_cb:passes=10,bytes=12MiB";
        assert_eq!(longer(named, 4.0).unwrap(), "lu_cb:bytes=12MiB,passes=40");
        assert_eq!(longer("swaptions", 0.1).unwrap(), "swaptions:passes=1");
        assert_eq!(longer("gups", 2.0), None, "it makes updates");
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
