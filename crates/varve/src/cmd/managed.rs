//! `varve run module.wasm --machine M --plan P`: a managed program on a modelled machine, once under each heap plan.

use super::{machine, phases, plans, wasm};
use crate::args::RunArgs;
use crate::ui::{self, Done, command_line, failed, of_run, print};
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use varve_machine::Bytes;
use varve_report::fmt::Format;
use varve_report::{Better, Column, Look, Origin, RunReport, RunTable, fmt, table as terminal};
use varve_run::{PlanResult, VERSION, fast_bytes, run_managed};
use varve_runtime::host::{Console, Input, Output};
use varve_runtime::{Config, Engine, Error, GcStats, Module, Store};

/// Within this factor two times count as equal.
const EQUAL: f64 = 1.03;

/// Bytes that a program wrote, in a place that outlives it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(|e| e.into_inner());
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How a program ended.
struct End {
    outcome: Result<ExitCode, Error>,
    stats: GcStats,
    out: Vec<u8>,
    err: Vec<u8>,
    /// Phases of a plan that samples, a line each.
    phases: Vec<String>,
    /// What the plan goes by and the program has not told.
    untold: Option<String>,
}

pub fn run(a: &RunArgs, file: &str, config: Config, bytes: &[u8]) -> Done {
    let machine = machine::named(&a.machine)?;
    let page = a.page.map_or(4096, |Bytes(b)| b);
    let plans = plans::list(a.plan.as_deref().unwrap_or("all"))?;
    plans::check_log(a.pima_log.is_some(), &plans)?;
    let mut log = a.pima_log.as_deref().map(phases::Log::open).transpose()?;
    let mut notes = Vec::new();
    let mut config = config;
    if config.fast_max.is_none() {
        config.fast_max = Some(fast_bytes(&machine, page).map_err(|e| of_run(&e))?);
    }
    let input = input().map_err(|e| failed(format!("standard input: {e}")))?;
    let bar = ui::bar(plans.len() as u64, "plans");
    let mut results = Vec::new();
    let mut printed: Option<Vec<u8>> = None;
    for plan in &plans {
        bar.set_message(plan.clone());
        let config = Config {
            plan: Some(plan.clone()),
            ..config.clone()
        };
        let mut watch = |p: &varve_machine::model::Progress| {
            bar.set_message(format!("{plan}: {} M accesses", p.accesses / 1_000_000));
            !ui::stopped()
        };
        let work = |sink| program(a, file, config, bytes, input.clone(), sink);
        let run = run_managed(&machine, page, a.seed, work, &mut watch);
        bar.inc(1);
        let run = run.map_err(|e| {
            bar.finish_and_clear();
            of_run(&e)
        })?;
        let end = run.result.as_ref().map_err(|e| wasm::of(file, e))?;
        if let Err(e) = &end.outcome {
            bar.finish_and_clear();
            let _ = std::io::stderr().write_all(&end.err);
            return Err(wasm::of(file, e));
        }
        // The program's own output once: that of the first run. A program that shows its times prints others each time.
        if printed.is_none() {
            bar.suspend(|| {
                let _ = std::io::stderr().write_all(&end.err);
                if !a.json {
                    ui::print_bytes(&end.out);
                }
            });
            printed = Some(end.out.clone());
        }
        if let Some(log) = &mut log {
            bar.suspend(|| {
                let lines = end.phases.iter();
                lines.for_each(|line| log.line(&format!("{plan}{line}")));
            });
        }
        notes.extend(end.untold.clone());
        let name = file.rsplit('/').next().unwrap_or(file);
        results.push(PlanResult::new(&machine.name, plan, name, &run, &end.stats));
    }
    bar.finish_and_clear();
    show(a, &machine.name, &results, notes)
}

/// What programs read: the same for each of them. A terminal gives nothing.
fn input() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Runs the program to its end, on its own thread.
fn program(
    a: &RunArgs,
    file: &str,
    config: Config,
    bytes: &[u8],
    input: Vec<u8>,
    sink: Box<dyn varve_runtime::Sink>,
) -> Result<End, Error> {
    let engine = Engine::new(config);
    let module = Module::new(&engine, bytes)?;
    let (out, err) = (Kept::default(), Kept::default());
    let console = Console {
        input: Input::new(Box::new(std::io::Cursor::new(input))),
        out: Output::new(Box::new(out.clone())),
        err: Output::new(Box::new(err.clone())),
    };
    let state = wasm::state(file, a, console)?;
    let mut store = Store::observed(&engine, state, sink)?;
    store.data_mut().clock = store.clock();
    let outcome = wasm::start(a, &mut store, &module);
    let told = store.tell();
    Ok(End {
        outcome: outcome.and_then(|code| told.map(|()| code)),
        stats: store.gc_stats().clone(),
        phases: phases::lines(&store),
        untold: store.untold(),
        out: out.take(),
        err: err.take(),
    })
}

/// Prints and writes what came out.
fn show(a: &RunArgs, machine: &str, results: &[PlanResult], notes: Vec<String>) -> Done {
    let mut table = table(machine, results);
    table.notes.extend(notes);
    table.notes.extend(advice(results));
    let report = RunReport {
        origin: Origin {
            machine: machine.into(),
            seed: a.seed,
            version: VERSION.into(),
            command: command_line(),
        },
        charts: Vec::new(),
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
    Ok(ExitCode::SUCCESS)
}

/// The run that others are compared with: all in DRAM, else the first.
fn base(results: &[PlanResult]) -> &PlanResult {
    let dram = results.iter().find(|r| r.plan == "dram");
    dram.unwrap_or(&results[0])
}

fn table(machine: &str, results: &[PlanResult]) -> RunTable {
    let base = base(results);
    let mut table = RunTable::new(format!("{} on {machine}", base.program), "plan");
    let relative = format!("/ {}", base.plan);
    table.columns = vec![
        Column::new("time", Format::DurationNs, Better::Lower),
        Column::new("time", Format::Number, Better::Lower).with_unit(relative),
        Column::new("DRAM", Format::Percent, Better::Lower),
        Column::new("GC", Format::Percent, Better::Lower),
        Column::new("p50", Format::DurationNs, Better::Lower),
        Column::new("max", Format::DurationNs, Better::Lower),
        Column::new("waiting", Format::Percent, Better::Lower),
        Column::new("slow writes", Format::Bytes, Better::Lower),
    ];
    for r in results {
        let s = &r.stalls;
        table.push(
            &r.plan,
            [
                (r.seconds * 1e9).into(),
                (r.seconds / base.seconds).into(),
                (100.0 * r.dram_share()).into(),
                (100.0 * r.gc_share).into(),
                (r.minor.p50_ns as f64).into(),
                (r.longest_pause_ns() as f64).into(),
                (100.0 * (s.load + s.store + s.fence + s.system)).into(),
                (r.slow_written_bytes as f64).into(),
            ],
        );
    }
    table.trade_off = (results.len() > 1).then_some((0, 2));
    table
}

/// Which plan to use, and what it saves.
fn advice(results: &[PlanResult]) -> Option<String> {
    let dram = results.iter().find(|r| r.plan == "dram")?;
    let near = results
        .iter()
        .filter(|r| r.plan != "dram" && r.seconds <= EQUAL * dram.seconds);
    let chosen = near.min_by(|a, b| a.fast_bytes.cmp(&b.fast_bytes));
    let percent = |share: f64| format!("{} %", fmt::significant(100.0 * share, 2));
    Some(match chosen {
        Some(r) if r.fast_bytes < dram.fast_bytes => format!(
            "Advice: use `{}`: {} of the DRAM that `dram` takes, and {} of its time.",
            r.plan,
            percent(r.fast_bytes as f64 / dram.fast_bytes as f64),
            percent(r.seconds / dram.seconds),
        ),
        _ if results.len() > 1 => format!(
            "Advice: stay with `dram`: no other plan of these takes less DRAM and at most {:.0} % more time.",
            100.0 * (EQUAL - 1.0)
        ),
        _ => return None,
    })
}
