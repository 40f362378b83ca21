//! `varve ycsb`: the workloads of YCSB on stores in this process, or on a server.

use super::durable;
use crate::args::YcsbArgs;
use crate::ui::{self, Done, Failure, failed, print, wrong};
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;
use varve_report::fmt::Format;
use varve_report::{Better, Column, Look, RunTable, table};
use varve_runtime::Config;
use varve_serve::ycsb::{self, Local, Remote, Report, Spec, Workload};
use varve_serve::{Cache, Kind, Limits, Managed, OVERHEAD};

/// Most requests that one connection sends before it reads answers: more than sockets buffer would wait for each other for ever.
const MOST_PIPELINED: u64 = 256;

pub fn ycsb(a: &YcsbArgs) -> Done {
    check(a)?;
    let workloads = match a.workloads.as_slice() {
        [] => &Workload::ALL[..],
        some => some,
    };
    let mut results = Vec::new();
    match a.server {
        Some(address) => {
            for &workload in workloads {
                let report = remote(a, &spec(a, workload), address);
                let report = report.map_err(|e| failed(format!("workload {workload}: {e}")))?;
                results.push((address.to_string(), workload, report));
            }
        }
        None => {
            let kinds = match a.store.as_slice() {
                [] => &Kind::ALL[..],
                some => some,
            };
            for &kind in kinds {
                for &workload in workloads {
                    let report = local(a, &spec(a, workload), kind);
                    if let Some(file) = &a.durable.durable {
                        // It was there for the run alone.
                        let _ = std::fs::remove_file(file);
                    }
                    let report = report?;
                    results.push((kind.to_string(), workload, report));
                    if ui::stopped() {
                        return Err(ui::interrupted());
                    }
                }
            }
        }
    }
    show(a, &results);
    Ok(ExitCode::SUCCESS)
}

fn check(a: &YcsbArgs) -> Result<(), Failure> {
    if let (Some(_), Some(file)) = (a.server, &a.durable.durable) {
        return Err(wrong(format!(
            "--durable {}: with --server, the server decides whether values survive: leave it out",
            file.display()
        )));
    }
    if let Some(file) = a.durable.durable.as_ref().filter(|f| f.exists()) {
        return Err(wrong(format!(
            "{}: exists, and each run begins with a file of its own: choose another name, or remove it",
            file.display()
        )));
    }
    if a.records < 2 || a.operations == 0 || a.connections == 0 || a.value.0 == 0 {
        return Err(wrong(
            "2 records, 1 operation, 1 connection and 1 byte are the least",
        ));
    }
    if !(1..=MOST_PIPELINED).contains(&a.pipeline) {
        return Err(wrong(format!(
            "--pipeline {}: from 1 to {MOST_PIPELINED} is possible",
            a.pipeline
        )));
    }
    if a.value.0 > 1 << 20 {
        return Err(wrong(format!("--value {}: 1MiB is the most", a.value)));
    }
    Ok(())
}

fn spec(a: &YcsbArgs, workload: Workload) -> Spec {
    Spec {
        workload,
        records: a.records,
        operations: a.operations,
        value: a.value.0 as usize,
        seed: a.seed,
    }
}

/// A fresh store, filled and driven.
fn local(a: &YcsbArgs, spec: &Spec, kind: Kind) -> Result<Report, Failure> {
    let records = spec.records + spec.operations;
    let memory = records * (spec.value as u64 + OVERHEAD + 32);
    let mut config = Config {
        heap_max: memory + memory / 2 + (128 << 20),
        ..Config::default()
    };
    let (region, medium) = a.durable.of_run();
    durable::configure(&region, &medium, &mut config)?;
    let limits = Limits {
        value: spec.value,
        memory,
    };
    let of = |e: &dyn std::fmt::Display| failed(format!("{kind}, workload {}: {e}", spec.workload));
    let store = Managed::new(kind, config).map_err(|e| of(&e))?;
    let cache = Cache::new(store, limits, varve_serve::seconds()).map_err(|e| of(&e))?;
    let mut target = Local::new(cache);
    ycsb::load(spec, &mut target).map_err(|e| of(&e))?;
    ycsb::run(spec, &mut target).map_err(|e| of(&e))
}

/// A server, filled over one connection and driven over some. Each has its share of the operations.
fn remote(a: &YcsbArgs, spec: &Spec, address: SocketAddr) -> io::Result<Report> {
    Remote::connect(address)?.load(spec)?;
    let mut connections = Vec::new();
    for i in 0..a.connections {
        let share = Spec {
            operations: a.operations / a.connections + u64::from(i < a.operations % a.connections),
            seed: a.seed.wrapping_add(i),
            ..*spec
        };
        connections.push((Remote::connect(address)?, share));
    }
    let since = Instant::now();
    let reports = std::thread::scope(|scope| {
        let running: Vec<_> = connections
            .iter_mut()
            .map(|(connection, share)| scope.spawn(move || connection.run(share, a.pipeline)))
            .collect();
        running
            .into_iter()
            .map(|run| {
                run.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect::<io::Result<Vec<Report>>>()
    })?;
    Ok(Report::together(reports, since.elapsed()))
}

fn show(a: &YcsbArgs, results: &[(String, Workload, Report)]) {
    const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 100.0];
    let nanoseconds = |r: &Report, percent| r.percentile(percent).as_nanos() as f64;
    if a.json {
        let all: Vec<_> = results
            .iter()
            .map(|(target, workload, r)| {
                json!({
                    "target": target,
                    "workload": workload.to_string(),
                    "records": a.records,
                    "operations": r.operations,
                    "missed": r.missed,
                    "seconds": r.elapsed.as_secs_f64(),
                    "operations_per_second": r.rate(),
                    "p50_ns": nanoseconds(r, 50.0),
                    "p95_ns": nanoseconds(r, 95.0),
                    "p99_ns": nanoseconds(r, 99.0),
                    "longest_ns": nanoseconds(r, 100.0),
                })
            })
            .collect();
        return print(serde_json::Value::from(all));
    }
    let title = format!("{} records of {}", a.records, a.value);
    let mut out = RunTable::new(title, "store, workload");
    let throughput = Column::new("operations", Format::PerSecond, Better::Neither);
    out.columns.push(throughput.with_unit("op"));
    for name in ["half within", "95 %", "99 %", "longest"] {
        let column = Column::new(name, Format::DurationNs, Better::Neither);
        out.columns.push(column);
    }
    for (target, workload, r) in results {
        let mut values = vec![r.rate().into()];
        values.extend(PERCENTILES.map(|p| nanoseconds(r, p).into()));
        out.push(format!("{target} {workload}"), values);
        if r.missed > 0 {
            out.notes.push(format!(
                "{target}, workload {workload}: {} reads found nothing",
                r.missed
            ));
        }
    }
    print(table::runs(&out, Look::stdout()));
}
