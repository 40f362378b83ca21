//! One owner for each name, whatever replaces the file; and what a file keeps when it is replaced.
#![cfg(not(miri))]

mod common;

use common::World;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;
use varve_durable::*;
use varve_heap::Ref;

fn with_a_list(path: &Path) {
    let mut world = World::on_file(path, Medium::Memory).unwrap();
    let mut list = Ref::NULL;
    for i in 0..100 {
        list = world.node(i, 0, list, Ref::NULL);
    }
    world.publish("list", list);
    world.close();
}

fn objects(path: &Path) -> usize {
    let region = Inspection::of_file(path).unwrap();
    assert_eq!(region.walk.damages, []);
    region.walk.objects.len()
}

/// A process that waits for a file while another one replaces it must not go on with the file that has lost its name: its stores would be lost.
#[test]
fn who_waited_for_a_file_that_was_replaced_has_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    with_a_list(&path);
    for round in 0..20u64 {
        let holder = World::on_file(&path, Medium::Memory).unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut world = World::on_file(&path, Medium::Memory)?;
                let node = world.node(round as i64, 0, Ref::NULL, Ref::NULL);
                world.publish("late", node);
                world.space.take().unwrap().close()
            }
        });
        std::thread::sleep(Duration::from_millis(5));
        drop(holder);
        // Another that waits, or is first.
        let compacted = compact(&path);
        waiting.join().unwrap().unwrap();
        compacted.unwrap();
        let mut again = World::on_file(&path, Medium::Memory).unwrap();
        let late = again.root("late");
        assert_eq!(again.load(late, 8), round as i64, "round {round}");
    }
}

#[test]
fn only_a_file_that_is_missing_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    with_a_list(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..8].fill(0);
    let zeroes = vec![0; 100_000];
    let other = b"x".to_vec();
    for foreign in [&bytes, &zeroes, &other, &zeroes[..3].to_vec()] {
        std::fs::write(&path, foreign).unwrap();
        let refused = World::on_file(&path, Medium::Memory).err().unwrap();
        match foreign == &other {
            true => assert!(matches!(refused, Error::Foreign(_)), "{refused}"),
            false => assert!(matches!(refused, Error::Empty { .. }), "{refused}"),
        }
        assert!(compact(&path).is_err());
        assert!(backup(Path::new("nowhere"), &path, &mut |_, _| ()).is_err());
        assert_eq!(&std::fs::read(&path).unwrap(), foreign);
    }
    // A file of no bytes may be all that is left of a region.
    std::fs::write(&path, "").unwrap();
    let refused = World::on_file(&path, Medium::Memory).err().unwrap();
    assert!(matches!(refused, Error::Empty { .. }), "{refused}");
    assert!(Inspection::of_file(&path).is_err() && compact(&path).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    // A copy loses nothing there.
    let region = folder.path().join("b.region");
    with_a_list(&region);
    backup(&region, &path, &mut |_, _| ()).unwrap();
    assert_eq!(objects(&path), 100);
}

/// A copy of a file whose region is open may have bytes of many instants. It is refused unless the caller has all of it verified; the
/// file itself goes on after a crash, under another name too.
#[test]
fn a_copy_of_a_region_that_was_open_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (path, copy) = (at("a.region"), at("copy.region"));
    for medium in [
        Medium::Memory,
        Medium::File(None),
        Medium::File(Some(Duration::from_millis(5))),
    ] {
        with_a_list(&path);
        // Of one that is closed, a copy is as good as the file.
        std::fs::copy(&path, &copy).unwrap();
        World::on_file(&copy, medium).unwrap().close();
        let mut world = World::on_file(&path, medium).unwrap();
        let node = world.node(7, 0, Ref::NULL, Ref::NULL);
        world.publish("open", node);
        std::fs::remove_file(&copy).unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let torn = std::fs::read(&copy).unwrap();
        for crashed in [false, true] {
            let refused = World::on_file(&copy, medium).err().unwrap();
            assert!(matches!(refused, Error::Copied(_)), "{refused}");
            let region = Inspection::of_file(&copy).unwrap();
            let damages: Vec<String> = region.walk.damages.iter().map(|d| d.to_string()).collect();
            assert!(damages.len() == 1 && damages[0].contains("a copy of a region"));
            drop(region);
            let refused = compact(&copy).err().unwrap();
            assert!(matches!(refused, Error::Copied(_)), "{medium:?}: {refused}");
            let other = at("other.region");
            let refused = backup(&copy, &other, &mut |_, _| ());
            assert!(matches!(refused, Err(Error::Copied(_))) && !other.exists());
            assert_eq!(std::fs::read(&copy).unwrap(), torn, "{crashed}");
            if !crashed {
                // The owner gives consistent copies, and its own file is not refused as a copy.
                backup(&path, &other, &mut |_, _| ()).unwrap();
                assert_eq!(objects(&path), objects(&other));
                std::fs::remove_file(&other).unwrap();
                // As a program that is killed.
                drop(std::mem::replace(
                    &mut world,
                    World::on_file(&at("c"), medium).unwrap(),
                ));
            }
        }
        let saved = at("saved.region");
        let salvaged = salvage(&copy, &saved).unwrap();
        assert!(salvaged.lost.len() == 1 && salvaged.lost[0].contains("a copy"));
        assert_eq!(objects(&saved), 101);
        let verified = World::on_opened(&copy, medium, |o| o.verified().region(&common::tables()));
        verified.unwrap().close();
        assert_eq!(objects(&copy), 101);
        World::on_file(&copy, medium).unwrap().close();
        // The file itself has another name by now.
        let moved = at("moved.region");
        std::fs::rename(&path, &moved).unwrap();
        assert_eq!(objects(&moved), 101);
        World::on_file(&moved, medium).unwrap().close();
        assert_eq!(objects(&moved), 101);
        for name in ["moved.region", "saved.region", "copy.region", "c"] {
            let _ = std::fs::remove_file(at(name));
        }
    }
}

#[test]
fn a_file_that_is_replaced_keeps_mode_links_and_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a.region"), folder.path().join("link"));
    symlink("a.region", &link).unwrap();
    // Made through a link that leads nowhere yet.
    with_a_list(&link);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let named = |path: &Path| std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: names that end, and a value of three bytes.
    let set = unsafe {
        libc::setxattr(
            named(&path).as_ptr(),
            c"user.note".as_ptr(),
            c"own".as_ptr().cast(),
            3,
            0,
        )
    };
    let before = std::fs::metadata(&path).unwrap();
    let copy = compact(&link).unwrap();
    assert!(copy.objects == 100 && copy.bytes < copy.before);
    let after = std::fs::metadata(&path).unwrap();
    assert_ne!(before.ino(), after.ino());
    assert_eq!(after.mode() & 0o7777, 0o600);
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    if set == 0 {
        let mut value = [0u8; 8];
        // SAFETY: a name that ends, and room for eight bytes.
        let bytes = unsafe {
            libc::getxattr(
                named(&path).as_ptr(),
                c"user.note".as_ptr(),
                value.as_mut_ptr().cast(),
                8,
            )
        };
        assert_eq!((bytes, &value[..3]), (3, &b"own"[..]));
    }
    assert_eq!(objects(&link), 100);
    // A second name would go on leading to the old bytes.
    std::fs::hard_link(&path, folder.path().join("second")).unwrap();
    let refused = compact(&path).unwrap_err().to_string();
    assert!(refused.contains("hard links"), "{refused}");
    let names = std::fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = names.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

/// The leftover of a process killed while it made a new file is removed by the next opening, and blocks no process.
#[test]
fn what_was_left_beside_a_file_is_tidied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    let left = folder.path().join(".a.region.varve-new");
    std::fs::write(&left, vec![0; 5000]).unwrap();
    with_a_list(&path);
    std::fs::copy(&path, &left).unwrap();
    with_a_list(&path);
    assert!(!left.exists());
    std::fs::copy(&path, &left).unwrap();
    compact(&path).unwrap();
    assert!(!left.exists());
}

#[test]
fn a_file_that_lost_its_name_is_stored_into_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    for replaced in [false, true] {
        with_a_list(&path);
        let mut world = World::on_file(&path, Medium::Memory).unwrap();
        let list = world.root("list");
        match replaced {
            true => {
                std::fs::rename(&path, folder.path().join("old")).unwrap();
                with_a_list(&path);
            }
            false => std::fs::remove_file(&path).unwrap(),
        }
        let object = Space::offset_of(list.offset());
        let refused = (0..).find_map(|i| {
            std::thread::sleep(Duration::from_millis(10));
            assert!(i < 1000, "the replacement was not noticed");
            world.space().store(object, 8, &[1; 8]).err()
        });
        assert!(matches!(refused, Some(Error::Gone(_))));
        assert!(world.space().store(object, 8, &[1; 8]).is_err());
        assert!(world.space.take().unwrap().close().is_ok());
    }
}

/// A damaged page of a large region is found while the program runs, which goes on as long as it does not need it.
#[test]
fn a_damaged_page_of_a_large_region_is_found_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    let mut world = World::on_file(&path, Medium::Memory).unwrap();
    let mut kept = Ref::NULL;
    for i in 0..30 {
        // Tables of four megabytes in a chain: the file is larger than what is checked before it is used.
        let table = world.table(1 << 18);
        let table = world.publish("newest", table);
        kept = world.node(i, 0, kept, table);
        kept = world.publish("list", kept);
        if world.space().image().len() > 2 * CHECKED_FIRST {
            break;
        }
    }
    world.close();
    drop(world);
    let mut bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() as u64 > CHECKED_FIRST);
    // In the middle of a table that is not read.
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let found = Inspection::of_file(&path).unwrap().pages;
    let mut world = World::on_file(&path, Medium::Memory).unwrap();
    let list = world.root("list");
    assert_eq!(world.space().recovered().objects, None);
    for i in 0..20 {
        world.store(list, 8, i);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(world.load(list, 8), 19);
    world.close();
    // It is damaged still, and what was stored is there.
    let region = Inspection::of_file(&path).unwrap();
    assert_eq!(region.pages, found);
    assert_eq!(found.len(), 1);
}
