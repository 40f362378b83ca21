//! Options for a command whose pages are placed on this machine, in the bins of a DRAM cache.

use super::MAIN;
use clap::Args;
use varve_spec::Bytes;

/// Whether the run is on this machine.
#[derive(Args, Debug)]
pub struct Live {
    /// Run on this machine: a command with its pages in the bins of a DRAM cache, or a WebAssembly program with its objects
    /// placed by --plan
    #[arg(long, help_heading = MAIN)]
    pub live: bool,
}

/// The DRAM that acts as cache.
#[derive(Args, Debug)]
#[command(next_help_heading = "Pages on this machine")]
pub struct PageCache {
    /// Size of the DRAM that caches slow memory on this machine
    #[arg(long, value_name = "SIZE")]
    pub bins: Option<Bytes>,
    /// Associativity of that cache
    #[arg(long, default_value_t = 1)]
    pub ways: u32,
    /// Place nothing, and only count conflicts: the baseline
    #[arg(long)]
    pub count_only: bool,
}
