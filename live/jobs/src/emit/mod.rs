//! A plan as a file that others carry out: a batch script of Slurm, or units of systemd.
//!
//! ```text
//! steps.rs     what both say of each program: when, where, with what
//! slurm.rs     one job, each program a step of it
//! systemd.rs   a slice, and each program a service in it
//! ```
//!
//! Neither decides anything while programs run, as `varve jobs run` does. What gets lost by that is in the file, and
//! in [`Emitted::lost`].

mod slurm;
mod steps;
mod systemd;

use crate::error::Error;
use crate::group::Group;
use crate::live::LiveOptions;
use crate::plan::{Host, Plan};
use varve_live::nodes::Kinds;

/// The scheduler that runs the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Slurm, by `sbatch`.
    Slurm,
    /// systemd, by a shell script that writes units.
    Systemd,
}

/// The inputs of a file.
pub struct Emission<'a> {
    /// The group.
    pub group: &'a Group,
    /// The schedule.
    pub plan: &'a Plan,
    /// The machine that it was decided for.
    pub host: &'a Host,
    /// Nodes of its memories, by number.
    pub nodes: Option<&'a Kinds>,
    /// Processors that programs may use there.
    pub cpus: &'a [u32],
    /// Logs, and how workloads are carried out.
    pub options: &'a LiveOptions,
    /// The command that made it.
    pub command: &'a str,
}

/// A file for another scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The file.
    pub text: String,
    /// Parts of the schedule that it cannot express, in lines; they are in the file, too.
    pub lost: Vec<String>,
}

/// Writes a plan down for `target`.
///
/// # Errors
/// A program that runs on a model only, a path that is not UTF-8, and memory without numbers of nodes.
pub fn emit(emission: &Emission, target: For) -> Result<Emitted, Error> {
    let steps = steps::of(emission, target)?;
    let lost = steps::lost(emission, &steps, target);
    let text = match target {
        For::Slurm => slurm::script(emission, &steps, &lost),
        For::Systemd => systemd::script(emission, &steps, &lost),
    };
    Ok(Emitted { text, lost })
}

/// A comment or a value is one line, whatever a name has.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
