//! How slow memory scales with the load: A9, A12, A14.

use super::{Ask, Results, claim};
use crate::StudyOptions;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Data, Series, StudyResult, Value};
use varve_run::Numa;

pub fn plan(o: &StudyOptions, ask: &mut Ask) {
    let most = ask.suite.most();
    for entry in ask.suite.programs.clone() {
        // What is sensitive to slow memory, every claim asks.
        for plan in ["dram", "slow"] {
            ask.run(entry, plan, most, Numa::Local);
        }
        if o.wants("A9") {
            for cores in ask.suite.cores.clone() {
                for plan in ["dram", "slow"] {
                    ask.run(entry, plan, cores, Numa::Local);
                }
            }
        }
        if o.wants("A12") {
            for plan in ["dram", "slow"] {
                ask.run(entry, plan, most, Numa::Remote);
                ask.run(entry, plan, most, Numa::Auto);
            }
        }
        if o.wants("A14") {
            ask.run(entry, "cgz-f", most, Numa::Local);
            for plan in ["dram", "slow", "cgz-f"] {
                ask.run(entry, plan, most, Numa::Auto);
            }
        }
    }
}

pub fn claims(o: &StudyOptions, all: &Results, out: &mut StudyResult) {
    if o.wants("A9") {
        cores(all, out);
    }
    if o.wants("A12") {
        distance(all, out);
    }
    if o.wants("A14") {
        hybrid(all, out);
    }
}

const OWN_RATE: &str =
    "a core allocates faster here than in the paper, and there is no I/O: see docs/pima-study.md";

fn cores(all: &Results, out: &mut StudyResult) {
    let slow = |e: &super::Entry, cores| all.slowdown(e, "slow", cores, Numa::Local);
    let sensitive = all.sensitive();
    for (cores, published) in [(4, 1.05), (8, 1.07)] {
        if all.suite.cores.contains(&cores) {
            out.claims.push(claim(
                "A9",
                &format!("Optane-only on {cores} cores, mean of all programs"),
                published,
                all.mean(&all.suite.programs, |e| slow(e, cores)),
                "x DRAM-only",
                "",
            ));
        }
    }
    for (cores, published) in [(16, 1.32), (32, 2.2)] {
        if all.suite.cores.contains(&cores) {
            let ours = all.mean(&sensitive, |e| slow(e, cores));
            out.claims.push(claim(
                "A9",
                &format!("Optane-only on {cores} cores, mean of sensitive programs"),
                published,
                ours,
                "x DRAM-only",
                OWN_RATE,
            ));
        }
    }
    let most = all.suite.most();
    let worst = sensitive.iter().filter_map(|e| slow(e, most));
    out.claims.push(claim(
        "A9",
        &format!("Optane-only on {most} cores, worst program"),
        7.5,
        worst.reduce(f64::max),
        "x DRAM-only",
        OWN_RATE,
    ));
    let page_rank = all.named("PR").and_then(|e| slow(e, 8));
    let what = "Optane-only on 8 cores, PageRank";
    out.claims
        .push(claim("A9", what, 1.49, page_rank, "x DRAM-only", OWN_RATE));
    let lines = all.suite.programs.iter().map(|e| {
        let y = all
            .suite
            .cores
            .iter()
            .map(|&c| slow(e, c).unwrap_or(f64::NAN));
        let x = all.suite.cores.iter().map(|&c| f64::from(c));
        Series::new(e.name, x.collect(), y.collect())
    });
    out.charts.push(Chart::new(
        "scaling",
        "Optane-only beside DRAM-only by cores (figure 3)",
        Axis::new("cores", "", Format::Number),
        Axis::new("slowdown", "x DRAM-only", Format::Ratio).between(0.0, None),
        Data::Lines(lines.collect()),
    ));
}

fn distance(all: &Results, out: &mut StudyResult) {
    let most = all.suite.most();
    let beside_auto = |e: &super::Entry, plan: &str| {
        let (a, b) = (
            all.get(e, plan, most, Numa::Remote)?,
            all.get(e, plan, most, Numa::Auto)?,
        );
        Some(100.0 * (a.seconds / b.seconds - 1.0))
    };
    let note = "beside automatic balancing, which leaves half the pages remote here: an assumption";
    out.claims.push(claim(
        "A12",
        "DRAM-only, remote: added time, mean",
        5.0,
        all.mean(&all.suite.programs, |e| beside_auto(e, "dram")),
        "%",
        note,
    ));
    let worst = all.suite.programs.iter();
    let worst = worst
        .filter_map(|e| beside_auto(e, "slow"))
        .reduce(f64::max);
    out.claims.push(claim(
        "A12",
        "Optane-only, remote: added time, worst program",
        128.0,
        worst,
        "%",
        "beside automatic balancing; the paper's is the worst of its suites' means",
    ));
    let mean = |plan: &str| all.mean(&all.suite.programs, |e| beside_auto(e, plan));
    let more = mean("slow").zip(mean("dram")).map(|(a, b)| a > b);
    out.claims.push(varve_report::Claim::new(
        "A12",
        "Optane-only suffers more from distance than DRAM-only",
        true,
        more.map_or(Value::Missing, Value::from),
        "",
    ));
}

fn hybrid(all: &Results, out: &mut StudyResult) {
    let most = all.suite.most();
    let sensitive = all.sensitive();
    let mut bars = Vec::new();
    for (numa, hybrid, slow) in [(Numa::Local, 1.12, 2.2), (Numa::Auto, 1.17, 2.8)] {
        let mean = |plan: &str| all.mean(&sensitive, |e| all.slowdown(e, plan, most, numa));
        for (plan, name, published) in [
            ("cgz-f", "hybrid (CGZ-F1)", hybrid),
            ("slow", "Optane-only", slow),
        ] {
            out.claims.push(claim(
                "A14",
                &format!("{name} on {most} cores, {numa}"),
                published,
                mean(plan),
                "x DRAM-only",
                "",
            ));
        }
        let of = |plan: &str| mean(plan).unwrap_or(f64::NAN);
        bars.push(Bars::new(numa.to_string(), vec![of("cgz-f"), of("slow")]));
    }
    out.charts.push(Chart::new(
        "hybrid",
        "Hybrid memory and Optane-only beside DRAM-only (figure 5a)",
        Axis::new("memory", "", Format::Number),
        Axis::new("slowdown", "x DRAM-only", Format::Ratio).between(0.0, None),
        Data::Bars {
            groups: vec!["hybrid".into(), "Optane-only".into()],
            bars,
            stacked: false,
        },
    ));
}
