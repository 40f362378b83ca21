//! Region files with a journal: killed, inspected, copied, damaged, and grown.
#![cfg(not(miri))]

mod common;

use common::World;
use proptest::prelude::*;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use varve_durable::journal::{Disk, SimulatedDisk, recover};
use varve_durable::layout::{JOURNALED, PAGE, VERSION};
use varve_durable::*;
use varve_heap::Ref;

const FILE: Medium = Medium::File(None);

fn version(path: &Path) -> u32 {
    let bytes = std::fs::read(path).unwrap();
    u32::from_le_bytes(bytes[8..12].try_into().unwrap())
}

/// The numbers in the list of a region, newest first.
fn numbers(region: &Inspection) -> Vec<i64> {
    assert_eq!(region.walk.damages, []);
    let mut numbers = Vec::new();
    let list = region.roots.iter().find(|r| r.name == "list");
    let mut at = list.map_or(Ref::NULL, |r| r.object);
    while !at.is_null() {
        let offset = Space::offset_of(at.offset());
        numbers.push(region.image.u64(offset + 8) as i64);
        at = Ref(region.image.u32(offset + 24));
    }
    numbers
}

/// Adds a number to the list.
fn add(world: &mut World, number: i64) {
    let head = world.root("list");
    let node = world.node(number, -number, head, Ref::NULL);
    world.publish("list", node);
}

/// A file whose program died with ten numbers in the list, of which nothing is in its place but the region's beginning.
fn left(path: &Path) {
    let mut world = World::on_file(path, FILE).unwrap();
    for i in 0..10 {
        add(&mut world, i);
    }
}

fn down_from(n: i64) -> Vec<i64> {
    (0..n).rev().collect()
}

#[test]
fn a_journal_that_a_crash_left_is_seen_by_all_who_read_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let path = at("a.region");
    left(&path);
    assert_eq!(version(&path), JOURNALED);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(
        alignment(&path).unwrap(),
        Some(varve_heap::ObjectAlign::LEAST)
    );
    // Inspection changes nothing.
    let region = Inspection::of_file(&path).unwrap();
    assert_eq!(numbers(&region), down_from(10));
    assert!(!region.commit.closed && region.version == VERSION);
    assert!((region.image.len() as usize) < bytes.len());
    drop(region);
    let (copy, saved) = (at("copy.region"), at("saved.region"));
    assert_eq!(backup(&path, &copy, &mut |_, _| ()).unwrap().objects, 10);
    let salvaged = salvage(&path, &saved).unwrap();
    assert!(salvaged.lost.is_empty() && salvaged.repaired.is_empty());
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    for copy in [&copy, &saved] {
        assert_eq!(version(copy), VERSION);
        assert_eq!(numbers(&Inspection::of_file(copy).unwrap()), down_from(10));
    }
    // Opening it applies the journal, on any medium.
    for medium in [
        FILE,
        Medium::Memory,
        Medium::File(Some(std::time::Duration::from_millis(5))),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        let mut world = World::on_file(&path, medium).unwrap();
        add(&mut world, 10);
        world.close();
        assert_eq!(version(&path), VERSION);
        let region = Inspection::of_file(&path).unwrap();
        assert_eq!(numbers(&region), down_from(11));
        // Nothing but the region is in a file that was closed.
        assert_eq!(std::fs::metadata(&path).unwrap().len(), region.image.len());
    }
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(compact(&path).unwrap().objects, 10);
    assert_eq!(numbers(&Inspection::of_file(&path).unwrap()), down_from(10));
}

/// The region is recovered after a crash only once the program and its version of the classes are accepted.
#[test]
fn what_refuses_a_program_leaves_a_journal_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    left(&path);
    let bytes = std::fs::read(&path).unwrap();
    let mut without = common::tables();
    without.types[1].name = "another".into();
    without.from_source = true;
    let refused = World::on_opened(&path, FILE, |o| o.region(&without));
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("objects of type node"), "{refused}");
    assert!(std::fs::read(&path).unwrap() == bytes);
    // Nor is anything changed if the program goes no further than to have it prepared, for its own classes or others.
    let mut more = common::tables();
    more.types.push(more.types[3].clone());
    more.types[4].name = "more bytes".into();
    for tables in [common::tables(), more] {
        let stopped = World::on_opened(&path, FILE, |o| {
            let prepared = o.prepare(&tables)?;
            assert_eq!(prepared.late(), []);
            Err(Error::Usage("stopped".into()))
        });
        assert_eq!(stopped.err().unwrap().to_string(), "stopped");
        assert!(std::fs::read(&path).unwrap() == bytes);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    // Nor if it is damaged.
    let mut damaged = bytes.clone();
    damaged[256 << 10] ^= 1; // the directory of marks
    std::fs::write(&path, &damaged).unwrap();
    let refused = World::on_file(&path, FILE).err().unwrap().to_string();
    assert!(refused.contains("damaged"), "{refused}");
    assert!(std::fs::read(&path).unwrap() == damaged);
    std::fs::write(&path, &bytes).unwrap();
    World::on_file(&path, FILE).unwrap();
    let region = Inspection::of_file(&path).unwrap();
    assert_eq!(numbers(&region), down_from(10));
}

/// A damaged transaction is reported if others follow it, and earlier data can be salvaged. A damaged last one cannot be distinguished from one torn
/// by a loss of power.
#[test]
fn a_damaged_journal_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let (path, saved) = (
        folder.path().join("a.region"),
        folder.path().join("b.region"),
    );
    left(&path);
    let bytes = std::fs::read(&path).unwrap();
    let begin = Inspection::of_file(&path).unwrap().image.len() as usize;
    let mut lengths = std::collections::BTreeSet::new();
    for sector in 0..40 {
        let mut damaged = bytes.clone();
        damaged[begin + 512 * sector + 100] ^= 4;
        std::fs::write(&path, &damaged).unwrap();
        let Ok(region) = Inspection::of_file(&path) else {
            panic!("the header is whole");
        };
        let told = region
            .walk
            .damages
            .iter()
            .any(|d| d.to_string().contains("journal"));
        drop(region);
        if !told {
            continue;
        }
        let refused = World::on_file(&path, FILE).err().unwrap().to_string();
        assert!(refused.contains("the journal is damaged"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "it stays as it is");
        let done = salvage(&path, &saved).unwrap();
        assert!(done.lost[0].contains("journal"), "{done:?}");
        let kept = numbers(&Inspection::of_file(&saved).unwrap());
        assert_eq!(kept, down_from(kept.len() as i64));
        lengths.insert(kept.len());
    }
    assert!(lengths.len() > 5, "{lengths:?}");
    // Its place in the first sector, and its end.
    for (at, says) in [
        (75, "the place of the journal"),
        (0, "ends in the middle of its journal"),
    ] {
        let mut damaged = bytes.clone();
        match at {
            0 => damaged.truncate(begin + (1 << 20)),
            at => damaged[at] ^= 1,
        }
        std::fs::write(&path, &damaged).unwrap();
        let refused = World::on_file(&path, FILE).err().unwrap().to_string();
        assert!(refused.contains(says), "{refused}");
        let region = Inspection::of_file(&path).unwrap();
        assert!(region.walk.damages[0].to_string().contains(says));
        drop(region);
        assert!(salvage(&path, &saved).unwrap().lost[0].contains(says));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever is wrong with a file that has a journal: an error or a region, never a panic.
    #[test]
    fn changed_bytes_of_a_journal_are_an_error_or_a_region(
        changes in proptest::collection::vec((any::<u32>(), any::<u8>(), 0..3), 1..12),
        cut in (0..4, any::<u32>()),
    ) {
        static LEFT: std::sync::OnceLock<(Vec<u8>, usize)> = std::sync::OnceLock::new();
        let (whole, journal) = LEFT.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.region");
            left(&path);
            let journal = Inspection::of_file(&path).unwrap().image.len() as usize;
            (std::fs::read(&path).unwrap(), journal)
        });
        let journal = *journal;
        let mut bytes = whole.clone();
        for (at, value, which) in changes {
            let at = match which {
                0 => at as usize % 128,
                1 => journal + at as usize % (32 << 10),
                _ => at as usize % journal,
            };
            bytes[at] ^= value;
        }
        if cut.0 == 0 {
            bytes.truncate(cut.1 as usize % bytes.len());
        }
        let _ = Inspection::of(Image::memory(&bytes, bytes.len() as u64), "changed");
        let mut disk = SimulatedDisk::new(bytes, |_| ());
        if recover(&mut disk).unwrap().is_none() {
            let mut bytes = vec![0; disk.len().unwrap() as usize];
            disk.read_at(&mut bytes, 0).unwrap();
            let image = Image::memory(&bytes, bytes.len() as u64 + (1 << 20));
            let domain = Box::new(varve_durable::domain::CacheLines::new("memory"));
            if let Ok(region) = Space::open("changed", image, domain, None) {
                prop_assert_eq!(region.check().damages, []);
            }
        }
    }
}

/// Grouped operations are there after a commit, all of them, and closing commits.
#[test]
fn operations_in_a_group_are_committed_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    let mut world = World::on_file(&path, FILE).unwrap();
    add(&mut world, 0);
    assert!(!world.space().uncommitted());
    world.space().set_grouped(true).unwrap();
    for i in 1..5 {
        add(&mut world, i);
    }
    assert!(world.space().uncommitted());
    world.space().commit_now().unwrap();
    // A failure-atomic region that is open when its group is committed is rolled back.
    world.space().begin();
    add(&mut world, 5);
    let head = world.root("list");
    let second = world.load_ref(head, 24);
    world.store(second, 8, -1);
    world.space().commit_now().unwrap();
    world.space().end().unwrap();
    add(&mut world, 6);
    drop(world);
    let region = Inspection::of_file(&path).unwrap();
    assert!(region.taken_back > 0);
    assert_eq!(numbers(&region), down_from(5));
    drop(region);
    let mut world = World::on_file(&path, FILE).unwrap();
    world.space().set_grouped(true).unwrap();
    add(&mut world, 5);
    world.space().set_grouped(false).unwrap();
    assert!(!world.space().uncommitted());
    world.space().set_grouped(true).unwrap();
    add(&mut world, 6);
    world.close();
    drop(world);
    let region = Inspection::of_file(&path).unwrap();
    assert_eq!(numbers(&region), down_from(7));
}

/// Copies of a region whose operations are grouped are of one instant, and have no journal.
#[test]
fn copies_of_a_region_with_a_journal_are_of_one_instant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    let mut world = World::on_file(&path, FILE).unwrap();
    for i in 0..10 {
        add(&mut world, i);
    }
    let copy = folder.path().join("copy.region");
    let done = Arc::new(AtomicBool::new(false));
    let looking = std::thread::spawn({
        let (path, copy, done) = (path.clone(), copy.clone(), done.clone());
        move || {
            let mut before = 0;
            for _ in 0..15 {
                let seen = numbers(&Inspection::of_file(&path).unwrap());
                assert_eq!(seen, down_from(seen.len() as i64));
                backup(&path, &copy, &mut |_, _| ()).unwrap();
                assert_eq!(version(&copy), VERSION);
                let copied = numbers(&Inspection::of_file(&copy).unwrap());
                assert_eq!(copied, down_from(copied.len() as i64));
                assert!(before <= seen.len() && seen.len() <= copied.len());
                before = copied.len();
            }
            done.store(true, Ordering::Relaxed);
        }
    });
    world.space().set_grouped(true).unwrap();
    let mut next = 10;
    while !done.load(Ordering::Relaxed) && !looking.is_finished() {
        if next < 100_000 {
            add(&mut world, next);
            next += 1;
        }
        if next % 50 == 0 {
            world.space().commit_now().unwrap();
        }
    }
    looking.join().unwrap();
    world.close();
    assert_eq!(
        numbers(&Inspection::of_file(&path).unwrap()),
        down_from(next)
    );
}

/// Kilobytes of memory that are this process's own in the mapping at an address.
fn own_memory(at: *const u8, bytes: u64) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    let mut own = 0;
    for line in text.lines() {
        let range = line.split(' ').next().unwrap_or("");
        if let Some((from, to)) = range.split_once('-')
            && let (Ok(from), Ok(_)) = (
                usize::from_str_radix(from, 16),
                usize::from_str_radix(to, 16),
            )
        {
            inside = from >= at.addr() && from < at.addr() + bytes as usize;
        } else if inside && let Some(rest) = line.strip_prefix("Anonymous:") {
            own += rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
        }
    }
    own
}

/// A group that is longer than the journal: memory is released once it is in its place.
#[test]
fn a_checkpoint_gives_memory_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    let mut world = World::on_file(&path, FILE).unwrap();
    world.space().set_grouped(true).unwrap();
    let mut chain = Ref::NULL;
    for i in 0..24 {
        let table = world.table(1 << 18);
        let table = world.publish("newest", table);
        chain = world.node(i, 0, chain, table);
        chain = world.publish("list", chain);
    }
    let (at, bytes) = (world.space().image().base(), world.space().image().len());
    let before = own_memory(at, bytes);
    world.space().commit_now().unwrap();
    let after = own_memory(at, bytes);
    assert!(before > 24 << 10, "{before} kB");
    assert!(after < 1 << 10, "{after} of {before} kB");
    let list = world.root("list");
    assert_eq!(world.load(list, 8), 23);
    drop(world);
    assert_eq!(numbers(&Inspection::of_file(&path).unwrap()), down_from(24));
}

/// The program of the next test: numbers go into the list and into the first node, and are said once they are over.
fn child(path: &Path) {
    let together: i64 = std::env::var("TOGETHER").unwrap().parse().unwrap();
    let mut world = World::on_file(path, FILE).unwrap();
    world.space().set_grouped(together > 1).unwrap();
    let mut next = 0;
    let mut at = world.root("list");
    if !at.is_null() {
        next = world.load(at, 8) + 1;
    }
    while !at.is_null() && !world.load_ref(at, 24).is_null() {
        at = world.load_ref(at, 24);
    }
    let mut first = at;
    loop {
        // Both are over, or neither.
        world.space().begin();
        add(&mut world, next);
        if first.is_null() {
            first = world.root("list");
        }
        world.store(first, 16, next);
        world.space().end().unwrap();
        if next % 100 == 99 {
            // Much that is garbage soon: the file grows, and the journal with it.
            let table = world.table(1 << 16);
            world.publish("table", table);
            let held = world.held.len();
            world.held.truncate(held.min(4));
            if world.space().wants_collection() {
                world.space().collect(&[]);
            }
        }
        if together == 1 || next % together == together - 1 {
            world.space().commit_now().unwrap();
            let mut out = std::io::stdout().lock();
            writeln!(out, "over {next}").unwrap();
            out.flush().unwrap();
        }
        next += 1;
    }
}

/// Every acknowledged operation is there after `kill -9`, however many operations are committed together.
#[test]
fn a_program_that_is_killed_finds_what_it_had_committed() {
    if let Ok(path) = std::env::var("VARVE_JOURNAL_CHILD") {
        child(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    let mut last: Option<i64> = None;
    for round in 0..12u64 {
        let together = [1, 16, 128][round as usize % 3];
        let mut program = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_program_that_is_killed_finds_what_it_had_committed",
                "--nocapture",
            ])
            .env("VARVE_JOURNAL_CHILD", &path)
            .env("TOGETHER", together.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let said = |line: &str| Some(line.split("over ").nth(1)?.parse::<i64>().unwrap());
        let mut left = 1 + round * 7 % 40;
        while left > 0 {
            let line = lines.next().expect("it runs until it is killed").unwrap();
            if let Some(number) = said(&line) {
                last = Some(number);
                left -= 1;
            }
        }
        program.kill().unwrap();
        for line in lines.map_while(std::result::Result::ok) {
            last = said(&line).or(last);
        }
        program.wait().unwrap();
        let region = Inspection::of_file(&path).unwrap();
        let found = numbers(&region);
        assert_eq!(found, down_from(found.len() as i64));
        let newest = found[0];
        // A commit that was not acknowledged yet may be there.
        let said = last.unwrap();
        assert!(
            newest >= said && newest <= said + together,
            "round {round}: {said} was over, {newest} is there"
        );
        let mut at = region
            .roots
            .iter()
            .find(|r| r.name == "list")
            .unwrap()
            .object;
        let mut offset = 0;
        while !at.is_null() {
            offset = Space::offset_of(at.offset());
            at = Ref(region.image.u32(offset + 24));
        }
        assert_eq!(region.image.u64(offset + 16) as i64, newest);
        assert!(region.image.len().is_multiple_of(PAGE));
        last = Some(newest);
    }
}
