//! Options for Java virtual machines on this machine, and which commands and traces are theirs.

use super::MAIN;
use crate::cmd::files;
use crate::ui::Failure;
use clap::Args;
use std::ffi::OsStr;
use std::path::Path;

/// The plan of a virtual machine on this machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Generations")]
pub struct GenerationsHere {
    /// The plan for generations: dram, slow, slow-scan, kg-n, interleave or pima (see `varve plan`)
    #[arg(long, value_name = "PLAN", help_heading = MAIN)]
    pub plan: Option<String>,
}

/// Whether the virtual machine runs anyway.
#[derive(Args, Debug)]
#[command(next_help_heading = "Generations")]
pub struct Must {
    /// Do not run a Java program whose memory cannot be placed; without it, it runs as it would without Varve, and a note says why
    #[arg(long)]
    pub must: bool,
}

/// Does a command start a Java virtual machine? Scripts that do are known by their traces.
pub fn is_java(word: &OsStr) -> bool {
    Path::new(word).file_name() == Some(OsStr::new("java"))
}

/// Is it a trace in which a Java virtual machine runs, or was about to when it was cut off?
///
/// # Errors
/// A line: it cannot be read.
pub fn is_of_java(trace: &str) -> Result<bool, String> {
    let reader = match files::open_trace(Path::new(trace)) {
        Ok(reader) => reader,
        Err(Failure::Line { line, .. }) => return Err(line),
        Err(Failure::Quiet(_)) => return Ok(false),
    };
    let started = reader.header().command.first();
    let cut_early = reader.end().is_none() && started.is_some_and(|word| is_java(word.as_ref()));
    Ok(cut_early || !reader.java().is_empty())
}
