//! From the slots of the shared memory to the threads and sites of a trace.

use super::decode::{Batch, RawEvent};
use super::error::RecordError;
use super::memory::SharedMemory;
use super::modules::Modules;
use crate::Event;
use crate::writer::TraceWriter;
use std::collections::HashMap;
use std::io::Write;

/// The number of the thread in a slot.
struct Numbered {
    number: u32,
    /// Its start has been seen.
    started: bool,
}

/// From the slots of the shared memory to the threads and sites of a trace.
pub(super) struct Sink<W: Write> {
    pub writer: TraceWriter<W>,
    /// Thread of the trace, by slot. Slots are used again, threads are not.
    threads: HashMap<usize, Numbered>,
    born: u32,
    /// Site of the trace, by return address.
    sites: HashMap<u64, u32>,
    modules: Modules,
}

impl<W: Write> Sink<W> {
    pub fn new(writer: TraceWriter<W>) -> Sink<W> {
        Sink {
            writer,
            threads: HashMap::new(),
            born: 0,
            sites: HashMap::new(),
            modules: Modules::default(),
        }
    }

    /// Writes what was decoded of a slot, and empties it.
    pub fn put(
        &mut self,
        slot: usize,
        batch: &mut Batch,
        memory: &SharedMemory,
    ) -> Result<(), RecordError> {
        let mut done = 0;
        for &(at, event) in &batch.events {
            if at > done {
                let thread = self.thread(slot);
                self.writer.push(thread, &batch.ops[done..at])?;
                done = at;
            }
            if event == RawEvent::Exec {
                // the same addresses are other code now
                self.sites.clear();
                continue;
            }
            if let RawEvent::Start { .. } = event {
                self.start(slot);
            }
            let thread = self.thread(slot);
            if let Some(event) = self.event(event, memory) {
                self.writer.event(thread, event)?;
            }
        }
        if done < batch.ops.len() {
            let thread = self.thread(slot);
            self.writer.push(thread, &batch.ops[done..])?;
        }
        batch.ops.clear();
        batch.events.clear();
        Ok(())
    }

    /// A thread begins in a slot. Slots are taken from the lowest on, so those below began before, even if nothing
    /// of them has been seen yet: they get their numbers first.
    fn start(&mut self, slot: usize) {
        for below in 0..slot {
            self.thread(below);
        }
        match self.threads.get_mut(&slot) {
            Some(thread) if !thread.started => thread.started = true,
            _ => {
                self.threads.insert(
                    slot,
                    Numbered {
                        number: self.born,
                        started: true,
                    },
                );
                self.born += 1;
            }
        }
    }

    fn thread(&mut self, slot: usize) -> u32 {
        let born = &mut self.born;
        let new = || {
            *born += 1;
            Numbered {
                number: *born - 1,
                started: false,
            }
        };
        self.threads.entry(slot).or_insert_with(new).number
    }

    fn event(&mut self, event: RawEvent, memory: &SharedMemory) -> Option<Event> {
        Some(match event {
            RawEvent::Exec => return None,
            RawEvent::Alloc {
                addr,
                bytes,
                caller,
            } => Event::Alloc {
                site: self.site(caller, memory),
                addr,
                bytes,
            },
            RawEvent::Free { addr } => Event::Free { addr },
            RawEvent::Map { addr, bytes } => Event::Map { addr, bytes },
            RawEvent::Unmap { addr, bytes } => Event::Unmap { addr, bytes },
            RawEvent::Start { tick } => Event::Start { tick },
            RawEvent::Wait { tick } => Event::Wait { tick },
            RawEvent::Tick { tick } => Event::Tick { tick },
            RawEvent::Exit { tick } => Event::Exit { tick },
        })
    }

    fn site(&mut self, caller: u64, memory: &SharedMemory) -> u32 {
        if let Some(&site) = self.sites.get(&caller) {
            return site;
        }
        if memory.module_bytes() > self.modules.text_read() {
            self.modules.update(&memory.module_text());
        }
        let site = self.writer.site(self.modules.site(caller));
        self.sites.insert(caller, site);
        site
    }
}
