//! `varve run module.wasm --machine M --plan P`: a managed program on a modelled machine, once under each heap plan.

use super::compared::{self, origin};
use super::plans;
use super::shares::{self, BASE};
use super::timeout::Timeout;
use super::{memory_full, phases, pictures, plan_table, sandbox, wasm};
use crate::args::run::job::{ModelledObjects, Program};
use crate::args::run::region::Medium;
use crate::ui::{self, Done, Failure, failed, of_run, wrong};
use indicatif::ProgressBar;
use std::io::{IsTerminal, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use varve_machine::Bytes;
use varve_machine::model::{Progress, RunError};
use varve_report::{Chart, fmt};
use varve_run::request::{ObjectsRequest, SoFar, machine};
use varve_run::{End, Error, Keep, ManagedSpec, PlanResult, compare};

pub fn run(program: &Program, a: &ModelledObjects) -> Done {
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let objects = &a.objects;
    let mut config = wasm::settings(&a.engine, &a.region, &Medium::default())?;
    let program = wasm::managed(program, &a.engine, &a.sandbox)?;
    config.profile = wasm::profile(objects, &program.file, &program.bytes)?;
    config.slower = a.instances.slower;
    let machine = machine(&a.model.machine_or("")).map_err(wrong)?;
    // Whoever tells the model of accesses is not to be stopped between two of them: the whole command ends.
    let _timeout = Timeout::begin(a.sandbox.timeout, &program.file);
    let wanted = objects.plans.plan.as_deref();
    let mut request = ObjectsRequest {
        config,
        heap_max: a.engine.heap_max,
        plans: wanted.map(String::from),
        fast: objects.plans.fast.clone(),
        page_bytes: a.page.page.map(|Bytes(b)| b),
        instances: a.instances.instances,
        every: a.instances.co_run,
        numa: a.instances.numa,
        trays: a.trays.trays.clone(),
        seed: a.model.seed,
        pictures: a.output.out.is_some(),
        ..ObjectsRequest::new(machine, program)
    };
    // What is wrong with the machine is said before the program runs, which it does for a profile.
    request.check().map_err(wrong)?;
    let input = input().map_err(|e| failed(format!("standard input: {e}")))?;
    request.program.input = input.into();
    if request.wants_profile() {
        own_profile(&mut request)?;
    }
    let colours = request.colours();
    let mut asked = request.runs().map_err(wrong)?;
    plans::check_log(objects.pima_log.is_some(), &request.plans().map_err(wrong)?)?;
    let log = objects.pima_log.as_deref();
    let log = log.map(phases::Log::open).transpose()?;
    let runs = Runs::new(a, asked.names.clone());
    let results = asked.make(|specs, from| runs.make(specs, from));
    runs.bar.finish_and_clear();
    let base = asked.base(&results);
    let limit = asked.shares.as_ref().zip(base);
    let limit = limit.map(|(shares, base)| shares::note(shares, base.instances, base.most_bytes));
    let specs = &asked.specs;
    if let Some(mut log) = log {
        for (spec, result) in specs.iter().zip(&results) {
            let phases = match result {
                Ok(result) => &result.phases[..],
                Err(e) => e.log().map_or(&[][..], |log| &log.phases),
            };
            phases
                .iter()
                .for_each(|p| log.line(&format!("{} {p}", spec.plan)));
        }
    }
    let ended = ended_well(specs, results, &request.plans().map_err(wrong)?);
    let (results, refused) = ended.inspect_err(|_| sandbox::tell(&specs[0].program, &[]))?;
    let few = (wanted.is_none() && !colours).then(|| {
        let all = plans::list("all", specs[0].config.profile.as_deref(), colours);
        let all = all.map_or(0, |all| all.len());
        format!("These are the plans to begin with. `--plan all` compares {all}.")
    });
    let notes = limit.into_iter().chain(refused).chain(few);
    let chart = asked.shares.as_ref().and_then(|of| {
        let base = results.iter().find(|r| r.plan == BASE)?;
        shares::chart(of, &base.program, |name| {
            let run = results.iter().find(|r| r.plan == name)?;
            Some(run.turnaround(base).mntt)
        })
    });
    show(a, &specs[0], &results, notes.collect(), chart)
}

/// A profile for plans by allocation sites where none was given: of this very run. Better than leaving such plans out, and said.
fn own_profile(request: &mut ObjectsRequest) -> Result<(), Failure> {
    let bar = ui::spinner("profiling");
    let profiled = request.profile();
    bar.finish_and_clear();
    let file = &request.program.file;
    profiled.map_err(|e| wasm::of(file, &e))?;
    eprintln!(
        "varve: profiled this run's own input for plans by allocation sites; `varve profile {file} -o FILE.sites` on a smaller one, and \
         --profile FILE.sites, say what they do for inputs that were not profiled"
    );
    Ok(())
}

/// Runs under several plans; what is known of a plan is on the terminal as soon as its run has ended.
struct Runs<'a> {
    a: &'a ModelledObjects,
    plans: Vec<String>,
    bar: ProgressBar,
    done: ui::WorkDone,
    so_far: Mutex<SoFar>,
    /// Whether the program's output was shown.
    said: Mutex<bool>,
}

impl Runs<'_> {
    fn new(a: &ModelledObjects, plans: Vec<String>) -> Runs<'_> {
        let done = ui::WorkDone::default();
        Runs {
            a,
            bar: ui::bar_of(plans.len() as u64, "plans", done.clone()),
            done,
            so_far: Mutex::new(SoFar::new(plans.len())),
            said: Mutex::new(false),
            plans,
        }
    }

    /// Makes runs, of which the first is number `from` of all.
    fn make(&self, specs: &[ManagedSpec], from: usize) -> Vec<Result<PlanResult, Error>> {
        // Before the first run has come far enough to ask for it.
        let stop = ui::stop_flag();
        compare(
            specs,
            ui::workers(self.a.model.jobs),
            &Keep::nothing(),
            &|i, progress| {
                self.note(from + i, progress);
                !stop.load(Ordering::Relaxed)
            },
            &|_, result, end| self.ended(result, end),
        )
    }

    fn note(&self, i: usize, progress: Option<&Progress>) {
        let mut so_far = self.so_far.lock().expect("no holder panics");
        match progress {
            Some(p) => {
                so_far.note(i, p.accesses, p.now_ns);
                self.bar.set_message(message(&self.plans, &so_far));
            }
            None => {
                so_far.end(i);
                self.bar.inc(1);
            }
        }
        self.done.note(so_far.share(None), self.bar.elapsed());
    }

    fn ended(&self, result: &PlanResult, end: Option<&End>) {
        // The program's own output once: of whichever run ends first. One that shows its times prints others each time.
        let mut said = self.said.lock().expect("no holder panics");
        if let Some(end) = end.filter(|_| !std::mem::replace(&mut *said, true)) {
            self.bar.suspend(|| output(self.a, end));
            self.bar
                .suspend(|| wasm::unknown(&self.a.objects, end.unknown));
        }
        self.bar.println(format!(
            "{}: {} of the machine's time",
            result.plan,
            fmt::duration_ns(result.seconds * 1e9)
        ));
    }
}

/// What came out; why plans did not run comes as lines, if others of those that were asked for did.
fn ended_well(
    specs: &[ManagedSpec],
    results: Vec<Result<PlanResult, Error>>,
    asked: &[String],
) -> Result<(Vec<PlanResult>, Vec<String>), Failure> {
    let (mut done, mut errors) = (Vec::new(), Vec::new());
    // What the others are compared with is no answer by itself.
    let mut answered = false;
    for (spec, result) in specs.iter().zip(results) {
        match result {
            Ok(result) => {
                answered |= asked.contains(&spec.plan);
                done.push(result);
            }
            Err(e) => errors.push((spec, e)),
        }
    }
    let interrupt = errors.iter().find(|(_, e)| e.is_interrupt());
    match interrupt.or(errors.first().filter(|_| !answered)) {
        Some((spec, e)) => Err(failure(spec, e)),
        None => {
            let line = |(spec, e): &(&ManagedSpec, Error)| {
                format!(
                    "Not run: {}: {}",
                    spec.plan,
                    memory_full::of_objects(spec, e)
                )
            };
            Ok((done, errors.iter().map(line).collect()))
        }
    }
}

/// How the runs do that go on: the first one's time, or how many times that of the first one it is for as many accesses.
fn message(plans: &[String], so_far: &SoFar) -> String {
    let of = |i: usize| {
        let plan = &plans[i];
        match so_far.beside_first(i).filter(|_| i > 0) {
            Some(ratio) => format!("{plan} {ratio:.2}x"),
            None => format!("{plan} {}", fmt::duration_ns(so_far.ns(i) as f64)),
        }
    };
    let runs: Vec<String> = so_far.going_on().map(of).collect();
    format!("{} so far", runs.join(", "))
}

fn output(a: &ModelledObjects, end: &End) {
    let _ = std::io::stderr().write_all(&end.err);
    if !a.output.json.json {
        ui::print_bytes(&end.out);
    }
}

fn failure(spec: &ManagedSpec, e: &Error) -> Failure {
    match e {
        Error::Managed { file, error, log } => {
            let _ = std::io::stderr().write_all(&log.err);
            wasm::of(file, error)
        }
        Error::Exit { code, log, .. } => {
            let _ = std::io::stderr().write_all(&log.err);
            // As everywhere, what does not fit a byte loses its upper bits.
            Failure::Line {
                code: *code as u8,
                line: e.to_string(),
            }
        }
        Error::Run(RunError::OutOfFrames(_)) => failed(memory_full::of_objects(spec, e)),
        e => of_run(e),
    }
}

/// What programs read: the same for each of them. A terminal gives nothing.
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
    spec: &ManagedSpec,
    results: &[PlanResult],
    notes: Vec<String>,
    chart: Option<Chart>,
) -> Done {
    let mut table = plan_table::of(spec, results);
    table.notes.splice(0..0, notes);
    let charts = chart.into_iter().chain(plan_table::charts(results));
    let charts = (plan_table::details(results), charts.collect());
    let runs = pictures::runs(results, |r| &r.plan, |r| &r.seen);
    let title = &table.title;
    let drawn = pictures::of(title, &runs, pictures::waits(title, &runs, (BASE, "slow")));
    let origin = origin(&spec.machine.name, a.model.seed);
    compared::show(&a.output, origin, table, charts, results, drawn)
}
