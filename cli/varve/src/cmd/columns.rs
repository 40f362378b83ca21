//! Columns of comparisons with how their values are read off a result, and those that all kinds of runs share.

use std::borrow::Borrow;
use std::ops::Deref;
use varve_report::fmt::{self, Format};
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Value};
use varve_run::{Compared, Measured, Pauses, RunResult};

/// A column, and its value of one result.
pub struct Cell<'a, R>(Column, Box<dyn Fn(&R) -> Value + 'a>);

impl<'a, R> Cell<'a, R> {
    pub fn new<V: Into<Value>>(column: Column, value: impl Fn(&R) -> V + 'a) -> Self {
        Cell(column, Box::new(move |r| value(r).into()))
    }

    /// A share, 0 to 1, in percent.
    pub fn share(name: &str, share: impl Fn(&R) -> f64 + 'a) -> Self {
        let column = Column::new(name, Format::Percent, Better::Lower);
        Cell::new(column, move |r| 100.0 * share(r))
    }

    /// Whether it is the column of this name.
    pub fn is(&self, name: &str) -> bool {
        self.0.name == name
    }

    pub fn with_unit(mut self, unit: impl Into<String>) -> Self {
        self.0 = self.0.with_unit(unit);
        self
    }
}

/// A comparison without notes: a row for each result, called as `name` says.
pub fn table<R>(
    (title, rows_are): (String, &str),
    results: &[impl Borrow<R>],
    name: fn(&R) -> &str,
    cells: Vec<Cell<R>>,
) -> RunTable {
    let mut table = RunTable::new(title, rows_are);
    for r in results.iter().map(Borrow::borrow) {
        table.push(name(r), cells.iter().map(|Cell(_, value)| value(r)));
    }
    table.columns = cells.into_iter().map(|Cell(column, _)| column).collect();
    table
}

/// The note on `slowdown` where one instance stands for all.
pub const MNTT_ALIKE: &str = "slowdown: of one instance beside the same instances with all in DRAM (maximum normalized turnaround time, MNTT)";
/// The same where all were run.
pub const MNTT: &str =
    "slowdown: of the instance that loses most (maximum normalized turnaround time, MNTT)";

/// How long it took.
pub fn time<'a, R: Deref<Target = Measured>>() -> Cell<'a, R> {
    let column = Column::new("time", Format::DurationNs, Better::Lower);
    Cell::new(column, |r: &R| r.seconds * 1e9)
}

/// How many times as long as the base.
pub fn slowdown<'a, R: Compared>(base: &'a R) -> Cell<'a, R> {
    let column = Column::new("slowdown", Format::Number, Better::Lower);
    Cell::new(column, |r: &R| r.slowdown(base)).with_unit(format!("x {}", base.name()))
}

/// The columns of all plans, with those of one kind between the price and what was moved.
pub fn plans<'a, R: Compared>(base: &'a R, own: Vec<Cell<'a, R>>) -> Vec<Cell<'a, R>> {
    let first = [time(), slowdown(base), dram()];
    first.into_iter().chain(own).chain([moved()]).collect()
}

/// How many times as long as the base the whole run takes, where the other columns are of the steady state.
pub fn whole_run<'a, R: Compared>(base: &R) -> Cell<'a, R> {
    let column = Column::new("whole run", Format::Number, Better::Lower);
    let whole = base.whole_seconds().max(f64::MIN_POSITIVE);
    Cell::new(column, move |r: &R| match r.steady() {
        Some(steady) => Value::from(steady.whole_seconds / whole),
        None => Value::Missing,
    })
}

/// The share of DRAM in the footprint: the price.
pub fn dram<'a, R: Deref<Target = Measured>>() -> Cell<'a, R> {
    Cell::share("DRAM", |r: &R| r.dram_share())
}

/// Bytes that migrated between memories.
pub fn moved<'a, R: Deref<Target = Measured>>() -> Cell<'a, R> {
    let column = Column::new("moved", Format::Bytes, Better::Lower);
    Cell::new(column, |r: &R| r.moved_bytes as f64)
}

/// Bytes, as sentences have them.
pub fn size(bytes: u64) -> String {
    fmt::bytes(bytes as f64)
}

/// How much of a run was seen, if only windows of it were recorded, and what that leaves open.
pub fn sampled(run: &RunResult) -> Option<String> {
    let sampled = run.sampled?;
    let percent = |share: f64| format!("{:.3} %", 100.0 * share);
    let error = match sampled.error {
        Some(error) => format!(
            "chance makes its time uncertain by ± {:.1} % (in 95 of 100 cases); what caches hold when a window begins adds up to some \
             6 %, to time and slowdowns",
            100.0 * error
        ),
        None => "too few windows for an error bound".into(),
    };
    Some(format!(
        "Sampled: {} of the run in {} windows; {error}.",
        percent(sampled.share),
        sampled.windows
    ))
}

/// The energy of memory, if that is known for all results.
pub fn energy<'a, R: Deref<Target = Measured>>(results: &[&R]) -> Option<Cell<'a, R>> {
    let column = Column::new("energy", Format::Number, Better::Lower).with_unit("mJ");
    let known = results.iter().all(|r| r.energy_j.is_some());
    known.then(|| Cell::new(column, |r: &R| 1000.0 * r.energy_j.unwrap_or(f64::NAN)))
}

/// A reason to lose time, and its share.
pub type Reason<R> = (&'static str, fn(&R) -> f64);

/// The reasons for which time was lost in any of the results; loads, stores and the system always.
pub fn reasons<R: Deref<Target = Measured>>(results: &[&R]) -> Vec<Reason<R>> {
    let all: [Reason<R>; 6] = [
        ("loads", |r| r.stalls.load),
        ("stores", |r| r.stalls.store),
        ("fences", |r| r.stalls.fence),
        ("instructions", |r| r.stalls.fetch),
        ("barriers", |r| r.stalls.barrier),
        ("system", |r| r.stalls.system),
    ];
    let always = ["loads", "stores", "system"];
    let lost =
        |(name, share): &Reason<R>| always.contains(name) || results.iter().any(|r| share(r) > 0.0);
    all.into_iter().filter(lost).collect()
}

/// Bars of the shares of time that were lost, one for each result.
pub fn stall_chart<R: Compared>(rows_are: &str, results: &[&R]) -> Chart {
    let shares = |share: fn(&R) -> f64| results.iter().map(|r| 100.0 * share(r)).collect();
    Chart::new(
        "stalls",
        "Where the threads' time goes",
        Axis::new(rows_are, "", Format::Number),
        Axis::new("share of time", "", Format::Percent).between(0.0, 100.0),
        Data::Bars {
            groups: results.iter().map(|r| r.name().into()).collect(),
            bars: (reasons(results).into_iter())
                .map(|(reason, share)| Bars::new(reason, shares(share)))
                .collect(),
            stacked: true,
        },
    )
}

/// Pauses of a kind, of a result, and how many collections that are.
pub type PauseKind<R> = (&'static str, fn(&R) -> (u64, Pauses));

/// Pauses for collections, kind by kind.
pub fn pauses<R: Compared>(results: &[&R], kinds: &[PauseKind<R>]) -> RunTable {
    let mut table = RunTable::new("Pauses for collections", "plan");
    for (kind, _) in kinds {
        table.columns.extend([
            Column::new(*kind, Format::Number, Better::Neither),
            Column::new("p50", Format::DurationNs, Better::Lower),
            Column::new("p99", Format::DurationNs, Better::Lower),
            Column::new("max", Format::DurationNs, Better::Lower),
        ]);
    }
    for r in results {
        let mut row = Vec::new();
        for (_, of) in kinds {
            let (count, p) = of(r);
            // A space that was collected in a global pause had no pause of its own.
            let ns = |ns: u64| match p.max_ns {
                0 => Value::Missing,
                _ => (ns as f64).into(),
            };
            row.extend([
                (count as f64).into(),
                ns(p.p50_ns),
                ns(p.p99_ns),
                ns(p.max_ns),
            ]);
        }
        table.push(r.name(), row);
    }
    table
}
