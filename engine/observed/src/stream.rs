//! The messages from the thread of a managed program to the model's thread, in order.
//!
//! ```text
//! the program's thread                             the model's thread
//!   Sink::take   accesses -------- channel ------> Program::fill     what it runs next
//!   Sink::bind   range, tier ----------------->    Tiers             where pages of the range will be
//!   Sink::now    <------------- virtual time --    when all of that has been run
//! ```
//!
//! Everything travels in order, so that a run is the same every time, whichever of the threads is ahead. A fixed number of buffers for accesses is
//! reused. The model returns processed buffers half of all at a time, so that it seldom has to wake the program's thread, which waits for them.

use super::pages::Tiers;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use varve_access::{Op, Program};
use varve_runtime::Sink;

/// Buffers of accesses, which is how far a program may be ahead.
const BUFFERS: usize = 16;

enum Message {
    Ops(Vec<Op>),
    Bind { address: u64, bytes: u64, tier: u8 },
    Release { address: u64, bytes: u64 },
    Now(SyncSender<u64>),
}

/// The two ends for program number `space` of a run.
pub fn pair(space: usize, tiers: Arc<Tiers>) -> (AccessSink, AccessStream) {
    let (send, receive) = channel();
    let (give_back, given_back) = channel();
    let stream = AccessStream {
        receive,
        give_back,
        tiers,
        space,
        done_with: Vec::with_capacity(BUFFERS),
    };
    let sink = AccessSink {
        send,
        given_back,
        empty: vec![Vec::new(); BUFFERS],
    };
    (sink, stream)
}

/// The program's end.
pub struct AccessSink {
    send: Sender<Message>,
    given_back: Receiver<Vec<Vec<Op>>>,
    empty: Vec<Vec<Op>>,
}

impl Sink for AccessSink {
    fn take(&mut self, ops: &[Op]) -> bool {
        if self.empty.is_empty() {
            match self.given_back.recv() {
                Ok(buffers) => self.empty = buffers,
                Err(_) => return false,
            }
        }
        let mut buffer = self.empty.pop().expect("given back by the half of all");
        buffer.clear();
        buffer.extend_from_slice(ops);
        self.send.send(Message::Ops(buffer)).is_ok()
    }

    fn bind(&mut self, address: u64, bytes: u64, tier: u8) {
        // A model that has stopped is noticed with the next accesses.
        let _ = self.send.send(Message::Bind {
            address,
            bytes,
            tier,
        });
    }

    fn release(&mut self, address: u64, bytes: u64) {
        let _ = self.send.send(Message::Release { address, bytes });
    }

    fn now(&mut self) -> Duration {
        let (answer, time) = sync_channel(1);
        let asked = self.send.send(Message::Now(answer));
        let now = asked.ok().and_then(|()| time.recv().ok());
        Duration::from_nanos(now.unwrap_or(0))
    }
}

/// The model's end.
pub struct AccessStream {
    receive: Receiver<Message>,
    give_back: Sender<Vec<Vec<Op>>>,
    tiers: Arc<Tiers>,
    space: usize,
    done_with: Vec<Vec<Op>>,
}

impl AccessStream {
    /// Gives the model a buffer in exchange for the one that it has done with, and that one back.
    fn exchange(&mut self, ops: Vec<Op>, out: &mut Vec<Op>) {
        let last = match out.is_empty() {
            true => std::mem::replace(out, ops),
            // Pages were freed before these accesses.
            false => {
                out.extend_from_slice(&ops);
                ops
            }
        };
        self.done_with.push(last);
        if self.done_with.len() >= BUFFERS / 2 {
            // A program that has ended wants none.
            let _ = self.give_back.send(std::mem::take(&mut self.done_with));
        }
    }
}

impl Program for AccessStream {
    fn name(&self) -> String {
        "managed program".into()
    }

    fn threads(&self) -> usize {
        1
    }

    fn fill(&mut self, _thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        loop {
            match self.receive.recv() {
                Ok(Message::Ops(ops)) => {
                    self.exchange(ops, out);
                    return true;
                }
                Ok(Message::Bind {
                    address,
                    bytes,
                    tier,
                }) => self.tiers.bind(self.space, address, bytes, tier, out),
                Ok(Message::Release { address, bytes }) => {
                    self.tiers.release(self.space, address, bytes, out);
                }
                // Without a wait: freeing pages takes no time.
                Ok(Message::Now(answer)) => {
                    let _ = answer.send(now);
                }
                Err(_) => return false,
            }
        }
    }
}
