//! The state of a running `tier`, in a file beside those of other runs, for `varve top`. The file is replaced whole, at
//! most once a second, and vanishes at the end. One whose writer was killed is known by its start, and removed by the next.

use super::report::TierCounts;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Decisions that are kept.
const DECISIONS: usize = 8;
/// Parts of a process's memory whose heat is reported: the number that fits a line of a screen.
pub(super) const PARTS: usize = 64;
const EVERY: Duration = Duration::from_secs(1);

/// A `tier` at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TierState {
    /// Its process.
    pub pid: u32,
    /// When that process began, in the kernel's ticks since the machine's start.
    pub began: u64,
    /// Its name among those of one daemon, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// The page policy.
    pub policy: String,
    /// Seconds since it began to tier.
    pub seconds: f64,
    /// Seconds of processor time so far.
    pub cpu_seconds: f64,
    /// The same of the kernel's monitors.
    #[serde(default)]
    pub monitor_seconds: f64,
    /// Seconds since 1970 when the last look ended.
    #[serde(default)]
    pub looked: f64,
    /// Looks so far.
    #[serde(default)]
    pub looks: u64,
    /// Bytes of fast memory that the processes may have together.
    pub fast_bytes: u64,
    /// Bytes moved to fast memory.
    pub to_fast: u64,
    /// Bytes moved to slow memory.
    pub to_slow: u64,
    /// Bytes that did not migrate, by reason.
    #[serde(default)]
    pub refused: Vec<(String, u64)>,
    /// Times that pages waited, by reason.
    #[serde(default)]
    pub waited: Vec<(String, u64)>,
    /// Bytes that the kernel or other programs migrated.
    #[serde(default)]
    pub by_others: u64,
    /// Bytes of the processes, and of what they share, on nodes of fast memory.
    #[serde(default)]
    pub on_fast: u64,
    /// The same on nodes of slow memory.
    #[serde(default)]
    pub on_slow: u64,
    /// Bytes of hot pages.
    pub hot: u64,
    /// Bytes of these in fast memory.
    pub hot_in_fast: u64,
    /// Bytes whose frames were exchanged, where the policy chooses frames; then what is said of fast memory is about places that are
    /// good for hot pages.
    #[serde(default)]
    pub exchanged: Option<u64>,
    /// The last decisions, in words, the latest last.
    pub decisions: Vec<String>,
    /// The processes.
    pub processes: Vec<HeatOf>,
}

/// Heat over the addresses of a process, or over the bytes of what processes share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatOf {
    /// Its number; 0 for what processes share.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// How it is seen what it uses; of what processes share, its kind.
    pub observed_by: String,
    /// Parts of its memory that have equally many pages, by ascending address.
    pub parts: Vec<Part>,
}

/// A part of a process's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The address of its first page.
    pub from: u64,
    /// Where its last page ends. There may be gaps between.
    pub to: u64,
    /// Share of its pages that are hot, 0 to 1.
    pub hot: f32,
    /// Share of its pages in fast memory, 0 to 1.
    pub fast: f32,
}

/// Where states are: of root for all to see, of others for themselves. `None` if there is no such place.
pub fn folder(root: &Path) -> Option<PathBuf> {
    match user() {
        0 => Some(root.join("run/varve")),
        user => {
            let run = root.join(format!("run/user/{user}"));
            run.is_dir().then(|| run.join("varve"))
        }
    }
}

fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// When a process began; `None` if it is no more.
pub(super) fn began(root: &Path, process: u32) -> Option<u64> {
    let text = fs::read_to_string(root.join(format!("proc/{process}/stat"))).ok()?;
    // Field 22, counted behind the name, which may have anything in it.
    text.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .parse()
        .ok()
}

/// States of all that are at work and that may be read.
pub fn states(root: &Path) -> Vec<TierState> {
    let mut all: Vec<TierState> = Vec::new();
    let mut folders = vec![root.join("run/varve")];
    folders.extend(folder(root).filter(|own| *own != folders[0]));
    for folder in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Some(state) = living(root, &entry.path()) {
                all.push(state);
            }
        }
    }
    all.sort_by(|a, b| (a.pid, &a.name).cmp(&(b.pid, &b.name)));
    all
}

fn living(root: &Path, file: &Path) -> Option<TierState> {
    let name = file.file_name()?.to_str()?;
    name.strip_prefix("tier-")?.strip_suffix(".json")?;
    let state: TierState = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    (began(root, state.pid) == Some(state.began)).then_some(state)
}

/// The writer of the file.
pub(super) struct Teller {
    file: PathBuf,
    began: u64,
    last: Option<Instant>,
    before: TierCounts,
    decisions: VecDeque<String>,
}

/// Writers that this process has had.
static WRITERS: AtomicU32 = AtomicU32::new(0);

impl Teller {
    /// Makes the place, and removes what those have left there who were killed.
    ///
    /// # Errors
    /// There is no place for it: a line for the user.
    pub fn new() -> Result<Teller, String> {
        let root = Path::new("/");
        let folder =
            folder(root).ok_or("`varve top` cannot show this run: there is no /run/user")?;
        let no = |e: io::Error| format!("`varve top` does not see this: {}: {e}", folder.display());
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&folder);
        made.map_err(no)?;
        for entry in fs::read_dir(&folder).map_err(no)?.flatten() {
            let path = entry.path();
            let is_state = path
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("tier-"));
            // One that is not ours, or of a newer version, is not ours to remove.
            let ours = entry.metadata().is_ok_and(|m| m.uid() == user());
            if is_state && ours && living(root, &path).is_none() {
                let _ = fs::remove_file(path);
            }
        }
        let own = std::process::id();
        let file = match WRITERS.fetch_add(1, Ordering::Relaxed) {
            0 => format!("tier-{own}.json"),
            number => format!("tier-{own}-{number}.json"),
        };
        Ok(Teller {
            file: folder.join(file),
            began: began(root, own).unwrap_or(0),
            last: None,
            before: TierCounts::default(),
            decisions: VecDeque::new(),
        })
    }

    /// Notes what an interval came to.
    pub fn note(&mut self, seconds: f64, now: &TierCounts) {
        if let Some(words) = decision(&self.before, now) {
            self.decisions.push_back(format!("{seconds:.1} s: {words}"));
            if self.decisions.len() > DECISIONS {
                self.decisions.pop_front();
            }
        }
        self.before = now.clone();
    }

    /// Whether it is time to tell again.
    pub fn is_due(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= EVERY)
    }

    /// Writes a state, whose writer and decisions are filled in here. That it cannot be written, such as on a full disk, is no
    /// reason to end: readers see by the time in it that it is old.
    pub fn tell(&mut self, mut state: TierState) {
        self.last = Some(Instant::now());
        state.pid = std::process::id();
        state.began = self.began;
        state.decisions = self.decisions.iter().cloned().collect();
        let Ok(text) = serde_json::to_string(&state) else {
            return;
        };
        let beside = self.file.with_extension("new");
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &self.file));
        if written.is_err() {
            let _ = fs::remove_file(beside);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
        if let Some(folder) = self.file.parent() {
            // Others may have files there.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The actions between two sums, in words; `None` if there were none.
fn decision(before: &TierCounts, now: &TierCounts) -> Option<String> {
    let size = |bytes: u64| match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    };
    let mut words = Vec::new();
    let (up, down) = (now.to_fast - before.to_fast, now.to_slow - before.to_slow);
    if up + down > 0 {
        let asked = now.wishes - before.wishes;
        words.push(format!(
            "promoted {} and demoted {}; the policy requested {asked} migrations",
            size(up),
            size(down)
        ));
    }
    if now.exchanged > before.exchanged {
        words.push(format!(
            "exchanged the frames of {}",
            size(now.exchanged - before.exchanged)
        ));
    }
    for ((now, why), (before, _)) in now.waited().into_iter().zip(before.waited()) {
        if now > before {
            words.push(format!("pages waited since {why}"));
        }
    }
    for (why, bytes) in &now.refused {
        let more = bytes - before.refused.get(why).copied().unwrap_or(0);
        if more > 0 {
            words.push(format!("{} stayed: {}", size(more), why.words()));
        }
    }
    if now.by_others > before.by_others {
        let others = size(now.by_others - before.by_others);
        words.push(format!("others migrated {others}"));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_said_in_words_and_nothing_is_not() {
        let before = TierCounts::default();
        assert_eq!(decision(&before, &before), None);
        let now = TierCounts {
            to_fast: 4 << 20,
            wishes: 9,
            full: 3,
            ..TierCounts::default()
        };
        let words = decision(&before, &now).unwrap();
        assert_eq!(
            words,
            "promoted 4.0 MiB and demoted 0 B; the policy requested 9 migrations; pages waited since the node was full"
        );
    }

    #[test]
    fn a_state_is_read_as_long_as_its_writer_lives() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run/varve");
        fs::create_dir_all(&folder).unwrap();
        let state = TierState {
            pid: 17,
            began: 400,
            ..TierState::default()
        };
        let text = serde_json::to_string(&state).unwrap();
        fs::write(folder.join("tier-17.json"), text).unwrap();
        fs::write(folder.join("tier-18.json"), "half of a fi").unwrap();
        assert!(states(root.path()).is_empty(), "its writer is no more");
        let process = root.path().join("proc/17");
        fs::create_dir_all(&process).unwrap();
        let stat = |began| format!("17 (a) b) S 1{} {began} 0", " 0".repeat(17));
        fs::write(process.join("stat"), stat(400)).unwrap();
        assert_eq!(states(root.path()), [state]);
        fs::write(process.join("stat"), stat(500)).unwrap();
        assert!(
            states(root.path()).is_empty(),
            "the number is another's by now"
        );
    }
}
