//! What was hot when a run ended, in a file: the next run of the same group does not begin from nothing. It is a hint only, so that a
//! file that cannot be read is as good as none.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two times of writing it: a run may be killed.
const EVERY: Duration = Duration::from_secs(60);

/// Hot memory of processes, and of what they share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptHeat {
    pub processes: Vec<HotProcess>,
    pub shared: Vec<HotObject>,
}

/// A process, by its number and when it began, since numbers are given again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HotProcess {
    pub pid: u32,
    pub began: u64,
    /// Ranges of addresses, ascending.
    pub hot: Vec<(u64, u64)>,
}

/// What processes share, by its device, its number there and its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HotObject {
    pub file: (String, u64),
    pub name: String,
    /// Ranges of its bytes, ascending.
    pub hot: Vec<(u64, u64)>,
}

impl KeptHeat {
    /// Of an earlier run; nothing where there was none.
    pub fn read(file: &Path) -> KeptHeat {
        let text = fs::read_to_string(file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let beside = file.with_extension("new");
        fs::write(&beside, serde_json::to_string(self)?)?;
        fs::rename(&beside, file)
    }
}

/// Writes what is hot now and then.
pub(super) struct Keeper<'a> {
    file: Option<&'a Path>,
    last: Instant,
}

impl<'a> Keeper<'a> {
    pub fn of(file: Option<&'a Path>) -> Keeper<'a> {
        Keeper {
            file,
            last: Instant::now(),
        }
    }

    /// Writes it if it is time, or at the end. That it cannot be written is no reason to end.
    pub fn keep(&mut self, is_end: bool, now: impl FnOnce() -> KeptHeat) {
        let Some(file) = self.file else { return };
        if is_end || self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            let _ = now().write(file);
        }
    }
}

/// Ascending pages of `bytes` each, as ranges of addresses.
pub(super) fn ranges(pages: impl Iterator<Item = u64>, bytes: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for page in pages {
        let (from, to) = (page * bytes, (page + 1) * bytes);
        match all.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => all.push((from, to)),
        }
    }
    all
}

/// Whether a page of `bytes` overlaps one of the ranges, which are ascending.
pub(super) fn has(ranges: &[(u64, u64)], page: u64, bytes: u64) -> bool {
    let next = ranges.partition_point(|(_, to)| *to <= page * bytes);
    ranges
        .get(next)
        .is_some_and(|(from, _)| *from < (page + 1) * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range_and_pages_of_another_size_find_it() {
        let all = ranges([1, 2, 3, 7].into_iter(), 4096);
        assert_eq!(all, [(4096, 16384), (28672, 32768)]);
        let found: Vec<u64> = (0..10).filter(|page| has(&all, *page, 4096)).collect();
        assert_eq!(found, [1, 2, 3, 7]);
        let large: Vec<u64> = (0..5).filter(|page| has(&all, *page, 8192)).collect();
        assert_eq!(large, [0, 1, 3]);
    }

    #[test]
    fn what_was_kept_is_read_and_anything_else_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/heat-a.json");
        assert_eq!(KeptHeat::read(&file), KeptHeat::default());
        let heat = KeptHeat {
            processes: vec![HotProcess {
                pid: 17,
                began: 400,
                hot: vec![(4096, 8192)],
            }],
            shared: Vec::new(),
        };
        Keeper::of(Some(&file)).keep(false, || unreachable!("too early"));
        Keeper::of(Some(&file)).keep(true, || heat.clone());
        assert_eq!(KeptHeat::read(&file), heat);
        fs::write(&file, "{\"processes\": [{").unwrap();
        assert_eq!(KeptHeat::read(&file), KeptHeat::default());
    }
}
