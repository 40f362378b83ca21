//! Cores that several threads share (simultaneous multithreading).
//!
//! Threads that share a core all the time have an equal part of its first two caches, the window of instructions, the
//! store buffer and the buffers of accesses in flight. Intel's processors divide window and store buffer so, and let
//! threads compete for the rest (Intel optimization manual, "Hyper-Threading Technology": partitioned and shared
//! resources); equal threads compete for equal parts. Together they execute more instructions than one would, see
//! [`GAIN`].

use crate::describe::Machine;
use varve_spec::Bytes;

/// Instructions that two threads on a core do in the time in which one does one, from waiting for the other's turn alone: up to
/// 1.3, says Intel (Marr et al., Hyper-Threading Technology Architecture and Microarchitecture, Intel Technology Journal 2002).
/// Waiting for memory comes on top and is modelled.
const GAIN: f64 = 1.3;

/// The machine as one of `threads` on each core sees it.
pub fn part(machine: &Machine, threads: u32) -> Machine {
    let mut m = machine.clone();
    let n = threads.clamp(1, m.core.threads.max(1));
    if n == 1 {
        return m;
    }
    m.core.ipc *= GAIN / f64::from(n);
    for buffer in [
        &mut m.core.reorder_buffer,
        &mut m.core.fill_buffers,
        &mut m.core.super_queue,
        &mut m.core.store_buffer,
    ] {
        *buffer = (*buffer / n).max(1);
    }
    for cache in [&mut m.l1.bytes, &mut m.l2.bytes] {
        *cache = Bytes(cache.0 / u64::from(n));
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_on_a_core_have_a_part_of_it_each() {
        let whole = Machine::load("optane-6242").unwrap();
        assert_eq!(part(&whole, 1), whole);
        let half = part(&whole, 2);
        assert_eq!(half.l2.bytes.0, whole.l2.bytes.0 / 2);
        assert_eq!(half.core.store_buffer, whole.core.store_buffer / 2);
        assert!(half.core.ipc < whole.core.ipc && 2.0 * half.core.ipc > whole.core.ipc);
        assert_eq!(half.llc, whole.llc);
        // A core has no more threads than it has.
        assert_eq!(part(&whole, 9), half);
    }
}
