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

/// Compilation and collection on this machine, and reports about both.
#[derive(Args, Debug)]
#[command(next_help_heading = "The engine")]
pub struct EngineLog {
    /// Garbage collection threads, up to 64 [default: one per core, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub gc_threads: Option<u16>,
    /// Cache compiled code in FOLDER for later runs of the program; `none` caches nothing. Not with --durable, --tier or --plan
    /// [default: ~/.cache/varve/code]
    #[arg(long, value_name = "FOLDER")]
    pub code_cache: Option<PathBuf>,
    /// Print a line on standard error for each collection; with =FILE, write it to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub gc_log: Option<PathBuf>,
    /// Print a table of collections on standard error at the end: pauses and bytes
    #[arg(long)]
    pub gc_stats: bool,
    /// Write the names of compiled functions to /tmp/perf-PID.map for `perf`: `perf record varve run --perf-map x.wasm`, then
    /// `perf report`
    #[arg(long)]
    pub perf_map: bool,
    /// Write compiled code, with names and source lines, to FOLDER/jit-PID.dump for `perf inject --jit`; without =FOLDER, to
    /// /tmp
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = "/tmp")]
    pub jitdump: Option<PathBuf>,
}
