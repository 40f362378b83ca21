//! Options of sweeps and studies for sharing runs out among processes and machines.

use crate::sweep::emit::For;
use crate::sweep::share::{Share, share};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct Shares {
    /// Make only this share of the runs, such as 3/16: 0/16 to 15/16, one process each, all with the same folder; `auto`: the
    /// share of this task of a Slurm job array. If runs of a study depend on others, repeat until --merge finds all
    #[arg(long, value_name = "I/N", conflicts_with_all = ["merge", "emit"])]
    pub shard: Option<String>,
    /// Make only the runs that `submit` wrote to this file
    #[arg(long, value_name = "FILE.json", requires = "shard", hide = true)]
    pub submission: Option<PathBuf>,
    /// Make no run, and print the results of finished runs; fails while runs are missing
    #[arg(long, conflicts_with = "emit")]
    pub merge: bool,
    /// Print results even if runs are missing
    #[arg(long, requires = "merge")]
    pub partial: bool,
    /// Print a script that makes the runs in shares, and make none
    #[arg(long, value_enum, value_name = "FOR", requires = "shards")]
    pub emit: Option<For>,
    /// Number of shares in the script
    #[arg(long, value_name = "N", requires = "emit", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub shards: Option<u32>,
    /// Concurrent runs; 0: one per core of this host
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
}

impl Shares {
    /// The share that is to be made; none where all is.
    ///
    /// # Errors
    /// A line: it is not a share, or this is not a task of a job array.
    pub fn own(&self) -> Result<Option<Share>, String> {
        self.shard.as_deref().map(share).transpose()
    }
}
