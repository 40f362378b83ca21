//! Options for programs whose objects are placed by a plan.

use super::MAIN;
use clap::Args;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use varve_machine::Bytes;

/// The plans, and what they go by.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects")]
pub struct Plans {
    /// Plans for objects: `all`, or names separated by commas (see `varve plan`). On a model the program runs once under each, or
    /// under the few that tell most if none is named; on this machine it runs under one
    #[arg(long, value_name = "PLANS", help_heading = MAIN)]
    pub plan: Option<String>,
    /// The most fast memory for the program's objects, such as 64MiB. On a model also shares of what it takes with all of it fast:
    /// 10%,25% [default: 25% for a command or trace, else all that the machine has]
    #[arg(long, alias = "fast-max", value_name = "SIZE|PERCENT", help_heading = MAIN)]
    pub fast: Option<Fast>,
    /// The site profile that plans such as `cgz-f` go by: a file of `varve profile`, made on another input (docs/sites.md)
    #[arg(long, visible_alias = "sites", value_name = "FILE.sites")]
    pub profile: Option<PathBuf>,
}

/// Plans of a WebAssembly program.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects")]
pub struct Objects {
    #[command(flatten)]
    pub plans: Plans,
    /// Print a line on standard error for each phase and decision of plans that sample, such as `pima`; with =FILE, into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub pima_log: Option<PathBuf>,
}

/// Several instances on one modelled machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects on a modelled machine")]
pub struct Instances {
    /// Instances of the program that share the machine, each on a core of its own. One is run, and the others load the memory as
    /// it does
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: u32,
    /// Run each of the --instances instead of one that stands for all
    #[arg(long, requires = "instances")]
    pub co_run: bool,
    /// Where threads and memory are: local (on one socket), remote (on different ones), auto (spread over both, as automatic
    /// balancing does)
    #[arg(long, value_name = "WHERE", default_value_t)]
    pub numa: varve_run::Numa,
}

/// Profiles of native programs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects")]
pub struct Stale {
    /// Take a --sites profile of another build of the program: sites are found by the names of their functions, and those that may be
    /// one of several are left out. How much was found is said
    #[arg(long)]
    pub stale: bool,
}

/// DIMMs of a modelled machine with one memory.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects on a modelled machine")]
pub struct Trays {
    /// On a machine with one memory of DIMMs without interleaving, such as haswell-2620v3: how the plan's memories become colours on
    /// DIMMs, such as hot=1,limit=8MiB,model=10.1/12.5/16.3,sample=1s,undo=yes (docs/cross-layer.md)
    #[arg(long, value_name = "OPTIONS")]
    pub trays: Option<String>,
}

/// Memory nodes of this machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Objects on this machine")]
pub struct Nodes {
    /// Nodes of fast and of slow memory, such as fast=0,slow=1 or fast=0+1,slow=2-3 [default: found out]
    #[arg(long, value_name = "NODES")]
    pub nodes: Option<String>,
}

/// A limit of fast memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Fast {
    /// Bytes.
    Size(Bytes),
    /// Parts of what the program takes with everything in fast memory, in %: one after the other.
    Percent(Vec<f64>),
}

impl FromStr for Fast {
    type Err = String;

    fn from_str(text: &str) -> Result<Fast, String> {
        if !text.contains('%') {
            let size = text.parse().ok().filter(|bytes: &Bytes| bytes.0 > 0);
            return size.map(Fast::Size).ok_or_else(|| {
                format!("`{text}` is neither a size such as 64MiB nor a share such as 25%")
            });
        }
        let percent = |text: &str| {
            let number = text.trim().strip_suffix('%').map(str::trim);
            let number = number.and_then(|n| n.parse::<f64>().ok());
            number
                .filter(|&n| n > 0.0 && n <= 100.0)
                .ok_or_else(|| format!("`{text}` is no share from above 0% to 100%"))
        };
        let all = text.split(',').map(percent);
        Ok(Fast::Percent(all.collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Fast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fast::Size(bytes) => write!(f, "{bytes}"),
            Fast::Percent(all) => {
                let all: Vec<String> = all.iter().map(|percent| format!("{percent}%")).collect();
                f.write_str(&all.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_memory_is_a_size_or_a_share() {
        for (text, fast) in [
            ("64MiB", Fast::Size(Bytes(64 << 20))),
            ("4096", Fast::Size(Bytes(4096))),
            ("25%", Fast::Percent(vec![25.0])),
            ("12.5 %", Fast::Percent(vec![12.5])),
            ("100%", Fast::Percent(vec![100.0])),
            ("10%,25%", Fast::Percent(vec![10.0, 25.0])),
        ] {
            assert_eq!(text.parse(), Ok(fast), "{text}");
        }
        for text in [
            "", "%", "10%,", "10%,1MiB", "0%", "101%", "-5%", "NaN%", "half", "0",
        ] {
            assert!(text.parse::<Fast>().is_err(), "{text}");
        }
    }
}
