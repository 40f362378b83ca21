//! `varve run module.wasm --machine M --plan P`: a managed program on a modelled machine, once under each heap plan.

use super::compared::{self, origin};
use super::plans;
use super::shares::{BASE, Shares};
use super::so_far::SoFar;
use super::timeout::Timeout;
use super::{memory_full, named, phases, plan_table, sandbox, wasm};
use crate::args::run::job::{ModelledObjects, Program};
use crate::args::run::objects::Fast;
use crate::args::run::region::Medium;
use crate::ui::{self, Done, Failure, failed, of_run, wrong};
use indicatif::ProgressBar;
use std::io::{IsTerminal, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use varve_machine::energy::Energy;
use varve_machine::model::{Progress, RunError, nodes};
use varve_machine::{Bytes, Machine};
use varve_report::{Chart, fmt};
use varve_run::{End, Error, Keep, ManagedProgram, ManagedSpec, PlanResult, TrayOptions, compare};
use varve_runtime::Config;
use varve_sites::Profile;

pub fn run(program: &Program, a: &ModelledObjects) -> Done {
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let objects = &a.objects;
    let mut config = wasm::settings(&a.engine, &a.region, &Medium::default())?;
    let mut program = wasm::managed(program, &a.engine, &a.sandbox)?;
    config.profile = wasm::profile(objects, &program.file, &program.bytes)?;
    let machine = named::machine(&a.model.machine_or(""))?;
    // Whoever tells the model of accesses is not to be stopped between two of them: the whole command ends.
    let _timeout = Timeout::begin(a.sandbox.timeout, &program.file);
    let colours = varve_run::has_one_memory(&machine);
    // What is wrong with the machine is said before the program runs, which it does for a profile.
    if colours && machine.dram.interleave_bytes.0 != 0 {
        return Err(wrong(Error::NoTiers(machine.name)));
    }
    if colours {
        Energy::during(&machine, 0.0, &[]).map_err(wrong)?;
    }
    if let Some(asked) = a.engine.heap_max {
        fits(asked, &machine)?;
    }
    let trays = match &a.trays.trays {
        Some(_) if !colours => return Err(wrong(Error::NoTrays(machine.name))),
        Some(text) => TrayOptions::parse(text).map_err(wrong)?,
        None => TrayOptions::default(),
    };
    let input = input().map_err(|e| failed(format!("standard input: {e}")))?;
    program.input = input.into();
    let wanted = objects.plans.plan.as_deref();
    if colours && wanted.unwrap_or("all") == "all" && config.profile.is_none() {
        config.profile = Some(Arc::new(own_profile(&program, &config)?));
    }
    let profile = config.profile.as_deref();
    let mut plans = match wanted {
        Some(plans) => plans::list(plans, profile, colours)?,
        None => plans::usual(profile, colours),
    };
    plans::check_log(objects.pima_log.is_some(), &plans)?;
    let mut share = None;
    match &objects.plans.fast {
        None => {}
        Some(Fast::Size(bytes)) => config.fast_max = Some(bytes.0),
        Some(Fast::Percent(shares)) => {
            // What the program takes is known from a run in fast memory alone, so that this one is the first.
            share = Some(Shares::new(plans, shares));
            plans = share.as_ref().map_or(Vec::new(), Shares::runs);
        }
    }
    let spec = |plan: &String| ManagedSpec {
        config: config.clone(),
        plan: plan.clone(),
        page_bytes: a.page.page.map_or(4096, |Bytes(b)| b),
        instances: a.instances.instances,
        every: a.instances.co_run,
        numa: a.instances.numa,
        trays: trays.clone(),
        seed: a.model.seed,
        ..ManagedSpec::new(machine.clone(), "", program.clone())
    };
    let mut specs: Vec<ManagedSpec> = plans.iter().map(spec).collect();
    let log = objects.pima_log.as_deref();
    let log = log.map(phases::Log::open).transpose()?;
    let names = match &share {
        None => plans,
        Some(shares) => shares.names(),
    };
    let runs = Runs::new(a, names);
    let (mut results, limit) = match &share {
        None => (runs.make(&specs, 0), None),
        Some(shares) => runs.within(&mut specs, shares),
    };
    for (result, name) in results.iter_mut().zip(&runs.plans) {
        if let Ok(result) = result {
            result.plan.clone_from(name);
        }
    }
    runs.bar.finish_and_clear();
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
    let ended = ended_well(&specs, results);
    let (results, refused) = ended.inspect_err(|_| sandbox::tell(&specs[0].program, &[]))?;
    let few = (wanted.is_none() && !colours).then(|| {
        let all = plans::list("all", specs[0].config.profile.as_deref(), colours);
        let all = all.map_or(0, |all| all.len());
        format!("These are the plans to begin with. `--plan all` compares {all}.")
    });
    let notes = limit.into_iter().chain(refused).chain(few);
    let chart = share.as_ref().and_then(|shares| {
        let base = results.iter().find(|r| r.plan == BASE)?;
        shares.chart(&base.program, |name| {
            let run = results.iter().find(|r| r.plan == name)?;
            Some(run.turnaround(base).mntt)
        })
    });
    show(a, &specs[0], &results, notes.collect(), chart)
}

/// Whether a heap that the user asked for fits into all memory of the machine.
fn fits(asked: Bytes, machine: &Machine) -> Result<(), Failure> {
    let all: u64 = nodes(machine).iter().map(|n| n.bytes).sum();
    if asked.0 <= all {
        return Ok(());
    }
    Err(wrong(format!(
        "--heap-max {asked} is more than the {} of memory that `{}` has: give it less, or take a larger machine",
        Bytes(all),
        machine.name
    )))
}

/// A profile for plans by allocation sites where none was given: of this very run. Better than leaving such plans out, and said.
fn own_profile(program: &ManagedProgram, config: &Config) -> Result<Profile, Failure> {
    let config = Config {
        background: false,
        ..config.clone()
    };
    let bar = ui::spinner("profiling");
    let profile = program.profile(config);
    bar.finish_and_clear();
    let profile = profile.map_err(|e| wasm::of(&program.file, &e))?;
    eprintln!(
        "varve: profiled this run's own input for plans by allocation sites; `varve profile {} -o FILE.sites` on a smaller one, and \
         --profile FILE.sites, say what they do for inputs that were not profiled",
        program.file
    );
    Ok(profile)
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

    /// Makes the first run, and then the others with shares of the memory that it took as fast memory; and says what they came to.
    fn within(
        &self,
        specs: &mut [ManagedSpec],
        shares: &Shares,
    ) -> (Vec<Result<PlanResult, Error>>, Option<String>) {
        let mut results = self.make(&specs[..1], 0);
        let [Ok(base)] = &results[..] else {
            return (results, None);
        };
        let note = shares.note(base.instances, base.most_bytes);
        for (spec, limit) in specs[1..].iter_mut().zip(shares.limits(base.most_bytes)) {
            spec.config.fast_max = Some(limit);
        }
        results.extend(self.make(&specs[1..], 1));
        (results, Some(note))
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

/// What came out; why plans did not run comes as lines, if others did.
fn ended_well(
    specs: &[ManagedSpec],
    results: Vec<Result<PlanResult, Error>>,
) -> Result<(Vec<PlanResult>, Vec<String>), Failure> {
    let (mut done, mut errors) = (Vec::new(), Vec::new());
    for (spec, result) in specs.iter().zip(results) {
        match result {
            Ok(result) => done.push(result),
            Err(e) => errors.push((spec, e)),
        }
    }
    let interrupt = errors.iter().find(|(_, e)| e.is_interrupt());
    match interrupt.or(errors.first().filter(|_| done.is_empty())) {
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
    let pictures = (plan_table::details(results), charts.collect());
    let origin = origin(&spec.machine.name, a.model.seed);
    compared::show(&a.output, origin, table, pictures, results)
}
