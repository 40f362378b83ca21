//! Classes of programs (E1): by what slow memory does to their speed, and by how much they write.
//!
//! ```text
//! slowdown = time in slow memory / time in fast memory, each alone with its usual threads
//!
//! slowdown < 1.5                                   cpu-bound
//! else, slowdown grows with threads by 1.25 or more  bandwidth-sensitive: the memory runs out
//! else                                             latency-sensitive: each access takes longer, however few there are
//!
//! writes in fast memory >= a quarter of what slow memory can write   write-intensive
//! ```

use crate::demand::Demand;
use crate::group::Program;
use crate::kinds::{Class, Memory};
use serde::{Deserialize, Serialize};

/// A program that slow memory slows by less than this is bound by the processor (Wang et al., section III-A).
pub const CPU_BOUND: f64 = 1.5;

/// Slowdown with the usual threads over that with one, from which on it is the memory's bandwidth that is short. A choice: with
/// latency alone the quotient is 1.
pub const GROWTH: f64 = 1.25;

/// Share of the slow memory's write bandwidth from which on a program writes much: a choice, four such programs use it up.
pub const WRITES: f64 = 0.25;

/// A program's class, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    /// The class.
    pub class: Class,
    /// Does it write much?
    pub write_intensive: bool,
    /// Time in slow over time in fast memory with its usual threads, where both are known.
    pub slowdown: Option<f64>,
    /// Why, in a sentence without its end.
    pub why: String,
}

/// The machine's limits, on which the class depends beside the program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// GB/s that slow memory can write; `None` if unknown.
    pub slow_write_gbps: Option<f64>,
}

/// The class of a program: what its file says, else what was measured; a program of which nothing is known counts as bound by
/// the processor, since nothing then says that it needs fast memory.
pub fn classify(program: &Program, demand: &Demand, limits: &Limits) -> Classified {
    let threads = program.threads;
    let slowdown = demand.slowdown(threads);
    let (measured, mut why) = by_speed(demand, threads);
    let class = program.class.unwrap_or(measured);
    if program.class.is_some() {
        why = "set in its file".into();
    }
    let written = demand
        .point(Memory::Fast, threads)
        .and_then(|p| p.write_gbps);
    let measured = match (written, limits.slow_write_gbps) {
        (Some(w), Some(most)) => w >= WRITES * most,
        _ => false,
    };
    Classified {
        class,
        write_intensive: program.write_intensive.unwrap_or(measured),
        slowdown,
        why,
    }
}

fn by_speed(demand: &Demand, threads: u32) -> (Class, String) {
    let Some(slowdown) = demand.slowdown(threads) else {
        return (
            Class::CpuBound,
            "its time in both memories was not measured".into(),
        );
    };
    if slowdown < CPU_BOUND {
        let why = format!("slow memory makes it {slowdown:.2} times as long");
        return (Class::CpuBound, why);
    }
    let growth = demand
        .slowdown(1)
        .map_or(f64::INFINITY, |one| slowdown / one);
    match growth >= GROWTH {
        true => (
            Class::BandwidthSensitive,
            format!(
                "slow memory makes it {slowdown:.1} times as long, the more the more threads it has"
            ),
        ),
        false => (
            Class::LatencySensitive,
            format!(
                "slow memory makes it {slowdown:.1} times as long, with one thread as with {threads}"
            ),
        ),
    }
}
