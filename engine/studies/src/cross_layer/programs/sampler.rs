//! B10: SciMark where the sampler's hardware thread is one of those that the kernels want (figure 7, table 4).
//!
//! The model's machine has twelve hardware threads. Eleven threads leave one to the sampler. Of twelve, one rests at any time, in turn:
//! the whole of the sampler's thread is gone, as the paper's pins it, or it has the part that a scheduler gives it among thirteen.

use super::super::{Setup, claim};
use super::CrossLayerSuite;
use super::look::mean_of_all;
use super::suite::{Entry, MANY, SAMPLE_NS, With};
use crate::managed::{ManagedPlan, ManagedResults};
use varve_observed::{PlanResult, Shifts, Who};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, StudyResult, Value};

/// Threads that want all of the socket's hardware threads.
const ALL: u32 = 12;

/// Processor time that the sampler takes for a sample when it sleeps in between, ns: reading the word is nothing beside falling asleep and
/// being woken. Measured: the column of B10's table of intervals (`varve study cross-layer --only B10`), 14.0 to 14.5 us at 10 us and
/// 100 us on two virtual cores.
const SAMPLE_COST_NS: u64 = 14_000;
/// The interval of a sampler that sleeps, ns.
const INTERVAL_NS: u64 = 10_000;

/// The values of table 4: time, processors' energy and DRAM energy of eleven threads over those of twelve.
const TABLE_4: [(&str, [f64; 3]); 4] = [
    ("fft", [1.031, 1.028, 1.020]),
    ("lu", [0.999, 0.988, 0.994]),
    ("sor", [1.080, 1.050, 1.025]),
    ("sparse", [1.000, 0.994, 0.986]),
];

/// The users of the hardware threads.
#[derive(Clone, Copy, PartialEq)]
enum Sampler {
    /// No sampler.
    None,
    /// Eleven threads, and a sampler on the twelfth hardware thread: it takes nothing from them.
    Free,
    /// Twelve threads on eleven: the sampler has one of its own.
    Own,
    /// Twelve threads and a sampler that never sleeps on twelve, each with the same part of them.
    Shared,
    /// The same with a sampler that sleeps between samples.
    Sleeps,
}

const SAMPLERS: [(Sampler, &str); 5] = [
    (Sampler::None, "12 threads, no sampling"),
    (Sampler::Free, "11 threads"),
    (
        Sampler::Own,
        "12 threads, sampler on a hardware thread of its own",
    ),
    (Sampler::Shared, "12 threads, sampler shares, continuous"),
    (Sampler::Sleeps, "12 threads, sampler shares, every 10 us"),
];

impl Sampler {
    fn threads(self) -> u32 {
        match self {
            Sampler::Free => MANY,
            _ => ALL,
        }
    }

    fn who(self, slice_ns: u64) -> Who {
        let (turns, rest_ns) = match self {
            Sampler::None | Sampler::Free => return Who::All,
            Sampler::Own => (ALL, slice_ns),
            Sampler::Shared => (ALL + 1, slice_ns),
            Sampler::Sleeps => {
                let of = SAMPLE_COST_NS + INTERVAL_NS;
                (ALL, slice_ns * SAMPLE_COST_NS / of)
            }
        };
        Who::AllButOne {
            turns,
            slice_ns,
            rest_ns,
        }
    }
}

fn key(entry: &Entry, sampler: Sampler) -> String {
    let name = SAMPLERS.iter().find(|s| s.0 == sampler).map_or("", |s| s.1);
    format!("{}, {name}", entry.name)
}

pub(super) fn plan(setup: &Setup, suite: &CrossLayerSuite, plan: &mut ManagedPlan) {
    let end_ns = SAMPLE_NS
        * match (setup.tiny(), setup.quick()) {
            (true, _) => 3,
            (_, true) => 30,
            _ => 100,
        };
    // Slices shrink with the machine, as all times here.
    let slice_ns = setup.bench.machine.os.slice_ns as u64 / u64::from(suite.shrink);
    let Some(trays) = suite.trays(With::Nothing, None) else {
        return;
    };
    for (at, entry) in suite.entries.iter().enumerate() {
        for (sampler, _) in SAMPLERS {
            let shifts = Shifts {
                end_ns,
                who: sampler.who(slice_ns),
            };
            let spec = suite.timed(at, "dram", sampler.threads(), trays.clone(), shifts);
            plan.run(key(entry, sampler), spec);
        }
    }
}

/// Time, processors' energy and DRAM energy for the same work, over those of another run.
fn over(r: &PlanResult, base: &PlanResult) -> Option<[f64; 3]> {
    let done = |r: &PlanResult| r.instructions as f64 * f64::from(r.instances);
    let each = |of: Option<f64>, r: &PlanResult| Some(of? / done(r));
    Some([
        (r.seconds / done(r)) / (base.seconds / done(base)),
        each(r.cpu_j, r)? / each(base.cpu_j, base)?,
        each(r.energy_j, r)? / each(base.energy_j, base)?,
    ])
}

pub(super) fn claims(suite: &CrossLayerSuite, ran: &ManagedResults, out: &mut StudyResult) {
    let beside = |entry: &Entry, sampler: Sampler| {
        over(
            ran.get(&key(entry, sampler))?,
            ran.get(&key(entry, Sampler::None))?,
        )
    };
    for (at, what) in ["time", "CPU energy", "DRAM energy"].iter().enumerate() {
        let ours = suite
            .entries
            .iter()
            .map(|e| beside(e, Sampler::Free).map(|of| of[at]));
        let published = geometric_mean(TABLE_4.iter().map(|row| Some(row.1[at])));
        out.claims.push(claim(
            "B10",
            &format!("SciMark, 11 threads over 12 for the same work: {what}"),
            Value::from(published),
            geometric_mean(ours),
            "x",
            "geometric means of table 4; CPU by a simple model, in which a core with one thread draws what one with two does",
        ));
    }
    let sor = suite.entries.iter().find(|e| e.name == "sor");
    out.claims.push(claim(
        "B10",
        "sor, 12 threads, online sampling over none: time",
        1.14,
        sor.and_then(|e| beside(e, Sampler::Own)).map(|of| of[0]),
        "x",
        "the sampler has a hardware thread of its own, twelve threads have the other eleven; about 14 % in the paper",
    ));
    out.tables.push(table(suite, &beside));
    let groups = suite.entries.iter().map(|e| e.name.to_string());
    let bars = |(sampler, name): (Sampler, &str)| {
        let all = suite.entries.iter();
        let time = all.map(|e| beside(e, sampler).map_or(f64::NAN, |of| of[0]));
        Bars::new(name, time.collect())
    };
    let data = Data::Bars {
        groups: groups.collect(),
        bars: SAMPLERS[1..].iter().copied().map(bars).collect(),
        stacked: false,
    };
    out.charts.push(
        Chart::new(
            "sampler-core",
            "Time for the same work with online sampling (figure 7)",
            Axis::new("kernel", "", Format::Number),
            Axis::new("time", "x 12 threads without", Format::Number).between(0.0, None),
            data,
        )
        .with_level("12 threads, no sampling", 1.0),
    );
}

fn geometric_mean(all: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    mean_of_all(all.map(|x| x.map(f64::ln))).map(f64::exp)
}

/// A kernel's run beside twelve threads without sampling.
type Of<'a> = &'a dyn Fn(&Entry, Sampler) -> Option<[f64; 3]>;

fn table(suite: &CrossLayerSuite, beside: Of<'_>) -> RunTable {
    let mut table = RunTable::new(
        "SciMark and the sampler's hardware thread, for the same work, over 12 threads without sampling (figure 7, table 4)",
        "kernel and threads",
    );
    table.columns = vec![
        Column::new("time", Format::Ratio, Better::Lower),
        Column::new("published", Format::Ratio, Better::Neither),
        Column::new("CPU energy", Format::Ratio, Better::Lower),
        Column::new("published", Format::Ratio, Better::Neither),
        Column::new("DRAM energy", Format::Ratio, Better::Lower),
        Column::new("published", Format::Ratio, Better::Neither),
    ];
    for entry in &suite.entries {
        for (sampler, name) in &SAMPLERS[1..] {
            let ours = beside(entry, *sampler);
            let row = TABLE_4.iter().find(|row| row.0 == entry.name);
            let known = row.filter(|_| *sampler == Sampler::Free);
            let pair = |at: usize| [ours.map(|of| of[at]), known.map(|row| row.1[at])];
            let [time, cpu, dram] = [0, 1, 2].map(pair);
            let cells = [time, cpu, dram].concat().into_iter().map(Value::from);
            table.push(format!("{}, {name}", entry.name), cells);
        }
    }
    table
}
