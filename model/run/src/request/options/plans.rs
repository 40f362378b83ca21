//! Options for plans: which, within which budget, and their inputs.

use super::{JavaInstances, MAIN};
use crate::request::Fast;
use clap::Args;
use std::path::PathBuf;

/// The plans, and what they go by.
#[derive(Args, Clone, Debug, Default)]
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

/// The plans, and what they may take.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Generations")]
pub struct Generations {
    /// Plans for generations: `all`, or names separated by commas (see `varve plan`), such as dram,slow,kg-n,hotset. The program is
    /// recorded once, and replayed under each [default: all]
    #[arg(long, value_name = "PLANS", help_heading = MAIN)]
    pub plan: Option<String>,
    /// The most fast memory that an instance may take, such as 64MiB, or a share of what it takes with all of it fast, or several:
    /// 10%,25%,50% [default: 25% for page policies, and what they ask for to plans by generation]
    #[arg(long, alias = "fast-max", value_name = "SIZE|PERCENT", help_heading = MAIN)]
    pub fast: Option<Fast>,
    /// Instances that share the machine.
    #[command(flatten)]
    pub instances: JavaInstances,
}

/// Profiles of native programs.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Objects")]
pub struct Stale {
    /// Take a --sites profile of another build of the program: sites are found by the names of their functions, and those that may be
    /// one of several are left out. How much was found is said
    #[arg(long)]
    pub stale: bool,
}

/// DIMMs of a modelled machine with one memory.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Objects on a modelled machine")]
pub struct Trays {
    /// On a machine with one memory of DIMMs without interleaving, such as haswell-2620v3: how the plan's memories become colours on
    /// DIMMs, such as hot=1,limit=8MiB,model=10.1/12.5/16.3,sample=1s,undo=yes (docs/cross-layer.md)
    #[arg(long, value_name = "OPTIONS")]
    pub trays: Option<String>,
}
