//! Results of heap plans as tables and charts, and which plan to use.

use super::columns::{self, Cell};
use super::{shares, tray_table};
use varve_report::fmt::{self, Format};
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Value};
use varve_run::{GcStack, ManagedSpec, PlanResult, Turnaround};
use varve_runtime::plans;

/// Within this factor two times count as equal.
const EQUAL: f64 = 1.03;

/// The run that others are compared with: all in DRAM, else the first.
fn base(results: &[PlanResult]) -> &PlanResult {
    let dram = results.iter().find(|r| r.plan == plans::dram::ENTRY.name);
    dram.unwrap_or(&results[0])
}

/// Time and memory of each plan, with the advice.
pub fn of(spec: &ManagedSpec, results: &[PlanResult]) -> RunTable {
    let base = base(results);
    let load = match (spec.instances, spec.every) {
        (1, _) => String::new(),
        (n, true) => format!(", {n} instances"),
        (n, false) => format!(", one of {n} alike"),
    };
    let numa = match spec.numa {
        varve_run::Numa::Local => String::new(),
        numa => format!(", numa {numa}"),
    };
    let title = format!("{} on {}{load}{numa}", base.program, base.machine);
    if base.trays.is_some() {
        return tray_table::of(title, base, results);
    }
    let slowdown = Column::new("slowdown", Format::Number, Better::Lower);
    let pause = Column::new("longest pause", Format::DurationNs, Better::Lower);
    let mut cells = vec![
        columns::time(),
        Cell::new(slowdown, |r: &PlanResult| r.turnaround(base).mntt)
            .with_unit(format!("x {}", base.plan)),
        columns::dram(),
        Cell::share("GC", PlanResult::gc_share),
        Cell::new(pause, |r: &PlanResult| r.longest_pause_ns() as f64),
        columns::moved(),
    ];
    cells.extend(columns::energy(results));
    let mut table = columns::table((title, "plan"), results, |r| &r.plan, cells);
    table.trade_off = (results.len() > 1).then_some((1, 2));
    if spec.instances > 1 {
        table.notes.push(
            "slowdown: of the instance that loses most (maximum normalized turnaround time, MNTT)"
                .into(),
        );
    }
    table
        .notes
        .extend(results.iter().filter_map(|r| r.untold.clone()));
    table.notes.extend(advice(results));
    table
}

/// Where the time goes, the pauses, and how instances fare beside each other.
pub fn details(results: &[PlanResult]) -> Vec<RunTable> {
    let base = base(results);
    let mut all = Vec::new();
    if results.iter().any(|r| r.instance_seconds.len() > 1) {
        all.push(instances(base, results));
    }
    if base.trays.is_some() {
        all.push(tray_table::dimms(results));
    }
    all.push(pauses(results));
    all.push(stalls(base, results));
    all.extend(slowdown_stack(results));
    all
}

fn instances(base: &PlanResult, results: &[PlanResult]) -> RunTable {
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

fn pauses(results: &[PlanResult]) -> RunTable {
    let mut table = RunTable::new("Pauses for collections", "plan");
    for kind in ["minor", "major"] {
        table.columns.extend([
            Column::new(kind, Format::Number, Better::Neither),
            Column::new("p50", Format::DurationNs, Better::Lower),
            Column::new("p99", Format::DurationNs, Better::Lower),
            Column::new("max", Format::DurationNs, Better::Lower),
        ]);
    }
    for r in results {
        // A collection of the observer space collects the young too.
        let (a, b) = (r.minor, r.observer);
        let young = if b.count > a.count { b } else { a };
        let values = |p: varve_run::Pauses, count: u64| {
            let ns = |ns: u64| match p.count {
                0 => Value::Missing,
                _ => (ns as f64).into(),
            };
            [
                (count as f64).into(),
                ns(p.p50_ns),
                ns(p.p99_ns),
                ns(p.max_ns),
            ]
        };
        let mut row = values(young, a.count + b.count).to_vec();
        row.extend(values(r.full, r.full.count));
        table.push(&r.plan, row);
    }
    table
}

fn stalls(base: &PlanResult, results: &[PlanResult]) -> RunTable {
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
        beside("major GC", |r| r.full_seconds),
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

/// What slow memory adds to nursery collections, where the four plans that tell it were run: see [`GcStack`].
fn slowdown_stack(results: &[PlanResult]) -> Option<RunTable> {
    let of = |plan: &plans::Entry| results.iter().find(|r| r.plan == plan.name);
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
pub fn charts(results: &[PlanResult]) -> Vec<Chart> {
    let groups: Vec<String> = results.iter().map(|r| r.plan.clone()).collect();
    let bars = |name: &str, f: &dyn Fn(&PlanResult) -> f64| {
        Bars::new(name, results.iter().map(f).collect())
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
    let mut all = vec![
        stacked(
            "time",
            "Time of the program and of its collector",
            Axis::new("time", "", Format::DurationNs).between(0.0, None),
            vec![
                bars("program", &|r| 1e9 * r.mutator_seconds()),
                bars("minor GC", &|r| {
                    1e9 * (r.minor_seconds + r.observer_seconds)
                }),
                bars("major GC", &|r| 1e9 * r.full_seconds),
            ],
            true,
        ),
        columns::stall_chart("plan", results, |r| &r.plan),
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
    ];
    all.extend(tray_table::charts(results));
    all
}

/// Which plan to use, and what it saves: by the two columns whose frontier is marked.
fn advice(results: &[PlanResult]) -> Option<String> {
    let dram = results.iter().find(|r| r.plan == plans::dram::ENTRY.name)?;
    if results.len() == 1 {
        return None;
    }
    let load = match dram.instances {
        1 => "with one instance".to_string(),
        n => format!("with {n} instances"),
    };
    let percent = |share: f64| format!("{} %", fmt::significant(100.0 * share, 2));
    let time = |r: &PlanResult| r.turnaround(dram).mntt;
    let saved = |r: &PlanResult| percent(dram.dram_share() - r.dram_share());
    let stay = format!("Advice: {load}, stay with `dram` if time counts most");
    Some(
        match shares::least(results, |r| r.dram_share(), time, EQUAL) {
            Some((r, true)) => format!(
                "Advice: {load}, use `{}`: it keeps {} of its memory out of DRAM, at {} of the time of `dram`.",
                r.plan,
                saved(r),
                percent(time(r)),
            ),
            Some((r, false)) => format!(
                "{stay}; `{}` comes next: it keeps {} of its memory out of DRAM, at {} of the time.",
                r.plan,
                saved(r),
                percent(time(r))
            ),
            None => format!("{stay}: no other plan of these takes less DRAM."),
        },
    )
}
