//! Results of plans on a machine with trays: time, energy, and what each DIMM did.

use super::columns::{self, Cell};
use super::compared::Sheet;
use varve_observed::PlanResult;
use varve_report::fmt::{self, Format};
use varve_report::pictures::Flame;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Series, Value};
use varve_run::objects::ObjectResult;
use varve_run::{Compared, PowerPoint, TrayUse};

/// A run whose pages had colours.
pub trait OnTrays: Compared {
    /// Energy of the processors, J.
    fn cpu_j(&self) -> Option<f64>;
    /// The use of DIMMs.
    fn trays(&self) -> Option<&TrayUse>;
    /// Power of each over time.
    fn power(&self) -> &[PowerPoint];
}

impl OnTrays for PlanResult {
    fn cpu_j(&self) -> Option<f64> {
        self.cpu_j
    }

    fn trays(&self) -> Option<&TrayUse> {
        self.trays.as_ref()
    }

    fn power(&self) -> &[PowerPoint] {
        &self.power
    }
}

impl OnTrays for ObjectResult {
    fn cpu_j(&self) -> Option<f64> {
        self.cpu_j
    }

    fn trays(&self) -> Option<&TrayUse> {
        self.trays.as_ref()
    }

    fn power(&self) -> &[PowerPoint] {
        &self.power
    }
}

/// Energy of processors and memory, J.
fn all_j<R: OnTrays>(r: &R) -> Option<f64> {
    Some(r.cpu_j()? + r.energy_j?)
}

/// Time and energy of each plan beside `base`, with notes and advice, each DIMM, and `more` tables.
pub fn sheet<'a, R: OnTrays>(
    title: String,
    base: &'a R,
    results: &[&'a R],
    (mut notes, advice): (Vec<String>, Vec<String>),
    more: Vec<RunTable>,
    flames: (Option<Flame>, Option<Flame>),
) -> Sheet<'a, R> {
    notes.extend(results.iter().filter_map(|r| happened(*r)));
    Sheet {
        cells: cells(base, results),
        rows_are: "plan",
        trade_off: Some((1, 3)),
        notes,
        advice,
        details: std::iter::once(dimms(results)).chain(more).collect(),
        charts: charts(results),
        flames,
        title,
    }
}

/// The columns.
fn cells<'a, R: OnTrays>(base: &'a R, results: &[&'a R]) -> Vec<Cell<'a, R>> {
    let column = |name: &str, format| Column::new(name, format, Better::Lower);
    let missing = |value: Option<f64>| value.map_or(Value::Missing, Value::from);
    let ratio = |name: &str, of: fn(&R) -> Option<f64>| {
        let value = move |r: &R| missing(of(r).zip(of(base)).map(|(a, b)| a / b));
        Cell::new(column(name, Format::Number), value).with_unit(format!("x {}", base.name()))
    };
    let moved = |r: &R| r.trays().map(|t| t.remapped_bytes as f64);
    let joules = column("DRAM energy", Format::Number).with_unit("mJ");
    let cold = Column::new("cold", Format::Bytes, Better::Neither);
    let mut cells = vec![
        columns::time(),
        columns::slowdown(base),
        Cell::new(joules, move |r: &R| missing(r.energy_j.map(|j| 1000.0 * j))),
        ratio("DRAM energy", |r| r.energy_j),
        ratio("CPU + DRAM", all_j),
        Cell::new(column("hot", Format::Bytes), |r: &R| r.fast_bytes as f64),
        Cell::new(cold, |r: &R| r.slow_bytes as f64),
        Cell::new(column("DIMMs used", Format::Number), move |r: &R| {
            missing(r.trays().map(|t| used(t) as f64))
        }),
    ];
    if results.iter().any(|r| moved(r) > Some(0.0)) {
        let remapped = column("remapped", Format::Bytes);
        cells.push(Cell::new(remapped, move |r: &R| missing(moved(r))));
    }
    cells
}

/// DIMMs that pages were on at the end.
fn used(trays: &TrayUse) -> usize {
    let holds = trays
        .dimms
        .iter()
        .filter(|d| d.hot_bytes + d.cold_bytes > 0);
    holds.count()
}

/// Remaps, in words.
fn happened<R: OnTrays>(r: &R) -> Option<String> {
    let t = r.trays()?;
    let mut parts: Vec<String> = t
        .decisions
        .iter()
        .map(|(at, hot, undone)| {
            let why = if *undone { ", undone" } else { "" };
            format!("{} hot at {}{why}", hot, fmt::duration_ns(1e9 * at))
        })
        .collect();
    if t.overflows > 0 {
        parts.push(format!("{} DIMMs added on overflow", t.overflows));
    }
    (!parts.is_empty()).then(|| format!("{}: DIMMs remapped: {}", r.name(), parts.join("; ")))
}

/// Each DIMM of the first socket under each plan: what it held, what it drew, and how it slept.
fn dimms<R: OnTrays>(results: &[&R]) -> RunTable {
    let mut table = RunTable::new("DIMMs of the first socket", "plan, DIMM");
    let share = |name: &str| Column::new(name, Format::Percent, Better::Neither);
    table.columns = vec![
        Column::new("hot", Format::Bytes, Better::Neither),
        Column::new("cold", Format::Bytes, Better::Neither),
        Column::new("power", Format::Number, Better::Lower).with_unit("W"),
        Column::new("of that operation", Format::Number, Better::Lower).with_unit("W"),
        share("active"),
        share("stand-by"),
        share("power-down"),
        share("self-refresh"),
    ];
    for r in results {
        let dimms = r.trays().into_iter().flat_map(|t| &t.dimms);
        for (i, d) in dimms.filter(|d| d.socket == 0).enumerate() {
            let watts =
                |joules: f64| Value::from(joules / r.whole_seconds().max(f64::MIN_POSITIVE));
            let mut row = vec![
                (d.hot_bytes as f64).into(),
                (d.cold_bytes as f64).into(),
                watts(d.joules),
                watts(d.operation_j),
            ];
            row.extend(d.states.map(|s| Value::from(100.0 * s)));
            table.push(format!("{}, {i}", r.name()), row);
        }
    }
    table
}

/// Energy by plan, and the power of each DIMM over time.
fn charts<R: OnTrays>(results: &[&R]) -> Vec<Chart> {
    if results.iter().all(|r| r.trays().is_none()) {
        return Vec::new();
    }
    let groups: Vec<String> = results.iter().map(|r| r.name().to_string()).collect();
    let parts = |f: &dyn Fn(&TrayUse) -> f64| -> Vec<f64> {
        let of = |r: &&R| r.trays().map_or(f64::NAN, f);
        results.iter().map(of).collect()
    };
    let sum = |t: &TrayUse, f: &dyn Fn(&varve_run::DimmUse) -> f64| {
        1000.0 * t.dimms.iter().map(f).sum::<f64>()
    };
    let mut all = vec![Chart::new(
        "energy",
        "Energy of all DIMMs",
        Axis::new("plan", "", Format::Number),
        Axis::new("energy", "mJ", Format::Number).between(0.0, None),
        Data::Bars {
            groups,
            bars: vec![
                Bars::new("operation", parts(&|t| sum(t, &|d| d.operation_j))),
                Bars::new(
                    "background",
                    parts(&|t| sum(t, &|d| d.joules - d.operation_j)),
                ),
            ],
            stacked: true,
        },
    )];
    for r in results.iter().filter(|r| !r.power().is_empty()) {
        all.push(power(*r));
    }
    all
}

fn power<R: OnTrays>(r: &R) -> Chart {
    let first = r.trays().into_iter().flat_map(|t| &t.dimms);
    let first = first.filter(|d| d.socket == 0).count();
    let line = |dimm: usize| {
        let x: Vec<f64> = r.power().iter().map(|p| 1e9 * p.end).collect();
        let y = r
            .power()
            .iter()
            .map(|p| p.watts.get(dimm).copied().unwrap_or(f64::NAN));
        Series::new(format!("DIMM {dimm}"), x, y.collect())
    };
    let id: String = r
        .name()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    Chart::new(
        format!("power-{id}"),
        format!("Power of each DIMM over time, {}", r.name()),
        Axis::new("time", "", Format::DurationNs),
        Axis::new("power", "W", Format::Number).between(0.0, None),
        Data::Lines((0..first).map(line).collect()),
    )
}
