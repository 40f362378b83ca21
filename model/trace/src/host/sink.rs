//! From the slots of the shared memory to the threads and sites of a trace.

use super::coder::{Coder, Piece};
use super::error::RecordError;
use super::functions::Functions;
use super::memory::SharedMemory;
use super::modules::Modules;
use super::resident::Resident;
use super::ring::CALLERS;
use super::templates::Registry;
use super::walk::RawEvent;
use crate::Event;
use crate::format::EventAt;
use crate::java::{JavaMachine, note};
use crate::spaces::space_of;
use crate::writer::{ColoredBytes, TraceWriter};
use std::collections::{HashMap, HashSet};
use std::io::Write;

/// The number of the thread in a slot, and of its process.
struct Numbered {
    number: u32,
    process: u32,
    /// Its start has been seen.
    started: bool,
}

/// QEMU runs a program below this address, and keeps its own memory above.
const PROGRAM_ENDS: u64 = 1 << 41;

/// Process and return addresses of an allocation.
type Callers = (u32, [u64; CALLERS]);

/// From the slots of the shared memory to the threads and sites of a trace.
pub(super) struct Sink<W: Write> {
    pub writer: TraceWriter<W>,
    /// Thread of the trace, by slot. Slots are used again, threads are not.
    threads: HashMap<usize, Numbered>,
    born: u32,
    /// Slots of threads that begin a program in a process that had another.
    replaced: HashSet<usize>,
    /// Processes of which a thread has begun.
    begun: HashSet<u32>,
    sites: HashMap<Callers, u32>,
    /// Sites of stacks, by process and number.
    stacks: HashMap<(u32, u64), u32>,
    pub modules: Modules,
    functions: Functions,
    pub java: Vec<JavaMachine>,
    /// Memory that the program called hot or cold.
    pub colors: Option<ColoredBytes>,
    coders: Vec<Coder>,
    /// The first template that is not in the trace.
    next_template: u32,
    pub resident: Resident,
    /// The last window that began.
    window: u32,
    /// How much of a window only warms caches.
    pub warm: u64,
}

impl<W: Write> Sink<W> {
    /// For programs that are `compiled` with a probe, or run under QEMU.
    pub fn new(writer: TraceWriter<W>, compiled: bool) -> Sink<W> {
        Sink {
            writer,
            threads: HashMap::new(),
            born: 0,
            replaced: HashSet::new(),
            begun: HashSet::new(),
            sites: HashMap::new(),
            stacks: HashMap::new(),
            modules: Modules::default(),
            functions: Functions::new(compiled),
            java: Vec::new(),
            colors: None,
            coders: Vec::new(),
            next_template: 1,
            resident: Resident::default(),
            window: 0,
            warm: 0,
        }
    }

    /// Where the runs of a slot go.
    pub fn coder(&mut self, slot: usize) -> &mut Coder {
        if self.coders.len() <= slot {
            self.coders.resize_with(slot + 1, Coder::default);
        }
        &mut self.coders[slot]
    }

    /// Writes the blocks of a slot that are finished.
    pub fn put(
        &mut self,
        slot: usize,
        memory: &SharedMemory,
        registry: &Registry,
    ) -> Result<(), RecordError> {
        for mut piece in std::mem::take(&mut self.coder(slot).done) {
            self.name(slot, &mut piece, memory);
            let templates = &registry.templates;
            if self.next_template < templates.next() {
                templates.encode(self.next_template, self.writer.templates());
                self.name_functions(memory, registry);
                self.next_template = templates.next();
            }
            let thread = self.thread(slot);
            let mut content = self.writer.spare();
            std::mem::swap(&mut content.runs, &mut piece.columns);
            self.coder(slot).spare.push(piece.columns);
            content.events = piece.events;
            self.writer
                .push_runs(thread, piece.ops, piece.instructions, content)?;
        }
        let mut open = std::mem::take(&mut self.coder(slot).open);
        self.name(slot, &mut open, memory);
        self.coder(slot).open = open;
        Ok(())
    }

    /// Names the functions of the templates that have just been written.
    fn name_functions(&mut self, memory: &SharedMemory, registry: &Registry) {
        self.update_modules(memory);
        for number in self.next_template..registry.templates.next() {
            let place = registry.place(number);
            let (modules, writer) = (&mut self.modules, &mut self.writer);
            let name =
                |(process, address, half)| writer.call(&modules.function(process, address, half));
            let function = self.functions.of(place, name);
            self.writer.function(function);
        }
    }

    /// Names the call sites of a block's events.
    fn name(&mut self, slot: usize, piece: &mut Piece, memory: &SharedMemory) {
        for (at, event) in std::mem::take(&mut piece.raw) {
            let mut push = |event| piece.events.push(EventAt { at, event });
            match event {
                // the process of its first thread is not known yet
                RawEvent::Exec => _ = self.replaced.insert(slot),
                RawEvent::Start {
                    tick,
                    process,
                    parent,
                } => {
                    self.start(slot, process);
                    let replaced = self.replaced.remove(&slot);
                    if replaced {
                        // the same addresses are other code now
                        self.sites.retain(|callers, _| callers.0 != process);
                        self.stacks.retain(|stack, _| stack.0 != process);
                        self.functions.forget(process);
                    }
                    push(Event::Start { tick });
                    if process > 0 {
                        push(Event::Process { number: process });
                    }
                    if replaced {
                        push(Event::Replaced);
                        self.begun.remove(&process);
                    }
                    if self.begun.insert(process) {
                        match parent {
                            Some(parent) => push(Event::Forked { parent }),
                            None => {
                                self.update_modules(memory);
                                self.modules.mapped(process).into_iter().for_each(push);
                            }
                        }
                    }
                }
                RawEvent::Alloc {
                    addr,
                    bytes,
                    callers,
                } => {
                    let site = self.site((self.process(slot), callers), memory);
                    push(Event::Alloc { site, addr, bytes });
                }
                RawEvent::Stack {
                    number,
                    text,
                    callers,
                    lines,
                } => {
                    let key = (self.process(slot), number);
                    // several threads report the same one
                    if !self.stacks.contains_key(&key) {
                        self.update_modules(memory);
                        let site = self.modules.stack(key.0, &callers, &lines, text);
                        self.stacks.insert(key, self.writer.site(site));
                    }
                }
                RawEvent::AllocAt { addr, bytes, stack } => {
                    if let Some(site) = self.stack(slot, stack) {
                        push(Event::Alloc { site, addr, bytes });
                    }
                }
                RawEvent::Mapped { addr, bytes, stack } => {
                    if let Some(site) = self.stack(slot, stack) {
                        push(Event::MapSite { site, addr, bytes });
                    }
                }
                RawEvent::Known(event) => {
                    let process = self.process(slot);
                    note(&mut self.java, process, &event);
                    if let Event::Colored { bytes, hot, .. } = event {
                        let colors = self.colors.get_or_insert_default();
                        let sum = if hot {
                            &mut colors.hot
                        } else {
                            &mut colors.cold
                        };
                        *sum = sum.saturating_add(bytes);
                    }
                    push(event);
                }
                RawEvent::Free { addr } => push(Event::Free { addr }),
                RawEvent::Map { addr, bytes } => push(Event::Map { addr, bytes }),
                RawEvent::Unmap { addr, bytes } => {
                    push(Event::Unmap { addr, bytes });
                    self.given_back(slot, addr, bytes);
                }
                RawEvent::Discard { addr, bytes } => self.given_back(slot, addr, bytes),
                RawEvent::Window { number, tick } => {
                    if number > self.window {
                        self.window = number;
                        let touched = self.touched(memory);
                        touched.into_iter().for_each(&mut push);
                    }
                    let warm = self.warm;
                    push(Event::Window { number, warm, tick });
                }
                RawEvent::Wait { tick } => push(Event::Wait { tick }),
                RawEvent::Tick { tick } => push(Event::Tick { tick }),
                RawEvent::Exit { tick } => push(Event::Exit { tick }),
            }
        }
    }

    /// Instructions so far, of all threads.
    pub fn total(&self) -> u64 {
        self.coders.iter().map(Coder::total).sum()
    }

    /// A process gave pages back: if it touches them again, that is news. Only windows ask for news.
    fn given_back(&mut self, slot: usize, addr: u64, bytes: u64) {
        if self.window > 0 {
            let process = self.process(slot);
            self.resident
                .forget(process, addr ^ space_of(process), bytes);
        }
    }

    /// Pages that programs touched since this was asked last.
    fn touched(&mut self, memory: &SharedMemory) -> Vec<Event> {
        let mut events = Vec::new();
        for (process, pid) in memory.processes() {
            let space = space_of(process);
            let news = self.resident.news(process, pid, PROGRAM_ENDS);
            events.extend(news.into_iter().map(|(addr, bytes)| Event::Touched {
                addr: addr ^ space,
                bytes,
            }));
        }
        events
    }

    /// Reads the mappings since the last time.
    pub fn update_modules(&mut self, memory: &SharedMemory) {
        if memory.module_bytes() > self.modules.text_read() {
            let text = memory.module_text(self.modules.text_read());
            self.modules.update(text);
        }
    }

    /// The site of a stack; none only if a record is damaged.
    fn stack(&self, slot: usize, number: u64) -> Option<u32> {
        self.stacks.get(&(self.process(slot), number)).copied()
    }

    fn process(&self, slot: usize) -> u32 {
        self.threads.get(&slot).map_or(0, |thread| thread.process)
    }

    /// A thread begins in a slot. Slots are taken from the lowest on, so those below began before, even if nothing
    /// of them has been seen yet: they get their numbers first.
    fn start(&mut self, slot: usize, process: u32) {
        for below in 0..slot {
            self.thread(below);
        }
        match self.threads.get_mut(&slot) {
            Some(thread) if !thread.started => (thread.started, thread.process) = (true, process),
            _ => {
                self.threads.insert(
                    slot,
                    Numbered {
                        number: self.born,
                        process,
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
                process: 0,
                started: false,
            }
        };
        self.threads.entry(slot).or_insert_with(new).number
    }

    fn site(&mut self, callers: Callers, memory: &SharedMemory) -> u32 {
        if let Some(&site) = self.sites.get(&callers) {
            return site;
        }
        self.update_modules(memory);
        let (process, addresses) = callers;
        let count = addresses
            .iter()
            .take_while(|&&address| address != 0)
            .count();
        let site = self.modules.site(process, &addresses[..count], usize::MAX);
        let site = self.writer.site(site);
        self.sites.insert(callers, site);
        site
    }
}
