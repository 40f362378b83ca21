//! A machine with a CXL expander and DRAM in front of persistent memory, as Linux describes it.

use std::fs;
use std::path::Path;
use varve_live::probe::{Attached, SideCache, Topology};

fn put(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn tiers_caches_and_devices_are_found() {
    let root = tempfile::tempdir().unwrap();
    let node = "sys/devices/system/node";
    put(
        root.path(),
        &[
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Some Processor\nflags\t\t: fpu clwb\n",
            ),
            ("sys/devices/system/cpu/online", "0-1\n"),
            (
                "sys/devices/system/cpu/cpu0/topology/physical_package_id",
                "0\n",
            ),
            (
                "sys/devices/system/cpu/cpu1/topology/physical_package_id",
                "1\n",
            ),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
                "3900000\n",
            ),
            ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
            ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified\n"),
            ("sys/devices/system/cpu/cpu0/cache/index3/size", "28160K\n"),
            (&format!("{node}/node0/cpulist"), "0-1\n"),
            (
                &format!("{node}/node0/meminfo"),
                "Node 0 MemTotal:  1000 kB\nNode 0 MemFree:  400 kB\n",
            ),
            (&format!("{node}/node0/distance"), "10 20\n"),
            (
                &format!("{node}/node0/memory_side_cache/index1/size"),
                "51539607552\n",
            ),
            (
                &format!("{node}/node0/memory_side_cache/index1/line_size"),
                "64\n",
            ),
            (
                &format!("{node}/node0/memory_side_cache/index1/indexing"),
                "0\n",
            ),
            (&format!("{node}/node2/cpulist"), "\n"),
            (
                &format!("{node}/node2/meminfo"),
                "Node 2 MemTotal:  8000 kB\nNode 2 MemFree:  8000 kB\n",
            ),
            (&format!("{node}/node2/distance"), "20 10\n"),
            (
                &format!("{node}/node2/access1/initiators/read_bandwidth"),
                "32000\n",
            ),
            (
                &format!("{node}/node2/access1/initiators/write_bandwidth"),
                "30000\n",
            ),
            (
                &format!("{node}/node2/access1/initiators/read_latency"),
                "250\n",
            ),
            (
                &format!("{node}/node2/access1/initiators/write_latency"),
                "260\n",
            ),
            ("sys/bus/dax/devices/dax0.0/size", "1024\n"),
            ("sys/bus/dax/devices/dax0.0/target_node", "2\n"),
            ("sys/bus/cxl/devices/mem0/ram/size", "0x4000000000\n"),
            ("sys/bus/cxl/devices/mem0/numa_node", "0\n"),
            ("sys/bus/cxl/devices/root0/uevent", "\n"),
        ],
    );
    let (t, notes) = Topology::read(root.path());
    assert_eq!(
        (
            &*t.processor.model,
            t.processor.sockets,
            t.processor.max_mhz
        ),
        ("Some Processor", 2, 3900.0)
    );
    assert!(!t.processor.virtual_machine);
    assert_eq!(t.last_level_bytes(), 28160 << 10);
    let ids: Vec<(u32, usize)> = t.nodes.iter().map(|n| (n.id, n.cpus.len())).collect();
    assert_eq!(ids, [(0, 2), (2, 0)]);
    assert_eq!(
        (t.nodes[0].bytes, t.nodes[0].free_bytes),
        (1000 << 10, 400 << 10)
    );
    let side = SideCache {
        level: 1,
        bytes: 48 << 30,
        line_bytes: 64,
        indexing: "direct-mapped".into(),
    };
    assert_eq!(t.nodes[0].side_caches, [side]);
    let far = Attached {
        class: 1,
        read_mb_per_s: 32000,
        write_mb_per_s: 30000,
        read_ns: 250,
        write_ns: 260,
    };
    assert_eq!(t.nodes[1].attached, [far]);
    assert_eq!((t.dax.len(), t.dax[0].target_node), (1, 2));
    assert_eq!((t.cxl.len(), t.cxl[0].ram_bytes), (1, 256 << 30));
    assert_eq!(
        notes.len(),
        1,
        "only the memory modules are missing: {notes:?}"
    );
}

#[test]
fn an_empty_tree_is_noted_and_no_error() {
    let root = tempfile::tempdir().unwrap();
    let (t, notes) = Topology::read(root.path());
    assert!(t.nodes.is_empty() && t.caches.is_empty());
    assert!(notes.iter().any(|n| n.contains("memory nodes")));
}

fn with_caches(sizes: &[&str]) -> Topology {
    let root = tempfile::tempdir().unwrap();
    for (node, size) in sizes.iter().enumerate() {
        let cache = format!("sys/devices/system/node/node{node}/memory_side_cache/index1/size");
        put(root.path(), &[(&cache, size)]);
    }
    Topology::read(root.path()).0
}

#[test]
fn the_dram_cache_is_as_large_as_the_kernel_says() {
    let two = with_caches(&["51539607552\n", "51539607552\n"]);
    assert_eq!(two.dram_cache_bytes().unwrap(), 48 << 30);
}

#[test]
fn where_the_kernel_does_not_say_how_large_the_dram_cache_is_the_option_is_named() {
    let none = with_caches(&[]).dram_cache_bytes().unwrap_err().to_string();
    assert!(none.contains("--bins 48GiB"), "{none}");
    let two = with_caches(&["51539607552\n", "1073741824\n"]);
    let two = two.dram_cache_bytes().unwrap_err().to_string();
    assert!(
        two.contains("node 1: 1024 MiB") && two.contains("--bins"),
        "{two}"
    );
}
