//! A page goes to another node and comes back, into a frame of the reserve.
//!
//! ```text
//!   page in frame A of node 0 --move_pages--> some frame of node 1          A is free
//!   the reserve takes a frame: A, as a rule
//!   frame B of the reserve is given up: it is the first of this processor's free frames of node 0
//!   page in node 1           --move_pages--> frame B of node 0
//! ```
//!
//! The kernel keeps frames that were freed lately in a list of each processor, the latest first (`mm/page_alloc.c`, per-cpu pages).
//! We stay on one processor meanwhile. Should another one of its threads come between and take frame B, the page is in another
//! frame, which is seen and told. A list that is full passes frames on at once, and then the kernel's next frame may be any that is
//! free: A must not be among them, or the page is back where it was, however often that is tried.

use super::held::Held;
use super::spans::Spans;
use crate::nodes::on_process;
use crate::place::pagemap::Pagemap;
use crate::place::reserve::Unit;
use crate::probe::Cpus;
use crate::tier::memory::{Refusal, of_place};
use crate::tier::room::{reserves, room_of};
use std::collections::BTreeMap;
use std::io;

/// A page that is to come into another frame of its node. Frames are the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameExchange {
    /// Its address divided by the size of pages.
    pub page: u64,
    /// Where it is.
    pub from: u64,
    /// A frame of the reserve.
    pub to: u64,
}

/// The outcome for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landed {
    /// It is in this frame.
    In(u64),
    /// It is not where it was said to be.
    Stale,
    /// It could not be moved, and is where it was.
    Refused(Refusal),
    /// It is on another node, and will be brought home when that can be.
    Away,
}

/// Exchanges frames.
pub trait Exchanger {
    /// Exchanges the frames of pages of a process, all of one node.
    ///
    /// # Errors
    /// The process has ended, or may not be touched.
    fn exchange(&mut self, process: u32, orders: &[FrameExchange]) -> io::Result<Vec<Landed>>;

    /// Frames of the reserve as they are now.
    ///
    /// # Errors
    /// The system has no memory for it any more.
    fn reserve(&mut self) -> io::Result<Vec<u64>>;

    /// Takes other frames into the reserve in place of those that are of no use. `class` says what a frame is good for: in equal parts
    /// for each class but 0, which is for nothing.
    fn renew(&mut self, class: &dyn Fn(u64) -> u8);

    /// Tries to bring pages home that are away. Answers how many came home, and how many are away still.
    fn bring_home(&mut self) -> (u64, u64);
}

/// The exchanger of this machine.
pub struct LiveExchanger {
    spans: Spans,
    page_bytes: u64,
    held: Held,
    /// Free memory of each node that is the kernel's.
    kept: BTreeMap<u32, u64>,
    /// Whether pages of several processes are moved, too.
    everybodys: bool,
    /// Pages on another node: process, address, home.
    away: Vec<(u32, usize, u32)>,
}

impl LiveExchanger {
    /// With a reserve of these sizes, by node.
    ///
    /// # Errors
    /// One line: there is no memory for the reserve, or frame numbers are hidden.
    pub fn new(
        spans: &Spans,
        page_bytes: u64,
        reserve: &[(u32, u64)],
    ) -> Result<LiveExchanger, String> {
        let unit = match page_bytes {
            0..=4096 => Unit::Base,
            _ => Unit::Huge,
        };
        let of = |e: io::Error| format!("the reserve of free frames: {e}");
        let mut held = Held::new(unit).map_err(of)?;
        for &(node, bytes) in reserve {
            held.take(node, bytes).map_err(of)?;
        }
        let zones = std::fs::read_to_string("/proc/zoneinfo").unwrap_or_default();
        Ok(LiveExchanger {
            spans: spans.clone(),
            page_bytes,
            held,
            kept: reserves(&zones),
            everybodys: on_process::may_move_everybodys(),
            away: Vec::new(),
        })
    }

    /// Whether memory that several processes share is moved.
    pub fn moves_shared(&self) -> bool {
        self.everybodys
    }

    /// The node with most free memory to migrate through, with room for `bytes`.
    fn over(&self, home: u32, bytes: u64) -> Option<u32> {
        let nodes = self.spans.nodes();
        let others = nodes
            .iter()
            .map(|span| span.node)
            .filter(|node| *node != home);
        let most = others.map(|node| (room_of(node, &self.kept), node)).max()?;
        (most.0 >= bytes).then_some(most.1)
    }

    fn frames(&self, process: u32, pages: &[u64]) -> io::Result<Vec<Option<u64>>> {
        let map = Pagemap::of(process).map_err(of_place)?;
        let mut all = Vec::with_capacity(pages.len());
        for page in pages {
            let mut frame = None;
            let at = (page * self.page_bytes) as usize;
            map.read(at, 1, |_, entry| frame = entry.frame())
                .map_err(of_place)?;
            all.push(frame);
        }
        Ok(all)
    }

    fn move_to(&self, process: u32, pages: &[usize], node: u32) -> io::Result<Vec<i32>> {
        let mut status = vec![0; pages.len()];
        on_process::move_with(process, pages, node, &mut status, self.everybodys)?;
        Ok(status)
    }

    fn run(&mut self, process: u32, orders: &[FrameExchange]) -> io::Result<Vec<Landed>> {
        let numbers: Vec<u64> = orders.iter().map(|o| o.page).collect();
        let frames = self.frames(process, &numbers)?;
        let mut landed = vec![Landed::Stale; orders.len()];
        let current = |i: &usize| frames[*i] == Some(orders[*i].from);
        let mut going: Vec<usize> = (0..orders.len()).filter(current).collect();
        let Some(first) = going.first() else {
            return Ok(landed);
        };
        let home = self
            .spans
            .index(orders[*first].from)
            .and_then(|at| self.spans.node(at));
        let bytes = 2 * self.page_bytes * orders.len() as u64;
        let over = home.and_then(|home| Some((home, self.over(home, bytes)?)));
        let Some((home, over)) = over else {
            going
                .iter()
                .for_each(|&i| landed[i] = Landed::Refused(Refusal::Full));
            return Ok(landed);
        };
        let address = |i: &usize| (orders[*i].page * self.page_bytes) as usize;
        let addresses: Vec<usize> = going.iter().map(address).collect();
        let status = self.move_to(process, &addresses, over)?;
        let mut left = Vec::new();
        for (i, status) in going.drain(..).zip(status) {
            match status {
                0.. => left.push(i),
                error => landed[i] = Landed::Refused(Refusal::of(-error)),
            }
        }
        let addresses: Vec<usize> = left.iter().map(address).collect();
        // Where nothing can be taken ahead, what was given up is replaced afterwards.
        let _ = self.held.take_ahead(home, left.len());
        // The first that comes back is to find the frame that was given up last.
        for i in left.iter().rev() {
            self.held.give_up(orders[*i].to);
        }
        // From here on pages are away: whatever fails, they are remembered.
        let status = self.move_to(process, &addresses, home);
        let status = status.unwrap_or_else(|_| vec![-libc::EBUSY; left.len()]);
        let numbers: Vec<u64> = left.iter().map(|i| orders[*i].page).collect();
        let frames = self
            .frames(process, &numbers)
            .unwrap_or(vec![None; left.len()]);
        for (at, i) in left.into_iter().enumerate() {
            landed[i] = match (status[at], frames[at]) {
                (0.., Some(frame)) => Landed::In(frame),
                (0.., None) => Landed::Stale,
                (error, _) if Refusal::of(-error) == Refusal::Gone => Landed::Stale,
                _ => {
                    self.away.push((process, addresses[at], home));
                    Landed::Away
                }
            };
        }
        Ok(landed)
    }
}

impl Exchanger for LiveExchanger {
    fn exchange(&mut self, process: u32, orders: &[FrameExchange]) -> io::Result<Vec<Landed>> {
        let stays = OneProcessor::stay();
        let landed = self.run(process, orders);
        // Replaces frames that were freed without a replacement ahead.
        let filled = self.held.replace();
        drop(stays);
        filled?;
        landed
    }

    fn reserve(&mut self) -> io::Result<Vec<u64>> {
        self.held.fill()?;
        Ok(self.held.frames().collect())
    }

    fn renew(&mut self, class: &dyn Fn(u64) -> u8) {
        let kept = &self.kept;
        // For a moment, and far from what the kernel needs.
        let room = |node: u32| room_of(node, kept) / 4 * 3;
        // A reserve that is smaller for want of memory is one still.
        let _ = self.held.renew(class, &room);
    }

    fn bring_home(&mut self) -> (u64, u64) {
        let away = std::mem::take(&mut self.away);
        let before = away.len();
        for (process, address, home) in away {
            match self.move_to(process, &[address], home) {
                Ok(status) if status[0] >= 0 || Refusal::of(-status[0]) == Refusal::Gone => {}
                // It has ended, and the page with it.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                _ => self.away.push((process, address, home)),
            }
        }
        ((before - self.away.len()) as u64, self.away.len() as u64)
    }
}

impl Drop for LiveExchanger {
    fn drop(&mut self) {
        self.bring_home();
    }
}

/// This thread stays on the processor that it is on.
struct OneProcessor(Option<Cpus>);

impl OneProcessor {
    fn stay() -> OneProcessor {
        // SAFETY: asks for a number.
        let here = unsafe { libc::sched_getcpu() };
        let here = u32::try_from(here).map(|here| Cpus::of(&[here]));
        let (Ok(here), Ok(before)) = (here, Cpus::allowed()) else {
            return OneProcessor(None);
        };
        OneProcessor(here.run_on().is_ok().then_some(before))
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = before.run_on();
        }
    }
}
