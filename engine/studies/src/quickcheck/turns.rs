//! Times that were measured in turns.

use std::collections::BTreeMap;

/// By program and kind, one time for each turn; none where it failed.
#[derive(Default)]
pub struct Turns(BTreeMap<(&'static str, &'static str), Vec<Option<f64>>>);

impl Turns {
    /// Records the time of the next turn.
    pub fn note(&mut self, name: &'static str, kind: &'static str, time: Option<f64>) {
        self.0.entry((name, kind)).or_default().push(time);
    }

    /// How many there were.
    pub fn number(&self) -> usize {
        self.0.values().map(Vec::len).max().unwrap_or(0)
    }

    /// The standard error, over turns, of the mean over programs of how much longer a kind took than another: points of a percent. Infinite where
    /// there are less than two turns.
    pub fn error(&self, names: &[&'static str], kind: &'static str, base: &'static str) -> f64 {
        let of_turn = |turn: usize| {
            let ratio = |name: &&'static str| {
                let time = |kind| self.0.get(&(*name, kind))?.get(turn).copied().flatten();
                Some(100.0 * time(kind)? / time(base)?)
            };
            mean(&names.iter().filter_map(ratio).collect::<Vec<_>>())
        };
        let means: Vec<f64> = (0..self.number()).filter_map(of_turn).collect();
        let (n, mean) = (means.len() as f64, mean(&means).unwrap_or(0.0));
        let squares: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
        match means.len() {
            0 | 1 => f64::INFINITY,
            _ => (squares / (n - 1.0) / n).sqrt(),
        }
    }

    /// The median over turns.
    pub fn typical(&self, name: &'static str, kind: &'static str) -> Option<f64> {
        let times = self.0.get(&(name, kind))?;
        median(times.iter().copied().flatten().collect())
    }

    /// How much longer a kind took than another, percent: the median over turns, each of which compares what ran side by side.
    pub fn over(&self, name: &'static str, kind: &'static str, base: &'static str) -> Option<f64> {
        let (times, bases) = (self.0.get(&(name, kind))?, self.0.get(&(name, base))?);
        let ratio = |(time, base): (&Option<f64>, &Option<f64>)| Some((*time)? / (*base)?);
        let ratio = median(times.iter().zip(bases).filter_map(ratio).collect())?;
        Some(100.0 * (ratio - 1.0))
    }
}

/// The median; of an even number the higher one in the middle.
fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// The mean, if there are any.
pub fn mean(all: &[f64]) -> Option<f64> {
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_compared_with_themselves() {
        let mut turns = Turns::default();
        // The machine gets slower from turn to turn; the kind is always half as fast again.
        for base in [10.0, 20.0, 40.0] {
            turns.note("p", "base", Some(base));
            turns.note("p", "kind", Some(1.5 * base));
        }
        assert_eq!(turns.over("p", "kind", "base"), Some(50.0));
        assert_eq!(turns.typical("p", "base"), Some(20.0));
        // A turn that failed is left out.
        turns.note("p", "base", None);
        turns.note("p", "kind", Some(1.0));
        assert_eq!(turns.over("p", "kind", "base"), Some(50.0));
        assert_eq!(turns.over("q", "kind", "base"), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(turns.error(&["p"], "kind", "base"), 0.0);
    }

    #[test]
    fn an_error_is_that_of_the_mean_over_programs() {
        let mut turns = Turns::default();
        // One program's gain is the other's loss in the same turn, but for one point of the mean, up and down.
        for (p, q) in [(1.1, 1.3), (1.3, 1.12), (1.2, 1.18)] {
            for (name, ratio) in [("p", p), ("q", q)] {
                turns.note(name, "base", Some(10.0));
                turns.note(name, "kind", Some(10.0 * ratio));
            }
        }
        let error = turns.error(&["p", "q"], "kind", "base");
        assert!((error - (1.0_f64 / 3.0).sqrt()).abs() < 1e-9, "{error}");
        assert_eq!(turns.error(&["q", "r"], "none", "base"), f64::INFINITY);
    }
}
