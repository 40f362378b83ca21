//! A machine in a few lines, for people and as JSON.

use serde::Serialize;
use std::fmt;

use super::nodes::{NodeKind, NumaNode};
use crate::describe::{Machine, Mode};
use varve_spec::Bytes;

/// A machine in brief.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineSummary {
    /// Name.
    pub name: String,
    /// One line.
    pub about: String,
    /// How memory is exposed.
    pub mode: Mode,
    /// Sockets.
    pub sockets: u32,
    /// Cores of one socket.
    pub cores_per_socket: u32,
    /// Hardware threads of one core.
    pub threads_per_core: u32,
    /// Clock under load, GHz.
    pub ghz: f64,
    /// L1, L2, LLC.
    pub caches: Vec<CacheLevelSummary>,
    /// Memories of one socket.
    pub memories: Vec<Tier>,
    /// DRAM of one socket that caches the slow memory.
    pub dram_cache: Option<Bytes>,
    /// NUMA nodes; a node's number is its place.
    pub nodes: Vec<NumaNode>,
    /// Sum of the nodes.
    pub total: Bytes,
    /// Numbers in the file.
    pub numbers: usize,
    /// Numbers whose source is an assumption.
    pub assumed: usize,
}

/// One cache level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheLevelSummary {
    /// `L1`, `L2` or `LLC`.
    pub name: &'static str,
    /// Capacity, of one core (L1, L2) or one socket (LLC).
    pub bytes: Bytes,
    /// Ways.
    pub ways: u32,
    /// Latency of a hit, ns.
    pub ns: f64,
}

/// One kind of memory of one socket.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// Kind.
    pub kind: NodeKind,
    /// Capacity.
    pub bytes: Bytes,
    /// How it is built, such as `4 x 126GiB`.
    pub parts: String,
    /// Idle latency of a local random read, ns: see [`Machine::idle_read_ns`].
    pub idle_read_ns: f64,
    /// Peak read bandwidth, GB/s.
    pub peak_read_gbps: f64,
    /// Peak write bandwidth, GB/s.
    pub peak_write_gbps: f64,
}

impl Machine {
    /// The machine in brief. Its `Display` is the output of `varve machine show`.
    pub fn summary(&self) -> MachineSummary {
        let level = |name, c: &crate::describe::Cache| CacheLevelSummary {
            name,
            bytes: c.bytes,
            ways: c.ways,
            ns: c.ns,
        };
        let (numbers, assumed) = super::numbers::count_sources(self);
        MachineSummary {
            name: self.name.clone(),
            about: self.about.clone(),
            mode: self.mode,
            sockets: self.sockets,
            cores_per_socket: self.core.per_socket,
            threads_per_core: self.core.threads,
            ghz: self.core.ghz,
            caches: vec![
                level("L1", &self.l1),
                level("L2", &self.l2),
                level("LLC", &self.llc),
            ],
            memories: self.tiers(),
            dram_cache: self.dram_cache.as_ref().map(|c| c.bytes),
            nodes: self.nodes(),
            total: Bytes(self.total_bytes()),
            numbers,
            assumed,
        }
    }

    /// Mean latency of a local random read on an idle machine, ns, as the file's numbers add up: the caches and the
    /// first-level TLB miss, the second-level TLB hits, the row is closed, the media line is not in the DIMM's buffer,
    /// and refresh is in the way as often as it is. 0 without that memory.
    pub fn idle_read_ns(&self, kind: NodeKind) -> f64 {
        let d = &self.dram;
        let burst = 64.0 / self.channel_gbps();
        let to_channel = self.tlb.l2_ns + self.llc.ns + self.controller.overhead_ns;
        let refresh = d.rfc_ns * d.rfc_ns / (2.0 * d.refi_ns);
        match kind {
            NodeKind::Dram => to_channel + d.rcd_ns + d.cl_ns + burst + refresh,
            NodeKind::Pm => self
                .pm
                .as_ref()
                .map_or(0.0, |p| to_channel + p.buffer_ns + p.media_read_ns + burst),
            // The device's DRAM has the host's row timing.
            NodeKind::Cxl => self.cxl.as_ref().map_or(0.0, |c| {
                let transfers = 64.0 / c.read_gbps + 8000.0 / f64::from(c.mts);
                to_channel + c.link_ns + d.rcd_ns + d.cl_ns + transfers + refresh
            }),
        }
    }

    fn tiers(&self) -> Vec<Tier> {
        let d = &self.dram;
        let tier = |kind, bytes, parts| Tier {
            kind,
            bytes: Bytes(bytes),
            parts,
            idle_read_ns: self.idle_read_ns(kind),
            peak_read_gbps: self.peak_read_gbps(kind),
            peak_write_gbps: self.peak_write_gbps(kind),
        };
        let parts = format!(
            "{} channels x {} x {} DDR-{}",
            d.channels, d.dimms_per_channel, d.dimm_bytes, d.mts
        );
        let mut tiers = vec![tier(NodeKind::Dram, self.dram_bytes(), parts)];
        if let Some(p) = &self.pm {
            tiers.push(tier(
                NodeKind::Pm,
                self.pm_bytes(),
                format!("{} x {}", p.dimms, p.dimm_bytes),
            ));
        }
        if let Some(c) = &self.cxl {
            tiers.push(tier(
                NodeKind::Cxl,
                c.bytes.0,
                format!("{} x DDR-{} behind the link", c.channels, c.mts),
            ));
        }
        tiers
    }
}

impl fmt::Display for MachineSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.about)?;
        writeln!(
            f,
            "  cores    {} x {} cores x {} threads, {} GHz",
            self.sockets, self.cores_per_socket, self.threads_per_core, self.ghz
        )?;
        for c in &self.caches {
            writeln!(
                f,
                "  {:<8} {}, {} ways, {:.1} ns",
                c.name, c.bytes, c.ways, c.ns
            )?;
        }
        for m in &self.memories {
            writeln!(
                f,
                "  {:<8} {} per socket ({}), idle read {:.0} ns, peak {:.1} GB/s read, {:.1} GB/s write",
                kind_name(m.kind),
                m.bytes,
                m.parts,
                m.idle_read_ns,
                m.peak_read_gbps,
                m.peak_write_gbps
            )?;
        }
        if let Some(bytes) = self.dram_cache {
            writeln!(
                f,
                "  mode     memory mode, {bytes} of each socket's DRAM cache its slow memory"
            )?;
        }
        for (i, n) in self.nodes.iter().enumerate() {
            let cached = if n.cached {
                " behind the DRAM cache"
            } else {
                ""
            };
            writeln!(
                f,
                "  node {i:<3} {} of {}{cached}, socket {}",
                n.bytes,
                kind_name(n.kind),
                n.socket
            )?;
        }
        writeln!(f, "  total    {}", self.total)?;
        write!(
            f,
            "  sources  {} numbers, {} of them assumptions",
            self.numbers, self.assumed
        )
    }
}

fn kind_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Dram => "DRAM",
        NodeKind::Pm => "PM",
        NodeKind::Cxl => "CXL",
    }
}
