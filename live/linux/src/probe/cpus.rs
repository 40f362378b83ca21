//! Which hardware threads measure which memory.

use super::topology::Topology;
use std::io;

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
        let distance = |id: u32| topology.distance(memory, id);
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

/// A set of hardware threads, as system calls want it.
#[derive(Clone, Copy)]
pub struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// Those of these numbers.
    pub fn of(numbers: &[u32]) -> Cpus {
        // SAFETY: the set is plain bits, and zero is empty.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for &number in numbers.iter().filter(|n| **n < libc::CPU_SETSIZE as u32) {
            // SAFETY: the number is within the set.
            unsafe { libc::CPU_SET(number as usize, &mut set) };
        }
        Cpus(set)
    }

    /// Those that this thread may run on.
    ///
    /// # Errors
    /// The kernel has more of them than a set holds.
    pub fn allowed() -> io::Result<Cpus> {
        let Cpus(mut set) = Cpus::of(&[]);
        // SAFETY: the call writes no more than the size of the set; thread 0 is the caller.
        check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) })?;
        Ok(Cpus(set))
    }

    /// Their numbers.
    pub fn numbers(&self) -> Vec<u32> {
        (0..libc::CPU_SETSIZE as u32)
            // SAFETY: the number is within the set.
            .filter(|&number| unsafe { libc::CPU_ISSET(number as usize, &self.0) })
            .collect()
    }

    /// From now on this thread runs on these. Allocates nothing: it may be called between fork and exec.
    ///
    /// # Errors
    /// It may not run there.
    pub fn run_on(&self) -> io::Result<()> {
        // SAFETY: the set is read only and as long as stated; thread 0 is the caller.
        check(unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), &self.0) })
    }
}

fn check(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Hardware threads that this process may run on; the first, where that is not told.
pub fn allowed_cpus() -> Vec<u32> {
    Cpus::allowed().map_or_else(|_| vec![0], |cpus| cpus.numbers())
}

/// Keeps the calling thread on one hardware thread; where that is refused the scheduler decides.
pub(crate) fn stay_on(cpu: u32) {
    let _ = Cpus::of(&[cpu]).run_on();
}

/// A node of a machine that is not there, with a GiB of memory.
#[cfg(test)]
pub(crate) fn node(id: u32, cpus: &[u32], distances: &[u32]) -> super::Node {
    super::Node {
        id,
        cpus: cpus.into(),
        bytes: 1 << 30,
        free_bytes: 1 << 30,
        distances: distances.into(),
        ..super::Node::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_processors_is_measured_from_the_nearest() {
        let cpu = allowed_cpus()[0];
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
