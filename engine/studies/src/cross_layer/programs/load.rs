//! B9: SciMark in one run whose load changes (figure 18), and what is remapped in it (table 5).
//!
//! Threads come and go by spans, as many in each as the seed draws, and the strategies and the default get the same. A thread that is away
//! keeps its objects. How fast a strategy is: how much the kernels have done in the time.

mod claims;

pub(super) use claims::claims;

use super::super::Setup;
use super::CrossLayerSuite;
use super::suite::{CONTINUOUS, Entry, OFFLINE, SAMPLE_NS, With};
use crate::managed::ManagedPlan;
use varve_access::random::Rng;
use varve_observed::{PlanResult, Shifts, Who};

/// The most threads in a span.
const MOST: u64 = 10;
/// The stream of random numbers that loads are drawn from.
const STREAM: u64 = 18;

/// Strategies, and whether the governor works.
const RUNS: [(&str, With); 4] = [
    (OFFLINE, With::Nothing),
    (OFFLINE, With::Governor),
    (CONTINUOUS, With::Nothing),
    (CONTINUOUS, With::Governor),
];

/// Threads by span.
struct Load {
    counts: Vec<u32>,
    span_ns: u64,
}

impl Load {
    /// One span for each of the paper's minutes. The study's time determines the number of the governor's samples in a span.
    fn of(setup: &Setup) -> Load {
        let (spans, span_ns) = match (setup.tiny(), setup.quick()) {
            (true, _) => (2, 3 * SAMPLE_NS),
            (_, true) => (5, 20 * SAMPLE_NS),
            _ => (10, 60 * SAMPLE_NS),
        };
        let mut rng = Rng::new(setup.options.seed, STREAM);
        Load {
            counts: (0..spans).map(|_| rng.between(1, MOST) as u32).collect(),
            span_ns,
        }
    }

    fn shifts(&self) -> Shifts {
        Shifts {
            end_ns: self.counts.len() as u64 * self.span_ns,
            who: Who::First {
                counts: self.counts.clone(),
                span_ns: self.span_ns,
            },
        }
    }

    fn most(&self) -> u32 {
        self.counts.iter().copied().max().unwrap_or(1)
    }

    /// Share of the time in which the governor searches, 0 to 1: from the beginning of each span to a sample after the last remap in it.
    fn search(&self, r: &PlanResult) -> f64 {
        let span_s = self.span_ns as f64 / 1e9;
        let mut until = vec![0.0f64; self.counts.len()];
        for (at, ..) in r.trays.iter().flat_map(|trays| &trays.decisions) {
            let span = (at / span_s) as usize;
            if let Some(until) = until.get_mut(span) {
                let since = at - span as f64 * span_s + SAMPLE_NS as f64 / 1e9;
                *until = until.max(since.min(span_s));
            }
        }
        until.iter().sum::<f64>() / (span_s * self.counts.len() as f64)
    }
}

fn key(entry: &Entry, strategy: &str, with: With) -> String {
    format!("{}, changing load, {strategy}, {with:?}", entry.name)
}

pub(super) fn plan(setup: &Setup, suite: &CrossLayerSuite, plan: &mut ManagedPlan) {
    let load = Load::of(setup);
    for (at, entry) in suite.entries.iter().enumerate() {
        let mut ask = |strategy: &str, words: &str, with: With| {
            if let Some(trays) = suite.trays(with, None) {
                let spec = suite.timed(at, words, load.most(), trays, load.shifts());
                plan.run(key(entry, strategy, with), spec);
            }
        };
        ask("default", "dram", With::Nothing);
        for (name, with) in RUNS {
            if let Some((_, words)) = suite.strategy(name) {
                ask(name, &words, with);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_run::TrayUse;

    #[test]
    fn a_search_is_from_the_beginning_of_a_span_to_a_sample_after_its_last_remap() {
        let load = Load {
            counts: vec![1, 9, 3, 4],
            span_ns: 10 * SAMPLE_NS,
        };
        let sample = SAMPLE_NS as f64 / 1e9;
        let at = [1.0, 3.0, 25.0, 29.5, 40.0];
        let r = PlanResult {
            trays: Some(TrayUse {
                decisions: at.map(|at| (at * sample, 2, false)).into(),
                ..TrayUse::default()
            }),
            ..PlanResult::default()
        };
        // 4 samples of the first span, none of the second, all of the third; the last remap comes after the end.
        assert!((load.search(&r) - 14.0 / 40.0).abs() < 1e-9);
    }
}
