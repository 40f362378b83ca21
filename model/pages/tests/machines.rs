//! Real machines cut into pages, and the memory of their book-keeping.

mod common;

use common::{cached, touch, two_sockets_tiered};
use varve_access::Pager;
use varve_machine::Machine;
use varve_pages::{NodeFrames, Placement, Topology, policies};

const GIB: u64 = 1 << 30;

fn machine(name: &str) -> Machine {
    Machine::load_from(name, &[]).unwrap()
}

#[test]
fn memory_mode_is_one_node_per_socket_with_bins() {
    let machine = machine("optane-6230-memory-mode");
    let topology = Topology::of(&machine, 2 << 20).unwrap();
    let node = |socket| NodeFrames {
        frames: (machine.pm_bytes() >> 21) as u32,
        fast: false,
        socket,
        bins: Some(48 * 512),
        ways: 1,
        dimms: 0,
    };
    assert_eq!(topology.nodes, [node(0), node(1)]);
    assert!(topology.has_cache() && !topology.has_tiers());
}

#[test]
fn a_flat_machine_has_its_dram_first() {
    let machine = machine("optane-6230");
    let topology = Topology::of(&machine, 4096).unwrap();
    let kinds: Vec<(bool, u32)> = topology.nodes.iter().map(|n| (n.fast, n.socket)).collect();
    assert_eq!(kinds, [(true, 0), (true, 1), (false, 0), (false, 1)]);
    assert_eq!(
        u64::from(topology.nodes[2].frames) * 4096,
        machine.pm_bytes()
    );
    assert_eq!(topology.nearest(1), [1, 3, 0, 2]);
}

#[test]
fn frames_are_numbered_as_the_nodes_of_the_machine_are_addressed() {
    for (name, _) in varve_machine::load::builtin() {
        let machine = machine(name);
        let topology = Topology::of(&machine, 4096).unwrap();
        let bytes: Vec<u64> = topology
            .nodes
            .iter()
            .map(|n| u64::from(n.frames) * 4096)
            .collect();
        let nodes: Vec<u64> = machine.nodes().iter().map(|node| node.bytes.0).collect();
        assert_eq!(bytes, nodes, "{name}");
    }
}

#[test]
fn more_ways_make_fewer_bins() {
    let mut machine = machine("optane-6230-memory-mode");
    machine.dram_cache.as_mut().unwrap().ways = 4;
    let topology = Topology::of(&machine, 2 << 20).unwrap();
    assert_eq!(
        (topology.nodes[0].bins, topology.nodes[0].ways),
        (Some(12 * 512), 4)
    );
}

#[test]
fn pages_that_do_not_fit_are_refused_in_one_line() {
    let mut memory_mode = machine("optane-6230-memory-mode");
    let pm = memory_mode.pm.as_mut().unwrap();
    pm.dimm_bytes.0 = 512 * GIB / u64::from(pm.dimms);
    let error = |machine: &Machine, page| Topology::of(machine, page).unwrap_err().to_string();
    assert_eq!(
        error(&memory_mode, 1 << 40),
        "machine `optane-6230-memory-mode`: a page of 1099511627776 B is larger than the PM of a socket of 549755813888 B; use smaller pages"
    );
    assert!(error(&memory_mode, 64 * GIB).contains("larger than the DRAM cache of 51539607552 B"));
    assert!(error(&memory_mode, 32 * GIB).contains("is not a whole number of 34359738368 B"));
    assert!(error(&memory_mode, 5000).contains("use a power of two"));
    assert!(error(&memory_mode, 64).contains("are more than 4294967295; use larger pages"));
    assert!(error(&machine("optane-6230"), 128 * GIB).contains("larger than the DRAM of a socket"));
    let mut tiny = memory_mode.clone();
    tiny.dram_cache.as_mut().unwrap().bytes.0 = 8 << 20;
    assert!(error(&tiny, 4096).contains("65536 pages share a bin"));
    let spec = Placement::new("static", &memory_mode, 1 << 40)
        .err()
        .unwrap()
        .to_string();
    assert_eq!(spec, error(&memory_mode, 1 << 40));
}

/// D12: "less than 50MB for a system with 128GB of DRAM and 1TB of PMEM", with 2 MB pages.
#[test]
fn metadata_of_a_terabyte_stays_below_the_papers_bound() {
    let one_tb = cached(512 << 10, 64 << 10);
    let tiers = Topology {
        page_bytes: 2 << 20,
        nodes: [(64 << 10, true), (512 << 10, false)]
            .map(|(frames, fast)| NodeFrames {
                frames,
                fast,
                socket: 0,
                bins: None,
                ways: 1,
                dimms: 0,
            })
            .to_vec(),
    };
    for entry in policies() {
        let spec = common::spec(entry);
        for topology in [&one_tb, &tiers] {
            let Ok(placement) = Placement::on(&spec, topology.clone()) else {
                continue;
            };
            let megabytes = placement.bytes() as f64 / 1e6;
            // A page number of 8 bytes and one bit per frame are the least that any policy keeps.
            assert!((4.2..20.0).contains(&megabytes), "{spec}: {megabytes} MB");
            assert_eq!(placement.dump().metadata_bytes, placement.bytes());
        }
    }
}

#[test]
fn huge_machines_are_made_and_used_at_once() {
    // 12 TB of 2 MiB pages behind 1.5 TB of cache, and 1 TB of 4 KiB pages behind 128 GB.
    let many = Topology {
        page_bytes: 4096,
        ..cached(256 << 20, 32 << 20)
    };
    for topology in [cached(6 << 20, 768 << 10), many] {
        for spec in ["first-touch", "random", "static", "dynamic"] {
            let mut placement = Placement::on(spec, topology.clone()).unwrap();
            let frames: Vec<u32> = (0..1000)
                .map(|vpn| placement.fault(&touch(vpn)).unwrap())
                .collect();
            for (vpn, &frame) in (0..1000).zip(&frames) {
                placement.unmap(vpn, frame);
            }
            assert_eq!(placement.frames().used(), 0);
        }
    }
}

#[test]
fn nodes_of_a_memory_are_listed_by_number_or_by_distance() {
    let mut topology = two_sockets_tiered();
    assert_eq!(topology.nodes_of(true), [0, 1]);
    assert_eq!(topology.nearest_of(1, true), [1, 0]);
    assert_eq!(
        (topology.frames_of(true), topology.frames_of(false)),
        (16, 50)
    );
    // Slow memory of another kind on both sockets.
    topology.nodes.extend_from_within(2..4);
    assert_eq!(topology.nodes_of(false), [2, 3, 4, 5]);
    assert_eq!(topology.nearest_of(0, false), [2, 4, 3, 5]);
}
