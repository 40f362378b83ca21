//! Options for several instances of a program that share a modelled machine.

use crate::Numa;
use clap::Args;

/// Several instances on one modelled machine.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects on a modelled machine")]
pub struct Instances {
    /// Instances of the program that share the machine, each on a core of its own. One is run, and the others load the memory as
    /// it does
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: u32,
    /// Run each of the --instances instead of one that stands for all
    #[arg(long, requires = "instances")]
    pub co_run: bool,
    /// Where threads and memory are: local (on one socket), remote (on different ones), auto (threads and fast memory spread over both,
    /// as automatic balancing does)
    #[arg(long, value_name = "WHERE", default_value_t)]
    pub numa: Numa,
    /// Count each instruction of the program so many times, of the collector once: what the program would execute besides on a slower
    /// virtual machine, or for files and requests
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = times)]
    pub slower: f64,
}

impl Default for Instances {
    /// One, near its memory.
    fn default() -> Instances {
        Instances {
            instances: 1,
            co_run: false,
            numa: Numa::Local,
            slower: 1.0,
        }
    }
}

/// A factor of 1 to 1000.
fn times(said: &str) -> Result<f64, String> {
    let times: f64 = said.parse().map_err(|_| "not a number".to_string())?;
    match (1.0..=1000.0).contains(&times) {
        true => Ok(times),
        false => Err("1 to 1000 are possible".into()),
    }
}

/// Several Java virtual machines on one modelled machine.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Generations")]
pub struct JavaInstances {
    /// Instances of the program that share the machine, each with all its threads. One is run, and the others load the memory as it
    /// does
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: u32,
    /// Where threads and memory are: local (on one socket), remote (on different ones), auto (threads and fast memory spread over both,
    /// as automatic balancing does)
    #[arg(long, value_name = "WHERE", default_value_t)]
    pub numa: Numa,
}

impl Default for JavaInstances {
    /// One.
    fn default() -> JavaInstances {
        JavaInstances {
            instances: 1,
            numa: Numa::Local,
        }
    }
}
