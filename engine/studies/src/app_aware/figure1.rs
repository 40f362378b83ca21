//! E12, figure 1: how sensitive programs are to latency, and how much bandwidth they demand. The text says which are high and
//! low in which; the figure's numbers cannot be read.
//!
//! Both by what classes are measured by (`jobs/src/class.rs`): with one thread bandwidth is least short, so time in PM over time
//! in DRAM is what latency does. Demand is what the usual threads read and write in DRAM.

use super::claim;
use varve_jobs::class::CPU_BOUND;
use varve_jobs::{Demand, Memory};
use varve_report::fmt::Format;
use varve_report::{
    Axis, Better, Chart, Claim, Column, Data, RunTable, Series, StudyResult, Value,
};

/// "The database workloads ... have the most sensitivity to latency, and low sensitivity to bandwidth." It names none.
const DATABASES: [&str; 2] = ["tpcc", "ycsb"];
/// "Intermediate in sensitivity to both." There is no facesim here.
const BETWEEN: [&str; 2] = ["olap", "lu_cb"];
/// "The most sensitivity to bandwidth and the least sensitivity to latency."
const BANDWIDTH: [&str; 2] = ["hpcg", "graph500"];
/// "Will not show much sensitivity to memory latency or bandwidth."
const PROCESSOR: [&str; 3] = ["hpl", "swaptions", "freqmine"];

/// A place in the figure.
#[derive(Clone, Copy)]
struct Place<'a> {
    name: &'a str,
    /// Time in PM over time in DRAM, with one thread.
    latency: f64,
    /// GB/s.
    demand: f64,
    /// Time in PM over time in DRAM, with the usual threads.
    slowdown: f64,
}

/// An axis: of a place, and its unit.
type Of = (fn(&Place) -> f64, &'static str);

const LATENCY: Of = (|p| p.latency, "x");
const DEMAND: Of = (|p| p.demand, " GB/s");

pub fn claims(all: &[Demand], threads: u32, out: &mut StudyResult) {
    let places: Vec<Place> = all.iter().filter_map(|d| place(d, threads)).collect();
    let of = |names: &[&str]| -> Vec<Place> {
        let named = |p: &&Place| names.contains(&p.name);
        places.iter().filter(named).copied().collect()
    };
    let (databases, between) = (of(&DATABASES), of(&BETWEEN));
    let (bandwidth, processor) = (of(&BANDWIDTH), of(&PROCESSOR));
    let memory = [&databases[..], &between, &bandwidth].concat();
    // TPC-C runs at full effort alone.
    for name in databases.iter().map(|p| p.name) {
        let others = [&between[..], &bandwidth, &processor].concat();
        let what = "is slowed by latency more than any that is no database";
        out.claims
            .push(row(name, what, &places, LATENCY, &others, &[]));
        let what = "demands less bandwidth than OLAP and lu_cb";
        out.claims
            .push(row(name, what, &places, DEMAND, &[], &between));
    }
    for name in BETWEEN {
        let what = "is slowed by latency less than databases, more than HPCG and Graph500";
        out.claims
            .push(row(name, what, &places, LATENCY, &bandwidth, &databases));
        let what = "demands more bandwidth than databases, less than HPCG and Graph500";
        out.claims
            .push(row(name, what, &places, DEMAND, &databases, &bandwidth));
    }
    for name in BANDWIDTH {
        let others = [&databases[..], &between, &processor].concat();
        let what = "demands more bandwidth than any of the other kinds";
        out.claims
            .push(row(name, what, &places, DEMAND, &others, &[]));
        let others = [&databases[..], &between].concat();
        let what = "is slowed by latency less than databases, OLAP and lu_cb";
        out.claims
            .push(row(name, what, &places, LATENCY, &[], &others));
    }
    let slowdown = of(&["hpl"]).first().map(|p| p.slowdown);
    let most = Value::AtMost { at_most: CPU_BOUND };
    out.claims
        .push(claim("E12", "hpl in PM over DRAM", most, slowdown, "x", ""));
    for name in PROCESSOR {
        for (what, axis) in [
            (
                "is slowed by latency less than all that need memory",
                LATENCY,
            ),
            ("demands less bandwidth than all that need memory", DEMAND),
        ] {
            out.claims
                .push(row(name, what, &places, axis, &[], &memory));
        }
    }
    out.tables.push(table(&places));
    out.charts.push(chart(&places));
}

fn place(d: &Demand, threads: u32) -> Option<Place<'_>> {
    let point = d.point(Memory::Fast, threads)?;
    Some(Place {
        name: &d.name,
        latency: d.slowdown(1)?,
        demand: point.read_gbps? + point.write_gbps?,
        slowdown: d.slowdown(threads)?,
    })
}

/// Is a program above these and below those?
fn row(
    name: &str,
    what: &str,
    places: &[Place],
    (axis, unit): Of,
    above: &[Place],
    below: &[Place],
) -> Claim {
    let of = |p: &Place| (axis(p), p.name.to_string());
    let larger = |a: (f64, String), b: (f64, String)| if b.0 > a.0 { b } else { a };
    let smaller = |a: (f64, String), b: (f64, String)| if b.0 < a.0 { b } else { a };
    let least = above.iter().map(of).reduce(larger);
    let most = below.iter().map(of).reduce(smaller);
    let own = places.iter().find(|p| p.name == name).map(axis);
    let ours = own.map_or(Value::Missing, |own| {
        let above = least.as_ref().is_none_or(|l| own > l.0);
        let below = most.as_ref().is_none_or(|m| own < m.0);
        Value::from(above && below)
    });
    let mut note = own.map_or(String::new(), |own| format!("{name} {own:.2}{unit}"));
    for (value, of) in [least, most].into_iter().flatten() {
        note += &format!(", {of} {value:.2}{unit}");
    }
    Claim::new("E12", format!("{name} {what}"), true, ours, "").with_note(note)
}

/// Which the text calls what.
fn kind(name: &str) -> &'static str {
    let kinds: [(&[&str], &str); 4] = [
        (&DATABASES, "database"),
        (&BETWEEN, "between"),
        (&BANDWIDTH, "bandwidth"),
        (&PROCESSOR, "processor"),
    ];
    let found = kinds.iter().find(|(names, _)| names.contains(&name));
    found.map_or("not named", |(_, kind)| kind)
}

fn table(places: &[Place]) -> RunTable {
    let mut table = RunTable::new("Figure 1: each program alone", "program");
    table.columns = vec![
        Column::new("PM over DRAM, 1 thread", Format::Ratio, Better::Neither),
        Column::new("PM over DRAM, 8 threads", Format::Ratio, Better::Neither),
        Column::new("demand in DRAM", Format::BytesPerSecond, Better::Neither),
    ];
    for p in places {
        let values = [p.latency.into(), p.slowdown.into(), (p.demand * 1e9).into()];
        table.push(format!("{} ({})", p.name, kind(p.name)), values);
    }
    table
        .notes
        .push("In brackets: where the text has it in figure 1.".into());
    table
}

fn chart(places: &[Place]) -> Chart {
    let point = |p: &Place| Series::new(p.name, vec![p.demand * 1e9], vec![p.latency]);
    Chart::new(
        "figure-1",
        "Latency sensitivity by bandwidth demand",
        Axis::new("demand in DRAM, 8 threads", "", Format::BytesPerSecond).between(0.0, None),
        Axis::new("PM over DRAM, 1 thread", "", Format::Ratio).between(0.0, None),
        Data::Points(places.iter().map(point).collect()),
    )
}
