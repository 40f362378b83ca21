//! `varve study`.

mod points;

use super::cluster;
use super::list::hang;
use crate::args::{StudyAction, StudyArgs, StudyOf};
use crate::sweep::emit::{self, For, Shared};
use crate::sweep::share::Share;
use crate::sweep::submission;
use crate::ui::{self, Done, Failure, failed, print, wrong};
use points::StudyRuns;
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
/// The error for a missing folder for the results of shares.
const NO_FOLDER: &str =
    "shares of a study need a place for what they make; name a folder that all see with --keep";

pub fn study(a: &StudyArgs) -> Done {
    match &a.action {
        Some(StudyAction::Submit(a)) => {
            let runs = runs(&a.name, &a.of, &a.keep)?;
            ui::can_hold_results(&a.keep, "--keep")?;
            cluster::submit::submit(&runs, &a.how)
        }
        Some(StudyAction::Status(a)) => {
            cluster::status::status(&runs(&a.name, &a.of, &a.keep)?, a.json)
        }
        Some(StudyAction::Count { work, seed }) => {
            varve_studies::counted(work, *seed).map_err(|e| ui::of_run(&e))?;
            Ok(ExitCode::SUCCESS)
        }
        None if a.name == "list" => {
            list(varve_studies::list(), a.json)?;
            Ok(ExitCode::SUCCESS)
        }
        None => answer(a),
    }
}

/// The studies that are meant.
fn chosen(name: &str, of: &StudyOf) -> Result<Vec<&'static Study>, Failure> {
    let studies = varve_studies::list();
    let chosen: Vec<&Study> = studies
        .iter()
        .filter(|s| name == ALL || s.name == name)
        .collect();
    if chosen.is_empty() {
        let known: Vec<&str> = studies.iter().map(|s| s.name).collect();
        return Err(wrong(format!(
            "no study is called `{name}`; there are list (which shows them), {}, and {ALL}",
            known.join(", ")
        )));
    }
    let unknown = |id: &&String| !chosen.iter().any(|s| s.answers(id));
    if let Some(id) = of.only.iter().find(unknown) {
        return Err(no_claim(&chosen, id));
    }
    // With `all`, studies that answer nothing of it have nothing to do.
    let wanted = |s: &&&Study| of.only.is_empty() || of.only.iter().any(|id| s.answers(id));
    Ok(chosen.iter().filter(wanted).copied().collect())
}

/// Those of them that have shares; all must.
fn shared(chosen: Vec<&Study>) -> Result<Vec<&Study>, Failure> {
    match chosen.iter().find(|study| study.rounds == 0) {
        None => Ok(chosen),
        Some(study) => Err(wrong(format!(
            "study {} measures the machine that it runs on, and has no shares; run it without --shard, --merge and --emit",
            study.name
        ))),
    }
}

/// Runs of studies, for a scheduler.
fn runs<'a>(name: &'a str, of: &'a StudyOf, folder: &'a Path) -> Result<StudyRuns<'a>, Failure> {
    if folder.as_os_str() == "none" {
        return Err(wrong(NO_FOLDER));
    }
    Ok(StudyRuns {
        name,
        chosen: shared(chosen(name, of)?)?,
        of,
        folder,
        keep: Keep::in_folder(folder),
    })
}

/// Runs studies, or shares of them, and says what they answer.
fn answer(a: &StudyArgs) -> Done {
    let mut chosen = chosen(&a.name, &a.of)?;
    if a.shares.shard.is_some() || a.shares.merge || a.shares.emit.is_some() {
        chosen = shared(chosen)?;
    }
    if let (Some(target), Some(shards)) = (a.shares.emit, a.shares.shards) {
        return emitted(a, &chosen, target, shards as usize);
    }
    if let Some(folder) = &a.out {
        ui::can_hold_results(folder, "--out")?;
    }
    if let Some(folder) = a.keep.as_ref().filter(|f| f.as_os_str() != "none") {
        ui::can_hold_results(folder, "--keep")?;
    }
    let mut results = Vec::new();
    for study in chosen {
        let Some(result) = one(study, a, &kept(a)?)? else {
            continue;
        };
        if !a.json {
            print(table::claims(&result, Look::stdout()));
        }
        if let Some(folder) = a.out.as_ref().filter(|_| a.name != ALL) {
            save(&result, folder)?;
        }
        results.push(result);
    }
    if results.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let failures = || {
        results
            .iter()
            .flat_map(|r| r.failures.iter().map(|f| (&r.study, f)))
    };
    for (study, failure) in failures() {
        crate::ui::message!("varve: {study}: {failure}");
    }
    let code = match failures().next() {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    };
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
    Ok(code)
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
            "no study has a claim `{id}`; `varve study list` lists them"
        ));
    };
    let (letter, first, last) = study.claims;
    wrong(format!(
        "study {} has no claim `{id}`: it answers {letter}{first} to {letter}{last}",
        study.name
    ))
}

/// Where runs are kept, and which of those that are missing are made here.
fn kept(a: &StudyArgs) -> Result<Keep, Failure> {
    let keep = match &a.keep {
        Some(folder) if folder.as_os_str() == "none" => Keep::nothing(),
        Some(folder) => Keep::in_folder(folder),
        None => Keep::usual(),
    };
    if (a.shares.shard.is_some() || a.shares.merge) && !keep.is_on() {
        return Err(wrong(NO_FOLDER));
    }
    let shard = a.shares.own().map_err(wrong)?;
    if let (Some(shard), Some(file)) = (shard, &a.shares.submission) {
        let submitted = submission::load(file).map_err(failed)?;
        submitted.check(&keep, Path::new("")).map_err(failed)?;
        return Ok(keep.these(submitted.names_of(shard).into_iter().cloned()));
    }
    Ok(match shard {
        Some(Share { own, of }) => keep.share(own, of),
        None if a.shares.merge => keep.only_kept(),
        None => keep,
    })
}

/// The options of a study.
fn options(name: &str, of: &StudyOf, keep: &Keep, jobs: usize) -> StudyOptions {
    StudyOptions {
        effort: if of.quick {
            Effort::Quick
        } else {
            Effort::Full
        },
        only: of.only.clone(),
        seed: of.seed,
        workers: ui::workers(jobs),
        keep: keep.clone(),
        recordings: of.jvm.clone(),
        // One that names recordings with the study wants what they answer; `all` is to be whole.
        stock_only: of.jvm.is_some() && name != ALL,
        without: None,
        // A file that was replaced meanwhile is still there by this name.
        program: Some(format!("/proc/{}/exe", std::process::id()).into()),
    }
}

/// How often it is run, and without which rules.
fn asked_of(of: &StudyOf) -> Certainty<'static> {
    Certainty {
        seeds: of.seeds,
        rules: if of.sensitivity { RULES } else { &[] },
    }
}

/// The command that runs studies with their results in this folder, without its program; a path that is whole stays so.
fn words(name: &str, of: &StudyOf, keep: &Path) -> Vec<String> {
    let mut words = vec!["study".to_string(), name.into()];
    words.extend(of.quick.then(|| "--quick".into()));
    words.extend((!of.only.is_empty()).then(|| format!("--only={}", of.only.join(","))));
    words.push(format!("--seed={}", of.seed));
    words.extend((of.seeds > 1).then(|| format!("--seeds={}", of.seeds)));
    words.extend(of.sensitivity.then(|| "--sensitivity".into()));
    let jvm = of.jvm.as_deref().map(|jvm| match keep.is_absolute() {
        true => std::path::absolute(jvm).unwrap_or_else(|_| jvm.into()),
        false => jvm.into(),
    });
    words.extend(jvm.map(|jvm| format!("--jvm={}", jvm.display())));
    words.push(format!("--keep={}", keep.display()));
    words
}

/// Runs one, with its progress; none of a share, which answers nothing.
fn one(study: &Study, a: &StudyArgs, keep: &Keep) -> Result<Option<StudyResult>, Failure> {
    let (options, asked) = (
        options(&a.name, &a.of, keep, a.shares.jobs),
        asked_of(&a.of),
    );
    let (bar, lines) = (ui::bar(0, study.name), ui::Lines::begin());
    let stop = ui::stop_flag();
    let result = study.run_with(&options, asked, &|p| {
        bar.set_length(p.runs as u64);
        bar.set_position(p.done as u64);
        bar.set_message(p.what.clone());
        lines.moved(&bar);
        !stop.load(Ordering::Relaxed) && keep.lost().is_none()
    });
    bar.finish_and_clear();
    // A result that was not stored is no failed run, but other processes would miss it.
    if let Some(why) = keep.lost() {
        return Err(failed(why));
    }
    let asked = keep.asked();
    let missing: Vec<&str> = asked
        .values()
        .filter(|run| !run.done)
        .map(|run| &run.what[..])
        .collect();
    let elsewhere = matches!(&result, Err(e) if e.is_elsewhere());
    if a.shares.shard.is_some() && (elsewhere || result.is_ok()) {
        crate::ui::message!(
            "{}: this share is done; {} of {} runs exist",
            study.name,
            asked.len() - missing.len(),
            asked.len()
        );
        return Ok(None);
    }
    if a.shares.merge && (elsewhere || !missing.is_empty()) && !(a.shares.partial && result.is_ok())
    {
        return Err(failed(incomplete(
            study,
            &missing,
            asked.len(),
            a.shares.partial,
        )));
    }
    let mut result = result.map_err(|e| ui::of_run(&e))?;
    if !missing.is_empty() {
        let note = format!("{} of {} runs are missing", missing.len(), asked.len());
        crate::ui::message!("varve: note: {note}");
        result.about.push(format!("{note}."));
    }
    result.command = ui::command_line();
    Ok(Some(result))
}

/// Runs that are not there, where all are needed.
fn incomplete(study: &Study, missing: &[&str], of: usize, partial: bool) -> String {
    let named = missing
        .iter()
        .take(3)
        .copied()
        .collect::<Vec<_>>()
        .join("; ");
    let more = if missing.len() > 3 { "; and more" } else { "" };
    let remedy = match partial {
        true => "other runs depend on them, so there is no answer without them",
        false => "run all shares once more, or print the existing results with --partial",
    };
    format!(
        "study {}: {} of {of} runs that are known are missing: {named}{more}; {remedy}",
        study.name,
        missing.len()
    )
}

/// Prints a script that shares the runs out.
fn emitted(a: &StudyArgs, chosen: &[&Study], target: For, shards: usize) -> Done {
    let Some(folder) = a
        .keep
        .as_deref()
        .filter(|folder| folder.as_os_str() != "none")
    else {
        return Err(wrong(NO_FOLDER));
    };
    let words = |folder: &Path| words(&a.name, &a.of, folder);
    let shared = Shared {
        name: a.name.clone(),
        folder,
        words: &words,
        rounds: chosen.iter().map(|study| study.rounds).max().unwrap_or(1),
    };
    print(emit::script(target, &shared, shards).trim_end());
    Ok(ExitCode::SUCCESS)
}

/// A page with charts, and data.
fn save(result: &StudyResult, folder: &Path) -> Result<(), Failure> {
    ui::folder(folder)?;
    let files = result.save(folder).map_err(failed)?;
    let page = files
        .iter()
        .find(|f| f.extension().is_some_and(|e| e == "html"));
    if let Some(page) = page {
        crate::ui::message!("wrote {} and its data", page.display());
    }
    Ok(())
}

/// Pages for a book: one for each study with its pictures, one that sums them up, and one of rules if those were switched off.
fn pages(results: &[StudyResult], folder: &Path) -> Result<(), Failure> {
    ui::folder(folder)?;
    let page = |name: &str, text: String| {
        write_atomically(&folder.join(format!("{name}.md")), text.as_bytes()).map_err(failed)
    };
    for result in results {
        page(&result.study, markdown::study(result))?;
        for (file, picture) in markdown::pictures(result) {
            let path = folder.join(file);
            ui::folder(path.parent().unwrap_or(folder))?;
            write_atomically(&path, picture.as_bytes()).map_err(failed)?;
        }
    }
    if let Some(text) = markdown::sensitivity(results) {
        page("sensitivity", text)?;
    }
    page("README", markdown::all(results))?;
    crate::ui::message!("wrote {}", folder.join("README.md").display());
    Ok(())
}
