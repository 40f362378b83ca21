//! Options for how a model runs a program.

use clap::Args;
use serde::{Deserialize, Serialize};

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

/// A span of time to run; an empty one is an error.
fn seconds(text: &str) -> Result<f64, String> {
    match varve_spec::written::seconds(text) {
        Some(s) if s > 0.0 => Ok(s),
        Some(_) => Err("a run takes more than 0 s".into()),
        None => Err(format!("`{text}` is no time such as 30s, 2m or 500ms")),
    }
}
