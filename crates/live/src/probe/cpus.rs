//! Which hardware threads measure which memory.

use super::topology::Topology;

/// Processors and the memory they are measured against.
pub(crate) struct Pair {
    pub cpu_node: u32,
    pub cpus: Vec<u32>,
    pub memory_node: u32,
    pub free_bytes: u64,
}

/// Each memory node with the nearest node that has processors, and with the first such node.
pub(crate) fn pairs(topology: &Topology) -> Vec<Pair> {
    let allowed = allowed_cpus();
    let with_cpus: Vec<(u32, Vec<u32>)> = topology
        .nodes
        .iter()
        .map(|n| {
            (
                n.id,
                n.cpus
                    .iter()
                    .copied()
                    .filter(|c| allowed.contains(c))
                    .collect::<Vec<_>>(),
            )
        })
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    let mut pairs = Vec::new();
    for memory in topology.nodes.iter().filter(|n| n.bytes > 0) {
        let position = |id: u32| topology.nodes.iter().position(|n| n.id == id).unwrap_or(0);
        let distance = |id: u32| {
            memory
                .distances
                .get(position(id))
                .copied()
                .unwrap_or(u32::MAX)
        };
        let nearest = with_cpus.iter().min_by_key(|(id, _)| (distance(*id), *id));
        let mut from: Vec<&(u32, Vec<u32>)> =
            nearest.into_iter().chain(with_cpus.first()).collect();
        from.dedup_by_key(|f| f.0);
        for (cpu_node, cpus) in from {
            pairs.push(Pair {
                cpu_node: *cpu_node,
                cpus: cpus.clone(),
                memory_node: memory.id,
                free_bytes: memory.free_bytes,
            });
        }
    }
    pairs
}

/// Hardware threads that this process may run on.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    // SAFETY: the set is plain bits; zero is empty, and the call writes no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as u32)
            .filter(|&c| libc::CPU_ISSET(c as usize, &set))
            .collect()
    }
}

/// Keeps the calling thread on one hardware thread; where that is refused the scheduler decides.
pub(crate) fn stay_on(cpu: u32) {
    // SAFETY: as above; the set is only read by the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_processors_is_measured_from_the_nearest() {
        use super::super::topology::Node;
        let cpu = allowed_cpus()[0];
        let node = |id, cpus: &[u32], distances: &[u32]| Node {
            id,
            cpus: cpus.into(),
            bytes: 1 << 30,
            free_bytes: 1 << 30,
            distances: distances.into(),
            ..Node::default()
        };
        let nodes = vec![
            node(0, &[cpu], &[10, 20, 40]),
            node(1, &[cpu], &[20, 10, 15]),
            node(4, &[], &[40, 15, 10]),
        ];
        let topology = Topology {
            nodes,
            ..Topology::default()
        };
        let from: Vec<(u32, u32)> = pairs(&topology)
            .iter()
            .map(|p| (p.cpu_node, p.memory_node))
            .collect();
        assert_eq!(from, [(0, 0), (1, 1), (0, 1), (1, 4), (0, 4)]);
    }
}
