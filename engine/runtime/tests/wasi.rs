//! Stories of programs that see the system through WASI preview 1.

mod common;

use common::{Shared, console, ended};
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use varve_access::{Kind, Op};
use varve_runtime::host::{State, Wasi, wasi};
use varve_runtime::{Clock, Engine, Module, Part, Sink, Store};

/// The functions of WASI that the programs here use, a memory, and a few words for their lists of buffers.
const PRELUDE: &str = r#"
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_readdir" (func $readdir (param i32 i32 i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_fdstat_set_rights" (func $set_rights (param i32 i64 i64) (result i32)))
    (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_filestat_get" (func $status (param i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_link" (func $link (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_readlink" (func $readlink (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_pread" (func $pread (param i32 i32 i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_pwrite" (func $pwrite (param i32 i32 i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_allocate" (func $allocate (param i32 i64 i64) (result i32)))
    (import "wasi_snapshot_preview1" "fd_renumber" (func $renumber (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_tell" (func $tell (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sock_shutdown" (func $shutdown (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (func $print (param $fd i32) (param $at i32) (param $size i32)
        (i32.store (i32.const 0) (local.get $at))
        (i32.store (i32.const 4) (local.get $size))
        (drop (call $write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
    ;; Ends with a code unless a function answered what it should.
    (func $expect (param $got i32) (param $wanted i32)
        (if (i32.ne (local.get $got) (local.get $wanted))
            (then (call $exit (i32.add (i32.const 100) (local.get $got))))))
"#;

/// Exit code, output and errors of a program of this text.
fn run(text: &str, wasi: Wasi, input: &str) -> (i32, String, String) {
    run_by(text, wasi, Clock::default(), input)
}

fn run_by(text: &str, wasi: Wasi, clock: Clock, input: &str) -> (i32, String, String) {
    run_in(text, wasi, clock, input, None)
}

/// The same, where accesses may be observed.
fn run_in(
    text: &str,
    wasi: Wasi,
    clock: Clock,
    input: &str,
    sink: Option<Box<dyn Sink>>,
) -> (i32, String, String) {
    let engine = Engine::default();
    let bytes = wat::parse_str(format!("(module {PRELUDE} {text})")).unwrap();
    let module = Module::new(&engine, &bytes).unwrap();
    assert!(wasi::is_command(&module) && wasi::is_used(&module));
    let (out, err) = (Shared::default(), Shared::default());
    let console = console(Cursor::new(input.to_owned()), &out, &err);
    let state = State {
        console,
        wasi,
        clock,
    };
    let mut store = match sink {
        None => Store::new(&engine, state),
        Some(sink) => Store::observed(&engine, state, sink),
    }
    .unwrap();
    let (code, last) = ended(wasi::run_command(&mut store, &module));
    store.tell().unwrap();
    (code, out.text(), err.text() + &last)
}

/// As [`run`], where only the code matters.
fn code(text: &str, wasi: Wasi) -> i32 {
    let (code, _, err) = run(text, wasi, "");
    assert_eq!(err, "");
    code
}

fn below(directory: &Path) -> Wasi {
    Wasi::new().preopen(directory, "/data").unwrap()
}

#[test]
fn a_program_sees_its_arguments_and_its_environment() {
    let text = r#"(func (export "_start")
        (call $expect (call $args_sizes (i32.const 16) (i32.const 20)) (i32.const 0))
        (call $expect (call $args (i32.const 64) (i32.const 1024)) (i32.const 0))
        (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 20)))
        (call $expect (call $environ_sizes (i32.const 24) (i32.const 28)) (i32.const 0))
        (call $expect (call $environ (i32.const 128) (i32.const 2048)) (i32.const 0))
        (call $print (i32.const 2) (i32.const 2048) (i32.load (i32.const 28)))
        ;; The second argument, through the list; then both counts as the code.
        (call $print (i32.const 1) (i32.load (i32.const 68)) (i32.const 4))
        (call $exit (i32.add (i32.mul (i32.const 10) (i32.load (i32.const 16))) (i32.load (i32.const 24)))))"#;
    let wasi = Wasi::new().arg("program").arg("größ");
    let wasi = wasi.env("A", "1").env("B", "two").env("A", "3");
    let (code, out, err) = run(text, wasi, "");
    assert_eq!(code, 22);
    assert_eq!(out, "program\0größ\0grö");
    assert_eq!(err, "B=two\0A=3\0");
}

/// Reads two clocks, sleeps for an hour, reads them again, and draws 8 bytes: prints all, in hexadecimal digits.
const LOOKS: &str = r#"
    (func $look (param $clock i32) (param $at i32)
        (call $expect (call $clock (local.get $clock) (i64.const 1) (local.get $at)) (i32.const 0)))
    (func $digit (param $n i32) (result i32)
        (i32.add (local.get $n) (select (i32.const 87) (i32.const 48) (i32.gt_u (local.get $n) (i32.const 9)))))
    (func (export "_start") (local $i i32)
        (call $look (i32.const 0) (i32.const 512))
        (call $look (i32.const 1) (i32.const 520))
        (i32.store8 (i32.const 256) (i32.const 0))
        (i32.store (i32.const 264) (i32.const 0))
        (i32.store (i32.const 272) (i32.const 1))
        (i64.store (i32.const 280) (i64.const 3600000000000))
        (call $expect (call $poll (i32.const 256) (i32.const 320) (i32.const 1) (i32.const 360)) (i32.const 0))
        (call $look (i32.const 1) (i32.const 528))
        (call $expect (call $random (i32.const 536) (i32.const 8)) (i32.const 0))
        (loop $more
            (i32.store8 (i32.add (i32.const 1024) (i32.shl (local.get $i) (i32.const 1)))
                (call $digit (i32.shr_u (i32.load8_u (i32.add (i32.const 512) (local.get $i))) (i32.const 4))))
            (i32.store8 (i32.add (i32.const 1025) (i32.shl (local.get $i) (i32.const 1)))
                (call $digit (i32.and (i32.load8_u (i32.add (i32.const 512) (local.get $i))) (i32.const 15))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $i) (i32.const 32))))
        (call $print (i32.const 1) (i32.const 1024) (i32.const 64)))"#;

#[test]
fn a_program_that_must_do_the_same_every_time_sees_the_same() {
    let once = |seed| run_by(LOOKS, Wasi::new().seed(seed), Clock::counted(), "");
    let (code, out, err) = once(7);
    assert_eq!((code, err.as_str()), (0, ""));
    let time = |i: usize| {
        u64::from_str_radix(&out[16 * i..][..16], 16)
            .unwrap()
            .swap_bytes()
    };
    // A read is a microsecond; the sleep took none of ours.
    assert_eq!((time(0), time(1)), (0, 1000));
    let hour = 3_600_000_000_000;
    assert!((hour..hour + 10_000).contains(&time(2)), "{}", time(2));
    assert_eq!(once(7).1, out);
    assert_ne!(once(8).1[48..], out[48..], "other seeds, other numbers");
    assert_eq!(once(8).1[..48], out[..48]);
}

#[test]
fn standard_input_comes_out_again_to_its_end() {
    let text = r#"(func (export "_start")
        (i32.store (i32.const 32) (i32.const 1024))
        (i32.store (i32.const 36) (i32.const 7))
        (loop $more
            (call $expect (call $read (i32.const 0) (i32.const 32) (i32.const 1) (i32.const 40)) (i32.const 0))
            (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 40)))
            (br_if $more (i32.load (i32.const 40)))))"#;
    let input = "a line\nand another, longer one\nno end";
    let (code, out, err) = run(text, Wasi::new(), input);
    assert_eq!((code, out.as_str(), err.as_str()), (0, input, ""));
}

#[test]
fn a_file_below_an_open_directory_is_read_and_one_is_written() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("in.txt"), "what the file says").unwrap();
    let text = r#"
        (data (i32.const 256) "in.txt")
        (data (i32.const 272) "out.txt")
        (func (export "_start")
            ;; Rights to read and to seek; then to write, for a file that is made.
            (call $expect (call $open (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 6) (i32.const 0)
                (i64.const 6) (i64.const 0) (i32.const 0) (i32.const 16)) (i32.const 0))
            (call $expect (call $open (i32.const 3) (i32.const 0) (i32.const 272) (i32.const 7) (i32.const 1)
                (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 20)) (i32.const 0))
            (call $expect (call $seek (i32.load (i32.const 16)) (i64.const 9) (i32.const 0) (i32.const 24)) (i32.const 0))
            (i32.store (i32.const 32) (i32.const 1024))
            (i32.store (i32.const 36) (i32.const 100))
            (call $expect (call $read (i32.load (i32.const 16)) (i32.const 32) (i32.const 1) (i32.const 40)) (i32.const 0))
            (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 40)))
            (call $print (i32.load (i32.const 20)) (i32.const 1024) (i32.load (i32.const 40)))
            (call $expect (call $close (i32.load (i32.const 16))) (i32.const 0))
            ;; It is closed now: BADF.
            (call $expect (call $close (i32.load (i32.const 16))) (i32.const 8))
            (call $exit (i32.load (i32.const 40))))"#;
    let (code, out, err) = run(text, below(directory.path()), "");
    assert_eq!((code, out.as_str(), err.as_str()), (9, "file says", ""));
    let written = fs::read_to_string(directory.path().join("out.txt")).unwrap();
    assert_eq!(written, "file says");
}

/// A program that opens a path and answers with the error.
fn opens(path: &str) -> String {
    format!(
        r#"(data (i32.const 256) "{path}")
        (func (export "_start") (call $exit (call $open (i32.const 3) (i32.const 1) (i32.const 256) (i32.const {})
            (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16))))"#,
        path.len()
    )
}

#[test]
fn no_path_leads_out_of_an_open_directory() {
    const NOENT: i32 = 44;
    const NOTCAPABLE: i32 = 76;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let directory = outside.path().join("in");
    fs::create_dir_all(directory.join("deep/er")).unwrap();
    fs::write(directory.join("file"), "").unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, directory.join(name)).unwrap();
    link("../secret", "out");
    link("/etc", "root");
    link("deep/er", "down");
    link("../../file", "deep/er/up");
    link("loop", "loop");
    let answers = [
        ("file", 0),
        ("deep/../file", 0),
        ("./deep/./er//../../file", 0),
        ("down/up", 0),
        ("down/../er/up", 0),
        ("down/", 0),
        ("missing", NOENT),
        ("file/", 54),
        ("loop", 32),
        ("../secret", NOTCAPABLE),
        ("deep/../../secret", NOTCAPABLE),
        ("out", NOTCAPABLE),
        ("root/hostname", NOTCAPABLE),
        ("/etc/hostname", NOTCAPABLE),
        ("..", NOTCAPABLE),
    ];
    for (path, answer) in answers {
        assert_eq!(code(&opens(path), below(&directory)), answer, "{path}");
    }
}

#[test]
fn below_the_root_links_lead_where_the_host_says() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    fs::write(directory.join("file"), "").unwrap();
    std::os::unix::fs::symlink(directory.join("file"), directory.join("link")).unwrap();
    let link = directory.join("link");
    let path = link.to_str().unwrap().trim_start_matches('/');
    let wasi = Wasi::new().preopen("/".as_ref(), "/").unwrap();
    assert_eq!(code(&opens(path), wasi), 0);
}

#[test]
fn a_directory_is_listed_page_by_page() {
    let directory = tempfile::tempdir().unwrap();
    for i in 0..20 {
        fs::write(directory.path().join(format!("file-{i:02}")), "").unwrap();
    }
    // Counts the entries, with room for two or three at a time; the cookie is that of the last whole one.
    let text = r#"(func (export "_start") (local $cookie i64) (local $at i32) (local $end i32) (local $count i32)
        (loop $page
            (call $expect (call $readdir (i32.const 3) (i32.const 1024) (i32.const 70) (local.get $cookie) (i32.const 16))
                (i32.const 0))
            (local.set $end (i32.add (i32.const 1024) (i32.load (i32.const 16))))
            (local.set $at (i32.const 1024))
            (block $done (loop $entry
                (br_if $done (i32.gt_u (i32.add (local.get $at) (i32.const 24)) (local.get $end)))
                (br_if $done (i32.gt_u (i32.add (i32.add (local.get $at) (i32.const 24)) (i32.load offset=16 (local.get $at)))
                    (local.get $end)))
                (local.set $count (i32.add (local.get $count) (i32.const 1)))
                (local.set $cookie (i64.load (local.get $at)))
                (local.set $at (i32.add (i32.add (local.get $at) (i32.const 24)) (i32.load offset=16 (local.get $at))))
                (br $entry)))
            (br_if $page (i32.eq (i32.load (i32.const 16)) (i32.const 70))))
        (call $exit (local.get $count)))"#;
    assert_eq!(code(text, below(directory.path())), 22, "20, and . and ..");
}

#[test]
fn what_a_right_was_given_up_for_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("f"), "").unwrap();
    // The directory keeps the right to open (bit 13) and gives on the one to read (bit 1); creating needs another.
    let text = r#"(data (i32.const 256) "f")
        (func $try (param $how i32) (result i32)
            (call $open (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 1) (local.get $how) (i64.const 66)
                (i64.const 0) (i32.const 0) (i32.const 16)))
        (func (export "_start")
            (call $expect (call $set_rights (i32.const 3) (i64.const 8192) (i64.const 2)) (i32.const 0))
            (call $expect (call $set_rights (i32.const 3) (i64.const 8193) (i64.const 2)) (i32.const 76))
            (call $expect (call $try (i32.const 1)) (i32.const 76))
            (call $expect (call $try (i32.const 0)) (i32.const 0))
            (i32.store (i32.const 0) (i32.const 256))
            (i32.store (i32.const 4) (i32.const 1))
            (call $exit (call $write (i32.load (i32.const 16)) (i32.const 0) (i32.const 1) (i32.const 8))))"#;
    assert_eq!(code(text, below(directory.path())), 76);
}

#[test]
fn bad_pointers_and_descriptors_are_errors_and_nothing_else() {
    const FAULT: i32 = 21;
    const BADF: i32 = 8;
    let directory = tempfile::tempdir().unwrap();
    // The memory has 65536 bytes; at 32 lies a buffer that ends beyond it, at 48 one that ends there.
    let calls = [
        ("(call $args_sizes (i32.const 65533) (i32.const 0))", FAULT),
        ("(call $args (i32.const 0) (i32.const -1))", FAULT),
        ("(call $environ_sizes (i32.const -4) (i32.const 0))", FAULT),
        (
            "(call $clock (i32.const 1) (i64.const 0) (i32.const 65529))",
            FAULT,
        ),
        ("(call $random (i32.const 65000) (i32.const 1000))", FAULT),
        ("(call $random (i32.const -1) (i32.const -1))", FAULT),
        (
            "(call $write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 8))",
            FAULT,
        ),
        (
            "(call $write (i32.const 1) (i32.const 65532) (i32.const 1) (i32.const 8))",
            FAULT,
        ),
        (
            "(call $write (i32.const 1) (i32.const 48) (i32.const 1) (i32.const 65534))",
            FAULT,
        ),
        (
            "(call $write (i32.const 1) (i32.const 48) (i32.const 536870912) (i32.const 8))",
            28,
        ),
        (
            "(call $read (i32.const 0) (i32.const 32) (i32.const 1) (i32.const 8))",
            FAULT,
        ),
        (
            "(call $readdir (i32.const 3) (i32.const 60000) (i32.const 10000) (i64.const 0) (i32.const 8))",
            FAULT,
        ),
        (
            "(call $readdir (i32.const 3) (i32.const 64) (i32.const 100) (i64.const -1) (i32.const 8))",
            0,
        ),
        ("(call $prestat (i32.const 3) (i32.const 65530))", FAULT),
        ("(call $prestat (i32.const 4) (i32.const 0))", BADF),
        (
            "(call $status (i32.const 3) (i32.const 0) (i32.const -2) (i32.const 4) (i32.const 64))",
            FAULT,
        ),
        (
            "(call $status (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 64))",
            54,
        ),
        (
            "(call $poll (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 8))",
            FAULT,
        ),
        (
            "(call $poll (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8))",
            28,
        ),
        (
            "(call $seek (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 8))",
            70,
        ),
        (
            "(call $seek (i32.const 77) (i64.const 0) (i32.const 0) (i32.const 8))",
            BADF,
        ),
        ("(call $close (i32.const -1))", BADF),
        (
            "(call $clock (i32.const 9) (i64.const 0) (i32.const 8))",
            28,
        ),
        ("(call $shutdown (i32.const 1) (i32.const 0))", 57),
        (
            "(call $write (i32.const 1) (i32.const 48) (i32.const 1) (i32.const 8))",
            0,
        ),
    ];
    for (call, answer) in calls {
        let text = format!(
            r#"(data (i32.const 32) "\f0\ff\00\00\11\00\00\00") (data (i32.const 48) "\f0\ff\00\00\10\00\00\00")
            (func (export "_start") (call $exit {call}))"#
        );
        assert_eq!(code(&text, below(directory.path())), answer, "{call}");
    }
}

#[test]
fn a_wait_ends_with_the_first_thing_that_happens() {
    // A clock of an hour, and standard output, which takes bytes at any time.
    let text = r#"(func (export "_start")
        (i64.store (i32.const 256) (i64.const 1))
        (i32.store (i32.const 272) (i32.const 1))
        (i64.store (i32.const 280) (i64.const 3600000000000))
        (i64.store (i32.const 304) (i64.const 2))
        (i32.store8 (i32.const 312) (i32.const 2))
        (i32.store (i32.const 320) (i32.const 1))
        (call $expect (call $poll (i32.const 256) (i32.const 512) (i32.const 2) (i32.const 16)) (i32.const 0))
        (call $expect (i32.load (i32.const 16)) (i32.const 1))
        (call $expect (i32.load8_u (i32.const 522)) (i32.const 2))
        ;; Then a clock alone, of a millisecond.
        (i64.store (i32.const 280) (i64.const 1000000))
        (call $expect (call $poll (i32.const 256) (i32.const 512) (i32.const 1) (i32.const 16)) (i32.const 0))
        (call $exit (i32.wrap_i64 (i64.load (i32.const 512)))))"#;
    assert_eq!(code(text, Wasi::new()), 1);
}

#[test]
fn a_trap_keeps_what_was_printed_before() {
    let text = r#"(data (i32.const 256) "so far")
        (func (export "_start") (call $print (i32.const 1) (i32.const 256) (i32.const 6)) unreachable)"#;
    let (code, out, err) = run(text, Wasi::new(), "");
    assert_eq!((code, out.as_str()), (1, "so far"));
    assert!(err.starts_with("trap: unreachable"), "{err}");
}

#[test]
fn a_program_without_memory_is_told_so() {
    let engine = Engine::default();
    let text = r#"(module (import "wasi_snapshot_preview1" "sched_yield" (func $f (result i32)))
        (func (export "_start") (drop (call $f))))"#;
    let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
    let console = console(Cursor::new(""), &Shared::default(), &Shared::default());
    let wasi = Wasi::new();
    let mut store = Store::new(
        &engine,
        State {
            console,
            wasi,
            clock: Default::default(),
        },
    )
    .unwrap();
    let e = wasi::run_command(&mut store, &module).unwrap_err();
    assert!(e.to_string().contains("a memory named `memory`"), "{e}");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let Err(e) = Wasi::new().preopen("/no/such/directory".as_ref(), "/") else {
        panic!("it is there");
    };
    assert!(e.to_string().contains("/no/such/directory"), "{e}");
}

/// The tests below keep names at fixed places: `one` at 256, `two` at 272, `three` at 288.
const NAMES: &str = r#"
    (data (i32.const 256) "one") (data (i32.const 272) "two") (data (i32.const 288) "three")
    (func $open_one (param $rights i64) (result i32)
        (call $expect (call $open (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 3) (i32.const 1)
            (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 16)) (i32.const 0))
        (i32.load (i32.const 16)))"#;

#[test]
fn a_link_is_another_name_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("one"), "text").unwrap();
    // To `two`; then to a name that exists (EXIST), from one that does not (NOENT), to a name with a slash (NOENT).
    let text = format!(
        r#"{NAMES} (data (i32.const 304) "new/")
        (func $to (param $from i32) (param $name i32) (param $size i32) (result i32)
            (call $link (i32.const 3) (i32.const 0) (local.get $from) (i32.const 3) (i32.const 3) (local.get $name)
                (local.get $size)))
        (func (export "_start")
            (call $expect (call $to (i32.const 256) (i32.const 272) (i32.const 3)) (i32.const 0))
            (call $expect (call $to (i32.const 256) (i32.const 272) (i32.const 3)) (i32.const 20))
            (call $expect (call $to (i32.const 304) (i32.const 288) (i32.const 5)) (i32.const 44))
            (call $exit (call $to (i32.const 256) (i32.const 304) (i32.const 4))))"#
    );
    assert_eq!(code(&text, below(directory.path())), 44);
    fs::write(at("one"), "changed").unwrap();
    assert_eq!(fs::read_to_string(at("two")).unwrap(), "changed");
    assert!(!at("three").exists() && !at("new").exists());
}

#[test]
fn a_link_leads_out_of_a_directory_by_neither_name() {
    let outside = tempfile::tempdir().unwrap();
    let directory = outside.path().join("in");
    fs::create_dir(&directory).unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::write(directory.join("one"), "").unwrap();
    let text = format!(
        r#"{NAMES} (data (i32.const 304) "../secret") (data (i32.const 320) "../taken")
        (func (export "_start")
            (call $expect (call $link (i32.const 3) (i32.const 0) (i32.const 304) (i32.const 9) (i32.const 3) (i32.const 272)
                (i32.const 3)) (i32.const 76))
            (call $exit (call $link (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 3) (i32.const 3) (i32.const 320)
                (i32.const 8))))"#
    );
    assert_eq!(code(&text, below(&directory)), 76);
    assert!(!directory.join("two").exists() && !outside.path().join("taken").exists());
}

#[test]
fn a_symbolic_link_is_made_and_read_and_leads_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("three"), "").unwrap();
    // `one` leads to `three`. Its text is read whole, and as far as there is room; a file that is no link is INVAL. A link with
    // an absolute path is refused; one that leads up is made, and refused when it is followed.
    let text = format!(
        r#"{NAMES} (data (i32.const 304) "/etc") (data (i32.const 320) "../up")
        (func $make (param $target i32) (param $size i32) (param $name i32) (result i32)
            (call $symlink (local.get $target) (local.get $size) (i32.const 3) (local.get $name) (i32.const 3)))
        (func $read_one (param $room i32) (result i32)
            (call $readlink (i32.const 3) (i32.const 256) (i32.const 3) (i32.const 1024) (local.get $room) (i32.const 24)))
        (func (export "_start")
            (call $expect (call $make (i32.const 288) (i32.const 5) (i32.const 256)) (i32.const 0))
            (call $expect (call $make (i32.const 288) (i32.const 5) (i32.const 256)) (i32.const 20))
            (call $expect (call $read_one (i32.const 100)) (i32.const 0))
            (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 24)))
            (call $expect (call $read_one (i32.const 2)) (i32.const 0))
            (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 24)))
            (call $expect (call $readlink (i32.const 3) (i32.const 288) (i32.const 5) (i32.const 1024) (i32.const 9)
                (i32.const 24)) (i32.const 28))
            (call $expect (call $make (i32.const 304) (i32.const 4) (i32.const 272)) (i32.const 76))
            (call $expect (call $make (i32.const 320) (i32.const 5) (i32.const 272)) (i32.const 0))
            (call $exit (call $open (i32.const 3) (i32.const 1) (i32.const 272) (i32.const 3) (i32.const 0) (i64.const 2)
                (i64.const 0) (i32.const 0) (i32.const 16))))"#
    );
    let (code, out, err) = run(&text, below(directory.path()), "");
    assert_eq!((code, out.as_str(), err.as_str()), (76, "threeth", ""));
    let link = fs::read_link(directory.path().join("one")).unwrap();
    assert_eq!(link, Path::new("three"));
}

#[test]
fn reads_and_writes_at_a_place_leave_the_position_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("one"), "0123456789").unwrap();
    // Rights to read, to seek, to tell and to write.
    let text = format!(
        r#"{NAMES} {BUFFER}
        (func (export "_start") (local $fd i32)
            (local.set $fd (call $open_one (i64.const 0x66)))
            (call $buffer (i32.const 272) (i32.const 3))
            (call $expect (call $pwrite (local.get $fd) (i32.const 32) (i32.const 1) (i64.const 4) (i32.const 40)) (i32.const 0))
            (call $expect (i32.load (i32.const 40)) (i32.const 3))
            (call $buffer (i32.const 1024) (i32.const 5))
            (call $expect (call $pread (local.get $fd) (i32.const 32) (i32.const 1) (i64.const 3) (i32.const 40)) (i32.const 0))
            (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 40)))
            ;; At the end there is nothing, and beyond it what is written leaves a hole.
            (call $expect (call $pread (local.get $fd) (i32.const 32) (i32.const 1) (i64.const 10) (i32.const 40)) (i32.const 0))
            (call $expect (i32.load (i32.const 40)) (i32.const 0))
            (call $buffer (i32.const 256) (i32.const 3))
            (call $expect (call $pwrite (local.get $fd) (i32.const 32) (i32.const 1) (i64.const 12) (i32.const 40)) (i32.const 0))
            (call $expect (call $tell (local.get $fd) (i32.const 48)) (i32.const 0))
            (call $expect (i32.wrap_i64 (i64.load (i32.const 48))) (i32.const 0))
            ;; No such place; a stream has none (SPIPE).
            (call $expect (call $pread (local.get $fd) (i32.const 32) (i32.const 1) (i64.const -1) (i32.const 40)) (i32.const 28))
            (call $exit (call $pwrite (i32.const 1) (i32.const 32) (i32.const 1) (i64.const 0) (i32.const 40))))"#
    );
    let (code, out, err) = run(&text, below(directory.path()), "");
    assert_eq!((code, out.as_str(), err.as_str()), (70, "3two7", ""));
    let file = fs::read(directory.path().join("one")).unwrap();
    assert_eq!(file, b"0123two789\0\0one");
}

/// Sets the list of buffers at 32 to one of them.
const BUFFER: &str = r#"(func $buffer (param $at i32) (param $size i32)
    (i32.store (i32.const 32) (local.get $at)) (i32.store (i32.const 36) (local.get $size)))"#;

#[test]
fn room_is_made_for_a_file_before_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("one"), "text").unwrap();
    // The right to allocate; then without it; then no room of no size (INVAL).
    let text = format!(
        r#"{NAMES}
        (func (export "_start")
            (call $expect (call $allocate (call $open_one (i64.const 0x140)) (i64.const 2) (i64.const 1000)) (i32.const 0))
            (call $expect (call $allocate (call $open_one (i64.const 0x40)) (i64.const 0) (i64.const 1)) (i32.const 76))
            (call $expect (call $allocate (i32.const 1) (i64.const 0) (i64.const 1)) (i32.const 70))
            (call $expect (call $allocate (i32.const 3) (i64.const 0) (i64.const 1)) (i32.const 31))
            (call $exit (call $allocate (call $open_one (i64.const 0x140)) (i64.const 0) (i64.const 0))))"#
    );
    assert_eq!(code(&text, below(directory.path())), 28);
    let file = fs::read(directory.path().join("one")).unwrap();
    assert_eq!((file.len(), &file[..5]), (1002, &b"text\0"[..]));
}

#[test]
fn a_descriptor_takes_the_number_of_another() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("one"), "from the file").unwrap();
    // The file becomes standard input. Its old number is free, and an unused one is not valid (BADF).
    let text = format!(
        r#"{NAMES} {BUFFER}
        (func (export "_start") (local $fd i32)
            (local.set $fd (call $open_one (i64.const 2)))
            (call $expect (call $renumber (local.get $fd) (i32.const 0)) (i32.const 0))
            (call $buffer (i32.const 1024) (i32.const 100))
            (call $expect (call $read (i32.const 0) (i32.const 32) (i32.const 1) (i32.const 40)) (i32.const 0))
            (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 40)))
            (call $expect (call $read (local.get $fd) (i32.const 32) (i32.const 1) (i32.const 40)) (i32.const 8))
            (call $expect (call $renumber (i32.const 0) (i32.const 77)) (i32.const 8))
            (call $expect (call $renumber (i32.const 77) (i32.const 0)) (i32.const 8))
            ;; Onto itself, nothing happens.
            (call $expect (call $renumber (i32.const 0) (i32.const 0)) (i32.const 0))
            (call $exit (call $close (i32.const 0))))"#
    );
    let (code, out, err) = run(&text, below(directory.path()), "from the console");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "from the file", ""));
}

#[test]
fn a_program_may_do_its_work_while_it_is_initialised() {
    let says = |name: &str, text: &str| {
        format!(
            r#"(func (export "{name}") (call $print (i32.const 1) (i32.const {text}) (i32.const 3)))"#
        )
    };
    let both = format!(
        "{NAMES} {} {}",
        says("_initialize", "256"),
        says("_start", "272")
    );
    assert_eq!(run(&both, Wasi::new(), "").1, "two", "a command starts");
    let library = format!("{NAMES} {}", says("_initialize", "256"));
    assert_eq!(run(&library, Wasi::new(), "").1, "one");
}

/// A program without WASI, by what compilers import for it by default.
fn bare(text: &str) -> (Result<i32, varve_runtime::Error>, String) {
    let engine = Engine::default();
    let module = Module::new(&engine, &wat::parse_str(text).unwrap()).unwrap();
    let (out, err) = (Shared::default(), Shared::default());
    let state = State {
        console: console(Cursor::new(Vec::new()), &out, &err),
        wasi: Wasi::new().seed(1),
        clock: Clock::default(),
    };
    let mut store = Store::new(&engine, state).unwrap();
    let ended = wasi::run_command(&mut store, &module);
    (ended, out.text())
}

#[test]
fn programs_of_moonbit_print_by_characters() {
    let (ended, out) = bare(
        r#"(module (import "spectest" "print_char" (func $put (param i32)))
            (func (export "_start")
                (call $put (i32.const 0xd83c)) (call $put (i32.const 0xdf0d)) (call $put (i32.const 33))))"#,
    );
    assert_eq!((ended.unwrap(), &*out), (0, "\u{1f30d}!"));
}

#[test]
fn programs_of_assemblyscript_end_with_their_message() {
    let (ended, _) = bare(
        r#"(module (import "env" "abort" (func $abort (param i32 i32 i32 i32))) (import "env" "seed" (func $seed (result f64)))
            (memory (export "memory") 1)
            (data (i32.const 12) "\04\00\00\00n\00o\00") (data (i32.const 28) "\08\00\00\00a\00.\00t\00s\00")
            (func (export "_start")
                (drop (call $seed)) (call $abort (i32.const 16) (i32.const 32) (i32.const 7) (i32.const 5))))"#,
    );
    let said = ended.unwrap_err().to_string();
    assert!(said.contains("aborted at a.ts:7:5: no"), "{said}");
    let (ended, _) = bare(
        r#"(module (import "env" "abort" (func $abort (param i32 i32 i32 i32)))
            (func (export "_start")
                (call $abort (i32.const 0) (i32.const -1) (i32.const 7) (i32.const 5))))"#,
    );
    let said = ended.unwrap_err().to_string();
    assert!(said.contains("an unknown file:7:5: no message"), "{said}");
}

/// Hears of every access.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Op>>>);

impl Sink for Ear {
    fn take(&mut self, ops: &[Op]) -> bool {
        self.0.lock().unwrap().extend_from_slice(ops);
        true
    }

    fn bind(&mut self, _: u64, _: u64, _: u8) {}

    fn now(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// The system copies between its cache of files and the program's memory: a page at a time, after a call. Transfers through pipes and terminals are
/// not recorded.
#[test]
fn copies_of_files_are_told_to_who_observes() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        (data (i32.const 64) "/data/a")
        (func (export "_start")
            (i32.store (i32.const 0) (i32.const 4096))
            (i32.store (i32.const 4) (i32.const 6000))
            ;; Made, written from its start on, and read from byte 5000 on; then a byte is written at 9000.
            (call $expect
                (call $open (i32.const 3) (i32.const 0) (i32.const 70) (i32.const 1) (i32.const 1) (i64.const 0x1fffffff)
                    (i64.const 0) (i32.const 0) (i32.const 32))
                (i32.const 0))
            (call $expect (call $write (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i32.const 8)) (i32.const 0))
            (call $expect
                (call $pread (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i64.const 5000) (i32.const 8))
                (i32.const 0))
            (i32.store (i32.const 4) (i32.const 1))
            (call $expect
                (call $pwrite (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i64.const 9000) (i32.const 8))
                (i32.const 0))
            (call $print (i32.const 1) (i32.const 64) (i32.const 5)))"#;
    let ear = Ear::default();
    let sink: Box<dyn Sink> = Box::new(ear.clone());
    let (code, out, err) = run_in(text, below(folder.path()), Clock::default(), "", Some(sink));
    assert_eq!((code, &out[..], &err[..]), (0, "/data", ""));
    let ops = ear.0.lock().unwrap();
    let file = |op: &&Op| Part::at(op.addr) == Part::Files;
    let first = ops.iter().find(file).unwrap().addr;
    let told: Vec<_> = ops
        .iter()
        .filter(file)
        .map(|op| (op.kind, op.addr - first, op.size))
        .collect();
    assert_eq!(
        told,
        [
            (Kind::Write, 0, 4096),
            (Kind::Write, 4096, 6000 - 4096),
            // Up to the end of a page of the model, and to the end of the file.
            (Kind::Read, 5000, 1000),
            (Kind::Write, 9000, 1),
        ]
    );
    // The program's own memory is the other end of each copy.
    let own = |kind| {
        let of = ops.iter().filter(|op| op.kind == kind && op.size > 8);
        of.filter(|op| Part::at(op.addr) == Part::Linear)
            .map(|op| u64::from(op.size))
            .sum::<u64>()
    };
    assert_eq!((own(Kind::Read), own(Kind::Write)), (6000, 1000));
    // Each call is one of the system's, of some thousand instructions.
    let calls = ops.iter().filter(|op| op.instructions >= 2000).count();
    assert_eq!(calls, 3);
}
