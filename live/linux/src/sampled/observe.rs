//! Observes one process over time: its samples of objects, accesses to their pages, and its other mappings.

use super::callers::{Code, FileAddress};
use super::damon::{self, Damon, Pace};
use super::format::{DROPPED, FREED, LIVE};
use super::hardware::Hit;
use super::table::{Slot, SlotTable, TableSnapshot};
use super::used::{self, Mapping};
use super::writes::Writes;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

const PAGE: u64 = 4096;
const LINE: u64 = 64;
/// A watched page is a mapping of its own, or shares one with few others.
const WATCHED_BYTES: u64 = 4 * PAGE;

/// The observations of an allocation site: estimates from samples, and the number of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenSite {
    /// The calls that led there, the innermost first.
    pub stack: Vec<FileAddress>,
    /// The program mapped the memory itself.
    pub mapped: bool,
    /// Objects, and their bytes.
    pub objects: f64,
    /// See `objects`.
    pub bytes: f64,
    /// Objects that were freed.
    pub freed: f64,
    /// Bytes that the program asked for between birth and death, summed over freed objects.
    pub lifetime_bytes: f64,
    /// Most bytes at one scan.
    pub peak_bytes: f64,
    /// Accessed pages, summed over scans; of these, written pages. Where the processor samples: accesses.
    pub used_pages: f64,
    /// See `used_pages`.
    pub written_pages: f64,
    /// Objects that were followed.
    pub samples: u64,
    /// How often a page of one was seen in use; accesses to them that were sampled.
    pub uses: u64,
}

/// The observations of memory that is not an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenRange {
    /// First address, the one behind the last, and where that begins in its file.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// See `start`.
    pub offset: u64,
    /// Its file or kind, as the kernel says it: `/lib/libc.so.6`, `[stack]`; empty for neither.
    pub path: String,
    /// The file whose memory lies just before it: static variables that begin as zeros follow their file's.
    pub follows: String,
    /// Most bytes of it that were in memory.
    pub peak_bytes: u64,
    /// Accessed pages, summed over scans; where the processor samples, accesses.
    pub used_pages: u64,
    /// Of these accesses, where they were: by cache line.
    pub lines: BTreeMap<u64, u64>,
    /// Scans at which it was there.
    pub looks: u64,
}

/// An object that is followed.
struct Followed {
    site: usize,
    /// Bytes that it stands for.
    weight: f64,
    chance: f64,
    state: u64,
}

/// A process that is observed.
pub struct Process {
    pub id: u32,
    damon: Option<Damon>,
    table: Option<SlotTable>,
    writes: Option<Writes>,
    life: u64,
    followed: HashMap<u64, Followed>,
    numbers: HashMap<(Vec<FileAddress>, bool), usize>,
    pub sites: Vec<SeenSite>,
    pub ranges: BTreeMap<u64, SeenRange>,
    /// Files of which code was loaded.
    pub files: Vec<String>,
    /// The mappings of the last scan.
    mappings: Vec<Mapping>,
    code: Code,
    pub looks: u64,
    /// Looks at which reads and writes could be told apart.
    pub with_writes: u64,
}

impl Process {
    /// `table` is its file of samples, if it runs under the shim.
    pub fn new(id: u32, table: Option<SlotTable>) -> Process {
        Process {
            id,
            damon: None,
            table,
            writes: Writes::of(id),
            life: 0,
            followed: HashMap::new(),
            numbers: HashMap::new(),
            sites: Vec::new(),
            ranges: BTreeMap::new(),
            files: Vec::new(),
            mappings: Vec::new(),
            code: Code::default(),
            looks: 0,
            with_writes: 0,
        }
    }

    /// Has the kernel's own monitor watch it, if it is free.
    pub fn with_damon(mut self) -> Process {
        self.damon = Damon::begin(Path::new(damon::FOLDER), self.id, Pace::PROFILE);
        self
    }

    /// Whether the kernel's own monitor watches it.
    pub fn has_damon(&self) -> bool {
        self.damon.is_some()
    }

    /// Whether it reports its objects.
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// Looks which memory is used within `window`.
    ///
    /// # Errors
    /// The process has ended, or may not be observed.
    pub fn look(&mut self, window: Duration) -> io::Result<()> {
        let before = self.snapshot()?;
        let pages: Vec<u64> = before.slots.iter().flat_map(|s| s.pages.clone()).collect();
        if self.damon.is_none() {
            used::forget(self.id)?;
        }
        // After that, since a page whose writes are noted anew is also translated anew: a translation that the processor knew
        // would hide its use.
        let writes = self.writes.as_mut();
        let cleared = writes.is_some_and(|w| w.written(&pages).is_some());
        let (mappings, in_use) = match self.damon {
            Some(_) => match self.look_by_damon(&pages, &before.range) {
                Ok(seen) => seen,
                // It may have refused; whether the process is there is seen without it.
                Err(_) => {
                    self.damon = None;
                    return self.look(window);
                }
            },
            None => {
                std::thread::sleep(window);
                let mappings = used::look(self.id)?;
                let in_use = pages_in_use(&mappings, &pages);
                (mappings, in_use)
            }
        };
        if mappings.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let writes = self.writes.as_mut().filter(|_| cleared);
        let written = writes.and_then(|w| w.written(&pages));
        self.with_writes += u64::from(written.is_some());
        let after = self.snapshot()?;
        self.take_in(&mappings, &after)?;
        let was: HashMap<u64, &Slot> = before.slots.iter().map(|s| (s.serial, s)).collect();
        for slot in after.slots.iter().filter(|s| s.state == LIVE) {
            let Some(one) = self.followed.get(&slot.serial) else {
                continue;
            };
            // Objects that came since the bits were cleared are observed at the next scan.
            if before.life != after.life || was.get(&slot.serial).is_none_or(|s| s.state != LIVE) {
                continue;
            }
            let Some((seen, used)) = seen(&mappings, &in_use, slot) else {
                continue;
            };
            let wrote = |page: &&u64| written.as_ref().is_some_and(|w| w.contains(page));
            let wrote = slot.pages.iter().filter(wrote).count() as f64;
            let site = &mut self.sites[one.site];
            let pages = one.weight / PAGE as f64;
            // A written page was accessed. For a mapping, the pages are not known.
            let (used, wrote) = match slot.mapped {
                true => (used, wrote.min(used)),
                false => (used.max(wrote.min(seen)), wrote.min(seen)),
            };
            site.used_pages += pages * used / seen;
            site.written_pages += pages * wrote / seen;
            site.uses += used.ceil() as u64;
        }
        self.other_memory(&mappings, &after, &[]);
        self.looks += 1;
        self.mappings = mappings;
        Ok(())
    }

    /// Takes in accesses that the processor has sampled since the last time.
    ///
    /// # Errors
    /// The process has ended, or may not be observed.
    pub fn look_at(&mut self, hits: &[Hit]) -> io::Result<()> {
        let now = self.snapshot()?;
        let mut mappings = self.seldom_read(&now.range)?;
        if mappings.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        // Ignores the kernel's accessed bits: the processor samples accesses.
        mappings.iter_mut().for_each(|mapping| mapping.used = 0);
        // Those that were there at some time since: an address that two had is the living one's.
        let was_there = |slot: &&Slot| {
            let known = self.followed.get(&slot.serial);
            slot.state == LIVE || known.is_none_or(|one| one.state == LIVE)
        };
        let (mut living, mut gone): (Vec<&Slot>, Vec<&Slot>) = now
            .slots
            .iter()
            .filter(was_there)
            .partition(|s| s.state == LIVE);
        living.sort_by_key(|slot| (slot.address, slot.serial));
        gone.sort_by_key(|slot| (slot.address, slot.serial));
        self.take_in(&mappings, &now)?;
        let mut others = Vec::new();
        for hit in hits {
            let slot = holding(&living, hit.address).or_else(|| holding(&gone, hit.address));
            if let Some(slot) = slot {
                let Some(one) = self.followed.get(&slot.serial) else {
                    continue;
                };
                let site = &mut self.sites[one.site];
                // Each of the objects that it stands for has this many accesses.
                let accesses = hit.period as f64 / one.chance;
                site.used_pages += accesses;
                site.written_pages += if hit.writes { accesses } else { 0.0 };
                site.uses += 1;
            } else if !now.range.contains(&hit.address) {
                others.push(*hit);
            }
        }
        self.with_writes += 1;
        self.other_memory(&mappings, &now, &others);
        self.looks += 1;
        self.mappings = mappings;
        Ok(())
    }

    /// Notes which code and which objects there are, and how many bytes sites have.
    fn take_in(&mut self, mappings: &[Mapping], now: &TableSnapshot) -> io::Result<()> {
        self.learn_code(mappings);
        if now.life != self.life {
            self.life = now.life;
            self.followed.clear();
        }
        self.follow(now)?;
        let mut live = vec![0.0; self.sites.len()];
        for slot in now.slots.iter().filter(|s| s.state == LIVE) {
            let Some(one) = self.followed.get(&slot.serial) else {
                continue;
            };
            let resident = match slot.mapped {
                true => resident_share(mappings, slot),
                false => 1.0,
            };
            live[one.site] += one.weight * resident;
        }
        for (site, bytes) in self.sites.iter_mut().zip(live) {
            site.peak_bytes = site.peak_bytes.max(bytes);
        }
        Ok(())
    }

    /// The mappings. How much of one is in memory takes long to say, and changes slowly: it is asked now and then, and when there
    /// are new ones.
    fn seldom_read(&self, objects: &Range<u64>) -> io::Result<Vec<Mapping>> {
        const SELDOM: u64 = 32;
        let mappings = used::mappings(self.id, &self.mappings)?;
        let is_new = |m: &Mapping| {
            let known = used::holding(&self.mappings, m.start);
            is_other(m, objects)
                && known.is_none_or(|known| (known.start, known.end) != (m.start, m.end))
        };
        match self.looks.is_multiple_of(SELDOM) || mappings.iter().any(is_new) {
            true => used::look(self.id),
            false => Ok(mappings),
        }
    }

    /// The same by the kernel's monitor. It watches all that is no object, too.
    fn look_by_damon(
        &mut self,
        pages: &[u64],
        objects: &Range<u64>,
    ) -> io::Result<(Vec<Mapping>, HashMap<u64, f64>)> {
        let mut mappings = self.seldom_read(objects)?;
        let others = mappings
            .iter()
            .filter(|m| is_other(m, objects) && m.resident > 0);
        let mut ranges: Vec<Range<u64>> = others.map(|m| m.start..m.end).collect();
        ranges.extend(pages.iter().map(|&page| page..page + PAGE));
        ranges.sort_by_key(|r| r.start);
        ranges.dedup_by(|next, last| next.start < last.end);
        let Some(monitor) = &mut self.damon else {
            return Ok((mappings, HashMap::new()));
        };
        monitor.watch(&ranges)?;
        let counts = monitor.counts()?;
        for mapping in &mut mappings {
            let bytes = damon::used(&counts, &(mapping.start..mapping.end));
            mapping.used = (bytes as u64).min(mapping.resident);
        }
        let watched = pages.iter().filter(|page| damon::has(&counts, **page));
        let share = |page: &u64| damon::used(&counts, &(*page..page + PAGE)) / PAGE as f64;
        Ok((mappings, watched.map(|page| (*page, share(page))).collect()))
    }

    /// Records the objects that came since the last scan.
    pub fn end(&mut self) {
        if let Ok(last) = self.snapshot()
            && last.life == self.life
        {
            let _ = self.follow(&last);
        }
    }

    fn snapshot(&self) -> io::Result<TableSnapshot> {
        self.table
            .as_ref()
            .map_or(Ok(TableSnapshot::default()), SlotTable::read)
    }

    /// Learns of code where mappings with code have changed.
    fn learn_code(&mut self, now: &[Mapping]) {
        let code = |all: &[Mapping]| -> Vec<(u64, u64)> {
            let code = all.iter().filter(|m| m.rights.contains('x'));
            code.map(|m| (m.start, m.end)).collect()
        };
        if self.looks > 0 && code(now) == code(&self.mappings) {
            return;
        }
        self.code.learn(now);
        for mapping in now.iter().filter(|m| m.rights.contains('x')) {
            if mapping.path.starts_with('/') && !self.files.contains(&mapping.path) {
                self.files.push(mapping.path.clone());
            }
        }
    }

    /// Notes objects that are new, and what became of others.
    fn follow(&mut self, now: &TableSnapshot) -> io::Result<()> {
        for slot in &now.slots {
            let weight = slot.weight as f64;
            let chance = slot.bytes as f64 / weight.max(1.0);
            let known = self.followed.get(&slot.serial);
            if known.is_none() {
                let site = self.site(slot)?;
                let sums = &mut self.sites[site];
                sums.samples += 1;
                sums.objects += 1.0 / chance;
                sums.bytes += weight;
                let (state, weight) = (LIVE, weight);
                let new = Followed {
                    site,
                    weight,
                    chance,
                    state,
                };
                self.followed.insert(slot.serial, new);
            }
            let Some(one) = self.followed.get_mut(&slot.serial) else {
                continue;
            };
            one.weight = weight;
            one.chance = chance;
            if slot.state != one.state {
                one.state = slot.state;
                let site = &mut self.sites[one.site];
                if slot.state == FREED {
                    let objects = 1.0 / one.chance;
                    site.freed += objects;
                    site.lifetime_bytes += objects * slot.died.saturating_sub(slot.born) as f64;
                }
                debug_assert!(slot.state == FREED || slot.state == DROPPED);
            }
        }
        let there: std::collections::HashSet<u64> = now.slots.iter().map(|s| s.serial).collect();
        self.followed.retain(|serial, _| there.contains(serial));
        Ok(())
    }

    /// The number of an object's site.
    fn site(&mut self, slot: &Slot) -> io::Result<usize> {
        let stack = match &self.table {
            Some(table) => self.code.walk(slot.registers, &table.stack(slot)?),
            None => Vec::new(),
        };
        let key = (stack, slot.mapped);
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        let number = self.sites.len();
        self.sites.push(SeenSite {
            stack: key.0.clone(),
            mapped: slot.mapped,
            ..SeenSite::default()
        });
        self.numbers.insert(key, number);
        Ok(number)
    }

    /// Counts mappings without objects.
    fn other_memory(&mut self, mappings: &[Mapping], now: &TableSnapshot, hits: &[Hit]) {
        let mut hits = hits.to_vec();
        hits.sort_by_key(|hit| hit.address);
        let mapped: Vec<&Slot> = now
            .slots
            .iter()
            .filter(|s| s.mapped && s.state == LIVE)
            .collect();
        let mut file = String::new();
        for mapping in mappings {
            if mapping.path.starts_with('/') {
                file.clone_from(&mapping.path);
            }
            let is_object = now.range.contains(&mapping.start)
                || mapped
                    .iter()
                    .any(|s| s.address < mapping.end && mapping.start < s.address + s.bytes);
            if is_object || !mapping.is_private() {
                continue;
            }
            // A stack grows downwards.
            let key = match &*mapping.path {
                "[stack]" => u64::MAX,
                _ => mapping.start,
            };
            let range = self.ranges.entry(key).or_default();
            range.start = mapping.start;
            range.end = mapping.end.max(range.end);
            range.offset = mapping.offset;
            range.path.clone_from(&mapping.path);
            range.follows.clone_from(&file);
            range.peak_bytes = range.peak_bytes.max(mapping.resident);
            range.used_pages += mapping.used / PAGE;
            let first = hits.partition_point(|hit| hit.address < mapping.start);
            for hit in hits[first..]
                .iter()
                .take_while(|hit| hit.address < mapping.end)
            {
                range.used_pages += hit.period;
                *range.lines.entry(hit.address / LINE * LINE).or_default() += hit.period;
            }
            range.looks += 1;
        }
    }
}

/// Memory of the process that is no object.
fn is_other(mapping: &Mapping, objects: &Range<u64>) -> bool {
    mapping.is_private() && !objects.contains(&mapping.start)
}

/// The object that an address is in: of those that had it one after the other, the last.
fn holding<'a>(slots: &[&'a Slot], address: u64) -> Option<&'a Slot> {
    // Few overlap: those that went one after the other.
    const BACK: usize = 8;
    let after = slots.partition_point(|slot| slot.address <= address);
    let near = slots[..after].iter().rev().take(BACK);
    near.copied()
        .find(|slot| address - slot.address < slot.bytes)
}

/// How much of a mapping of the program's own is in memory.
fn resident_share(all: &[Mapping], slot: &Slot) -> f64 {
    let (bytes, resident, _) = overlapping(all, slot);
    resident as f64 / bytes.max(1) as f64
}

/// Bytes, resident bytes and used bytes of the mappings in which it is.
fn overlapping(all: &[Mapping], slot: &Slot) -> (u64, u64, u64) {
    let in_it = all
        .iter()
        .filter(|m| m.start < slot.address + slot.bytes && slot.address < m.end);
    in_it.fold((0, 0, 0), |sum, m| {
        (sum.0 + m.end - m.start, sum.1 + m.resident, sum.2 + m.used)
    })
}

/// How much of the time each watched page was in use, where its mapping is told apart: 0 or 1, if it is alone.
fn pages_in_use(all: &[Mapping], pages: &[u64]) -> HashMap<u64, f64> {
    let share = |page: &u64| {
        let mapping = used::holding(all, *page)?;
        let alone = mapping.end - mapping.start <= WATCHED_BYTES;
        alone.then(|| {
            (
                *page,
                mapping.used as f64 / mapping.resident.max(PAGE) as f64,
            )
        })
    };
    pages.iter().filter_map(share).collect()
}

/// Of how many pages of an object it was seen whether they are used, and how many were; none if it was not seen.
fn seen(all: &[Mapping], in_use: &HashMap<u64, f64>, slot: &Slot) -> Option<(f64, f64)> {
    if slot.mapped {
        let (bytes, _, used) = overlapping(all, slot);
        return (bytes > 0).then(|| (1.0, used as f64 / bytes as f64));
    }
    let uses: Vec<f64> = slot
        .pages
        .iter()
        .filter_map(|page| in_use.get(page).copied())
        .collect();
    (!uses.is_empty()).then(|| (uses.len() as f64, uses.iter().sum()))
}
