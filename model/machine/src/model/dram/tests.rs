//! The DRAM of a channel against a slow, obvious reference: one command a clock, every rule of the data sheet asked.

use super::super::queue::Server;
use super::*;
use crate::Machine;
use proptest::prelude::*;
use std::collections::VecDeque;

const LINE: u64 = 64;

fn dram() -> crate::describe::Dram {
    let mut d = Machine::load("optane-8260").unwrap().dram;
    d.channels = 1;
    d
}

/// A bank as its data sheet has it.
#[derive(Clone, Copy)]
struct RefBank {
    open: Option<u32>,
    /// Earliest clocks of the next activate, column access and precharge.
    activate: u64,
    column: u64,
    precharge: u64,
    used: u64,
}

/// A controller that considers every waiting request at every clock: row hits first, then the oldest.
struct RefChannel {
    clock_ns: f64,
    cl: u64,
    rcd: u64,
    rp: u64,
    ras: u64,
    faw: u64,
    rfc: u64,
    refi: u64,
    ccd_s: u64,
    ccd_l: u64,
    row_timeout: u64,
    banks: Vec<RefBank>,
    activates: Vec<VecDeque<u64>>,
    next_refresh: Vec<u64>,
    last_column: Option<(u64, u32, u32)>,
    queue: usize,
}

impl RefChannel {
    fn new(d: &crate::describe::Dram, queue: usize) -> RefChannel {
        let clock_ns = 2000.0 / d.mts as f64;
        let clocks = |ns: f64| (ns / clock_ns).round() as u64;
        let idle = RefBank {
            open: None,
            activate: 0,
            column: 0,
            precharge: 0,
            used: 0,
        };
        RefChannel {
            clock_ns,
            cl: clocks(d.cl_ns),
            rcd: clocks(d.rcd_ns),
            rp: clocks(d.rp_ns),
            ras: clocks(d.ras_ns),
            faw: clocks(d.faw_ns),
            rfc: clocks(d.rfc_ns),
            refi: clocks(d.refi_ns),
            ccd_s: 4,
            ccd_l: (CCD_L_NS / clock_ns).ceil() as u64,
            row_timeout: clocks(ROW_TIMEOUT_NS),
            banks: vec![idle; (d.ranks * d.banks) as usize],
            activates: vec![VecDeque::new(); d.ranks as usize],
            next_refresh: (1..=d.ranks as u64)
                .map(|r| clocks(d.refi_ns) * r / d.ranks as u64)
                .collect(),
            last_column: None,
            queue,
        }
    }

    /// Keeps `outstanding` requests waiting until all `places` are read; returns ns from the first to the last data.
    fn closed_loop(&mut self, places: &[DramAddress], outstanding: usize) -> f64 {
        let mut waiting: VecDeque<DramAddress> = VecDeque::new();
        let mut next = places.iter();
        let mut in_flight: VecDeque<u64> = VecDeque::new();
        let (mut now, mut done) = (0u64, 0usize);
        while done < places.len() {
            while in_flight.front().is_some_and(|t| *t <= now) {
                in_flight.pop_front();
                done += 1;
            }
            while waiting.len() + in_flight.len() < outstanding {
                match next.next() {
                    Some(p) => waiting.push_back(*p),
                    None => break,
                }
            }
            self.refresh(now);
            self.close_idle_rows(now);
            if let Some(end) = self.one_command(now, &mut waiting, in_flight.len()) {
                in_flight.push_back(end);
            }
            now += 1;
        }
        now as f64 * self.clock_ns
    }

    fn refresh(&mut self, now: u64) {
        let per_rank = self.banks.len() / self.next_refresh.len();
        for rank in 0..self.next_refresh.len() {
            if now < self.next_refresh[rank] {
                continue;
            }
            self.next_refresh[rank] += self.refi;
            for b in &mut self.banks[rank * per_rank..][..per_rank] {
                b.open = None;
                b.activate = now + self.rfc;
            }
        }
    }

    fn close_idle_rows(&mut self, now: u64) {
        for b in &mut self.banks {
            if b.open.is_some() && now > b.used + self.row_timeout && now >= b.precharge {
                b.open = None;
                b.activate = b.activate.max(now + self.rp);
            }
        }
    }

    /// Issues one command; a column access takes its request from the queue and returns when its data is there.
    fn one_command(
        &mut self,
        now: u64,
        waiting: &mut VecDeque<DramAddress>,
        busy: usize,
    ) -> Option<u64> {
        let seen = waiting.len().min(self.queue.saturating_sub(busy).max(1));
        for i in 0..seen {
            let p = waiting[i];
            if self.banks[p.bank as usize].open == Some(p.row) && self.column_allowed(now, p) {
                waiting.remove(i);
                self.last_column = Some((now, p.rank(), p.group()));
                let b = &mut self.banks[p.bank as usize];
                b.precharge = b.precharge.max(now + self.ccd_s);
                b.used = now + self.cl;
                return Some(now + self.cl + self.ccd_s);
            }
        }
        for i in 0..seen {
            let p = waiting[i];
            let b = self.banks[p.bank as usize];
            let window = &mut self.activates[p.rank() as usize];
            match b.open {
                None if now >= b.activate => {
                    if window.len() == 4 && now < window[0] + self.faw {
                        continue;
                    }
                    if window.len() == 4 {
                        window.pop_front();
                    }
                    window.push_back(now);
                    let b = &mut self.banks[p.bank as usize];
                    b.open = Some(p.row);
                    b.column = now + self.rcd;
                    b.precharge = now + self.ras;
                    b.used = now;
                    return None;
                }
                Some(row) if row != p.row && now >= b.precharge => {
                    // Not while an older request still wants the open row.
                    if waiting
                        .iter()
                        .take(i)
                        .any(|o| o.bank == p.bank && o.row == row)
                    {
                        continue;
                    }
                    let b = &mut self.banks[p.bank as usize];
                    b.open = None;
                    b.activate = b.activate.max(now + self.rp);
                    return None;
                }
                _ => {}
            }
        }
        None
    }

    fn column_allowed(&self, now: u64, p: DramAddress) -> bool {
        if now < self.banks[p.bank as usize].column {
            return false;
        }
        let Some((at, rank, group)) = self.last_column else {
            return true;
        };
        let gap = if rank != p.rank() {
            self.ccd_s + RANK_SWITCH_CLOCKS as u64
        } else if group == p.group() {
            self.ccd_l
        } else {
            self.ccd_s
        };
        now >= at + gap
    }
}

/// The fast model in the same loop, with the bus and the read queue that the memory controller gives it.
fn fast_closed_loop(d: &crate::describe::Dram, places: &[DramAddress], outstanding: usize) -> f64 {
    let t = DramTiming::of(d);
    let mut channel = Channel::new(d);
    let mut bus = Server::default();
    let mut queue = super::super::queue::Entries::new(22);
    let mut slots = vec![0u64; outstanding];
    let mut end = 0;
    for &p in places {
        let slot = slots.iter_mut().min().unwrap();
        let now = *slot;
        let at = queue.admit(now);
        let bus_time = channel.bus_time(p, &t);
        let access = channel.read(now, p, &t);
        let done = at.max(now + bus.read(now, bus_time).max(access.wait)) + access.service;
        queue.hold(done);
        *slot = done;
        end = end.max(done);
    }
    end as f64 / 1000.0
}

fn lines(random: bool, n: usize) -> Vec<u64> {
    let mut x = 7u64;
    (0..n as u64)
        .map(|i| {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let line = if random { (x >> 33) % (1 << 24) } else { i };
            line * LINE
        })
        .collect()
}

#[test]
fn idle_latencies_are_those_of_the_commands() {
    let d = dram();
    for random in [false, true] {
        let channel = Channel::new(&d);
        let places: Vec<DramAddress> = lines(random, 400)
            .iter()
            .map(|a| channel.place(*a))
            .collect();
        let slow = RefChannel::new(&d, 22).closed_loop(&places, 1);
        let fast = fast_closed_loop(&d, &places, 1);
        assert!(
            (fast / slow - 1.0).abs() < 0.06,
            "random {random}: {fast} ns, commands one by one {slow} ns"
        );
    }
}

#[test]
fn throughput_under_load_is_near_that_of_the_commands() {
    // The fast model has no commands: it charges a request for the bank that it meets and for the gaps of the bus. It
    // stays within a fifth of a controller that reorders all that it sees.
    let d = dram();
    for random in [false, true] {
        for outstanding in [4, 12, 48] {
            let channel = Channel::new(&d);
            let places: Vec<DramAddress> = lines(random, 6000)
                .iter()
                .map(|a| channel.place(*a))
                .collect();
            let slow = RefChannel::new(&d, 22).closed_loop(&places, outstanding);
            let fast = fast_closed_loop(&d, &places, outstanding);
            assert!(
                (fast / slow - 1.0).abs() < 0.20,
                "random {random}, {outstanding} outstanding: {fast} ns, commands one by one {slow} ns"
            );
        }
    }
}

proptest! {
    /// One read at a time, far enough apart that no rule but those of its own bank matters: equal to the picosecond.
    #[test]
    fn a_lonely_read_meets_an_open_a_closed_or_another_row(
        reads in prop::collection::vec((0u64..64, 0u64..4, 40_000u64..400_000), 1..60)
    ) {
        let mut d = dram();
        d.refi_ns = 1e9;
        d.powerdown_after_ns = 1e8;
        let t = DramTiming::of(&d);
        let mut channel = Channel::new(&d);
        let mut open: Vec<Option<(u32, Ps)>> = vec![None; channel.all_banks as usize];
        let mut now = 1_000_000;
        for (column, row, gap) in reads {
            let p = channel.place(row * 8192 * 32 + column * LINE);
            let state = open[p.bank as usize].filter(|(_, used)| now < used + ps(ROW_TIMEOUT_NS));
            let expected = match state {
                Some((row, _)) if row == p.row => t.cl,
                Some(_) => t.rp + t.rcd + t.cl,
                None => t.rcd + t.cl,
            };
            let took = channel.read(now, p, &t).took();
            prop_assert_eq!(took, expected + t.burst);
            open[p.bank as usize] = Some((p.row, now + expected));
            now += took + gap;
        }
    }

    /// Whatever happens, each rank's power states add up to the time that passed.
    #[test]
    fn power_states_add_up(gaps in prop::collection::vec((0u64..40_000_000, 0u64..(1 << 20), any::<bool>()), 1..80)) {
        let d = dram();
        let t = DramTiming::of(&d);
        let mut channel = Channel::new(&d);
        let mut now = 0;
        for (gap, line, write) in gaps {
            now += gap;
            let p = channel.place(line * LINE);
            if write { channel.write(now, p, &t) } else { now += channel.read(now, p, &t).took() }
        }
        let end = now + 50_000_000;
        let ranks = channel.rank_times(end, &t);
        for r in &ranks {
            prop_assert_eq!(r.active + r.standby + r.powerdown + r.selfrefresh, end);
            // All ranks of a channel enter self-refresh and leave it together.
            prop_assert_eq!((r.selfrefresh, r.deep_wakes), (ranks[0].selfrefresh, ranks[0].deep_wakes));
        }
    }
}

#[test]
fn a_day_in_the_life_of_a_rank_by_hand() {
    let mut d = dram();
    d.refi_ns = 1e9;
    let t = DramTiming::of(&d);
    let mut channel = Channel::new(&d);
    let p = channel.place(0);
    // A read of a closed row at 100 ns: stand-by until then, active for 14.25 + 14.25 + 3.0 ns.
    assert_eq!(
        channel.read(100_000, p, &t).took(),
        14_250 + 14_250 + 2 * 3_001 - 3_001
    );
    // The next one 5 us later: 1 us of stand-by, the rest in power-down, 6 ns to wake.
    let busy = 100_000 + 14_250 + 14_250 + 3_001;
    let took = channel.read(busy + 5_000_000, p, &t).took();
    assert_eq!(took, 6_000 + 14_250 + 14_250 + 3_001);
    // Then 3 ms of nothing: 1 us stand-by, 999 us power-down, 2 ms self-refresh, 360 ns to wake.
    let busy = busy + 5_000_000 + took;
    let took = channel.read(busy + 3_000_000_000, p, &t).took();
    assert_eq!(took, 360_000 + 14_250 + 14_250 + 3_001);
    let end = busy + 3_000_000_000 + took;
    let r = channel.rank_times(end, &t)[p.rank() as usize];
    assert_eq!(r.standby, 100_000 + 1_000_000 + 1_000_000);
    assert_eq!(r.powerdown, 4_000_000 + 999_000_000);
    assert_eq!(r.selfrefresh, 2_000_000_000);
    assert_eq!(r.active, end - r.standby - r.powerdown - r.selfrefresh);
    assert_eq!((r.wakes, r.deep_wakes), (1, 1));
}

/// An unused rank sleeps no deeper than power-down while its neighbour is used, and in self-refresh once neither is.
#[test]
fn self_refresh_is_entered_by_channel() {
    let mut d = dram();
    (d.ranks, d.refi_ns) = (2, 1e9);
    let t = DramTiming::of(&d);
    let mut channel = Channel::new(&d);
    let used = channel.place(0);
    let mut now = 0;
    for _ in 0..30 {
        now += 100_000_000;
        now += channel.read(now, used, &t).took();
    }
    let other = |channel: &Channel, end| channel.rank_times(end, &t)[1 - used.rank() as usize];
    let r = other(&channel, now);
    assert_eq!((r.selfrefresh, r.standby), (0, 1_000_000));
    assert_eq!(r.powerdown, now - 1_000_000);
    let r = other(&channel, now + 5_000_000_000);
    assert_eq!(r.selfrefresh, 4_000_000_000);
    // A read of the first wakes both.
    now += 5_000_000_000;
    now += channel.read(now, used, &t).took();
    let r = other(&channel, now);
    assert_eq!((r.deep_wakes, r.wakes), (1, 0));
}

#[test]
fn alternating_ranks_cost_the_bus_and_neighbouring_lines_do_not() {
    let d = dram();
    let t = DramTiming::of(&d);
    let mut channel = Channel::new(&d);
    let same_row: u64 = (1..65)
        .map(|i| {
            let p = channel.place(i * LINE);
            channel.bus_time(p, &t)
        })
        .sum();
    assert_eq!(
        same_row,
        64 * t.burst,
        "neighbours lie in different bank groups"
    );
    let other = (1..).find(|r| channel.place(r * 8192).rank() != channel.place(0).rank());
    let other = other.unwrap() * 8192;
    let turns: u64 = (0..64)
        .map(|i| {
            let p = channel.place(if i % 2 == 0 { other } else { 0 });
            channel.bus_time(p, &t)
        })
        .sum();
    assert_eq!(turns, 64 * (t.burst + t.other_rank));
}
