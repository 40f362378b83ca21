//! Options for how a model runs a program, and for the heap of a managed one.

use clap::Args;
use serde::{Deserialize, Serialize};
use varve_runtime::Tier;
use varve_spec::Bytes;

/// How a model runs a program whose pages it places. The whole of it is part of what decides a result.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Pages")]
pub struct OnModel {
    /// Cores that the program shares with a policy's daemons; 0: the daemons have cores of their own
    #[arg(long, default_value_t = 0)]
    pub cores: u32,
    /// End after this much time of the machine, s
    #[arg(long = "until", value_name = "UNTIL", value_parser = seconds, allow_negative_numbers = true)]
    pub until_s: Option<f64>,
}

/// A span of time that is worth running.
fn seconds(text: &str) -> Result<f64, String> {
    match varve_spec::written::seconds(text) {
        Some(s) if s > 0.0 => Ok(s),
        Some(_) => Err("a run takes more than 0 s".into()),
        None => Err(format!("`{text}` is no time such as 30s, 2m or 500ms")),
    }
}

/// The heap of a WebAssembly program, and its compilers; `None`: as the engine has it.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "The engine")]
pub struct Heap {
    /// The most memory of the program's objects, and of its linear memories and tables [default: 2GiB, and 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub heap_max: Option<Bytes>,
    /// The nursery in the beginning [default: 4MiB]
    #[arg(long, value_name = "SIZE")]
    pub nursery: Option<Bytes>,
    /// What the nursery may grow to while much of it survives [default: 32MiB]. Under plans with an observer space it does not grow
    #[arg(long, value_name = "SIZE")]
    pub nursery_max: Option<Bytes>,
    /// Compilers: baseline, optimizing, or auto (first one, then the other where the program is hot) [default: auto]
    #[arg(long, value_name = "TIER")]
    pub tier: Option<Tier>,
}
