//! `varve run --live --sites service.sites --fast 8GiB -- ./service`: a native program on this machine, its objects where a profile
//! wants them.

use super::live::ended;
use super::native_known::for_this_build;
use super::native_replay::profile;
use crate::args::run::job::LiveNative;
use crate::ui::{Done, Failure, print, wrong};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use varve_live::nodes::{Kinds, NoKinds};
use varve_live::objects::{
    Group, GroupReport, ObjectOptions, ObjectReport, Running, SiteMap, Tier,
};
use varve_live::probe::Topology;
use varve_report::fmt::{self, Format};
use varve_report::{Better, Column, Look, RunTable, table as terminal};
use varve_run::objects::{PLANS, Plan};
use varve_run::objects::{USUAL, site_plan};
use varve_run::request::Fast;
use varve_tier::native::site_map;

pub fn run(command: &[OsString], a: &LiveNative) -> Done {
    let Some(path) = &a.plans.profile else {
        unreachable!("a run of this kind has a profile")
    };
    let mut profile = profile(path)?;
    let mut said = None;
    if a.stale.stale {
        let (now, found) = for_this_build(&profile, &command[0])?;
        (profile, said) = (now, Some(found));
    }
    let plan = plan(a.plans.plan.as_deref())?;
    let budget = match &a.plans.fast {
        Some(Fast::Size(bytes)) => bytes.0,
        Some(fast) => {
            return Err(wrong(format!(
                "--fast {fast}: how much memory the program takes is known when it has run: give a size, such as --fast 8GiB"
            )));
        }
        None => {
            return Err(wrong(
                "--live places objects within a budget of fast memory: say how much, such as --fast 8GiB",
            ));
        }
    };
    let (topology, _) = Topology::read(Path::new("/"));
    let kinds = match &a.nodes.nodes {
        Some(given) => Kinds::parse(given, &topology).map_err(wrong)?,
        None => Kinds::probe(&topology).map_err(|why| match why {
            NoKinds::OneNode(node) => wrong(format!(
                "{why}, so that placing gains nothing; compare plans on a model (--machine in place of --live), or place all the same \
                 (--nodes fast={node},slow={node})"
            )),
            _ => wrong(why),
        })?,
    };
    let fast: u64 = (topology.nodes.iter())
        .filter(|node| kinds.fast.contains(&node.id))
        .map(|node| node.bytes)
        .sum();
    if budget > fast {
        crate::ui::message!(
            "varve: note: --fast {} is more than the {} that fast memory has (nodes {}): what finds no room there is elsewhere",
            fmt::bytes(budget as f64),
            fmt::bytes(fast as f64),
            Kinds::list(&kinds.fast)
        );
    }
    let (map, names) = site_map(&profile, &plan, budget, None, kinds);
    let options = ObjectOptions {
        on_request: Some(say_by_now),
        ..ObjectOptions::default()
    };
    let report = varve_live::objects::run(command, &map, &options);
    let mut report = report.map_err(wrong)?;
    report.ran.notes.splice(0..0, said);
    let lines = lines(&report, &map, &names);
    if a.json.json {
        print(serde_json::to_string_pretty(&as_json(&report, &lines, budget)).unwrap_or_default());
    } else {
        // The program's own output is on standard output; ours goes beside it.
        eprint!("{}", as_text(&report, &map, &lines, budget));
    }
    ended(&report.ran.status)
}

/// Prints the state of the running program on standard error, on SIGUSR1.
fn say_by_now(running: &Running) {
    let bytes = |bytes: u64| fmt::bytes(bytes as f64);
    let all = running.processes.iter().map(|p| p.fast_bytes).sum();
    let mut text = format!(
        "varve: after {:.1} s: {} of {} of fast memory taken\n",
        running.elapsed.as_secs_f64(),
        bytes(all),
        bytes(running.budget_bytes)
    );
    for p in &running.processes {
        text += &format!(
            "varve: {} ({}): {} taken; on fast nodes {}, on slow nodes {}\n",
            p.program,
            p.pid,
            bytes(p.fast_bytes),
            bytes(p.on_fast_nodes),
            bytes(p.on_slow_nodes)
        );
    }
    eprint!("{text}");
}

/// The plan that chooses sites.
fn plan(named: Option<&str>) -> Result<Plan, Failure> {
    let plans = PLANS.list(named.unwrap_or(USUAL), |plan| plan.by.is_by_site());
    match &plans.map_err(wrong)?[..] {
        [one] => site_plan(&one.spec).map_err(|why| wrong(format!("--plan {why}"))),
        several => {
            let several: Vec<&str> = several.iter().map(|plan| &*plan.spec).collect();
            Err(wrong(format!(
                "--plan {}: a program runs under one plan on this machine; several are compared on a model, without --live",
                several.join(",")
            )))
        }
    }
}

/// A group of sites of all processes together.
struct Line {
    name: String,
    sum: GroupReport,
}

fn lines(report: &ObjectReport, map: &SiteMap, names: &[String]) -> Vec<Line> {
    let line = |(number, group): (usize, &Group)| {
        let mut sum = GroupReport::default();
        for process in &report.ran.processes {
            let one = process.group(number);
            sum.objects += one.objects;
            sum.bytes += one.bytes;
            sum.spilled += one.spilled;
            sum.fast += one.fast;
            sum.slow += one.slow;
        }
        let name = match group {
            Group::Sites(sites) => {
                let mut all: Vec<&str> = sites.iter().map(|&site| &*names[site]).collect();
                all.truncate(2);
                let more = sites.len() - all.len();
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                let tier = sites.first().map_or("", |&site| tier(map.sites[site].tier));
                format!("{}{more} [{tier}]", all.join(", "))
            }
            Group::Undecided => "(not in the profile) [slow]".into(),
            Group::Asked(wanted) => format!("(asked for by the program) [{}]", tier(*wanted)),
        };
        Line { name, sum }
    };
    let all = report.groups.iter().enumerate().map(line);
    let mut all: Vec<Line> = all.filter(|line| line.sum.objects > 0).collect();
    all.sort_by_key(|line| std::cmp::Reverse(line.sum.bytes));
    all
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Fast => "fast",
        Tier::Slow => "slow",
    }
}

fn elsewhere(report: &ObjectReport, kinds: &Kinds) -> (u64, u64) {
    let each = report
        .ran
        .processes
        .iter()
        .map(|p| p.pages_elsewhere(kinds));
    each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn as_text(report: &ObjectReport, map: &SiteMap, lines: &[Line], budget: u64) -> String {
    let mut table = RunTable::new(
        "Objects by allocation site, at the end of each process",
        "site",
    );
    table.columns = vec![
        Column::new("objects", Format::Number, Better::Neither),
        Column::new("asked for", Format::Bytes, Better::Neither),
        Column::new("spilled", Format::Bytes, Better::Neither),
        Column::new("fast now", Format::Bytes, Better::Neither),
        Column::new("slow now", Format::Bytes, Better::Neither),
    ];
    for line in lines.iter().take(20) {
        let g = &line.sum;
        table.push(
            &line.name,
            [
                (g.objects as f64).into(),
                (g.bytes as f64).into(),
                (g.spilled as f64).into(),
                (g.fast as f64).into(),
                (g.slow as f64).into(),
            ],
        );
    }
    table
        .notes
        .push("spilled: meant for fast memory, but over its budget".into());
    let (pages, wrong) = elsewhere(report, &map.kinds);
    table.notes.push(format!(
        "Budget {}. Of {pages} pages checked, the kernel has {wrong} on a node of the other kind.",
        fmt::bytes(budget as f64)
    ));
    for process in &report.ran.processes {
        if process.variables_fast + process.variables_slow > 0 {
            table.notes.push(format!(
                "{} ({}): static variables: {} fast, {} slow.",
                process.program,
                process.pid,
                fmt::bytes(process.variables_fast as f64),
                fmt::bytes(process.variables_slow as f64)
            ));
        }
        if let Some(why) = &process.idle {
            table.notes.push(format!(
                "{} ({}): nothing placed: {why}",
                process.program, process.pid
            ));
        }
    }
    table
        .notes
        .extend(report.ran.notes.iter().map(|note| format!("Note: {note}")));
    terminal::runs(&table, Look::plain()) + "\n"
}

fn as_json(report: &ObjectReport, lines: &[Line], budget: u64) -> Value {
    let line = |line: &Line| {
        json!({
            "site": line.name, "objects": line.sum.objects, "bytes": line.sum.bytes, "spilled_bytes": line.sum.spilled,
            "fast_bytes": line.sum.fast, "slow_bytes": line.sum.slow,
        })
    };
    json!({
        "exit_code": report.ran.status.code(),
        "seconds": report.ran.seconds,
        "budget_bytes": budget,
        "processes": report.ran.processes.len(),
        "sites": lines.iter().map(line).collect::<Vec<_>>(),
        "notes": report.ran.notes,
    })
}
