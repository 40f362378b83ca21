//! Times that were measured in turns.

use std::collections::BTreeMap;

/// By program and kind, one time for each turn; none where it failed.
#[derive(Default)]
pub struct Turns(BTreeMap<(&'static str, &'static str), Vec<Option<f64>>>);

impl Turns {
    /// Notes the time of the next turn.
    pub fn note(&mut self, name: &'static str, kind: &'static str, time: Option<f64>) {
        self.0.entry((name, kind)).or_default().push(time);
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
    }
}
