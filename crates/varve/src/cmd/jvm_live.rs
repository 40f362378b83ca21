//! `varve run --live --plan kg-n -- java ...`: generations of a stock Java virtual machine on the memory nodes of this machine.

use super::live::ended;
use crate::args::run::job::LiveJava;
use crate::ui::{Done, Failure, print, wrong};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use varve_live::java::{self, JavaProcess, JavaReport, Placing};
use varve_live::nodes::Kinds;
use varve_live::probe::Topology;
use varve_run::jvm::{By, plan};

pub fn run(command: &[OsString], a: &LiveJava) -> Done {
    let named = a.plan.plan.as_deref().unwrap_or_default();
    let placing = placing(named)?;
    let (topology, _) = Topology::read(Path::new("/"));
    let kinds = match &a.nodes.nodes {
        Some(given) => Kinds::parse(given, &topology).map_err(wrong)?,
        None => Kinds::probe(&topology).map_err(|why| {
            wrong(format!(
                "--live --plan {named}: {why}: leave --live out for a run on a model"
            ))
        })?,
    };
    let report = java::run(command, placing, &kinds).map_err(wrong)?;
    if a.json.json {
        print(serde_json::to_string_pretty(&as_json(&report, named)).unwrap_or_default());
    } else {
        // The program's own output is on standard output; ours goes beside it.
        eprint!("{}", as_text(&report));
    }
    ended(&report.status)
}

/// Where a plan has the memory of a virtual machine.
fn placing(named: &str) -> Result<Placing, Failure> {
    let (_, by) = plan(named).map_err(wrong)?;
    match by {
        By::Fast => Ok(Placing::Generations {
            young: true,
            old: true,
            outside: true,
        }),
        By::Ranges {
            young,
            old,
            outside,
        } => Ok(Placing::Generations {
            young,
            old,
            outside,
        }),
        By::Pages("interleave") => Ok(Placing::Interleaved),
        By::Pages(_) => Err(wrong(format!(
            "--plan {named}: moves pages while the program runs, which is done on a model alone: take dram, slow, slow-scan, kg-n or \
             interleave here"
        ))),
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn as_text(report: &JavaReport) -> String {
    let mut text = String::new();
    for process in &report.processes {
        text.push_str(&format!(
            "varve: java ({}): Java {}, {}: {} minor and {} full collections; {} pauses, {:.1} ms, the longest {:.1} ms\n",
            process.pid,
            process.java,
            process.collector,
            process.minor,
            process.full,
            process.pauses,
            process.pause_ns as f64 / 1e6,
            process.longest_pause_ns as f64 / 1e6
        ));
        for what in process.uses() {
            text.push_str(&format!("varve: {what:>10}: {}\n", on_nodes(process, what)));
        }
    }
    for note in &report.notes {
        text.push_str(&format!("varve: note: {note}\n"));
    }
    text
}

/// Where the memory for something is, in words.
fn on_nodes(process: &JavaProcess, what: &str) -> String {
    let (nodes, _) = process.part(what).unwrap_or_default();
    let words: Vec<String> = nodes
        .iter()
        .map(|(node, bytes)| format!("{:.1} MiB on node {node}", mib(*bytes)))
        .collect();
    match words.is_empty() {
        true => "nothing in memory".into(),
        false => words.join(", "),
    }
}

fn as_json(report: &JavaReport, plan: &str) -> Value {
    json!({
        "plan": plan,
        "exit_code": report.status.code(),
        "seconds": report.seconds,
        "processes": report.processes.iter().map(|p| json!({
            "pid": p.pid,
            "collector": p.collector,
            "java": p.java,
            "minor": p.minor,
            "full": p.full,
            "pauses": p.pauses,
            "pause_seconds": p.pause_ns as f64 / 1e9,
            "longest_pause_ns": p.longest_pause_ns,
            "memory": p.parts.iter().map(|part| json!({
                "name": part.what,
                "reserved_bytes": part.reserved_bytes,
                "wanted_nodes": part.wanted,
                "bytes_by_node": part.nodes,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "notes": report.notes,
    })
}
