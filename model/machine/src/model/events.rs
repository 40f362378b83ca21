//! Events beside the program: the policy's daemons, page moves, and time slices on shared cores.

use super::counts::SocketCounts;
use super::journal::MoveKind;
use super::thread::{Shared, Thread};
use super::time::{Ps, ps};
use super::{MoveCounts, Options};
use crate::describe::Machine;
use varve_access::random::mix;
use varve_access::{Daemons, Move};

/// Bytes that a thread zeroes in a second beside each program, as long as there is something to zero. An assumption: there is no
/// hurry while other memory is zero, and 32 such threads take a twentieth of the bandwidth that six Optane DIMMs have for
/// writes. Threads that zeroed as fast as they can would be felt by every program, right when one has moved its objects.
const ZERO_RATE: u64 = 16 << 20;
/// Bytes that it zeroes at a time: a media line of Optane.
const ZERO_PIECE: u64 = 256;

/// A frame that is being zeroed.
#[derive(Clone, Copy)]
struct Zeroing {
    frame: u32,
    /// How many of its bytes are zero.
    bytes: u64,
    /// When the next ones are.
    next: Ps,
}

/// See the module.
pub struct Events {
    period: Ps,
    next_tick: Ps,
    /// Moves that the policy asked for and that are not begun.
    queue: Vec<Move>,
    /// Next of `queue`.
    at: usize,
    /// The move that runs and when it is done.
    running: Option<(Move, Ps)>,
    /// When it began.
    begun: Ps,
    /// The page of `running` went away while it was copied.
    void: bool,
    zeroing: Option<Zeroing>,
    slice: Ps,
    next_slice: Ps,
    slices: u64,
    /// Threads that share their core with a daemon at any time.
    shared_cores: usize,
    remap: Ps,
    shootdown: Ps,
    seed: u64,
    counts: MoveCounts,
}

impl Events {
    /// Events of a run with `threads` program threads.
    pub fn new(m: &Machine, o: &Options, d: &Daemons, threads: usize) -> Events {
        let wanted = threads + d.threads as usize;
        let shared_cores = if o.cores == 0 {
            0
        } else {
            wanted.saturating_sub(o.cores as usize).min(threads)
        };
        let slice = ps(m.os.slice_ns).max(1000);
        Events {
            period: d.period * 1000,
            next_tick: if d.period == 0 {
                Ps::MAX
            } else {
                d.period * 1000
            },
            queue: Vec::new(),
            at: 0,
            running: None,
            begun: 0,
            void: false,
            zeroing: None,
            slice,
            next_slice: if shared_cores == 0 { Ps::MAX } else { slice },
            slices: 0,
            shared_cores,
            remap: ps(m.os.remap_ns),
            shootdown: ps(m.os.shootdown_ns),
            seed: o.seed,
            counts: MoveCounts::default(),
        }
    }

    /// When something happens next.
    #[inline(always)]
    pub fn next(&self) -> Ps {
        let moved = self.running.map_or(Ps::MAX, |(_, end)| end);
        let zeroed = self.zeroing.map_or(Ps::MAX, |z| z.next);
        self.next_tick.min(moved).min(zeroed).min(self.next_slice)
    }

    /// A page went back to the operating system: moves of it are off.
    pub fn forget(&mut self, vpn: u64) {
        let at = self.at;
        let mut i = 0;
        // Those before `at` are begun or done: their places must stay.
        self.queue.retain(|m| {
            i += 1;
            i <= at || m.vpn != vpn
        });
        self.void |= self.running.is_some_and(|(m, _)| m.vpn == vpn);
    }

    /// Everything due at `now`.
    pub fn happen(&mut self, now: Ps, threads: &mut [Thread], s: &mut Shared) {
        if let Some((done, end)) = self.running
            && now >= end
        {
            self.finish(done, end, threads, s);
            self.begin(end, threads, s);
        }
        if let Some(z) = self.zeroing
            && now >= z.next
        {
            self.zero_piece(z, s);
        }
        if now >= self.next_tick {
            self.next_tick = now - now % self.period + self.period;
            // A daemon that still carries out its last decisions does not wake for new ones.
            if self.running.is_none() {
                self.queue.clear();
                self.at = 0;
                let lines = |c: &SocketCounts| c.dram.reads + c.dram.writes;
                let lines: u64 = s.memory_counts(now).0.iter().map(lines).sum();
                s.pager.traffic(now / 1000, 64 * lines);
                s.pager.tick(now / 1000, &mut self.queue);
                self.counts.asked += self.queue.len() as u64;
                self.begin(now, threads, s);
            }
        }
        if now >= self.next_slice {
            self.next_slice = now - now % self.slice + self.slice;
            self.slices += 1;
            // On a shared core the daemon has every second slice; the scheduler changes the core now and then.
            if self.slices.is_multiple_of(2) {
                for k in 0..self.shared_cores {
                    let turn = mix(self.seed ^ (self.slices / 16)) as usize;
                    let i = (turn + k * threads.len() / self.shared_cores.max(1)) % threads.len();
                    threads[i].lose(self.slice);
                    self.counts.preemptions += 1;
                }
            }
        }
    }

    /// Frames may have been freed: begins to zero one, unless it is zeroing another one already.
    pub fn zero_next(&mut self, now: Ps, s: &mut Shared) {
        if self.zeroing.is_none()
            && let Some(frame) = s.pager.to_zero()
        {
            let begun = Zeroing {
                frame,
                bytes: 0,
                next: now,
            };
            self.zero_piece(begun, s);
        }
    }

    /// Zeroes the next bytes of a frame, and returns when others follow.
    fn zero_piece(&mut self, mut z: Zeroing, s: &mut Shared) {
        if z.bytes >> s.page_shift != 0 {
            self.counts.zeroed += z.bytes;
            s.pager.zeroed(z.frame);
            self.zeroing = None;
            return self.zero_next(z.next, s);
        }
        let at = (u64::from(z.frame) << s.page_shift) + z.bytes;
        let end = s.zero(z.next, at, ZERO_PIECE, None);
        z.bytes += ZERO_PIECE;
        let rate = ZERO_RATE * s.tables.len().max(1) as u64;
        z.next = end.max(z.next + ZERO_PIECE * 1_000_000_000_000 / rate);
        self.zeroing = Some(z);
    }

    /// Counts of moved and zeroed pages.
    pub fn counts(&self, s: &Shared) -> MoveCounts {
        MoveCounts {
            zeroed_late: s.zeroed_late,
            ..self.counts
        }
    }

    /// Begins the next move: the page is write-protected, its translation shot down, and copied.
    fn begin(&mut self, now: Ps, threads: &mut [Thread], s: &mut Shared) {
        while let Some(&m) = self.queue.get(self.at) {
            self.at += 1;
            if s.tables[space(&m, s)].frame(page(&m, s)) != Some(m.from) {
                // The page went away since the decision: the target frame is free again.
                self.counts.void += 1;
                s.pager.moved(&Move { from: m.to, ..m });
                continue;
            }
            self.shoot_down(m.vpn, threads);
            let bytes = 1u64 << s.page_shift;
            let (from, to) = (
                (m.from as u64) << s.page_shift,
                (m.to as u64) << s.page_shift,
            );
            let end = s.copy(now, from, to, bytes) + self.remap;
            s.moving = Some((m.vpn, end));
            self.running = Some((m, end));
            self.begun = now;
            return;
        }
        self.running = None;
        s.moving = None;
    }

    fn finish(&mut self, m: Move, end: Ps, threads: &mut [Thread], s: &mut Shared) {
        if std::mem::take(&mut self.void) {
            self.counts.void += 1;
            return;
        }
        self.counts.done += 1;
        self.counts.bytes += 1 << s.page_shift;
        let (was, is) = (
            s.memory.is_fast((m.from as u64) << s.page_shift),
            s.memory.is_fast((m.to as u64) << s.page_shift),
        );
        self.counts.promoted += (!was && is) as u64;
        self.counts.demoted += (was && !is) as u64;
        let kind = match (was, is) {
            (false, true) => MoveKind::ToFast,
            (true, false) => MoveKind::ToSlow,
            _ => MoveKind::Within,
        };
        if let Some(journal) = &mut s.journal {
            journal.moved(kind, (self.begun, end));
        }
        let (space, page) = (space(&m, s), page(&m, s));
        s.tables[space].map(page, m.to);
        self.shoot_down(m.vpn, threads);
        s.pager.moved(&m);
    }

    fn shoot_down(&self, vpn: u64, threads: &mut [Thread]) {
        for t in threads {
            t.shoot_down(vpn);
            t.lose(self.shootdown);
        }
    }
}

fn space(m: &Move, s: &Shared) -> usize {
    (m.vpn >> (super::table::ADDRESS_BITS - s.page_shift)) as usize
}

fn page(m: &Move, s: &Shared) -> u64 {
    m.vpn & ((1 << (super::table::ADDRESS_BITS - s.page_shift)) - 1)
}
