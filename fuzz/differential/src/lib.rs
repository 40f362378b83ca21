//! Runs generated modules on this engine and on another one, and says where they differ.
//!
//! What is compared is all that a program can show: results, kinds of traps, exceptions that escape, exported globals, tables and
//! memories, and what references lead to.

mod arguments;
pub mod generate;
mod ours;
mod seen;
mod theirs;

pub use generate::Case;
pub use seen::{End, Seen, Tally, Value};

/// How a case ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Both did the same, to the end.
    Same,
    /// Both did the same until one of them ran out of memory or stack, which the standard leaves open.
    Exhausted,
    /// The bytes make no module.
    Nothing,
}

/// Runs a case on all engines, and counts what happened.
///
/// # Errors
/// Where they differ, in one line.
pub fn check(case: &Case, tally: &mut Tally) -> Result<Outcome, String> {
    let theirs = theirs::run(case);
    tally.add(&theirs);
    let mut outcome = Outcome::Same;
    for (name, config) in ours::configurations(case) {
        let ours = ours::run(case, config);
        if seen::compare(&ours, &theirs).map_err(|e| format!("{name}: {e}"))? == Outcome::Exhausted
        {
            outcome = Outcome::Exhausted;
        }
    }
    Ok(outcome)
}

/// As [`check`], from bytes that a fuzzer chose.
///
/// # Errors
/// Where the engines differ.
pub fn check_bytes(bytes: &[u8]) -> Result<Outcome, String> {
    match Case::new(bytes) {
        Some(case) => check(&case, &mut Tally::default()),
        None => Ok(Outcome::Nothing),
    }
}
