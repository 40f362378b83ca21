//! A program's pages on a modelled machine, under some page policies.

use super::compared::{self, origin};
use super::memory_full::{self, said};
use super::recording::{record, recorder};
use super::runs::{Outcomes, RunProgress};
use super::{columns, files, pictures, table};
use crate::args::run::job::{self, ModelledPages};
use crate::ui::{self, Done, Failure, failed, of_run, wrong};
use std::ffi::OsString;
use std::path::Path;
use varve_machine::Machine;
use varve_run::request::{DEFAULT_MACHINE, PageRuns, PagesRequest};
use varve_run::{Comparison, RunResult, RunSpec, Work, answer};
use varve_spec::Bytes;
use varve_tier::machine;
use varve_trace::host::{Extent, RecorderOptions};

pub fn run(work: &job::RunSubject, a: &ModelledPages) -> Done {
    let (model, pages) = (&a.model, &a.pages);
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let machine_name = &model.machine_or(DEFAULT_MACHINE);
    let machine = machine(machine_name).map_err(wrong)?;
    if varve_machine::load::changes(machine_name).0 == "here" {
        crate::ui::message!(
            "varve: note: probed again for each run; `varve machine show here --toml > here.toml` keeps it"
        );
    }
    // Before a command runs, which may take long.
    varve_run::check_policies(&pages.policy, &machine).map_err(wrong)?;
    let (name, work, end, _kept) = match work {
        job::RunSubject::Named(text) => {
            let work = Work::parse(text).map_err(|e| not_work(text, &e))?;
            (work.name(), work, None, None)
        }
        job::RunSubject::Command(words) => {
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
            let recorded = record(words, options)?;
            let trace = Work::Trace(recorded.path.to_path_buf());
            (work.name(), trace, Some(recorded.end), Some(recorded.path))
        }
    };
    let request = request(a, machine, work)?;
    let (mut spec, accesses) = request.base().map_err(wrong)?;
    let mut runs = request.runs(&spec).map_err(wrong)?;
    let progress = RunProgress::new(runs.names(), model.jobs, accesses);
    let until = spec.until_ns();
    let answers = answer(&mut runs, |specs, from| {
        progress.make(specs, from, until, &|_, _, _| {})
    });
    progress.bar.finish_and_clear();
    let answers = answers.map_err(|e| of_run(&e))?;
    memory_full::look(&mut spec, &answers, model.jobs);
    if let Some(e) = memory_full::largest(&answers) {
        return Err(failure(&spec, e));
    }
    let came = Outcomes::of(&runs, answers, |_, e| failure(&spec, e))?;
    show(a, &spec, &name, &runs, &came.of_command(end.as_ref()))
}

/// The request. A trace that decides the scale is read here, where progress is shown.
fn request(a: &ModelledPages, machine: Machine, work: Work) -> Result<PagesRequest, Failure> {
    let mut request = PagesRequest {
        options: a.pages.clone(),
        page_bytes: a.page.page.map(|Bytes(b)| b),
        seed: a.model.seed,
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
    runs: &PageRuns,
    came: &Outcomes<RunResult>,
) -> Done {
    let results = came.shown();
    let mut sheet = table::sheet(spec, name, &results);
    sheet
        .notes
        .extend(results.iter().find_map(|r| columns::sampled(r)));
    sheet.advice = runs.advise(came, &columns::size).said;
    if a.output.out.is_some() {
        let title = format!("{name} on {}", spec.machine.name);
        // Only workloads name their regions, so only their waits can be attributed to memory.
        sheet.flames = pictures::waits(&title, &pictures::runs(&results), ("", ""));
    }
    let origin = origin(&spec.machine.name, spec.seed);
    compared::show(&a.output, origin, came, sheet)
}

/// A command on the model as it runs, under one policy.
fn as_it_goes(command: &[OsString], a: &ModelledPages, machine: Machine, work: Work) -> Done {
    let request = request(a, machine, work)?;
    let (mut spec, _) = request.base().map_err(wrong)?;
    let runs = request.runs(&spec).map_err(wrong)?;
    spec.policy.clone_from(&runs.specs[0].policy);
    // Report errors in the policy before the program runs.
    varve_run::check(&spec).map_err(|e| of_run(&e))?;
    let mut program = recorder(command, RecorderOptions::default())?.live();
    let result = varve_run::run_program(&spec, &mut program, &mut |_| !ui::stopped());
    let end = program.end();
    if let Some(line) = super::trace::ended(&end) {
        crate::ui::message!("varve: note: {line}");
    }
    let came = Outcomes::of(&runs, vec![result], |_, e| failure(&spec, e))?;
    let came = came.of_command(Some(&end));
    show(a, &spec, &spec.work.name(), &runs, &came)
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
            "`{text}` is not a workload, but a command of this system: write `varve run -- {text}`"
        )),
        false => wrong(e),
    }
}
