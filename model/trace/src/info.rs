//! Output of `varve trace info`: a trace in numbers.

use crate::error::TraceError;
use crate::footprint::{PAGE_BYTES, Pages, reads_and_writes};
use crate::format::{Event, FileHeader};
use crate::listener::Listener;
use crate::program::{Step, Walk};
use crate::reader::TraceReader;
use crate::shared::Alone;
use crate::spaces::Spaces;
use crate::writer::{CallSite, End};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use varve_access::{Kind, Op};
use varve_sites::native::{Key, names};

/// Callers that distinguish sites, from the first that is no wrapper of an allocator on. More would show every way
/// through a program as a site.
const CALLERS: usize = 3;

/// One thread of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadInfo {
    /// Ops, marks included.
    pub ops: u64,
    /// Instructions.
    pub instructions: u64,
    /// Number of its process; 0 is the one that was started first.
    pub process: u32,
}

/// One allocation site, with the accesses to its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteInfo {
    /// Its name: the function that asked, behind wrappers of allocators, and enough callers to distinguish it from the
    /// other sites.
    pub name: String,
    /// Where it is; of several that differ in callers far away, or in the process, one.
    pub site: CallSite,
    /// Allocations made there.
    pub allocations: u64,
    /// Bytes asked for, of all allocations together.
    pub bytes: u64,
    /// Most bytes alive at once, as far as frees were seen.
    pub peak_bytes: u64,
    /// Loads of its memory by any thread; an update counts as both.
    pub reads: u64,
    /// Stores to its memory.
    pub writes: u64,
}

/// A trace in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Header of the trace.
    pub header: FileHeader,
    /// How the recording ended; `None` when the trace is cut.
    pub end: Option<End>,
    /// Where it is cut, in one line.
    pub cut: Option<String>,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Ops of all threads.
    pub ops: u64,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Loads (an update counts here and in `writes`).
    pub reads: u64,
    /// Stores.
    pub writes: u64,
    /// Bytes loaded.
    pub read_bytes: u64,
    /// Bytes stored.
    pub written_bytes: u64,
    /// Loads whose address came from a load just before.
    pub dependent_reads: u64,
    /// Pages of 4 KiB that were accessed, those too that were touched while it was not recorded.
    pub pages: u64,
    /// The most of them that were there at a time.
    pub most_pages: u64,
    /// Pages that were stored to.
    pub written_pages: u64,
    /// Processes: the program and the children that were followed.
    pub processes: u64,
    /// Threads, in order of birth.
    pub threads: Vec<ThreadInfo>,
    /// Allocation sites, those with most bytes first.
    pub sites: Vec<SiteInfo>,
}

impl TraceInfo {
    /// Bytes of the file per op.
    pub fn bytes_per_op(&self) -> f64 {
        self.file_bytes as f64 / self.ops.max(1) as f64
    }

    /// The most bytes in accessed pages at a time.
    pub fn footprint_bytes(&self) -> u64 {
        self.most_pages * PAGE_BYTES
    }

    /// Reads a whole trace.
    ///
    /// # Errors
    /// A block is damaged. A trace that is cut is no error.
    pub fn read(reader: &TraceReader) -> Result<TraceInfo, TraceError> {
        let file_bytes = std::fs::metadata(reader.path()).map_or(0, |meta| meta.len());
        let info = TraceInfo {
            header: reader.header().clone(),
            end: reader.end().cloned(),
            cut: reader
                .cut()
                .map(|cut| format!("cut at byte {}: {}", cut.offset, cut.why)),
            file_bytes,
            threads: vec![ThreadInfo::default(); reader.threads() as usize],
            ..TraceInfo::default()
        };
        let mut counting = Counting {
            info,
            pages: Pages::default(),
            heap: Heap::new(reader.sites()),
            thread: 0,
        };
        let mut walk = Walk::new(reader, 0);
        let mut spaces = Spaces::of(reader, walk.threads());
        walk.each(&mut Alone::new(reader), |thread, step| {
            counting.thread = thread;
            let mut counting = spaces.listen(thread, &mut counting);
            match step {
                Step::Ops(ops, _) => counting.ops(ops, &mut Vec::new()),
                Step::Event(event) => counting.event(event, &mut Vec::new()),
                Step::Waits | Step::Ended => {}
            }
        });
        let Counting {
            mut info,
            pages,
            heap,
            ..
        } = counting;
        if let Some(damage) = walk.damage {
            return Err(damage);
        }
        info.instructions = info.threads.iter().map(|thread| thread.instructions).sum();
        let mut processes: Vec<u32> = info.threads.iter().map(|thread| thread.process).collect();
        processes.sort_unstable();
        processes.dedup();
        info.processes = processes.len() as u64;
        info.pages = pages.all.len() as u64;
        info.most_pages = pages.most;
        info.written_pages = pages.written.len() as u64;
        info.sites = heap.into_sites();
        Ok(info)
    }

    fn count(&mut self, op: &Op, thread: usize, pages: &mut Pages, heap: &mut Heap) {
        self.ops += 1;
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.ops += 1;
            thread.instructions += u64::from(op.instructions);
        }
        match op.kind {
            Kind::Touch => pages.touch(&Op { size: 1, ..*op }),
            Kind::Unmap => {
                let first = op.addr / PAGE_BYTES;
                pages.gone(first..first + u64::from(op.size));
            }
            _ => {}
        }
        if op.kind.is_access() {
            pages.touch(op);
            heap.access(op);
        }
        let (reads, writes) = reads_and_writes(op.kind);
        self.reads += u64::from(reads);
        self.writes += u64::from(writes);
        self.read_bytes += u64::from(reads) * u64::from(op.size);
        self.written_bytes += u64::from(writes) * u64::from(op.size);
        self.dependent_reads += u64::from(op.dependent);
    }
}

/// What a trace is read for.
struct Counting {
    info: TraceInfo,
    pages: Pages,
    heap: Heap,
    /// The thread of the ops and events that come.
    thread: usize,
}

impl Listener for Counting {
    fn ops(&mut self, ops: &[Op], _: &mut Vec<Op>) {
        for op in ops {
            self.info
                .count(op, self.thread, &mut self.pages, &mut self.heap);
        }
    }

    fn event(&mut self, event: &Event, _: &mut Vec<Op>) {
        match *event {
            Event::Process { number } => self.info.threads[self.thread].process = number,
            Event::Touched { addr, bytes } => self.pages.touch_all(addr, bytes),
            _ => self.heap.event(event),
        }
    }

    fn copied(&mut self, from: u64, to: u64) {
        self.heap.copied(from, to);
    }

    fn gone(&mut self, addr: u64, bytes: u64, _: &mut Vec<Op>) {
        let first = addr / PAGE_BYTES;
        self.pages.gone(first..first + bytes / PAGE_BYTES);
    }
}

/// The live allocations, to find the owner of an access.
struct Heap {
    sites: Vec<SiteInfo>,
    keys: Vec<Key>,
    /// Places in `sites`, by number in the trace: processes have the same ones.
    places: Vec<u32>,
    live_bytes: Vec<u64>,
    /// Bytes and site, by first byte.
    live: BTreeMap<u64, (u64, u32)>,
    /// The allocation that was accessed last, and its site.
    hit: (Range<u64>, u32),
    /// A range without any allocation where the last access that hit none was: stacks and globals.
    gap: Range<u64>,
}

impl Heap {
    fn new(sites: &[CallSite]) -> Heap {
        let empty = |site: &CallSite| SiteInfo {
            name: String::new(),
            site: site.clone(),
            allocations: 0,
            bytes: 0,
            peak_bytes: 0,
            reads: 0,
            writes: 0,
        };
        let (mut keys, mut different) = (Vec::new(), Vec::new());
        let mut known: HashMap<Key, u32> = HashMap::new();
        let place = |site: &CallSite| {
            let key = site.key().cut(CALLERS);
            *known.entry(key.clone()).or_insert_with(|| {
                keys.push(key);
                different.push(empty(site));
                different.len() as u32 - 1
            })
        };
        let places = sites.iter().map(place).collect();
        Heap {
            live_bytes: vec![0; different.len()],
            sites: different,
            keys,
            places,
            live: BTreeMap::new(),
            hit: (0..0, 0),
            gap: 0..0,
        }
    }

    fn event(&mut self, event: &Event) {
        match *event {
            Event::Alloc { site, addr, bytes } => {
                self.free(addr);
                let Some(&site) = self.places.get(site as usize) else {
                    return;
                };
                let info = &mut self.sites[site as usize];
                info.allocations += 1;
                info.bytes = info.bytes.saturating_add(bytes);
                self.grow(site, bytes);
                self.live.insert(addr, (bytes, site));
                self.gap = 0..0;
            }
            Event::Free { addr } => self.free(addr),
            _ => {}
        }
    }

    /// What is on a page is on another one too. It was allocated once.
    fn copied(&mut self, from: u64, to: u64) {
        let end = from + PAGE_BYTES;
        let on_page = self
            .live
            .range(..end)
            .rev()
            .map(|(&start, &(bytes, site))| {
                let first = start.max(from);
                let last = start.saturating_add(bytes).min(end);
                (first, last.saturating_sub(first), site)
            });
        let pieces: Vec<_> = on_page.take_while(|(_, bytes, _)| *bytes > 0).collect();
        for (first, bytes, site) in pieces {
            self.free(first - from + to);
            self.live.insert(first - from + to, (bytes, site));
            self.grow(site, bytes);
        }
        (self.hit, self.gap) = ((0..0, 0), 0..0);
    }

    fn grow(&mut self, site: u32, bytes: u64) {
        let (live, info) = (
            &mut self.live_bytes[site as usize],
            &mut self.sites[site as usize],
        );
        *live = live.saturating_add(bytes);
        info.peak_bytes = info.peak_bytes.max(*live);
    }

    fn free(&mut self, addr: u64) {
        if let Some((bytes, site)) = self.live.remove(&addr) {
            self.hit = (0..0, 0);
            self.live_bytes[site as usize] = self.live_bytes[site as usize].saturating_sub(bytes);
        }
    }

    fn access(&mut self, op: &Op) {
        if self.gap.contains(&op.addr) {
            return;
        }
        if !self.hit.0.contains(&op.addr) {
            let below = self
                .live
                .range(..=op.addr)
                .next_back()
                .map(|(&start, &(bytes, site))| (start..start.saturating_add(bytes), site));
            match below {
                Some(hit) if hit.0.contains(&op.addr) => self.hit = hit,
                below => {
                    let above = self
                        .live
                        .range(op.addr..)
                        .next()
                        .map_or(u64::MAX, |(&start, _)| start);
                    self.gap = below.map_or(0, |(range, _)| range.end)..above;
                    return;
                }
            }
        }
        let (reads, writes) = reads_and_writes(op.kind);
        let info = &mut self.sites[self.hit.1 as usize];
        info.reads += u64::from(reads);
        info.writes += u64::from(writes);
    }

    fn into_sites(self) -> Vec<SiteInfo> {
        let all = self.sites.into_iter().zip(self.keys);
        let (mut sites, keys): (Vec<SiteInfo>, Vec<Key>) =
            all.filter(|(site, _)| site.allocations > 0).unzip();
        for (site, name) in sites.iter_mut().zip(names::names(&keys)) {
            site.name = name;
        }
        sites.sort_by_key(|site| std::cmp::Reverse(site.bytes));
        sites
    }
}
