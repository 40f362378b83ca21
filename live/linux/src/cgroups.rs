//! Where the control groups of version 2 are: at `/sys/fs/cgroup`, or elsewhere beside those of version 1.

use std::fs;
use std::path::PathBuf;

/// The folder of the outermost group; `None` where no hierarchy of version 2 is mounted.
pub fn top() -> Option<PathBuf> {
    top_in(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

/// The same by a text as `/proc/self/mounts` has it.
pub fn top_in(mounts: &str) -> Option<PathBuf> {
    let line = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    line.filter(|words| words.get(2) == Some(&"cgroup2"))
        .find_map(|words| words.get(1).map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_version_2_may_be_beside_that_of_version_1() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(top_in(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(top_in("cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n"), None);
    }
}
