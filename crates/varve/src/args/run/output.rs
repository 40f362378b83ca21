//! Options for what comes out.

use super::MAIN;
use clap::Args;
use std::path::PathBuf;

/// On standard output.
#[derive(Args, Debug)]
pub struct Json {
    /// Print JSON instead of a table
    #[arg(long, help_heading = MAIN)]
    pub json: bool,
}

/// On standard output, and in files.
#[derive(Args, Debug)]
pub struct Output {
    #[command(flatten)]
    pub json: Json,
    /// Write a web page, pictures, JSON and Parquet into this folder
    #[arg(long, value_name = "FOLDER", help_heading = MAIN)]
    pub out: Option<PathBuf>,
}
