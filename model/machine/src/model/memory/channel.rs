//! One channel: DRAM and at most one PM DIMM behind one bus and one pair of queues.
//!
//! A request waits for an entry of its queue, for the bus and for its bank or the DIMM's media. All that goes on at the same time, so
//! it is served when the last of these waits is over; then its own work follows.

use super::super::dram::{Channel as DramChannel, DramAddress, DramTiming};
use super::super::pm::{Dimm, PmTiming};
use super::super::queue::{Drain, Entries, Server};
use super::super::time::{Ps, ps};
use crate::describe::{Controller, Dram, Pm};

/// See the module.
pub(super) struct Channel {
    bus: Server,
    read_queue: Entries,
    write_queue: Entries,
    /// When the PM DIMM takes the last write offered to it: it takes them in order.
    pm_accepts: Ps,
    pub dram: DramChannel,
    pub pm: Option<Dimm>,
}

/// Timing of channels of one kind.
pub(super) struct ChannelTiming {
    burst: Ps,
    /// Bus time of a full read queue.
    read_queue: Ps,
    drain: Drain,
    pub dram: DramTiming,
}

impl ChannelTiming {
    pub fn of(dram: &Dram, controller: &Controller) -> ChannelTiming {
        let timing = DramTiming::of(dram);
        let burst = timing.burst();
        ChannelTiming {
            burst,
            read_queue: burst * controller.read_queue as u64,
            drain: Drain {
                high: burst * controller.drain_high as u64,
                low: burst * controller.drain_low as u64,
                turnaround: ps(dram.turnaround_ns),
            },
            dram: timing,
        }
    }
}

impl Channel {
    /// A channel of `dram`, with a DIMM of `pm`.
    pub fn new(dram: &Dram, controller: &Controller, pm: Option<&Pm>) -> Channel {
        Channel {
            bus: Server::default(),
            read_queue: Entries::new(controller.read_queue),
            write_queue: Entries::new(controller.write_queue),
            pm_accepts: 0,
            dram: DramChannel::new(dram),
            pm: pm.map(|p| Dimm::new(&PmTiming::of(p))),
        }
    }

    /// A rank refreshes: requests to it keep their entries of the read queue until none is left for other ranks, and
    /// then the bus idles. A queue that is not full has room for others all the while.
    #[cold]
    fn refresh(&mut self, now: Ps, left: Ps, t: &ChannelTiming) {
        let waiting = self.bus.backlog(now).min(t.read_queue);
        self.bus.read(now, left * waiting / t.read_queue.max(1));
    }

    /// A read of 64 B of DRAM that is asked for at `now` and reaches the channel at `from`; returns when they are there.
    #[inline(always)]
    pub fn dram_read(&mut self, now: Ps, from: Ps, place: DramAddress, t: &ChannelTiming) -> Ps {
        let at = self.read_queue.admit(now).max(from);
        let bus = self.dram.bus_time(place, &t.dram);
        let wait = self.bus.read(now, bus);
        let access = self.dram.read(now, place, &t.dram);
        let done = at.max(now + wait.max(access.wait)) + access.service;
        self.read_queue.hold(done);
        let refresh = self.dram.take_refresh();
        if refresh != 0 {
            self.refresh(now, refresh, t);
        }
        done
    }

    /// A write; returns when the write queue takes it. `again`: of the line that the last access to this DRAM read, at the same
    /// time.
    #[inline(always)]
    pub fn dram_write(
        &mut self,
        now: Ps,
        place: DramAddress,
        again: bool,
        t: &ChannelTiming,
    ) -> Ps {
        let at = self.write_queue.admit(now);
        if again {
            self.dram.write_again(now, place, &t.dram);
        } else {
            self.dram.write(now, place, &t.dram);
        }
        let bus = self.dram.bus_time(place, &t.dram);
        let backlog = self.bus.write(now, bus, &t.drain);
        // The entry is free once the work before it and its own is done.
        self.write_queue.hold(at.max(now + backlog));
        at
    }

    /// A read of 64 B of the DIMM that is asked for at `now` and reaches the channel at `from`; returns when they are there.
    #[inline(always)]
    pub fn pm_read(
        &mut self,
        now: Ps,
        from: Ps,
        local: u64,
        t: &ChannelTiming,
        pm: &PmTiming,
    ) -> Ps {
        let Some(dimm) = &mut self.pm else { return now };
        let at = self.read_queue.admit(now).max(from);
        let (wait, service) = dimm.read(now, local, pm);
        let done = at.max(now + wait.max(self.bus.read(now, t.burst))) + service + t.burst;
        self.read_queue.hold(done);
        done
    }

    /// A write of 64 B of the DIMM; returns when the write queue takes it.
    #[inline(always)]
    pub fn pm_write(&mut self, now: Ps, local: u64, t: &ChannelTiming, pm: &PmTiming) -> Ps {
        let Some(dimm) = &mut self.pm else { return now };
        let at = self.write_queue.admit(now);
        self.bus.write(now, t.burst, &t.drain);
        let taken = at
            .max(now + dimm.write(now, local, pm))
            .max(self.pm_accepts);
        self.pm_accepts = taken;
        dimm.admitted(now, at);
        self.write_queue.hold(taken);
        at
    }
}
