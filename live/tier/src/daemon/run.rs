//! All groups of a daemon: starts them, answers those who measure, and takes a changed file in.

use super::budgets::{Wish, divide};
use super::config::{Config, GroupConfig, read};
use super::endpoint::{Endpoint, MetricsListener};
use super::group::{Plan, Signs, folder, policy, protected, work};
use super::{DaemonLog, Severity, metrics};
use sd_notify::NotifyState;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use varve_live::nodes::Kinds;
use varve_live::probe::Topology;
use varve_live::tier::{TierState, Way, fast_bytes, first_way, members, states};

/// Between two looks at signals, requests and threads.
const EVERY: Duration = Duration::from_millis(100);
/// A thread that was not seen for so long hangs: the watchdog is not told that all is well.
const HANGS: Duration = Duration::from_secs(600);

/// What a daemon is asked to do while it runs.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Set to end it.
    pub stop: Arc<AtomicBool>,
    /// Set to read its file anew.
    pub reload: Arc<AtomicBool>,
}

/// Nodes that a file names, or that this machine has.
///
/// # Errors
/// A line: there is nothing to tier between.
fn kinds(config: &Config) -> Result<Kinds, String> {
    let (topology, _) = Topology::read(Path::new("/"));
    match &config.nodes {
        Some(given) => {
            Kinds::parse(given, &topology).map_err(|why| format!("nodes = \"{given}\": {why}"))
        }
        None => Kinds::probe(&topology).map_err(|why| format!("nothing to tier: {why}")),
    }
}

/// What each group of a file may have on this machine now.
///
/// # Errors
/// A line: more fast memory is wanted than there is, or a group's accesses cannot be observed as its file has it.
pub fn plans(config: &Config) -> Result<Vec<Plan>, String> {
    let kinds = kinds(config)?;
    let processes: BTreeSet<u32> = config
        .groups
        .iter()
        .flat_map(|group| members(&folder(group)))
        .collect();
    let there = fast_bytes(&processes, &kinds);
    let all = config.fast.unwrap_or(there);
    let wishes = |protected: fn(&GroupConfig) -> u64| -> Vec<Wish> {
        let groups = config.groups.iter();
        groups
            .map(|group| Wish::of(group, protected(group)))
            .collect()
    };
    // What the kernel protects may be in slow memory as well, so that it is no mistake if all of it is more than fast memory.
    let budgets = divide(all, &wishes(protected)).or_else(|_| divide(all, &wishes(|_| 0)))?;
    let mut first: Option<Way> = None;
    let weights: u64 = config.groups.iter().map(|group| group.weight).sum();
    let mut plans = Vec::new();
    for (group, fast) in config.groups.iter().zip(budgets) {
        let (spec, period, uses) = policy(group)?;
        let part = group.weight as f64 / weights as f64;
        plans.push(Plan {
            fast,
            rate: match config.dry_run {
                true => 0,
                false => (config.rate as f64 * part) as u64,
            },
            core: config.core * part,
            kinds: kinds.clone(),
            way: match uses {
                true => Some(way(group, &mut first)?),
                false => None,
            },
            spec,
            period,
            group: group.clone(),
        });
    }
    Ok(plans)
}

/// The way that a group wants, or the first that works here, which is looked for once.
fn way(group: &GroupConfig, first: &mut Option<Way>) -> Result<Way, String> {
    if let Some(way) = group.observe {
        return match way.why_not() {
            None => Ok(way),
            Some(why) => Err(format!(
                "group `{}`: observe = \"{way}\": {why}",
                group.name
            )),
        };
    }
    if let Some(way) = *first {
        return Ok(way);
    }
    let way = first_way().map_err(|why| format!("no way to observe accesses works here: {why}"))?;
    *first = Some(way);
    Ok(way)
}

/// A group at work.
struct Running {
    plan: Plan,
    signs: Signs,
    thread: JoinHandle<()>,
}

impl Running {
    fn start(plan: Plan, began: Instant, told: &Arc<dyn DaemonLog>) -> Result<Running, String> {
        let signs = Signs::default();
        let now = began.elapsed().as_millis() as u64;
        signs.seen.store(now, Ordering::Relaxed);
        let (own, its, told) = (plan.clone(), signs.clone(), told.clone());
        let thread = std::thread::Builder::new()
            .name(plan.group.name.chars().take(15).collect())
            .spawn(move || work(&own, &its, began, &*told))
            .map_err(|e| format!("group `{}`: cannot start a thread: {e}", plan.group.name))?;
        Ok(Running {
            plan,
            signs,
            thread,
        })
    }

    fn is_seen(&self, began: Instant) -> bool {
        let seen = Duration::from_millis(self.signs.seen.load(Ordering::Relaxed));
        began.elapsed().saturating_sub(seen) < HANGS
    }
}

/// Ends some groups: all are told first.
fn end(some: Vec<Running>, told: &dyn DaemonLog) {
    for one in &some {
        one.signs.stop.store(true, Ordering::Relaxed);
    }
    for one in some {
        if one.thread.join().is_err() {
            let name = one.plan.group.name;
            told.say(Severity::Error, Some(&name), "its thread has panicked");
        }
    }
}

/// Runs a daemon until it is told to stop. `endpoint` is used where the file names none.
///
/// # Errors
/// A line: the file is wrong, or the endpoint is in use. Once it runs, what is wrong is told and the rest goes on.
pub fn run(
    file: &Path,
    endpoint: Option<&Endpoint>,
    signals: &Signals,
    told: &Arc<dyn DaemonLog>,
) -> Result<(), String> {
    let began = Instant::now();
    let mut config = read(file)?;
    let first = plans(&config)?;
    let address = |config: &Config| config.metrics.clone().or_else(|| endpoint.cloned());
    let mut listener = match address(&config) {
        Some(at) => Some((MetricsListener::begin(&at)?, at)),
        None => None,
    };
    let mut kinds = first.first().map(|plan| plan.kinds.clone());
    let mut running = Vec::new();
    for plan in first {
        running.push(Running::start(plan, began, told)?);
    }
    if let Some(kinds) = &kinds
        && let Some(node) = kinds.fast.iter().find(|node| kinds.slow.contains(node))
    {
        let line = format!("dry run: node {node} is both fast and slow, so that no page migrates");
        told.say(Severity::Warning, None, &line);
    }
    say_budgets(&running, &config, &**told);
    let mut tells = Notifier::new();
    tells.ready(running.len());
    while !signals.stop.load(Ordering::Relaxed) {
        if let (Some((listener, _)), Some(kinds)) = (&listener, &kinds) {
            listener.answer(&|| metrics(&own_states(), kinds, Path::new("/")));
        }
        if signals.reload.swap(false, Ordering::Relaxed) {
            let new = read(file).and_then(|config| Ok((plans(&config)?, config)));
            match new {
                Ok((plans, new)) => {
                    if address(&new) != listener.as_ref().map(|(_, at)| at.clone()) {
                        // The old one is given back first: it may be the same port in other words.
                        listener = None;
                        if let Some(at) = address(&new) {
                            match MetricsListener::begin(&at) {
                                Ok(one) => listener = Some((one, at)),
                                Err(why) => told.say(Severity::Error, None, &why),
                            }
                        }
                    }
                    kinds = plans.first().map(|plan| plan.kinds.clone());
                    running = changed(running, plans, began, told);
                    config = new;
                    say_budgets(&running, &config, &**told);
                    tells.ready(running.len());
                }
                Err(why) => {
                    let line = format!("{why}; the groups go on as before");
                    told.say(Severity::Error, None, &line);
                }
            }
        }
        if running.iter().all(|one| one.is_seen(began)) {
            tells.alive();
        }
        std::thread::sleep(EVERY);
    }
    tells.stopping();
    end(running, &**told);
    Ok(())
}

/// Groups whose plan is as it was go on; the others end, and what is new begins.
fn changed(
    running: Vec<Running>,
    mut plans: Vec<Plan>,
    began: Instant,
    told: &Arc<dyn DaemonLog>,
) -> Vec<Running> {
    let (mut stay, go): (Vec<Running>, Vec<Running>) = running
        .into_iter()
        .partition(|one| plans.iter().any(|plan| is_alike(&one.plan, plan)));
    end(go, &**told);
    plans.retain(|plan| !stay.iter().any(|one| is_alike(&one.plan, plan)));
    for plan in plans {
        match Running::start(plan, began, told) {
            Ok(one) => stay.push(one),
            Err(why) => told.say(Severity::Error, None, &why),
        }
    }
    stay
}

/// Whether a group can go on as it is. Free memory comes and goes: a budget that was not named and has changed by less than a tenth is
/// no reason to forget what is hot.
fn is_alike(old: &Plan, new: &Plan) -> bool {
    let fast = match old.group.fast {
        Some(_) => new.fast == old.fast,
        None => new.fast.abs_diff(old.fast) <= old.fast / 10,
    };
    let same = Plan {
        fast: old.fast,
        ..new.clone()
    };
    fast && *old == same
}

fn say_budgets(running: &[Running], config: &Config, told: &dyn DaemonLog) {
    for one in running {
        let plan = &one.plan;
        let dry = if config.dry_run {
            "; dry run: nothing migrates"
        } else {
            ""
        };
        let line = format!(
            "control group {}: {} of fast memory by {}, {} migrated per second, {:.2} % of a core{dry}",
            plan.group.cgroup,
            varve_spec::Bytes(plan.fast),
            plan.spec,
            varve_spec::Bytes(plan.rate),
            100.0 * plan.core
        );
        told.say(Severity::Info, Some(&plan.group.name), &line);
    }
}

/// States of this process's tiers.
pub fn own_states() -> Vec<TierState> {
    let own = std::process::id();
    let mut all = states(Path::new("/"));
    all.retain(|state| state.pid == own);
    all
}

/// Tells systemd, where it started us.
struct Notifier {
    every: Option<Duration>,
    last: Instant,
}

impl Notifier {
    fn new() -> Notifier {
        let mut microseconds = 0;
        let watched = sd_notify::watchdog_enabled(false, &mut microseconds);
        Notifier {
            every: watched.then(|| Duration::from_micros(microseconds) / 2),
            last: Instant::now(),
        }
    }

    /// That systemd is not there, or does not listen, is no reason to end.
    fn tell(states: &[NotifyState]) {
        let _ = sd_notify::notify(false, states);
    }

    fn ready(&self, groups: usize) {
        let status = format!("tiering {groups} control groups");
        Notifier::tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
    }

    fn alive(&mut self) {
        if self.every.is_some_and(|every| self.last.elapsed() >= every) {
            self.last = Instant::now();
            Notifier::tell(&[NotifyState::Watchdog]);
        }
    }

    fn stopping(&self) {
        Notifier::tell(&[NotifyState::Stopping]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn plan(name: &str, fast: u64) -> Plan {
        Plan {
            group: GroupConfig {
                name: name.into(),
                cgroup: format!("varve-no-such-group/{name}"),
                policy: "hotset".into(),
                fast: None,
                weight: 1,
                floor: 0,
                observe: None,
                page: None,
                hold: Duration::from_secs(10),
            },
            fast,
            rate: 1 << 20,
            core: 0.01,
            kinds: Kinds {
                fast: vec![0],
                slow: vec![0],
            },
            way: None,
            spec: "hotset:period=1s,decay=60".into(),
            period: Duration::from_secs(1),
        }
    }

    struct Quiet;
    impl DaemonLog for Quiet {
        fn say(&self, _: Severity, _: Option<&str>, _: &str) {}
        fn begun(
            &self,
            _: &str,
            _: &str,
            _: &varve_live::tier::TierOptions,
            _: &varve_live::tier::Begun,
        ) {
        }
        fn ended(&self, _: &str, _: &varve_live::tier::TierReport) {}
    }

    /// Groups wait for processes that never come, so that nothing of this machine is touched.
    #[test]
    fn what_has_not_changed_goes_on_when_a_file_is_read_anew() {
        let told: Arc<dyn DaemonLog> = Arc::new(Quiet);
        let began = Instant::now();
        let start = |plan| Running::start(plan, began, &told).unwrap();
        let running = vec![
            start(plan("a", 1000)),
            start(plan("b", 1000)),
            start(plan("c", 1000)),
        ];
        let threads: Vec<_> = running.iter().map(|one| one.thread.thread().id()).collect();
        let new = vec![plan("a", 1050), plan("b", 2000), plan("d", 500)];
        let running = changed(running, new, began, &told);
        let names: Vec<&str> = running.iter().map(|one| &one.plan.group.name[..]).collect();
        assert_eq!(names, ["a", "b", "d"]);
        assert_eq!(running[0].thread.thread().id(), threads[0], "a goes on");
        assert_eq!(running[1].plan.fast, 2000, "b began anew");
        assert!(running.iter().all(|one| one.is_seen(began)));
        end(running, &Quiet);
    }
}
