//! Kernels that search a graph from some of its vertices.

use crate::loops::Share;

/// How they are run and modelled.
#[derive(Clone, Debug)]
pub struct SearchSetting {
    /// Vertices to start from, one iteration each.
    pub sources: Vec<u32>,
    /// Edges generated before loops and duplicates went, which sizes the arrays of the build.
    pub generated: u64,
    /// Bytes per vertex name, 4 or 8.
    pub id: u64,
    /// How the vertices of a level are shared among threads.
    pub share: Share,
    /// Bytes between two first touches.
    pub touch: u64,
    /// Threads.
    pub threads: usize,
}
