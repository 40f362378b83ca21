//! The control loop's interval: scans residency and accesses, and migrates pages within budgets. Pages are placed by
//! [`Places`]: on nodes or in frames. Memory and policy are traits, so that all of it is tested without a machine.

use super::decide::{Page, TierPolicy};
use super::frames::FrameReport;
use super::heat::{has, ranges};
use super::mapped::SharedObject;
use super::observe::{Observer, Scope};
use super::report::TierCounts;
use super::state::Part;
use std::borrow::Cow;
use std::io;
use std::time::Duration;

/// Limits that hold for a whole run.
#[derive(Clone, Copy, Debug)]
pub struct MoveLimits {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Intervals for which a page that was moved stays where it is.
    pub hold: u64,
}

impl MoveLimits {
    /// Whether a page that was moved in an interval, if ever, may be moved again in another one.
    pub(super) fn have_held(&self, moved: Option<u64>, now: u64) -> bool {
        moved.is_none_or(|at| now > at && now - at >= self.hold)
    }
}

/// The limits of one interval.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Bytes that may be moved.
    pub bytes: u64,
    /// Processor time for moving.
    pub time: Duration,
}

/// A process, and how it is seen what it uses.
pub struct Tiered<P: Places> {
    /// Its number in this run, and the system's.
    pub number: u32,
    pub(super) process: u32,
    /// Its memory.
    pub(super) memory: Box<P::Memory>,
    /// The observer of its accesses.
    observer: Box<dyn Observer>,
    /// Its pages at the last scan, ascending.
    pub(super) pages: Vec<u64>,
    /// Where frames are chosen, the frame of each.
    pub(super) frames: Vec<u32>,
    /// It is left out from now on, and why if it has not ended.
    left: Option<Option<io::Error>>,
}

/// Residency of a page.
#[derive(Clone, Copy, Debug)]
pub struct Residency {
    /// Its frame, as the policy knows it; `None` while nothing is decided for it.
    pub frame: Option<u32>,
    /// Whether it is in fast memory.
    pub fast: bool,
}

/// An object that processes share, as it is now.
pub struct SharedPages<'a> {
    /// Its number in this run.
    pub number: u32,
    /// What it is.
    pub what: &'a SharedObject,
    /// Processes that have some of it.
    pub processes: usize,
    /// Its pages, ascending.
    pub pages: &'a [u64],
    /// How many of them are in fast memory.
    pub fast: u64,
}

/// Where pages can be: on nodes or in frames.
pub trait Places: Sized {
    /// The memory of a process.
    type Memory: ?Sized;

    /// Of which memory uses are to be seen.
    const SCOPE: Scope;

    /// Whether frames are chosen, rather than nodes.
    const HAS_FRAMES: bool;

    /// Whether a process is no more.
    fn has_ended(memory: &Self::Memory) -> bool;

    /// Bytes of huge pages that do not migrate.
    fn huge_left(_: &Self::Memory) -> u64 {
        0
    }
}

/// How pages are scanned and migrate: what differs between nodes and frames.
pub trait Migrate<P: Places> {
    /// A scan begins.
    fn begin(&mut self);

    /// Where one of a process's pages is, by its place among them.
    fn residency(&self, process: &Tiered<P>, at: usize) -> Residency;

    /// Pages of a process whose uses are to be seen, ascending: its own ones, which are given, and others.
    fn observed<'a>(&self, _number: u32, own: &'a [u64]) -> Cow<'a, [u64]> {
        Cow::Borrowed(own)
    }

    /// Where one of these is; `None` where it is not known any more.
    fn used(&self, process: &Tiered<P>, page: u64) -> Option<Residency> {
        let at = process.pages.binary_search(&page).ok()?;
        Some(self.residency(process, at))
    }

    /// What processes share, where that is told apart.
    fn objects(&self) -> Vec<SharedPages<'_>> {
        Vec::new()
    }

    /// Where a page of one of these is.
    fn place_of_shared(&self, _page: Page) -> Residency {
        let (frame, fast) = (None, false);
        Residency { frame, fast }
    }

    /// Scans a process's pages.
    ///
    /// # Errors
    /// It has ended, or may not be scanned.
    fn scan(&mut self, process: &mut Tiered<P>) -> io::Result<()>;

    /// All processes have been scanned, and `left` ones are dropped from now on.
    fn scanned(&mut self, left: &[Tiered<P>]);

    /// Decides and moves. `spent` tells the processor time that was taken so far.
    fn migrate(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration);

    /// Hot pages, and how many of these are where they should be.
    fn hot_pages(&self) -> (u64, u64);

    /// It is over.
    fn finish(&mut self) -> Option<FrameReport> {
        None
    }
}

/// Steers the pages of some processes.
pub struct Steering<D, P: Places> {
    /// The policy.
    pub decide: D,
    /// Limits of the run.
    pub limits: MoveLimits,
    /// Processes that have not ended.
    pub processes: Vec<Tiered<P>>,
    /// Sums.
    pub counts: TierCounts,
    pub(super) places: P,
    pub(super) interval: u64,
}

impl<D: TierPolicy, P: Places> Steering<D, P>
where
    Self: Migrate<P>,
{
    /// No process yet.
    pub fn new(decide: D, limits: MoveLimits, places: P) -> Self {
        Steering {
            decide,
            limits,
            processes: Vec::new(),
            counts: TierCounts::default(),
            places,
            interval: 0,
        }
    }

    /// Takes a process in: its number in this run, and the system's.
    pub fn add(
        &mut self,
        number: u32,
        process: u32,
        memory: Box<P::Memory>,
        observer: Box<dyn Observer>,
    ) {
        self.processes.push(Tiered {
            number,
            process,
            memory,
            observer,
            pages: Vec::new(),
            frames: Vec::new(),
            left: None,
        });
    }

    /// Scans residency, and accesses since the last interval. Processes that have ended, or that can no longer be scanned,
    /// are dropped. Returns their numbers, with the reason for those that have not ended.
    pub fn look(&mut self) -> Vec<(u32, Option<io::Error>)> {
        self.interval += 1;
        self.counts.intervals += 1;
        self.begin();
        let mut processes = std::mem::take(&mut self.processes);
        for process in &mut processes {
            // Uses come first: they are of pages as they were known until now.
            let looked = self.see_uses(process).and_then(|()| self.scan(process));
            process.left = match P::has_ended(&process.memory) {
                true => Some(None),
                false => looked.err().map(|e| Some(e).filter(|e| !is_gone(e))),
            };
        }
        let (left, stay): (Vec<_>, Vec<_>) = processes.into_iter().partition(|p| p.left.is_some());
        self.processes = stay;
        self.scanned(&left);
        let why = |process: Tiered<P>| (process.number, process.left.flatten());
        left.into_iter().map(why).collect()
    }

    fn see_uses(&mut self, process: &mut Tiered<P>) -> io::Result<()> {
        if !self.decide.wants_uses() {
            return Ok(());
        }
        let mut uses = Vec::new();
        let observed = self.observed(process.number, &process.pages);
        process.observer.look(&observed, &mut uses)?;
        self.counts.uses += uses.len() as u64;
        for used in uses {
            let Some(Residency { frame, fast }) = self.used(process, used.page) else {
                continue;
            };
            if let Some(frame) = frame {
                self.decide.used(frame, used.writes, fast);
            }
        }
        Ok(())
    }

    /// Decides and moves. `spent` tells the processor time that was taken so far.
    pub fn act(&mut self, allowed: &Allowance, spent: &dyn Fn() -> Duration) {
        self.migrate(allowed, spent);
    }

    /// Of processes that have not ended: number in this run, seconds of processor time elsewhere, bytes of huge pages that do not migrate.
    pub(super) fn watched(&self) -> Vec<(u32, f64, u64)> {
        let of = |p: &Tiered<P>| {
            let seconds = p.observer.elsewhere_seconds();
            (p.number, seconds, P::huge_left(&p.memory))
        };
        self.processes.iter().map(of).collect()
    }

    /// Heat over the pages of each process and of each object that processes share, by its number in this run: in at most `parts` parts
    /// of equally many pages.
    pub fn heat(&self, parts: usize) -> Vec<(u32, Vec<Part>)> {
        let of = |process: &Tiered<P>| {
            let place = |at| self.residency(process, at);
            (process.number, self.parts(&process.pages, parts, &place))
        };
        let mut all: Vec<_> = self.processes.iter().map(of).collect();
        for object in self.objects() {
            let page = |at: usize| Page::new(object.number, object.pages[at]);
            let place = |at| self.place_of_shared(page(at));
            all.push((object.number, self.parts(object.pages, parts, &place)));
        }
        all
    }

    /// Hot memory of each process and of each object that processes share, by its number in this run: ranges of addresses, ascending.
    pub fn hot_ranges(&self) -> Vec<(u32, Vec<(u64, u64)>)> {
        let bytes = self.limits.page_bytes;
        let is_hot = |place: Residency| place.frame.is_some_and(|f| self.decide.is_hot(f));
        let of = |process: &Tiered<P>| {
            let all = process.pages.iter().enumerate();
            let hot = all.filter(|(at, _)| is_hot(self.residency(process, *at)));
            (process.number, ranges(hot.map(|(_, page)| *page), bytes))
        };
        let mut all: Vec<_> = self.processes.iter().map(of).collect();
        for object in self.objects() {
            let place = |page: u64| self.place_of_shared(Page::new(object.number, page));
            let hot = object.pages.iter().copied().filter(|p| is_hot(place(*p)));
            all.push((object.number, ranges(hot, bytes)));
        }
        all
    }

    /// These ranges were hot before: the policy sees them used until they are.
    pub fn warm(&mut self, number: u32, hot: &[(u64, u64)]) {
        let bytes = self.limits.page_bytes;
        let mut places: Vec<Residency> = Vec::new();
        for process in self.processes.iter().filter(|p| p.number == number) {
            let all = process.pages.iter().enumerate();
            let some = all.filter(|(_, page)| has(hot, **page, bytes));
            places.extend(some.map(|(at, _)| self.residency(process, at)));
        }
        for object in self.objects().iter().filter(|o| o.number == number) {
            let some = object.pages.iter().filter(|page| has(hot, **page, bytes));
            places.extend(some.map(|page| self.place_of_shared(Page::new(number, *page))));
        }
        for Residency { frame, fast } in places {
            let Some(frame) = frame else { continue };
            // No threshold is higher.
            for _ in 0..u8::MAX {
                if self.decide.is_hot(frame) {
                    break;
                }
                self.decide.used(frame, false, fast);
            }
        }
    }

    fn parts(&self, pages: &[u64], parts: usize, place: &dyn Fn(usize) -> Residency) -> Vec<Part> {
        let bytes = self.limits.page_bytes;
        let size = pages.len().div_ceil(parts.max(1)).max(1);
        let part = |first: usize| {
            let behind = (first + size).min(pages.len());
            let (mut hot, mut fast) = (0, 0);
            for at in first..behind {
                let one = place(at);
                hot += usize::from(one.frame.is_some_and(|f| self.decide.is_hot(f)));
                fast += usize::from(one.fast);
            }
            let share = |count: usize| count as f32 / (behind - first) as f32;
            Part {
                from: pages[first] * bytes,
                to: (pages[behind - 1] + 1) * bytes,
                hot: share(hot),
                fast: share(fast),
            }
        };
        (0..pages.len()).step_by(size).map(part).collect()
    }
}

/// The process is no more.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH) || error.kind() == io::ErrorKind::NotFound
}
