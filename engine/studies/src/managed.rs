//! The runs of managed programs of a study by name: declared first, made together, read by the claims.

use crate::plan::{Plan, Results};
use crate::{StudyOptions, StudyProgress, Watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use varve_observed::{ManagedProgram, ManagedSpec, PlanResult};
use varve_run::{Error, side_by_side};
use varve_runtime::Config;
use varve_sites::Profile;

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
        log: Default::default(),
    })?;
    Ok(Arc::new(made))
}

/// Runs of managed programs that are asked for.
pub type ManagedPlan = Plan<ManagedSpec>;

/// Their results, by name.
pub type ManagedResults = Results<PlanResult>;
