//! B9 and B10: programs under offline and online partitions (figures 7 and 10 to 18, tables 4 and 5).
//!
//! The machine is scaled down and SciMark's large data with it. Times of samplers and of the governor shrink as well: a run here takes
//! some hundredths of a second, not minutes.

mod charts;
mod claims;
mod large;
mod load;
mod look;
mod sampler;
mod steady;
mod suite;

use super::Setup;
use crate::Watch;
use crate::managed::{ManagedPlan, ManagedResults};
use suite::{CONTINUOUS, Entry, MANY, OFFLINE, With, key};
use varve_observed::PlanResult;
use varve_pages::governor::BandwidthModel;
use varve_report::StudyResult;
use varve_run::Error;

use suite::CrossLayerSuite;

/// The results.
pub struct Ran {
    /// The programs each by itself.
    alone: Option<(CrossLayerSuite, Runs)>,
    /// SciMark's kernels each by itself, with more data.
    large: Option<large::Large>,
    /// SciMark's kernels for a given time, every instance run.
    timed: (CrossLayerSuite, ManagedResults),
}

impl Ran {
    /// Why runs failed, by name.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let alone = self.alone.iter().flat_map(|(_, runs)| runs.failures());
        let large = self.large.iter().flat_map(|large| large.failures());
        alone.chain(large).chain(self.timed.1.failures())
    }
}

/// The runs of programs by themselves.
struct Runs {
    first: ManagedResults,
    second: ManagedResults,
}

impl Runs {
    fn get(&self, name: &str) -> Option<&PlanResult> {
        self.first.get(name).or(self.second.get(name))
    }

    fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.first.failures().chain(self.second.failures())
    }
}

/// Makes all runs.
pub fn run(
    setup: &Setup,
    model: Option<&BandwidthModel>,
    watch: Watch,
) -> Result<Option<Ran>, Error> {
    let options = setup.options;
    let (b9, b10) = (options.wants("B9"), options.wants("B10"));
    if !b9 && !b10 {
        return Ok(None);
    }
    let kernels = CrossLayerSuite::kernels(setup, model, watch)?;
    let mut timed = ManagedPlan::default();
    if b9 {
        load::plan(setup, &kernels, &mut timed);
    }
    if b10 {
        sampler::plan(setup, &kernels, &mut timed);
    }
    let timed = (kernels, timed.make(options, watch)?);
    let alone = b9.then(|| alone(setup, model, watch)).transpose()?;
    let large = b9
        .then(|| large::Large::run(setup, model, watch))
        .transpose()?;
    Ok(Some(Ran {
        alone,
        large,
        timed,
    }))
}

pub fn claims(setup: &Setup, ran: &Ran, out: &mut StudyResult) {
    let (kernels, timed) = &ran.timed;
    if let Some(alone) = &ran.alone {
        claims::claims(alone, out);
        if let Some(large) = &ran.large {
            large.claims(out);
            out.tables.push(large.table(&alone.1));
        }
        load::claims(setup, kernels, timed, out);
    }
}

/// Those of B10.
pub fn sampler_claims(ran: &Ran, out: &mut StudyResult) {
    let (kernels, timed) = &ran.timed;
    sampler::claims(kernels, timed, out);
}

/// The runs of programs by themselves: first those with all pages on all DIMMs, by whose peaks capacities go.
fn alone(
    setup: &Setup,
    model: Option<&BandwidthModel>,
    watch: Watch,
) -> Result<(CrossLayerSuite, Runs), Error> {
    let suite = CrossLayerSuite::new(setup, model, watch)?;
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
        for n in counts(entry) {
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
            }
            for n in counts(entry) {
                ask(&strategy, n, With::Limit);
            }
        }
    }
    let second = second.make(setup.options, watch)?;
    Ok((suite, Runs { first, second }))
}
