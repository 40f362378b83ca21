//! The memory of a process: which of its pages are there, on which nodes, and moving them.

use super::forks::Forks;
use super::mapped::{SharedObject, Tierable, is_shared_memory, tiered};
use crate::nodes::{self, on_process};
use crate::place::pagemap::Pagemap;
use crate::place::scan;
use crate::sampled::used::{self, Mapping};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Pages of the kernel.
pub const BASE: u64 = 4096;
/// Pages asked about or moved at a time.
const BATCH: usize = 512;

/// Why a page was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Another process has it, too.
    Shared,
    /// It is in use by the kernel or a device: pinned, being written, or being migrated by another program.
    Busy,
    /// The node has no room.
    Full,
    /// It is there no more.
    Gone,
    /// Something else: the error number.
    Other(i32),
}

impl Refusal {
    /// Of an error number of `move_pages`, see its manual.
    pub fn of(error: i32) -> Refusal {
        match error {
            libc::EACCES => Refusal::Shared,
            libc::EBUSY | libc::EAGAIN => Refusal::Busy,
            libc::ENOMEM => Refusal::Full,
            libc::ENOENT | libc::EFAULT => Refusal::Gone,
            other => Refusal::Other(other),
        }
    }

    /// In words that follow a number of bytes.
    pub fn words(self) -> String {
        match self {
            Refusal::Shared => "shared with another process".into(),
            Refusal::Busy => "busy or pinned".into(),
            Refusal::Full => "for which the node had no room".into(),
            Refusal::Gone => "gone meanwhile".into(),
            Refusal::Other(error) => {
                format!("refused: {}", io::Error::from_raw_os_error(error))
            }
        }
    }
}

/// The outcome of a page's migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveOutcome {
    /// Bytes that were moved.
    pub bytes: u64,
    /// Why the page, or most of it, is where it was; `None` if it was moved.
    pub refused: Option<Refusal>,
    /// Bytes that are where they were.
    pub left: u64,
}

impl MoveOutcome {
    /// Of a page that stayed where it was, since the whole call failed.
    pub fn refused(error: &io::Error, page_bytes: u64) -> MoveOutcome {
        MoveOutcome {
            bytes: 0,
            refused: Some(Refusal::of(error.raw_os_error().unwrap_or(0))),
            left: page_bytes,
        }
    }
}

/// Adjacent pages of shared memory or of a file that a process has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRun {
    /// Of what.
    pub object: Rc<SharedObject>,
    /// Their first address in the process.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
    /// Where they begin in the object, in bytes.
    pub offset: u64,
}

/// The memory of a process, in pages of a size that was agreed on.
pub trait Memory {
    /// Its own pages that may be moved and of which something is in memory, ascending.
    ///
    /// # Errors
    /// The process has ended, or may not be scanned.
    fn pages(&mut self) -> io::Result<Vec<u64>>;

    /// On which node each is; `None`: on none.
    ///
    /// # Errors
    /// As [`Memory::pages`].
    fn nodes(&mut self, pages: &[u64]) -> io::Result<Vec<Option<u32>>>;

    /// Moves pages to a node.
    ///
    /// # Errors
    /// As [`Memory::pages`].
    fn move_to(&mut self, pages: &[u64], node: u32) -> io::Result<Vec<MoveOutcome>>;

    /// What it shared with others, or could, when its pages were asked for: ascending by address.
    fn shared(&self) -> &[SharedRun] {
        &[]
    }

    /// As [`Memory::nodes`], of pages in [`Memory::shared`].
    ///
    /// # Errors
    /// As [`Memory::pages`].
    fn nodes_of_shared(&mut self, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        self.nodes(pages)
    }

    /// As [`Memory::move_to`], of pages in [`Memory::shared`], for all processes that have them.
    ///
    /// # Errors
    /// As [`Memory::pages`].
    fn move_shared(&mut self, pages: &[u64], node: u32) -> io::Result<Vec<MoveOutcome>> {
        self.move_to(pages, node)
    }

    /// Whether the process is no more.
    fn has_ended(&self) -> bool {
        false
    }

    /// Bytes of huge pages that are larger than pages of this run, and so do not migrate.
    fn huge_left(&self) -> u64 {
        0
    }
}

/// Ranges of addresses, ascending and apart.
type Ranges = Vec<(u64, u64)>;

/// The memory of a process of this machine.
pub struct ProcessMemory {
    process: u32,
    /// Tells when it has ended, even if its number is another's.
    handle: OwnedFd,
    page_bytes: u64,
    has_scan: bool,
    may_move_shared: bool,
    forks: Forks,
    /// Where the kernel's pages of its own memory are that are there.
    own: Ranges,
    /// The same of memory that it may share.
    shared: Ranges,
    /// What they are of.
    runs: Vec<SharedRun>,
    /// Huge ones among all of these.
    huge: Ranges,
    huge_left: u64,
    /// What the page table had when its parts were walked last.
    walked: Walked,
    /// Where the next walk begins.
    cursor: u64,
}

/// Pages that are there, by kind, huge ones with them.
#[derive(Default)]
struct Walked {
    own: Ranges,
    shared: Ranges,
    huge: Ranges,
    /// Of its own: those that another process has, too, since a fork.
    forked: Ranges,
}

/// Bytes of pages that a scan walks: in a GiB of pages of 4 KiB it takes some 10 ms (`bench/live-tier cost`). Of a larger process each
/// scan walks the next part, and the first one all.
const WINDOW: u64 = 2 << 30;

impl ProcessMemory {
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32, page_bytes: u64) -> io::Result<ProcessMemory> {
        Ok(ProcessMemory {
            process,
            handle: on_process::handle(process)?,
            page_bytes,
            has_scan: scan::works(),
            may_move_shared: on_process::may_move_everybodys(),
            forks: Forks::default(),
            own: Vec::new(),
            shared: Vec::new(),
            runs: Vec::new(),
            huge: Vec::new(),
            huge_left: 0,
            walked: Walked::default(),
            cursor: 0,
        })
    }

    /// Reads which of the kernel's pages are there.
    fn read(&mut self) -> io::Result<()> {
        let known = [&self.walked.own, &self.walked.shared];
        let (window, next) = window(known, self.cursor, WINDOW);
        self.cursor = next;
        self.read_part(window)
    }

    /// Reads the pages that are there between two addresses; elsewhere they are as they were, but for what is not mapped any more.
    fn read_part(&mut self, window: (u64, u64)) -> io::Result<()> {
        self.own.clear();
        self.shared.clear();
        self.runs.clear();
        let (map, mappings) = maps(self.process)?;
        let before = std::mem::take(&mut self.walked);
        // Who may not move what others have leaves it with the process, and is refused.
        let forked = match self.may_move_shared {
            true => self.forks.object(self.process),
            false => None,
        };
        for (mapping, what) in tiered(&mappings) {
            let is_shared = what != Tierable::Own;
            let mut there = Vec::new();
            let known = match is_shared {
                true => &before.shared,
                false => &before.own,
            };
            // Outside of the window is what was there before, as far as it is mapped still.
            let from = window.0.clamp(mapping.start, mapping.end);
            let to = window.1.clamp(mapping.start, mapping.end);
            there.extend(overlap(known, mapping.start, from));
            self.walked
                .huge
                .extend(overlap(&before.huge, mapping.start, from));
            if from < to && !self.walk(&map, from..to, is_shared, &mut there)? {
                continue;
            }
            overlap(known, to, mapping.end).for_each(|(from, to)| push(&mut there, from, to));
            let huge = &mut self.walked.huge;
            overlap(&before.huge, to, mapping.end).for_each(|(from, to)| push(huge, from, to));
            let walked = match is_shared {
                true => &mut self.walked.shared,
                false => &mut self.walked.own,
            };
            there.iter().for_each(|&(from, to)| push(walked, from, to));
            let run = |object: &Rc<SharedObject>, start, end, offset| SharedRun {
                object: object.clone(),
                start,
                end,
                offset,
            };
            match (what, &forked) {
                (Tierable::Shared(object), _) => {
                    for &(from, to) in &there {
                        push(&mut self.shared, from, to);
                        let offset = mapping.offset + (from - mapping.start);
                        self.runs.push(run(&object, from, to, offset));
                    }
                }
                (Tierable::Own, None) => {
                    there
                        .iter()
                        .for_each(|&(from, to)| push(&mut self.own, from, to));
                }
                (Tierable::Own, Some(object)) => {
                    let mut of_others: Ranges =
                        overlap(&before.forked, mapping.start, from).collect();
                    for (from, to) in overlap(&there, from, to) {
                        shared_since_a_fork(&map, from, to, &mut of_others)?;
                    }
                    of_others.extend(overlap(&before.forked, to, mapping.end));
                    let own = without(&there, &of_others);
                    // They are at one address in all processes.
                    for (from, to) in without(&there, &own) {
                        push(&mut self.walked.forked, from, to);
                        push(&mut self.shared, from, to);
                        self.runs.push(run(object, from, to, from));
                    }
                    own.iter()
                        .for_each(|&(from, to)| push(&mut self.own, from, to));
                }
            }
        }
        self.huge.clone_from(&self.walked.huge);
        if self.page_bytes < HUGE && !self.huge.is_empty() {
            self.leave_huge_ones();
        }
        Ok(())
    }

    /// Appends the pages of a part of a mapping that are there; of one that may be shared, those that it has not copied. Notes huge
    /// ones. `false` if the kernel does not tell.
    fn walk(
        &mut self,
        map: &Pagemap,
        part: Range<u64>,
        is_shared: bool,
        there: &mut Ranges,
    ) -> io::Result<bool> {
        let (start, end) = (part.start as usize, part.end as usize);
        if self.has_scan {
            let kind = match is_shared {
                true => scan::PRESENT | scan::FILE,
                false => scan::PRESENT,
            };
            let huge = &mut self.walked.huge;
            let each = |from: usize, to: usize, is_huge: bool| {
                push(there, from as u64, to as u64);
                if is_huge {
                    push(huge, from as u64, to as u64);
                }
            };
            let told = scan::regions_told_apart(map, start..end, kind, scan::HUGE_PAGE, each);
            return Ok(told);
        }
        let pages = (end - start) / BASE as usize;
        map.read(start, pages, |index, entry| {
            if entry.present() && (!is_shared || entry.is_file()) {
                let at = part.start + index as u64 * BASE;
                push(there, at, at + BASE);
            }
        })
        .map_err(of_place)?;
        Ok(true)
    }

    /// Huge pages are larger than those of this run: they stay where they are.
    fn leave_huge_ones(&mut self) {
        let left = |all: &Ranges| -> u64 { all.iter().map(|(from, to)| to - from).sum() };
        let before = left(&self.own) + left(&self.shared);
        self.own = without(&self.own, &self.huge);
        self.shared = without(&self.shared, &self.huge);
        self.huge_left = before - left(&self.own) - left(&self.shared);
        let runs = std::mem::take(&mut self.runs);
        for run in runs {
            for (start, end) in without(&[(run.start, run.end)], &self.huge) {
                let offset = run.offset + (start - run.start);
                let object = run.object.clone();
                self.runs.push(SharedRun {
                    object,
                    start,
                    end,
                    offset,
                });
            }
        }
    }

    /// The kernel's pages within a page that are to be named to move it: of huge ones the first alone. Left out if it is a part
    /// of a huge one.
    fn within(&self, there: &Ranges, page: u64) -> Vec<usize> {
        let (start, end) = (page * self.page_bytes, (page + 1) * self.page_bytes);
        let first = there.partition_point(|&(_, to)| to <= start);
        let mut all = Vec::new();
        let overlapping = there[first..].iter().take_while(|r| r.0 < end);
        for &(from, to) in overlapping {
            let mut at = from.max(start);
            while at < to.min(end) {
                all.push(at as usize);
                at = match self.is_huge(at) {
                    true => (at / HUGE + 1) * HUGE,
                    false => at + BASE,
                };
            }
        }
        all
    }

    fn is_huge(&self, at: u64) -> bool {
        let next = self.huge.partition_point(|&(_, to)| to <= at);
        self.huge.get(next).is_some_and(|&(from, _)| from <= at)
    }

    /// The nodes of pages, by the first of the kernel's pages that is there of each.
    fn nodes_in(&self, there: &Ranges, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        let address = |page: &u64| {
            let start = page * self.page_bytes;
            let at = there.partition_point(|&(_, to)| to <= start);
            let found = there.get(at).filter(|r| r.0 < start + self.page_bytes);
            found.map_or(start, |r| r.0.max(start)) as usize
        };
        let addresses: Vec<usize> = pages.iter().map(address).collect();
        let mut all = Vec::with_capacity(pages.len());
        let mut status = vec![0; BATCH];
        for batch in addresses.chunks(BATCH) {
            on_process::nodes_of(self.process, batch, &mut status)?;
            // Negative: not in memory, or unmapped.
            all.extend(status[..batch.len()].iter().map(|s| u32::try_from(*s).ok()));
        }
        Ok(all)
    }

    /// Moves pages to a node, for all processes that have them if `everybodys` is said.
    fn move_in(
        &self,
        there: &Ranges,
        pages: &[u64],
        node: u32,
        everybodys: bool,
    ) -> io::Result<Vec<MoveOutcome>> {
        let mut outcomes = vec![MoveOutcome::default(); pages.len()];
        let mut addresses = Vec::new();
        let mut of = Vec::new();
        for (index, &page) in pages.iter().enumerate() {
            let within = self.within(there, page);
            if within.is_empty() {
                outcomes[index].refused = Some(Refusal::Gone);
            }
            of.extend(within.iter().map(|_| index));
            addresses.extend(within);
        }
        let mut status = vec![0; BATCH];
        for (batch, of) in addresses.chunks(BATCH).zip(of.chunks(BATCH)) {
            if self.has_ended() {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            on_process::move_with(self.process, batch, node, &mut status, everybodys)?;
            for ((&at, &index), &status) in batch.iter().zip(of).zip(&status) {
                let outcome = &mut outcomes[index];
                let bytes = match self.is_huge(at as u64) {
                    true => HUGE.min(self.page_bytes),
                    false => BASE,
                };
                if status >= 0 {
                    outcome.bytes += bytes;
                } else {
                    outcome.left += bytes;
                    outcome.refused = Some(Refusal::of(-status));
                }
            }
        }
        for outcome in &mut outcomes {
            // A page is where most of it is.
            if outcome.bytes > outcome.left {
                outcome.refused = None;
            }
        }
        Ok(outcomes)
    }
}

/// Appends the pages between two addresses that another process has, too.
fn shared_since_a_fork(map: &Pagemap, from: u64, to: u64, all: &mut Ranges) -> io::Result<()> {
    let pages = (to - from) / BASE;
    map.read(from as usize, pages as usize, |index, entry| {
        if entry.present() && !entry.is_exclusive() {
            let at = from + index as u64 * BASE;
            push(all, at, at + BASE);
        }
    })
    .map_err(of_place)
}

/// What is of some ranges and not of others.
fn without(all: &[(u64, u64)], others: &Ranges) -> Ranges {
    let mut left = Vec::new();
    for &(from, to) in all {
        let mut at = from;
        let first = others.partition_point(|&(_, end)| end <= from);
        for &(start, end) in others[first..].iter().take_while(|r| r.0 < to) {
            if at < start {
                left.push((at, start));
            }
            at = at.max(end);
        }
        if at < to {
            left.push((at, to));
        }
    }
    left
}

const HUGE: u64 = 2 << 20;

/// Adds a range behind others.
fn push(all: &mut Vec<(u64, u64)>, from: u64, to: u64) {
    match all.last_mut() {
        Some(last) if last.1 == from => last.1 = to,
        _ => all.push((from, to)),
    }
}

/// A process's mappings, and the map of its pages. Opened anew each time: a program that starts another in its place has others.
pub(super) fn maps(process: u32) -> io::Result<(Pagemap, Vec<Mapping>)> {
    let map = Pagemap::of(process).map_err(of_place)?;
    let mappings = used::mappings(process, &[])?;
    match mappings.is_empty() {
        // Of the kernel, or about to be gone.
        true => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        false => Ok((map, mappings)),
    }
}

pub(super) fn of_place(error: crate::place::error::PlaceError) -> io::Error {
    match error {
        // The map of a process that has no memory any more is empty.
        crate::place::error::PlaceError::System(_, error)
            if error.kind() == io::ErrorKind::UnexpectedEof =>
        {
            io::Error::from_raw_os_error(libc::ESRCH)
        }
        crate::place::error::PlaceError::System(_, error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// The addresses that a scan walks, and where the next one begins: from `cursor` on as far as `bytes` of known pages are. All of them,
/// where there are no more.
fn window(known: [&Ranges; 2], cursor: u64, bytes: u64) -> ((u64, u64), u64) {
    let total: u64 = known
        .into_iter()
        .flatten()
        .map(|(from, to)| to - from)
        .sum();
    if total <= bytes {
        return ((0, u64::MAX), 0);
    }
    let ahead = known.map(|ranges| overlap(ranges, cursor, u64::MAX).collect::<Ranges>());
    let mut ahead = ahead.concat();
    ahead.sort();
    let mut left = bytes;
    for (from, to) in ahead {
        match left.checked_sub(to - from) {
            Some(rest) if rest > 0 => left = rest,
            _ => return ((cursor, from + left), from + left),
        }
    }
    ((cursor, u64::MAX), 0)
}

/// The parts of ascending ranges between two addresses.
fn overlap(ranges: &Ranges, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let first = ranges.partition_point(|range| range.1 <= from);
    let some = ranges[first..].iter().take_while(move |range| range.0 < to);
    some.map(move |range| (range.0.max(from), range.1.min(to)))
}

impl Memory for ProcessMemory {
    fn pages(&mut self) -> io::Result<Vec<u64>> {
        self.huge_left = 0;
        self.read()?;
        let bytes = self.page_bytes;
        let mut pages: Vec<u64> = Vec::new();
        for &(from, to) in &self.own {
            // A range may begin in the page in which the last one ended.
            let first = pages
                .last()
                .map_or(from / bytes, |last| (last + 1).max(from / bytes));
            pages.extend(first..to.div_ceil(bytes));
        }
        Ok(pages)
    }

    fn nodes(&mut self, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        self.nodes_in(&self.own, pages)
    }

    fn move_to(&mut self, pages: &[u64], node: u32) -> io::Result<Vec<MoveOutcome>> {
        self.move_in(&self.own, pages, node, false)
    }

    fn shared(&self) -> &[SharedRun] {
        &self.runs
    }

    fn nodes_of_shared(&mut self, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        self.nodes_in(&self.shared, pages)
    }

    fn move_shared(&mut self, pages: &[u64], node: u32) -> io::Result<Vec<MoveOutcome>> {
        self.move_in(&self.shared, pages, node, self.may_move_shared)
    }

    fn has_ended(&self) -> bool {
        on_process::has_ended(&self.handle)
    }

    fn huge_left(&self) -> u64 {
        self.huge_left
    }
}

/// Bytes of a process's own memory without files by node, as `numa_maps` tells: another way than that by which pages are moved.
///
/// # Errors
/// The process has ended, or may not be scanned.
pub fn by_node(process: u32) -> io::Result<BTreeMap<u32, u64>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/numa_maps"))?;
    Ok(nodes::by_node(&text, is_own))
}

/// The same of shared memory that it has used, without files.
///
/// # Errors
/// As [`by_node`].
pub fn shared_by_node(process: u32) -> io::Result<BTreeMap<u32, u64>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/numa_maps"))?;
    Ok(nodes::by_node(&text, is_shared))
}

/// By its words in `numa_maps`, a mapping is of shared memory.
fn is_shared(words: &[&str]) -> bool {
    let mut names = words.iter().filter_map(|word| word.strip_prefix("file="));
    names.any(is_shared_memory) && !words.contains(&"huge")
}

/// By its words in `numa_maps`, a mapping is of no file.
fn is_own(words: &[&str]) -> bool {
    let has = |key: &str| words.iter().any(|word| word.starts_with(key));
    has("anon=") && !has("file=") && !words.contains(&"huge")
}

#[cfg(test)]
mod tests {
    use super::super::mapped::SharedKind;
    use super::*;
    use crate::mapped::Mapped;

    #[test]
    fn memory_by_node_is_that_of_no_file() {
        let text = "\
7f0000000000 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4
7f0000100000 default file=/lib/libc.so.6 anon=2 N0=2 kernelpagesize_kB=4
7f0000200000 default heap anon=512 dirty=512 N1=512 kernelpagesize_kB=4
7f0000400000 default file=/SYSV00000000\\040(deleted) dirty=7 active=0 N1=7 kernelpagesize_kB=4
7ffc00000000 default stack
";
        let own = nodes::by_node(text, is_own);
        assert_eq!(own, [(0, 4096), (1, 514 * 4096)].into());
        let shared = nodes::by_node(text, is_shared);
        assert_eq!(shared, [(1, 7 * 4096)].into());
    }

    #[test]
    fn ranges_without_others_are_what_is_left() {
        let others = vec![(10, 20), (30, 40)];
        let left = |from, to| without(&[(from, to)], &others);
        assert_eq!(left(0, 50), [(0, 10), (20, 30), (40, 50)]);
        assert_eq!(left(12, 18), []);
        assert_eq!(left(15, 35), [(20, 30)]);
        assert_eq!(left(20, 30), [(20, 30)]);
        assert_eq!(left(40, 41), [(40, 41)]);
    }

    /// Shared memory of this process is not its own: what it has touched of it is told with its place there.
    #[test]
    fn shared_memory_that_was_touched_is_told_apart() {
        let bytes = 16 * BASE as usize;
        // SAFETY: new memory at an address of the kernel's choice.
        let held = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let held = libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0);
            assert_ne!(held, libc::MAP_FAILED);
            held.cast::<u8>()
        };
        for page in [3, 4, 9] {
            // SAFETY: within the mapping, to which there is no other reference.
            unsafe { held.add(page * BASE as usize).write_volatile(1) };
        }
        let start = held as u64;
        let mut memory = ProcessMemory::of(std::process::id(), BASE).unwrap();
        let own = memory.pages().unwrap();
        assert!(own.binary_search(&(start / BASE + 3)).is_err());
        let runs = memory.shared().iter();
        let runs = runs.filter(|run| run.start >= start && run.end <= start + bytes as u64);
        let found: Vec<(u64, u64, u64)> = runs
            .map(|run| {
                assert!(run.object.name.starts_with("/dev/zero"), "{run:?}");
                (
                    (run.start - start) / BASE,
                    (run.end - start) / BASE,
                    run.offset / BASE,
                )
            })
            .collect();
        assert_eq!(found, [(3, 5, 3), (9, 10, 9)]);
        // SAFETY: the mapping of above, which is not used any more.
        unsafe { libc::munmap(held.cast(), bytes) };
    }

    #[test]
    fn scans_of_a_large_process_walk_it_in_parts_and_come_around() {
        let own = vec![(0, 100), (200, 300)];
        let shared = vec![(120, 140), (400, 500)];
        let known = [&own, &shared];
        assert_eq!(window(known, 0, 320), ((0, u64::MAX), 0), "all of it");
        let mut cursor = 0;
        let mut windows = Vec::new();
        for _ in 0..5 {
            let (at, next) = window(known, cursor, 110);
            windows.push(at);
            cursor = next;
        }
        let around = [(0, 130), (130, 300), (300, u64::MAX), (0, 130), (130, 300)];
        assert_eq!(windows, around);
        let some: Ranges = overlap(&own, 50, 250).collect();
        assert_eq!(some, [(50, 100), (200, 250)]);
        assert_eq!(overlap(&own, 100, 200).count(), 0);
    }

    /// What a child has not written is one page of both; what it has written is its own.
    #[test]
    fn memory_since_a_fork_is_shared_until_it_is_written() {
        if !on_process::may_move_everybodys() {
            return varve_skip::skip!("pages that several processes have cannot be moved here");
        }
        let held = Mapped::new(64 * BASE as usize).unwrap();
        let start = held.start() as u64;
        let write = |pages: Range<usize>| {
            for page in pages {
                // SAFETY: within our own new mapping.
                unsafe { ((held.start() + page * BASE as usize) as *mut u8).write(1) };
            }
        };
        write(0..64);
        // SAFETY: the child writes to its memory, and waits to be killed: no lock of another thread is taken.
        let child = unsafe { libc::fork() };
        if child == 0 {
            write(0..16);
            loop {
                // SAFETY: no memory is passed.
                unsafe { libc::pause() };
            }
        }
        let of = |process: u32| {
            let mut memory = ProcessMemory::of(process, BASE).unwrap();
            memory.pages().unwrap();
            let end = start + 64 * BASE;
            let own: Ranges = overlap(&memory.own, start, end).collect();
            // Neighbours of other tests may be in one mapping with it.
            let inside = memory
                .runs
                .iter()
                .filter(|run| run.end > start && run.start < end);
            let clipped = inside.map(|run| SharedRun {
                start: run.start.max(start),
                end: run.end.min(end),
                offset: run.offset + run.start.max(start) - run.start,
                object: run.object.clone(),
            });
            let runs: Vec<SharedRun> = clipped.collect();
            (own, runs)
        };
        let mut found = of(child as u32);
        // It writes when it has a turn.
        for _ in 0..200 {
            if found.0 == [(start, start + 16 * BASE)] {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            found = of(child as u32);
        }
        let parent = of(std::process::id());
        // SAFETY: no memory is passed; the child is ours, and is waited for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        for (own, runs) in [&found, &parent] {
            assert_eq!(*own, [(start, start + 16 * BASE)]);
            let [run] = &runs[..] else { panic!("{runs:?}") };
            assert_eq!((run.start, run.end), (start + 16 * BASE, start + 64 * BASE));
            assert_eq!((run.object.kind, run.offset), (SharedKind::Fork, run.start));
        }
        assert_eq!(found.1[0].object, parent.1[0].object);
        // Alone again, and once its mappings are read anew.
        let (own, runs) = of(std::process::id());
        assert_eq!((own, runs), (vec![(start, start + 64 * BASE)], vec![]));
    }

    /// What is unmapped is gone at the next scan, whichever part that walks; what is new is found within a turn.
    #[test]
    fn parts_that_are_not_walked_are_as_they_were() {
        let own = std::process::id();
        let first = Mapped::new(64 * BASE as usize).unwrap();
        let second = Mapped::new(64 * BASE as usize).unwrap();
        let touch = |mapped: &Mapped, pages: Range<usize>| {
            for page in pages {
                // SAFETY: within our own new mapping.
                unsafe { ((mapped.start() + page * BASE as usize) as *mut u8).write(1) };
            }
        };
        let mut memory = ProcessMemory::of(own, BASE).unwrap();
        touch(&first, 0..32);
        touch(&second, 0..32);
        memory.pages().unwrap();
        let has = |memory: &ProcessMemory, mapped: &Mapped, page: usize| {
            let at = mapped.start() as u64 + page as u64 * BASE;
            overlap(&memory.own, at, at + BASE).count() == 1
        };
        assert!(has(&memory, &first, 31) && !has(&memory, &first, 32));
        touch(&first, 32..64);
        // As if a part without these mappings was walked.
        let mapped = [first.start(), second.start()].map(|start| start as u64);
        memory
            .read_part((0, *mapped.iter().min().unwrap()))
            .unwrap();
        assert!(has(&memory, &first, 31), "as it was");
        let at = second.start() as u64;
        drop(second);
        memory
            .read_part((0, *mapped.iter().min().unwrap()))
            .unwrap();
        assert_eq!(overlap(&memory.own, at, at + BASE).count(), 0, "unmapped");
        memory.read_part((0, u64::MAX)).unwrap();
        assert!(has(&memory, &first, 63), "found");
    }

    /// This process's own memory, scanned from outside: pages that were touched are there and are on a node.
    #[test]
    fn pages_that_were_touched_are_there() {
        let own = std::process::id();
        let held = vec![1u8; 64 * BASE as usize];
        let mut memory = ProcessMemory::of(own, BASE).unwrap();
        let pages = memory.pages().unwrap();
        assert!(pages.is_sorted_by(|a, b| a < b), "ascending, each once");
        let inside = held.as_ptr() as u64 / BASE + 1;
        let huge = memory.is_huge(inside * BASE);
        assert!(huge || pages.binary_search(&inside).is_ok());
        assert!(!memory.has_ended());
        // Kernels without nodes refuse to tell.
        if let Ok(nodes) = memory.nodes(&[inside]) {
            assert!(nodes[0].is_some());
        }
        std::hint::black_box(held);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = ProcessMemory::of(child.id(), BASE).unwrap();
        child.wait().unwrap();
        assert!(gone.has_ended());
        assert!(ProcessMemory::of(child.id(), BASE).is_err());
    }
}
