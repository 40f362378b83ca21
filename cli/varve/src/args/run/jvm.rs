//! Options for Java virtual machines on this machine, and which commands and traces are theirs.

use super::MAIN;
use crate::cmd::files;
use crate::ui::Failure;
use clap::Args;
use std::path::Path;
use varve_run::jvm::is_recorded_in;

pub use varve_run::jvm::is_java;

/// The plan of a virtual machine on this machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Generations")]
pub struct GenerationsHere {
    /// Heap plan for generations: dram, slow, slow-scan, kg-n, interleave or pima (see `varve plan`)
    #[arg(long, value_name = "PLAN", help_heading = MAIN)]
    pub plan: Option<String>,
}

/// Whether placement is required.
#[derive(Args, Debug)]
#[command(next_help_heading = "Generations")]
pub struct Must {
    /// Fail if a Java program's memory cannot be placed; without this, the program runs as it would without Varve, and a note
    /// says why
    #[arg(long)]
    pub must: bool,
}

/// Whether a Java virtual machine runs in the trace, or was about to start when the trace was cut off.
pub fn is_of_java(trace: &str) -> Result<bool, String> {
    let reader = match files::open_trace(Path::new(trace)) {
        Ok(reader) => reader,
        Err(Failure::Line { line, .. }) => return Err(line),
        Err(Failure::Quiet(_)) => return Ok(false),
    };
    Ok(is_recorded_in(&reader))
}
