//! One way from what is asked for to what came of it, for every kind of program: the same plans, budgets, failures and words.

use crate::common::{can_trace, has, names, typed, varve};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use varve_access::Op;
use varve_trace::{CallSite, End, Event, FileHeader, TraceWriter};

const MIB: u64 = 1 << 20;
const TRACE: &str = "traces/sqlite-join.trace";
const HEAP: &str = "programs/dist/graph.wasm";

/// A program that fills much memory once, and then reads and writes other memory at random for long: where there is room for the hot memory
/// alone, first-touch placement has the cold ones in fast memory.
fn hot_and_cold(folder: &Path) -> PathBuf {
    let path = folder.join("hot-and-cold.trace");
    let header = FileHeader {
        command: vec!["program".into()],
        ..FileHeader::default()
    };
    let mut writer = TraceWriter::create(&path, &header).unwrap();
    let mut next = 1 << 32;
    let mut object = |writer: &mut TraceWriter<_>, offset: u64, bytes: u64| {
        let site = writer.site(CallSite {
            module: "/bin/program".into(),
            offset,
            ..CallSite::default()
        });
        let addr = next;
        next += bytes + 4096;
        writer.event(0, Event::Alloc { site, addr, bytes }).unwrap();
        addr
    };
    const HOT: u64 = 40 * MIB;
    let cold = object(&mut writer, 0x10, 80 * MIB);
    let hot = object(&mut writer, 0x20, HOT);
    let pages = (cold..cold + 80 * MIB).chain(hot..hot + HOT).step_by(4096);
    let mut ops: Vec<Op> = pages.map(|at| Op::write(at, 8, 4)).collect();
    let mut random = 1u64;
    for _ in 0..1_000_000 {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let at = hot + (random >> 33) % (HOT / 64) * 64;
        ops.push(Op::read(at, 8, 6).after_load());
        ops.push(Op::write(at, 8, 2));
    }
    for some in ops.chunks(1 << 16) {
        writer.push(0, some).unwrap();
    }
    writer.finish(End::default()).unwrap();
    path
}

fn rows(json: &Value) -> Vec<(String, f64, u64)> {
    let row = |r: &Value| {
        let plan = r["plan"].as_str().unwrap().to_string();
        (
            plan,
            r["seconds"].as_f64().unwrap(),
            r["moved_bytes"].as_u64().unwrap(),
        )
    };
    json["runs"].as_array().unwrap().iter().map(row).collect()
}

/// One paragraph, however it is wrapped.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_page_policy_moves_pages_of_native_programs_and_keeps_its_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let trace = hot_and_cold(folder.path());
    let run = |plans: &str, more: &[&str]| {
        let words = format!("run {} --machine optane-6230 --fast 48MiB", trace.display());
        let words = typed(&words);
        varve(&[&words[..], &["--plan", plans], more].concat())
    };
    let plans = "dram,first-touch,hotset,hotset:sample-period=500,hotset:scale=1";
    let json = run(plans, &["--json"]).well().json();
    let all = rows(&json);
    let of = |plan: &str| all.iter().find(|row| row.0 == plan).unwrap();
    let first_touch = of("first-touch");
    assert!(first_touch.1 > 1.5 * of("dram").1, "{all:?}");
    for plan in ["hotset", "hotset:sample-period=500"] {
        assert!(of(plan).2 > 20 * MIB, "{plan} moves pages: {all:?}");
        assert!(
            of(plan).1 < 0.9 * first_touch.1,
            "{plan} gains by it: {all:?}"
        );
    }
    assert_ne!(
        of("hotset").1,
        of("hotset:sample-period=500").1,
        "parameters are kept"
    );

    // As it is, the run is too short for a policy that samples one access in 10,000: the table says it, and what would do.
    assert_eq!(of("hotset:scale=1").2, 0);
    let said = flat(&run(plans, &[]).well().out);
    for words in [
        "`hotset:scale=1` cannot tell hot pages from cold ones here",
        "sample-period=",
        "times as long",
        "`hotset` looks",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    run("hotset:bogus=1", &[]).refuses(2, &["`hotset`", "`bogus`", "sample-period"]);
    run("hotset:cool=x", &[]).refuses(2, &["cool=x"]);
}

#[test]
fn a_plan_is_explained_for_each_kind_of_program_that_has_it() {
    for (spec, said) in [
        ("kg-n", &["Heap plan kg-n", "Plan kg-n for Java"][..]),
        ("kg-n:outside=slow", &["Plan kg-n for Java", "outside=plan"]),
        (
            "slow-copy",
            &["Heap plan slow-copy", "another name of kg-n"],
        ),
        (
            "knapsack",
            &["Heap plan knapsack", "Plan knapsack for native programs"],
        ),
        (
            "hot-sites",
            &["Heap plan hot-sites", "Plan hot-sites for native programs"],
        ),
        (
            "hotset",
            &["Page policy hotset", "plan for native programs"],
        ),
        ("pima", &["Heap plan pima", "varve run --live --plan pima"]),
    ] {
        let plan = varve(&["plan", spec]).well().out;
        for words in said {
            assert!(
                flat(&plan).contains(words),
                "{spec}: no `{words}` in {plan}"
            );
        }
        assert_eq!(plan, varve(&["explain", "plan", spec]).well().out);
        // Without a kind, what has the name is found.
        assert_eq!(plan, varve(&["explain", spec]).well().out);
    }
    for plan in names(&varve(&["plan", "--json"]).well().json()) {
        varve(&["explain", &plan]).well();
    }
    for policy in names(&varve(&["policy", "--json"]).well().json()) {
        varve(&["explain", "policy", &policy]).well();
    }
    varve(&["explain", "static"]).well();
    varve(&["explain", "cxl-spr"]).well();
    varve(&["explain", "gups"]).well();
    varve(&["explain", "kg-m"]).refuses(2, &["kg-m", "did you mean `kg-n`?"]);
    varve(&["plan", "kg-n:inside=slow"]).refuses(2, &["inside"]);

    // Collections of everything are full in every table.
    let heap = format!("run {HEAP} --machine optane-6242 --plan dram --");
    let heap = typed(&heap);
    let table = varve(&[&heap[..], &["pagerank", "--scale", "8"]].concat())
        .well()
        .out;
    assert!(
        table.contains("full") && !table.contains("major"),
        "{table}"
    );
}

#[test]
fn a_plan_that_fails_takes_no_other_with_it_and_is_a_failure_if_it_was_named() {
    // A slow memory that is too small for all of the program, and not for what leaves fast memory.
    let small = format!("run {TRACE} --machine cxl-spr --set cxl.bytes=10MiB");
    let small = typed(&small);
    let run = |more: &[&str]| varve(&[&small[..], more].concat());
    let said = run(&["--plan", "dram,slow,hot-sites"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let out = flat(&said.out);
    assert!(out.contains("Not run: slow: "), "{out}");
    assert!(out.contains("Sites count by their misses"), "{out}");
    assert!(said.out.contains("hot-sites  "), "{}", said.out);
    // Of all that there are, those that can be made are the answer.
    let all = run(&[]).well();
    assert!(flat(&all.out).contains("Not run: slow: "), "{}", all.out);
    // The base is no answer where nothing else was made.
    let none = run(&["--plan", "slow"]);
    assert_eq!((none.code, &*none.out), (1, ""), "{}", none.err);
    assert!(none.err.contains("out of memory"), "{}", none.err);

    let pages = ["run", TRACE, "--machine", "optane-6230", "--scale", "32768"];
    let pages = |policies: &str| varve(&[&pages[..], &["--policy", policies]].concat());
    let said = pages("fast,first-touch");
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        flat(&said.out).contains("Not run: fast: out of memory"),
        "{}",
        said.out
    );
    pages("first-touch,all").well();
}

#[test]
fn a_row_of_a_sweep_is_of_its_plan_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(TRACE);
    let text = format!(
        "work = \"{}\"\nmachine = \"cxl-spr\"\nplan = [\"dram\", \"slow\"]\n[set]\n\"cxl.bytes\" = \"10MiB\"\n",
        trace.display()
    );
    std::fs::write(&file, text).unwrap();
    let out = folder.path().join("out");
    let said = varve(&format!("sweep {} --out {}", file.display(), out.display()));
    assert_ne!(said.code, 0, "{}", said.out);
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("out of memory"), "{all}");
}

#[test]
fn budgets_are_compared_each_with_linux_in_the_same_one() {
    let folder = tempfile::tempdir().unwrap();
    let trace = hot_and_cold(folder.path());
    let words = ["run", trace.to_str().unwrap(), "--machine", "optane-6230"];
    let run = |more: &[&str]| flat(&varve(&[&words[..], more].concat()).well().out);
    let several = run(&["--plan", "slow,first-touch,interleave", "--fast", "10%,50%"]);
    let advice = &several[several.find("Advice: ").unwrap()..];
    assert!(
        advice.contains("stay with `dram` if time counts most"),
        "{advice}"
    );
    assert_eq!(advice.matches(" of DRAM ").count(), 2, "{advice}");
    for (best, linux) in advice
        .split("With ")
        .skip(1)
        .map(|of| of.split_once(';').unwrap_or((of, "")))
    {
        let budget = if best.contains("10%") { "10%" } else { "50%" };
        assert!(linux.is_empty() || linux.contains(budget), "{advice}");
    }
    // Slow memory for a third more time pays for no user.
    assert!(!advice.contains("may be in slow memory"), "{advice}");
    // What keeps the time of all in DRAM is advised with what it leaves.
    let hot = run(&["--plan", "first-touch,hot-sites", "--fast", "48MiB"]);
    assert!(hot.contains("Advice: use `hot-sites`"), "{hot}");
    assert!(hot.contains("of its memory leaves DRAM, for "), "{hot}");
}

#[test]
fn a_table_of_sites_does_not_say_0_of_what_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let trace = hot_and_cold(folder.path());
    let table = |plans: &str| {
        let words = format!("run {} --machine optane-6230 --fast 48MiB", trace.display());
        let words = typed(&words);
        varve(&[&words[..], &["--plan", plans]].concat()).well().out
    };
    let in_dram = |table: &str, site: &str| {
        let row = table.lines().find(|line| line.starts_with(site)).unwrap();
        row.split_whitespace().last().unwrap().to_string()
    };
    let pages = table("first-touch");
    assert!(
        pages.contains("Allocation sites, under `first-touch`"),
        "{pages}"
    );
    assert_eq!(in_dram(&pages, "program+0x20"), "-", "{pages}");
    let sites = table("hot-sites");
    assert_eq!(in_dram(&sites, "program+0x20"), "100", "{sites}");
    assert_eq!(in_dram(&sites, "program+0x10"), "0", "{sites}");
}

#[test]
fn with_json_standard_output_is_one_document() {
    let heap = typed("run programs/dist/hello.wasm --machine optane-6242 --plan dram");
    let said = varve(&[&heap[..], &["--json"]].concat()).well();
    said.json();
    assert!(said.err.contains("Hello, world!"), "{}", said.err);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out");
    let shown = file.to_str().unwrap();
    let said = varve(&[&heap[..], &["--program-output", shown]].concat()).well();
    assert!(
        said.out.contains("hello.wasm on optane-6242"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("Hello, world!"), "{}", said.out);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Hello, world!\n");
    let nowhere = folder.path().join("no/folder");
    let nowhere = varve(&[&heap[..], &["--program-output", nowhere.to_str().unwrap()]].concat());
    nowhere.refuses(2, &["no/folder", "--program-output"]);
    if !can_trace() {
        return;
    }
    for options in [
        &["--policy", "first-touch"][..],
        &["--policy", "all"],
        &["--plan", "dram"],
    ] {
        let words = [
            &["run", "--json"],
            options,
            &["--", "sh", "-c", "echo said"],
        ]
        .concat();
        let said = varve(&words).well();
        said.json();
        assert!(
            said.err.lines().any(|line| line == "said"),
            "{options:?}: {}",
            said.err
        );
    }
}

#[test]
fn a_run_ends_as_its_program_ended_if_all_was_done() {
    if !can_trace() {
        return;
    }
    for options in [
        &["--policy", "all"][..],
        &["--policy", "first-touch"],
        &["--plan", "dram,slow"],
    ] {
        for (script, code, words) in [
            ("exit 3", 3, "ended with exit code 3"),
            ("kill -9 $$", 137, "ended by signal 9"),
        ] {
            let words_of = [&["run"], options, &["--", "sh", "-c", script]].concat();
            let said = varve(&words_of);
            assert_eq!(said.code, code, "{script}: {}", said.err);
            assert!(said.err.contains(words), "{}", said.err);
            assert!(said.out.contains("moved"), "all was done: {}", said.out);
        }
    }
}

#[test]
fn what_is_run_is_named_with_the_remedy() {
    varve(&["run", "/bin/sh"]).refuses(2, &["/bin/sh is a program", "`varve run -- /bin/sh`"]);
    let plan = varve(&["run", TRACE, "--plan", "kg-n"]);
    plan.refuses(2, &["kg-n", "Java virtual machines", "varve trace"]);
    // A file that is compressed is said to be, whatever the plan.
    let packed = "traces/jvm/xalan-parallel-1.trace.zst";
    for options in [&[][..], &["--plan", "kg-n"], &["--policy", "all"]] {
        let said = varve(&[&["run", packed, "--machine", "cxl-spr"], options].concat());
        said.refuses(2, &[packed, "compressed with zstd", "unzstd"]);
    }
    if has("zstd", "zstd") {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("xalan.trace");
        let done = Command::new("zstd")
            .args(["-dq", packed, "-o"])
            .arg(&trace)
            .current_dir(crate::common::home())
            .status();
        assert!(done.unwrap().success());
        let trace = trace.to_str().unwrap();
        let run = ["run", trace, "--machine", "optane-6242", "--plan"];
        varve(&[&run[..], &["hot-sites"]].concat()).refuses(2, &["hot-sites", "native programs"]);
        // The page policy has its parameters here, too.
        varve(&[&run[..], &["hotset:bogus=1"]].concat()).refuses(2, &["`hotset`", "`bogus`"]);
    }
}

/// An error is one line of under 30 words, for every kind of run.
#[test]
fn a_refusal_is_short() {
    for words in [
        "run",
        "run a b",
        "run README.md",
        "run nosuch",
        "run nosuch.trace",
        "run gups -- ls",
        "run gups --sites x",
        "run gups --plan hotset",
        "run gups --fast 10%",
        "run gups --scale 3",
        "run gups --scale 65536 --page 4KiB",
        "run gups --policy hot",
        "run gups --policy hotset",
        "run gups --policy static --machine cxl-spr",
        "run gups --machine nosuch",
        "run --live gups",
        "run traces/sqlite-join.trace --trays hot=1",
        "run traces/sqlite-join.trace --sites none.sites",
        "run traces/sqlite-join.trace --sample 1%",
        "run traces/sqlite-join.trace --plan knapsak",
        "run traces/sqlite-join.trace --plan slow --machine optane-6230-memory-mode",
        "run traces/sqlite-join.trace --fast 10% --machine haswell-2620v3",
        "run traces/jvm/xalan-parallel-1.trace.zst",
        "run programs/dist/graph.wasm --machine optane-6242 --plan cgz-f",
        "run programs/dist/graph.wasm --machine optane-6242 --plan hotset",
        "run programs/dist/graph.wasm --machine optane-6242 --trays hot=1",
        "run programs/dist/graph.wasm --machine optane-6242 --instances 900",
        "run programs/dist/graph.wasm --machine optane-6230-memory-mode",
        "run programs/dist/graph.wasm --plan dram,kg-n",
        "run programs/dist/graph.wasm --nodes fast=9",
        "run --plan pima -- java X",
        "run --plan hot-sites -- java X",
        "run --plan kg-m -- java X",
        "run --instances 0 -- java X",
        "run --stale -- java X",
        "run --machine haswell-2620v3 --plan kg-n -- java X",
        "run --live --plan hotset -- java X",
        "run --live --sites none.sites -- true",
        "run --live --fast 64MiB -- true",
    ] {
        let all: Vec<&str> = words.split(' ').collect();
        let said = varve(&all);
        said.refuses(2, &[]);
        let long = said.err.split_whitespace().count() - 1;
        assert!(long < 30, "{words}: {long} words: {}", said.err);
    }
}

#[test]
fn what_would_do_nothing_is_refused() {
    let file = tempfile::tempdir().unwrap();
    let file = file.path().join("out");
    let output = ["--program-output", file.to_str().unwrap()];
    for work in [TRACE, "gups"] {
        varve(&[&["run", work], &output[..]].concat()).refuses(2, &["--program-output", "print"]);
        assert!(!file.exists(), "and nothing is made");
    }
    varve(&["run", TRACE, "--plan", ""]).refuses(2, &["no plan for native programs is named"]);
    // With --json the reason stands where all errors are, too.
    let small = [
        "run",
        TRACE,
        "--machine",
        "cxl-spr",
        "--set",
        "cxl.bytes=10MiB",
    ];
    let said = varve(&[&small[..], &["--plan", "dram,slow", "--json"]].concat());
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("varve: Not run: slow: out of memory"),
        "{}",
        said.err
    );
    said.json();
}
