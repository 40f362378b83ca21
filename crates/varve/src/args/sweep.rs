//! What `varve sweep` takes.

use crate::sweep::emit::For;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct SweepArgs {
    /// What is swept: options of `varve run` with one value or several each
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// Keep results here; those that are there already are not made again [default: a folder named after the file, here]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print the points and which of them are done, and run nothing
    #[arg(long, conflicts_with_all = ["merge", "shard", "emit"])]
    pub list: bool,
    /// Run only this share of the points, such as 3/16: from 0/16 to 15/16, one process each; `auto`: as a job array of Slurm
    /// says
    #[arg(long, value_name = "I/N", conflicts_with_all = ["merge", "emit"])]
    pub shard: Option<String>,
    /// Run nothing, and make one table, page and Parquet of all results
    #[arg(long, conflicts_with = "emit")]
    pub merge: bool,
    /// Merge what is there though points are missing
    #[arg(long, requires = "merge")]
    pub partial: bool,
    /// Print a script that shares the points out, and run nothing
    #[arg(long, value_enum, value_name = "FOR", requires = "shards")]
    pub emit: Option<For>,
    /// How many shares the script makes
    #[arg(long, value_name = "N", requires = "emit", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub shards: Option<u32>,
    /// Points at a time; 0: one per core of this host
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
