//! `varve run module.wasm --machine M --plan P`: a managed program on a modelled machine, once under each heap plan.

use super::so_far::SoFar;
use super::timeout::Timeout;
use super::{machine, phases, plan_table, plans, sandbox, wasm};
use crate::args::RunArgs;
use crate::ui::{self, Done, Failure, command_line, failed, of_run, print, wrong};
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use varve_machine::energy::Energy;
use varve_machine::model::nodes;
use varve_machine::{Bytes, Machine};
use varve_report::{Look, Origin, RunReport, fmt, table as terminal};
use varve_run::{
    End, Error, Keep, ManagedProgram, ManagedSpec, PlanResult, TrayOptions, VERSION,
    compare_managed,
};
use varve_runtime::Config;
use varve_runtime::sites::Profile;

pub fn run(a: &RunArgs, name: &str, config: Config, mut program: ManagedProgram) -> Done {
    let machine = machine::named(name)?;
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
    if let Some(asked) = a.heap_max {
        fits(asked, &machine)?;
    }
    let trays = match &a.trays {
        Some(_) if !colours => return Err(wrong(Error::NoTrays(machine.name))),
        Some(text) => TrayOptions::parse(text).map_err(wrong)?,
        None => TrayOptions::default(),
    };
    let input = input().map_err(|e| failed(format!("standard input: {e}")))?;
    program.input = input.into();
    let wanted = a.plan.as_deref().unwrap_or("all");
    let mut config = config;
    if colours && wanted == "all" && config.profile.is_none() {
        config.profile = Some(Arc::new(own_profile(&program, &config)?));
    }
    let plans = plans::list(wanted, config.profile.as_deref(), colours)?;
    plans::check_log(a.pima_log.is_some(), &plans)?;
    let spec = |plan: &String| ManagedSpec {
        config: config.clone(),
        plan: plan.clone(),
        page_bytes: a.page.map_or(4096, |Bytes(b)| b),
        instances: a.instances.unwrap_or(1),
        every: a.co_run,
        numa: a.numa.unwrap_or_default(),
        trays: trays.clone(),
        seed: a.seed,
        ..ManagedSpec::new(machine.clone(), "", program.clone())
    };
    let specs: Vec<ManagedSpec> = plans.iter().map(spec).collect();
    let log = a.pima_log.as_deref().map(phases::Log::open).transpose()?;
    let results = all(a, &specs);
    if let Some(mut log) = log {
        for (spec, result) in specs.iter().zip(&results) {
            let phases = match result {
                Ok(result) => &result.phases[..],
                Err(e) => e.left().map_or(&[][..], |left| &left.phases),
            };
            phases
                .iter()
                .for_each(|p| log.line(&format!("{} {p}", spec.plan)));
        }
    }
    let ended = ended_well(&specs, results);
    let (results, refused) = ended.inspect_err(|_| sandbox::tell(&specs[0].program, &[]))?;
    show(a, &specs[0], &results, refused)
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
    let profile = program
        .profile(config)
        .map_err(|e| wasm::of(&program.file, &e))?;
    eprintln!(
        "varve: profiled this run's own input for plans by allocation sites; `varve profile {} -o FILE.sites` on a smaller one, and \
         --profile FILE.sites, say what they do for inputs that were not profiled",
        program.file
    );
    Ok(profile)
}

/// Makes all runs; what is known of a plan is on the terminal as soon as its run has ended.
fn all(a: &RunArgs, specs: &[ManagedSpec]) -> Vec<Result<PlanResult, Error>> {
    // Before the first run has come far enough to ask for it.
    let stop = ui::stop_flag();
    let bar = ui::bar(specs.len() as u64, "plans");
    let so_far = Mutex::new(SoFar::new(specs.len()));
    let said = Mutex::new(false);
    let results = compare_managed(
        specs,
        ui::workers(a.jobs),
        &Keep::nothing(),
        &|i, progress| {
            let mut so_far = so_far.lock().expect("no holder panics");
            match progress {
                Some(p) => {
                    so_far.note(i, p.accesses, p.now_ns);
                    bar.set_message(message(specs, &so_far));
                }
                None => {
                    so_far.end(i);
                    bar.inc(1);
                }
            }
            !stop.load(Ordering::Relaxed)
        },
        &|_, result, end| {
            // The program's own output once: of whichever run ends first. One that shows its times prints others each time.
            let mut said = said.lock().expect("no holder panics");
            if let Some(end) = end.filter(|_| !std::mem::replace(&mut *said, true)) {
                bar.suspend(|| output(a, end));
                bar.suspend(|| wasm::unknown(a, end.unknown));
            }
            bar.println(format!(
                "{}: {} of the machine's time",
                result.plan,
                fmt::duration_ns(result.seconds * 1e9)
            ));
        },
    );
    bar.finish_and_clear();
    results
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
        Some((_, e)) => Err(failure(e)),
        None => {
            let line = |(spec, e): &(&ManagedSpec, Error)| format!("{}: {e}", spec.plan);
            Ok((done, errors.iter().map(line).collect()))
        }
    }
}

/// How the runs do that go on: the first one's time, or how many times that of the first one it is for as many accesses.
fn message(specs: &[ManagedSpec], so_far: &SoFar) -> String {
    let of = |i: usize| {
        let plan = &specs[i].plan;
        match so_far.beside_first(i).filter(|_| i > 0) {
            Some(ratio) => format!("{plan} {ratio:.2}x"),
            None => format!("{plan} {}", fmt::duration_ns(so_far.ns(i) as f64)),
        }
    };
    let runs: Vec<String> = so_far.going_on().map(of).collect();
    format!("{} so far", runs.join(", "))
}

fn output(a: &RunArgs, end: &End) {
    let _ = std::io::stderr().write_all(&end.err);
    if !a.json {
        ui::print_bytes(&end.out);
    }
}

fn failure(e: &Error) -> Failure {
    match e {
        Error::Managed { file, error, left } => {
            let _ = std::io::stderr().write_all(&left.err);
            wasm::of(file, error)
        }
        Error::Exit { code, left, .. } => {
            let _ = std::io::stderr().write_all(&left.err);
            // As everywhere, what does not fit a byte loses its upper bits.
            Failure::Line {
                code: *code as u8,
                line: e.to_string(),
            }
        }
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
fn show(a: &RunArgs, spec: &ManagedSpec, results: &[PlanResult], refused: Vec<String>) -> Done {
    let mut table = plan_table::of(spec, results);
    let refused = refused.iter().map(|line| format!("Not run: {line}"));
    table.notes.splice(0..0, refused);
    let report = RunReport {
        origin: Origin {
            machine: spec.machine.name.clone(),
            seed: a.seed,
            version: VERSION.into(),
            command: command_line(),
        },
        table,
        details: plan_table::details(results),
        charts: plan_table::charts(results),
        runs: results
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<_, _>>()
            .map_err(failed)?,
    };
    if a.json {
        print(report.to_json());
    } else {
        // What is looked at first stands last, above the prompt.
        for table in report.details.iter().chain([&report.table]) {
            print(terminal::runs(table, Look::stdout()));
        }
    }
    match &a.out {
        Some(folder) => ui::save(&report, folder).map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::SUCCESS),
    }
}
