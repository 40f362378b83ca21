//! A machine from measurements of the one that we run on.

use std::collections::BTreeMap;

use crate::describe::{Cache, Controller, Core, Cxl, Dram, Link, Machine, Mode, Os, Prefetch, Tlb};
use crate::units::Bytes;

/// A cache as found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbedCache {
    /// Capacity of one instance, bytes.
    pub bytes: u64,
    /// Ways.
    pub ways: u32,
    /// Measured latency of a hit, ns; `None` where it was not measured.
    pub ns: Option<f64>,
}

/// Memory of one node as found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbedMemory {
    /// Capacity, bytes.
    pub bytes: u64,
    /// Measured latency of a random read, ns.
    pub read_ns: f64,
    /// Measured read bandwidth with all cores, GB/s.
    pub read_gbps: f64,
    /// Measured write bandwidth with all cores, GB/s; `None` where it was not measured.
    pub write_gbps: Option<f64>,
}

/// What a probe of the running machine found. Plain numbers; what is `None` or empty takes a stated assumption.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbedMachine {
    /// The processor's own name.
    pub cpu: String,
    /// Sockets with cores.
    pub sockets: u32,
    /// Cores per socket.
    pub cores_per_socket: u32,
    /// Hardware threads per core.
    pub threads_per_core: u32,
    /// Clock, GHz; `None` where the system does not tell.
    pub ghz: Option<f64>,
    /// L1 data cache of one core.
    pub l1: ProbedCache,
    /// L2 of one core.
    pub l2: ProbedCache,
    /// Last level of one socket; `None` where there are two levels only.
    pub llc: Option<ProbedCache>,
    /// Memory of one socket's own node.
    pub dram: ProbedMemory,
    /// A slower node without cores on one socket, if there is one: described as a CXL expander.
    pub slow: Option<ProbedMemory>,
    /// Memory of another socket, as seen from the first.
    pub remote: Option<ProbedMemory>,
}

/// DDR4-3200AA: 22-22-22.
const ROW_NS: f64 = 13.75;
const MTS: u32 = 3200;
/// One bus of 8 B at that rate, GB/s.
const CHANNEL_GBPS: f64 = 25.6;
/// Share of a bus's peak that reads reach, about, on any DDR4 or DDR5 server.
const REACHED: f64 = 0.8;

impl Machine {
    /// A machine called `here` from what a probe found. Measured values have the source "probed"; the rest, which no
    /// probe can see, is assumed and says so. Odd numbers (a cache that virtualization cut) are rounded to whole sets.
    pub fn from_probe(p: &ProbedMachine) -> Machine {
        let mut sources = Sources(BTreeMap::new());
        let ghz = positive(p.ghz.unwrap_or(0.0), 2.5);
        sources.probed_or(
            "core.ghz",
            p.ghz.is_some_and(|g| g > 0.0),
            "2.5 GHz, the system does not tell",
        );
        let l1 = sources.cache("l1", p.l1, 5.0 / ghz, 64 * 1024, Bytes(0), 0.0);
        let l2 = sources.cache("l2", p.l2, 14.0 / ghz, 1 << 20, l1.bytes, l1.ns);
        let found = p.llc.unwrap_or(ProbedCache { ns: None, ..p.l2 });
        let llc = sources.cache(
            "llc",
            found,
            (50.0 / ghz).max(l2.ns),
            32 << 20,
            l2.bytes,
            l2.ns,
        );

        let read_ns = positive(p.dram.read_ns, 100.0);
        let bus = 8.0 * 1000.0 / f64::from(MTS);
        let overhead_ns = (read_ns - llc.ns - 2.0 * ROW_NS - bus).max(1.0);
        let channels = (positive(p.dram.read_gbps, CHANNEL_GBPS) / REACHED / CHANNEL_GBPS)
            .ceil()
            .clamp(1.0, 64.0) as u32;
        let dimm = (p.dram.bytes / u64::from(channels) / 4096).max(1) * 4096;
        sources.assume("core", &format!("a recent out-of-order core ({})", p.cpu));
        sources.probed("core.per_socket");
        sources.probed("core.threads");
        sources.probed("sockets");
        sources.assume("tlb", "1536 second-level entries in 12 ways, as Skylake's");
        sources.assume("prefetch", "32 streams, 20 lines ahead, as Skylake's");
        sources.assume("controller", "queues as Skylake's");
        sources.note(
            "controller.overhead_ns",
            "probed: what the latency of a random read leaves after llc.ns, row and burst",
        );
        sources.assume(
            "dram",
            "DDR4-3200AA, 22-22-22, two ranks: no probe sees the DIMMs",
        );
        sources.note(
            "dram.channels",
            "probed: as many as the read bandwidth needs at 80 % of a DDR4-3200 bus",
        );
        sources.note(
            "dram.dimm_bytes",
            "probed: the node's capacity over the channels",
        );
        sources.assume("os", "costs of page work as on Cascade Lake");

        let link = (p.sockets > 1).then(|| {
            sources.probed_or(
                "link.ns",
                p.remote.is_some(),
                "60 ns, usual for two sockets",
            );
            sources.probed_or(
                "link.gbps",
                p.remote.is_some(),
                "40 GB/s, usual for two sockets",
            );
            Link {
                ns: p.remote.map_or(60.0, |r| (r.read_ns - read_ns).max(1.0)),
                gbps: p.remote.map_or(40.0, |r| positive(r.read_gbps, 40.0)),
            }
        });
        let cxl = p.slow.map(|s| {
            sources.note(
                "cxl",
                "probed: a node without cores, described as an expander",
            );
            sources.assume(
                "cxl.queue",
                "as many requests as the bandwidth keeps in flight",
            );
            sources.assume("cxl.mts", "DDR4-3200");
            let read = positive(s.read_gbps, CHANNEL_GBPS);
            Cxl {
                bytes: Bytes((s.bytes / 4096).max(1) * 4096),
                link_ns: (positive(s.read_ns, 250.0) - llc.ns - 2.0 * ROW_NS - bus).max(1.0),
                read_gbps: read,
                write_gbps: positive(s.write_gbps.unwrap_or(0.0), read),
                channels: (read / CHANNEL_GBPS).ceil().clamp(1.0, 64.0) as u32,
                mts: MTS,
                queue: (read * positive(s.read_ns, 250.0) / 64.0)
                    .ceil()
                    .clamp(1.0, 4096.0) as u32,
            }
        });
        Machine {
            name: "here".into(),
            about: format!(
                "this machine, probed: {}",
                if p.cpu.trim().is_empty() {
                    "unnamed processor"
                } else {
                    p.cpu.trim()
                }
            ),
            sockets: p.sockets.max(1),
            mode: Mode::Flat,
            core: Core {
                per_socket: p.cores_per_socket.max(1),
                threads: p.threads_per_core.max(1),
                ghz,
                ipc: 2.0,
                reorder_buffer: 224,
                fill_buffers: 12,
                super_queue: 16,
                store_buffer: 56,
            },
            tlb: Tlb {
                l1_entries: 64,
                l2_entries: 1536,
                l2_ways: 12,
                l2_ns: 9.0 / ghz,
                walk_4k_ns: llc.ns + 3.0,
                walk_2m_ns: (l2.ns + llc.ns) / 2.0,
            },
            prefetch: Prefetch {
                streams: 32,
                distance: 20,
            },
            controller: Controller {
                overhead_ns,
                read_queue: 22,
                write_queue: 32,
                drain_high: 24,
                drain_low: 8,
            },
            dram: Dram {
                channels,
                dimms_per_channel: 1,
                dimm_bytes: Bytes(dimm),
                ranks: 2,
                banks: 16,
                row_bytes: Bytes(8192),
                interleave_bytes: Bytes(256),
                mts: MTS,
                cl_ns: ROW_NS,
                rcd_ns: ROW_NS,
                rp_ns: ROW_NS,
                ras_ns: 32.0,
                faw_ns: 21.0,
                turnaround_ns: 17.5,
                rfc_ns: 350.0,
                refi_ns: 7800.0,
                powerdown_after_ns: 100.0,
                powerdown_exit_ns: 6.0,
                selfrefresh_after_ns: 1e6,
                selfrefresh_exit_ns: 360.0,
                power: None,
            },
            pm: None,
            cxl,
            dram_cache: None,
            link,
            os: Os {
                fault_ns: 700.0,
                sample_ns: 250.0,
                remap_ns: 2000.0,
                shootdown_ns: 1000.0,
                slice_ns: 3e6,
            },
            l1,
            l2,
            llc,
            sources: sources.0,
        }
    }
}

/// The number if it can be one, else the assumption.
fn positive(number: f64, otherwise: f64) -> f64 {
    if number.is_finite() && number > 0.0 && number < 1e9 {
        number
    } else {
        otherwise
    }
}

struct Sources(BTreeMap<String, String>);

impl Sources {
    fn note(&mut self, key: &str, text: &str) {
        self.0.insert(key.into(), text.into());
    }

    fn probed(&mut self, key: &str) {
        self.note(key, "probed");
    }

    fn assume(&mut self, key: &str, text: &str) {
        self.note(key, &format!("assumption: {text}"));
    }

    fn probed_or(&mut self, key: &str, found: bool, text: &str) {
        if found {
            self.probed(key)
        } else {
            self.assume(key, text)
        }
    }

    /// A cache of whole sets, no smaller and no faster than the level above.
    fn cache(
        &mut self,
        key: &str,
        c: ProbedCache,
        ns: f64,
        bytes: u64,
        least: Bytes,
        fastest: f64,
    ) -> Cache {
        self.probed_or(key, c.bytes > 0, "a usual size, the system does not tell");
        self.probed_or(
            &format!("{key}.ns"),
            c.ns.is_some(),
            "the cycles of a usual core",
        );
        let ways = c.ways.clamp(1, 64);
        let set = u64::from(ways) * 64;
        let bytes = if c.bytes > 0 {
            c.bytes.min(1 << 40)
        } else {
            bytes
        };
        let sets = (bytes / set).max(least.0.div_ceil(set)).max(1);
        Cache {
            bytes: Bytes(sets * set),
            ways,
            ns: positive(c.ns.unwrap_or(0.0), ns).max(fastest),
        }
    }
}
