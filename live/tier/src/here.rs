//! Machines that a user names: those of files, and the one that this runs on.

use varve_live::probe::StreamTraffic;
use varve_live::{Probe, ProbeOptions, probe};
use varve_machine::load::{ProbedCache, ProbedMachine, ProbedMemory, changes};
use varve_machine::{LoadError, Machine};

/// A machine by name or file, or the one that this runs on (`here`), with what is changed of it.
///
/// # Errors
/// A name or file that there is not, and whatever is wrong with the machine.
pub fn machine(name: &str) -> Result<Machine, LoadError> {
    machine_with_notes(name).map(|(machine, _)| machine)
}

/// The same, with what is to be known of its measurement, a sentence each.
///
/// # Errors
/// As [`machine`].
pub fn machine_with_notes(name: &str) -> Result<(Machine, Vec<String>), LoadError> {
    let (base, changes) = changes(name);
    if base != "here" {
        return Ok((Machine::load(name)?, Vec::new()));
    }
    let probed = probe(&ProbeOptions::default());
    Ok((machine_of_probe(&probed).with(&changes)?, probed.notes))
}

/// Most bandwidth that a probe saw between a processor's node and a memory's.
fn gbps(p: &Probe, cpu: u32, memory: u32, traffic: StreamTraffic) -> Option<f64> {
    p.bandwidth
        .iter()
        .filter(|b| (b.cpu_node, b.memory_node, b.traffic) == (cpu, memory, traffic))
        .map(|b| b.gb_per_s)
        .reduce(f64::max)
}

/// Latency of a chase: the largest one for memory, or the one that fits a cache of `bytes`.
fn chase(p: &Probe, cpu: u32, memory: u32, fits: Option<(u64, u64)>) -> Option<f64> {
    let of_nodes = p
        .latency
        .iter()
        .filter(|l| (l.cpu_node, l.memory_node) == (cpu, memory));
    match fits {
        None => of_nodes.max_by_key(|l| l.bytes).map(|l| l.ns),
        // Beyond the level below, and otherwise as small as can be: other users push lines out of a shared cache, and
        // its whole size may not be ours.
        Some((above, bytes)) => of_nodes
            .filter(|l| l.bytes > above && l.bytes * 2 <= bytes)
            .min_by_key(|l| (l.bytes < above * 4, l.bytes))
            .map(|l| l.ns),
    }
}

/// A probe's findings as a machine called `here`.
pub fn machine_of_probe(p: &Probe) -> Machine {
    let t = &p.topology;
    let sockets = t.processor.sockets.max(1);
    let with_cpus: Vec<_> = t.nodes.iter().filter(|n| !n.cpus.is_empty()).collect();
    let near = with_cpus.first().map_or(0, |n| n.id);
    let cache = |level: u32, above: u64| {
        t.caches
            .iter()
            .find(|c| c.level == level && c.kind != "Instruction")
            .map(|c| ProbedCache {
                bytes: c.bytes,
                ways: c.ways,
                ns: chase(p, near, near, Some((above, c.bytes))),
            })
    };
    let memory = |id: u32, bytes: u64| ProbedMemory {
        bytes,
        // Values of firmware or of common machines, where nothing could be measured.
        read_ns: chase(p, near, id, None).unwrap_or(100.0),
        read_gbps: gbps(p, near, id, StreamTraffic::Read).unwrap_or(10.0),
        write_gbps: gbps(p, near, id, StreamTraffic::Write),
    };
    let l1 = cache(1, 0).unwrap_or(ProbedCache {
        bytes: 32 << 10,
        ways: 8,
        ns: None,
    });
    let l2 = cache(2, l1.bytes).unwrap_or(ProbedCache {
        bytes: 1 << 20,
        ways: 16,
        ns: None,
    });
    let node_bytes = |id: u32| {
        t.nodes
            .iter()
            .find(|n| n.id == id)
            .map_or(1 << 30, |n| n.bytes)
    };
    let slow = t.nodes.iter().find(|n| n.cpus.is_empty() && n.bytes > 0);
    Machine::from_probe(&ProbedMachine {
        cpu: t.processor.model.clone(),
        sockets,
        cores_per_socket: (t.processor.cores / sockets).max(1),
        threads_per_core: (t.processor.threads / t.processor.cores.max(1)).max(1),
        ghz: (t.processor.max_mhz > 0.0).then_some(t.processor.max_mhz / 1000.0),
        l1,
        l2,
        llc: cache(3, l2.bytes),
        dram: memory(near, node_bytes(near)),
        slow: slow.map(|n| memory(n.id, n.bytes)),
        remote: with_cpus.get(1).map(|n| memory(n.id, n.bytes)),
    })
}
