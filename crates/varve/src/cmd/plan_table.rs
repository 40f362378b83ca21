//! Results of heap plans as tables and charts, and which plan to use.

use super::tray_table;
use varve_report::fmt::{self, Format};
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Value};
use varve_run::{GcStack, ManagedSpec, PlanResult};
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
    let mut table = RunTable::new(title, "plan");
    let relative = format!("x {}", base.plan);
    table.columns = vec![
        Column::new("time", Format::DurationNs, Better::Lower),
        Column::new("slowdown", Format::Number, Better::Lower).with_unit(relative),
        Column::new("DRAM", Format::Percent, Better::Lower),
        Column::new("GC", Format::Percent, Better::Lower),
        Column::new("longest pause", Format::DurationNs, Better::Lower),
        Column::new("moved", Format::Bytes, Better::Lower),
    ];
    let energy = results.iter().all(|r| r.energy_j.is_some());
    if energy {
        table
            .columns
            .push(Column::new("energy", Format::Number, Better::Lower).with_unit("mJ"));
    }
    for r in results {
        let joules = r.energy_j.filter(|_| energy);
        table.push(
            &r.plan,
            [
                (r.seconds * 1e9).into(),
                r.turnaround(base).mntt.into(),
                (100.0 * r.dram_share()).into(),
                (100.0 * r.gc_share()).into(),
                (r.longest_pause_ns() as f64).into(),
                (r.moved_bytes as f64).into(),
            ]
            .into_iter()
            .chain(joules.map(|j| Value::from(1000.0 * j))),
        );
    }
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
    let mut table = RunTable::new("Instances beside each other", "plan");
    let relative = format!("x {}", base.plan);
    table.columns = vec![
        Column::new("worst slowdown", Format::Number, Better::Lower).with_unit(&*relative),
        Column::new("mean slowdown", Format::Number, Better::Lower).with_unit(relative),
        Column::new("fairness", Format::Number, Better::Higher).with_unit("fastest / slowest"),
        Column::new("variation", Format::Percent, Better::Lower),
    ];
    table.notes.push(
        "worst and mean slowdown of an instance: maximum and average normalized turnaround time (MNTT, ANTT)"
            .into(),
    );
    for r in results {
        let t = r.turnaround(base);
        table.push(
            &r.plan,
            [
                t.mntt.into(),
                t.antt.into(),
                t.fairness.into(),
                (100.0 * t.variation).into(),
            ],
        );
    }
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
    let mut table = RunTable::new("Where the time goes", "plan");
    let relative = format!("x {}", base.plan);
    let share = |name: &str| Column::new(name, Format::Percent, Better::Lower);
    table.columns = vec![
        Column::new("mutator", Format::Number, Better::Lower).with_unit(&*relative),
        Column::new("minor GC", Format::Number, Better::Lower).with_unit(&*relative),
        Column::new("major GC", Format::Number, Better::Lower).with_unit(relative),
        share("loads"),
        share("stores"),
        share("system"),
        Column::new("slow writes", Format::Bytes, Better::Lower),
    ];
    let fences = results.iter().any(|r| r.stalls.fence > 0.0);
    if fences {
        table.columns.insert(5, share("fences"));
    }
    let ratio = |a: f64, b: f64| match b > 0.0 {
        true => (a / b).into(),
        false => Value::Missing,
    };
    let young = |r: &PlanResult| r.minor_seconds + r.observer_seconds;
    for r in results {
        let s = &r.stalls;
        let mut row = vec![
            ratio(r.mutator_seconds(), base.mutator_seconds()),
            ratio(young(r), young(base)),
            ratio(r.full_seconds, base.full_seconds),
            (100.0 * s.load).into(),
            (100.0 * s.store).into(),
            (100.0 * (s.system + s.fetch)).into(),
            (r.slow_written_bytes as f64).into(),
        ];
        if fences {
            row.insert(5, (100.0 * s.fence).into());
        }
        table.push(&r.plan, row);
    }
    table
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
        stacked(
            "stalls",
            "What the time is lost to",
            Axis::new("share of time", "", Format::Percent).between(0.0, 100.0),
            vec![
                bars("loads", &|r| 100.0 * r.stalls.load),
                bars("stores", &|r| 100.0 * (r.stalls.store + r.stalls.fence)),
                bars("system", &|r| 100.0 * (r.stalls.system + r.stalls.fetch)),
            ],
            true,
        ),
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
    let others = results
        .iter()
        .filter(|r| r.plan != plans::dram::ENTRY.name && r.dram_share() < dram.dram_share());
    let near = others.clone().filter(|r| time(r) <= EQUAL);
    let least = near.min_by(|a, b| {
        let share = a.dram_share().total_cmp(&b.dram_share());
        share.then(time(a).total_cmp(&time(b)))
    });
    if let Some(r) = least {
        return Some(format!(
            "Advice: {load}, use `{}`: it keeps {} of its memory out of DRAM, at {} of the time of `dram`.",
            r.plan,
            saved(r),
            percent(time(r)),
        ));
    }
    let stay = format!("Advice: {load}, stay with `dram` if time counts most");
    let fastest = others.min_by(|a, b| time(a).total_cmp(&time(b)));
    Some(match fastest {
        Some(r) => format!(
            "{stay}; `{}` comes next: it keeps {} of its memory out of DRAM, at {} of the time.",
            r.plan,
            saved(r),
            percent(time(r))
        ),
        None => format!("{stay}: no other plan of these takes less DRAM."),
    })
}
