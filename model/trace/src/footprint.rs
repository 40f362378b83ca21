//! How much memory a trace touches: all that has to be known of it before it is run on a machine of the right size.

use crate::error::TraceError;
use crate::format::{Event, OpDecoder};
use crate::listener::Listener;
use crate::parts::Block;
use crate::program::{Step, Walk};
use crate::reader::TraceReader;
use crate::shared::Alone;
use crate::spaces::Spaces;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use varve_access::{Kind, Op};

/// Bytes of the pages that footprints are counted in.
pub const PAGE_BYTES: u64 = 4096;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Ops of all threads.
    pub ops: u64,
    /// Pages of 4 KiB that are accessed, those too that were touched while it was not recorded; of several processes the most at a
    /// time.
    pub pages: u64,
    /// Those of them that are never unmapped, so that they are still there at the end.
    pub kept_pages: u64,
}

impl Footprint {
    /// Reads a whole trace on `workers` threads of the host.
    ///
    /// # Errors
    /// A block is damaged. A trace that is cut is no error.
    pub fn read(reader: &TraceReader, workers: usize) -> Result<Footprint, TraceError> {
        if reader.has_several_processes() {
            return Footprint::in_order(reader);
        }
        let next = AtomicUsize::new(0);
        let blocks = reader.blocks().len();
        let parts: Vec<Part> = thread::scope(|scope| {
            let workers = workers.clamp(1, blocks.max(1));
            let begun: Vec<_> = (0..workers)
                .map(|_| scope.spawn(|| Part::read(reader, &next)))
                .collect();
            let ended = begun.into_iter().map(|worker| worker.join());
            ended.map(|part| part.expect("no worker panics")).collect()
        });
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        parts.for_each(|part| all.add(part));
        match all.damage {
            Some((_, damage)) => Err(damage),
            None => Ok(Footprint {
                ops: all.ops,
                pages: all.pages.all.len() as u64,
                kept_pages: all.kept_pages(),
            }),
        }
    }

    /// The same where processes share pages: which ones depends on what came before.
    fn in_order(reader: &TraceReader) -> Result<Footprint, TraceError> {
        let mut part = Part::default();
        let mut walk = Walk::new(reader, 0);
        let mut spaces = Spaces::of(reader, walk.threads());
        let mut blocks = Alone::new(reader);
        walk.each(&mut blocks, |thread, step| match step {
            Step::Ops(ops, _) => spaces.listen(thread, &mut part).ops(ops, &mut Vec::new()),
            Step::Event(event) => spaces
                .listen(thread, &mut part)
                .event(event, &mut Vec::new()),
            _ => {}
        });
        match walk.damage {
            Some(damage) => Err(damage),
            None => Ok(Footprint {
                ops: part.ops,
                pages: part.pages.most,
                kept_pages: part.kept_pages(),
            }),
        }
    }

    /// Bytes in accessed pages.
    pub fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }
}

/// Contents of some blocks.
#[derive(Default)]
struct Part {
    ops: u64,
    pages: Pages,
    /// Pages that are unmapped, accessed or not: the first of a range, and behind the last.
    given_back: HashSet<(u64, u64)>,
    /// The first block of them that cannot be read.
    damage: Option<(usize, TraceError)>,
}

impl Part {
    /// Reads blocks that no other worker reads until there are no more.
    fn read(reader: &TraceReader, next: &AtomicUsize) -> Part {
        let mut part = Part::default();
        let (mut decoder, mut block) = (OpDecoder::default(), Block::default());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= reader.blocks().len() {
                return part;
            }
            match reader.read_block(number, &mut decoder, &mut block) {
                Ok(()) => part.count(&block),
                Err(damage) => {
                    part.damage = Some((number, damage));
                    return part;
                }
            }
        }
    }

    fn count(&mut self, block: &Block) {
        self.ops(&block.ops, &mut Vec::new());
        for told in &block.events {
            self.event(&told.event, &mut Vec::new());
        }
    }

    fn kept_pages(&self) -> u64 {
        let mut ranges: Vec<(u64, u64)> = self.given_back.iter().copied().collect();
        ranges.sort_unstable();
        let mut pages: Vec<u64> = self.pages.all.iter().copied().collect();
        pages.sort_unstable();
        // Of the ranges that begin at a page or before it, the end that is furthest away.
        let (mut ranges, mut end) = (ranges.into_iter().peekable(), 0);
        let kept = pages.into_iter().filter(|page| {
            while let Some((_, other)) = ranges.next_if(|(first, _)| first <= page) {
                end = end.max(other);
            }
            *page >= end
        });
        kept.count() as u64
    }

    fn add(&mut self, other: Part) {
        self.ops += other.ops;
        self.pages.all.extend(other.pages.all);
        self.given_back.extend(other.given_back);
        let damages = [self.damage.take(), other.damage].into_iter().flatten();
        self.damage = damages.min_by_key(|(number, _)| *number);
    }
}

impl Listener for Part {
    fn ops(&mut self, ops: &[Op], _: &mut Vec<Op>) {
        self.ops += ops.len() as u64;
        for op in ops {
            if op.kind.is_access() {
                self.pages.touch(op);
                continue;
            }
            match op.kind {
                Kind::Touch => self.pages.touch(&Op { size: 1, ..*op }),
                Kind::Unmap => self.gone(op.addr, u64::from(op.size) * PAGE_BYTES, &mut Vec::new()),
                _ => {}
            }
        }
    }

    fn event(&mut self, event: &Event, _: &mut Vec<Op>) {
        if let Event::Touched { addr, bytes } = *event {
            self.pages.touch_all(addr, bytes);
        }
    }

    fn gone(&mut self, addr: u64, bytes: u64, _: &mut Vec<Op>) {
        let first = addr / PAGE_BYTES;
        let end = first + bytes / PAGE_BYTES;
        self.given_back.insert((first, end));
        self.pages.gone(first..end);
    }
}

/// Does an op of a kind load, and does it store?
pub(crate) fn reads_and_writes(kind: Kind) -> (bool, bool) {
    (
        matches!(kind, Kind::Read | Kind::Update),
        matches!(kind, Kind::Write | Kind::Update | Kind::NtWrite),
    )
}

/// The pages that are accessed. Most accesses go to pages that were accessed lately, which spares the sets.
pub(crate) struct Pages {
    /// All of them.
    pub all: HashSet<u64>,
    /// Those that are stored to.
    pub written: HashSet<u64>,
    /// Those that are unmapped now.
    gone: HashSet<u64>,
    /// The most that are there at a time.
    pub most: u64,
    /// Pages that are in the sets, and whether as written ones.
    recent: Box<[u64; RECENT]>,
}

/// A power of two.
const RECENT: usize = 1 << 11;

impl Default for Pages {
    fn default() -> Pages {
        Pages {
            all: HashSet::new(),
            written: HashSet::new(),
            gone: HashSet::new(),
            most: 0,
            recent: Box::new([0; RECENT]),
        }
    }
}

impl Pages {
    /// An op accesses memory.
    pub fn touch(&mut self, op: &Op) {
        let (_, writes) = reads_and_writes(op.kind);
        let last = op.addr.saturating_add(u64::from(op.size).max(1) - 1) / PAGE_BYTES;
        for page in op.addr / PAGE_BYTES..=last {
            // the lowest bit distinguishes pages that were only read from those that were written; 0 is empty
            let key = ((page << 1) | u64::from(writes)).wrapping_add(1);
            let recent = &mut self.recent[(page << 1 | u64::from(writes)) as usize % RECENT];
            if *recent != key {
                *recent = key;
                self.add(page);
                if writes {
                    self.written.insert(page);
                }
            }
        }
    }

    /// Pages were touched while it was not recorded.
    pub fn touch_all(&mut self, addr: u64, bytes: u64) {
        let first = addr / PAGE_BYTES;
        (first..first + bytes / PAGE_BYTES).for_each(|page| self.add(page));
    }

    fn add(&mut self, page: u64) {
        self.all.insert(page);
        self.gone.remove(&page);
        self.most = self.most.max((self.all.len() - self.gone.len()) as u64);
    }

    /// Pages are unmapped, accessed or not.
    pub fn gone(&mut self, pages: Range<u64>) {
        if pages.end - pages.start < RECENT as u64 {
            for key in pages.start << 1..pages.end << 1 {
                self.recent[key as usize % RECENT] = 0;
            }
        } else {
            self.recent.fill(0);
        }
        let all = &self.all;
        match pages.end - pages.start <= all.len() as u64 {
            true => self.gone.extend(pages.filter(|page| all.contains(page))),
            false => self
                .gone
                .extend(all.iter().filter(|page| pages.contains(page))),
        }
    }
}
