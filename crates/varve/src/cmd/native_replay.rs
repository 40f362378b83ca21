//! What all replays of recorded native programs share: what is named on the command line, and replays side by side.

use super::{files, pages};
use crate::args::run::job::Work;
use crate::args::run::model::{Marked, Windows};
use crate::ui::{self, Failure, failed, of_run, wrong};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tempfile::TempPath;
use varve_machine::Machine;
use varve_machine::model::Progress;
use varve_report::pictures::{By as FlameBy, Flame, Stack};
use varve_run::objects::{
    self, By, ObjectResult, ObjectSpec, PLANS, Placed, Plan, TraceSites, run_objects_in_step,
};
use varve_run::request::SoFar;
use varve_run::{Error, InStep, side_by_side};
use varve_sites::native::{Key, Profile, names};
use varve_sites::{AnyProfile, Counts};
use varve_trace::host::{Extent, RecorderOptions};

/// The machine of native programs where none is named: a current one.
pub const MACHINE: &str = "cxl-spr";
/// Fast memory where none is said, % of what the program takes.
pub use varve_run::objects::live::SHARE;
/// What is run, for a title.
pub fn name(work: &Work) -> String {
    match work {
        Work::Named(path) => varve_run::Work::Trace(path.into()).name(),
        Work::Command(words) => shown(words),
    }
}

/// What has sites in a trace.
pub fn sites(trace: &Path) -> Result<Arc<TraceSites>, Failure> {
    let sites = TraceSites::read(trace).map_err(|e| files::of_input(&e))?;
    match sites.keys.len() <= objects::MOST_SITES {
        true => Ok(Arc::new(sites)),
        false => Err(wrong(format!(
            "{}: {} allocation sites, and at most {} are told apart",
            trace.display(),
            sites.keys.len(),
            objects::MOST_SITES
        ))),
    }
}

/// The plans that a list names; all of those for two memories without one.
pub fn chosen(list: Option<&str>) -> Result<Vec<&'static Plan>, Failure> {
    let able = PLANS.iter().filter(|p| !matches!(p.by, By::Colours));
    let able: Vec<&str> = able.map(|plan| plan.name).collect();
    let named = varve_spec::expand(list.unwrap_or(varve_spec::ALL), &able);
    let able: Vec<&str> = PLANS.iter().map(|plan| plan.name).collect();
    let plan = |name: &String| {
        objects::plan(name).ok_or_else(|| {
            let meant = varve_spec::nearest(name, able.iter().copied());
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            wrong(format!(
                "--plan {name}: there is no such plan for native programs{meant} (there are {})",
                able.join(", ")
            ))
        })
    };
    named.iter().map(plan).collect()
}

/// A profile of a native program.
pub fn profile(path: &Path) -> Result<Profile, Failure> {
    files::exists(
        path,
        "no such profile",
        "make one with `varve profile -o FILE.sites -- COMMAND`",
    )?;
    match AnyProfile::read(path).map_err(wrong)? {
        AnyProfile::Native(profile) => Ok(profile),
        AnyProfile::Managed(_) => Err(wrong(format!(
            "{}: a profile of a WebAssembly program; make one of this program with `varve profile -o FILE.sites -- COMMAND`",
            path.display()
        ))),
        AnyProfile::Java(_) => Err(wrong(format!(
            "{}: a profile of a Java program, whose objects are placed by generation: leave --sites out, and take --plan kg-n",
            path.display()
        ))),
    }
}

/// What of a command is recorded.
pub fn recording(marked: &Marked, windows: &Windows) -> RecorderOptions {
    RecorderOptions {
        marked: marked.marked,
        extent: windows.extent(),
        ..RecorderOptions::default()
    }
}

/// The trace to replay; a command is recorded, and its trace is removed with what comes besides.
pub fn trace(
    work: &Work,
    options: RecorderOptions,
) -> Result<(PathBuf, Option<TempPath>), Failure> {
    match work {
        Work::Named(path) => {
            let option = match options.extent {
                _ if options.marked => "--marked",
                Extent::Whole => "",
                Extent::Sample(_) => "--sample",
                Extent::Window { .. } => "--skip or --for",
            };
            if !option.is_empty() {
                return Err(wrong(format!(
                    "{option} says what of a command is recorded, and {path} is recorded already: leave it out"
                )));
            }
            files::open_trace(Path::new(path))?;
            Ok((path.into(), None))
        }
        Work::Command(words) => {
            let kept = pages::record(words, options)?;
            Ok((kept.to_path_buf(), Some(kept)))
        }
    }
}

/// A command as one writes it.
pub fn shown(words: &[OsString]) -> String {
    let words = words.iter().map(|word| ui::quoted(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

/// Where threads wait, by the calls that lead to memory: in a replay that is `slow`, and in one that is `fast`, if there is one.
pub fn flame(
    title: &str,
    (fast, slow): (Option<&str>, &str),
    keys: &[Key],
    stacks: &[Counts],
) -> Flame {
    let stacks = keys.iter().zip(stacks).map(|(key, counts)| Stack {
        frames: names::calls(key),
        fast_ns: counts.fast_ns,
        slow_ns: counts.slow_ns,
    });
    Flame {
        by: FlameBy::Memory,
        title: title.into(),
        fast: fast.map(String::from),
        slow: slow.into(),
        stacks: stacks.collect(),
    }
}

/// Replays of one trace on one machine, and how far they are.
pub struct Replays<'a> {
    machine: &'a Machine,
    trace: &'a Path,
    sites: Arc<TraceSites>,
    seed: u64,
    jobs: usize,
    /// Whether results have what pictures are made of.
    pictures: bool,
    bar: ProgressBar,
}

impl<'a> Replays<'a> {
    pub fn of(
        machine: &'a Machine,
        trace: &'a Path,
        sites: &Arc<TraceSites>,
        seed: u64,
        jobs: usize,
        pictures: bool,
    ) -> Replays<'a> {
        Replays {
            machine,
            trace,
            sites: sites.clone(),
            seed,
            jobs,
            pictures,
            bar: ui::bar_of(0, "replays", ui::WorkDone::default()),
        }
    }

    /// There are no more.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }

    pub fn specs<'n>(
        &self,
        placed: impl IntoIterator<Item = (&'n str, Placed)>,
        budget: Option<u64>,
        by_site: bool,
    ) -> Vec<ObjectSpec> {
        let spec = |(plan, placed): (&str, Placed)| ObjectSpec {
            machine: self.machine.clone(),
            trace: self.trace.into(),
            sites: self.sites.clone(),
            plan: plan.into(),
            placed,
            budget,
            seed: self.seed,
            by_site,
            pictures: self.pictures,
        };
        placed.into_iter().map(spec).collect()
    }

    /// Makes them, all or none.
    pub fn make(&self, specs: Vec<ObjectSpec>) -> Result<Vec<ObjectResult>, Failure> {
        let stop = ui::stop_flag();
        self.bar.inc_length(specs.len() as u64);
        let so_far = Mutex::new(SoFar::new(specs.len()));
        let watch = |i: usize, progress: Option<&Progress>| {
            let mut so_far = so_far.lock().expect("no holder panics");
            match progress {
                Some(p) => {
                    so_far.note(i, p.accesses, p.now_ns);
                    self.bar
                        .set_message(format!("{} M accesses", so_far.accesses() / 1_000_000));
                }
                None => {
                    so_far.end(i);
                    self.bar.inc(1);
                }
            }
            !stop.load(Ordering::Relaxed)
        };
        let workers = ui::workers(self.jobs);
        let in_step = InStep::of(specs.iter().map(|spec| Some(spec.replayed())), workers);
        let open = in_step.open(specs.len(), workers);
        let made = side_by_side(specs.len(), open, &watch, |i, go_on| {
            run_objects_in_step(&specs[i], &in_step, go_on)
        });
        made.into_iter()
            .zip(&specs)
            .map(|(result, spec)| {
                result.map_err(|e: Error| match e {
                    e if e.is_interrupt() => of_run(&e),
                    Error::Run(e) => failed(format!("{}: {e}", spec.plan)),
                    e => files::of_input(&e),
                })
            })
            .collect()
    }
}
