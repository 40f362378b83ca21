//! Options, and the state at the beginning.

use super::observe::Way;
use crate::nodes::Kinds;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The processes whose memory is tiered.
#[derive(Clone, Debug)]
pub enum Target {
    /// Processes that run already, and what they start.
    Processes(Vec<u32>),
    /// The folder of a control group.
    Group(PathBuf),
    /// A command, and what it starts.
    Command(Vec<OsString>),
}

/// How it is tiered.
pub struct TierOptions<'a> {
    /// The policy's name, for reports.
    pub policy: &'a str,
    /// Which nodes are fast and slow.
    pub kinds: Kinds,
    /// Fast memory of all processes together; `None`: what they have there, and what is free there.
    pub fast_bytes: Option<u64>,
    /// Bytes of a page, a power of two from 4 KiB to 2 MiB; `None`: by what there is.
    pub page_bytes: Option<u64>,
    /// How accesses are observed; `None`: the policy does not need them.
    pub way: Option<Way>,
    /// Time between two intervals.
    pub period: Duration,
    /// Bytes that may be moved in a second.
    pub rate: u64,
    /// Share of a core that all of it may take, 0 to 1.
    pub core: f64,
    /// How long a page that was moved stays where it is.
    pub hold: Duration,
    /// When to stop; `None`: when the processes have ended.
    pub time: Option<Duration>,
    /// Set to stop it.
    pub stop: &'a AtomicBool,
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
    /// The processes: number, name, how they are observed.
    pub processes: Vec<(u32, String, &'static str)>,
    /// Things to know, a sentence each.
    pub notes: Vec<String>,
}
