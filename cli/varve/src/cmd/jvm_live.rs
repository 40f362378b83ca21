//! `varve run --live --plan kg-n -- java ...`: generations of a stock Java virtual machine on the memory nodes of this machine.

use super::live::ended;
use super::native_replay;
use crate::args::run::job::LiveJava;
use crate::ui::{Done, Failure, print, wrong};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use varve_live::java::{self, Decided, Deciding, JavaProcess, JavaReport, Job};
use varve_live::nodes::Kinds;
use varve_live::probe::Topology;
use varve_pages::policies;
use varve_run::Phase;
use varve_run::catalogue::{LiveSupport, of_policy};
use varve_run::jvm::{By, PLANS};
use varve_tier::java::{Sampler, placing};

pub fn run(command: &[OsString], a: &LiveJava) -> Done {
    let named = a.plan.plan.as_deref().unwrap_or_default();
    let by = PLANS.find(named).map_err(wrong)?.by;
    let placing = placing(&by).ok_or_else(|| elsewhere(named, command))?;
    let (topology, _) = Topology::read(Path::new("/"));
    let kinds = match &a.nodes.nodes {
        Some(given) => Kinds::parse(given, &topology).map_err(wrong)?,
        None => Kinds::probe(&topology).map_err(|why| {
            wrong(format!(
                "--live --plan {named}: {why}: leave --live out for a run on a model"
            ))
        })?,
    };
    let job = Job {
        command,
        placing,
        kinds: &kinds,
        must: a.must.must,
    };
    let (report, decided) = match by {
        By::Sampled(sampled) => java::run(
            &job,
            Some(Deciding {
                unit: sampled.allocation,
                new: &|| Sampler::new(&sampled),
            }),
        ),
        _ => java::run::<Sampler>(&job, None),
    }
    .map_err(wrong)?;
    if a.json.json {
        let json = as_json(&report, named, &kinds, &decided);
        print(serde_json::to_string_pretty(&json).unwrap_or_default());
    } else {
        // The program's own output is on standard output; ours goes beside it.
        eprint!("{}{}", as_text(&report), decisions(&decided));
    }
    if job.must && report.processes.is_empty() && report.status.success() {
        return Err(wrong(
            "--must: no Java virtual machine was placed; see the note above",
        ));
    }
    ended(&report.status)
}

/// The error for a page policy: names the command that runs it on this machine.
fn elsewhere(named: &str, command: &[OsString]) -> Failure {
    let command = native_replay::shown(command);
    let policy = policies::entry(named).ok();
    let live = policy.map_or(LiveSupport::No("it is not a page policy"), of_policy);
    wrong(match live {
        LiveSupport::By(words) => format!(
            "--plan {named}: moves pages, which `varve {words}` does on this machine: write `varve {words} --policy {named} -- {command}`"
        ),
        LiveSupport::Only(_, why) | LiveSupport::No(why) => format!(
            "--plan {named}: not on this machine: {why}; take kg-n, slow-scan, pima, interleave, slow or dram"
        ),
    })
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

/// Phases that are shown of a machine, the last ones; `--json` has all.
const SHOWN: usize = 12;

/// The decisions for each machine, and its migrations.
fn decisions(decided: &[Decided<Sampler>]) -> String {
    let mut text = String::new();
    // Of others a note says why nothing was decided.
    for machine in decided.iter().filter(|machine| machine.intervals > 0) {
        let (phases, moves) = (machine.by.phases(), machine.by.moves());
        let chosen: Vec<bool> = phases.iter().filter_map(|phase| phase.fast).collect();
        let fast = chosen.iter().filter(|fast| **fast).count();
        let moved: u64 = moves.iter().map(|to| to.bytes).sum();
        let took = moves.iter().fold(0.0, |all, to| all + to.took_s);
        text.push_str(&format!(
            "varve: java ({}): {} intervals {}; {} decisions, {fast} for fast memory; {:.1} MiB of old objects moved in {:.1} ms beside the \
             program\n",
            machine.pid,
            machine.intervals,
            how(machine),
            chosen.len(),
            mib(moved),
            took * 1e3
        ));
        let shown: &[Phase] = &phases[phases.len().saturating_sub(SHOWN)..];
        for phase in shown {
            text.push_str(&format!("varve: pima {}\n", phase.line));
        }
    }
    text
}

/// The meaning of an interval.
fn how(machine: &Decided<Sampler>) -> &'static str {
    match machine.reported {
        true => "that the program reported",
        false => "of equal allocation",
    }
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

/// The run as a row of the kind that models have: what is known of all virtual machines together.
fn row(report: &JavaReport, plan: &str, kinds: &Kinds, decided: &[Decided<Sampler>]) -> Value {
    let machines = &report.processes;
    let parts = machines.iter().flat_map(|machine| &machine.parts);
    // A node that is named as both kinds is fast.
    let on = |fast: bool| -> u64 {
        let bytes = parts.clone().flat_map(|part| &part.nodes);
        let there = bytes.filter(|(node, _)| kinds.fast.contains(node) == fast);
        there.map(|(_, bytes)| bytes).sum()
    };
    let moves = decided.iter().flat_map(|machine| machine.by.moves());
    let sum = |of: fn(&JavaProcess) -> u64| machines.iter().map(of).sum::<u64>();
    json!({
        "plan": plan,
        "seconds": report.seconds,
        "fast_bytes": on(true),
        "slow_bytes": on(false),
        "moved_bytes": moves.map(|to| to.bytes).sum::<u64>(),
        "minor": { "count": sum(|machine| machine.minor) },
        "full": { "count": sum(|machine| machine.full) },
        "pause_seconds": sum(|machine| machine.pause_ns) as f64 / 1e9,
        "longest_pause_ns": machines.iter().map(|machine| machine.longest_pause_ns).max(),
    })
}

fn as_json(report: &JavaReport, plan: &str, kinds: &Kinds, decided: &[Decided<Sampler>]) -> Value {
    json!({
        "runs": [row(report, plan, kinds, decided)],
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
                "start": part.start,
                "reserved_bytes": part.reserved_bytes,
                "wanted_nodes": part.wanted,
                "bytes_by_node": part.nodes,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "decisions": decided.iter().map(|machine| json!({
            "pid": machine.pid,
            "intervals": machine.intervals,
            "intervals_are": how(machine),
            "allocated_bytes": machine.allocated,
            "phases": machine.by.phases(),
            "moves": machine.by.moves(),
        })).collect::<Vec<_>>(),
        "notes": report.notes,
    })
}
