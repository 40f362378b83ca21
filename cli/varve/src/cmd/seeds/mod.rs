//! `varve run --seeds`: the same run with several seeds, as medians and their spread.

mod spread;

use super::compared::origin;
use crate::args::run::model::Model;
use crate::args::run::output::Output;
use crate::sweep::child::{self, Failed};
use crate::ui::{self, Done, failed, interrupted, print};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use varve_report::{Look, RunReport, RunTable, table as terminal};

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
            Ok(report) => reports.push(report),
            Err(Failed::Stopped) => return Err(interrupted()),
            Err(Failed::Because(why)) => return Err(failed(format!("seed {seed}: {why}"))),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let reports: Vec<&RunReport> = reports.iter().collect();
    let tables: Vec<&RunTable> = reports.iter().map(|report| &report.table).collect();
    let report = RunReport {
        origin: origin(&reports[0].origin.machine, model.seed),
        table: spread::medians(&tables),
        details: spread::details(&reports),
        charts: spread::charts(&reports),
        pictures: Vec::new(),
        runs: reports
            .iter()
            .flat_map(|report| report.runs.clone())
            .collect(),
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
}
