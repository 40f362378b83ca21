//! One persistent-memory DIMM: media lines of 256 B behind a small buffer that combines writes (Optane-class).

use super::divide::Divisor;
use super::queue::Server;
use super::tally::tally;
use super::time::{Ps, ps, transfer};
use crate::arch::equal_among_8;
use crate::describe::Pm;
use std::collections::VecDeque;
use varve_access::random::xorshift;
use wear::Wear;

mod wear;

tally! {
    /// Counts of one DIMM.
    pub struct PmCounts {
        /// 64 B reads asked for.
        pub reads: u64,
        /// 64 B writes asked for.
        pub writes: u64,
        /// Reads that the buffer answered.
        pub buffer_hits: u64,
        /// Media lines read, those of read-modify-write included.
        pub media_reads: u64,
        /// Media lines written.
        pub media_writes: u64,
        /// Media writes of lines that were not written whole, so that the rest had to be read first.
        pub partial_writes: u64,
    }
}

/// Timing of a DIMM, ps.
#[derive(Clone, Debug)]
pub struct PmTiming {
    buffer: Ps,
    media_read: Ps,
    read_line: Ps,
    write_line: Ps,
    /// Writes that may wait in the DIMM, ps of work.
    waiting: Ps,
    line_shift: u32,
    full: u8,
    sets: Divisor,
}

/// Ways of the buffer in the model: close to fully associative hardware of the same size, for 8 compares.
const WAYS: usize = 8;

/// Media writes that may wait inside the DIMM before it stops to accept more, as a share of the buffer's lines
/// (assumption: a quarter; the rest stays free for combining).
const WAITING_SHARE: f64 = 0.25;

impl PmTiming {
    /// Timing from a machine's description.
    pub fn of(p: &Pm) -> PmTiming {
        let line = p.line_bytes.0.max(64);
        let write_line = transfer(line, p.media_write_gbps);
        let quarters = (line / 64).min(8);
        let lines = (p.buffer_bytes.0 / line).max(1);
        let whole = ((lines as f64 * WAITING_SHARE) as u64).max(1);
        PmTiming {
            buffer: ps(p.buffer_ns),
            media_read: ps(p.media_read_ns),
            read_line: transfer(line, p.media_read_gbps),
            write_line,
            waiting: write_line * whole,
            line_shift: line.ilog2(),
            full: ((1u16 << quarters) - 1) as u8,
            sets: Divisor::new(lines / WAYS as u64),
        }
    }
}

/// Buffered media lines.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    /// Number + 1 of each, 0 when empty.
    lines: [u32; WAYS],
    /// Which of its 64 B parts are newer than the media.
    newer: [u8; WAYS],
    /// A whole line waits here until the media has taken it.
    until: [Ps; WAYS],
}

/// Writes that wait until a DIMM takes them, in no order.
///
/// A write reaches its memory controller through the slice of the last-level cache that its line is hashed to, so the
/// lines of one block come over different ways (McCalpin, Mapping addresses to L3/CHA slices in Intel processors, 2021).
/// As long as nothing waits they come in the order of the program. Once they queue at all slices, the one that is taken
/// next is any of those that wait, and the parts of a media line no longer follow one another: with many writers some
/// are pushed out of the DIMM's buffer before they are whole.
#[derive(Clone, Debug, Default)]
struct Crowd {
    /// When the DIMM takes each of the writes that were offered to it and had to wait, ascending.
    until: VecDeque<Ps>,
    /// The lines that wait; which of them is taken at which of those times is not known before.
    lines: Vec<u64>,
}

impl Crowd {
    /// Writes that still wait at `now`.
    #[inline(always)]
    fn waiting(&mut self, now: Ps) -> usize {
        while self.until.front().is_some_and(|t| *t <= now) {
            self.until.pop_front();
        }
        self.until.len()
    }

    /// Takes any one.
    fn take(&mut self, state: &mut u64) -> u64 {
        let place = (xorshift(state) >> 32) as usize % self.lines.len();
        self.lines.swap_remove(place)
    }
}

/// One DIMM.
#[derive(Clone, Debug)]
pub struct Dimm {
    buffer: Box<[Set]>,
    media: Server,
    crowd: Crowd,
    wear: Wear,
    random: u64,
    /// Counts so far.
    pub counts: PmCounts,
}

impl Dimm {
    /// An idle DIMM.
    pub fn new(t: &PmTiming) -> Dimm {
        Dimm {
            buffer: vec![Set::default(); t.sets.value() as usize].into(),
            media: Server::default(),
            crowd: Crowd::default(),
            wear: Wear::default(),
            random: 1,
            counts: PmCounts::default(),
        }
    }

    /// The slot of a line, found or made: set, way, and whether it was there.
    #[inline(always)]
    fn slot(&mut self, now: Ps, line: u32, t: &PmTiming) -> (usize, usize, bool) {
        let number = t.sets.divide((line ^ (line >> 7)) as u64).1 as usize;
        let set = &mut self.buffer[number];
        let found = equal_among_8(&set.lines, line + 1);
        if found != 0 {
            return (number, found.trailing_zeros() as usize % WAYS, true);
        }
        let way = victim(now, set, &mut self.random);
        let before = std::mem::replace(&mut set.lines[way], line + 1);
        set.until[way] = 0;
        if std::mem::take(&mut set.newer[way]) != 0 {
            // Not written whole: the media line is read, merged and written. The read goes on beside the writes before
            // it: random writes of 64 B reach as many media lines a second as those of 256 B do (Yang et al., FAST
            // 2020, figure 5).
            self.counts.partial_writes += 1;
            self.counts.media_reads += 1;
            self.write_media(now, before - 1, t);
        }
        (number, way, false)
    }

    /// A 64 B read that reaches the DIMM at `now`: how long it waits for the media, and how long it then takes until
    /// its data is ready for the channel.
    #[inline(always)]
    pub fn read(&mut self, now: Ps, local: u64, t: &PmTiming) -> (Ps, Ps) {
        self.counts.reads += 1;
        let (_, _, hit) = self.slot(now, (local >> t.line_shift) as u32, t);
        if hit {
            self.counts.buffer_hits += 1;
            return (0, t.buffer);
        }
        self.counts.media_reads += 1;
        (
            self.media
                .read_in_turn(now, t.read_line, t.waiting, t.write_line),
            t.buffer + t.media_read,
        )
    }

    /// A 64 B write offered at `now`: how long until the DIMM takes it. [`Dimm::admitted`] must follow.
    #[inline(always)]
    pub fn write(&mut self, now: Ps, local: u64, t: &PmTiming) -> Ps {
        self.counts.writes += 1;
        if self.crowd.until.is_empty() {
            self.put(now, local, t);
        } else {
            self.mingle(now, local, t);
        }
        let wait = self.media.backlog(now).saturating_sub(t.waiting);
        wait.max(self.wear.wait(now))
    }

    /// A media line is written behind all others; returns how long until it is.
    #[inline(always)]
    fn write_media(&mut self, now: Ps, line: u32, t: &PmTiming) -> Ps {
        self.counts.media_writes += 1;
        if self.wear.written(now, line, t.line_shift) {
            self.counts.media_reads += Wear::lines(t.line_shift);
            self.counts.media_writes += Wear::lines(t.line_shift);
        }
        self.media.write_behind(now, t.write_line)
    }

    /// The last write offered at `now` finds room in the controller's queue at `at`.
    #[inline(always)]
    pub fn admitted(&mut self, now: Ps, at: Ps) {
        if at > now {
            self.crowd.until.push_back(at);
        }
    }

    /// A write joins those that wait; as many are put into the buffer as the DIMM has taken by now.
    #[inline(never)]
    fn mingle(&mut self, now: Ps, local: u64, t: &PmTiming) {
        let waiting = self.crowd.waiting(now);
        self.crowd.lines.push(local);
        while self.crowd.lines.len() > waiting {
            let line = self.crowd.take(&mut self.random);
            self.put(now, line, t);
        }
    }

    /// A 64 B write enters the buffer.
    #[inline(always)]
    fn put(&mut self, now: Ps, local: u64, t: &PmTiming) {
        let part = 1u8 << ((local >> 6) as u32 & (t.full.count_ones() - 1));
        let line = (local >> t.line_shift) as u32;
        let (number, way, _) = self.slot(now, line, t);
        let set = &mut self.buffer[number];
        set.newer[way] |= part;
        if set.newer[way] == t.full {
            set.newer[way] = 0;
            let until = now + self.write_media(now, line, t);
            self.buffer[number].until[way] = until;
        }
    }
}

/// The way that has to go: any one that does not hold a whole line that the media still has to take.
///
/// At random, because the replacement is not published and the measured one is no LRU: a buffer of 64 lines in that
/// order would combine the writes of 24 sequential writers, and serve 24 sequential readers, without loss (Yang et al.,
/// FAST 2020, figure 4 and section 5.3).
#[inline(always)]
fn victim(now: Ps, set: &Set, state: &mut u64) -> usize {
    let first = (xorshift(state) >> 32) as usize % WAYS;
    if set.until[first] <= now {
        return first;
    }
    next_victim(now, set, first)
}

#[inline(never)]
fn next_victim(now: Ps, set: &Set, first: usize) -> usize {
    (first..first + WAYS)
        .map(|way| way % WAYS)
        .find(|way| set.until[*way] <= now)
        .unwrap_or(first)
}

#[cfg(test)]
mod tests;
