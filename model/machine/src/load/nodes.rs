//! Values derived from a machine's numbers: NUMA nodes, capacities, peak bandwidths.

use serde::Serialize;

use crate::describe::{Machine, Mode};
use varve_spec::Bytes;

/// Kind of memory of a NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// DRAM on the socket's channels.
    Dram,
    /// Persistent memory on the socket's channels.
    Pm,
    /// A CXL expander.
    Cxl,
}

/// One NUMA node. Its number is its place in [`Machine::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    /// Kind of its memory.
    pub kind: NodeKind,
    /// Socket that it belongs to.
    pub socket: u32,
    /// Capacity.
    pub bytes: Bytes,
    /// Does the socket's DRAM cache stand in front of it?
    pub cached: bool,
}

impl Machine {
    /// NUMA nodes in order: the DRAM of each socket, then the PM of each socket, then the CXL memory of each socket.
    /// In memory mode the slow memory of each socket is the only node.
    pub fn nodes(&self) -> Vec<NumaNode> {
        let cached = self.mode == Mode::MemoryMode;
        let dram = (!cached).then(|| (NodeKind::Dram, self.dram_bytes()));
        let pm = self.pm.as_ref().map(|_| (NodeKind::Pm, self.pm_bytes()));
        let cxl = self.cxl.as_ref().map(|c| (NodeKind::Cxl, c.bytes.0));
        [dram, pm, cxl]
            .into_iter()
            .flatten()
            .flat_map(|(kind, bytes)| {
                (0..self.sockets).map(move |socket| NumaNode {
                    kind,
                    socket,
                    bytes: Bytes(bytes),
                    cached,
                })
            })
            .collect()
    }

    /// DRAM of one socket, bytes.
    pub fn dram_bytes(&self) -> u64 {
        let dimms =
            u64::from(self.dram.channels).saturating_mul(self.dram.dimms_per_channel.into());
        dimms.saturating_mul(self.dram.dimm_bytes.0)
    }

    /// Persistent memory of one socket, bytes; 0 without.
    pub fn pm_bytes(&self) -> u64 {
        self.pm
            .as_ref()
            .map_or(0, |p| u64::from(p.dimms).saturating_mul(p.dimm_bytes.0))
    }

    /// Persistent and CXL memory of one socket, bytes; 0 without.
    pub fn slow_bytes(&self) -> u64 {
        self.pm_bytes()
            .saturating_add(self.cxl.as_ref().map_or(0, |c| c.bytes.0))
    }

    /// Bytes that programs can have: the sum of all nodes.
    pub fn total_bytes(&self) -> u64 {
        self.nodes()
            .iter()
            .fold(0u64, |sum, n| sum.saturating_add(n.bytes.0))
    }

    /// Hardware threads of the whole machine.
    pub fn hardware_threads(&self) -> u32 {
        self.sockets
            .saturating_mul(self.core.per_socket)
            .saturating_mul(self.core.threads)
    }

    /// Peak of one DRAM channel's bus, GB/s: 8 B a transfer.
    pub fn channel_gbps(&self) -> f64 {
        f64::from(self.dram.mts) * 8.0 / 1000.0
    }

    /// Peak read bandwidth of one socket's memory of a kind, GB/s; 0 without it.
    pub fn peak_read_gbps(&self, kind: NodeKind) -> f64 {
        match kind {
            NodeKind::Dram => self.channel_gbps() * f64::from(self.dram.channels),
            NodeKind::Pm => self.pm.as_ref().map_or(0.0, |p| {
                f64::from(p.dimms) * p.media_read_gbps.min(self.channel_gbps())
            }),
            NodeKind::Cxl => self.cxl.as_ref().map_or(0.0, |c| {
                c.read_gbps
                    .min(f64::from(c.channels) * f64::from(c.mts) * 8.0 / 1000.0)
            }),
        }
    }

    /// Peak write bandwidth of one socket's memory of a kind, GB/s; 0 without it.
    pub fn peak_write_gbps(&self, kind: NodeKind) -> f64 {
        match kind {
            NodeKind::Dram => self.peak_read_gbps(kind),
            NodeKind::Pm => self.pm.as_ref().map_or(0.0, |p| {
                f64::from(p.dimms) * p.media_write_gbps.min(self.channel_gbps())
            }),
            NodeKind::Cxl => self.cxl.as_ref().map_or(0.0, |c| {
                c.write_gbps
                    .min(f64::from(c.channels) * f64::from(c.mts) * 8.0 / 1000.0)
            }),
        }
    }
}
