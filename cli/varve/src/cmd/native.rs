//! A native program, object by object, on a modelled machine: recorded once, and replayed under each plan with fast memory as a
//! budget; or on a machine with one memory, with hot and cold sites on different DIMMs.

use super::compared::{self, Sheet, origin};
use super::native_replay::{self, Recorded, name, profile};
use super::recording::CommandRecording;
use super::runs::{self, Outcomes};
use super::{budgets, columns, files, native_table, pictures, tray_table};
use crate::args::run::job::{ModelledNative, RunSubject};
use crate::ui::{self, Done, Failure, failed, wrong};
use std::process::ExitCode;
use std::time::Duration;
use varve_report::fmt;
use varve_report::pictures::Flame;
use varve_run::objects::ObjectResult;
use varve_run::request::{BASE, NATIVE_MACHINE, NativeRequest, NativeRuns};
use varve_run::{Compared, Comparison, Error, has_one_memory};
use varve_trace::host::{Extent, RecorderOptions};

/// So long a command runs before there is an answer of what it did so far: its replays take most of a minute.
const FIRST: Duration = Duration::from_secs(8);
/// The plan with all in slow memory.
const SLOW: &str = "slow";

pub fn run(work: &RunSubject, a: &ModelledNative) -> Done {
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let machine = varve_tier::machine(&a.model.machine_or(NATIVE_MACHINE)).map_err(wrong)?;
    let request = NativeRequest {
        plans: a.plans.clone(),
        profile: a.plans.profile.as_deref().map(profile).transpose()?,
        stale: a.stale.clone(),
        trays: a.trays.clone(),
        seed: a.model.seed,
        whole: a.whole.whole,
        pictures: a.output.out.is_some(),
        ..NativeRequest::new(machine)
    };
    // Report errors in options before a command runs.
    request.check().map_err(wrong)?;
    let asked = native_replay::recording(&a.marked, &a.windows);
    let words = match work {
        RunSubject::Named(path) => {
            let recorded = native_replay::named(path, &asked)?;
            return answer(work, a, &request, &recorded).map(|(code, _)| code);
        }
        RunSubject::Command(words) => words,
    };
    let options = RecorderOptions {
        extent: a.whole.extent(&a.windows, &a.marked),
        ..asked
    };
    // Files and documents have the last answer alone.
    let in_time = matches!(options.extent, Extent::Thinning(_));
    let first = in_time && !a.output.json.json && a.output.out.is_none();
    let mut recording = CommandRecording::start(words, options, first.then_some(FIRST))?;
    loop {
        let recorded: Recorded = recording.next()?.into();
        if !recorded.goes_on {
            return answer(work, a, &request, &recorded).map(|(code, _)| code);
        }
        // What it did so far may be too little for an answer.
        match answer(work, a, &request, &recorded) {
            Ok((_, seconds)) => ui::message!("varve: {}", goes_on(work, seconds)),
            Err(Failure::Line { line, .. }) => ui::message!("varve: note: no answer yet: {line}"),
            Err(quiet) => return Err(quiet),
        }
    }
}

/// What is said where a command goes on after an answer. `seconds` is the time by the model of what it did so far.
fn goes_on(work: &RunSubject, seconds: f64) -> String {
    let recorded = FIRST.as_secs_f64();
    let cost = match recorded / seconds {
        times if times.is_finite() && times >= 1.0 => format!(
            ", {} by the model, in {recorded} s of recording: some {} s for each second of its own. It goes on",
            fmt::duration_ns(seconds * 1e9),
            fmt::significant(times, 2)
        ),
        _ => ". It goes on".into(),
    };
    format!(
        "that is what `{}` did so far{cost}; its whole run is answered when it ends (Ctrl-C ends it; `varve profile --live` samples a service that runs on)",
        name(work)
    )
}

/// Replays what was recorded, and shows what came out. With the exit code comes the time of the run with all in DRAM, s.
fn answer(
    work: &RunSubject,
    a: &ModelledNative,
    request: &NativeRequest,
    recorded: &Recorded,
) -> Result<(ExitCode, f64), Failure> {
    let mut runs = request
        .runs(&recorded.path)
        .map_err(|e| files::of_input(&e))?;
    let answers = runs::all(&mut runs, a.model.jobs, recorded.accesses);
    let answers = answers.map_err(|e| of_replay(&e))?;
    let came = Outcomes::of(&runs, answers, |_, e| of_replay(e))?.of_command(recorded.end.as_ref());
    let machine = &request.machine;
    let so_far = if recorded.goes_on { ", so far" } else { "" };
    let title = format!("{} on {}{so_far}", name(work), machine.name);
    let results = came.shown();
    // Without it there would be no others.
    let base = came.named(BASE).unwrap_or(results[0]);
    let flames = flames(&title, &runs, &came);
    let mut notes: Vec<String> = results
        .iter()
        .find_map(|r| columns::sampled(&r.run))
        .into_iter()
        .chain(runs.notes.clone())
        .collect();
    let advice = runs.advise(&came, &columns::size);
    let sheet = match has_one_memory(machine) {
        true => {
            if request.profile.is_none() && results.len() > 1 {
                notes.push(
                    "Sites are hot or cold by this very run; --sites uses a profile of another input, made with `varve profile`."
                        .into(),
                );
            }
            let last = results
                .last()
                .filter(|r| !r.placed.is_empty() && r.plan != BASE);
            let own = last.map(|r| native_table::coloured(r));
            tray_table::sheet(
                title,
                base,
                &results,
                (notes, advice.said),
                own.into_iter().collect(),
                flames,
            )
        }
        false => {
            notes.extend(budgets::note(&runs.budgets, base, 1));
            if a.plans.plan.is_none() {
                notes.push("`varve plan` describes each plan.".into());
            }
            let told = advice.run.as_deref().and_then(|run| came.named(run));
            let chart = budgets::chart(&runs.budgets, base, |run| came.named(run));
            let charts = [columns::stall_chart("plan", &results)];
            let mut cells = columns::plans(base, native_table::cells());
            let steady = base.steady.is_some();
            if steady {
                cells.insert(2, columns::whole_run(base));
            }
            Sheet {
                cells,
                rows_are: "plan",
                trade_off: Some((1, if steady { 3 } else { 2 })),
                notes,
                advice: advice.said,
                details: vec![native_table::sites(told.unwrap_or(base), base)],
                charts: charts.into_iter().chain(chart).collect(),
                flames,
                title: match steady {
                    true => format!("{title}: its steady state"),
                    false => title,
                },
            }
        }
    };
    let origin = origin(&machine.name, a.model.seed);
    let code = compared::show(&a.output, origin, &came, sheet)?;
    Ok((code, base.whole_seconds()))
}

/// Where threads wait, by site and by function, with all in fast and with all in slow memory.
fn flames(
    title: &str,
    runs: &NativeRuns,
    came: &Outcomes<ObjectResult>,
) -> (Option<Flame>, Option<Flame>) {
    let says = match came.named(SLOW).is_some() {
        true => (Some("with all in DRAM"), "with all in slow memory"),
        false => (None, "with hot and cold memory spread over all DIMMs"),
    };
    let flame = native_replay::flame(title, says, &runs.keys, &runs.stacks);
    let seen = |name: &str| came.named(name).and_then(Compared::seen);
    let fast = seen(BASE);
    let slow = seen(SLOW).or(fast);
    let code = pictures::functions(title, (says.0, fast), (says.1, slow));
    (Some(flame), code)
}

/// A replay that did not end well.
pub fn of_replay(e: &Error) -> Failure {
    match e {
        e if e.is_interrupt() => ui::of_run(e),
        Error::Run(e) => failed(e),
        Error::NoJava(line) => failed(line),
        e => files::of_input(e),
    }
}
