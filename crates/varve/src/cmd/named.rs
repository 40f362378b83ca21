//! The machine that a user names.

use crate::ui::{Failure, wrong};
use varve_live::{ProbeOptions, probe};
use varve_machine::Machine;

/// A machine by name or file, or the one that this runs on.
pub fn machine(name: &str) -> Result<Machine, Failure> {
    if name != "here" {
        return Machine::load(name).map_err(wrong);
    }
    Ok(super::here::machine(&probe(&ProbeOptions::default())))
}
