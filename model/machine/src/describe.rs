//! A machine as data. One TOML file per machine in `machines/`; every number has a source in its `[sources]` table.
//!
//! Bandwidths are GB/s (10^9), capacities are bytes written as `64GiB`, times are ns, clocks are GHz or MT/s.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use varve_spec::Bytes;

/// A machine: sockets that are alike, each with cores, caches and memory devices, and the links that join them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name, the same as the file's.
    pub name: String,
    /// One line: kind of machine, and where it was used.
    pub about: String,
    /// Sockets (NUMA nodes with cores).
    pub sockets: u32,
    /// How memory is exposed to the operating system.
    pub mode: Mode,
    /// One core.
    pub core: Core,
    /// Address translation of one core.
    pub tlb: Tlb,
    /// First-level data cache of one core.
    pub l1: Cache,
    /// Second-level cache of one core.
    pub l2: Cache,
    /// Last-level cache of one socket.
    pub llc: Cache,
    /// Hardware stream prefetcher of one core.
    pub prefetch: Prefetch,
    /// Memory controllers: shared by everything on a channel.
    pub controller: Controller,
    /// DRAM of one socket.
    pub dram: Dram,
    /// Persistent memory of one socket, on the same channels as the DRAM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pm: Option<Pm>,
    /// CXL expander of one socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cxl: Option<Cxl>,
    /// DRAM as a cache in front of the slow memory; required by `mode = "memory-mode"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram_cache: Option<DramCache>,
    /// Link between sockets; required with more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Power of the processors, for energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuPower>,
    /// Costs of the operating system's page work.
    pub os: Os,
    /// Where each number comes from: a dotted key (or the prefix of several) to a citation.
    pub sources: BTreeMap<String, String>,
}

/// How memory is exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each kind of memory of each socket is a NUMA node.
    Flat,
    /// The slow memory of each socket is one node; DRAM is its cache (Intel's memory mode).
    MemoryMode,
}

/// One core, as an interval model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Physical cores per socket.
    pub per_socket: u32,
    /// Hardware threads per core.
    pub threads: u32,
    /// Clock under load, GHz.
    pub ghz: f64,
    /// Instructions per cycle while no access misses the first-level cache.
    pub ipc: f64,
    /// Reorder buffer, instructions: how far the core runs ahead of a missing load.
    pub reorder_buffer: u32,
    /// Lines that may miss the first-level cache at once (line fill buffers).
    pub fill_buffers: u32,
    /// ... for stores. Stores enter the cache in order, and the core asks for the lines of the oldest few alone.
    pub store_misses: u32,
    /// Lines that may be in flight beyond the second-level cache, prefetches included (super queue).
    pub super_queue: u32,
    /// Lines that the last-level cache pushed out for a core's, and that may wait until memory takes them.
    pub evictions: u32,
    /// Stores that may wait to enter the first-level cache.
    pub store_buffer: u32,
    /// Time that a non-temporal store to idle local DRAM keeps its fill buffer, ns.
    pub stream_ns: f64,
    /// Least time between two write-backs (CLWB) of a core, ns.
    pub write_back_ns: f64,
}

/// Address translation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// First-level entries.
    pub l1_entries: u32,
    /// Ways of the first level.
    pub l1_ways: u32,
    /// Second-level entries, shared by 4 KiB and 2 MiB pages.
    pub l2_entries: u32,
    /// Ways of the second level.
    pub l2_ways: u32,
    /// First-level miss that hits the second level, ns.
    pub l2_ns: f64,
    /// Page walk with the upper levels cached, 4 KiB pages, ns.
    pub walk_4k_ns: f64,
    /// Page walk with the upper levels cached, 2 MiB pages, ns.
    pub walk_2m_ns: f64,
}

/// One set-associative, write-back, write-allocate cache of 64 B lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Capacity.
    pub bytes: Bytes,
    /// Ways.
    pub ways: u32,
    /// Load-to-use latency of a hit, ns.
    pub ns: f64,
}

/// A stream prefetcher into the second-level cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetch {
    /// Streams tracked; 0 switches it off.
    pub streams: u32,
    /// How many lines ahead of the program.
    pub distance: u32,
}

/// Queues of the memory controller, per channel, shared by DRAM and PM requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// From the last-level cache's miss to the channel and back, without the memory itself, ns.
    pub overhead_ns: f64,
    /// Read queue entries.
    pub read_queue: u32,
    /// Write queue entries.
    pub write_queue: u32,
    /// Writes are drained in earnest above this fill, entries.
    pub drain_high: u32,
    /// ... and until this fill, entries.
    pub drain_low: u32,
}

/// DRAM DIMMs of one socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// Channels populated.
    pub channels: u32,
    /// DIMMs per channel.
    pub dimms_per_channel: u32,
    /// Capacity of one DIMM.
    pub dimm_bytes: Bytes,
    /// Ranks of one DIMM.
    pub ranks: u32,
    /// Banks of one rank.
    pub banks: u32,
    /// Row (page) of one rank across its devices.
    pub row_bytes: Bytes,
    /// Consecutive bytes on one channel before the next; 0: each DIMM is filled before the next (interleaving off).
    pub interleave_bytes: Bytes,
    /// Transfers per second, millions.
    pub mts: u32,
    /// Column access, ns (CL).
    pub cl_ns: f64,
    /// Row to column, ns (tRCD).
    pub rcd_ns: f64,
    /// Precharge, ns (tRP).
    pub rp_ns: f64,
    /// Row active at least, ns (tRAS).
    pub ras_ns: f64,
    /// Four activates of one rank within, ns (tFAW).
    pub faw_ns: f64,
    /// Turning the bus from reads to writes and back, ns, both turns together.
    pub turnaround_ns: f64,
    /// Refresh of one rank, ns (tRFC).
    pub rfc_ns: f64,
    /// Refresh interval, ns (tREFI).
    pub refi_ns: f64,
    /// An idle rank enters power-down after, ns.
    pub powerdown_after_ns: f64,
    /// Leaving power-down, ns (tXP).
    pub powerdown_exit_ns: f64,
    /// An idle rank enters self-refresh after, ns.
    pub selfrefresh_after_ns: f64,
    /// Leaving self-refresh, ns (tXS).
    pub selfrefresh_exit_ns: f64,
    /// Device currents and voltage, for energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<DramPower>,
}

/// Currents of one DRAM device in mA, and the devices of a rank (JEDEC's names).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramPower {
    /// Supply, V.
    pub vdd: f64,
    /// Devices of one rank, ECC included.
    pub devices: u32,
    /// One bank activate-precharge.
    pub idd0_ma: f64,
    /// Precharge stand-by.
    pub idd2n_ma: f64,
    /// Precharge power-down.
    pub idd2p_ma: f64,
    /// Active stand-by.
    pub idd3n_ma: f64,
    /// Active power-down.
    pub idd3p_ma: f64,
    /// Burst read.
    pub idd4r_ma: f64,
    /// Burst write.
    pub idd4w_ma: f64,
    /// Burst refresh.
    pub idd5_ma: f64,
    /// Self-refresh.
    pub idd6_ma: f64,
    /// The register of one DIMM with its clock on, mA; left out where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register_ma: Option<f64>,
    /// The same while all of the DIMM's ranks sleep, mA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register_powerdown_ma: Option<f64>,
    /// The same in self-refresh, when the clock is off, mA; as in power-down where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register_selfrefresh_ma: Option<f64>,
    /// Drivers and termination on the channel for 64 B, nJ; left out where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_nj: Option<f64>,
}

/// Power of a processor: a base that depends on whether anything runs on the socket, and a constant for each busy core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuPower {
    /// A socket on which nothing runs, W.
    pub asleep_w: f64,
    /// A socket on which something runs, without its cores, W.
    pub awake_w: f64,
    /// A core on which a thread runs, waits for memory, or spins, W.
    pub core_w: f64,
}

/// Persistent-memory DIMMs of one socket (Optane-class): 256 B media lines behind a small buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pm {
    /// DIMMs, one per channel.
    pub dimms: u32,
    /// Capacity of one DIMM.
    pub dimm_bytes: Bytes,
    /// Consecutive bytes on one DIMM before the next; 0 switches interleaving off.
    pub interleave_bytes: Bytes,
    /// Media line.
    pub line_bytes: Bytes,
    /// Write-combining buffer in the DIMM.
    pub buffer_bytes: Bytes,
    /// A read that hits the DIMM's buffer, from the channel and back, ns.
    pub buffer_ns: f64,
    /// Reading a media line into the buffer, on top of `buffer_ns`, ns.
    pub media_read_ns: f64,
    /// Media read bandwidth of one DIMM, GB/s of media lines.
    pub media_read_gbps: f64,
    /// Media write bandwidth of one DIMM, GB/s of media lines.
    pub media_write_gbps: f64,
    /// Energy of reading one media line, nJ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_nj: Option<f64>,
    /// Energy of writing one media line, nJ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_nj: Option<f64>,
    /// Power of an idle DIMM, W.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_w: Option<f64>,
}

/// A CXL.mem expander of one socket: DRAM behind a serial link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cxl {
    /// Capacity.
    pub bytes: Bytes,
    /// Link and device controllers, there and back, without the DRAM, ns.
    pub link_ns: f64,
    /// Payload bandwidth towards the host, GB/s.
    pub read_gbps: f64,
    /// Payload bandwidth towards the device, GB/s.
    pub write_gbps: f64,
    /// DRAM channels of the device.
    pub channels: u32,
    /// Their transfers per second, millions.
    pub mts: u32,
    /// Outstanding requests that the device takes.
    pub queue: u32,
}

/// DRAM as a cache of 64 B lines in front of slow memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramCache {
    /// Capacity usable as a cache, per socket.
    pub bytes: Bytes,
    /// Ways; 1 is direct-mapped, as hardware is.
    pub ways: u32,
    /// What a read that pushes a dirty line out takes beyond its reads and writes of memory, ns; where left out, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict_ns: Option<f64>,
}

/// The link between sockets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Added to a remote access, there and back, ns.
    pub ns: f64,
    /// Bandwidth from a socket to the others, headers included, GB/s; the same holds for the other direction.
    pub gbps: f64,
    /// Record in memory of lines that other sockets cache.
    #[serde(default, skip_serializing_if = "Directory::is_none")]
    pub directory: Directory,
}

/// Record in memory of lines that other sockets cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directory {
    /// Nothing: every socket is asked.
    #[default]
    None,
    /// Memory keeps with each line whether another socket may have it (Intel since Skylake).
    Memory,
}

impl Directory {
    fn is_none(&self) -> bool {
        *self == Directory::None
    }
}

/// Costs of page work, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Os {
    /// A minor fault without zeroing.
    pub fault_ns: f64,
    /// Taking one event sample: the interrupt that the sampled core handles, spread over the samples it carries.
    pub sample_ns: f64,
    /// Page-table update and book-keeping of one page move, paid by the daemon.
    pub remap_ns: f64,
    /// One TLB shoot-down, paid by every core that runs the program.
    pub shootdown_ns: f64,
    /// Time slice of a runnable thread when cores are shared.
    pub slice_ns: f64,
}
