//! Options for durable objects.

use crate::args::medium::{Domain, Sync, sync};
use clap::Args;
use std::path::PathBuf;
use varve_spec::Bytes;

/// The region file.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Objects that survive")]
pub struct Region {
    /// Keep the program's durable roots, and all objects reachable from them, in this region file, which is created if it does
    /// not exist. With --machine, each run gets a copy of it in the machine's persistent memory, and the file is not changed
    /// (docs/durable.md)
    #[arg(long, value_name = "FILE")]
    pub durable: Option<PathBuf>,
    /// Maximum size of the region file, up to 256GiB [default: the limit it was made with, or 8GiB]. Each doubling doubles the
    /// alignment of the program's objects
    #[arg(long, requires = "durable", value_name = "SIZE")]
    pub region_max: Option<Bytes>,
    /// Check the whole region file before the program starts. Without this, only the pages of a file of more than 32MiB are
    /// checked, while the program runs. Use it for files from an untrusted source
    #[arg(long, requires = "durable")]
    pub verify: bool,
    /// Checks for durable objects in optimized code: none, likely, unbiased, unlikely, deopt, profiled or quick [default: quick
    /// with --durable, else none]
    #[arg(long, value_name = "KIND")]
    pub checks: Option<varve_runtime::Checks>,
}

/// The medium of the region file, and a report of its activity.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Objects that survive")]
pub struct Medium {
    /// Medium of the region file [default: dax if the file can be mapped so, else file]
    #[arg(long, requires = "durable", value_enum)]
    pub domain: Option<Domain>,
    /// With --domain file, when stores reach the medium: at each commit, or at an interval such as 100ms. A crash of the
    /// machine may lose or damage stores younger than the interval
    #[arg(long, requires = "durable", value_name = "commit|INTERVAL", value_parser = sync)]
    pub sync: Option<Sync>,
    /// Print a table on standard error at the end: durability checks, and the region's activity
    #[arg(long)]
    pub check_stats: bool,
}
