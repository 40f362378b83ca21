//! The kernel's own monitor of accesses (DAMON, `CONFIG_DAMON_VADDR`, Linux 5.19, root): it checks chosen pages several times
//! and counts, so that memory in use all the time differs from memory in use now and then. Its work grows with what it
//! watches, and not with the process.
//!
//! It is controlled by files: see Documentation/admin-guide/mm/damon/usage.rst of the kernel.

use std::fmt::Display;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the kernel has the files.
pub const FOLDER: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// Its sampling interval and resolution.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Microseconds between two checks of a page.
    pub check_us: u64,
    /// Checks per report.
    pub checks: u64,
    /// Regions that all monitors together may divide ranges into, besides the given ones.
    pub parts: usize,
    /// Only regions that at least this many checks found accessed are reported.
    pub least: u64,
}

impl Pace {
    /// For a profile of some seconds.
    pub const PROFILE: Pace = Pace {
        check_us: 5_000,
        checks: 10,
        parts: 1000,
        least: 0,
    };
    /// For as long as a program runs: a twentieth of the checks of a profile, and the kernel makes files for parts that are in use
    /// alone.
    pub const ALWAYS: Pace = Pace {
        check_us: 100_000,
        checks: 10,
        parts: 1000,
        least: 1,
    };
}

/// The kernel's monitors, which one program has at a time, for all of its threads. Each watches a process.
#[derive(Clone)]
pub struct Monitors(Arc<Taken>);

/// They are given back with the last one.
struct Taken {
    folder: PathBuf,
    /// Whether each is in use.
    used: Mutex<Vec<bool>>,
}

/// A monitor of one process.
pub struct Damon {
    all: Monitors,
    /// Its number among the kernel's.
    number: usize,
    process: u32,
    pace: Pace,
    ranges: Vec<Range<u64>>,
    /// Regions that it may have.
    parts: usize,
    /// The kernel's thread that does the work.
    thread: Option<u32>,
}

/// The fewest regions that a monitor may divide ranges into, however many there are.
const LEAST_PARTS: usize = 50;

/// Whether the kernel has one that watches processes, and it is not in use.
pub fn is_free(folder: &Path) -> bool {
    let count = folder.join("nr_kdamonds");
    let free = fs::read_to_string(&count).is_ok_and(|n| n.trim() == "0");
    if !free || fs::write(&count, "1").is_err() {
        return false;
    }
    let _ = fs::write(folder.join("0/contexts/nr_contexts"), "1");
    let known = fs::read_to_string(folder.join("0/contexts/0/avail_operations"));
    let _ = fs::write(&count, "0");
    known.is_ok_and(|known| known.lines().any(|name| name == "fvaddr"))
}

impl Monitors {
    /// Takes at most this many; `None` if they are not to be had.
    pub fn take(folder: &Path, most: usize) -> Option<Monitors> {
        if !is_free(folder) || fs::write(folder.join("nr_kdamonds"), most.to_string()).is_err() {
            return None;
        }
        Some(Monitors(Arc::new(Taken {
            folder: folder.into(),
            used: Mutex::new(vec![false; most]),
        })))
    }

    /// One for a process; `None` if all are in use, or the kernel refuses.
    pub fn begin(&self, process: u32, pace: Pace) -> Option<Damon> {
        let mut used = self.0.used();
        let number = used.iter().position(|used| !used)?;
        used[number] = true;
        drop(used);
        let damon = Damon {
            all: self.clone(),
            number,
            process,
            pace,
            ranges: Vec::new(),
            parts: 0,
            thread: None,
        };
        let prepared = {
            let _turn = turn();
            damon.prepare()
        };
        prepared.ok().map(|()| damon)
    }

    /// How many are in use.
    pub fn in_use(&self) -> usize {
        self.0.used().iter().filter(|used| **used).count()
    }
}

impl Taken {
    fn used(&self) -> MutexGuard<'_, Vec<bool>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.join("nr_kdamonds"), "0");
    }
}

/// The kernel answers one at a time and refuses the others (`EBUSY`): threads of this process take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Damon {
    /// Takes the monitors for one process; `None` if they are not to be had.
    pub fn begin(folder: &Path, process: u32, pace: Pace) -> Option<Damon> {
        Monitors::take(folder, 1)?.begin(process, pace)
    }

    /// Its number among the kernel's.
    pub fn number(&self) -> usize {
        self.number
    }

    fn file(&self, file: &str) -> PathBuf {
        self.all.0.folder.join(self.number.to_string()).join(file)
    }

    fn set(&self, file: &str, value: impl Display) -> io::Result<()> {
        fs::write(self.file(file), value.to_string())
    }

    fn set_inside(&self, file: &str, value: impl Display) -> io::Result<()> {
        self.set(&format!("contexts/0/{file}"), value)
    }

    fn prepare(&self) -> io::Result<()> {
        self.set("contexts/nr_contexts", 1)?;
        for (file, value) in [
            ("operations", "fvaddr".into()),
            (
                "monitoring_attrs/intervals/sample_us",
                self.pace.check_us.to_string(),
            ),
            (
                "monitoring_attrs/intervals/aggr_us",
                (self.pace.check_us * self.pace.checks).to_string(),
            ),
            ("monitoring_attrs/nr_regions/min", "3".into()),
            ("targets/nr_targets", "1".into()),
            ("targets/0/pid_target", self.process.to_string()),
            // The kernel reports counts of regions that a scheme applies to: one that does nothing applies to all.
            ("schemes/nr_schemes", "1".into()),
            ("schemes/0/action", "stat".into()),
            ("schemes/0/access_pattern/sz/max", u64::MAX.to_string()),
            (
                "schemes/0/access_pattern/nr_accesses/min",
                self.pace.least.to_string(),
            ),
            (
                "schemes/0/access_pattern/nr_accesses/max",
                u32::MAX.to_string(),
            ),
            ("schemes/0/access_pattern/age/max", u32::MAX.to_string()),
        ] {
            self.set_inside(file, value)?;
        }
        Ok(())
    }

    /// Watches these ranges from now on: ascending, apart from each other, whole pages.
    ///
    /// # Errors
    /// The process has ended, or the kernel refuses.
    pub fn watch(&mut self, ranges: &[Range<u64>]) -> io::Result<()> {
        // All monitors together have as many regions as one.
        let parts = (self.pace.parts / self.all.in_use().max(1)).max(LEAST_PARTS);
        if (self.ranges == ranges && self.parts == parts) || ranges.is_empty() {
            return Ok(());
        }
        let state = if self.ranges.is_empty() {
            "on"
        } else {
            "commit"
        };
        let most = 2 * ranges.len() + parts;
        let _turn = turn();
        self.set_inside("monitoring_attrs/nr_regions/max", most)?;
        self.set_inside("targets/0/regions/nr_regions", ranges.len())?;
        for (number, range) in ranges.iter().enumerate() {
            self.set_inside(&format!("targets/0/regions/{number}/start"), range.start)?;
            self.set_inside(&format!("targets/0/regions/{number}/end"), range.end)?;
        }
        self.set("state", state)?;
        // Read now: to ask later would wait for other threads.
        let thread = fs::read_to_string(self.file("pid")).ok();
        self.thread = thread.and_then(|number| number.trim().parse().ok());
        self.ranges = ranges.to_vec();
        self.parts = parts;
        Ok(())
    }

    /// The kernel's thread that does the work, once something is watched.
    pub fn thread(&self) -> Option<u32> {
        self.thread
    }

    /// Waits for its next counts: parts of what is watched, ascending, each with how much of the time it was in use (0 to 1).
    ///
    /// # Errors
    /// The process has ended.
    pub fn counts(&self) -> io::Result<Vec<(Range<u64>, f64)>> {
        let _turn = turn();
        self.set("state", "update_schemes_tried_regions")?;
        let folder = self.file("contexts/0/schemes/0/tried_regions");
        let mut all = Vec::new();
        for entry in fs::read_dir(&folder)?.flatten() {
            let part = entry.path();
            let number = |file: &str| -> Option<u64> {
                fs::read_to_string(part.join(file))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            };
            let (Some(start), Some(end)) = (number("start"), number("end")) else {
                continue;
            };
            let uses = number("nr_accesses").unwrap_or(0) as f64 / self.pace.checks as f64;
            all.push((start..end, uses.min(1.0)));
        }
        all.sort_by_key(|(range, _)| range.start);
        Ok(all)
    }
}

impl Drop for Damon {
    fn drop(&mut self) {
        // A monitor that is off already refuses this.
        let turn = turn();
        let _ = self.set("state", "off");
        drop(turn);
        self.all.0.used()[self.number] = false;
    }
}

/// Bytes in use within a range.
pub fn used(counts: &[(Range<u64>, f64)], range: &Range<u64>) -> f64 {
    let first = counts.partition_point(|(part, _)| part.end <= range.start);
    let parts = counts[first..]
        .iter()
        .take_while(|(part, _)| part.start < range.end);
    let bytes = |(part, uses): &(Range<u64>, f64)| {
        (part.end.min(range.end) - part.start.max(range.start)) as f64 * uses
    };
    parts.map(bytes).sum()
}

/// Whether a range is among what is counted.
pub fn has(counts: &[(Range<u64>, f64)], at: u64) -> bool {
    let next = counts.partition_point(|(part, _)| part.end <= at);
    counts.get(next).is_some_and(|(part, _)| part.start <= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_use_are_those_of_all_parts_within() {
        let counts = [(0..4096, 1.0), (4096..8192, 0.5), (16384..20480, 0.1)];
        assert_eq!(used(&counts, &(0..8192)), 4096.0 + 2048.0);
        assert_eq!(used(&counts, &(6144..16384)), 1024.0);
        assert_eq!(used(&counts, &(8192..16384)), 0.0);
        assert!(has(&counts, 16384) && !has(&counts, 8192) && !has(&counts, 20480));
    }

    /// The kernel's files, without what makes new ones.
    #[test]
    fn a_monitor_that_somebody_uses_or_that_knows_no_processes_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("nr_kdamonds");
        assert!(!is_free(folder.path()), "no monitor");
        fs::write(&count, "1\n").unwrap();
        assert!(!is_free(folder.path()));
        assert_eq!(fs::read_to_string(&count).unwrap(), "1\n", "in use");
        fs::write(&count, "0\n").unwrap();
        fs::create_dir_all(folder.path().join("0/contexts/0")).unwrap();
        let known = folder.path().join("0/contexts/0/avail_operations");
        fs::write(&known, "paddr\n").unwrap();
        assert!(!is_free(folder.path()));
        assert_eq!(fs::read_to_string(&count).unwrap(), "0", "given back");
        fs::write(&known, "vaddr\nfvaddr\npaddr\n").unwrap();
        assert!(is_free(folder.path()));
    }

    #[test]
    fn each_process_has_a_monitor_while_there_are_some() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("nr_kdamonds");
        fs::write(&count, "0\n").unwrap();
        for number in ["0", "1"] {
            let context = folder.path().join(number).join("contexts/0");
            for below in ["monitoring_attrs/intervals", "monitoring_attrs/nr_regions"] {
                fs::create_dir_all(context.join(below)).unwrap();
            }
            for below in ["sz", "nr_accesses", "age"] {
                let folder = context.join("schemes/0/access_pattern").join(below);
                fs::create_dir_all(folder).unwrap();
            }
            for region in ["0", "1"] {
                fs::create_dir_all(context.join("targets/0/regions").join(region)).unwrap();
            }
            fs::write(context.join("avail_operations"), "fvaddr\n").unwrap();
        }
        let all = Monitors::take(folder.path(), 2).unwrap();
        assert_eq!(fs::read_to_string(&count).unwrap(), "2");
        let first = all.begin(7, Pace::ALWAYS).unwrap();
        let mut second = all.begin(8, Pace::ALWAYS).unwrap();
        assert!(all.begin(9, Pace::ALWAYS).is_none(), "all are in use");
        let of = |number: &str, file: &str| {
            let file = folder.path().join(number).join(file);
            fs::read_to_string(file).unwrap()
        };
        assert_eq!(of("0", "contexts/0/targets/0/pid_target"), "7");
        assert_eq!(of("1", "contexts/0/targets/0/pid_target"), "8");
        let ranges = [0..4096, 8192..12288];
        second.watch(&ranges).unwrap();
        let most = "contexts/0/monitoring_attrs/nr_regions/max";
        assert_eq!(of("1", most), "504", "half of the regions, and its own");
        assert_eq!(of("1", "state"), "on");
        drop(first);
        second.watch(&ranges).unwrap();
        assert_eq!(
            (of("0", "state"), of("1", "state")),
            ("off".into(), "commit".into())
        );
        assert_eq!(of("1", most), "1004");
        let third = all.begin(9, Pace::ALWAYS).unwrap();
        assert_eq!(of("0", "contexts/0/targets/0/pid_target"), "9");
        drop((all, second));
        assert_eq!(fs::read_to_string(&count).unwrap(), "2", "one is in use");
        drop(third);
        assert_eq!(fs::read_to_string(&count).unwrap(), "0");
    }
}
