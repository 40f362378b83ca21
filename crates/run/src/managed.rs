//! A managed program on the modelled machine: each memory of its heap's plan is a memory of the machine.
//!
//! ```text
//! the program's thread                             the model's thread
//!   Sink::take   accesses -------- channel ------> Program::fill     what it runs next
//!   Sink::bind   range, tier ----------------->    Places            where pages of the range will be
//!   Sink::now    <------------- virtual time --    when all of that has been run
//! ```
//!
//! Everything travels in order, so that a run is the same every time, whichever of the two threads is ahead.

use crate::Error;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use varve_machine::model::{self, Options, Outcome, Progress};
use varve_machine::{Fault, Kind, Machine, Op, OutOfFrames, Pager, Program};
use varve_pages::{Frames, Topology};
use varve_runtime::Sink;

/// Batches of accesses that the program may be ahead.
const AHEAD: usize = 16;
/// A page on the model, bytes, as [`Kind::Unmap`] counts them.
const UNIT: u64 = 4096;

/// A run that has ended.
pub struct Managed<R> {
    /// What the model says.
    pub outcome: Outcome,
    /// What the program's own thread gave back.
    pub result: R,
    /// Bytes of touched pages in each tier.
    pub by_tier: [u64; TIERS],
}

/// Kinds of memory: DRAM, and all else.
pub const TIERS: usize = 2;

enum Message {
    Ops(Vec<Op>),
    Bind { address: u64, bytes: u64, tier: u8 },
    Release { address: u64, bytes: u64 },
    Now(SyncSender<u64>),
}

/// The tier of each page that was bound, by its number.
type Tiers = HashMap<u64, u8>;

fn lock(tiers: &Mutex<Tiers>) -> MutexGuard<'_, Tiers> {
    tiers.lock().unwrap_or_else(|e| e.into_inner())
}

/// Bytes of a machine's fast memory.
///
/// # Errors
/// Pages that do not suit it.
pub fn fast_bytes(machine: &Machine, page_bytes: u64) -> Result<u64, Error> {
    let topology = Topology::of(machine, page_bytes).map_err(varve_pages::Error::from)?;
    let fast = topology.nodes.iter().filter(|node| node.fast);
    Ok(fast.map(|node| u64::from(node.frames) * page_bytes).sum())
}

/// Runs `work` on a thread of its own; what it tells its sink runs on the model. `watch` ends the run by returning
/// `false`: then the sink tells the program that nobody listens.
///
/// # Errors
/// A machine without slow memory of its own, pages that do not suit it, and what goes wrong on the model, such as a
/// memory that is full.
pub fn run_managed<R: Send>(
    machine: &Machine,
    page_bytes: u64,
    seed: u64,
    work: impl FnOnce(Box<dyn Sink>) -> R + Send,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Managed<R>, Error> {
    let topology = Topology::of(machine, page_bytes).map_err(varve_pages::Error::from)?;
    if !topology.has_tiers() {
        return Err(Error::NoTiers(machine.name.clone()));
    }
    let tiers = Arc::new(Mutex::new(Tiers::new()));
    let mut pager = TierPager::new(&topology, Arc::clone(&tiers));
    let (send, receive) = sync_channel(AHEAD);
    let mut program = Told {
        receive,
        tiers,
        page_bytes,
    };
    let options = Options {
        seed,
        ..Options::default()
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || work(Box::new(Teller { send })));
        let outcome = model::run(machine, &mut pager, &mut [&mut program], &options, watch);
        // If the model has stopped early, the program hears of it when it tells the next accesses.
        drop(program);
        let result = match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let outcome = outcome?;
        let mut by_tier = [0; TIERS];
        for &(_, frame) in &outcome.mapping {
            by_tier[usize::from(!pager.frames.is_fast(frame))] += page_bytes;
        }
        Ok(Managed {
            outcome,
            result,
            by_tier,
        })
    })
}

/// The program's side.
struct Teller {
    send: SyncSender<Message>,
}

impl Sink for Teller {
    fn take(&mut self, ops: &[Op]) -> bool {
        self.send.send(Message::Ops(ops.to_vec())).is_ok()
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

/// The model's side.
struct Told {
    receive: Receiver<Message>,
    tiers: Arc<Mutex<Tiers>>,
    page_bytes: u64,
}

impl Told {
    /// Pages that were in another memory are given back: what they held is not needed any more.
    fn bind(&self, address: u64, bytes: u64, tier: u8, out: &mut Vec<Op>) {
        let mut tiers = lock(&self.tiers);
        let pages = address / self.page_bytes..(address + bytes).div_ceil(self.page_bytes);
        for page in pages {
            let before = tiers.insert(page, tier);
            if before.is_some_and(|before| before != tier) {
                out.push(self.unmap(page));
            }
        }
    }

    /// Pages that lie in the range with all their bytes are given back.
    fn release(&self, address: u64, bytes: u64, out: &mut Vec<Op>) {
        let mut tiers = lock(&self.tiers);
        let pages = address.div_ceil(self.page_bytes)..(address + bytes) / self.page_bytes;
        for page in pages {
            if tiers.remove(&page).is_some() {
                out.push(self.unmap(page));
            }
        }
    }

    fn unmap(&self, page: u64) -> Op {
        let size = (self.page_bytes / UNIT) as u16;
        Op::new(Kind::Unmap, page * self.page_bytes, size, 0)
    }
}

impl Program for Told {
    fn name(&self) -> String {
        "managed program".into()
    }

    fn threads(&self) -> usize {
        1
    }

    fn fill(&mut self, _thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        loop {
            match self.receive.recv() {
                Ok(Message::Ops(ops)) if out.is_empty() => {
                    *out = ops;
                    return true;
                }
                Ok(Message::Ops(ops)) => {
                    out.extend_from_slice(&ops);
                    return true;
                }
                Ok(Message::Bind {
                    address,
                    bytes,
                    tier,
                }) => self.bind(address, bytes, tier, out),
                Ok(Message::Release { address, bytes }) => self.release(address, bytes, out),
                // Without a wait: pages that are given back take no time.
                Ok(Message::Now(answer)) => {
                    let _ = answer.send(now);
                }
                Err(_) => return false,
            }
        }
    }
}

/// Places pages in the memory that their range is bound to; what is not bound is in fast memory.
struct TierPager {
    frames: Frames,
    /// Nodes of each tier, the nearest first.
    nodes: [Vec<usize>; TIERS],
    tiers: Arc<Mutex<Tiers>>,
}

impl TierPager {
    fn new(topology: &Topology, tiers: Arc<Mutex<Tiers>>) -> TierPager {
        let of = |fast: bool| {
            let nearest = topology.nearest(0).into_iter();
            nearest
                .filter(|&node| topology.nodes[node].fast == fast)
                .collect()
        };
        TierPager {
            frames: Frames::in_order(topology),
            nodes: [of(true), of(false)],
            tiers,
        }
    }
}

impl Pager for TierPager {
    fn page_bytes(&self) -> u64 {
        self.frames.page_bytes()
    }

    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        let tier = lock(&self.tiers).get(&fault.vpn).copied().unwrap_or(0);
        let nodes = &self.nodes[usize::from(tier).min(TIERS - 1)];
        let frame = nodes.iter().find_map(|&node| self.frames.take_from(node));
        frame.ok_or(OutOfFrames {
            pages: self.frames.used(),
            page_bytes: self.frames.page_bytes(),
        })
    }

    fn unmap(&mut self, _vpn: u64, frame: u32) {
        self.frames.give(frame);
    }
}
