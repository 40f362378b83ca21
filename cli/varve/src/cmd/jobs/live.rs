//! Groups on this machine.

use super::{emit, load, logs, of_jobs, planned, show, strategies};
use crate::args::{GroupArgs, PlanArgs};
use crate::ui::{self, Done, Failure, failed, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use varve_jobs::demand::PartialDemand;
use varve_jobs::kept::Kept;
use varve_jobs::live::{self, LiveHost, LiveOptions, exercise};
use varve_jobs::model::ModelSpec;
use varve_jobs::{Demand, Error, Group, GroupResult, Host, Strategy, explain};
use varve_run::VERSION;

/// The scale of `--quick`.
const QUICK: u32 = 8192;

struct Here {
    group: Group,
    live: LiveHost,
    host: Host,
    notes: Vec<String>,
    options: LiveOptions,
    /// Where demands are kept, and what they depend on besides the program.
    keep: Option<std::path::PathBuf>,
    about: String,
}

fn here(a: &GroupArgs) -> Result<Here, Failure> {
    let group = load(a)?;
    // Commands run as they are, with the memory that the group has.
    let usual = ModelSpec::scale_for(&group);
    let scale = match a.quick && usual > 1 {
        true => QUICK,
        false => a.scale.unwrap_or(usual),
    };
    if !scale.is_power_of_two() || scale > 1 << 16 {
        return Err(wrong(varve_run::Error::Scale(scale)));
    }
    live::check(&group).map_err(|e| of_jobs(&e))?;
    let live = LiveHost::new(a.nodes.as_deref()).map_err(wrong)?;
    let (host, mut notes) = live.host(&group, scale);
    notes.push(live.counted().into());
    let options = LiveOptions {
        logs: logs(a),
        scale,
        seed: a.seed,
        varve: std::env::current_exe().map_err(failed)?,
    };
    let kinds = live
        .kinds
        .as_ref()
        .map_or("one kind of memory".into(), |k| k.to_string());
    Ok(Here {
        group,
        live,
        about: format!("{VERSION}, {} cores, {kinds}, scale {scale}", host.cores),
        keep: a.demands.clone(),
        notes,
        options,
        host,
    })
}

/// Demands of all programs. One that cannot be measured has none, and says why: the others do not suffer for it.
///
/// A program whose file says all that placement and order go by is only run beforehand if its threads are to be counted.
///
/// Takes demands from the file, unless all are to be measured `anew`.
fn demands(h: &Here, threads: bool, anew: bool) -> Result<Vec<Demand>, Failure> {
    let bar = ui::bar(h.group.programs.len() as u64, "profiles");
    let stop = ui::stop_flag();
    let mut all = Vec::new();
    let mut kept = match &h.keep {
        Some(file) => Kept::read(file, &h.about).map_err(wrong)?,
        None => Kept::default(),
    };
    for (i, p) in h.group.programs.iter().enumerate() {
        if let Some(demand) = kept.of(p).filter(|_| !anew) {
            all.push(demand);
            bar.inc(1);
            continue;
        }
        if !threads && says_enough(p) {
            all.push(unmeasured(
                &h.group,
                i,
                "its file has all that is needed".into(),
            ));
            bar.inc(1);
            continue;
        }
        let demand = live::profile(&h.group, i, &h.live, &h.options, &mut |what| {
            bar.set_message(what.to_string());
            !stop.load(Ordering::Relaxed)
        });
        all.push(match demand {
            Ok(demand) => {
                if let Some(file) = &h.keep {
                    // One after the other, so that an interrupt loses one alone.
                    kept.add(p, demand.clone());
                    kept.write(file).map_err(failed)?;
                }
                demand
            }
            Err(e) if e.is_interrupt() => return Err(of_jobs(&e)),
            Err(e) => unmeasured(&h.group, i, e.to_string()),
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(all)
}

/// Does its entry say all that placement and order go by?
fn says_enough(p: &varve_jobs::group::Program) -> bool {
    let part = p.inside.as_ref().is_none_or(|inside| inside.fast.is_some());
    p.class.is_some() && p.bytes.is_some() && part
}

/// A program of which nothing is known but what its file says.
fn unmeasured(group: &Group, i: usize, why: String) -> Demand {
    let p = &group.programs[i];
    Demand {
        name: p.name.clone(),
        bytes: p.bytes.unwrap_or(0),
        part: p.inside.as_ref().and_then(|inside| {
            let fast_bytes = inside.fast?;
            let curve = Vec::new();
            Some(PartialDemand { fast_bytes, curve })
        }),
        missing: vec![why],
        ..Demand::default()
    }
}

pub fn profile(a: &GroupArgs) -> Done {
    let h = here(a)?;
    let demands = demands(&h, true, true)?;
    show::demands(a, &h.group, &h.host, &demands)?;
    tell(&h.notes);
    Ok(ExitCode::SUCCESS)
}

pub fn plan(args: &PlanArgs) -> Done {
    let a = &args.group;
    let chosen = planned(args)?;
    let h = here(a)?;
    let demands = demands(&h, chosen.iter().any(|s| s.threads), false)?;
    let plans = plans(&h, &demands, &chosen)?;
    if let Some(target) = args.emit {
        let cpus = &h.live.cpus[..h.host.cores as usize];
        let kinds = h.live.kinds.as_ref();
        tell(&h.notes);
        return emit::print(
            &h.group, &plans[0], &h.host, kinds, cpus, &h.options, target,
        );
    }
    if a.json {
        let all = json!({"machine": "here", "version": VERSION, "notes": h.notes, "demands": demands, "plans": plans});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    for plan in &plans {
        print(show::plan(
            plan,
            &explain(plan, &h.group, &h.host),
            &h.group,
        ));
    }
    tell(&h.notes);
    Ok(ExitCode::SUCCESS)
}

fn plans(
    h: &Here,
    demands: &[Demand],
    strategies: &[Strategy],
) -> Result<Vec<varve_jobs::Plan>, Failure> {
    let plan = |s: &Strategy| varve_jobs::plan(&h.group, demands, &h.host, *s);
    let all: Result<Vec<_>, Error> = strategies.iter().map(plan).collect();
    all.map_err(|e| of_jobs(&e))
}

pub fn run(a: &GroupArgs) -> Done {
    let h = here(a)?;
    let chosen = strategies(a);
    // Linux knows nothing of programs, so that none has to be run beforehand.
    let demands = match chosen.iter().any(|s| *s != Strategy::LINUX) {
        true => demands(&h, chosen.iter().any(|s| s.threads), false)?,
        false => (0..h.group.programs.len())
            .map(|i| unmeasured(&h.group, i, "not measured".into()))
            .collect(),
    };
    let plans = plans(&h, &demands, &chosen)?;
    let stop = ui::stop_flag();
    let turns = a.repeat.unwrap_or(if plans.len() > 1 { 3 } else { 1 });
    let bar = ui::bar(plans.len() as u64 * u64::from(turns), "runs");
    let mut runs: Vec<Vec<GroupResult>> = vec![Vec::new(); plans.len()];
    // In turns, so that what changes on this machine meanwhile is not one strategy's alone.
    for turn in 0..turns as usize * plans.len() {
        let i = turn % plans.len();
        let plan = &plans[i];
        let result = live::run(&h.group, plan, &h.live, &h.options, &mut |running| {
            let names: Vec<&str> = running.iter().map(|r| r.name.as_str()).collect();
            bar.set_message(format!("{}: {}", plan.strategy.name(), names.join(", ")));
            !stop.load(Ordering::Relaxed)
        });
        runs[i].push(result.map_err(|e| of_jobs(&e))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut results: Vec<GroupResult> = runs.into_iter().filter_map(GroupResult::median).collect();
    if let Some(first) = results.first_mut() {
        let more = h
            .notes
            .iter()
            .filter(|n| !first.notes.contains(n))
            .cloned()
            .collect::<Vec<_>>();
        first.notes.extend(more);
    }
    show::compared(a, &h.group, "here", &results, None, None)?;
    Ok(match results.iter().all(|r| r.is_well()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

pub fn carry_out(line: &str) -> Done {
    let mut program = varve_workloads::build(line).map_err(wrong)?;
    let done = exercise::exercise(&mut *program).map_err(failed)?;
    print(format!(
        "{} accesses in {:.3} s",
        done.accesses, done.seconds
    ));
    for (name, value) in program.answers() {
        print(format!("{name}: {value}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(notes: &[String]) {
    for note in notes {
        crate::ui::message!("varve: note: {note}");
    }
}
