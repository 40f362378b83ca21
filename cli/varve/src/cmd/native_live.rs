//! `varve run --live --sites service.sites --fast 8GiB -- ./service`: a native program on this machine, its objects where a profile
//! wants them; with `--plan hints` in place of a profile, where the program itself does.

use super::live::ended;
use super::native_known::for_this_build;
use super::native_replay::profile;
use crate::args::run::job::LiveNative;
use crate::ui::{Done, Failure, print, wrong};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use varve_live::nodes::{Kinds, NoKinds};
use varve_live::objects::{
    Group, GroupReport, Lived, ObjectOptions, ObjectReport, ResidentBytes, Running, SiteMap, Tier,
};
use varve_live::probe::Topology;
use varve_report::fmt::{self, Format};
use varve_report::{Better, Column, Look, RunTable, table as terminal};
use varve_run::objects::{PLANS, Plan};
use varve_run::objects::{USUAL, site_plan};
use varve_run::request::Fast;
use varve_tier::native::site_map;

pub fn run(command: &[OsString], a: &LiveNative) -> Done {
    let mut said = None;
    let known = match &a.plans.profile {
        Some(path) => {
            let mut profile = profile(path)?;
            if a.stale.stale {
                let (now, found) = for_this_build(&profile, &command[0])?;
                (profile, said) = (now, Some(found));
            }
            Some((profile, plan(a.plans.plan.as_deref())?))
        }
        None if a.stale.stale => {
            return Err(wrong(
                "--stale is about a profile of another build: name it with --sites FILE.sites",
            ));
        }
        None => None,
    };
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
    let (map, names) = match &known {
        Some((profile, plan)) => site_map(profile, plan, budget, None, kinds),
        None => (hinted(budget, kinds), Vec::new()),
    };
    let options = ObjectOptions {
        on_request: Some(say_by_now),
        ..ObjectOptions::default()
    };
    let report = varve_live::objects::run(command, &map, &options);
    let mut report = report.map_err(wrong)?;
    report.ran.notes.splice(0..0, said);
    let lines = lines(&report, &map, &names);
    if a.json.json {
        print(
            serde_json::to_string_pretty(&as_json(&report, &map, &lines, budget))
                .unwrap_or_default(),
        );
    } else {
        // The program's own output is on standard output; ours goes beside it.
        eprint!("{}", as_text(&report, &map, &lines, budget));
    }
    ended(&report.ran.status)
}

/// All but what the program asks for is left to the kernel.
fn hinted(budget_bytes: u64, kinds: Kinds) -> SiteMap {
    SiteMap {
        sites: Vec::new(),
        variables: Vec::new(),
        default_tier: None,
        budget_bytes,
        kinds,
    }
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

/// A group of sites of all processes together, or all groups.
struct Line {
    name: String,
    lived: Lived,
    /// Whether it was to be in fast memory.
    fast: bool,
    /// What is left at the end of each process.
    left: GroupReport,
}

impl Line {
    /// Bytes that were to be in fast memory, and are not.
    fn spilled(&self) -> u64 {
        if self.fast { self.lived.slow_bytes } else { 0 }
    }
}

fn lines(report: &ObjectReport, map: &SiteMap, names: &[String]) -> Vec<Line> {
    let line = |((number, group), lived): ((usize, &Group), &Lived)| {
        let mut left = GroupReport::default();
        for process in &report.ran.processes {
            let one = process.group(number);
            left.fast += one.fast;
            left.slow += one.slow;
        }
        let (name, tier) = match group {
            Group::Sites(sites) => {
                let mut all: Vec<&str> = sites.iter().map(|&site| &*names[site]).collect();
                all.truncate(2);
                let more = sites.len() - all.len();
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                let tier = sites.first().map(|&site| map.sites[site].tier);
                (format!("{}{more}", all.join(", ")), tier)
            }
            Group::Undecided => ("(not in the profile)".into(), Some(Tier::Slow)),
            Group::Asked(wanted) => ("(asked for by the program)".into(), Some(*wanted)),
        };
        Line {
            name: format!("{name} [{}]", tier.map_or("", self::tier)),
            lived: lived.clone(),
            fast: tier == Some(Tier::Fast),
            left,
        }
    };
    let all = report.groups.iter().enumerate().zip(&report.lived);
    let all = all.map(line);
    let mut all: Vec<Line> = all.filter(|line| line.lived.objects > 0).collect();
    all.sort_by_key(|line| std::cmp::Reverse(line.lived.bytes));
    all
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Fast => "fast",
        Tier::Slow => "slow",
    }
}

/// Sites that the table has; `--json` has all.
const SHOWN: usize = 20;

fn as_text(report: &ObjectReport, map: &SiteMap, lines: &[Line], budget: u64) -> String {
    let mut table = RunTable::new("Objects by allocation site, while the program ran", "site");
    table.columns = vec![
        Column::new("objects", Format::Number, Better::Neither),
        Column::new("refused", Format::Number, Better::Neither),
        Column::new("most fast", Format::Bytes, Better::Neither),
        Column::new("most slow", Format::Bytes, Better::Neither),
        Column::new("fast at peak", Format::Bytes, Better::Neither),
        Column::new("slow at peak", Format::Bytes, Better::Neither),
    ];
    for line in lines.iter().take(SHOWN) {
        table.push(&line.name, values(&line.lived));
    }
    if let Some(rest @ 1..) = lines.len().checked_sub(SHOWN) {
        table
            .notes
            .push(format!("{rest} more sites are in the sum; --json has all"));
    }
    table.push("all", values(&report.all));
    table.notes.push(
        "refused: objects meant for fast memory that found no room in its budget, for some of their bytes at least".into(),
    );
    table
        .notes
        .push("at peak: when all sites together had most; these columns add up".into());
    table.notes.push(format!(
        "Budget {}. {}",
        fmt::bytes(budget as f64),
        whereabouts(report.places.as_ref(), &map.kinds)
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

/// A row's values, as the columns are.
fn values(lived: &Lived) -> [varve_report::Value; 6] {
    [
        lived.objects,
        lived.refused,
        lived.fast_most,
        lived.slow_most,
        lived.fast_at_top,
        lived.slow_at_top,
    ]
    .map(|value| (value as f64).into())
}

/// Where pages were, in words.
fn whereabouts(places: Option<&ResidentBytes>, kinds: &Kinds) -> String {
    let Some(places) = places else {
        return "The program ended before it was looked where its pages are.".into();
    };
    let bytes = |nodes: &BTreeMap<u32, u64>| fmt::bytes(nodes.values().sum::<u64>() as f64);
    let wrong = match places.elsewhere(kinds) {
        0 => "all on nodes of their kind".into(),
        wrong => format!(
            "{} of that on nodes of the other kind",
            fmt::bytes(wrong as f64)
        ),
    };
    format!(
        "After {:.3} s, when most was in memory (of {} looks), the kernel had {} of pages meant to be fast and {} meant to be slow, {wrong}.",
        places.seconds,
        places.looks,
        bytes(&places.fast),
        bytes(&places.slow)
    )
}

fn as_json(report: &ObjectReport, map: &SiteMap, lines: &[Line], budget: u64) -> Value {
    let line = |line: &Line| {
        let mut object = lived(&line.lived, line.spilled());
        object["site"] = json!(line.name);
        object["fast_bytes"] = json!(line.left.fast);
        object["slow_bytes"] = json!(line.left.slow);
        object
    };
    let spilled = lines.iter().map(Line::spilled).sum();
    let pages = report.places.as_ref().map(|places| {
        json!({
            "seconds": places.seconds, "looks": places.looks,
            "fast_bytes_by_node": places.fast, "slow_bytes_by_node": places.slow, "other_bytes_by_node": places.others,
            "elsewhere_bytes": places.elsewhere(&map.kinds),
        })
    });
    json!({
        "exit_code": report.ran.status.code(),
        "seconds": report.ran.seconds,
        "budget_bytes": budget,
        "processes": report.ran.processes.len(),
        "sites": lines.iter().map(line).collect::<Vec<_>>(),
        "all": lived(&report.all, spilled),
        "pages": pages,
        "notes": report.ran.notes,
    })
}

fn lived(lived: &Lived, spilled: u64) -> Value {
    json!({
        "objects": lived.objects, "bytes": lived.bytes, "refused_objects": lived.refused, "spilled_bytes": spilled,
        "fast_peak_bytes": lived.fast_most, "slow_peak_bytes": lived.slow_most,
        "fast_bytes_at_peak": lived.fast_at_top, "slow_bytes_at_peak": lived.slow_at_top,
    })
}
