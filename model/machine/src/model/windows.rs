//! Windows of time in which the instances that are not simulated load memory; between them, the recorded waits of the
//! simulated one are repeated.
//!
//! A request of another instance costs as much as one of the simulated instance, and there may be 31 others. Yet their
//! combined load changes slowly. So there are two memories. One has the requests of the simulated instance alone, all
//! the time. The other has those of all instances, and its time goes on in windows only:
//!
//! ```text
//! time of the instance    |--window--|...............|--window--|...............|--window--|
//! time of the busy memory |--window--|--window--|--window--|
//! ```
//!
//! In a window, the busy memory answers, and the model records how much later than the other one it does so. Between
//! windows the other one answers, and the recorded waits are added, in their order, those of the same kind of request
//! to the same memory. Out of step with the requests they would hold the instance up too long or not long enough, so
//! that they are scaled until it is as fast between windows as in them. For the busy memory there is no time between
//! windows, so that its queues never drain there. Its counts in a window stand for the time until the next one.
//!
//! This is systematic sampling, as SMARTS does it for processors (Wunderlich et al., ISCA 2003), with the state that takes long
//! to warm kept up by the instance alone.

use super::activity::ChannelActivity;
use super::counts::SocketCounts;
use super::link::Store;
use super::memory::MemorySystem;
use super::time::Ps;
use crate::describe::{Machine, Mode};
use std::cell::Cell;
use tape::{Kind, Tapes};
use varve_access::random::Rng;

mod tape;

/// Length of a window, ps. An assumption: ten times as long as a request to a busy memory takes, and shorter than a
/// phase of a program, such as a collection. Of 32 instances that read or update DRAM at random, a run with a quarter
/// of it took 13 and 19 % longer than with this; with four times as much it was as long to 4 % (before waits were
/// scaled).
pub const WINDOW: Ps = 40_000_000;
/// All time is in windows until then, ps: twice as long as a channel's memory needs to fall asleep.
const ALL: Ps = 2_000_000_000;
/// Most time between two windows, in their lengths. An assumption: the other 31 of 32 instances then take about as long as the one.
const MOST: Ps = 31;

/// Counts of a memory.
#[derive(Clone, Default)]
struct Counted {
    sockets: Vec<SocketCounts>,
    channels: Vec<Vec<ChannelActivity>>,
}

impl Counted {
    fn of(memory: &MemorySystem, at: Ps) -> Counted {
        Counted {
            sockets: memory.counts(),
            channels: memory.activity(at),
        }
    }

    fn channel(&self, socket: usize, channel: usize) -> Option<&ChannelActivity> {
        self.channels.get(socket)?.get(channel)
    }

    /// These, and `times` times the difference between two readings.
    fn plus(&self, from: &Counted, to: &Counted, times: f64) -> Counted {
        let mut all = to.clone();
        for (i, socket) in all.sockets.iter_mut().enumerate() {
            *socket = socket.since(from.sockets.get(i)).times(times);
            if let Some(before) = self.sockets.get(i) {
                socket.add(before);
            }
        }
        for (i, socket) in all.channels.iter_mut().enumerate() {
            for (j, channel) in socket.iter_mut().enumerate() {
                *channel = channel.since(from.channel(i, j)).times(times);
                if let Some(before) = self.channel(i, j) {
                    channel.add(before);
                }
            }
        }
        all
    }
}

/// A request of the simulated instance to a memory, by its number.
#[derive(Clone, Copy)]
pub struct To {
    pub memory: usize,
    /// It hangs on another socket.
    pub far: bool,
    /// How it is written; `None`: it is read.
    pub write: Option<Store>,
}

impl To {
    fn kind(self) -> Kind {
        let way = match self.write {
            None => 0,
            Some(Store::Evicted) => 1,
            Some(Store::Cleaned) => 2,
            Some(Store::Streamed) => 3,
        };
        (2 * self.memory + usize::from(self.far)) as Kind * 4 + way
    }
}

/// See the module.
pub struct Windows {
    /// The memory that all instances load.
    busy: MemorySystem,
    /// When the window began that runs, or that ran last, and when it ends or ended.
    begun: Ps,
    ends: Ps,
    /// When the next one begins; none if this one still runs.
    next: Option<Ps>,
    /// Difference between the time of the instance and that of the busy memory, ps.
    gap: Ps,
    tapes: Tapes,
    /// Counts of the time before the last window, and those of the busy memory at its begin, and at its end if it has ended.
    before: Counted,
    first: Counted,
    last: Counted,
    /// The latest time that was asked for counts: none of them is less later.
    asked: Cell<Ps>,
    chance: Rng,
}

/// A machine whose DRAM does not refresh. Refreshes come at random; the recorded waits already contain them, so that
/// they would count twice. Stops of PM's media depend on the writes of the instance, and stay.
pub fn quiet(m: &Machine) -> Machine {
    let mut quiet = m.clone();
    quiet.dram.rfc_ns = 0.0;
    quiet
}

impl Windows {
    /// Whether windows represent the whole run. A DRAM cache fills in more time than any window has, and channels that
    /// no instance uses take as long to fall asleep.
    pub fn would_tell(m: &Machine) -> bool {
        m.mode != Mode::MemoryMode && m.dram.interleave_bytes.0 != 0
    }

    /// Windows of a memory that is idle and empty.
    pub fn new(memory: MemorySystem, seed: u64) -> Windows {
        Windows {
            first: Counted::of(&memory, 0),
            busy: memory,
            begun: 0,
            ends: ALL,
            next: None,
            gap: 0,
            tapes: Tapes::new(),
            before: Counted::default(),
            last: Counted::default(),
            asked: Cell::new(0),
            chance: Rng::new(seed, 0),
        }
    }

    /// Is it a time of a window?
    #[inline(always)]
    pub fn runs(&self) -> bool {
        self.next.is_none()
    }

    /// When a window ends or begins next.
    #[inline(always)]
    pub fn turn(&self) -> Ps {
        self.next.unwrap_or(self.ends)
    }

    /// The time of the busy memory.
    #[inline(always)]
    pub fn busy_time(&self, now: Ps) -> Ps {
        match self.runs() {
            true => now.saturating_sub(self.gap),
            false => self.ends - self.gap,
        }
    }

    /// Difference between that time and the instance's, in a window, ps.
    #[inline(always)]
    pub fn gap(&self) -> Ps {
        self.gap
    }

    /// The busy memory.
    #[inline(always)]
    pub fn busy(&mut self) -> &mut MemorySystem {
        &mut self.busy
    }

    /// A window ends at its end. The others have sent all requests until then.
    pub fn end(&mut self) {
        let now = self.ends;
        // How many lines of another socket have marks is a matter of all time.
        if self.busy.has_marks() {
            self.ends += ALL;
            return;
        }
        self.last = Counted::of(&self.busy, now - self.gap);
        self.tapes.settle();
        let most = (now / ALL).min(MOST);
        // A random length, so that windows are not in step with cycles of the program.
        let about = 0.75 + 0.5 * self.chance.unit();
        self.next = Some(now + ((most * WINDOW) as f64 * about) as Ps);
    }

    /// A window begins at `now`.
    pub fn begin(&mut self, now: Ps) {
        self.before = self.counted(now);
        self.first = std::mem::take(&mut self.last);
        self.gap += now - self.ends;
        (self.begun, self.ends, self.next) = (now, now + WINDOW, None);
    }

    /// A thread sends a request at `now`, after `instructions` instructions.
    pub fn come(&mut self, thread: usize, instructions: u64, now: Ps) {
        let runs = self.runs();
        self.tapes.come(thread, instructions, now, runs);
    }

    /// When the busy memory answered to a request, and when the other one: both in the time of the instance.
    pub fn note(&mut self, to: To, busy: Ps, alone: Ps) {
        self.tapes.note(to.kind(), busy, alone);
    }

    /// When a busy memory would answer a request of `at`, if the other one answers at `alone`. `None` if no window
    /// recorded such a wait.
    pub fn repeat(&mut self, to: To, at: Ps, alone: Ps) -> Option<Ps> {
        let wait = self.tapes.repeat(to.kind())?;
        Some(alone.saturating_add_signed(wait).max(at))
    }

    fn counted(&self, now: Ps) -> Counted {
        let now = now.max(self.asked.get());
        self.asked.set(now);
        match self.runs() {
            true => {
                let here = Counted::of(&self.busy, now.max(self.begun) - self.gap);
                self.before.plus(&self.first, &here, 1.0)
            }
            false => {
                let all = now.max(self.ends) - self.begun;
                let times = all as f64 / (self.ends - self.begun) as f64;
                self.before.plus(&self.first, &self.last, times)
            }
        }
    }

    /// Counts of each socket so far, and activity of each channel's memory until `now`, per socket and channel.
    pub fn counts(&self, now: Ps) -> (Vec<SocketCounts>, Vec<Vec<ChannelActivity>>) {
        let counted = self.counted(now);
        (counted.sockets, counted.channels)
    }
}

#[cfg(test)]
mod tests;
