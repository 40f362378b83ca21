//! Region files: locks, other files, full media.
#![cfg(not(miri))]

mod common;

use common::tables;
use std::path::Path;
use varve_durable::layout::MAX_FILE;
use varve_durable::*;
use varve_heap::ObjectAlign;

/// Addresses that no other code uses.
fn reservation() -> *mut u8 {
    // SAFETY: a new mapping at an address that the system chooses.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            MAX_FILE as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert_ne!(at, libc::MAP_FAILED);
    at.cast()
}

fn open(path: &Path, medium: Medium) -> Result<Space> {
    // SAFETY: the addresses were just reserved, and stay so until the process ends.
    unsafe { open_in_place(path, medium, reservation(), ObjectAlign::LEAST) }?.region(&tables())
}

#[test]
fn a_region_is_there_when_it_is_opened_again_and_for_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    for medium in [
        Medium::Memory,
        Medium::File(None),
        Medium::File(Some(std::time::Duration::from_millis(1))),
    ] {
        let mut space = open(&path, medium).unwrap();
        let opened = space.commit().opened;
        space.begin();
        space.end().unwrap();
        let error = open(&path, medium).err().unwrap().to_string();
        assert!(
            error.contains("another process has this region open"),
            "{error}"
        );
        space.close().unwrap();
        let again = open(&path, medium).unwrap();
        assert!(again.recovered().closed && again.commit().opened == opened + 1);
    }
    assert!(compact(&path).is_ok());
}

#[test]
fn other_files_are_refused_and_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    std::fs::write(&path, "Dear reader, this is no region.").unwrap();
    let error = open(&path, Medium::Best).err().unwrap().to_string();
    assert!(error.contains("this is no region file"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap().len(), 31);
    let mut later = varve_durable::layout::MAGIC.to_vec();
    later.extend(99u32.to_le_bytes());
    later.resize(1 << 20, 0);
    std::fs::write(&path, later).unwrap();
    let error = open(&path, Medium::Best).err().unwrap().to_string();
    assert!(error.contains("version 99"), "{error}");
}

/// To open something else may wait for ever, or have an effect.
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: a name that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("fifo", &link).unwrap();
    for (path, is) in [
        (fifo.as_path(), "a FIFO"),
        (&link, "a FIFO"),
        (&socket, "a socket"),
        (folder.path(), "a directory"),
        (Path::new("/dev/null"), "a device"),
    ] {
        let fresh = folder.path().join("new");
        let refused = [
            open(path, Medium::Memory).err(),
            alignment(path).err(),
            Inspection::of_file(path).err(),
            compact(path).err(),
            backup(path, &fresh, &mut |_, _| ()).err(),
            salvage(path, &fresh).err(),
        ];
        for error in refused {
            let error = error.unwrap().to_string();
            assert!(error.contains(is), "{}: {error}", path.display());
        }
        assert!(!fresh.exists());
    }
    let region = folder.path().join("a.region");
    open(&region, Medium::Memory).unwrap().close().unwrap();
    let error = backup(&region, &fifo, &mut |_, _| ()).err().unwrap();
    assert!(error.to_string().contains("a FIFO"), "{error}");
}

#[test]
fn an_ordinary_file_system_is_no_persistent_memory() {
    let folder = tempfile::tempdir().unwrap();
    match open(&folder.path().join("a.region"), Medium::Dax) {
        Ok(_) => {} // This one is.
        Err(e) => assert!(e.to_string().contains("MAP_SYNC"), "{e}"),
    }
}

/// A region whose types have changed is rewritten when it is opened, under the lock and under its name.
#[test]
fn a_region_of_an_older_program_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.region");
    open(&path, Medium::Memory).unwrap().close().unwrap();
    let mut newer = tables();
    newer.types.push(newer.types[3].clone());
    newer.types[4].name = "more bytes".into();
    // SAFETY: as `open`.
    let opened =
        unsafe { open_in_place(&path, Medium::Memory, reservation(), ObjectAlign::LEAST) }.unwrap();
    let space = opened.region(&newer).unwrap();
    assert_eq!(space.tables(), &newer);
    assert!(compact(&path).is_err());
    assert!(!folder.path().join(".a.region.varve-new").exists());
}
