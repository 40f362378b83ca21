//! Groups as tables and pictures.

use crate::args::GroupArgs;
use crate::cmd::list::hang;
use crate::ui::{self, Failure, failed, print};
use serde_json::json;
use varve_jobs::chart::gantt;
use varve_jobs::class::classify;
use varve_jobs::model::ModelSpec;
use varve_jobs::{Demand, Group, GroupResult, Host, Memory, Plan};
use varve_report::fmt::{self, Format};
use varve_report::{Better, Column, Look, Origin, RunReport, RunTable, Value, plot, table};
use varve_run::VERSION;

/// Demands and classes.
pub fn demands(
    a: &GroupArgs,
    group: &Group,
    host: &Host,
    demands: &[Demand],
) -> Result<(), Failure> {
    let classes: Vec<_> = (group.programs.iter().zip(demands))
        .map(|(p, d)| classify(p, d, &host.limits))
        .collect();
    if a.json {
        let all = json!({"machine": host.name, "version": VERSION, "demands": demands, "classes": classes});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
        return Ok(());
    }
    let mut out = RunTable::new(
        format!("{} on {}, each program alone", group.name, host.name),
        "program",
    );
    out.columns = vec![
        Column::new("memory used", Format::Bytes, Better::Neither),
        Column::new("threads", Format::Integer, Better::Neither),
        Column::new("fast", Format::DurationNs, Better::Neither),
        Column::new("slow", Format::DurationNs, Better::Neither),
        Column::new("slowdown", Format::Ratio, Better::Neither),
        Column::new("read", Format::BytesPerSecond, Better::Neither),
        Column::new("written", Format::BytesPerSecond, Better::Neither),
    ];
    let maybe = |x: Option<f64>| x.map_or(Value::Missing, Value::from);
    let is_sum = (demands.iter().flat_map(|d| d.curves.iter().flatten()))
        .any(|point| point.total_gbps.is_some());
    if is_sum {
        out.columns.push(Column::new(
            "read + written",
            Format::BytesPerSecond,
            Better::Neither,
        ));
    }
    let is_placed = demands.iter().any(|d| d.part.is_some());
    if is_placed {
        out.columns
            .push(Column::new("part", Format::Bytes, Better::Neither));
        out.columns
            .push(Column::new("in part", Format::DurationNs, Better::Neither));
        out.notes.push(
            "part: fast memory that a program takes whose own memory is placed; in part: its time then".into(),
        );
    }
    for (p, d) in group.programs.iter().zip(demands) {
        let point = d.point(Memory::Fast, p.threads);
        let mut row = vec![
            (d.bytes as f64).into(),
            f64::from(p.threads).into(),
            maybe(d.seconds(Memory::Fast, p.threads).map(|s| s * 1e9)),
            maybe(d.seconds(Memory::Slow, p.threads).map(|s| s * 1e9)),
            maybe(d.slowdown(p.threads)),
            maybe(point.and_then(|p| p.read_gbps).map(|g| g * 1e9)),
            maybe(point.and_then(|p| p.write_gbps).map(|g| g * 1e9)),
        ];
        if is_sum {
            row.push(maybe(point.and_then(|p| p.total_gbps).map(|g| g * 1e9)));
        }
        if is_placed {
            let part = d.part.as_ref().map(|part| part.fast_bytes as f64);
            row.push(maybe(part));
            row.push(maybe(d.seconds_in_part(p.threads).map(|s| s * 1e9)));
        }
        out.push(p.name.clone(), row);
    }
    print(table::runs(&out, Look::stdout()));
    let mut curves = RunTable::new(
        "Speed-up with threads (over one thread in the same memory)",
        "program",
    );
    let mut counts: Vec<u32> = demands
        .iter()
        .flat_map(|d| d.curves.iter().flatten())
        .map(|p| p.threads)
        .collect();
    counts.sort_unstable();
    counts.dedup();
    curves.columns = counts
        .iter()
        .map(|n| Column::new(n.to_string(), Format::Ratio, Better::Neither))
        .collect();
    for d in demands {
        for memory in Memory::ALL {
            let one = d.point(memory, 1).map(|p| p.seconds);
            let of = |n: &u32| maybe(one.zip(d.point(memory, *n)).map(|(one, p)| one / p.seconds));
            if !d.curve(memory).is_empty() {
                curves.push(format!("{}, {memory}", d.name), counts.iter().map(of));
            }
        }
    }
    print(table::runs(&curves, Look::stdout()));
    for ((p, d), c) in group.programs.iter().zip(demands).zip(&classes) {
        let writes = if c.write_intensive {
            ", writes much"
        } else {
            ""
        };
        print(hang(
            &p.name,
            16,
            &format!("{}{writes}: {}", c.class, c.why),
        ));
        for missing in &d.missing {
            print(hang("", 16, missing));
        }
    }
    Ok(())
}

/// A plan and its sentences.
pub fn plan(plan: &Plan, sentences: &[String], group: &Group) -> String {
    let expected = fmt::duration_ns(plan.expected.seconds * 1e9);
    let mut lines = vec![format!(
        "{}: {} (expected without interference: {expected})",
        group.name,
        plan.strategy.name()
    )];
    lines.extend(sentences.iter().map(|s| hang("  -", 4, s)));
    lines.join("\n")
}

/// Strategies beside each other, published savings beside ours, and pictures of the first and the last.
pub fn compared(
    a: &GroupArgs,
    group: &Group,
    machine: &str,
    results: &[GroupResult],
    spec: Option<&ModelSpec>,
    best: Option<(&GroupResult, usize)>,
) -> Result<(), Failure> {
    let title = match group.about.as_str() {
        "" => format!("{} on {machine}", group.name),
        about => format!("{} on {machine}: {about}", group.name),
    };
    let mut out = RunTable::new(title, "strategy");
    // Others measured it on the machine of the model, not on this one.
    let published = !group.published.saved.is_empty() && spec.is_some();
    // The least time has a star where it is told apart from all others.
    let time = |r: &&GroupResult| r.time().is_some();
    let least = results
        .iter()
        .filter(time)
        .min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let others = |r: &GroupResult| least.is_none_or(|l| l.strategy == r.strategy || l.is_apart(r));
    let star = match results.iter().filter(time).all(others) {
        true => Better::Lower,
        false => Better::Neither,
    };
    let several = results.iter().any(|r| r.times.len() > 1);
    out.columns = vec![
        Column::new("time", Format::DurationNs, star),
        Column::new("saved", Format::Percent, Better::Neither),
        Column::new("moved", Format::Bytes, Better::Neither),
        Column::new("moving", Format::Percent, Better::Neither),
    ];
    if published {
        out.columns.insert(
            2,
            Column::new("published", Format::Percent, Better::Neither),
        );
    }
    if several {
        out.columns
            .insert(1, Column::new("spread", Format::Percent, Better::Neither));
    }
    let maybe = |x: Option<f64>| x.map_or(Value::Missing, Value::from);
    let baseline = results
        .iter()
        .find(|r| r.strategy == varve_jobs::Strategy::LINUX);
    for r in results {
        let name = r.strategy.name();
        let saved = match baseline {
            Some(b) if b.strategy != r.strategy => maybe(r.saves(b)),
            _ => Value::Missing,
        };
        let theirs = group.published.saved.iter().find(|(s, _)| *s == name);
        let mut values = vec![maybe(r.time().map(|s| s * 1e9)), saved];
        if several {
            values.insert(1, maybe(r.spread_percent()));
        }
        if published {
            values.push(theirs.map_or(Value::Missing, |t| t.1.into()));
        }
        values.push((r.moved_bytes as f64).into());
        values.push(maybe(r.time().map(|s| 100.0 * r.moving_s / s)));
        out.push(name, values);
    }
    if let Some((r, plans)) = best {
        let mut values = vec![
            (r.seconds * 1e9).into(),
            maybe(baseline.and_then(|b| r.saves(b))),
        ];
        if published {
            values.push(Value::Missing);
        }
        values.extend([0.0.into(), 0.0.into()]);
        out.push("oracle", values);
        out.notes.push(format!(
            "oracle: the best of all {plans} plans, known beforehand"
        ));
    }
    match results.iter().map(|r| r.times.len()).max() {
        Some(1) if results.len() > 1 => out.notes.push(
            "one run of each: how far runs are apart is not known, so that no saving is told; --repeat 3 tells".into(),
        ),
        Some(runs @ 2..) => out.notes.push(format!(
            "medians of {runs} runs in turns; spread: the longest less the shortest, of the median; no saving is told where runs overlap with those of linux"
        )),
        _ => {}
    }
    if published {
        out.notes
            .push(format!("published: {}", group.published.source));
    }
    out.notes
        .push("moving: time in which pages move to make room, in % of the group's".into());
    if let Some(spec) = spec {
        out.notes.push(format!(
            "modelled at scale {}, seed {}",
            spec.scale, spec.seed
        ));
    }
    for r in results {
        for note in &r.notes {
            // A common note is printed once, a note on a program for each strategy.
            let general = results.iter().all(|other| other.notes.contains(note));
            let note = match general
                || results.len() == 1
                || r.strategy == results[0].strategy
                    && !group.programs.iter().any(|p| note.starts_with(&p.name))
            {
                true => note.clone(),
                false => format!("{}: {note}", r.strategy.name()),
            };
            if !out.notes.contains(&note) {
                out.notes.push(note);
            }
        }
    }
    let end = results.iter().map(|r| r.seconds).fold(0.0, f64::max);
    let oracle = best.iter().map(|(r, _)| ("oracle".to_string(), *r));
    let named = results.iter().map(|r| (r.strategy.name(), r));
    let charts: Vec<_> = named
        .chain(oracle)
        .map(|(name, r)| {
            let id = format!("gantt-{}", name.replace('+', "-"));
            gantt(&id, &format!("{}: {name}", group.name), r, end)
        })
        .collect();
    let report = RunReport {
        origin: Origin {
            machine: machine.into(),
            seed: a.seed,
            version: VERSION.into(),
            command: ui::command_line(),
        },
        table: out,
        details: results.iter().map(programs).collect(),
        charts,
        pictures: Vec::new(),
        runs: results
            .iter()
            .filter_map(|r| serde_json::to_value(r).ok())
            .collect(),
    };
    if let Some(folder) = &a.out {
        ui::save(&report, folder)?;
    }
    if a.json {
        print(report.to_json());
        return Ok(());
    }
    print(table::runs(&report.table, Look::stdout()));
    for chart in &report.charts {
        if let Some(text) = plot::gantt(chart, Look::stdout()) {
            print(text);
        }
    }
    for r in results {
        for p in r.programs.iter().filter(|p| p.failure.is_some()) {
            let why = p.failure.clone().unwrap_or_default();
            let log = p
                .log
                .as_ref()
                .map_or(String::new(), |l| format!("; see {l}"));
            print(format!("{}: {} {why}{log}", r.strategy.name(), p.name));
        }
    }
    Ok(())
}

/// The results of each program under a strategy.
fn programs(r: &GroupResult) -> RunTable {
    let mut out = RunTable::new(format!("Programs under {}", r.strategy.name()), "program");
    out.columns = vec![
        Column::new("memory", Format::Number, Better::Neither),
        Column::new("threads", Format::Integer, Better::Neither),
        Column::new("start", Format::DurationNs, Better::Neither),
        Column::new("time", Format::DurationNs, Better::Neither),
    ];
    let maybe = |x: Option<f64>| x.map_or(Value::Missing, |s| (s * 1e9).into());
    for p in &r.programs {
        let memory = match p.in_part {
            true => "in part".into(),
            false => p.memory.to_string(),
        };
        out.push(
            p.name.clone(),
            [
                memory.into(),
                f64::from(p.threads).into(),
                maybe(p.start_s),
                maybe(p.seconds()),
            ],
        );
    }
    out
}
