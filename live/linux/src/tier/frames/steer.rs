//! One interval after the other: what is there, what was used, which frames are exchanged, within budgets. Whose memory it is, who
//! decides and who exchanges are traits, so that all of it is tested without a machine.

use super::decide::{DecideFrames, Remap};
use super::exchange::{Exchanger, Landed, Order};
use super::pages::{FrameMemory, Kind, PageFrame};
use super::report::FrameReport;
use super::spans::Spans;
use crate::tier::decide::Page;
use crate::tier::memory::Refusal;
use crate::tier::observe::Observer;
use crate::tier::report::Counts;
use crate::tier::state::Part;
use crate::tier::steer::{Allowance, is_gone};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::time::Duration;

/// Pages that are on their way at a time: if we are killed just then, so many stay on another node.
const CHUNK: usize = 32;
/// Each so many intervals what was passed over, or refused, is looked at again.
const REVIEW: u64 = 16;
/// Each so many intervals it is looked how things are.
const STATE: u64 = 4;
/// No frame of ours.
const NOWHERE: u32 = u32::MAX;

/// Limits that hold for a whole run.
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Intervals for which a page that was moved stays where it is.
    pub hold: u64,
}

/// A process, and how it is seen what it uses.
struct Framed {
    number: u32,
    process: u32,
    memory: Box<dyn FrameMemory>,
    observer: Box<dyn Observer>,
    /// Its pages at the last look, ascending, and the frame of each.
    pages: Vec<u64>,
    frames: Vec<u32>,
    left: Option<Option<io::Error>>,
}

/// Whose a frame is.
#[derive(Clone, Copy, Debug)]
struct Owner {
    page: Page,
    /// Pages of processes that are in it: more than one if it is shared.
    maps: u32,
    kind: Kind,
    moved: Option<u64>,
}

/// Steers the frames of some processes.
pub struct FrameSteering<D> {
    decide: D,
    limits: FrameLimits,
    spans: Spans,
    exchanger: Box<dyn Exchanger>,
    processes: Vec<Framed>,
    owners: HashMap<u32, Owner>,
    offered: HashSet<u32>,
    /// Frames that shared pages have left since the last look: other processes' lists still have them there.
    vacated: HashSet<u32>,
    counts: Counts,
    report: FrameReport,
    interval: u64,
    /// The interval in which it was looked how things are.
    seen: Option<u64>,
    /// The next interval in which the reserve may be renewed, how long to wait then, and what was exchanged by the last time.
    renewal: (u64, u64, u64),
}

impl<D: DecideFrames> FrameSteering<D> {
    /// Nobody's pages yet.
    pub fn new(
        decide: D,
        limits: FrameLimits,
        spans: Spans,
        exchanger: Box<dyn Exchanger>,
    ) -> Self {
        FrameSteering {
            decide,
            limits,
            spans,
            exchanger,
            processes: Vec::new(),
            owners: HashMap::new(),
            offered: HashSet::new(),
            vacated: HashSet::new(),
            counts: Counts::default(),
            report: FrameReport::default(),
            interval: 0,
            seen: None,
            renewal: (0, STATE, 0),
        }
    }

    /// Takes a process in: `number` in this run.
    pub fn add(
        &mut self,
        number: u32,
        process: u32,
        memory: Box<dyn FrameMemory>,
        observer: Box<dyn Observer>,
    ) {
        self.processes.push(Framed {
            number,
            process,
            memory,
            observer,
            pages: Vec::new(),
            frames: Vec::new(),
            left: None,
        });
    }

    /// What was seen and done so far.
    pub fn report(&self) -> &FrameReport {
        &self.report
    }

    /// Sums.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Numbers of the processes that have not ended, and the seconds that watching each took elsewhere.
    pub fn watched(&self) -> Vec<(u32, f64)> {
        let of = |p: &Framed| (p.number, p.observer.elsewhere_seconds());
        self.processes.iter().map(of).collect()
    }

    /// So many bytes have gone to memory and back since the beginning, by now, in ns.
    pub fn traffic(&mut self, now: u64, bytes: u64) {
        self.decide.traffic(now, bytes);
    }

    /// Lets go of all processes.
    pub fn clear(&mut self) {
        self.processes.clear();
    }

    /// What is there, and what was used since the last interval. Processes that have ended, or that cannot be looked at any more,
    /// are left out from now on. Their numbers are the answer, with the reason for those that have not ended.
    pub fn look(&mut self) -> Vec<(u32, Option<io::Error>)> {
        self.interval += 1;
        self.counts.intervals += 1;
        self.forget_vacated();
        let mut processes = std::mem::take(&mut self.processes);
        let mut change = Change::default();
        for process in &mut processes {
            let looked = self.look_at(process, &mut change);
            process.left = match process.memory.has_ended() {
                true => Some(None),
                false => looked.err().map(|e| Some(e).filter(|e| !is_gone(e))),
            };
        }
        let (left, stay): (Vec<_>, Vec<_>) = processes.into_iter().partition(|p| p.left.is_some());
        self.processes = stay;
        for process in &left {
            // What it had until this look was dropped by it or is now, and what this look found does not count.
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
        let why = |process: Framed| (process.number, process.left.flatten());
        left.into_iter().map(why).collect()
    }

    fn look_at(&mut self, process: &mut Framed, change: &mut Change) -> io::Result<()> {
        // Uses come first: they are of pages as they were known until now.
        if self.decide.wants_uses() {
            let mut uses = Vec::new();
            process.observer.look(&process.pages, &mut uses)?;
            self.counts.uses += uses.len() as u64;
            for used in uses {
                if let Ok(at) = process.pages.binary_search(&used.page)
                    && process.frames[at] != NOWHERE
                {
                    self.decide.used(process.frames[at], used.writes);
                }
            }
        }
        let now = process.memory.look()?;
        let frame_of = |one: &PageFrame| self.spans.index(one.frame).unwrap_or(NOWHERE);
        let (mut pages, mut frames) = (Vec::new(), Vec::new());
        let mut before = process.pages.iter().zip(&process.frames).peekable();
        let dropped = &mut change.dropped;
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
                change.added.push((page, frame, one.kind, one.hot));
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

    /// Tells whoever decides what has come, gone, and moved.
    fn settle(&mut self, change: Change) {
        let mut empty: BTreeSet<u32> = BTreeSet::new();
        let mut orphans: HashSet<u32> = HashSet::new();
        let mut last: HashMap<Page, u32> = HashMap::new();
        for &(page, frame) in &change.dropped {
            if let Some(owner) = self.owners.get_mut(&frame) {
                owner.maps = owner.maps.saturating_sub(1);
                last.insert(page, frame);
                match owner.maps {
                    0 => drop(empty.insert(frame)),
                    _ if owner.page == page => drop(orphans.insert(frame)),
                    _ => {}
                }
            }
        }
        // What several may have is the same page if somebody has it now.
        for (_, frame, kind, _) in &change.added {
            if *kind != Kind::Own && self.owners.get(frame).is_some_and(|o| o.kind == *kind) {
                empty.remove(frame);
            }
        }
        let mut moves: BTreeMap<u32, u32> = BTreeMap::new();
        for (page, to, ..) in &change.added {
            let from = last.get(page).filter(|from| empty.contains(*from));
            let is_free = !self.owners.contains_key(to) || empty.contains(to);
            if let (Some(from), true) = (from, is_free) {
                moves.insert(*from, *to);
            }
        }
        // Where pages have followed each other, their frames are told of as if new ones had come.
        let targets: BTreeSet<u32> = moves.values().copied().collect();
        let mut taken = HashSet::new();
        moves
            .retain(|from, to| !targets.contains(from) && !empty.contains(to) && taken.insert(*to));
        for frame in empty.into_iter().filter(|frame| !moves.contains_key(frame)) {
            self.owners.remove(&frame);
            self.decide.gone(frame);
        }
        for (from, to) in moves {
            if let Some(owner) = self.owners.remove(&from) {
                self.decide.strayed(from, to);
                self.owners.insert(to, Owner { maps: 0, ..owner });
                self.offered.remove(&to);
                self.counts.by_others += self.limits.page_bytes;
            }
        }
        for (page, frame, kind, hot) in change.added {
            match self.owners.get_mut(&frame) {
                Some(owner) => {
                    if owner.maps == 0 {
                        owner.page = page;
                    }
                    owner.maps += 1;
                }
                None => {
                    self.offered.remove(&frame);
                    self.decide.found(frame, page, hot);
                    let owner = Owner {
                        page,
                        maps: 1,
                        kind,
                        moved: None,
                    };
                    self.owners.insert(frame, owner);
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
                    && let Some(owner) = self.owners.get_mut(frame)
                {
                    owner.page = Page::new(process.number, *page);
                }
            }
        }
    }

    /// Tells whoever decides which frames are in the reserve.
    fn refill(&mut self) {
        let Ok(reserve) = self.exchanger.reserve() else {
            return;
        };
        let now: HashSet<u32> = reserve
            .iter()
            .filter_map(|frame| self.spans.index(*frame))
            .collect();
        for &frame in self.offered.difference(&now) {
            self.decide.withdrawn(frame);
        }
        let mut new: Vec<u32> = now.difference(&self.offered).copied().collect();
        // In order, so that the same reserve leads to the same decisions.
        new.sort_unstable();
        for frame in new {
            // It may have been a page's at the last look.
            if self.owners.remove(&frame).is_some() {
                self.decide.gone(frame);
            }
            self.decide.offered(frame);
        }
        self.report.reserve = now.len() as u64 * self.limits.page_bytes;
        self.offered = now;
    }

    /// Decides and exchanges. `spent` tells the processor time that was taken so far.
    pub fn act(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        let until = spent() + allowed.time;
        let (home, away) = self.exchanger.bring_home();
        self.report.brought_home += home * self.limits.page_bytes;
        self.report.away = away * self.limits.page_bytes;
        if self.interval.is_multiple_of(REVIEW) {
            self.decide.review();
        }
        let mut remaps = Vec::new();
        self.decide.decide(&mut remaps);
        self.counts.wishes += remaps.len() as u64;
        let is_due = |seen: u64| self.interval - seen >= STATE;
        if self.seen.is_none_or(is_due) && (self.seen.is_some() || !remaps.is_empty()) {
            self.see();
        }
        // Nothing to be done about pages in wrong places: the reserve has no frames where they could go. It gets others, less often
        // each time that this does not help.
        if remaps.is_empty() && self.report.state.to_move > 0 && self.interval >= self.renewal.0 {
            if self.counts.exchanged > self.renewal.2 {
                self.renewal.1 = STATE;
            }
            let (spans, decide) = (&self.spans, &self.decide);
            let class = |kernel: u64| spans.index(kernel).map_or(0, |frame| decide.class(frame));
            self.exchanger.renew(&class);
            self.refill();
            self.decide.review();
            let wait = self.renewal.1;
            self.renewal = (
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
            let Some(owner) = self.owners.get(&remap.from) else {
                continue;
            };
            let held = owner
                .moved
                .is_none_or(|at| self.interval - at >= self.limits.hold);
            if held
                && self.offered.contains(&remap.to)
                && let Some(node) = self.spans.node(remap.from)
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
            Some(Order {
                page: self.owners.get(&remap.from)?.page.number(),
                from: self.spans.kernel(remap.from)?,
                to: self.spans.kernel(remap.to)?,
            })
        };
        let orders: Vec<(Remap, Order)> = remaps
            .iter()
            .filter_map(|r| Some((*r, order(r)?)))
            .collect();
        let (remaps, orders): (Vec<Remap>, Vec<Order>) = orders.into_iter().unzip();
        let bytes = self.limits.page_bytes;
        let landed = match self.exchanger.exchange(self.processes[at].process, &orders) {
            Ok(landed) => landed,
            // It has ended, which the next look sees.
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
                Landed::In(frame) => match self.spans.index(frame) {
                    // The kernel had other plans. It is where it was.
                    Some(to) if to == remap.from => {}
                    Some(to) if !left.contains(&to) => self.landed(at, *remap, order.page, to),
                    _ => self.followed(at, remap.from, order.page),
                },
                Landed::Stale => {}
                Landed::Away => self.report.away += bytes,
                Landed::Refused(why) => {
                    *self.counts.refused.entry(why).or_default() += bytes;
                    // Another page of its bin may go instead, now: it does not wait for this one to be tried again.
                    if self.owners.contains_key(&remap.from) {
                        self.counts.rested += 1;
                        self.decide.fixed(remap.from);
                    }
                }
            }
        }
    }

    /// A page is where another one was, or in none of our frames: the next look finds it as if it were new.
    fn followed(&mut self, at: usize, from: u32, page: u64) {
        self.report.elsewhere += self.limits.page_bytes;
        let Some(owner) = self.owners.remove(&from) else {
            return;
        };
        self.decide.gone(from);
        if owner.maps > 1 {
            self.vacated.insert(from);
        }
        let process = &mut self.processes[at];
        if let Ok(index) = process.pages.binary_search(&page) {
            process.frames[index] = NOWHERE;
        }
    }

    /// A page is in another frame now, as a rule the one that was asked for.
    fn landed(&mut self, at: usize, remap: Remap, page: u64, to: u32) {
        // Somebody else's page was there at the last look: it is gone since.
        if self.owners.remove(&to).is_some() {
            self.decide.gone(to);
        }
        self.offered.remove(&to);
        match to == remap.to {
            true => {
                self.decide.moved(remap);
                self.counts.exchanged += self.limits.page_bytes;
            }
            false => {
                self.decide.strayed(remap.from, to);
                self.report.elsewhere += self.limits.page_bytes;
            }
        }
        // Another page may be in a frame that a shared one has just left.
        if self.vacated.contains(&to) {
            self.forget_vacated();
        }
        if let Some(owner) = self.owners.remove(&remap.from) {
            // Others who have it are found in its new frame at the next look.
            if owner.maps > 1 {
                self.vacated.insert(remap.from);
            }
            let owner = Owner {
                maps: 1,
                moved: Some(self.interval),
                ..owner
            };
            self.owners.insert(to, owner);
        }
        let process = &mut self.processes[at];
        if let Ok(index) = process.pages.binary_search(&page) {
            process.frames[index] = to;
        }
    }

    /// Whose lists have shared pages in frames that these have left finds them anew, wherever they are by then: it may be the old
    /// frame again.
    fn forget_vacated(&mut self) {
        if self.vacated.is_empty() {
            return;
        }
        let lists = self.processes.iter_mut().map(|p| &mut p.frames);
        let stale = lists.flatten().filter(|frame| self.vacated.contains(frame));
        stale.for_each(|frame| *frame = NOWHERE);
        self.vacated.clear();
    }

    /// Notes how things are.
    pub fn see(&mut self) {
        let bytes = self.limits.page_bytes;
        self.seen = Some(self.interval);
        let report = &mut self.report;
        report.state = self.decide.state();
        report.most_misplaced = report.most_misplaced.max(report.state.misplaced);
        // Of what has ended by now the last word stays.
        if self.processes.is_empty() {
            return;
        }
        report.kinds.clear();
        for owner in self.owners.values() {
            *report.kinds.entry(owner.kind).or_default() += bytes;
        }
        report.unplaced.clear();
        for process in &self.processes {
            for (why, bytes) in process.memory.unplaced() {
                *report.unplaced.entry(why).or_default() += bytes;
            }
        }
    }

    /// Brings home what is away, and notes how things are in the end.
    pub fn finish(&mut self) {
        let (home, away) = self.exchanger.bring_home();
        self.report.brought_home += home * self.limits.page_bytes;
        self.report.away = away * self.limits.page_bytes;
        if !self.processes.is_empty() {
            self.see();
        }
    }

    /// Heat over the pages of each process, by its number in this run: at most so many parts of equally many pages.
    pub fn heat(&self, parts: usize) -> Vec<(u32, Vec<Part>)> {
        let bytes = self.limits.page_bytes;
        let of = |process: &Framed| {
            let size = process.pages.len().div_ceil(parts.max(1)).max(1);
            let all = process.pages.chunks(size).zip(process.frames.chunks(size));
            let part = |(pages, frames): (&[u64], &[u32])| {
                let hot = frames
                    .iter()
                    .filter(|f| **f != NOWHERE && self.decide.is_hot(**f));
                Part {
                    from: pages[0] * bytes,
                    to: (pages[pages.len() - 1] + 1) * bytes,
                    hot: hot.count() as f32 / frames.len() as f32,
                    fast: 0.0,
                }
            };
            (process.number, all.map(part).collect())
        };
        self.processes.iter().map(of).collect()
    }
}

/// What a look found, of all processes.
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
