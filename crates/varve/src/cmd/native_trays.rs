//! A native program on a modelled machine with one memory whose DIMMs lie one after the other: hot and cold sites on different
//! DIMMs, beside all pages on all DIMMs in turn.

use super::compared::{self, origin};
use super::native_known::Known;
use super::native_replay::{Replays, name, profile, sites, trace};
use super::shares::BASE;
use super::{native_known, native_replay, native_table, pictures, tray_table};
use crate::args::run::job::{ModelledNative, Work};
use crate::ui::{Done, Failure, wrong};
use varve_machine::Machine;
use varve_run::TrayOptions;
use varve_run::objects::{self, By, Groups, Placed, PlacedSite, check_trays, colours, truth};
use varve_sites::native::names;

/// Sites of which results tell.
const SITES: usize = 50;

pub fn run(work: &Work, a: &ModelledNative, machine: &Machine) -> Done {
    // What is wrong with options is said before a command runs.
    native_known::check(a.stale.stale, a.plans.profile.is_some())?;
    let plans = chosen(a.plans.plan.as_deref(), machine)?;
    if let Some(fast) = &a.plans.fast {
        return Err(wrong(format!(
            "--fast {fast}: machine `{}` has one memory, so that there is no budget: --plan trays:capacity=5% says how many misses cold \
             sites may have, --trays limit=8MiB how much of a DIMM is hot",
            machine.name
        )));
    }
    let settings = match &a.trays.trays {
        Some(text) => TrayOptions::parse(text).map_err(wrong)?,
        None => TrayOptions::default(),
    };
    check_trays(machine, &settings).map_err(wrong)?;
    let profile = a.plans.profile.as_deref().map(profile).transpose()?;
    let (trace, _kept) = trace(work, native_replay::recording(&a.marked, &a.windows))?;
    let sites = sites(&trace)?;
    let replays = Replays::of(
        machine,
        &trace,
        &sites,
        a.model.seed,
        a.model.jobs,
        a.output.out.is_some(),
    );
    let all = replays.make(replays.specs([(BASE, Placed::Spread)], None, true))?;
    let spread = &all[0];
    let keys = objects::keys(&sites, spread);
    // There is one memory, so that nothing is known of another one: what counts is who misses.
    let stacks = truth(spread, spread);
    let (groups, known) = match &profile {
        None => {
            let own = Groups::by_heat(&keys, &stacks);
            let counts = own.sum(&stacks);
            (own, counts)
        }
        Some(profile) => {
            let known = Known {
                profile,
                stale: a.stale.stale,
                otherwise: "hot",
            };
            known.of(&keys, &stacks, spread.most_bytes)?
        }
    };
    let (mut specs, mut quotas) = (Vec::new(), Vec::new());
    for plan in plans.iter().filter(|plan| plan.capacity.is_some()) {
        let chosen = colours::colours(&known, plan.capacity.unwrap_or_default());
        quotas.push(chosen.bytes.clone());
        let placed = Placed::Coloured(groups.clone(), chosen, settings.clone());
        specs.extend(replays.specs([(&plan.name[..], placed)], None, false));
    }
    let made = replays.make(specs)?;
    replays.done();
    let mut results = all;
    let (shown, counts) = (names::names(&groups.keys), groups.sum(&stacks));
    for (mut result, quotas) in made.into_iter().zip(quotas) {
        let placed = counts.iter().enumerate().map(|(site, counts)| PlacedSite {
            site: shown[site].clone(),
            fast_quota_bytes: quotas[site].min(counts.peak_bytes),
            counts: counts.clone(),
        });
        result.placed = placed.filter(|site| site.counts.peak_bytes > 0).collect();
        let peak = |site: &PlacedSite| std::cmp::Reverse(site.counts.peak_bytes);
        result.placed.sort_by_key(peak);
        result.placed.truncate(SITES);
        results.push(result);
    }
    let title = format!("{} on {}", name(work), machine.name);
    let says = (None, "with hot and cold memory spread over all DIMMs");
    let flame = native_replay::flame(&title, says, &keys, &stacks);
    let seen = &results[0].run.seen;
    let code = pictures::functions(&title, (None, seen), (says.1, seen));
    let mut table = tray_table::of(title, &results[0], &results);
    if profile.is_none() && results.len() > 1 {
        table.notes.push(
            "Sites are hot or cold by this very run; --sites goes by a profile of another input, made with `varve profile`."
                .into(),
        );
    }
    let mut details = vec![tray_table::dimms(&results)];
    details.extend(
        results
            .last()
            .filter(|r| !r.placed.is_empty())
            .map(native_table::coloured),
    );
    let charts = tray_table::charts(&results);
    let origin = origin(&machine.name, a.model.seed);
    let runs = pictures::runs(&results, |r| &r.plan, |r| &r.run.seen);
    let drawn = pictures::of(&table.title, &runs, (Some(flame), code));
    compared::show(&a.output, origin, table, (details, charts), &results, drawn)
}

/// A plan for this kind of machine.
struct Chosen {
    /// As it was written.
    name: String,
    /// The part of all misses that cold sites may have; none where nothing is cold.
    capacity: Option<f64>,
}

/// The plans that a list names; all that one memory has room for without one.
fn chosen(list: Option<&str>, machine: &Machine) -> Result<Vec<Chosen>, Failure> {
    let able = objects::PLANS.iter();
    let able = able.filter(|plan| plan.name == BASE || matches!(plan.by, By::Colours));
    let able: Vec<&str> = able.map(|plan| plan.name).collect();
    let named = varve_spec::expand(list.unwrap_or(varve_spec::ALL), &able);
    let plan = |name: String| match objects::plan(&name) {
        Some(plan) if matches!(plan.by, By::Colours) => {
            let capacity = Some(colours::capacity(&name).map_err(wrong)?);
            Ok(Chosen { name, capacity })
        }
        Some(plan) if plan.name == BASE => Ok(Chosen {
            name,
            capacity: None,
        }),
        Some(_) => Err(wrong(format!(
            "--plan {name}: machine `{}` has no slow memory: take {} there, or another machine, such as cxl-spr",
            machine.name,
            able.join(" and ")
        ))),
        // The words for a name that there is not.
        None => super::native_replay::chosen(Some(&name)).map(|_| Chosen {
            name,
            capacity: None,
        }),
    };
    named.into_iter().map(plan).collect()
}
