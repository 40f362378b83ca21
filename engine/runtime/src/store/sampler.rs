//! The sampler of running code, for plans that use one: a thread of its own that reads one word of the store's context, or, if accesses go to a
//! model, the program itself by the model's time.
//!
//! ```text
//!   compiled code        context.running = function        (compile/running.rs)
//!   sampler's thread     every interval: read it           no lock, no signal, no stop
//!   heap                 when a collection begins: reads what is hot
//! ```

use super::Vm;
use super::func::FuncKind;
use super::observe::Recording;
use super::region::Context;
use crate::code::walk;
use crate::compile::touches;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use varve_heap::warm::Warmth;

/// A store's state for a sampling plan.
pub(crate) struct Sampling {
    pub warmth: Arc<Warmth>,
    how: How,
}

enum How {
    Thread(#[allow(dead_code, reason = "it samples until it is dropped")] Sampler),
    ModelTime(ModelTime),
}

impl Sampling {
    /// # Safety
    /// `context` lives at least as long as the result.
    pub unsafe fn new(
        warmth: Arc<Warmth>,
        context: *mut Context,
        recording: Option<&Arc<Recording>>,
    ) -> Sampling {
        let how = match recording {
            Some(_) => How::ModelTime(ModelTime::default()),
            None => {
                // SAFETY: as this function.
                let running = unsafe { AtomicU32::from_ptr(&raw mut (*context).running) };
                How::Thread(Sampler::start(running, Arc::clone(&warmth)))
            }
        };
        Sampling { warmth, how }
    }

    /// Whether compiled code has to record the running function.
    pub fn reads_word(&self) -> bool {
        matches!(self.how, How::Thread(_))
    }
}

/// A thread that samples until this is dropped.
struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    fn start(running: &AtomicU32, warmth: Arc<Warmth>) -> Sampler {
        // SAFETY: the word is part of the store's region, and `drop` waits for the thread before the store gives that back.
        let running: &'static AtomicU32 = unsafe { &*(running as *const AtomicU32) };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let interval = warmth.settings().interval;
        let work = move || {
            // Sleeps are as short as they are asked for, where the system can.
            // SAFETY: a system call without memory.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
            let began = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                let func = running.load(Ordering::Relaxed);
                warmth.sample(began.elapsed(), func.checked_sub(1));
                match interval.is_zero() {
                    true => std::hint::spin_loop(),
                    false => std::thread::park_timeout(interval),
                }
            }
        };
        let thread = std::thread::Builder::new().name("varve-sampler".into());
        Sampler {
            stop,
            // Without a thread nothing is ever hot; the program runs all the same.
            thread: thread.spawn(work).ok(),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Buffers of accesses between two reads of the model's clock: a read waits for the model.
const LOOK: u32 = 32;

/// Samples by the model's time, whenever a buffer of accesses is full. Between reads of the clock, time advances by the average of a buffer; so a run
/// is the same every time.
#[derive(Default)]
struct ModelTime {
    next: Duration,
    looked: Duration,
    buffers: u32,
    each: Duration,
    latest: Duration,
}

impl ModelTime {
    fn now(&mut self, recording: &Recording) -> Duration {
        let mut now = self.looked + self.each * self.buffers;
        if self.buffers >= LOOK || self.each.is_zero() {
            now = recording.now();
            self.each = now.saturating_sub(self.looked) / self.buffers.max(1);
            (self.looked, self.buffers) = (now, 0);
        }
        self.latest = self.latest.max(now);
        self.latest
    }
}

impl Vm {
    /// A buffer of accesses is full: takes a sample, if it is time.
    ///
    /// # Safety
    /// Compiled code of this store has called out and waits.
    pub(crate) unsafe fn sample_by_model(&mut self) {
        let Some(mut sampling) = self.sampling.take() else {
            return;
        };
        if let (How::ModelTime(time), Some(recording)) = (&mut sampling.how, &self.recording) {
            time.buffers += 1;
            if time.looked + time.each * time.buffers >= time.next {
                let now = time.now(recording);
                let mut top = None;
                // SAFETY: as this function.
                unsafe {
                    walk::innermost(self, &mut |frame| {
                        top = frame.info.func;
                        top.is_none()
                    });
                }
                sampling.warmth.sample(now, top);
                time.next = now + sampling.warmth.settings().interval;
            }
        }
        self.sampling = Some(sampling);
    }

    /// Code of a function is made, with others inlined: it touches all types that they touch.
    pub(super) fn learn_touches(&self, func: u32, inlined: impl Iterator<Item = u32>) {
        let Some(sampling) = &self.sampling else {
            return;
        };
        for part in std::iter::once(func).chain(inlined) {
            if let FuncKind::Wasm { instance, index } = self.funcs[part as usize].kind {
                let module = &self.instances[instance as usize].module;
                sampling.warmth.learn(func, touches::of(module, index));
            }
        }
    }
}
