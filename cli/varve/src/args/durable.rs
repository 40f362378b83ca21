//! What the command line takes for objects that survive.

use super::medium::{Domain, Sync, sync};
use super::run::region::{Medium, Region};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Objects of stores that are programs of ours.
#[derive(Args, Debug, Clone)]
pub struct DurableStore {
    /// Values survive in this region file, which is made if it is not there
    #[arg(long, value_name = "FILE")]
    pub durable: Option<PathBuf>,
    /// What the region file is on; dax if it can be mapped so, else file, if it is not given
    #[arg(long, requires = "durable", value_enum)]
    pub domain: Option<Domain>,
    /// With --domain file: when values are in the medium. `commit`: before they are acknowledged; or an interval such as 100ms, after which a
    /// crash of the machine (not of the program) may lose or damage what is younger
    #[arg(long, requires = "durable", value_name = "commit|INTERVAL", value_parser = sync)]
    pub sync: Option<Sync>,
    /// Most bytes that the region file may get: 8GiB if it is not given, or what was given before, up to 256GiB. Each doubling aligns all objects
    /// to twice as many bytes
    #[arg(long, requires = "durable", value_name = "SIZE")]
    pub region_max: Option<varve_spec::Bytes>,
    /// Check all of the region file before the server begins; otherwise of a file of more than 32MiB only its pages are checked, while it
    /// runs. For a file that somebody else made: a hostile one could do what it likes
    #[arg(long, requires = "durable")]
    pub verify: bool,
    /// How optimized code checks for durable objects: none, likely, unbiased, unlikely, deopt, profiled, by what baseline code counts, or quick,
    /// the same once anything is durable and none before (quick with --durable, none without, if it is not given)
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
    /// Verify all checksums and follow all references from the roots; exit code 1 and one line for each damage if there is any. The file stays
    /// as it is; if a program has it open, a copy of this instant is looked at
    Check {
        /// The region file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what a region holds: roots, objects by type, how it was closed. The file stays as it is
    Info {
        /// The region file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write what is reachable into a new file, and put that in the place of the old one, with its mode, owner and attributes
    Compact {
        /// The region file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy a region as it is at one instant, also while a program has it open; the copy is verified
    Backup {
        /// The region file
        file: PathBuf,
        /// The copy: a name that is free, or of a region, which is replaced
        copy: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write what is whole of a damaged region into a new one, and say what is not; exit code 1 if anything is lost. The file stays as it is
    Salvage {
        /// The damaged region file
        file: PathBuf,
        /// The new region: a name that is free, or of a region, which is replaced
        into: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print all that is reachable as JSON lines: one object each, roots first
    Export {
        /// The region file
        file: PathBuf,
        /// Objects of this root alone
        #[arg(long, value_name = "NAME")]
        root: Option<String>,
    },
}
