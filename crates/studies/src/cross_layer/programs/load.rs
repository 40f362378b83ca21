//! B9: SciMark in one run whose load changes (figure 18), and what is remapped in it (table 5).
//!
//! Threads come and go by spans, as many in each as the seed draws, and the strategies and the default get the same. A thread that is away
//! keeps its objects. How fast a strategy is: how much the kernels have done in the time.

use super::super::{Setup, claim};
use super::Suite;
use super::suite::{CONTINUOUS, Entry, OFFLINE, SAMPLE_NS, With};
use crate::managed::{ManagedPlan, ManagedResults};
use varve_machine::random::Rng;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, StudyResult, Value};
use varve_run::{PlanResult, Shifts, Who};

/// The most threads in a span.
const MOST: u64 = 10;
/// The stream of random numbers that loads are drawn from.
const STREAM: u64 = 18;

/// What table 5 has of a kernel: remaps and GB, offline 5 % and online continuous.
const TABLE_5: [(&str, [f64; 4]); 4] = [
    ("fft", [12.0, 1.09, 11.0, 15.14]),
    ("lu", [3.0, 8.63, 2.0, 7.71]),
    ("sor", [11.0, 3.26, 8.0, 2.42]),
    ("sparse", [3.0, 9.01, 3.0, 7.48]),
];

/// Strategies, and whether the governor works.
const RUNS: [(&str, With); 4] = [
    (OFFLINE, With::Nothing),
    (OFFLINE, With::Governor),
    (CONTINUOUS, With::Nothing),
    (CONTINUOUS, With::Governor),
];

/// Threads by span.
struct Load {
    counts: Vec<u32>,
    span_ns: u64,
}

impl Load {
    /// As many spans as the paper's minutes. A span has so many of the governor's samples as fit the study's time.
    fn of(setup: &Setup) -> Load {
        let (spans, span_ns) = match (setup.tiny(), setup.quick()) {
            (true, _) => (2, 3 * SAMPLE_NS),
            (_, true) => (5, 20 * SAMPLE_NS),
            _ => (10, 60 * SAMPLE_NS),
        };
        let mut rng = Rng::new(setup.options.seed, STREAM);
        Load {
            counts: (0..spans).map(|_| rng.between(1, MOST) as u32).collect(),
            span_ns,
        }
    }

    fn shifts(&self) -> Shifts {
        Shifts {
            end_ns: self.counts.len() as u64 * self.span_ns,
            who: Who::First {
                counts: self.counts.clone(),
                span_ns: self.span_ns,
            },
        }
    }

    fn most(&self) -> u32 {
        self.counts.iter().copied().max().unwrap_or(1)
    }

    /// Share of the time in which the governor searches, 0 to 1: from the beginning of each span to a sample after the last remap in it.
    fn search(&self, r: &PlanResult) -> f64 {
        let span_s = self.span_ns as f64 / 1e9;
        let mut until = vec![0.0f64; self.counts.len()];
        for (at, ..) in r.trays.iter().flat_map(|trays| &trays.decisions) {
            let span = (at / span_s) as usize;
            if let Some(until) = until.get_mut(span) {
                let since = at - span as f64 * span_s + SAMPLE_NS as f64 / 1e9;
                *until = until.max(since.min(span_s));
            }
        }
        until.iter().sum::<f64>() / (span_s * self.counts.len() as f64)
    }
}

fn key(entry: &Entry, strategy: &str, with: With) -> String {
    format!("{}, changing load, {strategy}, {with:?}", entry.name)
}

pub(super) fn plan(setup: &Setup, suite: &Suite, plan: &mut ManagedPlan) {
    let load = Load::of(setup);
    for (at, entry) in suite.entries.iter().enumerate() {
        let mut ask = |strategy: &str, words: &str, with: With| {
            if let Some(trays) = suite.trays(with, None) {
                let spec = suite.timed(at, words, load.most(), trays, load.shifts());
                plan.run(key(entry, strategy, with), spec);
            }
        };
        ask("default", "dram", With::Nothing);
        for (name, with) in RUNS {
            if let Some((_, words)) = suite.strategy(name) {
                ask(name, &words, with);
            }
        }
    }
}

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

pub(super) fn claims(setup: &Setup, suite: &Suite, ran: &ManagedResults, out: &mut StudyResult) {
    let load = Load::of(setup);
    let beside = |entry: &Entry, strategy: &str, with: With| {
        let base = ran.get(&key(entry, "default", With::Nothing))?;
        let r = ran.get(&key(entry, strategy, with))?;
        Beside::of(r, base, &load, suite.shrink)
    };
    // A mean is over all kernels, or there is none.
    let mean = |strategy: &str, of: fn(&Beside) -> f64| {
        let all = suite.entries.iter();
        let all = all.map(|e| beside(e, strategy, With::Governor).map(|b| of(&b)));
        let all = all.collect::<Option<Vec<f64>>>()?;
        Some(all.iter().sum::<f64>() / all.len() as f64)
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

fn table(suite: &Suite, title: String, beside: Of<'_>) -> RunTable {
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

fn charts(suite: &Suite, beside: Of<'_>, out: &mut StudyResult) {
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
        let data = Data::Bars {
            groups: suite.entries.iter().map(|e| e.name.into()).collect(),
            bars,
            stacked: false,
        };
        out.charts.push(
            Chart::new(
                id,
                title,
                Axis::new("kernel", "", Format::Number),
                Axis::new(what, "x default", Format::Number).between(0.0, None),
                data,
            )
            .with_level("default", 1.0),
        );
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

#[cfg(test)]
mod tests {
    use super::*;
    use varve_run::TrayUse;

    #[test]
    fn a_search_is_from_the_beginning_of_a_span_to_a_sample_after_its_last_remap() {
        let load = Load {
            counts: vec![1, 9, 3, 4],
            span_ns: 10 * SAMPLE_NS,
        };
        let sample = SAMPLE_NS as f64 / 1e9;
        let at = [1.0, 3.0, 25.0, 29.5, 40.0];
        let r = PlanResult {
            trays: Some(TrayUse {
                decisions: at.map(|at| (at * sample, 2, false)).into(),
                ..TrayUse::default()
            }),
            ..PlanResult::default()
        };
        // 4 samples of the first span, none of the second, all of the third; the last remap comes after the end.
        assert!((load.search(&r) - 14.0 / 40.0).abs() < 1e-9);
    }
}
