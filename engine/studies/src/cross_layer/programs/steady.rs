//! The part of a run in which the governor has settled.
//!
//! ```text
//! with the governor   |--1--|--2--|---------- 3 hot DIMMs ----------|      the last remap, and a sample after it
//!                                  ^ from here on: a number of bytes
//! default             |------------------|----------------------|          the same last bytes
//! ```
//!
//! Our runs are short, so that the governor's search is a large part of them, which it is not of the paper's minutes.

use super::suite::SAMPLE_NS;
use varve_observed::PlanResult;
use varve_run::PowerPoint;

/// Time and DRAM energy from when the governor has settled on, over the default's for the same last bytes from and to memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steady {
    pub(super) time: f64,
    pub(super) energy: f64,
    /// The part of the run before that, 0 to 1.
    pub(super) search: f64,
}

/// Less of a run's bytes than this after the last remap say nothing.
const LEAST: f64 = 0.1;

impl Steady {
    /// None if the number of hot DIMMs changes until the end.
    pub(super) fn of(r: &PlanResult, base: &PlanResult) -> Option<Steady> {
        let (ours, theirs) = (Series::of(r)?, Series::of(base)?);
        let at = settled(r);
        let bytes = ours.all().bytes - ours.until(at).bytes;
        if bytes < LEAST * ours.all().bytes {
            return None;
        }
        let (own, other) = (ours.last(bytes), theirs.last(bytes));
        Some(Steady {
            time: own.seconds / other.seconds,
            energy: own.joules / other.joules,
            search: at / ours.all().seconds,
        })
    }
}

/// When the number of hot DIMMs has changed for the last time, s: a sample later, which the governor leaves out too, since pages move.
fn settled(r: &PlanResult) -> f64 {
    let trays = r.trays.iter().flat_map(|trays| &trays.decisions);
    trays
        .map(|d| d.0 + SAMPLE_NS as f64 / 1e9)
        .fold(0.0, f64::max)
}

/// Sums over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Part {
    seconds: f64,
    joules: f64,
    bytes: f64,
}

/// A run over time: everything until each point.
struct Series(Vec<Part>);

impl Series {
    /// Of the first socket, which the programs use.
    fn of(r: &PlanResult) -> Option<Series> {
        let dimms = r.trays.iter().flat_map(|t| &t.dimms);
        Series::sum(&r.power, dimms.filter(|d| d.socket == 0).count())
    }

    fn sum(points: &[PowerPoint], dimms: usize) -> Option<Series> {
        let mut sum = vec![Part::default()];
        let mut so_far = Part::default();
        for p in points {
            let seconds = p.end - so_far.seconds;
            so_far = Part {
                seconds: p.end,
                joules: so_far.joules + seconds * p.watts.iter().take(dimms).sum::<f64>(),
                bytes: so_far.bytes + seconds * p.bytes_per_second,
            };
            sum.push(so_far);
        }
        (so_far.bytes > 0.0).then_some(Series(sum))
    }

    fn all(&self) -> Part {
        self.0.last().copied().unwrap_or_default()
    }

    /// Everything until something that only grows has come to a value, between two points as if it came evenly.
    fn up_to(&self, of: fn(&Part) -> f64, value: f64) -> Part {
        let after = self.0.partition_point(|p| of(p) <= value);
        let (Some(before), Some(next)) = (after.checked_sub(1), self.0.get(after)) else {
            return match after {
                0 => Part::default(),
                _ => self.all(),
            };
        };
        let before = &self.0[before];
        let part = (value - of(before)) / (of(next) - of(before));
        let between = |a: f64, b: f64| a + part * (b - a);
        Part {
            seconds: between(before.seconds, next.seconds),
            joules: between(before.joules, next.joules),
            bytes: between(before.bytes, next.bytes),
        }
    }

    fn until(&self, seconds: f64) -> Part {
        self.up_to(|p| p.seconds, seconds)
    }

    /// The end of the run, from the point with `bytes` bytes left.
    fn last(&self, bytes: f64) -> Part {
        let all = self.all();
        let before = self.up_to(|p| p.bytes, all.bytes - bytes);
        Part {
            seconds: all.seconds - before.seconds,
            joules: all.joules - before.joules,
            bytes: all.bytes - before.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_run::TrayUse;

    /// Parts of a run, one after the other: seconds, watts of the used DIMM, and bytes a second.
    fn run(parts: &[(f64, f64, f64)], remaps: &[f64]) -> PlanResult {
        let mut end = 0.0;
        let point = |&(seconds, watts, bytes_per_second): &(f64, f64, f64)| {
            end += seconds;
            PowerPoint {
                end,
                // The DIMM of the other socket does not count.
                watts: vec![watts, 100.0],
                bytes_per_second,
            }
        };
        let mut r = PlanResult {
            power: parts.iter().map(point).collect(),
            ..PlanResult::default()
        };
        let mut trays = TrayUse::default();
        trays.dimms.resize_with(2, Default::default);
        trays.dimms[1].socket = 1;
        trays.decisions = remaps.iter().map(|at| (*at, 2, false)).collect();
        r.trays = Some(trays);
        r
    }

    #[test]
    fn only_what_comes_after_the_last_remap_counts_and_the_default_for_the_same_bytes() {
        let sample = SAMPLE_NS as f64 / 1e9;
        // Three seconds of search at 5 W, then 20 bytes in 2 s at 1 W.
        let r = run(&[(3.0, 5.0, 5.0), (2.0, 1.0, 10.0)], &[1.0, 3.0 - sample]);
        // Its last 20 bytes take 4 s at 2 W.
        let base = run(&[(1.0, 9.0, 20.0), (5.0, 2.0, 5.0)], &[]);
        let steady = Steady::of(&r, &base).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(steady.time, 0.5) && near(steady.energy, 2.0 / 8.0));
        assert!(near(steady.search, 0.6));
    }

    #[test]
    fn without_a_remap_it_is_the_whole_run_and_with_one_at_the_end_nothing() {
        let base = run(&[(2.0, 2.0, 10.0)], &[]);
        let r = run(&[(4.0, 0.5, 5.0)], &[]);
        let whole = Steady::of(&r, &base).unwrap();
        assert_eq!((whole.time, whole.energy, whole.search), (2.0, 0.5, 0.0));
        assert_eq!(Steady::of(&run(&[(4.0, 0.5, 5.0)], &[3.9]), &base), None);
        assert_eq!(Steady::of(&PlanResult::default(), &base), None);
    }
}
