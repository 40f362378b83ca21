//! The heap: what programs and hosts call.

use std::time::Instant;

use crate::ahead::Ahead;
use crate::blocks::Blocks;
use crate::chunks::Chunks;
use crate::config::{Config, ConfigError, Log, Stress};
use crate::large::Large;
use crate::layout::*;
use crate::lines::Lines;
use crate::mature::{Bump, Mature, Tables};
use crate::memory::Memory;
use crate::mutator::Mutator;
use crate::nursery::Nursery;
use crate::observer::{Observer, Unobserved};
use crate::plan::{Dram, MAX_TIERS, Plan, Tier};
use crate::reference::Ref;
use crate::roots::Roots;
use crate::shape::Shapes;
use crate::sizing::Sizing;
use crate::stats::{Cause, Kind, Record, SpaceUse, Stats};

/// A heap of objects with a program running on it. See the [crate](crate) for how it works.
pub struct Heap<P = Dram, O = Unobserved> {
    /// Before the memory, which it must not outlive: fields are dropped in order.
    ahead: Ahead,
    pub(crate) tables: Tables,
    pub(crate) shapes: Shapes,
    pub(crate) mature: Vec<Mature>,
    pub(crate) large: Vec<Large>,
    pub(crate) nursery: Nursery,
    /// By collector thread and tier.
    pub(crate) bumps: Vec<Vec<Bump>>,
    pub(crate) plan: P,
    pub(crate) observer: O,
    /// What live objects are marked with since the last full collection.
    pub(crate) mark: u8,
    pub(crate) hosts: Hosts,
    pub(crate) sizing: Sizing,
    pub(crate) config: Config,
    pub(crate) stats: Stats,
    pub(crate) made: Instant,
    collections: u64,
    pub(crate) until_stress: u32,
    attached: bool,
}

/// Host objects, apart from all others because somebody wants to know when they die.
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

impl<P: Plan, O: Observer> Heap<P, O> {
    /// An empty heap whose objects `plan` places, and whose collections `observer` watches.
    pub fn with(
        config: Config,
        shapes: Shapes,
        plan: P,
        observer: O,
    ) -> Result<Heap<P, O>, ConfigError> {
        config.check()?;
        let tiers = plan.tiers();
        if !(1..=MAX_TIERS).contains(&tiers) {
            return Err(ConfigError::Tiers {
                plan: plan.name().into(),
                tiers,
            });
        }
        let extent = config.extent(tiers);
        let first = (Nursery::range(config.nursery_max) / CHUNK_SIZE) as u32;
        let memory = Memory::reserve_after(config.before, extent)
            .map_err(|source| ConfigError::Reserve { extent, source })?;
        let tables = Tables {
            memory,
            chunks: Chunks::new(first, extent, config.emergency_chunks(tiers)),
            lines: Lines::new(extent),
            blocks: Blocks::new(extent),
        };
        let threads = config.threads.max(1);
        Ok(Heap {
            ahead: Ahead::default(),
            tables,
            shapes,
            mature: (0..tiers).map(|tier| Mature::new(Tier(tier))).collect(),
            large: (0..tiers).map(|tier| Large::new(Tier(tier))).collect(),
            nursery: Nursery::new(),
            bumps: (0..threads)
                .map(|_| (0..tiers).map(|_| Bump::default()).collect())
                .collect(),
            plan,
            observer,
            mark: MARK_A,
            hosts: Hosts::default(),
            sizing: Sizing::new(&config),
            stats: Stats::default(),
            made: Instant::now(),
            collections: 0,
            until_stress: 0,
            attached: false,
            config,
        })
    }

    /// The address that references count from. It never changes.
    pub fn base_address(&self) -> u64 {
        self.tables.memory.base_address()
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
    pub fn plan(&self) -> &P {
        &self.plan
    }

    /// The plan, to change its mind between collections.
    pub fn plan_mut(&mut self) -> &mut P {
        &mut self.plan
    }

    /// Who watches collections.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// What collections did so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Has `log` called after each collection, instead of [`Config::log`].
    pub fn set_log(&mut self, log: Option<Log>) {
        self.config.log = log;
    }

    /// Bytes in use outside of the nursery.
    pub fn used(&self) -> u64 {
        let mature: u64 = self.mature.iter().map(Mature::used).sum();
        mature + self.large.iter().map(Large::used).sum::<u64>()
    }

    /// Every space but the nursery.
    pub fn spaces(&self) -> Vec<SpaceUse> {
        let name = |kind: &str, tier: Tier| {
            if self.mature.len() == 1 {
                kind.into()
            } else {
                format!("{kind} {}", tier.0)
            }
        };
        let mature = self.mature.iter().map(|s| SpaceUse {
            name: name("mature", s.tier),
            used: s.used(),
            held: s.held(),
        });
        let large = self.large.iter().map(|s| SpaceUse {
            name: name("large", s.tier),
            used: s.used(),
            held: s.held(),
        });
        mature.chain(large).collect()
    }

    /// The heap's only mutator, with an empty nursery.
    ///
    /// Panics if there is one already: programs have one thread for now.
    pub fn attach(&mut self) -> Mutator {
        assert!(
            !std::mem::replace(&mut self.attached, true),
            "a heap has one mutator"
        );
        let mut mutator = Mutator::new(&self.tables.memory, self.tables.lines.bytes());
        self.nursery.reset(&mut mutator, self.sizing.nursery(0));
        mutator
    }

    /// Collects now. References that `roots` visits, and references in objects, are the only ones that are valid
    /// afterwards.
    pub fn collect(&mut self, mutator: &mut Mutator, kind: Kind, roots: &mut dyn Roots) {
        self.collect_for(mutator, kind, Cause::Requested, roots);
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
        let begin = Instant::now();
        let before = self.used();
        let nursery = self.nursery.used(mutator);
        let counts = self.run(
            mutator,
            kind,
            matches!(cause, Cause::Stress | Cause::Evacuate),
            roots,
        );
        let after = self.used();
        let promoted = counts.promoted.iter().sum();
        match kind {
            Kind::Minor => self.sizing.after_nursery(nursery, promoted),
            Kind::Full => {
                self.sizing.after_full(after);
                let room_to_grow = self.sizing.threshold().saturating_sub(after);
                self.tables.chunks.release(
                    &self.tables.memory,
                    room_to_grow.div_ceil(CHUNK_SIZE) as u32,
                );
            }
        }
        let exhausted = self.sizing.nursery(after) == 0
            || !self.tables.chunks.reserve_is_whole()
            || kind == Kind::Full && self.sizing.is_exhausted(after);
        self.nursery.reset(
            mutator,
            if exhausted {
                0
            } else {
                self.sizing.nursery(after)
            },
        );
        if kind == Kind::Minor && after > before {
            self.touch_ahead(promoted);
        }
        self.collections += 1;
        let record = Record {
            number: self.collections,
            kind,
            cause,
            at: begin - self.made,
            pause: begin.elapsed(),
            nursery,
            promoted,
            live: (kind == Kind::Full).then(|| promoted + counts.evacuated + counts.marked),
            evacuated: counts.evacuated,
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

    /// Makes room that is in memory for as many survivors again, and chunks to spare.
    fn touch_ahead(&mut self, promoted: u64) {
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
