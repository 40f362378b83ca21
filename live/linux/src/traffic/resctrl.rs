//! Bytes to and from memory, as processors with memory bandwidth monitoring count them for groups of tasks (resctrl).
//!
//! The kernel counts all bytes of a group in `mbm_total_bytes` of each part of the processor: what was read and what was written back
//! are one sum there. A monitoring group is a folder below `mon_groups`; a task is in it that was written into its file `tasks`, with all
//! that it starts afterwards.

use crate::probe::sysfs::{number, numbered_with, text};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where it is mounted.
pub const MOUNT: &str = "sys/fs/resctrl";

/// The prefix of our groups' names; the number of the process that made them follows.
const PREFIX: &str = "varve-";

/// resctrl of a machine that counts.
#[derive(Debug)]
pub struct Resctrl {
    folder: PathBuf,
    made: AtomicUsize,
}

impl Resctrl {
    /// That of the machine below `root`, `/` for this one. Groups that killed processes of ours left behind are removed.
    ///
    /// # Errors
    /// A line: it is not there, does not count, or groups may not be made.
    pub fn at(root: &Path) -> Result<Resctrl, String> {
        let folder = root.join(MOUNT);
        let events = text(&folder.join("info/L3_MON/mon_features")).ok_or(
            "it takes a processor with memory bandwidth monitoring, and resctrl mounted (mount -t resctrl resctrl /sys/fs/resctrl)",
        )?;
        if !events
            .lines()
            .any(|event| event.trim() == "mbm_total_bytes")
        {
            return Err("the processor's monitoring counts no bytes (no mbm_total_bytes)".into());
        }
        let resctrl = Resctrl {
            folder,
            made: AtomicUsize::new(0),
        };
        resctrl.remove_left_over();
        drop(resctrl.group()?);
        Ok(resctrl)
    }

    /// A new group, and the file by which a task joins it.
    ///
    /// # Errors
    /// A line: there may be no more groups, or it takes the rights of root.
    pub fn group(&self) -> Result<(MonitoringGroup, File), String> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let folder = self.folder.join("mon_groups").join(name);
        let wrong = |e: io::Error| format!("{}: {e}", folder.display());
        fs::create_dir(&folder).map_err(wrong)?;
        let group = MonitoringGroup(folder.clone());
        let tasks = File::create(folder.join("tasks")).map_err(wrong)?;
        Ok((group, tasks))
    }

    fn remove_left_over(&self) {
        let groups = fs::read_dir(self.folder.join("mon_groups"));
        for entry in groups.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let of = name.to_str().and_then(|name| {
                let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
                pid.parse::<u32>().ok()
            });
            if of.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                drop(MonitoringGroup(entry.path()));
            }
        }
    }
}

/// A group of tasks, which is removed when it is dropped: its tasks are then in the group that they were in before.
#[derive(Debug)]
pub struct MonitoringGroup(PathBuf);

impl MonitoringGroup {
    /// Bytes that went between its tasks and memory since some instant; `None` while the processor does not tell.
    pub fn bytes(&self) -> Option<u64> {
        let parts = totals(&self.0);
        (!parts.is_empty()).then(|| parts.values().sum())
    }
}

impl Drop for MonitoringGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Joins a group between fork and exec: the kernel takes 0 for the writing process. Allocates nothing.
///
/// # Errors
/// That of the write.
pub fn join(mut tasks: &File) -> io::Result<()> {
    tasks.write_all(b"0")
}

/// `mon_data/mon_L3_00/mbm_total_bytes` of a group, or of the machine, by part of the processor; one that has none says `Unavailable`.
pub fn totals(group: &Path) -> BTreeMap<String, u64> {
    let parts = numbered_with(&group.join("mon_data"), "mon_L3_").into_iter();
    parts
        .filter_map(|(part, path)| Some((part, number(&path.join("mbm_total_bytes"))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sysfs::put;

    /// A folder that pretends to be a machine whose processor counts these events.
    fn pretended(events: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(MOUNT);
        fs::create_dir_all(folder.join("info/L3_MON")).unwrap();
        fs::create_dir_all(folder.join("mon_groups")).unwrap();
        fs::write(folder.join("info/L3_MON/mon_features"), events).unwrap();
        root
    }

    fn write_total(group: &Path, part: &str, text: &str) {
        put(&group.join("mon_data").join(part), "mbm_total_bytes", text);
    }

    #[test]
    fn bytes_of_a_group_are_those_of_all_parts_that_tell() {
        let root = pretended("llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n");
        let resctrl = Resctrl::at(root.path()).unwrap();
        let (group, tasks) = resctrl.group().unwrap();
        join(&tasks).unwrap();
        assert_eq!(fs::read_to_string(group.0.join("tasks")).unwrap(), "0");
        assert_eq!(group.bytes(), None);
        write_total(&group.0, "mon_L3_00", "Unavailable\n");
        assert_eq!(group.bytes(), None);
        write_total(&group.0, "mon_L3_00", "1000\n");
        write_total(&group.0, "mon_L3_01", "234\n");
        assert_eq!(group.bytes(), Some(1234));
    }

    #[test]
    fn groups_end_with_their_owners() {
        let root = pretended("mbm_total_bytes\n");
        let groups = root.path().join(MOUNT).join("mon_groups");
        // The kernel removes a group with its files; here they are in the way, so that these have none.
        let killed = groups.join(format!("{PREFIX}{}-0", u32::MAX));
        let other = groups.join("of-somebody");
        let own = groups.join(format!("{PREFIX}{}-77", std::process::id()));
        for folder in [&killed, &other, &own] {
            fs::create_dir(folder).unwrap();
        }
        let resctrl = Resctrl::at(root.path()).unwrap();
        assert!(!killed.exists() && other.exists() && own.exists());
        let (group, _) = resctrl.group().unwrap();
        let folder = group.0.clone();
        fs::remove_file(folder.join("tasks")).unwrap();
        drop(group);
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = tempfile::tempdir().unwrap();
        assert!(
            Resctrl::at(none.path())
                .unwrap_err()
                .contains("mount -t resctrl")
        );
        let occupancy = pretended("llc_occupancy\n");
        assert!(
            Resctrl::at(occupancy.path())
                .unwrap_err()
                .contains("no mbm_total_bytes")
        );
    }
}
