//! Options for the modelled machine.

use super::MAIN;
use clap::Args;
use varve_machine::Bytes;

/// The machine, and how the runs are made.
#[derive(Args, Debug)]
#[command(next_help_heading = "The model")]
pub struct Model {
    /// The modelled machine: a name from `varve machine list`, or a file [default: optane-6230-memory-mode; a WebAssembly
    /// program runs on this machine by default]
    #[arg(short, long, help_heading = MAIN)]
    pub machine: Option<String>,
    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Runs at a time; 0: one per core of this host
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
}

/// What of a command is recorded.
#[derive(Args, Debug)]
#[command(next_help_heading = "The model")]
pub struct Marked {
    /// Replay only what the command does between its own marks: from where it looks for the file `/varve/record/begin` to where it
    /// looks for `/varve/record/end`, which need not be there
    #[arg(long)]
    pub marked: bool,
}

/// The size of pages, on a model and live.
#[derive(Args, Debug)]
#[command(next_help_heading = "The model")]
pub struct PageSize {
    /// Page size, at full size for a workload [default: 2MiB for a workload, else 4KiB]
    #[arg(long)]
    pub page: Option<Bytes>,
}
