//! Where pages were when most of them were in use, whoever placed them.

use std::sync::{Arc, Mutex, PoisonError};
use varve_machine::{Daemons, Fault, Source};
use varve_pages::{Frames, Policy, Remap};

/// Pages in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// In fast memory.
    pub fast: u64,
    /// In slow memory.
    pub slow: u64,
}

impl InUse {
    fn all(self) -> u64 {
        self.fast + self.slow
    }
}

/// The pages in use at the time at which there were most.
#[derive(Clone, Default)]
pub struct Peak(Arc<Mutex<InUse>>);

impl Peak {
    /// What it was so far.
    pub fn get(&self) -> InUse {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, now: InUse) {
        let mut most = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.all() >= most.all() {
            *most = now;
        }
    }
}

/// A policy that is watched. It decides as ever.
pub struct Watched {
    policy: Box<dyn Policy>,
    now: InUse,
    peak: Peak,
}

impl Watched {
    /// Watches a policy; `peak` is told.
    pub fn new(policy: Box<dyn Policy>, peak: Peak) -> Watched {
        Watched {
            policy,
            now: InUse::default(),
            peak,
        }
    }

    fn of(&mut self, frames: &Frames, frame: u32) -> &mut u64 {
        match frames.is_fast(frame) {
            true => &mut self.now.fast,
            false => &mut self.now.slow,
        }
    }
}

impl Policy for Watched {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let frame = self.policy.place(frames, fault)?;
        *self.of(frames, frame) += 1;
        self.peak.note(self.now);
        Some(frame)
    }

    fn freed(&mut self, frames: &mut Frames, frame: u32) {
        *self.of(frames, frame) -= 1;
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
        *self.of(frames, done.from) -= 1;
        *self.of(frames, done.to) += 1;
        self.peak.note(self.now);
        self.policy.moved(frames, done);
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
