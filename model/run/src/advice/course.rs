//! The course of a run in words: its start-up, and its steady state.

use super::{EQUAL, percent};
use crate::pipeline::Compared;
use crate::steady::Course;

/// What is said of a run without a steady state.
const CHANGING: &str = "No steady state was found: what the program accesses changes to its end, or it takes new memory all along. All \
     figures are of the whole recording, its start-up included.";

/// What part of the run the figures are of, where that is not plain.
pub(crate) fn said<R: Compared>(course: &Course, base: &R, slow: Option<&R>) -> Option<String> {
    match course {
        Course::Changing => Some(CHANGING.into()),
        Course::Unknown | Course::Even | Course::Steady(_) => start_up(base, slow),
    }
}

/// How much of a run, and of the cost of slow memory, is the start-up before the steady state; none if no steady state was found.
fn start_up<R: Compared>(base: &R, slow: Option<&R>) -> Option<String> {
    let steady = base.steady()?;
    let part = format!(
        "Steady state: all figures are of {} of the accesses, and `whole run` is of all. The start-up before it, {}, accesses {} of the \
         pages for the first time",
        percent(steady.share),
        percent(steady.before),
        percent(steady.pages_before),
    );
    let cost = slow.and_then(|slow| {
        let whole = slow.steady()?.whole_seconds - steady.whole_seconds;
        let outside = whole - (slow.seconds - base.seconds);
        // What costs no more than the model's accuracy has no shares.
        (whole > (EQUAL - 1.0) * steady.whole_seconds).then(|| outside / whole)
    });
    Some(match cost {
        Some(share) => format!(
            "{part}: it and the end have {} of what slow memory costs.",
            percent(share.clamp(0.0, 1.0))
        ),
        None => format!("{part}."),
    })
}

/// How much longer all but the steady state takes under a plan, where that differs.
pub(crate) fn start_up_under<R: Compared>(told: &R, base: &R) -> Option<String> {
    let rest = |r: &R| Some(r.steady()?.whole_seconds - r.seconds);
    let ratio = rest(told)? / rest(base)?;
    let differs = !(1.0 / EQUAL..=EQUAL).contains(&(ratio / told.slowdown(base)));
    differs.then(|| {
        format!(
            "Start-up and end take {} more time under `{}`.",
            percent((ratio - 1.0).max(0.0)),
            told.name()
        )
    })
}
