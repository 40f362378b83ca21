//! Pauses of collections, phases of a plan that samples, and logs of programs that failed.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use varve_pima::{Entry as PimaEntry, Note as PimaNote, Phase as PimaPhase};

/// Pauses of one kind of collections, in the machine's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// Collections.
    pub count: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// A phase that a plan began (paper A, section 6.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// When, s.
    pub at_s: f64,
    /// Which, in words.
    pub phase: String,
    /// The line of the log.
    pub line: String,
    /// For a decision: the mean time of an interval in slow memory over that in fast memory.
    pub slowdown: Option<f64>,
    /// For a decision: whether objects are to be in fast memory from then on.
    pub fast: Option<bool>,
    /// Bytes of objects that were moved.
    pub moved_bytes: u64,
    /// Whether they were moved to fast memory.
    #[serde(default)]
    pub moved_to_fast: Option<bool>,
    /// For how long the program stood still for that, s.
    pub moved_s: f64,
}

impl Phase {
    /// A line of the log of such a plan.
    pub fn of(entry: &PimaEntry) -> Phase {
        let (moved_bytes, took) = match entry.note {
            PimaNote::Moved { bytes, took } => (bytes, took),
            _ => (0, Duration::ZERO),
        };
        let slowdown = match entry.note {
            PimaNote::Measured { slow, fast, .. } => Some(slow.as_secs_f64() / fast.as_secs_f64()),
            _ => None,
        };
        let fast = match entry.phase {
            PimaPhase::Cleanup(tier) => Some(tier.0 == 0),
            _ => None,
        };
        Phase {
            at_s: entry.at.as_secs_f64(),
            phase: phase_name(entry.phase).into(),
            line: entry.to_string().trim_start_matches("pima ").into(),
            slowdown,
            fast: fast.filter(|_| slowdown.is_some()),
            moved_bytes,
            moved_to_fast: match entry.phase {
                PimaPhase::Sample(tier) | PimaPhase::Cleanup(tier) | PimaPhase::HoldOff(tier) => {
                    Some(tier.0 == 0).filter(|_| moved_bytes > 0)
                }
                PimaPhase::Default | PimaPhase::Prepare => None,
            },
            moved_s: took.as_secs_f64(),
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line)
    }
}

/// Log of a program that failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailureLog {
    /// Its standard error.
    pub err: Vec<u8>,
    /// The phases of a plan that samples.
    pub phases: Vec<Phase>,
}

impl FailureLog {
    /// Its standard error, and the log of its plan.
    pub fn new(err: Vec<u8>, phases: &[PimaEntry]) -> FailureLog {
        FailureLog {
            err,
            phases: phases.iter().map(Phase::of).collect(),
        }
    }
}

/// A phase by the paper's name.
pub fn phase_name(phase: PimaPhase) -> &'static str {
    match phase {
        PimaPhase::Default => "default",
        PimaPhase::Prepare => "prepare",
        PimaPhase::Sample(tier) if tier.0 == 0 => "sample fast",
        PimaPhase::Sample(_) => "sample slow",
        PimaPhase::Cleanup(_) => "clean-up",
        PimaPhase::HoldOff(_) => "hold-off",
    }
}
