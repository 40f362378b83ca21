//! C7 and C9 in retired instructions, where they can be counted: beside the times, and free of what else the machine does.

use super::counted::{Count, Gone};
use super::programs::Entry;
use super::stores;
use super::turns::mean;
use super::{KINDS, Study};
use crate::Effort;
use std::collections::BTreeMap;
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};
use varve_run::Error;
use varve_runtime::Checks;

/// Rounds of the two runs of a program.
const ROUNDS: [usize; 2] = [8, 16];
/// Operations of the two runs of a store.
const OPERATIONS: [usize; 2] = [8_000, 16_000];
const RECORDS: usize = 1_000;

/// Name on the command line.
fn option(checks: Checks) -> &'static str {
    let found = Checks::ALL.iter().find(|(_, c)| *c == checks);
    found.expect("all are there").0
}

fn clean_and_kinds() -> impl Iterator<Item = (Checks, &'static str)> {
    std::iter::once((Checks::None, "Clean")).chain(KINDS.iter().map(|k| (k.0, k.1)))
}

fn counts(study: &Study) -> bool {
    study.counter.is_ok() && study.options.effort != Effort::Tiny
}

/// Pairs of runs for programs that keep nothing.
pub fn runs_volatile(study: &Study, programs: &[&Entry]) -> usize {
    match counts(study) {
        true => programs.len() * (1 + KINDS.len()),
        false => 0,
    }
}

/// Pairs of runs for those that do.
pub fn runs_durable(study: &Study, kernels: &[&Entry]) -> usize {
    match counts(study) {
        true => kernels.len() * 2 + stores::COUNT * workloads(study).len() * 2,
        false => 0,
    }
}

/// The letters of the workloads that are counted.
fn workloads(study: &Study) -> &'static [&'static str] {
    match study.options.effort {
        Effort::Full => &["a", "b", "c", "d", "f"],
        _ => &["a", "c"],
    }
}

/// Says why there are no counts, if so.
fn cannot(study: &Study, out: &mut StudyResult) -> bool {
    let why = match &study.counter {
        Err(why) => *why,
        Ok(_) if study.options.effort == Effort::Tiny => "a test has no time for an emulator",
        Ok(_) => return false,
    };
    let line = format!("Instructions were not counted: {why}.");
    if !out.about.contains(&line) {
        out.about.push(line);
    }
    true
}

/// Counts what a run with the second words has more than one with the first.
fn difference(
    study: &mut Study,
    name: &str,
    words: [Vec<String>; 2],
) -> Result<Option<Count>, Error> {
    study.begin(format!("{name} instructions"))?;
    let Ok(counter) = &study.counter else {
        return Ok(None);
    };
    match counter.difference(&words[0], &words[1]) {
        Ok(count) => Ok(Some(count)),
        Err(e) => {
            study
                .failures
                .push(format!("{name}: counting instructions failed: {e}"));
            Ok(None)
        }
    }
}

/// The words that run a program in so many rounds.
fn words(module: &Gone, options: &[String], entry: &Entry, rounds: usize) -> Vec<String> {
    let mut words = vec!["run".into(), module.0.display().to_string()];
    words.extend_from_slice(options);
    words.push("--".into());
    words.extend(entry.counted.split(' ').map(String::from));
    words.extend(["--rounds".into(), rounds.to_string()]);
    words
}

/// A program's module as a file.
fn module(entry: &Entry) -> Result<Gone, Error> {
    let (file, bytes) = entry.module;
    let name = format!("varve-study-{}-{file}", std::process::id());
    let module = Gone(std::env::temp_dir().join(name));
    std::fs::write(&module.0, bytes)
        .map_err(|e| Error::Region(format!("{}: {e}", module.0.display())))?;
    Ok(module)
}

pub fn volatile(
    study: &mut Study,
    programs: &[&Entry],
    out: &mut StudyResult,
) -> Result<(), Error> {
    if cannot(study, out) {
        return Ok(());
    }
    let mut table = RunTable::new("Instructions over Clean", "program");
    table.columns = vec![Column::new("Clean, M", Format::Number, Better::Lower)];
    let names = KINDS.iter().map(|k| k.1);
    table
        .columns
        .extend(names.map(|n| Column::new(n, Format::Percent, Better::Lower)));
    let mut over: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for entry in programs {
        let file = module(entry)?;
        let mut row = Vec::new();
        let mut clean = None;
        for (checks, kind) in clean_and_kinds() {
            let options = ["--checks".into(), option(checks).into()];
            let name = format!("{} {kind}", entry.name);
            let runs = ROUNDS.map(|rounds| words(&file, &options, entry, rounds));
            let count = difference(study, &name, runs)?;
            let generated = count.map(|c| c.generated as f64);
            if checks == Checks::None {
                clean = generated;
                let millions = generated.map(|g| g / 1e6);
                row.push(millions.map_or(Value::Missing, Value::from));
                continue;
            }
            let more = generated.zip(clean).map(|(g, c)| 100.0 * (g / c - 1.0));
            row.push(more.map_or(Value::Missing, Value::from));
            over.entry(kind).or_default().extend(more);
        }
        table.push(entry.name, row);
    }
    table.notes.push(
        "What the engine's code retires in its later rounds; the others in percent over Clean. Published are times.".into(),
    );
    out.tables.push(table);
    for (_, kind, published) in KINDS {
        let ours = over.get(kind).and_then(|all| mean(all));
        let published = published.map_or(Value::Missing, |(a, b)| Value::Range {
            low: f64::min(a, b),
            high: f64::max(a, b),
        });
        let what = format!("{kind}, mean over Clean, instructions (published: time)");
        let ours = ours.map_or(Value::Missing, Value::from);
        out.claims
            .push(Claim::new("C7", what, published, ours, "%"));
    }
    Ok(())
}

/// Instructions of the engine's code, and of all.
type Both = [Option<Count>; 2];

/// What the second has less than the first, percent: the engine's code and all.
fn less(counts: Both) -> Option<(f64, f64)> {
    let [Some(unbiased), Some(quick)] = counts else {
        return None;
    };
    let of = |a: u64, b: u64| 100.0 * (1.0 - b as f64 / a as f64);
    Some((
        of(unbiased.generated, quick.generated),
        of(unbiased.all, quick.all),
    ))
}

pub fn durable(study: &mut Study, kernels: &[&Entry], out: &mut StudyResult) -> Result<(), Error> {
    if cannot(study, out) {
        return Ok(());
    }
    let mut table = RunTable::new("Instructions of programs whose data survive", "program");
    table.columns = vec![
        Column::new("Unbiased, M", Format::Number, Better::Lower),
        Column::new("QuickCheck, M", Format::Number, Better::Lower),
        Column::new("less", Format::Percent, Better::Higher),
        Column::new("less of all", Format::Percent, Better::Higher),
    ];
    let mut push = |name: String, counts: Both| {
        let found = less(counts);
        if let ([Some(u), Some(q)], Some((code, all))) = (counts, found) {
            let millions = |c: Count| Value::from(c.generated as f64 / 1e6);
            table.push(name, [millions(u), millions(q), code.into(), all.into()]);
        }
        found
    };
    let options = |file: &Gone, checks| {
        [
            "--durable",
            &file.0.display().to_string(),
            "--domain",
            "memory",
            "--checks",
            option(checks),
        ]
        .map(String::from)
    };
    let mut all = Vec::new();
    for entry in kernels {
        let file = module(entry)?;
        let mut counts: Both = [None; 2];
        for (count, (checks, kind)) in counts.iter_mut().zip(stores::KINDS) {
            let name = format!("{} {kind}", entry.name);
            *count = fresh(study, &name, |region, i| {
                words(&file, &options(region, checks), entry, ROUNDS[i])
            })?;
        }
        all.extend(push(entry.name.into(), counts));
    }
    claim(out, "kernels", 3.7, &all);
    for (kind, name, published) in stores::STORES {
        let mut all = Vec::new();
        for workload in workloads(study) {
            let mut counts: Both = [None; 2];
            for (count, (checks, how)) in counts.iter_mut().zip(stores::KINDS) {
                let label = format!("{name} {} {how}", workload.to_uppercase());
                *count = fresh(study, &label, |region, i| {
                    let begin = ["ycsb", workload, "--store", kind.name()];
                    let mut words: Vec<String> = begin.map(String::from).into();
                    words.extend(["--records".into(), RECORDS.to_string()]);
                    words.extend(["--operations".into(), OPERATIONS[i].to_string()]);
                    words.extend(options(region, checks));
                    words
                })?;
            }
            all.extend(push(format!("{name} {}", workload.to_uppercase()), counts));
        }
        claim(out, name, published, &all);
    }
    table.notes.push(
        "What the engine's code retires in later rounds and operations, and what all code does: the runtime that moves objects and logs, too.".into(),
    );
    out.tables.push(table);
    Ok(())
}

/// Counts two runs, by their number, each with a region that is not there yet.
fn fresh(
    study: &mut Study,
    name: &str,
    words: impl Fn(&Gone, usize) -> Vec<String>,
) -> Result<Option<Count>, Error> {
    let regions = [0, 1].map(|i| {
        let name = format!("varve-study-{}-counted-{i}.region", std::process::id());
        let region = Gone(std::env::temp_dir().join(name));
        let _ = std::fs::remove_file(&region.0);
        region
    });
    let runs = [0, 1].map(|i| words(&regions[i], i));
    difference(study, name, runs)
}

fn claim(out: &mut StudyResult, name: &str, published: f64, less: &[(f64, f64)]) {
    let code: Vec<f64> = less.iter().map(|l| l.0).collect();
    let all: Vec<f64> = less.iter().map(|l| l.1).collect();
    let ours = mean(&code).map_or(Value::Missing, Value::from);
    let what = format!(
        "{name}: QuickCheck retires less than Unbiased, instructions of the engine's code (published: time)"
    );
    let claim = Claim::new("C9", what, published, ours, "%");
    let all = mean(&all).map_or(String::new(), |a| format!("of all code {a:.1} % less"));
    out.claims.push(claim.with_note(all));
}
