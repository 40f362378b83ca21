//! Options for programs whose objects are placed by a plan.

use super::MAIN;
use clap::Args;
use std::path::PathBuf;
use varve_run::request::Fast;

/// The plans, and what they go by.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects")]
pub struct Plans {
    /// Plans for objects: `all`, or names separated by commas (see `varve plan`). On a model the program runs once under each, or
    /// under the few that tell most if none is named; on this machine it runs under one
    #[arg(long, value_name = "PLANS", help_heading = MAIN)]
    pub plan: Option<String>,
    /// The most fast memory for the program's objects, such as 64MiB. On a model also shares of what it takes with all of it fast:
    /// 10%,25% [default: 25% for a command or trace, else all that the machine has]
    #[arg(long, alias = "fast-max", value_name = "SIZE|PERCENT", help_heading = MAIN)]
    pub fast: Option<Fast>,
    /// The site profile that plans such as `cgz-f` go by: a file of `varve profile`, made on another input (docs/sites.md)
    #[arg(long, visible_alias = "sites", value_name = "FILE.sites")]
    pub profile: Option<PathBuf>,
}

/// Plans of a WebAssembly program.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects")]
pub struct Objects {
    #[command(flatten)]
    pub plans: Plans,
    /// Print a line on standard error for each phase and decision of plans that sample, such as `pima`; with =FILE, into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub pima_log: Option<PathBuf>,
}

/// Several instances on one modelled machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects on a modelled machine")]
pub struct Instances {
    /// Instances of the program that share the machine, each on a core of its own. One is run, and the others load the memory as
    /// it does
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: u32,
    /// Run each of the --instances instead of one that stands for all
    #[arg(long, requires = "instances")]
    pub co_run: bool,
    /// Where threads and memory are: local (on one socket), remote (on different ones), auto (spread over both, as automatic
    /// balancing does)
    #[arg(long, value_name = "WHERE", default_value_t)]
    pub numa: varve_run::Numa,
    /// Count each instruction of the program so many times, of the collector once: what the program would execute besides on a slower
    /// virtual machine, or for files and requests
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = times)]
    pub slower: f64,
}

/// A factor of 1 to 1000.
fn times(said: &str) -> Result<f64, String> {
    let times: f64 = said.parse().map_err(|_| "not a number".to_string())?;
    match (1.0..=1000.0).contains(&times) {
        true => Ok(times),
        false => Err("1 to 1000 are possible".into()),
    }
}

/// Profiles of native programs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects")]
pub struct Stale {
    /// Take a --sites profile of another build of the program: sites are found by the names of their functions, and those that may be
    /// one of several are left out. How much was found is said
    #[arg(long)]
    pub stale: bool,
}

/// DIMMs of a modelled machine with one memory.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects on a modelled machine")]
pub struct Trays {
    /// On a machine with one memory of DIMMs without interleaving, such as haswell-2620v3: how the plan's memories become colours on
    /// DIMMs, such as hot=1,limit=8MiB,model=10.1/12.5/16.3,sample=1s,undo=yes (docs/cross-layer.md)
    #[arg(long, value_name = "OPTIONS")]
    pub trays: Option<String>,
}

/// Memory nodes of this machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects on this machine")]
pub struct Nodes {
    /// Nodes of fast and of slow memory, such as fast=0,slow=1 or fast=0+1,slow=2-3 [default: found out]
    #[arg(long, value_name = "NODES")]
    pub nodes: Option<String>,
}
