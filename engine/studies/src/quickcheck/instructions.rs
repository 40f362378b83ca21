//! C7 and C9 in retired instructions, where they can be counted: beside the times, and free of what else the machine does.

use super::counted::Count;
use super::programs::QuickProgram;
use super::stores;
use super::turns::mean;
use super::work::{RECORDS, Work};
use super::{KINDS, Study, overhead_claims};
use crate::{Effort, StudyProgress};
use std::sync::atomic::{AtomicUsize, Ordering};
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};
use varve_run::{Error, side_by_side};
use varve_serve::Kind;

fn counts(study: &Study) -> bool {
    study.counter.is_ok() && study.options.effort != Effort::Tiny
}

/// Pieces of work for programs that keep nothing.
pub fn runs_volatile(study: &Study, programs: &[&QuickProgram]) -> usize {
    let counted = programs.iter().filter(|e| e.counted.is_some());
    if counts(study) { counted.count() } else { 0 }
}

/// Pieces of work for those that do.
pub fn runs_durable(study: &Study, kernels: &[&QuickProgram]) -> usize {
    match counts(study) {
        true => kernels.len() + stores::COUNT * RECORDS.len(),
        false => 0,
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

/// Counts side by side, which changes no count; no counts of what failed.
fn count(study: &mut Study, all: &[Work]) -> Result<Vec<Vec<Count>>, Error> {
    let Ok(counter) = &study.counter else {
        return Ok(Vec::new());
    };
    let begun = AtomicUsize::new(study.done);
    let go_on = |work: Work| {
        (study.watch)(&StudyProgress {
            done: begun.fetch_add(1, Ordering::Relaxed),
            runs: study.runs,
            what: format!("{} instructions", work.word()),
        })
    };
    let workers = study.options.workers;
    let found = side_by_side(all.len(), workers, &|_, _| true, |i, _| {
        match go_on(all[i]) {
            true => Ok(counter.counts(all[i], study.options.seed)),
            false => Err(Error::interrupted()),
        }
    });
    study.done += all.len();
    let mut counts = Vec::new();
    for (found, work) in found.into_iter().zip(all) {
        counts.push(found?.unwrap_or_else(|why| {
            let name = work.word();
            study
                .failures
                .push(format!("{name}: counting instructions failed: {why}"));
            Vec::new()
        }));
    }
    Ok(counts)
}

pub fn volatile(
    study: &mut Study,
    programs: &[&QuickProgram],
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
    let (programs, without): (Vec<&QuickProgram>, Vec<&QuickProgram>) =
        programs.iter().partition(|e| e.counted.is_some());
    let all: Vec<Work> = programs.iter().map(|e| Work::Volatile(e.name)).collect();
    let mut over: [Vec<f64>; KINDS.len()] = Default::default();
    for (entry, counts) in programs.iter().zip(count(study, &all)?) {
        let [clean, kinds @ ..] = &counts[..] else {
            continue;
        };
        let clean = clean.generated as f64;
        let mut row = vec![Value::from(clean / 1e6)];
        for (kind, over) in kinds.iter().zip(&mut over) {
            let more = 100.0 * (kind.generated as f64 / clean - 1.0);
            over.push(more);
            row.push(more.into());
        }
        table.push(entry.name, row);
    }
    table.notes.push(
        "What the engine's code retires in its later rounds; the others in percent over Clean. Published are times.".into(),
    );
    for entry in without {
        table.notes.push(format!(
            "Not counted: {}, whose compiling takes the emulator minutes.",
            entry.name
        ));
    }
    out.tables.push(table);
    let claims = overhead_claims(&over, ", instructions (published: time)");
    out.claims.extend(claims);
    Ok(())
}

/// The reduction from the first to the second, percent: in the engine's code and in all.
fn less(unbiased: Count, quick: Count) -> (f64, f64) {
    let of = |a: u64, b: u64| 100.0 * (1.0 - b as f64 / a as f64);
    (
        of(unbiased.generated, quick.generated),
        of(unbiased.all, quick.all),
    )
}

/// Both kinds of a store under each workload; none if counting failed.
fn pairs(counts: &[Count]) -> impl Iterator<Item = (Count, Count)> {
    let (unbiased, quick) = counts.split_at(counts.len() / 2);
    unbiased.iter().copied().zip(quick.iter().copied())
}

pub fn durable(
    study: &mut Study,
    kernels: &[&QuickProgram],
    out: &mut StudyResult,
) -> Result<(), Error> {
    if cannot(study, out) {
        return Ok(());
    }
    let kinds: [Kind; stores::COUNT] = stores::STORES.map(|s| s.0);
    let kernels_first = kernels.iter().map(|e| Work::Durable(e.name));
    let of_stores = |records| kinds.map(|kind| Work::Store(kind, records));
    let all: Vec<Work> = kernels_first
        .chain(RECORDS.into_iter().flat_map(of_stores))
        .collect();
    let found = count(study, &all)?;
    let (of_kernels, of_stores) = found.split_at(kernels.len());
    let (of_stores, larger) = of_stores.split_at(stores::COUNT);

    let mut table = RunTable::new("Instructions of programs whose data survive", "program");
    table.columns = vec![
        Column::new("Unbiased, M", Format::Number, Better::Lower),
        Column::new("QuickCheck, M", Format::Number, Better::Lower),
        Column::new("less", Format::Percent, Better::Higher),
        Column::new("less of all", Format::Percent, Better::Higher),
        Column::new("less, more records", Format::Percent, Better::Higher),
    ];
    let mut push = |name: &str, (unbiased, quick): (Count, Count), larger: Value| {
        let (code, all) = less(unbiased, quick);
        let millions = |c: Count| Value::from(c.generated as f64 / 1e6);
        let row = [
            millions(unbiased),
            millions(quick),
            code.into(),
            all.into(),
            larger,
        ];
        table.push(name, row);
        (code, all)
    };
    let mut all = Vec::new();
    for (entry, counts) in kernels.iter().zip(of_kernels) {
        all.extend(pairs(counts).map(|pair| push(entry.name, pair, Value::Missing)));
    }
    claim(out, "kernels", 3.7, &all);
    for (((kind, name, published), counts), larger) in
        stores::STORES.iter().zip(of_stores).zip(larger)
    {
        let mut larger = pairs(larger).map(|(u, q)| less(u, q).0);
        let rows = stores::rows(*kind);
        let all: Vec<(f64, f64)> = rows
            .iter()
            .zip(pairs(counts))
            .map(|(row, pair)| push(row, pair, larger.next().map_or(Value::Missing, Value::from)))
            .collect();
        claim(out, name, *published, &all);
    }
    let [few, many] = RECORDS;
    table.notes.push(format!(
        "What the engine's code retires in later rounds and operations, and what all code does: the runtime that moves objects and logs, and a \
         compiler that still finds something to do. Stores have {few} records; the last column, which shows what their number matters, is that of \
         {many}."
    ));
    out.tables.push(table);
    Ok(())
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
