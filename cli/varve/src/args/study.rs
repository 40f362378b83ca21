//! Options of `varve study`.

use super::shares::Shares;
use super::sweep::SubmitHow;
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:\n  \
    varve study list\n  \
    varve study johnny-cache --quick\n  \
    varve study johnny-cache --out results/\n  \
    varve study johnny-cache --keep runs/ --shard 0/4\n  \
    varve study johnny-cache --keep runs/ --merge --out results/\n  \
    varve study submit johnny-cache --keep runs/ --array 16\n  \
    varve study status johnny-cache --keep runs/\n  \
    varve study johnny-cache --keep runs/ --emit k8s --shards 16 > job.yaml";

#[derive(clap::Args, Debug)]
pub struct StudyArgs {
    #[command(subcommand)]
    pub action: Option<StudyAction>,
    /// `list`, a study's name, or `all`
    #[arg(default_value = "list")]
    pub name: String,
    #[command(flatten)]
    pub of: StudyOf,
    /// Print JSON instead of a table
    #[arg(long, conflicts_with = "shard")]
    pub json: bool,
    /// Write a page, JSON and Parquet into this folder; with `all`: a Markdown page for each study, and a summary
    #[arg(long, value_name = "FOLDER", conflicts_with = "shard")]
    pub out: Option<PathBuf>,
    /// Keep finished runs in this folder, so that a study resumes; `none` keeps nothing
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    #[command(flatten)]
    pub shares: Shares,
}

/// The part of a study to run, and the number of repetitions.
#[derive(clap::Args, Debug)]
pub struct StudyOf {
    /// Run a coarse version: smaller and fewer programs, in some minutes at most
    #[arg(long)]
    pub quick: bool,
    /// Evaluate only these claims, such as D5,D8
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Repeat it with N seeds, starting at --seed; values are medians, and their spread is reported
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: u32,
    /// Repeat it without each rule of the model, one at a time, and report the rule that changes a value most
    #[arg(long)]
    pub sensitivity: bool,
    /// Recordings of Java virtual machines made by programs/jvm/record, for `pima`, instead of the small built-in ones; without
    /// `all`, only the part on stock virtual machines runs
    #[arg(long, value_name = "FOLDER")]
    pub jvm: Option<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
pub enum StudyAction {
    /// Submit a Slurm job array with the runs that are missing or failed, and that no other job has
    #[command(after_help = "Examples:\n  \
        varve study submit johnny-cache --keep runs/ --array 16\n  \
        varve study submit johnny-cache --quick --keep runs/ -- --time=2:00:00 --cpus-per-task=8")]
    Submit(StudySubmitArgs),
    /// Print how many runs are done, running, waiting, failed (and why) and missing
    #[command(after_help = "Examples:\n  \
        varve study status johnny-cache --keep runs/\n  \
        varve study status johnny-cache --keep runs/ --json")]
    Status(StudyStatusArgs),
    /// Do the work whose instructions `quickcheck` counts; it runs this under an emulator
    #[command(hide = true)]
    Count {
        /// A program, or `STORE:RECORDS`
        work: String,
        /// The study's seed
        seed: u64,
    },
}

#[derive(clap::Args, Debug)]
pub struct StudySubmitArgs {
    /// A study's name, or `all`
    pub name: String,
    #[command(flatten)]
    pub of: StudyOf,
    /// Keep finished runs in this folder, which all nodes must see
    #[arg(long, value_name = "FOLDER")]
    pub keep: PathBuf,
    #[command(flatten)]
    pub how: SubmitHow,
}

#[derive(clap::Args, Debug)]
pub struct StudyStatusArgs {
    /// A study's name, or `all`
    pub name: String,
    #[command(flatten)]
    pub of: StudyOf,
    /// Folder with the finished runs
    #[arg(long, value_name = "FOLDER")]
    pub keep: PathBuf,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
