//! `pima`, `hints+pima`, `cgz+pima`: the memory of old objects is found by trying both (A8). The state machine is in
//! `pima.rs`; here is what its choice is about: all old objects, or those of hot allocation sites alone, while the
//! others stay in slow memory.

use std::time::Duration;

use super::by_site::Hot;
use crate::pima::{Interval, Pima, PimaError};
use crate::plan::{Object, Plan, Site, Space, Tier};

/// By what the program's own intervals showed.
#[derive(Clone, Debug)]
pub struct Sampled {
    name: &'static str,
    pima: Pima,
    /// What the choice is about; `None` is everything.
    about: Option<Hot>,
}

impl Sampled {
    /// A plan of this name.
    pub fn new(name: &'static str, pima: Pima, about: Option<Hot>) -> Sampled {
        Sampled { name, pima, about }
    }
}

impl Plan for Sampled {
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

    fn interval(&mut self, interval: Interval) -> Result<Option<Tier>, PimaError> {
        self.pima.interval(interval)
    }

    fn moved(&mut self, now: Duration) {
        self.pima.moved(now);
    }

    fn pima(&mut self) -> Option<&mut Pima> {
        Some(&mut self.pima)
    }
}
