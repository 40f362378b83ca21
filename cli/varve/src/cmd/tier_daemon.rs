//! `varve tier --config`: several control groups with budgets of their own; and measurements of any `varve tier`.

use super::tier_said::{end, nodes_line, size};
use super::tier_way::beside_others;
use crate::args::tier::TierArgs;
use crate::ui::{Done, Failure, failed, message, print, stop_and_reload, wrong};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use varve_live::nodes::Kinds;
use varve_live::tier::{Begun, TierOptions, TierReport, members};
use varve_tier::daemon::{
    DaemonLog, Endpoint, MetricsListener, Plan, Severity, Signals, metrics, own_states, plans,
    read, run,
};

pub fn tier(a: &TierArgs, file: &Path) -> Done {
    let config = read(file).map_err(wrong)?;
    if a.check {
        let plans = plans(&config).map_err(wrong)?;
        plans.iter().for_each(|plan| print(checked(plan)));
        return Ok(ExitCode::SUCCESS);
    }
    let (stop, reload) = stop_and_reload();
    let told = Log::new();
    for note in beside_others(a)? {
        told.say(Severity::Warning, None, &note);
    }
    let told: Arc<dyn DaemonLog> = Arc::new(told);
    run(file, a.metrics.as_ref(), &Signals { stop, reload }, &told).map_err(wrong)?;
    Ok(ExitCode::SUCCESS)
}

/// What a group would have, in a few lines.
fn checked(plan: &Plan) -> String {
    let processes = match members(&plan.folder()).len() {
        0 if plan.folder().is_dir() => "no processes".into(),
        0 => "does not exist".into(),
        1 => "1 process".into(),
        many => format!("{many} processes"),
    };
    let observed = plan
        .way
        .map_or("not at all; the policy does not use accesses", |way| {
            way.name()
        });
    format!(
        "{}\n  control group: {} ({processes})\n  fast memory:   {} on node {}\n  policy:        {}\n  observed by:   {observed}\n  limits:        {} migrated per second, {:.2} % of a core",
        plan.group.name,
        plan.group.cgroup,
        size(plan.fast),
        Kinds::list(&plan.kinds.fast),
        plan.spec,
        size(plan.rate),
        100.0 * plan.core,
    )
}

/// Lines on standard error; with their levels where the journal reads them.
struct Log {
    journal: bool,
}

impl Log {
    fn new() -> Log {
        Log {
            journal: std::env::var_os("JOURNAL_STREAM").is_some(),
        }
    }
}

impl DaemonLog for Log {
    fn say(&self, level: Severity, group: Option<&str>, line: &str) {
        // Levels of syslog(3), as sd-daemon(3) has them at the beginning of a line.
        let (number, word) = match level {
            Severity::Error => (3, "error: "),
            Severity::Warning => (4, "note: "),
            Severity::Info => (6, ""),
        };
        let group = group.map_or(String::new(), |group| {
            format!("{}: ", varve_spec::shown_name(group))
        });
        match self.journal {
            true => message!("<{number}>{group}{line}"),
            false => message!("varve: {group}{word}{line}"),
        }
    }

    fn begun(&self, group: &str, spec: &str, options: &TierOptions, begun: &Begun) {
        let say = |level, line: &str| self.say(level, Some(group), line);
        say(Severity::Info, &nodes_line(spec, options, begun));
        if let Some(way) = options.way {
            say(
                Severity::Info,
                &format!("observed by {way}: {}", way.words()[0]),
            );
        }
        for note in &begun.notes {
            say(Severity::Warning, note);
        }
    }

    fn ended(&self, group: &str, report: &TierReport) {
        for line in end(report) {
            match line.strip_prefix("note: ") {
                Some(note) => self.say(Severity::Warning, Some(group), note),
                None => self.say(Severity::Info, Some(group), &line),
            }
        }
    }
}

/// Answers those who ask for measurements, until it is dropped.
pub struct Measured {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Between two looks for requests.
const EVERY: Duration = Duration::from_millis(100);

impl Measured {
    /// Begins to answer at an address.
    pub fn at(endpoint: &Endpoint, kinds: Kinds) -> Result<Measured, Failure> {
        let listener = MetricsListener::begin(endpoint).map_err(wrong)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stops = stop.clone();
        let answer = move || {
            while !stops.load(Ordering::Relaxed) {
                listener.answer(&|| metrics(&own_states(), &kinds, Path::new("/")));
                std::thread::sleep(EVERY);
            }
        };
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(answer)
            .map_err(failed)?;
        Ok(Measured {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
