//! Options for the engine that runs WebAssembly programs.

use clap::Args;
use std::path::PathBuf;
use varve_observed::request::Heap;

/// How the program is started, its heap, and its compilers.
#[derive(Args, Debug)]
#[command(next_help_heading = "The engine")]
pub struct Engine {
    /// Call this export, with the arguments after `--`, and print its results
    #[arg(long, value_name = "NAME")]
    pub invoke: Option<String>,
    /// Its heap and compilers.
    #[command(flatten)]
    pub heap: Heap,
}

/// How this machine compiles and collects, and what is told of that.
#[derive(Args, Debug)]
#[command(next_help_heading = "The engine")]
pub struct EngineLog {
    /// Threads that collect, up to 64 [default: as many as cores, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub gc_threads: Option<u16>,
    /// Keep compiled code in FOLDER for later runs of the program, which begin with it; `none` keeps nothing. Not with --durable,
    /// --tier or --plan [default: ~/.cache/varve/code]
    #[arg(long, value_name = "FOLDER")]
    pub code_cache: Option<PathBuf>,
    /// Print a line on standard error for each collection; with =FILE, into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub gc_log: Option<PathBuf>,
    /// Print a table of collections at the end, on standard error: pauses and bytes
    #[arg(long)]
    pub gc_stats: bool,
    /// Tell `perf` the names of compiled functions, in /tmp/perf-PID.map: `perf record varve run --perf-map x.wasm`, then `perf
    /// report`
    #[arg(long)]
    pub perf_map: bool,
    /// Tell `perf inject --jit` the code of compiled functions, with names and source lines, in FOLDER/jit-PID.dump; in /tmp if no folder is
    /// given
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = "/tmp")]
    pub jitdump: Option<PathBuf>,
}
