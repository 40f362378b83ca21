//! Statistics of collections: a record of each, and sums over all.

use std::fmt;
use std::time::Duration;

use varve_pima::{MAX_TIERS, Tier};

/// How much a collection collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The nursery alone.
    Minor,
    /// The nursery and the observer space, whose objects are sorted into the memories.
    Observer,
    /// Everything.
    Full,
}

/// Why a collection ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// No room for the next object in the nursery.
    NurseryFull,
    /// Survivors passed the threshold of the growth policy.
    Growth,
    /// The heap's maximum is near: the last resort before out of memory.
    HeapFull,
    /// A large object needs room.
    LargeObject,
    /// The host requested it.
    Requested,
    /// The host requested that everything move.
    Evacuate,
    /// The plan has old objects move to another memory.
    Moving,
    /// See [`Stress`](crate::Stress).
    Stress,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Minor => "minor",
            Kind::Observer => "observer",
            Kind::Full => "full",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Cause::NurseryFull => "nursery full",
            Cause::Growth => "growth",
            Cause::HeapFull => "heap full",
            Cause::LargeObject => "large object",
            Cause::Requested => "requested",
            Cause::Evacuate => "evacuate",
            Cause::Moving => "moving",
            Cause::Stress => "stress",
        })
    }
}

/// A space after a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceUse {
    /// `nursery`, `observer`, `mature` or `large`, the last two with the tier's number if there are several.
    pub name: String,
    /// Its memory.
    pub tier: Tier,
    /// Bytes that are not available to new objects.
    pub used: u64,
    /// Bytes of address range held.
    pub held: u64,
}

/// Where a space is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceRanges {
    /// As in [`SpaceUse`], or `tables`: the collector's own tables.
    pub name: String,
    /// The memory that it is to be in.
    pub tier: Tier,
    /// Addresses and bytes. Not all of it need be in memory.
    pub ranges: Vec<(u64, u64)>,
}

/// One collection. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Counts from 1.
    pub number: u64,
    /// The kind of collection.
    pub kind: Kind,
    /// Why.
    pub cause: Cause,
    /// From the heap's making to the collection's begin.
    pub at: Duration,
    /// For how long the program stood still.
    pub pause: Duration,
    /// Part of that in which objects were scanned and copied, from the remembered set on. The rest scanned roots, weak references and tables.
    pub tracing: Duration,
    /// Bytes in the nursery before.
    pub nursery: u64,
    /// Bytes of it that survived.
    pub promoted: u64,
    /// Live objects; only full collections know. Several threads may count a few objects twice.
    pub live: Option<u64>,
    /// Bytes moved out of fragmented blocks.
    pub evacuated: u64,
    /// Bytes that left the observer space, by the tier that they went to.
    pub sorted: [u64; MAX_TIERS as usize],
    /// Bytes that moved from one memory to another, by the tier that they went to.
    pub moved: [u64; MAX_TIERS as usize],
    /// Bytes in use outside of the nursery before.
    pub before: u64,
    /// Bytes in use outside of the nursery after.
    pub after: u64,
    /// Survivors above which a full collection comes.
    pub threshold: u64,
    /// All spaces, after.
    pub spaces: Vec<SpaceUse>,
}

const MIB: f64 = (1 << 20) as f64;

impl fmt::Display for Record {
    /// One line for a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / MIB;
        let (at, pause) = (self.at.as_secs_f64(), 1e3 * self.pause.as_secs_f64());
        write!(
            f,
            "gc {} at {at:.3} s: {} ({}), pause {pause:.3} ms, ",
            self.number, self.kind, self.cause
        )?;
        if let Some(live) = self.live {
            write!(f, "live {:.1} MiB, ", mib(live))?;
        }
        write!(
            f,
            "promoted {:.2} of {:.2} MiB, ",
            mib(self.promoted),
            mib(self.nursery)
        )?;
        if self.evacuated > 0 {
            write!(f, "evacuated {:.1} MiB, ", mib(self.evacuated))?;
        }
        for (what, bytes) in [("sorted", self.sorted), ("moved", self.moved)] {
            for (tier, &bytes) in bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                write!(f, "{what} {:.2} MiB to {tier}, ", mib(bytes))?;
            }
        }
        write!(
            f,
            "heap {:.1} -> {:.1} MiB (",
            mib(self.before),
            mib(self.after)
        )?;
        // The nursery is empty after a collection.
        let filled = self.spaces.iter().filter(|space| space.name != "nursery");
        for (i, space) in filled.enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} {:.1}", space.name, mib(space.used))?;
        }
        write!(f, "), full above {:.1} MiB", mib(self.threshold))
    }
}

/// One collection, as long as the program stood still for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The kind of collection.
    pub kind: Kind,
    /// When it began: see [`Record::at`].
    pub at: Duration,
    /// How long it took.
    pub took: Duration,
}

/// Sums over all collections of a heap.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Every collection, in order.
    pub pauses: Vec<Pause>,
    /// The part of pauses spent on scanning and copying: minor, observer, full.
    tracing: [Duration; 3],
    /// Bytes of objects born up to the last collection.
    pub allocated: u64,
    /// Bytes that survived the nursery.
    pub promoted: u64,
    /// Bytes moved out of fragmented blocks.
    pub evacuated: u64,
    /// Bytes sorted out of the observer space, by tier.
    pub sorted: [u64; MAX_TIERS as usize],
    /// Bytes moved from one memory to another, by the tier that they went to.
    pub moved: [u64; MAX_TIERS as usize],
    /// The most that was in use in each tier after a collection, nursery included, in bytes.
    pub peak_by_tier: [u64; MAX_TIERS as usize],
    /// The most that was in use outside of the nursery after a collection, in bytes.
    pub peak: u64,
}

impl Stats {
    /// How many collections of a kind there were.
    pub fn count(&self, kind: Kind) -> u64 {
        self.of(kind).count() as u64
    }

    /// The sum of the pauses of a kind.
    pub fn total(&self, kind: Kind) -> Duration {
        Duration::from_nanos(self.of(kind).sum())
    }

    /// The part of that spent on scanning and copying: see [`Record::tracing`].
    pub fn tracing(&self, kind: Kind) -> Duration {
        self.tracing[kind as usize]
    }

    /// The pause of a kind that `percent` of them do not exceed: 50 is the median, 100 the longest. `None` without
    /// collections.
    pub fn pause(&self, kind: Kind, percent: f64) -> Option<Duration> {
        percentile(self.of(kind).collect(), percent)
    }

    /// The same over all collections.
    pub fn any_pause(&self, percent: f64) -> Option<Duration> {
        let all = self.pauses.iter().map(|p| p.took.as_nanos() as u64);
        percentile(all.collect(), percent)
    }

    pub(crate) fn add(&mut self, record: &Record) {
        self.pauses.push(Pause {
            kind: record.kind,
            at: record.at,
            took: record.pause,
        });
        self.tracing[record.kind as usize] += record.tracing;
        self.allocated += record.nursery;
        self.promoted += record.promoted;
        self.evacuated += record.evacuated;
        self.peak = self.peak.max(record.after);
        for (sum, bytes) in self.sorted.iter_mut().zip(record.sorted) {
            *sum += bytes;
        }
        for (sum, bytes) in self.moved.iter_mut().zip(record.moved) {
            *sum += bytes;
        }
        for (tier, peak) in self.peak_by_tier.iter_mut().enumerate() {
            let in_tier = record
                .spaces
                .iter()
                .filter(|s| usize::from(s.tier.0) == tier);
            *peak = (*peak).max(in_tier.map(|space| space.used).sum());
        }
    }

    /// Pauses of a kind, ns.
    fn of(&self, kind: Kind) -> impl Iterator<Item = u64> + '_ {
        let of_kind = self.pauses.iter().filter(move |p| p.kind == kind);
        of_kind.map(|p| p.took.as_nanos() as u64)
    }
}

fn percentile(mut nanos: Vec<u64>, percent: f64) -> Option<Duration> {
    nanos.sort_unstable();
    let rank = (percent / 100.0 * nanos.len() as f64).ceil() as usize;
    let index = rank.clamp(1, nanos.len().max(1)) - 1;
    nanos.get(index).copied().map(Duration::from_nanos)
}

impl fmt::Display for Stats {
    /// A small table: counts, sums and percentiles of pauses, and bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "collections   count   total ms   p50 ms   p90 ms   p99 ms   max ms"
        )?;
        for kind in [Kind::Minor, Kind::Observer, Kind::Full] {
            if kind == Kind::Observer && self.count(kind) == 0 {
                continue;
            }
            write!(
                f,
                "{kind:<11} {:>7} {:>10.3}",
                self.count(kind),
                1e3 * self.total(kind).as_secs_f64()
            )?;
            for percent in [50.0, 90.0, 99.0, 100.0] {
                match self.pause(kind, percent) {
                    Some(pause) => write!(f, " {:>8.3}", 1e3 * pause.as_secs_f64())?,
                    None => write!(f, " {:>8}", "-")?,
                }
            }
            writeln!(f)?;
        }
        let mib = |bytes: u64| bytes as f64 / MIB;
        let [allocated, promoted, evacuated] =
            [self.allocated, self.promoted, self.evacuated].map(mib);
        let peak = mib(self.peak);
        write!(
            f,
            "allocated {allocated:.1} MiB, promoted {promoted:.1}, evacuated {evacuated:.1}; peak of survivors {peak:.1} MiB"
        )?;
        let several = self.peak_by_tier[1..].iter().any(|&bytes| bytes > 0);
        for (tier, &peak) in self.peak_by_tier.iter().enumerate() {
            if several && (peak > 0 || tier == 0) {
                let [peak, sorted, moved] = [peak, self.sorted[tier], self.moved[tier]].map(mib);
                write!(
                    f,
                    "\nmemory {tier}: peak {peak:.1} MiB with the nursery, {sorted:.1} sorted into it, {moved:.1} moved to it"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pause: u64, kind: Kind) -> Record {
        Record {
            number: 7,
            kind,
            cause: Cause::NurseryFull,
            at: Duration::from_millis(1500),
            pause: Duration::from_micros(pause),
            tracing: Duration::ZERO,
            nursery: 4 << 20,
            promoted: 1 << 20,
            live: (kind == Kind::Full).then_some(9 << 20),
            evacuated: 0,
            sorted: [0; 4],
            moved: [0; 4],
            before: 10 << 20,
            after: 11 << 20,
            threshold: 64 << 20,
            spaces: vec![
                SpaceUse {
                    name: "nursery".into(),
                    tier: Tier::FAST,
                    used: 4 << 20,
                    held: 4 << 20,
                },
                SpaceUse {
                    name: "mature".into(),
                    tier: Tier::FAST,
                    used: 10 << 20,
                    held: 12 << 20,
                },
                SpaceUse {
                    name: "large".into(),
                    tier: Tier::FAST,
                    used: 1 << 20,
                    held: 1 << 20,
                },
            ],
        }
    }

    #[test]
    fn a_record_is_one_line() {
        assert_eq!(
            record(250, Kind::Full).to_string(),
            "gc 7 at 1.500 s: full (nursery full), pause 0.250 ms, live 9.0 MiB, promoted 1.00 of 4.00 MiB, heap 10.0 -> 11.0 MiB \
             (mature 10.0, large 1.0), full above 64.0 MiB"
        );
    }

    #[test]
    fn percentiles_are_pauses_that_happened() {
        let mut stats = Stats::default();
        assert_eq!(stats.pause(Kind::Minor, 50.0), None);
        for pause in 1..=100 {
            stats.add(&record(101 - pause, Kind::Minor));
        }
        stats.add(&record(5000, Kind::Full));
        let micros = |percent| {
            stats
                .pause(Kind::Minor, percent)
                .map(|pause| pause.as_micros())
        };
        assert_eq!(
            [micros(0.0), micros(50.0), micros(99.0), micros(100.0)],
            [Some(1), Some(50), Some(99), Some(100)]
        );
        assert_eq!(stats.any_pause(100.0), Some(Duration::from_millis(5)));
        assert_eq!(
            (stats.count(Kind::Minor), stats.count(Kind::Full)),
            (100, 1)
        );
        assert_eq!(stats.allocated, 101 * (4 << 20));
        assert!(
            stats
                .to_string()
                .contains("minor           100      5.050    0.050    0.090    0.099    0.100"),
            "{stats}"
        );
    }
}
