//! `pima`, `hints+pima`, `cgz+pima`: the memory of old objects is found by trying both (A8). The state machine is in
//! `pima.rs`; here is what its choice is about: all old objects, or those of hot allocation sites alone, while the
//! others stay in slow memory.

use std::time::Duration;

use super::by_site::Hot;
use crate::pima::{Interval, Pima, PimaError, Room};
use crate::plan::{FastMemory, Object, Plan, Site, Space, Tier};

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

    fn takes_hints(&self) -> bool {
        matches!(self.about, Some(Hot::Hinted))
    }

    fn interval(
        &mut self,
        interval: Interval,
        fast: FastMemory,
    ) -> Result<Option<Tier>, PimaError> {
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

    fn pima(&self) -> Option<&Pima> {
        Some(&self.pima)
    }

    fn pima_mut(&mut self) -> Option<&mut Pima> {
        Some(&mut self.pima)
    }
}
