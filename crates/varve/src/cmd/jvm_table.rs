//! Results of plans for Java virtual machines as tables and charts.

use super::columns::{self, Cell};
use super::jvm_advice::{advice, slowdown};
use super::shares::BASE;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Value};
use varve_run::Pauses;
use varve_run::jvm::JavaResult;

fn base(results: &[JavaResult]) -> &JavaResult {
    let dram = results.iter().find(|r| r.plan == BASE);
    dram.unwrap_or(&results[0])
}

/// Time and memory of each plan, with the advice.
pub fn of(name: &str, results: &[JavaResult]) -> RunTable {
    let base = base(results);
    let column = Column::new("slowdown", Format::Number, Better::Lower);
    let pause = Column::new("longest pause", Format::DurationNs, Better::Lower);
    let mut cells = vec![
        columns::time(),
        Cell::new(column, |r: &JavaResult| slowdown(r, base)).with_unit(format!("x {}", base.plan)),
        columns::dram(),
        Cell::share("GC", |r: &JavaResult| r.gc_share),
        Cell::new(pause, |r: &JavaResult| r.longest_pause_ns as f64),
        columns::moved(),
    ];
    cells.extend(columns::energy(results));
    let load = match base.instances {
        1 => String::new(),
        n => format!(", one of {n} alike"),
    };
    let title = format!(
        "{name} on {}{load} (Java {}, {}, {} threads, {} busy at a time)",
        base.machine,
        base.java,
        base.collector.name(),
        base.threads,
        base.busy_threads
    );
    let mut table = columns::table((title, "plan"), results, |r| &r.plan, cells);
    table.trade_off = (results.len() > 1).then_some((1, 2));
    if base.instances > 1 {
        table.notes.push(
            "slowdown: of one instance beside the same instances with all in DRAM (maximum normalized turnaround time, MNTT)"
                .into(),
        );
    }
    if let Some(warning) = results.iter().find_map(|r| r.warning.as_ref()) {
        table.notes.push(format!("Note: {warning}"));
    }
    table.notes.extend(advice(results));
    table
}

/// Pauses, where the time goes, and traffic by generation.
pub fn details(results: &[JavaResult]) -> Vec<RunTable> {
    vec![pauses(results), traffic(results)]
}

/// Pauses of a kind, of a result.
type Kind = fn(&JavaResult) -> Pauses;

fn pauses(results: &[JavaResult]) -> RunTable {
    let mut table = RunTable::new("Pauses for collections", "plan");
    let kinds: [(&str, Kind); 3] = [
        ("minor", |r| r.minor),
        ("full", |r| r.full),
        ("other", |r| r.other),
    ];
    let any = |of: &Kind| results.iter().any(|r| of(r).count > 0);
    let kinds: Vec<_> = kinds
        .into_iter()
        .filter(|(name, of)| *name != "other" || any(of))
        .collect();
    for (kind, _) in &kinds {
        table.columns.extend([
            Column::new(*kind, Format::Number, Better::Neither),
            Column::new("p50", Format::DurationNs, Better::Lower),
            Column::new("p99", Format::DurationNs, Better::Lower),
            Column::new("max", Format::DurationNs, Better::Lower),
        ]);
    }
    for r in results {
        let mut row = Vec::new();
        for (_, of) in &kinds {
            let p = of(r);
            // What was collected in a pause of everything had none of its own.
            let ns = |ns: u64| match p.max_ns {
                0 => Value::Missing,
                _ => (ns as f64).into(),
            };
            row.extend([
                (p.count as f64).into(),
                ns(p.p50_ns),
                ns(p.p99_ns),
                ns(p.max_ns),
            ]);
        }
        table.push(&r.plan, row);
    }
    table
}

/// What each part of the memory does, with all of it in DRAM.
fn traffic(results: &[JavaResult]) -> RunTable {
    let r = base(results);
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
pub fn charts(results: &[JavaResult]) -> Vec<Chart> {
    let groups = results.iter().map(|r| r.plan.clone()).collect();
    let bars = |name: &str, f: &dyn Fn(&JavaResult) -> f64| {
        Bars::new(name, results.iter().map(f).collect())
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
    vec![time, columns::stall_chart("plan", results, |r| &r.plan)]
}
