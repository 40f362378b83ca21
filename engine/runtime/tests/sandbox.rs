//! Stories of programs that try to take more than they were given.

mod common;

use common::{Shared, console, ended};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use varve_runtime::host::{State, Wasi, wasi};
use varve_runtime::{Clock, Config, Engine, Error, Module, Store, Tier, TrapKind};

const NOTCAPABLE: i32 = 76;
const ROFS: i32 = 69;
const MFILE: i32 = 33;

/// The WASI imports of the programs here, and a memory of a page.
const PRELUDE: &str = r#"
    (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_filestat_set_times" (func $times (param i32 i64 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_filestat_set_times" (func $path_times (param i32 i32 i32 i32 i64 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_remove_directory" (func $rmdir (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_link" (func $link (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    ;; "file" and "made", "sub", and the path of the race.
    (data (i32.const 256) "file") (data (i32.const 272) "made") (data (i32.const 288) "sub") (data (i32.const 304) "swapped/file")
    (func $expect (param $got i32) (param $wanted i32)
        (if (i32.ne (local.get $got) (local.get $wanted)) (then (call $exit (i32.add (i32.const 100) (local.get $got))))))
    ;; Opens the file with rights; ends unless that is answered so.
    (func $opens (param $folder i32) (param $how i32) (param $rights i64) (param $wanted i32)
        (call $expect (call $open (local.get $folder) (i32.const 1) (i32.const 256) (i32.const 4) (local.get $how)
            (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 16)) (local.get $wanted)))
"#;

fn module(engine: &Engine, text: &str) -> Module {
    let bytes = wat::parse_str(format!("(module {PRELUDE} {text})")).unwrap();
    Module::new(engine, &bytes).unwrap()
}

fn store(engine: &Engine, wasi: Wasi) -> Store<State> {
    printing(engine, wasi, &Shared::default())
}

fn printing(engine: &Engine, wasi: Wasi, out: &Shared) -> Store<State> {
    let state = State {
        console: console(std::io::empty(), out, out),
        wasi,
        clock: Clock::default(),
    };
    Store::new(engine, state).unwrap()
}

/// A program's exit code.
fn code(text: &str, wasi: Wasi) -> i32 {
    let engine = Engine::default();
    let out = Shared::default();
    let mut store = printing(&engine, wasi, &out);
    let (code, last) = ended(wasi::run_command(&mut store, &module(&engine, text)));
    assert_eq!(out.text() + &last, "");
    code
}

#[test]
fn a_folder_to_be_read_is_read_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let free = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "as it was").unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(free.path().join("file"), "").unwrap();
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    let wasi = Wasi::new()
        .preopen_read_only(folder.path(), "data")
        .unwrap()
        .preopen(free.path(), "free")
        .unwrap();
    let text = format!(
        r#"(func (export "_start")
            ;; Reading: rights to read and to set times, which reading does not use.
            (call $opens (i32.const 3) (i32.const 0) (i64.const {read}) (i32.const 0))
            (i32.store (i32.const 0) (i32.const 1024))
            (i32.store (i32.const 4) (i32.const 100))
            (call $expect (call $read (i32.load (i32.const 16)) (i32.const 0) (i32.const 1) (i32.const 8)) (i32.const 0))
            (call $expect (i32.load (i32.const 8)) (i32.const 9))
            (call $expect (call $times (i32.load (i32.const 16)) (i64.const 0) (i64.const 0) (i32.const 5)) (i32.const {ROFS}))
            (call $expect (call $write (i32.load (i32.const 16)) (i32.const 0) (i32.const 1) (i32.const 8)) (i32.const {ROFS}))
            ;; Writing, making, truncating.
            (call $opens (i32.const 3) (i32.const 0) (i64.const 66) (i32.const {ROFS}))
            (call $opens (i32.const 3) (i32.const 1) (i64.const 2) (i32.const {ROFS}))
            (call $opens (i32.const 3) (i32.const 8) (i64.const 2) (i32.const {ROFS}))
            (call $expect (call $mkdir (i32.const 3) (i32.const 272) (i32.const 4)) (i32.const {ROFS}))
            (call $expect (call $rmdir (i32.const 3) (i32.const 288) (i32.const 3)) (i32.const {ROFS}))
            (call $expect (call $unlink (i32.const 3) (i32.const 256) (i32.const 4)) (i32.const {ROFS}))
            (call $expect (call $path_times (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 4) (i64.const 0) (i64.const 0)
                (i32.const 5)) (i32.const {ROFS}))
            (call $expect (call $symlink (i32.const 256) (i32.const 4) (i32.const 3) (i32.const 272) (i32.const 4)) (i32.const {ROFS}))
            ;; Out of the folder and into it, and a second name through which it could be written to.
            (call $expect (call $rename (i32.const 3) (i32.const 256) (i32.const 4) (i32.const 4) (i32.const 272) (i32.const 4))
                (i32.const {ROFS}))
            (call $expect (call $rename (i32.const 4) (i32.const 256) (i32.const 4) (i32.const 3) (i32.const 272) (i32.const 4))
                (i32.const {ROFS}))
            (call $expect (call $link (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 4) (i32.const 4) (i32.const 272)
                (i32.const 4)) (i32.const {ROFS}))
            ;; What is below is as the folder.
            (call $expect (call $open (i32.const 3) (i32.const 0) (i32.const 288) (i32.const 3) (i32.const 2) (i64.const {all})
                (i64.const {all}) (i32.const 0) (i32.const 16)) (i32.const 0))
            (call $expect (call $mkdir (i32.load (i32.const 16)) (i32.const 272) (i32.const 4)) (i32.const {ROFS}))
            (call $expect (call $times (i32.load (i32.const 16)) (i64.const 0) (i64.const 0) (i32.const 5)) (i32.const {ROFS}))
            ;; The other folder can be changed.
            (call $expect (call $mkdir (i32.const 4) (i32.const 272) (i32.const 4)) (i32.const 0)))"#,
        read = (1u64 << 1) | (1 << 23) | (1 << 21),
        all = ((1u64 << 30) - 1) & !(1 << 6),
    );
    assert_eq!(code(&text, wasi), 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "as it was");
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 2, "nothing came and nothing went");
    assert_eq!(fs::read_dir(folder.path().join("sub")).unwrap().count(), 0);
}

#[test]
fn ten_thousand_files_are_an_error_and_not_the_end() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    // Opens until it is refused, closes one, opens it again: the code says with what it was refused.
    let text = r#"(func (export "_start") (local $n i32) (local $e i32)
        (block $full (loop $more
            (local.set $e (call $open (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 4) (i32.const 0) (i64.const 2)
                (i64.const 0) (i32.const 0) (i32.const 16)))
            (br_if $full (local.get $e))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $n) (i32.const 10000)))))
        (call $expect (i32.le_u (local.get $n) (i32.const 1020)) (i32.const 1))
        (call $expect (call $close (i32.const 10)) (i32.const 0))
        (call $opens (i32.const 3) (i32.const 0) (i64.const 2) (i32.const 0))
        ;; Nothing is made where nothing can be opened.
        (call $expect (call $open (i32.const 3) (i32.const 0) (i32.const 272) (i32.const 4) (i32.const 1) (i64.const 64)
                (i64.const 0) (i32.const 0) (i32.const 16)) (local.get $e))
        (call $exit (local.get $e)))"#;
    let wasi = Wasi::new().preopen(folder.path(), ".").unwrap();
    assert_eq!(code(text, wasi), MFILE);
}

/// Others swap a folder with a link that leads out, all the time; the program never reads what is there.
#[test]
fn a_race_of_renames_never_leads_out() {
    let top = tempfile::tempdir().unwrap();
    let (inside, outside) = (top.path().join("inside"), top.path().join("outside"));
    for (folder, text) in [(&inside.join("swapped"), "I"), (&outside, "S")] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("file"), text).unwrap();
    }
    let over = AtomicBool::new(false);
    let swap = |inside: &Path| {
        let (folder, kept) = (inside.join("swapped"), inside.join("kept"));
        let mut swaps = 0;
        while !over.load(Ordering::Relaxed) {
            fs::rename(&folder, &kept).unwrap();
            std::os::unix::fs::symlink("../outside", &folder).unwrap();
            fs::remove_file(&folder).unwrap();
            fs::rename(&kept, &folder).unwrap();
            swaps += 1;
        }
        swaps
    };
    // Opens and reads 20000 times, and until it has read the file: the others may have no processor for a while. The code: 1 if it ever read the secret, 0 if it read the file at least once, else 2.
    let text = r#"(func (export "_start") (local $n i32) (local $own i32)
        (i32.store (i32.const 0) (i32.const 1024))
        (i32.store (i32.const 4) (i32.const 1))
        (loop $more
            (if (i32.eqz (call $open (i32.const 3) (i32.const 1) (i32.const 304) (i32.const 12) (i32.const 0) (i64.const 2)
                    (i64.const 0) (i32.const 0) (i32.const 16)))
                (then
                    (call $expect (call $read (i32.load (i32.const 16)) (i32.const 0) (i32.const 1) (i32.const 8)) (i32.const 0))
                    (if (i32.eq (i32.load8_u (i32.const 1024)) (i32.const 83)) (then (call $exit (i32.const 1))))
                    (local.set $own (i32.const 1))
                    (call $expect (call $close (i32.load (i32.const 16))) (i32.const 0))))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $n) (i32.const 20000)))
            (br_if $more (i32.and (i32.eqz (local.get $own)) (i32.lt_u (local.get $n) (i32.const 5000000)))))
        (if (i32.eqz (local.get $own)) (then (call $exit (i32.const 2)))))"#;
    thread::scope(|scope| {
        let swaps = scope.spawn(|| swap(&inside));
        let wasi = Wasi::new().preopen(&inside, ".").unwrap();
        let code = code(text, wasi);
        over.store(true, Ordering::Relaxed);
        assert_eq!(code, 0);
        assert!(swaps.join().unwrap() > 0, "no swap raced");
    });
}

#[test]
fn who_started_a_program_hears_where_it_was_refused() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("in");
    fs::create_dir(&folder).unwrap();
    let text = format!(
        r#"(data (i32.const 512) "../x") (data (i32.const 528) "etc/none")
        (func $try (param i32 i32 i32) (call $expect (call $open (i32.const 3) (i32.const 1) (local.get 0) (local.get 1) (i32.const 0)
            (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16)) (local.get 2)))
        (func (export "_start")
            (call $try (i32.const 512) (i32.const 4) (i32.const {NOTCAPABLE}))
            (call $try (i32.const 512) (i32.const 4) (i32.const {NOTCAPABLE}))
            (call $try (i32.const 528) (i32.const 8) (i32.const 44)))"#
    );
    let engine = Engine::default();
    let wasi = Wasi::new().preopen(&folder, ".").unwrap();
    let mut store = store(&engine, wasi);
    wasi::run_command(&mut store, &module(&engine, &text)).unwrap();
    let refused = store.data().wasi.refused().iter();
    let refused: Vec<_> = refused
        .map(|r| (String::from_utf8_lossy(&r.path).into_owned(), r.missing))
        .collect();
    let expected = [("../x".to_string(), false), ("etc/none".to_string(), true)];
    assert_eq!(refused, expected, "each once");
}

/// Loops of each kind, in code of each compiler.
#[test]
fn a_loop_without_end_is_stopped() {
    let loops = [
        "(loop $l br $l)",
        // With memory and calls, and enough of them to become hot.
        "(loop $l (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1))) (br_if $l (i32.const 1)))",
        "(loop $l (drop (call $close (i32.const 900))) (br $l))",
        "(loop $o (loop $i (br_if $i (i32.const 0))) (br $o))",
        // A call in the place of the return is a loop too.
        "(return_call $again)",
    ];
    for tier in [Tier::Baseline, Tier::Optimizing, Tier::Auto] {
        let engine = Engine::new(Config {
            interruptible: true,
            hot: 100,
            tier,
            ..Config::default()
        });
        for body in loops {
            let text = format!(r#"(func $again (export "_start") {body})"#);
            let mut store = store(&engine, Wasi::new());
            let interrupt = store.interrupt();
            let stopper = thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                interrupt.now();
            });
            let Err(Error::Trap(trap)) = wasi::run_command(&mut store, &module(&engine, &text))
            else {
                panic!("{body} ended");
            };
            stopper.join().unwrap();
            assert_eq!(trap.kind, TrapKind::Interrupted, "{tier:?} {body}");
            assert!(!trap.frames.is_empty(), "{tier:?} {body}");
            // Nothing runs in this store any more.
            let again =
                wasi::run_command(&mut store, &module(&engine, r#"(func (export "_start"))"#));
            assert!(matches!(again, Err(Error::Trap(t)) if t.kind == TrapKind::Interrupted));
        }
    }
}

#[test]
fn to_stop_a_program_that_is_gone_does_nothing() {
    let engine = Engine::default();
    let store = store(&engine, Wasi::new());
    let interrupt = store.interrupt();
    drop(store);
    interrupt.now();
}

#[test]
fn recursion_without_end_is_a_trap() {
    let engine = Engine::default();
    let mut store = store(&engine, Wasi::new());
    let text =
        r#"(func $deeper (export "_start") (call $deeper) (drop (call $close (i32.const 900))))"#;
    let Err(Error::Trap(trap)) = wasi::run_command(&mut store, &module(&engine, text)) else {
        panic!("it came back");
    };
    assert_eq!(trap.kind, TrapKind::StackOverflow);
}

fn small() -> Engine {
    Engine::new(Config {
        linear_max: 1 << 20,
        ..Config::default()
    })
}

#[test]
fn memories_and_tables_share_what_a_store_may_have() {
    let engine = small();
    // 16 pages in all: one is there, a table takes a 16th of a page, and a second memory is its own.
    let text = r#"(memory $other 3) (table $t 1024 funcref)
        (func (export "_start")
            (call $expect (memory.grow (i32.const 12)) (i32.const -1))
            (call $expect (memory.grow (i32.const 11)) (i32.const 1))
            (call $expect (memory.grow $other (i32.const 1)) (i32.const -1))
            (call $expect (table.grow $t (ref.null func) (i32.const 20000)) (i32.const -1))
            (call $expect (table.grow $t (ref.null func) (i32.const 1000)) (i32.const 1024))
            ;; Refused again and again, it goes on.
            (loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))))"#;
    let mut store = store(&engine, Wasi::new());
    let (code, last) = ended(wasi::run_command(&mut store, &module(&engine, text)));
    assert_eq!((code, last.as_str()), (0, ""));
}

#[test]
fn what_is_too_large_from_the_beginning_is_refused_by_its_option() {
    let engine = small();
    for text in ["(memory $other 16)", "(table $t 262144 funcref)"] {
        let text = format!(r#"{text} (func (export "_start"))"#);
        let mut store = store(&engine, Wasi::new());
        let e = wasi::run_command(&mut store, &module(&engine, &text)).unwrap_err();
        assert!(matches!(e, Error::Usage(_)), "{e:?}");
        assert!(e.to_string().contains("--heap-max"), "{e}");
    }
}
