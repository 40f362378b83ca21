//! The records that the kernel writes for sampled events: a header (type, flags, bytes), then words (perf_event_open(2)).

use std::ops::Range;

/// The fields of each sample: process and thread, address, period, data source. In this order they are in a record.
pub const WANTED: u64 = 1 << 1 | 1 << 3 | 1 << 8 | 1 << 15;

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const HEADER: usize = 8;

/// A sampled access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub process: u32,
    pub address: u64,
    /// Events that it stands for.
    pub period: u64,
    pub writes: bool,
}

/// The records of a ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Accesses that no cache served, or of which that is not said.
    pub hits: Vec<Hit>,
    /// Samples that a cache served, that are none of memory, or of the kernel's.
    pub others: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Damaged records; the rest of the ring after one is unknown.
    pub broken: u64,
}

/// The parts of a ring of `size` bytes between two positions, which never wrap: up to its end, and from its
/// beginning. Nothing if more was written than there is room for.
pub fn parts(size: usize, tail: u64, head: u64) -> [Range<usize>; 2] {
    let bytes = head.wrapping_sub(tail);
    if size == 0 || bytes > size as u64 {
        return [0..0, 0..0];
    }
    let (start, bytes) = ((tail % size as u64) as usize, bytes as usize);
    let first = bytes.min(size - start);
    [start..start + first, 0..bytes - first]
}

fn word(bytes: &[u8], number: usize) -> Option<u64> {
    let word = bytes.get(number * 8..number * 8 + 8)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

impl Records {
    /// Adds records that follow each other.
    pub fn add(&mut self, mut bytes: &[u8]) {
        while let Some(header) = word(bytes, 0) {
            let (kind, size) = (header as u32, (header >> 48) as usize);
            if size < HEADER || size > bytes.len() {
                self.broken += 1;
                return;
            }
            let (record, rest) = bytes.split_at(size);
            bytes = rest;
            match kind {
                SAMPLE => self.sample(&record[HEADER..]),
                LOST => self.lost += word(record, 2).unwrap_or(0),
                LOST_SAMPLES => self.lost += word(record, 1).unwrap_or(0),
                _ => {}
            }
        }
        self.broken += u64::from(!bytes.is_empty());
    }

    fn sample(&mut self, record: &[u8]) {
        let words = [0, 1, 2, 3].map(|number| word(record, number));
        let [Some(ids), Some(address), Some(period), Some(source)] = words else {
            self.broken += 1;
            return;
        };
        let source = Source(source);
        // Addresses of programs are in the lower half.
        if address == 0 || address >> 63 != 0 || !source.may_be_memory() || source.is_cached() {
            self.others += 1;
            return;
        }
        self.hits.push(Hit {
            process: ids as u32,
            address,
            period: period.max(1),
            writes: source.writes(),
        });
    }
}

/// `union perf_mem_data_src` of linux/perf_event.h: where an access was served.
#[derive(Clone, Copy)]
struct Source(u64);

impl Source {
    fn operation(self) -> u64 {
        self.0 & 0x1f
    }

    fn writes(self) -> bool {
        self.operation() & 4 != 0
    }

    /// A load or a store, or nothing is said.
    fn may_be_memory(self) -> bool {
        const SAID_NOTHING: u64 = 1;
        let operation = self.operation();
        operation == 0 || operation & (SAID_NOTHING | 2 | 4) != 0
    }

    /// A cache had it, by what is said.
    fn is_cached(self) -> bool {
        let level = self.0 >> 5 & 0x3fff;
        let number = self.0 >> 33 & 0xf;
        const HIT: u64 = 2;
        const L3: u64 = 0x40;
        // Local memory, memory one and two hops away, I/O, uncached.
        const MEMORY: u64 = 0x80 | 0x100 | 0x200 | 0x1000 | 0x2000;
        const CACHES: u64 = 8 | 0x10 | 0x20 | L3 | 0x400 | 0x800;
        match number {
            // L1 to L4, the buffers of missing lines between, any cache.
            1..=5 | 0xb | 0xc => level & MEMORY == 0 && level & 4 == 0,
            // Uncached, CXL, I/O, RAM, persistent memory.
            8..=0xa | 0xd | 0xe => false,
            _ => level & HIT != 0 && level & CACHES != 0 && level & MEMORY == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING_SAID: u64 = 0x1e_0508_0021;
    const LOAD_FROM_L1: u64 = 2 | (2 | 8) << 5 | 1 << 33;
    const LOAD_FROM_RAM: u64 = 2 | (2 | 0x80) << 5 | 0xd << 33;
    const STORE_MISSES_L1: u64 = 4 | (4 | 8) << 5 | 1 << 33;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = (HEADER + words.len() * 8) as u64;
        let header = u64::from(kind) | size << 48;
        std::iter::once(&header)
            .chain(words)
            .flat_map(|w| w.to_le_bytes())
            .collect()
    }

    fn sample(address: u64, source: u64) -> Vec<u8> {
        record(SAMPLE, &[7 << 32 | 6, address, 100, source])
    }

    fn read(bytes: &[u8]) -> Records {
        let mut records = Records::default();
        records.add(bytes);
        records
    }

    #[test]
    fn accesses_that_no_cache_served_are_hits() {
        let all = [
            sample(0x1000, LOAD_FROM_RAM),
            sample(0x2000, LOAD_FROM_L1),
            sample(0x3000, STORE_MISSES_L1),
            sample(0x4000, NOTHING_SAID),
            sample(0x5000, 8), // a prefetch
            sample(0, LOAD_FROM_RAM),
            sample(0xffff_8000_0000_0000, LOAD_FROM_RAM),
        ]
        .concat();
        let records = read(&all);
        let seen: Vec<(u64, bool)> = records
            .hits
            .iter()
            .map(|hit| (hit.address, hit.writes))
            .collect();
        assert_eq!(seen, [(0x1000, false), (0x3000, true), (0x4000, false)]);
        assert_eq!((records.others, records.broken), (4, 0));
        let first = records.hits[0];
        assert_eq!((first.process, first.period), (6, 100));
    }

    #[test]
    fn records_at_the_end_of_a_ring_go_on_at_its_beginning() {
        let one = sample(0x1000, LOAD_FROM_RAM);
        let mut ring = [0u8; 64];
        // From position 1000 on, which is 40 in the ring.
        for (number, byte) in one.iter().enumerate() {
            ring[(1000 + number) % 64] = *byte;
        }
        let [first, then] = parts(64, 1000, 1040);
        assert_eq!((&first, &then), (&(40..64), &(0..16)));
        let records = read(&[&ring[first], &ring[then]].concat());
        assert_eq!(records.hits.len(), 1);
        assert_eq!(records.hits[0].address, 0x1000);
        assert_eq!(parts(64, 1000, 1000), [40..40, 0..0]);
        assert_eq!(parts(64, 1000, 1064), [40..64, 0..40]);
        // The kernel does not write over what was not taken; if it did, all would be lost.
        assert_eq!(parts(64, 1000, 1065), [0..0, 0..0]);
        assert_eq!(parts(0, 0, 0), [0..0, 0..0]);
    }

    #[test]
    fn what_was_lost_is_counted() {
        let all = [
            record(LOST, &[3, 40]),
            sample(0x1000, LOAD_FROM_RAM),
            record(LOST_SAMPLES, &[2]),
            record(5, &[1, 2, 3]), // throttled: nothing to read
        ]
        .concat();
        let records = read(&all);
        assert_eq!(
            (records.lost, records.hits.len(), records.broken),
            (42, 1, 0)
        );
    }

    #[test]
    fn a_record_that_is_cut_ends_what_is_known() {
        let mut all = [sample(0x1000, LOAD_FROM_RAM), sample(0x2000, 2)].concat();
        all.truncate(70);
        let records = read(&all);
        assert_eq!((records.hits.len(), records.broken), (1, 1));
        // A size that cannot be, and one that is too small for a sample.
        let zero = record(SAMPLE, &[]).iter().map(|_| 0).collect::<Vec<u8>>();
        assert_eq!(read(&zero).broken, 1);
        let short = [record(SAMPLE, &[1, 2]), sample(0x1000, 2)].concat();
        let records = read(&short);
        assert_eq!((records.hits.len(), records.broken), (1, 1));
        assert_eq!(read(&[1, 2, 3]).broken, 1);
        assert_eq!(read(&[]), Records::default());
    }
}
