//! Two programs beside each other, each in its memory: what one does to the other's bandwidth.

use super::pattern::{BlockOrder, How, Pattern, Rate, together};
use crate::arch::can_stream;
use crate::probe::memory::{Memory, STEP};
use std::time::Duration;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairMode {
    /// Stores past the caches, else loads.
    pub writes: bool,
    /// Blocks of 64 B in no order, else of 256 B one after the other.
    pub random: bool,
    /// Threads, each in memory of its own.
    pub threads: usize,
    /// Memory node.
    pub node: u32,
}

/// One thread's memory, bytes: far more than its part of the caches.
const BYTES: usize = 64 << 20;

/// Bandwidths of programs that run at the same time, GB/s. Each thread has a processor of its own. `bind`: there are several nodes.
///
/// # Errors
/// More threads than processors; memory that cannot be had; a processor whose stores always go through its caches.
pub fn side_by_side(
    modes: &[PairMode],
    cpus: &[u32],
    bind: bool,
    time: Duration,
) -> Result<Vec<f64>, String> {
    let threads: usize = modes.iter().map(|m| m.threads).sum();
    if threads > cpus.len() {
        return Err(format!("{threads} threads, and {} processors", cpus.len()));
    }
    if modes.iter().any(|m| m.writes) && !can_stream() {
        return Err("this processor's stores always go through its caches".into());
    }
    let mut memories = Vec::new();
    for m in modes {
        let memory = Memory::on_node(BYTES * m.threads, m.node, bind);
        let size = (BYTES * m.threads) >> 20;
        memories.push(memory.ok_or(format!("node {}: no {size} MiB could be had there", m.node))?);
    }
    let mut jobs = Vec::new();
    let mut next = cpus.iter();
    for (m, memory) in modes.iter().zip(&mut memories) {
        let pattern = Pattern {
            how: if m.writes { How::NtStore } else { How::Read },
            order: if m.random {
                BlockOrder::Random
            } else {
                BlockOrder::Sequential
            },
            block: if m.random { STEP } else { 4 * STEP },
            pace: 0,
        };
        let parts = memory.words().chunks_exact_mut(BYTES / 8);
        jobs.extend(
            parts
                .zip(next.by_ref())
                .map(|(part, &cpu)| (pattern, part, cpu)),
        );
    }
    let mut rates = together(jobs, time).into_iter();
    Ok(modes
        .iter()
        .map(|m| rates.by_ref().take(m.threads).map(Rate::gb_per_s).sum())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_alone_has_a_bandwidth_and_too_many_are_refused() {
        let mode = PairMode {
            writes: false,
            random: false,
            threads: 1,
            node: 0,
        };
        let cpu = crate::probe::cpus::allowed_cpus()
            .first()
            .copied()
            .unwrap_or(0);
        let gbps = side_by_side(&[mode], &[cpu], false, Duration::from_millis(4)).unwrap();
        assert!(gbps.len() == 1 && gbps[0] > 0.0, "{gbps:?}");
        assert!(side_by_side(&[mode, mode], &[cpu], false, Duration::ZERO).is_err());
    }
}
