//! A machine from measurements of the one that we run on.

use std::collections::BTreeMap;

use super::rules::{MAX_BYTES, MAX_SETS};
use crate::describe::{
    Cache, Controller, Core, Cxl, Directory, Dram, Link, Machine, Mode, Os, Prefetch, Tlb,
};
use varve_spec::Bytes;

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

/// Findings of a probe of the running machine. Plain numbers; a stated assumption stands in for each that is `None` or
/// empty.
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
    /// Clock, GHz; `None` where the system does not report it.
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
/// Refresh of 8 Gb devices and its interval.
const RFC_NS: f64 = 350.0;
const REFI_NS: f64 = 7800.0;
/// One bus of 8 B at that rate, GB/s.
const CHANNEL_GBPS: f64 = 25.6;
/// Share of a bus's peak that reads reach, about, on any DDR4 or DDR5 server.
const REACHED: f64 = 0.8;

impl Machine {
    /// A machine called `here` from a probe's findings. Measured values have the source "probed"; the others, which no
    /// probe can measure, are assumptions and have that as their source. Odd numbers (a cache that virtualization cut)
    /// are rounded to whole sets.
    pub fn from_probe(p: &ProbedMachine) -> Machine {
        let mut sources = Sources(BTreeMap::new());
        let sockets = p.sockets.clamp(1, 64);
        // The frames of all memory together stay within the range of frame numbers.
        let most = MAX_BYTES / 4 / u64::from(sockets);
        sources.assume("core", &format!("a recent out-of-order core ({})", p.cpu));
        for key in ["sockets", "core.per_socket", "core.threads"] {
            sources.note(key, "probed");
        }
        let ghz = sources.measured("core.ghz", p.ghz, 2.5, "GHz");
        let l1 = sources.cache("l1", p.l1, 5.0 / ghz, 16 << 20, None);
        let l2 = sources.cache("l2", p.l2, 14.0 / ghz, 256 << 20, Some(&l1));
        let found = p.llc.unwrap_or(ProbedCache { ns: None, ..p.l2 });
        let llc = sources.cache("llc", found, 50.0 / ghz, 1 << 30, Some(&l2));
        sources.assume("tlb", "1536 second-level entries in 12 ways, as Skylake's");
        sources.assume("prefetch", "32 streams, 20 lines ahead, as Skylake's");
        sources.assume("controller", "queues as Skylake's");
        sources.assume("os", "costs of page work as on Cascade Lake");

        // The known parts of a random read's latency, so that the rest can be attributed (see `Machine::idle_read_ns`).
        let tlb_ns = 9.0 / ghz;
        let row_ns = 2.0 * ROW_NS;
        let refresh_ns = RFC_NS * RFC_NS / (2.0 * REFI_NS);
        let burst_ns = 64.0 / CHANNEL_GBPS;
        sources.assume(
            "dram",
            "DDR4-3200AA, 22-22-22, two ranks: no probe sees the DIMMs",
        );
        let read_ns = sources.measured(
            "controller.overhead_ns",
            Some(p.dram.read_ns),
            100.0,
            "ns of a random read, less the known parts of its latency",
        );
        let overhead_ns = (read_ns - tlb_ns - llc.ns - row_ns - burst_ns - refresh_ns).max(1.0);
        let read_gbps = sources.measured(
            "dram.channels",
            Some(p.dram.read_gbps),
            CHANNEL_GBPS,
            "GB/s of reads, at 80 % of a DDR4-3200 bus each",
        );
        let channels = (read_gbps / REACHED / CHANNEL_GBPS).ceil().clamp(1.0, 64.0) as u32;
        sources.note(
            "dram.dimm_bytes",
            "probed: the node's capacity over the channels",
        );
        let dimm = whole_pages(p.dram.bytes.min(most) / u64::from(channels));

        let link = (sockets > 1).then(|| Link {
            ns: sources.measured(
                "link.ns",
                p.remote.map(|r| r.read_ns - read_ns),
                60.0,
                "ns later than local memory",
            ),
            gbps: sources.measured(
                "link.gbps",
                p.remote.map(|r| r.read_gbps * 9.0 / 8.0),
                40.0,
                "GB/s of reads, and their headers",
            ),
            directory: Directory::None,
        });
        let cxl = p.slow.map(|s| {
            sources.note(
                "cxl.bytes",
                "probed: a node without cores, described as an expander",
            );
            sources.assume(
                "cxl.queue",
                "as many requests as the bandwidth keeps in flight",
            );
            sources.assume(
                "cxl.channels",
                "as many DDR4-3200 channels as the bandwidth needs",
            );
            sources.assume("cxl.mts", "DDR4-3200");
            let ns = sources.measured(
                "cxl.link_ns",
                Some(s.read_ns),
                250.0,
                "ns of a random read, less the known parts of its latency",
            );
            let read = sources.measured(
                "cxl.read_gbps",
                Some(s.read_gbps),
                CHANNEL_GBPS,
                "GB/s of reads",
            );
            let write = sources.measured("cxl.write_gbps", s.write_gbps, read, "GB/s of writes");
            Cxl {
                bytes: Bytes(whole_pages(s.bytes.min(most))),
                // What DRAM takes, the device's takes too.
                link_ns: (ns - read_ns - 64.0 / read).max(1.0),
                read_gbps: read,
                write_gbps: write,
                channels: (read / CHANNEL_GBPS).ceil().clamp(1.0, 64.0) as u32,
                mts: MTS,
                queue: (read * ns / 64.0).ceil().clamp(1.0, 4096.0) as u32,
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
            sockets,
            mode: Mode::Flat,
            core: Core {
                per_socket: p.cores_per_socket.clamp(1, 4096),
                threads: p.threads_per_core.clamp(1, 64),
                ghz,
                ipc: 2.0,
                reorder_buffer: 224,
                fill_buffers: 12,
                store_misses: 7,
                super_queue: 16,
                evictions: 32,
                store_buffer: 56,
                stream_ns: 168.0,
                write_back_ns: 44.0,
            },
            tlb: Tlb {
                l1_entries: 64,
                l1_ways: 4,
                l2_entries: 1536,
                l2_ways: 12,
                l2_ns: tlb_ns,
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
                rfc_ns: RFC_NS,
                refi_ns: REFI_NS,
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
            cpu: None,
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

/// Firmware keeps odd amounts of memory for itself: the rest, down to whole large pages, so that every page size fits.
fn whole_pages(bytes: u64) -> u64 {
    const LARGE_PAGE: u64 = 2 << 20;
    (bytes / LARGE_PAGE).max(1) * LARGE_PAGE
}

struct Sources(BTreeMap<String, String>);

impl Sources {
    fn note(&mut self, key: &str, text: &str) {
        self.0.insert(key.into(), text.into());
    }

    fn assume(&mut self, key: &str, text: &str) {
        self.note(key, &format!("assumption: {text}"));
    }

    /// The number if it can be a measurement of anything in a machine, else the assumption; records which it was.
    fn measured(&mut self, key: &str, found: Option<f64>, otherwise: f64, what: &str) -> f64 {
        match found.filter(|x| (1e-3..1e9).contains(x)) {
            Some(x) => {
                self.note(key, &format!("probed: {x:.4} {what}"));
                x
            }
            None => {
                self.assume(
                    key,
                    &format!("{otherwise:.4} {what}, which was not measured"),
                );
                otherwise
            }
        }
    }

    /// A cache of 64 sets or more, no smaller and no faster than the one above, and of `most` bytes at most. If the
    /// system does not report its size, it is as large as a usual one, or as the one above.
    fn cache(
        &mut self,
        key: &str,
        c: ProbedCache,
        ns: f64,
        most: u64,
        above: Option<&Cache>,
    ) -> Cache {
        match c.bytes {
            0 => self.assume(key, "a usual size, the system does not report it"),
            _ => self.note(key, "probed"),
        }
        let ns = self.measured(&format!("{key}.ns"), c.ns, ns, "ns");
        let (least, fastest) = above.map_or((0, 0.0), |a| (a.bytes.0, a.ns));
        let ways = if c.ways == 0 { 16 } else { c.ways.min(64) };
        let set = u64::from(ways) * 64;
        // 32 KiB, 512 KiB and 2 MiB: the capacities that `most` stands for, over 512.
        let bytes = if c.bytes > 0 {
            c.bytes.min(most)
        } else {
            most / 512
        };
        let sets = (bytes / set).max(least.div_ceil(set)).clamp(64, MAX_SETS);
        Cache {
            bytes: Bytes(sets * set),
            ways,
            ns: ns.max(fastest),
        }
    }
}
