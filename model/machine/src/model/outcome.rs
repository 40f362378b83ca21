//! Results of a run: phases, counts, a timeline, latencies.

use super::activity::ChannelActivity;
use super::counts::{SocketCounts, ThreadCounts};
use super::events::Events;
use super::flight::Stalls;
use super::journal::{Journal, Snapshot};
use super::owners::{Ledger, OwnerCounts};
use super::tally::tally;
use super::thread::{Shared, Thread};
use super::time::Ps;
use super::{Progress, RankTimes, Sampled};
use hdrhistogram::Histogram;

tally! {
    /// Counts of pages that the daemons moved.
    pub struct MoveCounts {
        /// Moves that the policy asked for.
        pub asked: u64,
        /// Moves carried out.
        pub done: u64,
        /// Moves dropped because the page had gone.
        pub void: u64,
        /// Bytes copied.
        pub bytes: u64,
        /// Moves from slow to fast memory.
        pub promoted: u64,
        /// Moves from fast to slow memory.
        pub demoted: u64,
        /// Bytes zeroed beside the program.
        pub zeroed: u64,
        /// Bytes that the program zeroed itself, since nothing was zero yet.
        pub zeroed_late: u64,
        /// Slices that program threads lost to daemons on their cores.
        pub preemptions: u64,
    }
}

impl Snapshot {
    pub(super) fn of(now: Ps, threads: &[Thread], s: &Shared, events: &Events) -> Snapshot {
        Snapshot {
            now_ns: now / 1000,
            counts: sum(threads),
            moved_bytes: events.counts(s).bytes,
        }
    }
}

/// Latencies of one class of requests, ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// The program's name for it.
    pub class: String,
    /// Requests.
    pub count: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// One phase of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    /// The program's number for it (0 initialization, 1 run; a program without marks has only phase 0).
    pub number: u64,
    /// Virtual time at which it began, ns.
    pub begin_ns: u64,
    /// Virtual time at which it ended, ns: the last thread's.
    pub end_ns: u64,
    /// All threads together.
    pub counts: ThreadCounts,
    /// Time lost, all threads together.
    pub stalls: Stalls,
    /// Time of all threads together, ns, without that in which they slept, were not begun or had ended.
    pub awake_ns: u64,
    /// Memory of each socket.
    pub sockets: Vec<SocketCounts>,
    /// Memory of each channel of each socket, with the power states of its ranks.
    pub channels: Vec<Vec<ChannelActivity>>,
    /// Page moves.
    pub moves: MoveCounts,
    /// Misses and waits by owner, with [`run_by_owner`](super::run_by_owner) only.
    pub owners: Vec<OwnerCounts>,
    /// Latencies of the requests that ended in it, by class.
    pub latencies: Vec<Latency>,
}

impl Phase {
    /// Length, ns.
    pub fn ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// All sockets' memory together.
    pub fn memory(&self) -> SocketCounts {
        let mut sum = SocketCounts::default();
        for s in &self.sockets {
            sum.add(s);
        }
        sum
    }

    /// Share of demand reads from memory that slow memory served, 0 to 1.
    pub fn slow_share(&self) -> f64 {
        self.counts.slow as f64 / (self.counts.llc_misses.max(1)) as f64
    }
}

/// Everything about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Virtual time of the whole run, ns.
    pub ns: u64,
    /// Phases in order.
    pub phases: Vec<Phase>,
    /// Counters over time.
    pub snapshots: Vec<Snapshot>,
    /// Activity of each channel's memory by each of them: per snapshot, socket and channel.
    pub activity: Vec<Vec<Vec<ChannelActivity>>>,
    /// Events with their times, with [`Options::journal`](super::Options) only.
    pub journal: Journal,
    /// Per thread: counts of the whole run.
    pub threads: Vec<ThreadCounts>,
    /// Per thread: time lost in the last phase.
    pub thread_stalls: Vec<Stalls>,
    /// Per thread: virtual time at its end, ns.
    pub thread_ns: Vec<u64>,
    /// Pages in use at the end.
    pub pages: u64,
    /// Virtual page and frame of each of them.
    pub mapping: Vec<(u64, u32)>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Lines of the DRAM caches in use, and all of them.
    pub cache_lines: (u64, u64),
    /// Power-state times by socket, channel and rank.
    pub ranks: Vec<Vec<Vec<RankTimes>>>,
    /// Set if the program gave only windows of its run: times and counts are estimates for the whole run.
    pub sampled: Option<Sampled>,
    /// Misses and waits by owner, with [`run_by_owner`](super::run_by_owner) only.
    pub owners: Vec<OwnerCounts>,
    /// Waits by number of the code that waited, ps, likewise; see [`Program::code`](varve_access::Program::code).
    pub code: Vec<u64>,
    /// Results that the programs computed.
    pub answers: Vec<(String, String)>,
    /// Why a program ended early, in one line, if one did (a truncated trace, a crashed command).
    pub failure: Option<String>,
}

impl Outcome {
    /// The last phase: the run proper.
    pub fn last(&self) -> &Phase {
        self.phases.last().expect("a run has at least one phase")
    }
}

#[derive(Clone, Default)]
struct Mark {
    now: Ps,
    counts: ThreadCounts,
    stalls: Vec<Stalls>,
    /// Time of all threads together until now in which they did not sleep.
    awake: Ps,
    sockets: Vec<SocketCounts>,
    channels: Vec<Vec<ChannelActivity>>,
    moves: MoveCounts,
    owners: Vec<OwnerCounts>,
}

/// Counts by owner and waits by code, of all threads.
fn owners(threads: &[Thread]) -> (Vec<OwnerCounts>, Vec<Ps>) {
    let mut all = Ledger::default();
    for ledger in threads.iter().filter_map(|t| t.flight.ledger.as_ref()) {
        all.add(ledger);
    }
    all.into_counts()
}

/// Most snapshots of a run.
const MAX_SNAPSHOTS: usize = 512;

/// Keeps the books of a run.
pub struct Recorder {
    every: Ps,
    next: Ps,
    snapshots: Vec<Snapshot>,
    activity: Vec<Vec<Vec<ChannelActivity>>>,
    phases: Vec<Phase>,
    number: u64,
    begin: Mark,
    classes: Vec<String>,
    latencies: Vec<Histogram<u64>>,
}

impl Recorder {
    pub fn new(snapshot_ns: u64, classes: Vec<String>) -> Recorder {
        let every = snapshot_ns * 1000;
        Recorder {
            every,
            next: if every == 0 { Ps::MAX } else { every },
            snapshots: Vec::new(),
            activity: Vec::new(),
            phases: Vec::new(),
            number: 0,
            begin: Mark::default(),
            classes,
            latencies: Vec::new(),
        }
    }

    #[inline(always)]
    pub fn next(&self) -> Ps {
        self.next
    }

    pub fn progress(&self, now: Ps, threads: &[Thread]) -> Progress {
        let c = sum(threads);
        Progress {
            now_ns: now / 1000,
            accesses: c.accesses,
            phase: self.number,
            requests: c.requests,
        }
    }

    pub fn snapshot(&mut self, now: Ps, threads: &[Thread], s: &Shared, events: &Events) {
        self.snapshots.push(Snapshot::of(now, threads, s, events));
        self.activity.push(s.memory_counts(now).1);
        if self.snapshots.len() >= MAX_SNAPSHOTS {
            // Every second one goes, and from now on they are taken half as often.
            let every_second = |at: &mut usize| {
                *at += 1;
                at.is_multiple_of(2)
            };
            let (mut a, mut b) = (0, 0);
            self.snapshots.retain(|_| every_second(&mut a));
            self.activity.retain(|_| every_second(&mut b));
            self.every *= 2;
        }
        self.next = now - now % self.every + self.every;
    }

    /// When the request began and ended, ps, if it has begun.
    pub fn end_request(&mut self, t: &mut Thread, class: u64) -> Option<(Ps, Ps)> {
        t.counts.requests += 1;
        // Requests end when their last load has arrived.
        let end = t.clock.max(t.flight.last_load);
        let begin = t.request.take()?;
        let class = class.min(63) as usize;
        while self.latencies.len() <= class {
            // Three digits; up to an hour.
            self.latencies
                .push(Histogram::new_with_max(3_600_000_000_000, 3).expect("constant bounds"));
        }
        self.latencies[class].saturating_record((end - begin) / 1000);
        Some((begin, end))
    }

    fn mark(now: Ps, threads: &[Thread], s: &Shared, events: &Events) -> Mark {
        let (sockets, channels) = s.memory_counts(now);
        Mark {
            now,
            counts: sum(threads),
            stalls: threads.iter().map(|t| t.flight.stalls).collect(),
            awake: threads.iter().map(|t| t.clock - t.slept - t.apart).sum(),
            sockets,
            channels,
            moves: events.counts(s),
            owners: owners(threads).0,
        }
    }

    /// Thread `i` enters phase `number`; the first one to do so ends the phase before.
    pub fn phase(
        &mut self,
        number: u64,
        threads: &[Thread],
        i: usize,
        s: &Shared,
        events: &Events,
    ) {
        if number == self.number {
            return;
        }
        let mark = Self::mark(threads[i].clock, threads, s, events);
        self.close(&mark);
        self.number = number;
        self.begin = mark;
    }

    /// Takes the latencies of the phase that ends.
    fn latencies(&mut self) -> Vec<Latency> {
        let latencies = std::mem::take(&mut self.latencies);
        let ended = latencies.iter().enumerate().filter(|(_, h)| !h.is_empty());
        let of = |(i, h): (usize, &Histogram<u64>)| Latency {
            class: self
                .classes
                .get(i)
                .cloned()
                .unwrap_or_else(|| format!("class {i}")),
            count: h.len(),
            mean_ns: h.mean(),
            p50_ns: h.value_at_quantile(0.5),
            p99_ns: h.value_at_quantile(0.99),
            max_ns: h.max(),
        };
        ended.map(of).collect()
    }

    fn close(&mut self, end: &Mark) {
        let latencies = self.latencies();
        let b = &self.begin;
        if end.now == 0 && end.counts.instructions == 0 && self.phases.is_empty() {
            return;
        }
        let mut stalls = Stalls::default();
        for (i, e) in end.stalls.iter().enumerate() {
            let d = stalls_since(e, b.stalls.get(i));
            stalls.add(&d);
        }
        let sockets = end
            .sockets
            .iter()
            .enumerate()
            .map(|(i, e)| e.since(b.sockets.get(i)))
            .collect();
        let channels = end
            .channels
            .iter()
            .enumerate()
            .map(|(i, socket)| {
                let before = b.channels.get(i);
                let channel = |(j, e): (usize, &ChannelActivity)| {
                    e.since(before.and_then(|socket| socket.get(j)))
                };
                socket.iter().enumerate().map(channel).collect()
            })
            .collect();
        self.phases.push(Phase {
            number: self.number,
            begin_ns: b.now / 1000,
            end_ns: end.now / 1000,
            counts: end.counts.since(&b.counts),
            stalls,
            awake_ns: (end.awake - b.awake) / 1000,
            sockets,
            channels,
            moves: end.moves.since(&b.moves),
            owners: end
                .owners
                .iter()
                .enumerate()
                .map(|(owner, e)| match b.owners.get(owner) {
                    Some(before) => e.since(before),
                    None => *e,
                })
                .collect(),
            latencies,
        });
    }

    pub fn finish(
        mut self,
        threads: &[Thread],
        s: &Shared,
        events: &Events,
        answers: Vec<(String, String)>,
        failure: Option<String>,
    ) -> Outcome {
        let now = threads
            .iter()
            .map(|t| t.clock.max(t.flight.last_load))
            .max()
            .unwrap_or(0);
        let end = Self::mark(now, threads, s, events);
        self.close(&end);
        if self.phases.is_empty() {
            self.phases.push(Phase::default());
        }
        let shift = super::table::ADDRESS_BITS - s.page_shift;
        let mapping: Vec<(u64, u32)> = s
            .tables
            .iter()
            .enumerate()
            .flat_map(|(space, t)| {
                t.pages()
                    .map(move |(vpn, f)| (vpn | (space as u64) << shift, f))
            })
            .collect();
        let (owners, code) = owners(threads);
        let ranks =
            |socket: &Vec<ChannelActivity>| socket.iter().map(|c| c.ranks.clone()).collect();
        let ranks = end.channels.iter().map(ranks).collect();
        Outcome {
            ns: now / 1000,
            thread_stalls: threads
                .iter()
                .enumerate()
                .map(|(i, t)| stalls_since(&t.flight.stalls, self.begin.stalls.get(i)))
                .collect(),
            phases: self.phases,
            snapshots: self.snapshots,
            activity: self.activity,
            journal: Journal::default(),
            threads: threads.iter().map(counts).collect(),
            thread_ns: threads.iter().map(|t| (t.clock - t.apart) / 1000).collect(),
            pages: mapping.len() as u64,
            mapping,
            page_bytes: 1 << s.page_shift,
            cache_lines: s.memory.cache_use(),
            ranks,
            owners,
            code,
            sampled: None,
            answers,
            failure,
        }
    }
}

fn counts(t: &Thread) -> ThreadCounts {
    ThreadCounts {
        instructions: t.flight.instructions,
        ..t.counts
    }
}

fn sum(threads: &[Thread]) -> ThreadCounts {
    let mut all = ThreadCounts::default();
    for t in threads {
        all.add(&counts(t));
    }
    all
}

fn stalls_since(now: &Stalls, then: Option<&Stalls>) -> Stalls {
    then.map_or(*now, |then| now.since(then))
}
