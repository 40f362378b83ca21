//! Bars with the time that is left on a terminal, and a line now and then for long work elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much of some work is done, and when that was so. Clones are of the same work.
///
/// Between two pieces nothing is known to be done, so that a rate by the clock would fall and the time that is left grow without
/// end. Here the rate is that of the last time that something was done, and the time since is taken off.
#[derive(Clone, Default)]
pub struct WorkDone(Arc<Mutex<Known>>);

/// The known progress.
#[derive(Default)]
struct Known {
    share: f64,
    after: Duration,
    /// Total number of pieces, as far as it is known.
    pieces: u64,
}

impl WorkDone {
    /// So much is done, from 0 to 1, `after` the beginning. Less than before says nothing.
    pub fn note(&self, share: f64, after: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if share > known.share && share.is_finite() {
            known.share = share.min(1.0);
            known.after = after;
        }
    }

    /// `done` of `pieces` pieces are done. If the total grows, the share shrinks.
    pub fn count(&self, done: u64, pieces: u64, after: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.pieces != pieces {
            known.pieces = pieces;
            known.share = 0.0;
        }
        drop(known);
        self.note(done as f64 / pieces.max(1) as f64, after);
    }

    /// The time that is left, `now` after the beginning. `None` before some of the work is done.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        /// From here on the rate says something.
        const ENOUGH: f64 = 0.01;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (share, after) = (known.share, known.after);
        let left = (share >= ENOUGH).then(|| after.mul_f64((1.0 - share) / share))?;
        Some(left.saturating_sub(now.saturating_sub(after)))
    }
}

/// A time that is left, in words.
fn words(left: Option<Duration>) -> String {
    match left.map(|left| left.as_secs()) {
        None => "?".into(),
        Some(0) => "a moment".into(),
        Some(s @ 1..120) => format!("{s} s"),
        Some(s @ 120..7200) => format!("{} m", (s + 30) / 60),
        Some(s) => format!("{} h", (s + 1800) / 3600),
    }
}

/// A bar over `len` pieces of work.
pub fn bar(len: u64, what: &str) -> ProgressBar {
    bar_of(len, what, WorkDone::default())
}

/// A bar over `len` pieces of work of which parts are known to be done, too.
pub fn bar_of(len: u64, what: &str, done: WorkDone) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr_with_hz(8));
    let style = ProgressStyle::with_template(
        "{prefix} [{bar:16}] {pos}/{len}  {elapsed} (left {left})  {wide_msg}",
    );
    let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        done.count(state.pos(), state.len().unwrap_or(0), state.elapsed());
        let _ = out.write_str(&words(done.left(state.elapsed())));
    };
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> ").with_key("left", left));
    }
    bar.set_prefix(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Lines about a bar that no terminal shows, as in a log: one a minute.
pub struct Lines {
    done: WorkDone,
    begun: Instant,
    told: Mutex<Instant>,
}

impl Lines {
    const EACH: Duration = Duration::from_secs(60);

    pub fn begin() -> Lines {
        let begun = Instant::now();
        Lines {
            done: WorkDone::default(),
            begun,
            told: Mutex::new(begun),
        }
    }

    /// The bar has moved.
    pub fn moved(&self, bar: &ProgressBar) {
        let (done, all) = (bar.position(), bar.length().unwrap_or(0));
        let spent = self.begun.elapsed();
        self.done.count(done, all, spent);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if bar.is_hidden() && told.elapsed() >= Lines::EACH {
            *told = Instant::now();
            let line = line(&bar.prefix(), done, all, spent, self.done.left(spent));
            crate::ui::message!("{line}");
        }
    }
}

fn line(what: &str, done: u64, all: u64, spent: Duration, left: Option<Duration>) -> String {
    let spent = words(Some(spent));
    let left = left.map_or(String::new(), |left| {
        format!(", {} left", words(Some(left)))
    });
    format!("{what}: {done} of {all} in {spent}{left}")
}

/// A spinner for work of unknown duration.
pub fn spinner(what: &str) -> ProgressBar {
    spinner_with(what, String::new)
}

/// The same with a message that is refreshed periodically.
pub fn spinner_with(
    what: &str,
    look: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
    let seen = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = out.write_str(&look());
    };
    let style = ProgressStyle::with_template("{prefix} {spinner} {elapsed}  {seen}{wide_msg}");
    if let Ok(style) = style {
        bar.set_style(style.with_key("seen", seen));
    }
    bar.set_prefix(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn the_time_that_is_left_does_not_grow_while_nothing_is_reported() {
        let done = WorkDone::default();
        assert_eq!(done.left(S(30)), None);
        done.note(0.5, S(60));
        assert_eq!(done.left(S(60)), Some(S(60)));
        let mut before = S(60);
        for now in 61..300 {
            let left = done.left(S(now)).unwrap();
            assert!(left <= before, "{now}: {left:?}");
            before = left;
        }
        assert_eq!(before, S(0));
        assert_eq!(words(Some(before)), "a moment");
    }

    #[test]
    fn work_that_turns_out_to_be_more_takes_longer() {
        let done = WorkDone::default();
        done.count(60, 60, S(30));
        assert_eq!(done.left(S(30)), Some(S(0)));
        done.count(60, 120, S(30));
        assert_eq!(done.left(S(30)), Some(S(30)));
        done.count(90, 120, S(60));
        assert_eq!(done.left(S(60)), Some(S(20)));
    }

    #[test]
    fn a_log_has_a_line_of_what_is_done() {
        assert_eq!(
            line("pima", 30, 120, S(300), Some(S(900))),
            "pima: 30 of 120 in 5 m, 15 m left"
        );
        assert_eq!(line("pima", 0, 120, S(61), None), "pima: 0 of 120 in 61 s");
    }

    #[test]
    fn work_that_goes_on_evenly_is_told_exactly() {
        let done = WorkDone::default();
        for s in 1..100 {
            done.note(s as f64 / 100.0, S(s));
            let left = done.left(S(s)).unwrap().as_secs_f64();
            assert!((left - (100 - s) as f64).abs() < 1e-6, "{s}: {left}");
        }
        done.note(0.2, S(200));
        assert_eq!(
            done.left(S(99)),
            Some(S(1)),
            "less than before says nothing"
        );
    }
}
