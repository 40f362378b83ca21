//! Where pages were when most of them were in use, whoever placed them: by memory, or on DIMMs by colour.

use std::sync::{Arc, Mutex, PoisonError};
use varve_machine::{Daemons, Fault, Source};
use varve_pages::trays::DimmMap;
use varve_pages::{Frames, Policy, Remap};

/// Pages in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// In fast memory, or hot.
    pub fast: u64,
    /// In slow memory, or cold.
    pub slow: u64,
    /// By DIMM: hot, cold; of none where colours mean nothing.
    pub dimms: Vec<(u32, u32)>,
}

impl InUse {
    fn all(&self) -> u64 {
        self.fast + self.slow
    }
}

/// The pages in use at the time at which there were most.
#[derive(Clone, Default)]
pub struct Peak(Arc<Mutex<InUse>>);

impl Peak {
    /// What it was so far.
    pub fn get(&self) -> InUse {
        let most = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        most.clone()
    }

    fn note(&self, now: &InUse) {
        let mut most = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.all() >= most.all() {
            most.clone_from(now);
        }
    }
}

/// A policy that is watched. It decides as ever.
pub struct Watched {
    policy: Box<dyn Policy>,
    now: InUse,
    peak: Peak,
    /// Which frames are on which DIMM, if pages have colours.
    dimms: Option<DimmMap>,
}

impl Watched {
    /// Watches a policy; `peak` is told.
    pub fn new(policy: Box<dyn Policy>, peak: Peak) -> Watched {
        Watched {
            policy,
            now: InUse::default(),
            peak,
            dimms: None,
        }
    }

    /// The same of a policy that knows colours: hot is fast, and it is counted on which DIMM pages are.
    pub fn on(dimms: DimmMap, policy: Box<dyn Policy>, peak: Peak) -> Watched {
        let mut watched = Watched::new(policy, peak);
        watched.now.dimms = vec![(0, 0); dimms.dimms().len()];
        watched.dimms = Some(dimms);
        watched
    }

    fn is_fast(&self, frames: &Frames, frame: u32) -> bool {
        match self.dimms {
            Some(_) => self.policy.is_hot(frame),
            None => frames.is_fast(frame),
        }
    }

    /// Counts a frame in use, or no longer.
    fn count(&mut self, fast: bool, frame: u32, used: bool) {
        let step = |count: &mut u64| *count = count.wrapping_add_signed(if used { 1 } else { -1 });
        step(if fast {
            &mut self.now.fast
        } else {
            &mut self.now.slow
        });
        let all = self.dimms.as_ref().map_or(&[][..], DimmMap::dimms);
        let at = (all.iter()).position(|d| frame.wrapping_sub(d.first) < d.frames);
        if let Some(at) = at {
            let (hot, cold) = &mut self.now.dimms[at];
            let pages = if fast { hot } else { cold };
            *pages = pages.wrapping_add_signed(if used { 1 } else { -1 });
        }
    }
}

impl Policy for Watched {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let frame = self.policy.place(frames, fault)?;
        let fast = self.is_fast(frames, frame);
        self.count(fast, frame, true);
        self.peak.note(&self.now);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        let fast = self.is_fast(frames, frame);
        self.count(fast, frame, false);
        self.policy.freed(frames, frame);
    }

    fn daemons(&self) -> Daemons {
        self.policy.daemons()
    }

    fn sample(&mut self, frames: &mut Frames, frame: u32, source: Source) {
        self.policy.sample(frames, frame, source);
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        self.policy.traffic(now, bytes);
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        self.policy.tick(frames, remaps);
    }

    fn moved(&mut self, frames: &mut Frames, done: Remap) {
        let before = self.is_fast(frames, done.from);
        self.policy.moved(frames, done);
        let now = self.is_fast(frames, done.to);
        self.count(before, done.from, false);
        self.count(now, done.to, true);
        self.peak.note(&self.now);
    }

    fn cancelled(&mut self, frames: &mut Frames, remap: Remap) {
        self.policy.cancelled(frames, remap);
    }

    fn heat(&self) -> Option<&varve_pages::heat::Heat> {
        self.policy.heat()
    }

    fn is_hot(&self, frame: u32) -> bool {
        self.policy.is_hot(frame)
    }

    fn trays(&self) -> Option<varve_pages::trays::TrayState> {
        self.policy.trays()
    }

    fn bytes(&self) -> u64 {
        self.policy.bytes()
    }
}
