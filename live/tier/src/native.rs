//! Objects of a native program on this machine: which sites go where, as a plan chooses them by a profile.

use std::path::Path;
use varve_live::nodes::Kinds;
use varve_live::objects::{FrameRef, Site, SiteMap, Tier, Variable};
use varve_run::objects::Plan;
use varve_run::request::SHARE;
use varve_sites::Counts;
use varve_sites::native::{Frame, Key, Module, Profile, names};
use varve_symbols::statics;

/// Which sites go where, and their names.
///
/// Sites are chosen as if the budget were the same part of the profile's memory. How much the program `takes` may not be known: then
/// the budget is taken as it is, and as at least [`SHARE`]. What is promised to sites is as much more as the budget is larger than what
/// they had there.
pub fn site_map(
    profile: &Profile,
    plan: &Plan,
    budget: u64,
    takes: Option<u64>,
    kinds: Kinds,
) -> (SiteMap, Vec<String>) {
    // The allocator sees native calls alone.
    let profile = &profile.without_scripts();
    let counts: Vec<Counts> = profile.sites.iter().map(|s| s.counts.clone()).collect();
    let peak: u64 = counts.iter().map(|c| c.peak_bytes).sum();
    let least = (peak as f64 * SHARE / 100.0) as u64;
    let in_profile = match takes.filter(|&bytes| bytes > 0) {
        Some(bytes) => (budget as f64 * peak as f64 / bytes as f64) as u64,
        None => budget.max(least),
    };
    let chosen = plan.by.quotas(&counts, &counts, in_profile.min(peak));
    let quotas = chosen.unwrap_or_default();
    let chosen: u64 = quotas.bytes.iter().sum();
    let factor = budget as f64 / chosen.max(1) as f64;
    let mut worth: Vec<usize> = (0..counts.len()).collect();
    let density = |site: usize| {
        let c = &counts[site];
        (c.misses + c.write_misses) as f64 / c.peak_bytes.max(1) as f64
    };
    worth.sort_by(|&a, &b| density(b).total_cmp(&density(a)));
    let mut ranks = vec![0; counts.len()];
    for (rank, &site) in (0..).zip(&worth) {
        ranks[site] = rank;
    }
    let all_names = names::names(
        &profile
            .sites
            .iter()
            .map(|s| s.key.clone())
            .collect::<Vec<_>>(),
    );
    let (mut sites, mut shown, mut variables) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = budget;
    for (number, site) in profile.sites.iter().enumerate() {
        let quota = quotas.bytes.get(number).copied().unwrap_or(0);
        let tier = if quota > 0 { Tier::Fast } else { Tier::Slow };
        if let Some(mut variable) = variable(profile, &site.key, tier) {
            // Variables are bound at the start, so they take from the budget before any object.
            match variable.tier == Tier::Fast && variable.bytes <= left {
                true => left -= variable.bytes,
                false => variable.tier = Tier::Slow,
            }
            variables.push(variable);
        }
        if !matches!(site.key, Key::Heap(_) | Key::Mapping(_)) {
            continue;
        }
        let frame = |frame: &Frame| FrameRef {
            module: module_path(profile, frame),
            build_id: frame.build_id.clone(),
            offset: frame.offset,
        };
        sites.push(Site {
            stack: site.key.stack().iter().map(frame).collect(),
            tier,
            promised_bytes: (quota as f64 * factor) as u64,
            rank: ranks[number],
        });
        shown.push(all_names[number].clone());
    }
    let map = SiteMap {
        sites,
        variables,
        default_tier: Some(Tier::Slow),
        budget_bytes: left,
        kinds,
    };
    (map, shown)
}

/// A static variable, where its file is still the one that was profiled.
fn variable(profile: &Profile, key: &Key, tier: Tier) -> Option<Variable> {
    let Key::Static {
        module,
        build_id,
        symbol,
    } = key
    else {
        return None;
    };
    let same = |m: &&Module| m.name == *module && m.build_id == *build_id;
    let file = profile.modules.iter().find(same)?;
    let all = statics(Path::new(&file.path)).ok()?;
    let found = all.into_iter().find(|v| v.symbol == *symbol)?;
    Some(Variable {
        module: file.path.clone(),
        build_id: build_id.clone(),
        address: found.address,
        bytes: found.bytes,
        tier,
    })
}

/// Where a frame's file was when the profile was made.
fn module_path(profile: &Profile, frame: &Frame) -> String {
    let same =
        |m: &&Module| m.name == frame.module && m.build_id == frame.build_id && !m.path.is_empty();
    let module = profile.modules.iter().find(same);
    module.map_or(frame.module.clone(), |m| m.path.clone())
}
