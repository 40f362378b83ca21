//! The memory of a process: which of its pages are there, on which nodes, and moving them.

use crate::nodes::{self, on_process};
use crate::place::pagemap::Pagemap;
use crate::place::scan;
use crate::sampled::used::{self, Mapping};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

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

/// The memory of a process, in pages of a size that was agreed on.
pub trait Memory {
    /// Its pages that may be moved and of which something is in memory, ascending.
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

    /// Whether the process is no more.
    fn has_ended(&self) -> bool {
        false
    }

    /// Bytes of huge pages that are larger than pages of this run, and so do not migrate.
    fn huge_left(&self) -> u64 {
        0
    }
}

/// The memory of a process of this machine.
pub struct ProcessMemory {
    process: u32,
    /// Tells when it has ended, even if its number is another's.
    handle: OwnedFd,
    page_bytes: u64,
    has_scan: bool,
    /// The first page of the kernel that is there, by page, ascending.
    firsts: Vec<(u64, u64)>,
    /// Where the kernel's pages are that are there, ascending: from, to.
    there: Vec<(u64, u64)>,
    /// Of these, huge ones.
    huge: Vec<(u64, u64)>,
    huge_left: u64,
}

impl ProcessMemory {
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32, page_bytes: u64) -> io::Result<ProcessMemory> {
        Ok(ProcessMemory {
            process,
            handle: on_process::handle(process)?,
            page_bytes,
            has_scan: scan::works(),
            firsts: Vec::new(),
            there: Vec::new(),
            huge: Vec::new(),
            huge_left: 0,
        })
    }

    /// Reads which of the kernel's pages are there.
    fn read(&mut self) -> io::Result<()> {
        self.there.clear();
        self.huge.clear();
        let (map, mappings) = maps(self.process)?;
        for mapping in movable(&mappings) {
            let (start, end) = (mapping.start as usize, mapping.end as usize);
            let there = &mut self.there;
            if self.has_scan {
                let each = |from: usize, to: usize| push(there, from as u64, to as u64);
                if !scan::regions(&map, start, end, scan::PRESENT, each) {
                    continue;
                }
                let huge = &mut self.huge;
                let each = |from: usize, to: usize| push(huge, from as u64, to as u64);
                scan::regions(&map, start, end, scan::HUGE_PAGE, each);
            } else {
                let pages = (end - start) / BASE as usize;
                map.read(start, pages, |index, entry| {
                    if entry.present() {
                        let at = mapping.start + index as u64 * BASE;
                        push(there, at, at + BASE);
                    }
                })
                .map_err(of_place)?;
            }
        }
        Ok(())
    }

    /// The kernel's pages within a page that are to be named to move it: of huge ones the first alone. Left out if it is a part
    /// of a huge one.
    fn within(&self, page: u64) -> Vec<usize> {
        let (start, end) = (page * self.page_bytes, (page + 1) * self.page_bytes);
        let first = self.there.partition_point(|&(_, to)| to <= start);
        let mut all = Vec::new();
        let overlapping = self.there[first..].iter().take_while(|r| r.0 < end);
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

/// The mappings whose pages are the process's own, without a file: its heap, its stacks, what it has mapped.
pub fn movable(all: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    all.iter().filter(|m| {
        let own = m.rights.starts_with('r') && m.rights.ends_with('p');
        let path = &m.path;
        let anonymous = path.is_empty()
            || path == "[heap]"
            || path.starts_with("[stack")
            || path.starts_with("[anon:");
        own && anonymous
    })
}

impl Memory for ProcessMemory {
    fn pages(&mut self) -> io::Result<Vec<u64>> {
        self.read()?;
        self.firsts.clear();
        self.huge_left = 0;
        let bytes = self.page_bytes;
        for &(from, to) in &self.there {
            let mut page = from / bytes;
            // A range may begin in the page in which the last one ended.
            if self.firsts.last().is_some_and(|last| last.0 == page) {
                page += 1;
            }
            while page * bytes < to {
                self.firsts.push((page, from.max(page * bytes)));
                page += 1;
            }
        }
        if bytes < HUGE && !self.huge.is_empty() {
            let before = self.firsts.len();
            let firsts = std::mem::take(&mut self.firsts);
            self.firsts = firsts
                .into_iter()
                .filter(|&(_, at)| !self.is_huge(at))
                .collect();
            self.huge_left = (before - self.firsts.len()) as u64 * bytes;
        }
        Ok(self.firsts.iter().map(|first| first.0).collect())
    }

    fn nodes(&mut self, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        let address = |page: &u64| {
            let at = self.firsts.partition_point(|first| first.0 < *page);
            let found = self.firsts.get(at).filter(|first| first.0 == *page);
            found.map_or((page * self.page_bytes) as usize, |first| first.1 as usize)
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

    fn move_to(&mut self, pages: &[u64], node: u32) -> io::Result<Vec<MoveOutcome>> {
        let mut outcomes = vec![MoveOutcome::default(); pages.len()];
        let mut addresses = Vec::new();
        let mut of = Vec::new();
        for (index, &page) in pages.iter().enumerate() {
            let within = self.within(page);
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
            on_process::move_to(self.process, batch, node, &mut status)?;
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

/// By its words in `numa_maps`, a mapping is of no file.
fn is_own(words: &[&str]) -> bool {
    let has = |key: &str| words.iter().any(|word| word.starts_with(key));
    has("anon=") && !has("file=") && !words.contains(&"huge")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_by_node_is_that_of_no_file() {
        let text = "\
7f0000000000 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4
7f0000100000 default file=/lib/libc.so.6 anon=2 N0=2 kernelpagesize_kB=4
7f0000200000 default heap anon=512 dirty=512 N1=512 kernelpagesize_kB=4
7ffc00000000 default stack
";
        let own = nodes::by_node(text, is_own);
        assert_eq!(own, [(0, 4096), (1, 514 * 4096)].into());
    }

    #[test]
    fn only_a_processs_own_memory_without_a_file_is_moved() {
        let mapping = |rights: &str, path: &str| Mapping {
            rights: rights.into(),
            path: path.into(),
            ..Mapping::default()
        };
        let all = [
            mapping("rw-p", ""),
            mapping("rw-p", "[heap]"),
            mapping("rw-s", "/memfd:a (deleted)"),
            mapping("rw-p", "/anon_hugepage (deleted)"),
            mapping("r-xp", "/lib/libc.so.6"),
            mapping("---p", ""),
            mapping("r--p", "[vvar]"),
            mapping("rw-p", "[anon:arena]"),
            mapping("rw-p", "[stack]"),
        ];
        let moved: Vec<&str> = movable(&all).map(|m| &*m.path).collect();
        assert_eq!(moved, ["", "[heap]", "[anon:arena]", "[stack]"]);
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
