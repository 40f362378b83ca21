//! The journal alone, without objects: whatever is stored and committed, wherever it grows, and whenever the power fails, recovery finds what was
//! committed last. The reference is a copy of the memory at each commit.
#![cfg(not(miri))]

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, Mutex};
use varve_durable::domain::{Domain, Fence};
use varve_durable::journal::*;
use varve_durable::layout::{JOURNALED, MAGIC, VERSION};

/// Most bytes of a region here.
const ROOM: usize = 160 << 10;

/// A file that begins as a region's does.
fn file(bytes: usize) -> Vec<u8> {
    let mut file = vec![0; bytes];
    file[..8].copy_from_slice(&MAGIC);
    file[8..12].copy_from_slice(&VERSION.to_le_bytes());
    file
}

/// The states that a crash may leave: the last commit, and the one in progress.
#[derive(Default)]
struct Expected {
    committed: Vec<u8>,
    next: Option<Vec<u8>>,
    /// Bytes that the region has got by now.
    region: usize,
    wrong: Option<String>,
    looked_at: u64,
    in_recovery: u64,
}

impl Expected {
    /// Whether the bytes of a region, which may have grown meanwhile, are expected; the first sector is the journal's.
    fn allows(&self, bytes: &[u8]) -> bool {
        let is = |held: &Vec<u8>| {
            bytes.len() >= held.len()
                && bytes[SECTOR as usize..held.len()] == held[SECTOR as usize..]
        };
        bytes.len() <= self.region && (is(&self.committed) || self.next.as_ref().is_some_and(is))
    }

    fn look(&mut self, file: Vec<u8>, when: &str) {
        self.looked_at += 1;
        match recovered(file) {
            Ok(bytes) if self.allows(&bytes) => {}
            Ok(_) if self.wrong.is_none() => {
                self.wrong = Some(format!("{when}: other bytes than were committed"));
            }
            Err(e) if self.wrong.is_none() => self.wrong = Some(format!("{when}: {e}")),
            _ => {}
        }
    }
}

fn recovered(file: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut disk = SimulatedDisk::new(file, |_| ());
    match recover(&mut disk).map_err(|e| e.to_string())? {
        None => Ok(content(&disk)),
        Some(wrong) => Err(wrong.into()),
    }
}

fn content(disk: &SimulatedDisk) -> Vec<u8> {
    let mut bytes = vec![0; disk.len().unwrap() as usize];
    disk.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Files that a crash could leave: all if few sectors are pending, else some.
fn files(crash: &DiskCrash<'_>, rng: &mut SmallRng) -> Vec<Vec<u8>> {
    match crash.pending() {
        n @ 0..=4 => (0..1 << n)
            .map(|choice: u32| crash.file(|i| choice >> i & 1 == 1))
            .collect(),
        n => {
            let mut files = vec![crash.file(|_| true), crash.file(|_| false)];
            // All but one, and any.
            let missing = rng.random_range(0..n);
            files.push(crash.file(|i| i != missing));
            files.extend((0..10).map(|_| crash.file(|_| rng.random())));
            files
        }
    }
}

/// Stores, commits and grows at random; returns the errors, and the number of files checked.
fn explore(seed: u64, operations: usize, without: Option<Sync>) -> (Option<String>, u64, u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut memory = vec![0u64; ROOM / 8];
    let base = memory.as_mut_ptr().cast::<u8>();
    let mut region = 16 << 10;
    let begin = file(region);
    let expected = Arc::new(Mutex::new(Expected {
        committed: begin.clone(),
        region,
        ..Expected::default()
    }));
    let look = {
        let (expected, mut rng) = (expected.clone(), SmallRng::seed_from_u64(!seed));
        move |crash: &DiskCrash<'_>| {
            let mut now = expected.lock().unwrap();
            for file in files(crash, &mut rng) {
                // Recovery itself may be interrupted too, now and then.
                if rng.random_range(0..16) == 0 {
                    interrupted(file.clone(), &expected_of(&now), &mut now, &mut rng);
                }
                now.look(file, &format!("at {:?}", crash.at));
            }
        }
    };
    let mut disk = SimulatedDisk::new(begin, look);
    if let Some(sync) = without {
        disk = disk.without(sync);
    }
    let limits = Limits {
        journal: [4 << 10, 16 << 10][rng.random_range(0..2)],
        pages: 5,
    };
    // SAFETY: the words live as long as the journal, and are written between its methods.
    let mut journal = unsafe { Journal::new(disk, base, limits) }.unwrap();
    let bytes = |region: usize| -> Vec<u8> {
        // SAFETY: inside of the words.
        unsafe { std::slice::from_raw_parts(base, region) }.to_vec()
    };
    let mut grouped = false;
    for i in 0..operations {
        let mut commits = false;
        match rng.random_range(0..20) {
            0 if region + (24 << 10) <= ROOM => {
                let longer = region + 4096 * rng.random_range(1..6);
                expected.lock().unwrap().region = longer;
                journal.make_room(longer as u64).unwrap();
                journal.grown(longer as u64);
                region = longer;
            }
            1 => {
                grouped = !grouped;
                journal.set_grouped(grouped);
            }
            _ => {
                for _ in 0..rng.random_range(1..4) {
                    let length = [1, 8, 64, 200, 6000][rng.random_range(0..5)];
                    let at = rng.random_range(SECTOR as usize..region - length);
                    // SAFETY: inside of the words.
                    unsafe { base.add(at).write_bytes(i as u8 | 1, length) };
                    journal.write_back(base.wrapping_add(at), length as u64);
                }
                commits = rng.random_range(0..3) > 0;
            }
        }
        if !commits {
            // Keeps an order, which is kept.
            journal.fence(Fence::Logged).unwrap();
        } else {
            let all = !grouped || rng.random_range(0..3) == 0;
            if all {
                expected.lock().unwrap().next = Some(bytes(region));
            }
            match (grouped, all) {
                (true, true) => journal.commit().unwrap(),
                _ => journal.fence(Fence::Stored).unwrap(),
            }
            let mut expected = expected.lock().unwrap();
            if let Some(next) = expected.next.take() {
                expected.committed = next;
                assert!(!journal.uncommitted());
            }
        }
        if let Some(wrong) = expected.lock().unwrap().wrong.take() {
            return (Some(format!("operation {i}, {wrong}")), 0, 0);
        }
    }
    expected.lock().unwrap().next = Some(bytes(region));
    journal.close().unwrap();
    let mut expected = expected.lock().unwrap();
    (
        expected
            .wrong
            .take()
            .map(|wrong| format!("closing, {wrong}")),
        expected.looked_at,
        expected.in_recovery,
    )
}

fn expected_of(now: &Expected) -> Expected {
    Expected {
        committed: now.committed.clone(),
        next: now.next.clone(),
        region: now.region,
        ..Expected::default()
    }
}

/// Recovers a file, and checks the states that a crash during recovery could leave.
fn interrupted(file: Vec<u8>, expected: &Expected, into: &mut Expected, rng: &mut SmallRng) {
    let left = Arc::new(Mutex::new(Vec::new()));
    let mut again = SmallRng::seed_from_u64(rng.random());
    let look = {
        let left = left.clone();
        move |crash: &DiskCrash<'_>| left.lock().unwrap().extend(files(crash, &mut again))
    };
    recover(&mut SimulatedDisk::new(file, look)).unwrap();
    for file in std::mem::take(&mut *left.lock().unwrap()) {
        into.in_recovery += 1;
        match recovered(file) {
            Ok(bytes) if expected.allows(&bytes) => {}
            other => {
                let what = other
                    .err()
                    .unwrap_or("other bytes than were committed".into());
                into.wrong.get_or_insert(format!("in recovery: {what}"));
            }
        }
    }
}

#[test]
fn recovery_finds_what_was_committed_last_whenever_the_power_fails() {
    let (mut files, mut in_recovery) = (0, 0);
    for seed in 0..15 {
        let (wrong, looked_at, again) = explore(seed, 100, None);
        assert_eq!(wrong, None, "seed {seed}");
        files += looked_at;
        in_recovery += again;
    }
    assert!(files > 10_000, "only {files} files were looked at");
    assert!(in_recovery > 2_000, "only {in_recovery} in recovery");
}

#[test]
fn a_sync_that_is_left_out_is_noticed() {
    for sync in [
        Sync::Length,
        Sync::Committed,
        Sync::InPlace,
        Sync::Placed,
        Sync::Cleared,
    ] {
        let noticed = (0..20).any(|seed| explore(seed, 100, Some(sync)).0.is_some());
        assert!(noticed, "without {sync:?} all was well");
    }
}

/// A region of 64 KiB in memory and in a file, with a journal, and what fills pages of it.
struct Region {
    memory: Vec<u64>,
    journal: Journal<Failing>,
}

/// A disk that fails once, at the write or sync of a number.
struct Failing {
    disk: SimulatedDisk,
    left: u64,
}

impl Failing {
    fn next(&mut self) -> std::io::Result<()> {
        self.left = self.left.wrapping_sub(1);
        match self.left {
            0 => Err(std::io::ErrorKind::Other.into()),
            _ => Ok(()),
        }
    }
}

impl Disk for Failing {
    fn len(&self) -> std::io::Result<u64> {
        self.disk.len()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.disk.read_at(into, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        self.next()?;
        self.disk.write_at(bytes, offset)
    }

    fn sync(&mut self, why: Sync) -> std::io::Result<()> {
        self.next()?;
        self.disk.sync(why)
    }

    fn reserve(&mut self, bytes: u64) -> std::io::Result<()> {
        self.disk.reserve(bytes)
    }

    fn cut(&mut self, bytes: u64) -> std::io::Result<()> {
        self.disk.cut(bytes)
    }
}

impl Region {
    fn new(disk: SimulatedDisk, fail_at: u64) -> Region {
        let mut memory = vec![0u64; ROOM / 8];
        let disk = Failing {
            disk,
            left: fail_at,
        };
        let limits = Limits {
            journal: 8 << 10,
            pages: 8,
        };
        // SAFETY: the words live as long as the journal, and are written between its methods.
        let journal = unsafe { Journal::new(disk, memory.as_mut_ptr().cast(), limits) }.unwrap();
        Region { memory, journal }
    }

    fn store(&mut self, word: usize, value: u64) -> std::io::Result<()> {
        let at = &raw mut self.memory[word];
        // SAFETY: one of the words.
        unsafe { at.write(value) };
        self.journal.write_back(at.cast(), 8);
        self.journal.fence(Fence::Stored)
    }
}

#[test]
fn after_a_failed_write_or_sync_nothing_is_committed_any_more() {
    let mut failures = 0;
    for fail_at in 1.. {
        let latest = Arc::new(Mutex::new(file(64 << 10)));
        let look = {
            let latest = latest.clone();
            move |crash: &DiskCrash<'_>| *latest.lock().unwrap() = crash.file(|_| true)
        };
        let mut region = Region::new(SimulatedDisk::new(file(64 << 10), look), fail_at);
        let failed = (1..60).find(|&i| region.store(512 * (i as usize % 12 + 1), i).is_err());
        let Some(failed) = failed else { break };
        failures += 1;
        assert!(region.store(1000, 1).is_err());
        assert!(region.journal.fence(Fence::Logged).is_err());
        assert!(region.journal.commit().is_err());
        assert!(region.journal.close().is_err());
        let left = recovered(latest.lock().unwrap().clone()).unwrap();
        let word = |i: usize| u64::from_le_bytes(left[8 * i..8 * i + 8].try_into().unwrap());
        let newest = (1..13).map(|i| word(512 * i)).max().unwrap();
        assert!(
            newest == failed || newest == failed - 1,
            "{newest}, failed at {failed}"
        );
    }
    assert!(failures > 100, "{failures}");
}

#[test]
fn a_disk_that_is_full_has_not_failed() {
    let room = (64 << 10) + (40 << 10);
    let disk = SimulatedDisk::new(file(64 << 10), |_| ()).with_room(room);
    let mut region = Region::new(disk, 0);
    region.store(1000, 1).unwrap();
    let full = region.journal.make_room(128 << 10).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    region.store(1000, 2).unwrap();
    // Less is there.
    region.journal.make_room(96 << 10).unwrap();
    region.journal.grown(96 << 10);
    region.store(10_000, 3).unwrap();
    region.journal.close().unwrap();
}

/// Where there is no room for a whole journal a shorter one does.
#[test]
fn a_disk_that_is_nearly_full_has_a_shorter_journal() {
    let room = (64 << 10) + (80 << 10);
    let disk = SimulatedDisk::new(file(64 << 10), |_| ()).with_room(room);
    let mut memory = vec![0u64; ROOM / 8];
    let base = memory.as_mut_ptr();
    // SAFETY: the words live as long as the journal, and are written between its methods.
    let mut journal = unsafe { Journal::new(disk, base.cast(), Limits::default()) }.unwrap();
    for i in 64..2000 {
        // SAFETY: one of the words.
        unsafe { base.add(i).write(i as u64) };
        journal.write_back(base.wrapping_add(i).cast(), 8);
        journal.fence(Fence::Stored).unwrap();
    }
    journal.close().unwrap();
}

/// One transaction that is longer than the journal makes it longer, until it is in its place.
#[test]
fn a_transaction_longer_than_the_journal_is_committed_as_a_whole() {
    let latest = Arc::new(Mutex::new(Vec::new()));
    let look = {
        let latest = latest.clone();
        move |crash: &DiskCrash<'_>| latest.lock().unwrap().push(crash.file(|_| true))
    };
    let mut region = Region::new(SimulatedDisk::new(file(64 << 10), look), 0);
    region.journal.set_grouped(true);
    for word in (64..8192).step_by(8) {
        region.store(word, 7).unwrap();
    }
    region.journal.commit().unwrap();
    let mut lengths = Vec::new();
    for file in latest.lock().unwrap().drain(..) {
        let journaled = file[8] == JOURNALED as u8;
        lengths.push((journaled, file.len()));
        let left = recovered(file).unwrap();
        let stored = (64..8192).step_by(8).filter(|i| left[8 * i] == 7).count();
        assert!(stored == 0 || stored == 8128 / 8, "{stored}");
    }
    assert!(lengths.iter().any(|l| l.1 > (64 << 10) + 65_024));
    assert_eq!(lengths[0], (false, 64 << 10));
    region.store(64, 8).unwrap();
    region.journal.commit().unwrap();
    let shorter = latest.lock().unwrap().last().unwrap().len();
    assert_eq!(shorter, (64 << 10) + (8 << 10));
}
