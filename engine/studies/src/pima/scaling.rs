//! How slow memory scales with the load: A9, A12, A14.

use super::{Ask, FOLLOWS, OWN_RATE, Results, claim};
use crate::StudyOptions;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Data, Series, StudyResult, Value};
use varve_run::Numa;

pub fn plan(o: &StudyOptions, ask: &mut Ask) {
    let most = ask.suite.most();
    for entry in ask.suite.programs.clone() {
        // Every claim needs to know which programs are sensitive to slow memory.
        for plan in ENDS {
            ask.run(entry, plan, most, Numa::Local);
        }
        if o.wants("A9") {
            for cores in ask.suite.cores.clone() {
                for plan in ENDS {
                    ask.run(entry, plan, cores, Numa::Local);
                }
            }
            if entry.name == PJBB {
                for plan in ENDS {
                    ask.every(entry, plan, ALIKE);
                }
            }
        }
        if o.wants("A12") {
            for plan in ENDS {
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

/// All in one memory.
const ENDS: [&str; 2] = ["dram", "slow"];
/// The program that stands for Pjbb.
const PJBB: &str = "kv";
/// Instances that are all run for fairness: one more is one more program to execute.
const ALIKE: u32 = 8;

pub fn claims(o: &StudyOptions, all: &Results, out: &mut StudyResult) {
    if o.wants("A9") {
        cores(all, out);
        alike(all, out);
    }
    if o.wants("A12") {
        distance(all, out);
    }
    if o.wants("A14") {
        hybrid(all, out);
    }
}

fn cores(all: &Results, out: &mut StudyResult) {
    let slow = |e: &super::PimaProgram, cores| all.slowdown(e, "slow", cores, Numa::Local);
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
                FOLLOWS,
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
        FOLLOWS,
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

/// How alike instances fare that are all run: the shortest time over the longest (section 4.3).
fn alike(all: &Results, out: &mut StudyResult) {
    let note = "published: on 32 cores; kv stands for Pjbb";
    let fairness = |plan| {
        let times = &all.every(all.named(PJBB)?, plan, ALIKE)?.instance_seconds;
        let least = times.iter().copied().reduce(f64::min)?;
        Some(least / times.iter().copied().reduce(f64::max)?)
    };
    for (plan, name, published) in [("dram", "DRAM-only", 1.0), ("slow", "Optane-only", 0.96)] {
        let what = format!("fairness of {ALIKE} instances that are all run, {name}, Pjbb");
        out.claims
            .push(claim("A9", &what, published, fairness(plan), "", note));
    }
}

fn distance(all: &Results, out: &mut StudyResult) {
    let most = all.suite.most();
    let over_auto = |e: &super::PimaProgram, plan: &str, numa: Numa| {
        let (a, b) = (
            all.get(e, plan, most, numa)?,
            all.get(e, plan, most, Numa::Auto)?,
        );
        Some(a.seconds / b.seconds)
    };
    let beside_auto = |e: &super::PimaProgram, plan: &str| {
        Some(100.0 * (over_auto(e, plan, Numa::Remote)? - 1.0))
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
    let kv = all.named(PJBB);
    out.claims.push(claim(
        "A12",
        "Optane-only, remote: added time, Pjbb",
        66.0,
        kv.and_then(|e| beside_auto(e, "slow")),
        "%",
        "beside automatic balancing; kv stands for Pjbb",
    ));
    let graphs = all.graphs();
    for (what, published, programs) in [
        ("mean", 1.23, &all.suite.programs),
        ("graphs", 1.44, &graphs),
    ] {
        out.claims.push(claim(
            "A12",
            &format!("Optane-only, local over auto, {what}"),
            published,
            all.mean(programs, |e| Some(1.0 / over_auto(e, "slow", Numa::Local)?)),
            "x faster",
            "",
        ));
    }
    let mean = |plan: &str| all.mean(&all.suite.programs, |e| beside_auto(e, plan));
    let more = mean("slow").zip(mean("dram")).map(|(a, b)| a > b);
    out.claims.push(varve_report::Claim::new(
        "A12",
        "Optane-only suffers more from distance than DRAM-only",
        true,
        more.map_or(Value::Missing, Value::from),
        "",
    ));
    let suites: [(&str, Vec<_>); 3] = [
        ("graphs", graphs),
        ("Pjbb", kv.into_iter().collect()),
        (
            "others",
            all.suite
                .programs
                .iter()
                .copied()
                .filter(|e| !e.graph && e.name != PJBB)
                .collect(),
        ),
    ];
    for (plan, memory, part) in [("dram", "DRAM-only", "a"), ("slow", "Optane-only", "b")] {
        let bar = |numa: Numa| {
            let of =
                |(_, programs): &(&str, Vec<_>)| all.mean(programs, |e| over_auto(e, plan, numa));
            Bars::new(
                numa.to_string(),
                suites.iter().map(|s| of(s).unwrap_or(f64::NAN)).collect(),
            )
        };
        out.charts.push(Chart::new(
            format!("distance-{plan}"),
            format!("{memory} by where threads and memory are (figure 2{part})"),
            Axis::new("programs", "", Format::Number),
            Axis::new("time", "x auto", Format::Ratio).between(0.0, None),
            Data::Bars {
                groups: suites.iter().map(|s| s.0.to_string()).collect(),
                bars: vec![bar(Numa::Local), bar(Numa::Remote)],
                stacked: false,
            },
        ));
    }
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
                FOLLOWS,
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
