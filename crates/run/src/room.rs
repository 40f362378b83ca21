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
    use varve_machine::{Kind, Machine, Op, load};
    use varve_trace::{End, FileHeader, Footprint, TraceReader, TraceWriter};

    /// A trace that stores to so many pages, and gives the last `back` of them back.
    fn record(path: &Path, pages: u64, back: u16) {
        let file = std::fs::File::create(path).unwrap();
        let mut writer = TraceWriter::new(file, path, &FileHeader::default()).unwrap();
        let stores = (0..pages).map(|page| Op::write(PAGE_BYTES * page, 8, 1));
        writer.push(0, &stores.collect::<Vec<_>>()).unwrap();
        let first = PAGE_BYTES * (pages - u64::from(back));
        writer
            .push(0, &[Op::new(Kind::Unmap, first, back, 1)])
            .unwrap();
        writer.finish(End::default()).unwrap();
    }

    /// A run that is refused ends in the same way when it is begun. Only one that gives pages back may be out of memory later.
    #[test]
    fn what_is_refused_would_have_ended_out_of_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        let (mut refused, mut late) = (0, 0);
        for (machine, back) in load::names(&[])
            .iter()
            .flat_map(|name| [(name, 0), (name, 900)])
        {
            record(&path, 3_000, back);
            let footprint = Footprint::read(&TraceReader::open(&path).unwrap(), 2).unwrap();
            assert_eq!(footprint.kept_pages, 3_000 - u64::from(back));
            let work = Work::Trace(path.clone());
            let mut spec = RunSpec::new(Machine::load(machine).unwrap(), "", work);
            (spec.page_bytes, spec.scale) = (PAGE_BYTES, 1 << 15);
            for policy in policies_for("all", &spec.machine.scaled(spec.scale), PAGE_BYTES).unwrap()
            {
                spec.policy = policy;
                spec.footprint = Some(footprint);
                let told = check(&spec).map_err(|e| e.to_string());
                spec.footprint = None;
                let ended = run_in_step(&spec, &InStep::default(), &mut |_| true);
                let ended = ended.map(drop).map_err(|e| e.to_string());
                if told.is_err() {
                    refused += 1;
                    assert_eq!(told, ended, "{} on {machine}", spec.policy);
                } else if ended.is_err() {
                    late += 1;
                    assert!(back > 0, "{} on {machine}", spec.policy);
                }
            }
        }
        assert!(refused > 0 && late > 0);
    }
}
