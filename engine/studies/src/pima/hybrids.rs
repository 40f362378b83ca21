//! Collectors for hybrid memory: A13.

use super::{Ask, FOLLOWS, PimaProgram, Results, claim};
use crate::StudyOptions;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Series, StudyResult, Value};
use varve_run::Numa;

/// Plans and what the paper calls them.
const PLANS: [(&str, &str); 5] = [
    ("kg-n", "KG-N"),
    ("kg-w", "KG-W"),
    ("cgz-f", "CGZ-F1"),
    ("cgz-d", "CGZ-D1"),
    ("hot-sites", "hot sites"),
];

pub fn plan(o: &StudyOptions, ask: &mut Ask) {
    if o.wants("A13") {
        for (plan, _) in PLANS {
            ask.all(plan);
        }
    }
}

pub fn claims(o: &StudyOptions, all: &Results, out: &mut StudyResult) {
    if !o.wants("A13") {
        return;
    }
    let sensitive = all.sensitive();
    // Time that a plan saves beside another one, percent.
    let saved = |programs: &[&PimaProgram], plan: &str, than: &str| {
        let ratio = all.ratio(programs, (plan, than), |r| r.seconds);
        ratio.map(|r| 100.0 * (1.0 - r))
    };
    let dram = |plan: &str| {
        all.mean(&sensitive, |e| {
            Some(100.0 * all.most(e, plan)?.dram_share())
        })
    };
    let page_rank: Vec<&PimaProgram> = all.named("PR").into_iter().collect();
    let best = sensitive
        .iter()
        .filter_map(|e| saved(&[*e], "kg-w", "kg-n"))
        .reduce(f64::max);
    let heaps =
        "an instance has a thread's part of the paper's nursery, which is more of its smaller heap";
    for (what, published, ours, note) in [
        (
            "KG-N: time saved over Optane-only",
            54.0,
            saved(&sensitive, "kg-n", "slow"),
            FOLLOWS,
        ),
        ("KG-N: heap in DRAM", 5.0, dram("kg-n"), heaps),
        (
            "CGZ-F1: time saved over KG-N",
            10.0,
            saved(&sensitive, "cgz-f", "kg-n"),
            "",
        ),
        (
            "CGZ-F1: the same, PageRank",
            30.0,
            saved(&page_rank, "cgz-f", "kg-n"),
            "",
        ),
        ("CGZ-F1: heap in DRAM", 31.0, dram("cgz-f"), heaps),
        (
            "CGZ-D1: time saved over KG-N",
            6.0,
            saved(&sensitive, "cgz-d", "kg-n"),
            "",
        ),
        ("CGZ-D1: heap in DRAM", 18.0, dram("cgz-d"), heaps),
        ("KG-W: heap in DRAM", 23.5, dram("kg-w"), heaps),
        (
            "CGZ-F1: time saved over Optane-only",
            59.0,
            saved(&sensitive, "cgz-f", "slow"),
            FOLLOWS,
        ),
        (
            "KG-W: time saved over KG-N",
            8.0,
            saved(&sensitive, "kg-w", "kg-n"),
            "",
        ),
        (
            "KG-W: the same, best program",
            19.0,
            best,
            "published: Xalan",
        ),
        (
            "hot sites: time saved over CGZ-F1",
            2.0,
            saved(&sensitive, "hot-sites", "cgz-f"),
            "",
        ),
    ] {
        out.claims
            .push(claim("A13", what, published, ours, "%", note));
    }
    let beside: Vec<f64> = sensitive
        .iter()
        .filter_map(|e| Some(all.most(e, "kg-w")?.seconds / all.most(e, "kg-n")?.seconds))
        .collect();
    let both = beside.iter().any(|r| *r < 1.0) && beside.iter().any(|r| *r > 1.0);
    out.claims.push(varve_report::Claim::new(
        "A13",
        "KG-W is better or worse than KG-N by program",
        true,
        if beside.is_empty() {
            Value::Missing
        } else {
            both.into()
        },
        "",
    ));
    by_program(all, &sensitive, out);
    frontier(all, &sensitive, out);
}

/// Figure 7.
fn by_program(all: &Results, sensitive: &[&'static PimaProgram], out: &mut StudyResult) {
    if sensitive.is_empty() {
        return;
    }
    let bar = |(plan, name): (&str, &str)| {
        let of = |e: &&PimaProgram| Some(all.most(e, plan)?.seconds / all.most(e, "slow")?.seconds);
        Bars::new(
            name,
            sensitive
                .iter()
                .map(|e| of(e).unwrap_or(f64::NAN))
                .collect(),
        )
    };
    let plans = PLANS.into_iter().filter(|(plan, _)| *plan != "hot-sites");
    out.charts.push(Chart::new(
        "hybrids",
        "Plans beside Optane-only, sensitive programs (figure 7)",
        Axis::new("program", "", Format::Number),
        Axis::new("time", "x Optane-only", Format::Ratio).between(0.0, None),
        Data::Bars {
            groups: sensitive.iter().map(|e| e.name.to_string()).collect(),
            bars: plans.map(bar).collect(),
            stacked: false,
        },
    ));
}

/// Figure 5b, and the numbers behind it.
fn frontier(all: &Results, sensitive: &[&'static PimaProgram], out: &mut StudyResult) {
    let most = all.suite.most();
    let mut table = RunTable::new(
        format!("Plans on {most} cores, mean of sensitive programs"),
        "plan",
    );
    table.columns = vec![
        Column::new("slowdown", Format::Ratio, Better::Lower).with_unit("x DRAM-only"),
        Column::new("DRAM", Format::Percent, Better::Lower),
    ];
    table.trade_off = Some((0, 1));
    let mut points = Vec::new();
    let ends = [("dram", "DRAM-only"), ("slow", "Optane-only")];
    for (plan, name) in ends.into_iter().chain(PLANS) {
        let time = all.mean(sensitive, |e| all.slowdown(e, plan, most, Numa::Local));
        let share = all.mean(sensitive, |e| Some(100.0 * all.most(e, plan)?.dram_share()));
        if let Some((time, share)) = time.zip(share) {
            table.push(name, [time.into(), share.into()]);
            points.push(Series::new(name, vec![share], vec![time]));
        }
    }
    if points.is_empty() {
        return;
    }
    out.charts.push(Chart::new(
        "frontier",
        "Time against DRAM (figure 5b)",
        Axis::new("heap in DRAM", "", Format::Percent).between(0.0, 100.0),
        Axis::new("slowdown", "x DRAM-only", Format::Ratio).between(0.0, None),
        Data::Points(points),
    ));
    out.tables.push(table);
}
