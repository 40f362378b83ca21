//! Which pages of a process are there, in which frames, of which kind: its own, shared memory, pages of files.

use crate::nodes::on_process;
use crate::place::huge;
use crate::place::pagemap::{Entry, Pagemap};
use crate::place::scan;
use crate::sampled::used::Mapping;
use crate::tier::error::TierError;
use crate::tier::memory::{BASE, maps, of_place};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

const HUGE: u64 = 2 << 20;

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Memory of processes without a file, such as a heap.
    Own,
    /// Shared memory: System V segments, memfd, files of tmpfs.
    Shared,
    /// A file's page in the kernel's cache that is mapped.
    File,
}

impl Kind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Own => "memory without a file",
            Kind::Shared => "shared memory",
            Kind::File => "pages of mapped files",
        }
    }
}

/// Why memory of a process is in no account: its frames cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unplaced {
    /// A part of a page that is larger than those of the run.
    Larger,
    /// Smaller pages than those of the run.
    Smaller,
    /// Explicit huge pages.
    HugeTlb,
    /// Files that no process maps: they are read and written by calls alone.
    Unmapped,
    /// The kernel's own, for the control group.
    Kernel,
    /// Memory of a device, the page of zeros, or other frames that are no program's.
    Special,
}

impl Unplaced {
    /// In words that follow a number of bytes.
    pub fn words(self) -> &'static str {
        match self {
            Unplaced::Larger => "in larger pages (--page 2MiB has those of 2 MiB)",
            Unplaced::Smaller => "in pages smaller than --page",
            Unplaced::HugeTlb => "in explicit huge pages (hugetlbfs)",
            Unplaced::Unmapped => "of files that no process maps",
            Unplaced::Kernel => "of the kernel for the group",
            Unplaced::Special => "of devices and of the kernel",
        }
    }
}

/// A page, and the kernel's number of its (first) frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFrame {
    /// Its address divided by the size of pages.
    pub page: u64,
    /// The frame.
    pub frame: u64,
    /// Its kind.
    pub kind: Kind,
    /// Its mapping is one of those that were called hot.
    pub hot: bool,
}

/// The memory of a process, page by page with frames.
pub trait FrameMemory {
    /// Its pages that are there, ascending.
    ///
    /// # Errors
    /// The process has ended, or may not be scanned.
    fn look(&mut self) -> io::Result<Vec<PageFrame>>;

    /// Bytes that the last scan left out, by reason.
    fn unplaced(&self) -> BTreeMap<Unplaced, u64>;

    /// Whether the process is no more.
    fn has_ended(&self) -> bool {
        false
    }
}

/// That of a process of this machine.
pub struct LiveFrames {
    process: u32,
    /// Tells when it has ended, even if its number is another's.
    handle: OwnedFd,
    page_bytes: u64,
    has_scan: bool,
    /// Names of mappings whose pages are hot.
    hot: Vec<String>,
    flags: Option<Flags>,
    /// Pages of the last scan, and their classes by the kernel's flags.
    last: Vec<(PageFrame, Class)>,
    unplaced: BTreeMap<Unplaced, u64>,
}

type Class = Result<Kind, Unplaced>;

impl LiveFrames {
    /// That of a process, if it may be steered.
    pub(in crate::tier) fn open(
        process: u32,
        page_bytes: u64,
        hot: &[String],
    ) -> Result<Box<dyn FrameMemory>, TierError> {
        let why = |e| TierError::of_memory(process, e);
        let mut memory = LiveFrames::of(process, page_bytes, hot).map_err(why)?;
        memory.look().map_err(why)?;
        Ok(Box::new(memory))
    }

    /// `hot`: names of mappings, as `/proc/PID/maps` has them or a part of them, whose pages are called hot.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32, page_bytes: u64, hot: &[String]) -> io::Result<LiveFrames> {
        Ok(LiveFrames {
            process,
            handle: on_process::handle(process)?,
            page_bytes,
            has_scan: scan::works(),
            hot: hot.to_vec(),
            flags: Flags::open(),
            last: Vec::new(),
            unplaced: BTreeMap::new(),
        })
    }

    fn leave_out(&mut self, why: Unplaced, bytes: u64) {
        if bytes > 0 {
            *self.unplaced.entry(why).or_default() += bytes;
        }
    }

    /// The kernel's pages of a mapping that are there, with their frames.
    fn base(
        &self,
        map: &Pagemap,
        from: u64,
        to: u64,
        found: &mut Vec<(u64, u64)>,
    ) -> io::Result<()> {
        let mut hidden = false;
        let pages = ((to - from) / BASE) as usize;
        map.read(from as usize, pages, |index, entry: Entry| {
            hidden |= entry.hidden();
            if let Some(frame) = entry.frame() {
                found.push((from / BASE + index as u64, frame));
            }
        })
        .map_err(of_place)?;
        match hidden {
            true => Err(io::Error::from_raw_os_error(libc::EPERM)),
            false => Ok(()),
        }
    }

    /// Pages of one mapping with their frames; what is of another size is left out.
    fn within(
        &mut self,
        map: &Pagemap,
        m: &Mapping,
        found: &mut Vec<(u64, u64)>,
    ) -> io::Result<()> {
        let mut there = vec![(m.start, m.end)];
        if self.has_scan {
            there.clear();
            let each = |from: usize, to: usize| there.push((from as u64, to as u64));
            if !scan::regions(map, m.start as usize, m.end as usize, scan::PRESENT, each) {
                there = vec![(m.start, m.end)];
            }
        }
        if self.page_bytes < HUGE {
            for (from, to) in there {
                self.base(map, from, to, found)?;
            }
            return Ok(());
        }
        let bytes: u64 = there.iter().map(|(from, to)| to - from).sum();
        let (first, last) = (m.start.next_multiple_of(HUGE), m.end / HUGE * HUGE);
        let mut whole = 0;
        if first < last && bytes > 0 {
            let units = ((last - first) / HUGE) as usize;
            let frames = huge::frames(map, first as usize, units).map_err(of_place)?;
            for (unit, frame) in frames.into_iter().enumerate() {
                if let Some(frame) = frame {
                    found.push((first / HUGE + unit as u64, frame));
                    whole += HUGE;
                }
            }
        }
        if self.has_scan {
            self.leave_out(Unplaced::Smaller, bytes.saturating_sub(whole));
        }
        Ok(())
    }

    fn class(&self, frame: u64) -> Class {
        let flags = self
            .flags
            .as_ref()
            .map_or(FLAG_ANON, |flags| flags.of(frame));
        class(flags, self.page_bytes)
    }
}

/// Whether a part of a mapping's name is one of these.
fn has_name(m: &Mapping, parts: &[String]) -> bool {
    parts.iter().any(|part| m.path.contains(part.as_str()))
}

/// Mappings whose pages are pages of programs.
fn has_pages(m: &Mapping) -> bool {
    !matches!(
        &*m.path,
        "[vvar]" | "[vdso]" | "[vsyscall]" | "[vvar_vclock]" | "[uprobes]"
    )
}

impl FrameMemory for LiveFrames {
    fn look(&mut self) -> io::Result<Vec<PageFrame>> {
        let (map, mappings) = maps(self.process)?;
        self.unplaced.clear();
        let (mut all, mut left) = (Vec::new(), BTreeMap::<Unplaced, u64>::new());
        let mut before = std::mem::take(&mut self.last).into_iter().peekable();
        let mut found = Vec::new();
        for mapping in mappings.iter().filter(|m| has_pages(m)) {
            found.clear();
            self.within(&map, mapping, &mut found)?;
            let hot = has_name(mapping, &self.hot);
            for &(page, frame) in &found {
                while before.peek().is_some_and(|(old, _)| old.page < page) {
                    before.next();
                }
                let known = before
                    .peek()
                    .filter(|(old, _)| old.page == page && old.frame == frame);
                let class = known.map_or_else(|| self.class(frame), |(_, class)| *class);
                let kind = class.unwrap_or(Kind::Own);
                let one = PageFrame {
                    page,
                    frame,
                    kind,
                    hot,
                };
                self.last.push((one, class));
                match class {
                    Ok(_) => all.push(one),
                    Err(why) => *left.entry(why).or_default() += self.page_bytes,
                }
            }
        }
        for (why, bytes) in left {
            self.leave_out(why, bytes);
        }
        Ok(all)
    }

    fn unplaced(&self) -> BTreeMap<Unplaced, u64> {
        self.unplaced.clone()
    }

    fn has_ended(&self) -> bool {
        on_process::has_ended(&self.handle)
    }
}

// linux/kernel-page-flags.h.
const FLAG_ANON: u64 = 1 << 12;
const FLAG_SWAPBACKED: u64 = 1 << 14;
const FLAG_COMPOUND: u64 = 1 << 15 | 1 << 16;
const FLAG_HUGE: u64 = 1 << 17;
const FLAG_NOPAGE: u64 = 1 << 20;
const FLAG_ZERO: u64 = 1 << 24;
const FLAG_RESERVED: u64 = 1 << 32;

/// The class of a page of `page_bytes`, from the kernel's flags.
fn class(flags: u64, page_bytes: u64) -> Class {
    let is = |flag: u64| flags & flag != 0;
    if is(FLAG_HUGE) {
        return Err(Unplaced::HugeTlb);
    }
    if is(FLAG_NOPAGE | FLAG_ZERO | FLAG_RESERVED) {
        return Err(Unplaced::Special);
    }
    if is(FLAG_COMPOUND) && page_bytes < HUGE {
        return Err(Unplaced::Larger);
    }
    Ok(match (is(FLAG_ANON), is(FLAG_SWAPBACKED)) {
        (true, _) => Kind::Own,
        (false, true) => Kind::Shared,
        (false, false) => Kind::File,
    })
}

/// `/proc/kpageflags`: root alone may read it. Without it all pages count as processes' own.
struct Flags(File);

impl Flags {
    fn open() -> Option<Flags> {
        File::open("/proc/kpageflags").ok().map(Flags)
    }

    fn of(&self, frame: u64) -> u64 {
        let mut raw = [0u8; 8];
        match self.0.read_exact_at(&mut raw, frame * 8) {
            Ok(()) => u64::from_ne_bytes(raw),
            Err(_) => FLAG_NOPAGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled::used;

    #[test]
    fn the_kernels_flags_say_what_a_page_is_of() {
        let small = |flags| class(flags, BASE);
        assert_eq!(small(FLAG_ANON | FLAG_SWAPBACKED), Ok(Kind::Own));
        assert_eq!(small(FLAG_SWAPBACKED), Ok(Kind::Shared));
        assert_eq!(small(0), Ok(Kind::File));
        assert_eq!(small(FLAG_ANON | 1 << 16), Err(Unplaced::Larger));
        assert_eq!(class(FLAG_ANON | 1 << 15, HUGE), Ok(Kind::Own));
        assert_eq!(small(FLAG_HUGE | 1 << 15), Err(Unplaced::HugeTlb));
        assert_eq!(small(FLAG_ZERO | FLAG_ANON), Err(Unplaced::Special));
        assert_eq!(small(FLAG_NOPAGE), Err(Unplaced::Special));
    }

    /// As the kernel writes them where it has names: `varve_mcolor` gives these, and `MAP_SHARED` ones have another word before.
    #[test]
    fn memory_that_a_program_called_hot_is_hot_by_its_name() {
        let text = "\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0                          [anon:varve-hot]
7f0000200000-7f0000400000 rw-p 00000000 00:00 0                          [anon:varve-cold]
7f0000400000-7f0000600000 rw-s 00000000 00:01 9                          [anon_shmem:varve-hot]
7f0000600000-7f0000800000 rw-p 00000000 00:00 0 
";
        let all = used::read(text.as_bytes()).unwrap();
        let hot = |names: &[&str]| -> Vec<bool> {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            all.iter().map(|m| has_name(m, &names)).collect()
        };
        assert_eq!(hot(&["varve-hot"]), [true, false, true, false]);
        assert_eq!(hot(&["[anon:varve-hot]"]), [true, false, false, false]);
        assert_eq!(hot(&["heap", "varve-cold"]), [false, true, false, false]);
    }

    /// This process's own memory from outside: what was touched is there, of the kind that it is, in the frame of the page map.
    #[test]
    fn pages_are_found_with_their_frames() {
        if crate::place::pagemap::frames_readable().is_err() {
            return varve_skip::skip!("frame numbers are hidden from this user");
        }
        let own = std::process::id();
        let held = vec![1u8; 64 * BASE as usize];
        let inside = held.as_ptr() as u64 / BASE + 1;
        let mut memory = LiveFrames::of(own, BASE, &["[stack".into()]).unwrap();
        let pages = memory.look().unwrap();
        assert!(
            pages.is_sorted_by(|a, b| a.page < b.page),
            "ascending, each once"
        );
        let mut frame = None;
        let map = Pagemap::own().unwrap();
        map.read((inside * BASE) as usize, 1, |_, entry| {
            frame = entry.frame()
        })
        .unwrap();
        if let Ok(at) = pages.binary_search_by_key(&inside, |p| p.page) {
            assert_eq!(
                (Some(pages[at].frame), pages[at].kind, pages[at].hot),
                (frame, Kind::Own, false)
            );
        }
        assert!(pages.iter().any(|p| p.hot), "the stack is there");
        assert!(
            pages.iter().any(|p| p.kind == Kind::File),
            "so is the program"
        );
        // Other tests of this process take and give back memory meanwhile.
        assert!(!memory.look().unwrap().is_empty());
        std::hint::black_box(held);
    }
}
