//! The heap: the API for programs and hosts.

use std::time::Instant;

use crate::ahead::Ahead;
use crate::align::ObjectAlign;
use crate::blocks::Blocks;
use crate::chunks::Chunks;
use crate::config::{Config, ConfigError, Log, NurserySize, Stress};
use crate::durable::DurableMarks;
use crate::instances::Seat;
use crate::large::Large;
use crate::layout::*;
use crate::lines::Lines;
use crate::mature::{Bump, Mature, Tables};
use crate::memory::Memory;
use crate::mutator::Mutator;
use crate::nursery::{Nursery, START};
use crate::observed::ObserverSpace;
use crate::observer::{Observer, Stage, Unobserved};
use crate::plan::{AnyPlan, FastIsFull, Places, Plan, Site};
use crate::plans::dram::Dram;
use crate::reference::Ref;
use crate::remembered::Buffer;
use crate::roots::Roots;
use crate::sampler::{FastMemory, Sampler};
use crate::shape::Shapes;
use crate::sizing::Sizing;
use crate::stats::{Cause, Kind, Record, SpaceRanges, SpaceUse, Stats};
use varve_pima::{MAX_TIERS, Tier};

/// A heap of objects with a program running on it. See the [crate](crate) for how it works.
pub struct Heap<P = Dram, O = Unobserved> {
    /// Before the memory, which it must not outlive: fields are dropped in order.
    pub(crate) ahead: Ahead,
    pub(crate) tables: Tables,
    pub(crate) shapes: Shapes,
    pub(crate) mature: Vec<Mature>,
    pub(crate) large: Vec<Large>,
    pub(crate) nursery: Nursery,
    pub(crate) observed: ObserverSpace,
    /// The buffer that the mutator's write barrier fills.
    pub(crate) remembered: Buffer,
    /// Whether writes are recorded in headers.
    pub(crate) monitors: bool,
    /// Slots, in units of 4 bytes, of old objects that referred to the observer space after some collection since
    /// its objects were last sorted.
    pub(crate) old_to_observed: Vec<u32>,
    /// Bytes that survived the last nursery collection.
    last_survived: u64,
    /// Bytes of old hot objects that are not in fast memory, as far as it is known: some may have died since
    /// everything was last collected.
    pub(crate) hot: u64,
    /// This heap's place among those that sample together.
    pub(crate) seat: Option<Seat>,
    /// By collector thread and tier.
    pub(crate) bumps: Vec<Vec<Bump>>,
    pub(crate) plan: P,
    pub(crate) observer: O,
    /// The mark value of live objects since the last full collection.
    pub(crate) mark: u8,
    pub(crate) hosts: Hosts,
    pub(crate) sizing: Sizing,
    pub(crate) config: Config,
    pub(crate) stats: Stats,
    pub(crate) made: Instant,
    collections: u64,
    pub(crate) until_stress: u32,
    /// Where a collection records which durable objects are referred to, while the host has requested that.
    pub(crate) durable_marks: Option<DurableMarks>,
    attached: bool,
}

/// Host objects, apart from all others because the host is notified when they die.
#[derive(Default)]
pub(crate) struct Hosts {
    pub young: Vec<Ref>,
    pub old: Vec<Ref>,
}

impl Heap {
    /// An empty heap in one memory.
    pub fn new(config: Config, shapes: Shapes) -> Result<Heap, ConfigError> {
        Heap::with(config, shapes, Dram, Unobserved)
    }
}

impl<O: Observer> Heap<AnyPlan, O> {
    /// An empty heap whose objects a plan places that is chosen while the program runs: see [`plans`](crate::plans).
    pub fn planned(
        config: Config,
        shapes: Shapes,
        plan: Box<dyn Plan>,
        observer: O,
    ) -> Result<Heap<AnyPlan, O>, ConfigError> {
        Heap::with(config, shapes, AnyPlan::new(plan), observer)
    }
}

impl<P: Places, O: Observer> Heap<P, O> {
    /// An empty heap whose objects `plan` places, and whose collections `observer` watches.
    pub fn with(
        mut config: Config,
        mut shapes: Shapes,
        plan: P,
        observer: O,
    ) -> Result<Heap<P, O>, ConfigError> {
        config.check()?;
        let (asked, tiers) = (plan.plan(), plan.plan().tiers());
        if !(1..=MAX_TIERS).contains(&tiers) {
            return Err(ConfigError::Tiers {
                plan: asked.name().into(),
                tiers,
            });
        }
        let fast_max = config.fast_max.filter(|_| tiers > 1);
        config.begin_small();
        if let Some(fast_max) = fast_max.filter(|_| config.sized != NurserySize::Given)
            && asked.nursery() == Tier::FAST
        {
            config.fit(fast_max, asked.observer().is_some());
        }
        let half = match asked.observer() {
            Some(_) => config.observer_half(),
            None => 0,
        };
        if half != 0 {
            // The observer space has room for what survives nurseries of this size, and does not grow.
            config.nursery_max = config.nursery;
        }
        if let Some(fast_max) = fast_max {
            let is_fast = asked.nursery() == Tier::FAST;
            let young = if is_fast { config.nursery } else { 0 } + 2 * half;
            if young > fast_max {
                return Err(ConfigError::FastMemory { fast_max, young });
            }
            if is_fast {
                let most = match config.sized {
                    NurserySize::Pays => (fast_max / 2).max(young),
                    NurserySize::Given | NurserySize::Fits => fast_max,
                };
                config.nursery_max = config.nursery_max.min(most - 2 * half);
            }
        }
        let extent = config.extent(tiers, half);
        let (align, start) = (config.align, config.align.durable_start());
        if config.durable && extent > start {
            let max = config.max;
            return Err(ConfigError::Durable { max, start });
        }
        shapes.align(align);
        let first = (config.young_range(half) / CHUNK_SIZE) as u32;
        let span = align.span();
        let refused = |source| ConfigError::Reserve {
            span,
            extent,
            source,
        };
        let memory = Memory::reserve_after(config.before, extent, align).map_err(refused)?;
        let remembered = Buffer::reserve(extent).map_err(refused)?;
        let tables = Tables {
            memory,
            chunks: Chunks::new(first, extent, config.emergency_chunks(tiers, half)),
            lines: Lines::new(extent),
            blocks: Blocks::new(extent),
            backing: config.backing.take(),
        };
        let observed = match half {
            0 => ObserverSpace::default(),
            _ => ObserverSpace::new(START, half, config.nursery_max),
        };
        let nursery = Nursery::new(ObserverSpace::nursery_start(START, half));
        if let Some(tier) = asked.observer() {
            for (start, bytes) in observed.halves() {
                tables.bind(start, bytes.next_multiple_of(CHUNK_SIZE), tier);
            }
        }
        if let Some(backing) = &tables.backing {
            for table in [tables.lines.bytes(), tables.blocks.bytes()] {
                let address = table.as_ptr().addr() as u64;
                // SAFETY: the table is this heap's, mapped and not aligned to chunks.
                unsafe { backing.bind(address, table.len() as u64, asked.metadata()) };
            }
        }
        let monitors = asked.monitors();
        // Other instances must not wait for a heap that never samples, or samples alone: its place is free again at once.
        let seat = config.instances.take().map(|instances| instances.join());
        let together = asked
            .sampler()
            .and_then(Sampler::intervals)
            .is_some_and(|told| told.is_coordinated());
        let seat = seat.filter(|_| together);
        let (threads, asked_nursery) = (config.threads.max(1), asked.nursery());
        Ok(Heap {
            ahead: Ahead::default(),
            tables,
            shapes,
            mature: (0..tiers).map(|tier| Mature::new(Tier(tier))).collect(),
            large: (0..tiers).map(|tier| Large::new(Tier(tier))).collect(),
            nursery,
            observed,
            remembered,
            monitors,
            old_to_observed: Vec::new(),
            last_survived: 0,
            hot: 0,
            seat,
            bumps: (0..threads)
                .map(|_| (0..tiers).map(|_| Bump::default()).collect())
                .collect(),
            plan,
            observer,
            mark: MARK_A,
            hosts: Hosts::default(),
            sizing: Sizing::new(&config, asked_nursery),
            stats: Stats::default(),
            made: Instant::now(),
            collections: 0,
            until_stress: 0,
            durable_marks: None,
            attached: false,
            config,
        })
    }

    /// The address that references count from. It never changes.
    pub fn base_address(&self) -> u64 {
        self.tables.memory.base_address()
    }

    /// The alignment of objects.
    pub fn align(&self) -> ObjectAlign {
        self.config.align
    }

    /// The address of an object, until the next collection.
    pub fn address(&self, object: Ref) -> u64 {
        self.base_address() + self.config.align.offset(object)
    }

    /// The shapes of the heap's objects.
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The shapes, to add more.
    pub fn shapes_mut(&mut self) -> &mut Shapes {
        &mut self.shapes
    }

    /// The plan that places objects.
    pub fn plan(&self) -> &dyn Plan {
        self.plan.plan()
    }

    /// The plan, for updates. Changed answers count from the next collection on.
    pub fn plan_mut(&mut self) -> &mut dyn Plan {
        self.plan.plan_mut()
    }

    /// The temperature byte that compiled code sets in objects that are born at a site: a constant of the site,
    /// so that it costs nothing.
    pub fn temperature(&self, site: Site<'_>) -> u8 {
        match self.plan.plan().is_hot(site) {
            true => HOT,
            false => 0,
        }
    }

    /// An object is about to become hot while it lives: its owner is going to set that in its header. Panics outside of
    /// the heap.
    pub fn heats(&mut self, object: Ref) {
        let durable = self.config.durable && object.is_durable();
        let young =
            self.config.align.offset(object) < self.config.young_range(self.observed.size());
        if durable || young || self.tier_of(object) == Tier::FAST {
            return;
        }
        if self.header(object).temperature() & HOT == 0 {
            self.hot += self.object_size(object);
        }
    }

    /// Bytes of fast memory that are free, by [`Config::fast_max`].
    pub(crate) fn fast_left(&self) -> u64 {
        let plan = self.plan.plan();
        let Some(max) = self.config.fast_max.filter(|_| plan.tiers() > 1) else {
            return u64::MAX;
        };
        let nursery = match plan.nursery() {
            Tier::FAST => self.nursery.size(),
            _ => 0,
        };
        let observed = match plan.observer() {
            Some(Tier::FAST) => 2 * self.observed.size(),
            _ => 0,
        };
        max.saturating_sub(nursery + observed + self.old_in(Tier::FAST))
    }

    /// Bytes in use by old objects in a memory.
    fn old_in(&self, tier: Tier) -> u64 {
        let mature = self.mature.iter().filter(|s| s.tier == tier);
        let large = self.large.iter().filter(|s| s.tier == tier);
        mature.map(Mature::used).sum::<u64>() + large.map(Large::used).sum::<u64>()
    }

    pub(crate) fn fast_memory(&self) -> FastMemory {
        let old = (1..self.mature.len() as u8).map(|tier| self.old_in(Tier(tier)));
        FastMemory {
            // The next survivors need room too.
            left: self.fast_left().saturating_sub(self.nursery.size()),
            old: old.sum(),
            hot: self.hot,
        }
    }

    /// The parts of fast memory that a collection must not allocate in, with `nursery` bytes in the nursery.
    fn fast_is_full(&self, nursery: u64, cause: Cause) -> FastIsFull {
        let left = self.fast_left();
        let young = nursery + self.observed.used();
        let needed = young + self.fast_memory().old;
        FastIsFull {
            for_survivors: left < young,
            // The plan that requested the move has checked that there is room.
            for_old: left < needed && cause != Cause::Moving,
        }
    }

    /// The memory that an object is in. Panics outside of the heap.
    pub fn tier_of(&self, object: Ref) -> Tier {
        let plan = self.plan.plan();
        let young = self.config.young_range(self.observed.size());
        let offset = self.config.align.offset(object);
        match offset {
            _ if self.observed.contains(offset) => plan.observer().unwrap_or(Tier::FAST),
            offset if offset < young => plan.nursery(),
            offset => Tier(self.tables.blocks.tier(offset)),
        }
    }

    /// The observer of collections.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Statistics of all collections so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Has `log` called after each collection, instead of [`Config::log`].
    pub fn set_log(&mut self, log: Option<Log>) {
        self.config.log = log;
    }

    /// The same, with the objects born since the last collection.
    pub fn stats_now(&self, mutator: &Mutator) -> Stats {
        let mut stats = self.stats.clone();
        stats.allocated += self.nursery.used(mutator);
        stats
    }

    /// Bytes in use outside of the nursery.
    pub fn used(&self) -> u64 {
        let mature: u64 = self.mature.iter().map(Mature::used).sum();
        let large: u64 = self.large.iter().map(Large::used).sum();
        mature + large + self.observed.used()
    }

    /// Every space. The nursery, which collections empty, counts with all its bytes.
    pub fn spaces(&self) -> Vec<SpaceUse> {
        let plan = self.plan.plan();
        let name = |kind: &str, tier: Tier| {
            if self.mature.len() == 1 {
                kind.into()
            } else {
                format!("{kind} {}", tier.0)
            }
        };
        let nursery = SpaceUse {
            name: "nursery".into(),
            tier: plan.nursery(),
            used: self.nursery.size(),
            held: self.nursery.size(),
        };
        let observed = plan.observer().map(|tier| SpaceUse {
            name: "observer".into(),
            tier,
            used: self.observed.used(),
            held: 2 * self.observed.size(),
        });
        let mature = self.mature.iter().map(|s| SpaceUse {
            name: name("mature", s.tier),
            tier: s.tier,
            used: s.used(),
            held: s.held(),
        });
        let large = self.large.iter().map(|s| SpaceUse {
            name: name("large", s.tier),
            tier: s.tier,
            used: s.used(),
            held: s.held(),
        });
        let young = std::iter::once(nursery).chain(observed);
        young.chain(mature).chain(large).collect()
    }

    /// Where every space is, in the order of [`Heap::spaces`], and then the collector's tables.
    pub fn ranges(&self) -> Vec<SpaceRanges> {
        let base = self.base_address();
        let chunk = |first: u32, count: u32| {
            let start = base + u64::from(first) * CHUNK_SIZE;
            (start, u64::from(count) * CHUNK_SIZE)
        };
        let mature = self.mature.iter().map(Mature::chunks);
        let large = self.large.iter().map(Large::chunks);
        let old = mature.chain(large);
        let old = old.map(|chunks| chunks.into_iter().map(|(f, c)| chunk(f, c)).collect());
        let halves = self.observed.halves().map(|(at, bytes)| (base + at, bytes));
        let observed = self.observed.exists().then(|| halves.to_vec());
        let (start, end) = self.nursery.bounds();
        let nursery = vec![(base + start, end - start)];
        let ranges = std::iter::once(nursery).chain(observed).chain(old);
        let spaces = self.spaces().into_iter().zip(ranges);
        let mut all: Vec<SpaceRanges> = spaces
            .map(|(space, ranges)| SpaceRanges {
                name: space.name,
                tier: space.tier,
                ranges,
            })
            .collect();
        let table = |table: &[std::sync::atomic::AtomicU8]| {
            (table.as_ptr().addr() as u64, table.len() as u64)
        };
        all.push(SpaceRanges {
            name: "tables".into(),
            tier: self.plan.plan().metadata(),
            ranges: vec![
                table(self.tables.lines.bytes()),
                table(self.tables.blocks.bytes()),
            ],
        });
        all
    }

    /// Why the memory that the plan asked for was not there, if it was not: see [`Backing::failure`](crate::Backing::failure).
    pub fn failure(&self) -> Option<String> {
        self.tables.backing.as_ref()?.failure()
    }

    /// The collection that empties the nursery without collecting everything.
    pub(crate) fn minor(&self) -> Kind {
        // The next survivors may take as many bytes as the last ones.
        let needed = self.last_survived.max(self.nursery.size() / 8);
        match self.observed.exists() && self.observed.room() < needed {
            true => Kind::Observer,
            false => Kind::Minor,
        }
    }

    /// The heap's only mutator, with an empty nursery.
    ///
    /// Panics if there is one already: programs have one thread for now.
    pub fn attach(&mut self) -> Mutator {
        assert!(
            !std::mem::replace(&mut self.attached, true),
            "a heap has one mutator"
        );
        let cards = self.tables.lines.bytes();
        let mut mutator = Mutator::new(&self.tables.memory, cards, &self.remembered);
        self.start_nursery(&mut mutator, self.sizing.nursery(0));
        mutator
    }

    /// Collects now. References that `roots` visits, and references in objects, are the only ones that are valid
    /// afterwards.
    pub fn collect(&mut self, mutator: &mut Mutator, kind: Kind, roots: &mut dyn Roots) {
        self.collect_for(mutator, kind, Cause::Requested, roots);
    }

    /// Collects everything, and gives the durable objects that are referred to from outside of their range.
    pub fn collect_durable(
        &mut self,
        mutator: &mut Mutator,
        roots: &mut dyn Roots,
    ) -> DurableMarks {
        self.durable_marks = Some(DurableMarks::default());
        self.collect_for(mutator, Kind::Full, Cause::Requested, roots);
        self.durable_marks.take().unwrap_or_default()
    }

    /// Collects everything, and moves every object that can move, to where the plan wants it now.
    pub fn evacuate(&mut self, mutator: &mut Mutator, roots: &mut dyn Roots) {
        self.collect_for(mutator, Kind::Full, Cause::Evacuate, roots);
    }

    pub(crate) fn collect_for(
        &mut self,
        mutator: &mut Mutator,
        kind: Kind,
        cause: Cause,
        roots: &mut dyn Roots,
    ) {
        let (begin, at) = (Instant::now(), self.observer.now());
        let kind = match kind {
            Kind::Observer if !self.observed.exists() => Kind::Minor,
            kind => kind,
        };
        let before = self.used();
        let (size, nursery) = (self.nursery.size(), self.nursery.used(mutator));
        self.plan.begin(self.fast_is_full(nursery, cause));
        let counts = self.run(
            mutator,
            kind,
            matches!(cause, Cause::Stress | Cause::Evacuate),
            roots,
        );
        let after = self.used();
        let promoted = counts.promoted.iter().sum::<u64>() + counts.observed;
        self.last_survived = promoted;
        self.hot = match kind {
            Kind::Full => counts.hot,
            _ => self.hot + counts.hot,
        };
        match kind {
            Kind::Minor | Kind::Observer if cause == Cause::NurseryFull => {
                self.sizing.after_nursery(size, promoted);
            }
            Kind::Minor | Kind::Observer => {}
            Kind::Full => {
                self.sizing.after_full(after);
                // Memory that everything has left is for other programs; else the heap will grow into it.
                let room_to_grow = match cause {
                    Cause::Moving => 0,
                    _ => self.sizing.threshold().saturating_sub(after),
                };
                self.tables.chunks.release(
                    &self.tables.memory,
                    self.tables.backing.as_deref(),
                    room_to_grow.div_ceil(CHUNK_SIZE) as u32,
                );
            }
        }
        let exhausted = self.sizing.nursery(after) == 0
            || !self.has_reserve(after)
            || kind == Kind::Full && self.sizing.is_exhausted(after);
        let size = if exhausted {
            0
        } else {
            self.sizing.nursery(after)
        };
        self.start_nursery(mutator, size);
        if kind == Kind::Minor && after > before {
            self.touch_ahead(promoted);
        }
        self.collections += 1;
        self.observer.stage(kind, Stage::End);
        // By the observer's clock if it has one.
        let (at, pause) = match (at, self.observer.now()) {
            (Some(at), Some(end)) => (at, end.saturating_sub(at)),
            _ => (begin - self.made, begin.elapsed()),
        };
        let record = Record {
            number: self.collections,
            kind,
            cause,
            at,
            pause,
            tracing: counts.tracing,
            nursery,
            promoted,
            live: (kind == Kind::Full).then(|| counts.live()),
            evacuated: counts.evacuated,
            sorted: counts.sorted,
            moved: counts.moved,
            before,
            after,
            threshold: self.sizing.threshold(),
            spaces: self.spaces(),
        };
        self.stats.add(&record);
        if let Some(log) = &mut self.config.log {
            log(&record);
        }
    }

    /// Whether there are addresses for survivors of the next nursery, however many there are. A nursery that was lent is small: for objects copied
    /// from it, and for blocks that threads leave incomplete, one chunk of each space is enough, and one more for every 16 threads. Objects in the
    /// observer space need their own, twice as in [`Config::emergency_chunks`].
    pub(crate) fn has_reserve(&self, used: u64) -> bool {
        let chunks = &self.tables.chunks;
        let of_tier = 2 + self.bumps.len().div_ceil(16);
        let few = (self.mature.len() * of_tier) as u64;
        let few = few + 2 * self.observed.size().div_ceil(CHUNK_SIZE);
        chunks.reserve_is_whole() || self.sizing.lends(used) && chunks.free_for_collections() >= few
    }

    /// An empty nursery of `size` bytes. Memory is asked for as it grows.
    pub(crate) fn start_nursery(&mut self, mutator: &mut Mutator, size: u64) {
        self.nursery.reset(mutator, size);
        if let Some((start, bytes)) = self.nursery.grown() {
            self.tables.bind(start, bytes, self.plan.plan().nursery());
        }
    }

    /// Makes room that is in memory for as many survivors again, and chunks to spare.
    pub(crate) fn touch_ahead(&mut self, promoted: u64) {
        // With several memories a chunk's is known only once a space takes it.
        if self.mature.len() == 1 && self.config.stress == Stress::Off {
            let next = self
                .tables
                .chunks
                .touch_next(promoted.div_ceil(CHUNK_SIZE) as u32 + 2);
            self.ahead.touch(self.tables.memory.view(), &next);
        }
    }
}
