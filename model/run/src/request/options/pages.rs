//! Options for programs whose pages are placed on a model.

use super::{MAIN, OnModel};
use clap::Args;
use varve_spec::Bytes;

/// Which policies place pages, and how the program is run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Pages")]
pub struct Pages {
    /// Page policies: `all`, or names separated by commas (see `varve policy`)
    #[arg(short, long, default_value = "all", help_heading = MAIN)]
    pub policy: String,
    /// Divide all sizes by this power of two, up to 65536 [default: 64 for a workload, 1 for a command, and for a trace the
    /// scale at which its pages fill twice the fast memory]
    #[arg(short, long)]
    pub scale: Option<u32>,
    /// How the model runs it.
    #[command(flatten)]
    pub on: OnModel,
}

impl Default for Pages {
    /// All policies, at the scale that suits the work.
    fn default() -> Pages {
        Pages {
            policy: varve_spec::ALL.into(),
            scale: None,
            on: OnModel::default(),
        }
    }
}

/// The size of pages, on a model and live.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "The model")]
pub struct PageSize {
    /// Page size, at full size for a workload [default: 2MiB for a workload, else 4KiB]
    #[arg(long)]
    pub page: Option<Bytes>,
}
