//! A CXL expander: a link with two directions, a queue of requests, and channels of DRAM as those of the host.

use super::super::queue::{Entries, Server};
use super::super::time::{Ps, ps, transfer};
use super::channel::{Channel, ChannelTiming};
use super::interleave::Interleave;
use crate::describe::{Cxl, Dram, Machine};
use varve_spec::Bytes;

/// See the module.
pub(super) struct Expander {
    to_host: Server,
    to_device: Server,
    queue: Entries,
    channels: Vec<Channel>,
    pub reads: u64,
    pub writes: u64,
}

/// Its timing.
pub(super) struct ExpanderTiming {
    link: Ps,
    to_host: Ps,
    to_device: Ps,
    channel: ChannelTiming,
    over_channels: Interleave,
}

/// The DRAM of the device: parts as the host's, on channels of its own.
fn dram(c: &Cxl, m: &Machine) -> Dram {
    let dimms = u64::from(c.channels) * u64::from(m.dram.dimms_per_channel);
    Dram {
        channels: c.channels,
        mts: c.mts,
        dimm_bytes: Bytes(c.bytes.0 / dimms.max(1)),
        ..m.dram.clone()
    }
}

impl ExpanderTiming {
    pub fn of(c: &Cxl, m: &Machine) -> ExpanderTiming {
        let dram = dram(c, m);
        // Where the host does not interleave, so that DIMMs can be told apart, the device still does (assumption: by 256 B).
        let together = match dram.interleave_bytes.0 {
            0 => 256,
            bytes => bytes,
        };
        ExpanderTiming {
            link: ps(c.link_ns),
            to_host: transfer(64, c.read_gbps),
            to_device: transfer(64, c.write_gbps),
            channel: ChannelTiming::of(&dram, &m.controller),
            over_channels: Interleave::new(c.channels, together, 0),
        }
    }
}

impl Expander {
    pub fn new(c: &Cxl, m: &Machine) -> Expander {
        let dram = dram(c, m);
        Expander {
            to_host: Server::default(),
            to_device: Server::default(),
            queue: Entries::new(c.queue),
            channels: (0..c.channels)
                .map(|_| Channel::new(&dram, &m.controller, None))
                .collect(),
            reads: 0,
            writes: 0,
        }
    }

    /// A read of 64 B at an address of the device that is asked for at `now` and sent at `from`; returns when the host has them.
    #[inline(always)]
    pub fn read(&mut self, now: Ps, from: Ps, local: u64, t: &ExpanderTiming) -> Ps {
        self.reads += 1;
        let at = self.queue.admit(now).max(from);
        let (channel, local) = t.over_channels.place(local);
        let c = &mut self.channels[channel];
        let place = c.dram.place(local);
        let read = c.dram_read(now, at, place, &t.channel);
        let sent = now + self.to_host.read(now, t.to_host);
        let done = read.max(sent) + t.to_host;
        self.queue.hold(done);
        done + t.link
    }

    /// A write of 64 B; returns when the device's queue takes it.
    #[inline(always)]
    pub fn write(&mut self, now: Ps, local: u64, t: &ExpanderTiming) -> Ps {
        self.writes += 1;
        let at = self.queue.admit(now);
        let (channel, local) = t.over_channels.place(local);
        let c = &mut self.channels[channel];
        let place = c.dram.place(local);
        let taken = c.dram_write(now, place, false, &t.channel);
        let sent = now + self.to_device.read(now, t.to_device);
        self.queue.hold(at.max(sent).max(taken) + t.to_device);
        at
    }
}
