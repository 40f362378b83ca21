//! `varve study`.

use super::list::hang;
use crate::args::StudyArgs;
use crate::ui::{self, Done, failed, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use varve_report::{Look, table};
use varve_run::Keep;
use varve_studies::{Effort, StudyOptions};

pub fn study(a: &StudyArgs) -> Done {
    let studies = varve_studies::list();
    if a.name == "list" && a.json {
        let all: Vec<_> = studies
            .iter()
            .map(|s| json!({"name": s.name, "about": s.about}))
            .collect();
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    if a.name == "list" {
        for s in studies {
            print(hang(s.name, 16, s.about));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(study) = studies.iter().find(|s| s.name == a.name) else {
        let known: Vec<&str> = studies.iter().map(|s| s.name).collect();
        return Err(wrong(format!(
            "no study is called `{}`; there are list (which shows them), {}",
            a.name,
            known.join(", ")
        )));
    };
    if let Some(id) = a.only.iter().find(|id| !study.answers(id)) {
        let (letter, first, last) = study.claims;
        return Err(wrong(format!(
            "study {} has no claim `{id}`: it answers {letter}{first} to {letter}{last}",
            study.name
        )));
    }
    let keep = match &a.keep {
        Some(folder) if folder.as_os_str() == "none" => Keep::nothing(),
        Some(folder) => Keep::in_folder(folder),
        None => Keep::usual(),
    };
    if let Some(folder) = &a.out {
        ui::can_hold_results(folder, "--out")?;
    }
    if let Some(folder) = a.keep.as_ref().filter(|f| f.as_os_str() != "none") {
        ui::can_hold_results(folder, "--keep")?;
    }
    let options = StudyOptions {
        effort: if a.quick { Effort::Quick } else { Effort::Full },
        only: a.only.clone(),
        seed: a.seed,
        workers: ui::workers(a.jobs),
        keep,
        recordings: a.jvm.clone(),
    };
    let bar = ui::bar(0, study.name);
    let stop = ui::stop_flag();
    let result = (study.run)(&options, &|p| {
        bar.set_length(p.runs as u64);
        bar.set_position(p.done as u64);
        bar.set_message(p.what.clone());
        !stop.load(std::sync::atomic::Ordering::Relaxed)
    });
    bar.finish_and_clear();
    let mut result = result.map_err(|e| ui::of_run(&e))?;
    result.command = ui::command_line();
    if a.json {
        print(result.to_json());
    } else {
        print(table::claims(&result, Look::stdout()));
    }
    if let Some(folder) = &a.out {
        ui::folder(folder)?;
        let files = result.save(folder).map_err(failed)?;
        for file in files
            .iter()
            .filter(|f| f.extension().is_some_and(|e| e == "html"))
        {
            eprintln!("wrote {} and its data", file.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
