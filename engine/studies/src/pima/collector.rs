//! The effect of slow memory on programs and their collectors: A10, A11, A15.

use super::{Ask, FOLLOWS, PimaProgram, Results, claim};
use crate::StudyOptions;
use varve_observed::{GcStack, PlanResult};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Claim, Data, Series, StudyResult, Value};
use varve_run::Numa;

pub fn plan(o: &StudyOptions, ask: &mut Ask) {
    if o.wants("A10") {
        ask.all("slow-scan");
        ask.all("slow-copy");
    }
    if o.wants("A15") {
        let most = ask.suite.most();
        if let Some(xalan) = ask.suite.named(XALAN) {
            ask.run(xalan, CODE_IN_DRAM, most, Numa::Local);
        }
        ask.all(HYBRID);
    }
}

pub fn claims(o: &StudyOptions, all: &Results, out: &mut StudyResult) {
    if o.wants("A10") {
        slowdowns(all, out);
        stack(all, out);
    }
    if o.wants("A11") {
        pauses(all, out);
    }
    if o.wants("A15") {
        stalls(all, out);
    }
}

/// The program that stands for Xalan.
const XALAN: &str = "persistent";
/// Optane-only, but for code.
const CODE_IN_DRAM: &str = "slow:code=fast";

/// The hybrid memory of figure 6.
const HYBRID: &str = "cgz-f";

fn minor(r: &PlanResult) -> f64 {
    r.minor_seconds
}

fn slowdowns(all: &Results, out: &mut StudyResult) {
    let sensitive = all.sensitive();
    let ratio = |over: &str, under: &str, of: fn(&PlanResult) -> f64| {
        all.ratio(&sensitive, (over, under), of)
    };
    let mutator = PlanResult::mutator_seconds;
    for (what, published, ours, unit, note) in [
        (
            "mutator on Optane",
            Value::from(2.0),
            ratio("slow", "dram", mutator),
            "x DRAM-only",
            FOLLOWS,
        ),
        (
            "minor collections on Optane",
            Value::AtLeast { at_least: 3.0 },
            ratio("slow", "dram", minor),
            "x DRAM-only",
            "",
        ),
        (
            "major collections on Optane",
            Value::AtLeast { at_least: 3.0 },
            ratio("slow", "dram", |r| r.full_seconds),
            "x DRAM-only",
            "",
        ),
        (
            "minor collections with survivors in DRAM (Optane-S)",
            Value::from(1.3),
            ratio("slow", "slow-scan", minor),
            "x faster",
            "",
        ),
        (
            "minor collections with the nursery in DRAM (Optane-C)",
            Value::from(1.8),
            ratio("slow", "slow-copy", minor),
            "x faster",
            "",
        ),
        (
            "mutator with old objects in DRAM (Optane-S)",
            Value::from(1.23),
            ratio("slow", "slow-scan", mutator),
            "x faster",
            FOLLOWS,
        ),
        (
            "mutator with new objects in DRAM (Optane-C)",
            Value::from(1.74),
            ratio("slow", "slow-copy", mutator),
            "x faster",
            FOLLOWS,
        ),
    ] {
        out.claims
            .push(claim("A10", what, published, ours, unit, note));
    }
}

/// Figure 4b: the time added to that of minor collections in DRAM, as [`GcStack`] has it.
fn stack(all: &Results, out: &mut StudyResult) {
    let sensitive = all.sensitive();
    let part = |of: fn(&GcStack) -> f64| {
        all.mean(&sensitive, |e| {
            let run = |plan| all.most(e, plan);
            let (dram, slow) = (run("dram")?, run("slow")?);
            let stack = GcStack::of(dram, slow, run("slow-scan")?, run("slow-copy")?)?;
            Some(100.0 * of(&stack))
        })
    };
    let (copy, scan) = (part(|s| s.copy), part(|s| s.scan));
    let note = "as in the paper's text; its formulas name the two the other way round";
    let parts = [
        ("copying", 35.0, copy, note),
        ("scanning", 150.0, scan, note),
        ("interference of both", 38.0, part(|s| s.interference), ""),
        ("the rest: roots, tables", 15.0, part(|s| s.rest), ""),
    ];
    for (what, published, ours, note) in parts {
        let what = format!("minor collections: added by {what}");
        out.claims
            .push(claim("A10", &what, published, ours, "% of DRAM-only", note));
    }
    let more = copy.zip(scan).map(|(copy, scan)| scan > copy);
    out.claims.push(Claim::new(
        "A10",
        "scanning slow memory costs more than copying into it",
        true,
        more.map_or(Value::Missing, Value::from),
        "",
    ));
    let bar = |name: &str, published: f64, ours: Option<f64>| {
        // Overlap takes time away, which a stack cannot show.
        Bars::new(name, vec![published, ours.unwrap_or(f64::NAN).max(0.0)])
    };
    let mut bars = vec![bar("base", 100.0, Some(100.0))];
    bars.extend(parts.map(|(what, published, ours, _)| bar(what, published, ours)));
    out.charts.push(Chart::new(
        "gc-stack",
        "Slowdown stack of minor collections (figure 4b)",
        Axis::new("", "", Format::Number),
        Axis::new("time", "% of DRAM-only", Format::Number).between(0.0, None),
        Data::Bars {
            groups: vec!["published".into(), "ours".into()],
            bars,
            stacked: true,
        },
    ));
}

fn pauses(all: &Results, out: &mut StudyResult) {
    let kv = all.named("kv");
    let ratio = |of: fn(&PlanResult) -> u64| {
        let kv = kv?;
        let (slow, dram) = (of(all.most(kv, "slow")?), of(all.most(kv, "dram")?));
        (dram > 0).then(|| slow as f64 / dram as f64)
    };
    let note = "kv stands for pjbb, the median for the peak; times of one collection depend on its heap, so that ratios are compared";
    for (what, published, ours) in [
        (
            "peak of the pauses: 2 ms to 3 ms",
            1.5,
            ratio(|r| r.minor.p50_ns),
        ),
        ("longest pause", 2.0, ratio(|r| r.longest_pause_ns())),
    ] {
        out.claims
            .push(claim("A11", what, published, ours, "x DRAM-only", note));
    }
    let line = |name: &str, plan: &str| {
        let minor = all.most(kv?, plan)?.minor;
        let ms = [minor.p50_ns, minor.p99_ns, minor.max_ns].map(|ns| ns as f64 / 1e6);
        Some(Series::new(name, vec![50.0, 99.0, 100.0], ms.to_vec()))
    };
    let lines = [("DRAM-only", "dram"), ("Optane-only", "slow")];
    let lines: Vec<Series> = lines.into_iter().filter_map(|(n, p)| line(n, p)).collect();
    if !lines.is_empty() {
        out.charts.push(Chart::new(
            "pauses",
            "Pauses of minor collections, kv for Pjbb (figure 4c)",
            Axis::new("collections that are no longer", "%", Format::Number),
            Axis::new("pause", "ms", Format::Number).between(0.0, None),
            Data::Lines(lines),
        ));
    }
}

/// Time lost to a reason, s: shares of the time times the time.
fn lost(r: &PlanResult, share: fn(&varve_run::StallShares) -> f64) -> f64 {
    r.seconds * share(&r.stalls)
}

fn stalls(all: &Results, out: &mut StudyResult) {
    let ratio = |e: Option<&PimaProgram>, share: fn(&varve_run::StallShares) -> f64| {
        let e = e?;
        let (slow, dram) = (
            lost(all.most(e, "slow")?, share),
            lost(all.most(e, "dram")?, share),
        );
        (dram > 0.0).then(|| slow / dram)
    };
    let xalan = all.named(XALAN);
    let page_rank = all.named("PR");
    let most = all.suite.most();
    for (name, e, load) in [
        ("Xalan, here persistent", xalan, 4.9),
        ("PageRank", page_rank, 8.9),
    ] {
        for (what, published, ours) in [
            ("load", load, ratio(e, |s| s.load)),
            ("store", 8.0, ratio(e, |s| s.store + s.fence)),
        ] {
            out.claims.push(claim(
                "A15",
                &format!("{what} stalls on {most} cores, {name}"),
                published,
                ours,
                "x DRAM-only",
                "",
            ));
        }
    }
    out.claims.push(claim(
        "A15",
        "instruction misses with code in Optane",
        14.0,
        xalan
            .and_then(|m| all.most(m, "slow"))
            .map(|r| 100.0 * r.stalls.fetch),
        "% of cycles",
        "persistent for Xalan; hot code is a few KB here, and fits the first-level cache",
    ));
    let saved = xalan.and_then(|m| {
        let (slow, fast) = (all.most(m, "slow")?, all.most(m, CODE_IN_DRAM)?);
        (slow.stalls.fetch > 0.0)
            .then(|| 100.0 * (1.0 - lost(fast, |s| s.fetch) / lost(slow, |s| s.fetch)))
    });
    out.claims.push(claim(
        "A15",
        "the same with code in DRAM: removed",
        100.0,
        saved,
        "% of them",
        "published: placing code in DRAM removes those",
    ));
    let less = page_rank.and_then(|e| {
        let (slow, hybrid) = (all.most(e, "slow")?, all.most(e, HYBRID)?);
        Some(lost(hybrid, |s| s.load) < lost(slow, |s| s.load))
    });
    out.claims.push(Claim::new(
        "A15",
        "hybrid memory (CGZ-F1) has less load stalls than Optane-only, PageRank",
        true,
        less.map_or(Value::Missing, Value::from),
        "",
    ));
    let groups = all.suite.programs.iter().map(|e| e.name.to_string());
    let of = |name: &str, plan: &str, share: fn(&varve_run::StallShares) -> f64| {
        let programs = all.suite.programs.iter();
        let values = programs.map(|e| {
            let (r, base) = (all.most(e, plan)?, all.most(e, "dram")?);
            Some(100.0 * lost(r, share) / base.seconds)
        });
        Bars::new(name, values.map(|v| v.unwrap_or(f64::NAN)).collect())
    };
    out.charts.push(Chart::new(
        "stalls",
        "Time lost to loads and stores, by memory (figure 6)",
        Axis::new("program", "", Format::Number),
        Axis::new("time", "% of DRAM-only", Format::Number).between(0.0, None),
        Data::Bars {
            groups: groups.collect(),
            bars: vec![
                of("loads, DRAM", "dram", |s| s.load),
                of("stores, DRAM", "dram", |s| s.store + s.fence),
                of("loads, Optane", "slow", |s| s.load),
                of("stores, Optane", "slow", |s| s.store + s.fence),
                of("loads, hybrid", HYBRID, |s| s.load),
                of("stores, hybrid", HYBRID, |s| s.store + s.fence),
            ],
            stacked: false,
        },
    ));
}
