//! Symmetric replication: one instance of the programs is simulated, and the others load the memory as it does.
//!
//! Every other instance sends the requests of the simulated one again, a little later, to pages of its own:
//!
//! ```text
//! simulated   a-b---c---------d-e-----
//! first other  -a-b---c---------d-e---     each lags by its part of LAG
//! second       ---a-b---c---------d-e-
//! ```
//!
//! At first lags are as short as a few requests take. Where the program reports the ends of its cycles, such as
//! collections, the others spread over the last one: instances that run for long collect at different times, and so do
//! these. Whenever a cycle takes much more or less time than those before it, they spread anew, by repeating some
//! requests or leaving them out.
//!
//! The loop is closed: when memory is busy, the simulated instance waits, and so do the others, a cycle later at most. Each of them has as
//! many lines as a core may have that wait to leave, and waits itself when there are more. Caches that instances share are divided
//! among them, see [`share`].
//!
//! Where a run is long, the others send their requests in windows of time only: see [`windows`](super::windows).

use super::activity::ChannelActivity;
use super::counts::SocketCounts;
use super::host::{Common, InstructionLevel, Work};
use super::link::Store;
use super::memory::{Backing, MemorySystem, NodeRange, Reply};
use super::queue::Entries;
use super::time::Ps;
use super::windows::{To, WINDOW, Windows};
use crate::arch::Newer;
use crate::describe::Core;
use turns::Turns;
use varve_access::random::Rng;

/// The others' lags are spread over this time, ps. An assumption: a few requests to slow memory, so that bursts of
/// instances meet, but not request by request.
const LAG: Ps = 1_000_000;

/// The others spread anew over a cycle that is this many times as long, or as short, as the one that they are spread
/// over: an assumption, between the few percent by which cycles of steady work differ and a factor that would bunch
/// instances.
const CHANGED: f64 = 1.5;

/// The others of windows are spread over at least this time, ps: over some windows, which show parts of a short cycle that have
/// nothing to do with each other.
const SPREAD: Ps = 16 * WINDOW;

/// Limit of the requests kept for lagging instances, some 100 MB. Longer cycles are kept in part.
const KEPT: usize = 1 << 22;

/// Bytes in which the others' pages lie somewhere else: those of the smallest pages.
const PAGE: u64 = 4096;

/// A request of the simulated instance.
#[derive(Clone, Copy)]
struct Request {
    at: Ps,
    /// The memory (or rank), the page of it, and where in the page.
    page: u64,
    memory: u16,
    inside: u16,
    socket: u16,
    /// How it is written; `None`: it is read.
    write: Option<Store>,
}

/// The requester.
#[derive(Clone, Copy)]
pub struct By {
    /// The socket of the core, or of the engine that zeroes memory.
    pub socket: usize,
    /// The thread, by its number within the run; `None`: one that zeroes memory beside the program, which no thread
    /// waits for.
    pub thread: Option<usize>,
    /// Instructions that it has done.
    pub instructions: u64,
}

/// The same, as it is asked for.
struct Asked {
    by: By,
    /// When the instance comes to it.
    now: Ps,
    /// When memory is to.
    at: Ps,
    physical: u64,
    write: Option<Store>,
}

/// Where an instance has its pages of one memory (or rank).
#[derive(Clone, Copy)]
struct Span {
    node: NodeRange,
    /// Where in the node they begin.
    first: u64,
    pages: u64,
}

/// Requests that all others have sent are dropped at least this many at a time.
const DROPPED: usize = 4096;

/// An instance that is not simulated.
struct Other {
    /// Its part of [`LAG`].
    least: Ps,
    /// Its lag.
    lag: Ps,
    /// Its next request, by its place in `requests`.
    next: usize,
    /// How many sockets further it runs, and where its row of `spans` begins.
    across: usize,
    spans: usize,
    /// Its lines that wait until memory takes them.
    leaving: Entries,
    /// Its fills that wait for room among these: at most the store misses of a core, since mostly stores push dirty
    /// lines out.
    fills: Entries,
}

/// The instances that are not simulated.
pub struct Replicas {
    /// Requests of the simulated instance that some other instance has still to send, and a few older ones.
    requests: Vec<Request>,
    others: Vec<Other>,
    /// When the next request of each is due.
    turns: Turns,
    /// How many of them have done all that there is to do.
    idle: usize,
    /// The time until which they have sent all requests.
    until: Ps,
    /// The cycle that they are spread over; none at first.
    cycle: Ps,
    /// When the last cycle ended, and how many of `requests` were there by then.
    ended: (Ps, usize),
    sockets: usize,
    /// Memories, or where channels are not interleaved the channels of one: ascending, those of one kind and socket together.
    nodes: Vec<NodeRange>,
    /// For each number of sockets that an instance may run further, its spans of each memory: one per node, in a row.
    spans: Vec<Span>,
    /// The instructions that the others are run with.
    newer: Option<Newer>,
    /// When the others send requests, and the waits in between; always if there are none.
    windows: Option<Box<Windows>>,
}

impl Replicas {
    /// The others of `instances`; none if there is one.
    pub fn new(
        instances: u32,
        spread: bool,
        sockets: u32,
        core: &Core,
        nodes: Vec<NodeRange>,
        memory: &MemorySystem,
        windows: Option<Windows>,
    ) -> Option<Box<Replicas>> {
        let others = instances.max(1) as usize - 1;
        let sockets = sockets.max(1) as usize;
        let row = nodes.len();
        let across = |i| if spread { i % sockets } else { 0 };
        let other = |i| Other {
            least: LAG * i as u64 / others as u64,
            lag: LAG * i as u64 / others as u64,
            next: 0,
            across: across(i),
            spans: across(i) * row,
            leaving: Entries::new(core.evictions),
            fills: Entries::new(core.store_misses),
        };
        (others > 0).then(|| {
            Box::new(Replicas {
                requests: Vec::new(),
                others: (1..=others).map(other).collect(),
                turns: Turns::new(others),
                idle: others,
                until: 0,
                cycle: 0,
                ended: (0, 0),
                sockets,
                spans: (0..sockets)
                    .flat_map(|s| spans(&nodes, s, sockets, memory))
                    .collect(),
                nodes,
                newer: Newer::detect(),
                windows: windows.map(Box::new),
            })
        })
    }

    /// The simulated instance reads a line at `at`, from a memory that the others load.
    #[inline(always)]
    pub fn read(&mut self, by: By, at: Ps, physical: u64, memory: &mut MemorySystem) -> Reply {
        let socket = by.socket;
        let asked = Asked {
            by,
            now: at,
            at,
            physical,
            write: None,
        };
        if self.windows.is_none() {
            self.request(&asked, memory);
            return memory.read(at, physical, socket);
        }
        let reply = memory.read(at, physical, socket);
        Reply {
            done: self.in_windows(&asked, reply.done),
            ..reply
        }
    }

    /// It writes one at `at`, which is `now` or, where a line waits until it may leave, later. Returns when the write queue took it.
    #[inline(always)]
    pub fn write(
        &mut self,
        by: By,
        (now, at): (Ps, Ps),
        physical: u64,
        how: Store,
        memory: &mut MemorySystem,
    ) -> Ps {
        let socket = by.socket;
        let asked = Asked {
            by,
            now,
            at,
            physical,
            write: Some(how),
        };
        if self.windows.is_none() {
            self.request(&asked, memory);
            return memory.write(at, physical, socket, how);
        }
        let alone = memory.write(at, physical, socket, how);
        self.in_windows(&asked, alone)
    }

    /// When a memory answers that the others load, if one that is alone answers at `alone`.
    #[inline(never)]
    fn in_windows(&mut self, asked: &Asked, alone: Ps) -> Ps {
        let Some(mut windows) = self.windows.take() else {
            return alone;
        };
        let done = self.answer(&mut windows, asked, alone);
        self.windows = Some(windows);
        done
    }

    fn answer(&mut self, windows: &mut Windows, asked: &Asked, alone: Ps) -> Ps {
        let &Asked {
            by,
            now,
            at,
            physical,
            write,
        } = asked;
        while now >= windows.turn() {
            let turn = windows.turn();
            if windows.runs() {
                self.until(windows.busy_time(turn), windows.busy());
                windows.end();
            } else {
                windows.begin(turn);
            }
        }
        if let Some(thread) = by.thread {
            windows.come(thread, by.instructions, now);
        }
        let memory = self.part(physical);
        let to = To {
            memory,
            far: self.nodes[memory].socket != by.socket,
            write,
        };
        if !windows.runs() {
            // Windows are not to begin when something is zeroed: that would be more often where a program does a lot else.
            if by.thread.is_none() {
                return alone;
            }
            match windows.repeat(to, at, alone) {
                Some(done) => return done,
                None => windows.begin(now),
            }
        }
        let gap = windows.gap();
        let (now, at) = (now.saturating_sub(gap), at.saturating_sub(gap));
        let asked = Asked { now, at, ..*asked };
        self.request(&asked, windows.busy());
        let done = match write {
            None => windows.busy().read(at, physical, by.socket).done,
            Some(how) => windows.busy().write(at, physical, by.socket, how),
        };
        if by.thread.is_some() {
            windows.note(to, done + gap, alone);
        }
        done + gap
    }

    /// A page is copied from `now` on, as by [`MemorySystem::copy`].
    pub fn copy(
        &mut self,
        now: Ps,
        (from, to): (u64, u64),
        bytes: u64,
        lanes: usize,
        memory: &mut MemorySystem,
    ) -> Ps {
        let alone = memory.copy(now, from, to, bytes, lanes);
        match &mut self.windows {
            Some(windows) if windows.runs() => {
                let gap = windows.gap();
                gap + windows
                    .busy()
                    .copy(now.saturating_sub(gap), from, to, bytes, lanes)
            }
            _ => alone,
        }
    }

    /// Counts of each socket so far, and activity of each channel's memory until `now`; `None` if the memory itself
    /// counts.
    pub fn counts(&self, now: Ps) -> Option<(Vec<SocketCounts>, Vec<Vec<ChannelActivity>>)> {
        self.windows.as_ref().map(|windows| windows.counts(now))
    }

    /// The others send the requests that are due until `now`.
    fn until(&mut self, now: Ps, memory: &mut MemorySystem) {
        let newer = self.newer;
        let others = Others {
            replicas: self,
            memory,
            until: now,
        };
        match newer {
            Some(newer) => newer.run(others),
            None => Common.run(others),
        }
        // The others are done with everything before this time.
        self.until = self.until.max(now);
    }

    /// The memory, of `nodes`, of an address.
    #[inline(always)]
    fn part(&self, physical: u64) -> usize {
        let after = self.nodes.partition_point(|n| n.base + n.bytes <= physical);
        after.min(self.nodes.len() - 1)
    }

    /// The simulated instance asks for a line. The others send the requests that are due by now.
    #[inline(never)]
    fn request(&mut self, asked: &Asked, memory: &mut MemorySystem) {
        self.until(asked.now, memory);
        let at = asked.at.max(self.until);
        self.forget_old();
        let memory = self.part(asked.physical);
        let local = asked.physical.wrapping_sub(self.nodes[memory].base);
        let request = Request {
            at,
            page: local / PAGE,
            memory: memory as u16,
            inside: (local % PAGE) as u16,
            socket: asked.by.socket as u16,
            write: asked.write,
        };
        // Those that wait to leave are few, and none of the others has come so far.
        let later = self.requests.iter().rev().take_while(|r| r.at > at).count();
        let place = self.requests.len() - later;
        self.requests.insert(place, request);
        if self.idle > 0 || later > 0 {
            for (i, other) in self.others.iter().enumerate() {
                if other.next == place {
                    self.turns.set(i, at + other.lag);
                }
            }
            self.idle = 0;
        }
    }

    /// Drops requests that no instance needs any more. The last of the others mostly lags most. Requests since the last
    /// cycle may be needed again, unless there are too many.
    #[inline(always)]
    fn forget_old(&mut self) {
        let done = self.others[self.others.len() - 1].next;
        if done >= DROPPED && 2 * done >= self.requests.len() {
            self.forget(done);
        }
    }

    #[inline(never)]
    fn forget(&mut self, done: usize) {
        let done = self.others.iter().fold(done, |least, o| least.min(o.next));
        let old = match self.requests.len() - self.ended.1 <= KEPT {
            true => done.min(self.ended.1),
            false => done,
        };
        // Requests kept for a cycle move only when at least half of all can be dropped.
        if 2 * old < self.requests.len() {
            return;
        }
        self.requests.drain(..old);
        for other in &mut self.others {
            other.next -= old;
        }
        self.ended.1 = self.ended.1.saturating_sub(old);
    }

    /// A cycle of the simulated instance ends.
    pub fn cycle(&mut self, at: Ps) {
        let (begun, from) = self.ended;
        let (at, least) = match &self.windows {
            Some(windows) => (windows.busy_time(at), SPREAD),
            None => (at, 0),
        };
        let length = at.saturating_sub(begun).max(least);
        self.ended = (at, self.requests.len());
        if from >= self.requests.len() {
            return;
        }
        let ratio = length as f64 / self.cycle.max(1) as f64;
        if (1.0 / CHANGED..=CHANGED).contains(&ratio) {
            return;
        }
        self.cycle = length;
        self.spread(at, length);
    }

    /// Spreads the others over a cycle that has just ended.
    fn spread(&mut self, at: Ps, length: Ps) {
        let instances = self.others.len() as u64 + 1;
        self.idle = 0;
        for (i, other) in self.others.iter_mut().enumerate() {
            let part = u128::from(length) * (i as u128 + 1) / u128::from(instances);
            other.lag = other.least + part as Ps;
            let from = at.saturating_sub(other.lag);
            other.next = self.requests.partition_point(|r| r.at < from);
            match self.requests.get(other.next) {
                Some(next) => self.turns.set(i, next.at + other.lag),
                None => {
                    self.idle += 1;
                    self.turns.rest(i);
                }
            }
        }
    }

    /// All other instances send the requests that are due until `until`.
    #[inline(always)]
    fn catch_up(&mut self, until: Ps, memory: &mut MemorySystem) {
        while let Some((first, when)) = self.turns.first(until) {
            self.send(first, when, memory);
        }
    }

    /// Instance `i` sends its next request. As in a simulated instance, a line that is pushed out waits until there is
    /// room for it, and the fill that pushed it out waits too. When the fills that wait take all buffers of a core, the
    /// whole instance waits.
    #[inline(always)]
    fn send(&mut self, i: usize, at: Ps, memory: &mut MemorySystem) {
        let other = &mut self.others[i];
        let request = &self.requests[other.next];
        let span = &self.spans[other.spans + usize::from(request.memory)];
        // In a page drawn by chance.
        let drawn = scatter(request.page ^ ((i as u64 + 1) << 40));
        let page = ((u128::from(drawn) * u128::from(span.pages)) >> 64) as u64;
        let local = span.first + page * PAGE + u64::from(request.inside);
        let further = usize::from(request.socket) + other.across;
        let socket = if further < self.sockets {
            further
        } else {
            further - self.sockets
        };
        let mut goes_on = at;
        match request.write {
            Some(Store::Evicted) => {
                goes_on = other.fills.admit(at);
                let room = other.leaving.admit(goes_on);
                let taken = memory.write_in(&span.node, room, local, socket, Store::Evicted);
                other.leaving.hold(taken.max(room));
                other.fills.hold(room);
            }
            Some(how) => {
                memory.write_in(&span.node, at, local, socket, how);
            }
            None => {
                memory.read_in(&span.node, at, local, socket);
            }
        }
        other.next += 1;
        match self.requests.get(other.next) {
            Some(following) => self.turns.set(i, goes_on.max(following.at + other.lag)),
            None => {
                self.idle += 1;
                self.turns.rest(i);
            }
        }
    }
}

/// Work of the other instances until a time.
struct Others<'r> {
    replicas: &'r mut Replicas,
    memory: &'r mut MemorySystem,
    until: Ps,
}

impl Work for Others<'_> {
    type Out = ();

    #[inline(always)]
    fn work<L: InstructionLevel>(self, _: L) {
        self.replicas.catch_up(self.until, self.memory);
    }
}

/// The memory of an instance that runs `across` sockets further: for each memory of the simulated one with processors beside it, that of
/// the same kind and number on its own socket. Automatic balancing moves pages to nodes of processors alone, so slow memory is the same.
fn spans(nodes: &[NodeRange], across: usize, sockets: usize, memory: &MemorySystem) -> Vec<Span> {
    let of = |from: &NodeRange| {
        let backing = from.backing;
        let wanted = match backing {
            Backing::Dram | Backing::Cached => (from.socket + across) % sockets,
            Backing::Pm | Backing::Cxl => from.socket,
        };
        let on = |socket| {
            let same = move |n: &&NodeRange| n.backing == backing && n.socket == socket;
            nodes.iter().filter(same)
        };
        let number = on(from.socket).take_while(|n| n.base < from.base).count();
        let to = on(wanted).nth(number).unwrap_or(from);
        let node = memory.node_of(to.base);
        Span {
            node,
            first: to.base - node.base,
            pages: (to.bytes / PAGE).max(1),
        }
    };
    nodes.iter().map(of).collect()
}

/// A pseudo-random number, always the same for the same argument.
fn scatter(number: u64) -> u64 {
    Rng::from_state(number).bits()
}

/// Bytes that one of `instances` has of a cache that all instances on its socket share.
pub fn share(bytes: u64, instances: u32, spread: bool, sockets: u32) -> u64 {
    let on_socket = if spread {
        instances.div_ceil(sockets.max(1))
    } else {
        instances
    };
    bytes / u64::from(on_socket.max(1))
}

mod turns;

#[cfg(test)]
pub(super) mod tests;
