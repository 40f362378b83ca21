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
//! A lag as short as a few requests takes keeps the loop closed: when memory is busy, the simulated instance waits, and so
//! do the others. Caches that instances share are divided among them, see [`share`].

use super::memory::{Memory, Node};
use super::time::Ps;
use std::collections::VecDeque;

/// The others' lags are spread over this time, ps. An assumption: a few requests to slow memory, so that bursts of
/// instances meet, but not request by request.
const LAG: Ps = 1_000_000;

/// Bytes in which the others' pages lie somewhere else: those of the smallest pages.
const PAGE: u64 = 4096;

#[derive(Clone, Copy)]
struct Request {
    at: Ps,
    physical: u64,
    socket: usize,
    write: bool,
}

/// The instances that are not simulated.
pub struct Replicas {
    /// What the simulated instance asked for, as far as some other has still to do so.
    requests: VecDeque<Request>,
    /// Requests that are gone from the front.
    gone: u64,
    /// Of each other instance: its lag, the number of its next request, and when that is due.
    lag: Vec<Ps>,
    next: Vec<u64>,
    due: Vec<Ps>,
    /// Instances alternate between the sockets.
    spread: bool,
    sockets: usize,
    /// Memories, or where channels are not interleaved their ranks: ascending, those of one kind and socket together.
    nodes: Vec<Node>,
}

impl Replicas {
    /// The others of `instances`; none if there is one.
    pub fn new(
        instances: u32,
        spread: bool,
        sockets: u32,
        nodes: Vec<Node>,
    ) -> Option<Box<Replicas>> {
        let others = u64::from(instances.max(1)) - 1;
        (others > 0).then(|| {
            Box::new(Replicas {
                requests: VecDeque::new(),
                gone: 0,
                lag: (1..=others).map(|i| LAG * i / others).collect(),
                next: vec![0; others as usize],
                due: vec![Ps::MAX; others as usize],
                spread,
                sockets: sockets.max(1) as usize,
                nodes,
            })
        })
    }

    /// The simulated instance asks for a line at `at`; before, the others do what is due by then.
    #[inline(never)]
    pub fn request(
        &mut self,
        at: Ps,
        physical: u64,
        socket: usize,
        write: bool,
        memory: &mut Memory,
    ) {
        loop {
            let (mut first, mut when) = (0, Ps::MAX);
            for (i, &due) in self.due.iter().enumerate() {
                if due < when {
                    (first, when) = (i, due);
                }
            }
            if when > at {
                break;
            }
            self.send(first, when, memory);
        }
        // Requests come almost in the order of their times; here they follow each other.
        let at = self.requests.back().map_or(at, |last| at.max(last.at));
        let number = self.gone + self.requests.len() as u64;
        self.requests.push_back(Request {
            at,
            physical,
            socket,
            write,
        });
        for (i, due) in self.due.iter_mut().enumerate() {
            if self.next[i] == number {
                *due = at + self.lag[i];
            }
        }
    }

    /// Instance `i` sends its next request.
    fn send(&mut self, i: usize, at: Ps, memory: &mut Memory) {
        let request = self.requests[(self.next[i] - self.gone) as usize];
        let other = i as u64 + 1;
        let across = if self.spread {
            other as usize % self.sockets
        } else {
            0
        };
        let physical = self.place(request.physical, other, across);
        let socket = (request.socket + across) % self.sockets;
        match request.write {
            true => {
                memory.write(at, physical, socket);
            }
            false => {
                memory.read(at, physical, socket);
            }
        }
        self.next[i] += 1;
        let following = self.requests.get((self.next[i] - self.gone) as usize);
        self.due[i] = following.map_or(Ps::MAX, |r| r.at + self.lag[i]);
        // The last one lags most: what it has done, all have.
        if i + 1 == self.next.len() {
            self.requests.pop_front();
            self.gone += 1;
        }
    }

    /// Where another instance has what is at `physical` for the simulated one: in a page drawn by chance of the same
    /// memory (or rank), on the socket that is `across` further.
    fn place(&self, physical: u64, other: u64, across: usize) -> u64 {
        let after = self.nodes.partition_point(|n| n.base + n.bytes <= physical);
        let at = after.min(self.nodes.len() - 1);
        let from = &self.nodes[at];
        let wanted = (from.socket + across) % self.sockets;
        let of = |socket| {
            let same = move |n: &&Node| n.backing == from.backing && n.socket == socket;
            self.nodes.iter().filter(same)
        };
        // The memory of the same number on that socket.
        let number = of(from.socket).take_while(|n| n.base < from.base).count();
        let to = of(wanted).nth(number).unwrap_or(from);
        let local = physical.wrapping_sub(from.base);
        let pages = (to.bytes / PAGE).max(1);
        let drawn = scatter((local / PAGE) ^ (other << 40));
        let page = ((u128::from(drawn) * u128::from(pages)) >> 64) as u64;
        to.base + page * PAGE + local % PAGE
    }
}

/// A number that looks drawn by chance, always the same for the same one (the finalizer of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// What one of `instances` has of a cache that all on its socket share, bytes.
pub fn share(bytes: u64, instances: u32, spread: bool, sockets: u32) -> u64 {
    let on_socket = if spread {
        instances.div_ceil(sockets.max(1))
    } else {
        instances
    };
    bytes / u64::from(on_socket.max(1))
}

#[cfg(test)]
mod tests;
