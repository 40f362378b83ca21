//! `varve run`: one program, one machine, some page policies.

use super::{advice, files, live, machine, table, wasm};
use crate::args::{DEFAULT_MACHINE, RunArgs};
use crate::ui::{self, Done, Failure, failed, of_run, print, wrong};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use varve_machine::{Bytes, Machine};
use varve_report::{Look, RunReport, table as terminal};
use varve_run::{Keep, RunResult, RunSpec, Work, compare, policies_for};
use varve_trace::TraceInfo;
use varve_trace::host::{Recorder, RecorderOptions};

/// Scale of a workload when none is given: a 48 GB cache becomes 768 MB, a minute becomes a second.
const WORKLOAD_SCALE: u32 = 64;
/// First distance of two points on the timeline, ns of the machine; it grows with the run.
const POINT_NS: u64 = 10_000;

pub fn run(a: &RunArgs) -> Done {
    if let Some(folder) = &a.out {
        ui::can_hold_results(folder, "--out")?;
    }
    if let Some(file) = a.work.as_deref().filter(|w| wasm::is_wasm(w)) {
        return wasm::run(a, file);
    }
    if let Some(option) = of_programs(a) {
        return Err(wrong(format!(
            "{option} is for WebAssembly programs, and this is none: leave it out"
        )));
    }
    if a.live {
        return live::run(a);
    }
    let machine_name = a.machine.as_deref().unwrap_or(DEFAULT_MACHINE);
    let machine = machine::named(machine_name)?;
    if machine_name == "here" {
        eprintln!(
            "varve: note: probed anew each time; `varve machine show here --toml > here.toml` keeps it"
        );
    }
    let stop = ui::stop_flag();
    let work = match &a.work {
        Some(text) => Work::parse(text).map_err(|e| not_work(text, &e))?,
        None => Work::Command(
            a.command
                .iter()
                .map(|w| w.to_string_lossy().into_owned())
                .collect(),
        ),
    };
    let name = work.name();
    // A command is recorded once and replayed under each policy, so that all policies see the same run of it; under
    // a single policy it runs on the model as it goes.
    let kept;
    let work = match &work {
        Work::Command(_) if a.policy == "all" || varve_run::policy_list(&a.policy).len() > 1 => {
            kept = record(a)?;
            Work::Trace(kept.0.clone())
        }
        _ => work,
    };
    let (scale, page) = sizes(a, &machine, &work)?;
    if !scale.is_power_of_two() {
        return Err(wrong(varve_run::Error::Scale(scale)));
    }
    let mut spec = RunSpec::new(machine, "", work);
    (spec.scale, spec.page_bytes, spec.seed, spec.cores) = (scale, page, a.seed, a.cores);
    spec.point_ns = POINT_NS
        * if matches!(spec.work, Work::Workload(_)) {
            scale as u64
        } else {
            1
        };
    spec.until_ns = a.until.map(|s| (s * 1e9) as u64);
    let scaled_page = if matches!(spec.work, Work::Workload(_)) {
        page / scale as u64
    } else {
        page
    };
    let policies = policies_for(
        &a.policy,
        &spec.machine.scaled(scale),
        scaled_page.max(4096),
    )
    .map_err(wrong)?;

    if let Work::Command(_) = spec.work {
        spec.policy = policies[0].clone();
        return one_live(a, &spec);
    }
    let specs: Vec<RunSpec> = policies
        .iter()
        .map(|p| RunSpec {
            policy: p.clone(),
            ..spec.clone()
        })
        .collect();
    let bar = ui::bar(specs.len() as u64, "runs");
    let latest = Mutex::new(vec![0u64; specs.len()]);
    let results = compare(
        &specs,
        ui::workers(a.jobs),
        &Keep::nothing(),
        &|i, progress| {
            match progress {
                Some(p) => {
                    let mut latest = latest.lock().expect("no holder panics");
                    latest[i] = p.accesses;
                    let all: u64 = latest.iter().sum();
                    bar.set_message(format!("{} M accesses", all / 1_000_000));
                }
                None => bar.inc(1),
            }
            !stop.load(std::sync::atomic::Ordering::Relaxed)
        },
    );
    bar.finish_and_clear();
    let mut done = Vec::new();
    let mut refused = Vec::new();
    for (spec, result) in specs.iter().zip(results) {
        match result {
            Ok(r) => done.push(r),
            Err(e) if e.is_interrupt() => return Err(of_run(&e)),
            Err(e) => refused.push((spec.policy.clone(), e)),
        }
    }
    if done.is_empty() {
        return Err(all_refused(&refused));
    }
    let refused: Vec<String> = refused
        .iter()
        .map(|(policy, e)| format!("{policy}: {e}"))
        .collect();
    show(a, &spec, &name, &done, &refused)
}

/// No run ended well. What all say alike is said once.
fn all_refused(refused: &[(String, varve_run::Error)]) -> Failure {
    let alike = refused
        .iter()
        .all(|(_, e)| e.to_string() == refused[0].1.to_string());
    let line = match refused {
        [(_, e), ..] if alike => e.to_string(),
        all => all
            .iter()
            .map(|(policy, e)| format!("{policy}: {e}"))
            .collect::<Vec<_>>()
            .join("\nvarve: "),
    };
    let input = refused
        .iter()
        .all(|(_, e)| !matches!(e, varve_run::Error::Run(_)));
    if input { wrong(line) } else { failed(line) }
}

/// Prints and writes what came out.
fn show(
    a: &RunArgs,
    spec: &RunSpec,
    name: &str,
    results: &[RunResult],
    refused: &[String],
) -> Done {
    let mut table = table::of(spec, name, results);
    if let Some(w) = results.iter().find_map(|r| r.warning.as_ref()) {
        table.notes.push(format!("Note: {w}"));
    }
    table
        .notes
        .extend(refused.iter().map(|line| format!("Not run: {line}")));
    table.notes.extend(advice::advice(results));
    let report = RunReport {
        origin: table::origin(spec),
        charts: table::charts(results),
        details: Vec::new(),
        table,
        runs: results
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<_, _>>()
            .map_err(failed)?,
    };
    if a.json {
        print(report.to_json());
    } else {
        print(terminal::runs(&report.table, Look::stdout()));
    }
    match &a.out {
        Some(folder) => ui::save(&report, folder).map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// An option that only managed programs have, if one was given.
fn of_programs(a: &RunArgs) -> Option<&'static str> {
    let given = [
        ("--invoke", a.invoke.is_some()),
        ("--heap-max", a.heap_max.is_some()),
        ("--nursery", a.nursery.is_some()),
        ("--nursery-max", a.nursery_max.is_some()),
        ("--fast-max", a.fast_max.is_some()),
        ("--plan", a.plan.is_some()),
        ("--profile", a.profile.is_some()),
        ("--instances", a.instances.is_some()),
        ("--numa", a.numa.is_some()),
        ("--trays", a.trays.is_some()),
        ("--tier", a.tier.is_some()),
        ("--gc-log", a.gc_log.is_some()),
        ("--gc-stats", a.gc_stats),
        ("--pima-log", a.pima_log.is_some()),
        ("--durable", a.durable.durable.is_some()),
        ("--checks", a.durable.checks.is_some()),
        ("--check-stats", a.durable.check_stats),
    ];
    let given = given.iter().find(|g| g.1).map(|g| g.0);
    given.or(a.sandbox.given())
}

/// Records the command into a file that vanishes with the guard.
fn record(a: &RunArgs) -> Result<(std::path::PathBuf, Scratch), Failure> {
    let recorder = Recorder::start(&a.command, RecorderOptions::default()).map_err(wrong)?;
    for line in recorder.warnings() {
        eprintln!("varve: note: {line}");
    }
    let path = std::env::temp_dir().join(format!("varve-{}.trace", std::process::id()));
    let guard = Scratch(path.clone());
    let end = recorder.record_to(&path).map_err(failed)?;
    if ui::stopped() {
        return Err(ui::interrupted());
    }
    if let Some(line) = super::trace::ended(&end) {
        eprintln!("varve: note: {line}");
    }
    Ok((path, guard))
}

/// A file that is removed whatever happens.
struct Scratch(std::path::PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A command on the model as it runs.
fn one_live(a: &RunArgs, spec: &RunSpec) -> Done {
    let recorder = Recorder::start(&a.command, RecorderOptions::default()).map_err(wrong)?;
    for line in recorder.warnings() {
        eprintln!("varve: note: {line}");
    }
    let mut program = recorder.live();
    let result = varve_run::run_program(spec, &mut program, &mut |_| !ui::stopped())
        .map_err(|e| of_run(&e))?;
    show(a, spec, &spec.work.name(), &[result], &[])
}

/// Scale and page size: what was asked for, or what suits the work.
fn sizes(a: &RunArgs, machine: &Machine, work: &Work) -> Result<(u32, u64), Failure> {
    let page = |default: u64| a.page.map_or(default, |Bytes(b)| b);
    match work {
        Work::Workload(_) => Ok((a.scale.unwrap_or(WORKLOAD_SCALE), page(2 << 20))),
        Work::Command(_) => Ok((a.scale.unwrap_or(1), page(4096))),
        Work::Trace(path) => {
            let scale = match a.scale {
                Some(s) => files::open_trace(path).map(|_| s)?,
                None => fitting_scale(machine, path)?,
            };
            Ok((scale, page(4096)))
        }
    }
}

/// The power of two that makes the machine's fast memory about half of a trace's footprint: small enough that
/// placement matters, as when a full-size program fills a full-size machine.
fn fitting_scale(machine: &Machine, path: &Path) -> Result<u32, Failure> {
    let reader = files::open_trace(path)?;
    let footprint = TraceInfo::read(&reader)
        .map_err(|e| files::of_trace(&e))?
        .footprint_bytes()
        .max(1);
    let fast = machine
        .dram_cache
        .as_ref()
        .map_or(machine.dram_bytes(), |c| c.bytes.0);
    let wanted = (2.0 * fast as f64 / footprint as f64).log2().round();
    Ok(1 << (wanted.clamp(0.0, 16.0) as u32))
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
    wrong(format!("{e}; for a command write `varve run -- COMMAND`"))
}
