//! Which nodes are fast and which are slow, by what Linux shows of a machine and by what a user says.

use std::fs;
use std::path::Path;
use varve_live::nodes::{Kinds, NoKinds, NodeError};
use varve_live::probe::Topology;

/// A node as the kernel shows it. Empty texts: no such file.
struct Node {
    id: u32,
    cpus: &'static str,
    kib: u64,
    distance: &'static str,
    /// Latency in ns and bandwidth in MB/s, as the firmware states them.
    stated: Option<(u64, u64)>,
}

const fn node(id: u32, cpus: &'static str, kib: u64) -> Node {
    Node {
        id,
        cpus,
        kib,
        distance: "",
        stated: None,
    }
}

const fn stated(id: u32, cpus: &'static str, ns: u64, mb_per_s: u64) -> Node {
    let stated = Some((ns, mb_per_s));
    Node {
        stated,
        ..node(id, cpus, 1 << 20)
    }
}

fn put(path: &Path, text: impl AsRef<str>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text.as_ref()).unwrap();
}

fn machine(nodes: &[Node]) -> Topology {
    let root = tempfile::tempdir().unwrap();
    for n in nodes {
        let folder = root
            .path()
            .join(format!("sys/devices/system/node/node{}", n.id));
        put(&folder.join("cpulist"), format!("{}\n", n.cpus));
        put(
            &folder.join("meminfo"),
            format!("Node {} MemTotal:       {} kB\n", n.id, n.kib),
        );
        put(&folder.join("distance"), n.distance);
        if let Some((ns, mb_per_s)) = n.stated {
            let initiators = folder.join("access0/initiators");
            for way in ["read", "write"] {
                put(
                    &initiators.join(format!("{way}_latency")),
                    format!("{ns}\n"),
                );
                put(
                    &initiators.join(format!("{way}_bandwidth")),
                    format!("{mb_per_s}\n"),
                );
            }
        }
    }
    Topology::read(root.path()).0
}

fn probe(nodes: &[Node]) -> Result<String, NoKinds> {
    Kinds::probe(&machine(nodes)).map(|kinds| kinds.to_string())
}

#[test]
fn memory_alone_is_slow() {
    let cxl = probe(&[node(0, "0-15", 1 << 20), node(1, "", 1 << 22)]);
    assert_eq!(cxl.as_deref(), Ok("fast=0,slow=1"));
    // Two sockets with persistent memory each, and a node that has lost its memory.
    let optane = probe(&[
        node(0, "0-15", 1 << 20),
        node(1, "16-31", 1 << 20),
        node(2, "", 1 << 23),
        node(3, "", 1 << 23),
        node(4, "", 0),
    ]);
    assert_eq!(optane.as_deref(), Ok("fast=0+1,slow=2+3"));
}

#[test]
fn the_firmware_says_what_memory_alone_is() {
    let slower = [stated(0, "0-15", 80, 100_000), stated(1, "", 250, 30_000)];
    assert_eq!(probe(&slower).as_deref(), Ok("fast=0,slow=1"));
    // High-bandwidth memory has a little more latency and much more bandwidth.
    let faster = [stated(0, "0-15", 90, 250_000), stated(1, "", 110, 900_000)];
    assert_eq!(probe(&faster).as_deref(), Ok("fast=1,slow=0"));
    // With an expander besides, the ordinary kind is the fast one.
    let both = [
        stated(0, "0-15", 90, 250_000),
        stated(1, "", 110, 900_000),
        stated(2, "", 250, 30_000),
    ];
    assert_eq!(probe(&both).as_deref(), Ok("fast=0,slow=2"));
}

/// Processors on a node without memory: whatever else tells the other nodes apart.
#[test]
fn without_memory_near_the_processors_distance_decides() {
    let far = |distance| Node {
        distance,
        ..node(1, "", 1 << 20)
    };
    let near = Node {
        id: 2,
        ..far("12 22 10")
    };
    let nodes = [node(0, "0-3", 0), far("20 10 22"), near];
    assert_eq!(probe(&nodes).as_deref(), Ok("fast=2,slow=1"));
    let nodes = [
        node(0, "0-3", 0),
        stated(1, "", 100, 1000),
        stated(2, "", 300, 1000),
    ];
    assert_eq!(probe(&nodes).as_deref(), Ok("fast=1,slow=2"));
}

#[test]
fn memory_of_one_kind_is_told_from_memory_of_two() {
    for (nodes, says) in [
        (vec![], "without NUMA support"),
        (vec![node(0, "0-3", 1 << 20)], "node 0 alone"),
        (
            vec![node(0, "0-3", 1 << 20), node(1, "", 0)],
            "node 0 alone",
        ),
        (
            vec![node(0, "0", 1 << 20), node(1, "1", 1 << 20)],
            "--nodes fast=0,slow=1",
        ),
        (
            vec![node(0, "0", 0), node(1, "", 4096), node(2, "", 4096)],
            "nodes 1+2",
        ),
    ] {
        let line = Kinds::probe(&machine(&nodes)).unwrap_err().to_string();
        assert!(line.starts_with("all memory is alike"), "{line}");
        assert!(line.contains(says) && !line.contains('\n'), "{line}");
    }
}

fn two_sockets() -> Topology {
    machine(&[
        node(0, "0", 1 << 20),
        node(1, "1", 1 << 20),
        node(2, "2", 0),
        node(7, "", 4096),
    ])
}

#[test]
fn a_user_names_nodes() {
    let topology = two_sockets();
    for (given, read) in [
        ("fast=0,slow=1", "fast=0,slow=1"),
        ("slow=7,fast=0-1", "fast=0+1,slow=7"),
        (" fast = 1+0 ,slow=1+1", "fast=0+1,slow=1"),
    ] {
        let kinds = Kinds::parse(given, &topology).unwrap();
        assert_eq!(kinds.to_string(), read);
        assert_eq!(Kinds::parse(&kinds.to_string(), &topology).unwrap(), kinds);
        assert_eq!(kinds.of_tier(0), kinds.fast);
        assert_eq!(
            (kinds.of_tier(1), kinds.of_tier(3)),
            (&*kinds.slow, &*kinds.slow)
        );
    }
}

#[test]
fn what_is_no_map_of_nodes_is_one_clear_line() {
    let topology = two_sockets();
    for (given, says) in [
        ("", "has no `=`"),
        ("0,1", "has no `=`"),
        ("fast=0", "which nodes are slow"),
        ("slow=0", "which nodes are fast"),
        ("fast=0,slow=1,fast=0", "fast comes twice"),
        ("fast=0,middle=1", "\"middle\""),
        ("fast=,slow=1", "\"\" are no nodes"),
        ("fast=0,slow=1-", "\"1-\" are no nodes"),
        ("fast=0,slow=-1", "\"-1\" are no nodes"),
        ("fast=3-1,slow=1", "\"3-1\" are no nodes"),
        ("fast=0,slow=99999999999", "are no nodes"),
        ("fast=0-4294967295,slow=1", "are no nodes"),
        ("fast=0,slow=3", "node 3: this machine has none"),
        ("fast=0,slow=2", "node 2 has no memory"),
    ] {
        let error = Kinds::parse(given, &topology).unwrap_err();
        let line = error.to_string();
        assert!(
            line.contains(says) && !line.contains('\n'),
            "{given}: {line}"
        );
        // The remedy: how it is written, or which nodes there are.
        match error {
            NodeError::Text { .. } => assert!(line.contains("fast=0,slow=1, several"), "{line}"),
            _ => assert!(line.ends_with("0+1+7"), "{line}"),
        }
    }
}
