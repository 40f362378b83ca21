//! `varve tier`.

use super::run::sandbox::time;
use std::ffi::OsString;
use std::time::Duration;
use varve_live::tier::Way;
use varve_spec::Bytes;

pub const EXAMPLES: &str = "Examples:
  varve tier --pid 4711 --fast 8GiB
  varve tier --cgroup system.slice/redis-server.service --policy hotset:spare=64MiB
  varve tier --policy interleave:fast=3 -- ./program
  varve tier --pid 4711 --for 60s --core 10% --json
  varve tier --pid 4711 --for 60s --out pictures/
  varve tier --cgroup system.slice/redis-server.service --policy dynamic --cache 48GiB
  varve tier --pid 4711 --policy trays --dimm-map dimms.toml
Pages stay where they are when it ends; nothing that it set stays set.";

#[derive(clap::Args, Debug)]
pub struct TierArgs {
    /// A process that runs already, and what it starts; several: --pid 17 --pid 23
    #[arg(long, value_name = "NUMBER", conflicts_with = "cgroup")]
    pub pid: Vec<u32>,
    /// The processes of a control group: a folder below /sys/fs/cgroup
    #[arg(long, value_name = "NAME")]
    pub cgroup: Option<String>,
    /// The page policy; `varve policy` says which are for `tier`
    #[arg(short, long, default_value = "hotset", value_name = "NAME")]
    pub policy: String,
    /// Fast memory of all the processes together [default: what they have there, and what is free there]
    #[arg(long, value_name = "SIZE")]
    pub fast: Option<Bytes>,
    /// Nodes of fast and slow memory, such as fast=0,slow=1; found out if they are not given
    #[arg(long, value_name = "NODES")]
    pub nodes: Option<String>,
    /// How it is seen what is in use: hardware (PEBS, IBS), damon, idle (idle page tracking), writes (soft-dirty bits), bits (accessed
    /// bits of whole mappings) [default: the first of these that there is]
    #[arg(long, value_name = "WAY", value_parser = way)]
    pub observe: Option<Way>,
    /// A page of the policy: a power of two from 4KiB to 2MiB [default: 2MiB with huge pages, else the smallest
    /// size at which 65,536 pages cover the memory]
    #[arg(long, value_name = "SIZE", value_parser = page)]
    pub page: Option<Bytes>,
    /// For policies that choose frames: the DRAM cache in front of each node's memory [default: what the kernel tells]
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Bytes>,
    /// For policies that choose frames: ways of that cache
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub ways: u32,
    /// For policies that choose frames: free frames that are held of each node [default: an eighth of the cache, or 64MiB with
    /// DIMMs]
    #[arg(long, value_name = "SIZE")]
    pub reserve: Option<Bytes>,
    /// For trays and channels: which physical addresses are on which DIMM [default: what the firmware tells]
    #[arg(long, value_name = "FILE")]
    pub dimm_map: Option<std::path::PathBuf>,
    /// For trays: mappings that are hot, by a part of their name in /proc/PID/maps, such as `[heap]` or /dev/shm/table; several:
    /// --hot A --hot B [default: pages that are in use]
    #[arg(long, value_name = "NAME")]
    pub hot: Vec<String>,
    /// Most that is moved in a second
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub rate: Bytes,
    /// CPU budget for scanning and migration; the scan rate drops to keep it
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    pub core: f64,
    /// How long a page that was moved stays where it is
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub hold: Duration,
    /// Stop after this time, such as 60s (the programs' end, or Ctrl-C, if it is not given)
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Run even if others migrate pages by their use too: NUMA balancing in its mode for tiers, DAMON schemes
    #[arg(long)]
    pub beside: bool,
    /// Write a page with pictures of what was seen into this folder: which memory is used when, where it is, and what was moved
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<std::path::PathBuf>,
    /// Print JSON at the end
    #[arg(long)]
    pub json: bool,
    /// A command to start
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

fn way(text: &str) -> Result<Way, String> {
    let names: Vec<&str> = Way::ALL.iter().map(|way| way.name()).collect();
    let found = Way::ALL.into_iter().find(|way| way.name() == text);
    found.ok_or_else(|| format!("there are {}", names.join(", ")))
}

fn page(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    match bytes.0.is_power_of_two() && (4096..=2 << 20).contains(&bytes.0) {
        true => Ok(bytes),
        false => Err("a page is a power of two from 4KiB to 2MiB".into()),
    }
}

/// `2%`, as a part of one.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').map(str::trim);
    let percent = percent.and_then(|number| number.parse::<f64>().ok());
    match percent {
        Some(percent) if (0.1..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a share of a core is 0.1% to 100%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_pages_have_limits() {
        assert_eq!(share("2%"), Ok(0.02));
        for wrong in ["2", "0%", "101%", "x%", "-1%", "nan%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        assert_eq!(page("64KiB").map(|b| b.0), Ok(65536));
        for wrong in ["4MiB", "5000", "2KiB", "x"] {
            assert!(page(wrong).is_err(), "{wrong}");
        }
        assert_eq!(way("damon"), Ok(Way::Damon));
        assert!(way("magic").is_err());
    }
}
