//! `varve jobs plan --emit`: a schedule as a file for another scheduler.

use super::of_jobs;
use crate::args::Scheduler;
use crate::ui::{self, Done};
use std::process::ExitCode;
use varve_jobs::emit::{Emission, For, emit};
use varve_jobs::live::LiveOptions;
use varve_jobs::{Group, Host, Plan};
use varve_live::nodes::Kinds;

/// Prints the file, and says what it cannot express.
pub fn print(
    group: &Group,
    plan: &Plan,
    host: &Host,
    nodes: Option<&Kinds>,
    cpus: &[u32],
    options: &LiveOptions,
    target: Scheduler,
) -> Done {
    let emission = Emission {
        group,
        plan,
        host,
        nodes,
        cpus,
        options,
        command: &ui::command_line(),
    };
    let target = match target {
        Scheduler::Slurm => For::Slurm,
        Scheduler::Systemd => For::Systemd,
    };
    let emitted = emit(&emission, target).map_err(|e| of_jobs(&e))?;
    ui::print(emitted.text.trim_end());
    for line in &emitted.lost {
        crate::ui::message!("varve: note: not as planned: {line}");
    }
    Ok(ExitCode::SUCCESS)
}
