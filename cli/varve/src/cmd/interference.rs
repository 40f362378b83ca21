//! `varve machine interference`: what programs do to one another's bandwidth.

use crate::ui::{self, Done, Failure, failed, print, wrong};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;
use varve_jobs::compare::Making;
use varve_jobs::interference::{Matrix, THREADS, here, on_model};
use varve_jobs::live::LiveHost;
use varve_jobs::{Error, Memory};
use varve_report::fmt::Format;
use varve_report::{Better, Column, Look, Origin, RunReport, RunTable, Value, plot, table};
use varve_run::{Keep, VERSION};

/// A pair on this machine is measured for so long.
const TIME: Duration = Duration::from_millis(120);

pub fn interference(
    machine: &str,
    quick: bool,
    nodes: Option<&str>,
    out: Option<&Path>,
    jobs: usize,
    json: bool,
) -> Done {
    let threads: &[u32] = if quick { &[1, 10] } else { &THREADS };
    let (matrix, notes) = match machine {
        "here" => live(threads, nodes)?,
        _ if nodes.is_some() => return Err(wrong("--nodes goes with `here`")),
        name => (modelled(name, threads, jobs)?, Vec::new()),
    };
    let chart = matrix.chart();
    let mut report = RunReport {
        origin: Origin {
            machine: matrix.machine.clone(),
            seed: 1,
            version: VERSION.into(),
            command: ui::command_line(),
        },
        table: worst(&matrix),
        charts: vec![chart],
        ..RunReport::default()
    };
    report.table.notes.extend(notes);
    if let Some(folder) = out {
        ui::save(&report, folder)?;
    }
    if json {
        let all = json!({"version": VERSION, "notes": report.table.notes, "matrix": matrix});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(text) = plot::heat(&report.charts[0], Look::stdout()) {
        print(text);
    }
    print(table::runs(&report.table, Look::stdout()));
    Ok(ExitCode::SUCCESS)
}

fn modelled(name: &str, threads: &[u32], jobs: usize) -> Result<Matrix, Failure> {
    let machine = varve_tier::machine(name).map_err(wrong)?;
    let bar = ui::bar(0, "pairs");
    let stop = ui::stop_flag();
    let matrix = on_model(
        &machine,
        threads,
        &Making {
            workers: ui::workers(jobs),
            keep: &Keep::nothing(),
            watch: &|done, all, what| {
                bar.set_length(all as u64);
                bar.set_position(done as u64);
                bar.set_message(what.to_string());
                !stop.load(Ordering::Relaxed)
            },
        },
    );
    bar.finish_and_clear();
    matrix.map_err(|e| failure(&e))
}

/// On this machine, and what it lacks.
fn live(threads: &[u32], nodes: Option<&str>) -> Result<(Matrix, Vec<String>), Failure> {
    let live = LiveHost::new(nodes).map_err(wrong)?;
    let cores = live.cpus.len() as u32;
    let most = cores / 2;
    if most == 0 {
        return Err(failed("one processor cannot run two programs at once"));
    }
    let mut notes = Vec::new();
    let mut counts: Vec<u32> = threads.iter().copied().filter(|&t| t <= most).collect();
    if counts.len() < threads.len() {
        counts.push(most);
        counts.dedup();
        notes.push(format!(
            "{cores} processors: up to {most} threads beside as many"
        ));
    }
    let first = |m: Memory| live.nodes(m).and_then(|n| n.first().copied());
    let places: Vec<(Memory, u32)> = match (first(Memory::Fast), first(Memory::Slow)) {
        (Some(fast), Some(slow)) => vec![(Memory::Fast, fast), (Memory::Slow, slow)],
        _ => {
            notes
                .push("all memory is alike here: programs disturb each other in one memory".into());
            vec![(Memory::Fast, 0)]
        }
    };
    let bar = ui::bar(0, "pairs");
    let stop = ui::stop_flag();
    let matrix = here(
        &places,
        &live.cpus,
        &counts,
        TIME,
        &mut |done, all, what| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
            bar.set_message(what.to_string());
            !stop.load(Ordering::Relaxed)
        },
    );
    bar.finish_and_clear();
    Ok((matrix.map_err(|e| failure(&e))?, notes))
}

fn failure(e: &Error) -> Failure {
    match e {
        e if e.is_interrupt() => ui::interrupted(),
        Error::Live(_) => failed(e),
        e => wrong(e),
    }
}

/// Each mode alone, and what takes the most from it.
fn worst(matrix: &Matrix) -> RunTable {
    let title = format!("Bandwidth alone and at worst on {}", matrix.machine);
    let mut out = RunTable::new(title, "program");
    out.columns = vec![
        Column::new("alone", Format::BytesPerSecond, Better::Neither),
        Column::new("at worst", Format::BytesPerSecond, Better::Neither),
        Column::new("lost", Format::Percent, Better::Neither),
        Column::new("beside", Format::Number, Better::Neither),
    ];
    for (i, mode) in matrix.modes.iter().enumerate() {
        let losses = (0..matrix.modes.len()).filter_map(|j| Some((matrix.loss(i, j)?, j)));
        let Some((lost, j)) = losses.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            continue;
        };
        let with = matrix.beside[i][j].map_or(Value::Missing, |g| (g * 1e9).into());
        out.push(
            mode.name(),
            [
                (matrix.alone[i] * 1e9).into(),
                with,
                lost.into(),
                matrix.modes[j].name().into(),
            ],
        );
    }
    out.notes
        .push("SR, RR: sequential and random reads; SW, RW: writes; memory; threads".into());
    out
}
