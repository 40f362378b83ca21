//! Programs whose own memory is placed, on the model: what each has in fast memory is said by what `varve_run` knows of it.

use super::ModelSpec;
use crate::error::Error;
use crate::group::{Group, Modelled};
use crate::inside::{Inside, Told};
use crate::live::inside::{Wrong, heap, profile};
use varve_observed::{ManagedMember, ManagedProgram};
use varve_run::PlacedMember;

/// Parts of a group that a model does not support, in lines.
pub fn cannot(group: &Group) -> Vec<String> {
    let line = |p: &crate::group::Program| {
        let inside = p.inside.as_ref()?;
        let is_workload = matches!(p.modelled, Some(Modelled::Workload(_)));
        is_workload.then(|| {
            format!(
                "{} is a workload on a model, which knows nothing of {}: it is in one memory there; give it `trace` in place of `workload` for more",
                p.name,
                inside.words()
            )
        })
    };
    group.programs.iter().filter_map(line).collect()
}

impl ModelSpec {
    /// A program of a group whose own memory is placed, ready to run; `None` if it is a workload. Its objects may have `fast` bytes of
    /// fast memory; it takes `takes` in all. Both at full size.
    pub(super) fn placed(
        &self,
        group: &Group,
        i: usize,
        fast: Option<u64>,
        takes: u64,
    ) -> Result<Option<PlacedMember>, Error> {
        let entry = &group.programs[i];
        let Some(inside) = &entry.inside else {
            return Ok(None);
        };
        let scale = u64::from(self.scale);
        let (fast, takes) = (fast.map(|f| f / scale), takes / scale);
        let problem =
            |(key, what, remedy): Wrong| Error::from(group.problem(i, key, what, &remedy));
        match &entry.modelled {
            Some(Modelled::Managed(file, words)) => {
                let known = heap(inside, file).map_err(problem)?;
                let bytes = std::fs::read(file).map_err(|e| {
                    problem(("managed", e.to_string(), "name a WebAssembly module".into()))
                })?;
                let program = ManagedProgram::new(&file.display().to_string(), bytes)
                    .with_arguments(words.iter().map(String::as_str));
                let (page, plan) = (self.page_bytes(), &inside.plan);
                Ok(Some(ManagedMember::placed(
                    program, page, plan, known, fast,
                )))
            }
            Some(Modelled::Trace(trace)) => {
                let placed = match inside.told {
                    Told::Sites => {
                        let profile = profile(entry, inside).map_err(problem)?;
                        let fast = fast.unwrap_or(0);
                        PlacedMember::native(trace, &profile, &inside.plan, fast, takes)
                    }
                    Told::Generations => PlacedMember::java(trace, &inside.plan),
                    Told::Heap => return Ok(None),
                };
                placed.map(Some).map_err(|e| {
                    let remedy = format!("record it again, or take `{}` out", inside.key());
                    problem(("trace", e.to_string(), remedy))
                })
            }
            Some(Modelled::Workload(_)) | None => Ok(None),
        }
    }
}

/// The placement of a program, if there is such a thing on the model.
pub(super) fn of(group: &Group, i: usize) -> Option<&Inside> {
    let entry = &group.programs[i];
    let inside = entry.inside.as_ref()?;
    (!matches!(entry.modelled, Some(Modelled::Workload(_)) | None)).then_some(inside)
}
