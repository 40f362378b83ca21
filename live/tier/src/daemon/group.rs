//! The thread of one group: waits for processes, tiers them until they have ended, and waits again.

use super::config::GroupConfig;
use super::{DaemonLog, Severity};
use crate::pages::{PagePolicy, Wants, live_spec, wants};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use varve_live::cgroups;
use varve_live::nodes::Kinds;
use varve_live::tier::{Target, TierError, TierOptions, Way, members, state_folder, tier};
use varve_pages::policies::{Live, entry};

/// Between two looks for processes.
const EVERY: Duration = Duration::from_millis(500);
/// Between two tries, where a group cannot be tiered.
const AGAIN: Duration = Duration::from_secs(30);
/// Where control groups usually are.
const GROUPS: &str = "/sys/fs/cgroup";

/// A group, and what it may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The group.
    pub group: GroupConfig,
    /// Its fast memory, bytes.
    pub fast: u64,
    /// Limit of its migration, bytes per second.
    pub rate: u64,
    /// Its CPU budget, as a share of one core.
    pub core: f64,
    /// Which nodes are fast and slow.
    pub kinds: Kinds,
    /// How accesses are observed; `None`: the policy does not need them.
    pub way: Option<Way>,
    /// Its policy, with the parameters of this machine.
    pub spec: String,
    /// Time between two intervals.
    pub period: Duration,
}

impl Plan {
    /// The folder of its control group.
    pub fn folder(&self) -> PathBuf {
        folder(&self.group)
    }
}

/// The folder of a group.
pub fn folder(group: &GroupConfig) -> PathBuf {
    let top = cgroups::top().unwrap_or_else(|| GROUPS.into());
    top.join(&group.cgroup)
}

/// Bytes of a group that the kernel protects from reclaim: the larger of `memory.min` and `memory.low`.
pub fn protected(group: &GroupConfig) -> u64 {
    let read = |file: &str| {
        let text = std::fs::read_to_string(folder(group).join(file)).unwrap_or_default();
        text.trim().parse::<u64>().unwrap_or(0)
    };
    read("memory.min").max(read("memory.low"))
}

/// The policy of a group as it is used here, the time between two intervals, and whether it goes by accesses.
///
/// # Errors
/// A line: the policy does not go with a daemon.
pub fn policy(group: &GroupConfig) -> Result<(String, Duration, bool), String> {
    let of = || -> Result<(String, Duration, bool), String> {
        let spec = live_spec(&group.policy)?;
        if entry(&spec).map_err(|e| e.to_string())?.live == Live::Frames {
            return Err(format!(
                "page policy {} chooses frames of the whole machine: `varve tier --policy {} --cgroup {}` does it",
                group.policy, group.policy, group.cgroup
            ));
        }
        let Wants { period, uses, .. } = wants(&spec, false)?;
        let period = period.map_or(Duration::from_secs(1), Duration::from_nanos);
        if period < Duration::from_millis(10) {
            return Err("the shortest period of a live policy is 10ms".into());
        }
        if !uses && group.observe.is_some() {
            return Err(format!(
                "page policy {} does not use accesses: leave `observe` out",
                group.policy
            ));
        }
        Ok((spec, period, uses))
    };
    of().map_err(|why| format!("group `{}`: {why}", group.name))
}

/// A group's name as a part of a file's name.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars()
        .map(|c| if plain(c) { c } else { '~' })
        .take(200)
        .collect()
}

/// A thread's signals: what it is told, and that it is alive.
#[derive(Clone, Debug, Default)]
pub struct Signs {
    /// Set to end it.
    pub stop: Arc<AtomicBool>,
    /// Milliseconds from the daemon's start to when it was seen last.
    pub seen: Arc<AtomicU64>,
}

/// Works for one group until it is told to stop.
pub fn work(plan: &Plan, signs: &Signs, began: Instant, told: &dyn DaemonLog) {
    let name = &plan.group.name;
    let folder = plan.folder();
    let beat = || {
        let now = began.elapsed().as_millis() as u64;
        signs.seen.store(now, Ordering::Relaxed);
    };
    let stopped = || signs.stop.load(Ordering::Relaxed);
    let wait = |time: Duration| {
        let until = Instant::now() + time;
        while !stopped() && Instant::now() < until {
            beat();
            std::thread::sleep(EVERY.min(Duration::from_millis(100)));
        }
    };
    // Beside the state that `varve top` shows: what is there vanishes when the machine starts anew, as processes do.
    let heat = state_folder(Path::new("/"))
        .map(|folder| folder.join(format!("heat-{}.json", file_name(name))));
    let mut is_told = false;
    while !stopped() {
        beat();
        if members(&folder).is_empty() {
            if !is_told {
                let why = match folder.is_dir() {
                    true => "has no processes",
                    false => "does not exist",
                };
                let line = format!("control group {} {why}: waits for it", plan.group.cgroup);
                told.say(Severity::Info, Some(name), &line);
                is_told = true;
            }
            wait(EVERY);
            continue;
        }
        is_told = false;
        let say = |line: &str| told.say(Severity::Warning, Some(name), line);
        let options = TierOptions {
            policy: &plan.spec,
            kinds: plan.kinds.clone(),
            fast_bytes: Some(plan.fast),
            page_bytes: plan.group.page,
            way: plan.way,
            period: plan.period,
            rate: plan.rate,
            core: plan.core,
            hold: plan.group.hold,
            time: None,
            stop: &signs.stop,
            name: Some(name),
            heat: heat.as_deref(),
            say: &say,
            beat: &beat,
        };
        let target = Target::Groups(vec![folder.clone()]);
        let run = || {
            tier(
                &target,
                &options,
                |room| PagePolicy::new(&plan.spec, room),
                |begun| told.begun(name, &plan.spec, &options, begun),
            )
        };
        // A run's CPU budget is by the processor time of its thread: one thread for all runs would owe what earlier ones took.
        let report = std::thread::scope(|scope| scope.spawn(run).join());
        let Ok(report) = report else {
            let line = format!("its run has panicked; begins anew in {} s", AGAIN.as_secs());
            told.say(Severity::Error, Some(name), &line);
            wait(AGAIN);
            continue;
        };
        match report {
            Ok(report) => told.ended(name, &report),
            // It has just ended.
            Err(TierError::Empty(_) | TierError::Gone(_)) => {}
            Err(error) => {
                let line = format!("{error}; tries again in {} s", AGAIN.as_secs());
                told.say(Severity::Error, Some(name), &line);
                wait(AGAIN);
            }
        }
        wait(EVERY);
    }
}
