//! Makes a profile: counts, exactly, a program's accesses to the objects of each site.
//!
//! ```text
//!   heap      | object              | object        |     compiled code, at each access:
//!             |                     |               |        add 1 to the 8 bytes at the object's address
//!   counters  | reads, writes, .... | reads, writes |        + a constant + READS or WRITES
//! ```
//!
//! Each object has two counters as far from it as every other has from its own, so that an access costs one instruction
//! more. The collector, which passes every object when it is copied or dies, adds them up. There is room: an object of
//! 8 bytes is a header, which no program accesses.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::{Config, ConfigError};
use crate::header::Header;
use crate::heap::Heap;
use crate::memory::Memory;
use crate::mutator::Mutator;
use crate::observer::{Moved, Observer};
use crate::plan::Origin;
use crate::plans::dram::Dram;
use crate::reference::Ref;
use crate::stats::Kind;
use crate::traced::Traced;
use varve_sites::{Counts, Key, Profile, SiteProfile};

/// Where an object's reads are counted, in bytes from where its counters are: a `u64`.
pub const READS: u64 = 0;
/// Where its writes are.
pub const WRITES: u64 = 8;

/// Counts accesses by allocation site, as the observer of a heap in one memory.
pub struct Recorder {
    counters: Memory,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By number of the site; 0 is unknown.
    sites: Vec<Counts>,
    /// Objects that survived and live, as far as is known.
    survivors: Vec<Survivor>,
}

struct Survivor {
    at: Ref,
    site: u32,
    /// It is more than a header.
    has_counters: bool,
    /// Accesses that were taken from its counter.
    reads: u64,
    writes: u64,
}

impl State {
    fn site(&mut self, site: u32) -> &mut Counts {
        let index = site as usize;
        if self.sites.len() <= index {
            self.sites.resize(index + 1, Counts::default());
        }
        &mut self.sites[index]
    }

    fn survived(&mut self, at: Ref, site: u32, bytes: u64) {
        let counts = self.site(site);
        counts.survivors += 1;
        counts.survived_bytes += bytes;
        self.survivors.push(Survivor {
            at,
            site,
            has_counters: has_counters(bytes),
            reads: 0,
            writes: 0,
        });
    }

    fn born(&mut self, site: u32, bytes: u64, (reads, writes): (u64, u64)) {
        let counts = self.site(site);
        counts.objects += 1;
        counts.bytes += bytes;
        counts.reads += reads;
        counts.writes += writes;
    }

    /// An object that survived is not counted any further.
    fn close(&mut self, survivor: &Survivor) {
        let Survivor { reads, writes, .. } = *survivor;
        let counts = self.site(survivor.site);
        counts.reads += reads;
        counts.writes += writes;
        counts.old_reads += reads;
        counts.old_writes += writes;
        let bucket = Counts::bucket(reads + writes);
        if counts.accesses.len() <= bucket {
            counts.accesses.resize(bucket + 1, 0);
        }
        counts.accesses[bucket] += 1;
    }
}

impl Recorder {
    /// For a heap that is made with these settings and [`Dram`].
    ///
    /// # Errors
    /// If the system refuses as much address range as the heap has, once more.
    pub fn new(config: &Config) -> Result<Recorder, ConfigError> {
        config.check()?;
        let extent = config.extent(1, 0);
        let counters = Memory::reserve_after(0, extent, config.align).map_err(|source| {
            let span = config.align.span();
            ConfigError::Reserve {
                span,
                extent,
                source,
            }
        })?;
        Ok(Recorder {
            counters,
            state: Mutex::default(),
        })
    }

    /// The distance that compiled code adds to an object's address to get that of its counters. `heap_base` is the
    /// heap's [base address](Heap::base_address).
    pub fn counter_distance(&self, heap_base: u64) -> i64 {
        self.counters.base_address().wrapping_sub(heap_base) as i64
    }

    /// Counts accesses to an object of more than 8 bytes, at [`READS`] or [`WRITES`]. Panics outside of the heap.
    pub fn count(&self, object: Ref, at: u64, accesses: u64) {
        self.word(object, at).fetch_add(accesses, Relaxed);
    }

    /// The counts so far, sites in the order of their numbers. `place` gives a site's name, its byte offset and its
    /// line in the source; sites without are left out.
    pub fn profile(
        heap: &Heap<Dram, Recorder>,
        mutator: &Mutator,
        program: &str,
        place: impl Fn(u32) -> Option<(Key, u64, Option<String>)>,
    ) -> Profile {
        let recorder = heap.observer();
        let state = recorder.lock();
        let mut sum = State {
            sites: state.sites.clone(),
            survivors: Vec::new(),
        };
        heap.each_young(mutator, |r, header, bytes| {
            sum.born(
                header.site(),
                bytes,
                recorder.counted(r, has_counters(bytes)),
            );
        });
        for survivor in &state.survivors {
            let (reads, writes) = recorder.counted(survivor.at, survivor.has_counters);
            sum.close(&Survivor {
                reads: survivor.reads + reads,
                writes: survivor.writes + writes,
                ..*survivor
            });
        }
        let sites = sum.sites.into_iter().zip(0..).filter_map(|(counts, site)| {
            let (key, offset, line) = place(site).filter(|_| counts.objects > 0)?;
            Some(SiteProfile {
                key,
                offset,
                line,
                counts,
            })
        });
        Profile {
            program: program.into(),
            sites: sites.collect(),
        }
    }

    fn word(&self, r: Ref, at: u64) -> &AtomicU64 {
        self.counters
            .checked_long(self.counters.offset(r).saturating_add(at))
    }

    /// The counters of an object: reads and writes.
    fn counted(&self, r: Ref, has_counters: bool) -> (u64, u64) {
        let count = |at| self.word(r, at).load(Relaxed);
        match has_counters {
            true => (count(READS), count(WRITES)),
            false => (0, 0),
        }
    }

    /// The same, after which counting begins anew.
    fn take(&self, r: Ref, has_counters: bool) -> (u64, u64) {
        let counted = self.counted(r, has_counters);
        // Not to touch counters that were never touched.
        if counted != (0, 0) {
            self.word(r, READS).store(0, Relaxed);
            self.word(r, WRITES).store(0, Relaxed);
        }
        counted
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an object is more than a header. One that is not has no counters, as its neighbour's would be there.
fn has_counters(bytes: u64) -> bool {
    bytes > WRITES
}

impl Observer for Recorder {
    fn read(&self, _: u64, _: u64) {}

    fn write(&self, _: u64, _: u64) {}

    fn moved(&self, moved: Moved) {
        // Too large for the nursery: old from the beginning.
        if moved.from == Origin::Birth {
            let Moved { header, bytes, .. } = moved;
            let mut state = self.lock();
            state.born(header.site(), bytes, (0, 0));
            state.survived(moved.to_ref, header.site(), bytes);
        }
    }

    fn traced(&self, traced: &Traced<'_>) {
        let mut state = self.lock();
        if traced.kind() == Kind::Full {
            let survivors = std::mem::take(&mut state.survivors);
            for mut survivor in survivors {
                let (reads, writes) = self.take(survivor.at, survivor.has_counters);
                survivor.reads += reads;
                survivor.writes += writes;
                match traced.place(survivor.at) {
                    Some(at) => state.survivors.push(Survivor { at, ..survivor }),
                    None => state.close(&survivor),
                }
            }
        }
        traced.each_born(|r, header: Header, bytes, now| {
            state.born(header.site(), bytes, self.take(r, has_counters(bytes)));
            if let Some(now) = now {
                state.survived(now, header.site(), bytes);
            }
        });
    }
}
