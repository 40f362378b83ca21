//! `varve sites service.sites --fast 25%`: the allocation sites of a native program, what they are worth, and which memory each
//! heuristic puts them in.

use super::native_sampled::ACCESSES;
use crate::args::{SitesArgs, SitesBy};
use crate::ui::{Done, Failure, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use varve_report::fmt::{self, Format};
use varve_report::{Better, Column, Look, RunTable, Value, table as terminal};
use varve_run::objects::{PLANS, Plan};
use varve_run::request::{Fast, SHARE};
use varve_sites::native::{Profile, Sampling, names};
use varve_sites::{Counts, sampled, select};

/// A heuristic, and the fast memory that it gives to each site, bytes.
struct Judged {
    plan: Plan,
    quotas: Vec<u64>,
}

pub fn sites(a: &SitesArgs, profile: &Profile) -> Done {
    if let Some(SitesBy::Old) = a.by {
        return Err(wrong(
            "--by old is for programs with a collector, and this is a native one: leave it out",
        ));
    }
    let counts: Vec<Counts> = profile.sites.iter().map(|s| s.counts.clone()).collect();
    let peak: u64 = counts.iter().map(|c| c.peak_bytes).sum();
    let budget = budget(a, peak)?;
    let judged = judged(a, profile, &counts, budget)?;
    let doubts = doubts(profile, &counts, budget);
    let keys: Vec<_> = profile.sites.iter().map(|s| s.key.clone()).collect();
    let names = names::names(&keys);
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&site| {
        let c = &counts[site];
        let first = match a.by.unwrap_or(SitesBy::Accesses) {
            SitesBy::Accesses | SitesBy::Old => cost(c).max(c.misses + c.write_misses),
            SitesBy::Writes => c.write_misses,
            SitesBy::Bytes => c.peak_bytes,
            SitesBy::Objects => c.objects,
        };
        std::cmp::Reverse((first, c.peak_bytes))
    });
    if a.json {
        let site = |&site: &usize| {
            let memory = judged
                .iter()
                .map(|j| (j.plan.name.into(), json!(j.quotas[site])));
            let c = &counts[site];
            json!({
                "site": names[site],
                "objects": c.objects, "bytes": c.bytes, "peak_bytes": c.peak_bytes,
                "freed": c.freed, "lifetime_bytes": c.lifetime_bytes,
                "reads": c.reads, "writes": c.writes,
                "misses": c.misses, "write_misses": c.write_misses,
                "fast_ns": c.fast_ns, "slow_ns": c.slow_ns,
                "samples": c.samples, "uses": c.uses, "in_doubt": doubts[site],
                "fast_bytes": memory.collect::<serde_json::Map<_, _>>(),
            })
        };
        let sites: Vec<_> = order.iter().map(site).collect();
        print(json!({
            "program": profile.program, "command": profile.command, "machine": profile.machine,
            "sampled": profile.sampled, "budget_bytes": budget, "sites": sites,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let sampled = profile.sampled.is_some();
    // Files of other tools may lack both.
    let program = match &*profile.program {
        "" => "A program",
        known => known,
    };
    let title = match (sampled, &*profile.machine) {
        (true, _) => format!("{program}: what its memory is worth, from samples"),
        (false, "") => format!("{program}: what its memory is worth"),
        (false, machine) => format!("{program}: what its memory is worth on {machine}"),
    };
    let mut table = RunTable::new(title, "site");
    table.columns = vec![
        Column::new("peak", Format::Bytes, Better::Neither),
        Column::new("objects", Format::Number, Better::Neither),
    ];
    let valued = match &profile.sampled {
        Some(sampling) => [
            Column::new(used(sampling), Format::Number, Better::Neither),
            Column::new("samples", Format::Number, Better::Neither),
        ],
        None => [
            Column::new("misses", Format::Number, Better::Neither),
            Column::new("waits more if slow", Format::DurationNs, Better::Neither),
        ],
    };
    table.columns.extend(valued);
    for j in &judged {
        table
            .columns
            .push(Column::new(j.plan.name, Format::Percent, Better::Neither).with_unit("% fast"));
    }
    let shown = if a.all { usize::MAX } else { a.top };
    for &site in order.iter().take(shown) {
        let c = &counts[site];
        let part = |j: &Judged| -> Value {
            (100.0 * j.quotas[site] as f64 / c.peak_bytes.max(1) as f64).into()
        };
        let values = [
            Value::from(c.peak_bytes as f64),
            (c.objects as f64).into(),
            ((c.misses + c.write_misses) as f64).into(),
            match sampled {
                true => c.samples as f64,
                false => cost(c) as f64,
            }
            .into(),
        ];
        let mark = if doubts[site] { " (?)" } else { "" };
        table.push(
            format!("{}{mark}", names[site]),
            values.into_iter().chain(judged.iter().map(part)),
        );
    }
    if order.len() > shown {
        table.notes.push(format!(
            "... {} more: --all shows them, --json tells all of each",
            order.len() - shown
        ));
    }
    table.notes.push(format!(
        "With {} of fast memory of {} at most in use; another budget: --fast 10% or --fast 8GiB.",
        fmt::bytes(budget as f64),
        fmt::bytes(peak as f64)
    ));
    match &profile.sampled {
        None => table
            .notes
            .push("waits more if slow: time of all threads together, without overlap".into()),
        Some(sampling) => table.notes.extend(about(sampling, &counts, &doubts)),
    }
    print(terminal::runs(&table, Look::stdout()));
    Ok(ExitCode::SUCCESS)
}

/// Which sites of a profile from samples may belong into the other memory, as far as samples tell.
fn doubts(profile: &Profile, counts: &[Counts], budget: u64) -> Vec<bool> {
    if profile.sampled.is_none() {
        return vec![false; counts.len()];
    }
    sampled::doubtful(counts, |sites| {
        let mut bytes = vec![0; sites.len()];
        for (site, fast) in select::hot_sites(sites, budget) {
            bytes[site] = fast;
        }
        bytes
    })
}

/// The unit of a site's value.
fn used(sampling: &Sampling) -> &'static str {
    match sampling.source.starts_with(ACCESSES) {
        true => ACCESSES,
        false => "pages used",
    }
}

/// How a profile was sampled, and how sure it is.
fn about(sampling: &Sampling, counts: &[Counts], doubts: &[bool]) -> Vec<String> {
    let doubtful = counts.iter().zip(doubts).filter(|(_, doubt)| **doubt);
    let bytes: u64 = doubtful.clone().map(|(c, _)| c.peak_bytes).sum();
    let all: u64 = counts.iter().map(|c| c.peak_bytes).sum();
    let mut lines = vec![
        format!(
            "From {} looks in {:.1} s at {}.",
            fmt::integer(sampling.looks as f64),
            sampling.milliseconds as f64 / 1000.0,
            sampling.source
        ),
        match used(sampling) {
            ACCESSES => "accesses: estimated from those that were sampled; samples: objects that were followed".into(),
            _ => "pages used: summed over scans; samples: objects that were followed".into(),
        },
        match doubtful.count() {
            0 => "No site is in doubt: within the error of its samples each stays where hot-sites puts it.".into(),
            count => format!(
                "(?) in doubt: within the error of their samples hot-sites may put {count} of {} sites, {:.0} % of all bytes, into the \
                 other memory. A longer run decides.",
                counts.len(),
                100.0 * bytes as f64 / all.max(1) as f64
            ),
        },
    ];
    lines.extend(sampling.blind.iter().map(|line| format!("Note: {line}")));
    lines
}

/// Time that threads wait longer if the site is in slow memory, ns.
fn cost(c: &Counts) -> u64 {
    c.slow_ns.saturating_sub(c.fast_ns)
}

fn budget(a: &SitesArgs, peak: u64) -> Result<u64, Failure> {
    let share = |percent: f64| (peak as f64 * percent / 100.0) as u64;
    match &a.fast {
        None => Ok(share(SHARE)),
        Some(Fast::Size(bytes)) => Ok(bytes.0),
        Some(Fast::Percent(all)) if all.len() == 1 => Ok(share(all[0])),
        Some(several) => Err(wrong(format!(
            "--fast {several}: one budget is shown at a time, such as --fast 25%"
        ))),
    }
}

fn judged(
    a: &SitesArgs,
    profile: &Profile,
    counts: &[Counts],
    budget: u64,
) -> Result<Vec<Judged>, Failure> {
    // The plans that a user would choose from; the two of Crystal Gazer are on request. Samples know no times.
    let usual = match profile.sampled.is_some() {
        true => "knapsack,hot-sites",
        false => "knapsack,oracle",
    };
    let by_site = |plan: &Plan| plan.by.is_by_site();
    let list = a.heuristic.as_deref().unwrap_or(usual);
    let plans = PLANS.list(list, by_site).map_err(wrong)?;
    let judge = |plan: Plan| {
        let Some(quotas) = plan.by.quotas(counts, counts, budget) else {
            let able = PLANS.list(varve_spec::ALL, by_site).map_err(wrong)?;
            let able: Vec<&str> = able.iter().map(|plan| plan.name).collect();
            return Err(wrong(format!(
                "plan `{}` does not divide a budget among sites; those that do are {}",
                plan.name,
                able.join(", ")
            )));
        };
        let mut quotas = quotas.bytes;
        quotas.resize(counts.len(), 0);
        Ok(Judged { plan, quotas })
    };
    plans.into_iter().map(judge).collect()
}
