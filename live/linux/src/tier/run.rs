//! The control loop: scans, decides, migrates, sleeps.

use super::decide::TierPolicy;
use super::error::TierError;
use super::frames::{
    DimmFrames, Energy, FrameOptions, InFrames, LiveFrames, Power, Spans, Unplaced, frame_bytes,
    ready,
};
use super::heat::{HotObject, HotProcess, Keeper, KeptHeat};
use super::members::Members;
use super::memory::by_node;
use super::nodes::{OnNodes, SETTLE, can_tier, open};
use super::observe::Observers;
use super::options::{Begun, Room, Target, TierOptions};
use super::report::{TierReport, TieredObject, TieredProcess};
use super::room::MachineNodes;
use super::sizes::room;
use super::state::{HeatOf, PARTS, Teller, TierState, began};
use super::steer::{Allowance, Migrate, MoveLimits, Places, Steering};
use super::who;
use crate::error::LiveError;
use crate::launch::{self, Interrupts, Running};
use crate::lock::Lock;
use crate::probe::Topology;
use crate::program;
use crate::sampled::run::processor_time;
use crate::traffic::MachineTraffic;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// The nodes of all memory are asked for at least so often.
const LONGEST: Duration = Duration::from_secs(3600);
/// The longest sleep between two checks for a reason to end: the exit code of a command must not come late.
const SLICE: Duration = Duration::from_millis(100);
const SLICE_OF_A_COMMAND: Duration = Duration::from_millis(20);
/// Intervals after which the nodes of a process's memory are asked for, for the report; and the share of the CPU budget that this may
/// take, since the kernel walks all of it.
const SEEN: u64 = 16;
const SEEN_SHARE: f64 = 0.1;
/// The first intervals may use up the CPU budget of so long a time, so that a large program is placed soon. Later ones wait until it is
/// paid back.
const ADVANCE: Duration = Duration::from_secs(180);
/// Intervals until the first placement: what is hot has to be known.
const FIRST: u64 = SETTLE + 2;
/// Intervals in which the processes of a service may end, one after the other.
const ENDS: u64 = 10;
/// Objects that processes have shared and that are noted: in a month a service may make any number of them.
const NOTED: usize = 256;

/// Tiers. `make` makes the policy, for what there is; `begun` is called when it begins.
///
/// # Errors
/// [`TierError`]; a command was not started, or is waited for if it was.
pub fn tier<D: TierPolicy>(
    target: &Target,
    options: &TierOptions,
    make: impl FnOnce(&Room) -> Result<D, String>,
    begun: impl FnOnce(&Begun),
) -> Result<TierReport, TierError> {
    let (topology, _) = Topology::read(Path::new("/"));
    find_command(target)?;
    if matches!(target, Target::Command(_)) {
        can_tier(std::process::id(), &options.kinds)?;
    }
    let roots = who_is_there(target)?;
    let nodes = MachineNodes::new(options.kinds.clone(), &topology);
    let room = room(&roots, options, &topology, &nodes);
    let decide = make(&room).map_err(TierError::Policy)?;
    let limits = limits(options, room.page_bytes);
    let places = OnNodes::new(Box::new(nodes), room.page_bytes, room.fast_pages);
    let steering = Steering::new(decide, limits, places);
    let open = |process| open(process, room.page_bytes, &options.kinds);
    Tiering::of(target, options, steering, &open, room).go(roots, Vec::new(), begun)
}

/// Exchanges frames: `make` makes the policy, for the frames that there are and the page size; `begun` is called when it
/// begins. `traffic` is for policies that go by bandwidth.
///
/// # Errors
/// As [`tier`]; [`TierError::Frames`] where frames cannot be exchanged.
pub fn tier_frames<D: TierPolicy>(
    target: &Target,
    options: &TierOptions,
    frames: &FrameOptions,
    traffic: Option<MachineTraffic>,
    make: impl FnOnce(&Spans, &[DimmFrames], u64) -> Result<D, String>,
    begun: impl FnOnce(&Begun),
) -> Result<TierReport, TierError> {
    find_command(target)?;
    let roots = who_is_there(target)?;
    let page_bytes = frame_bytes(&roots, options);
    let ready = ready(frames, page_bytes).map_err(TierError::Frames)?;
    let decide = make(&ready.spans, &ready.dimms, page_bytes).map_err(TierError::Policy)?;
    let power = Power::of(match frames.dimms.is_empty() {
        true => None,
        false => Energy::open(Path::new("/")),
    });
    let places = InFrames::new(ready.spans, Box::new(ready.exchanger), power, traffic);
    let steering = Steering::new(decide, limits(options, page_bytes), places);
    let open = |process| LiveFrames::open(process, page_bytes, &frames.hot);
    let room = Room {
        page_bytes,
        fast_pages: 0,
        slow_pages: 0,
    };
    Tiering::of(target, options, steering, &open, room).go(roots, ready.notes, begun)
}

fn find_command(target: &Target) -> Result<(), TierError> {
    if let Target::Command(words) = target {
        program::find(words.first().ok_or(LiveError::NoCommand)?)?;
    }
    Ok(())
}

fn limits(options: &TierOptions, page_bytes: u64) -> MoveLimits {
    let hold = options.hold.as_secs_f64() / options.period.as_secs_f64().max(1e-3);
    MoveLimits {
        page_bytes,
        hold: hold.ceil() as u64,
    }
}

/// Opens the memory of a process, if it may be steered.
type Open<'a, P> = &'a dyn Fn(u32) -> Result<Box<<P as Places>::Memory>, TierError>;

/// The processes to begin with; none for a command.
fn who_is_there(target: &Target) -> Result<BTreeSet<u32>, TierError> {
    Ok(match target {
        Target::Processes(all) => {
            let own = std::process::id();
            for &process in all {
                if process == own || !Path::new(&format!("/proc/{process}")).exists() {
                    return Err(TierError::Gone(process));
                }
            }
            all.iter().copied().collect()
        }
        Target::Groups(folders) => {
            let mut all = BTreeSet::new();
            for folder in folders {
                let members = without_us(who::members(folder));
                if members.is_empty() {
                    return Err(TierError::Empty(folder.display().to_string()));
                }
                all.extend(members);
            }
            all
        }
        Target::Command(_) => BTreeSet::new(),
    })
}

/// When the first placement comes, where each look takes as long as the first one.
fn first_placement(look: Duration, spent: Duration, period: Duration, core: f64) -> Duration {
    let looks = SETTLE as u32;
    let advance = ADVANCE.mul_f64(core);
    let all = spent + look * looks;
    match all < advance {
        true => period.max(2 * look) * looks,
        false => all.div_f64(core),
    }
}

fn without_us(mut all: BTreeSet<u32>) -> BTreeSet<u32> {
    for own in who::family(std::process::id()) {
        all.remove(&own);
    }
    all
}

struct Tiering<'a, D, P: Places> {
    target: &'a Target,
    options: &'a TierOptions<'a>,
    steering: Steering<D, P>,
    open: Open<'a, P>,
    room: Room,
    observers: Observers,
    /// Numbers in this run, by process; those of processes that cannot be tiered have none.
    known: BTreeMap<u32, Option<u32>>,
    locks: BTreeMap<u32, Lock>,
    members: Members,
    /// By number in this run.
    /// With the intervals since when fewer processes have it.
    shared: BTreeMap<u32, (TieredObject, u64)>,
    notes: Vec<String>,
    /// Hot pages when there were pages last, and those of them in fast memory.
    hot: (u64, u64),
    child: Option<Running>,
}

impl<'a, D: TierPolicy, P: Places> Tiering<'a, D, P>
where
    Steering<D, P>: Migrate<P>,
{
    /// Starts without processes.
    fn of(
        target: &'a Target,
        options: &'a TierOptions<'a>,
        steering: Steering<D, P>,
        open: Open<'a, P>,
        room: Room,
    ) -> Self {
        Tiering {
            target,
            options,
            steering,
            open,
            room,
            observers: Observers::new(options.way, P::SCOPE, room.page_bytes),
            known: BTreeMap::new(),
            locks: BTreeMap::new(),
            members: Members::default(),
            shared: BTreeMap::new(),
            notes: Vec::new(),
            hot: (0, 0),
            child: None,
        }
    }

    /// Adds the processes, and steers until the end.
    fn go(
        mut self,
        mut roots: BTreeSet<u32>,
        notes: Vec<String>,
        begun: impl FnOnce(&Begun),
    ) -> Result<TierReport, TierError> {
        if let Target::Command(words) = self.target {
            let interrupts = Interrupts::left_to_the_program();
            let child = Running::start(launch::command(words)?, Some(interrupts))?;
            roots.insert(child.id());
            self.child = Some(child);
        }
        let mut last = None;
        for &process in &roots {
            if let Err(error) = self.join(process, false) {
                match (self.target, error) {
                    // It has ended already, which is its own matter; a group's others are there.
                    (_, TierError::Gone(_) | TierError::NoMemory(_)) if self.child.is_some() => {}
                    (Target::Groups(_), error) => {
                        self.note(error.to_string());
                        last = Some(error);
                    }
                    (_, error) => {
                        self.wait_for_the_command();
                        return Err(error);
                    }
                }
            }
        }
        if let (Some(error), true) = (last, self.steering.watched().is_empty()) {
            return Err(error);
        }
        let mut first = self.begun();
        first.notes.extend(notes);
        begun(&first);
        Ok(self.run())
    }

    /// Takes a process in.
    fn join(&mut self, process: u32, inherited: bool) -> Result<(), TierError> {
        self.known.insert(process, None);
        // One `tier` for each process.
        let lock = Lock::named(&format!("varve-tier-{process}"));
        let lock = lock.map_err(|error| TierError::Refused { process, error })?;
        let lock = lock.ok_or(TierError::Taken(process))?;
        let memory = (self.open)(process)?;
        let observed = self.observers.of(process, inherited);
        let (observer, way) = observed.map_err(|why| TierError::Unseen { process, why })?;
        let report = TieredProcess {
            pid: process,
            name: who::name(process),
            observer: way,
            ..TieredProcess::default()
        };
        let number = self.members.add(report);
        self.known.insert(process, Some(number));
        self.locks.insert(number, lock);
        self.steering.add(number, process, memory, observer);
        Ok(())
    }

    fn begun(&self) -> Begun {
        let room = self.room;
        let of = |report: &TieredProcess| (report.pid, report.name.clone(), report.observer);
        let mut notes = self.notes.clone();
        let given = self.options.fast_bytes.unwrap_or(0);
        if given >= (room.fast_pages + 1) * room.page_bytes {
            notes.push(
                "the fast nodes have less memory than --fast requests: the first line shows how much"
                    .into(),
            );
        }
        if !matches!(self.target, Target::Groups(_)) && !who::knows_families() {
            notes.push(
                "child processes are not tiered: the kernel does not list them (CONFIG_PROC_CHILDREN); --cgroup includes them"
                    .into(),
            );
        }
        Begun {
            room,
            processes: self.members.living().map(of).collect(),
            notes,
        }
    }

    /// Adds new processes.
    fn discover(&mut self) {
        let now = match self.target {
            Target::Groups(folders) => {
                without_us(folders.iter().flat_map(|f| who::members(f)).collect())
            }
            Target::Processes(roots) => roots.iter().flat_map(|p| who::family(*p)).collect(),
            Target::Command(_) => match &self.child {
                Some(child) => who::family(child.id()),
                None => BTreeSet::new(),
            },
        };
        // A number that belongs to another process by now is added again.
        self.known.retain(|process, _| now.contains(process));
        let in_group = matches!(self.target, Target::Groups(_));
        for process in now {
            if self.known.contains_key(&process) {
                continue;
            }
            match self.join(process, !in_group) {
                Ok(()) | Err(TierError::Gone(_) | TierError::NoMemory(_)) => {}
                Err(error) => self.note(error.to_string()),
            }
        }
    }

    fn note(&mut self, line: String) {
        const NOTES: usize = 20;
        if self.notes.len() < NOTES && !self.notes.contains(&line) {
            self.notes.push(line);
        }
    }

    fn run(mut self) -> TierReport {
        let begun = Instant::now();
        let mut teller = Teller::new().map_err(|why| self.note(why)).ok();
        let kept = self.options.heat.map(KeptHeat::read).unwrap_or_default();
        let mut keeper = Keeper::of(self.options.heat);
        let mut status;
        let mut interval = 0u64;
        // When the last interval began, and when the nodes of all memory are asked for again.
        let mut before = None;
        let mut seen = (0, begun);
        loop {
            let (at, cpu) = (Instant::now(), processor_time());
            let passed = before.map_or(self.options.period, |before| at - before);
            before = Some(at);
            // New processes are discovered less often if there are many, since that takes long.
            if self.known.len() < 16 || interval.is_multiple_of(8) {
                self.discover();
            }
            for (number, why) in self.steering.look() {
                self.locks.remove(&number);
                // What it had at the end was noted when it was seen last.
                let ended = self.members.end(number);
                for known in self.known.values_mut().filter(|n| **n == Some(number)) {
                    *known = None;
                }
                if let (Some(why), Some(TieredProcess { name, pid, .. })) = (why, ended) {
                    self.note(format!(
                        "{name} ({pid}) was dropped before it ended: it can no longer be scanned: {why}"
                    ));
                }
            }
            if interval == 0 {
                self.warm(&kept);
            }
            let looked = processor_time().saturating_sub(cpu);
            let share = passed.mul_f64(self.options.core);
            let allowed = Allowance {
                bytes: (self.options.rate as f64 * passed.as_secs_f64()) as u64,
                // Scans that use up the budget do not stop migration: they become less frequent.
                time: share.saturating_sub(looked).max(share / 2),
            };
            self.steering.act(&allowed, &processor_time);
            let is_seen = interval >= seen.0 && at >= seen.1;
            let acted = processor_time();
            self.see(is_seen);
            if is_seen {
                let took = processor_time().saturating_sub(acted);
                let rest = took.div_f64(self.options.core.max(1e-6) * SEEN_SHARE);
                seen = (interval + SEEN, at + rest.min(LONGEST));
            }
            if let Some(teller) = &mut teller {
                let seconds = begun.elapsed().as_secs_f64();
                teller.note(seconds, &self.steering.counts);
                if teller.is_due() {
                    teller.tell(self.state(seconds));
                }
            }
            keeper.keep(false, || self.hot_now());
            interval += 1;
            status = self.ended();
            let core = self.options.core.max(1e-6);
            let took = processor_time().saturating_sub(cpu);
            // The CPU budget holds over the whole run, with the start before the first scan and with watching the clock. An
            // interval begins once the time that the last one took is saved up, so that the budget holds whenever the run ends.
            let all = processor_time() + took;
            let owed = all.div_f64(core).saturating_sub(begun.elapsed()) + at.elapsed();
            let rest = match interval < FIRST && all < ADVANCE.mul_f64(core) {
                true => self.options.period.max(2 * took),
                false => self.options.period.max(took.div_f64(core)).max(owed),
            };
            // The first look finds all pages: the others take no longer.
            if interval == 1 {
                self.say_how_often(looked, all);
            }
            while status.is_none() && !self.is_over(begun) && at.elapsed() < rest {
                let left = rest.saturating_sub(at.elapsed());
                std::thread::sleep(left.min(match self.child {
                    Some(_) => SLICE_OF_A_COMMAND,
                    None => SLICE,
                }));
                status = self.ended();
            }
            if status.is_some() || self.is_over(begun) {
                break;
            }
        }
        // What has ended has nothing that a later run could find.
        keeper.keep(true, || self.hot_now());
        self.see(true);
        let forgotten = self.members.forgotten();
        if forgotten > 0 {
            self.note(format!(
                "{forgotten} more processes came and ended: those that ended last are listed"
            ));
        }
        let mut frames = self.steering.finish();
        if let (Some(frames), Target::Groups(folders)) = (&mut frames, self.target) {
            for (files, kernel) in who::outermost(folders).map(|f| who::unmapped(f)) {
                for (why, bytes) in [(Unplaced::Unmapped, files), (Unplaced::Kernel, kernel)] {
                    if bytes > 0 {
                        *frames.unplaced.entry(why).or_default() += bytes;
                    }
                }
            }
        }
        let bytes = |pages: u64| pages * self.room.page_bytes;
        let (hot, hot_fast) = self.hot;
        let mut report = TierReport {
            page_bytes: self.room.page_bytes,
            fast_bytes: bytes(self.room.fast_pages),
            counts: self.steering.counts.clone(),
            hot: (bytes(hot), bytes(hot_fast)),
            seconds: begun.elapsed().as_secs_f64(),
            // All work of this thread, including the start before the first scan.
            cpu_seconds: processor_time().as_secs_f64(),
            monitor_seconds: self.members.monitor_seconds(),
            processes: self.members.all(),
            shared: self.shared_by_size(),
            notes: self.notes.clone(),
            frames,
            status,
        };
        // A command that runs on when we are to stop runs on without us, and is waited for.
        report.status = report.status.or_else(|| self.wait_for_the_command());
        report
    }

    /// What was hot in an earlier run is hot now.
    fn warm(&mut self, kept: &KeptHeat) {
        for one in &kept.processes {
            let same = began(Path::new("/"), one.pid) == Some(one.began);
            if let (true, Some(Some(number))) = (same, self.known.get(&one.pid)) {
                self.steering.warm(*number, &one.hot);
            }
        }
        let objects: Vec<(u32, &HotObject)> = self
            .steering
            .objects()
            .iter()
            .filter_map(|object| {
                let is_it = |kept: &&HotObject| {
                    kept.name == object.what.name && kept.file == object.what.file
                };
                Some((object.number, kept.shared.iter().find(is_it)?))
            })
            .collect();
        for (number, one) in objects {
            self.steering.warm(number, &one.hot);
        }
    }

    /// What is hot now, for a later run.
    fn hot_now(&self) -> KeptHeat {
        let mut all = KeptHeat::default();
        for (number, hot) in self.steering.hot_ranges() {
            if let Some(report) = self.members.get(number) {
                if let Some(began) = began(Path::new("/"), report.pid) {
                    let pid = report.pid;
                    all.processes.push(HotProcess { pid, began, hot });
                }
            } else if let Some(object) = self.steering.objects().iter().find(|o| o.number == number)
            {
                all.shared.push(HotObject {
                    file: object.what.file.clone(),
                    name: object.what.name.clone(),
                    hot,
                });
            }
        }
        all
    }

    /// The state that other processes can read during the run.
    fn state(&self, seconds: f64) -> TierState {
        let of = |(number, parts): (u32, Vec<_>)| {
            // What processes share is noted now and then only.
            let object = self.shared.get(&number);
            let object = object.map(|(one, _)| (0, &one.name, one.kind.words()));
            let report = self.members.get(number);
            let process = report.map(|one| (one.pid, &one.name, one.observer));
            let (pid, name, observed_by) = object.or(process)?;
            Some(HeatOf {
                pid,
                name: name.clone(),
                observed_by: observed_by.into(),
                parts,
            })
        };
        let (hot, hot_in_fast) = self.hot;
        let counts = &self.steering.counts;
        let refused = counts.refused.iter();
        let waited = counts.waited().into_iter().filter(|(times, _)| *times > 0);
        let shared = self.shared.values().map(|(one, _)| one);
        let sum = |of_process: fn(&TieredProcess) -> u64, of_object: fn(&TieredObject) -> u64| {
            self.members.living().map(of_process).sum::<u64>()
                + shared.clone().map(of_object).sum::<u64>()
        };
        TierState {
            name: self.options.name.map(String::from),
            policy: self.options.policy.into(),
            seconds,
            cpu_seconds: processor_time().as_secs_f64(),
            monitor_seconds: self.members.monitor_seconds(),
            looked: SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0.0, |since| since.as_secs_f64()),
            looks: counts.intervals,
            refused: refused.map(|(why, b)| (why.words(), *b)).collect(),
            waited: waited.map(|(times, why)| (why.into(), times)).collect(),
            by_others: counts.by_others,
            on_fast: sum(|p| p.on_fast, |o| o.on_fast),
            on_slow: sum(|p| p.on_slow, |o| o.on_slow),
            fast_bytes: self.room.fast_pages * self.room.page_bytes,
            to_fast: self.steering.counts.to_fast,
            to_slow: self.steering.counts.to_slow,
            exchanged: P::HAS_FRAMES.then_some(self.steering.counts.exchanged),
            hot: hot * self.room.page_bytes,
            hot_in_fast: hot_in_fast * self.room.page_bytes,
            processes: self
                .steering
                .heat(PARTS)
                .into_iter()
                .filter_map(of)
                .collect(),
            ..TierState::default()
        }
    }

    fn is_over(&self, begun: Instant) -> bool {
        (self.options.beat)();
        let late = self.options.time.is_some_and(|t| begun.elapsed() >= t);
        let stop = self.options.stop.load(Ordering::Relaxed);
        // A command that is there still may start others.
        let nobody = self.steering.watched().is_empty() && self.child.is_none();
        late || stop || nobody
    }

    /// Notes where the memory of processes is, and what watching them takes elsewhere.
    fn see(&mut self, where_it_is: bool) {
        if where_it_is && !self.steering.watched().is_empty() {
            self.hot = self.steering.hot_pages();
        }
        self.see_shared();
        for (number, elsewhere, huge_left) in self.steering.watched() {
            let Some(report) = self.members.watched(number, elsewhere) else {
                continue;
            };
            report.huge_left = huge_left;
            if !where_it_is {
                continue;
            }
            let Ok(nodes) = by_node(report.pid) else {
                continue;
            };
            let on = |kind: &[u32]| -> u64 {
                let some = nodes.iter().filter(|(node, _)| kind.contains(node));
                some.map(|(_, bytes)| bytes).sum()
            };
            if nodes.is_empty() {
                continue;
            }
            report.on_fast = on(&self.options.kinds.fast);
            report.on_slow = on(&self.options.kinds.slow);
            report.hugetlb = who::hugetlb(report.pid);
            // Once a program has begun, its name is its own.
            report.name = who::name(report.pid);
        }
    }

    /// Says so where looks are rarer than they should be: the first look took `look`, and all so far `spent`.
    fn say_how_often(&self, look: Duration, spent: Duration) {
        let (period, core) = (self.options.period, self.options.core.max(1e-6));
        let each = period.max(look.div_f64(core));
        if each < period.mul_f64(1.5) || self.options.way.is_none() {
            return;
        }
        let seconds = |time: Duration| match time.as_secs_f64() {
            short if short < 10.0 => format!("{short:.1}"),
            long => format!("{long:.0}"),
        };
        let first = match P::HAS_FRAMES {
            true => String::new(),
            false => format!(
                ", and the first placement after some {} s",
                seconds(first_placement(look, spent, period, core))
            ),
        };
        (self.options.say)(&format!(
            "the first look at all pages took {} s of a core, so that the CPU budget of {} % allows one in {} s at most{first}; a larger --core or --page makes looks more frequent",
            (look.as_secs_f64() * 1000.0).round() / 1000.0,
            (1000.0 * core).round() / 10.0,
            seconds(each),
        ));
    }

    /// Notes where what processes share is. Where fewer have it than before, they may all be about to end, and what they had is told.
    fn see_shared(&mut self) {
        let bytes = self.room.page_bytes;
        for object in self.steering.objects() {
            let now = TieredObject {
                kind: object.what.kind,
                name: object.what.name.clone(),
                processes: object.processes,
                on_fast: object.fast * bytes,
                on_slow: (object.pages.len() as u64 - object.fast) * bytes,
            };
            match self.shared.entry(object.number) {
                Entry::Vacant(_) if object.pages.is_empty() => {}
                Entry::Vacant(vacant) => _ = vacant.insert((now, 0)),
                Entry::Occupied(mut noted) => {
                    let (before, fewer) = noted.get_mut();
                    *fewer = match now.processes < before.processes {
                        true => *fewer + 1,
                        false => 0,
                    };
                    if *fewer == 0 || *fewer > ENDS {
                        *noted.get_mut() = (now, 0);
                    }
                }
            }
        }
        self.forget_small_ones();
    }

    /// Forgets the smallest objects beyond the limit. Those that are still there are noted again.
    fn forget_small_ones(&mut self) {
        while self.shared.len() > NOTED {
            let size = |one: &TieredObject| one.on_fast + one.on_slow;
            let smallest = self.shared.iter().min_by_key(|(_, (one, _))| size(one));
            let Some(number) = smallest.map(|(number, _)| *number) else {
                return;
            };
            self.shared.remove(&number);
        }
    }

    fn shared_by_size(&self) -> Vec<TieredObject> {
        let mut all: Vec<TieredObject> = self.shared.values().map(|(one, _)| one.clone()).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.on_fast + one.on_slow));
        all
    }

    /// How the command ended, if it has.
    fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.as_mut()?.ended().ok()?
    }

    fn wait_for_the_command(&mut self) -> Option<std::process::ExitStatus> {
        // Its observers end first.
        self.steering.processes.clear();
        self.child.as_mut().and_then(|child| child.wait().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_placement_comes_soon_as_long_as_the_budget_of_three_minutes_allows_it() {
        let ms = Duration::from_millis;
        let second = ms(1000);
        let first = |look, spent| first_placement(look, spent, second, 0.02);
        assert_eq!(first(ms(20), ms(30)), second * 10);
        // 64 GiB: the whole page table once, then parts of it.
        assert_eq!(first(ms(100), ms(1000)), second * 10);
        // Ten looks of half a second are more than 3.6 seconds.
        assert_eq!(first(ms(500), ms(600)), second * 280);
    }
}
