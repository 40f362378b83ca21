//! A stock Java virtual machine on a modelled machine: recorded once, and replayed with its generations where each plan has them.

use super::compared::{self, origin};
use super::shares::{self, BASE, Shares};
use super::{files, jvm_table, native_replay, pictures};
use crate::args::run::job::{ModelledJava, Work};
use crate::args::run::model::Windows;
use crate::ui::{self, Done, Failure, failed, of_run, wrong};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use varve_machine::Machine;
use varve_machine::model::Progress;
use varve_run::jvm::{self, By, JavaResult, JavaSpec, PLANS, Plan, Recorded};
use varve_run::request::SoFar;
use varve_run::request::{self, Fast};
use varve_run::{Error, Keep, Numa, compare};
use varve_trace::TraceReader;

pub fn run(work: &Work, a: &ModelledJava) -> Done {
    if let Some(folder) = &a.output.out {
        ui::can_hold_results(folder, "--out")?;
    }
    let machine = request::machine(&a.model.machine_or(native_replay::MACHINE)).map_err(wrong)?;
    if varve_run::has_one_memory(&machine) || machine.dram_cache.is_some() {
        return Err(wrong(Error::NoSlowNode(machine.name)));
    }
    let instances = a.generations.instances;
    if instances == 0 {
        return Err(wrong("--instances 0: run one at least"));
    }
    // What is wrong with options is said before a command runs.
    let plans = chosen(a.generations.plan.as_deref())?;
    let (trace, _kept) = native_replay::trace(
        work,
        native_replay::recording(&a.marked, &Windows::default()),
    )?;
    let recorded = recorded(work, &trace)?;
    let (plans, left_out) = able(
        plans,
        &recorded,
        is_each_named(a.generations.plan.as_deref()),
    )?;
    let replays = Replays {
        a,
        machine: &machine,
        recorded: Arc::new(recorded),
    };
    let base = replays.make(&[(BASE.into(), None)])?.swap_remove(0);
    let runs = Budgets::new(a.generations.fast.as_ref(), &plans, base.most_bytes);
    let mut results = vec![base];
    let most_bytes = results[0].most_bytes;
    results.extend(replays.make(&runs.runs)?);
    let name = match work {
        Work::Named(path) => varve_run::Work::Trace(path.into()).name(),
        Work::Command(words) => native_replay::shown(words),
    };
    let mut table = jvm_table::of(&name, &results);
    table.notes.extend(left_out);
    table.notes.extend(runs.note(most_bytes));
    if a.generations.plan.is_none() {
        table
            .notes
            .push("`varve plan` says what each plan does.".into());
    }
    let chart = runs.chart(&results);
    let runs = pictures::runs(&results, |r| &r.plan, |r| &r.seen);
    let title = &table.title;
    let drawn = pictures::of(title, &runs, pictures::waits(title, &runs, (BASE, "")));
    let charts = (
        jvm_table::details(&results),
        jvm_table::charts(&results)
            .into_iter()
            .chain(chart)
            .collect(),
    );
    let origin = origin(&machine.name, a.model.seed);
    compared::show(&a.output, origin, table, charts, &results, drawn)
}

/// A plan as the user wrote it.
type Named = (String, &'static Plan);

/// The plans that a list names; all of them without one.
fn chosen(list: Option<&str>) -> Result<Vec<Named>, Failure> {
    let able = PLANS.iter().filter(|plan| !plan.alias && !plan.is_live());
    let able: Vec<&str> = able.map(|plan| plan.name).collect();
    let specs = varve_spec::expand(list.unwrap_or(varve_spec::ALL), &able);
    let named = specs.into_iter().map(|spec| {
        let (plan, _) = jvm::plan(&spec).map_err(wrong)?;
        if let Some(why) = plan.not_on_a_model() {
            return Err(wrong(why));
        }
        Ok((spec, plan))
    });
    named.collect()
}

/// Does a list name each plan that it means?
fn is_each_named(list: Option<&str>) -> bool {
    list.is_some_and(|list| !list.split(',').any(|name| name == varve_spec::ALL))
}

/// What was recorded; refused if it is no Java virtual machine, or nothing is known of its heap.
fn recorded(work: &Work, trace: &Path) -> Result<Recorded, Failure> {
    let of_command = |what: String| match work {
        Work::Named(_) => what,
        // The trace is gone when this is read.
        Work::Command(words) => {
            let trace = format!("{}: ", trace.display());
            format!(
                "{}: {}",
                native_replay::shown(words),
                what.replace(&trace, "")
            )
        }
    };
    match Recorded::open(trace) {
        Ok(Some(recorded)) => Ok(recorded),
        Ok(None) => {
            let reader = TraceReader::open(trace).ok();
            if let Some(cut) = reader.as_ref().and_then(TraceReader::cut) {
                return Err(wrong(format!(
                    "{}: a recording of Java that was cut off at byte {}, before the virtual machine said where its heap is: record \
                     it again ({})",
                    trace.display(),
                    cut.offset,
                    cut.why
                )));
            }
            let code = reader.and_then(|reader| reader.end()?.exit_code);
            let code = code.map_or(String::new(), |code| format!(" (exit code {code})"));
            Err(failed(of_command(format!(
                "no Java virtual machine has started{code}; see what it wrote above"
            ))))
        }
        Err(Error::Java(what)) => Err(wrong(of_command(what))),
        Err(e) => Err(files::of_input(&e)),
    }
}

/// The plans that go with the collector; one that was named and does not is refused.
fn able(
    plans: Vec<Named>,
    recorded: &Recorded,
    named: bool,
) -> Result<(Vec<Named>, Option<String>), Failure> {
    let java = &recorded.java;
    if java.collector.has_generations() {
        return Ok((plans, None));
    }
    let (without, able): (Vec<Named>, Vec<Named>) = plans
        .into_iter()
        .partition(|(_, plan)| plan.by_generation());
    let names: Vec<&str> = without.iter().map(|(_, plan)| plan.name).collect();
    let line = format!(
        "Parts of the heap of {} change their role, so that no generation has a place of its own: {} {} for Serial and Parallel \
         (-XX:+UseSerialGC, -XX:+UseParallelGC).",
        java.collector.name(),
        names.join(" and "),
        if names.len() == 1 { "is" } else { "are" }
    );
    match (names.is_empty(), named) {
        (true, _) => Ok((able, None)),
        (false, true) => Err(wrong(line)),
        (false, false) => Ok((able, Some(line))),
    }
}

/// A run: its plan's name, and fast memory that it may take, bytes.
type Run = (String, Option<u64>);

/// How much fast memory there is, run by run.
struct Budgets {
    /// All but that of [`BASE`].
    runs: Vec<Run>,
    shares: Option<Shares>,
    said: bool,
}

impl Budgets {
    fn new(fast: Option<&Fast>, plans: &[Named], most_bytes: u64) -> Budgets {
        let others = plans.iter().filter(|(_, plan)| plan.by != By::Fast);
        let limited = |(_, plan): &Named| match fast {
            Some(_) => plan.is_limited(),
            None => matches!(plan.by, By::Pages(_)),
        };
        let (limited, free): (Vec<&Named>, Vec<&Named>) = others.partition(|named| limited(named));
        let mut runs: Vec<Run> = free.iter().map(|(spec, _)| (spec.clone(), None)).collect();
        let specs: Vec<String> = limited.iter().map(|(spec, _)| spec.clone()).collect();
        let usual = [native_replay::SHARE];
        let percents = match fast {
            Some(Fast::Size(bytes)) => {
                runs.extend(specs.into_iter().map(|spec| (spec, Some(bytes.0))));
                return Budgets {
                    runs,
                    shares: None,
                    said: true,
                };
            }
            Some(Fast::Percent(all)) => &all[..],
            None => &usual,
        };
        let any = !specs.is_empty();
        let shares = Shares::new(specs, percents);
        let limits = shares.limits(most_bytes).into_iter().map(Some);
        runs.extend(shares.names().split_off(1).into_iter().zip(limits));
        Budgets {
            runs,
            shares: any.then_some(shares),
            said: fast.is_some(),
        }
    }

    fn note(&self, most_bytes: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(shares) = &self.shares {
            notes.push(match self.said {
                true => shares::note_native(shares, most_bytes),
                false => format!("Page policies: {}", shares::note_native(shares, most_bytes)),
            });
        }
        notes
    }

    fn chart(&self, results: &[JavaResult]) -> Option<varve_report::Chart> {
        let base = results.iter().find(|r| r.plan == BASE)?;
        let slowdown = |name: &str| {
            let run = results.iter().find(|r| r.plan == name)?;
            Some(run.seconds / base.seconds)
        };
        shares::chart(self.shares.as_ref()?, &base.program, slowdown)
    }
}

/// Replays of what was recorded.
struct Replays<'a> {
    a: &'a ModelledJava,
    machine: &'a Machine,
    recorded: Arc<Recorded>,
}

impl Replays<'_> {
    /// Makes them, all or none.
    fn make(&self, runs: &[Run]) -> Result<Vec<JavaResult>, Failure> {
        let spec = |(plan, budget): &Run| JavaSpec {
            machine: self.machine.clone(),
            recorded: self.recorded.clone(),
            plan: plan.clone(),
            budget: *budget,
            instances: self.a.generations.instances,
            numa: Numa::Local,
            seed: self.a.model.seed,
            pictures: self.a.output.out.is_some(),
        };
        let specs: Vec<JavaSpec> = runs.iter().map(spec).collect();
        let stop = ui::stop_flag();
        let bar = ui::bar_of(specs.len() as u64, "replays", ui::WorkDone::default());
        let so_far = Mutex::new(SoFar::new(specs.len()));
        let watch = |i: usize, progress: Option<&Progress>| {
            let mut so_far = so_far.lock().expect("no holder panics");
            match progress {
                Some(p) => {
                    so_far.note(i, p.accesses, p.now_ns);
                    bar.set_message(format!("{} M accesses", so_far.accesses() / 1_000_000));
                }
                None => {
                    so_far.end(i);
                    bar.inc(1);
                }
            }
            !stop.load(Ordering::Relaxed)
        };
        let workers = ui::workers(self.a.model.jobs);
        let made = compare(&specs, workers, &Keep::nothing(), &watch, &|_, _, _| {});
        bar.finish_and_clear();
        made.into_iter()
            .zip(&specs)
            .map(|(result, spec)| {
                result.map_err(|e| match e {
                    e if e.is_interrupt() => of_run(&e),
                    Error::Run(e) => failed(format!("{}: {e}", spec.plan)),
                    e => files::of_input(&e),
                })
            })
            .collect()
    }
}
