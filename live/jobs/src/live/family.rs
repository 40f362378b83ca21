//! A job is a program and all that it starts: a control group of its own where one can be made, or else its process tree.

use super::watch;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use varve_live::cgroups::top_in;

/// Control groups of this run.
#[derive(Debug)]
pub struct Groups {
    /// The folder that they are in; `None`: there are none.
    folder: Option<PathBuf>,
    /// Controllers that were not passed on before us, and are not afterwards.
    turned_on: Vec<(PathBuf, &'static str)>,
    /// Which way it is, in a line.
    pub note: String,
    made: AtomicUsize,
}

/// Interval at which the machine's processes are scanned for those of a job.
const LOOK_THROUGH: Duration = Duration::from_millis(25);

impl Groups {
    /// Makes a folder for them, below where version 2 is mounted.
    pub fn new() -> Groups {
        let none = |why: String| Groups {
            folder: None,
            turned_on: Vec::new(),
            note: format!(
                "a job's memory is that of its process tree, as far as it is seen: it can have no control group ({why})"
            ),
            made: AtomicUsize::new(0),
        };
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let Some(mount) = top_in(&mounts) else {
            return none("version 2 is not mounted".into());
        };
        remove_left_over(&mount);
        let folder = mount.join(format!("varve-jobs-{}", std::process::id()));
        if let Err(e) = fs::create_dir(&folder) {
            return none(format!("{}: {e}", folder.display()));
        }
        let mut turned_on = Vec::new();
        for name in ["memory", "cpuset"] {
            if turn_on(&mount, name) == Ok(true) {
                turned_on.push((mount.clone(), name));
            }
            // Where it is not passed on to us, a line below says what is done without it.
            let _ = turn_on(&folder, name);
        }
        let counts = match has(&folder, "memory") {
            true => "",
            false => {
                "; its memory is summed over its processes, since there is no memory controller"
            }
        };
        Groups {
            note: format!(
                "each job has a control group below {}{counts}",
                folder.display()
            ),
            folder: Some(folder),
            turned_on,
            made: AtomicUsize::new(0),
        }
    }

    /// A new group, and the file through which a process joins it.
    pub fn group(&self) -> Option<(ControlGroup, File)> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.as_ref()?.join(number.to_string());
        fs::create_dir(&folder).ok()?;
        let group = ControlGroup(folder);
        let procs = fs::OpenOptions::new()
            .write(true)
            .open(group.0.join("cgroup.procs"));
        Some((group, procs.ok()?))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
        for (level, name) in &self.turned_on {
            let _ = fs::write(level.join("cgroup.subtree_control"), format!("-{name}"));
        }
    }
}

/// Is a controller passed on to groups below?
fn has(level: &Path, name: &str) -> bool {
    let text = fs::read_to_string(level.join("cgroup.subtree_control")).unwrap_or_default();
    text.split_whitespace().any(|word| word == name)
}

/// Passes a controller on to groups below; says whether it was not before.
fn turn_on(level: &Path, name: &str) -> Result<bool, ()> {
    if has(level, name) {
        return Ok(false);
    }
    let file = level.join("cgroup.subtree_control");
    fs::write(file, format!("+{name}"))
        .map(|()| true)
        .map_err(drop)
}

/// Groups of runs that were killed.
fn remove_left_over(mount: &Path) {
    for entry in fs::read_dir(mount).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let of = name
            .to_str()
            .and_then(|name| name.strip_prefix("varve-jobs-")?.parse::<u32>().ok());
        if of.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            for job in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                if job.file_type().is_ok_and(|kind| kind.is_dir()) {
                    drop(ControlGroup(job.path()));
                }
            }
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// A control group, which ends with all that is in it.
#[derive(Debug)]
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    fn members(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Memory without files, bytes; `None` without a memory controller.
    fn own_memory(&self) -> Option<u64> {
        let text = fs::read_to_string(self.0.join("memory.stat")).ok()?;
        let of = |line: &str| {
            let (name, bytes) = line.split_once(' ')?;
            matches!(name, "anon" | "shmem").then(|| bytes.trim().parse::<u64>().ok())?
        };
        Some(text.lines().filter_map(of).sum())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Since Linux 5.14; others end by the signal to their process group.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        for _ in 0..50 {
            match fs::remove_dir(&self.0) {
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => return,
            }
        }
    }
}

/// Joins a group between fork and exec: the kernel takes 0 for the writing process. Allocates nothing.
pub fn join(mut procs: &File) -> io::Result<()> {
    procs.write_all(b"0")
}

/// A running job.
#[derive(Debug)]
pub struct Job {
    leader: u32,
    group: Option<ControlGroup>,
    /// Processes that belonged to it at the last scan, with their start times: a number may be another process's by now.
    tree: BTreeMap<u32, u64>,
    looked: Option<Instant>,
}

impl Job {
    pub fn new(leader: u32, group: Option<ControlGroup>) -> Job {
        Job {
            leader,
            group,
            tree: BTreeMap::new(),
            looked: None,
        }
    }

    /// Its processes.
    pub fn members(&mut self) -> Vec<u32> {
        if let Some(group) = &self.group {
            return group.members();
        }
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_THROUGH) {
            self.tree = tree(self.leader, &self.tree, &processes());
            self.looked = Some(Instant::now());
        }
        self.tree.keys().copied().collect()
    }

    /// Memory that it has now and shares with no file, bytes.
    pub fn own_memory(&mut self) -> u64 {
        // The controller's sums come a little late: a short program is known by its process.
        let leader = watch::own_memory(self.leader);
        match self.group.as_ref().and_then(ControlGroup::own_memory) {
            Some(bytes) => bytes.max(leader),
            None => {
                let others = self.members().into_iter().filter(|pid| *pid != self.leader);
                leader
                    + others
                        .collect::<Vec<_>>()
                        .into_iter()
                        .map(watch::own_memory)
                        .sum::<u64>()
            }
        }
    }

    /// The same by node.
    pub fn by_node(&mut self) -> BTreeMap<u32, u64> {
        let mut all = BTreeMap::new();
        for pid in self.members() {
            for (node, bytes) in watch::by_node(pid) {
                *all.entry(node).or_default() += bytes;
            }
        }
        all
    }

    /// From now on it gets memory of these nodes alone.
    ///
    /// # Errors
    /// A line that says why not.
    pub fn confine(&self, nodes: &[u32]) -> Result<(), String> {
        let Some(group) = &self.group else {
            return Err("it has no control group".into());
        };
        let words: Vec<String> = nodes.iter().map(u32::to_string).collect();
        let file = group.0.join("cpuset.mems");
        fs::write(&file, words.join(",")).map_err(|e| format!("{}: {e}", file.display()))
    }
}

/// A process of the machine.
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    began: u64,
}

/// `17 (name) S PARENT GROUP ... BEGAN` (`man proc_pid_stat`): names have anything in them.
fn process(pid: u32, stat: &str) -> Option<Process> {
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process {
        pid,
        parent: words.get(1)?.parse().ok()?,
        group: words.get(2)?.parse().ok()?,
        began: words.get(19)?.parse().ok()?,
    })
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        process(pid, &fs::read_to_string(entry.path().join("stat")).ok()?)
    };
    entries.filter_map(of).collect()
}

/// A leader, its process group, what they have started, and what belonged to it before: what was started may have another parent by
/// now, and a process group of its own.
fn tree(leader: u32, before: &BTreeMap<u32, u64>, all: &[Process]) -> BTreeMap<u32, u64> {
    let is_known =
        |p: &&Process| p.pid == leader || p.group == leader || before.get(&p.pid) == Some(&p.began);
    let mut tree: BTreeMap<u32, u64> = all
        .iter()
        .filter(is_known)
        .map(|p| (p.pid, p.began))
        .collect();
    loop {
        let had = tree.len();
        for p in all {
            if tree.contains_key(&p.parent) {
                tree.insert(p.pid, p.began);
            }
        }
        if tree.len() == had {
            return tree;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pid: u32, parent: u32, group: u32) -> Process {
        Process {
            pid,
            parent,
            group,
            began: u64::from(pid),
        }
    }

    #[test]
    fn a_tree_has_children_and_those_who_lost_their_parents() {
        let all = [
            of(1, 0, 1),
            of(10, 1, 10),
            of(11, 10, 10),
            of(12, 11, 12),
            of(20, 1, 20),
        ];
        let first = tree(10, &BTreeMap::new(), &all);
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [10, 11, 12]);
        // 11 has ended, so that 12, in a group of its own, is a child of 1; it starts 13.
        let later = [
            of(1, 0, 1),
            of(10, 1, 10),
            of(12, 1, 12),
            of(13, 12, 13),
            of(20, 1, 20),
        ];
        let then = tree(10, &first, &later);
        assert_eq!(then.keys().copied().collect::<Vec<_>>(), [10, 12, 13]);
        // A number that is another's by now does not belong to it.
        let mut other = of(12, 1, 12);
        other.began = 99;
        assert_eq!(tree(10, &first, &[of(10, 1, 10), other]).len(), 1);
    }

    #[test]
    fn names_have_anything_in_them() {
        let stat = format!("17 (a) S 3 (b)) S 5 6{} 77 0", " 0".repeat(16));
        let found = process(17, &stat).unwrap();
        assert_eq!((found.parent, found.group, found.began), (5, 6, 77));
    }

    /// A shell whose child has its memory: both ways of counting see it.
    #[test]
    fn memory_of_a_child_is_the_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        let text = "x=$(head -c 25165824 /dev/zero | tr '\\0' x)\necho ready\nread line\n: $x\n";
        fs::write(&inner, text).unwrap();
        let groups = Groups::new();
        for by_group in [true, false] {
            let made = by_group.then(|| groups.group()).flatten();
            if by_group && made.is_none() {
                varve_skip::skip!("{}", groups.note);
                continue;
            }
            let (group, procs) = made.unzip();
            let mut command = std::process::Command::new("sh");
            command
                .arg("-c")
                .arg(format!("sh {}; true", inner.display()));
            command
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped());
            if let Some(procs) = procs {
                use std::os::unix::process::CommandExt;
                // SAFETY: between fork and exec one system call is made.
                unsafe { command.pre_exec(move || join(&procs)) };
            }
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            let out = child.stdout.take().unwrap();
            io::BufRead::read_line(&mut io::BufReader::new(out), &mut line).unwrap();
            let mut job = Job::new(child.id(), group);
            assert!(job.members().len() >= 2, "{by_group}");
            assert!(
                job.own_memory() > 24 << 20,
                "{by_group}: {}",
                job.own_memory()
            );
            assert!(watch::own_memory(child.id()) < 8 << 20);
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            child.wait().unwrap();
        }
    }
}
