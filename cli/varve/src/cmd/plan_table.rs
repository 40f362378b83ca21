//! Results of heap plans as tables and charts.

use super::columns::{self, Cell, PauseKind};
use varve_observed::{GcStack, ManagedSpec, PlanResult, Turnaround};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Value};
use varve_runtime::plans;

/// The program, its instances, and where they run.
pub fn title(spec: &ManagedSpec, base: &PlanResult) -> String {
    let load = match (spec.instances, spec.every) {
        (1, _) => String::new(),
        (n, true) => format!(", {n} instances"),
        (n, false) => format!(", one of {n} alike"),
    };
    let numa = match spec.numa {
        varve_run::Numa::Local => String::new(),
        numa => format!(", numa {numa}"),
    };
    format!("{} on {}{load}{numa}", base.program, base.machine)
}

/// The columns that WebAssembly programs have of their own.
pub fn cells<'a>() -> Vec<Cell<'a, PlanResult>> {
    let pause = Column::new("longest pause", Format::DurationNs, Better::Lower);
    vec![
        Cell::share("GC", PlanResult::gc_share),
        Cell::new(pause, |r: &PlanResult| r.longest_pause_ns() as f64),
    ]
}

/// Where the time goes, the pauses, and how instances fare beside each other.
pub fn details(base: &PlanResult, results: &[&PlanResult]) -> Vec<RunTable> {
    let mut all = Vec::new();
    if results.iter().any(|r| r.instance_seconds.len() > 1) {
        all.push(instances(base, results));
    }
    // A collection of the observer space collects the young too.
    let young = |r: &PlanResult| match r.observer.count > r.minor.count {
        true => (r.minor.count + r.observer.count, r.observer),
        false => (r.minor.count + r.observer.count, r.minor),
    };
    let kinds: [PauseKind<PlanResult>; 2] =
        [("minor", young), ("full", |r| (r.full.count, r.full))];
    all.push(columns::pauses(results, &kinds));
    all.push(stalls(base, results));
    all.extend(slowdown_stack(results));
    all
}

fn instances(base: &PlanResult, results: &[&PlanResult]) -> RunTable {
    let beside = |name: &str, of: fn(Turnaround) -> f64| {
        let column = Column::new(name, Format::Number, Better::Lower);
        Cell::new(column, move |r: &PlanResult| of(r.turnaround(base)))
            .with_unit(format!("x {}", base.plan))
    };
    let fairness = Column::new("fairness", Format::Number, Better::Higher);
    let cells = vec![
        beside("worst slowdown", |t| t.mntt),
        beside("mean slowdown", |t| t.antt),
        Cell::new(fairness, |r: &PlanResult| r.turnaround(base).fairness)
            .with_unit("fastest / slowest"),
        Cell::share("variation", |r: &PlanResult| r.turnaround(base).variation),
    ];
    let title = "Instances beside each other".to_string();
    let mut table = columns::table((title, "plan"), results, |r| &r.plan, cells);
    table.notes.push(
        "worst and mean slowdown of an instance: maximum and average normalized turnaround time (MNTT, ANTT)"
            .into(),
    );
    table
}

fn stalls(base: &PlanResult, results: &[&PlanResult]) -> RunTable {
    // Not for a part that took no time on the base plan.
    let beside = |name: &str, seconds: fn(&PlanResult) -> f64| {
        let column = Column::new(name, Format::Number, Better::Lower);
        let value = move |r: &PlanResult| match seconds(base) > 0.0 {
            true => (seconds(r) / seconds(base)).into(),
            false => Value::Missing,
        };
        Cell::new(column, value).with_unit(format!("x {}", base.plan))
    };
    let mut cells = vec![
        beside("mutator", PlanResult::mutator_seconds),
        beside("minor GC", |r| r.minor_seconds + r.observer_seconds),
        beside("full GC", |r| r.full_seconds),
    ];
    let lost = columns::reasons(results).into_iter();
    cells.extend(lost.map(|(name, share)| Cell::share(name, share)));
    let written = Column::new("slow writes", Format::Bytes, Better::Lower);
    cells.push(Cell::new(written, |r: &PlanResult| {
        r.slow_written_bytes as f64
    }));
    let title = "Where the time goes".to_string();
    columns::table((title, "plan"), results, |r| &r.plan, cells)
}

/// The cost of slow memory in nursery collections, if the four plans that it takes were run: see [`GcStack`].
fn slowdown_stack(results: &[&PlanResult]) -> Option<RunTable> {
    let of = |plan: &plans::Entry| results.iter().copied().find(|r| r.plan == plan.name);
    let stack = GcStack::of(
        of(&plans::dram::ENTRY)?,
        of(&plans::slow::ENTRY)?,
        of(&plans::slow_scan::ENTRY)?,
        of(&plans::slow_copy::ENTRY)?,
    )?;
    let mut table = RunTable::new(
        "What slow memory adds to the time of nursery collections",
        "part",
    );
    table.columns =
        vec![Column::new("added", Format::Percent, Better::Neither).with_unit("% of dram's")];
    for (name, share) in [
        ("copying into slow memory", stack.copy),
        ("scanning in slow memory", stack.scan),
        ("interference of both", stack.interference),
        ("roots, tables, and the rest", stack.rest),
        ("all", stack.total()),
    ] {
        table.push(name, [(100.0 * share).into()]);
    }
    Some(table)
}

/// Time, where it goes, and pauses as pictures.
pub fn charts(results: &[&PlanResult]) -> Vec<Chart> {
    let groups: Vec<String> = results.iter().map(|r| r.plan.clone()).collect();
    let bars = |name: &str, f: &dyn Fn(&PlanResult) -> f64| {
        Bars::new(name, results.iter().map(|r| f(r)).collect())
    };
    let plan = || Axis::new("plan", "", Format::Number);
    let stacked = |id: &str, title: &str, axis: Axis, bars: Vec<Bars>, stacked: bool| {
        let groups = groups.clone();
        let data = Data::Bars {
            groups,
            bars,
            stacked,
        };
        Chart::new(id, title, plan(), axis, data)
    };
    vec![
        stacked(
            "time",
            "Time of the program and of its collector",
            Axis::new("time", "", Format::DurationNs).between(0.0, None),
            vec![
                bars("program", &|r| 1e9 * r.mutator_seconds()),
                bars("minor GC", &|r| {
                    1e9 * (r.minor_seconds + r.observer_seconds)
                }),
                bars("full GC", &|r| 1e9 * r.full_seconds),
            ],
            true,
        ),
        columns::stall_chart("plan", results),
        stacked(
            "pauses",
            "Pauses",
            Axis::new("pause", "", Format::DurationNs).between(0.0, None),
            vec![
                bars("median, minor", &|r| r.minor.p50_ns as f64),
                bars("99th percentile, minor", &|r| r.minor.p99_ns as f64),
                bars("longest", &|r| r.longest_pause_ns() as f64),
            ],
            false,
        ),
        stacked(
            "traffic",
            "Bytes to and from memory",
            Axis::new("bytes", "", Format::Bytes).between(0.0, None),
            vec![
                bars("DRAM, read", &|r| r.fast_read_bytes as f64),
                bars("DRAM, written", &|r| r.fast_written_bytes as f64),
                bars("slow, read", &|r| r.slow_read_bytes as f64),
                bars("slow, written", &|r| r.slow_written_bytes as f64),
            ],
            true,
        ),
    ]
}
