//! A set of memory nodes as system calls want it.

/// Capacity of a set of nodes: the most that a kernel can be built with (CONFIG_NODES_SHIFT is at most 10).
pub const MAX_NODES: u32 = 1024;

/// A set of memory nodes, for `mbind`, `set_mempolicy` and `migrate_pages`.
#[derive(Clone)]
pub struct Mask([u64; MAX_NODES as usize / 64]);

impl Mask {
    /// These nodes; numbers from [`MAX_NODES`] on are left out, since no kernel has them.
    pub fn of(nodes: &[u32]) -> Mask {
        let mut bits = [0; MAX_NODES as usize / 64];
        for &node in nodes.iter().filter(|n| **n < MAX_NODES) {
            bits[node as usize / 64] |= 1 << (node % 64);
        }
        Mask(bits)
    }

    /// Where its words are.
    pub fn as_ptr(&self) -> *const u64 {
        self.0.as_ptr()
    }

    /// The `maxnode` argument of the system calls: one more than the number of nodes that they read.
    pub fn limit(&self) -> u64 {
        u64::from(MAX_NODES) + 1
    }
}
