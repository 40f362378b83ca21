//! One run: a machine, a page policy, a program and a seed in; a [`RunResult`] out.
//!
//! The command line, studies and tests all start programs here, so that a line on a user's screen and a figure of a
//! study are the same computation.
//!
//! ```
//! use varve_machine::Machine;
//! use varve_run::{RunSpec, Work, run};
//!
//! let machine = Machine::load("optane-6230-memory-mode")?;
//! let mut spec = RunSpec::new(machine, "static", Work::parse("gups:updates=2k")?);
//! spec.scale = 256;
//! let result = run(&spec, &mut |_| true)?;
//! assert_eq!(result.updates, 16 * 2_000 * 256);
//! # Ok::<(), varve_run::Error>(())
//! ```

pub mod advice;
pub mod catalogue;
mod compare;
pub mod dimms;
mod error;
mod in_step;
mod inside;
pub mod jvm;
mod keep;
mod measured;
pub mod membench;
mod numa;
pub mod objects;
mod outcomes;
mod phases;
pub mod pipeline;
pub mod request;
mod result;
mod room;
mod scaled_policy;
pub mod seen;
mod spec;
pub mod steady;
mod work;

pub use compare::{
    Ended, GoOn, Watch, check_policies, compare, policies_for, policy_list, side_by_side,
};
pub use dimms::{DimmUse, PowerPoint, TrayUse};
pub use error::Error;
pub use in_step::{InStep, Replayed};
pub use inside::PlacedMember;
pub use keep::{Asked, Failed, Keep, State, digest, name as result_name, usual_folder};
pub use measured::{Measured, StallShares};
pub use numa::Numa;
pub use outcomes::{NotMade, Outcomes};
pub use phases::{FailureLog, Pauses, Phase, phase_name};
pub use pipeline::{Compared, Comparison, Facts, Of, Role, answer, candidates};
pub use result::{ClassLatency, MemoryPower, PlacementState, Point, RunResult, SampledRun, speed};
pub use seen::{Heat, HeatCell, HeatRange, Lane, LaneSpan, Rate, RateKind, Seen, Wait};
pub use spec::{RunSpec, Spec};
pub use varve_pages::policies::TraySettings as TrayOptions;
pub use work::Work;

use seen::{Eye, Named};
use varve_access::Program;
use varve_machine::Machine;
use varve_machine::model::Progress;
use varve_pages::policies::Made;
use varve_pages::{Placement, Topology};

/// Version of the product, part of every result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether the machine has DRAM alone, which is not the cache of anything: a plan's memories are colours there.
pub fn has_one_memory(m: &Machine) -> bool {
    m.pm.is_none() && m.cxl.is_none()
}

/// Runs `spec`. `watch` is called now and then and ends the run by returning `false`.
///
/// # Errors
/// A machine, policy or program that do not go together, in one line; see [`Error`].
pub fn run(spec: &RunSpec, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, Error> {
    run_in_step(spec, &InStep::default(), watch)
}

/// As [`run`], one of several runs.
fn run_in_step(
    spec: &RunSpec,
    in_step: &InStep,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, Error> {
    room::check(spec)?;
    let mut program = spec.work.program(spec, in_step)?;
    run_program(spec, program.as_mut(), watch)
}

/// Checks whether a run's machine, pages and policy go together, as [`run`] does before the program begins.
///
/// # Errors
/// As [`run`].
pub fn check(spec: &RunSpec) -> Result<(), Error> {
    let (machine, page_bytes) = (spec.scaled_machine()?, spec.scaled_page_bytes()?);
    Placement::new(&spec.scaled_policy(), &machine, page_bytes)?;
    Ok(())
}

/// Runs `spec` under a policy that has no name among the others: `make` makes it, and the frames that it works on, for
/// the scaled machine. Results have the policy of `spec` as its name.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    spec: &RunSpec,
    make: &mut dyn FnMut(&Topology) -> Made,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, Error> {
    let mut program = spec.work.program(spec, &InStep::default())?;
    let machine = spec.scaled_machine()?;
    let topology =
        Topology::of(&machine, spec.scaled_page_bytes()?).map_err(varve_pages::Error::from)?;
    let (frames, policy) = make(&topology);
    let placement = Placement::with(&spec.policy, topology, frames, policy);
    run_placed(spec, program.as_mut(), &machine, placement, watch)
}

/// Runs a program that exists already, such as one that is traced live; `spec.work` then only names it.
///
/// # Errors
/// As [`run`].
pub fn run_program(
    spec: &RunSpec,
    program: &mut dyn Program,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, Error> {
    let machine = spec.scaled_machine()?;
    let page_bytes = spec.scaled_page_bytes()?;
    let placement = Placement::new(&spec.scaled_policy(), &machine, page_bytes)?;
    run_placed(spec, program, &machine, placement, watch)
}

fn run_placed(
    spec: &RunSpec,
    program: &mut dyn Program,
    machine: &Machine,
    mut placement: Placement,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, Error> {
    let options = spec.options();
    let name = program.name();
    let eye = Eye::new(spec.pictures, placement.topology());
    let (classes, mut named) = (program.classes(), Named::new(program.regions()));
    let owners = spec.pictures.then_some(&mut named as _);
    let outcome = seen::run(
        machine,
        &mut placement,
        &mut [program],
        &options,
        owners,
        &eye,
        watch,
    )?;
    let mut result = RunResult::new(spec, &name, &placement, &outcome);
    if eye.looks() {
        let factor = spec.factor();
        let mut seen = Seen::of(machine, &outcome, &classes, factor, &eye);
        if !program.regions().is_empty() {
            seen.waits = named.waits(&outcome.owners, factor);
        }
        seen.add_code(&outcome, program, factor);
        result.seen = Some(Box::new(seen));
    }
    Ok(result)
}
