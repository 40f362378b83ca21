//! `varve tier` with a policy that chooses frames.

use super::tier_said::{beginning, names, size};
use super::tier_way::{options, stop_flag_unless_command, told};
use crate::args::tier::TierArgs;
use crate::ui::{Done, Failure, wrong};
use std::path::Path;
use varve_live::probe::{Topology, dimm_places};
use varve_live::tier::{DimmFrames, DimmRange, Energy, FrameOptions, Spans, Target, tier_frames};
use varve_live::traffic::MachineTraffic;
use varve_pages::policies::{Entry, Needs};
use varve_tier::dimm_map;
use varve_tier::frames::CacheOfNodes;
use varve_tier::pages::{PagePolicy, Wants};

pub fn tier(a: &TierArgs, target: &Target, entry: &Entry, spec: &str, wants: &Wants) -> Done {
    if let Some(page) = a.page.filter(|page| ![4096, 2 << 20].contains(&page.0)) {
        return Err(wrong(format!(
            "--page: {} bytes: frames have 4KiB or 2MiB",
            page.0
        )));
    }
    let about = About::of(a, entry)?;
    let stop = stop_flag_unless_command(target);
    let options = options(a, spec, wants, &stop)?;
    let traffic = match wants.traffic {
        true => Some(MachineTraffic::at(Path::new("/")).map_err(|why| {
            wrong(format!(
                "--policy {spec}: model= needs the bandwidth of the machine, which cannot be measured: {why}; or leave model= out"
            ))
        })?),
        false => None,
    };
    let frames = FrameOptions {
        reserve: a.reserve.map_or(about.reserve(), |bytes| bytes.0),
        reserve_given: a.reserve.is_some(),
        hot: a.hot.clone(),
        dimms: about.dimms(),
    };
    let mut notes = rivals();
    if matches!(about, About::Dimms { .. }) && Energy::open(Path::new("/")).is_none() {
        notes.push(
            "power of the DRAM: not here (no RAPL domain `dram` in /sys/class/powercap that may be read)".into(),
        );
    }
    notes.extend(
        traffic
            .iter()
            .map(|traffic| format!("bandwidth, by which DIMMs are hot: {}", traffic.words())),
    );
    let report = tier_frames(
        target,
        &options,
        &frames,
        traffic,
        |spans, dimms, page_bytes| about.policy(spec, spans, dimms, page_bytes),
        |begun| {
            let first = format!(
                "exchanging frames of {} by {spec}: {}",
                names(begun),
                about.words(begun.room.page_bytes)
            );
            beginning(first, &options, begun, &notes);
        },
    );
    told(a, spec, report)
}

/// The criterion by which frames are chosen.
enum About {
    /// Bins of a DRAM cache.
    Bins(CacheOfNodes),
    /// DIMMs. `by_use`: hot is what is in use, rather than mappings that were named.
    Dimms { map: Vec<DimmRange>, by_use: bool },
}

impl About {
    fn of(a: &TierArgs, entry: &Entry) -> Result<About, Failure> {
        if entry.needs == Needs::MemoryMode {
            return cache(a).map(About::Bins);
        }
        let map = match &a.dimm_map {
            Some(file) => dimm_map::read(file).map_err(wrong)?,
            None => {
                let places = dimm_places(Path::new("/")).map_err(wrong)?;
                let of = |(name, ranges)| DimmRange { name, ranges };
                places.into_iter().map(of).collect()
            }
        };
        Ok(About::Dimms {
            map,
            by_use: a.hot.is_empty(),
        })
    }

    fn policy(
        &self,
        spec: &str,
        spans: &Spans,
        dimms: &[DimmFrames],
        page_bytes: u64,
    ) -> Result<PagePolicy, String> {
        match self {
            About::Bins(cache) => PagePolicy::of_bins(spec, spans, page_bytes, *cache),
            About::Dimms { by_use, .. } => {
                PagePolicy::of_dimms(spec, spans, dimms, page_bytes, *by_use)
            }
        }
    }

    /// Bytes of the reserve of each node, unless something else is asked for.
    fn reserve(&self) -> u64 {
        match self {
            About::Bins(cache) => cache.bytes / 8,
            About::Dimms { .. } => 64 << 20,
        }
    }

    fn dimms(&self) -> Vec<DimmRange> {
        match self {
            About::Bins(_) => Vec::new(),
            About::Dimms { map, .. } => map.clone(),
        }
    }

    fn words(&self, page_bytes: u64) -> String {
        match self {
            About::Bins(cache) => format!(
                "bins of {} in a cache of {} and {} of each node",
                size(page_bytes),
                size(cache.bytes),
                match cache.ways {
                    1 => "one way".to_string(),
                    ways => format!("{ways} ways"),
                }
            ),
            About::Dimms { map, .. } => {
                let names: Vec<&str> = map.iter().map(|dimm| dimm.name.as_str()).collect();
                format!(
                    "pages of {} on DIMMs {}",
                    size(page_bytes),
                    names.join(", ")
                )
            }
        }
    }
}

/// The DRAM cache: as given, or as the kernel tells.
fn cache(a: &TierArgs) -> Result<CacheOfNodes, Failure> {
    let bytes = match a.cache {
        Some(bytes) => bytes.0,
        None => {
            let (topology, _) = Topology::read(Path::new("/"));
            topology.dram_cache_bytes().map_err(|_| {
                wrong(
                    "the kernel reports no single DRAM cache on this machine (/sys/devices/system/node/node*/memory_side_cache): give its size for each node, such as --cache 48GiB",
                )
            })?
        }
    };
    let unit = 4096 * u64::from(a.ways);
    if bytes == 0 || !bytes.is_multiple_of(unit) {
        return Err(wrong(format!(
            "--cache: {bytes} bytes are not a whole number of pages of 4 KiB in each of {} ways",
            a.ways
        )));
    }
    Ok(CacheOfNodes {
        bytes,
        ways: a.ways,
    })
}

/// Other mechanisms that migrate pages into other frames.
fn rivals() -> Vec<String> {
    let balancing = std::fs::read_to_string("/proc/sys/kernel/numa_balancing");
    match balancing.as_deref().map(str::trim) {
        Ok("0") | Err(_) => Vec::new(),
        Ok(mode) => vec![format!(
            "NUMA balancing is on (kernel.numa_balancing = {mode}) and moves pages to other nodes, and so to other frames; it stays on, and its migrations are counted (sysctl kernel.numa_balancing=0 turns it off)"
        )],
    }
}
