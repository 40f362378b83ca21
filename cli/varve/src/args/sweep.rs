//! Options of `varve sweep`.

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
    /// Sweep file: options of `varve run`, with one or several values each
    #[arg(value_name = "SWEEP.toml", required = true)]
    pub file: Option<PathBuf>,
    /// Keep results in this folder; finished points are not run again [default: a folder named after the file, in the current
    /// folder]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print the points and whether each is done, and run nothing
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
    /// Submit a Slurm job array with the points that are missing or failed, and that no other job of this sweep has
    #[command(after_help = "Examples:\n  \
        varve sweep submit examples/budget.toml --out budget/ --array 16\n  \
        varve sweep submit examples/budget.toml --out budget/ -- --time=2:00:00 --cpus-per-task=8")]
    Submit(SubmitArgs),
    /// Print how many points are done, running, waiting, failed (and why) and missing
    #[command(after_help = "Examples:\n  \
        varve sweep status examples/budget.toml --out budget/\n  \
        varve sweep status examples/budget.toml --out budget/ --json")]
    Status(StatusArgs),
}

#[derive(clap::Args, Debug)]
pub struct SubmitArgs {
    /// Sweep file
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// Keep results in this folder, which all nodes must see [default: a folder named after the file, in the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub how: SubmitHow,
}

/// Options for submitting points to Slurm.
#[derive(clap::Args, Debug)]
pub struct SubmitHow {
    /// Maximum number of tasks of the job array; each task runs its points, at most one per processor at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub array: u32,
    /// Print JSON instead of a line
    #[arg(long)]
    pub json: bool,
    /// Options for `sbatch`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

#[derive(clap::Args, Debug)]
pub struct StatusArgs {
    /// Sweep file
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// Folder with its results [default: a folder named after the file, in the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
