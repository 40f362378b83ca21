//! A group under several strategies on a modelled machine.

use crate::demand::Demand;
use crate::error::Error;
use crate::group::{Group, Modelled};
use crate::model::{self, ModelSpec};
use crate::plan::{Host, Plan, Strategy, plan};
use crate::result::GroupResult;
use varve_run::{GoOn, Keep, side_by_side};

/// How runs are made.
pub struct Making<'a> {
    /// Host threads.
    pub workers: usize,
    /// Where finished runs are kept.
    pub keep: &'a Keep,
    /// Gets the number of finished pieces, their total, and the current piece; cancels everything by returning `false`.
    pub watch: &'a (dyn Fn(usize, usize, &str) -> bool + Sync),
}

/// A group, its demands, and what came of each strategy.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The machine as plans see it.
    pub host: Host,
    /// Each program's demands.
    pub demands: Vec<Demand>,
    /// A plan for each strategy.
    pub plans: Vec<Plan>,
    /// The result of each schedule.
    pub results: Vec<GroupResult>,
}

/// Measures the demands of all programs of a group.
///
/// # Errors
/// A program that cannot be run on the model; an interrupt.
pub fn demands(
    group: &Group,
    spec: &ModelSpec,
    host: &Host,
    making: &Making,
) -> Result<Vec<Demand>, Error> {
    let all = group.programs.len();
    in_parallel(
        all,
        making,
        &|i| group.programs[i].name.clone(),
        &|i, go_on| model::profile::profile(group, i, spec, host, making.keep, go_on),
    )
}

/// Runs plans of a group.
///
/// # Errors
/// As [`model::run`].
pub fn run_all(
    group: &Group,
    plans: &[Plan],
    spec: &ModelSpec,
    making: &Making,
) -> Result<Vec<GroupResult>, Error> {
    in_parallel(
        plans.len(),
        making,
        &|i| plans[i].strategy.name(),
        &|i, go_on| {
            let key = identity(group, &plans[i], spec);
            let what = || format!("{} under {}", group.name, plans[i].strategy.name());
            (making.keep).kept_or_made(&key, &what, || model::run(group, &plans[i], spec, go_on))
        },
    )
}

/// Profiles, plans and runs a group under several strategies.
///
/// # Errors
/// A group that does not fit the machine; programs that cannot be run; an interrupt.
pub fn compare(
    group: &Group,
    spec: &ModelSpec,
    strategies: &[Strategy],
    making: &Making,
) -> Result<Compared, Error> {
    let host = spec.host(group)?;
    let demands = demands(group, spec, &host, making)?;
    let plans = (strategies.iter())
        .map(|&s| plan(group, &demands, &host, s))
        .collect::<Result<Vec<_>, _>>()?;
    let results = run_all(group, &plans, spec, making)?;
    Ok(Compared {
        host,
        demands,
        plans,
        results,
    })
}

/// Everything that a run depends on.
fn identity(group: &Group, plan: &Plan, spec: &ModelSpec) -> String {
    let text = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
    let programs = group.programs.iter();
    let programs = programs.filter_map(|p| p.modelled.as_ref().map(Modelled::identity));
    let profiles = group.programs.iter().filter_map(|p| {
        let inside = p.inside.as_ref()?;
        varve_run::digest(inside.sites.as_deref()?)
    });
    format!(
        "group {} {} {} {} {} {} {:?}",
        text(serde_json::to_string(group)),
        text(serde_json::to_string(plan)),
        text(serde_json::to_string(&spec.machine)),
        spec.scale,
        spec.seed,
        programs.collect::<String>(),
        profiles.collect::<Vec<_>>(),
    )
}

/// Does pieces of work on several host threads.
pub(crate) fn in_parallel<T: Send>(
    all: usize,
    making: &Making,
    name: &(dyn Fn(usize) -> String + Sync),
    work: &(dyn Fn(usize, GoOn) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let done = std::sync::atomic::AtomicUsize::new(0);
    let order = std::sync::atomic::Ordering::Relaxed;
    let results = side_by_side(
        all,
        making.workers,
        &|i, progress| {
            if progress.is_none() {
                done.fetch_add(1, order);
            }
            (making.watch)(done.load(order), all, &name(i))
        },
        work,
    );
    // An interrupt of one is what ended the others.
    results.into_iter().collect()
}
