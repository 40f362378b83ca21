//! Generations of stock Java virtual machines on memory nodes. Some stories are of a machine whose memory is all alike, some of
//! one with memory alone on a node: each says that it is skipped on the other. `.ci/run` tells the latter in a guest.

use crate::common::{Said, has, varve};
use crate::nodes::{kinds, skip_unless_two_kinds};
use serde_json::Value;
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
    let java = [
        "--",
        "java",
        collector,
        "-Xms8m",
        "-Xmx80m",
        "-Xmn6m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        folder.to_str().unwrap(),
        "Grows",
    ];
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
        let json: Value = serde_json::from_str(said.out.strip_prefix("grown\n").unwrap()).unwrap();
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
        assert_eq!(json["notes"], serde_json::json!([]), "{plan}");
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
    let json: Value = serde_json::from_str(said.out.strip_prefix("grown\n").unwrap()).unwrap();
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
        return eprintln!("skipped: this machine has two kinds of memory");
    }
    let alike = varve(&["run", "--live", "--plan", "kg-n", "--", "java", "X"]);
    alike.refuses(2, &["--live --plan kg-n", "all memory is alike"]);
    varve(&["run", "--live", "--plan", "hotset", "--", "java", "X"])
        .refuses(2, &["hotset", "kg-n"]);
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
