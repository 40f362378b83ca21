//! Stock Java virtual machines: recorded with what they say of their heaps, and replayed with generations in two memories.

use crate::common::{Said, can_trace, has, typed, varve};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Fills the young generation several times, asks for two full collections, and walks through old objects that no cache
/// holds. It ends with what the machine itself has counted.
const PROGRAM: &str = "\
import java.lang.management.ManagementFactory;

public class Generations {
    static int[] old = new int[8 << 20];
    static Object[] kept = new Object[1 << 14];

    public static void main(String[] words) {
        long sum = 0;
        int at = 1;
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < 1 << 12; i++) {
                kept[(round << 12 | i) % kept.length] = new long[16];
            }
            for (int i = 0; i < 5_000; i++) {
                at = at * 1103515245 + 12345;
                sum += old[at >>> 9]++;
            }
            if (round % 20 == 19) System.gc();
        }
        for (var collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            System.out.println(collector.getName() + \": \" + collector.getCollectionCount());
        }
        if (sum < 0) System.exit(3);
    }
}
";

/// A folder with the compiled program; none where Java is missing, which is said.
fn compiled() -> Option<tempfile::TempDir> {
    let debian = "openjdk-17-jdk-headless";
    if !can_trace() || !has("java", debian) || !has("javac", debian) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Generations.java");
    std::fs::write(&source, PROGRAM).unwrap();
    let made = Command::new("javac").arg(&source).status();
    assert!(made.unwrap().success());
    Some(folder)
}

/// The command that runs it with a collector. The compiler does little, since its accesses are replayed too.
fn java(folder: &Path, collector: &str) -> Vec<String> {
    let words = format!(
        "java {collector} -Xmx80m -Xmn8m -XX:TieredStopAtLevel=1 -cp {} Generations",
        folder.display()
    );
    typed(&words).into_iter().map(String::from).collect()
}

fn with<'a>(before: &[&'a str], command: &'a [String]) -> Said {
    let command = command.iter().map(String::as_str);
    let words: Vec<&str> = before.iter().copied().chain(command).collect();
    varve(&words)
}

/// The machine's counts for the collectors with these names.
fn counted(out: &str, names: [&str; 2]) -> [u64; 2] {
    names.map(|name| {
        let line = out
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name} in {out}"))
            .parse()
            .unwrap()
    })
}

fn run<'a>(json: &'a Value, plan: &str) -> &'a Value {
    let runs = json["runs"].as_array().unwrap();
    let run = runs.iter().find(|r| r["plan"] == plan);
    run.unwrap_or_else(|| panic!("no {plan} in {runs:?}"))
}

fn number(run: &Value, key: &str) -> u64 {
    run[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {run}"))
}

/// A run's results for a part of the memory.
fn part<'a>(run: &'a Value, name: &str) -> &'a Value {
    let parts = run["memory"].as_array().unwrap();
    let part = parts.iter().find(|part| part["name"] == name);
    part.unwrap_or_else(|| panic!("no {name} in {parts:?}"))
}

/// A recorded machine is replayed: what it says of its heap, its collections and its generations.
fn story(collector: &str, name: &str, beans: [&str; 2]) {
    let Some(folder) = compiled() else { return };
    let trace = folder.path().join("generations.trace");
    let trace = trace.to_str().unwrap();
    let command = java(folder.path(), collector);
    let said = with(&["trace", "-o", trace, "--"], &command).well();
    let [minor, full] = counted(&said.out, beans);
    assert!(minor >= 2 && full == 2, "{}", said.out);

    let info = varve(&["trace", "info", trace]).well().out;
    let known = format!("collector {name}: {minor} minor and {full} full collections");
    let info = info.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(info.contains(&known), "{info}");

    let said = varve(&format!(
        "run {trace} --machine optane-6242 --plan dram,slow,kg-n,slow-scan --json"
    ));
    let json = said.well().json();
    for plan in ["dram", "slow", "kg-n", "slow-scan"] {
        let r = run(&json, plan);
        assert_eq!(r["collector"], name);
        let (some, all) = (number(&r["minor"], "count"), number(&r["full"], "count"));
        // The walk is a steady state, if the rest of the run leaves it one. Then pauses are of that.
        if r["steady"].is_null() {
            assert_eq!((some, all), (minor, full), "{plan}");
            for key in ["minor_seconds", "full_seconds", "seconds", "gc_share"] {
                assert!(r[key].as_f64().unwrap() > 0.0, "{plan} {key}: {r}");
            }
        } else {
            assert!(some <= minor && all <= full, "{plan}: {r}");
        }
        assert!(number(r, "longest_pause_ns") >= number(&r["full"], "max_ns"));
        // 32 MiB of the old generation were written once at least.
        let old = part(r, "old");
        assert!(number(old, "fast_bytes") + number(old, "slow_bytes") >= 32 << 20);
    }

    let kg_n = run(&json, "kg-n");
    for young in ["eden", "survivor"] {
        let of = part(kg_n, young);
        assert_eq!(number(of, "slow_bytes"), 0, "{young}");
        assert!(number(of, "fast_bytes") > 0, "{young}");
    }
    let eden = number(part(kg_n, "eden"), "read_bytes");
    assert!(number(kg_n, "fast_read_bytes") >= eden, "{kg_n}");
    let old = number(part(kg_n, "old"), "read_bytes");
    // Reads that are on the way where a phase ends count for one of the two.
    let apart = number(kg_n, "slow_read_bytes").abs_diff(old);
    assert!(old > 0 && apart <= old / 100, "{kg_n}");
    assert!(
        !kg_n["steady"].is_null() || (eden > 0 && apart == 0),
        "{kg_n}"
    );
    assert_eq!(number(part(kg_n, "old"), "fast_bytes"), 0);

    let scan = run(&json, "slow-scan");
    assert_eq!(number(part(scan, "old"), "slow_bytes"), 0);
    assert_eq!(number(part(scan, "eden"), "fast_bytes"), 0);

    let seconds = |plan: &str| {
        let run = run(&json, plan);
        let whole = run["steady"]["whole_seconds"].as_f64();
        whole.unwrap_or_else(|| run["seconds"].as_f64().unwrap())
    };
    assert!(seconds("slow") > 1.02 * seconds("dram"));
    assert!(
        seconds("kg-n") > seconds("slow-scan"),
        "old objects cost most here"
    );
    assert_eq!(number(run(&json, "slow"), "fast_bytes"), 0);
    assert_eq!(number(run(&json, "dram"), "slow_bytes"), 0);

    let limited = varve(&format!(
        "run {trace} --machine optane-6242 --plan kg-n,first-touch --fast 8MiB \
         --instances 2"
    ));
    let table = limited.well().out;
    for word in [
        "one of 2 alike",
        name,
        "eden",
        "metaspace",
        "MNTT",
        "kg-n",
        "first-touch",
        "Advice: ",
    ] {
        assert!(table.contains(word), "no `{word}` in {table}");
    }
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");

    // More threads than a socket has are refused with what can be done.
    let crowd = format!("run {trace} --machine optane-6242 --instances 64");
    let remedy = [
        "--instances 64",
        "32 hardware threads",
        "with fewer threads",
    ];
    varve(&crowd).refuses(2, &remedy);
    varve(&["run", "--marked", trace]).refuses(2, &["--marked", "is a recording"]);
    cut_off(Path::new(trace), name);
}

/// A recording that was killed is one of Java all the same: what there is of it is replayed, if the machine had begun.
fn cut_off(trace: &Path, collector: &str) {
    let whole = std::fs::read(trace).unwrap();
    let cut = trace.with_file_name("cut.trace");
    let shown = cut.to_str().unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 10 * 9]).unwrap();
    let info = varve(&["trace", "info", shown]).well().out;
    assert!(
        info.contains("cut at byte") && info.contains(collector),
        "{info}"
    );
    let dram = ["run", shown, "--machine", "optane-6242", "--plan", "dram"];
    let table = varve(&dram).well().out;
    for word in ["stops at byte", "eden", collector] {
        assert!(table.contains(word), "no `{word}` in {table}");
    }

    // After its first blocks: the virtual machine has not said anything yet.
    std::fs::write(&cut, &whole[..whole.len() / 1000]).unwrap();
    varve(&dram).refuses(
        2,
        &["a recording of Java that was cut off", "record it again"],
    );
}

#[test]
fn generations_of_the_serial_collector_are_in_the_memory_of_the_plan() {
    story("-XX:+UseSerialGC", "Serial", ["Copy", "MarkSweepCompact"]);
}

#[test]
fn generations_of_the_parallel_collector_are_in_the_memory_of_the_plan() {
    story(
        "-XX:+UseParallelGC",
        "Parallel",
        ["PS Scavenge", "PS MarkSweep"],
    );
}

#[test]
fn what_is_not_known_of_a_heap_is_a_line_and_no_guess() {
    if !can_trace() {
        return;
    }
    // a command by this name that is no Java virtual machine
    let folder = tempfile::tempdir().unwrap();
    let fake = folder.path().join("java");
    std::fs::write(&fake, "#!/bin/sh\necho no such class >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let said = varve(&format!(
        "run --machine optane-6242 -- {} X",
        fake.display()
    ));
    assert_eq!(said.code, 1, "{}", said.err);
    let last = said.err.lines().last().unwrap();
    assert!(
        last.contains("no Java virtual machine has started (exit code 1)"),
        "{last}"
    );

    let missing = folder.path().join("nowhere/java");
    let said = varve(&["run", "--", missing.to_str().unwrap(), "X"]);
    said.refuses(2, &["nowhere/java"]);
    varve(&["run", "--plan", "kg-m", "--", "java", "X"]).refuses(2, &["kg-m", "kg-n"]);
    varve(&["run", "--plan", "hot-sites", "--", "java", "X"]).refuses(2, &["hot-sites", "Java"]);
    varve("run --machine haswell-2620v3 --plan kg-n -- java X")
        .refuses(2, &["haswell-2620v3", "slow memory"]);
    varve(&["run", "--instances", "0", "--", "java", "X"]).refuses(2, &["--instances 0"]);
    varve(&["run", "--marked", "--machine", "cxl-spr", "--", "true"])
        .refuses(2, &["/varve/record/begin", "leave --marked out"]);
    varve(&["run", "--gc-stats", "--", "java", "X"]).refuses(2, &["--gc-stats", "generations"]);
}

#[test]
fn a_collector_that_is_not_known_is_refused_and_one_in_one_piece_has_no_generations() {
    let Some(folder) = compiled() else { return };
    let mut command = java(folder.path(), "-XX:+UseEpsilonGC");
    command.insert(1, "-XX:+UnlockExperimentalVMOptions".into());
    let dram = ["run", "--machine", "optane-6242", "--plan", "dram", "--"];
    let said = with(&dram, &command);
    assert_eq!(said.code, 2, "{}", said.err);
    let last = said.err.lines().last().unwrap();
    assert!(
        last.contains("none of Serial, Parallel, G1 and ZGC"),
        "{last}"
    );

    let trace = folder.path().join("g1.trace");
    let trace = trace.to_str().unwrap();
    with(
        &["trace", "-o", trace, "--"],
        &java(folder.path(), "-XX:+UseG1GC"),
    )
    .well();
    let g1 = ["run", trace, "--machine", "optane-6242"];
    let named = varve(&[&g1[..], &["--plan", "kg-n"]].concat());
    named.refuses(2, &["G1", "kg-n", "-XX:+UseSerialGC"]);
    // All of them are those that go.
    let said = varve(&[&g1[..], &["--plan", "all", "--json"]].concat());
    let json = said.well().json();
    run(&json, "hotset");
    assert!(!json["runs"].to_string().contains("kg-n"), "{json}");
    let heap = part(run(&json, "slow"), "heap");
    assert!(number(heap, "slow_bytes") >= 32 << 20);
}
