//! Pages in frames, by exchange with those of a reserve. Whose memory it is, who decides and who exchanges are traits, so that all
//! of it is tested without a machine.

use super::energy::Power;
use super::exchange::{Exchanger, FrameExchange, Landed};
use super::pages::{FrameMemory, Kind, PageFrame};
use super::report::FrameReport;
use super::spans::Spans;
use crate::tier::decide::{Page, Remap, TierPolicy};
use crate::tier::memory::Refusal;
use crate::tier::observe::Scope;
use crate::tier::steer::{Allowance, Migrate, Places, Residency, Steering, Tiered, is_gone};
use crate::traffic::MachineTraffic;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

/// Pages that are on their way at a time, at most: these stay on another node if we are killed just then.
const CHUNK: usize = 32;
/// Intervals after which pages that were passed over, or refused, are tried again.
const REVIEW: u64 = 16;
/// Intervals between two reports of the state.
const STATE: u64 = 4;
/// No frame of ours.
const NOWHERE: u32 = u32::MAX;

/// The owner of a frame.
#[derive(Clone, Copy, Debug)]
struct Owner {
    page: Page,
    /// Pages of processes that are in it: more than one if it is shared.
    maps: u32,
    kind: Kind,
    moved: Option<u64>,
}

/// Frames, and the pages that are in them.
pub struct InFrames {
    spans: Spans,
    exchanger: Box<dyn Exchanger>,
    power: Power,
    /// Bytes between memory and the machine, since an instant.
    bandwidth: Option<(MachineTraffic, Instant)>,
    owners: HashMap<u32, Owner>,
    offered: HashSet<u32>,
    /// Frames that shared pages have left since the last scan: other processes' lists still have them there.
    vacated: HashSet<u32>,
    /// The changes that this scan has found so far.
    change: Change,
    report: FrameReport,
    /// The interval of the last scan.
    seen: Option<u64>,
    /// The next interval in which the reserve may be renewed, how long to wait then, and what was exchanged by the last time.
    renewal: (u64, u64, u64),
}

impl InFrames {
    /// No page yet. `traffic` is for policies that go by bandwidth.
    pub fn new(
        spans: Spans,
        exchanger: Box<dyn Exchanger>,
        power: Power,
        traffic: Option<MachineTraffic>,
    ) -> InFrames {
        InFrames {
            spans,
            exchanger,
            power,
            bandwidth: traffic.map(|traffic| (traffic, Instant::now())),
            owners: HashMap::new(),
            offered: HashSet::new(),
            vacated: HashSet::new(),
            change: Change::default(),
            report: FrameReport::default(),
            seen: None,
            renewal: (0, STATE, 0),
        }
    }
}

impl Places for InFrames {
    type Memory = dyn FrameMemory;
    const SCOPE: Scope = Scope::All;
    const HAS_FRAMES: bool = true;

    fn has_ended(memory: &dyn FrameMemory) -> bool {
        memory.has_ended()
    }
}

impl<D: TierPolicy> Migrate<InFrames> for Steering<D, InFrames> {
    fn begin(&mut self) {
        self.forget_vacated();
    }

    fn residency(&self, process: &Tiered<InFrames>, at: usize) -> Residency {
        Residency {
            frame: Some(process.frames[at]).filter(|frame| *frame != NOWHERE),
            fast: false,
        }
    }

    fn scan(&mut self, process: &mut Tiered<InFrames>) -> io::Result<()> {
        let now = process.memory.look()?;
        let spans = &self.places.spans;
        let frame_of = |one: &PageFrame| spans.index(one.frame).unwrap_or(NOWHERE);
        let (mut pages, mut frames) = (Vec::new(), Vec::new());
        let mut before = process.pages.iter().zip(&process.frames).peekable();
        let Change { dropped, added } = &mut self.places.change;
        let mut drop_one = |page: u64, frame: u32| {
            if frame != NOWHERE {
                dropped.push((Page::new(process.number, page), frame));
            }
        };
        for one in &now {
            while let Some((page, frame)) = before.next_if(|(page, _)| **page < one.page) {
                drop_one(*page, *frame);
            }
            let frame = frame_of(one);
            let old = before.next_if(|(page, _)| **page == one.page);
            if let Some((_, old)) = old.filter(|(_, old)| **old != frame) {
                drop_one(one.page, *old);
            }
            if frame != NOWHERE && old.is_none_or(|(_, old)| *old != frame) {
                let page = Page::new(process.number, one.page);
                added.push((page, frame, one.kind, one.hot));
            }
            pages.push(one.page);
            frames.push(frame);
        }
        for (page, frame) in before {
            drop_one(*page, *frame);
        }
        (process.pages, process.frames) = (pages, frames);
        Ok(())
    }

    fn scanned(&mut self, left: &[Tiered<InFrames>]) {
        let mut change = std::mem::take(&mut self.places.change);
        for process in left {
            // Its pages from before this scan were dropped by the scan or are dropped now, and this scan's findings do not count.
            let is_its = |page: Page| page.process() == process.number;
            let found = change.added.iter().filter(|(page, ..)| is_its(*page));
            let found: HashSet<(Page, u32)> =
                found.map(|(page, frame, ..)| (*page, *frame)).collect();
            change.added.retain(|(page, ..)| !is_its(*page));
            let all = process.pages.iter().zip(&process.frames);
            let all = all.map(|(page, frame)| (Page::new(process.number, *page), *frame));
            let had = all.filter(|one| one.1 != NOWHERE && !found.contains(one));
            change.dropped.extend(had);
        }
        self.settle(change);
        self.refill();
    }

    fn migrate(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        self.places.power.note(self.counts.exchanged);
        if let Some((traffic, begun)) = &mut self.places.bandwidth
            && let Some(bytes) = traffic.so_far()
        {
            let now = begun.elapsed().as_nanos() as u64;
            self.decide.traffic(now, bytes);
        }
        self.exchange_all(allowed, spent);
        self.places.power.note(self.counts.exchanged);
    }

    fn hot_pages(&self) -> (u64, u64) {
        let state = &self.places.report.state;
        (state.hot, state.hot - state.misplaced.min(state.hot))
    }

    /// Brings home what is away, and notes how things are in the end.
    fn finish(&mut self) -> Option<FrameReport> {
        self.bring_home();
        if !self.processes.is_empty() {
            self.see();
        }
        let mut report = self.places.report.clone();
        report.watts = self.places.power.watts();
        Some(report)
    }
}

impl<D: TierPolicy> Steering<D, InFrames> {
    /// Reports to the policy which pages have come, gone, and moved.
    fn settle(&mut self, change: Change) {
        let mut empty: BTreeSet<u32> = BTreeSet::new();
        let mut orphans: HashSet<u32> = HashSet::new();
        let mut last: HashMap<Page, u32> = HashMap::new();
        for &(page, frame) in &change.dropped {
            if let Some(owner) = self.places.owners.get_mut(&frame) {
                owner.maps = owner.maps.saturating_sub(1);
                last.insert(page, frame);
                match owner.maps {
                    0 => drop(empty.insert(frame)),
                    _ if owner.page == page => drop(orphans.insert(frame)),
                    _ => {}
                }
            }
        }
        // A page that several processes may share is still the same if one of them has it now.
        for (_, frame, kind, _) in &change.added {
            if *kind != Kind::Own
                && self
                    .places
                    .owners
                    .get(frame)
                    .is_some_and(|o| o.kind == *kind)
            {
                empty.remove(frame);
            }
        }
        let mut moves: BTreeMap<u32, u32> = BTreeMap::new();
        for (page, to, ..) in &change.added {
            let from = last.get(page).filter(|from| empty.contains(*from));
            let is_free = !self.places.owners.contains_key(to) || empty.contains(to);
            if let (Some(from), true) = (from, is_free) {
                moves.insert(*from, *to);
            }
        }
        // Where pages have followed each other, their frames are reported as if new ones had come.
        let targets: BTreeSet<u32> = moves.values().copied().collect();
        let mut taken = HashSet::new();
        moves
            .retain(|from, to| !targets.contains(from) && !empty.contains(to) && taken.insert(*to));
        for frame in empty.into_iter().filter(|frame| !moves.contains_key(frame)) {
            self.places.owners.remove(&frame);
            self.decide.gone(frame);
        }
        for (from, to) in moves {
            if let Some(owner) = self.places.owners.remove(&from) {
                self.decide.strayed(from, to);
                self.places.owners.insert(to, Owner { maps: 0, ..owner });
                self.places.offered.remove(&to);
                self.counts.by_others += self.limits.page_bytes;
            }
        }
        for (page, frame, kind, hot) in change.added {
            match self.places.owners.get_mut(&frame) {
                Some(owner) => {
                    if owner.maps == 0 {
                        owner.page = page;
                    }
                    owner.maps += 1;
                }
                None => {
                    self.places.offered.remove(&frame);
                    self.decide.found(page, Some(frame), hot);
                    let owner = Owner {
                        page,
                        maps: 1,
                        kind,
                        moved: None,
                    };
                    self.places.owners.insert(frame, owner);
                }
            }
        }
        self.adopt(orphans);
    }

    /// Finds other processes for shared pages that were known as those of one that has them no more.
    fn adopt(&mut self, mut orphans: HashSet<u32>) {
        for process in &self.processes {
            if orphans.is_empty() {
                return;
            }
            for (page, frame) in process.pages.iter().zip(&process.frames) {
                if orphans.remove(frame)
                    && let Some(owner) = self.places.owners.get_mut(frame)
                {
                    owner.page = Page::new(process.number, *page);
                }
            }
        }
    }

    /// Reports to the policy which frames are in the reserve.
    fn refill(&mut self) {
        let Ok(reserve) = self.places.exchanger.reserve() else {
            return;
        };
        let now: HashSet<u32> = reserve
            .iter()
            .filter_map(|frame| self.places.spans.index(*frame))
            .collect();
        for &frame in self.places.offered.difference(&now) {
            self.decide.withdrawn(frame);
        }
        let mut new: Vec<u32> = now.difference(&self.places.offered).copied().collect();
        // In order, so that the same reserve leads to the same decisions.
        new.sort_unstable();
        for frame in new {
            // It may have been a page's at the last scan.
            if self.places.owners.remove(&frame).is_some() {
                self.decide.gone(frame);
            }
            self.decide.offered(frame);
        }
        self.places.report.reserve = now.len() as u64 * self.limits.page_bytes;
        self.places.offered = now;
    }

    fn bring_home(&mut self) {
        let bytes = self.limits.page_bytes;
        let (home, away) = self.places.exchanger.bring_home();
        self.places.report.brought_home += home * bytes;
        self.places.report.away = away * bytes;
    }

    fn exchange_all(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        let until = spent() + allowed.time;
        self.bring_home();
        if self.interval.is_multiple_of(REVIEW) {
            self.decide.review();
        }
        let mut remaps = Vec::new();
        self.decide.decide(&mut remaps);
        self.counts.wishes += remaps.len() as u64;
        let is_due = |seen: u64| self.interval - seen >= STATE;
        if self.places.seen.is_none_or(is_due) && (self.places.seen.is_some() || !remaps.is_empty())
        {
            self.see();
        }
        // Nothing to be done about pages in wrong places: the reserve has no frames where they could go. It gets others, less often
        // each time that this does not help.
        if remaps.is_empty()
            && self.places.report.state.to_move > 0
            && self.interval >= self.places.renewal.0
        {
            if self.counts.exchanged > self.places.renewal.2 {
                self.places.renewal.1 = STATE;
            }
            let (spans, decide) = (&self.places.spans, &self.decide);
            let class = |kernel: u64| spans.index(kernel).map_or(0, |frame| decide.class(frame));
            self.places.exchanger.renew(&class);
            self.refill();
            self.decide.review();
            let wait = self.places.renewal.1;
            self.places.renewal = (
                self.interval + wait,
                (2 * wait).min(256),
                self.counts.exchanged,
            );
        }
        // Each page is copied twice.
        let mut bytes = allowed.bytes;
        for (key, batch) in self.batches(remaps) {
            for chunk in batch.chunks(CHUNK) {
                let needs = 2 * self.limits.page_bytes * chunk.len() as u64;
                // At least one is moved in an interval.
                if bytes < needs && bytes < allowed.bytes || spent() >= until {
                    self.counts.over_rate += chunk.len() as u64;
                    continue;
                }
                bytes = bytes.saturating_sub(needs);
                self.exchange(key.0, chunk);
            }
        }
        self.refill();
    }

    /// By process and node, of pages that may be moved now.
    fn batches(&self, remaps: Vec<Remap>) -> BTreeMap<(u32, u32), Vec<Remap>> {
        let mut all: BTreeMap<(u32, u32), Vec<Remap>> = BTreeMap::new();
        for remap in remaps {
            let Some(owner) = self.places.owners.get(&remap.from) else {
                continue;
            };
            if self.limits.have_held(owner.moved, self.interval)
                && self.places.offered.contains(&remap.to)
                && let Some(node) = self.places.spans.node(remap.from)
            {
                all.entry((owner.page.process(), node))
                    .or_default()
                    .push(remap);
            }
        }
        all
    }

    fn exchange(&mut self, number: u32, remaps: &[Remap]) {
        let Some(at) = self.processes.iter().position(|p| p.number == number) else {
            return;
        };
        let order = |remap: &Remap| {
            Some(FrameExchange {
                page: self.places.owners.get(&remap.from)?.page.number(),
                from: self.places.spans.kernel(remap.from)?,
                to: self.places.spans.kernel(remap.to)?,
            })
        };
        let orders: Vec<(Remap, FrameExchange)> = remaps
            .iter()
            .filter_map(|r| Some((*r, order(r)?)))
            .collect();
        let (remaps, orders): (Vec<Remap>, Vec<FrameExchange>) = orders.into_iter().unzip();
        let bytes = self.limits.page_bytes;
        let landed = match self
            .places
            .exchanger
            .exchange(self.processes[at].process, &orders)
        {
            Ok(landed) => landed,
            // It has ended, which the next scan detects.
            Err(e) if is_gone(&e) => return,
            Err(e) => {
                let why = Refusal::of(e.raw_os_error().unwrap_or(0));
                vec![Landed::Refused(why); remaps.len()]
            }
        };
        // All leave before the first comes back: one may be in a frame now that another has left, or has not come back to.
        let left: HashSet<u32> = remaps.iter().map(|remap| remap.from).collect();
        for ((remap, order), landed) in remaps.iter().zip(&orders).zip(landed) {
            match landed {
                Landed::In(frame) => match self.places.spans.index(frame) {
                    // The kernel had other plans. It is where it was.
                    Some(to) if to == remap.from => {}
                    Some(to) if !left.contains(&to) => self.landed(at, *remap, order.page, to),
                    _ => self.followed(at, remap.from, order.page),
                },
                Landed::Stale => {}
                Landed::Away => self.places.report.away += bytes,
                Landed::Refused(why) => {
                    *self.counts.refused.entry(why).or_default() += bytes;
                    // Another page of its bin may go instead, now: it does not wait for this one to be tried again.
                    if self.places.owners.contains_key(&remap.from) {
                        self.counts.rested += 1;
                        self.decide.fixed(remap.from);
                    }
                }
            }
        }
    }

    /// A page is where another one was, or in none of our frames: the next scan finds it as if it were new.
    fn followed(&mut self, at: usize, from: u32, page: u64) {
        self.places.report.elsewhere += self.limits.page_bytes;
        let Some(owner) = self.places.owners.remove(&from) else {
            return;
        };
        self.decide.gone(from);
        if owner.maps > 1 {
            self.places.vacated.insert(from);
        }
        let process = &mut self.processes[at];
        if let Ok(index) = process.pages.binary_search(&page) {
            process.frames[index] = NOWHERE;
        }
    }

    /// A page is in another frame now, as a rule the one that was asked for.
    fn landed(&mut self, at: usize, remap: Remap, page: u64, to: u32) {
        // Another process's page was there at the last scan: it is gone since.
        if self.places.owners.remove(&to).is_some() {
            self.decide.gone(to);
        }
        self.places.offered.remove(&to);
        match to == remap.to {
            true => {
                self.decide.moved(remap);
                self.counts.exchanged += self.limits.page_bytes;
            }
            false => {
                self.decide.strayed(remap.from, to);
                self.places.report.elsewhere += self.limits.page_bytes;
            }
        }
        // Another page may be in a frame that a shared one has just left.
        if self.places.vacated.contains(&to) {
            self.forget_vacated();
        }
        if let Some(owner) = self.places.owners.remove(&remap.from) {
            // Other processes that share it are found in its new frame at the next scan.
            if owner.maps > 1 {
                self.places.vacated.insert(remap.from);
            }
            let owner = Owner {
                maps: 1,
                moved: Some(self.interval),
                ..owner
            };
            self.places.owners.insert(to, owner);
        }
        let process = &mut self.processes[at];
        if let Ok(index) = process.pages.binary_search(&page) {
            process.frames[index] = to;
        }
    }

    /// Drops shared pages in vacated frames from all lists. The next scan finds them, wherever they are by then: it may be the old
    /// frame again.
    fn forget_vacated(&mut self) {
        if self.places.vacated.is_empty() {
            return;
        }
        let lists = self.processes.iter_mut().map(|p| &mut p.frames);
        let stale = lists
            .flatten()
            .filter(|frame| self.places.vacated.contains(frame));
        stale.for_each(|frame| *frame = NOWHERE);
        self.places.vacated.clear();
    }

    /// Notes how things are.
    fn see(&mut self) {
        let bytes = self.limits.page_bytes;
        self.places.seen = Some(self.interval);
        let report = &mut self.places.report;
        report.state = self.decide.state();
        report.most_misplaced = report.most_misplaced.max(report.state.misplaced);
        // Of what has ended by now the last word stays.
        if self.processes.is_empty() {
            return;
        }
        report.kinds.clear();
        for owner in self.places.owners.values() {
            *report.kinds.entry(owner.kind).or_default() += bytes;
        }
        report.unplaced.clear();
        for process in &self.processes {
            for (why, bytes) in process.memory.unplaced() {
                *report.unplaced.entry(why).or_default() += bytes;
            }
        }
    }
}

/// The changes that a scan found, of all processes.
#[derive(Default)]
struct Change {
    /// Pages that were in a frame and are not any more.
    dropped: Vec<(Page, u32)>,
    /// Pages that are in a frame in which they were not, its kind, and whether it is called hot.
    added: Vec<(Page, u32, Kind, bool)>,
}

#[cfg(test)]
#[path = "steer_tests.rs"]
mod tests;
