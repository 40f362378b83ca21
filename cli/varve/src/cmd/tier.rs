//! `varve tier`: pages of programs that run already, between fast and slow memory, as a page policy decides.

use super::tier_daemon::Measured;
use super::tier_said::{beginning, nodes_line};
use super::tier_way::{beside_others, options, stop_flag_unless_command, told};
use super::{tier_daemon, tier_drawn, tier_frames};
use crate::args::tier::TierArgs;
use crate::ui::{self, Done, Failure, wrong};
use std::cell::OnceCell;
use std::path::Path;
use varve_live::nodes::Kinds;
use varve_live::probe::Topology;
use varve_live::tier::{Target, TierOptions, group, tier as run};
use varve_pages::policies::{Entry, Live, Needs};
use varve_tier::pages::{PagePolicy, Wants, live_spec, wants};
use varve_tier::seen::TierEye;

pub fn tier(a: &TierArgs) -> Done {
    if let Some(file) = &a.config {
        return tier_daemon::tier(a, file);
    }
    if a.check {
        return Err(wrong("--check is of a file: give --config FILE, too"));
    }
    let target = target(a)?;
    // The command's output is not part of the JSON document.
    ui::programs_elsewhere(None, a.json)?;
    let spec = live_spec(&a.policy).map_err(wrong)?;
    let entry = varve_pages::policies::entry(&spec).map_err(wrong)?;
    refuse_what_does_nothing(a, entry)?;
    moves(a)?;
    let wants = wants(&spec, !a.hot.is_empty()).map_err(wrong)?;
    let _measured = match &a.metrics {
        // Policies that choose frames need no kinds of nodes.
        Some(endpoint) => Some(Measured::at(endpoint, kinds(a).unwrap_or_default())?),
        None => None,
    };
    match entry.live {
        Live::Frames => tier_frames::tier(a, &target, entry, &spec, &wants),
        _ => nodes(a, &target, &spec, &wants),
    }
}

/// Refuses options that are of policies of another kind.
fn refuse_what_does_nothing(a: &TierArgs, entry: &Entry) -> Result<(), Failure> {
    let frames = entry.live == Live::Frames;
    let bins = frames && entry.needs == Needs::MemoryMode;
    let dimms = frames && !bins;
    let what = match (frames, bins) {
        (false, _) => "chooses nodes, and no frames",
        (true, true) => "is about bins of a cache, and no DIMMs",
        (true, false) => "is about DIMMs, and no bins of a cache",
    };
    let of_nodes = "chooses frames, whatever their node";
    let of_pictures = "chooses frames, and pictures are of nodes";
    for (given, option, goes, why) in [
        (a.out.is_some(), "--out", !frames, of_pictures),
        (a.fast.is_some(), "--fast", !frames, of_nodes),
        (a.nodes.is_some(), "--nodes", !frames, of_nodes),
        (a.cache.is_some(), "--cache", bins, what),
        (a.ways != 1, "--ways", bins, what),
        (a.reserve.is_some(), "--reserve", frames, what),
        (a.dimm_map.is_some(), "--dimm-map", dimms, what),
        (!a.hot.is_empty(), "--hot", dimms, what),
    ] {
        if given && !goes {
            let name = entry.name;
            let or = if option == "--out" {
                ", or take another policy"
            } else {
                ""
            };
            return Err(wrong(format!(
                "{option}: page policy {name} {why}: leave it out{or}"
            )));
        }
    }
    Ok(())
}

/// Nothing could be moved.
fn moves(a: &TierArgs) -> Result<(), Failure> {
    match a.rate.0 {
        0 => Err(wrong(
            "--rate 0: no page could be moved: give a rate such as 256MiB, or see what would be moved with `--nodes fast=0,slow=0`",
        )),
        _ => Ok(()),
    }
}

/// With a policy that chooses nodes.
fn nodes(a: &TierArgs, target: &Target, spec: &str, wants: &Wants) -> Done {
    if let Some(folder) = &a.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let kinds = kinds(a)?;
    let mut notes = Vec::new();
    if let Some(node) = kinds.fast.iter().find(|node| kinds.slow.contains(node)) {
        notes.push(format!(
            "dry run: node {node} is both fast and slow by --nodes, so decisions are printed and no page migrates"
        ));
    }
    notes.extend(beside_others(a)?);
    let stop = stop_flag_unless_command(target);
    let options = TierOptions {
        kinds,
        fast_bytes: a.fast.map(|bytes| bytes.0),
        ..options(a, spec, wants, &stop)?
    };
    let eye = OnceCell::new();
    let report = run(
        target,
        &options,
        |room| {
            let eye = a
                .out
                .is_some()
                .then(|| eye.get_or_init(|| TierEye::new(room.page_bytes)).clone());
            Ok(PagePolicy::new(spec, room)?.seen_by(eye))
        },
        |begun| {
            let first = nodes_line(spec, &options, begun);
            beginning(first, &options, begun, &notes);
        },
    );
    if let (Some(folder), Some(eye), Ok(report)) = (&a.out, eye.get(), &report) {
        tier_drawn::draw(folder, spec, report, eye)?;
    }
    told(a, spec, report)
}

fn target(a: &TierArgs) -> Result<Target, Failure> {
    match (&a.pid[..], &a.cgroup[..], &a.command[..]) {
        (pids @ [_, ..], [], []) => Ok(Target::Processes(pids.to_vec())),
        ([], names @ [_, ..], []) => {
            let folders: Result<_, _> = names.iter().map(|name| group(name)).collect();
            folders.map(Target::Groups).map_err(wrong)
        }
        ([], [], command @ [_, ..]) => Ok(Target::Command(command.to_vec())),
        ([], [], []) => Err(wrong(
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
                "nothing to tier: {why}; a guest with two kinds is in docs/howto-operator.md, and --nodes fast=0,slow=0 prints decisions and migrates nothing"
            ))
        }),
    }
}
