//! `varve jobs`: whole programs on one machine.

mod emit;
mod live;
mod model;
mod show;

use crate::args::{GroupArgs, JobsAction, JobsArgs, PlanArgs};
use crate::ui::{Done, Failure, failed, interrupted, wrong};
use std::path::{Path, PathBuf};
use varve_jobs::{Error, Strategy, group};
use varve_run::Keep;

pub fn jobs(a: &JobsArgs) -> Done {
    match &a.action {
        JobsAction::Profile(a) if a.live => live::profile(a),
        JobsAction::Profile(a) => model::profile(a),
        JobsAction::Plan(a) if a.group.live => live::plan(a),
        JobsAction::Plan(a) => model::plan(a),
        JobsAction::Run(a) if a.live => live::run(a),
        JobsAction::Run(a) => model::run(a),
        JobsAction::Exercise { workload } => live::carry_out(workload),
    }
}

/// The group of a file.
fn load(a: &GroupArgs) -> Result<varve_jobs::Group, Failure> {
    group::load(&a.group).map_err(wrong)
}

/// The strategies to compare.
fn strategies(a: &GroupArgs) -> Vec<Strategy> {
    match a.strategy.is_empty() {
        true => Strategy::COMPARED.to_vec(),
        false => a.strategy.clone(),
    }
}

/// The strategies to plan: only one, if a file is written.
fn planned(a: &PlanArgs) -> Result<Vec<Strategy>, Failure> {
    let chosen = match a.group.strategy.is_empty() {
        true => vec![Strategy::ALL],
        false => strategies(&a.group),
    };
    match (a.emit, &chosen[..]) {
        (Some(_), [_, _, ..]) => Err(wrong(format!(
            "--emit writes one schedule, and there are {} strategies: name one with --strategy",
            chosen.len()
        ))),
        _ => Ok(chosen),
    }
}

/// Where the output of programs goes.
fn logs(a: &GroupArgs) -> PathBuf {
    a.logs.clone().unwrap_or_else(|| "varve-jobs-logs".into())
}

fn keep(folder: Option<&Path>) -> Keep {
    match folder {
        Some(folder) if folder.as_os_str() == "none" => Keep::nothing(),
        Some(folder) => Keep::in_folder(folder),
        None => Keep::usual(),
    }
}

fn of_jobs(e: &Error) -> Failure {
    match e {
        e if e.is_interrupt() => interrupted(),
        Error::Live(_) => failed(e),
        e => wrong(e),
    }
}
