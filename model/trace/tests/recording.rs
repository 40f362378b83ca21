//! Real programs under the recorder: threads, crashes, forks, call sites, and counts that agree with valgrind's.
//!
//! Programs are compiled from `tests/programs` with the system's C compiler. A test whose tool is missing says so and
//! passes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use varve_access::{Kind, Op, Program};
use varve_trace::host::{Language, Mode, Recorder, RecorderOptions, compile};
use varve_trace::{End, Event, LoadedModule, SiteInfo, TraceInfo, TraceProgram, TraceReader};

fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        varve_skip::skip!("needs {tool}");
    }
    found
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// A test's folder, for its programs and traces.
struct Folder(tempfile::TempDir);

impl Folder {
    /// A new one, if all of these tools are installed.
    fn with(tools: &[&str]) -> Option<Folder> {
        let all = tools.iter().all(|tool| has(tool));
        all.then(|| Folder(tempfile::tempdir().unwrap()))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles a program with a compiler of the system.
    fn compiled(&self, program: &str, compiler: &str, words: &[&str], source: &Path) -> PathBuf {
        let program = self.path().join(program);
        let mut command = Command::new(compiler);
        command.args(words).arg("-o").args([&program, source]);
        assert!(command.status().unwrap().success());
        program
    }

    /// Compiles a test program as anyone would.
    fn plain(&self, name: &str) -> PathBuf {
        let words = ["-O1", "-fno-omit-frame-pointer", "-pthread"];
        self.compiled(name, "cc", &words, &source(&format!("{name}.c")))
    }

    /// Compiles it with the probe, in a folder of its own.
    fn probed(&self, name: &str) -> PathBuf {
        let folder = self.path().join("compiled");
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join(name);
        let words = [
            "-O1".into(),
            "-g".into(),
            "-o".into(),
            program.clone().into_os_string(),
            source(&format!("{name}.c")).into(),
        ];
        assert!(compile(Language::C, &words).unwrap().success());
        program
    }

    /// Records `program` with `words` and opens the trace.
    fn record(&self, mode: Mode, program: &Path, words: &[&str]) -> (End, TraceReader) {
        self.record_with(options(mode), program, words)
    }

    fn record_with(
        &self,
        options: RecorderOptions,
        program: &Path,
        words: &[&str],
    ) -> (End, TraceReader) {
        let mut command = vec![program.as_os_str().to_owned()];
        command.extend(words.iter().map(OsString::from));
        let path = self.path().join("recorded.trace");
        let recorder = Recorder::start(&command, options).unwrap();
        let end = recorder.record_to(&path).unwrap();
        (end, TraceReader::open(&path).unwrap())
    }
}

const QEMU_AND_CC: &[&str] = &["qemu-x86_64", "cc"];

fn options(mode: Mode) -> RecorderOptions {
    RecorderOptions {
        mode,
        ..RecorderOptions::default()
    }
}

/// A recorder of a program without arguments.
fn start(program: PathBuf, options: RecorderOptions) -> Recorder {
    Recorder::start(&[program.into_os_string()], options).unwrap()
}

/// The ops of a thread, from block to block.
fn ops(reader: &TraceReader, thread: u32) -> impl Iterator<Item = Op> {
    let blocks = reader.thread(thread);
    blocks.flat_map(|block| block.unwrap().ops)
}

/// Its events likewise.
fn events(reader: &TraceReader, thread: u32) -> impl Iterator<Item = Event> {
    let blocks = reader.thread(thread);
    blocks.flat_map(|block| block.unwrap().events.into_iter().map(|at| at.event))
}

/// The modules at paths that end so.
fn modules<'a>(end: &'a End, path: &'a str) -> impl Iterator<Item = &'a LoadedModule> {
    let modules = end.modules.iter();
    modules.filter(move |module| module.path.ends_with(path))
}

/// Is it an update of a table of numbers of 8 bytes?
fn of_table(op: &Op) -> bool {
    op.size == 8 && matches!(op.kind, Kind::Update | Kind::Write)
}

/// The site for which `is` returns `true`.
fn site(info: &TraceInfo, is: impl Fn(&SiteInfo) -> bool) -> &SiteInfo {
    let site = info.sites.iter().find(|site| is(site));
    site.unwrap_or_else(|| panic!("no such site: {:?}", info.sites))
}

/// Accesses as lackey counts them: (loads, stores).
fn accesses(reader: &TraceReader) -> (u64, u64) {
    let info = TraceInfo::read(reader).unwrap();
    (info.reads, info.writes)
}

fn check_threads(end: &End, reader: &TraceReader, modify_accesses: u64) {
    assert_eq!(end.exit_code, Some(7));
    assert_eq!(end.warnings, Vec::<String>::new());
    assert_eq!(reader.threads(), 9, "main and twice four");
    for thread in 1..9 {
        let ops = ops(reader, thread).count() as u64;
        assert!(
            (modify_accesses..modify_accesses * 11 / 10 + 2000).contains(&ops),
            "thread {thread}: {ops}"
        );
    }
    let info = TraceInfo::read(reader).unwrap();
    let site = site(&info, |site| site.bytes == 4 * 20_000 * 8);
    assert_eq!(site.allocations, 4);
    let name = site.site.to_string();
    assert!(name.starts_with("threads!ma"), "{name}");
    assert!(site.writes >= 8 * 100_000, "{site:?}");
}

#[test]
fn threads_of_an_unmodified_program_are_recorded_with_call_sites() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let (end, reader) = folder.record(Mode::Auto, &folder.plain("threads"), &[]);
    assert_eq!(reader.header().source, "qemu");
    check_threads(&end, &reader, 100_000);
}

#[test]
fn threads_of_a_compiled_program_are_recorded_with_call_sites() {
    let Some(folder) = Folder::with(&["cc"]) else {
        return;
    };
    let program = folder.probed("threads");
    let alone = Command::new(&program).status().unwrap();
    assert_eq!(alone.code(), Some(7), "it runs alone as well");
    let (end, reader) = folder.record(Mode::Auto, &program, &[]);
    assert_eq!(reader.header().source, "compiled");
    check_threads(&end, &reader, 100_000);
    let mine = modules(&end, "/threads").next();
    assert!(mine.is_some(), "{:?}", end.modules);
}

#[test]
fn a_replay_keeps_threads_that_were_joined_before_those_that_came_after() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let (_, reader) = folder.record(Mode::Qemu, &folder.plain("threads"), &[]);
    let mut program = TraceProgram::open(reader.path()).unwrap();
    let mut first = vec![None; program.threads()];
    let mut last = vec![0; program.threads()];
    let mut alive = vec![true; program.threads()];
    for turn in 0.. {
        assert!(turn < 10_000_000, "the threads wait for each other");
        // the threads that came last are asked first, to tempt them
        for thread in (0..alive.len())
            .rev()
            .filter(|&thread| alive[thread])
            .collect::<Vec<_>>()
        {
            let mut out = Vec::with_capacity(64);
            alive[thread] = program.fill(thread, 0, &mut out);
            if out.iter().any(|op| op.kind.is_access()) {
                first[thread].get_or_insert(turn);
                last[thread] = turn;
            }
        }
        if !alive.contains(&true) {
            break;
        }
    }
    for thread in 2..=5 {
        assert!(
            first[thread].unwrap() >= last[thread - 1] - 2,
            "thread {thread} began before thread {} had ended",
            thread - 1
        );
    }
}

#[test]
fn however_a_program_ends_its_trace_is_readable_and_says_how() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let unmodified = folder.plain("ends");
    let compiled = folder.probed("ends");
    for program in [&unmodified, &compiled] {
        for (how, code, signal, warning) in [
            ("", Some(5), None, None),
            ("crash", None, Some(11), None),
            ("kill", None, Some(9), None),
            ("fork", Some(5), None, None),
            ("exec", Some(0), None, Some("exec")),
        ] {
            let (end, reader) = folder.record(Mode::Auto, program, &[how]);
            assert_eq!((end.exit_code, end.signal), (code, signal), "{how}");
            let warning = if how == "exec" && program == &unmodified {
                None
            } else {
                warning
            };
            let warned = end
                .warnings
                .iter()
                .any(|text| warning.is_some_and(|warning| text.contains(warning)));
            assert_eq!(
                (warned, end.warnings.len()),
                (warning.is_some(), usize::from(warning.is_some())),
                "{how}: {end:?}"
            );
            let rounds = if how == "fork" { 40 } else { 20 };
            let updates = rounds * 4096;
            let table = ops(&reader, 0).filter(of_table).count();
            assert!(
                (updates..updates + 20_000).contains(&table),
                "{how}: {table} of {updates}"
            );
        }
    }
}

#[test]
fn a_program_that_a_script_becomes_is_followed() {
    let Some(folder) = Folder::with(&["qemu-x86_64", "cc", "bash"]) else {
        return;
    };
    let program = folder.plain("threads");
    let script = folder.path().join("start");
    std::fs::write(
        &script,
        format!("#!/usr/bin/env bash\nexec {} \"$@\"\n", program.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (end, reader) = folder.record(Mode::Auto, &script, &[]);
    assert_eq!((end.exit_code, &end.warnings[..]), (Some(7), &[][..]));
    let info = TraceInfo::read(&reader).unwrap();
    let arrays = site(&info, |site| site.bytes == 4 * 20_000 * 8);
    assert!(
        arrays.site.module.ends_with("/threads") && arrays.writes >= 800_000,
        "{arrays:?}"
    );
}

#[test]
fn a_live_program_gives_the_same_ops_as_its_trace() {
    let Some(folder) = Folder::with(&["cc"]) else {
        return;
    };
    let program = folder.probed("ends");
    let (_, reader) = folder.record(Mode::Auto, &program, &[]);
    let recorded = ops(&reader, 0).count();
    let mut live = start(program, options(Mode::Compiled)).live();
    let mut count = 0;
    loop {
        let mut out = Vec::with_capacity(4096);
        let more = live.fill(0, 0, &mut out);
        count += out.iter().filter(|op| op.kind != Kind::Sleep).count();
        if !more {
            break;
        }
    }
    assert_eq!(count, recorded);
    assert_eq!(live.end().exit_code, Some(5));
    assert_eq!(live.failure(), None);
}

#[test]
fn threads_run_live_without_waiting_for_each_other_for_ever() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let program = folder.plain("threads");
    let options = RecorderOptions {
        max_threads: 3,
        ..options(Mode::Qemu)
    };
    let mut live = start(program, options).live();
    let mut alive = vec![true; live.threads()];
    let mut accesses = 0;
    while alive.contains(&true) {
        for (thread, alive) in alive.iter_mut().enumerate().filter(|(_, alive)| **alive) {
            let mut out = Vec::with_capacity(4096);
            *alive = live.fill(thread, 0, &mut out);
            accesses += out.iter().filter(|op| op.kind.is_access()).count();
        }
    }
    assert!(accesses > 600_000, "{accesses}");
    let end = live.end();
    assert_eq!(end.exit_code, Some(7));
    assert!(
        end.warnings.iter().any(|text| text.contains("beyond 3")),
        "{end:?}"
    );
}

#[test]
fn a_dropped_recorder_ends_its_program() {
    if !has("qemu-x86_64") {
        return;
    }
    let recorder =
        Recorder::start(&["sleep".into(), "1000".into()], RecorderOptions::default()).unwrap();
    drop(recorder); // waits for the process, so this returns only because it was killed
}

#[test]
fn a_full_disk_is_one_clear_error() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let program = folder.plain("ends");
    let recorder = start(program, RecorderOptions::default());
    let error = recorder.record_to(Path::new("/dev/full")).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("disk is full") && !error.contains('\n'),
        "{error}"
    );
}

/// Loads, stores and instructions that lackey counts in a program.
fn lackey(program: &Path, words: &[&str]) -> (u64, u64, u64) {
    let output = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--log-fd=1"])
        .arg(program)
        .args(words)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts = (0, 0, 0);
    for line in text.lines() {
        match line.get(..3) {
            Some("I  ") => counts.2 += 1,
            Some(" L ") => counts.0 += 1,
            Some(" S ") => counts.1 += 1,
            Some(" M ") => {
                counts.0 += 1;
                counts.1 += 1;
            }
            _ => {}
        }
    }
    counts
}

#[test]
fn counts_agree_with_valgrind() {
    let Some(folder) = Folder::with(&["qemu-x86_64", "valgrind", "cc"]) else {
        return;
    };
    let program = folder.plain("ends");
    let recorded = RecorderOptions {
        allocations: false,
        ..RecorderOptions::default()
    };
    let (_, reader) = folder.record_with(recorded, &program, &[]);
    let (reads, writes) = accesses(&reader);
    let instructions = reader.end().unwrap().instructions;
    let (loads, stores, counted) = lackey(&program, &[]);
    // valgrind's loader and the processor that QEMU shows to it differ, which changes a few thousand of them
    let near = |a: u64, b: u64| a.abs_diff(b) < b / 20;
    assert!(near(reads, loads), "reads: {reads}, valgrind {loads}");
    assert!(near(writes, stores), "writes: {writes}, valgrind {stores}");
    assert!(
        near(instructions, counted),
        "instructions: {instructions}, valgrind {counted}"
    );
    println!(
        "reads {reads}/{loads}, writes {writes}/{stores}, instructions {instructions}/{counted}"
    );
}

#[test]
fn allocation_events_are_balanced() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let (_, reader) = folder.record(Mode::Qemu, &folder.plain("threads"), &[]);
    let mut live = std::collections::HashSet::new();
    let mut arrays = 0;
    for event in events(&reader, 0) {
        match event {
            Event::Alloc { addr, bytes, .. } => {
                arrays += u64::from(bytes == 160_000);
                assert!(live.insert(addr), "{addr:#x} was alive");
            }
            Event::Free { addr } => assert!(live.remove(&addr), "{addr:#x} was not alive"),
            _ => {}
        }
    }
    assert_eq!(arrays, 4);
}

#[test]
fn children_are_followed_as_processes_of_their_own() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let unmodified = folder.plain("children");
    let compiled = folder.probed("children");
    for program in [&unmodified, &compiled] {
        let (end, reader) = folder.record(Mode::Auto, program, &[]);
        assert_eq!((end.exit_code, &end.warnings[..]), (Some(0), &[][..]));
        let info = TraceInfo::read(&reader).unwrap();
        let mut tables = std::collections::HashSet::new();
        let mut workers = 0;
        for thread in 0..reader.threads() {
            let updates = ops(&reader, thread).filter(of_table);
            let updates: Vec<u64> = updates.map(|op| op.addr).collect();
            if updates.len() >= 20 * 4096 {
                workers += 1;
                tables.insert(updates[updates.len() / 2] >> 12);
            }
        }
        assert_eq!(workers, 4, "{info:?}");
        assert_eq!(tables.len(), 4, "each has pages of its own");
        assert!(info.processes >= 4, "{info:?}");
    }
}

#[test]
fn addresses_that_follow_from_others_are_those_that_qemu_says() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let program = folder.plain("ends");
    let [some, all] = [false, true].map(|ask_all| {
        let options = RecorderOptions {
            ask_all,
            ..options(Mode::Qemu)
        };
        let (_, reader) = folder.record_with(options, &program, &[]);
        // the program's own random numbers, which name temporary files, differ from run to run
        ops(&reader, 0)
            .filter(|op| op.size > 1)
            .collect::<Vec<Op>>()
    });
    let differs = some.iter().zip(&all).position(|(a, b)| a != b);
    let near = differs.map(|at| {
        let around = at.saturating_sub(3)..at + 3;
        (at, &some[around.clone()], &all[around])
    });
    assert_eq!(near, None);
    assert_eq!(some.len(), all.len());
}

#[test]
fn without_frame_pointers_sites_are_told_apart_by_caller_and_line() {
    let Some(folder) = Folder::with(&["qemu-x86_64", "g++"]) else {
        return;
    };
    let program = folder.compiled("callers", "g++", &["-O2", "-g"], &source("callers.cc"));
    let (end, reader) = folder.record(Mode::Auto, &program, &[]);
    let info = TraceInfo::read(&reader).unwrap();
    let named = |name: &str| site(&info, |site| site.name == name);
    let left = named("helper (callers.cc:10) < left (callers.cc:16)");
    let right = named("helper (callers.cc:10) < right (callers.cc:23)");
    assert_eq!((left.bytes, right.bytes), (32_000, 64_000));
    assert!(
        named("grow (callers.cc:32)").allocations > 5,
        "a vector that grows"
    );
    // the whole stack, out of the program into the C library
    let key = left.site.key();
    let functions = key.stack().iter().map(|frame| frame.function.as_deref());
    let functions: Vec<_> = functions.collect();
    let main = functions.iter().position(|name| *name == Some("main"));
    assert!(
        main.is_some_and(|main| main + 1 < functions.len()),
        "{functions:?}"
    );

    // the mapping of its own, and where its table and its stack are
    let mapped = events(&reader, 0).filter_map(|event| match event {
        Event::MapSite { site, bytes, .. } => {
            Some((reader.sites()[site as usize].line.as_deref(), bytes))
        }
        _ => None,
    });
    assert_eq!(
        mapped.collect::<Vec<_>>(),
        [(Some("callers.cc:37"), 1 << 20)]
    );
    let mine: Vec<_> = modules(&end, "/callers").collect();
    assert_eq!(mine.len(), 1, "{:?}", end.modules);
    let of_qemu = end
        .modules
        .iter()
        .any(|module| module.path.contains("qemu"));
    assert!(!of_qemu, "{:?}", end.modules);
    let statics = varve_symbols::statics(&program).unwrap();
    let table = statics.iter().find(|variable| variable.symbol == "table");
    let second = mine[0].base + table.unwrap().address + 1;
    let written = ops(&reader, 0).any(|op| op.kind == Kind::Write && op.addr == second);
    assert!(
        written,
        "`table[1] = 1` is where the module and its symbols say"
    );
    assert_eq!(end.stacks.len(), 1);
}

/// Reads in a replay, by the functions that they are of; and the ops.
fn reads_by_function(reader: &TraceReader) -> (BTreeMap<Vec<String>, usize>, Vec<Op>) {
    let mut program = TraceProgram::open_with_code(reader.path()).unwrap();
    let (mut reads, mut all, mut now) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut goes_on = true;
    while goes_on {
        let mut ops = Vec::with_capacity(700);
        goes_on = program.fill(0, 0, &mut ops);
        let mut steps = Vec::new();
        program.code(0, &mut steps);
        for (at, op) in ops.iter().enumerate() {
            if let Some((_, code)) = steps.iter().rev().find(|step| step.0 as usize == at) {
                now = program.code_name(*code);
            }
            *reads.entry(now.clone()).or_default() += usize::from(op.kind == Kind::Read);
        }
        all.append(&mut ops);
    }
    (reads, all)
}

#[test]
fn accesses_are_of_the_functions_that_made_them_also_where_these_are_inlined() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    const NODES: usize = 1 << 12;
    let inlining = folder.compiled("waits-inlined", "cc", &["-O2", "-g"], &source("waits.c"));
    for (mode, program) in [
        (Mode::Qemu, inlining),
        (Mode::Qemu, folder.plain("waits")),
        (Mode::Compiled, folder.probed("waits")),
    ] {
        let (_, reader) = folder.record(mode, &program, &[]);
        let (reads, all) = reads_by_function(&reader);
        let of =
            |names: &[&str]| reads.get(&names.iter().map(|n| n.to_string()).collect::<Vec<_>>());
        let file = program.file_name().unwrap().to_str().unwrap();
        // An unoptimized one is called.
        let names = [
            &[file, "chase"][..],
            &[file, "chase", "behind"],
            &[file, "behind"],
        ];
        let chased: usize = names.iter().filter_map(|names| of(names)).sum();
        assert!(
            (2 * NODES..2 * NODES + 100).contains(&chased),
            "{mode:?}: {reads:#?}"
        );
        let streamed = of(&[file, "stream"]).unwrap();
        assert!(
            *streamed >= NODES && *streamed < 9 * NODES,
            "{mode:?}: {reads:#?}"
        );
        let plain: Vec<Op> = ops(&reader, 0).collect();
        assert_eq!(all, plain, "{mode:?}: what is asked for changes nothing");
    }
}

#[test]
fn programs_in_rust_and_libraries_without_symbols_have_deep_stacks_too() {
    let Some(folder) = Folder::with(&["qemu-x86_64"]) else {
        return;
    };
    if has("rustc") {
        let text = folder.path().join("boxes.rs");
        let source = "#[inline(never)]\nfn fill(rows: usize) -> Vec<u64> {\n    vec![7; rows]\n}\n\
                      fn main() {\n    let one = fill(5000);\n    let two = fill(6000);\n    \
                      assert!(one[0] == two[0]);\n}\n";
        std::fs::write(&text, source).unwrap();
        let program = folder.compiled("boxes", "rustc", &["-O", "-g"], &text);
        let (_, reader) = folder.record(Mode::Auto, &program, &[]);
        let info = TraceInfo::read(&reader).unwrap();
        let names = info.sites.iter().take(2).map(|site| &site.name[..]);
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                "boxes::fill (boxes.rs:3) < boxes::main (boxes.rs:7)",
                "boxes::fill (boxes.rs:3) < boxes::main (boxes.rs:6)"
            ]
        );
    }
    let query = "create table t(a, b); insert into t values (1, 2); select * from t;";
    for (program, words) in [
        ("sqlite3", vec![":memory:", query]),
        ("python3", vec!["-c", "print(len([1] * 5000))"]),
    ] {
        let program = Path::new("/usr/bin").join(program);
        if !program.exists() {
            varve_skip::skip!("needs {}", program.display());
            continue;
        }
        let (_, reader) = folder.record(Mode::Auto, &program, &words);
        let sites = reader.sites();
        let deep = sites.iter().filter(|site| site.callers.len() >= 7).count();
        assert!(
            deep * 2 > sites.len(),
            "{}: {deep} of {}",
            program.display(),
            sites.len()
        );
    }
}

#[test]
fn a_site_of_forked_processes_is_one() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let program = folder.plain("forks");
    let (end, reader) = folder.record(Mode::Auto, &program, &[]);
    let info = TraceInfo::read(&reader).unwrap();
    assert_eq!(info.processes, 3);
    let sites = info.sites.iter().filter(|site| site.name.contains("work"));
    let sites: Vec<_> = sites.collect();
    assert_eq!((sites.len(), sites[0].allocations), (1, 3), "{sites:?}");
    let processes = modules(&end, "/forks").map(|module| module.process);
    assert_eq!(processes.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn allocations_say_who_called_their_callers() {
    let Some(folder) = Folder::with(QEMU_AND_CC) else {
        return;
    };
    let unmodified = folder.plain("chain");
    let compiled = folder.probed("chain");
    for program in [&unmodified, &compiled] {
        let (_, reader) = folder.record(Mode::Auto, program, &[]);
        let info = TraceInfo::read(&reader).unwrap();
        let name = site(&info, |site| site.bytes == 12345).site.to_string();
        let order = ["chain!inner+", " < middle+", " < outer+", " < main+"]
            .map(|part| name.find(part).map_or(usize::MAX, |at| at));
        assert!(
            order.is_sorted() && order[0] == 0 && order[3] < usize::MAX,
            "{name}"
        );
    }
}

/// Stores of 8 bytes to each of a program's named arrays, by the addresses of its symbols and where it was loaded.
fn stores_to(reader: &TraceReader, program: &Path, names: &[(&str, u64)]) -> Vec<u64> {
    let nm = Command::new("nm").arg(program).output().unwrap();
    let nm = String::from_utf8(nm.stdout).unwrap();
    let modules = &reader.end().unwrap().modules;
    let base = modules.iter().find(|m| Path::new(&m.path) == program);
    let base = base.expect("the program is a module").base;
    let ranges: Vec<(u64, u64)> = names
        .iter()
        .map(|(name, numbers)| {
            let line = nm.lines().find(|l| l.split(' ').next_back() == Some(*name));
            let address = line.unwrap().split(' ').next().unwrap();
            (
                base + u64::from_str_radix(address, 16).unwrap(),
                8 * numbers,
            )
        })
        .collect();
    let mut counts = vec![0; names.len()];
    for thread in 0..reader.threads() {
        for op in ops(reader, thread) {
            for (count, (start, bytes)) in counts.iter_mut().zip(&ranges) {
                let inside = op.kind == Kind::Write && (*start..start + bytes).contains(&op.addr);
                *count += u64::from(inside);
            }
        }
    }
    counts
}

#[test]
fn between_marks_every_thread_is_recorded_and_outside_of_them_none() {
    let Some(folder) = Folder::with(&["qemu-x86_64", "cc", "nm"]) else {
        return;
    };
    let program = folder.plain("marks");
    let arrays = [
        ("before", 1000),
        ("between", 2000),
        ("other", 500),
        ("after", 4000),
    ];
    let recorded = |marked: bool| {
        let options = RecorderOptions {
            marked,
            ..options(Mode::Qemu)
        };
        let (_, reader) = folder.record_with(options, &program, &[]);
        stores_to(&reader, &program, &arrays)
    };
    assert_eq!(recorded(true), [0, 2000, 500, 0]);
    assert_eq!(recorded(false), [1000, 2000, 500, 4000]);
}

#[test]
fn marks_of_compiled_programs_are_refused_in_one_line() {
    let Some(folder) = Folder::with(&["cc"]) else {
        return;
    };
    let program = folder.probed("ends");
    let options = RecorderOptions {
        marked: true,
        ..options(Mode::Auto)
    };
    let refused = Recorder::start(&[program.into_os_string()], options);
    let said = refused.err().expect("it is refused").to_string();
    assert!(said.contains("--marked") && !said.contains('\n'), "{said}");
}
