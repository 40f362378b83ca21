//! `varve tier`: pages of programs that run already, between fast and slow memory, as a page policy decides.

use super::live::ended;
use super::tier_said::{as_json, beginning, end};
use crate::args::tier::TierArgs;
use crate::ui::{Done, Failure, failed, print, stop_flag, wrong};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use varve_live::nodes::Kinds;
use varve_live::probe::Topology;
use varve_live::tier::{
    Room, Target, TierError, TierOptions, Way, first_way, group, rivals, tier as run,
};
use varve_run::tier::{PagePolicy, live_spec};

/// Between two intervals of a policy that has no daemon: new pages are placed.
const PERIOD: Duration = Duration::from_secs(1);
/// The shortest interval: the kernel's monitor tells no sooner, and looks at more of them would find nothing new.
const SHORTEST: Duration = Duration::from_millis(10);

pub fn tier(a: &TierArgs) -> Done {
    let target = target(a)?;
    let spec = live_spec(&a.policy).map_err(wrong)?;
    let kinds = kinds(a)?;
    let mut notes = Vec::new();
    if let Some(node) = kinds.fast.iter().find(|node| kinds.slow.contains(node)) {
        notes.push(format!(
            "node {node} is both fast and slow by --nodes: what is decided is told, and no page moves"
        ));
    }
    for rival in rivals(Path::new("/")) {
        match rival.fights && !a.beside {
            true => {
                return Err(wrong(format!(
                    "{}; or go on beside it with --beside",
                    rival.line
                )));
            }
            false => notes.push(rival.line),
        }
    }
    // Made for a machine that is too small for anything, to see what the policy wants.
    let trial = Room {
        page_bytes: 4096,
        fast_pages: 1,
        slow_pages: 1,
    };
    let trial = PagePolicy::new(&spec, &trial).map_err(wrong)?;
    let period = trial.period().map_or(PERIOD, Duration::from_nanos);
    if period < SHORTEST {
        return Err(wrong(format!(
            "--policy {spec}: the shortest period of a live policy is 10ms"
        )));
    }
    let way = match trial.goes_by_use() {
        true => Some(way(a)?),
        false => None,
    };
    if way.is_none() && a.observe.is_some() {
        return Err(wrong(format!(
            "--observe: page policy {spec} does not go by what is in use: leave --observe out"
        )));
    }
    let stop = stop_flag_unless_command(&target);
    let options = TierOptions {
        kinds,
        fast_bytes: a.fast.map(|bytes| bytes.0),
        page_bytes: a.page.map(|bytes| bytes.0),
        way,
        period,
        rate: a.rate.0,
        core: a.core,
        hold: a.hold,
        time: a.time,
        stop: &stop,
    };
    let report = run(
        &target,
        &options,
        |room| PagePolicy::new(&spec, room),
        |begun| {
            beginning(&spec, &options, begun, &notes)
                .iter()
                .for_each(|line| eprintln!("varve: {line}"));
        },
    );
    let report = report.map_err(|error| match error {
        TierError::Policy(_) | TierError::Live(_) => wrong(error),
        TierError::Refused { .. } | TierError::Unseen { .. } => failed(error),
        _ => wrong(error),
    })?;
    match a.json {
        true => print(serde_json::to_string_pretty(&as_json(&spec, &report)).unwrap_or_default()),
        // The program's own output is on standard output; ours goes beside it.
        false => end(&report)
            .iter()
            .for_each(|line| eprintln!("varve: {line}")),
    }
    match report.status {
        Some(status) => ended(&status),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Ctrl-C is a command's own; otherwise it is for us.
fn stop_flag_unless_command(target: &Target) -> std::sync::Arc<std::sync::atomic::AtomicBool> {
    match target {
        Target::Command(_) => std::sync::Arc::default(),
        _ => stop_flag(),
    }
}

fn target(a: &TierArgs) -> Result<Target, Failure> {
    match (&a.pid[..], &a.cgroup, &a.command[..]) {
        (pids @ [_, ..], None, []) => Ok(Target::Processes(pids.to_vec())),
        ([], Some(name), []) => group(name).map(Target::Group).map_err(wrong),
        ([], None, command @ [_, ..]) => Ok(Target::Command(command.to_vec())),
        ([], None, []) => Err(wrong(
            "nothing to tier: give --pid NUMBER, --cgroup NAME, or a command: `varve tier -- COMMAND`",
        )),
        _ => Err(wrong(
            "--pid and --cgroup are of programs that run: leave the command out",
        )),
    }
}

fn kinds(a: &TierArgs) -> Result<Kinds, Failure> {
    let (topology, _) = Topology::read(Path::new("/"));
    match &a.nodes {
        Some(given) => Kinds::parse(given, &topology).map_err(wrong),
        None => Kinds::probe(&topology).map_err(|why| {
            wrong(format!(
                "nothing to tier: {why}; a guest with two kinds is in docs/howto-operator.md, and --nodes fast=0,slow=0 tells what would be decided"
            ))
        }),
    }
}

fn way(a: &TierArgs) -> Result<Way, Failure> {
    let Some(way) = a.observe else {
        return first_way().map_err(|why| failed(format!("nothing sees what is in use: {why}")));
    };
    match way.why_not() {
        None => Ok(way),
        Some(why) => Err(failed(format!(
            "--observe {way}: {why}; without --observe the first way is taken that there is"
        ))),
    }
}
