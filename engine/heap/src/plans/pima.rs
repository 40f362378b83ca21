//! `pima`, `hints+pima`, `cgz+pima`: the memory of old objects is found by trying both (A8). The state machine is in
//! `pima.rs`; here is the class of objects that its choice is about: all old objects, or those of hot allocation sites
//! alone, while the others stay in slow memory.

use std::time::Duration;
use varve_pima::params::{PARAMS, settled};

use super::Entry;
use super::by_site::Hot;
use crate::plan::{Object, Plan, Site, Space};
use crate::sampler::{FastMemory, Intervals, Sampler};
use varve_pima::Tier;
use varve_pima::{Interval, ReportError};
use varve_pima::{Phase, Pima, Room};

/// The registry entry of this plan.
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

/// By the program's own intervals.
#[derive(Clone, Debug)]
pub struct TriesBoth {
    name: &'static str,
    pima: Pima,
    /// The class of objects that the choice is about; `None`: all.
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

    fn log(&self) -> &[varve_pima::Entry] {
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
