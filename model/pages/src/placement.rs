//! A policy at work on the frames of a machine: the [`Pager`] that the model and live Linux talk to.
//!
//! It remembers which page is in which frame, carries reservations of moves through, and counts, so that a policy
//! is nothing but decisions.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use varve_access::{Daemons, Fault, Move, OutOfFrames, Pager, Sample};
use varve_machine::Machine;

use crate::counting::Counting;
use crate::error::Error;
use crate::frames::{Frames, Remap};
use crate::policies::{self, Entry};
use crate::policy::Policy;
use crate::topology::Topology;
use crate::trays::Colour;

/// Counters of events so far. Of the moves asked for, each is done, cancelled or in flight; pages in use are faults
/// minus unmaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Pages placed.
    pub faults: u64,
    /// Faults that found no frame.
    pub refused: u64,
    /// Pages that were unmapped.
    pub unmaps: u64,
    /// Unmaps of a page that is not there; they change nothing.
    pub stray_unmaps: u64,
    /// Samples that the policy was shown.
    pub samples: u64,
    /// Samples of a page that has moved or gone since; not shown.
    pub stale_samples: u64,
    /// Times the daemon woke.
    pub ticks: u64,
    /// Moves asked for.
    pub moves_asked: u64,
    /// Moves carried out.
    pub moves_done: u64,
    /// Moves whose page was gone before they were carried out, or that were passed over.
    pub moves_cancelled: u64,
}

/// Frames of a group: the page numbers of one fill a few pages of the host.
const GROUP: usize = 4096;

/// A policy with its frames.
pub struct Placement {
    spec: String,
    topology: Topology,
    frames: Frames,
    policy: Box<dyn Policy>,
    /// Virtual page plus one, by frame; 0 for a frame without a page.
    pages: Vec<u64>,
    /// Groups of [`GROUP`] frames of which one ever had a page: listings of pages skip all others, so that a huge
    /// machine costs only as much as its used part.
    groups: Vec<bool>,
    /// Moves in flight by the frame they leave: target and page.
    flights: HashMap<u32, (u32, u64)>,
    /// Frames with a page in flight that another move in flight goes to.
    promised: HashSet<u32>,
    remaps: Vec<Remap>,
    counters: Counters,
    /// Pages in use, if the caller wants them counted.
    counting: Option<Counting>,
}

impl Placement {
    /// Makes the policy that `spec` says (`static`, `dynamic:period=5ms,hot-loads=4`) for `machine` with pages of
    /// `page_bytes`.
    ///
    /// # Errors
    /// A machine that cannot be cut into such pages, an unknown policy or parameter, a policy that does not go with
    /// the machine; one line each.
    pub fn new(spec: &str, machine: &Machine, page_bytes: u64) -> Result<Placement, Error> {
        Placement::on(spec, Topology::of(machine, page_bytes)?)
    }

    /// The same for frames given as plain data.
    ///
    /// # Errors
    /// As [`Placement::new`].
    pub fn on(spec: &str, topology: Topology) -> Result<Placement, Error> {
        let (frames, policy) = policies::entry(spec)?.make(varve_spec::split(spec).1, &topology)?;
        Ok(Placement::with(spec, topology, frames, policy))
    }

    /// The same for a policy that need not be one of the house's, with the parameters `given`.
    ///
    /// # Errors
    /// A wrong parameter, or a machine that it does not go with.
    pub fn of(entry: &Entry, given: &str, topology: Topology) -> Result<Placement, Error> {
        let spec = match given {
            "" => entry.name.to_string(),
            given => format!("{}:{given}", entry.name),
        };
        let (frames, policy) = entry.make(given, &topology)?;
        Ok(Placement::with(&spec, topology, frames, policy))
    }

    /// A policy made by hand, on frames laid out as it wants them.
    pub fn with(
        spec: &str,
        topology: Topology,
        frames: Frames,
        policy: Box<dyn Policy>,
    ) -> Placement {
        Placement {
            spec: spec.into(),
            pages: vec![0; topology.frames() as usize],
            groups: vec![false; (topology.frames() as usize).div_ceil(GROUP)],
            topology,
            frames,
            policy,
            flights: HashMap::new(),
            promised: HashSet::new(),
            remaps: Vec::new(),
            counters: Counters::default(),
            counting: None,
        }
    }

    /// The same, with its pages counted. To be called before any page is placed.
    pub fn counted(self, counting: Counting) -> Placement {
        Placement {
            counting: Some(counting),
            ..self
        }
    }

    /// The specification it was made from.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// The frames of the machine as plain data.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The frames as they are.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        self.policy.as_ref()
    }

    /// Counters of events so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Counts of pages, if the caller [wanted](Placement::counted) them.
    pub fn counting(&self) -> Option<&Counting> {
        self.counting.as_ref()
    }

    /// Moves asked for that are neither done nor cancelled.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// The page in `frame`, if one is there.
    pub fn page_in(&self, frame: u32) -> Option<u64> {
        self.pages.get(frame as usize)?.checked_sub(1)
    }

    /// Frames with pages, in ascending order, with their pages.
    pub fn mapping(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let used = self.groups.iter().zip(self.pages.chunks(GROUP));
        used.enumerate()
            .filter(|(_, (used, _))| **used)
            .flat_map(|(group, (_, pages))| (group * GROUP..).zip(pages))
            .filter(|(_, page)| **page != 0)
            .map(|(frame, page)| (frame as u32, page - 1))
    }

    /// From now on another allocator hands out frames, as the kernel of a live machine does: the policy may take only
    /// those that are [offered](Placement::offer). To be called before any page is placed.
    pub fn withhold(&mut self) {
        self.frames.withhold();
    }

    /// A free frame that pages may be moved to. Returns whether it is free, and was not offered before.
    pub fn offer(&mut self, frame: u32) -> bool {
        self.page_in(frame).is_none() && self.frames.give(frame)
    }

    /// A frame that was offered is so no more. A move in flight to it is cancelled.
    pub fn withdraw(&mut self, frame: u32) {
        let aims = |(_, flight): &(&u32, &(u32, u64))| flight.0 == frame;
        if let Some(from) = self.flights.iter().find(aims).map(|(from, _)| *from) {
            self.flights.remove(&from);
            self.cancel(from, frame);
        }
        if self.page_in(frame).is_none() {
            self.frames.take(frame);
        }
    }

    /// A page is in a frame that the kernel chose. Returns `false` if the frame has a page already or is none of the
    /// topology's.
    pub fn found(&mut self, fault: &Fault, frame: u32) -> bool {
        if self.page_in(frame).is_some() || frame as usize >= self.pages.len() {
            return false;
        }
        self.withdraw(frame);
        self.put(frame, fault.vpn);
        self.counters.faults += 1;
        self.policy.found(&mut self.frames, fault, frame);
        self.count(frame, Counting::comes);
        true
    }

    /// The page in a frame is gone, and the frame with it: the kernel hands it out.
    pub fn lost(&mut self, frame: u32) {
        if let Some(vpn) = self.page_in(frame) {
            self.unmap(vpn, frame);
            self.withdraw(frame);
        }
    }

    /// The kernel moved the page in frame `from` to frame `to`, in which no page is known. Returns whether that is so.
    pub fn strayed(&mut self, from: u32, to: u32) -> bool {
        let Some(vpn) = self.page_in(from) else {
            return false;
        };
        if self.page_in(to).is_some() || to as usize >= self.pages.len() {
            return false;
        }
        if let Some((aim, _)) = self.flights.remove(&from) {
            self.cancel(from, aim);
        }
        self.withdraw(to);
        self.put(to, vpn);
        self.count(from, Counting::goes);
        self.policy.strayed(&mut self.frames, Remap { from, to });
        self.count(to, Counting::comes);
        self.vacate(from);
        self.withdraw(from);
        true
    }

    /// The page in a frame cannot be moved, for now.
    pub fn fixed(&mut self, frame: u32) {
        self.policy.fixed(&self.frames, frame);
    }

    /// The page in a frame has another colour from now on.
    pub fn recolour(&mut self, frame: u32, colour: Colour) {
        self.count(frame, Counting::goes);
        self.policy.recolour(frame, colour);
        self.count(frame, Counting::comes);
    }

    /// Pages that the policy passed over are scanned again at the next tick.
    pub fn review(&mut self) {
        let used = self.mapping().map(|(frame, _)| frame).collect::<Vec<_>>();
        self.policy.review(&self.frames, &mut used.into_iter());
    }

    fn put(&mut self, frame: u32, vpn: u64) {
        self.pages[frame as usize] = vpn + 1;
        self.groups[frame as usize / GROUP] = true;
    }

    /// Counts the page in a frame, if there is one and the caller wants counts. The policy says whether the page is
    /// hot: call this before the policy is notified that a page goes, and after it is notified that one comes.
    fn count(&mut self, frame: u32, how: fn(&mut Counting, u64, u32, bool)) {
        let vpn = self.page_in(frame);
        if let (Some(counting), Some(vpn)) = (&mut self.counting, vpn) {
            let fast = match counting.is_by_colour() {
                true => self.policy.is_hot(frame),
                false => self.frames.is_fast(frame),
            };
            how(counting, vpn, frame, fast);
        }
    }

    /// Frames without a page that a page in flight goes to, in no order.
    pub fn reserved(&self) -> impl Iterator<Item = u32> + '_ {
        self.flights
            .values()
            .map(|(to, _)| *to)
            .filter(|to| !self.promised.contains(to))
    }

    /// Limit of the memory that frames, policy and page numbers may use, bytes. Memory is used as frames are touched.
    pub fn bytes(&self) -> u64 {
        self.frames.bytes()
            + self.policy.bytes()
            + 8 * self.pages.len() as u64
            + self.groups.len() as u64
    }

    /// Frees `frame` unless a move in flight was promised it.
    fn vacate(&mut self, frame: u32) {
        self.pages[frame as usize] = 0;
        if !self.promised.remove(&frame) {
            self.frames.give(frame);
        }
    }

    fn cancel(&mut self, from: u32, to: u32) {
        // A promised target still holds its own page, which frees it when it goes.
        if !self.promised.remove(&to) {
            self.frames.give(to);
        }
        self.counters.moves_cancelled += 1;
        self.policy.cancelled(&mut self.frames, Remap { from, to });
    }
}

impl Pager for Placement {
    fn page_bytes(&self) -> u64 {
        self.frames.page_bytes()
    }

    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        let Some(frame) = self.policy.place(&mut self.frames, fault) else {
            self.counters.refused += 1;
            let pages = self.frames.used();
            return Err(OutOfFrames {
                pages,
                page_bytes: self.frames.page_bytes(),
            });
        };
        self.put(frame, fault.vpn);
        self.count(frame, Counting::comes);
        self.counters.faults += 1;
        Ok(frame)
    }

    fn unmap(&mut self, vpn: u64, frame: u32) {
        if self.page_in(frame) != Some(vpn) {
            self.counters.stray_unmaps += 1;
            return;
        }
        if let Some((to, _)) = self.flights.remove(&frame) {
            self.cancel(frame, to);
        }
        self.count(frame, Counting::goes);
        self.policy.freed(&mut self.frames, frame);
        self.vacate(frame);
        self.counters.unmaps += 1;
    }

    fn daemons(&self) -> Daemons {
        self.policy.daemons()
    }

    fn sample(&mut self, sample: &Sample) {
        if self.page_in(sample.frame) != Some(sample.vpn) {
            self.counters.stale_samples += 1;
            return;
        }
        self.counters.samples += 1;
        self.policy
            .sample(&mut self.frames, sample.frame, sample.source);
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        self.policy.traffic(now, bytes);
    }

    fn tick(&mut self, _now: u64, moves: &mut Vec<Move>) {
        self.counters.ticks += 1;
        // The last moves are done by now. There is no further notification of those that were passed over.
        let mut passed_over: Vec<u32> = self.flights.keys().copied().collect();
        passed_over.sort_unstable();
        for from in passed_over {
            if let Some((to, _)) = self.flights.remove(&from) {
                self.cancel(from, to);
            }
        }
        let mut remaps = std::mem::take(&mut self.remaps);
        self.policy.tick(&mut self.frames, &mut remaps);
        for Remap { from, to } in remaps.drain(..) {
            let vpn = self.pages[from as usize] - 1;
            if self.pages[to as usize] != 0 {
                self.promised.insert(to);
            }
            self.flights.insert(from, (to, vpn));
            self.counters.moves_asked += 1;
            moves.push(Move { vpn, from, to });
        }
        self.remaps = remaps;
    }

    fn moved(&mut self, done: &Move) {
        // A move whose page was unmapped meanwhile was cancelled then; a second notification changes nothing.
        if self.flights.get(&done.from) != Some(&(done.to, done.vpn)) {
            return;
        }
        self.flights.remove(&done.from);
        self.put(done.to, done.vpn);
        self.count(done.from, Counting::goes);
        self.policy.moved(
            &mut self.frames,
            Remap {
                from: done.from,
                to: done.to,
            },
        );
        self.count(done.to, Counting::comes);
        self.vacate(done.from);
        self.counters.moves_done += 1;
    }
}
