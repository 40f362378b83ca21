//! Progress of runs that have not ended: the time of each relative to the first, for as many accesses.
//!
//! The same program makes about the same accesses under each plan; those of its collector differ by little. So this is
//! near the ratio of whole runs long before there is one, and it is shown, not kept.

/// Accesses between two points that are remembered.
const STEP: u64 = 1_000_000;

/// Runs beside the first of them.
pub struct SoFar {
    runs: Vec<Run>,
    /// Accesses of a whole run; 0 if unknown.
    whole: u64,
}

/// How far a run is, and how far it was when: accesses and ns.
#[derive(Default)]
struct Run {
    points: Vec<(u64, u64)>,
    now: (u64, u64),
    ended: bool,
}

impl SoFar {
    /// For `runs` runs, of which none has begun.
    pub fn new(runs: usize) -> SoFar {
        SoFar {
            runs: (0..runs).map(|_| Run::default()).collect(),
            whole: 0,
        }
    }

    /// The same where it is known before how many accesses each run makes.
    pub fn of_length(runs: usize, accesses: Option<u64>) -> SoFar {
        SoFar {
            whole: accesses.unwrap_or(0),
            ..SoFar::new(runs)
        }
    }

    /// A run has made `accesses` accesses in `ns` ns.
    pub fn note(&mut self, run: usize, accesses: u64, ns: u64) {
        let run = &mut self.runs[run];
        run.now = (accesses, ns);
        let last = run.points.last().map_or(0, |p| p.0);
        if accesses >= last + STEP {
            run.points.push(run.now);
        }
    }

    /// A run has ended.
    pub fn end(&mut self, run: usize) {
        self.runs[run].ended = true;
        self.whole = self.whole.max(self.runs[run].now.0);
    }

    /// Accesses of all runs.
    pub fn accesses(&self) -> u64 {
        self.runs.iter().map(|run| run.now.0).sum()
    }

    /// How much of all runs is done, from 0 to 1: by the accesses of one that has ended, or by the time at which each ends, if it
    /// is given, ns.
    pub fn share(&self, until_ns: Option<u64>) -> f64 {
        let of = |run: &Run| {
            let part = |now: u64, whole: u64| match whole {
                0 => 0.0,
                _ => (now as f64 / whole as f64).min(1.0),
            };
            match run.ended {
                true => 1.0,
                false => part(run.now.0, self.whole).max(part(run.now.1, until_ns.unwrap_or(0))),
            }
        };
        self.runs.iter().map(of).sum::<f64>() / self.runs.len().max(1) as f64
    }

    /// The numbers of runs that have begun and not ended.
    pub fn going_on(&self) -> impl Iterator<Item = usize> {
        let runs = self.runs.iter().enumerate();
        runs.filter(|(_, run)| !run.ended && run.now.0 > 0)
            .map(|(i, _)| i)
    }

    /// How far a run is, ns.
    pub fn ns(&self, run: usize) -> u64 {
        self.runs[run].now.1
    }

    /// The time of a run over that of the first, for the accesses that both have made; `None` while these are few.
    pub fn beside_first(&self, run: usize) -> Option<f64> {
        let (first, run) = (self.runs.first()?, self.runs.get(run)?);
        let accesses = first.now.0.min(run.now.0);
        (accesses >= STEP).then(|| run.ns_of(accesses) / first.ns_of(accesses))
    }
}

impl Run {
    /// The time of the first `accesses` accesses, at most those made so far, ns.
    fn ns_of(&self, accesses: u64) -> f64 {
        let after = self.points.partition_point(|p| p.0 < accesses);
        let from = after.checked_sub(1).map_or((0, 0), |i| self.points[i]);
        let to = *self.points.get(after).unwrap_or(&self.now);
        let share = (accesses - from.0) as f64 / (to.0 - from.0).max(1) as f64;
        from.1 as f64 + share * (to.1 - from.1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_is_done_is_known_from_a_run_that_has_ended() {
        let mut runs = SoFar::new(4);
        runs.note(0, 500, 10);
        assert_eq!(runs.share(None), 0.0, "the length of a run is unknown");
        assert_eq!(runs.share(Some(40)), 0.25 / 4.0);
        runs.note(0, 1000, 20);
        runs.end(0);
        runs.note(1, 500, 10);
        assert_eq!(runs.share(None), 1.5 / 4.0);
        runs.note(1, 2000, 40);
        assert_eq!(runs.share(None), 2.0 / 4.0, "more accesses than the first");
        assert_eq!(runs.accesses(), 3000);
        let mut known = SoFar::of_length(2, Some(100));
        known.note(0, 50, 1);
        assert_eq!(known.share(None), 0.25);
    }

    #[test]
    fn runs_are_compared_as_far_as_both_have_come() {
        let mut runs = SoFar::new(3);
        assert_eq!(runs.beside_first(1), None);
        for n in 1..=40 {
            // Fast in the beginning, then half as fast.
            let slower = u64::saturating_sub(n, 20);
            runs.note(0, n * 500_000, n * 1_000_000 + slower * 1_000_000);
        }
        assert_eq!(runs.beside_first(0), Some(1.0));
        runs.note(1, 600_000, 2_400_000);
        assert_eq!(runs.beside_first(1), None, "too early");
        runs.note(1, 10_000_000, 60_000_000);
        let at = runs.beside_first(1).unwrap();
        assert!((at - 3.0).abs() < 1e-9, "{at}");
        // The one that is ahead is compared at the same number of accesses.
        runs.note(1, 40_000_000, 240_000_000);
        let at = runs.beside_first(1).unwrap();
        assert!((at - 2.0).abs() < 1e-9, "{at}");
        assert_eq!(runs.beside_first(2), None, "not begun");
        assert_eq!(runs.ns(1), 240_000_000);
        runs.end(0);
        assert_eq!(runs.going_on().collect::<Vec<_>>(), [1]);
        assert!(runs.beside_first(1).is_some(), "beside what has ended");
    }
}
