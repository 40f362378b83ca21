//! `varve tier`: pages of programs that run already, between fast and slow memory, as a page policy decides.

use super::tier_said::{beginning, nodes_line};
use super::tier_way::{options, period, stop_flag_unless_command, told, way};
use super::{tier_drawn, tier_frames};
use crate::args::tier::TierArgs;
use crate::ui::{self, Done, Failure, wrong};
use std::cell::OnceCell;
use std::path::Path;
use varve_live::nodes::Kinds;
use varve_live::probe::Topology;
use varve_live::tier::{Target, TierOptions, group, rivals, tier as run};
use varve_pages::policies::Live;
use varve_run::tier::{PagePolicy, live_spec};
use varve_run::tier_seen::{TierEye, Witness};

pub fn tier(a: &TierArgs) -> Done {
    let target = target(a)?;
    // What a command prints is no part of the document.
    ui::programs_elsewhere(None, a.json)?;
    let spec = live_spec(&a.policy).map_err(wrong)?;
    let entry = varve_pages::policies::entry(&spec).map_err(wrong)?;
    if entry.live == Live::Frames {
        if a.out.is_some() {
            return Err(wrong(format!(
                "--out: page policy {} chooses frames, and pictures are of nodes: leave it out, or take another policy",
                entry.name
            )));
        }
        return tier_frames::tier(a, &target, entry, &spec);
    }
    if let Some(folder) = &a.out {
        ui::can_hold_results(folder, "--out")?;
    }
    for (given, option) in [
        (a.cache.is_some(), "--cache"),
        (a.ways != 1, "--ways"),
        (a.reserve.is_some(), "--reserve"),
        (a.dimm_map.is_some(), "--dimm-map"),
        (!a.hot.is_empty(), "--hot"),
    ] {
        if given {
            return Err(wrong(format!(
                "{option}: page policy {} chooses nodes, and no frames: leave it out",
                entry.name
            )));
        }
    }
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
    let (_, given) = varve_spec::split(&spec);
    let period = period(&spec, entry.wakes(given).map_err(wrong)?)?;
    let way = match entry.goes_by_use(given).map_err(wrong)? {
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
        ..options(a, &spec, way, period, &stop)
    };
    let eye = OnceCell::new();
    let report = run(
        &target,
        &options,
        |room| {
            let eye = a
                .out
                .is_some()
                .then(|| eye.get_or_init(|| TierEye::new(room.page_bytes)).clone());
            Ok(Witness::new(PagePolicy::new(&spec, room)?, eye))
        },
        |begun| {
            let first = nodes_line(&spec, &options, begun);
            beginning(&first, &options, begun, &notes)
                .iter()
                .for_each(|line| eprintln!("varve: {line}"));
        },
    );
    if let (Some(folder), Some(eye), Ok(report)) = (&a.out, eye.get(), &report) {
        tier_drawn::draw(folder, &spec, report, eye)?;
    }
    told(a, &spec, report)
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
