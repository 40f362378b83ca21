//! Pages on nodes of fast and slow memory. Which of a node's frames a page is in is the kernel's choice.

use super::decide::{OBJECTS, Page, Pages, Remap, TierPolicy};
use super::error::TierError;
use super::memory::{BASE, Memory, MoveOutcome, ProcessMemory, Refusal};
use super::observe::Scope;
use super::shared::{Objects, Shared};
use super::steer::{Allowance, Migrate, Places, Residency, SharedPages, Steering, Tiered, is_gone};
use super::who;
use crate::nodes::Kinds;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

/// Pages that migrate between two checks of the budgets.
const CHUNK: usize = 64;
/// Refusals by the kernel after which a page backs off for [`REST`] intervals.
const TRIES: u8 = 3;
const REST: u64 = 64;
/// Intervals after which the nodes of all pages are read again: another process may have migrated them.
const VERIFY: u64 = 10;
/// For policies that use accesses, found pages stay for this many intervals, until hot ones are known: a page
/// counts as hot after 8 accesses by default.
pub(super) const SETTLE: u64 = 10;

/// Room on nodes, and which one of a kind a page goes to.
pub trait Nodes {
    /// Is this node one of fast memory, or one of the others?
    fn is_of(&self, fast: bool, node: u32) -> bool;

    /// Looks anew how much room there is.
    fn refresh(&mut self);

    /// The node of fast or slow memory nearest to `from` that has room for `bytes`; `None` if none has.
    fn choose(&self, fast: bool, from: u32, bytes: u64) -> Option<u32>;

    /// `bytes` migrated from one node to another.
    fn went(&mut self, from: u32, to: u32, bytes: u64);
}

#[derive(Clone, Copy, Debug)]
struct Known {
    node: u32,
    fast: bool,
    /// Its frame, as the policy knows it; `None` while nothing is decided for it.
    frame: Option<u32>,
    /// The interval in which it was moved last.
    moved: Option<u64>,
    refused: u8,
    /// Backs off until this interval.
    rests: Option<u64>,
}

/// Nodes, and the pages that are on them.
pub struct OnNodes {
    nodes: Box<dyn Nodes>,
    /// What processes share.
    objects: Objects,
    /// Pages of all processes together that may be in fast memory.
    most_fast: u64,
    known: Pages<Known>,
    /// Pages that are not where they were to be when they were found.
    unsettled: Vec<Page>,
    /// Pages in fast memory.
    fast: u64,
}

impl OnNodes {
    /// No page yet; they have `page_bytes`. `most_fast` limits the pages of all processes together in fast memory.
    pub fn new(nodes: Box<dyn Nodes>, page_bytes: u64, most_fast: u64) -> OnNodes {
        OnNodes {
            nodes,
            objects: Objects::new(page_bytes),
            most_fast,
            known: Pages::default(),
            unsettled: Vec::new(),
            fast: 0,
        }
    }

    /// A page came to fast memory, or went from there.
    fn count_fast(&mut self, page: Page, came: bool) {
        self.fast = self.fast + u64::from(came) - u64::from(!came);
        if let Some(object) = self.objects.get(page.process()) {
            object.fast = object.fast + u64::from(came) - u64::from(!came);
        }
    }

    fn residency(&self, page: Page) -> Residency {
        let known = self.known.get(&page);
        Residency {
            frame: known.and_then(|known| known.frame),
            fast: known.is_some_and(|known| known.fast),
        }
    }
}

impl Places for OnNodes {
    type Memory = dyn Memory;
    const SCOPE: Scope = Scope::Tiered;
    const HAS_FRAMES: bool = false;

    fn has_ended(memory: &dyn Memory) -> bool {
        memory.has_ended()
    }

    fn huge_left(memory: &dyn Memory) -> u64 {
        memory.huge_left()
    }
}

/// A page that is to go to fast or to slow memory.
#[derive(Clone, Copy)]
struct Wish {
    page: Page,
    fast: bool,
    /// The policy's request; `None` if a scan found the page on the wrong node.
    asked: Option<Remap>,
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

impl<D: TierPolicy> Migrate<OnNodes> for Steering<D, OnNodes> {
    fn begin(&mut self) {
        self.places.nodes.refresh();
    }

    fn residency(&self, process: &Tiered<OnNodes>, at: usize) -> Residency {
        let page = Page::new(process.number, process.pages[at]);
        self.places.residency(page)
    }

    fn observed<'a>(&self, number: u32, own: &'a [u64]) -> Cow<'a, [u64]> {
        let shared = self.places.objects.pages_of(number);
        if shared.is_empty() {
            return Cow::Borrowed(own);
        }
        let mut all = [own, &shared].concat();
        // Two ascending runs, which this merges.
        all.sort();
        all.dedup();
        Cow::Owned(all)
    }

    fn used(&self, process: &Tiered<OnNodes>, page: u64) -> Option<Residency> {
        let page = match process.pages.binary_search(&page) {
            Ok(_) => Page::new(process.number, page),
            Err(_) => self.places.objects.page(process.number, page)?,
        };
        Some(self.places.residency(page))
    }

    fn objects(&self) -> Vec<SharedPages<'_>> {
        let all = self.places.objects.iter();
        let of = |(number, object): (u32, _)| {
            let object: &Shared = object;
            SharedPages {
                number,
                what: &object.what,
                processes: object.processes.len(),
                pages: &object.pages,
                fast: object.fast,
            }
        };
        all.map(of).collect()
    }

    fn place_of_shared(&self, page: Page) -> Residency {
        self.places.residency(page)
    }

    fn scan(&mut self, process: &mut Tiered<OnNodes>) -> io::Result<()> {
        let now = process.memory.pages()?;
        let before = std::mem::take(&mut process.pages);
        let asked = self.unknown(process.number, &before, &now);
        let nodes = process.memory.nodes(&asked);
        process.pages = now;
        self.found(process.number, &asked, nodes?, &mut process.pages);
        Ok(())
    }

    fn scanned(&mut self, left: &[Tiered<OnNodes>]) {
        for process in left {
            for &page in &process.pages {
                self.forget(Page::new(process.number, page));
            }
        }
        let objects = &mut self.places.objects;
        objects.begin();
        for process in &self.processes {
            objects.has(process.number, process.memory.shared());
        }
        for (number, now) in objects.told() {
            self.scan_object(number, now);
        }
    }

    fn migrate(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        let mut left = Left {
            bytes: allowed.bytes,
            spent,
            until: spent() + allowed.time,
        };
        let mut remaps = Vec::new();
        self.decide.decide(&mut remaps);
        self.counts.wishes += remaps.len() as u64;
        for chunk in remaps.chunks(CHUNK) {
            if left.is_over() {
                break;
            }
            for fast in [false, true] {
                let ready = chunk
                    .iter()
                    .filter(|one| self.decide.is_fast(one.to) == fast);
                let ready: Vec<Wish> = ready.filter_map(|one| self.ready(*one, fast)).collect();
                for wish in self.carry_out(&ready, &mut left) {
                    let Some(done) = wish.asked else { continue };
                    if let Some(known) = self.places.known.get_mut(&wish.page) {
                        known.frame = Some(done.to);
                    }
                    self.decide.moved(done);
                }
            }
        }
        self.settle(&mut left);
    }

    fn hot_pages(&self) -> (u64, u64) {
        let all = self.places.known.values();
        let hot = all.filter(|known| known.frame.is_some_and(|f| self.decide.is_hot(f)));
        hot.fold((0, 0), |(hot, fast), known| {
            (hot + 1, fast + u64::from(known.fast))
        })
    }
}

impl<D: TierPolicy> Steering<D, OnNodes> {
    /// Pages in fast memory, as far as is known.
    pub fn fast_pages(&self) -> u64 {
        self.places.fast
    }

    /// Whether a page is to be in fast memory; `None` while nothing is decided for it.
    fn wanted(&self, known: &Known) -> Option<bool> {
        known.frame.map(|frame| self.decide.is_fast(frame))
    }

    /// Forgets pages that are there no more, and says which ones are to be asked about.
    fn unknown(&mut self, number: u32, before: &[u64], now: &[u64]) -> Vec<u64> {
        let (new, gone) = differences(before, now);
        for page in gone {
            self.forget(Page::new(number, page));
        }
        match self.interval.is_multiple_of(VERIFY) {
            true => now.to_vec(),
            false => new,
        }
    }

    /// Pages are on these nodes. Leaves those of `pages` of which a node is known.
    fn found(&mut self, number: u32, asked: &[u64], nodes: Vec<Option<u32>>, pages: &mut Vec<u64>) {
        let mut found: Vec<(Page, u32)> = Vec::new();
        for (&page, node) in asked.iter().zip(nodes) {
            let page = Page::new(number, page);
            match (node, self.places.known.contains_key(&page)) {
                (Some(node), true) => self.is_on(page, node),
                (Some(node), false) => found.push((page, node)),
                (None, _) => {}
            }
        }
        // Those in fast memory first, so that a policy that fills fast memory first leaves them there.
        found.sort_by_key(|&(page, node)| (!self.places.nodes.is_of(true, node), page));
        for (page, node) in found {
            self.appeared(page, node);
        }
        // Pages of which no node is known yet, such as the page of zeros, are asked about again.
        let known = &self.places.known;
        pages.retain(|&page| known.contains_key(&Page::new(number, page)));
    }

    /// What is there of an object that processes share.
    fn scan_object(&mut self, number: u32, now: Vec<u64>) {
        let Some(object) = self.places.objects.get(number) else {
            return;
        };
        let before = std::mem::take(&mut object.pages);
        let asked = self.unknown(number, &before, &now);
        let mut nodes = vec![None; asked.len()];
        self.through(number, &asked, |memory, pages, places| {
            // A process that has ended tells nothing; the next scan has another one.
            if let Ok(found) = memory.nodes_of_shared(pages) {
                for (at, node) in places.iter().zip(found) {
                    nodes[*at] = node;
                }
            }
        });
        let mut pages = now;
        self.found(number, &asked, nodes, &mut pages);
        if let Some(object) = self.places.objects.get(number) {
            object.pages = pages;
        }
    }

    /// Calls `each` for processes that have pages of an object: their memory, the pages in it, and the place of each in `pages`. Those
    /// that no process has are in no call.
    fn through(
        &mut self,
        number: u32,
        pages: &[u64],
        mut each: impl FnMut(&mut dyn Memory, &[u64], &[usize]),
    ) {
        let mut all: BTreeMap<u32, (Vec<u64>, Vec<usize>)> = BTreeMap::new();
        for (at, &page) in pages.iter().enumerate() {
            if let Some(through) = self.places.objects.through(number, page) {
                let (pages, places) = all.entry(through.process).or_default();
                pages.push(through.page);
                places.push(at);
            }
        }
        for process in &mut self.processes {
            if let Some((pages, places)) = all.get(&process.number) {
                each(&mut *process.memory, pages, places);
            }
        }
    }

    /// Moves pages of a process or of an object. What came of each; `None` where the process has ended, which the next scan tells.
    fn move_to(&mut self, number: u32, pages: &[u64], node: u32) -> Vec<Option<MoveOutcome>> {
        let bytes = self.limits.page_bytes;
        let came = |result: io::Result<Vec<MoveOutcome>>, count| match result {
            Ok(outcomes) => outcomes.into_iter().map(Some).collect(),
            Err(e) if is_gone(&e) => vec![None; count],
            Err(e) => vec![Some(MoveOutcome::refused(&e, bytes)); count],
        };
        let mut all = vec![None; pages.len()];
        if number >= OBJECTS {
            self.through(number, pages, |memory, pages, places| {
                let moved = came(memory.move_shared(pages, node), pages.len());
                for (at, outcome) in places.iter().zip(moved) {
                    all[*at] = outcome;
                }
            });
        } else if let Some(process) = self.processes.iter_mut().find(|p| p.number == number) {
            all = came(process.memory.move_to(pages, node), pages.len());
        }
        all
    }

    /// A page is there no more: at the same address at the next scan is another page.
    fn vanished(&mut self, page: Page) {
        let number = page.process();
        let pages = match self.places.objects.get(number) {
            Some(object) => Some(&mut object.pages),
            None => {
                let mut all = self.processes.iter_mut();
                all.find(|p| p.number == number).map(|p| &mut p.pages)
            }
        };
        if let Some(pages) = pages {
            pages.retain(|other| *other != page.number());
        }
        self.forget(page);
    }

    fn appeared(&mut self, page: Page, node: u32) {
        let fast = self.places.nodes.is_of(true, node);
        let known = Known {
            node,
            fast,
            frame: None,
            moved: None,
            refused: 0,
            rests: None,
        };
        self.places.known.insert(page, known);
        if fast {
            self.places.count_fast(page, true);
        }
        self.decide.is_at(page, Some(fast));
        self.ask(page);
    }

    /// Asks where a page is to be of which nothing is decided.
    fn ask(&mut self, page: Page) {
        let Some(known) = self.places.known.get_mut(&page) else {
            return;
        };
        known.rests = None;
        known.refused = 0;
        known.frame = self.decide.found(page, None, false);
        match known.frame {
            None => {
                known.rests = Some(self.interval + REST);
                self.counts.without_place += 1;
            }
            Some(frame) if self.decide.is_fast(frame) != known.fast => {
                self.places.unsettled.push(page);
            }
            Some(_) => {}
        }
    }

    fn forget(&mut self, page: Page) {
        if let Some(known) = self.places.known.remove(&page) {
            if known.fast {
                self.places.count_fast(page, false);
            }
            if let Some(frame) = known.frame {
                self.decide.gone(frame);
            }
            self.decide.is_at(page, None);
        }
    }

    /// The kernel says that a known page is there.
    fn is_on(&mut self, page: Page, node: u32) {
        let places = &mut self.places;
        let Some(known) = places.known.get_mut(&page) else {
            return;
        };
        known.node = node;
        if !places.nodes.is_of(known.fast, node) {
            let fast = !known.fast;
            known.fast = fast;
            // It is not fought over: it is moved back after as long as if it had been moved by us.
            known.moved = Some(self.interval);
            if (known.frame).is_some_and(|frame| self.decide.is_fast(frame) != fast) {
                places.unsettled.push(page);
            }
            places.count_fast(page, fast);
            self.decide.is_at(page, Some(fast));
            self.counts.by_others += self.limits.page_bytes;
        }
        let known = self.places.known.get(&page);
        let rests = known.and_then(|known| known.rests);
        if rests.is_some_and(|until| until <= self.interval) {
            self.ask(page);
        }
    }

    /// The request, if it may be done now: the page is present, and did not migrate recently; its target frame is empty.
    fn ready(&self, one: Remap, fast: bool) -> Option<Wish> {
        let page = self.decide.page_in(one.from)?;
        let known = self.places.known.get(&page)?;
        let other = self.decide.page_in(one.to);
        let other = other.and_then(|other| self.places.known.get(&other));
        let taken = other.is_some_and(|other| self.wanted(other) == Some(fast));
        let held = self.limits.have_held(known.moved, self.interval);
        (known.frame == Some(one.from) && held && !taken).then_some(Wish {
            page,
            fast,
            asked: Some(one),
        })
    }

    /// Moves pages that are not where they were to be from the beginning: what makes room first, then what is hot.
    fn settle(&mut self, left: &mut Left) {
        if self.decide.wants_uses() && self.interval <= SETTLE {
            return;
        }
        let mut pages = std::mem::take(&mut self.places.unsettled);
        let known = &self.places.known;
        pages.retain(|page| {
            let known = known.get(page);
            known.is_some_and(|k| self.wanted(k).is_some_and(|wanted| wanted != k.fast))
        });
        pages.sort_by_cached_key(|page| {
            let known = known.get(page);
            let frame = known.and_then(|known| known.frame);
            let hot = frame.is_some_and(|frame| self.decide.is_hot(frame));
            (known.is_some_and(|known| !known.fast), !hot, *page)
        });
        pages.dedup();
        for chunk in pages.chunks(CHUNK) {
            if left.is_over() {
                break;
            }
            let ready = chunk.iter().filter_map(|&page| {
                let known = self.places.known.get(&page)?;
                let held = self.limits.have_held(known.moved, self.interval);
                let fast = self.wanted(known).filter(|_| held)?;
                let asked = None;
                Some(Wish { page, fast, asked })
            });
            let ready: Vec<Wish> = ready.collect();
            self.carry_out(&ready, left);
        }
        // Those of which the kernel said no stay in the list until they rest.
        self.places.unsettled = pages;
    }

    /// Moves pages all of which go to memory of one kind, or no other than there is room for; says which were moved.
    fn carry_out(&mut self, wishes: &[Wish], left: &mut Left) -> Vec<Wish> {
        let bytes = self.limits.page_bytes;
        let mut batches: HashMap<(u32, u32, u32), Vec<Wish>> = HashMap::new();
        let (mut fast, mut on_the_way) = (self.places.fast, 0);
        for wish in wishes {
            let Some(known) = self.places.known.get(&wish.page) else {
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
            if wish.fast && fast >= self.places.most_fast {
                self.counts.over_budget += 1;
                continue;
            }
            let needed = on_the_way + bytes;
            let Some(node) = self.places.nodes.choose(wish.fast, known.node, needed) else {
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
            let numbers: Vec<u64> = batch.iter().map(|w| w.page.number()).collect();
            let outcomes = self.move_to(process, &numbers, to);
            for (wish, outcome) in batch.into_iter().zip(outcomes) {
                let Some(outcome) = outcome else { continue };
                self.places.nodes.went(from, to, outcome.bytes);
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
        gone.into_iter().for_each(|page| self.vanished(page));
        done
    }

    fn arrived(&mut self, wish: Wish, node: u32) {
        let Some(known) = self.places.known.get_mut(&wish.page) else {
            return;
        };
        let changes = known.fast != wish.fast;
        *known = Known {
            node,
            fast: wish.fast,
            moved: Some(self.interval),
            refused: 0,
            ..*known
        };
        if changes {
            self.places.count_fast(wish.page, wish.fast);
        }
        self.decide.is_at(wish.page, Some(wish.fast));
    }

    fn refused(&mut self, page: Page) {
        let Some(known) = self.places.known.get_mut(&page) else {
            return;
        };
        known.refused += 1;
        if known.refused >= TRIES {
            let frame = known.frame.take();
            known.rests = Some(self.interval + REST);
            self.counts.rested += 1;
            if let Some(frame) = frame {
                self.decide.gone(frame);
            }
        }
    }
}

/// The elements of `now` alone, and those of `before` alone. Both ascend.
fn differences(before: &[u64], now: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let only = |these: &[u64], others: &[u64]| {
        let mut others = others.iter().peekable();
        let mut is_other = |page: &u64| {
            while others.next_if(|other| *other < page).is_some() {}
            others.peek() == Some(&page)
        };
        these
            .iter()
            .filter(|page| !is_other(page))
            .copied()
            .collect()
    };
    (only(now, before), only(before, now))
}

/// The memory of a process, if it may be moved between nodes.
pub(super) fn open(
    process: u32,
    page_bytes: u64,
    kinds: &Kinds,
) -> Result<Box<dyn Memory>, TierError> {
    can_tier(process, kinds)?;
    let why = |e| TierError::of_memory(process, e);
    let mut memory = ProcessMemory::of(process, page_bytes).map_err(why)?;
    let pages = memory.pages().map_err(why)?;
    memory
        .nodes(&pages[..pages.len().min(1)])
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => TierError::Gone(process),
            Some(libc::EPERM) if who::name(process) == "?" => TierError::Gone(process),
            _ => TierError::Refused { process, error },
        })?;
    Ok(Box::new(memory))
}

/// Whether a process's memory may be moved between the nodes at all.
pub(super) fn can_tier(process: u32, kinds: &Kinds) -> Result<(), TierError> {
    let Some(allowed) = who::allowed(process) else {
        return Ok(());
    };
    let mut wanted = kinds.fast.iter().chain(&kinds.slow);
    if let Some(&node) = wanted.find(|node| !allowed.contains(node)) {
        let allowed = Kinds::list(&allowed);
        return Err(TierError::Forbidden {
            process,
            node,
            allowed,
        });
    }
    let refused = |error| TierError::Refused { process, error };
    // The kernel reports the node of a page of our own, unless a sandbox forbids the call.
    let mut own = ProcessMemory::of(std::process::id(), BASE).map_err(refused)?;
    let pages = own.pages().map_err(refused)?;
    own.nodes(&pages[..pages.len().min(1)])
        .map(drop)
        .map_err(refused)
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
