//! C8: how checks turn out, and how they were biased: the paper's tables 1 and 4, on its kernels and its stores under YCSB.

use super::Study;
use super::programs::QuickProgram;
use super::scratch::Scratch;
use super::stores::{self, filled};
use super::turns::mean;
use std::collections::BTreeMap;
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};
use varve_run::Error;
use varve_runtime::{CheckStats, Checks, SiteStats};
use varve_serve::ycsb::{self, Workload};

/// Paper's table 1, of stores under YCSB: checks whose actions were activated, percent of all, and of sites those that were never activated.
const TABLE1: [(&str, f64, f64); 3] = [
    ("FHMap", 0.24, 99.86),
    ("PBTree", 0.40, 99.57),
    ("HBTree", 0.20, 99.87),
];

/// Paper's table 4: dynamic checks that are likely, unbiased, unlikely and very unlikely, percent with two digits after the point.
const TABLE4: [(&str, [f64; 4]); 8] = [
    ("FHMap", [0.07, 0.0, 33.08, 66.84]),
    ("PBTree", [0.15, 0.0, 71.96, 27.88]),
    ("HBTree", [0.06, 0.0, 71.96, 27.98]),
    ("MArray", [0.18, 0.0, 0.0, 99.82]),
    ("MList", [0.38, 0.0, 0.0, 99.62]),
    ("FARArray", [22.12, 0.0, 0.0, 77.88]),
    ("FArray", [0.40, 0.0, 0.0, 99.60]),
    ("FList", [0.03, 0.0, 0.0, 99.97]),
];
const BIASES: [&str; 4] = ["likely", "unbiased", "unlikely", "very unlikely"];

/// The counts of a program.
struct Counted {
    checks: CheckStats,
    sites: SiteStats,
}

/// How many runs it takes.
pub fn runs(kernels: &[&QuickProgram]) -> usize {
    kernels.len() + stores::COUNT
}

pub fn biases(
    study: &mut Study,
    kernels: &[&QuickProgram],
    out: &mut StudyResult,
) -> Result<(), Error> {
    let mut all = BTreeMap::new();
    for (kind, name, _) in stores::STORES {
        study.begin(format!("{name} counted"))?;
        match of_store(study, kind) {
            Ok(counted) => drop(all.insert(name, counted)),
            Err(e) => study.failures.push(format!("{name} counted failed: {e}")),
        }
    }
    for entry in kernels {
        let scratch = Scratch::new().map_err(Error::Hosted)?;
        let Some(ran) = study.run(entry, "counted", scratch.config(Checks::Profiled, true))? else {
            continue;
        };
        if let Some(checks) = ran.checks {
            let sites = ran.sites;
            all.insert(entry.name, Counted { checks, sites });
        }
    }
    let names: Vec<&'static str> = TABLE4.iter().map(|row| row.0).collect();
    table1(&all, &names, out);
    table4(&all, out);
    Ok(())
}

/// A store under all workloads, one after the other.
fn of_store(study: &Study, kind: varve_serve::Kind) -> Result<Counted, String> {
    let scratch = Scratch::new()?;
    let (mut spec, mut target) = filled(study, kind, scratch.config(Checks::Profiled, true))?;
    for workload in Workload::ALL {
        spec.workload = workload;
        ycsb::run(&spec, &mut target).map_err(|e| e.to_string())?;
    }
    let engine = target.cache.store().engine();
    Ok(Counted {
        checks: engine.check_stats().ok_or("nothing was counted")?,
        sites: engine.check_sites(),
    })
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

fn table1(all: &BTreeMap<&str, Counted>, names: &[&'static str], out: &mut StudyResult) {
    let mut table = RunTable::new(
        "How persistence checks turn out (paper's table 1)",
        "program",
    );
    let share = |name: &str| Column::new(name, Format::Percent, Better::Neither);
    table.columns = vec![
        Column::new("checks", Format::Integer, Better::Neither),
        share("activated"),
        share("sites always activated"),
        share("sometimes"),
        share("never"),
        Column::new("sites", Format::Integer, Better::Neither),
        Column::new("checked too seldom", Format::Integer, Better::Neither),
    ];
    for &name in names {
        let Some(c) = all.get(name) else { continue };
        let (checks, activated) = c.checks.total();
        let s = &c.sites;
        table.push(
            name,
            [
                (checks as f64).into(),
                percent(activated, checks).into(),
                percent(s.always, s.known()).into(),
                percent(s.sometimes, s.known()).into(),
                percent(s.never, s.known()).into(),
                (s.known() as f64).into(),
                Value::from((s.all() - s.known()) as f64),
            ],
        );
    }
    table.notes.push(
        "Sites are those that baseline code checked at least 60 times; one that was bypassed once is none that never acts. Checks are all, in \
         baseline code too."
            .into(),
    );
    out.tables.push(table);
    let mut bypassed = Vec::new();
    for (name, activated, never) in TABLE1 {
        let found = all.get(name);
        let ours = found.map(|c| {
            let (checks, activated) = c.checks.total();
            percent(activated, checks)
        });
        bypassed.extend(ours.map(|o| 100.0 - o));
        let value = |v: Option<f64>| v.map_or(Value::Missing, Value::from);
        let what = format!("{name} under YCSB: checks whose actions are activated");
        out.claims
            .push(Claim::new("C8", what, activated, value(ours), "%"));
        let ours = found.map(|c| percent(c.sites.never, c.sites.known()));
        let what = format!("{name} under YCSB: sites that are never activated");
        let note = found.map_or(String::new(), |c| {
            format!(
                "of {} sites; {} more were checked too seldom to say, {} of them never activated",
                c.sites.known(),
                c.sites.all() - c.sites.known(),
                c.sites.seldom
            )
        });
        out.claims
            .push(Claim::new("C8", what, never, value(ours), "%").with_note(note));
    }
    let more = Value::AtLeast { at_least: 99.0 };
    let ours = mean(&bypassed).map_or(Value::Missing, Value::from);
    let what = "dynamic checks that are bypassed, mean of the stores";
    out.claims.push(Claim::new("C8", what, more, ours, "%"));
}

/// Optimized code's checks by how they were biased, percent.
fn biased(checks: &CheckStats) -> [f64; 4] {
    let all: u64 = checks.optimized.iter().map(|(b, a)| b + a).sum();
    checks.optimized.map(|(b, a)| percent(b + a, all))
}

fn table4(all: &BTreeMap<&str, Counted>, out: &mut StudyResult) {
    let mut table = RunTable::new(
        "Persistence checks by how they were biased (paper's table 4)",
        "program",
    );
    let share = |name: &str| Column::new(name, Format::Percent, Better::Neither);
    table.columns = BIASES.map(share).into();
    table.columns.push(share("in baseline code"));
    for (name, published) in TABLE4 {
        let Some(c) = all.get(name) else { continue };
        let ours = biased(&c.checks);
        let (b, a) = c.checks.baseline;
        let mut row: Vec<Value> = ours.map(Value::from).into();
        row.push(percent(b + a, c.checks.total().0).into());
        table.push(name, row);
        for ((bias, published), ours) in BIASES.iter().zip(published).zip(ours) {
            let what = format!("{name}: checks biased to {bias}");
            // A published 0.00 may be any value that is printed so.
            let ours = (ours * 100.0).round() / 100.0;
            out.claims
                .push(Claim::new("C8", what, published, ours, "%"));
        }
    }
    table.notes.push(
        "Shares of the checks that optimized code made; of all checks, those of baseline code."
            .into(),
    );
    out.tables.push(table);
}
