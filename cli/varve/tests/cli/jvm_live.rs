//! Generations of stock Java virtual machines on memory nodes. Some stories are of a machine whose memory is all alike, some of
//! one with memory alone on a node: each says that it is skipped on the other. `.ci/run` tells the latter in a guest.

use crate::common::{Said, has, typed, varve};
use crate::nodes::{kinds, skip_unless_two_kinds};
use crate::tier::{begun, tiered};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Objects that stay, more than the heap has in the beginning, and objects that do not.
const PROGRAM: &str = "\
public class Grows {
    static byte[][] kept = new byte[160][];
    static Object last;

    public static void main(String[] words) {
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new byte[1 << 18];
            for (int j = 0; j < kept[i].length; j += 4096) kept[i][j] = 1;
            for (int j = 0; j < 1 << 8; j++) last = new byte[1 << 10];
        }
        System.out.println(\"grown\");
    }
}
";

/// Rounds of the same work beside old objects that stay. A round says where its old objects are, as the kernel counts pages. With
/// `matters` it takes longer while any are on another node than `fast`; with `reports` it tells Varve how long it took.
const ROUNDS: &str = "\
import java.nio.file.*;
import java.util.*;

public class Rounds {
    static byte[][] kept = new byte[64][];
    static Object last;

    /** The nodes of the most pages of the heap: the old generation is the largest range below 4 GiB. */
    static Map<Integer, Long> old() throws Exception {
        Map<Integer, Long> most = Map.of();
        for (String line : Files.readAllLines(Path.of(\"/proc/self/numa_maps\"))) {
            if (line.indexOf(' ') > 8) continue;
            Map<Integer, Long> nodes = new TreeMap<>();
            for (String word : line.split(\" \")) {
                if (word.matches(\"N[0-9]+=[0-9]+\")) {
                    String[] both = word.substring(1).split(\"=\");
                    nodes.put(Integer.parseInt(both[0]), Long.parseLong(both[1]));
                }
            }
            if (sum(nodes) > sum(most)) most = nodes;
        }
        return most;
    }

    static long sum(Map<Integer, Long> nodes) {
        return nodes.values().stream().mapToLong(n -> n).sum();
    }

    public static void main(String[] words) throws Exception {
        List<String> how = List.of(words);
        int fast = Integer.parseInt(words[0]), rounds = Integer.parseInt(words[1]);
        boolean reports = how.contains(\"reports\") && varve.Varve.sampling();
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new byte[1 << 18];
            Arrays.fill(kept[i], (byte) 1);
        }
        int fastRounds = 0, back = 0;
        boolean pays = true, wasFast = false;
        for (int round = 0; round < rounds && back < 2; round++) {
            long begun = System.nanoTime();
            for (int j = 0; j < 1 << 12; j++) last = new byte[1 << 10];
            Map<Integer, Long> nodes = old();
            long took = System.nanoTime() - begun;
            boolean slow = sum(nodes) > nodes.getOrDefault(fast, 0L);
            if (how.contains(\"matters\") && slow) {
                while (System.nanoTime() - begun < 10 * took) Thread.onSpinWait();
            }
            // What reports say counts, and not how long anything takes. After so many rounds with all in fast memory it makes no difference
            // any more, and once objects went back for the second time, a sample has seen that.
            if (reports) varve.Varve.interval(round, how.contains(\"said\") && slow && pays ? 900 : 100, 0);
            if (how.contains(\"said\") && sum(nodes) > 4000) {
                boolean allSlow = !nodes.containsKey(fast);
                if (!slow && ++fastRounds >= 6) pays = false;
                if (allSlow && wasFast && !pays) back++;
                wasFast = !slow || wasFast && !allSlow;
            }
            System.out.println(nodes);
        }
        var beans = (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        System.out.println(\"allocated \" + beans.getThreadAllocatedBytes(Thread.currentThread().getId()));
    }
}
";

/// A folder with the compiled program; none where Java is missing, which is said.
fn rounds() -> Option<tempfile::TempDir> {
    let debian = "openjdk-17-jdk-headless";
    if !has("java", debian) || !has("javac", debian) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Rounds.java");
    std::fs::write(&source, ROUNDS).unwrap();
    let api = format!(
        "{}/../../programs/api/src/main/java/varve",
        env!("CARGO_MANIFEST_DIR")
    );
    let api = ["Varve.java", "Reports.java"].map(|name| format!("{api}/{name}"));
    let made = Command::new("javac")
        .arg("-d")
        .arg(folder.path())
        .arg(&source)
        .args(api)
        .status();
    assert!(made.unwrap().success());
    Some(folder)
}

/// The result of a run of it under a plan.
struct Told {
    /// Pages by node after each round, as the program saw them.
    rounds: Vec<BTreeMap<u32, u64>>,
    /// Its allocated bytes, by the machine's own count.
    allocated: u64,
    json: Value,
}

impl Told {
    fn choices(&self) -> Vec<bool> {
        let phases = self.json["decisions"][0]["phases"].as_array().unwrap();
        phases
            .iter()
            .filter_map(|phase| phase["fast"].as_bool())
            .collect()
    }

    /// Was there a round in which pages of all old objects were on these nodes?
    fn all_on(rounds: &[BTreeMap<u32, u64>], nodes: &[u32]) -> bool {
        rounds.iter().any(|pages| {
            pages.values().sum::<u64>() > 4000 && pages.keys().all(|node| nodes.contains(node))
        })
    }
}

fn told(folder: &Path, options: &[&str], collector: &str, words: &[&str]) -> Told {
    let java =
        format!("--json -- java {collector} -Xms40m -Xmx40m -Xmn6m -XX:TieredStopAtLevel=1 -cp");
    let java = typed(&java);
    let folder = [folder.to_str().unwrap(), "Rounds"];
    let said = varve(&[&["run", "--live"], options, &java, &folder, words].concat()).well();
    let (rounds, rest) = said.err.split_once("allocated ").unwrap();
    let (allocated, _) = rest.split_once('\n').unwrap();
    let json = &said.out;
    let pages = |line: &str| {
        let pages = line
            .trim_matches(['{', '}'])
            .split(", ")
            .filter_map(|word| word.split_once('='));
        pages
            .map(|(node, pages)| (node.parse().unwrap(), pages.parse().unwrap()))
            .collect()
    };
    Told {
        rounds: rounds
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(pages)
            .collect(),
        allocated: allocated.parse().unwrap(),
        json: serde_json::from_str(json).unwrap(),
    }
}

/// Two intervals per memory and one decision.
const SAMPLE: &str = "pima:alpha=3,allocation=16MiB,intervals=2,hold-off=1h";
/// The same, with one decision after the other.
const AGAIN: &str = "pima:alpha=3,intervals=2,hold-off=1ms";
/// The first, for programs to which it makes no difference.
const CALM: &str = "pima:alpha=1000,allocation=16MiB,intervals=2,hold-off=1h";

#[test]
fn old_objects_are_where_the_program_runs_well_page_by_page() {
    if skip_unless_two_kinds() {
        return;
    }
    let Some(folder) = rounds() else { return };
    let (fast, slow) = kinds();
    let first = fast[0].to_string();
    // The guest has no slower memory: a program that matters makes itself slower there. What else makes it slower or faster is noise,
    // far below a factor of 1000.
    for (plan, collector, words, ends_fast) in [
        (
            SAMPLE,
            "-XX:+UseSerialGC",
            [&*first, "26", "matters", "-"],
            true,
        ),
        (CALM, "-XX:+UseParallelGC", [&*first, "30", "-", "-"], false),
    ] {
        let told = told(folder.path(), &["--plan", plan], collector, &words);
        let case = format!("{words:?}: {:?} {}", told.rounds, told.json["decisions"]);
        assert_eq!(told.choices(), [ends_fast], "{case}");
        // Slow first, then all fast for a sample; then where they are to be.
        assert!(Told::all_on(&told.rounds, &slow), "{case}");
        assert!(Told::all_on(&told.rounds, &fast), "{case}");
        let last = told.rounds.last().unwrap();
        let wanted = if ends_fast { &fast } else { &slow };
        assert!(last.keys().all(|node| wanted.contains(node)), "{case}");
        assert!(
            by_node(&told.json, "old")
                .iter()
                .all(|(node, _)| wanted.contains(node)),
            "{case}"
        );
        assert!(
            by_node(&told.json, "young")
                .iter()
                .all(|(node, _)| fast.contains(node)),
            "{case}"
        );
        let moves = told.json["decisions"][0]["moves"].as_array().unwrap();
        assert_eq!(moves.len(), if ends_fast { 1 } else { 2 }, "{case}");
        for to in moves {
            assert!(to["bytes"].as_u64().unwrap() > 15 << 20, "{case}");
            assert_eq!(to["elsewhere_bytes"], 0, "{case}");
        }
        assert_eq!(told.json["notes"], json!([]), "{case}");
    }
}

#[test]
fn old_objects_go_back_to_slow_memory_when_fast_memory_pays_no_more() {
    if skip_unless_two_kinds() {
        return;
    }
    let Some(folder) = rounds() else { return };
    let (fast, slow) = kinds();
    let first = fast[0].to_string();
    let words = [&*first, "4000", "reports", "said"];
    let told = told(
        folder.path(),
        &["--plan", AGAIN],
        "-XX:+UseSerialGC",
        &words,
    );
    let case = format!("{:?} {}", told.rounds, told.json["decisions"]);
    // Fast memory as long as it pays; then slow memory, as soon as a sample says so.
    let choices = told.choices();
    let pays = choices.iter().take_while(|fast| **fast).count();
    assert!(pays >= 1 && choices.len() > pays, "{case}");
    assert!(choices[pays..].iter().all(|fast| !fast), "{case}");
    // Objects are where the last move went, to the last page, and the program saw them there.
    let moves = told.json["decisions"][0]["moves"].as_array().unwrap();
    assert!(moves.len() >= 4, "{case}");
    for (number, to) in moves.iter().enumerate() {
        assert_eq!(to["fast"], number % 2 == 0, "{case}");
        assert!(to["bytes"].as_u64().unwrap() > 15 << 20, "{case}");
        assert_eq!(to["elsewhere_bytes"], 0, "{case}");
    }
    let last = moves.last().unwrap()["fast"] == true;
    let wanted = if last { &fast } else { &slow };
    let old = by_node(&told.json, "old");
    assert!(old.iter().all(|(node, _)| wanted.contains(node)), "{case}");
    let seen = (0..told.rounds.len())
        .find(|&at| Told::all_on(&told.rounds[at..=at], &fast))
        .unwrap_or_else(|| panic!("{case}"));
    assert!(Told::all_on(&told.rounds[seen..], &slow), "{case}");
}

/// The kernel ends a move at the first page whose node is full. The other slow node has room.
#[test]
fn a_slow_node_that_is_full_leaves_its_part_to_the_others() {
    if skip_unless_two_kinds() {
        return;
    }
    let (fast, slow) = kinds();
    let Some(folder) = rounds() else { return };
    let Some(fills) = tiered(folder.path()) else {
        return;
    };
    if slow.len() < 2 {
        return varve_skip::skip!("there is one slow node");
    }
    let node = format!("node={}", slow[1]);
    let fills = fills.to_str().unwrap();
    let running = begun(fills, &["total=40", "hot=0", "seconds=300", &node]);
    let first = fast[0].to_string();
    let words = [&*first, "30", "-", "-"];
    let told = told(
        folder.path(),
        &["--plan", CALM],
        "-XX:+UseParallelGC",
        &words,
    );
    drop(running);
    let case = format!("{:?} {}", told.rounds, told.json["decisions"]);
    let moves = told.json["decisions"][0]["moves"].as_array().unwrap();
    let back = moves.last().unwrap();
    assert_eq!(back["fast"], false, "{case}");
    assert!(back["bytes"].as_u64().unwrap() > 15 << 20, "{case}");
    assert_eq!(back["elsewhere_bytes"], 0, "{case}");
}

#[test]
fn pima_decides_by_equal_allocation_or_by_what_the_program_reports() {
    let (own, alone) = kinds();
    let Some(&node) = own.first().filter(|_| alone.is_empty()) else {
        return varve_skip::skip!("this machine has two kinds of memory");
    };
    let Some(folder) = rounds() else { return };
    let nodes = format!("fast={node},slow={node}");
    let options = ["--nodes", &nodes, "--plan", CALM];
    let run = |collector, words: &[&str]| told(folder.path(), &options, collector, words);
    for collector in ["-XX:+UseSerialGC", "-XX:+UseParallelGC"] {
        let told = run(collector, &["0", "60"]);
        let decided = &told.json["decisions"][0];
        // One node is both kinds: nothing moves, and neither memory is slower.
        assert_eq!(told.choices(), [false], "{decided}");
        let moves = decided["moves"].as_array().unwrap();
        assert!(moves.iter().all(|to| to["bytes"] == 0), "{decided}");
        // What the machine counts for the thread that does all work, but for what is in the young generation at the end.
        let allocated = decided["allocated_bytes"].as_u64().unwrap();
        let missing = told.allocated.abs_diff(allocated);
        assert!(
            missing < told.allocated / 10,
            "{allocated} of {}",
            told.allocated
        );
    }
    // Its reports say that memory on node 7 is fast, which nothing is on; so it is slow all the time.
    let told = run("-XX:+UseSerialGC", &["7", "60", "reports", "said"]);
    let decided = &told.json["decisions"][0];
    assert_eq!(decided["intervals_are"], "that the program reported");
    assert_eq!(told.choices(), [false], "{decided}");
    let slowdown = decided["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|phase| phase["slowdown"].as_f64());
    assert_eq!(slowdown, Some(1.0), "{decided}");
}

#[test]
fn what_cannot_be_placed_runs_as_ever_unless_it_must_be() {
    let (own, alone) = kinds();
    let Some(&node) = own.first().filter(|_| alone.is_empty()) else {
        return varve_skip::skip!("this machine has two kinds of memory");
    };
    let Some(folder) = compiled() else { return };
    let nodes = format!("fast={node},slow={node}");
    let here = ["--plan", "pima", "--nodes", &nodes];
    let must = ["--plan", "pima", "--nodes", &nodes, "--must"];

    // A collector whose generations have no places.
    let runs = grown(folder.path(), &here, "-XX:+UseG1GC").well();
    assert_eq!(runs.out, "grown\n");
    assert!(
        runs.err.contains("no generation was placed"),
        "{}",
        runs.err
    );
    let ends = grown(folder.path(), &must, "-XX:+UseG1GC");
    assert_eq!((ends.code, &*ends.out), (2, ""), "{}", ends.err);
    assert!(
        ends.err.contains("(G1): take -XX:+UseSerialGC"),
        "{}",
        ends.err
    );

    // Without the counters that tell of allocation; without what debuggers attach to, which is not needed.
    let java = |option: &str, plan: &[&str]| {
        let words = format!("-- java -XX:+UseSerialGC {option} -Xmx80m -Xmn6m -cp");
        let words = typed(&words);
        let program = [folder.path().to_str().unwrap(), "Grows"];
        varve(&[&["run", "--live"], plan, &words, &program].concat()).well()
    };
    let uncounted = java("-XX:-UsePerfData", &here);
    assert!(
        uncounted.err.contains("-XX:-UsePerfData"),
        "{}",
        uncounted.err
    );
    let small = ["--plan", "pima:allocation=4MiB", "--nodes", &nodes];
    let unattached = java("-XX:+DisableAttachMechanism", &small);
    assert!(unattached.err.contains("pima at"), "{}", unattached.err);
    assert!(!unattached.err.contains("note:"), "{}", unattached.err);

    // Programs that end before anything is known of them.
    let early = |words: &[&str]| varve(&[&["run", "--live"], &here[..], &["--"], words].concat());
    let version = early(&["java", "-XX:+UseSerialGC", "-version"]).well();
    assert!(
        version.err.contains("before its first interval"),
        "{}",
        version.err
    );
    let wrong = early(&["java", "-XX:+NoSuchOption"]);
    assert_eq!(wrong.code, 1, "{}", wrong.err);
    assert!(
        wrong.err.contains("no Java virtual machine"),
        "{}",
        wrong.err
    );
    early(&["no-such-java"]).refuses(2, &["no-such-java"]);
    let none = varve(&[&["run", "--live"], &must[..], &["--", "true"]].concat());
    assert_eq!(none.code, 2, "{}", none.err);

    // What is no plan here, and a plan that is not for models.
    for (plan, said) in [
        ("pima:alpha=0", "alpha"),
        ("pima:allocation=1", "1MiB"),
        ("pima:speed=2", "speed"),
    ] {
        varve(&[
            "run", "--live", "--plan", plan, "--nodes", &nodes, "--", "java",
        ])
        .refuses(2, &[said]);
    }
    varve(&["run", "--plan", "pima", "--", "java", "X"]).refuses(2, &["--live"]);
}

/// A folder with the compiled program; none where Java is missing, which is said.
fn compiled() -> Option<tempfile::TempDir> {
    let debian = "openjdk-17-jdk-headless";
    if !has("java", debian) || !has("javac", debian) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Grows.java");
    std::fs::write(&source, PROGRAM).unwrap();
    let made = Command::new("javac").arg(&source).status();
    assert!(made.unwrap().success());
    Some(folder)
}

/// Runs it with a heap that has to grow several times.
fn grown(folder: &Path, options: &[&str], collector: &str) -> Said {
    let java = format!(
        "-- java {collector} -Xms8m -Xmx80m -Xmn6m -XX:TieredStopAtLevel=1 -cp {} Grows",
        folder.display()
    );
    let java = typed(&java);
    varve(&[&["run", "--live"], options, &java].concat())
}

/// Bytes by node of a part of the memory of the one machine that ran.
fn by_node(json: &Value, what: &str) -> Vec<(u32, u64)> {
    let parts = json["processes"][0]["memory"].as_array().unwrap();
    let parts = parts.iter().filter(|part| part["name"] == what);
    let nodes = parts.flat_map(|part| part["bytes_by_node"].as_object().unwrap());
    nodes
        .map(|(node, bytes)| (node.parse().unwrap(), bytes.as_u64().unwrap()))
        .collect()
}

#[test]
fn generations_are_bound_and_moved_where_the_plan_has_them() {
    if skip_unless_two_kinds() {
        return;
    }
    let Some(folder) = compiled() else { return };
    let (fast, slow) = kinds();
    for (plan, young, old) in [
        ("kg-n", &fast, &slow),
        ("slow-scan", &slow, &fast),
        ("slow", &slow, &slow),
    ] {
        let options = ["--json", "--plan", plan];
        let said = grown(folder.path(), &options, "-XX:+UseSerialGC").well();
        let json = said.json();
        for (what, nodes, least) in [("young", young, 4 << 20), ("old", old, 40 << 20)] {
            let found = by_node(&json, what);
            let all: u64 = found.iter().map(|(_, bytes)| bytes).sum();
            assert!(all >= least, "{plan} {what}: {found:?}");
            for (node, bytes) in found {
                assert!(
                    nodes.contains(&node),
                    "{plan} {what}: {bytes} bytes on node {node}"
                );
            }
        }
        assert_eq!(json["notes"], json!([]), "{plan}");
        // The same sums in a row as those of models.
        let row = &json["runs"][0];
        assert_eq!(
            (&row["plan"], &row["minor"]["count"]),
            (&json!(plan), &json["processes"][0]["minor"])
        );
        for (key, nodes) in [("fast_bytes", &fast), ("slow_bytes", &slow)] {
            let parts = ["young", "old", "metaspace", "code"].map(|what| by_node(&json, what));
            let there = parts
                .iter()
                .flatten()
                .filter(|(node, _)| nodes.contains(node));
            let bytes: u64 = there.map(|(_, bytes)| bytes).sum();
            assert_eq!(row[key], bytes, "{plan}: {row}");
        }
    }
}

#[test]
fn pages_in_turns_are_on_nodes_of_both_kinds() {
    if skip_unless_two_kinds() {
        return;
    }
    let Some(folder) = compiled() else { return };
    let options = ["--json", "--plan", "interleave"];
    let said = grown(folder.path(), &options, "-XX:+UseParallelGC").well();
    let json = said.json();
    let found = by_node(&json, "old");
    let (fast, slow) = kinds();
    for nodes in [fast, slow] {
        let there = found.iter().filter(|(node, _)| nodes.contains(node));
        let bytes: u64 = there.map(|(_, bytes)| bytes).sum();
        assert!(bytes > 10 << 20, "{nodes:?}: {found:?}");
    }
}

#[test]
fn where_all_memory_is_alike_it_is_said() {
    let (own, alone) = kinds();
    if !own.is_empty() && !alone.is_empty() {
        return varve_skip::skip!("this machine has two kinds of memory");
    }
    let alike = varve(&["run", "--live", "--plan", "kg-n", "--", "java", "X"]);
    alike.refuses(2, &["--live --plan kg-n", "all memory is alike"]);
    varve(&["run", "--live", "--plan", "hotset", "--", "java", "X"])
        .refuses(2, &["hotset", "varve tier --policy hotset -- java X"]);
    varve(&["run", "--live", "--plan", "kg-m", "--", "java", "X"]).refuses(2, &["kg-m", "kg-n"]);

    // one node as both kinds: all works, and nothing is elsewhere
    let Some(folder) = compiled() else { return };
    let Some(node) = own.first() else { return };
    let nodes = format!("fast={node},slow={node}");
    let said = grown(
        folder.path(),
        &["--plan", "kg-n", "--nodes", &nodes],
        "-XX:+UseParallelGC",
    )
    .well();
    assert_eq!(said.out, "grown\n");
    for word in [
        "Parallel: ",
        "young: ",
        "old: ",
        "metaspace: ",
        &format!("on node {node}"),
    ] {
        assert!(said.err.contains(word), "no `{word}` in {}", said.err);
    }
    assert!(!said.err.contains("note:"), "{}", said.err);

    let g1 = grown(
        folder.path(),
        &["--plan", "kg-n", "--nodes", &nodes],
        "-XX:+UseG1GC",
    )
    .well();
    assert!(g1.err.contains("no generation was placed"), "{}", g1.err);

    // What is no virtual machine runs as ever, and it is said.
    let other = varve(&[
        "run",
        "--live",
        "--plan",
        "kg-n",
        "--nodes",
        &nodes,
        "--",
        "sh",
        "-c",
        "echo hello; exit 3",
    ]);
    assert_eq!((other.code, &*other.out), (3, "hello\n"), "{}", other.err);
    assert!(
        other.err.contains("no Java virtual machine"),
        "{}",
        other.err
    );
}
