//! The machine that a user names.

use crate::ui::{Failure, wrong};
use varve_live::{ProbeOptions, probe};
use varve_machine::Machine;
use varve_machine::load::changes;

/// A machine by name or file, or the one that this runs on, with what is changed of it.
pub fn machine(name: &str) -> Result<Machine, Failure> {
    let (base, changes) = changes(name);
    if base != "here" {
        return Machine::load(name).map_err(wrong);
    }
    let here = super::here::machine(&probe(&ProbeOptions::default()));
    here.with(&changes).map_err(wrong)
}
