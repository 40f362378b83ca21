//! `varve study`.

use super::list::hang;
use crate::args::StudyArgs;
use crate::ui::{self, Done, Failure, failed, print, wrong};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use varve_machine::rules::RULES;
use varve_report::{Look, StudyResult, markdown, table, write_atomically};
use varve_run::Keep;
use varve_studies::{Certainty, Effort, Study, StudyOptions};

/// The word for all studies.
const ALL: &str = "all";

pub fn study(a: &StudyArgs) -> Done {
    let studies = varve_studies::list();
    if a.name == "list" {
        list(studies, a.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<&Study> = studies
        .iter()
        .filter(|s| a.name == ALL || s.name == a.name)
        .collect();
    if chosen.is_empty() {
        let known: Vec<&str> = studies.iter().map(|s| s.name).collect();
        return Err(wrong(format!(
            "no study is called `{}`; there are list (which shows them), {}, and {ALL}",
            a.name,
            known.join(", ")
        )));
    }
    if let Some(id) = a
        .only
        .iter()
        .find(|id| !chosen.iter().any(|s| s.answers(id)))
    {
        return Err(no_claim(&chosen, id));
    }
    // With `all`, studies that answer nothing of it have nothing to do.
    let wanted = |s: &&&Study| a.only.is_empty() || a.only.iter().any(|id| s.answers(id));
    let chosen: Vec<&Study> = chosen.iter().filter(wanted).copied().collect();
    if let Some(folder) = &a.out {
        ui::can_hold_results(folder, "--out")?;
    }
    if let Some(folder) = a.keep.as_ref().filter(|f| f.as_os_str() != "none") {
        ui::can_hold_results(folder, "--keep")?;
    }
    let mut results = Vec::new();
    for study in chosen {
        let result = one(study, a)?;
        if !a.json {
            print(table::claims(&result, Look::stdout()));
        }
        if let Some(folder) = a.out.as_ref().filter(|_| a.name != ALL) {
            save(&result, folder)?;
        }
        results.push(result);
    }
    if a.name == ALL {
        if a.json {
            let all: Vec<serde_json::Value> = results
                .iter()
                .map(|r| serde_json::from_str(&r.to_json()))
                .collect::<Result<_, _>>()
                .map_err(failed)?;
            print(serde_json::to_string_pretty(&all).map_err(failed)?);
        }
        if let Some(folder) = &a.out {
            pages(&results, folder)?;
        }
    } else if a.json {
        print(results[0].to_json());
    }
    Ok(ExitCode::SUCCESS)
}

fn list(studies: &[Study], json: bool) -> Result<(), Failure> {
    if json {
        let all: Vec<_> = studies
            .iter()
            .map(|s| json!({"name": s.name, "about": s.about}))
            .collect();
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
    } else {
        for s in studies {
            print(hang(s.name, 16, s.about));
        }
    }
    Ok(())
}

fn no_claim(chosen: &[&Study], id: &str) -> Failure {
    let [study] = chosen else {
        return wrong(format!(
            "no study has a claim `{id}`; `varve study list` says which there are"
        ));
    };
    let (letter, first, last) = study.claims;
    wrong(format!(
        "study {} has no claim `{id}`: it answers {letter}{first} to {letter}{last}",
        study.name
    ))
}

/// Runs one, with its progress.
fn one(study: &Study, a: &StudyArgs) -> Result<StudyResult, Failure> {
    let options = StudyOptions {
        effort: if a.quick { Effort::Quick } else { Effort::Full },
        only: a.only.clone(),
        seed: a.seed,
        workers: ui::workers(a.jobs),
        keep: match &a.keep {
            Some(folder) if folder.as_os_str() == "none" => Keep::nothing(),
            Some(folder) => Keep::in_folder(folder),
            None => Keep::usual(),
        },
        recordings: a.jvm.clone(),
        without: None,
    };
    let asked = Certainty {
        seeds: a.seeds,
        rules: if a.sensitivity { RULES } else { &[] },
    };
    let bar = ui::bar(0, study.name);
    let stop = ui::stop_flag();
    let result = study.run_with(&options, asked, &|p| {
        bar.set_length(p.runs as u64);
        bar.set_position(p.done as u64);
        bar.set_message(p.what.clone());
        !stop.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    let mut result = result.map_err(|e| ui::of_run(&e))?;
    result.command = ui::command_line();
    Ok(result)
}

/// A page with charts, and data.
fn save(result: &StudyResult, folder: &Path) -> Result<(), Failure> {
    ui::folder(folder)?;
    let files = result.save(folder).map_err(failed)?;
    let page = files
        .iter()
        .find(|f| f.extension().is_some_and(|e| e == "html"));
    if let Some(page) = page {
        eprintln!("wrote {} and its data", page.display());
    }
    Ok(())
}

/// Pages for a book: one for each study, and one that sums them up.
fn pages(results: &[StudyResult], folder: &Path) -> Result<(), Failure> {
    ui::folder(folder)?;
    let page = |name: &str, text: String| {
        write_atomically(&folder.join(format!("{name}.md")), text.as_bytes()).map_err(failed)
    };
    for result in results {
        page(&result.study, markdown::study(result))?;
    }
    page("README", markdown::all(results))?;
    eprintln!("wrote {}", folder.join("README.md").display());
    Ok(())
}
