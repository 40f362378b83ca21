//! Description of this machine: its memory and processors as Linux describes them, and a short measurement.

pub(crate) mod cpus;
mod dimm;
mod dimm_places;
pub(crate) mod measure;
pub(crate) mod memory;
pub(crate) mod sysfs;
mod topology;

pub use cpus::{Cpus, allowed_cpus};
pub use dimm::Dimm;
pub use dimm_places::{DimmPlace, dimm_places};
pub use measure::{Bandwidth, Latency, StreamTraffic};
pub use sysfs::bytes_of;
pub use topology::{Attached, Cache, CxlDevice, DaxDevice, Node, Processor, SideCache, Topology};

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// A machine as probed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Linux's description of it.
    pub topology: Topology,
    /// Idle latency by memory node and size.
    pub latency: Vec<Latency>,
    /// Bandwidth by memory node, traffic and threads.
    pub bandwidth: Vec<Bandwidth>,
    /// Time that the measurement took, seconds.
    pub seconds: f64,
    /// Failures to read or measure, one line each.
    pub notes: Vec<String>,
}

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeOptions {
    /// Time for all measurements together, seconds. 0 measures nothing.
    pub seconds: f64,
    /// Memory used per node at a time, bytes, at most.
    pub bytes: usize,
}

impl Default for ProbeOptions {
    fn default() -> ProbeOptions {
        ProbeOptions {
            seconds: 4.0,
            bytes: 512 << 20,
        }
    }
}

/// Probes the machine that this program runs on. Never fails: what is missing is in the notes.
pub fn probe(options: &ProbeOptions) -> Probe {
    let begun = Instant::now();
    let (topology, mut notes) = Topology::read(Path::new("/"));
    let (mut latency, mut bandwidth) = (Vec::new(), Vec::new());
    if options.seconds > 0.0 {
        let budget = Duration::from_secs_f64(options.seconds);
        measure::all(
            &topology,
            budget,
            options.bytes,
            &mut latency,
            &mut bandwidth,
            &mut notes,
        );
    }
    Probe {
        topology,
        latency,
        bandwidth,
        seconds: begun.elapsed().as_secs_f64(),
        notes,
    }
}
