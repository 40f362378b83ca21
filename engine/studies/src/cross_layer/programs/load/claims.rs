//! The results of a changing load: claims, the table and the pictures.

use super::super::super::{Setup, claim};
use super::super::CrossLayerSuite;
use super::super::charts::over_default;
use super::super::look::mean_of_all;
use super::super::suite::{CONTINUOUS, Entry, OFFLINE, With};
use super::{Load, RUNS, key};
use crate::managed::ManagedResults;
use varve_observed::PlanResult;
use varve_report::fmt::Format;
use varve_report::{Bars, Better, Column, RunTable, StudyResult, Value};

/// The values of a kernel in table 5: remaps and GB, offline 5 % and online continuous.
const TABLE_5: [(&str, [f64; 4]); 4] = [
    ("fft", [12.0, 1.09, 11.0, 15.14]),
    ("lu", [3.0, 8.63, 2.0, 7.71]),
    ("sor", [11.0, 3.26, 8.0, 2.42]),
    ("sparse", [3.0, 9.01, 3.0, 7.48]),
];

/// How a run compares with the default: time and DRAM energy for the same work, and what was remapped.
struct Beside {
    time: f64,
    energy: f64,
    search: f64,
    remaps: f64,
    /// At full size.
    gigabytes: f64,
}

impl Beside {
    fn of(r: &PlanResult, base: &PlanResult, load: &Load, shrink: u32) -> Option<Beside> {
        let done = |r: &PlanResult| r.instructions as f64 / r.seconds;
        let each = |r: &PlanResult| Some(r.energy_j? / r.instructions as f64);
        let trays = r.trays.as_ref()?;
        Some(Beside {
            time: done(base) / done(r),
            energy: each(r)? / each(base)?,
            search: load.search(r),
            remaps: trays.decisions.len() as f64,
            gigabytes: trays.remapped_bytes as f64 * f64::from(shrink) / 1e9,
        })
    }
}

pub(in super::super) fn claims(
    setup: &Setup,
    suite: &CrossLayerSuite,
    ran: &ManagedResults,
    out: &mut StudyResult,
) {
    let load = Load::of(setup);
    let beside = |entry: &Entry, strategy: &str, with: With| {
        let base = ran.get(&key(entry, "default", With::Nothing))?;
        let r = ran.get(&key(entry, strategy, with))?;
        Beside::of(r, base, &load, suite.shrink)
    };
    let mean = |strategy: &str, of: fn(&Beside) -> f64| {
        let all = suite.entries.iter();
        mean_of_all(all.map(|e| beside(e, strategy, With::Governor).as_ref().map(of)))
    };
    let published = |column: usize| {
        let all = TABLE_5.iter().map(|row| row.1[column]);
        all.sum::<f64>() / TABLE_5.len() as f64
    };
    let note =
        "one run of changing load at 1/64 of full size, with the governor; mean of the kernels";
    let of_table = "table 5's mean; bytes as if at full size; the paper's governor undoes nothing";
    let strategies = [
        (OFFLINE, "offline 5 %", 16.7, 0),
        (CONTINUOUS, "online continuous", 13.8, 2),
    ];
    for (name, words, saved, _) in strategies {
        out.claims.push(claim(
            "B9",
            &format!("DRAM energy saved with changing load, {words}"),
            saved,
            mean(name, |b| 100.0 * (1.0 - b.energy)),
            "%",
            note,
        ));
    }
    for (name, words, _, _) in strategies {
        out.claims.push(claim(
            "B9",
            &format!("time with changing load, {words}"),
            1.0,
            mean(name, |b| b.time),
            "x default",
            "for the same number of instructions; about the same in the paper",
        ));
    }
    for (name, words, _, column) in strategies {
        out.claims.push(claim(
            "B9",
            &format!("remaps with changing load, {words}"),
            published(column),
            mean(name, |b| b.remaps),
            "",
            of_table,
        ));
        out.claims.push(claim(
            "B9",
            &format!("remapped with changing load, {words}"),
            published(column + 1),
            mean(name, |b| b.gigabytes),
            "GB",
            of_table,
        ));
    }
    let counts: Vec<String> = load.counts.iter().map(u32::to_string).collect();
    let title = format!(
        "SciMark with changing load: {} threads, {} ms each (figure 18, table 5)",
        counts.join(", "),
        load.span_ns as f64 / 1e6
    );
    out.tables.push(table(suite, title, &beside));
    charts(suite, &beside, out);
}

/// A kernel's run beside the default.
type Of<'a> = &'a dyn Fn(&Entry, &str, With) -> Option<Beside>;

fn table(suite: &CrossLayerSuite, title: String, beside: Of<'_>) -> RunTable {
    let mut table = RunTable::new(title, "kernel and strategy");
    table.columns = vec![
        Column::new("time, no governor", Format::Ratio, Better::Lower),
        Column::new("energy, no governor", Format::Ratio, Better::Lower),
        Column::new("time", Format::Ratio, Better::Lower),
        Column::new("energy", Format::Ratio, Better::Lower),
        Column::new("search", Format::Percent, Better::Lower),
        Column::new("remaps", Format::Number, Better::Neither),
        Column::new("published", Format::Number, Better::Neither),
        Column::new("GB", Format::Number, Better::Neither),
        Column::new("GB published", Format::Number, Better::Neither),
    ];
    for entry in &suite.entries {
        for (strategy, at) in [(OFFLINE, 0), (CONTINUOUS, 2)] {
            let without = beside(entry, strategy, With::Nothing);
            let with = beside(entry, strategy, With::Governor);
            let known = TABLE_5.iter().find(|row| row.0 == entry.name);
            let known = |column: usize| known.map(|row| row.1[at + column]);
            table.push(
                format!("{}, {strategy}", entry.name),
                [
                    without.as_ref().map(|b| b.time),
                    without.as_ref().map(|b| b.energy),
                    with.as_ref().map(|b| b.time),
                    with.as_ref().map(|b| b.energy),
                    with.as_ref().map(|b| 100.0 * b.search),
                    with.as_ref().map(|b| b.remaps),
                    known(0),
                    with.as_ref().map(|b| b.gigabytes),
                    known(1),
                ]
                .map(Value::from),
            );
        }
    }
    table
}

fn charts(suite: &CrossLayerSuite, beside: Of<'_>, out: &mut StudyResult) {
    let bars = |of: fn(&Beside) -> f64| {
        let one = |(strategy, with): (&str, With)| {
            let name = match with {
                With::Governor => format!("{strategy}, governor"),
                _ => strategy.into(),
            };
            let all = suite.entries.iter();
            let all = all.map(|e| beside(e, strategy, with).map_or(f64::NAN, |b| of(&b)));
            Bars::new(name, all.collect())
        };
        RUNS.map(one).into()
    };
    let mut chart = |id: &str, title: &str, what: &str, bars: Vec<Bars>| {
        let groups = suite.entries.iter().map(|e| e.name.into()).collect();
        out.charts
            .push(over_default((id, title), ("kernel", groups), what, bars));
    };
    chart(
        "load-time",
        "Time with changing load (figure 18)",
        "time",
        bars(|b| b.time),
    );
    chart(
        "load-energy",
        "DRAM energy with changing load (figure 18)",
        "DRAM energy",
        bars(|b| b.energy),
    );
}
