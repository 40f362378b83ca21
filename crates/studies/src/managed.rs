//! The runs of managed programs of a study by name: declared first, made together, read by the claims.

use crate::plan::{Results, settled};
use crate::{StudyOptions, StudyProgress, Watch};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use varve_run::{Error, ManagedProgram, ManagedSpec, PlanResult, compare_managed, side_by_side};
use varve_runtime::Config;
use varve_runtime::sites::Profile;

/// A program of `programs/dist` by its name, built in: the file's name and its bytes.
macro_rules! module {
    ($name:literal) => {
        (
            concat!($name, ".wasm"),
            include_bytes!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../programs/dist/",
                $name,
                ".wasm"
            )),
        )
    };
}
pub(crate) use module;

/// A program whose site profile is wanted, under a name.
pub struct Profiled {
    pub name: &'static str,
    /// With its training input.
    pub program: ManagedProgram,
    pub config: Config,
}

/// The site profiles of programs. Nothing is compiled in the background, so that they are the same each time.
///
/// # Errors
/// A program fails; or the user ends it.
pub fn profiles(
    programs: &[Profiled],
    options: &StudyOptions,
    watch: Watch,
) -> Result<Vec<Arc<Profile>>, Error> {
    let begun = AtomicUsize::new(0);
    let made = side_by_side(programs.len(), options.workers, &|_, _| true, |i, _| {
        let go_on = watch(&StudyProgress {
            done: begun.fetch_add(1, Ordering::Relaxed),
            runs: programs.len(),
            what: format!("site profile of {}", programs[i].name),
        });
        if go_on {
            profile(&programs[i])
        } else {
            Err(Error::interrupted())
        }
    });
    made.into_iter().collect()
}

fn profile(of: &Profiled) -> Result<Arc<Profile>, Error> {
    let config = Config {
        background: false,
        ..of.config.clone()
    };
    let made = of.program.profile(config).map_err(|error| Error::Managed {
        file: of.program.file.clone(),
        error: Box::new(error),
        left: Default::default(),
    })?;
    Ok(Arc::new(made))
}

/// Runs that are asked for. A name that is asked for twice is the same run.
#[derive(Default)]
pub struct ManagedPlan {
    names: Vec<String>,
    specs: Vec<ManagedSpec>,
}

/// What came out, by name.
pub type ManagedResults = Results<PlanResult>;

impl ManagedPlan {
    /// Asks for a run under a name.
    pub fn run(&mut self, name: impl Into<String>, spec: impl FnOnce() -> ManagedSpec) {
        let name = name.into();
        if !self.names.contains(&name) {
            self.names.push(name);
            self.specs.push(spec());
        }
    }

    /// Makes all runs. One that fails is an answer of its own; an interrupt ends everything.
    pub fn make(self, options: &StudyOptions, watch: Watch) -> Result<ManagedResults, Error> {
        let runs = self.specs.len();
        let done = Mutex::new(0usize);
        let outcomes = compare_managed(
            &self.specs,
            options.workers,
            &options.keep,
            &|i, progress| {
                let mut done = done.lock().expect("no holder panics");
                *done += usize::from(progress.is_none());
                watch(&StudyProgress {
                    done: *done,
                    runs,
                    what: self.names[i].clone(),
                })
            },
            &|_, _, _| {},
        );
        let kept = outcomes
            .into_iter()
            .map(settled)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Results::new(self.names.into_iter().zip(kept)))
    }
}
