//! `varve run module.wasm --machine M --plan P`: a managed program on a modelled machine, once under each heap plan.

use super::compared::{self, Sheet, origin};
use super::runs::{Outcomes, RunProgress};
use super::timeout::Timeout;
use super::{
    again, budgets, columns, memory_full, phases, pictures, plan_table, plans, sandbox, tray_table,
    wasm,
};
use crate::args::run::job::{ModelledObjects, WasmProgram};
use crate::args::run::region::Medium;
use crate::ui::{self, Done, Failure, failed, of_run, wrong};
use std::io::{IsTerminal, Read, Write};
use std::sync::Mutex;
use varve_machine::model::RunError;
use varve_observed::request::{ObjectRuns, ObjectsRequest};
use varve_observed::{End, ManagedSpec, PlanResult};
use varve_run::request::BASE;
use varve_run::{Comparison, Error, answer};
use varve_spec::Bytes;
use varve_tier::machine;

pub fn run(program: &WasmProgram, a: &ModelledObjects) -> Done {
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let objects = &a.objects;
    let mut config = wasm::settings(&a.engine, &a.region, &Medium::default())?;
    let program = wasm::managed(program, &a.engine, &a.sandbox)?;
    config.profile = wasm::profile(objects, &program.file, &program.bytes)?;
    let machine = machine(&a.model.machine_or("")).map_err(wrong)?;
    // The thread that feeds accesses to the model must not stop between two of them: the whole command ends.
    let _timeout = Timeout::begin(a.sandbox.timeout, &program.file);
    let mut request = ObjectsRequest {
        config,
        heap_max: a.engine.heap.heap_max,
        plans: objects.plans.clone(),
        page_bytes: a.page.page.map(|Bytes(b)| b),
        instances: a.instances.clone(),
        trays: a.trays.clone(),
        seed: a.model.seed,
        pictures: a.output.out.is_some(),
        ..ObjectsRequest::new(machine, program)
    };
    // Report errors in the machine before the program runs, which it does for a profile.
    request.check().map_err(wrong)?;
    let input = input().map_err(|e| failed(format!("standard input: {e}")))?;
    request.program.input = input.into();
    if request.wants_profile() {
        own_profile(&mut request);
    }
    let mut asked = request.runs().map_err(wrong)?;
    plans::check_log(objects.pima_log.is_some(), &asked.asked)?;
    let log = objects.pima_log.as_deref();
    let log = log.map(phases::Log::open).transpose()?;
    let runs = RunProgress::new(asked.names(), a.model.jobs, None);
    let said = Mutex::new(false);
    let ended = |_: usize, _: &PlanResult, end: Option<&End>| {
        // The program's own output once: of whichever run ends first. One that shows its times prints others each time.
        let mut said = said.lock().expect("no holder panics");
        if let Some(end) = end.filter(|_| !std::mem::replace(&mut *said, true)) {
            runs.bar.suspend(|| output(end));
            runs.bar.suspend(|| wasm::unknown(objects, end.unknown));
        }
    };
    let answers = answer(&mut asked, |specs, from| {
        runs.make(specs, from, None, &ended)
    });
    runs.bar.finish_and_clear();
    let program = &request.program;
    let first = answers
        .as_ref()
        .map_or_else(Some, |all| all.iter().find_map(|a| a.as_ref().err()));
    // The output of a failed program; if others succeeded, theirs was shown.
    if let Some(log) = first
        .and_then(Error::log)
        .filter(|_| !*said.lock().expect("no holder panics"))
    {
        let _ = std::io::stderr().write_all(&log.err);
    }
    let answers = answers.map_err(|e| failure(&asked.base, &e));
    let answers = answers.inspect_err(|_| sandbox::tell(program, &[]))?;
    if let Some(mut log) = log {
        for (run, result) in answers.iter().enumerate() {
            let phases = match result {
                Ok(result) => &result.phases[..],
                Err(e) => e.log().map_or(&[][..], |log| &log.phases),
            };
            let plan = asked.spec(run).plan;
            phases.iter().for_each(|p| log.line(&format!("{plan} {p}")));
        }
    }
    let came = Outcomes::of(&asked, answers, |run, e| failure(&asked.spec(run), e));
    let came = came.inspect_err(|_| sandbox::tell(program, &[]))?;
    show(a, &request, &asked, &came)
}

/// A profile for plans by allocation sites where none was given: of this very run. Better than leaving such plans out, and said.
fn own_profile(request: &mut ObjectsRequest) {
    let bar = ui::spinner("profiling");
    let profiled = request.profile();
    bar.finish_and_clear();
    match profiled {
        Ok(()) => crate::ui::message!(
            "varve: profiled this run's own input for plans by allocation sites; `varve profile {} -o FILE.sites` on a smaller one, and \
             --profile FILE.sites, say what they do for inputs that were not profiled",
            request.program.file
        ),
        // A program that fails does so in the runs too, which have its output.
        Err(e) => crate::ui::message!(
            "varve: note: no plans by allocation sites, for a run that profiles did not end well: {e}"
        ),
    }
}

/// How the run that is advised is had on a machine with both memories: if it is a plan for objects, and memory is short.
fn live(
    a: &ModelledObjects,
    request: &ObjectsRequest,
    asked: &ObjectRuns,
    run: &str,
) -> Option<String> {
    let number = asked.names().iter().position(|name| name == run)?;
    let facts = asked.facts(number);
    let fast = facts.budget.filter(|_| !facts.linux)?;
    let spec = asked.spec(number);
    let (plan, program) = (&spec.plan, &request.program);
    let file = ui::quoted(&program.file);
    let words = program.arguments.iter();
    let words: Vec<String> = words
        .map(|word| ui::quoted(&String::from_utf8_lossy(word)))
        .collect();
    let words = match words.is_empty() {
        true => String::new(),
        false => format!(" -- {}", words.join(" ")),
    };
    let by_sites = varve_runtime::plans::entry(plan).is_ok_and(|entry| entry.profile);
    let (first, sites) = match (by_sites, &a.objects.plans.profile) {
        (false, _) => (String::new(), String::new()),
        (true, Some(known)) => {
            let known = ui::quoted(&known.display().to_string());
            (String::new(), format!(" --profile {known}"))
        }
        (true, None) => (
            format!(
                "`varve profile -o program.sites{} {file}{words}`, then ",
                again::for_profile()
            ),
            " --profile program.sites".into(),
        ),
    };
    Some(format!(
        "On a machine with both memories: {first}`varve run --live --plan {plan}{sites} --fast {}{} {file}{words}`.",
        Bytes(fast >> 10 << 10),
        again::for_run()
    ))
}

fn output(end: &End) {
    let _ = std::io::stderr().write_all(&end.err);
    ui::program_output(&end.out);
}

fn failure(spec: &ManagedSpec, e: &Error) -> Failure {
    match e {
        Error::Managed { file, error, .. } => match error.downcast_ref() {
            Some(engine) => wasm::of(file, engine),
            None => failed(e.to_string()),
        },
        // As everywhere, what does not fit a byte loses its upper bits.
        Error::Exit { code, .. } => Failure::Line {
            code: *code as u8,
            line: e.to_string(),
        },
        Error::Run(RunError::OutOfFrames(_)) => failed(memory_full::of_objects(spec, e)),
        e => of_run(e),
    }
}

/// The programs' input: the same for each of them. A terminal yields none.
fn input() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Prints and writes what came out.
fn show(
    a: &ModelledObjects,
    request: &ObjectsRequest,
    asked: &ObjectRuns,
    came: &Outcomes<PlanResult>,
) -> Done {
    let results = came.shown();
    // All in DRAM, else the first.
    let base = came.named(BASE).unwrap_or(results[0]);
    let spec = &asked.base;
    let title = plan_table::title(spec, base);
    let mut notes = match spec.instances {
        1 => Vec::new(),
        _ => vec![columns::MNTT.into()],
    };
    notes.extend(budgets::note(&asked.budgets, base, base.instances));
    if !asked.budgets.percents.is_empty() {
        notes.push("Objects are limited so; tables and compiled code come on top.".into());
    }
    if a.objects.plans.plan.is_none() && !request.colours() {
        let all = plans::list("all", spec.config.profile.as_deref(), false);
        let all = all.map_or(0, |all| all.len());
        notes.push(format!(
            "These are the plans to begin with. `--plan all` compares {all}."
        ));
    }
    let flames = pictures::waits(&title, &pictures::runs(&results), (BASE, "slow"));
    let details = plan_table::details(base, &results);
    let mut charts = plan_table::charts(&results);
    let origin = origin(&spec.machine.name, a.model.seed);
    let advice = asked.advise(came, &columns::size);
    let live = advice
        .run
        .as_deref()
        .and_then(|run| live(a, request, asked, run));
    let advice: Vec<String> = advice.said.into_iter().chain(live).collect();
    if base.trays.is_some() {
        let said = (notes, advice);
        let mut sheet = tray_table::sheet(title, base, &results, said, details, flames);
        charts.append(&mut sheet.charts);
        return compared::show(&a.output, origin, came, Sheet { charts, ..sheet });
    }
    let mut cells = columns::plans(base, plan_table::cells());
    cells.extend(columns::energy(&results));
    let slowdowns = budgets::chart(&asked.budgets, base, |run| came.named(run));
    let sheet = Sheet {
        rows_are: "plan",
        cells,
        trade_off: Some((1, 2)),
        notes,
        advice,
        details,
        charts: slowdowns.into_iter().chain(charts).collect(),
        flames,
        title,
    };
    compared::show(&a.output, origin, came, sheet)
}
