//! Opens and closes the windows of a recording: sets when probes are quiet, and for how long.

use super::ring::{Header, open_window};
use crate::schedule::{Amount, Extent, NextWindow, Schedule};
use crate::writer::WindowShare;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// When something is over.
#[derive(Clone, Copy, Debug)]
enum End {
    /// When this amount of the program has been recorded.
    Work(u64),
    /// At that time.
    Time(Instant),
    /// When threads have had their parts.
    Parts,
    Never,
}

/// The windows of one recording.
pub struct Windows {
    /// Where the windows of a sample lie.
    schedule: Option<Schedule>,
    /// How long the next window is, when it opens.
    length: Option<Amount>,
    /// When it opens, if the recorder has to open it.
    opens: End,
    /// When the one that is open closes.
    closes: End,
    /// The windows that were seen to open.
    seen: u32,
    /// How much of the last one that opened only warms caches.
    warm: u64,
    /// When the first thread had its part of it.
    first_done: Option<Instant>,
}

/// So long other threads may take for their parts of a window.
const PATIENCE: Duration = Duration::from_millis(100);

/// Ratio of the measured parts of a sample's window to the part that warms caches.
const WARMS: u64 = 4;

/// As late may a window open or close that ends at a time, ms.
const LATE_MS: u32 = 2;

impl Windows {
    /// Prepares a recording, before the program runs. Is it to be quiet at first?
    pub fn begin(extent: Extent, header: &Header) -> (Windows, bool) {
        let mut windows = Windows {
            schedule: None,
            length: None,
            opens: End::Never,
            closes: End::Never,
            seen: 0,
            warm: 0,
            first_done: None,
        };
        let quiet = match extent {
            Extent::Whole => false,
            Extent::Sample(share) => {
                header.samples.store(1, Release);
                windows.schedule = Some(Schedule::new(share));
                windows.plan(0, header);
                true
            }
            Extent::Thinning(whole) => {
                header.samples.store(1, Release);
                windows.schedule = Some(Schedule::thinning());
                windows.closes = End::Work(whole);
                false
            }
            Extent::Window { skip, length } => {
                windows.length = length;
                match skip {
                    Amount::Work(work) => header.resume_at.store(work.max(1), Release),
                    Amount::Time(time) => windows.opens = End::Time(Instant::now() + time),
                }
                true
            }
        };
        (windows, quiet)
    }

    /// Plans the next window of a sample, after `recorded` was recorded.
    fn plan(&mut self, recorded: u64, header: &Header) {
        let Some(schedule) = &mut self.schedule else {
            return;
        };
        let skipped = header.skipped.load(Acquire);
        let NextWindow { from, gap, length } = schedule.next(recorded + skipped, recorded);
        self.length = Some(Amount::Work(length));
        header.quota.store(length, Release);
        header.resume_from.store(skipped + from, Release);
        header.resume_at.store((skipped + gap).max(1), Release);
    }

    /// What the windows of a sample stand for, when `skipped` instructions were skipped in all.
    pub fn shares(&self, skipped: u64, header: &Header) -> Vec<WindowShare> {
        let mut shares = Vec::new();
        let Some(mut phases) = header.with_phases(|phases| phases.clone()) else {
            return shares;
        };
        phases.stand(
            skipped,
            header.window.load(Acquire),
            |phase, instructions| {
                shares.push(WindowShare {
                    phase,
                    instructions,
                });
            },
        );
        shares
    }

    /// The threads have recorded `recorded`, and `running` threads run: opens or closes a window if it is time.
    pub fn step(&mut self, recorded: u64, running: u32, header: &Header) {
        if let End::Time(at) = self.opens
            && Instant::now() >= at
        {
            self.opens = End::Never;
            open_window(header);
        }
        let opened = header.window.load(Acquire);
        if opened > self.seen {
            self.seen = opened;
            self.warm = match (&self.schedule, self.length) {
                (Some(_), Some(Amount::Work(work))) => work / (WARMS + 1),
                _ => 0,
            };
            self.first_done = None;
            self.closes = match self.length {
                // threads have their parts
                _ if self.schedule.is_some() => End::Parts,
                Some(Amount::Work(work)) => End::Work(recorded + work),
                Some(Amount::Time(time)) => End::Time(Instant::now() + time),
                None => End::Never,
            };
        }
        let over = match self.closes {
            End::Work(work) => recorded >= work,
            End::Time(at) => Instant::now() >= at,
            End::Parts => self.had(running, header),
            End::Never => false,
        };
        if over {
            self.closes = End::Never;
            // Quiet comes first: a thread that skips may open the next window as soon as that is planned.
            header.quiet.store(1, Release);
            self.plan(recorded, header);
        }
    }

    /// Have all threads that run had their parts of the window, or do the others take too long?
    fn had(&mut self, running: u32, header: &Header) -> bool {
        let done = header.done.load(Acquire);
        if done == 0 {
            return false;
        }
        let first = *self.first_done.get_or_insert_with(Instant::now);
        done >= running || first.elapsed() >= PATIENCE
    }

    /// Part of the last opened window that only warms caches: 0 for one that the user chose.
    pub fn warm(&self) -> u64 {
        self.warm
    }

    /// How soon it has to check again, ms, if sooner than for other reasons.
    pub fn wake_ms(&self) -> Option<u32> {
        let due = |end| match end {
            End::Time(at) => Some(at.saturating_duration_since(Instant::now())),
            _ => None,
        };
        if let End::Parts = self.closes {
            return Some(LATE_MS);
        }
        let due = due(self.opens).into_iter().chain(due(self.closes)).min();
        due.map(|time: Duration| (time.as_millis() as u32).max(LATE_MS))
    }
}
