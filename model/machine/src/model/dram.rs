//! The DRAM of one channel: banks with open rows, ranks that refresh, activate and fall asleep, and a data bus that all
//! memory on the channel shares.

use super::queue::Line;
use super::ring::Ring;
use super::tally::tally;
use super::time::{Ps, ps};
use crate::describe::Dram;
use std::hint::select_unpredictable;

tally! {
    /// Time that a rank spent in each power state, ps.
    pub struct RankTimes {
        /// Some bank open or transferring.
        pub active: Ps,
        /// All banks precharged, clock on.
        pub standby: Ps,
        /// Precharge power-down.
        pub powerdown: Ps,
        /// Self-refresh.
        pub selfrefresh: Ps,
        /// Times that the rank was woken from power-down.
        pub wakes: u64,
        /// Times that the rank was woken from self-refresh.
        pub deep_wakes: u64,
    }
}

tally! {
    /// Counts of one channel's DRAM.
    pub struct DramCounts {
        /// 64 B reads.
        pub reads: u64,
        /// 64 B writes.
        pub writes: u64,
        /// Accesses that found their row open.
        pub row_hits: u64,
        /// Rows activated.
        pub activates: u64,
    }
}

/// Timing of one kind of DRAM, ps.
#[derive(Clone, Debug)]
pub struct DramTiming {
    burst: Ps,
    cl: Ps,
    rcd: Ps,
    rp: Ps,
    /// A bank is never busy for longer.
    ras_rp: Ps,
    faw_quarter: Ps,
    rfc: Ps,
    refi: Ps,
    powerdown_after: Ps,
    powerdown_exit: Ps,
    selfrefresh_after: Ps,
    selfrefresh_exit: Ps,
    /// How long a row is still found open once its bank is free again (an adaptive page policy), ps.
    stays_open: Ps,
    /// Time that the data bus loses between bursts of two ranks, ps.
    other_rank: Ps,
    /// Time that the data bus loses between two bursts of one bank group, ps.
    same_group: Ps,
}

/// A row left open without use is closed after this time. Processors close rows by an undisclosed adaptive timer;
/// 200 ns is a few row cycles (assumption).
pub const ROW_TIMEOUT_NS: f64 = 200.0;

/// Column accesses to one bank group are at least so far apart: JEDEC JESD79-4 and JESD79-5, tCCD_L 5 ns.
const CCD_L_NS: f64 = 5.0;

/// Clocks between bursts of different ranks on one bus: the strobe's postamble and preamble, one clock each
/// (JESD79-4, 4.24 and 4.25).
const RANK_SWITCH_CLOCKS: f64 = 2.0;

/// Data rates above this are DDR5 (JESD79-4 ends here), whose channels are two halves that work side by side: a gap of
/// one half costs the channel half as much, in bursts and in activates. MT/s.
const DDR4_MAX_MTS: u32 = 3200;

impl DramTiming {
    /// Timing from a machine's description.
    pub fn of(d: &Dram) -> DramTiming {
        let halves = if d.mts > DDR4_MAX_MTS { 2.0 } else { 1.0 };
        let clock = 2000.0 / d.mts as f64;
        let burst = 8.0 * 1000.0 / d.mts as f64;
        let ccd_l = (CCD_L_NS / clock).ceil() * clock;
        DramTiming {
            // 8 transfers of 8 B.
            burst: ps(burst),
            // The scheduler lets one request pass another when that avoids a gap (assumption: one; it is in no data
            // sheet). Turns between ranks are then half as many, and a bank group follows itself only when three
            // requests in a row want it.
            other_rank: ps(RANK_SWITCH_CLOCKS * clock / halves / 2.0),
            same_group: ps((ccd_l / halves - burst).max(0.0)),
            cl: ps(d.cl_ns),
            rcd: ps(d.rcd_ns),
            rp: ps(d.rp_ns),
            ras_rp: ps(d.ras_ns) + ps(d.rp_ns),
            // Each half counts its own activates.
            faw_quarter: ps(d.faw_ns / 4.0 / halves),
            rfc: ps(d.rfc_ns),
            refi: ps(d.refi_ns),
            powerdown_after: ps(d.powerdown_after_ns),
            powerdown_exit: ps(d.powerdown_exit_ns),
            selfrefresh_after: ps(d.selfrefresh_after_ns),
            selfrefresh_exit: ps(d.selfrefresh_exit_ns),
            // The timer begins with the data, which comes `cl` after the bank was taken for a burst.
            stays_open: (ps(ROW_TIMEOUT_NS) + ps(d.cl_ns)).saturating_sub(ps(burst)),
        }
    }

    /// Data-bus time of 64 B, ps.
    pub fn burst(&self) -> Ps {
        self.burst
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    row: u32,
    /// The rank that it is in.
    rank: u32,
    /// Taken until, for its row's bursts.
    ready: Ps,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    next_refresh: Ps,
    busy_until: Ps,
    activates: Line,
    /// Times until `busy_until`; those of no other state were active.
    times: RankTimes,
}

/// What an access to a bank takes, ps. A request waits for its bank while it waits for other things, and is served once it has all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Until the bank does something for it: others' work, refresh, sleep, and activates of its rank.
    pub wait: Ps,
    /// From then on until its last byte is on the bus.
    pub service: Ps,
}

#[cfg(test)]
impl Access {
    /// Both.
    fn took(self) -> Ps {
        self.wait + self.service
    }
}

/// Where a line lies in a channel.
#[derive(Clone, Copy, Debug)]
pub struct DramAddress {
    /// Bank, counted through all ranks.
    bank: u32,
    /// Rank, and above it the bank group.
    part: u32,
    row: u32,
}

/// Bits of a rank's number within its channel.
const RANK_BITS: u32 = 16;

impl DramAddress {
    #[inline(always)]
    fn rank(self) -> u32 {
        self.part & ((1 << RANK_BITS) - 1)
    }

    #[cfg(test)]
    fn group(self) -> u32 {
        self.part >> RANK_BITS
    }
}

/// The DRAM of one channel.
#[derive(Clone, Debug)]
pub struct Channel {
    banks: Ring<Bank>,
    ranks: Ring<Rank>,
    ranks_in_use: u32,
    /// Banks of all ranks less 1, where they are a power of two; 0 otherwise.
    bank_mask: u32,
    /// Banks of all ranks.
    all_banks: u32,
    /// Bank groups of a rank, a power of two, less 1.
    group_mask: u32,
    row_shift: u32,
    /// Rank and bank group of the last burst, and of the one before.
    last: u32,
    before: u32,
    /// Rest of a refresh that an access just met; [`Channel::take_refresh`] takes it.
    refresh: Ps,
    /// Counts so far. Every access that did not find its row open activated it.
    counts: DramCounts,
}

impl Channel {
    /// One channel of `d`.
    pub fn new(d: &Dram) -> Channel {
        let ranks = (d.ranks * d.dimms_per_channel).max(1);
        let mut ranks_ = Ring::<Rank>::new(ranks as usize);
        let refi = ps(d.refi_ns);
        for i in 0..ranks as u64 {
            // Ranks refresh in turn.
            ranks_.at(i as usize).next_refresh = refi * (i + 1) / ranks as u64;
        }
        let all_banks = ranks * d.banks;
        let mut banks = Ring::<Bank>::new(all_banks as usize);
        for i in 0..all_banks as usize {
            let bank = banks.at(i);
            (bank.row, bank.rank) = (u32::MAX, i as u32 / d.banks.max(1));
        }
        Channel {
            banks,
            ranks: ranks_,
            ranks_in_use: ranks,
            bank_mask: if all_banks.is_power_of_two() {
                all_banks - 1
            } else {
                0
            },
            all_banks,
            // JESD79-4 and JESD79-5: groups of four banks in DDR4 (x4, x8), and in DDR5.
            group_mask: (d.banks / 4).max(1).next_power_of_two() - 1,
            row_shift: d.row_bytes.0.max(64).ilog2(),
            last: 0,
            before: 0,
            refresh: 0,
            counts: DramCounts::default(),
        }
    }

    /// Rank and bank of a channel-local address. Ranks alternate by row, also where channels do not. Rows are spread over
    /// banks by their number, folded so that power-of-two strides do not all meet in one bank.
    #[inline(always)]
    pub fn place(&self, local: u64) -> DramAddress {
        let row = (local >> self.row_shift) as u32;
        let fold = row ^ (row >> 5) ^ (row >> 11);
        let bank = if self.bank_mask != 0 {
            fold & self.bank_mask
        } else {
            fold % self.all_banks
        };
        let rank = self.banks.get(bank as usize).rank;
        // Neighbouring lines lie in different bank groups.
        let group = ((local >> 6) as u32 ^ bank) & self.group_mask;
        DramAddress {
            bank,
            part: group << RANK_BITS | rank,
            row,
        }
    }

    /// Time of the data bus for 64 B: the burst, and the loss after the ones before.
    #[inline(always)]
    pub fn bus_time(&mut self, p: DramAddress, t: &DramTiming) -> Ps {
        let (this, last, before) = (p.part, self.last, self.before);
        self.last = this;
        self.before = last;
        let again = if (this ^ last) | (last ^ before) == 0 {
            t.same_group
        } else {
            0
        };
        // Which rank is next is often chance.
        let other = ((this ^ last) << (32 - RANK_BITS)) != 0;
        t.burst + select_unpredictable(other, t.other_rank, again)
    }

    /// Rest of a refresh that the last access was the first to meet, or 0.
    #[inline(always)]
    pub fn take_refresh(&mut self) -> Ps {
        // Mostly there is none, and nothing to store.
        match self.refresh {
            0 => 0,
            _ => std::mem::take(&mut self.refresh),
        }
    }

    /// One access to a bank at `now`, bus queueing apart.
    #[inline(always)]
    fn bank(&mut self, now: Ps, p: DramAddress, t: &DramTiming) -> Access {
        let mut r = self.ranks.at(p.rank() as usize);
        let mut start = now;
        if now >= r.next_refresh {
            let left = r.refresh(now, t);
            if left != 0 {
                start += left;
                self.refresh = left;
            }
        }
        if now > r.busy_until + t.powerdown_after {
            start += self.wake(p.rank(), now, t);
            r = self.ranks.at(p.rank() as usize);
        }
        let b = self.banks.at(p.bank as usize);
        // Banks are met slightly out of order: only work that is really ahead delays.
        if b.ready.wrapping_sub(start) < t.ras_rp {
            start = b.ready;
        }
        let open = b.row == p.row;
        let fresh = start < b.ready + t.stays_open;
        let mut opens = 0;
        if open && fresh {
            self.counts.row_hits += 1;
        } else {
            let precharge = select_unpredictable(fresh & (b.row != u32::MAX), t.rp, 0);
            b.row = p.row;
            start += r.activates.read(start, t.faw_quarter);
            opens = precharge + t.rcd;
        }
        let wait = start - now;
        start += opens;
        b.ready = start + t.burst;
        let done = start + t.cl;
        // Short gaps, too short for power-down, are spent in standby.
        r.times.standby += now.saturating_sub(r.busy_until);
        r.busy_until = r.busy_until.max(done + t.burst);
        Access {
            wait,
            service: opens + t.cl + t.burst,
        }
    }

    /// A 64 B read that is asked of the bank at `now`, bus queueing apart.
    #[inline(always)]
    pub fn read(&mut self, now: Ps, p: DramAddress, t: &DramTiming) -> Access {
        self.counts.reads += 1;
        self.bank(now, p, t)
    }

    /// A 64 B write is drained at about `now`: keeps the bank's and the rank's books.
    #[inline(always)]
    pub fn write(&mut self, now: Ps, p: DramAddress, t: &DramTiming) {
        self.counts.writes += 1;
        self.bank(now, p, t);
    }

    /// A 64 B write to a place that was read at this very time, with nothing in between: its row is open.
    #[inline(always)]
    pub fn write_again(&mut self, now: Ps, p: DramAddress, t: &DramTiming) {
        self.counts.writes += 1;
        self.counts.row_hits += 1;
        let b = self.banks.at(p.bank as usize);
        let start = if b.ready - now < t.ras_rp {
            b.ready
        } else {
            now
        };
        b.ready = start + t.burst;
        let r = self.ranks.at(p.rank() as usize);
        r.busy_until = r.busy_until.max(b.ready + t.cl);
    }

    /// Counts so far.
    pub fn counts(&self) -> DramCounts {
        let c = self.counts;
        DramCounts {
            activates: c.reads + c.writes - c.row_hits,
            ..c
        }
    }

    /// Power-state times of each rank until `end`.
    pub fn rank_times(&self, end: Ps, t: &DramTiming) -> Vec<RankTimes> {
        let deep = self.selfrefresh(end, t);
        self.ranks
            .iter()
            .take(self.ranks_in_use as usize)
            .map(|r| {
                let mut r = *r;
                if end > r.busy_until {
                    r.idle(end, deep, t);
                }
                let idle = r.times.standby + r.times.powerdown + r.times.selfrefresh;
                RankTimes {
                    active: r.busy_until - idle,
                    ..r.times
                }
            })
            .collect()
    }

    /// How long all ranks were in self-refresh at `now`: the controller enters it when nothing was asked of the channel for
    /// a time (Intel Xeon E5 v3 data sheet, volume 1, self-refresh by an idle counter).
    fn selfrefresh(&self, now: Ps, t: &DramTiming) -> Ps {
        let ranks = self.ranks.iter().take(self.ranks_in_use as usize);
        let last = ranks.map(|r| r.busy_until).max().unwrap_or(0);
        now.saturating_sub(last + t.selfrefresh_after)
    }

    /// A rank is needed after an idle time: books the states that it passed through, and those of the others where all
    /// leave self-refresh; returns the time to wake it.
    #[cold]
    fn wake(&mut self, rank: u32, now: Ps, t: &DramTiming) -> Ps {
        let deep = self.selfrefresh(now, t);
        if deep == 0 {
            let r = self.ranks.at(rank as usize);
            r.idle(now, 0, t);
            r.times.wakes += 1;
            return t.powerdown_exit;
        }
        for i in 0..self.ranks_in_use as usize {
            let r = self.ranks.at(i);
            r.idle(now, deep, t);
            r.times.deep_wakes += 1;
        }
        t.selfrefresh_exit
    }
}

impl Rank {
    /// A time for refresh has come: its rest, 0 when it is over.
    #[cold]
    fn refresh(&mut self, now: Ps, t: &DramTiming) -> Ps {
        // Refreshes that no access met are over; the last one may still run.
        let missed = (now - self.next_refresh) / t.refi;
        let begin = self.next_refresh + missed * t.refi;
        self.next_refresh = begin + t.refi;
        (begin + t.rfc).saturating_sub(now)
    }

    /// Books an idle time from the last access until `now`, of which the last part was spent in self-refresh.
    fn idle(&mut self, now: Ps, selfrefresh: Ps, t: &DramTiming) {
        let gap = now - self.busy_until;
        let standby = (gap - selfrefresh).min(t.powerdown_after);
        self.times.standby += standby;
        self.times.powerdown += gap - selfrefresh - standby;
        self.times.selfrefresh += selfrefresh;
        self.busy_until = now;
    }
}

#[cfg(test)]
mod tests;
