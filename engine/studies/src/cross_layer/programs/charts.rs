//! The pictures of B9: time and energy by strategy, and the power of each DIMM over time.

use super::look::{Look, columns, label};
use super::suite::{CONTINUOUS, Entry, MANY, OFFLINE, With, key};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Data, Series, StudyResult};

/// The value that is drawn for a program with a number of instances, under a strategy.
type Of<'a> = &'a dyn Fn(&(&'static Entry, u32), &str) -> Option<f64>;

pub(super) fn charts(all: &Look, out: &mut StudyResult) {
    let columns = columns(all);
    let strategies: Vec<&'static str> = all.suite.strategies().iter().map(|s| s.0).collect();
    let bars = |strategies: &[&'static str], of: Of<'_>| {
        let one = |s: &&'static str| {
            let values = columns.iter().map(|c| of(c, s).unwrap_or(f64::NAN));
            Bars::new(*s, values.collect())
        };
        strategies.iter().map(one).collect::<Vec<Bars>>()
    };
    for (id, title, online) in [
        (
            "cold-offline",
            "Cold part of the heap by the knapsack's capacity (figure 8)",
            false,
        ),
        (
            "cold-online",
            "Cold part of the heap by the interval of samples (figure 9)",
            true,
        ),
    ] {
        let wanted = strategies
            .iter()
            .filter(|s| s.starts_with("online") == online);
        let wanted: Vec<&'static str> = wanted.copied().collect();
        let groups = columns.iter().map(label).collect();
        let data = Data::Bars {
            groups,
            bars: bars(&wanted, &|c, s| all.cold(c.0, s, c.1)),
            stacked: false,
        };
        let axes = (
            Axis::new("program", "", Format::Number),
            Axis::new("cold objects", "", Format::Percent).between(0.0, Some(100.0)),
        );
        out.charts.push(Chart::new(id, title, axes.0, axes.1, data));
    }
    let mut chart = |id: &str, title: &str, what: &str, bars: Vec<Bars>| {
        let groups = columns.iter().map(label).collect();
        out.charts
            .push(over_default((id, title), ("program", groups), what, bars));
    };
    let with = |with: With| {
        (
            move |c: &(&'static Entry, u32), s: &str| all.time(c.0, s, c.1, with),
            move |c: &(&'static Entry, u32), s: &str| all.energy(c.0, s, c.1, with),
        )
    };
    let (time, energy) = with(With::Nothing);
    chart(
        "programs-time",
        "Time by strategy, one hot DIMM (figures 10 and 11)",
        "time",
        bars(&strategies, &time),
    );
    chart(
        "programs-energy",
        "DRAM energy by strategy, one hot DIMM (figures 12 and 13)",
        "DRAM energy",
        bars(&strategies, &energy),
    );
    let some = [OFFLINE, CONTINUOUS];
    let (time, energy) = with(With::Limit);
    chart(
        "limit-time",
        "Time with 25 % of the peak on a hot DIMM (figure 14)",
        "time",
        bars(&some, &time),
    );
    chart(
        "limit-energy",
        "DRAM energy with 25 % of the peak on a hot DIMM (figure 15)",
        "DRAM energy",
        bars(&some, &energy),
    );
    let (time, energy) = with(With::Governor);
    chart(
        "governor-time",
        "Time with the governor (figure 16)",
        "time",
        bars(&some, &time),
    );
    chart(
        "governor-energy",
        "DRAM energy with the governor (figure 17)",
        "DRAM energy",
        bars(&some, &energy),
    );
    power(all, out);
}

/// Bars beside the default, for each of some groups: the chart's id and title, and what groups are.
pub(super) fn over_default(
    (id, title): (&str, &str),
    (groups_are, groups): (&str, Vec<String>),
    what: &str,
    bars: Vec<Bars>,
) -> Chart {
    let data = Data::Bars {
        groups,
        bars,
        stacked: false,
    };
    let groups_are = Axis::new(groups_are, "", Format::Number);
    let what = Axis::new(what, "x default", Format::Number).between(0.0, None);
    Chart::new(id, title, groups_are, what, data).with_level("default", 1.0)
}

/// Power of each DIMM over time, of the kernel that needs most bandwidth, as default, on one hot DIMM, and with the governor.
fn power(all: &Look, out: &mut StudyResult) {
    let Some(entry) = all.entries(true).next() else {
        return;
    };
    for (id, title, name) in [
        (
            "power-default",
            "default",
            key(entry, "default", MANY, With::Nothing),
        ),
        (
            "power-one-hot",
            "one hot DIMM, offline 5 %",
            key(entry, OFFLINE, MANY, With::Nothing),
        ),
        (
            "power-governor",
            "governor, offline 5 %",
            key(entry, OFFLINE, MANY, With::Governor),
        ),
    ] {
        let Some(r) = all.ran.get(&name).filter(|r| !r.power.is_empty()) else {
            continue;
        };
        let dimms = r
            .trays
            .iter()
            .flat_map(|t| &t.dimms)
            .filter(|d| d.socket == 0);
        let line = |dimm: usize| {
            let x = r.power.iter().map(|p| 1e9 * p.end).collect();
            let y = r
                .power
                .iter()
                .map(|p| p.watts.get(dimm).copied().unwrap_or(f64::NAN));
            Series::new(format!("DIMM {dimm}"), x, y.collect())
        };
        out.charts.push(Chart::new(
            id,
            format!(
                "Power of each DIMM over time, {} with {MANY} threads, {title}",
                entry.name
            ),
            Axis::new("time", "", Format::DurationNs),
            Axis::new("power", "W", Format::Number).between(0.0, None),
            Data::Lines((0..dimms.count()).map(line).collect()),
        ));
    }
}
