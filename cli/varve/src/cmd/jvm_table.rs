//! Results of plans for Java virtual machines as tables and charts.

use super::columns::{self, Cell, PauseKind};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable};
use varve_run::jvm::JavaResult;

/// The columns that Java programs have of their own.
pub fn cells<'a>() -> Vec<Cell<'a, JavaResult>> {
    let pause = Column::new("longest pause", Format::DurationNs, Better::Lower);
    vec![
        Cell::share("GC", |r: &JavaResult| r.gc_share),
        Cell::new(pause, |r: &JavaResult| r.longest_pause_ns as f64),
    ]
}

/// The program, its virtual machine, and where it runs.
pub fn title(name: &str, base: &JavaResult) -> String {
    let load = match base.instances {
        1 => String::new(),
        n => format!(", one of {n} alike"),
    };
    format!(
        "{name} on {}{load} (Java {}, {}, {} threads, {} busy at a time)",
        base.machine,
        base.java,
        base.collector.name(),
        base.threads,
        base.busy_threads
    )
}

/// Pauses, and what each part of the memory does with all of it in DRAM.
pub fn details(base: &JavaResult, results: &[&JavaResult]) -> Vec<RunTable> {
    let kinds: [PauseKind<JavaResult>; 3] = [
        ("minor", |r| (r.minor.count, r.minor)),
        ("full", |r| (r.full.count, r.full)),
        ("other", |r| (r.other.count, r.other)),
    ];
    let any = results.iter().any(|r| r.other.count > 0);
    let kinds = &kinds[..if any { 3 } else { 2 }];
    vec![columns::pauses(results, kinds), traffic(base)]
}

/// The traffic of each part of the memory, with all of it in DRAM.
fn traffic(r: &JavaResult) -> RunTable {
    let mut table = RunTable::new(format!("What memory is for, under `{}`", r.plan), "memory");
    table.columns = vec![
        Column::new("pages", Format::Bytes, Better::Neither),
        Column::new("read", Format::Bytes, Better::Neither),
        Column::new("load misses", Format::Number, Better::Neither),
        Column::new("store misses", Format::Number, Better::Neither),
        Column::new("waited for", Format::DurationNs, Better::Neither),
    ];
    for part in &r.memory {
        table.push(
            &part.name,
            [
                ((part.fast_bytes + part.slow_bytes) as f64).into(),
                (part.read_bytes as f64).into(),
                (part.load_misses as f64).into(),
                (part.store_misses as f64).into(),
                (1e9 * part.waited_seconds).into(),
            ],
        );
    }
    table.notes.push(
        "read: from memory, by prefetchers too; misses: in all caches, those of stores are lines that are written; waited for: by all threads together".into(),
    );
    table
}

/// Time of the program and of its pauses, and what threads wait for.
pub fn charts(results: &[&JavaResult]) -> Vec<Chart> {
    let groups = results.iter().map(|r| r.plan.clone()).collect();
    let bars = |name: &str, f: &dyn Fn(&JavaResult) -> f64| {
        Bars::new(name, results.iter().map(|r| f(r)).collect())
    };
    let paused = |r: &JavaResult| r.minor_seconds + r.full_seconds + r.other_seconds;
    let time = Chart::new(
        "time",
        "Time of the program and of its pauses",
        Axis::new("plan", "", Format::Number),
        Axis::new("time", "", Format::DurationNs).between(0.0, None),
        Data::Bars {
            groups,
            bars: vec![
                bars("program", &|r| 1e9 * (r.seconds - paused(r))),
                bars("minor", &|r| 1e9 * r.minor_seconds),
                bars("full", &|r| 1e9 * r.full_seconds),
                bars("other", &|r| 1e9 * r.other_seconds),
            ],
            stacked: true,
        },
    );
    vec![time, columns::stall_chart("plan", results)]
}
