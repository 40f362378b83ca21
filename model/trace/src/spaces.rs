//! Which memory a page of a process is. A trace has the addresses of each process apart; on the machine, processes share pages:
//! those of files and shared mappings, and after a fork those that neither parent nor child has written since.
//!
//! Each page of memory has one address here: that of the process that had it first. Ops of other processes are moved there.
//!
//! What a process has goes with it: when its last thread ends, or it becomes another program, its objects are freed and its pages unmapped, but
//! for those that a relative still has. Pages of files and shared mappings stay.
//!
//! Not exact: what a process maps anew, while relatives or an object still have what was there before, is the same page here. A parent's writes
//! right after a fork, which the replay makes before the child's first step, go to the page that both have.

use crate::format::Event;
use crate::listener::Listener;
use crate::reader::TraceReader;
use std::collections::{BTreeMap, HashMap, HashSet};
use varve_access::{Kind, Op};

const PAGE: u64 = 4096;
/// Processes have their own bits 41 to 47 in the addresses of a trace: all numbers of these bits but 0.
const SPACES: u32 = 127;
const SPACE_SHIFT: u32 = 41;

/// The bits that distinguish the addresses of a process; none for the first.
pub fn space_of(process: u32) -> u64 {
    match process {
        0 => 0,
        later => u64::from((later - 1) % SPACES + 1) << SPACE_SHIFT,
    }
}

/// Pages of an object that a child allocates in memory that it inherited: a damaged number must not take all time.
const MOST_PAGES: u64 = 1 << 24;

/// What is mapped in a range of pages.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    /// The first page behind it.
    end: u64,
    what: Mapped,
}

#[derive(Clone, Copy, Debug)]
enum Mapped {
    /// Memory of this process alone.
    Own,
    /// Pages of an object, from page `first` of it on. A process that writes a page of a `private` mapping has a copy from then on.
    Shared {
        object: u64,
        first: u64,
        private: bool,
    },
}

/// Pages of a process, by their numbers in its own addresses.
#[derive(Default)]
struct Process {
    space: u64,
    /// What it inherited its memory from, until it becomes another program.
    parent: Option<usize>,
    /// Those that inherited from it and are alive, or have children that are.
    children: Vec<usize>,
    /// Mappings since it began, by first page.
    mappings: BTreeMap<u64, Mapping>,
    /// Pages whose memory is known, by its address.
    pages: HashMap<u64, u64>,
    /// Pages that it may write without a copy.
    writable: HashSet<u64>,
    /// Pages that there is memory for at the process's own addresses, but for that of an object.
    present: HashSet<u64>,
    /// Bytes of its objects, by their addresses.
    objects: BTreeMap<u64, u64>,
    threads: u32,
}

impl Process {
    /// The address of a page of memory that the process has for itself.
    fn own(&self, page: u64) -> u64 {
        (page * PAGE) ^ self.space
    }

    fn mapped(&self, page: u64) -> Option<(u64, Mapped)> {
        let (&start, mapping) = self.mappings.range(..=page).next_back()?;
        (page < mapping.end).then_some((start, mapping.what))
    }

    /// Something else is in a range of pages.
    fn map(&mut self, first: u64, end: u64, what: Mapped) {
        self.unmap(first, end);
        self.mappings.insert(first, Mapping { end, what });
    }

    fn unmap(&mut self, first: u64, end: u64) {
        let inside = self.mappings.range(..end).rev();
        let inside = inside.take_while(|(_, mapping)| mapping.end > first);
        let cut: Vec<(u64, Mapping)> = inside.map(|(&start, &mapping)| (start, mapping)).collect();
        for (start, mapping) in cut {
            self.mappings.remove(&start);
            if start < first {
                self.mappings.insert(
                    start,
                    Mapping {
                        end: first,
                        ..mapping
                    },
                );
            }
            if end < mapping.end {
                let what = match mapping.what {
                    Mapped::Own => Mapped::Own,
                    Mapped::Shared {
                        object,
                        first: page,
                        private,
                    } => Mapped::Shared {
                        object,
                        first: page + (end - start),
                        private,
                    },
                };
                self.mappings.insert(end, Mapping { what, ..mapping });
            }
        }
        if end - first < (self.pages.len() + self.present.len()) as u64 {
            for page in first..end {
                self.pages.remove(&page);
                self.writable.remove(&page);
                self.present.remove(&page);
            }
        } else {
            self.pages.retain(|page, _| !(first..end).contains(page));
            self.writable.retain(|page| !(first..end).contains(page));
            self.present.retain(|page| !(first..end).contains(page));
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Spaces {
    /// Whether pages may be shared at all. Where there is one process, all ops are where they say.
    several: bool,
    processes: Vec<Process>,
    /// Places of processes by their numbers, of which a damaged trace may have any.
    places: HashMap<u32, usize>,
    /// The process of each thread.
    of_thread: Vec<usize>,
    /// Memory of objects' pages, by object and page.
    objects: HashMap<(u64, u64), u64>,
    /// Processes that have memory at the address of another one: what that one had before it wrote, or what it still has.
    guests: HashMap<u64, Vec<usize>>,
    /// Processes that have ended, and have left pages or children.
    ended: Vec<usize>,
}

/// A page that was copied since a process wrote it: from and to.
type Copied = (u64, u64);

impl Spaces {
    pub fn of(reader: &TraceReader, threads: usize) -> Spaces {
        Spaces::new(threads, reader.has_several_processes())
    }

    fn new(threads: usize, several: bool) -> Spaces {
        Spaces {
            several,
            processes: vec![Process::default()],
            places: HashMap::from([(0, 0)]),
            of_thread: vec![0; threads],
            objects: HashMap::new(),
            guests: HashMap::new(),
            ended: Vec::new(),
        }
    }

    /// A listener that gives `reader` what a thread does with the memory where it is.
    pub fn listen<'a, L: Listener>(
        &'a mut self,
        thread: usize,
        reader: &'a mut L,
    ) -> Listening<'a, L> {
        Listening {
            spaces: self,
            thread,
            reader,
        }
    }

    fn process(&mut self, number: u32) -> usize {
        let next = self.processes.len();
        let place = *self.places.entry(number).or_insert(next);
        if place == next {
            self.processes.push(Process {
                space: space_of(number),
                ..Process::default()
            });
        }
        place
    }

    /// An event of a thread, before ops that follow it. Pages of an object that is allocated are written soon: `copied` has those
    /// that were shared. `gone` has what goes with a process.
    fn event(
        &mut self,
        thread: usize,
        event: &Event,
        copied: &mut Vec<Copied>,
        gone: &mut Vec<Event>,
    ) {
        let at = self.of_thread[thread];
        let pages = |addr: u64, bytes: u64, space: u64| {
            let addr = addr ^ space;
            (addr / PAGE, addr.saturating_add(bytes).div_ceil(PAGE))
        };
        match *event {
            Event::Start { .. } => self.processes[at].threads += 1,
            Event::Process { number } => {
                let before = &mut self.processes[at];
                before.threads = before.threads.saturating_sub(1);
                let at = self.process(number);
                self.of_thread[thread] = at;
                self.processes[at].threads += 1;
            }
            Event::Forked { parent } => {
                let parent = self.process(parent);
                // A damaged trace may say that a process is its own ancestor.
                let mut ancestors =
                    std::iter::successors(Some(parent), |at| self.processes[*at].parent);
                let circle = ancestors.any(|other| other == at);
                if !circle && self.processes[at].parent.is_none() {
                    self.processes[at].parent = Some(parent);
                    self.processes[parent].children.push(at);
                    self.processes[parent].writable.clear();
                }
            }
            Event::Replaced => self.replaced(at, gone),
            Event::Exit { .. } => {
                // A thread that became another program may be found ended again, with its process.
                let before = self.processes[at].threads;
                self.processes[at].threads = before.saturating_sub(1);
                if before == 1 {
                    self.ended(at, gone);
                }
            }
            Event::Map { addr, bytes } | Event::Unmap { addr, bytes } => {
                let process = &mut self.processes[at];
                let (first, end) = pages(addr, bytes, process.space);
                process.map(first, end, Mapped::Own);
            }
            Event::Shared {
                addr,
                bytes,
                object,
                offset,
                private,
            } => {
                let process = &mut self.processes[at];
                let (first, end) = pages(addr, bytes, process.space);
                let what = Mapped::Shared {
                    object,
                    first: offset / PAGE,
                    private,
                };
                process.map(first, end, what);
            }
            Event::Free { addr } => {
                self.processes[at].objects.remove(&addr);
            }
            Event::Alloc { addr, bytes, .. } => {
                self.processes[at].objects.insert(addr, bytes);
                if self.processes[at].parent.is_none() {
                    return;
                }
                let (first, end) = pages(addr, bytes.max(1), self.processes[at].space);
                // What it has mapped itself is its own, and may be very large.
                let own = self.processes[at].mappings.range(..=first).next_back();
                let own = own.is_some_and(|(_, m)| m.end >= end && matches!(m.what, Mapped::Own));
                let end = if own {
                    first
                } else {
                    end.min(first + MOST_PAGES)
                };
                for page in first..end {
                    self.write(at, page, copied);
                }
            }
            _ => {}
        }
    }

    /// Where ops of a thread are. `copied` has the pages that are copied before them.
    fn ops(&mut self, thread: usize, ops: &[Op], out: &mut Vec<Op>, copied: &mut Vec<Copied>) {
        let at = self.of_thread[thread];
        for op in ops {
            let accesses = op.kind.is_access() || op.kind == Kind::Touch;
            if !accesses {
                out.push(*op);
                continue;
            }
            let writes = matches!(op.kind, Kind::Write | Kind::Update | Kind::NtWrite);
            let address = op.addr ^ self.processes[at].space;
            let first = self.page(at, address / PAGE, writes, copied);
            let moved = Op {
                addr: first + address % PAGE,
                ..*op
            };
            let left = PAGE - address % PAGE;
            if op.kind == Kind::Touch || u64::from(op.size) <= left {
                out.push(moved);
                continue;
            }
            self.pieces(at, address, writes, moved, out, copied);
        }
    }

    /// An access that goes on behind its page: the next page may be anywhere.
    fn pieces(
        &mut self,
        at: usize,
        address: u64,
        writes: bool,
        op: Op,
        out: &mut Vec<Op>,
        copied: &mut Vec<Copied>,
    ) {
        let end = address + u64::from(op.size);
        let mut whole = op;
        whole.size = (PAGE - address % PAGE) as u16;
        let mut next = address + u64::from(whole.size);
        while next < end {
            let memory = self.page(at, next / PAGE, writes, copied);
            let size = PAGE.min(end - next) as u16;
            if memory == whole.addr + u64::from(whole.size) {
                whole.size += size;
            } else {
                out.push(whole);
                whole = Op {
                    addr: memory,
                    size,
                    instructions: 0,
                    dependent: 0,
                    ..op
                };
            }
            next += u64::from(size);
        }
        out.push(whole);
    }

    fn page(&mut self, at: usize, page: u64, writes: bool, copied: &mut Vec<Copied>) -> u64 {
        match writes {
            true => self.write(at, page, copied),
            false => self.read(at, page),
        }
    }

    /// The memory of a page.
    fn read(&mut self, at: usize, page: u64) -> u64 {
        let process = &self.processes[at];
        if let Some(&memory) = process.pages.get(&page) {
            return memory;
        }
        let own = process.own(page);
        match (process.mapped(page), process.parent) {
            (Some((start, Mapped::Shared { object, first, .. })), _) => {
                let key = (object, first + (page - start));
                let memory = *self.objects.entry(key).or_insert(own);
                self.processes[at].pages.insert(page, memory);
                memory
            }
            (None, Some(parent)) => self.read(parent, page),
            _ => {
                self.processes[at].present.insert(page);
                own
            }
        }
    }

    /// The memory of a page that the process writes.
    fn write(&mut self, at: usize, page: u64, copied: &mut Vec<Copied>) -> u64 {
        let process = &self.processes[at];
        let own = process.own(page);
        if process.writable.contains(&page) {
            return process.pages.get(&page).copied().unwrap_or(own);
        }
        let memory = self.read(at, page);
        if self.is_shared(at, page) {
            return memory;
        }
        let mut others = self.heirs(at, page);
        if memory != own {
            if self.is_last(at, page, memory) {
                self.give(&[at], page, memory);
                self.processes[at].writable.insert(page);
                return memory;
            }
            copied.push((memory, own));
            // What it had stays for those who have it from here.
            self.give(&others, page, memory);
        } else {
            self.forget_object(at, page);
            let guests = self.guests.remove(&own).unwrap_or_default();
            others.extend(guests.into_iter().filter(|guest| {
                let pages = &self.processes[*guest].pages;
                *guest != at && pages.get(&page) == Some(&own) && self.is_needed(*guest, page)
            }));
            if let Some(&first) = others.first() {
                let theirs = self.processes[first].own(page);
                self.processes[first].present.insert(page);
                copied.push((own, theirs));
                self.give(&others, page, theirs);
            }
        }
        let process = &mut self.processes[at];
        process.pages.insert(page, own);
        process.writable.insert(page);
        process.present.insert(page);
        own
    }

    /// Processes have a page at this address of memory.
    fn give(&mut self, processes: &[usize], page: u64, memory: u64) {
        for &number in processes {
            let process = &mut self.processes[number];
            process.pages.insert(page, memory);
            process.writable.remove(&page);
            if process.own(page) != memory {
                self.guests.entry(memory).or_default().push(number);
            }
        }
    }

    /// Whether writes of a page are seen by all that have it.
    fn is_shared(&self, at: usize, page: u64) -> bool {
        let process = &self.processes[at];
        match (process.mapped(page), process.parent) {
            (Some((_, Mapped::Shared { private, .. })), _) => !private,
            // A copy of it, or of what is in its place, would be among its pages.
            (None, Some(parent)) => {
                !process.pages.contains_key(&page) && self.is_shared(parent, page)
            }
            _ => false,
        }
    }

    /// The process has a copy of a page of a private mapping at the address that was the object's.
    fn forget_object(&mut self, at: usize, page: u64) {
        if let Some((start, Mapped::Shared { object, first, .. })) = self.processes[at].mapped(page)
        {
            self.objects.remove(&(object, first + (page - start)));
        }
    }

    /// Whether a process, or one that has its memory from there, still runs.
    fn is_needed(&self, at: usize, page: u64) -> bool {
        self.processes[at].threads > 0 || !self.heirs(at, page).is_empty()
    }

    /// Children that have a page from this process.
    fn heirs(&self, at: usize, page: u64) -> Vec<usize> {
        let has_it = |at: &&usize| {
            let child = &self.processes[**at];
            !child.pages.contains_key(&page)
                && child.mapped(page).is_none()
                && self.is_needed(**at, page)
        };
        self.processes[at]
            .children
            .iter()
            .filter(has_it)
            .copied()
            .collect()
    }
}

/// See [`Spaces::listen`].
pub(crate) struct Listening<'a, L> {
    spaces: &'a mut Spaces,
    thread: usize,
    reader: &'a mut L,
}

impl<L: Listener> Listening<'_, L> {
    fn tell(&mut self, copied: Vec<Copied>) {
        for (from, to) in copied {
            self.reader.copied(from, to);
        }
    }
}

impl<L: Listener> Listener for Listening<'_, L> {
    fn ops(&mut self, ops: &[Op], out: &mut Vec<Op>) {
        if !self.spaces.several {
            return self.reader.ops(ops, out);
        }
        let (mut moved, mut copied) = (Vec::with_capacity(ops.len()), Vec::new());
        self.spaces.ops(self.thread, ops, &mut moved, &mut copied);
        self.tell(copied);
        self.reader.ops(&moved, out);
    }

    fn passed(&mut self, ops: &[Op], touches: &[Op], out: &mut Vec<Op>) {
        if !self.spaces.several {
            return self.reader.passed(ops, touches, out);
        }
        // Stores have copies of their own, also where they are skipped.
        let as_it_was = |op: &Op| match (op.kind, op.size) {
            (Kind::Touch, 1..) => Op {
                kind: Kind::Write,
                ..*op
            },
            _ => *op,
        };
        let stored: Vec<Op> = touches.iter().map(as_it_was).collect();
        let (mut moved, mut copied) = (Vec::with_capacity(stored.len()), Vec::new());
        self.spaces
            .ops(self.thread, &stored, &mut moved, &mut copied);
        self.tell(copied);
        for op in moved.iter_mut().filter(|op| op.kind == Kind::Write) {
            op.kind = Kind::Touch;
        }
        self.reader.passed(ops, &moved, out);
    }

    fn event(&mut self, event: &Event, before: &mut Vec<Op>) {
        if !self.spaces.several {
            return self.reader.event(event, before);
        }
        let (mut copied, mut gone) = (Vec::new(), Vec::new());
        self.spaces
            .event(self.thread, event, &mut copied, &mut gone);
        self.tell(copied);
        for event in &gone {
            match *event {
                Event::Unmap { addr, bytes } => self.reader.gone(addr, bytes, before),
                _ => self.reader.event(event, before),
            }
        }
        self.reader.event(event, before);
    }
}

mod ends;
#[cfg(test)]
mod tests;
