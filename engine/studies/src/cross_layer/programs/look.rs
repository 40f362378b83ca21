//! Results of B9 beside the default, for its claims and its pictures.

use super::steady::Steady;
use super::suite::{Entry, MANY, With, key};
use super::{CrossLayerSuite, Runs};
use varve_observed::PlanResult;

/// Looks results up beside the default.
pub(super) struct Look<'a> {
    pub(super) suite: &'a CrossLayerSuite,
    pub(super) ran: &'a Runs,
}

impl Look<'_> {
    pub(super) fn pair(
        &self,
        entry: &Entry,
        strategy: &str,
        n: u32,
        with: With,
    ) -> Option<(&PlanResult, &PlanResult)> {
        let base = self.ran.get(&key(entry, "default", n, With::Nothing))?;
        Some((base, self.ran.get(&key(entry, strategy, n, with))?))
    }

    pub(super) fn time(&self, entry: &Entry, strategy: &str, n: u32, with: With) -> Option<f64> {
        let (base, r) = self.pair(entry, strategy, n, with)?;
        Some(r.seconds / base.seconds)
    }

    pub(super) fn energy(&self, entry: &Entry, strategy: &str, n: u32, with: With) -> Option<f64> {
        let (base, r) = self.pair(entry, strategy, n, with)?;
        Some(r.energy_j? / base.energy_j?)
    }

    /// The part of the objects that is cold, in percent.
    pub(super) fn cold(&self, entry: &Entry, strategy: &str, n: u32) -> Option<f64> {
        let (_, r) = self.pair(entry, strategy, n, With::Nothing)?;
        Some(100.0 * (1.0 - r.dram_share()))
    }

    pub(super) fn entries(&self, scimark: bool) -> impl Iterator<Item = &'static Entry> + '_ {
        let all = self.suite.entries.iter().copied();
        all.filter(move |e| e.scimark == scimark)
    }

    pub(super) fn mean(&self, scimark: bool, of: impl Fn(&Entry) -> Option<f64>) -> Option<f64> {
        let all: Vec<f64> = self.entries(scimark).filter_map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// The result of a run with the governor after it has settled, and of the default for the same last bytes.
    pub(super) fn steady(&self, entry: &Entry, strategy: &str, n: u32) -> Option<Steady> {
        let (base, r) = self.pair(entry, strategy, n, With::Governor)?;
        Steady::of(r, base)
    }
}

/// The mean over all kernels; none if one of them has none.
pub(super) fn mean_of_all(all: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all = all.collect::<Option<Vec<f64>>>()?;
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Columns of programs as the paper's figures have them: one and eleven threads of each kernel.
pub(super) fn columns(all: &Look) -> Vec<(&'static Entry, u32)> {
    let many = all.entries(true).map(|e| (e, MANY));
    let one = all.entries(false).chain(all.entries(true)).map(|e| (e, 1));
    one.chain(many).collect()
}

pub(super) fn label((entry, n): &(&'static Entry, u32)) -> String {
    match entry.scimark {
        true => format!("{} {n}T", entry.name),
        false => entry.name.into(),
    }
}
