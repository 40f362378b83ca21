//! Options for objects that survive.

use crate::args::medium::{Domain, Sync, sync};
use clap::Args;
use std::path::PathBuf;
use varve_spec::Bytes;

/// The region file.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Objects that survive")]
pub struct Region {
    /// Keep the program's durable roots, and all that they reach, in this region file. It is made if it is not there. With
    /// --machine, each run gets a copy of it in the machine's persistent memory, and the file stays as it is (docs/durable.md)
    #[arg(long, value_name = "FILE")]
    pub durable: Option<PathBuf>,
    /// The most bytes that the region file may get, up to 256GiB [default: what it was made with, or 8GiB]. Each doubling aligns
    /// the program's objects to twice as many bytes
    #[arg(long, requires = "durable", value_name = "SIZE")]
    pub region_max: Option<Bytes>,
    /// Check the whole region file before the program begins. Without this, only the pages of a file of more than 32MiB are
    /// checked, while the program runs. Use it for a file that somebody else made
    #[arg(long, requires = "durable")]
    pub verify: bool,
    /// How optimized code checks for durable objects: none, likely, unbiased, unlikely, deopt, profiled or quick [default: quick
    /// with --durable, else none]
    #[arg(long, value_name = "KIND")]
    pub checks: Option<varve_runtime::Checks>,
}

/// What the region file is on, and what became of it.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Objects that survive")]
pub struct Medium {
    /// What the region file is on [default: dax if it can be mapped so, else file]
    #[arg(long, requires = "durable", value_enum)]
    pub domain: Option<Domain>,
    /// With --domain file, when stores reach the medium: at each commit, or at an interval such as 100ms. A crash of the machine
    /// may lose or damage what is younger than the interval
    #[arg(long, requires = "durable", value_name = "commit|INTERVAL", value_parser = sync)]
    pub sync: Option<Sync>,
    /// Print a table at the end, on standard error: the checks that were made, and what the region did
    #[arg(long)]
    pub check_stats: bool,
}
