//! Events with their times: requests, page moves and counters, for drawing a run. Recording changes no result of the
//! run.

use super::activity::ChannelActivity;
use super::counts::{SocketCounts, ThreadCounts};
use super::time::Ps;
use std::collections::HashMap;

/// Spans of a kind that are kept at most, about; and points of the counters.
const MOST: usize = 1 << 14;
const MOST_POINTS: usize = 512;
/// Distance of two points at first, ps. It doubles whenever there are too many.
const FIRST_POINT: Ps = 1_000_000;
/// Spans up to this long are joined first, ns.
const SHORT_NS: u64 = 1_000;

/// Counters at one time, since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Virtual time, ns.
    pub now_ns: u64,
    /// All threads together.
    pub counts: ThreadCounts,
    /// Bytes moved between frames.
    pub moved_bytes: u64,
}

/// Something that took time, or several of them, right one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSpan {
    /// Owner: the thread of a request, 0 for a move.
    pub thread: u32,
    /// Of what kind: the class of a request; a [`Move`](MoveKind) as a number.
    pub kind: u32,
    /// When the first one began, ns.
    pub begin_ns: u64,
    /// When the last one ended, ns.
    pub end_ns: u64,
    /// How many they are.
    pub count: u64,
}

/// Where a page was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MoveKind {
    /// From slow to fast memory.
    ToFast = 0,
    /// From fast to slow memory.
    ToSlow = 1,
    /// Within one of them.
    Within = 2,
}

/// Joins neighbours of one thread and kind, the shortest first, until at most about `most` are left. Spans are in the order of their
/// ends, as those that come out are in that of their beginnings.
pub fn join(spans: &mut Vec<JournalSpan>, most: usize) {
    let end = spans.iter().map(|s| s.end_ns).max().unwrap_or(0);
    let mut short = SHORT_NS;
    while spans.len() > most && short < end.saturating_mul(4) {
        let mut last: HashMap<(u32, u32), usize> = HashMap::new();
        let mut joined: Vec<JournalSpan> = Vec::with_capacity(spans.len());
        for span in spans.drain(..) {
            let key = (span.thread, span.kind);
            let before = last.get(&key).map(|&at| &mut joined[at]);
            match before.filter(|b| span.end_ns - b.begin_ns <= short) {
                Some(before) => {
                    before.end_ns = before.end_ns.max(span.end_ns);
                    before.count += span.count;
                }
                None => {
                    last.insert(key, joined.len());
                    joined.push(span);
                }
            }
        }
        *spans = joined;
        short = short.saturating_mul(2);
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// Requests of the whole run.
    pub requests: Vec<JournalSpan>,
    /// Page moves.
    pub moves: Vec<JournalSpan>,
    /// Counters at some times, since the start.
    pub points: Vec<Snapshot>,
    /// Counts of all memory by each of them.
    pub memory: Vec<SocketCounts>,
    /// Activity of each channel's memory by each of them: per point, socket and channel.
    pub activity: Vec<Vec<Vec<ChannelActivity>>>,
    every: Ps,
    pub(super) next: Ps,
}

impl Journal {
    pub(super) fn new() -> Journal {
        Journal {
            every: FIRST_POINT,
            next: FIRST_POINT,
            ..Journal::default()
        }
    }

    pub(super) fn request(&mut self, thread: u32, kind: u32, (begin, end): (Ps, Ps)) {
        add(&mut self.requests, thread, kind, (begin, end));
    }

    pub(super) fn moved(&mut self, kind: MoveKind, time: (Ps, Ps)) {
        add(&mut self.moves, 0, kind as u32, time);
    }

    /// Records the counters, those of memory by socket and by channel.
    pub(super) fn point(
        &mut self,
        at: Snapshot,
        sockets: &[SocketCounts],
        activity: Vec<Vec<ChannelActivity>>,
    ) {
        let mut memory = SocketCounts::default();
        sockets.iter().for_each(|socket| memory.add(socket));
        self.points.push(at);
        self.memory.push(memory);
        self.activity.push(activity);
        if self.points.len() >= MOST_POINTS {
            let every_second = |at: &mut usize| {
                *at += 1;
                at.is_multiple_of(2)
            };
            let (mut a, mut b, mut c) = (0, 0, 0);
            self.points.retain(|_| every_second(&mut a));
            self.memory.retain(|_| every_second(&mut b));
            self.activity.retain(|_| every_second(&mut c));
            self.every *= 2;
        }
        let now = at.now_ns * 1000;
        self.next = now - now % self.every + self.every;
    }
}

fn add(spans: &mut Vec<JournalSpan>, thread: u32, kind: u32, (begin, end): (Ps, Ps)) {
    spans.push(JournalSpan {
        thread,
        kind,
        begin_ns: begin / 1000,
        end_ns: end / 1000,
        count: 1,
    });
    if spans.len() >= 2 * MOST {
        join(spans, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Even if few spans are left, each event is counted once, those of a thread and kind do not overlap, and they
        /// cover all events.
        #[test]
        fn joined_spans_are_what_there_was(
            steps in prop::collection::vec((0u32..3, 0u32..2, 0u64..3000, 1u64..5000), 1..200), most in 6usize..50
        ) {
            let mut clocks = [0u64; 3];
            let mut spans = Vec::new();
            for (thread, kind, gap, length) in steps {
                let begin_ns = clocks[thread as usize] + gap;
                clocks[thread as usize] = begin_ns + length;
                spans.push(JournalSpan { thread, kind, begin_ns, end_ns: begin_ns + length, count: 1 });
            }
            spans.sort_by_key(|s| s.end_ns);
            let all = spans.clone();
            join(&mut spans, most);
            prop_assert!(spans.len() <= most);
            for thread in 0..3 {
                for kind in 0..2 {
                    let of = |s: &&JournalSpan| (s.thread, s.kind) == (thread, kind);
                    let (before, after): (Vec<&JournalSpan>, Vec<&JournalSpan>) = (all.iter().filter(of).collect(), spans.iter().filter(of).collect());
                    prop_assert_eq!(after.iter().map(|s| s.count).sum::<u64>(), before.len() as u64);
                    prop_assert_eq!(after.first().map(|s| s.begin_ns), before.first().map(|s| s.begin_ns));
                    prop_assert_eq!(after.last().map(|s| s.end_ns), before.last().map(|s| s.end_ns));
                    prop_assert!(after.windows(2).all(|w| w[0].end_ns <= w[1].begin_ns));
                }
            }
        }
    }
}
