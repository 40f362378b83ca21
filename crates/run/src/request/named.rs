//! The machine that a user names.

use varve_live::{ProbeOptions, probe};
use varve_machine::load::changes;
use varve_machine::{LoadError, Machine};

/// A machine by name or file, or the one that this runs on (`here`), with what is changed of it.
///
/// # Errors
/// A name or file that there is not, and whatever is wrong with the machine.
pub fn machine(name: &str) -> Result<Machine, LoadError> {
    let (base, changes) = changes(name);
    if base != "here" {
        return Machine::load(name);
    }
    super::here::machine(&probe(&ProbeOptions::default())).with(&changes)
}
