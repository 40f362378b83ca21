//! What all forms of DAMON's records are read into.

use std::ops::Range;

/// Checks of a page between two records where a file does not say: damo's defaults of 5 and 100 ms.
pub(super) const DEFAULT_CHECKS: f64 = 20.0;

/// How often a part of the addresses was found in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Uses {
    /// By so many checks.
    Checks(f64),
    /// By this share of the checks.
    Share(f64),
}

/// A part of the addresses in one record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Region {
    pub range: Range<u64>,
    pub uses: Uses,
}

/// One record: all parts of a target's addresses between two times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Look {
    /// Checks of a page in this record, if the file says so.
    pub checks: Option<f64>,
    pub regions: Vec<Region>,
}

/// All that is in a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Records {
    pub looks: Vec<Look>,
    /// Nanoseconds of the first and last record.
    pub from: Option<f64>,
    pub to: f64,
    /// Parts of which the file does not say how often they were in use.
    pub unknown: u64,
    /// What the file lacks, or has and is left out, one sentence each.
    pub notes: Vec<String>,
}

impl Region {
    /// A part, if it is one. With no bytes, it is what damo adds to files with a single record.
    pub fn new(range: Range<u64>, uses: Uses) -> Result<Option<Region>, String> {
        if range.start > range.end {
            return Err(format!(
                "a region ends at {:x}, before its start at {:x}",
                range.end, range.start
            ));
        }
        if range.is_empty() {
            return Ok(None);
        }
        let (Uses::Checks(number) | Uses::Share(number)) = uses;
        // What is no number is not at least 0 either.
        if !(0.0..=f64::MAX).contains(&number) {
            return Err(format!(
                "the region at {:x} was in use {number} times",
                range.start
            ));
        }
        Ok(Some(Region { range, uses }))
    }

    /// How many of these checks found it in use.
    pub fn uses(&self, checks: f64) -> f64 {
        match self.uses {
            Uses::Checks(uses) => uses,
            Uses::Share(share) => share * checks,
        }
    }
}

impl Records {
    pub fn at(&mut self, ns: f64) {
        if ns.is_finite() {
            self.from = Some(self.from.map_or(ns, |from| from.min(ns)));
            self.to = self.to.max(ns);
        }
    }

    /// Keeps a record that has a part.
    pub fn keep(&mut self, look: Look) {
        if !look.regions.is_empty() {
            self.looks.push(look);
        }
    }

    /// Checks of a page in records that do not say how many these were.
    pub fn usual_checks(&self) -> f64 {
        self.unsaid().fold(DEFAULT_CHECKS, f64::max)
    }

    /// Numbers of checks that found a part in use, in records that do not say of how many.
    fn unsaid(&self) -> impl Iterator<Item = f64> {
        let looks = self.looks.iter().filter(|look| look.checks.is_none());
        looks.flat_map(|look| &look.regions).map(|region| {
            let Uses::Checks(uses) = region.uses else {
                return 0.0;
            };
            uses
        })
    }

    /// What is to be said of checks.
    pub fn notes_of_checks(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let usual = self.usual_checks();
        if usual > DEFAULT_CHECKS {
            notes.push(format!(
                "the file does not say how often a page is checked between two records, and some were found in use {usual} times, more \
                 than damo's default of {DEFAULT_CHECKS} checks: {usual} is taken, which scales all sites alike"
            ));
        } else if self.unsaid().next().is_some() {
            notes.push(format!(
                "the file does not say how often a page is checked between two records: damo's default of {DEFAULT_CHECKS} is taken, \
                 which scales all sites alike"
            ));
        }
        let over = |look: &Look| {
            let checks = look.checks.unwrap_or(usual);
            let regions = look.regions.iter();
            regions.filter(|one| one.uses(checks) > checks).count()
        };
        let over: usize = self.looks.iter().map(over).sum();
        if over > 0 {
            notes.push(format!(
                "{over} regions were found in use more often than the file says that a page is checked, and count as in use all the time"
            ));
        }
        notes
    }
}
