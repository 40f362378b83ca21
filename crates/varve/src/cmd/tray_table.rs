//! Results of plans on a machine with trays: time, energy, and what each DIMM did.

use super::columns::{self, Cell};
use std::ops::Deref;
use varve_report::fmt::{self, Format};
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Series, Value};
use varve_run::objects::ObjectResult;
use varve_run::{Measured, PlanResult, PowerPoint, TrayUse};

/// Within this factor two times count as equal.
const EQUAL: f64 = 1.03;

/// A run whose pages had colours.
pub trait OnTrays: Deref<Target = Measured> {
    /// Its plan.
    fn plan(&self) -> &str;
    /// Its time, over that of another plan.
    fn slowdown(&self, base: &Self) -> f64;
    /// Time of all of it, s.
    fn whole_seconds(&self) -> f64;
    /// Energy of the processors, J.
    fn cpu_j(&self) -> Option<f64>;
    /// What DIMMs did.
    fn trays(&self) -> Option<&TrayUse>;
    /// Power of each over time.
    fn power(&self) -> &[PowerPoint];
    /// What else there is to say.
    fn note(&self) -> Option<String>;
}

impl OnTrays for PlanResult {
    fn plan(&self) -> &str {
        &self.plan
    }

    fn slowdown(&self, base: &Self) -> f64 {
        self.turnaround(base).mntt
    }

    fn whole_seconds(&self) -> f64 {
        self.seconds
    }

    fn cpu_j(&self) -> Option<f64> {
        self.cpu_j
    }

    fn trays(&self) -> Option<&TrayUse> {
        self.trays.as_ref()
    }

    fn power(&self) -> &[PowerPoint] {
        &self.power
    }

    fn note(&self) -> Option<String> {
        self.untold.clone()
    }
}

impl OnTrays for ObjectResult {
    fn plan(&self) -> &str {
        &self.plan
    }

    fn slowdown(&self, base: &Self) -> f64 {
        self.seconds / base.seconds.max(f64::MIN_POSITIVE)
    }

    fn whole_seconds(&self) -> f64 {
        self.run.begin_s + self.seconds
    }

    fn cpu_j(&self) -> Option<f64> {
        self.cpu_j
    }

    fn trays(&self) -> Option<&TrayUse> {
        self.trays.as_ref()
    }

    fn power(&self) -> &[PowerPoint] {
        &self.power
    }

    fn note(&self) -> Option<String> {
        self.run.warning.as_ref().map(|w| format!("Note: {w}"))
    }
}

/// Energy of processors and memory, J.
fn all_j<R: OnTrays>(r: &R) -> Option<f64> {
    Some(r.cpu_j()? + r.energy_j?)
}

/// Time and energy of each plan beside `base`, with the advice.
pub fn of<R: OnTrays>(title: String, base: &R, results: &[R]) -> RunTable {
    let column = |name: &str, format| Column::new(name, format, Better::Lower);
    let missing = |value: Option<f64>| value.map_or(Value::Missing, Value::from);
    let ratio = |name: &str, of: fn(&R) -> Option<f64>| {
        let value = move |r: &R| missing(of(r).zip(of(base)).map(|(a, b)| a / b));
        Cell::new(column(name, Format::Number), value).with_unit(format!("x {}", base.plan()))
    };
    let moved = |r: &R| r.trays().map(|t| t.remapped_bytes as f64);
    let joules = column("DRAM energy", Format::Number).with_unit("mJ");
    let cold = Column::new("cold", Format::Bytes, Better::Neither);
    let mut cells = vec![
        columns::time(),
        Cell::new(column("slowdown", Format::Number), |r: &R| r.slowdown(base))
            .with_unit(format!("x {}", base.plan())),
        Cell::new(joules, |r: &R| missing(r.energy_j.map(|j| 1000.0 * j))),
        ratio("DRAM energy", |r| r.energy_j),
        ratio("CPU + DRAM", all_j),
        Cell::new(column("hot", Format::Bytes), |r: &R| r.fast_bytes as f64),
        Cell::new(cold, |r: &R| r.slow_bytes as f64),
        Cell::new(column("DIMMs used", Format::Number), |r: &R| {
            missing(r.trays().map(|t| used(t) as f64))
        }),
    ];
    if results.iter().any(|r| moved(r) > Some(0.0)) {
        let remapped = column("remapped", Format::Bytes);
        cells.push(Cell::new(remapped, |r: &R| missing(moved(r))));
    }
    let mut table = columns::table((title, "plan"), results, R::plan, cells);
    table.trade_off = (results.len() > 1).then_some((1, 3));
    for r in results {
        table.notes.extend(r.note());
        table.notes.extend(happened(r));
    }
    table.notes.extend(advice(base, results));
    table
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
    (!parts.is_empty()).then(|| format!("{}: DIMMs remapped: {}", r.plan(), parts.join("; ")))
}

fn advice<R: OnTrays>(base: &R, results: &[R]) -> Option<String> {
    let percent = |share: f64| format!("{} %", fmt::significant(100.0 * share, 2));
    let saved = |r: &R| Some(1.0 - r.energy_j? / base.energy_j?);
    let slower = |r: &R| r.slowdown(base);
    let all = || {
        let others = results.iter().filter(|r| r.plan() != base.plan());
        others.filter_map(|r| Some((r, saved(r)?)))
    };
    let near = all().filter(|(r, saved)| slower(r) <= EQUAL && *saved > 0.0);
    let most = |a: &(&R, f64), b: &(&R, f64)| a.1.total_cmp(&b.1);
    if let Some((r, saved)) = near.max_by(most) {
        return Some(format!(
            "Advice: use `{}`: it saves {} of the memory's energy, at {} of the time of `{}`.",
            r.plan(),
            percent(saved),
            percent(slower(r)),
            base.plan()
        ));
    }
    let (r, saved) = all().max_by(most)?;
    Some(match saved > 0.0 {
        true => format!(
            "Advice: stay with `{}` if time counts most; `{}` saves {} of the memory's energy, at {} of the time.",
            base.plan(),
            r.plan(),
            percent(saved),
            percent(slower(r))
        ),
        false => format!(
            "Advice: stay with `{}`: no other plan of these saves energy.",
            base.plan()
        ),
    })
}

/// Each DIMM of the first socket under each plan: what it held, what it drew, and how it slept.
pub fn dimms<R: OnTrays>(results: &[R]) -> RunTable {
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
            table.push(format!("{}, {i}", r.plan()), row);
        }
    }
    table
}

/// Energy by plan, and the power of each DIMM over time.
pub fn charts<R: OnTrays>(results: &[R]) -> Vec<Chart> {
    if results.iter().all(|r| r.trays().is_none()) {
        return Vec::new();
    }
    let groups: Vec<String> = results.iter().map(|r| r.plan().to_string()).collect();
    let parts = |f: &dyn Fn(&TrayUse) -> f64| -> Vec<f64> {
        let of = |r: &R| r.trays().map_or(f64::NAN, f);
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
        all.push(power(r));
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
        .plan()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    Chart::new(
        format!("power-{id}"),
        format!("Power of each DIMM over time, {}", r.plan()),
        Axis::new("time", "", Format::DurationNs),
        Axis::new("power", "W", Format::Number).between(0.0, None),
        Data::Lines((0..first).map(line).collect()),
    )
}
