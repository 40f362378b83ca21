//! Points that are missing, run beside each other.

use super::child::{self, Failed};
use super::point::{Keys, words};
use super::spec::Sweep;
use crate::ui;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use varve_run::Keep;

/// The outcomes of the points that were run.
#[derive(Default)]
pub struct Outcome {
    pub stopped: bool,
    /// Number and reason.
    pub failed: Vec<(usize, String)>,
    /// A result could not be kept.
    pub lost: Option<String>,
}

/// Runs points by their numbers, and keeps each as soon as it is done.
pub fn run(sweep: &Sweep, keep: &Keep, keys: &Keys, missing: &[usize], workers: usize) -> Outcome {
    let stop = ui::stop_flag();
    let bar = ui::bar(missing.len() as u64, "points");
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new(Outcome::default());
    let lost = || outcome.lock().expect("no holder panics").lost.is_some();
    let stopped = || stop.load(Ordering::Relaxed);
    let worker = || {
        while let Some(&number) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stopped() || lost() {
                return;
            }
            let words = words(sweep, number);
            let done = child::run(&words, &sweep.folder, &stopped);
            let mut outcome = outcome.lock().expect("no holder panics");
            let key = keys.of(&words);
            let kept = match done {
                Ok(mut report) => {
                    // The merged charts and tables are made from the runs.
                    report.charts.clear();
                    report.details.clear();
                    keep.put(&key, &report)
                }
                Err(Failed::Stopped) => return,
                Err(Failed::Because(why)) => {
                    let kept = keep.put_failure(&key, &why);
                    outcome.failed.push((number, why));
                    kept
                }
            };
            if let Err(why) = kept {
                outcome.lost.get_or_insert(why.to_string());
            }
            bar.inc(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.min(missing.len()) {
            scope.spawn(worker);
        }
    });
    bar.finish_and_clear();
    let mut outcome = outcome.into_inner().expect("no holder panics");
    outcome.stopped = stopped();
    outcome.failed.sort();
    outcome
}
