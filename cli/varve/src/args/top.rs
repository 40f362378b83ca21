//! `varve top`.

use super::run::sandbox::time;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  varve top
  varve top --every 5s --processes 50
  varve top --once
  varve top --once --json
Keys: q, Esc or Ctrl-C leave; arrows, Page Up and Page Down scroll.";

#[derive(clap::Args, Debug)]
pub struct TopArgs {
    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = every)]
    pub every: Duration,
    /// Take two samples, print the state and the changes between them, and exit
    #[arg(long)]
    pub once: bool,
    /// Report residency for at most N processes, the largest; the kernel walks all their memory for each sample
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub processes: usize,
    /// With --once: print JSON
    #[arg(long, requires = "once")]
    pub json: bool,
}

fn every(text: &str) -> Result<Duration, String> {
    match time(text)? {
        wanted if wanted >= Duration::from_millis(100) => Ok(wanted),
        _ => Err("samples are at least 100ms apart: each costs the kernel time".into()),
    }
}
