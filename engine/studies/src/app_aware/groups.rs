//! E6 to E9: groups under Linux and under each optimization.

use super::{Setup, claim, lengths};
use crate::Effort;
use varve_jobs::chart::gantt;
use varve_jobs::compare::{Making, compare};
use varve_jobs::{Error, Group, GroupResult, Strategy, group};
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunTable, StudyResult, Value};

/// A group, which of the paper's claims it answers, and the strategies that these are about.
struct Asked {
    text: &'static str,
    key: &'static str,
    answers: &'static [(&'static str, &'static str)],
}

macro_rules! asked {
    ($key:literal, $file:literal, $answers:expr) => {
        Asked {
            text: include_str!($file),
            key: $key,
            answers: $answers,
        }
    };
}

const GROUPS: [Asked; 9] = [
    asked!(
        "placement-1",
        "groups/placement1.toml",
        &[("E6", "placement"), ("E9", "all")]
    ),
    asked!(
        "placement-2",
        "groups/placement2.toml",
        &[("E6", "placement"), ("E9", "all")]
    ),
    asked!(
        "placement-3",
        "groups/placement3.toml",
        &[("E6", "placement")]
    ),
    asked!("threads-1", "groups/threads1.toml", &[("E7", "threads")]),
    asked!("threads-2", "groups/threads2.toml", &[("E7", "threads")]),
    asked!("threads-3", "groups/threads3.toml", &[("E7", "threads")]),
    asked!("order-1", "groups/order1.toml", &[("E8", "order")]),
    asked!("order-2", "groups/order2.toml", &[("E8", "order")]),
    asked!("order-3", "groups/order3.toml", &[("E8", "order")]),
];

/// A group that is asked for.
pub struct Wanted {
    pub name: String,
    asked: &'static Asked,
}

pub fn wanted(setup: &Setup) -> Vec<Wanted> {
    static ALL: [Asked; 9] = GROUPS;
    ALL.iter()
        .filter(|a| a.answers.iter().any(|(id, _)| setup.options.wants(id)))
        .map(|asked| Wanted {
            name: asked.key.into(),
            asked,
        })
        .collect()
}

pub fn claims(
    setup: &Setup,
    wanted: &Wanted,
    making: &Making,
    out: &mut StudyResult,
) -> Result<(), Error> {
    let asked = wanted.asked;
    let group = group::parse(asked.text, asked.key).map_err(Error::Group)?;
    let mut strategies = vec![Strategy::LINUX];
    for (_, name) in asked.answers {
        strategies.extend(name.parse::<Strategy>());
    }
    let compared = compare(&group, &setup.spec, &strategies, making)?;
    let (linux, others) = match compared.results.split_first() {
        Some(all) => all,
        None => return Ok(()),
    };
    let note = |r: &GroupResult| {
        let threads: Vec<String> = (r.programs.iter())
            .map(|p| format!("{} {} in {}", p.name, p.threads, p.memory))
            .collect();
        let named = match group.published.source.split_once("; ") {
            Some((_, rest)) => format!("{rest}. "),
            None => String::new(),
        };
        format!(
            "{named}{:.1} s for {:.1} s: threads of {}",
            r.seconds,
            linux.seconds,
            threads.join(", ")
        )
    };
    for ((id, strategy), r) in asked.answers.iter().zip(others) {
        let published = group.published.saved.iter().find(|(s, _)| s == strategy);
        let what = format!("{}: time saved by {strategy}", group.name);
        let published = published.map_or(Value::Missing, |p| p.1.into());
        out.claims
            .push(claim(id, &what, published, r.saves(linux), "%", &note(r)));
        if *id == "E9" {
            let longest =
                lengths::moving(setup, &group, asked.key, &compared, (linux, r), making, out)?;
            let share = 100.0 * longest.moving_s / longest.seconds;
            let size = varve_report::fmt::bytes(longest.moved_bytes as f64);
            let note = format!(
                "{size} in {:.2} s of a group that takes {:.1} s",
                longest.moving_s, longest.seconds
            );
            let most = Value::AtMost { at_most: 0.2 };
            let what = format!("{}: moving pages, of the time", group.name);
            out.claims
                .push(claim("E9", &what, most, Some(share), "%", &note));
        }
        if *id == "E8" {
            lengths::order(setup, &group, r.strategy, making, out)?;
        }
    }
    out.tables.push(table(&group, linux, &compared.results));
    if setup.options.effort != Effort::Tiny || asked.key.ends_with('1') {
        let end = compared
            .results
            .iter()
            .map(|r| r.seconds)
            .fold(0.0, f64::max);
        for r in &compared.results {
            let name = r.strategy.name();
            let id = format!("{}-{}", asked.key, name.replace('+', "-"));
            out.charts
                .push(gantt(&id, &format!("{}: {name}", group.name), r, end));
        }
    }
    Ok(())
}

fn table(group: &Group, linux: &GroupResult, results: &[GroupResult]) -> RunTable {
    let mut table = RunTable::new(group.name.clone(), "strategy");
    table.columns = vec![
        Column::new("time", Format::DurationNs, Better::Lower),
        Column::new("saved", Format::Percent, Better::Neither),
        Column::new("moved", Format::Bytes, Better::Neither),
    ];
    for r in results {
        table.push(
            r.strategy.name(),
            [
                (r.seconds * 1e9).into(),
                r.saves(linux).map_or(Value::Missing, Value::from),
                (r.moved_bytes as f64).into(),
            ],
        );
    }
    table
        .notes
        .push(format!("published: {}", group.published.source));
    table
}
