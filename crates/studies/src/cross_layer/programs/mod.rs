//! B9: programs under offline and online partitions (figures 10 to 18).
//!
//! The machine is scaled down and SciMark's large data with it. Times of samplers and of the governor shrink as well: a run here takes
//! some hundredths of a second, not minutes.

mod charts;
mod claims;
mod look;
mod suite;

use super::Setup;
use crate::Watch;
use crate::managed::{ManagedPlan, ManagedResults};
use suite::{CONTINUOUS, Entry, MANY, OFFLINE, With, key, loads};
use varve_pages::governor::BandwidthModel;
use varve_run::{Error, PlanResult};

pub use claims::claims;
pub use suite::Suite;

/// What came out.
pub struct Runs {
    first: ManagedResults,
    second: ManagedResults,
}

impl Runs {
    fn get(&self, name: &str) -> Option<&PlanResult> {
        self.first.get(name).or(self.second.get(name))
    }

    /// Why runs failed, by name.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.first.failures().chain(self.second.failures())
    }
}

/// Makes all runs: first those with all pages on all DIMMs, by whose peaks capacities go.
pub fn run(
    setup: &Setup,
    model: Option<&BandwidthModel>,
    watch: Watch,
) -> Result<Option<(Suite, Runs)>, Error> {
    if !setup.options.wants("B9") {
        return Ok(None);
    }
    let suite = Suite::new(setup, model, watch)?;
    let (mut first, mut second) = (ManagedPlan::default(), ManagedPlan::default());
    let usual = suite.trays(With::Nothing, None).unwrap_or_default();
    let counts = |entry: &Entry| {
        if entry.scimark {
            vec![1, MANY]
        } else {
            vec![1]
        }
    };
    for (at, entry) in suite.entries.iter().enumerate() {
        let mut instances = counts(entry);
        if entry.scimark {
            instances.extend(loads(setup));
        }
        for n in instances {
            let name = key(entry, "default", n, With::Nothing);
            first.run(name, suite.spec(at, "dram", n, usual.clone()));
        }
    }
    let first = first.make(setup.options, watch)?;
    first.all_there()?;
    for (at, entry) in suite.entries.iter().enumerate() {
        let mut ask = |strategy: &(&'static str, String), n: u32, with: With| {
            let peak = first
                .get(&key(entry, "default", n, With::Nothing))
                .map(|r| r.fast_bytes);
            if let Some(trays) = suite.trays(with, peak) {
                let name = key(entry, strategy.0, n, with);
                second.run(name, suite.spec(at, &strategy.1, n, trays));
            }
        };
        for n in counts(entry) {
            for strategy in suite.strategies() {
                ask(&strategy, n, With::Nothing);
            }
        }
        for name in [OFFLINE, CONTINUOUS] {
            let Some(strategy) = suite.strategy(name) else {
                continue;
            };
            if entry.scimark {
                ask(&strategy, MANY, With::Governor);
                for n in loads(setup) {
                    ask(&strategy, *n, With::Governor);
                }
            }
            for n in counts(entry) {
                ask(&strategy, n, With::Limit);
            }
        }
    }
    let second = second.make(setup.options, watch)?;
    Ok(Some((suite, Runs { first, second })))
}
