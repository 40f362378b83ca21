//! Whether a program can have room under a policy, as far as that is known before it runs.

use crate::{Error, RunSpec};
use varve_machine::model::RunError;
use varve_machine::{Daemons, Fault, Pager};
use varve_pages::Placement;
use varve_trace::PAGE_BYTES;

/// Refuses a run that can only end out of memory, with what it would have ended with.
///
/// A policy without a daemon does nothing but give frames until it has no more, whoever asks. So it is asked for as many as the
/// program has pages at the end. A run that is ended before may end well.
///
/// # Errors
/// No room, or a machine, pages and a policy that do not go together.
pub fn check(spec: &RunSpec) -> Result<(), Error> {
    let Some(footprint) = spec.footprint else {
        return Ok(());
    };
    let page_bytes = spec.scaled_page_bytes()?;
    if page_bytes != PAGE_BYTES || spec.until_ns.is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InStep, Work, policies_for, run_in_step};
    use std::path::Path;
    use varve_machine::Machine;
    use varve_trace::{Footprint, TraceReader};

    /// A run that is refused ends in the same way when it is begun, and one that is not refused ends well.
    #[test]
    fn what_is_refused_would_have_ended_out_of_memory() {
        let path = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../traces/sqlite-join.trace"
        ));
        let reader = TraceReader::open(path).unwrap();
        let footprint = Footprint::read(&reader, 1).unwrap();
        let mut refused = 0;
        for machine in ["cxl-spr", "optane-6230n", "optane-6230-memory-mode"] {
            let mut spec = RunSpec::new(
                Machine::load(machine).unwrap(),
                "",
                Work::Trace(path.into()),
            );
            (spec.page_bytes, spec.scale) = (4096, 1 << 15);
            for policy in policies_for("all", &spec.machine.scaled(spec.scale), 4096).unwrap() {
                spec.policy = policy;
                spec.footprint = Some(footprint);
                let told = check(&spec).map_err(|e| e.to_string());
                spec.footprint = None;
                let ended = run_in_step(&spec, &InStep::default(), &mut |_| true);
                match told {
                    Err(why) => {
                        refused += 1;
                        assert_eq!(ended.map(drop).map_err(|e| e.to_string()), Err(why));
                    }
                    Ok(()) => assert!(ended.is_ok(), "{} on {machine}", spec.policy),
                }
            }
        }
        assert!(refused >= 2);
    }
}
