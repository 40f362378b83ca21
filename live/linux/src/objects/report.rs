//! The report of a live run of placed objects.

use super::map::Group;
use super::places::ResidentBytes;
use super::share::Lived;
use crate::nodes::Kinds;
use crate::report::Ran;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The result of [`super::run`].
#[derive(Debug)]
pub struct ObjectReport {
    /// The run. Processes are those that had objects placed.
    pub ran: Ran<ObjectProcess>,
    /// The groups by number, those with the largest benefit first.
    pub groups: Vec<Group>,
    /// What each of them had while the program ran, also in processes that left no report.
    pub lived: Vec<Lived>,
    /// The same of all groups together. The most is of a moment, so it is not the sum of the groups' most.
    pub all: Lived,
    /// Where memory was, when most was in use; none if the program ended before it was looked.
    pub places: Option<ResidentBytes>,
}

/// One process's report at its end, without its time before an `exec`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct ObjectProcess {
    /// Process number.
    pub pid: u32,
    /// Name of the program, as the kernel knows it.
    pub program: String,
    /// Why nothing at all was placed, when that is so.
    pub idle: Option<String>,
    /// It forbade itself system calls (seccomp). From then on mappings and parts of blocks were not placed, and it is not known on
    /// which nodes its pages were at the end.
    pub sandboxed: bool,
    /// Bytes of objects and mappings in fast memory at the end, which the budget counts.
    pub fast_bytes: u64,
    /// Bytes of the fast objects' address range that are in memory at the end: with free blocks between objects.
    pub fast_resident: u64,
    /// The same of slow objects.
    pub slow_resident: u64,
    /// Bytes of static variables that were bound to fast memory.
    pub variables_fast: u64,
    /// Bytes of static variables that were bound to slow memory.
    pub variables_slow: u64,
    /// Bytes of static variables that were left, since they share their pages.
    pub variables_left: u64,
    /// Bytes of the allocator's blocks that the program gave a color to (`varve_mcolor`). These stay where they are.
    pub colored_blocks: u64,
    /// Modules of the map that were not loaded.
    pub missing: Vec<String>,
    /// Modules that were loaded as another build than the map's; nothing of them is placed.
    pub other_build: Vec<String>,
    /// Groups of which there was anything.
    pub groups: Vec<GroupReport>,
}

/// One process's counts for a group of sites.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct GroupReport {
    /// Index of [`ObjectReport::groups`].
    pub group: usize,
    /// Objects and mappings that it was given; in the child of a fork, since the fork.
    pub objects: u64,
    /// Their bytes, as the allocator rounds them.
    pub bytes: u64,
    /// Of these, bytes that were to be in fast memory and found no room.
    pub spilled: u64,
    /// Bytes in fast memory at the end.
    pub fast: i64,
    /// Bytes in slow memory at the end.
    pub slow: i64,
    /// Some pages of what is fast, by the node on which the kernel says that they are.
    pub fast_pages: BTreeMap<u32, u64>,
    /// Some pages of what is slow.
    pub slow_pages: BTreeMap<u32, u64>,
}

impl ObjectProcess {
    /// Pages that were checked, and the number of them on none of their tier's nodes.
    pub fn pages_elsewhere(&self, kinds: &Kinds) -> (u64, u64) {
        let (mut all, mut elsewhere) = (0, 0);
        for group in &self.groups {
            for (pages, nodes) in [
                (&group.fast_pages, &kinds.fast),
                (&group.slow_pages, &kinds.slow),
            ] {
                all += pages.values().sum::<u64>();
                elsewhere += pages
                    .iter()
                    .filter(|(n, _)| !nodes.contains(n))
                    .map(|(_, count)| count)
                    .sum::<u64>();
            }
        }
        (all, elsewhere)
    }

    /// A group's part; zeros if there was nothing of it.
    pub fn group(&self, group: usize) -> GroupReport {
        self.groups
            .iter()
            .find(|g| g.group == group)
            .cloned()
            .unwrap_or_default()
    }
}
