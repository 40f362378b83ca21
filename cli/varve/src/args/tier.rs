//! `varve tier`.

use super::run::sandbox::time;
use std::ffi::OsString;
use std::time::Duration;
use varve_live::tier::Way;
use varve_spec::Bytes;
use varve_tier::daemon::{Endpoint, core_share as share, page_size as page, way};

pub const EXAMPLES: &str = "Examples:
  varve tier --pid 4711 --fast 8GiB
  varve tier --cgroup system.slice/redis-server.service --policy hotset:spare=64MiB
  varve tier --policy interleave:fast=3 -- ./program
  varve tier --pid 4711 --for 60s --core 10% --json
  varve tier --pid 4711 --for 60s --out pictures/
  varve tier --cgroup system.slice/redis-server.service --policy dynamic --cache 48GiB
  varve tier --pid 4711 --policy trays --dimm-map dimms.toml
  varve tier --config /etc/varve/tier.toml --check
  varve tier --config /etc/varve/tier.toml --metrics 127.0.0.1:9464
At the end, pages stay where they are, and kernel settings are restored.";

#[derive(clap::Args, Debug)]
pub struct TierArgs {
    /// Running process to tier, with its descendants; may be repeated: --pid 17 --pid 23
    #[arg(long, value_name = "NUMBER", conflicts_with = "cgroup")]
    pub pid: Vec<u32>,
    /// Control group whose processes to tier, a folder below /sys/fs/cgroup; may be repeated
    #[arg(long, value_name = "NAME")]
    pub cgroup: Vec<String>,
    /// Tier the control groups of this file, each with its own budget, until SIGTERM or Ctrl-C; SIGHUP reads the file again
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "pid", "cgroup", "policy", "fast", "nodes", "observe", "page", "cache", "ways", "reserve", "dimm_map", "hot",
            "rate", "core", "hold", "time", "out", "json", "command",
        ]
    )]
    pub config: Option<std::path::PathBuf>,
    /// With --config: print what each group would have, and end
    #[arg(long)]
    pub check: bool,
    /// Offer measurements as OpenMetrics at this address: a loopback port such as 127.0.0.1:9464, or a Unix socket such as
    /// /run/varve/metrics.sock
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Endpoint>,
    /// Page policy; `varve policy` shows which ones `tier` takes
    #[arg(short, long, default_value = "hotset", value_name = "NAME")]
    pub policy: String,
    /// Fast memory for all the processes together [default: what they use there now, plus what is free there]
    #[arg(long, value_name = "SIZE")]
    pub fast: Option<Bytes>,
    /// Nodes of fast and slow memory, such as fast=0,slow=1 [default: detected]
    #[arg(long, value_name = "NODES")]
    pub nodes: Option<String>,
    /// How accesses are observed: hardware (PEBS, IBS), damon, idle (idle page tracking), writes (soft-dirty bits), bits
    /// (accessed bits of whole mappings) [default: the first of these that this machine has]
    #[arg(long, value_name = "WAY", value_parser = way)]
    pub observe: Option<Way>,
    /// Page size of the policy: a power of two from 4KiB to 2MiB [default: 2MiB with huge pages, else the smallest size at
    /// which 65,536 pages cover the memory]
    #[arg(long, value_name = "SIZE", value_parser = page)]
    pub page: Option<Bytes>,
    /// For policies that choose frames: DRAM cache in front of each node's memory [default: as the kernel reports it]
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Bytes>,
    /// For policies that choose frames: associativity of that cache
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub ways: u32,
    /// For policies that choose frames: free frames to reserve on each node [default: an eighth of the cache, or 64MiB with
    /// DIMMs]
    #[arg(long, value_name = "SIZE")]
    pub reserve: Option<Bytes>,
    /// For trays and channels: map of physical addresses to DIMMs [default: as the firmware reports it]
    #[arg(long, value_name = "FILE")]
    pub dimm_map: Option<std::path::PathBuf>,
    /// For trays: hot mappings, by a part of their name in /proc/PID/maps, such as `[heap]` or /dev/shm/table; may be repeated:
    /// --hot A --hot B [default: accessed pages]
    #[arg(long, value_name = "NAME")]
    pub hot: Vec<String>,
    /// Migration limit, in bytes per second
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub rate: Bytes,
    /// CPU budget for scanning and migration, as a share of one core; the scan rate drops to keep it
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    pub core: f64,
    /// Do not migrate a page again within this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub hold: Duration,
    /// Stop after this time, such as 60s [default: at the programs' end, or at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Run even if NUMA balancing (in its tiering mode) or DAMON schemes migrate pages, too
    #[arg(long)]
    pub beside: bool,
    /// Write a page of charts into this folder: memory use over time, residency, and migrations
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<std::path::PathBuf>,
    /// Print JSON at the end
    #[arg(long)]
    pub json: bool,
    /// Command to start and tier
    #[arg(last = true)]
    pub command: Vec<OsString>,
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
