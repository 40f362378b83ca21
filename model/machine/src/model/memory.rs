//! Everything behind the last-level cache: nodes, channels with their shared queues, DIMMs, the DRAM cache, CXL
//! expanders and the link between sockets.

mod channel;
mod expander;
mod interleave;

use self::channel::{Channel, ChannelTiming};
use self::expander::{Expander, ExpanderTiming};
use self::interleave::Interleave;
use super::activity::ChannelActivity;
use super::counts::SocketCounts;
use super::divide::Divisor;
use super::dram;
use super::link::{self, Marks, Port, Store};
use super::pm;
use super::tags::{Lookup, Tags};
use super::time::{Ps, ps};
use crate::describe::{Machine, Mode};
use std::ops::Range;
use varve_access::Source;

/// Memory that backs a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// DRAM on the socket's channels.
    Dram,
    /// Persistent memory on the socket's channels.
    Pm,
    /// Persistent memory or CXL behind the socket's DRAM cache.
    Cached,
    /// A CXL expander.
    Cxl,
}

/// A range of physical addresses with one backing on one socket; the operating system's NUMA node.
#[derive(Clone, Copy, Debug)]
pub struct NodeRange {
    /// First physical address.
    pub base: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Its memory.
    pub backing: Backing,
    /// The socket it hangs on.
    pub socket: usize,
}

/// The nodes of a machine, in the order in which frames are numbered: DRAM of all sockets, then slow memory.
pub fn nodes(m: &Machine) -> Vec<NodeRange> {
    let dram = m.dram.dimm_bytes.0 * (m.dram.channels * m.dram.dimms_per_channel) as u64;
    let mut kinds = Vec::new();
    if m.mode == Mode::MemoryMode {
        let slow =
            m.pm.as_ref()
                .map(|p| p.dimm_bytes.0 * p.dimms as u64)
                .or(m.cxl.as_ref().map(|c| c.bytes.0));
        kinds.push((Backing::Cached, slow.unwrap_or(0)));
    } else {
        kinds.push((Backing::Dram, dram));
        kinds.extend(
            m.pm.as_ref()
                .map(|p| (Backing::Pm, p.dimm_bytes.0 * p.dimms as u64)),
        );
        kinds.extend(m.cxl.as_ref().map(|c| (Backing::Cxl, c.bytes.0)));
    }
    let mut base = 0;
    let mut out = Vec::new();
    for (backing, bytes) in kinds {
        for socket in 0..m.sockets as usize {
            out.push(NodeRange {
                base,
                bytes,
                backing,
                socket,
            });
            base += bytes;
        }
    }
    out
}

/// The same, with the DRAM of machines without channel interleaving cut into its channels, so that pages drawn at
/// random stay within one channel.
pub fn channels(m: &Machine) -> Vec<NodeRange> {
    let whole = |n: &NodeRange| n.backing != Backing::Dram || m.dram.interleave_bytes.0 != 0;
    let channel = (m.dram.dimm_bytes.0 * u64::from(m.dram.dimms_per_channel)).max(1);
    let mut out = Vec::new();
    for n in nodes(m) {
        if whole(&n) {
            out.push(n);
            continue;
        }
        let parts = (0..n.bytes / channel).map(|i| NodeRange {
            base: n.base + i * channel,
            bytes: channel,
            ..n
        });
        out.extend(parts);
    }
    out
}

struct Socket {
    channels: Vec<Channel>,
    cxl: Option<Expander>,
    tags: Option<Tags>,
    port: Port,
    /// Lines of its memory that other sockets may have.
    marks: Marks,
    cache: SocketCounts,
}

/// Timing shared by all sockets.
struct Fixed {
    overhead: Ps,
    channel: ChannelTiming,
    pm: Option<pm::PmTiming>,
    cxl: Option<ExpanderTiming>,
    link: link::LinkTiming,
    over_channels: Interleave,
    over_dimms: Interleave,
    /// The DRAM cache's slow memory is CXL, not PM.
    cached_cxl: bool,
    cache_bytes: Divisor,
    /// What a read that pushes a dirty line out of the DRAM cache takes besides.
    conflict: Ps,
}

/// The memory system of a machine.
pub struct MemorySystem {
    nodes: Vec<NodeRange>,
    /// The first of them, and where it ends.
    first: NodeRange,
    first_end: u64,
    sockets: Vec<Socket>,
    fixed: Fixed,
}

/// The answer to a read.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// When the data is there, ps.
    pub done: Ps,
    /// Where it was found.
    pub source: Source,
}

impl MemorySystem {
    /// The memory of `m`, idle and empty.
    pub fn new(m: &Machine) -> MemorySystem {
        let fixed = Fixed {
            overhead: ps(m.controller.overhead_ns),
            channel: ChannelTiming::of(&m.dram, &m.controller),
            pm: m.pm.as_ref().map(pm::PmTiming::of),
            cxl: m.cxl.as_ref().map(|c| ExpanderTiming::of(c, m)),
            link: link::LinkTiming::of(m.link.as_ref()),
            over_channels: Interleave::new(
                m.dram.channels,
                m.dram.interleave_bytes.0,
                m.dram.dimm_bytes.0 * m.dram.dimms_per_channel as u64,
            ),
            over_dimms: m.pm.as_ref().map_or(Interleave::new(1, 0, 1), |p| {
                Interleave::new(p.dimms, p.interleave_bytes.0, p.dimm_bytes.0)
            }),
            cached_cxl: m.pm.is_none(),
            cache_bytes: Divisor::new(m.dram_cache.as_ref().map_or(0, |c| c.bytes.0)),
            conflict: ps(m
                .dram_cache
                .as_ref()
                .and_then(|c| c.conflict_ns)
                .unwrap_or(0.0)),
        };
        let sockets = (0..m.sockets)
            .map(|_| Socket {
                channels: (0..m.dram.channels)
                    .map(|i| {
                        let pm = m.pm.as_ref().filter(|p| i < p.dimms);
                        Channel::new(&m.dram, &m.controller, pm)
                    })
                    .collect(),
                cxl: m.cxl.as_ref().map(|c| Expander::new(c, m)),
                tags: (m.mode == Mode::MemoryMode)
                    .then(|| m.dram_cache.as_ref().map(|c| Tags::new(c.bytes.0, c.ways)))
                    .flatten(),
                port: Port::default(),
                marks: Marks::default(),
                cache: SocketCounts::default(),
            })
            .collect();
        let nodes = nodes(m);
        MemorySystem {
            first: nodes[0],
            first_end: nodes[0].base + nodes[0].bytes,
            nodes,
            sockets,
            fixed,
        }
    }

    /// The lines of these physical addresses were read from another socket before.
    pub fn read_before(&mut self, ranges: &[Range<u64>]) {
        if !self.fixed.link.directory {
            return;
        }
        for (i, s) in self.sockets.iter_mut().enumerate() {
            // A range lies in one node.
            let here = |r: &&Range<u64>| {
                self.nodes
                    .iter()
                    .any(|n| n.socket == i && (n.base..n.base + n.bytes).contains(&r.start))
            };
            s.marks = Marks::new(ranges.iter().filter(here).cloned().collect());
        }
    }

    #[inline(always)]
    fn node(&self, physical: u64) -> &NodeRange {
        if physical < self.first_end {
            return &self.first;
        }
        self.other_node(physical)
    }

    #[inline(never)]
    fn other_node(&self, physical: u64) -> &NodeRange {
        // They follow one another, and the pager hands out frames of these nodes only.
        let after = self.nodes.partition_point(|n| n.base <= physical);
        &self.nodes[after - 1]
    }

    /// The socket that the memory of an address hangs on.
    pub fn socket_of(&self, physical: u64) -> usize {
        self.node(physical).socket
    }

    /// Is the address in fast memory, by its node?
    pub fn is_fast(&self, physical: u64) -> bool {
        matches!(self.node(physical).backing, Backing::Dram | Backing::Cached)
    }

    /// Is there a DRAM cache?
    #[inline(always)]
    pub fn has_cache(&self) -> bool {
        self.sockets[0].tags.is_some()
    }

    /// Has any socket lines that another one may have?
    pub fn has_marks(&self) -> bool {
        self.sockets.iter().any(|s| !s.marks.is_empty())
    }

    /// Asks the host to bring the DRAM-cache tag of an address near.
    #[inline(always)]
    pub fn prefetch(&self, physical: u64) {
        let n = self.node(physical);
        if n.backing == Backing::Cached
            && let Some(tags) = &self.sockets[n.socket].tags
        {
            tags.prefetch((physical - n.base) >> 6);
        }
    }

    /// A DRAM cache is as after a read, or a write-back, of the line at an address.
    pub fn touch(&mut self, physical: u64, write: bool) {
        let n = *self.node(physical);
        if n.backing == Backing::Cached
            && let Some(tags) = &mut self.sockets[n.socket].tags
        {
            tags.access((physical - n.base) >> 6, write);
        }
    }

    /// The node of an address.
    pub fn node_of(&self, physical: u64) -> NodeRange {
        *self.node(physical)
    }

    /// A line is read for a core of `socket`, starting at `now` behind the last-level cache.
    #[inline(always)]
    pub fn read(&mut self, now: Ps, physical: u64, socket: usize) -> Reply {
        let n = *self.node(physical);
        self.read_in(&n, now, physical - n.base, socket)
    }

    /// The same for the line at an address within a node.
    #[inline(always)]
    pub fn read_in(&mut self, n: &NodeRange, now: Ps, local: u64, socket: usize) -> Reply {
        if n.socket != socket {
            return self.read_far(n, now, local, socket);
        }
        let s = &mut self.sockets[socket];
        let reply = s.read(n.backing, now, local, &self.fixed);
        if s.marks.is_empty() {
            return reply;
        }
        self.ask_others(n, now, local, reply)
    }

    /// A line of a socket's own memory that another one may have: that one is asked while memory is read.
    #[inline(never)]
    fn ask_others(&mut self, n: &NodeRange, now: Ps, local: u64, reply: Reply) -> Reply {
        let home = &mut self.sockets[n.socket];
        if !home.marks.has(n.base + local) {
            return reply;
        }
        let link = &self.fixed.link;
        // The other socket's answer is as short as the question; with two sockets they go opposite ways.
        let waits = home.port.send(now, link.message);
        Reply {
            done: reply.done.max(now + waits + link.whole),
            ..reply
        }
    }

    /// A line of another socket's memory is read.
    // Like those of memory, the link's work is booked at the time of the request.
    #[inline(never)]
    fn read_far(&mut self, n: &NodeRange, now: Ps, local: u64, socket: usize) -> Reply {
        let f = &self.fixed;
        let port = &mut self.sockets[socket].port;
        let at = now + port.send(now, f.link.message);
        let home = &mut self.sockets[n.socket];
        let back = home.port.send(now, f.link.line);
        let there = now + f.link.half;
        let reply = home.read(n.backing, there, local, f);
        let mut done = reply.done;
        if f.link.directory && home.marks.set(n.base + local) {
            // The line is held until memory takes the write.
            done = done.max(home.write_mark(n.backing, there, local, f));
        }
        let done = at + (done - now) + back + f.link.half;
        Reply { done, ..reply }
    }

    /// A line is written at `now`. Returns when the write queue took it.
    #[inline(always)]
    pub fn write(&mut self, now: Ps, physical: u64, socket: usize, how: Store) -> Ps {
        let n = *self.node(physical);
        self.write_in(&n, now, physical - n.base, socket, how)
    }

    /// The same for the line at an address within a node.
    #[inline(always)]
    pub fn write_in(
        &mut self,
        n: &NodeRange,
        now: Ps,
        local: u64,
        socket: usize,
        how: Store,
    ) -> Ps {
        if n.socket != socket {
            return self.write_far(n, now, local, socket, how);
        }
        let s = &mut self.sockets[socket];
        if !s.marks.is_empty() {
            s.marks.clear(n.base + local);
        }
        s.write(n.backing, now, local, &self.fixed)
    }

    /// A line of another socket's memory is written.
    #[inline(never)]
    fn write_far(&mut self, n: &NodeRange, now: Ps, local: u64, socket: usize, how: Store) -> Ps {
        let f = &self.fixed;
        let streamed = how == Store::Streamed;
        // A non-temporal store asks for the line first.
        let asked = if streamed { f.link.message } else { 0 };
        let port = &mut self.sockets[socket].port;
        let at = now + port.send(now, f.link.line + asked);
        let home = &mut self.sockets[n.socket];
        let back = home.port.send(now, f.link.message + asked);
        let there = now + f.link.half;
        let (mut looked_up, mut marked) = (there, there);
        if streamed && f.link.directory {
            looked_up = home.read(n.backing, there, local, f).done;
            if home.marks.set(n.base + local) {
                marked = home.write_mark(n.backing, there, local, f);
            }
        }
        let taken = home.write(n.backing, there, local, f);
        // Both writes are booked now, so that each waits for the other's work already.
        let taken = at + (taken.max(marked) - now) + (looked_up - there) + back;
        if how != Store::Cleaned {
            home.marks.clear(n.base + local);
        }
        taken
    }

    /// Time that an answer takes from the socket of an address to a core of `socket`, ps.
    #[inline(always)]
    pub fn way_back(&self, physical: u64, socket: usize) -> Ps {
        match self.node(physical).socket == socket {
            true => 0,
            false => self.fixed.link.half,
        }
    }

    /// Copies a page line by line as fast as the devices allow, from `now` on; returns when it is done.
    /// The copy keeps `lanes` lines in flight (a DMA engine or a copying core).
    pub fn copy(&mut self, now: Ps, from: u64, to: u64, bytes: u64, lanes: usize) -> Ps {
        let socket = self.node(to).socket;
        let mut flight = vec![now; lanes.max(1)];
        let mut end = now;
        for (i, line) in (0..bytes).step_by(64).enumerate() {
            let lane = &mut flight[i % lanes.max(1)];
            let read = self.read(*lane, from + line, socket).done;
            *lane = self
                .write(read, to + line, socket, Store::Streamed)
                .max(read);
            end = end.max(*lane);
        }
        end
    }

    /// Counts of each socket so far.
    pub fn counts(&self) -> Vec<SocketCounts> {
        self.sockets
            .iter()
            .map(|s| {
                let mut c = s.cache.clone();
                for ch in &s.channels {
                    c.add(&SocketCounts {
                        dram: ch.dram.counts(),
                        ..SocketCounts::default()
                    });
                    if let Some(pm) = &ch.pm {
                        c.add(&SocketCounts {
                            pm: pm.counts,
                            ..SocketCounts::default()
                        });
                    }
                }
                if let Some(x) = &s.cxl {
                    c.cxl_reads += x.reads;
                    c.cxl_writes += x.writes;
                }
                c
            })
            .collect()
    }

    /// Activity of each channel's memory until `end`: per socket and channel.
    pub fn activity(&self, end: Ps) -> Vec<Vec<ChannelActivity>> {
        let channel = |c: &Channel| ChannelActivity {
            dram: c.dram.counts(),
            pm: c.pm.as_ref().map(|p| p.counts),
            ranks: c.dram.rank_times(end, &self.fixed.channel.dram),
        };
        self.sockets
            .iter()
            .map(|s| s.channels.iter().map(channel).collect())
            .collect()
    }

    /// Lines in use and capacity of the DRAM caches, in lines.
    pub fn cache_use(&self) -> (u64, u64) {
        self.sockets
            .iter()
            .filter_map(|s| s.tags.as_ref())
            .fold((0, 0), |a, t| {
                let (used, all) = t.used();
                (a.0 + used, a.1 + all)
            })
    }
}

impl Socket {
    /// A line of the socket's memory is read.
    #[inline(always)]
    fn read(&mut self, backing: Backing, at: Ps, local: u64, f: &Fixed) -> Reply {
        match backing {
            Backing::Dram => Reply {
                done: self.dram_read(at, local, f),
                source: Source::Fast,
            },
            Backing::Pm => Reply {
                done: self.pm_read(at, at, local, f),
                source: Source::Slow,
            },
            Backing::Cxl => Reply {
                done: self.cxl_read(at, at, local, f),
                source: Source::Slow,
            },
            Backing::Cached => self.cached_read(at, local, f),
        }
    }

    /// A line of the socket's memory is written; returns when the write queue took it.
    #[inline(always)]
    fn write(&mut self, backing: Backing, at: Ps, local: u64, f: &Fixed) -> Ps {
        match backing {
            Backing::Dram => self.dram_write(at, local, f),
            Backing::Pm => self.pm_write(at, local, f),
            Backing::Cxl => self.cxl_write(at, local, f),
            Backing::Cached => self.cached_write(at, local, f),
        }
    }

    /// A line that was just read is written with its mark.
    fn write_mark(&mut self, backing: Backing, at: Ps, local: u64, f: &Fixed) -> Ps {
        let slot = match backing {
            Backing::Dram => local,
            // The DRAM cache keeps the mark, and does not write a line back for it (US patent 11,669,454).
            Backing::Cached => f.cache_bytes.divide(local).1,
            _ => return self.write(backing, at, local, f),
        };
        let (channel, place) = self.dram_place(slot, f);
        self.channels[channel].dram_write(at, place, true, &f.channel) + f.overhead
    }

    // A request that finds its queue full waits for an entry (`at`), but work is booked on buses and media at the
    // time of the request: a request that waits must not hide the time in between from the others. Sources wait for
    // the times returned here, which keeps the booked work that is not done within the queues' sizes. Waiting for an
    // entry and waiting for the work ahead go on at the same time.

    /// The channel of a DRAM address, and its place there.
    #[inline(always)]
    fn dram_place(&self, local: u64, f: &Fixed) -> (usize, dram::DramAddress) {
        let (channel, local) = f.over_channels.place(local);
        (channel, self.channels[channel].dram.place(local))
    }

    #[inline(always)]
    fn dram_read(&mut self, now: Ps, local: u64, f: &Fixed) -> Ps {
        let (channel, place) = self.dram_place(local, f);
        self.channels[channel].dram_read(now, now, place, &f.channel) + f.overhead
    }

    #[inline(always)]
    fn dram_write(&mut self, now: Ps, local: u64, f: &Fixed) -> Ps {
        let (channel, place) = self.dram_place(local, f);
        self.channels[channel].dram_write(now, place, false, &f.channel) + f.overhead
    }

    /// A read of PM that is asked for at `now` and reaches it at `from`.
    #[inline(always)]
    fn pm_read(&mut self, now: Ps, from: Ps, local: u64, f: &Fixed) -> Ps {
        let (channel, local) = f.over_dimms.place(local);
        let Some(t) = &f.pm else { return now };
        self.channels[channel].pm_read(now, from, local, &f.channel, t) + f.overhead
    }

    #[inline(always)]
    fn pm_write(&mut self, now: Ps, local: u64, f: &Fixed) -> Ps {
        let (channel, local) = f.over_dimms.place(local);
        let Some(t) = &f.pm else { return now };
        self.channels[channel].pm_write(now, local, &f.channel, t) + f.overhead
    }

    /// A read of the expander that is asked for at `now` and sent at `from`.
    #[inline(always)]
    fn cxl_read(&mut self, now: Ps, from: Ps, local: u64, f: &Fixed) -> Ps {
        let (Some(x), Some(t)) = (&mut self.cxl, &f.cxl) else {
            return now;
        };
        x.read(now, from, local, t) + f.overhead
    }

    #[inline(always)]
    fn cxl_write(&mut self, now: Ps, local: u64, f: &Fixed) -> Ps {
        let (Some(x), Some(t)) = (&mut self.cxl, &f.cxl) else {
            return now;
        };
        x.write(now, local, t) + f.overhead
    }

    #[inline(always)]
    fn slow_read(&mut self, now: Ps, from: Ps, local: u64, f: &Fixed) -> Ps {
        if f.cached_cxl {
            self.cxl_read(now, from, local, f)
        } else {
            self.pm_read(now, from, local, f)
        }
    }

    #[inline(always)]
    fn slow_write(&mut self, now: Ps, local: u64, f: &Fixed) -> Ps {
        if f.cached_cxl {
            self.cxl_write(now, local, f)
        } else {
            self.pm_write(now, local, f)
        }
    }

    /// A read in memory mode: the DRAM line carries its tag, so that every read starts with a DRAM read. A miss then
    /// reads slow memory, fills the DRAM and, when the line that was there is dirty, writes that one back first
    /// (Johnny Cache, Figure 1).
    #[inline(always)]
    fn cached_read(&mut self, now: Ps, local: u64, f: &Fixed) -> Reply {
        let Some(tags) = &mut self.tags else {
            return Reply {
                done: now,
                source: Source::Slow,
            };
        };
        let lookup = tags.access(local >> 6, false);
        let (_, slot) = f.cache_bytes.divide(local);
        let (channel, place) = self.dram_place(slot, f);
        let probed = self.channels[channel].dram_read(now, now, place, &f.channel);
        match lookup {
            Lookup::Hit => {
                self.cache.cache_hits += 1;
                Reply {
                    done: probed + f.overhead,
                    source: Source::Fast,
                }
            }
            Lookup::Miss {
                written_back,
                conflict,
            } => {
                self.cache.cache_misses += 1;
                // The controller goes on without crossing the mesh again. Everything is booked at the time of the
                // request, so that no queue sees a time far ahead of its other requests. Slow memory waits for the tag, and
                // for the line that was there to be in a write queue.
                let freed = self.push_out(now, written_back, conflict, f);
                let done = self.slow_read(now, probed.max(freed), local, f);
                self.channels[channel].dram_write(now, place, true, &f.channel);
                Reply {
                    done: done + f.conflict * u64::from(written_back.is_some()),
                    source: Source::Slow,
                }
            }
        }
    }

    /// A write-back from the processor in memory mode. A line that the DRAM cache still holds is written without
    /// reading its tag, since it was fetched through the cache before it was written to (the "dirty data
    /// optimization" of Hildebrand et al., A Case Against Hardware Managed DRAM Caches, ISPASS 2021); otherwise the
    /// tag is read first. A whole line needs no fetch.
    #[inline(always)]
    fn cached_write(&mut self, now: Ps, local: u64, f: &Fixed) -> Ps {
        let Some(tags) = &mut self.tags else {
            return now;
        };
        let lookup = tags.access(local >> 6, true);
        let (_, slot) = f.cache_bytes.divide(local);
        let (channel, place) = self.dram_place(slot, f);
        match lookup {
            Lookup::Hit => {
                self.cache.cache_write_hits += 1;
                self.channels[channel].dram_write(now, place, false, &f.channel) + f.overhead
            }
            Lookup::Miss {
                written_back,
                conflict,
            } => {
                self.cache.cache_write_misses += 1;
                self.channels[channel].dram_read(now, now, place, &f.channel);
                let freed = self.push_out(now, written_back, conflict, f);
                let taken = self.channels[channel].dram_write(now, place, true, &f.channel);
                taken.max(freed) + f.overhead
            }
        }
    }

    /// A dirty line leaves the DRAM cache; returns when the controller is rid of it.
    #[inline(always)]
    fn push_out(&mut self, now: Ps, written_back: Option<u64>, conflict: bool, f: &Fixed) -> Ps {
        self.cache.conflicts += conflict as u64;
        let Some(line) = written_back else { return now };
        self.cache.dirty_evictions += 1;
        self.slow_write(now, line << 6, f) - f.overhead
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
