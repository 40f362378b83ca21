//! The meaning of a slash, two, or a dot at the end of a path: for each function that takes a path, the same as on
//! Linux.

mod common;

use common::{Shared, console, ended};
use std::ffi::CString;
use std::fs;
use std::io::Cursor;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;
use varve_runtime::host::{State, Wasi, wasi};
use varve_runtime::{Clock, Engine, Module, Store};

/// Files, folders, links to them, a link to nothing, and names that are free.
const NAMES: [&str; 7] = ["f", "d", "e", "lf", "ld", "lost", "new"];
const ENDS: [&str; 6] = ["", "/", "//", "/.", "/./", "/.."];

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    fs::write(top.join("f"), "text").unwrap();
    fs::create_dir(top.join("d")).unwrap();
    fs::write(top.join("d/in"), "").unwrap();
    fs::create_dir(top.join("e")).unwrap();
    for (to, name) in [("f", "lf"), ("d", "ld"), ("nowhere", "lost")] {
        symlink(to, top.join(name)).unwrap();
    }
    folder
}

/// All that is in a folder, a line each.
fn listing(top: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(top).unwrap() {
        let path = entry.unwrap().path();
        let m = fs::symlink_metadata(&path).unwrap();
        let links = std::os::unix::fs::MetadataExt::nlink(&m);
        let line = format!(
            "{} {:?} {} {links} {:?}",
            path.display(),
            m.file_type(),
            if m.is_file() { m.len() } else { 0 },
            fs::read_link(&path).ok()
        );
        all.push(line.replace(top.to_str().unwrap(), ""));
        if m.is_dir() {
            all.extend(listing(&path));
        }
    }
    all.sort();
    all
}

/// WASI's code of an errno.
fn code(errno: i32) -> i32 {
    let codes = [
        (0, 0),
        (libc::EBUSY, 10),
        (libc::EEXIST, 20),
        (libc::EINVAL, 28),
        (libc::EISDIR, 31),
        (libc::ELOOP, 32),
        (libc::ENOENT, 44),
        (libc::ENOTDIR, 54),
        (libc::ENOTEMPTY, 55),
        (libc::EPERM, 63),
        (libc::EXDEV, 75),
    ];
    let found = codes.iter().find(|(e, _)| *e == errno);
    found.unwrap_or_else(|| panic!("errno {errno}")).1
}

/// A function with its paths, as WASI and as Linux have it.
#[derive(Debug, Clone)]
enum Call {
    Open(String, u32, u32),
    Make(String),
    RemoveDirectory(String),
    Unlink(String),
    Status(String, u32),
    Times(String, u32),
    ReadLink(String),
    Symlink(String),
    Link(String, String, u32),
    Rename(String, String),
}

fn wasi_code(call: &Call, top: &Path) -> i32 {
    let (first, second) = match call {
        Call::Open(p, ..) | Call::Status(p, _) | Call::Times(p, _) => (p.as_str(), ""),
        Call::Make(p) | Call::RemoveDirectory(p) | Call::Unlink(p) => (p.as_str(), ""),
        Call::ReadLink(p) => (p.as_str(), ""),
        Call::Symlink(p) => ("f", p.as_str()),
        Call::Link(a, b, _) | Call::Rename(a, b) => (a.as_str(), b.as_str()),
    };
    let a = format!("(i32.const 100) (i32.const {})", first.len());
    let b = format!("(i32.const 200) (i32.const {})", second.len());
    let (name, types, arguments) = match call {
        Call::Open(_, lookup, how) => {
            // To read, and to write unless it is to be a directory.
            let rights = if how & 2 != 0 { 2 } else { 2 | 64 };
            (
                "path_open",
                "i32 i32 i32 i32 i32 i64 i64 i32 i32",
                format!(
                    "(i32.const 3) (i32.const {lookup}) {a} (i32.const {how}) (i64.const {rights}) (i64.const 0) (i32.const 0) (i32.const 300)"
                ),
            )
        }
        Call::Make(_) => (
            "path_create_directory",
            "i32 i32 i32",
            format!("(i32.const 3) {a}"),
        ),
        Call::RemoveDirectory(_) => (
            "path_remove_directory",
            "i32 i32 i32",
            format!("(i32.const 3) {a}"),
        ),
        Call::Unlink(_) => (
            "path_unlink_file",
            "i32 i32 i32",
            format!("(i32.const 3) {a}"),
        ),
        Call::Status(_, lookup) => (
            "path_filestat_get",
            "i32 i32 i32 i32 i32",
            format!("(i32.const 3) (i32.const {lookup}) {a} (i32.const 304)"),
        ),
        Call::Times(_, lookup) => (
            "path_filestat_set_times",
            "i32 i32 i32 i32 i64 i64 i32",
            format!(
                "(i32.const 3) (i32.const {lookup}) {a} (i64.const 0) (i64.const 0) (i32.const 10)"
            ),
        ),
        Call::ReadLink(_) => (
            "path_readlink",
            "i32 i32 i32 i32 i32 i32",
            format!("(i32.const 3) {a} (i32.const 400) (i32.const 50) (i32.const 300)"),
        ),
        Call::Symlink(_) => (
            "path_symlink",
            "i32 i32 i32 i32 i32",
            format!("{a} (i32.const 3) {b}"),
        ),
        Call::Link(_, _, lookup) => (
            "path_link",
            "i32 i32 i32 i32 i32 i32 i32",
            format!("(i32.const 3) (i32.const {lookup}) {a} (i32.const 3) {b}"),
        ),
        Call::Rename(..) => (
            "path_rename",
            "i32 i32 i32 i32 i32 i32",
            format!("(i32.const 3) {a} (i32.const 3) {b}"),
        ),
    };
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "{name}" (func $f (param {types}) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 100) "{first}") (data (i32.const 200) "{second}")
            (func (export "_start") (call $exit (call $f {arguments}))))"#
    );
    static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);
    let module = Module::new(&ENGINE, &wat::parse_str(&text).unwrap()).unwrap();
    let (out, err) = (Shared::default(), Shared::default());
    let state = State {
        console: console(Cursor::new(Vec::new()), &out, &err),
        wasi: Wasi::new().preopen(top, ".").unwrap(),
        clock: Clock::default(),
    };
    let mut store = Store::new(&ENGINE, state).unwrap();
    let (code, last) = ended(wasi::run_command(&mut store, &module));
    assert_eq!(err.text() + &last, "");
    code
}

fn native_code(call: &Call, top: &Path) -> i32 {
    let c = |p: &str| CString::new(p).unwrap();
    let folder = fs::File::open(top).unwrap();
    let at = folder.as_raw_fd();
    let follow = |lookup: &u32, flag| if *lookup == 0 { flag } else { 0 };
    // SAFETY: all names end with a zero byte and live until the call is over; buffers are as long as is said.
    let answer = unsafe {
        match call {
            Call::Open(p, lookup, how) => {
                let mut flags = follow(lookup, libc::O_NOFOLLOW);
                for (bit, flag) in [
                    (1, libc::O_CREAT),
                    (2, libc::O_DIRECTORY),
                    (4, libc::O_EXCL),
                ] {
                    flags |= if how & bit != 0 { flag } else { 0 };
                }
                flags |= if how & 2 != 0 { 0 } else { libc::O_RDWR };
                let fd = libc::openat(at, c(p).as_ptr(), flags, 0o666);
                if fd >= 0 {
                    libc::close(fd);
                }
                fd.min(0)
            }
            Call::Make(p) => libc::mkdirat(at, c(p).as_ptr(), 0o777),
            Call::RemoveDirectory(p) => libc::unlinkat(at, c(p).as_ptr(), libc::AT_REMOVEDIR),
            Call::Unlink(p) => libc::unlinkat(at, c(p).as_ptr(), 0),
            Call::Status(p, lookup) => {
                let mut stat = std::mem::zeroed();
                let flags = follow(lookup, libc::AT_SYMLINK_NOFOLLOW);
                libc::fstatat(at, c(p).as_ptr(), &mut stat, flags)
            }
            Call::Times(p, lookup) => {
                let flags = follow(lookup, libc::AT_SYMLINK_NOFOLLOW);
                libc::utimensat(at, c(p).as_ptr(), std::ptr::null(), flags)
            }
            Call::ReadLink(p) => {
                let mut buffer = [0u8; 50];
                let read = libc::readlinkat(at, c(p).as_ptr(), buffer.as_mut_ptr().cast(), 50);
                read.min(0) as i32
            }
            Call::Symlink(p) => libc::symlinkat(c("f").as_ptr(), at, c(p).as_ptr()),
            Call::Link(a, b, lookup) => {
                let flags = if *lookup == 1 {
                    libc::AT_SYMLINK_FOLLOW
                } else {
                    0
                };
                libc::linkat(at, c(a).as_ptr(), at, c(b).as_ptr(), flags)
            }
            Call::Rename(a, b) => libc::renameat(at, c(a).as_ptr(), at, c(b).as_ptr()),
        }
    };
    code(match answer {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().unwrap(),
    })
}

fn paths(names: &[&str], ends: &[&str]) -> Vec<String> {
    let all = names
        .iter()
        .flat_map(|n| ends.iter().map(move |e| format!("{n}{e}")));
    all.collect()
}

fn compare(calls: impl Iterator<Item = Call>) {
    let mut wrong = Vec::new();
    let (mut all, mut refused) = (0, 0);
    for call in calls {
        let (ours, theirs) = (folder(), folder());
        let (got, wanted) = (
            wasi_code(&call, ours.path()),
            native_code(&call, theirs.path()),
        );
        all += 1;
        refused += usize::from(wanted != 0);
        if got != wanted || listing(ours.path()) != listing(theirs.path()) {
            wrong.push(format!("{call:?}: {got}, and on Linux {wanted}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {all}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(refused > 0 && refused < all);
}

#[test]
fn the_end_of_a_path_means_what_it_means_to_linux() {
    let of_one = paths(&NAMES, &ENDS).into_iter().flat_map(|p| {
        let opened = [0, 1].into_iter().flat_map({
            let p = p.clone();
            move |lookup| [0, 1, 2, 5].map(|how| Call::Open(p.clone(), lookup, how))
        });
        let others = [
            Call::Make(p.clone()),
            Call::RemoveDirectory(p.clone()),
            Call::Unlink(p.clone()),
            Call::Status(p.clone(), 0),
            Call::Status(p.clone(), 1),
            Call::Times(p.clone(), 0),
            Call::Times(p.clone(), 1),
            Call::ReadLink(p.clone()),
            Call::Symlink(p),
        ];
        opened.chain(others)
    });
    compare(of_one);
}

#[test]
fn the_ends_of_two_paths_mean_what_they_mean_to_linux() {
    let all = paths(&["f", "d", "e", "ld", "lost", "new"], &["", "/", "/."]);
    let pairs = all
        .iter()
        .flat_map(|a| all.iter().map(|b| (a.clone(), b.clone())));
    compare(pairs.flat_map(|(a, b)| {
        [
            Call::Rename(a.clone(), b.clone()),
            Call::Link(a.clone(), b.clone(), 0),
            Call::Link(a, b, 1),
        ]
    }));
}
