//! The message for a run that is out of memory: which memory was too small, and what would fit.

use super::files;
use varve_machine::model::{RunError, nodes};
use varve_observed::ManagedSpec;
use varve_report::fmt;
use varve_run::{Error, RunResult, RunSpec, Work};

/// The results of runs.
type Answers = [Result<RunResult, Error>];

/// Measures a trace's footprint if a run of it was out of memory and the footprint is not known yet: the remedy depends on it.
pub fn look(spec: &mut RunSpec, answers: &Answers, jobs: usize) {
    let full = |answer: &Result<RunResult, Error>| {
        matches!(answer, Err(Error::Run(RunError::OutOfFrames(_))))
    };
    if let Work::Trace(path) = &spec.work
        && spec.footprint.is_none()
        && answers.iter().any(full)
    {
        spec.footprint = files::footprint(path, jobs).ok();
    }
}

/// A failure of a run of pages, in a line. Of a trace, [`look`] comes before it.
pub fn said(spec: &RunSpec, e: &Error) -> String {
    match e {
        Error::Run(RunError::OutOfFrames(full)) => pages(spec, full.pages * full.page_bytes),
        e => e.to_string(),
    }
}

/// Where every run is out of memory, the one that could use the most of it.
pub fn largest(answers: &Answers) -> Option<&Error> {
    let taken = |answer: &Result<RunResult, Error>| match answer {
        Err(Error::Run(RunError::OutOfFrames(full))) => Some(full.pages * full.page_bytes),
        _ => None,
    };
    let all = answers.iter().all(|answer| taken(answer).is_some());
    let largest = answers
        .iter()
        .filter(|_| all)
        .max_by_key(|answer| taken(answer));
    largest.and_then(|answer| answer.as_ref().err())
}

/// `taken` bytes of the scaled machine are in use, and there are no more for the program.
fn pages(spec: &RunSpec, taken: u64) -> String {
    let (name, scale) = (&spec.machine.name, spec.scale);
    let at = |other: u32| taken * u64::from(scale) / u64::from(other);
    match &spec.work {
        // The machine shrinks with the program, so that a scale is no remedy.
        Work::Workload(_) => format!(
            "out of memory: the program needs more than the {} of `{name}` that it may use: take a larger machine or a smaller workload",
            fmt::bytes(at(1) as f64)
        ),
        Work::Trace(_) => {
            let wants = spec.footprint.map_or(0, |touched| touched.bytes());
            let smaller = (0..16).map(|n| 1 << n).filter(|s: &u32| *s < scale);
            let fits = smaller.filter(|s| at(*s) >= wants).max();
            let remedy = match fits {
                Some(fits) => format!("--scale {fits} fits"),
                None => "take a larger machine".into(),
            };
            format!(
                "out of memory: the trace touches {}, and `{name}` at 1/{scale} of its size has {} that it may use: {remedy}",
                fmt::bytes(wants as f64),
                fmt::bytes(taken as f64)
            )
        }
        Work::Command(_) => format!(
            "out of memory: the program needs more than the {} of `{name}` at 1/{scale} of its size that it may use: give a smaller \
             --scale, or take a larger machine",
            fmt::bytes(taken as f64)
        ),
    }
}

/// A failure of a run of objects, in a line.
pub fn of_objects(spec: &ManagedSpec, e: &Error) -> String {
    let Error::Run(RunError::OutOfFrames(full)) = e else {
        return e.to_string();
    };
    let taken = fmt::bytes((full.pages * full.page_bytes) as f64);
    let each = nodes(&spec.machine).into_iter().map(|n| n.bytes);
    let all = fmt::bytes(each.sum::<u64>() as f64);
    let share = match spec.instances {
        1 => String::new(),
        n => format!(" for {n} instances"),
    };
    format!(
        "out of memory: {taken} of the {all} that `{}` has{share} are in use, and the memory that plan `{}` wants more of is full: give a \
         smaller --heap-max, --fast or --instances, or take a larger machine",
        spec.machine.name, spec.plan
    )
}
