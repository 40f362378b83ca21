//! A stock Java virtual machine on a modelled machine: recorded once, and replayed with its generations where each plan has them.

use super::compared::{self, Sheet, origin};
use super::native::of_replay;
use super::runs::{self, Outcomes};
use super::{budgets, columns, jvm_table, native_replay, pictures};
use crate::args::run::job::{ModelledJava, RunSubject};
use crate::args::run::model::Windows;
use crate::ui::{self, Done, wrong};
use varve_run::Comparison;
use varve_run::request::{BASE, JavaRequest, NATIVE_MACHINE, recorded};

pub fn run(work: &RunSubject, a: &ModelledJava) -> Done {
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let machine = varve_tier::machine(&a.model.machine_or(NATIVE_MACHINE)).map_err(wrong)?;
    let request = JavaRequest {
        options: a.generations.clone(),
        seed: a.model.seed,
        pictures: a.output.out.is_some(),
        ..JavaRequest::new(machine)
    };
    // Report errors in options before a command runs.
    request.check().map_err(wrong)?;
    let options = native_replay::recording(&a.marked, &Windows::default());
    let trace = native_replay::trace(work, options)?;
    // The trace of a command is gone when this is read.
    let shown = match work {
        RunSubject::Named(_) => None,
        RunSubject::Command(words) => Some(native_replay::shown(words)),
    };
    let recorded = recorded(&trace.path, shown.as_deref()).map_err(|e| of_replay(&e))?;
    let mut runs = request.runs(recorded).map_err(|e| of_replay(&e))?;
    let answers = runs::all(&mut runs, a.model.jobs, trace.accesses);
    let answers = answers.map_err(|e| of_replay(&e))?;
    let came = Outcomes::of(&runs, answers, |_, e| of_replay(e))?.of_command(trace.end.as_ref());
    let results = came.shown();
    // Without it there would be no others.
    let base = came.named(BASE).unwrap_or(results[0]);
    let title = jvm_table::title(&native_replay::name(work), base);
    let mut notes = Vec::new();
    if base.instances > 1 {
        notes.push(columns::MNTT_ALIKE.into());
    }
    notes.extend(runs.notes.clone());
    notes.extend(budgets::note(&runs.budgets, base, base.instances));
    if a.generations.plan.is_none() {
        notes.push("`varve plan` describes each plan.".into());
    }
    let mut cells = columns::plans(base, jvm_table::cells());
    cells.extend(columns::energy(&results));
    let steady = base.steady.is_some();
    if steady {
        cells.insert(2, columns::whole_run(base));
        notes.push("Energy and sizes of memory are of the whole run.".into());
    }
    let chart = budgets::chart(&runs.budgets, base, |run| came.named(run));
    let origin = origin(&request.machine.name, a.model.seed);
    let sheet = Sheet {
        rows_are: "plan",
        cells,
        trade_off: Some((1, if steady { 3 } else { 2 })),
        notes,
        advice: runs.advise(&came, &columns::size).said,
        details: jvm_table::details(base, &results),
        charts: jvm_table::charts(&results)
            .into_iter()
            .chain(chart)
            .collect(),
        flames: pictures::waits(&title, &pictures::runs(&results), (BASE, "")),
        title: match steady {
            true => format!("{title}: its steady state"),
            false => title,
        },
    };
    compared::show(&a.output, origin, &came, sheet)
}
