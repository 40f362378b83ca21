//! Options for programs whose pages are placed on a model.

use super::MAIN;
use clap::Args;

/// Who places pages, and how much of the program is run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Pages")]
pub struct Pages {
    /// Page policies: `all`, or names separated by commas (see `varve policy`)
    #[arg(short, long, default_value = "all", help_heading = MAIN)]
    pub policy: String,
    /// Divide all sizes by this power of two, up to 65536 [default: 64 for a workload, 1 for a command, and for a trace the
    /// scale at which its pages fill twice the fast memory]
    #[arg(short, long)]
    pub scale: Option<u32>,
    /// Cores that the program shares with a policy's daemons; 0: the daemons have cores of their own
    #[arg(long, default_value_t = 0)]
    pub cores: u32,
    /// End after this much time of the machine, s
    #[arg(long, value_parser = seconds, allow_negative_numbers = true)]
    pub until: Option<f64>,
}

/// A span of time that is worth running.
fn seconds(text: &str) -> Result<f64, String> {
    match varve_spec::written::seconds(text) {
        Some(s) if s > 0.0 => Ok(s),
        Some(_) => Err("a run takes more than 0 s".into()),
        None => Err(format!("`{text}` is no time such as 30s, 2m or 500ms")),
    }
}
