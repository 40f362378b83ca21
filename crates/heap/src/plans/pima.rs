//! `pima`, `hints+pima`, `cgz+pima`: the memory of old objects is found by trying both (A8). The state machine is in
//! `pima.rs`; here is what its choice is about: all old objects, or those of hot allocation sites alone, while the
//! others stay in slow memory.

use std::time::Duration;
use varve_spec::{Param, Values, Want};

use super::Entry;
use super::by_site::Hot;
use crate::pima::{self, Phase, Pima, PimaError, PimaSettings, Room};
use crate::plan::{Object, Plan, Site, Space};
use crate::report::{Interval, ReportError};
use crate::sampler::{FastMemory, Intervals, Sampler};
use crate::tier::Tier;

/// What there is to know of it.
pub const ENTRY: Entry = Entry {
    source: "Akram, TACO 2021: PIMA",
    usual: true,
    intervals: true,
    params: PARAMS,
    ..Entry::new(
        "pima",
        "old objects where the program runs well, found by sampling both memories",
        |v, _| Ok(Box::new(TriesBoth::new(ENTRY.name, settled(v)?, None))),
    )
};

/// The parameters of the state machine.
pub(super) const PARAMS: &[Param] = &[ALPHA, INTERVALS, HOLD_OFF, WARM_UP, TOGETHER];

/// A slowdown.
pub const ALPHA: Param = Param::new(
    "alpha",
    Want::Number,
    "1.5",
    "fast memory is chosen if the program is slower by more than this factor in slow memory, at least 1 (section 6.4)",
);
/// Intervals per memory.
pub const INTERVALS: Param = Param::new(
    "intervals",
    Want::Count {
        min: 1,
        max: u64::MAX,
    },
    "2",
    "intervals per memory in a sample, N_i (section 6.4)",
);
/// Time between samples.
pub const HOLD_OFF: Param = Param::new(
    "hold-off",
    Want::Time,
    "50s",
    "time from a decision to the next sample (section 6.4)",
);
pub(super) const WARM_UP: Param = Param::new(
    "warm-up",
    Want::Count {
        min: 1,
        max: u64::MAX,
    },
    "1",
    "intervals before the first sample: those of the first iteration may be unlike all others",
);
pub(super) const TOGETHER: Param = Param::new(
    "together",
    Want::Flag,
    "yes",
    "whether the samples of several instances begin when all of them are ready (section 6.2)",
);

/// The state machine with the settings that were given.
pub(super) fn settled(v: &Values) -> Result<Pima, PimaError> {
    let most = u64::from(u32::MAX);
    Pima::new(PimaSettings {
        warm_up: v.count(WARM_UP.key).min(most) as u32,
        coordinated: v.flag(TOGETHER.key),
        ..settings(v)
    })
}

/// What [`ALPHA`], [`INTERVALS`] and [`HOLD_OFF`] say, for one instance that samples by itself.
pub fn settings(v: &Values) -> PimaSettings {
    PimaSettings {
        alpha: v.number(ALPHA.key),
        intervals: v.count(INTERVALS.key).min(u64::from(u32::MAX)) as u32,
        hold_off: v.time(HOLD_OFF.key),
        ..PimaSettings::default()
    }
}

/// By what the program's own intervals showed.
#[derive(Clone, Debug)]
pub struct TriesBoth {
    name: &'static str,
    pima: Pima,
    /// What the choice is about; `None` is everything.
    about: Option<Hot>,
}

impl TriesBoth {
    /// A plan of this name.
    pub fn new(name: &'static str, pima: Pima, about: Option<Hot>) -> TriesBoth {
        TriesBoth { name, pima, about }
    }
}

impl Plan for TriesBoth {
    fn name(&self) -> &str {
        self.name
    }

    fn place(&self, o: Object) -> Space {
        match self.about.is_none() || o.hot {
            true => Space::Old(self.pima.memory()),
            false => Space::Old(Tier::SLOW),
        }
    }

    fn is_hot(&self, site: Site<'_>) -> bool {
        self.about.as_ref().is_some_and(|hot| hot.is_hot(site))
    }

    fn takes_hints(&self) -> bool {
        matches!(self.about, Some(Hot::Hinted))
    }

    fn sampler(&self) -> Option<Sampler<'_>> {
        Some(Sampler::Intervals(self))
    }

    fn intervals_mut(&mut self) -> Option<&mut dyn Intervals> {
        Some(self)
    }
}

impl Intervals for TriesBoth {
    fn interval(
        &mut self,
        interval: Interval,
        fast: FastMemory,
    ) -> Result<Option<Tier>, ReportError> {
        let need = match self.about {
            None => fast.old,
            Some(_) => fast.hot,
        };
        let left = fast.left;
        self.pima.interval(interval, Room { need, left })
    }

    fn moved(&mut self, now: Duration, bytes: u64) {
        self.pima.moved(now, bytes);
    }

    fn log(&self) -> &[pima::Entry] {
        self.pima.log()
    }

    fn is_coordinated(&self) -> bool {
        self.pima.is_coordinated()
    }

    fn is_ready(&self) -> bool {
        self.pima.phase() == Phase::Prepare
    }

    fn start(&mut self, now: Duration) {
        self.pima.start(now);
    }
}
