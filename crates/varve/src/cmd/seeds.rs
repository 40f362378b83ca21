//! `varve run --seeds`: the same run with several seeds, as medians and their spread.

use super::compared::origin;
use crate::args::run::model::Model;
use crate::args::run::output::Output;
use crate::sweep::child::{self, Failed};
use crate::sweep::merged::median;
use crate::ui::{self, Done, failed, interrupted, print};
use serde_json::Value as Json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use varve_report::fmt::Format;
use varve_report::{Better, Column, Look, RunReport, RunTable, Value, table as terminal};

/// Options that each run has of its own, and whether a value follows them.
const OWN: [(&str, bool); 4] = [
    ("--seeds", true),
    ("--seed", true),
    ("--out", true),
    ("--json", false),
];

pub fn run(model: &Model, output: &Output) -> Done {
    if let Some(folder) = &output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let stop = ui::stop_flag();
    let bar = ui::bar(u64::from(model.seeds), "seeds");
    let given: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut reports = Vec::new();
    for seed in (0..u64::from(model.seeds)).map(|n| model.seed.wrapping_add(n)) {
        let words = with_seed(&given, seed);
        match child::run(&words, Path::new("."), &|| stop.load(Ordering::Relaxed)) {
            Ok(report) => reports.push((seed, report)),
            Err(Failed::Stopped) => return Err(interrupted()),
            Err(Failed::Because(why)) => return Err(failed(format!("seed {seed}: {why}"))),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let runs = reports.iter().flat_map(|(_, report)| report.runs.clone());
    let report = RunReport {
        origin: origin(&reports[0].1.origin.machine, model.seed),
        table: medians(
            &reports
                .iter()
                .map(|(_, report)| &report.table)
                .collect::<Vec<_>>(),
        ),
        details: Vec::new(),
        charts: Vec::new(),
        runs: runs.collect::<Vec<Json>>(),
    };
    if output.json.json {
        print(report.to_json());
    } else {
        print(terminal::runs(&report.table, Look::stdout()));
    }
    if let Some(folder) = &output.out {
        ui::save(&report, folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The given words with one seed, as JSON.
fn with_seed(given: &[String], seed: u64) -> Vec<String> {
    let (options, behind) =
        given.split_at(given.iter().position(|w| w == "--").unwrap_or(given.len()));
    let mut words = Vec::new();
    let mut skip = false;
    for word in options {
        let own = OWN
            .iter()
            .find(|(name, _)| word.split('=').next() == Some(name));
        match own {
            _ if skip => skip = false,
            Some((_, value)) => skip = *value && !word.contains('='),
            None => words.push(word.clone()),
        }
    }
    words.extend([format!("--seed={seed}"), "--json".into()]);
    words.extend(behind.iter().cloned());
    words
}

/// The first table with the median of each number, and how far the first column spreads.
fn medians(tables: &[&RunTable]) -> RunTable {
    let first = tables[0];
    let mut table = RunTable::new(first.title.clone(), first.rows_are.clone());
    table.columns = first.columns.clone();
    table.trade_off = first.trade_off.map(|(a, b)| {
        let moved = |column| if column > 0 { column + 1 } else { column };
        (moved(a), moved(b))
    });
    let spread = Column::new("spread", Format::Percent, Better::Neither);
    table.columns.insert(1.min(table.columns.len()), spread);
    for (place, row) in first.rows.iter().enumerate() {
        let numbers = |column: usize| -> Vec<f64> {
            let same =
                |table: &&&RunTable| table.rows.get(place).is_some_and(|r| r.name == row.name);
            let tables = tables.iter().filter(same);
            tables
                .filter_map(|table| table.value(place, column).number())
                .collect()
        };
        let mut values: Vec<Value> = (0..first.columns.len())
            .map(|column| match median(numbers(column)) {
                Some(number) => Value::Number(number),
                None => first.value(place, column).clone(),
            })
            .collect();
        let of_first = numbers(0);
        let ends = of_first
            .iter()
            .copied()
            .reduce(f64::min)
            .zip(of_first.iter().copied().reduce(f64::max));
        let spread = ends
            .zip(median(of_first))
            .map(|((low, high), median)| 100.0 * (high - low) / median);
        values.insert(
            1.min(values.len()),
            match spread.filter(|s| s.is_finite()) {
                Some(spread) => Value::Number(spread),
                None => Value::Missing,
            },
        );
        table.push(row.name.clone(), values);
    }
    table.notes.push(format!(
        "Medians of {} seeds. Spread: from the lowest to the highest {}, over the median.",
        tables.len(),
        first.columns.first().map_or("value", |column| &column.name)
    ));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn each_run_has_a_seed_of_its_own_and_the_rest_as_given() {
        let given =
            words("run x.wasm --seeds 3 --machine m --seed=7 --json --out f -- pagerank --seed 9");
        let own = with_seed(&given, 8).join(" ");
        assert_eq!(
            own,
            "run x.wasm --machine m --seed=8 --json -- pagerank --seed 9"
        );
    }

    #[test]
    fn a_table_of_medians_tells_how_far_they_spread() {
        let table = |time: f64| {
            let mut table = RunTable::new("t", "plan");
            table.columns = vec![
                Column::new("time", Format::DurationNs, Better::Lower),
                Column::new("name", Format::Number, Better::Neither),
            ];
            table.push("dram", [time.into(), Value::Text("x".into())]);
            table
        };
        let (a, b, c) = (table(90.0), table(100.0), table(120.0));
        let all = medians(&[&a, &b, &c]);
        assert!(all.check().is_ok());
        assert_eq!(
            all.rows[0].values,
            [100.0.into(), 30.0.into(), Value::Text("x".into())]
        );
    }
}
