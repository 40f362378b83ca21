//! The processes whose memory is tiered: given ones and their descendants, or those of a control group.

use crate::cgroups;
use crate::probe::sysfs::{bytes_of, count_of, field, parse_list};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of a control group: a path below the folder of all groups, or a whole one.
///
/// # Errors
/// A line that says what is missing.
pub fn group(name: &str) -> Result<PathBuf, String> {
    let Some(top) = cgroups::top() else {
        return Err(format!(
            "--cgroup {name}: no cgroup v2 hierarchy is mounted"
        ));
    };
    let folder = match Path::new(name).starts_with(&top) {
        true => PathBuf::from(name),
        false => top.join(name.trim_start_matches('/')),
    };
    match folder.join("cgroup.procs").is_file() {
        true => Ok(folder),
        false => Err(format!(
            "--cgroup {name}: no such control group; `systemd-cgls` lists those that exist"
        )),
    }
}

/// The processes of a control group and of those below it.
pub fn members(folder: &Path) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    all.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(members(&entry.path()));
        }
    }
    all
}

/// Those of some control groups that are in no other of them.
pub fn outermost(folders: &[PathBuf]) -> impl Iterator<Item = &PathBuf> {
    let is_within = |one: &PathBuf, other: &PathBuf| one != other && one.starts_with(other);
    let mut all: Vec<&PathBuf> = folders.iter().collect();
    all.sort();
    all.dedup();
    all.retain(|one| !folders.iter().any(|other| is_within(one, other)));
    all.into_iter()
}

/// Bytes of a control group that no process has in its address space: of files, and of the kernel (`memory.stat`).
pub fn unmapped(folder: &Path) -> (u64, u64) {
    let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let of = |name: &str| count_of(&text, name).unwrap_or(0);
    // Shared memory is among files, mapped or not.
    let files = of("file").saturating_sub(of("file_mapped"));
    (files, of("kernel"))
}

/// Bytes of explicit huge pages that a process has mapped.
pub fn hugetlb(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status"));
    bytes_of(&text.unwrap_or_default(), "HugetlbPages")
}

/// A process and what it has started, and that has started, and so on.
pub fn family(process: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    let mut ahead = vec![process];
    while let Some(process) = ahead.pop() {
        if !all.insert(process) {
            continue;
        }
        let threads = fs::read_dir(format!("/proc/{process}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            ahead.extend(
                text.split_whitespace()
                    .filter_map(|word| word.parse::<u32>().ok()),
            );
        }
    }
    all
}

/// Whether the kernel lists the children of a process (`CONFIG_PROC_CHILDREN`).
pub fn knows_families() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

/// A process's name, as the kernel has it.
pub fn name(process: u32) -> String {
    let folder = PathBuf::from(format!("/proc/{process}"));
    crate::program::name_in(&folder).unwrap_or_else(|| "?".into())
}

/// Nodes that a process may have memory of; `None` if that is not told.
pub fn allowed(process: u32) -> Option<Vec<u32>> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(parse_list(field(&status, "Mems_allowed_list")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_started_is_of_the_family() {
        if !knows_families() {
            return varve_skip::skip!("the kernel does not tell of children");
        }
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let all = family(std::process::id());
        assert!(all.contains(&child.id()) && all.contains(&std::process::id()));
        assert!(!name(std::process::id()).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn memory_that_no_process_maps_is_the_groups() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(unmapped(folder.path()), (0, 0));
        let text = "anon 40960\nfile 20480\nkernel 8192\nkernel_stack 4096\nfile_mapped 4096\n";
        fs::write(folder.path().join("memory.stat"), text).unwrap();
        assert_eq!(unmapped(folder.path()), (16384, 8192));
    }

    #[test]
    fn members_of_groups_below_are_members() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(folder.path().join("cgroup.procs"), "3\n").unwrap();
        fs::write(below.join("cgroup.procs"), "5\n4\n").unwrap();
        assert_eq!(members(folder.path()), BTreeSet::from([3, 4, 5]));
        let why = group("no/such.slice").unwrap_err();
        assert!(why.starts_with("--cgroup no/such.slice: ") && !why.contains('\n'));
    }
}
