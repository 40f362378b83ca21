//! Loads of the bins, shared by all placed processes through files in /dev/shm.
//!
//! One directory per cache geometry holds
//! - `lock`: taken (`flock`) while frames are chosen, so that two processes never fill the same gap;
//! - `loads`: a header, then one 16-bit count of placed pages per bin, summed over all processes;
//! - `<pid>-<start time>`: a process's own counts in the same form. When the process has died without giving
//!   its pages back, the next one subtracts this file from `loads`.
//!
//! Files are sparse: an unused bin costs no memory. The last process that leaves removes the directory; one that has
//! the table open still makes it anew when it places again.

use super::bins::Bins;
use super::error::PlaceError;
use super::sys;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

const MAGIC: u64 = u64::from_le_bytes(*b"VARVBIN1");
/// Bytes before the counts, one page.
const HEADER: usize = 4096;
const ORDER: Ordering = Ordering::Relaxed;

/// First bytes of `loads` and of a process's own file.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    sets: AtomicU32,
    ways: AtomicU32,
    /// Pages counted in the file.
    pages: AtomicU64,
    /// The run that the process belongs to (own files only).
    run: AtomicU64,
    /// 1 when the process is about to end and waits for its parent to read its counts (own files only).
    leaving: AtomicU32,
    /// 1 when its parent has read them (own files only).
    seen: AtomicU32,
    /// Raised when candidates are reserved and when all are unmapped: odd in between (own files only).
    step: AtomicU32,
}

/// A mapped file of counts.
struct Counts {
    base: usize,
    sets: usize,
    /// Which file it is, should another one take its name.
    file: Option<Identity>,
}

/// Device and number of a file.
type Identity = (u64, u64);

fn identity(of: fs::Metadata) -> Identity {
    (of.dev(), of.ino())
}

impl Counts {
    /// Maps the file; makes it where it is not there.
    fn open(path: &Path, bins: Bins) -> Result<Counts, PlaceError> {
        Counts::map(path, bins, true)
    }

    /// Maps another process's file, unless that process has removed it.
    fn existing(path: &Path, bins: Bins) -> Result<Counts, PlaceError> {
        Counts::map(path, bins, false)
    }

    fn map(path: &Path, bins: Bins, create: bool) -> Result<Counts, PlaceError> {
        let broken =
            |why: String| PlaceError::Table(format!("load table {}: {why}", path.display()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(path)
            .map_err(|e| broken(e.to_string()))?;
        let sets = bins.sets as usize;
        let bytes = HEADER + sets * 2;
        file.set_len(bytes as u64)
            .map_err(|e| broken(e.to_string()))?;
        let prot = sys::PROT_READ | sys::PROT_WRITE;
        // SAFETY: no MAP_FIXED; the file is as long as the mapping.
        let base = unsafe { sys::mmap(0, bytes, prot, sys::MAP_SHARED, file.as_raw_fd(), 0) }
            .map_err(|e| broken(e.to_string()))?;
        let counts = Counts {
            base,
            sets,
            file: file.metadata().ok().map(identity),
        };
        let h = counts.header();
        if h.magic.compare_exchange(0, MAGIC, ORDER, ORDER).is_ok() {
            h.sets.store(bins.sets, ORDER);
            h.ways.store(bins.ways, ORDER);
        } else if h.magic.load(ORDER) != MAGIC
            || h.sets.load(ORDER) != bins.sets
            || h.ways.load(ORDER) != bins.ways
        {
            return Err(broken(
                "is not a load table of this cache; remove the directory".into(),
            ));
        }
        Ok(counts)
    }

    /// Is it still the file of this name?
    fn is_at(&self, path: &Path) -> bool {
        self.file.is_some() && self.file == fs::metadata(path).ok().map(identity)
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping lives as long as `self`, is page-aligned, and every field is atomic.
        unsafe { &*(self.base as *const Header) }
    }

    fn bins(&self) -> &[AtomicU16] {
        // SAFETY: the mapping holds HEADER bytes and `sets` 16-bit counts, all accessed atomically.
        unsafe { std::slice::from_raw_parts((self.base + HEADER) as *const AtomicU16, self.sets) }
    }

    fn add(&self, bin: u32) {
        let _ = self.bins()[bin as usize].fetch_update(ORDER, ORDER, |n| n.checked_add(1));
        self.header().pages.fetch_add(1, ORDER);
    }

    fn subtract(&self, bin: u32, n: u16) {
        let count = &self.bins()[bin as usize];
        let old = count
            .fetch_update(ORDER, ORDER, |c| Some(c.saturating_sub(n)))
            .unwrap_or(0);
        let pages = u64::from(old.min(n));
        let _ = self
            .header()
            .pages
            .fetch_update(ORDER, ORDER, |p| Some(p.saturating_sub(pages)));
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and no reference outlives `self`.
        let _ = unsafe { sys::munmap(self.base, HEADER + self.sets * 2) };
    }
}

/// The shared table, seen from one process.
pub struct BinTable {
    dir: PathBuf,
    bins: Bins,
    run: u64,
    total: Counts,
    own: Option<(PathBuf, Counts)>,
    placing: bool,
}

/// A living process of a run, as its own file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Process number.
    pub pid: u32,
    /// Pages placed.
    pub pages: u64,
    /// It is about to end, and waits for its parent to read its counts.
    pub leaving: bool,
    /// Raised when it reserves candidates and when it has unmapped them: odd in between.
    pub step: u32,
}

/// Held while frames are chosen; released when dropped, or by the kernel when the process dies.
pub struct TableLock(#[allow(dead_code)] File);

impl BinTable {
    /// Opens, or creates, the table of this cache below `base` (normally `/dev/shm`), and clears up after
    /// processes that died. `run` names the run that this process belongs to; 0 for none.
    ///
    /// # Errors
    /// [`PlaceError::Table`] naming the file when it cannot be made or belongs to another cache.
    pub fn open(base: &Path, bins: Bins, run: u64) -> Result<BinTable, PlaceError> {
        let dir = base.join(name_of(bins));
        let lock = lock(&dir)?;
        let total = Counts::open(&dir.join("loads"), bins)?;
        let mut table = BinTable {
            dir,
            bins,
            run,
            total,
            own: None,
            placing: false,
        };
        table.bury_the_dead();
        drop(lock);
        Ok(table)
    }

    /// The geometry.
    pub fn bins(&self) -> Bins {
        self.bins
    }

    /// The directory of the table.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes the lock. A directory that was removed since, when no process had pages placed, is made anew.
    ///
    /// # Errors
    /// [`PlaceError::Table`] when the directory cannot be made or the file cannot be locked.
    pub fn lock(&mut self) -> Result<TableLock, PlaceError> {
        let lock = lock(&self.dir)?;
        let loads = self.dir.join("loads");
        if !self.total.is_at(&loads) {
            self.total = Counts::open(&loads, self.bins)?;
            self.own = None;
        }
        Ok(lock)
    }

    /// Pages in `bin`, over all processes.
    #[inline]
    pub fn load(&self, bin: u32) -> u32 {
        u32::from(self.total.bins()[bin as usize].load(ORDER))
    }

    /// Placed pages over all processes.
    pub fn pages(&self) -> u64 {
        self.total.header().pages.load(ORDER)
    }

    /// Placed pages of this process.
    pub fn own_pages(&self) -> u64 {
        self.own
            .as_ref()
            .map_or(0, |(_, own)| own.header().pages.load(ORDER))
    }

    /// Counts one more page of this process in each of `page_bins`.
    ///
    /// # Errors
    /// [`PlaceError::Table`] when the process's own file cannot be made; nothing is counted then.
    pub fn add(&mut self, page_bins: impl IntoIterator<Item = u32>) -> Result<(), PlaceError> {
        if self.own.is_none() {
            let name = own_name()
                .ok_or_else(|| PlaceError::Table("cannot read /proc/self/stat".into()))?;
            let path = self.dir.join(name);
            let counts = Counts::open(&path, self.bins)?;
            counts.header().run.store(self.run, ORDER);
            counts.header().step.store(u32::from(self.placing), ORDER);
            self.own = Some((path, counts));
        }
        if let Some((_, own)) = &self.own {
            for bin in page_bins {
                // The own count first: what is subtracted after a crash in between is at most one page too much.
                own.add(bin);
                self.total.add(bin);
            }
        }
        Ok(())
    }

    /// Says whether this process holds candidates, which are no pages of the program.
    pub fn set_placing(&mut self, placing: bool) {
        if placing == self.placing {
            return;
        }
        self.placing = placing;
        if let Some((_, own)) = &self.own {
            own.header().step.fetch_add(1, Ordering::Release);
        }
    }

    /// Takes one page of this process out of each of `page_bins`.
    pub fn remove(&self, page_bins: impl IntoIterator<Item = u32>) {
        let Some((_, own)) = &self.own else { return };
        for bin in page_bins {
            if own.bins()[bin as usize].load(ORDER) > 0 {
                self.total.subtract(bin, 1);
                own.subtract(bin, 1);
            }
        }
    }

    /// Marks this process as about to end; `true` once the parent has read its counts.
    pub fn leaving(&self) -> bool {
        let Some((_, own)) = &self.own else {
            return true;
        };
        own.header().leaving.store(1, ORDER);
        own.header().seen.load(ORDER) == 1
    }

    /// Gives back all pages of this process and its file; the last one removes the table.
    pub fn leave(&mut self) {
        let Ok(lock) = self.lock() else { return };
        if let Some((path, own)) = self.own.take() {
            subtract_all(&self.total, &own);
            let _ = fs::remove_file(path);
        }
        self.remove_unused(lock);
    }

    /// At the start of a program that may have been started by `exec`: what the process counted before is gone.
    pub fn after_exec(&mut self) {
        let Ok(_lock) = self.lock() else { return };
        if let Some(name) = own_name() {
            self.bury(&name);
        }
    }

    /// In a forked child: the pages counted so far are the parent's.
    pub fn after_fork(&mut self) {
        self.own = None;
    }

    /// Subtracts the pages of processes that have died. The lock must be held by this process.
    pub fn bury_the_dead(&mut self) {
        for name in process_files(&self.dir) {
            if !alive(&name) {
                self.bury(&name);
            }
        }
    }

    fn bury(&mut self, name: &str) {
        let path = self.dir.join(name);
        if let Ok(counts) = Counts::existing(&path, self.bins) {
            subtract_all(&self.total, &counts);
        }
        let _ = fs::remove_file(path);
    }

    /// Living processes of run `run`.
    pub fn members(&self, run: u64) -> Vec<Member> {
        let mut members = Vec::new();
        for name in process_files(&self.dir) {
            let Some(pid) = name.split('-').next().and_then(|p| p.parse().ok()) else {
                continue;
            };
            if !alive(&name) {
                continue;
            }
            // The file may have vanished since the listing.
            let Ok(counts) = Counts::existing(&self.dir.join(&name), self.bins) else {
                continue;
            };
            let h = counts.header();
            if h.run.load(ORDER) == run {
                members.push(Member {
                    pid,
                    step: h.step.load(Ordering::Acquire),
                    pages: h.pages.load(ORDER),
                    leaving: h.leaving.load(ORDER) == 1,
                });
            }
        }
        members
    }

    /// Lets process `pid`, which waits in [`BinTable::leaving`], go on.
    pub fn dismiss(&self, pid: u32) {
        let prefix = format!("{pid}-");
        for name in process_files(&self.dir) {
            if name.starts_with(&prefix)
                && let Ok(counts) = Counts::existing(&self.dir.join(&name), self.bins)
            {
                counts.header().seen.store(1, ORDER);
            }
        }
    }

    /// Takes out the pages of processes that have died, and removes the table when none is left.
    pub fn tidy(&mut self) {
        let Ok(lock) = self.lock() else { return };
        self.bury_the_dead();
        self.remove_unused(lock);
    }

    /// The same for all tables below `base`: a run that was killed together with its program left one.
    pub fn tidy_all(base: &Path) {
        let names = fs::read_dir(base).into_iter().flatten().flatten();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            if let Some(bins) = bins_of(&name)
                && let Ok(mut table) = BinTable::open(base, bins, 0)
            {
                table.tidy();
            }
        }
    }

    /// Removes the table when no process has pages in it.
    fn remove_unused(&mut self, lock: TableLock) {
        if !process_files(&self.dir).is_empty() {
            return;
        }
        // SAFETY: MADV_REMOVE punches a hole into our own shared mapping. Counts read as zero afterwards, also for a process that
        // has the file mapped still.
        let _ = unsafe {
            sys::madvise(
                self.total.base + HEADER,
                (self.total.sets * 2).next_multiple_of(4096),
                MADV_REMOVE,
            )
        };
        self.total.header().pages.store(0, ORDER);
        // A process that waits for the lock sees, once it has it, that this is no longer the file. The directory stays if another process has
        // made another lock meanwhile.
        for name in ["loads", "lock"] {
            let _ = fs::remove_file(self.dir.join(name));
        }
        let _ = fs::remove_dir(&self.dir);
        drop(lock);
    }
}

/// The directory of a table is called after its geometry.
fn name_of(bins: Bins) -> String {
    format!("varve-bins-{}x{}", bins.sets, bins.ways)
}

fn bins_of(name: &str) -> Option<Bins> {
    let (sets, ways) = name.strip_prefix("varve-bins-")?.split_once('x')?;
    let bins = Bins {
        sets: sets.parse().ok()?,
        ways: ways.parse().ok()?,
    };
    (name_of(bins) == name).then_some(bins)
}

const MADV_REMOVE: i32 = 9;

fn subtract_all(total: &Counts, part: &Counts) {
    for (bin, n) in part.bins().iter().enumerate() {
        let n = n.load(ORDER);
        if n > 0 {
            total.subtract(bin as u32, n);
        }
    }
}

/// Takes the lock of a table's directory; makes both where they are not there.
fn lock(dir: &Path) -> Result<TableLock, PlaceError> {
    let path = dir.join("lock");
    let failed =
        |e: std::io::Error| PlaceError::Table(format!("cannot lock {}: {e}", path.display()));
    loop {
        match fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => {}
        }
        let opened = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = match opened {
            // The last process has removed the directory just now.
            Err(e) if e.kind() == ErrorKind::NotFound && !dir.exists() => continue,
            opened => opened.map_err(failed)?,
        };
        sys::lock_file(file.as_raw_fd()).map_err(failed)?;
        let held = file.metadata().map(identity).map_err(failed)?;
        if fs::metadata(&path).map(identity).ok() == Some(held) {
            return Ok(TableLock(file));
        }
    }
}

/// Names of the processes' own files.
fn process_files(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|n| n.as_bytes().first().is_some_and(u8::is_ascii_digit) && n.contains('-'))
        .collect()
}

/// `<pid>-<start time>`: names a process even after its number was given to another.
fn own_name() -> Option<String> {
    let pid = std::process::id();
    Some(format!("{pid}-{}", start_time(pid)?))
}

fn alive(name: &str) -> bool {
    let Some((pid, start)) = name.split_once('-') else {
        return false;
    };
    let (Ok(pid), Ok(start)) = (pid.parse::<u32>(), start.parse::<u64>()) else {
        return false;
    };
    start_time(pid) == Some(start)
}

/// Start of process `pid` in clock ticks since boot; `None` when it does not exist or is a zombie.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from its end: field 3 is the state, 22 the start.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
