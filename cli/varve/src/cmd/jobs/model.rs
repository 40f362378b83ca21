//! Groups on a modelled machine.

use super::{emit, keep, load, logs, of_jobs, planned, show, strategies};
use crate::args::{GroupArgs, PlanArgs};
use crate::ui::{self, Done, Failure, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use varve_jobs::compare::{Compared, Making, compare, demands, run_all};
use varve_jobs::live::LiveOptions;
use varve_jobs::model::ModelSpec;
use varve_jobs::oracle::candidates;
use varve_jobs::{Demand, Error, Group, GroupResult, Host, explain};
use varve_live::nodes::Kinds;
use varve_run::VERSION;

/// The scale of `--quick`: programs of a GiB are still larger than the caches.
const QUICK: u32 = 2048;

fn spec(a: &GroupArgs, group: &Group) -> Result<ModelSpec, Failure> {
    let mut spec = ModelSpec::new(varve_tier::machine(&a.machine).map_err(wrong)?);
    spec.scale = match a.quick {
        true => QUICK,
        false => a.scale.unwrap_or_else(|| ModelSpec::scale_for(group)),
    };
    spec.seed = a.seed;
    Ok(spec)
}

/// Does `work` with a progress bar.
fn making<T>(a: &GroupArgs, work: impl FnOnce(&Making) -> Result<T, Error>) -> Result<T, Failure> {
    let bar = ui::bar(0, "runs");
    let stop = ui::stop_flag();
    let done = work(&Making {
        workers: ui::workers(a.jobs),
        keep: &keep(a.keep.as_deref()),
        watch: &|done, all, what| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
            bar.set_message(what.to_string());
            !stop.load(std::sync::atomic::Ordering::Relaxed)
        },
    });
    bar.finish_and_clear();
    done.map_err(|e| of_jobs(&e))
}

fn measured(a: &GroupArgs, group: &Group) -> Result<(ModelSpec, Host, Vec<Demand>), Failure> {
    let spec = spec(a, group)?;
    say_what_is_missing(group);
    let host = spec.host(group).map_err(|e| of_jobs(&e))?;
    let demands = making(a, |making| demands(group, &spec, &host, making))?;
    Ok((spec, host, demands))
}

/// Prints the parts of the group that a model does not support, before anything runs.
fn say_what_is_missing(group: &Group) {
    for line in varve_jobs::model::cannot(group) {
        crate::ui::message!("varve: note: {line}");
    }
}

pub fn profile(a: &GroupArgs) -> Done {
    let group = load(a)?;
    let (_, host, demands) = measured(a, &group)?;
    show::demands(a, &group, &host, &demands)?;
    Ok(ExitCode::SUCCESS)
}

pub fn plan(args: &PlanArgs) -> Done {
    let a = &args.group;
    let chosen = planned(args)?;
    let nodes = a.nodes.as_deref().map(Kinds::read).transpose();
    let nodes = nodes.map_err(wrong)?;
    let group = load(a)?;
    let (spec, host, demands) = measured(a, &group)?;
    let mut plans = Vec::new();
    for strategy in chosen {
        let plan = varve_jobs::plan(&group, &demands, &host, strategy).map_err(|e| of_jobs(&e))?;
        plans.push(plan);
    }
    if let Some(target) = args.emit {
        // The model's processors have no numbers: the first ones of the machine that the file is for.
        let cpus: Vec<u32> = (0..host.cores).collect();
        let options = LiveOptions {
            logs: logs(a),
            scale: spec.scale,
            seed: a.seed,
            varve: "varve".into(),
        };
        return emit::print(
            &group,
            &plans[0],
            &host,
            nodes.as_ref(),
            &cpus,
            &options,
            target,
        );
    }
    if a.json {
        let all =
            json!({"machine": host.name, "version": VERSION, "demands": demands, "plans": plans});
        print(serde_json::to_string_pretty(&all).map_err(ui::failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    for plan in &plans {
        print(show::plan(plan, &explain(plan, &group, &host), &group));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn run(a: &GroupArgs) -> Done {
    let group = load(a)?;
    let spec = spec(a, &group)?;
    say_what_is_missing(&group);
    let compared: Compared = making(a, |making| compare(&group, &spec, &strategies(a), making))?;
    let best = match a.oracle {
        true => Some(oracle(a, &group, &spec, &compared)?),
        false => None,
    };
    let best = best.as_ref().map(|(r, n)| (r, *n));
    let machine = &compared.host.name;
    show::compared(a, &group, machine, &compared.results, Some(&spec), best)?;
    Ok(match compared.results.iter().all(|r| r.is_well()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// The best of all plans of a group, and how many there are.
fn oracle(
    a: &GroupArgs,
    group: &Group,
    spec: &ModelSpec,
    compared: &Compared,
) -> Result<(GroupResult, usize), Failure> {
    let plans = candidates(group, &compared.demands, &compared.host).map_err(|e| of_jobs(&e))?;
    let results = making(a, |making| run_all(group, &plans, spec, making))?;
    let n = results.len();
    let best = results
        .into_iter()
        .min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    best.map(|b| (b, n))
        .ok_or_else(|| ui::failed("no plan of this group fits the machine"))
}
