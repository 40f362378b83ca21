//! What `varve study` takes.

use super::sweep::SubmitHow;
use crate::sweep::emit::For;
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
    #[arg(long)]
    pub json: bool,
    /// Write a page, JSON and Parquet into this folder; with `all`: a page of Markdown for each study, and one that sums them up
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Runs at a time; 0: one per core of this host
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
    /// Where finished runs are kept, so that a study resumes; `none` keeps nothing
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Make only this share of the runs, such as 3/16, and keep them: from 0/16 to 15/16, one process each, all with the same --keep;
    /// `auto`: as a job array of Slurm says. Where runs depend on others, once more, until --merge finds all
    #[arg(long, value_name = "I/N", conflicts_with_all = ["merge", "emit", "json", "out"])]
    pub shard: Option<String>,
    /// Make only runs that `varve study submit` wrote into this file
    #[arg(long, value_name = "FILE.json", requires = "shard", hide = true)]
    pub submission: Option<PathBuf>,
    /// Make no run, and answer from those that are kept; refused while some are missing
    #[arg(long, conflicts_with = "emit")]
    pub merge: bool,
    /// Answer from what is kept though runs are missing
    #[arg(long, requires = "merge")]
    pub partial: bool,
    /// Print a script that shares the runs out, and run nothing
    #[arg(long, value_enum, value_name = "FOR", requires = "shards")]
    pub emit: Option<For>,
    /// How many shares the script makes
    #[arg(long, value_name = "N", requires = "emit", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub shards: Option<u32>,
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
    /// Of `pima`: recordings of Java virtual machines, made by programs/jvm/record, instead of the small ones that are built in
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
