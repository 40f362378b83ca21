//! Options for programs whose objects are placed by a plan.

use clap::Args;
use std::path::PathBuf;
use varve_run::request::options::Plans;

/// Plans of a WebAssembly program.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects")]
pub struct Objects {
    #[command(flatten)]
    pub plans: Plans,
    /// Print a line on standard error for each phase and decision of heap plans that sample, such as `pima`; with =FILE, write
    /// it to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub pima_log: Option<PathBuf>,
}

/// Memory nodes of this machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects on this machine")]
pub struct Nodes {
    /// Nodes of fast and of slow memory, such as fast=0,slow=1 or fast=0+1,slow=2-3 [default: detected]
    #[arg(long, value_name = "NODES")]
    pub nodes: Option<String>,
}
