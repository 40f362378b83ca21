//! Placed memory within one process.

mod common;

use common::{CACHE_BYTES, allowed, options};
use varve_live::{LiveOptions, PageSize, Placer, machine_conflicts};

#[test]
fn placed_memory_is_zeroed_writable_and_free_of_conflicts() {
    let Some(dir) = allowed() else {
        return;
    };
    let placer = Placer::new(&options(dir.path())).unwrap();
    let mut memory = placer.memory(48 << 20).unwrap();
    assert!(memory.iter().all(|&b| b == 0));
    memory.fill(3);
    let now = memory.conflicts_now().unwrap();
    assert_eq!(now.pages, 48 * 256);
    assert!((now.excess as f64) < now.random_excess / 10.0, "{now:?}");
    assert_eq!(memory.conflicts_before().pages, now.pages);
    assert!(memory.iter().all(|&b| b == 3));
}

#[test]
fn a_second_piece_fills_the_bins_that_the_first_left() {
    let Some(dir) = allowed() else {
        return;
    };
    let placer = Placer::new(&options(dir.path())).unwrap();
    let first = placer.memory(24 << 20).unwrap();
    let second = placer.memory(24 << 20).unwrap();
    let bins = options(dir.path()).bins().unwrap();
    let all = machine_conflicts(&[std::process::id()], bins, 24 << 20).unwrap();
    // The process may have other memory of this size; the placed pages are most of it.
    assert!(all.pages >= 2 * 24 * 256);
    let own = first.conflicts_now().unwrap().excess + second.conflicts_now().unwrap().excess;
    assert!(own < 100, "{own}");
    drop(first);
    // What was given back counts no more.
    let third = placer.memory(24 << 20).unwrap();
    assert!(third.conflicts_now().unwrap().excess < 100);
}

#[test]
fn pages_are_huge_where_they_fit() {
    let Some(dir) = allowed() else {
        return;
    };
    let placer = Placer::new(&LiveOptions {
        pages: PageSize::Huge,
        ..options(dir.path())
    })
    .unwrap();
    let memory = placer.memory((CACHE_BYTES / 2) as usize + 12345).unwrap();
    let now = memory.conflicts_now().unwrap();
    assert_eq!(now.pages, CACHE_BYTES / 2 / 4096 + 4);
    assert!((now.excess as f64) < now.random_excess / 5.0, "{now:?}");
}

#[test]
fn too_much_memory_is_refused_with_the_numbers() {
    let Some(dir) = allowed() else {
        return;
    };
    let placer = Placer::new(&options(dir.path())).unwrap();
    let error = placer.memory(1 << 46).err().unwrap().to_string();
    assert!(
        !error.contains('\n') && (error.contains("available") || error.contains("map memory")),
        "{error}"
    );
}

#[test]
fn a_cache_of_four_ways_holds_four_pages_to_a_bin() {
    let Some(dir) = allowed() else {
        return;
    };
    let placer = Placer::new(&LiveOptions {
        ways: 4,
        ..options(dir.path())
    })
    .unwrap();
    let memory = placer.memory(56 << 20).unwrap();
    let now = memory.conflicts_now().unwrap();
    assert!(
        now.bins_used <= CACHE_BYTES / 4096 / 4 && now.fullest >= 4,
        "{now:?}"
    );
    assert!((now.excess as f64) < now.random_excess / 10.0, "{now:?}");
}
