//! From a set-up to what is wrong with it. No I/O.

use super::seen::{Block, Setup};
use super::weights::{Measured, bandwidths, differ, weights};
use super::{Back, Finding, NOTHING, Step};
use crate::nodes::Kinds;
use std::collections::BTreeMap;

const AUTO_ONLINE: &str = "sys/devices/system/memory/auto_online_blocks";
const DEMOTION: &str = "sys/kernel/mm/numa/demotion_enabled";
const BALANCING: &str = "proc/sys/kernel/numa_balancing";
const WEIGHTS: &str = "sys/kernel/mm/mempolicy/weighted_interleave";
const DAX: &str = "sys/bus/dax";

/// All that is wrong, in the order in which it is to be changed: memory comes first, and then what is done with it.
pub fn judge(s: &Setup, measured: Option<&Measured>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    all.extend(unmapped_cxl(s));
    all.extend(auto_online(s));
    all.extend(s.dax.iter().filter_map(|device| unused_device(s, device)));
    all.extend(offline(s));
    all.extend(in_kernel_zones(s));
    let kinds = Kinds::probe(&s.topology).ok();
    if let Some(kinds) = &kinds {
        let apart = apart(s, kinds);
        all.extend(tiers(s, kinds, apart));
        if apart {
            all.extend(demotion(s, kinds));
            all.extend(balancing(s, kinds));
        }
    }
    all.extend(interleaving(s, measured));
    all
}

fn by_hand(name: &'static str, what: String, why: &str, commands: &[&str], hand: &str) -> Finding {
    Finding {
        name,
        what,
        why: why.into(),
        commands: commands.iter().map(|c| (*c).into()).collect(),
        steps: Vec::new(),
        by_hand: hand.into(),
    }
}

fn echo(value: &str, file: &str) -> String {
    format!("echo {value} > /{file}")
}

/// CXL memory that is not mapped.
fn unmapped_cxl(s: &Setup) -> Option<Finding> {
    let device = s.topology.cxl.iter().find(|d| d.ram_bytes > 0)?;
    let slow = s
        .topology
        .nodes
        .iter()
        .any(|n| n.cpus.is_empty() && n.bytes > 0);
    // A region of a device is a device-dax device, or a node already.
    if slow || !s.dax.is_empty() || !s.blocks.iter().all(|b| b.state == "online") {
        return None;
    }
    let name = &device.name;
    let mut finding = by_hand(
        "CXL memory is not mapped",
        format!(
            "{name} has {} MiB of memory, but no region: neither a node nor a device-dax device has it",
            device.ram_bytes >> 20
        ),
        "no program can use this memory before the firmware or an operator maps it",
        &[],
        "the right decoder depends on the host bridges; run --doctor again once it is mapped",
    );
    finding.commands = vec![
        "cxl list -DM".into(),
        format!("cxl create-region -m -t ram -d decoder0.0 {name}"),
    ];
    Some(finding)
}

/// The state of hot-plugged memory.
fn auto_online(s: &Setup) -> Option<Finding> {
    let now = s.auto_online.as_deref()?;
    let pluggable = !s.dax.is_empty()
        || !s.topology.cxl.is_empty()
        || s.blocks.iter().any(|block| block.state == "offline");
    if !pluggable || now == "online_movable" {
        return None;
    }
    let why = match now {
        "offline" => {
            "hot-plugged memory stays unused until an operator brings each of its blocks online"
        }
        _ => {
            "slow memory that is plugged in may hold the kernel's own data, which is then slow for good, and the memory cannot be taken out again"
        }
    };
    Some(Finding {
        name: "hot-plugged memory",
        what: format!("auto_online_blocks is `{now}`; `online_movable` keeps it for programs"),
        why: why.into(),
        commands: vec![echo("online_movable", AUTO_ONLINE)],
        steps: vec![Step::plain(AUTO_ONLINE, now, "online_movable")],
        by_hand: String::new(),
    })
}

/// A device-dax device that the kernel could use as memory.
fn unused_device(s: &Setup, device: &super::Dax) -> Option<Finding> {
    if device.driver == "kmem" || device.bytes == 0 {
        return None;
    }
    let name = &device.name;
    let bound = match &*device.driver {
        "" => "no driver".into(),
        driver => format!("driver {driver}"),
    };
    let what = format!(
        "{name} ({} MiB, node {}) has {bound}: it is a device and no memory",
        device.bytes >> 20,
        device.node
    );
    let why = "no program gets memory of it unless it opens the device; as system-ram it is a node of slow memory";
    // A kernel that puts new memory to use by itself, as is advised above, lets daxctl stop short of it.
    let force = if s.auto_online.is_some() {
        "--force "
    } else {
        ""
    };
    let command = format!("daxctl reconfigure-device {force}--mode=system-ram {name}");
    if device.persistent {
        return Some(by_hand(
            "device-dax memory",
            what,
            why,
            &[&command],
            "it is persistent memory, and its contents would be lost: decide for yourself",
        ));
    }
    if !s.kmem {
        return Some(by_hand(
            "device-dax memory",
            what,
            why,
            &["modprobe kmem", &command],
            "the driver for it (kmem) is not loaded: load it, and run --doctor again",
        ));
    }
    let shows = format!("{DAX}/devices/{name}/driver");
    let was = match &*device.driver {
        "" => NOTHING,
        driver => driver,
    };
    let mut steps = Vec::new();
    if was != NOTHING {
        steps.push(Step {
            file: format!("{DAX}/drivers/{was}/unbind"),
            value: name.clone(),
            shows: shows.clone(),
            was: was.into(),
            then: NOTHING.into(),
            back: vec![Back::to(&format!("{DAX}/drivers/{was}/bind"), name)],
        });
    }
    // The kernel lets go of memory only when all of its blocks are offline.
    let block = |number: &u64| Back {
        file: format!("sys/devices/system/memory/memory{number}/state"),
        value: "offline".into(),
        may_be_missing: true,
    };
    let mut back: Vec<Back> = device.blocks.iter().map(block).collect();
    back.push(Back::to(&format!("{DAX}/drivers/kmem/unbind"), name));
    back.push(Back::to(&format!("{DAX}/drivers/kmem/remove_id"), name));
    steps.push(Step {
        file: format!("{DAX}/drivers/kmem/new_id"),
        value: name.clone(),
        shows,
        was: NOTHING.into(),
        then: "kmem".into(),
        back,
    });
    Some(Finding {
        name: "device-dax memory",
        what,
        why: why.into(),
        commands: vec![command],
        steps,
        by_hand: String::new(),
    })
}

fn state_of(block: u32) -> String {
    format!("sys/devices/system/memory/memory{block}/state")
}

/// A command for blocks by ranges of their numbers.
fn for_blocks(blocks: &[&Block], values: &[&str]) -> Vec<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for block in blocks {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == block.number => *last = block.number,
            _ => ranges.push((block.number, block.number)),
        }
    }
    let of = |(first, last): (u32, u32)| -> Vec<String> {
        if first == last {
            return values.iter().map(|v| echo(v, &state_of(first))).collect();
        }
        let file = "/sys/devices/system/memory/memory$n/state";
        let each: Vec<String> = values
            .iter()
            .map(|v| format!("echo {v} > {file}"))
            .collect();
        vec![format!(
            "for n in $(seq {first} {last}); do {}; done",
            each.join(" && ")
        )]
    };
    ranges.into_iter().flat_map(of).collect()
}

/// Nodes that have no processors.
fn is_alone(s: &Setup, node: u32) -> bool {
    let of = s.topology.nodes.iter().find(|n| n.id == node);
    of.is_some_and(|n| n.cpus.is_empty())
}

fn nodes_of(blocks: &[&Block]) -> String {
    let mut nodes: Vec<u32> = blocks.iter().map(|block| block.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    Kinds::list(&nodes)
}

fn mib(s: &Setup, blocks: &[&Block]) -> u64 {
    (blocks.len() as u64 * s.block_bytes) >> 20
}

/// Memory that is there and not used.
fn offline(s: &Setup) -> Option<Finding> {
    let blocks: Vec<&Block> = s.blocks.iter().filter(|b| b.state == "offline").collect();
    if blocks.is_empty() {
        return None;
    }
    // Beside processors it is ordinary memory, and the kernel chooses the zone.
    let value = |block: &Block| match is_alone(s, block.node) {
        true => "online_movable",
        false => "online",
    };
    let step = |block: &&Block| Step {
        value: value(block).into(),
        then: "online".into(),
        ..Step::plain(&state_of(block.number), "offline", "online")
    };
    let mut commands = Vec::new();
    for wanted in ["online_movable", "online"] {
        let some: Vec<&Block> = blocks
            .iter()
            .copied()
            .filter(|b| value(b) == wanted)
            .collect();
        commands.extend(for_blocks(&some, &[wanted]));
    }
    Some(Finding {
        name: "memory is offline",
        what: format!(
            "{} blocks of node {} are offline: {} MiB",
            blocks.len(),
            nodes_of(&blocks),
            mib(s, &blocks)
        ),
        why: "the memory is present, but no program can use it".into(),
        steps: blocks.iter().map(step).collect(),
        commands,
        by_hand: String::new(),
    })
}

/// Hot-plugged slow memory in zones from which the kernel takes memory for itself.
fn in_kernel_zones(s: &Setup) -> Option<Finding> {
    // Boot-time memory belongs in the kernel's zones: only memory that a driver gave to the kernel is hot-plugged.
    let plugged: Vec<i64> = s
        .dax
        .iter()
        .filter(|d| d.driver == "kmem")
        .map(|d| d.node)
        .collect();
    let wrong = |b: &&Block| {
        b.state == "online"
            && b.zones != "Movable"
            && plugged.contains(&i64::from(b.node))
            && is_alone(s, b.node)
    };
    let blocks: Vec<&Block> = s.blocks.iter().filter(wrong).collect();
    if blocks.is_empty() {
        return None;
    }
    let steps = |block: &&Block| {
        let file = state_of(block.number);
        let back = |value: &str| vec![Back::to(&file, value)];
        [
            Step {
                back: back("online_kernel"),
                ..Step::plain(&file, "online", "offline")
            },
            Step {
                value: "online_movable".into(),
                back: back("offline"),
                ..Step::plain(&file, "offline", "online")
            },
        ]
    };
    Some(Finding {
        name: "zones of slow memory",
        what: format!(
            "{} blocks of node {} are in zone {}: {} MiB of hot-plugged memory",
            blocks.len(),
            nodes_of(&blocks),
            blocks[0].zones,
            mib(s, &blocks)
        ),
        why: "the kernel's own data may be in this slow memory, and the memory cannot be taken out again; in zone Movable are programs alone"
            .into(),
        commands: for_blocks(&blocks, &["offline", "online_movable"]),
        steps: blocks.iter().flat_map(steps).collect(),
        by_hand: String::new(),
    })
}

/// Does the kernel know that these nodes are of different tiers?
fn apart(s: &Setup, kinds: &Kinds) -> bool {
    let Some(tiers) = &s.tiers else { return false };
    let tier = |node: &u32| tiers.iter().position(|tier| tier.contains(node));
    let fast = kinds.fast.iter().filter_map(tier).max();
    let slow = kinds.slow.iter().filter_map(tier).min();
    matches!((fast, slow), (Some(fast), Some(slow)) if fast < slow)
}

fn tiers(s: &Setup, kinds: &Kinds, apart: bool) -> Option<Finding> {
    if apart {
        return None;
    }
    let (fast, slow) = (Kinds::list(&kinds.fast), Kinds::list(&kinds.slow));
    let why = "the kernel neither demotes from fast memory to slow memory nor promotes what is hot: `varve tier` does";
    if s.tiers.is_none() {
        return Some(by_hand(
            "memory tiers",
            format!(
                "this kernel has no memory tiers ({}), and cannot know that node {slow} is slower than node {fast}",
                s.topology.kernel
            ),
            why,
            &[],
            "Linux 6.1 or newer has tiers, and 6.7 or newer sorts nodes by what the firmware states (HMAT)",
        ));
    }
    let stated = s
        .topology
        .nodes
        .iter()
        .filter(|node| kinds.slow.contains(&node.id))
        .all(|node| !node.attached.is_empty());
    let what = format!("the kernel has nodes {fast} and {slow} in one tier");
    Some(match stated {
        true => by_hand(
            "memory tiers",
            format!(
                "{what}, though the firmware states the performance of node {slow} (HMAT); the kernel is {}",
                s.topology.kernel
            ),
            why,
            &[],
            "Linux 6.7 or newer sorts nodes by what the firmware states; with a newer one the firmware states numbers that are too much alike",
        ),
        false => by_hand(
            "memory tiers",
            format!("{what}: the firmware does not state the performance of node {slow} (no HMAT)"),
            why,
            &[],
            "turn HMAT on in the firmware's settings, or have the memory as a device (efi=nosoftreserve must not be set): what comes by the driver kmem is in a tier of its own",
        ),
    })
}

fn demotion(s: &Setup, kinds: &Kinds) -> Option<Finding> {
    let now = s.demotion.as_deref()?;
    if s.tier_runs || !matches!(now, "false" | "0") {
        return None;
    }
    Some(Finding {
        name: "demotion",
        what: "demotion_enabled is off".into(),
        why: format!(
            "when node {} is full the kernel swaps or kills, and leaves node {} empty; with it, cold pages go there first",
            Kinds::list(&kinds.fast),
            Kinds::list(&kinds.slow)
        ),
        commands: vec![echo("true", DEMOTION)],
        steps: vec![Step::plain(DEMOTION, now, "true")],
        by_hand: String::new(),
    })
}

fn balancing(s: &Setup, kinds: &Kinds) -> Option<Finding> {
    let Some(now) = s.balancing else {
        return Some(by_hand(
            "NUMA balancing",
            "this kernel has none (CONFIG_NUMA_BALANCING)".into(),
            "pages that became hot in slow memory stay there",
            &[],
            "take a kernel that has it, or `varve tier`, which needs none",
        ));
    };
    let wanted = match s.tier_runs {
        true => now & !2,
        // Bit 1, between sockets, only where there are several; bit 2, between tiers.
        false if kinds.fast.len() > 1 => 3,
        false => 2,
    };
    if (now & 2 == 2) == (wanted & 2 == 2) {
        return None;
    }
    let (what, why) = match s.tier_runs {
        true => (
            format!("numa_balancing is {now} while `varve tier` is at work"),
            "both promote hot pages, and undo each other's decisions".to_string(),
        ),
        false => (
            format!("numa_balancing is {now}: the kernel does not promote by heat"),
            format!(
                "pages of node {} that became hot stay there, or come back as soon as they are used once; leave it off if `varve tier` is to do it",
                Kinds::list(&kinds.slow)
            ),
        ),
    };
    Some(Finding {
        name: "NUMA balancing",
        what,
        why,
        commands: vec![format!("sysctl kernel.numa_balancing={wanted}")],
        steps: vec![Step::plain(
            BALANCING,
            &now.to_string(),
            &wanted.to_string(),
        )],
        by_hand: String::new(),
    })
}

fn interleaving(s: &Setup, measured: Option<&Measured>) -> Option<Finding> {
    let bandwidths = bandwidths(&s.topology, measured)?;
    let wanted = weights(&bandwidths);
    let auto = s.auto_weights.as_deref() == Some("true");
    let are_there = wanted.keys().all(|node| s.weights.contains_key(node));
    // The kernel's own go by the same numbers, unless something was measured.
    if wanted.len() < 2 || !are_there || (auto && measured.is_none()) {
        return None;
    }
    if !differ(&s.weights, &wanted) {
        return None;
    }
    let list = |of: &BTreeMap<u32, u32>| {
        let of: Vec<String> = wanted.keys().map(|node| of[node].to_string()).collect();
        of.join(":")
    };
    let rates: Vec<String> = bandwidths
        .values()
        .map(|b| format!("{:.1}", b / 1000.0))
        .collect();
    let source = match measured {
        Some(_) => "measured here",
        None => "as the firmware states",
    };
    let file = |node: &u32| format!("{WEIGHTS}/node{node}");
    let changed: Vec<&u32> = wanted
        .keys()
        .filter(|n| s.weights[n] != wanted[n])
        .collect();
    let mut steps = Vec::new();
    if auto {
        // Said first, so that it comes back last: the kernel then counts anew.
        steps.push(Step::plain(&format!("{WEIGHTS}/auto"), "true", "false"));
    }
    let step = |node: &&u32| {
        Step::plain(
            &file(node),
            &s.weights[node].to_string(),
            &wanted[node].to_string(),
        )
    };
    steps.extend(changed.iter().map(step));
    Some(Finding {
        name: "interleaving",
        what: format!(
            "weights of nodes {} are {}; bandwidths of {} GB/s ({source}) require {}",
            Kinds::list(&wanted.keys().copied().collect::<Vec<_>>()),
            list(&s.weights),
            rates.join(" and "),
            list(&wanted)
        ),
        why: "programs that interleave by weight (MPOL_WEIGHTED_INTERLEAVE, numactl --weighted-interleave) wait for the slower memory while the faster one idles"
            .into(),
        commands: steps.iter().map(|step| echo(&step.value, &step.file)).collect(),
        steps,
        by_hand: String::new(),
    })
}
