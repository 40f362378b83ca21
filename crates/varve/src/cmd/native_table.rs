//! Results of plans for native programs as tables and charts, and what to do.

use super::columns::{self, Cell};
use super::shares::BASE;
use varve_machine::Machine;
use varve_report::fmt::{self, Format};
use varve_report::{Better, Chart, Column, RunTable};
use varve_run::objects::{ObjectResult, PlacedSite, plan};

/// Within this factor two times count as equal.
const EQUAL: f64 = 1.03;
/// Sites that are shown, and named in the advice.
const SHOWN: usize = 12;
const NAMED: usize = 3;

fn base(results: &[ObjectResult]) -> &ObjectResult {
    results
        .iter()
        .find(|r| r.plan == BASE)
        .unwrap_or(&results[0])
}

fn slowdown(r: &ObjectResult, base: &ObjectResult) -> f64 {
    r.seconds / base.seconds.max(f64::MIN_POSITIVE)
}

/// Time and memory of each plan, with the advice.
pub fn of(name: &str, machine: &Machine, results: &[ObjectResult]) -> RunTable {
    let base = base(results);
    let column = Column::new("slowdown", Format::Number, Better::Lower);
    let cells = vec![
        columns::time(),
        Cell::new(column, |r: &ObjectResult| slowdown(r, base))
            .with_unit(format!("x {}", base.plan)),
        columns::dram(),
        Cell::share("slow reads", |r: &ObjectResult| r.slow_share),
        Cell::share("waiting", |r: &ObjectResult| r.stalls.total()),
        columns::moved(),
    ];
    let title = format!("{name} on {}", machine.name);
    let mut table = columns::table((title, "plan"), results, |r| &r.plan, cells);
    table.trade_off = (results.len() > 1).then_some((1, 2));
    if let Some(warning) = results.iter().find_map(|r| r.run.warning.as_ref()) {
        table.notes.push(format!("Note: {warning}"));
    }
    table
        .notes
        .extend(results.iter().find_map(|r| columns::sampled(&r.run)));
    table.notes.extend(advice(machine, results));
    table
}

/// The allocation sites, those that take most first.
pub fn details(results: &[ObjectResult]) -> Vec<RunTable> {
    let Some(r) = chosen(results).or(results.first()) else {
        return Vec::new();
    };
    let base = base(results);
    let mut table = RunTable::new(format!("Allocation sites, under `{}`", r.plan), "site");
    table.columns = vec![
        Column::new("peak", Format::Bytes, Better::Neither),
        Column::new("objects", Format::Number, Better::Neither),
        Column::new("misses", Format::Number, Better::Neither),
        Column::new("in slow memory costs", Format::Percent, Better::Lower),
        Column::new("in DRAM", Format::Percent, Better::Neither),
    ];
    for site in r.placed.iter().take(SHOWN) {
        let c = &site.counts;
        table.push(
            &site.site,
            [
                (c.peak_bytes as f64).into(),
                (c.objects as f64).into(),
                ((c.misses + c.write_misses) as f64).into(),
                (100.0 * cost(site) / base.seconds).into(),
                (100.0 * site.fast_quota_bytes as f64 / c.peak_bytes.max(1) as f64).into(),
            ],
        );
    }
    table.notes.push(
        "in slow memory costs: time that threads wait longer for this site's memory, % of the time with all in DRAM; of all threads"
            .into(),
    );
    vec![table]
}

/// The allocation sites of a plan that knows hot and cold, those that take most first.
pub fn coloured(r: &ObjectResult) -> RunTable {
    let mut table = RunTable::new(format!("Allocation sites, under `{}`", r.plan), "site");
    table.columns = vec![
        Column::new("peak", Format::Bytes, Better::Neither),
        Column::new("objects", Format::Number, Better::Neither),
        Column::new("misses", Format::Number, Better::Neither),
        Column::new("hot", Format::Percent, Better::Neither),
    ];
    for site in r.placed.iter().take(SHOWN) {
        let c = &site.counts;
        table.push(
            &site.site,
            [
                (c.peak_bytes as f64).into(),
                (c.objects as f64).into(),
                ((c.misses + c.write_misses) as f64).into(),
                (100.0 * site.fast_quota_bytes as f64 / c.peak_bytes.max(1) as f64).into(),
            ],
        );
    }
    table
}

pub fn charts(results: &[ObjectResult]) -> Vec<Chart> {
    vec![columns::stall_chart("plan", results, |r| &r.plan)]
}

/// What a site's memory costs if it is slow, s of all threads.
fn cost(site: &PlacedSite) -> f64 {
    site.counts.slow_ns.saturating_sub(site.counts.fast_ns) as f64 / 1e9
}

/// Is it a plan that somebody could follow, with whatever share?
fn is_real(r: &ObjectResult) -> bool {
    let name = r.plan.split(" at ").next().unwrap_or_default();
    plan(name).is_some_and(|plan| plan.real)
}

/// A run that takes at most so many times as long is nearly as fast.
const NEARLY: f64 = 1.05;

/// The plan to use: of those that are about as fast as the fastest, the one that is listed first, which is the simplest.
fn chosen(results: &[ObjectResult]) -> Option<&ObjectResult> {
    let real = results.iter().filter(|r| is_real(r));
    let best = real.clone().map(|r| r.seconds).fold(f64::MAX, f64::min);
    real.clone().find(|r| r.seconds <= best * EQUAL)
}

/// What to do, in sentences.
fn advice(machine: &Machine, results: &[ObjectResult]) -> Vec<String> {
    let base = base(results);
    let more = |r: &ObjectResult| percent(slowdown(r, base) - 1.0);
    let mut said = Vec::new();
    let caches = machine.llc.bytes.0;
    if base.most_bytes > 0 && base.most_bytes <= caches {
        let fits = format!(
            "Advice: its {} fit into the processor's last cache of {}",
            fmt::bytes(base.most_bytes as f64),
            fmt::bytes(caches as f64)
        );
        said.push(match results.iter().find(|r| r.plan == "slow") {
            Some(slow) if slowdown(slow, base) > NEARLY => format!(
                "{fits}. It goes to memory for the first access to each line, and for little else: all of it in slow memory takes {} \
                 more time, and a longer run loses less.",
                more(slow)
            ),
            Some(slow) => format!(
                "{fits}, so that any memory will do. All of it in slow memory takes {} more time.",
                more(slow)
            ),
            None => format!("{fits}, so that any memory will do."),
        });
        return said;
    }
    let Some(r) = chosen(results) else {
        return said;
    };
    if r.plan == "slow" {
        said.push(format!(
            "Advice: all of it may live in slow memory, for {} more time.",
            more(r)
        ));
        return said;
    }
    let linux = results.iter().find(|r| r.plan.starts_with("first-touch"));
    let beside = linux.filter(|linux| linux.plan != r.plan).map_or_else(
        || ", and nothing needs to be done".into(),
        |linux| {
            format!(
                "; Linux as it is (`{}`) takes {} more",
                linux.plan,
                more(linux)
            )
        },
    );
    said.push(format!(
        "Advice: use `{}`: with {} in DRAM the program takes {} more time than with all of it there{beside}.",
        r.plan,
        fmt::bytes(r.fast_bytes as f64),
        more(r)
    ));
    said.extend(slow_sites(r));
    said
}

/// Which sites have most of their memory in slow memory then.
fn slow_sites(r: &ObjectResult) -> Option<String> {
    if r.placed.iter().all(|site| site.fast_quota_bytes == 0) {
        return None;
    }
    let slow = |site: &&PlacedSite| site.counts.peak_bytes.saturating_sub(site.fast_quota_bytes);
    let mut sites: Vec<&PlacedSite> = r.placed.iter().collect();
    sites.retain(|site| site.counts.objects > 0 && 2 * slow(site) > site.counts.peak_bytes);
    sites.sort_by_key(|site| std::cmp::Reverse(slow(site)));
    let named: Vec<String> = sites
        .iter()
        .take(NAMED)
        .map(|site| {
            let (bytes, all) = (slow(site), site.counts.peak_bytes);
            let part = match bytes == all {
                true => format!("the {}", fmt::bytes(all as f64)),
                false => format!(
                    "{} of the {}",
                    fmt::bytes(bytes as f64),
                    fmt::bytes(all as f64)
                ),
            };
            format!("{part} of {}", site.site)
        })
        .collect();
    (!named.is_empty()).then(|| format!("In slow memory then: {}.", named.join("; ")))
}

fn percent(share: f64) -> String {
    format!("{} %", fmt::significant(100.0 * share.max(0.0), 2))
}
