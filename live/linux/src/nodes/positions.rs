//! On which nodes pages are, as the kernel says.

use super::error::NodeError;
use super::sys::{PAGE, nodes_of};
use std::collections::BTreeMap;

/// Pages asked about at a time.
const BATCH: usize = 4096;

/// Where the pages of some ranges are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    /// Bytes in memory, by node.
    pub bytes: BTreeMap<u32, u64>,
}

impl Positions {
    /// Bytes on any node.
    pub fn total(&self) -> u64 {
        self.bytes.values().sum()
    }

    /// Bytes that are on none of these nodes.
    pub fn outside(&self, nodes: &[u32]) -> u64 {
        let others = self.bytes.iter().filter(|(node, _)| !nodes.contains(node));
        others.map(|(_, bytes)| bytes).sum()
    }
}

/// Asks the kernel (`move_pages` without nodes) where the whole pages of ranges of this process are, each an address and bytes.
/// Untouched pages have no node.
///
/// # Errors
/// If this process may not ask.
pub fn positions(ranges: &[(u64, u64)]) -> Result<Positions, NodeError> {
    let mut found = Positions::default();
    let mut status = vec![0; BATCH];
    for range in ranges {
        let (start, end) = whole_pages(range.0, range.1);
        let pages: Vec<usize> = (start..end).step_by(PAGE).collect();
        for batch in pages.chunks(BATCH) {
            nodes_of(batch, &mut status).map_err(NodeError::Unseen)?;
            for &node in &status[..batch.len()] {
                // Negative: not in memory, or unmapped.
                if let Ok(node) = u32::try_from(node) {
                    *found.bytes.entry(node).or_default() += PAGE as u64;
                }
            }
        }
    }
    Ok(found)
}

/// The pages that lie in a range entirely: the first one's address, and the one behind the last.
pub(super) fn whole_pages(address: u64, bytes: u64) -> (usize, usize) {
    let start = (address as usize).next_multiple_of(PAGE);
    let end = (address + bytes) as usize / PAGE * PAGE;
    (start, end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_others_are_left_alone() {
        assert_eq!(whole_pages(4096, 8192), (4096, 12288));
        assert_eq!(whole_pages(4097, 8192), (8192, 12288));
        let (start, end) = whole_pages(4097, 100);
        assert_eq!(start, end);
    }

    #[test]
    fn outside_counts_what_is_elsewhere() {
        let positions = Positions {
            bytes: [(0, 4096), (1, 8192), (2, 12288)].into(),
        };
        assert_eq!(positions.total(), 24576);
        assert_eq!(positions.outside(&[1, 2]), 4096);
        assert_eq!(positions.outside(&[]), 24576);
    }
}
