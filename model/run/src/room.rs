//! Whether a program can have room under a policy, as far as that is known before it runs.

use crate::{Error, RunSpec};
use varve_access::{Daemons, Fault, Pager};
use varve_machine::model::RunError;
use varve_pages::Placement;
use varve_trace::PAGE_BYTES;

/// Refuses a run that can only end out of memory, with the error that it would have ended with.
///
/// A policy without a daemon only hands out frames until none is left, whichever core asks. So this asks it for as many
/// as the program has pages at the end. A run that is ended before may end well.
///
/// # Errors
/// No room, or a machine, pages and a policy that do not go together.
pub fn check(spec: &RunSpec) -> Result<(), Error> {
    let Some(footprint) = spec.footprint else {
        return Ok(());
    };
    let page_bytes = spec.scaled_page_bytes()?;
    if page_bytes != PAGE_BYTES || spec.on.until_s.is_some() {
        return Ok(());
    }
    let machine = spec.scaled_machine()?;
    let mut placement = Placement::new(&spec.scaled_policy(), &machine, page_bytes)?;
    if placement.daemons() != Daemons::default() {
        return Ok(());
    }
    for vpn in 0..footprint.kept_pages {
        let fault = Fault {
            vpn,
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        };
        placement.fault(&fault).map_err(RunError::from)?;
    }
    Ok(())
}
