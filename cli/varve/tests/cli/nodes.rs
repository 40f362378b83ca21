//! Objects on memory nodes. Some stories are of a machine whose memory is all alike, some of one with memory alone on a
//! node: each says that it is skipped on the other. `.ci/run` tells the latter in a guest.

use crate::common::{Said, varve};
use std::collections::BTreeMap;
use std::fs;

/// A few collections of a small nursery, and 20 ms.
const TREES: [&str; 4] = [
    "run",
    "programs/dist/trees.wasm",
    "--heap-max=64MiB",
    "--nursery=512KiB",
];

fn trees(options: &[&str]) -> Said {
    varve(&[&TREES[..], options, &["--", "12"]].concat())
}

/// Nodes in a list of the kernel, such as `has_cpu`.
fn nodes(list: &str) -> Vec<u32> {
    let text = fs::read_to_string(format!("/sys/devices/system/node/{list}"));
    let text = text.unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse::<u32>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Nodes with processors, and those of memory alone.
pub fn kinds() -> (Vec<u32>, Vec<u32>) {
    let own = nodes("has_cpu");
    nodes("has_memory")
        .into_iter()
        .partition(|n| own.contains(n))
}

/// Is there memory of two kinds here?
pub fn two_kinds() -> bool {
    let (own, alone) = kinds();
    !own.is_empty() && !alone.is_empty()
}

pub fn skip_unless_two_kinds() -> bool {
    if !two_kinds() {
        varve_skip::skip!("all memory of this machine is alike");
    }
    !two_kinds()
}

/// A row of the table at the end of `--gc-stats`.
struct Row {
    tier: u8,
    /// MiB; none for tables.
    held: Option<f64>,
    /// MiB by node.
    on: BTreeMap<u32, f64>,
}

/// The table of pages by node, by space.
fn table(err: &str) -> BTreeMap<String, Row> {
    let lines = err
        .lines()
        .skip_while(|l| !l.starts_with("memory of the heap: "));
    let mut lines = lines.skip(1);
    let head = lines.next().unwrap_or_else(|| panic!("no table in {err}"));
    let nodes = head.split("node ").skip(1);
    let nodes: Vec<u32> = nodes.map(|n| n.trim().parse().unwrap()).collect();
    let row = |line: &str| {
        let (name, rest) = line.split_at(11);
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (first, on) = words.split_at_checked(3)?;
        let on = nodes
            .iter()
            .copied()
            .zip(on.iter().map(|w| w.parse().unwrap()));
        Some((
            name.trim().to_string(),
            Row {
                tier: first[0].parse().ok()?,
                held: first[2].parse().ok(),
                on: on.collect(),
            },
        ))
    };
    lines.map_while(row).collect()
}

#[test]
fn where_memory_is_alike_a_plan_runs_and_says_that_it_places_nothing() {
    if two_kinds() {
        return varve_skip::skip!("this machine has memory of two kinds");
    }
    let plain = trees(&[]).well();
    let planned = trees(&["--plan=kg-n"]).well();
    assert_eq!(planned.out, plain.out);
    let notes = |said: &Said| {
        let notes = said.err.lines().filter(|l| l.starts_with("varve: "));
        notes.map(String::from).collect::<Vec<_>>()
    };
    let [note] = &notes(&planned)[..] else {
        panic!("one line: {}", planned.err)
    };
    for words in ["all memory is alike", "kg-n places nothing"] {
        assert!(note.contains(words), "{note}");
    }
    // A plan for one memory runs; a plan that needs two gets a note.
    assert!(notes(&trees(&["--plan=dram"]).well()).is_empty());
    trees(&["--plan=kg-n", "--live"]).refuses(2, &["--live", "all memory is alike"]);
}

#[test]
fn placing_needs_a_plan_and_this_machine() {
    trees(&["--live"]).refuses(2, &["--live", "--plan kg-n"]);
    for option in ["--live", "--nodes=fast=0,slow=1"] {
        trees(&["--plan=kg-n", "--machine=cxl-spr", option]).refuses(
            2,
            &[
                option.split('=').next().unwrap(),
                "runs with its objects on a modelled machine",
            ],
        );
    }
    trees(&["--plan=kg-n", "--live", "--bins=1GiB"]).refuses(2, &["--bins"]);
    varve(&["run", "gups", "--live"]).refuses(2, &["gups", "--live", "after `--`"]);
}

#[test]
fn nodes_that_are_none_are_refused() {
    for (given, words) in [
        ("fast=0", "which nodes are slow"),
        ("fast=0;slow=1", "fast=0,slow=1, several nodes"),
        ("fast=0,slow=1000", "node 1000"),
    ] {
        trees(&["--plan=kg-n", &format!("--nodes={given}")]).refuses(2, &[words]);
    }
}

/// The whole way on any machine: memory is allocated, bound, and checked.
#[test]
fn a_user_may_take_one_node_for_both_memories() {
    let Some(node) = nodes("has_memory").first().copied() else {
        return varve_skip::skip!("the kernel has no NUMA support");
    };
    let nodes = format!("--nodes=fast={node},slow={node}");
    let said = trees(&["--plan=kg-n", &nodes, "--gc-stats"]);
    if said.err.contains("sandbox") {
        return varve_skip::skip!("{}", said.err);
    }
    let said = said.well();
    assert_eq!(said.out, trees(&[]).well().out);
    check(&said.err, |_| vec![node]);
    // It proves nothing of slow memory, and says so; a plan that needs two memories gets a note.
    assert!(said.err.contains(BOTH), "{}", said.err);
    trees(&["--plan=kg-n", &nodes, "--live"]).refuses(2, &["--live", BOTH]);
}

/// A plan that moves objects to and fro gives back slow memory, which comes again.
#[test]
fn slow_memory_that_objects_leave_goes_through_the_pool() {
    let Some(first) = nodes("has_memory").first().copied() else {
        return varve_skip::skip!("the kernel has no NUMA support");
    };
    let (fast, slow) = match two_kinds() {
        true => kinds(),
        false => (vec![first], vec![first]),
    };
    let run = |plan: &str| {
        let nodes = format!("--nodes=fast={},slow={}", fast[0], slow[0]);
        let graph = "run programs/dist/graph.wasm --gc-stats".split(' ');
        let input = "-- pagerank --scale 10 --iterations 6 --top 2".split(' ');
        let options = [plan, &nodes];
        varve(&graph.chain(options).chain(input).collect::<Vec<_>>())
    };
    // Intervals take longer than that, so that each hold-off ends in another try.
    let said = run("--plan=pima:hold-off=1us");
    if said.err.contains("sandbox") {
        return varve_skip::skip!("{}", said.err);
    }
    let said = said.well();
    assert_eq!(said.out, run("--plan=kg-n").well().out);
    check(&said.err, |tier| match tier {
        0 => fast[..1].to_vec(),
        _ => slow[..1].to_vec(),
    });
    let line = said
        .err
        .lines()
        .find(|l| l.starts_with("pool of slow memory"));
    let line = line.unwrap_or_else(|| panic!("no line of the pool in {}", said.err));
    let mib: Vec<f64> = line
        .split([' ', ':', ','])
        .filter_map(|word| word.parse().ok())
        .collect();
    let [given, taken, zero, dirty] = mib[..] else {
        panic!("{line}");
    };
    assert!(given >= 2.0, "{line}");
    assert_eq!(given, taken + zero + dirty, "{line}");
}

/// Every page of every space is on the nodes that its memory is on, and what spaces hold is in memory.
fn check(err: &str, nodes: impl Fn(u8) -> Vec<u32>) {
    let rows = table(err);
    let spaces: Vec<&str> = rows.keys().map(|name| &**name).collect();
    for name in ["nursery", "mature", "large", "tables"] {
        assert!(spaces.iter().any(|s| s.starts_with(name)), "{spaces:?}");
    }
    for (name, row) in &rows {
        let wanted = nodes(row.tier);
        let (there, elsewhere): (Vec<_>, Vec<_>) =
            row.on.iter().partition(|(node, _)| wanted.contains(node));
        let sum = |of: Vec<(&u32, &f64)>| of.iter().map(|(_, mib)| **mib).sum::<f64>();
        assert_eq!(sum(elsewhere), 0.0, "{name} is elsewhere: {err}");
        // Figures of one digit; of the nursery's last chunk some may never have been in use.
        if let Some(held) = row.held {
            let there = sum(there);
            assert!(
                (there - held).abs() < 0.11,
                "{name}: {there} of {held}: {err}"
            );
        }
    }
    let mut notes = err.lines().filter(|l| l.contains("varve: note"));
    assert!(notes.all(|l| l.contains(BOTH)), "{err}");
}

/// The note if one node is both memories.
const BOTH: &str = "is both fast and slow by --nodes";

#[test]
fn on_two_memories_every_space_is_where_its_plan_wants_it() {
    if skip_unless_two_kinds() {
        return;
    }
    let (fast, slow) = kinds();
    let plain = trees(&[]).well();
    for plan in ["dram", "slow", "slow-scan", "slow-copy", "kg-n", "kg-w"] {
        let said = trees(&[&format!("--plan={plan}"), "--live", "--gc-stats"]).well();
        assert_eq!(said.out, plain.out, "{plan}");
        check(&said.err, |tier| match tier {
            0 => fast.clone(),
            _ => slow.clone(),
        });
        let rows = table(&said.err);
        let mib = |space: &str, nodes: &[u32]| {
            let row = rows.get(space);
            row.map_or(0.0, |row| nodes.iter().map(|n| row.on[n]).sum::<f64>())
        };
        // What that means, once more and plainly.
        match plan {
            "dram" => assert!(mib("nursery", &fast) > 0.0 && mib("mature", &fast) > 0.0),
            "slow" => assert!(mib("nursery", &slow) > 0.0 && mib("mature 1", &slow) > 0.0),
            "kg-n" => assert!(mib("nursery", &fast) > 0.0 && mib("mature 1", &slow) > 0.0),
            _ => {}
        }
    }
    // Without --live too; and without a table nothing is said, since all is well.
    let quiet = trees(&["--plan=kg-n"]).well();
    assert!(!quiet.err.contains("varve: "), "{}", quiet.err);
}

#[test]
fn a_user_may_say_which_node_is_slow() {
    if skip_unless_two_kinds() {
        return;
    }
    let (fast, slow) = (kinds().0[0], kinds().1[0]);
    let exchanged = format!("--nodes=fast={slow},slow={fast}");
    let said = trees(&["--plan=kg-n", &exchanged, "--gc-stats"]).well();
    check(&said.err, |tier| match tier {
        0 => vec![slow],
        _ => vec![fast],
    });
}

/// An array of 64 MiB does not fit a node of 32: the program ends in order, with one line that says which node, and no process is killed.
#[test]
fn a_full_node_ends_the_program_with_one_line() {
    let bytes = |node: &u32| {
        let path = format!("/sys/devices/system/node/node{node}/meminfo");
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|l| l.contains("MemTotal:"));
        let kib = line.and_then(|l| l.split_whitespace().nth(3)?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    };
    let (fast, alone) = kinds();
    let Some(small) = alone.iter().find(|n| (1..64 << 20).contains(&bytes(n))) else {
        return varve_skip::skip!("no node of memory alone has less than 64 MiB");
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.wasm");
    let text = r#"(module (type $a (array (mut i8)))
        (func (export "take") (param i32) (result i32)
          (array.len (array.new_default $a (local.get 0)))))"#;
    fs::write(&file, wat::parse_str(text).unwrap()).unwrap();
    let take = |bytes: &str, nodes: &str| {
        let file = file.to_str().unwrap();
        varve(&format!(
            "run {file} --invoke=take --plan=kg-n {nodes} -- {bytes}"
        ))
    };
    let nodes = format!("--nodes=fast={},slow={small}", fast[0]);
    take("1000000", &nodes).well();
    let said = take("67108864", &nodes);
    said.refuses(
        1,
        &[&format!("node {small} (slow memory) is full"), "--heap-max"],
    );
    // The other memory has room.
    take(
        "67108864",
        &format!("--nodes=fast={small},slow={}", fast[0]),
    )
    .well();
}
