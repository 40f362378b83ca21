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
    /// Other values for keys of the machine, such as cxl.link_ns=300 (`varve machine show NAME --toml` lists the keys)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub set: Vec<String>,
    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run with so many seeds, from --seed on, and print medians and their spread. A command is recorded anew for each: `varve
    /// trace` records it once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Runs at a time; 0: one per core of this host
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
}

impl Model {
    /// The machine's name, with what is changed of it.
    pub fn machine_or(&self, default: &str) -> String {
        let name = self.machine.as_deref().unwrap_or(default);
        varve_machine::load::changed(name, &self.set)
    }
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
