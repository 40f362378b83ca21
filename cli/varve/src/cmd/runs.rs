//! Runs of a comparison, made side by side: how far they are while they go on, and what came of them.

use crate::ui::{self, Failure, of_run};
use indicatif::ProgressBar;
use std::ops::Deref;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use varve_machine::model::Progress;
use varve_report::fmt;
use varve_run::request::SoFar;
use varve_run::{Compared, Comparison, Ended, Error, Keep, Of, Spec, answer, compare};
use varve_trace::End;

/// Runs with their names, and how far they are.
pub struct RunProgress {
    names: Vec<String>,
    jobs: usize,
    /// On the terminal.
    pub bar: ProgressBar,
    done: ui::WorkDone,
    so_far: Mutex<SoFar>,
}

impl RunProgress {
    /// RunProgress with these names, `jobs` at a time. `accesses` is the number of accesses of a recorded program.
    pub fn new(names: Vec<String>, jobs: usize, accesses: Option<u64>) -> RunProgress {
        let done = ui::WorkDone::default();
        RunProgress {
            jobs,
            bar: ui::bar_of(names.len() as u64, "runs", done.clone()),
            done,
            so_far: Mutex::new(SoFar::of_length(names.len(), accesses)),
            names,
        }
    }

    /// Makes some of them, of which the first is number `from` of all. `ended` gets each when it has ended. Runs that end at a time,
    /// `until_ns`, are as far as their time is.
    pub fn make<S: Spec<Result: Compared>>(
        &self,
        specs: &[S],
        from: usize,
        until_ns: Option<u64>,
        ended: Ended<S>,
    ) -> Vec<Result<S::Result, Error>> {
        // Before the first run has come far enough to ask for it.
        let stop = ui::stop_flag();
        let watch = |i: usize, progress: Option<&Progress>| {
            self.note(from + i, progress, until_ns);
            !stop.load(Ordering::Relaxed)
        };
        let ended = |i: usize, result: &S::Result, end: Option<&S::End>| {
            ended(from + i, result, end);
            self.bar.println(format!(
                "{}: {} of the machine's time",
                self.names[from + i],
                fmt::duration_ns(result.seconds * 1e9)
            ));
        };
        let workers = ui::workers(self.jobs);
        compare(specs, workers, &Keep::nothing(), &watch, &ended)
    }

    fn note(&self, run: usize, progress: Option<&Progress>, until_ns: Option<u64>) {
        let mut so_far = self.so_far.lock().expect("no holder panics");
        match progress {
            Some(p) => {
                so_far.note(run, p.accesses, p.now_ns);
                self.bar.set_message(self.message(&so_far));
            }
            None => {
                so_far.end(run);
                self.bar.inc(1);
            }
        }
        self.done.note(so_far.share(until_ns), self.bar.elapsed());
    }

    /// The progress of running runs: the first one's time, or the slowdown against the first one at the same number of accesses.
    fn message(&self, so_far: &SoFar) -> String {
        let of = |run: usize| {
            let name = &self.names[run];
            match so_far.beside_first(run).filter(|_| run > 0) {
                Some(ratio) => format!("{name} {ratio:.2}x"),
                None => format!("{name} {}", fmt::duration_ns(so_far.ns(run) as f64)),
            }
        };
        let runs: Vec<String> = so_far.going_on().map(of).collect();
        format!("{} so far", runs.join(", "))
    }
}

/// Makes all runs of a comparison.
pub fn all<C: Comparison>(
    comparison: &mut C,
    jobs: usize,
    accesses: Option<u64>,
) -> Result<Vec<Result<Of<C>, Error>>, Error> {
    let runs = RunProgress::new(comparison.names(), jobs, accesses);
    let made = answer(comparison, |specs, from| {
        runs.make(specs, from, None, &|_, _, _| {})
    });
    runs.bar.finish_and_clear();
    made
}

/// The outcomes of runs, and the command's exit code.
pub struct Outcomes<R> {
    came: varve_run::Outcomes<R>,
    /// A line for each that was not made.
    pub not_run: Vec<String>,
    /// The exit code of the program that was recorded for them.
    program: u8,
}

/// Dereferences to the runs' outcomes without the exit code.
impl<R> Deref for Outcomes<R> {
    type Target = varve_run::Outcomes<R>;

    fn deref(&self) -> &varve_run::Outcomes<R> {
        &self.came
    }
}

impl<R: Compared> Outcomes<R> {
    /// Separates the results of a comparison's runs from failures; `say` prints why a run failed.
    ///
    /// # Errors
    /// Nothing came of what was asked for; or a user has ended it.
    pub fn of<C: Comparison<Spec: Spec<Result = R>>>(
        comparison: &C,
        answers: Vec<Result<R, Error>>,
        say: impl Fn(usize, &Error) -> Failure,
    ) -> Result<Outcomes<R>, Failure> {
        let came = varve_run::Outcomes::of(comparison, answers);
        if let Some(ended) = came.failed.iter().find(|run| run.why.is_interrupt()) {
            return Err(of_run(&ended.why));
        }
        let why = came
            .failed
            .iter()
            .map(|run| (&run.name, say(run.run, &run.why)));
        let failed: Vec<(&String, Failure)> = why.collect();
        if came.is_nothing() {
            return Err(none(failed));
        }
        let line = |(name, why): (&String, Failure)| match why {
            Failure::Line { line, .. } => Some(format!("Not run: {name}: {line}")),
            Failure::Quiet(_) => None,
        };
        Ok(Outcomes {
            not_run: failed.into_iter().filter_map(line).collect(),
            came,
            program: 0,
        })
    }

    /// The same of a command that was recorded now, and ended so.
    pub fn of_command(mut self, end: Option<&End>) -> Outcomes<R> {
        self.program = end.map_or(0, exit_code);
        self
    }

    /// How the command ends: a run that was asked for by name and not made is a failure; else as the program has ended.
    pub fn code(&self) -> ExitCode {
        match self.has_missed() {
            true => ExitCode::FAILURE,
            false => ExitCode::from(self.program),
        }
    }
}

/// The exit code of a program as shells have it: that of its own, or 128 and the signal that ended it.
pub fn exit_code(end: &End) -> u8 {
    match (end.exit_code, end.signal) {
        (_, Some(signal)) => 128u8.wrapping_add(signal as u8),
        // As everywhere, what does not fit a byte loses its upper bits.
        (code, None) => code.unwrap_or(0) as u8,
    }
}

/// No run ended well: what all say alike is said once.
fn none(failed: Vec<(&String, Failure)>) -> Failure {
    let (mut lines, mut codes) = (Vec::new(), Vec::new());
    for (name, why) in failed {
        match why {
            Failure::Line { code, line } => {
                lines.push((name, line));
                codes.push(code);
            }
            quiet => return quiet,
        }
    }
    let same = |pair: &[(&String, String)]| pair[0].1 == pair[1].1;
    let line = match lines.windows(2).all(same) {
        true => lines.swap_remove(0).1,
        false => {
            let named = lines.iter().map(|(name, line)| format!("{name}: {line}"));
            named.collect::<Vec<_>>().join("\nvarve: ")
        }
    };
    let code = match codes.windows(2).all(|pair| pair[0] == pair[1]) {
        true => codes[0],
        false => 1,
    };
    Failure::Line { code, line }
}
