//! The results of a run of a workload.

use std::time::Duration;

/// Times of all operations of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Operations.
    pub operations: u64,
    /// Reads that found no value.
    pub missed: u64,
    /// All of the time.
    pub elapsed: Duration,
    /// Nanoseconds of each operation, sorted.
    times: Vec<u32>,
}

impl Report {
    pub(crate) fn new(mut times: Vec<u32>, missed: u64, elapsed: Duration) -> Report {
        times.sort_unstable();
        Report {
            operations: times.len() as u64,
            missed,
            elapsed,
            times,
        }
    }

    /// Runs at the same time as one.
    pub fn together(reports: Vec<Report>, elapsed: Duration) -> Report {
        let missed = reports.iter().map(|r| r.missed).sum();
        let times = reports.into_iter().flat_map(|r| r.times).collect();
        Report::new(times, missed, elapsed)
    }

    /// Operations in a second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }

    /// The time that `percent` percent of the operations did not exceed.
    pub fn percentile(&self, percent: f64) -> Duration {
        let last = self.times.len().saturating_sub(1);
        let at = (percent / 100.0 * last as f64).round() as usize;
        Duration::from_nanos(self.times.get(at).copied().unwrap_or(0).into())
    }
}
