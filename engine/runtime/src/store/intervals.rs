//! Reports of programs to plans: marks of objects, and intervals of their work.

use super::Vm;
use crate::compile::hints::holds_part;
use crate::error::{Error, Result};
use std::time::{Duration, Instant};
use varve_access::Kind as Access;
use varve_heap::{Entry, Interval, Intervals, Ref, Sampler, layout};

/// Receives each phase.
type Log = Box<dyn FnMut(&Entry) + Send>;

/// The state of a store's intervals.
pub(crate) struct Reports {
    /// When the store was made: times of an unobserved store count from there.
    began: Instant,
    reported: u64,
    /// When the first interval had ended.
    pub first: Option<Duration>,
    pub log: Option<Log>,
    /// Phases that the log has received.
    told: usize,
}

impl Default for Reports {
    fn default() -> Reports {
        Reports {
            began: Instant::now(),
            reported: 0,
            first: None,
            log: None,
            told: 0,
        }
    }
}

impl Vm {
    /// Whether the plan uses intervals.
    fn samples(&self) -> bool {
        self.told().is_some()
    }

    /// Whether the program is to report them: to the plan, or for the time when the first ended.
    pub(crate) fn wants_intervals(&self) -> bool {
        self.engine.config().intervals || self.samples()
    }

    fn told(&self) -> Option<&dyn Intervals> {
        self.heap().plan().sampler().and_then(Sampler::intervals)
    }

    /// Every phase that the plan has entered, if it uses intervals.
    pub(crate) fn phases(&self) -> &[Entry] {
        self.told().map_or(&[], |told| told.log())
    }

    /// The program finished an interval. Objects may move.
    ///
    /// # Errors
    /// If the report is out of order.
    pub(crate) fn interval(&mut self, id: u64, load: Duration, update: Duration) -> Result<()> {
        let samples = self.samples();
        if !samples && self.intervals.first.is_some() {
            return Ok(());
        }
        let (recording, began) = (self.recording.clone(), self.intervals.began);
        let now = move || match &recording {
            Some(recording) => recording.now(),
            None => began.elapsed(),
        };
        if self.intervals.first.is_none() {
            self.intervals.first = Some(now());
        }
        if !samples {
            return Ok(());
        }
        self.intervals.reported += 1;
        let interval = Interval {
            id,
            load,
            update,
            now: now(),
        };
        let outcome =
            self.with_heap(|heap, mutator, vm| heap.interval(mutator, interval, vm, &now));
        self.tell_phases();
        outcome.map_err(Error::Report)?;
        self.check_memory()
    }

    fn tell_phases(&mut self) {
        let Some(mut log) = self.intervals.log.take() else {
            return;
        };
        let phases = self.phases();
        phases[self.intervals.told..].iter().for_each(&mut log);
        self.intervals.told = phases.len();
        self.intervals.log = Some(log);
    }

    /// Marks an object, and arrays that its fields hold.
    pub(crate) fn mark(&mut self, reference: u32) {
        let is_object = reference != 0 && reference & layout::I31_TAG == 0;
        if !is_object || !self.heap().plan().takes_hints() {
            return;
        }
        self.sites.mark();
        self.heat(reference);
        for part in self.parts(reference) {
            self.heat(part);
        }
    }

    fn parts(&self, reference: u32) -> Vec<u32> {
        let types = self.engine.types();
        let ty = self.type_of(reference);
        let fields = types.fields_of(ty).unwrap_or_default();
        let offsets = fields.iter().zip(&types.get(ty).layout.offsets);
        let read = |&offset: &u32| {
            let at = self.object(reference).wrapping_add(offset as usize);
            self.observe(Access::Read, at, 4);
            // SAFETY: objects of this type have a field of reference type there.
            unsafe { at.cast::<u32>().read() }
        };
        let parts = offsets.filter(|(field, _)| holds_part(field));
        let parts = parts.map(|(_, offset)| read(offset));
        parts.filter(|&part| part != 0).collect()
    }

    fn heat(&mut self, reference: u32) {
        let marked = self.heap().marked();
        if marked != 0 {
            self.heap_mut().heats(Ref(reference));
        }
        let object = self.object(reference);
        let at = object.wrapping_add(layout::TEMPERATURE_BYTE as usize);
        // SAFETY: the byte is in the header of a live object.
        unsafe { at.write(at.read() | marked) };
        self.observe(Access::Update, at, 1);
    }

    /// The input that the plan needs and the program has not reported.
    pub(crate) fn untold(&self) -> Option<String> {
        let plan = self.heap().plan();
        let mut lacks = Vec::new();
        if plan.takes_hints() && !self.sites.any_marked() {
            lacks.push("marked no allocation site");
        }
        if self.samples() && self.intervals.reported == 0 {
            lacks.push("reported no intervals");
        }
        (!lacks.is_empty()).then(|| {
            format!(
                "heap plan `{}` did what `kg-n` does: the program {}",
                plan.name(),
                lacks.join(" and ")
            )
        })
    }
}
