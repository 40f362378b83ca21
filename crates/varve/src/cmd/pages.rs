//! A program's pages on a modelled machine, under some page policies.

use super::compared::{self, origin};
use super::memory_full::{self, largest, said};
use super::{advice, files, pictures, table};
use crate::args::run::job::{self, ModelledPages};
use crate::ui::{self, Done, Failure, failed, of_run, wrong};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Mutex;
use tempfile::TempPath;
use varve_machine::model::Progress;
use varve_machine::{Bytes, Machine};
use varve_report::pictures::Pictures;
use varve_run::request::{DEFAULT_MACHINE, PagesRequest, SoFar, machine};
use varve_run::{Keep, RunResult, RunSpec, Work, compare};
use varve_trace::TraceError;
use varve_trace::host::{Extent, RecordError, Recorder, RecorderOptions};

pub fn run(work: &job::Work, a: &ModelledPages) -> Done {
    let (model, pages) = (&a.model, &a.pages);
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let machine_name = &model.machine_or(DEFAULT_MACHINE);
    let machine = machine(machine_name).map_err(wrong)?;
    if varve_machine::load::changes(machine_name).0 == "here" {
        eprintln!(
            "varve: note: probed anew each time; `varve machine show here --toml > here.toml` keeps it"
        );
    }
    // Before a command runs, which may take long.
    varve_run::check_policies(&pages.policy, &machine).map_err(wrong)?;
    let (name, work, _kept) = match work {
        job::Work::Named(text) => {
            let work = Work::parse(text).map_err(|e| not_work(text, &e))?;
            (work.name(), work, None)
        }
        job::Work::Command(words) => {
            let shown = words.iter().map(|w| w.to_string_lossy().into_owned());
            let work = Work::Command(shown.collect());
            let options = RecorderOptions {
                extent: a.windows.extent(),
                ..RecorderOptions::default()
            };
            let one = options.extent == Extent::Whole
                && pages.policy != "all"
                && varve_run::policy_list(&pages.policy).len() == 1;
            if one {
                return as_it_goes(words, a, machine, work);
            }
            // Recorded once and replayed under each policy, so that all policies see the same run of it.
            let kept = record(words, options)?;
            (work.name(), Work::Trace(kept.to_path_buf()), Some(kept))
        }
    };
    let request = request(a, machine, work)?;
    let (mut spec, accesses) = request.base().map_err(wrong)?;
    let specs = request.specs(&spec).map_err(wrong)?;
    let mut done = Vec::new();
    let mut refused = Vec::new();
    for (spec, result) in specs.iter().zip(all(&specs, accesses, model.jobs)) {
        match result {
            Ok(r) => done.push(r),
            Err(e) if e.is_interrupt() => return Err(of_run(&e)),
            Err(e) => refused.push((spec.policy.clone(), e)),
        }
    }
    memory_full::look(&mut spec, &refused, model.jobs);
    if done.is_empty() {
        return Err(all_refused(&spec, &refused));
    }
    let refused: Vec<String> = refused
        .iter()
        .map(|(policy, e)| format!("{policy}: {}", said(&spec, e)))
        .collect();
    show(a, &spec, &name, &done, &refused)
}

/// What is asked for. A trace that decides the scale is looked into here, where one sees that it takes a while.
fn request(a: &ModelledPages, machine: Machine, work: Work) -> Result<PagesRequest, Failure> {
    let mut request = PagesRequest {
        policies: a.pages.policy.clone(),
        scale: a.pages.scale,
        page_bytes: a.page.page.map(|Bytes(b)| b),
        seed: a.model.seed,
        cores: a.pages.cores,
        until_s: a.pages.until,
        pictures: a.output.out.is_some(),
        ..PagesRequest::new(machine, work)
    };
    if let Work::Trace(path) = &request.work {
        match request.looks_into_trace() {
            true => request.footprint = Some(files::footprint(path, a.model.jobs)?),
            false => files::open_trace(path).map(drop)?,
        }
    }
    Ok(request)
}

/// Makes all runs, and says how far they are.
fn all(
    specs: &[RunSpec],
    accesses: Option<u64>,
    jobs: usize,
) -> Vec<Result<RunResult, varve_run::Error>> {
    let stop = ui::stop_flag();
    let done = ui::WorkDone::default();
    let bar = ui::bar_of(specs.len() as u64, "runs", done.clone());
    let so_far = Mutex::new(SoFar::of_length(specs.len(), accesses));
    let watch = |i: usize, progress: Option<&Progress>| {
        let mut so_far = so_far.lock().expect("no holder panics");
        match progress {
            Some(p) => {
                so_far.note(i, p.accesses, p.now_ns);
                bar.set_message(format!("{} M accesses", so_far.accesses() / 1_000_000));
            }
            None => {
                so_far.end(i);
                bar.inc(1);
            }
        }
        done.note(so_far.share(specs[i].until_ns), bar.elapsed());
        !stop.load(std::sync::atomic::Ordering::Relaxed)
    };
    let workers = ui::workers(jobs);
    let results = compare(specs, workers, &Keep::nothing(), &watch, &|_, _, _| {});
    bar.finish_and_clear();
    results
}

/// No run ended well. What all say alike is said once.
fn all_refused(spec: &RunSpec, refused: &[(String, varve_run::Error)]) -> Failure {
    let mut lines: Vec<String> = refused.iter().map(|(_, e)| said(spec, e)).collect();
    if let Some(e) = largest(refused) {
        lines = vec![said(spec, e)];
    } else if lines.windows(2).all(|pair| pair[0] == pair[1]) {
        lines.truncate(1);
    } else {
        let named = refused.iter().zip(&lines);
        lines = named
            .map(|((policy, _), l)| format!("{policy}: {l}"))
            .collect();
    }
    let line = lines.join("\nvarve: ");
    let input = |e: &varve_run::Error| !matches!(e, varve_run::Error::Run(_));
    match refused.iter().all(|(_, e)| input(e)) {
        true => wrong(line),
        false => failed(line),
    }
}

/// One run that did not end well.
fn failure(spec: &RunSpec, e: &varve_run::Error) -> Failure {
    match e {
        _ if e.is_interrupt() => of_run(e),
        varve_run::Error::Run(_) => failed(said(spec, e)),
        e => wrong(e),
    }
}

/// Prints and writes what came out.
fn show(
    a: &ModelledPages,
    spec: &RunSpec,
    name: &str,
    results: &[RunResult],
    refused: &[String],
) -> Done {
    let mut table = table::of(spec, name, results);
    table
        .notes
        .extend(results.iter().find_map(super::columns::sampled));
    if let Some(w) = results.iter().find_map(|r| r.warning.as_ref()) {
        table.notes.push(format!("Note: {w}"));
    }
    table
        .notes
        .extend(refused.iter().map(|line| format!("Not run: {line}")));
    table.notes.extend(advice::advice(results));
    let charts = (Vec::new(), table::charts(results));
    let origin = origin(&spec.machine.name, spec.seed);
    let drawn = a
        .output
        .out
        .as_ref()
        .and_then(|_| drawn(name, spec, results));
    compared::show(&a.output, origin, table, charts, results, drawn)
}

/// Pictures of runs. Whose memory threads wait for is known of workloads, which name their regions.
fn drawn(name: &str, spec: &RunSpec, results: &[RunResult]) -> Option<Pictures> {
    let title = format!("{name} on {}", spec.machine.name);
    let runs = pictures::runs(results, |r| &r.policy, |r| &r.seen);
    pictures::of(&title, &runs, pictures::waits(&title, &runs, ("", "")))
}

/// Records the command into a file that nobody else reads, and that vanishes with the guard.
pub fn record(command: &[OsString], options: RecorderOptions) -> Result<TempPath, Failure> {
    let marked = options.marked;
    let path = tempfile::Builder::new()
        .prefix("varve-")
        .suffix(".trace")
        .tempfile()
        .map_err(|e| {
            failed(format!(
                "a file for what is recorded: {e}: set TMPDIR to a folder that has room"
            ))
        })?
        .into_temp_path();
    let recorder = recorder(command, options)?;
    let bar = super::trace::spinner(&path);
    let end = recorder.record_to(&path);
    bar.finish_and_clear();
    let end = end.map_err(unrecorded)?;
    if ui::stopped() {
        return Err(ui::interrupted());
    }
    for line in super::trace::ended(&end)
        .into_iter()
        .chain(super::trace::part(&end))
    {
        eprintln!("varve: note: {line}");
    }
    // The end of a thread is an op of no instructions.
    if marked && end.instructions == 0 {
        return Err(wrong(
            "--marked: the command never looked for the file /varve/record/begin, so that nothing was recorded: leave --marked out",
        ));
    }
    Ok(path)
}

/// What was recorded is gone with its file.
fn unrecorded(e: RecordError) -> Failure {
    match e {
        RecordError::Trace(TraceError::DiskFull { path, bytes, .. }) => failed(format!(
            "{}: the disk is full after {bytes} bytes of trace: set TMPDIR to a folder that has room, or record less with --sample 1%",
            path.display()
        )),
        e => failed(e),
    }
}

/// A recorder of a command that has begun.
fn recorder(command: &[OsString], options: RecorderOptions) -> Result<Recorder, Failure> {
    let recorder = Recorder::start(command, options).map_err(wrong)?;
    for line in recorder.warnings() {
        eprintln!("varve: note: {line}");
    }
    Ok(recorder)
}

/// A command on the model as it runs, under one policy.
fn as_it_goes(command: &[OsString], a: &ModelledPages, machine: Machine, work: Work) -> Done {
    let request = request(a, machine, work)?;
    let (mut spec, _) = request.base().map_err(wrong)?;
    let policies = request.policies(&spec);
    spec.policy = policies.map_err(wrong)?.swap_remove(0);
    // What is wrong with the policy here is said before the program runs.
    varve_run::check(&spec).map_err(|e| of_run(&e))?;
    let mut program = recorder(command, RecorderOptions::default())?.live();
    let result = varve_run::run_program(&spec, &mut program, &mut |_| !ui::stopped())
        .map_err(|e| failure(&spec, &e))?;
    show(a, &spec, &spec.work.name(), &[result], &[])
}

fn not_work(text: &str, e: &varve_run::Error) -> Failure {
    if text.contains(['/', '.']) {
        return match files::open_trace(Path::new(text)) {
            Err(failure) => failure,
            Ok(_) => files::of_input(e),
        };
    }
    if text.contains(':') {
        return wrong(e);
    }
    match job::on_path(text) {
        true => wrong(format!(
            "`{text}` is no workload, but a command of this system: write `varve run -- {text}`"
        )),
        false => wrong(format!("{e}; for a command write `varve run -- COMMAND`")),
    }
}
