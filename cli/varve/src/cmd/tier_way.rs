//! Parts of `varve tier` that nodes and frames share: how and how often accesses are observed, and the report at the end.

use super::live::ended;
use super::tier_said::{as_json, end, say};
use crate::args::tier::TierArgs;
use crate::ui::{Done, Failure, failed, print, stop_flag, wrong};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use varve_live::nodes::Kinds;
use varve_live::tier::{Target, TierError, TierOptions, TierReport, Way, first_way, rivals};
use varve_tier::pages::Wants;

/// Between two intervals of a policy that has no daemon: new pages are placed.
const PERIOD: Duration = Duration::from_secs(1);
/// The shortest interval: the kernel's monitor reports no sooner, so that more frequent scans would find nothing new.
const SHORTEST: Duration = Duration::from_millis(10);

/// The time between two intervals, of which a policy says something or not.
fn period(spec: &str, said: Option<u64>) -> Result<Duration, Failure> {
    match said.map_or(PERIOD, Duration::from_nanos) {
        period if period < SHORTEST => Err(wrong(format!(
            "--policy {spec}: the shortest period of a live policy is 10ms"
        ))),
        period => Ok(period),
    }
}

/// Options that hold for nodes and for frames alike; of nodes nothing is said.
pub(super) fn options<'a>(
    a: &TierArgs,
    policy: &'a str,
    wants: &Wants,
    stop: &'a AtomicBool,
) -> Result<TierOptions<'a>, Failure> {
    let period = period(policy, wants.period)?;
    let way = match (wants.uses, a.observe) {
        (true, _) => Some(way(a)?),
        (false, None) => None,
        (false, Some(_)) => {
            return Err(wrong(format!(
                "--observe: page policy {policy} does not use accesses: leave --observe out"
            )));
        }
    };
    Ok(TierOptions {
        policy,
        kinds: Kinds {
            fast: Vec::new(),
            slow: Vec::new(),
        },
        fast_bytes: None,
        page_bytes: a.page.map(|bytes| bytes.0),
        way,
        period,
        rate: a.rate.0,
        core: a.core,
        hold: a.hold,
        time: a.time,
        stop,
        name: None,
        heat: None,
        say: &note,
        beat: &|| (),
    })
}

/// Says something while it runs.
fn note(line: &str) {
    say(&[format!("note: {line}")]);
}

/// Notes on others who migrate pages.
///
/// # Errors
/// One of them would undo what is done here, and the user has not said that it may.
pub(super) fn beside_others(a: &TierArgs) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    for rival in rivals(Path::new("/")) {
        match rival.fights && !a.beside {
            true => {
                return Err(wrong(format!(
                    "{}; or run beside it with --beside",
                    rival.line
                )));
            }
            false => notes.push(rival.line),
        }
    }
    Ok(notes)
}

/// Prints the report.
pub(super) fn told(a: &TierArgs, spec: &str, report: Result<TierReport, TierError>) -> Done {
    let report = report.map_err(|error| match error {
        TierError::Refused { .. } | TierError::Unseen { .. } | TierError::Frames(_) => {
            failed(error)
        }
        _ => wrong(error),
    })?;
    match a.json {
        true => print(serde_json::to_string_pretty(&as_json(spec, &report)).unwrap_or_default()),
        false => say(&end(&report)),
    }
    match report.status {
        Some(status) => ended(&status),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Ctrl-C is a command's own; otherwise it is for us.
pub(super) fn stop_flag_unless_command(
    target: &Target,
) -> std::sync::Arc<std::sync::atomic::AtomicBool> {
    match target {
        Target::Command(_) => std::sync::Arc::default(),
        _ => stop_flag(),
    }
}

/// The way to see what is in use: the one that was asked for, or the first that there is.
fn way(a: &TierArgs) -> Result<Way, Failure> {
    let Some(way) = a.observe else {
        return first_way()
            .map_err(|why| failed(format!("no way to observe accesses works here: {why}")));
    };
    match way.why_not() {
        None => Ok(way),
        Some(why) => Err(failed(format!(
            "--observe {way}: {why}; without --observe, the first way that works is used"
        ))),
    }
}
