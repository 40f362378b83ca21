//! Page policies, some of which are written in Python.

use super::making;
use crate::errors::of_run;
use crate::policy::{Raised, Scripted};
use crate::watch::Watcher;
use pyo3::prelude::*;
use std::sync::Arc;
use varve_machine::model::Progress;
use varve_pages::Frames;
use varve_run::advice::{Advice, Size, of_pages};
use varve_run::request::{PageRuns, PagesRequest};
use varve_run::{
    Comparison, Error, Facts, GoOn, Outcomes, Role, RunResult, RunSpec, check_policies, run,
    run_with, side_by_side,
};

/// Runs of one program, each under a policy.
pub struct PolicyRuns(Vec<PolicyRun>);

/// A run under a policy.
struct PolicyRun {
    spec: RunSpec,
    role: Role,
    facts: Facts,
    /// The policy, if it is an object of Python.
    object: Option<Arc<Py<PyAny>>>,
}

impl PolicyRuns {
    /// One run for each policy, in order; where no list is given, those that the request has.
    pub fn new(
        py: Python<'_>,
        mut request: PagesRequest,
        base: &RunSpec,
        policies: Option<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<PolicyRuns> {
        let mut all = Vec::new();
        let named = |request: &PagesRequest, all: &mut Vec<PolicyRun>| {
            check_policies(&request.options.policy, &request.machine)?;
            all.extend(of_names(&request.runs(base)?));
            Ok(())
        };
        let failed = |e: Error| of_run(py, &e);
        let Some(policies) = policies else {
            named(&request, &mut all).map_err(failed)?;
            return Ok(PolicyRuns(all));
        };
        for policy in policies {
            match policy.extract::<String>() {
                Ok(list) => {
                    request.options.policy = list;
                    named(&request, &mut all).map_err(failed)?;
                }
                Err(_) => all.push(of_object(&policy, base)?),
            }
        }
        if all.is_empty() {
            return Err(failed(Error::NoPolicy(String::new())));
        }
        Ok(PolicyRuns(all))
    }

    /// The maker of the policies.
    pub fn maker(&self, workers: usize) -> Maker {
        Maker {
            objects: self.0.iter().map(|run| run.object.clone()).collect(),
            raised: Raised::default(),
            workers,
        }
    }
}

/// The runs of policies that there are by name.
fn of_names(runs: &PageRuns) -> impl Iterator<Item = PolicyRun> {
    let run = |(run, spec): (usize, &RunSpec)| PolicyRun {
        spec: spec.clone(),
        role: runs.role(run),
        facts: runs.facts(run),
        object: None,
    };
    runs.specs.iter().enumerate().map(run)
}

/// The run of a policy in Python, which advice leaves out: it exists only in this Python program.
fn of_object(policy: &Bound<'_, PyAny>, base: &RunSpec) -> PyResult<PolicyRun> {
    Ok(PolicyRun {
        spec: RunSpec {
            policy: policy.getattr("name")?.extract()?,
            ..base.clone()
        },
        role: Role::Named,
        facts: Facts::default(),
        object: Some(Arc::new(policy.clone().unbind())),
    })
}

impl Comparison for PolicyRuns {
    type Spec = RunSpec;

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|run| run.spec.policy.clone()).collect()
    }

    fn role(&self, run: usize) -> Role {
        self.0[run].role
    }

    fn facts(&self, run: usize) -> Facts {
        self.0[run].facts.clone()
    }

    fn first(&self) -> Vec<RunSpec> {
        Vec::new()
    }

    fn then(&mut self, _: &[Result<RunResult, Error>]) -> Result<Vec<RunSpec>, Error> {
        Ok(self.0.iter().map(|run| run.spec.clone()).collect())
    }

    fn advise(&self, came: &Outcomes<RunResult>, _: Size) -> Advice {
        of_pages(self, came)
    }
}

/// Makes such runs.
pub struct Maker {
    /// By run, its policy if that is an object of Python.
    objects: Vec<Option<Arc<Py<PyAny>>>>,
    raised: Raised,
    workers: usize,
}

impl Maker {
    /// The exception of a policy, if there was one.
    pub fn raised(&self) -> Option<PyErr> {
        let mut raised = self.raised.lock().unwrap_or_else(|e| e.into_inner());
        raised.take()
    }

    /// Makes some of them, of which the first is number `from`.
    pub fn make(
        &self,
        specs: &[RunSpec],
        from: usize,
        watcher: &Watcher,
    ) -> Vec<Result<RunResult, Error>> {
        if self.objects.iter().all(Option::is_none) {
            return making::side_by_side(specs, from, self.workers, watcher, &|_, _, _| {});
        }
        let note = |run: usize, progress: Option<&Progress>| {
            let raised = self.raised.lock().unwrap_or_else(|e| e.into_inner());
            watcher.note(from + run, progress) && raised.is_none()
        };
        side_by_side(specs.len(), self.workers, &note, |at, go_on| {
            match &self.objects[from + at] {
                None => run(&specs[at], go_on),
                Some(object) => scripted(&specs[at], object, &self.raised, go_on),
            }
        })
    }
}

/// A run under a policy that is written in Python.
fn scripted(
    spec: &RunSpec,
    object: &Py<PyAny>,
    raised: &Raised,
    go_on: GoOn,
) -> Result<RunResult, Error> {
    let mut make = |topology: &varve_pages::Topology| {
        let frames = Frames::in_order(topology);
        let made = Python::attach(|py| Scripted::new(py, object, topology, spec.scale, raised));
        let policy: Box<dyn varve_pages::Policy> = match made {
            Ok(policy) => Box::new(policy),
            Err(e) => {
                let mut raised = raised.lock().unwrap_or_else(|e| e.into_inner());
                raised.get_or_insert(e);
                Box::new(Nothing)
            }
        };
        (frames, policy)
    };
    // Python knows this thread for the whole run: each call would otherwise make it known, and forget it again.
    Python::attach(|py| py.detach(|| run_with(spec, &mut make, go_on)))
}

/// Stands for a policy that Python could not make: it places nothing, and Python's exception is raised instead.
struct Nothing;

impl varve_pages::Policy for Nothing {
    fn place(&mut self, _: &mut Frames, _: &varve_access::Fault) -> Option<u32> {
        None
    }
}
