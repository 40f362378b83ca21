//! A process that is interrupted while it makes copies leaves nothing of them. A test file of its own: the abandoned state lasts for the whole
//! process.
#![cfg(not(miri))]

mod common;

use common::tables;
use std::path::Path;
use std::time::Duration;
use varve_durable::layout::MAX_FILE;
use varve_durable::*;
use varve_heap::ObjectAlign;

/// A region without objects.
fn region(path: &Path) {
    // SAFETY: a new mapping at an address that the system chooses, which stays reserved until the process ends.
    let space = unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            MAX_FILE as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        open_in_place(path, Medium::Memory, at.cast(), ObjectAlign::LEAST)
    };
    let mut space = space.unwrap().region(&tables()).unwrap();
    space.begin();
    space.end().unwrap();
    space.close().unwrap();
}

#[test]
fn an_interrupted_process_leaves_nothing_of_the_copies_that_it_makes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    region(&path);
    // Each copies without end, so that some is at each of its steps when the interruption comes.
    for i in 0..8 {
        let (path, to) = (path.clone(), folder.path().join(format!("copy{i}.region")));
        std::thread::spawn(move || {
            loop {
                let _ = salvage(&path, &to);
                let _ = std::fs::remove_file(&to);
            }
        });
    }
    std::thread::sleep(Duration::from_millis(100));
    abandon_drafts();
    // The threads go on for as long as a process takes to end.
    std::thread::sleep(Duration::from_millis(100));
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("-new"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
