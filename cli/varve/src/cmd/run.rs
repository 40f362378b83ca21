//! `varve run`: what kind of run it is, and what makes it.

use super::{jvm, jvm_live, live, managed, native, native_live, pages, seeds, wasm};
use crate::args::Request;
use crate::args::run::job::Job;
use crate::ui::{Done, print, programs_elsewhere, wrong};
use std::process::ExitCode;

pub fn run(request: &Request) -> Done {
    if let Some(help) = request.help().map_err(wrong)? {
        print(help.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let job = request.job().map_err(wrong)?;
    let json = request.json().map_err(wrong)?;
    if json.program_output.is_some() && !job.prints() {
        return Err(wrong(
            "--program-output: traces and workloads print nothing: leave it out",
        ));
    }
    programs_elsewhere(json.program_output.as_deref(), json.json)?;
    if let Some((model, output)) = job.modelled().filter(|(model, _)| model.seeds > 1) {
        return seeds::run(model, output);
    }
    match job {
        Job::ModelledPages(work, a) => pages::run(&work, &a),
        Job::ModelledNative(work, a) => native::run(&work, &a),
        Job::ModelledJava(work, a) => jvm::run(&work, &a),
        Job::LiveNative(command, a) => native_live::run(&command, &a),
        Job::LiveJava(command, a) => jvm_live::run(&command, &a),
        Job::LivePages(command, a) => live::run(&command, &a),
        Job::ModelledObjects(program, a) => managed::run(&program, &a),
        Job::LiveObjects(program, a) => wasm::run(&program, &a.plain, Some(&a)),
        Job::Plain(program, a) => wasm::run(&program, &a, None),
    }
}
