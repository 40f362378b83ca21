//! A group by a plan on this machine.

use super::family::Job;
use super::host::LiveHost;
use super::inside::{InPart, Prepared};
use super::start::{self, Launch, Started};
use super::{LiveOptions, sys};
use crate::error::Error;
use crate::group::{Group, OnFailure};
use crate::kinds::Memory;
use crate::plan::Plan;
use crate::result::{GroupResult, ProgramResult};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use varve_live::nodes::migrate;

/// Time between two samples of the running programs.
const LOOK: Duration = Duration::from_millis(5);

/// A program that was asked to end is killed after this time.
const GRACE: Duration = Duration::from_secs(2);

/// Residency is read once in this many samples: reading it costs kernel time.
const PAGES_EVERY: u32 = 40;

/// A running program, for progress.
pub struct Running {
    /// Its name.
    pub name: String,
    /// Its processors, if it has some of its own.
    pub cpus: Option<Vec<u32>>,
}

struct Process {
    program: usize,
    child: Child,
    job: Job,
    begun: Instant,
    cpus: Option<Vec<u32>>,
    memory: Option<Memory>,
    /// The runtime that places its own memory, if it is in part.
    prepared: Option<Prepared>,
    /// Asked to end at, and why.
    ending: Option<(Instant, String)>,
    /// The largest reading.
    pages: BTreeMap<u32, u64>,
}

/// Runs a group by a plan. `go_on` is called many times a second with what runs, and ends all programs by returning
/// `false`.
///
/// # Errors
/// A program that cannot be started, when the group stops at failures; an interrupt. All other programs are ended then.
pub fn run(
    group: &Group,
    plan: &Plan,
    host: &LiveHost,
    options: &LiveOptions,
    go_on: &mut dyn FnMut(&[Running]) -> bool,
) -> Result<GroupResult, Error> {
    start::check(group)?;
    std::fs::create_dir_all(&options.logs).map_err(|e| {
        let shown = options.logs.display();
        Error::Live(format!(
            "{shown}: cannot make the folder: {e}; choose another --logs"
        ))
    })?;
    let mut stage = LiveStage::new(group, plan, host, options);
    let result = stage.play(go_on);
    stage.end_all("the group was stopped");
    result?;
    Ok(stage.result())
}

struct LiveStage<'a> {
    group: &'a Group,
    plan: &'a Plan,
    host: &'a LiveHost,
    options: &'a LiveOptions,
    dispatcher: crate::policy::order::Dispatcher,
    running: Vec<Process>,
    free_cpus: Vec<u32>,
    results: Vec<ProgramResult>,
    /// Programs that newcomers still wait for, by eviction.
    held: Vec<bool>,
    moved_bytes: u64,
    moving: Duration,
    /// The most bytes that all programs had in fast memory at a time.
    fast_most: u64,
    notes: Vec<String>,
    begun: Instant,
    stopping: bool,
}

impl<'a> LiveStage<'a> {
    fn new(
        group: &'a Group,
        plan: &'a Plan,
        host: &'a LiveHost,
        options: &'a LiveOptions,
    ) -> LiveStage<'a> {
        let result = |p: &crate::plan::Assignment| ProgramResult {
            name: p.name.clone(),
            memory: p.memory,
            in_part: p.in_part,
            threads: p.threads,
            start_s: None,
            end_s: None,
            reason: None,
            exit: None,
            failure: None,
            log: None,
        };
        LiveStage {
            group,
            plan,
            host,
            options,
            dispatcher: plan.dispatcher(),
            running: Vec::new(),
            free_cpus: host.cpus.clone(),
            results: plan.programs.iter().map(result).collect(),
            held: vec![true; plan.evictions.len()],
            moved_bytes: 0,
            moving: Duration::ZERO,
            fast_most: 0,
            notes: host.notes.clone(),
            begun: Instant::now(),
            stopping: false,
        }
    }

    fn play(&mut self, go_on: &mut dyn FnMut(&[Running]) -> bool) -> Result<(), Error> {
        let mut looks = 0u32;
        loop {
            if !self.stopping {
                self.make_room();
                while let Some((program, reason)) = self.dispatcher.start() {
                    self.results[program].reason = Some(reason);
                    self.launch(program);
                    if self.stopping {
                        break;
                    }
                }
            }
            if self.running.is_empty() {
                return Ok(());
            }
            let shown: Vec<Running> = (self.running.iter())
                .map(|p| Running {
                    name: self.results[p.program].name.clone(),
                    cpus: p.cpus.clone(),
                })
                .collect();
            if !go_on(&shown) {
                return Err(varve_machine::model::RunError::Interrupted.into());
            }
            looks += 1;
            if looks.is_multiple_of(PAGES_EVERY) || looks == 4 {
                let fast = self.host.nodes(Memory::Fast).unwrap_or(&[]);
                let mut in_fast = 0;
                for p in &mut self.running {
                    let now = p.job.by_node();
                    in_fast += fast.iter().filter_map(|n| now.get(n)).sum::<u64>();
                    if now.values().sum::<u64>() >= p.pages.values().sum() {
                        p.pages = now;
                    }
                }
                self.fast_most = self.fast_most.max(in_fast);
            }
            std::thread::sleep(LOOK);
            self.look();
        }
    }

    /// Pages of running programs move where a newcomer that could start needs the room.
    fn make_room(&mut self) {
        for (i, e) in self.plan.evictions.iter().enumerate() {
            let waits = &self.group.programs[e.room_for].after;
            // A program that could not be started is not waited for.
            let over = |r: &ProgramResult| r.end_s.is_some() || r.failure.is_some();
            let could_start = waits.iter().all(|&a| over(&self.results[a]));
            if !self.held[i] || !could_start {
                continue;
            }
            self.held[i] = false;
            if let Some(p) = self.running.iter_mut().find(|p| p.program == e.who) {
                let name = &self.results[e.who].name;
                let nodes = |m| self.host.nodes(m).unwrap_or(&[]);
                let (from, to) = (nodes(Memory::Fast), nodes(Memory::Slow));
                let before = on_nodes(&mut p.job, from);
                let begun = Instant::now();
                // Later allocations must come from there, too.
                if let Err(why) = p.job.confine(to) {
                    self.notes.push(format!(
                        "what {name} allocates after its pages were moved comes from fast memory, if there is room: {why}"
                    ));
                }
                let mut left = 0;
                for pid in p.job.members() {
                    match migrate(pid, from, to) {
                        Ok(pages) => left += pages,
                        // It has ended meanwhile.
                        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(e) => self.notes.push(format!(
                            "the pages of {name} could not be moved: migrate_pages: {e}; it needs the rights of root or of its user"
                        )),
                    }
                }
                if left > 0 {
                    self.notes
                        .push(format!("{left} pages of {name} could not be moved"));
                }
                self.moving += begun.elapsed();
                self.moved_bytes += before.saturating_sub(on_nodes(&mut p.job, from));
                p.memory = Some(Memory::Slow);
            }
            let open = |(j, f): (usize, &crate::policy::place::Eviction)| {
                f.room_for == e.room_for && self.held[j]
            };
            if !self.plan.evictions.iter().enumerate().any(open) {
                self.dispatcher.ready(e.room_for);
            }
        }
    }

    /// The memory that a program starts in. One that is to make room for a newcomer that does not come yet starts in fast memory.
    fn memory(&self, program: usize) -> Option<Memory> {
        if !self.plan.strategy.placement && self.group.programs[program].memory.is_none() {
            return None;
        }
        let mut evictions = self.plan.evictions.iter().enumerate();
        match evictions.any(|(i, e)| e.who == program && self.held[i]) {
            true => Some(Memory::Fast),
            false => Some(self.plan.programs[program].memory),
        }
    }

    /// The limits of a program that is in fast memory in part.
    fn in_part(&self, program: usize) -> Option<InPart> {
        let plan = &self.plan.programs[program];
        let inside = self.group.programs[program].inside.as_ref();
        let inside = inside.filter(|_| plan.in_part)?;
        Some(InPart {
            fast: inside.fast.or(Some(plan.fast_bytes)),
            takes: plan.bytes,
        })
    }

    fn launch(&mut self, program: usize) {
        let threads = self.plan.programs[program].threads;
        let name = &self.results[program].name;
        let file: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '-' {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let strategy = self.plan.strategy.name();
        let log = self.options.logs.join(format!("{file}-{strategy}.log"));
        // A program with a chosen number of threads gets processors of its own, if there are enough.
        let cpus =
            (self.plan.strategy.threads && self.free_cpus.len() >= threads as usize).then(|| {
                self.free_cpus
                    .split_off(self.free_cpus.len() - threads as usize)
            });
        let in_part = self.in_part(program);
        let memory = self.memory(program).filter(|_| in_part.is_none());
        let launch = Launch {
            threads,
            memory,
            in_part,
            cpus: cpus.as_deref(),
            log: log.clone(),
            tasks: None,
        };
        let now = self.begun.elapsed().as_secs_f64();
        match start::start(self.group, program, &launch, self.host, self.options) {
            Ok(Started {
                child,
                job,
                prepared,
            }) => {
                self.results[program].start_s = Some(now);
                self.results[program].log = Some(log.display().to_string());
                self.running.push(Process {
                    program,
                    child,
                    job,
                    begun: Instant::now(),
                    cpus,
                    memory,
                    prepared,
                    ending: None,
                    pages: BTreeMap::new(),
                });
            }
            Err(e) => {
                self.free_cpus.extend(cpus.unwrap_or_default());
                self.fail(program, e.to_string());
                self.dispatcher.ended(program);
            }
        }
    }

    /// Takes note of programs that have ended, and asks those to end that take too long.
    fn look(&mut self) {
        let now = Instant::now();
        let mut i = 0;
        while i < self.running.len() {
            let p = &mut self.running[i];
            if let Some(prepared) = &p.prepared {
                prepared.look();
            }
            if let Ok(Some(status)) = p.child.try_wait() {
                let p = self.running.swap_remove(i);
                self.ended(p, status);
                continue;
            }
            if let Some((since, _)) = &p.ending {
                if now.duration_since(*since) > GRACE {
                    sys::signal(p.child.id(), libc::SIGKILL);
                }
            } else if let Some(limit) = self.group.programs[p.program].time_limit_s
                && now.duration_since(p.begun).as_secs_f64() > limit
            {
                p.ending = Some((now, format!("took longer than its time limit of {limit} s")));
                sys::signal(p.child.id(), libc::SIGTERM);
            }
            i += 1;
        }
    }

    fn ended(&mut self, p: Process, status: ExitStatus) {
        // Its remaining child processes end with it.
        sys::signal(p.child.id(), libc::SIGKILL);
        self.free_cpus.extend(p.cpus.unwrap_or_default());
        self.results[p.program].end_s = Some(self.begun.elapsed().as_secs_f64());
        self.results[p.program].exit = status.code();
        let why = match (p.ending, status.code(), status.signal()) {
            (Some((_, why)), ..) => Some(why),
            (_, Some(0), _) => None,
            (_, Some(code), _) => Some(format!("ended with exit code {code}")),
            (_, None, signal) => Some(format!("was ended by signal {}", signal.unwrap_or(0))),
        };
        // Planned is one thing, and where the kernel has put it another.
        if let Some(memory) = self.was_in(&p.pages) {
            self.results[p.program].memory = memory;
        }
        if let (Some(memory), Some(nodes)) = (p.memory, p.memory.and_then(|m| self.host.nodes(m))) {
            let all: u64 = p.pages.values().sum();
            let there: u64 = nodes.iter().filter_map(|n| p.pages.get(n)).sum();
            if all > 0 {
                let name = &self.results[p.program].name;
                let size = varve_report::fmt::bytes(all as f64);
                let share = 100 * there / all;
                self.notes.push(format!(
                    "{name}: {share} % of its {size} were in {memory} memory"
                ));
            }
        }
        if let Some(prepared) = p.prepared {
            self.tell_inside(p.program, prepared, status, p.begun.elapsed(), &p.pages);
        }
        self.dispatcher.ended(p.program);
        if let Some(why) = why {
            self.fail(p.program, why);
        }
    }

    /// The memory that most of some pages are in; `None` where there are none, or all memory is alike.
    fn was_in(&self, pages: &BTreeMap<u32, u64>) -> Option<Memory> {
        let (fast, slow) = self
            .host
            .nodes(Memory::Fast)
            .zip(self.host.nodes(Memory::Slow))?;
        if fast.iter().any(|node| slow.contains(node)) {
            return None;
        }
        let on = |nodes: &[u32]| -> u64 { nodes.iter().filter_map(|n| pages.get(n)).sum() };
        match (on(fast), on(slow)) {
            (0, 0) => None,
            (fast, slow) if fast >= slow => Some(Memory::Fast),
            _ => Some(Memory::Slow),
        }
    }

    /// Whether the programs had more fast memory than the group may have, in a line.
    fn over_the_limit(&self) -> Option<String> {
        let limit = self.group.fast?;
        let size = |bytes: u64| varve_report::fmt::bytes(bytes as f64);
        // What a program takes besides its data is in no plan.
        (self.fast_most as f64 > 1.05 * limit as f64).then(|| {
            format!(
                "the programs had up to {} in fast memory at a time, and the group's limit is {}: times of strategies that keep it are not comparable",
                size(self.fast_most),
                size(limit)
            )
        })
    }

    /// Where the memory of a program in part was: by the report of its runtime, and by the kernel.
    fn tell_inside(
        &mut self,
        program: usize,
        prepared: Prepared,
        status: ExitStatus,
        took: Duration,
        pages: &BTreeMap<u32, u64>,
    ) {
        let name = &self.results[program].name;
        if let Some(inside) = &self.group.programs[program].inside {
            let told = prepared.told(inside, status, took.as_secs_f64());
            self.notes
                .extend(told.into_iter().map(|line| format!("{name}: {line}")));
        }
        let all: u64 = pages.values().sum();
        let fast = self.host.nodes(Memory::Fast).unwrap_or(&[]);
        let there: u64 = fast.iter().filter_map(|n| pages.get(n)).sum();
        if all > 0 {
            let size = |bytes: u64| varve_report::fmt::bytes(bytes as f64);
            self.notes.push(format!(
                "{name}: {} of its {} were in fast memory, its part",
                size(there),
                size(all)
            ));
        }
    }

    fn fail(&mut self, program: usize, why: String) {
        self.results[program].failure.get_or_insert(why);
        if self.group.on_failure == OnFailure::Stop && !self.stopping {
            self.stopping = true;
            let name = self.results[program].name.clone();
            self.ask_all(&format!("was ended, since {name} failed"));
        }
    }

    fn ask_all(&mut self, why: &str) {
        for p in &mut self.running {
            if p.ending.is_none() {
                p.ending = Some((Instant::now(), why.to_string()));
                sys::signal(p.child.id(), libc::SIGTERM);
            }
        }
    }

    /// Ends what runs, kindly first.
    fn end_all(&mut self, why: &str) {
        self.stopping = true;
        self.ask_all(why);
        while !self.running.is_empty() {
            std::thread::sleep(LOOK);
            self.look();
        }
    }

    fn result(mut self) -> GroupResult {
        self.notes.extend(self.over_the_limit());
        let mut programs = self.results;
        for p in programs.iter_mut().filter(|p| p.start_s.is_none()) {
            p.failure
                .get_or_insert("was not started, since another one failed".into());
        }
        GroupResult {
            strategy: self.plan.strategy,
            seconds: programs.iter().filter_map(|p| p.end_s).fold(0.0, f64::max),
            programs,
            moved_bytes: self.moved_bytes,
            moving_s: self.moving.as_secs_f64(),
            notes: self.notes,
            times: Vec::new(),
        }
    }
}

fn on_nodes(job: &mut Job, nodes: &[u32]) -> u64 {
    let all = job.by_node();
    nodes.iter().filter_map(|n| all.get(n)).sum()
}
