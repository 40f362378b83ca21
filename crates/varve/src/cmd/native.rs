//! A native program, object by object, on a modelled machine: recorded once, and replayed under each plan with fast memory as a
//! budget.

use super::compared::{self, origin};
use super::native_known::Known;
use super::native_replay::{MACHINE, Replays, SHARE, chosen, name, profile, sites, trace};
use super::shares::{self, BASE, Shares};
use super::{native_known, native_replay, native_table, native_trays, pictures};
use crate::args::run::job::{ModelledNative, Work};
use crate::ui::{self, Done, wrong};
use varve_run::Error;
use varve_run::objects::{self, By, Groups, ObjectResult, Placed, PlacedSite, Plan, truth};
use varve_run::request::{self, Fast};
use varve_sites::Counts;
use varve_sites::native::names;

/// Sites of which results tell.
const SITES: usize = 50;

pub fn run(work: &Work, a: &ModelledNative) -> Done {
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let machine = request::machine(&a.model.machine_or(MACHINE)).map_err(wrong)?;
    if varve_run::has_one_memory(&machine) {
        return native_trays::run(work, a, &machine);
    }
    if machine.dram_cache.is_some() {
        return Err(wrong(Error::NoSlowNode(machine.name)));
    }
    if a.trays.trays.is_some() {
        return Err(wrong(Error::NoTrays(machine.name)));
    }
    // What is wrong with options is said before a command runs.
    native_known::check(a.stale.stale, a.plans.profile.is_some())?;
    let plans = chosen(a.plans.plan.as_deref())?;
    if plans.iter().any(|plan| matches!(plan.by, By::Colours)) {
        return Err(wrong(Error::NoTrays(machine.name)));
    }
    let profile = a.plans.profile.as_deref().map(profile).transpose()?;
    let (trace, _kept) = trace(work, native_replay::recording(&a.marked, &a.windows))?;
    let sites = sites(&trace)?;
    let replays = Replays::of(
        &machine,
        &trace,
        &sites,
        a.model.seed,
        a.model.jobs,
        a.output.out.is_some(),
    );
    let both = [("dram", Placed::Fast), (SLOW, Placed::Slow)];
    let [dram, slow] = &replays.make(replays.specs(both, None, true))?[..] else {
        unreachable!("as many results as runs")
    };
    let keys = objects::keys(&sites, dram);
    let stacks = truth(dram, slow);
    let title = format!("{} on {}", name(work), machine.name);
    let says = (Some("with all in DRAM"), "with all in slow memory");
    let flame = native_replay::flame(&title, says, &keys, &stacks);
    let (fast, slowest) = ((says.0, &dram.run.seen), (says.1, &slow.run.seen));
    let code = pictures::functions(&title, fast, slowest);
    let own = Groups::by_heat(&keys, &stacks);
    let truth = own.sum(&stacks);
    let (groups, known) = match &profile {
        None => (own.clone(), truth.clone()),
        Some(profile) => {
            let known = Known {
                profile,
                stale: a.stale.stale,
                otherwise: "slow",
            };
            known.of(&keys, &stacks, dram.most_bytes)?
        }
    };
    let budgets = Budgets::new(a.plans.fast.as_ref(), &plans, dram.most_bytes);
    let (mut specs, mut quotas) = (Vec::new(), Vec::new());
    for (plan, name, bytes) in budgets.runs() {
        let sites = objects::quotas(plan, &known, &truth, bytes);
        quotas.push(sites.clone().map_or(Vec::new(), |q| q.bytes));
        let placed = match (plan.by, sites) {
            (By::Pages(policy), _) => Placed::Pages(policy.into()),
            (By::Truth, Some(sites)) => Placed::Sites(own.clone(), sites),
            (_, Some(sites)) => Placed::Sites(groups.clone(), sites),
            _ => continue,
        };
        specs.extend(replays.specs([(&name[..], placed)], Some(bytes), false));
    }
    let mut results = vec![dram.clone(), slow.clone()];
    results.retain(|r| plans.iter().any(|plan| plan.name == r.plan) || r.plan == BASE);
    let first = results.len();
    results.extend(replays.make(specs)?);
    replays.done();
    let sites = Shown {
        own: names::names(&own.keys),
        truth,
        profiled: names::names(&groups.keys),
        counts: groups.sum(&stacks),
    };
    for (i, result) in results.iter_mut().enumerate() {
        let quotas = i.checked_sub(first).map_or(&[][..], |i| &quotas[i]);
        result.placed = sites.placed(&result.plan, quotas);
    }
    let mut table = native_table::of(&name(work), &machine, &results);
    table.notes.extend(budgets.note(dram.most_bytes));
    if a.plans.plan.is_none() {
        table
            .notes
            .push("`varve plan` says what each plan does.".into());
    }
    let chart = budgets.chart(&results);
    let details = native_table::details(&results);
    let charts = native_table::charts(&results)
        .into_iter()
        .chain(chart)
        .collect();
    let origin = origin(&machine.name, a.model.seed);
    let runs = pictures::runs(&results, |r| &r.plan, |r| &r.run.seen);
    let drawn = pictures::of(&title, &runs, (Some(flame), code));
    compared::show(&a.output, origin, table, (details, charts), &results, drawn)
}

/// The plan with all in slow memory, which no budget changes.
const SLOW: &str = "slow";

/// Sites as results tell of them: those of this very run, and those of the profile that plans go by.
struct Shown {
    own: Vec<String>,
    truth: Vec<Counts>,
    profiled: Vec<String>,
    counts: Vec<Counts>,
}

impl Shown {
    /// The sites that take most, with the fast memory that each may take.
    fn placed(&self, plan: &str, quotas: &[u64]) -> Vec<PlacedSite> {
        let name = plan.split(" at ").next().unwrap_or_default();
        let by_profile = objects::plan(name).is_some_and(|plan| matches!(plan.by, By::Sites(_)));
        let (names, counts) = match by_profile {
            true => (&self.profiled, &self.counts),
            false => (&self.own, &self.truth),
        };
        let mut order: Vec<usize> = (0..counts.len())
            .filter(|&site| counts[site].peak_bytes > 0)
            .collect();
        order.sort_by_key(|&site| std::cmp::Reverse(counts[site].peak_bytes));
        let of = |&site: &usize| PlacedSite {
            site: names[site].clone(),
            fast_quota_bytes: quotas.get(site).copied().unwrap_or(0),
            counts: counts[site].clone(),
        };
        order.iter().take(SITES).map(of).collect()
    }
}

/// How much fast memory there is, run by run.
struct Budgets {
    plans: Vec<&'static Plan>,
    /// Names of runs with shares, bytes of each share.
    shares: Option<Shares>,
    /// By run, without that of [`BASE`].
    names: Vec<String>,
    bytes: Vec<u64>,
    said: bool,
}

impl Budgets {
    fn new(fast: Option<&Fast>, plans: &[&'static Plan], most_bytes: u64) -> Budgets {
        let limited = |plan: &&&Plan| !matches!(plan.by, By::Fast | By::Slow);
        let plans: Vec<&Plan> = plans.iter().filter(limited).copied().collect();
        let own: Vec<String> = plans.iter().map(|plan| plan.name.to_string()).collect();
        let usual = [SHARE];
        let percents = match fast {
            Some(Fast::Size(bytes)) => {
                return Budgets {
                    bytes: vec![bytes.0; plans.len()],
                    names: own,
                    plans,
                    shares: None,
                    said: true,
                };
            }
            Some(Fast::Percent(all)) => &all[..],
            None => &usual,
        };
        let shares = Shares::new(own, percents);
        Budgets {
            bytes: shares.limits(most_bytes),
            names: shares.names().split_off(1),
            plans: percents.iter().flat_map(|_| plans.clone()).collect(),
            shares: Some(shares),
            said: fast.is_some(),
        }
    }

    /// Plan, name and bytes of each run.
    fn runs(&self) -> impl Iterator<Item = (&'static Plan, &String, u64)> {
        let names = self.names.iter().zip(&self.bytes);
        let runs = self.plans.iter().zip(names);
        runs.map(|(plan, (name, &bytes))| (*plan, name, bytes))
    }

    fn note(&self, most_bytes: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(shares) = &self.shares {
            notes.push(shares::note_native(shares, most_bytes));
        }
        if !self.said {
            notes.push("Another budget: --fast 10%,50% or --fast 8GiB.".into());
        }
        notes
    }

    fn chart(&self, results: &[ObjectResult]) -> Option<varve_report::Chart> {
        let base = results.iter().find(|r| r.plan == BASE)?;
        let slowdown = |name: &str| {
            let run = results.iter().find(|r| r.plan == name)?;
            Some(run.seconds / base.seconds)
        };
        shares::chart(self.shares.as_ref()?, &base.program, slowdown)
    }
}
