//! Options for output.

use super::MAIN;
use clap::Args;
use std::path::PathBuf;

/// On standard output.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct Json {
    /// Print one JSON document, and nothing else
    #[arg(long, help_heading = MAIN)]
    pub json: bool,
    /// Write the program's standard output to FILE [default with --json: to standard error]
    #[arg(long, value_name = "FILE")]
    pub program_output: Option<PathBuf>,
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
