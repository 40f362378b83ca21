//! One interval after the other: what is there, what was used, what is to be moved, within budgets. Whose memory it is and who
//! decides are traits, so that all of it is tested without a second node.

use super::decide::{Decide, Page, Pages, Wish};
use super::memory::{Memory, Outcome, Refusal};
use super::observe::Observer;
use super::report::Counts;
use super::state::Part;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

/// Pages that are moved between two looks at what is left of the budgets.
const CHUNK: usize = 64;
/// A page that the kernel refused to move so many times is left alone for [`REST`] intervals.
const TRIES: u8 = 3;
const REST: u64 = 64;
/// Each so many intervals it is asked where all pages are: others may have moved them.
const VERIFY: u64 = 10;
/// Where uses count, pages that were found stay where they were for so many intervals, until it is known which are hot: a page
/// counts as hot after 8 uses where a policy says nothing else.
const SETTLE: u64 = 10;

/// Limits that hold for a whole run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of all processes together that may be in fast memory.
    pub fast_pages: u64,
    /// Intervals for which a page that was moved stays where it is.
    pub hold: u64,
}

/// What one interval may take.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Bytes that may be moved.
    pub bytes: u64,
    /// Processor time for moving.
    pub time: Duration,
}

/// Room on nodes, and which one of a kind a page goes to.
pub trait Nodes {
    /// Is this node one of fast memory, or one of the others?
    fn is_of(&self, fast: bool, node: u32) -> bool;

    /// Looks anew how much room there is.
    fn refresh(&mut self);

    /// The node of fast or slow memory nearest to `from` that has room for so many bytes; `None` if none has.
    fn choose(&self, fast: bool, from: u32, bytes: u64) -> Option<u32>;

    /// So many bytes went from one node to another.
    fn went(&mut self, from: u32, to: u32, bytes: u64);
}

/// A process, and how it is seen what it uses.
pub struct Tiered {
    /// Its number in this run.
    pub number: u32,
    /// Its memory.
    pub memory: Box<dyn Memory>,
    /// Who sees its uses.
    pub observer: Box<dyn Observer>,
    /// Its pages at the last look, ascending.
    pages: Vec<u64>,
    /// It is left out from now on, and why if it has not ended.
    left: Option<Option<io::Error>>,
}

impl Tiered {
    /// One of which nothing is known yet.
    pub fn new(number: u32, memory: Box<dyn Memory>, observer: Box<dyn Observer>) -> Tiered {
        Tiered {
            number,
            memory,
            observer,
            pages: Vec::new(),
            left: None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Known {
    node: u32,
    fast: bool,
    /// Where it is to be; `None` while nothing is decided for it.
    wanted: Option<bool>,
    /// The interval in which it was moved last.
    moved: Option<u64>,
    refused: u8,
    /// Left alone until then.
    rests: Option<u64>,
}

/// Steers the pages of some processes.
pub struct Steering<D> {
    /// Whoever decides.
    pub decide: D,
    /// Limits of the run.
    pub limits: Limits,
    /// Processes that have not ended.
    pub processes: Vec<Tiered>,
    /// Sums.
    pub counts: Counts,
    nodes: Box<dyn Nodes>,
    known: Pages<Known>,
    /// Pages that are not where they were to be when they were found.
    unsettled: Vec<Page>,
    /// Pages in fast memory.
    fast: u64,
    interval: u64,
    wishes: Vec<Wish>,
}

/// Budgets of an interval as they are used up.
struct Left<'a> {
    bytes: u64,
    spent: &'a dyn Fn() -> Duration,
    until: Duration,
}

impl Left<'_> {
    fn is_over(&self) -> bool {
        self.bytes == 0 || (self.spent)() >= self.until
    }
}

impl<D: Decide> Steering<D> {
    /// Nobody's pages yet.
    pub fn new(decide: D, limits: Limits, nodes: Box<dyn Nodes>) -> Steering<D> {
        Steering {
            decide,
            limits,
            processes: Vec::new(),
            counts: Counts::default(),
            nodes,
            known: Pages::default(),
            unsettled: Vec::new(),
            fast: 0,
            interval: 0,
            wishes: Vec::new(),
        }
    }

    /// Pages in fast memory, as far as is known.
    pub fn fast_pages(&self) -> u64 {
        self.fast
    }

    /// Hot pages, and how many of these are in fast memory.
    pub fn hot_pages(&self) -> (u64, u64) {
        let hot = || self.known.iter().filter(|(p, _)| self.decide.is_hot(**p));
        let fast = hot().filter(|(_, known)| known.fast).count();
        (hot().count() as u64, fast as u64)
    }

    /// Heat over the pages of each process, by its number in this run: at most so many parts of equally many pages.
    pub fn heat(&self, parts: usize) -> Vec<(u32, Vec<Part>)> {
        let bytes = self.limits.page_bytes;
        let part = |process: u32, pages: &[u64]| {
            let known = pages.iter().map(|&number| Page::new(process, number));
            let known: Vec<Page> = known.filter(|page| self.known.contains_key(page)).collect();
            let share = |of: &dyn Fn(&Page) -> bool| {
                known.iter().filter(|page| of(page)).count() as f32 / known.len().max(1) as f32
            };
            Part {
                from: pages[0] * bytes,
                to: (pages[pages.len() - 1] + 1) * bytes,
                hot: share(&|page| self.decide.is_hot(*page)),
                fast: share(&|page| self.known.get(page).is_some_and(|known| known.fast)),
            }
        };
        let of = |process: &Tiered| {
            let size = process.pages.len().div_ceil(parts.max(1)).max(1);
            let all = process.pages.chunks(size);
            (
                process.number,
                all.map(|pages| part(process.number, pages)).collect(),
            )
        };
        self.processes.iter().map(of).collect()
    }

    /// What is there, and what was used since the last interval. Processes that have ended, or that cannot be looked at any more,
    /// are left out from now on. Their numbers are the answer, with the reason for those that have not ended.
    pub fn look(&mut self) -> Vec<(u32, Option<io::Error>)> {
        self.interval += 1;
        self.counts.intervals += 1;
        self.nodes.refresh();
        let mut processes = std::mem::take(&mut self.processes);
        for process in &mut processes {
            let looked = self.look_at(process);
            process.left = match process.memory.has_ended() {
                true => Some(None),
                false => looked.err().map(|e| Some(e).filter(|e| !is_gone(e))),
            };
        }
        let (left, stay): (Vec<_>, Vec<_>) = processes.into_iter().partition(|p| p.left.is_some());
        self.processes = stay;
        for process in &left {
            for &page in &process.pages {
                self.forget(Page::new(process.number, page));
            }
        }
        let why = |process: Tiered| (process.number, process.left.flatten());
        left.into_iter().map(why).collect()
    }

    fn look_at(&mut self, process: &mut Tiered) -> io::Result<()> {
        // Uses come first: they are of pages as they were known until now.
        if self.decide.wants_uses() {
            let mut uses = Vec::new();
            process.observer.look(&process.pages, &mut uses)?;
            self.counts.uses += uses.len() as u64;
            for used in uses {
                let page = Page::new(process.number, used.page);
                if let Some(known) = self.known.get(&page).filter(|k| k.wanted.is_some()) {
                    self.decide.used(page, used.writes, known.fast);
                }
            }
        }
        let pages = process.memory.pages()?;
        let (new, gone) = differences(&process.pages, &pages);
        for page in gone {
            self.forget(Page::new(process.number, page));
        }
        process.pages = pages;
        let all = self.interval.is_multiple_of(VERIFY);
        let asked = if all { &process.pages } else { &new };
        let nodes = process.memory.nodes(asked)?;
        let mut found: Vec<(Page, u32)> = Vec::new();
        for (&number, node) in asked.iter().zip(nodes) {
            let page = Page::new(process.number, number);
            match (node, self.known.contains_key(&page)) {
                (Some(node), true) => self.is_on(page, node),
                (Some(node), false) => found.push((page, node)),
                (None, _) => {}
            }
        }
        // Those in fast memory first, so that whoever fills fast memory first leaves them there.
        found.sort_by_key(|&(page, node)| (!self.nodes.is_of(true, node), page));
        for (page, node) in found {
            self.appeared(page, node);
        }
        // What nobody knows yet, such as the page of zeros, is asked about again.
        let known = &self.known;
        process
            .pages
            .retain(|&number| known.contains_key(&Page::new(process.number, number)));
        Ok(())
    }

    fn appeared(&mut self, page: Page, node: u32) {
        let fast = self.nodes.is_of(true, node);
        let known = Known {
            node,
            fast,
            wanted: None,
            moved: None,
            refused: 0,
            rests: None,
        };
        self.known.insert(page, known);
        self.fast += u64::from(fast);
        self.decide.is_at(page, Some(fast));
        self.ask(page);
    }

    /// Asks where a page is to be of which nothing is decided.
    fn ask(&mut self, page: Page) {
        let Some(known) = self.known.get_mut(&page) else {
            return;
        };
        known.rests = None;
        known.refused = 0;
        known.wanted = self.decide.appeared(page, known.fast);
        match known.wanted {
            None => {
                known.rests = Some(self.interval + REST);
                self.counts.without_place += 1;
            }
            Some(fast) if fast != known.fast => self.unsettled.push(page),
            Some(_) => {}
        }
    }

    fn forget(&mut self, page: Page) {
        if let Some(known) = self.known.remove(&page) {
            self.fast -= u64::from(known.fast);
            if known.wanted.is_some() {
                self.decide.gone(page);
            }
            self.decide.is_at(page, None);
        }
    }

    /// The kernel says that a known page is there.
    fn is_on(&mut self, page: Page, node: u32) {
        let Some(known) = self.known.get_mut(&page) else {
            return;
        };
        known.node = node;
        if !self.nodes.is_of(known.fast, node) {
            let fast = !known.fast;
            known.fast = fast;
            self.fast = self.fast + u64::from(fast) - u64::from(!fast);
            self.decide.is_at(page, Some(fast));
            self.counts.by_others += self.limits.page_bytes;
            // It is not fought over: it is moved back after as long as if it had been moved by us.
            known.moved = Some(self.interval);
            if known.wanted.is_some_and(|wanted| wanted != fast) {
                self.unsettled.push(page);
            }
        }
        if known.rests.is_some_and(|until| until <= self.interval) {
            self.ask(page);
        }
    }

    /// Decides and moves. `spent` tells the processor time that was taken so far.
    pub fn act(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        let mut left = Left {
            bytes: allowed.bytes,
            spent,
            until: spent() + allowed.time,
        };
        let mut wishes = std::mem::take(&mut self.wishes);
        wishes.clear();
        self.decide.decide(&mut wishes);
        self.counts.wishes += wishes.len() as u64;
        for chunk in wishes.chunks(CHUNK) {
            if left.is_over() {
                break;
            }
            for fast in [false, true] {
                let ready = |w: &&Wish| w.fast == fast && self.may_move(w);
                let some: Vec<Wish> = chunk.iter().filter(ready).copied().collect();
                for wish in self.carry_out(&some, &mut left) {
                    if let Some(known) = self.known.get_mut(&wish.page) {
                        known.wanted = Some(wish.fast);
                    }
                    self.decide.moved(&wish);
                }
            }
        }
        self.wishes = wishes;
        self.settle(&mut left);
    }

    /// A wish that may be carried out now: its page is there, and was not moved of late; the place that it takes is empty.
    fn may_move(&self, wish: &Wish) -> bool {
        let is_there = |page: Page| self.known.get(&page).filter(|k| k.wanted.is_some());
        let Some(known) = is_there(wish.page) else {
            return false;
        };
        let taken = wish.after.and_then(is_there);
        self.has_held(known) && taken.is_none_or(|other| other.wanted != Some(wish.fast))
    }

    fn has_held(&self, known: &Known) -> bool {
        known
            .moved
            .is_none_or(|at| self.interval > at && self.interval - at >= self.limits.hold)
    }

    /// Moves pages that are not where they were to be from the beginning: what makes room first, then what is hot.
    fn settle(&mut self, left: &mut Left) {
        if self.decide.wants_uses() && self.interval <= SETTLE {
            return;
        }
        let mut pages = std::mem::take(&mut self.unsettled);
        let known = &self.known;
        pages.retain(|page| {
            let known = known.get(page);
            known.is_some_and(|k| k.wanted.is_some_and(|wanted| wanted != k.fast))
        });
        pages.sort_by_cached_key(|page| {
            let up = self.known.get(page).is_some_and(|k| !k.fast);
            (up, !self.decide.is_hot(*page), *page)
        });
        pages.dedup();
        for chunk in pages.chunks(CHUNK) {
            if left.is_over() {
                break;
            }
            let ready = chunk.iter().filter_map(|&page| {
                let known = self.known.get(&page).filter(|k| self.has_held(k))?;
                Some(Wish {
                    page,
                    fast: known.wanted?,
                    after: None,
                })
            });
            let ready: Vec<Wish> = ready.collect();
            self.carry_out(&ready, left);
        }
        // Those of which the kernel said no stay in the list until they rest.
        self.unsettled = pages;
    }

    /// Moves pages all of which go to memory of one kind, or no other than there is room for; says which were moved.
    fn carry_out(&mut self, wishes: &[Wish], left: &mut Left) -> Vec<Wish> {
        let bytes = self.limits.page_bytes;
        let mut batches: HashMap<(u32, u32, u32), Vec<Wish>> = HashMap::new();
        let (mut fast, mut on_the_way) = (self.fast, 0);
        for wish in wishes {
            let Some(known) = self.known.get(&wish.page) else {
                continue;
            };
            if known.fast == wish.fast {
                // Others have moved it there, or it never left.
                batches
                    .entry((wish.page.process(), known.node, known.node))
                    .or_default()
                    .push(*wish);
                continue;
            }
            if left.bytes < bytes {
                left.bytes = 0;
                self.counts.over_rate += 1;
                continue;
            }
            if wish.fast && fast >= self.limits.fast_pages {
                self.counts.over_budget += 1;
                continue;
            }
            let needed = on_the_way + bytes;
            let Some(node) = self.nodes.choose(wish.fast, known.node, needed) else {
                self.counts.full += 1;
                continue;
            };
            on_the_way = needed;
            left.bytes -= bytes;
            fast += u64::from(wish.fast);
            batches
                .entry((wish.page.process(), known.node, node))
                .or_default()
                .push(*wish);
        }
        let mut batches: Vec<_> = batches.into_iter().collect();
        batches.sort_by_key(|(key, _)| *key);
        let (mut done, mut gone) = (Vec::new(), Vec::new());
        for ((process, from, to), batch) in batches {
            if from == to {
                batch.iter().for_each(|wish| self.arrived(*wish, to));
                done.extend(batch);
                continue;
            }
            let Some(process) = self.processes.iter_mut().find(|p| p.number == process) else {
                continue;
            };
            let numbers: Vec<u64> = batch.iter().map(|w| w.page.number()).collect();
            let outcomes = match process.memory.move_to(&numbers, to) {
                Ok(outcomes) => outcomes,
                // It has ended, which the next look sees.
                Err(e) if is_gone(&e) => continue,
                Err(e) => vec![Outcome::refused(&e, bytes); numbers.len()],
            };
            for (wish, outcome) in batch.into_iter().zip(outcomes) {
                self.nodes.went(from, to, outcome.bytes);
                self.counts.add(wish.fast, &outcome);
                match outcome.refused {
                    None => {
                        self.arrived(wish, to);
                        done.push(wish);
                    }
                    Some(Refusal::Gone) => gone.push(wish.page),
                    Some(_) => self.refused(wish.page),
                }
            }
        }
        // What is there again at the next look is another page.
        for page in gone {
            let process = self
                .processes
                .iter_mut()
                .find(|p| p.number == page.process());
            if let Some(process) = process {
                process.pages.retain(|number| *number != page.number());
            }
            self.forget(page);
        }
        done
    }

    fn arrived(&mut self, wish: Wish, node: u32) {
        let Some(known) = self.known.get_mut(&wish.page) else {
            return;
        };
        self.fast = self.fast + u64::from(wish.fast) - u64::from(known.fast);
        self.decide.is_at(wish.page, Some(wish.fast));
        *known = Known {
            node,
            fast: wish.fast,
            moved: Some(self.interval),
            refused: 0,
            ..*known
        };
    }

    fn refused(&mut self, page: Page) {
        let Some(known) = self.known.get_mut(&page) else {
            return;
        };
        known.refused += 1;
        if known.refused >= TRIES {
            known.wanted = None;
            known.rests = Some(self.interval + REST);
            self.counts.rested += 1;
            self.decide.gone(page);
        }
    }
}

/// The process is no more.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH) || error.kind() == io::ErrorKind::NotFound
}

/// What is in `now` alone, and what is in `before` alone. Both ascend.
fn differences(before: &[u64], now: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    let (mut b, mut n) = (before.iter().peekable(), now.iter().peekable());
    loop {
        match (b.peek(), n.peek()) {
            (None, None) => return (new, gone),
            (Some(&&old), next) if next.is_none_or(|&&next| old < next) => {
                gone.push(old);
                b.next();
            }
            (last, Some(&&next)) if last.is_none_or(|&&old| next < old) => {
                new.push(next);
                n.next();
            }
            _ => {
                b.next();
                n.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn what_came_and_what_went_is_told() {
        assert_eq!(differences(&[], &[1, 2]), (vec![1, 2], vec![]));
        assert_eq!(
            differences(&[1, 3, 4], &[2, 3, 9]),
            (vec![2, 9], vec![1, 4])
        );
        assert_eq!(differences(&[1, 2], &[]), (vec![], vec![1, 2]));
    }
}
