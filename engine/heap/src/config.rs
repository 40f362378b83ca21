//! The configuration of a heap.

use std::sync::Arc;

use crate::align::ObjectAlign;
use crate::instances::Instances;
use crate::layout::*;
use crate::nursery::{Nursery, START};
use crate::observed::ObserverSpace;
use crate::stats::Record;
use varve_pima::Tier;

/// Settings of a heap. Sizes are in bytes.
pub struct Config {
    /// All of the heap: the nursery, what survived it, and room for survivors of the next collection.
    pub max: u64,
    /// The nursery in the beginning.
    pub nursery: u64,
    /// The nursery may grow up to this while much of it survives.
    pub nursery_max: u64,
    /// No full collection is started for growth while survivors take less than this.
    pub initial: u64,
    /// The next full collection comes when survivors take this many times what was live after the last one.
    pub growth: f64,
    /// Threads that trace. One is the calling one; others are started when there is much to do.
    pub threads: usize,
    /// Collects far too often, to find references that a collection does not know.
    pub stress: Stress,
    /// Overwrites what died or moved away.
    pub poison: bool,
    /// Called after each collection.
    pub log: Option<Log>,
    /// Bytes of each half of the observer space, if the plan has one. 0: twice the nursery in the beginning, and at
    /// most an eighth of the heap.
    pub observer: u64,
    /// Binds address ranges to memory of a tier.
    pub backing: Option<Box<dyn Backing>>,
    /// Most fast memory that the heap uses, in bytes, if there is not enough for all of it: nursery, observer space and survivors. Objects without
    /// room there go to the next memory. A plan with one memory has no other, and needs all of [`Config::max`].
    pub fast_max: Option<u64>,
    /// Who says how large the nursery is.
    pub sized: NurserySize,
    /// Other heaps that run at the same time, with which a plan that samples is to begin together.
    pub instances: Option<Arc<Instances>>,
    /// Bytes of address range right before the heap's base that the heap reserves and leaves to its owner, inaccessible: an engine's data there is
    /// addressed from the base as objects are.
    pub before: u64,
    /// Leaves the addresses from [`ObjectAlign::durable_start`] to [`ObjectAlign::durable_end`] to its owner, which maps objects there
    /// that survive the program. Collections follow references into that range no further.
    pub durable: bool,
    /// The alignment of objects. More than the default makes them larger, and the durable range with them.
    pub align: ObjectAlign,
}

/// Who says how large the nursery is, between [`Config::nursery`] and [`Config::nursery_max`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NurserySize {
    /// The user: it begins so large, and grows while much of it survives.
    #[default]
    Given,
    /// The same, but nursery and observer space begin smaller where they would take most of [`Config::fast_max`].
    Fits,
    /// What pays, for memory is short: it begins smaller, grows where that saves enough copies, and leaves half of
    /// [`Config::fast_max`] to old objects.
    Pays,
}

/// Receives one record per collection.
pub type Log = Box<dyn FnMut(&Record) + Send>;

/// Gives addresses memory of a tier. Without one, all memory is what the system gives.
///
/// Collector threads call while they collect.
pub trait Backing: Send + Sync {
    /// `bytes` at `address` are to be memory of `tier` from now on. Their contents are not needed any more. Whole
    /// chunks of the heap, but for tables of the collector, which are neither aligned nor empty.
    ///
    /// # Safety
    /// The range is private anonymous memory of the caller's own. If it is whole chunks, their contents are not needed, and no thread reads or writes
    /// them meanwhile: their memory may be exchanged.
    unsafe fn bind(&self, address: u64, bytes: u64, tier: Tier);

    /// Why memory of some tier could not be given, in one line, if that ever happened. Objects are in other memory then than their plan
    /// wants, and stay usable: the runtime checks this between collections, and decides.
    fn failure(&self) -> Option<String> {
        None
    }

    /// `bytes` at `address` are free until they are bound again. True: the backing released their memory, so that they are zero now. Otherwise the
    /// heap returns it to the system.
    ///
    /// # Safety
    /// As of [`Backing::bind`], whole chunks.
    unsafe fn release(&self, address: u64, bytes: u64) -> bool {
        let _ = (address, bytes);
        false
    }
}

/// How often to collect without need. All allocations take the slow path then, unless it is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stress {
    /// Never.
    #[default]
    Off,
    /// Empty the nursery before every nth allocation.
    Minor(u32),
    /// Collect everything before every nth allocation, and move every object that can move.
    Full(u32),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            max: 2 << 30,
            nursery: 4 << 20,
            nursery_max: 32 << 20,
            initial: 64 << 20,
            growth: 2.0,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get().min(4)),
            stress: Stress::Off,
            poison: false,
            log: None,
            observer: 0,
            backing: None,
            fast_max: None,
            sized: NurserySize::Given,
            instances: None,
            before: 0,
            durable: false,
            align: ObjectAlign::default(),
        }
    }
}

/// The smallest nursery that a heap works with. An eighth of it holds the largest object that is not large.
pub const MIN_NURSERY: u64 = 8 * LARGE_THRESHOLD;
/// A nursery that stays in a core's caches: 1 to 2 MiB of the second level, or of its part of the last (Cascade Lake: 1 and 1.4 MiB;
/// Sapphire Rapids: 2 and 1.9 MiB).
const CACHED_NURSERY: u64 = 1 << 20;
/// The smallest heap.
pub const MIN_HEAP: u64 = 1 << 20;

/// A number of bytes as errors display it.
struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match units.iter().find(|(_, shift)| self.0 >> shift != 0) {
            Some(&(unit, shift)) if self.0.is_multiple_of(1 << shift) => {
                write!(f, "{} {unit}", self.0 >> shift)
            }
            Some(&(unit, shift)) => {
                write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

/// Why a heap cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Too small to hold anything.
    #[error("a heap of {} is too small: give it at least {}", Size(*.0), Size(MIN_HEAP))]
    TooSmall(u64),
    /// There are no addresses for that much.
    #[error(
        "a heap of {} with a nursery of up to {} is too large: there are addresses for {}, for the heap and 4 times the nursery; make it smaller",
        Size(*max), Size(*nursery_max), Size(HEAP_MAX)
    )]
    TooLarge {
        /// The maximum asked for.
        max: u64,
        /// The largest nursery asked for.
        nursery_max: u64,
    },
    /// A nursery out of range.
    #[error(
        "a nursery of {} that grows up to {}: it must have at least {}, and not begin larger than it may become",
        Size(*nursery), Size(*nursery_max), Size(MIN_NURSERY)
    )]
    Nursery {
        /// Bytes in the beginning.
        nursery: u64,
        /// Bytes at most.
        nursery_max: u64,
    },
    /// The range of durable objects would be used for others.
    #[error(
        "a heap of {} leaves no addresses to durable objects, which begin {} from the heap's base: make it smaller",
        Size(*max), Size(*start)
    )]
    Durable {
        /// The maximum asked for.
        max: u64,
        /// Where durable objects begin.
        start: u64,
    },
    /// A heap that must not grow could never be collected in time.
    #[error("a growth factor of {0}: it must be more than 1")]
    Growth(f64),
    /// Not even the nursery would fit.
    #[error(
        "fast memory of {} is too small for {}, a nursery and the observer space of plans that have one: give it more, or make the nursery smaller",
        Size(*fast_max), Size(*young)
    )]
    FastMemory {
        /// The limit of fast memory.
        fast_max: u64,
        /// Bytes of the spaces that exist before anything survives.
        young: u64,
    },
    /// A plan with no tiers, or with too many.
    #[error("plan {plan} has {tiers} tiers: 1 to {max} are possible", max = varve_pima::MAX_TIERS)]
    Tiers {
        /// The plan's name.
        plan: String,
        /// How many tiers it has.
        tiers: u8,
    },
    /// The system refused the address range.
    #[error(
        "cannot reserve {} of address range and use {} of it: {source} (look at `ulimit -v` and vm.overcommit_memory)",
        Size(*span), Size(*extent)
    )]
    Reserve {
        /// Bytes that references span.
        span: u64,
        /// Bytes that were to be usable.
        extent: u64,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.max < MIN_HEAP {
            return Err(ConfigError::TooSmall(self.max));
        }
        let (nursery, nursery_max) = (self.nursery, self.nursery_max);
        if nursery < MIN_NURSERY || nursery > nursery_max || nursery_max > HEAP_MAX {
            return Err(ConfigError::Nursery {
                nursery,
                nursery_max,
            });
        }
        if self.max > HEAP_MAX || self.max + 4 * nursery_max > HEAP_MAX - (64 << 20) {
            return Err(ConfigError::TooLarge {
                max: self.max,
                nursery_max,
            });
        }
        // Written so that NaN is refused too.
        if self.growth > 1.0 {
            Ok(())
        } else {
            Err(ConfigError::Growth(self.growth))
        }
    }

    /// Has a nursery whose size is to pay begin in the caches.
    pub(crate) fn begin_small(&mut self) {
        if self.sized == NurserySize::Pays {
            self.nursery = self.nursery.min(CACHED_NURSERY);
        }
    }

    /// Has a nursery in fast memory, and an observer space if there is one, take at most three quarters of `fast_max`, as far as a
    /// nursery can be that small: old objects need room too.
    pub(crate) fn fit(&mut self, fast_max: u64, observed: bool) {
        let young = |config: &Config| {
            let half = if observed { config.observer_half() } else { 0 };
            config.nursery + 2 * half
        };
        while young(self) > fast_max / 4 * 3 && self.nursery / 2 >= MIN_NURSERY {
            self.nursery /= 2;
        }
    }

    /// Bytes of each half of an observer space.
    pub(crate) fn observer_half(&self) -> u64 {
        let wanted = match self.observer {
            0 => (2 * self.nursery).min(self.max / 8),
            given => given.min(self.max / 4),
        };
        self.align.round_down(wanted)
    }

    /// Bytes of address range up to the first chunk that spaces share. `half` is [`Config::observer_half`], or 0.
    pub(crate) fn young_range(&self, half: u64) -> u64 {
        debug_assert!(START.is_multiple_of(CHUNK_SIZE));
        Nursery::range(self.nursery_max) + ObserverSpace::range(half)
    }

    /// Chunks of address range that only collections may use, so that a full nursery always finds room. Twice the
    /// nursery covers what page and block ends waste; each thread may leave a chunk of each space incomplete.
    pub(crate) fn emergency_chunks(&self, tiers: u8, half: u64) -> u32 {
        let young = 2 * (self.nursery_max + half).div_ceil(CHUNK_SIZE);
        young as u32 + 2 * u32::from(tiers) * (self.threads.max(1) as u32 + 1)
    }

    /// Bytes of address range to use. More than the heap's maximum, because large objects need theirs in one piece.
    pub(crate) fn extent(&self, tiers: u8, half: u64) -> u64 {
        let emergency = u64::from(self.emergency_chunks(tiers, half)) * CHUNK_SIZE;
        let wanted = self.young_range(half) + emergency + 2 * self.max.next_multiple_of(CHUNK_SIZE);
        wanted.min(HEAP_MAX - CHUNK_SIZE)
    }
}
