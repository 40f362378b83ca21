//! When a thread of an endless loop stops: after an amount of work, or at a virtual time.

use varve_spec::{Error, Param, Values, Want};

/// The parameter `time`, for kernels that can be stopped by the clock.
pub const TIME: Param = Param::scaled(
    "time",
    Want::Time,
    "0",
    "stop after this much virtual time, at full size, from the end of initialization; 0: no such limit",
);

/// Limits of each thread and how far it is.
#[derive(Clone, Debug)]
pub struct Limit {
    work: u64,
    time: u64,
    threads: Vec<Thread>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    done: u64,
    start: Option<u64>,
}

impl Limit {
    /// Limits from [`TIME`] and the `Count` parameter `key` (work per thread; 0: none).
    ///
    /// # Errors
    /// When both are 0: the workload would never end.
    pub fn new(values: &Values, key: &str, threads: usize) -> Result<Limit, Error> {
        let (work, time) = (values.count(key), values.count("time"));
        if work == 0 && time == 0 {
            return Err(values.refuse(key, format!("the run must end: set `{key}` or `time`")));
        }
        Ok(Limit {
            work,
            time,
            threads: vec![
                Thread {
                    done: 0,
                    start: None
                };
                threads
            ],
        })
    }

    /// Work that `thread` may still do at `now` of its clock; 0 when it is to end. At most `want`.
    #[inline]
    pub fn allow(&mut self, thread: usize, now: u64, want: u64) -> u64 {
        let state = &mut self.threads[thread];
        let start = *state.start.get_or_insert(now);
        if self.time > 0 && now.saturating_sub(start) >= self.time {
            return 0;
        }
        let left = if self.work == 0 {
            u64::MAX
        } else {
            self.work - state.done
        };
        let allowed = left.min(want);
        state.done += allowed;
        allowed
    }

    /// Virtual time in nanoseconds since `thread` was first [allowed](Limit::allow) to work.
    pub fn elapsed(&self, thread: usize, now: u64) -> u64 {
        now.saturating_sub(self.threads[thread].start.unwrap_or(now))
    }

    /// Work done by `thread` so far.
    pub fn done(&self, thread: usize) -> u64 {
        self.threads[thread].done
    }

    /// Threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Work done by all threads.
    pub fn total(&self) -> u64 {
        self.threads.iter().map(|thread| thread.done).sum()
    }
}
