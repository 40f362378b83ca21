//! One persistent-memory DIMM: media lines of 256 B behind a small buffer that combines writes (Optane-class).

use super::queue::{Drain, Server};
use super::time::{Ps, ps, transfer};
use crate::describe::Pm;

/// What one DIMM did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Timing of a DIMM, ps.
#[derive(Clone, Debug)]
pub struct Timing {
    buffer: Ps,
    media_read: Ps,
    read_line: Ps,
    write_line: Ps,
    drain: Drain,
    line_shift: u32,
    full: u8,
    sets: u32,
}

/// Ways of the buffer in the model; it behaves as fully associative hardware of the same size would, but for rare
/// conflicts, and costs the model 8 compares.
const WAYS: usize = 8;

/// Media writes that may wait inside the DIMM before it stops to accept more, in lines. The DIMM cannot hold more
/// than its buffer; a quarter of it keeps room for combining (assumption).
const WAITING_LINES: u64 = 16;

impl Timing {
    /// Timing from a machine's description.
    pub fn of(p: &Pm) -> Timing {
        let line = p.line_bytes.0.max(64);
        let write_line = transfer(line, p.media_write_gbps);
        let quarters = (line / 64).min(8);
        Timing {
            buffer: ps(p.buffer_ns),
            media_read: ps(p.media_read_ns),
            read_line: transfer(line, p.media_read_gbps),
            write_line,
            drain: Drain {
                high: write_line * WAITING_LINES,
                low: write_line * (WAITING_LINES - 2),
                turnaround: 0,
            },
            line_shift: line.ilog2(),
            full: ((1u16 << quarters) - 1) as u8,
            sets: ((p.buffer_bytes.0 / line) as u32 / WAYS as u32).max(1),
        }
    }
}

/// A buffered media line: number + 1 (0 when empty) and which of its 64 B parts are newer than the media.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    line: u32,
    newer: u8,
}

/// One DIMM.
#[derive(Clone, Debug)]
pub struct Dimm {
    buffer: Box<[[Slot; WAYS]]>,
    media: Server,
    /// What was done.
    pub counts: PmCounts,
}

impl Dimm {
    /// An idle DIMM.
    pub fn new(t: &Timing) -> Dimm {
        Dimm {
            buffer: vec![[Slot::default(); WAYS]; t.sets as usize].into(),
            media: Server::default(),
            counts: PmCounts::default(),
        }
    }

    /// Finds or makes the buffer slot of a line, most recent first; says whether it was there.
    #[inline(always)]
    fn slot(&mut self, now: Ps, line: u32, t: &Timing) -> (&mut Slot, bool) {
        let set = ((line ^ (line >> 7)) % t.sets) as usize;
        let ways = &mut self.buffer[set];
        let key = line + 1;
        if let Some(i) = ways.iter().position(|s| s.line == key) {
            ways[..=i].rotate_right(1);
            return (&mut self.buffer[set][0], true);
        }
        let gone = ways[WAYS - 1];
        ways.rotate_right(1);
        ways[0] = Slot {
            line: key,
            newer: 0,
        };
        if gone.newer != 0 {
            // Not written whole (whole lines leave at once): the media line is read, merged and written.
            self.counts.partial_writes += 1;
            self.counts.media_reads += 1;
            self.counts.media_writes += 1;
            self.media.write(now, t.read_line + t.write_line, &t.drain);
        }
        (&mut self.buffer[set][0], false)
    }

    /// A 64 B read that reaches the DIMM at `now`: how long it waits for the media, and how long it then takes until
    /// its data is ready for the channel.
    #[inline(always)]
    pub fn read(&mut self, now: Ps, local: u64, t: &Timing) -> (Ps, Ps) {
        self.counts.reads += 1;
        let (_, hit) = self.slot(now, (local >> t.line_shift) as u32, t);
        if hit {
            self.counts.buffer_hits += 1;
            return (0, t.buffer);
        }
        self.counts.media_reads += 1;
        (self.media.read(now, t.read_line), t.buffer + t.media_read)
    }

    /// A 64 B write offered at `now`: how long until the DIMM takes it.
    #[inline(always)]
    pub fn write(&mut self, now: Ps, local: u64, t: &Timing) -> Ps {
        self.counts.writes += 1;
        let part = 1u8 << ((local >> 6) as u32 & (t.full.count_ones() - 1));
        let (slot, _) = self.slot(now, (local >> t.line_shift) as u32, t);
        slot.newer |= part;
        if slot.newer == t.full {
            slot.newer = 0;
            self.counts.media_writes += 1;
            self.media.write(now, t.write_line, &t.drain);
        }
        self.media.backlog(now).saturating_sub(t.drain.high)
    }
}
