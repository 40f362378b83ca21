//! Options, and the state at the beginning.

use super::observe::Way;
use crate::nodes::Kinds;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The processes whose memory is tiered.
#[derive(Clone, Debug)]
pub enum Target {
    /// Running processes, and their descendants.
    Processes(Vec<u32>),
    /// The folders of control groups.
    Groups(Vec<PathBuf>),
    /// A command, and its descendants.
    Command(Vec<OsString>),
}

/// The options of a run.
pub struct TierOptions<'a> {
    /// The policy's name, for reports.
    pub policy: &'a str,
    /// Which nodes are fast and slow.
    pub kinds: Kinds,
    /// Fast memory of all processes together; `None`: what they use there, plus what is free there.
    pub fast_bytes: Option<u64>,
    /// Bytes of a page, a power of two from 4 KiB to 2 MiB; `None`: chosen by the footprint.
    pub page_bytes: Option<u64>,
    /// How accesses are observed; `None`: the policy does not need them.
    pub way: Option<Way>,
    /// Time between two intervals.
    pub period: Duration,
    /// Limit of migration, bytes per second.
    pub rate: u64,
    /// CPU budget, as a share of one core, 0 to 1.
    pub core: f64,
    /// How long a migrated page stays where it is.
    pub hold: Duration,
    /// When to stop; `None`: when the processes have ended.
    pub time: Option<Duration>,
    /// Set to stop it.
    pub stop: &'a AtomicBool,
    /// Its name among those of one daemon; `None`: it is the only one.
    pub name: Option<&'a str>,
    /// A file for what is hot, read at the beginning, and written each minute and at the end; `None`: it is forgotten.
    pub heat: Option<&'a Path>,
    /// Is told, once, what a user should know while it runs.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Is called some times a second, as long as it goes on.
    pub beat: &'a (dyn Fn() + Sync),
}

/// Page size and memory that the policy decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages that may be in fast memory, at least one.
    pub fast_pages: u64,
    /// Pages that slow memory could hold if it were empty.
    pub slow_pages: u64,
}

/// The state at the beginning.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Sizes.
    pub room: Room,
    /// The processes: number, name, and the way they are observed.
    pub processes: Vec<(u32, String, &'static str)>,
    /// Notes, a sentence each.
    pub notes: Vec<String>,
}
