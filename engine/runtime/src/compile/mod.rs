//! Compilation: functions of modules, and the glue between host and compiled code.

mod alias;
mod allocate;
mod arrays;
mod barrier;
mod builder;
mod calls;
mod casts;
mod control;
mod copies;
mod early;
mod effects;
pub(crate) mod env;
mod facts;
pub(crate) mod feedback;
pub(crate) mod glue;
pub(crate) mod hints;
mod inline;
pub(crate) mod isa;
mod left_out;
mod live;
mod loops;
mod memories;
mod numeric;
mod observe;
mod peel;
pub(crate) mod persist;
mod pipeline;
mod profile;
mod ranges;
mod references;
pub(crate) mod resume;
mod running;
mod safepoints;
mod shared;
mod signatures;
mod slot;
mod structs;
mod tables;
pub(crate) mod touches;
pub(crate) mod translate;
mod traps;
mod truth;
mod unit;
mod variables;
mod vectors;
pub(crate) mod worker;

use crate::error::Result;
use cranelift_codegen::ir;
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;
use env::{Assumptions, Env};
use signatures::signature;
use translate::{Job, Start, Translator};
pub(crate) use unit::{Generated, Scratch, Unit};

/// Translates a function, or the rest of one; or returns the weaker assumptions that hold, if the given ones do not.
pub(crate) fn translate(
    isa: &dyn TargetIsa,
    scratch: &mut Scratch,
    env: Env<'_>,
    job: &Job,
) -> Result<Result<Unit, Assumptions>> {
    // The accesses reported to a model must not depend on which compiler made the code.
    let soon = job.level == isa::Level::Baseline && env.recording.is_none();
    let mut ty = env.func_type(job.index);
    if !matches!(job.start, Start::Function) {
        ty.params.clear();
    }
    let mut function = scratch.function();
    function.name = ir::UserFuncName::user(0, job.index);
    function.signature = signature(&ty);
    let builder = FunctionBuilder::new(&mut function, &mut scratch.builder);
    let translator = Translator::new(builder, env, job, soon, &mut scratch.maps);
    let translated = translator.run(isa.frontend_config())?;
    Ok(translated.map(|mut translated| Unit {
        function,
        func: Some(job.func_id),
        inlined: std::mem::take(&mut translated.inlined).into(),
        left_out: std::mem::take(&mut translated.left_out),
        called: std::mem::take(&mut translated.called),
        soon,
        shared: std::mem::take(&mut translated.shared),
        references: Some((translated, alias::of_spills(job.level))),
    }))
}
