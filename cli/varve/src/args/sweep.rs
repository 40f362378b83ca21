//! What `varve sweep` takes.

use super::shares::Shares;
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:\n  \
    varve sweep examples/budget.toml --list\n  \
    varve sweep examples/budget.toml --out budget/\n  \
    varve sweep examples/budget.toml --out budget/ --shard 0/4\n  \
    varve sweep examples/budget.toml --out budget/ --merge\n  \
    varve sweep submit examples/budget.toml --out budget/ --array 16\n  \
    varve sweep status examples/budget.toml --out budget/\n  \
    varve sweep examples/budget.toml --out budget/ --emit k8s --shards 16 > job.yaml";

#[derive(clap::Args, Debug)]
pub struct SweepArgs {
    #[command(subcommand)]
    pub action: Option<SweepAction>,
    /// What is swept: options of `varve run` with one value or several each
    #[arg(value_name = "SWEEP.toml", required = true)]
    pub file: Option<PathBuf>,
    /// Keep results here; those that are there already are not made again [default: a folder named after the file, here]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print the points and which of them are done, and run nothing
    #[arg(long, conflicts_with_all = ["merge", "shard", "emit"])]
    pub list: bool,
    #[command(flatten)]
    pub shares: Shares,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Subcommand, Debug)]
pub enum SweepAction {
    /// Give Slurm a job array with the points that are missing or failed, and that no other job of this sweep has
    #[command(after_help = "Examples:\n  \
        varve sweep submit examples/budget.toml --out budget/ --array 16\n  \
        varve sweep submit examples/budget.toml --out budget/ -- --time=2:00:00 --cpus-per-task=8")]
    Submit(SubmitArgs),
    /// Say how many points are done, run, wait, failed (and why) and are missing
    #[command(after_help = "Examples:\n  \
        varve sweep status examples/budget.toml --out budget/\n  \
        varve sweep status examples/budget.toml --out budget/ --json")]
    Status(StatusArgs),
}

#[derive(clap::Args, Debug)]
pub struct SubmitArgs {
    /// The sweep
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// Keep results here, in a folder that all nodes see [default: a folder named after the file, here]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub how: SubmitHow,
}

/// How points are given to Slurm.
#[derive(clap::Args, Debug)]
pub struct SubmitHow {
    /// The most tasks of the job array: each runs its part of the points, one after the other, or as many at a time as it has
    /// processors
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub array: u32,
    /// Print JSON instead of a line
    #[arg(long)]
    pub json: bool,
    /// Options of `sbatch`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

#[derive(clap::Args, Debug)]
pub struct StatusArgs {
    /// The sweep
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// Where its results are [default: a folder named after the file, here]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
