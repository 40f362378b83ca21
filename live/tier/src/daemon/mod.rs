//! A daemon that tiers several control groups, each with a budget of fast memory of its own.
//!
//! ```text
//! config.rs    the file
//! budgets.rs   how much fast memory each group may have
//! group.rs     the thread of one group
//! run.rs       all of them; reload
//! metrics.rs   the state as measurements
//! endpoint.rs  where measurements can be read
//! ```

mod budgets;
mod config;
mod endpoint;
mod group;
mod metrics;
mod run;

pub use budgets::{Wish, divide};
pub use config::{Config, GroupConfig, core_share, page_size, read, way};
pub use endpoint::{Endpoint, MetricsListener};
pub use group::Plan;
pub use metrics::text as metrics;
pub use run::{Signals, own_states, plans, run};

use varve_live::tier::{Begun, TierOptions, TierReport};

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is not done that was asked for.
    Error,
    /// Something to know.
    Warning,
    /// The usual course.
    Info,
}

/// Is told what a daemon does, by all of its threads.
pub trait DaemonLog: Send + Sync {
    /// A line about a group, or about all.
    fn say(&self, level: Severity, group: Option<&str>, line: &str);
    /// The processes of a group are tiered from now on.
    fn begun(&self, group: &str, spec: &str, options: &TierOptions, begun: &Begun);
    /// They are no more.
    fn ended(&self, group: &str, report: &TierReport);
}
