//! What `varve study` takes.

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
    /// Write a page, JSON and Parquet into this folder; with `all`: a page of Markdown for each study, and one that sums them up
    #[arg(long, value_name = "FOLDER", conflicts_with = "shard")]
    pub out: Option<PathBuf>,
    /// Where finished runs are kept, so that a study resumes; `none` keeps nothing
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    #[command(flatten)]
    pub shares: Shares,
}

/// What is run of a study, and how often.
#[derive(clap::Args, Debug)]
pub struct StudyOf {
    /// A coarse version: smaller and fewer programs, in some minutes at most
    #[arg(long)]
    pub quick: bool,
    /// Only these claims, such as D5,D8
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run it with so many seeds, from --seed on: values are medians, and their spread is told
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: u32,
    /// Run it again without each rule of the model, one at a time, and tell which one moves a value most
    #[arg(long)]
    pub sensitivity: bool,
    /// Recordings of Java virtual machines that programs/jvm/record made, for `pima` instead of the small ones that are built in;
    /// without `all`, only its half of stock virtual machines is made
    #[arg(long, value_name = "FOLDER")]
    pub jvm: Option<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
pub enum StudyAction {
    /// Give Slurm a job array with the runs that are missing or failed, and that no other job has
    #[command(after_help = "Examples:\n  \
        varve study submit johnny-cache --keep runs/ --array 16\n  \
        varve study submit johnny-cache --quick --keep runs/ -- --time=2:00:00 --cpus-per-task=8")]
    Submit(StudySubmitArgs),
    /// Say how many runs are done, run, wait, failed (and why) and are missing
    #[command(after_help = "Examples:\n  \
        varve study status johnny-cache --keep runs/\n  \
        varve study status johnny-cache --keep runs/ --json")]
    Status(StudyStatusArgs),
    /// Do what `quickcheck` counts the instructions of, which runs this under an emulator
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
    /// Where finished runs are kept, in a folder that all nodes see
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
    /// Where finished runs are kept
    #[arg(long, value_name = "FOLDER")]
    pub keep: PathBuf,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
