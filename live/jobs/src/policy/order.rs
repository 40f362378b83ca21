//! Which program starts when.
//!
//! A state machine: its inputs are ended programs and finished migrations, its outputs are programs to start. On the model and on this
//! machine the same decides.
//!
//! A program that writes much to slow memory disturbs one in fast memory that needs its bandwidth. When one of the two runs and the
//! other would be next, another program goes first if there is one:
//! - method 1: the writer runs; in fast memory the first waiting program starts that needs no bandwidth.
//! - method 2: the one in need of bandwidth runs; in slow memory the waiting program starts that writes least.
//!
//! With a limit of programs at a time no program waits for that alone: if all that wait would disturb or be disturbed, the
//! first starts. Without a limit, where all others start at once anyway, it waits until the other has ended.

use crate::kinds::{Class, Memory};
use serde::{Deserialize, Serialize};

/// A program, as far as its turn depends on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its place among those that wait: as it came.
    pub rank: u32,
    /// Where it is.
    pub memory: Memory,
    /// Its class.
    pub class: Class,
    /// Does it write much?
    pub write_intensive: bool,
    /// GB/s that it writes alone; 0 if unknown.
    pub write_gbps: f64,
    /// Programs that must have ended.
    pub after: Vec<usize>,
    /// Its room is made only now: it waits for [`Dispatcher::ready`].
    pub held: bool,
}

impl Item {
    /// Does the one, in slow memory, disturb the other, in fast memory?
    fn disturbs(&self, other: &Item) -> bool {
        self.memory == Memory::Slow
            && self.write_intensive
            && other.memory == Memory::Fast
            && other.class == Class::BandwidthSensitive
    }

    /// Do the two disturb each other, whichever of them writes?
    pub fn clashes(&self, other: &Item) -> bool {
        self.disturbs(other) || other.disturbs(self)
    }
}

/// Why a program starts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// It is the first that waits.
    Turn,
    /// It goes before others since a program that writes much runs in slow memory (method 1); that one.
    InsteadOfDisturbed(usize),
    /// It goes before others since a program that needs bandwidth runs in fast memory (method 2); that one.
    InsteadOfDisturbing(usize),
    /// It starts beside one that it disturbs, or that disturbs it, since nothing else could; that one.
    Nevertheless(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    items: Vec<Item>,
    states: Vec<State>,
    at_once: u32,
    avoid: bool,
}

impl Dispatcher {
    /// Programs in the order in which they came. `avoid` switches both methods on.
    pub fn new(items: Vec<Item>, at_once: u32, avoid: bool) -> Dispatcher {
        Dispatcher {
            states: vec![State::Waiting; items.len()],
            items,
            at_once,
            avoid,
        }
    }

    /// The next program to start now; call it until there is none.
    pub fn start(&mut self) -> Option<(usize, Reason)> {
        let mut lanes: Vec<Memory> = Vec::new();
        // The memory whose first waiting program arrived first is asked first.
        for i in self.waiting() {
            let memory = self.items[i].memory;
            if !lanes.contains(&memory) {
                lanes.push(memory);
            }
        }
        let (next, why) = lanes.into_iter().find_map(|memory| self.pick(memory))?;
        self.states[next] = State::Running;
        Some((next, why))
    }

    /// A program has ended, well or not.
    pub fn ended(&mut self, program: usize) {
        self.states[program] = State::Ended;
    }

    /// Room was made for a program.
    pub fn ready(&mut self, program: usize) {
        self.items[program].held = false;
    }

    /// Programs that run.
    pub fn running(&self) -> impl Iterator<Item = usize> {
        self.of(State::Running)
    }

    /// Has every program ended?
    pub fn is_done(&self) -> bool {
        self.states.iter().all(|s| *s == State::Ended)
    }

    fn of(&self, state: State) -> impl Iterator<Item = usize> {
        (0..self.items.len()).filter(move |&i| self.states[i] == state)
    }

    fn waiting(&self) -> Vec<usize> {
        let free = |i: &usize| {
            let item = &self.items[*i];
            !item.held && item.after.iter().all(|&a| self.states[a] == State::Ended)
        };
        let mut waiting: Vec<usize> = self.of(State::Waiting).filter(free).collect();
        waiting.sort_by_key(|&i| self.items[i].rank);
        waiting
    }

    /// A running program that would disturb this one, or be disturbed by it.
    fn clash(&self, i: usize) -> Option<usize> {
        self.running()
            .find(|&r| self.items[r].clashes(&self.items[i]))
    }

    fn pick(&self, memory: Memory) -> Option<(usize, Reason)> {
        let of = |i: &usize| self.items[*i].memory == memory;
        let running = self.running().filter(of).count();
        if self.at_once > 0 && running >= self.at_once as usize {
            return None;
        }
        let waiting: Vec<usize> = self.waiting().into_iter().filter(of).collect();
        let first = *waiting.first()?;
        let clash = match self.avoid {
            true => self.clash(first),
            false => None,
        };
        let Some(with) = clash else {
            return Some((first, Reason::Turn));
        };
        let harmless = waiting.iter().copied().filter(|&i| self.clash(i).is_none());
        let instead = match memory {
            Memory::Fast => harmless.into_iter().next(),
            Memory::Slow => {
                let writes = |i: &usize| self.items[*i].write_gbps;
                harmless.min_by(|a, b| writes(a).total_cmp(&writes(b)))
            }
        };
        match (instead, memory) {
            (Some(i), Memory::Fast) => Some((i, Reason::InsteadOfDisturbed(with))),
            (Some(i), Memory::Slow) => Some((i, Reason::InsteadOfDisturbing(with))),
            (None, _) if self.at_once > 0 => Some((first, Reason::Nevertheless(with))),
            (None, _) => None,
        }
    }
}
