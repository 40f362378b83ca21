//! Statistics of persistence checks: their number, their outcomes, and their biases.

use crate::compile::persist::{Bias, ENOUGH};
use crate::store::{Store, Vm};

/// Bytes of the counters in a store's region: for each bias, baseline code's last, checks that were bypassed and activated.
pub(crate) const CHECK_COUNTERS: usize = 5 * 16;

/// Persistence checks that code made, by how they were biased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStats {
    /// Bypassed and activated, by bias: likely, unbiased, unlikely, very unlikely.
    pub optimized: [(u64, u64); 4],
    /// In baseline code.
    pub baseline: (u64, u64),
}

/// Places in the program that check, by baseline code's counts there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteStats {
    /// That were activated each time.
    pub always: u64,
    /// That were activated sometimes.
    pub sometimes: u64,
    /// That were never activated.
    pub never: u64,
    /// That were checked too seldom to be any of these, and never activated.
    pub seldom: u64,
    /// That were checked too seldom, and activated.
    pub seldom_activated: u64,
    /// Checks that baseline code made: bypassed and activated.
    pub checks: (u64, u64),
}

impl SiteStats {
    /// Adds a place with its counts.
    fn note(&mut self, bypassed: u64, activated: u64) {
        match (bypassed, activated) {
            (0, 0) => {}
            (b, 0) if b < ENOUGH => self.seldom += 1,
            (b, a) if b + a < ENOUGH => self.seldom_activated += 1,
            (0, _) => self.always += 1,
            (_, 0) => self.never += 1,
            _ => self.sometimes += 1,
        }
        self.checks.0 += bypassed;
        self.checks.1 += activated;
    }

    /// Places that were checked often enough to be classified.
    pub fn known(&self) -> u64 {
        self.always + self.sometimes + self.never
    }

    /// All places that ran.
    pub fn all(&self) -> u64 {
        self.known() + self.seldom + self.seldom_activated
    }
}

impl CheckStats {
    /// All checks, and those that were activated.
    pub fn total(&self) -> (u64, u64) {
        let all = self.optimized.iter().chain([&self.baseline]);
        all.fold((0, 0), |(n, a), (bypassed, activated)| {
            (n + bypassed + activated, a + activated)
        })
    }
}

impl Vm {
    fn check_stats(&self) -> Option<CheckStats> {
        let place = self.check_counters?;
        let pair = |i: usize| {
            let at = self.region.address::<[u64; 2]>(place + 16 * i as u32);
            // SAFETY: the place was allocated for five pairs.
            let [bypassed, activated] = unsafe { at.read() };
            (bypassed, activated)
        };
        Some(CheckStats {
            optimized: [
                pair(Bias::Likely as usize),
                pair(Bias::Unbiased as usize),
                pair(Bias::Unlikely as usize),
                pair(Bias::VeryUnlikely as usize),
            ],
            baseline: pair(4),
        })
    }

    fn site_stats(&self) -> SiteStats {
        let mut stats = SiteStats::default();
        let called = self.code.tiers.feedback.iter();
        for (_, feedback) in called.filter(|&(&func, _)| !self.is_ahead(func)) {
            for (bypassed, activated) in feedback.checks(&self.region) {
                stats.note(bypassed, activated);
            }
        }
        stats
    }
}

impl<T> Store<T> {
    /// Persistence checks so far, if the engine counts them: see [`Config::count_checks`](crate::Config::count_checks).
    pub fn check_stats(&self) -> Option<CheckStats> {
        self.vm().check_stats()
    }

    /// Baseline code's counts of places that check; all zero without checks.
    pub fn check_sites(&self) -> SiteStats {
        self.vm().site_stats()
    }

    /// The counters of the durable region, and the results of its recovery, if there is one.
    pub fn durable_stats(&self) -> Option<(crate::DurableStats, crate::DurableRecovered)> {
        let space = self.vm().durable.as_ref()?.space()?;
        Some((space.stats(), space.recovered().clone()))
    }

    /// Bytes of the region that are in use, garbage too; 0 without one.
    pub fn durable_used(&self) -> u64 {
        let durable = self.vm().durable.as_ref();
        durable.and_then(|d| d.space()).map_or(0, |s| s.used())
    }

    /// The longest pause of the program for a durable collection.
    pub fn longest_durable_pause(&self) -> std::time::Duration {
        let durable = self.vm().durable.as_ref();
        durable.map_or(Default::default(), |d| d.longest_pause)
    }

    /// Frees all durable objects that neither roots nor the program reach: for when there is no room for more. The program waits as long as
    /// following all references takes.
    pub fn collect_durable(&mut self) {
        if self.vm().durable.is_some() {
            self.inner.vm.collect_durable();
        }
    }

    /// Sets `bytes` bytes of the region aside, for when it is full otherwise; bytes already set aside count. Does nothing without a region.
    ///
    /// # Errors
    /// If there is no room for that.
    pub fn set_durable_aside(&mut self, bytes: u64) -> crate::Result<()> {
        match self.inner.vm.region_in_use() {
            Some(space) => Ok(space.set_aside(bytes)?),
            None => Ok(()),
        }
    }

    /// Frees the reserve that was set aside: it is room for objects now.
    pub fn use_durable_aside(&mut self) {
        if let Some(space) = self.inner.vm.region_in_use() {
            space.use_aside();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bypass_makes_no_place_that_never_acts() {
        let mut sites = SiteStats::default();
        for (bypassed, activated) in [
            (0, 0),
            (1, 0),
            (ENOUGH, 0),
            (0, ENOUGH),
            (0, 1),
            (ENOUGH, 1),
        ] {
            sites.note(bypassed, activated);
        }
        let expected = SiteStats {
            always: 1,
            sometimes: 1,
            never: 1,
            seldom: 1,
            seldom_activated: 1,
            checks: (2 * ENOUGH + 1, ENOUGH + 2),
        };
        assert_eq!(sites, expected);
        assert_eq!((sites.known(), sites.all()), (3, 5));
    }
}
