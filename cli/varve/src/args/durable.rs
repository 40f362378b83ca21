//! Options for durable objects, and `varve durable`.

use super::medium::{Domain, Sync, sync};
use super::run::region::{Medium, Region};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Durable objects of the built-in stores.
#[derive(Args, Debug, Clone)]
pub struct DurableStore {
    /// Keep values in this region file, which is created if it does not exist
    #[arg(long, value_name = "FILE")]
    pub durable: Option<PathBuf>,
    /// Medium of the region file [default: dax if the file can be mapped so, else file]
    #[arg(long, requires = "durable", value_enum)]
    pub domain: Option<Domain>,
    /// With --domain file, when values reach the medium: `commit`, before they are acknowledged; or an interval such as 100ms.
    /// A crash of the machine (not of the program) may lose or damage values younger than the interval
    #[arg(long, requires = "durable", value_name = "commit|INTERVAL", value_parser = sync)]
    pub sync: Option<Sync>,
    /// Maximum size of the region file, up to 256GiB [default: the limit it was made with, or 8GiB]. Each doubling doubles the
    /// alignment of all objects
    #[arg(long, requires = "durable", value_name = "SIZE")]
    pub region_max: Option<varve_spec::Bytes>,
    /// Check the whole region file before the server starts. Without this, only the pages of a file of more than 32MiB are
    /// checked, while the server runs. Use it for files from an untrusted source
    #[arg(long, requires = "durable")]
    pub verify: bool,
    /// Checks for durable objects in optimized code: none, likely, unbiased, unlikely, deopt, profiled (by the counts of
    /// baseline code), or quick (profiled once an object is durable, none before) [default: quick with --durable, else none]
    #[arg(long, value_name = "KIND")]
    pub checks: Option<varve_runtime::Checks>,
}

impl DurableStore {
    /// The same as options of a run.
    pub fn of_run(&self) -> (Region, Medium) {
        let region = Region {
            durable: self.durable.clone(),
            region_max: self.region_max,
            verify: self.verify,
            checks: self.checks,
        };
        let medium = Medium {
            domain: self.domain,
            sync: self.sync,
            check_stats: false,
        };
        (region, medium)
    }
}

#[derive(Args, Debug)]
pub struct DurableArgs {
    #[command(subcommand)]
    pub command: DurableCommand,
}

#[derive(Subcommand, Debug)]
pub enum DurableCommand {
    /// Verify all checksums and follow all references from the roots; print one line for each damage and exit with code 1 if
    /// there is any. The file is not changed; if a program has it open, a snapshot is checked
    Check {
        /// The region file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a region's roots, its objects by type, and how it was closed. The file is not changed
    Info {
        /// The region file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the reachable objects to a new file, and replace the old one with it; mode, owner and attributes are kept
    Compact {
        /// The region file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy a consistent snapshot of a region, even while a program has it open, and verify the copy
    Backup {
        /// The region file
        file: PathBuf,
        /// The copy: a new name, or an existing region, which is replaced
        copy: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy the intact objects of a damaged region to a new one, and report the rest; exit with code 1 if anything is lost. The
    /// damaged file is not changed
    Salvage {
        /// The damaged region file
        file: PathBuf,
        /// The new region: a new name, or an existing region, which is replaced
        into: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print all reachable objects as JSON lines, one object each, roots first
    Export {
        /// The region file
        file: PathBuf,
        /// Export only the objects of this root
        #[arg(long, value_name = "NAME")]
        root: Option<String>,
    },
}
