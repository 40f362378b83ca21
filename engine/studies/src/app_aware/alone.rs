//! E5, E11 and E12: the memory demands of programs, each alone in either memory.

use super::{Setup, claim, figure1};
use crate::Effort;
use varve_jobs::compare::{Making, demands};
use varve_jobs::{Demand, Error, Memory, group};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Data, Kind, Series, StudyResult, Value};

/// Threads of the comparison.
const THREADS: u32 = 8;

pub fn claims(setup: &Setup, making: &Making, out: &mut StudyResult) -> Result<(), Error> {
    let text = include_str!("groups/demands.toml");
    let mut group = group::parse(text, "demands.toml").map_err(Error::Group)?;
    // Even one warehouse would be more than DRAM holds on a machine that is smaller.
    let whole = setup.options.effort == Effort::Full;
    group.programs.retain(|p| whole || p.name != "tpcc");
    let host = setup.spec.host(&group)?;
    let all = demands(&group, &setup.spec, &host, making)?;
    let named = |name: &str| all.iter().find(|d| d.name == name);
    e5(&named, out);
    e11(&named, out);
    figure1::claims(&all, THREADS, out);
    out.charts.push(slowdowns(&all));
    for name in ["freqmine", "npb_lu"] {
        out.charts.extend(named(name).map(scaling));
    }
    Ok(())
}

type Named<'a> = &'a dyn Fn(&str) -> Option<&'a Demand>;

fn e5(named: Named, out: &mut StudyResult) {
    let ocean = named("ocean_cp");
    let gbps = |memory, written: bool| {
        let p = ocean?.point(memory, THREADS)?;
        if written { p.write_gbps } else { p.read_gbps }
    };
    let slowdown = |name: &str| named(name)?.slowdown(THREADS);
    out.claims.extend([
        claim(
            "E5",
            "ocean_cp in PM over DRAM, 8 threads",
            17.5,
            slowdown("ocean_cp"),
            "x",
            "",
        ),
        claim(
            "E5",
            "ocean_cp in DRAM, read",
            40.9,
            gbps(Memory::Fast, false),
            "GB/s",
            "",
        ),
        claim(
            "E5",
            "ocean_cp in DRAM, written",
            15.3,
            gbps(Memory::Fast, true),
            "GB/s",
            "",
        ),
        claim(
            "E5",
            "ocean_cp in PM, read",
            2.45,
            gbps(Memory::Slow, false),
            "GB/s",
            "",
        ),
        claim(
            "E5",
            "ocean_cp in PM, written",
            0.8,
            gbps(Memory::Slow, true),
            "GB/s",
            "",
        ),
    ]);
    let below = || Value::AtMost { at_most: 1.5 };
    for name in ["freqmine", "swaptions", "lu_cb"] {
        let what = format!("{name} in PM over DRAM");
        out.claims
            .push(claim("E5", &what, below(), slowdown(name), "x", ""));
    }
    let above = || Value::AtLeast { at_least: 1.5 };
    for name in ["canneal", "radix", "npb_ft", "npb_mg", "npb_sp"] {
        let what = format!("{name} in PM over DRAM");
        let note = "called bandwidth-sensitive; the text prints no number";
        out.claims
            .push(claim("E5", &what, above(), slowdown(name), "x", note));
    }
}

fn e11(named: Named, out: &mut StudyResult) {
    let rate = |name: &str, threads: u32, written: bool| {
        let p = named(name)?.point(Memory::Fast, threads)?;
        Some(if written { p.write_gbps? } else { p.read_gbps? } / f64::from(threads))
    };
    let mb = |x: Option<f64>| x.map(|g| g * 1000.0);
    out.claims.extend([
        claim(
            "E11",
            "freqmine, read by each thread",
            182.0,
            mb(rate("freqmine", THREADS, false)),
            "MB/s",
            "",
        ),
        claim(
            "E11",
            "freqmine, written by each thread",
            66.0,
            mb(rate("freqmine", THREADS, true)),
            "MB/s",
            "",
        ),
        claim(
            "E11",
            "NPB/LU, read by one thread",
            2.3,
            rate("npb_lu", 1, false),
            "GB/s",
            "",
        )
        .of_kind(Kind::Input),
        claim(
            "E11",
            "NPB/LU, written by one thread",
            1.0,
            rate("npb_lu", 1, true),
            "GB/s",
            "",
        )
        .of_kind(Kind::Input),
    ]);
}

fn slowdowns(all: &[Demand]) -> Chart {
    let values = all
        .iter()
        .map(|d| d.slowdown(THREADS).unwrap_or(f64::NAN))
        .collect();
    Chart::new(
        "slowdown",
        "Time in PM over time in DRAM, 8 threads",
        Axis::new("program", "", Format::Number),
        Axis::new("slowdown", "", Format::Ratio).between(0.0, None),
        Data::Bars {
            groups: all.iter().map(|d| d.name.clone()).collect(),
            bars: vec![Bars::new("PM over DRAM", values)],
            stacked: false,
        },
    )
    .with_level("bound by the processor below", 1.5)
}

fn scaling(d: &Demand) -> Chart {
    let line = |memory: Memory| {
        let curve = d.curve(memory);
        let one = curve.first().map_or(f64::NAN, |p| p.seconds);
        Series::new(
            memory.words(),
            curve.iter().map(|p| p.threads.into()).collect(),
            curve.iter().map(|p| one / p.seconds).collect(),
        )
    };
    Chart::new(
        format!("scaling-{}", d.name.replace('_', "-")),
        format!("{}: speed-up by threads", d.name),
        Axis::new("threads", "", Format::Integer),
        Axis::new("speed-up", "", Format::Ratio).between(0.0, None),
        Data::Lines(Memory::ALL.map(line).to_vec()),
    )
    .with_note("Up to the number of threads at which Algorithm 2 stops, and with eight.")
}
