//! What the loop needs of whoever steers: between fast and slow nodes, or between frames.

use super::decide::Decide;
use super::error::TierError;
use super::frames::FrameMemory;
use super::frames::{DecideFrames, Energy, FrameReport, FrameSteering, LiveFrames};
use super::memory::{BASE, Memory, ProcessMemory};
use super::observe::{Observer, Scope};
use super::report::Counts;
use super::state::Part;
use super::steer::{Allowance, Steering, Tiered};
use super::who;
use crate::nodes::Kinds;
use crate::traffic::MachineTraffic;
use std::io;
use std::time::{Duration, Instant};

/// Steers the pages of some processes.
pub trait Steer {
    /// The memory of a process.
    type Memory;

    /// Of which memory uses are to be seen.
    const SCOPE: Scope;

    /// Whether it is about frames, rather than nodes.
    const HAS_FRAMES: bool;

    /// The memory of a process, if it may be steered.
    fn open(&self, process: u32) -> Result<Self::Memory, TierError>;

    /// Takes a process in: its number in this run, and the system's.
    fn add(&mut self, number: u32, process: u32, memory: Self::Memory, observer: Box<dyn Observer>);

    /// See [`Steering::look`].
    fn look(&mut self) -> Vec<(u32, Option<io::Error>)>;

    /// See [`Steering::act`].
    fn act(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration);

    /// Sums.
    fn counts(&self) -> &Counts;

    /// Of processes that have not ended: number in this run, seconds of processor time elsewhere, bytes of huge pages left alone.
    fn watched(&self) -> Vec<(u32, f64, u64)>;

    /// Lets go of all processes.
    fn clear(&mut self);

    /// Hot pages, and how many of these are where they should be.
    fn hot_pages(&mut self) -> (u64, u64);

    /// See [`Steering::heat`].
    fn heat(&self, parts: usize) -> Vec<(u32, Vec<Part>)>;

    /// It is over.
    fn finish(&mut self) -> Option<FrameReport> {
        None
    }
}

/// Why a process is not taken in.
fn why(process: u32, error: io::Error) -> TierError {
    match error.kind() {
        io::ErrorKind::NotFound => TierError::Gone(process),
        io::ErrorKind::PermissionDenied => TierError::Foreign(process),
        _ if error.raw_os_error() == Some(libc::ESRCH) => TierError::NoMemory(process),
        _ => TierError::Refused { process, error },
    }
}

/// Between fast and slow nodes.
pub struct NodeSteer<'a, D> {
    pub steering: Steering<D>,
    pub kinds: &'a Kinds,
}

impl<D: Decide> Steer for NodeSteer<'_, D> {
    type Memory = ProcessMemory;
    const SCOPE: Scope = Scope::Own;
    const HAS_FRAMES: bool = false;

    fn open(&self, process: u32) -> Result<ProcessMemory, TierError> {
        can_tier(process, self.kinds)?;
        let page_bytes = self.steering.limits.page_bytes;
        let mut memory = ProcessMemory::of(process, page_bytes).map_err(|e| why(process, e))?;
        let pages = memory.pages().map_err(|e| why(process, e))?;
        memory
            .nodes(&pages[..pages.len().min(1)])
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ESRCH) => TierError::Gone(process),
                Some(libc::EPERM) if who::name(process) == "?" => TierError::Gone(process),
                _ => TierError::Refused { process, error },
            })?;
        Ok(memory)
    }

    fn add(&mut self, number: u32, _: u32, memory: ProcessMemory, observer: Box<dyn Observer>) {
        let tiered = Tiered::new(number, Box::new(memory), observer);
        self.steering.processes.push(tiered);
    }

    fn look(&mut self) -> Vec<(u32, Option<io::Error>)> {
        self.steering.look()
    }

    fn act(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        self.steering.act(allowed, spent);
    }

    fn counts(&self) -> &Counts {
        &self.steering.counts
    }

    fn watched(&self) -> Vec<(u32, f64, u64)> {
        let of = |p: &Tiered| {
            (
                p.number,
                p.observer.elsewhere_seconds(),
                p.memory.huge_left(),
            )
        };
        self.steering.processes.iter().map(of).collect()
    }

    fn clear(&mut self) {
        self.steering.processes.clear();
    }

    fn hot_pages(&mut self) -> (u64, u64) {
        self.steering.hot_pages()
    }

    fn heat(&self, parts: usize) -> Vec<(u32, Vec<Part>)> {
        self.steering.heat(parts)
    }
}

/// Between frames.
pub struct FrameSteer<D> {
    pub steering: FrameSteering<D>,
    pub page_bytes: u64,
    pub hot: Vec<String>,
    pub power: Power,
    pub bandwidth: Option<Bandwidth>,
}

/// Bytes between memory and the machine, since an instant.
pub struct Bandwidth {
    pub traffic: MachineTraffic,
    pub begun: Instant,
}

/// Power of the DRAM before the first exchange and after the last one.
pub struct Power {
    energy: Option<Energy>,
    /// Joules and seconds when the first exchange was made, and after the last one.
    first: Option<(f64, f64)>,
    last: (f64, f64),
    exchanged: u64,
}

impl Power {
    pub fn of(energy: Option<Energy>) -> Power {
        Power {
            energy,
            first: None,
            last: (0.0, 0.0),
            exchanged: 0,
        }
    }

    /// So much has been exchanged by now.
    fn note(&mut self, exchanged: u64) {
        let Some(energy) = &mut self.energy else {
            return;
        };
        let now = energy.so_far();
        if exchanged > self.exchanged {
            self.exchanged = exchanged;
            self.first.get_or_insert(self.last);
            self.last = now;
        } else if self.first.is_none() {
            self.last = now;
        }
    }

    /// Both, if there was time enough to tell them.
    fn watts(&mut self) -> Option<(f64, f64)> {
        let (joules, seconds) = self.energy.as_mut()?.so_far();
        let (first, last) = (self.first?, self.last);
        let long = first.1 > 0.5 && seconds - last.1 > 0.5;
        long.then(|| (first.0 / first.1, (joules - last.0) / (seconds - last.1)))
    }
}

impl<D: DecideFrames> Steer for FrameSteer<D> {
    type Memory = LiveFrames;
    const SCOPE: Scope = Scope::All;
    const HAS_FRAMES: bool = true;

    fn open(&self, process: u32) -> Result<LiveFrames, TierError> {
        let memory = LiveFrames::of(process, self.page_bytes, &self.hot);
        let mut memory = memory.map_err(|e| why(process, e))?;
        memory.look().map_err(|e| why(process, e))?;
        Ok(memory)
    }

    fn add(&mut self, number: u32, process: u32, memory: LiveFrames, observer: Box<dyn Observer>) {
        self.steering
            .add(number, process, Box::new(memory), observer);
    }

    fn look(&mut self) -> Vec<(u32, Option<io::Error>)> {
        self.steering.look()
    }

    fn act(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        self.power.note(self.steering.counts().exchanged);
        if let Some(Bandwidth { traffic, begun }) = &mut self.bandwidth
            && let Some(bytes) = traffic.so_far()
        {
            let now = begun.elapsed().as_nanos() as u64;
            self.steering.traffic(now, bytes);
        }
        self.steering.act(allowed, spent);
        self.power.note(self.steering.counts().exchanged);
    }

    fn counts(&self) -> &Counts {
        self.steering.counts()
    }

    fn watched(&self) -> Vec<(u32, f64, u64)> {
        let all = self.steering.watched().into_iter();
        all.map(|(number, seconds)| (number, seconds, 0)).collect()
    }

    fn clear(&mut self) {
        self.steering.clear();
    }

    fn hot_pages(&mut self) -> (u64, u64) {
        let state = &self.steering.report().state;
        (state.hot, state.hot - state.misplaced.min(state.hot))
    }

    fn heat(&self, parts: usize) -> Vec<(u32, Vec<Part>)> {
        self.steering.heat(parts)
    }

    fn finish(&mut self) -> Option<FrameReport> {
        self.steering.finish();
        let mut report = self.steering.report().clone();
        report.watts = self.power.watts();
        Some(report)
    }
}

/// Whether a process's memory may be moved between the nodes at all.
pub(super) fn can_tier(process: u32, kinds: &Kinds) -> Result<(), TierError> {
    let Some(allowed) = who::allowed(process) else {
        return Ok(());
    };
    let mut wanted = kinds.fast.iter().chain(&kinds.slow);
    if let Some(&node) = wanted.find(|node| !allowed.contains(node)) {
        let allowed = Kinds::list(&allowed);
        return Err(TierError::Forbidden {
            process,
            node,
            allowed,
        });
    }
    let refused = |error| TierError::Refused { process, error };
    // Of a page of our own the kernel tells where it is, unless a sandbox forbids the call.
    let mut own = ProcessMemory::of(std::process::id(), BASE).map_err(refused)?;
    let pages = own.pages().map_err(refused)?;
    own.nodes(&pages[..pages.len().min(1)])
        .map(drop)
        .map_err(refused)
}
