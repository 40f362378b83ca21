//! How much memory a measurement may take.

use crate::place::memory::mem_available;
use crate::probe::sysfs::{number, text};
use std::path::Path;

/// A measurement takes one in [`SHARE`] parts of free memory.
const SHARE: u64 = 4;

/// Bytes that may be used on a node with `node_free` free bytes: a quarter of what the node, the system and the
/// control group have left. `root` is `/`, or another tree in tests.
pub fn allowance(root: &Path, node_free: u64) -> u64 {
    let system = available(root).unwrap_or(u64::MAX);
    let group = group_left(root).unwrap_or(u64::MAX);
    node_free.min(system).min(group) / SHARE
}

/// Memory that is available without swapping, bytes.
fn available(root: &Path) -> Option<u64> {
    mem_available(&text(&root.join("proc/meminfo"))?)
}

/// Memory that is left in the control groups above this process, bytes; `None` without a limit.
fn group_left(root: &Path) -> Option<u64> {
    let groups = text(&root.join("proc/self/cgroup"))?;
    let path = groups.lines().find_map(|l| l.strip_prefix("0::/"))?;
    let top = root.join("sys/fs/cgroup");
    let own = top.join(path);
    own.ancestors()
        .take_while(|dir| dir.starts_with(&top))
        .filter_map(|dir| {
            let max = number(&dir.join("memory.max"))?;
            Some(max.saturating_sub(number(&dir.join("memory.current"))?))
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sysfs::put;

    #[test]
    fn the_least_of_node_system_and_group_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(
            allowance(root, 1 << 30),
            256 << 20,
            "only the node is known"
        );
        put(
            root,
            "proc/meminfo",
            "MemTotal: 9 kB\nMemAvailable:     524288 kB\n",
        );
        assert_eq!(allowance(root, 1 << 30), 128 << 20);
        put(root, "proc/self/cgroup", "0::/a/b\n");
        put(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
        put(root, "sys/fs/cgroup/a/b/memory.current", "1\n");
        assert_eq!(allowance(root, 1 << 30), 128 << 20, "no limit");
        put(root, "sys/fs/cgroup/a/memory.max", "268435456\n");
        put(root, "sys/fs/cgroup/a/memory.current", "134217728\n");
        assert_eq!(allowance(root, 1 << 30), 32 << 20, "a limit above");
        put(root, "sys/fs/cgroup/a/memory.current", "999999999\n");
        assert_eq!(allowance(root, 1 << 30), 0);
    }
}
