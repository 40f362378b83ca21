//! A region that is in use: where durable objects are made and stored into. The files beside it are parts of it.

mod commits;
mod garbage;
mod holes;
mod persist;
mod records;
mod regions;
mod roots;
mod sealing;
mod stores;

pub use persist::{Canonical, Known, Volatile};

use crate::alloc::Allocator;
use crate::domain::{Domain, Fence};
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::header::{self, Commit, FileId, Unreadable, commit_place, record};
use crate::image::Image;
use crate::keeper::Keeper;
use crate::layout::*;
use crate::log::{self, Log};
use crate::name::Owned;
use crate::pages;
use crate::records::{Named, Records};
use crate::snapshot::Watch;
use crate::types::{Info, Tables, difference};
use persist::Moving;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use varve_heap::ObjectAlign;

/// Counters of a region since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Stores into durable objects.
    pub stores: u64,
    /// Objects that became durable, and their bytes.
    pub moved: u64,
    /// Bytes of those.
    pub moved_bytes: u64,
    /// Outermost regions that were committed.
    pub regions: u64,
    /// Regions that were rolled back.
    pub taken_back: u64,
    /// Cache lines logged in regions.
    pub logged: u64,
    /// Fences.
    pub fences: u64,
    /// Times that durable garbage was collected.
    pub collections: u64,
}

/// The results of recovery when a region was opened.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Stores of a region that was not over, rolled back: cache lines.
    pub taken_back: u64,
    /// Whether the region had been closed in order.
    pub closed: bool,
    /// Live objects; none if the region is too large to be followed while its program waits.
    pub objects: Option<u64>,
    /// Bytes of live objects, as far as is known.
    pub bytes: u64,
}

/// Less garbage than this number of bytes is not worth a collection.
const LEAST_GARBAGE: u64 = 8 << 20;

/// A file grows by one part in this many of its size, but by no less than [`LEAST_GROWTH`] bytes.
const GROWS_BY: u64 = 10;
const LEAST_GROWTH: u64 = 1 << 20;

/// Bytes of the shortest run that is set aside: the objects of a few stores must fit.
const LEAST_ASIDE: u64 = 1 << 10;

/// Regions of at most this size are checked and traced before they are used; the pages of larger ones are checked in the background.
pub const CHECKED_FIRST: u64 = 32 << 20;

/// A region: its bytes, its medium, and the state of both.
pub struct Space {
    /// Declared before the image, which it reads, so that it is dropped first.
    keeper: Option<Keeper>,
    _guard: Option<Guard>,
    watch: Arc<Watch>,
    pub(crate) path: String,
    pub(crate) image: Image,
    pub(crate) domain: Box<dyn Domain>,
    pub(crate) tables: Tables,
    pub(crate) addresses: Addresses,
    pub(crate) infos: Vec<Info>,
    pub(crate) alloc: Allocator,
    pub(crate) stats: Stats,
    pub(crate) records: Records,
    /// Objects that are the same in each run, became durable, and are not recorded yet: their offsets, and their names.
    pub(crate) new_named: Vec<(u64, Option<String>)>,
    /// Arrays of which elements became durable.
    pub(crate) wanted: Vec<u32>,
    /// The state for moving objects into the region.
    pub(crate) moving: Moving,
    /// Bytes of constants that the tables name.
    pub(crate) named_end: u64,
    commit: Commit,
    recovered: Recovered,
    /// By type: whether there were objects of it when the region was opened; none if that was not determined.
    alive: Option<Vec<bool>>,
    /// Offset of the first object.
    pub(crate) first: u64,
    log: Log,
    /// Regions that are open, one within the other.
    pub(crate) depth: u32,
    /// Of each region that is open but the innermost, from the outermost on.
    outer: Vec<regions::Savepoint>,
    /// Cache lines that regions within the outermost one logged, in their order: where they are, and where their entries are.
    entries: Vec<(u64, u64)>,
    /// The number of the region that is open, or of the last one.
    region: u64,
    /// Cache lines that were logged in the innermost region.
    logged: FxHashSet<u64>,
    /// The one that was logged last.
    last_logged: u64,
    /// Where objects are made in the innermost region, from and to, which is not logged: nothing refers to them if it is rolled back.
    fresh: BTreeMap<u64, u64>,
    /// Whether any was made.
    pub(crate) made: bool,
    /// Bytes in use after which durable garbage is worth collecting.
    threshold: u64,
    /// The durable collection in progress.
    cycle: Option<garbage::Cycle>,
    /// Room that is kept for when there is no other: from and to.
    aside: Vec<(u64, u64)>,
    /// Free pages of which the file has no blocks.
    holes: holes::Holes,
    /// Where marks of pages are, by group.
    pub(crate) tables_at: Vec<u64>,
    /// Pages that are open, in the order in which they were opened.
    pub(crate) opened: VecDeque<u64>,
    pub(crate) last_opened: u64,
    /// Pages with unannounced bytes: the medium may hold other bytes, so these pages get no checksum in this run.
    pub(crate) unsettled: FxHashSet<u64>,
    /// The medium failed: nothing more is written.
    failed: bool,
}

impl Space {
    /// Makes an image, of no bytes or all zeroes, a region without objects.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn create(
        path: &str,
        image: Image,
        domain: Box<dyn Domain>,
        tables: Tables,
        align: ObjectAlign,
    ) -> Result<Space> {
        let bytes = serde_json::to_vec(&tables).expect("tables are plain data");
        let commit = Commit {
            number: 0,
            tables: bytes.len() as u64,
            tables_sum: crc32fast::hash(&bytes),
            opened: 0,
            closed: true,
            domain: domain.name().into(),
            alive: 0,
            records: CLASS_DATA,
            file: None,
        };
        let mut space = Space::new(path, image, domain, tables, commit, align);
        space.first = objects_after(bytes.len() as u64);
        let size = (space.first + GROUP_MARKS + GROWTH).next_multiple_of(GROWTH);
        space.grow_to(size)?;
        space.alloc = Allocator::new(space.first, align.bytes());
        space.alloc.grow(size);
        space.mark_groups()?;
        let room = tables_room(bytes.len() as u64);
        for copy in 0..2 {
            let at = TABLES + copy * room;
            space.image.write(at, &bytes);
            space.flush(at, bytes.len() as u64);
        }
        space.image.write(8, &VERSION.to_le_bytes());
        let shift = align.shift().to_le_bytes();
        space.image.write(ALIGN_SHIFT, &shift);
        space.write_commit()?;
        // With these bytes it is a region: last.
        space.image.set_u64(0, u64::from_le_bytes(MAGIC));
        space.flush(0, 16);
        space.fence(Fence::Header)?;
        space.reopen()?;
        Ok(space)
    }

    /// Opens a region: rolls back unfinished operations, and finds free space. `tables` are those of the program that opens it; without them the
    /// region is opened as it is. A region of at most [`CHECKED_FIRST`] bytes is checked as a whole.
    ///
    /// # Errors
    /// If it is no region, of another program, or damaged.
    pub fn open(
        path: &str,
        image: Image,
        domain: Box<dyn Domain>,
        tables: Option<&Tables>,
    ) -> Result<Space> {
        Space::open_checked(path, image, domain, tables, CHECKED_FIRST)
    }

    /// The same, with how many bytes a region may have that is checked before it is used.
    ///
    /// # Errors
    /// As [`Space::open`].
    pub fn open_checked(
        path: &str,
        image: Image,
        mut domain: Box<dyn Domain>,
        tables: Option<&Tables>,
        checked_first: u64,
    ) -> Result<Space> {
        domain.grown(image.len());
        let header = header::read(&image).map_err(|e| unreadable(path, e))?;
        if header.version != VERSION {
            return Err(Error::Version {
                path: path.into(),
                found: header.version,
            });
        }
        if let Some(tables) = tables
            && let Some(what) = difference(&header.tables, tables)
        {
            return Err(Error::OtherProgram {
                path: path.into(),
                what,
            });
        }
        let align = header.align;
        let mut space = Space::new(path, image, domain, header.tables, header.commit, align);
        space.first = header.first;
        space.records = Records::read(&space.image);
        space.not_damaged(space.records.damage(space.commit.records))?;
        if log::finished(&space.image, VERSION).is_none() {
            let what = "the number of the last failure-atomic region is damaged";
            space.not_damaged(Some(what.into()))?;
        }
        space.recovered.closed = space.commit.closed;
        space.recover_log()?;
        space.alloc = Allocator::new(space.first, align.bytes());
        space.alloc.grow(space.image.len());
        space.mark_groups()?;
        if space.image.len() <= checked_first {
            space.check_all()?;
        } else {
            space.take_marked_lines();
            space.take_marks();
            space.recovered.bytes = space.commit.alive;
            // Free space is known by pages and as of the last closing: the bytes in use include garbage.
            let used = space.alloc.used();
            space.threshold = space.threshold_for(space.commit.alive).max(used + used / 4);
            space.not_damaged(space.wrong_named())?;
        }
        space.find_open();
        space.find_holes();
        space.reopen()?;
        Ok(space)
    }

    fn recover_log(&mut self) -> Result<()> {
        let restored = log::take_back(&mut self.image, VERSION);
        self.region = log::finished(&self.image, VERSION).unwrap_or(0);
        self.recovered.taken_back = restored.len() as u64;
        if restored.is_empty() {
            return Ok(());
        }
        for (offset, bytes) in restored {
            self.flush(offset, bytes);
        }
        self.fence(Fence::TakenBack)?;
        self.region += 1;
        self.finish_log()
    }

    /// Checks all pages, and follows all references.
    fn check_all(&mut self) -> Result<()> {
        let damaged = pages::damaged(&self.image, self.first);
        self.not_damaged(damaged.first().map(|&page| pages::wrong_sum(page)))?;
        let walk = self.walk(&[]);
        self.not_damaged(walk.damages.first().map(|d| d.to_string()))?;
        self.not_damaged(self.wrong_named())?;
        self.adopt(&walk);
        self.alive = Some(walk.by_type.iter().map(|count| count.0 > 0).collect());
        self.recovered.objects = Some(walk.objects.len() as u64);
        self.recovered.bytes = walk.bytes;
        Ok(())
    }

    fn wrong_named(&self) -> Option<String> {
        self.records
            .wrong_named(&self.image, &self.infos, self.addresses, self.first)
    }

    fn not_damaged(&self, what: Option<String>) -> Result<()> {
        let path = self.path.clone();
        what.map_or(Ok(()), |what| Err(Error::Damaged { path, what }))
    }

    fn new(
        path: &str,
        image: Image,
        domain: Box<dyn Domain>,
        tables: Tables,
        commit: Commit,
        align: ObjectAlign,
    ) -> Space {
        Space {
            keeper: None,
            _guard: None,
            watch: Arc::default(),
            path: path.into(),
            image,
            domain,
            named_end: tables
                .constants
                .last()
                .map_or(0, |c| u64::from(c.offset) + 8),
            addresses: Addresses(align),
            infos: tables.infos(align),
            tables,
            alloc: Allocator::new(0, align.bytes()),
            stats: Stats::default(),
            records: Records {
                end: CLASS_DATA,
                ..Records::default()
            },
            new_named: Vec::new(),
            wanted: Vec::new(),
            moving: Moving::default(),
            commit,
            recovered: Recovered::default(),
            alive: None,
            first: 0,
            log: Log::default(),
            depth: 0,
            outer: Vec::new(),
            entries: Vec::new(),
            region: 0,
            logged: Default::default(),
            last_logged: u64::MAX,
            fresh: BTreeMap::new(),
            made: false,
            threshold: 0,
            cycle: None,
            aside: Vec::new(),
            holes: holes::Holes::default(),
            tables_at: Vec::new(),
            opened: VecDeque::new(),
            last_opened: u64::MAX,
            unsettled: Default::default(),
            failed: false,
        }
    }

    /// Starts a thread that watches the file beside the program: see [`keeper`](crate::keeper).
    pub(crate) fn keep(&mut self, owned: Owned, unchecked: bool) -> Result<()> {
        self.image.watched(self.watch.clone());
        let base = self.image.base();
        self._guard = Some(Guard::new(base, self.image.capacity(), &self.path));
        let pages = match unchecked {
            true => 0..self.image.len() / PAGE,
            false => 0..0,
        };
        let tables = self.tables_at.clone();
        // SAFETY: the image is dropped after the keeper, and never gets shorter.
        let keeper = unsafe {
            Keeper::start(
                owned,
                &self.path,
                self.watch.clone(),
                base,
                pages,
                tables,
                self.first,
            )
        };
        self.keeper = Some(keeper.map_err(|source| Error::Io {
            path: self.path.clone(),
            what: "no thread that looks after it",
            source,
        })?);
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.threshold = match self.threshold {
            0 => self.threshold_for(self.alloc.used()),
            known => known,
        };
        self.commit.opened += 1;
        self.commit.closed = false;
        self.commit.file = self.image.file().and_then(FileId::of);
        self.commit.domain = self.domain.name().into();
        self.write_commit()
    }

    fn write_commit(&mut self) -> Result<()> {
        self.commit.number += 1;
        self.commit.records = self.records.end;
        let bytes = record(&serde_json::to_vec(&self.commit).expect("a record is plain data"));
        let at = commit_place(self.commit.number);
        self.image.write(at, &bytes);
        self.flush(at, bytes.len() as u64);
        self.fence(Fence::Header)
    }

    /// Closes the region in order: an open region is rolled back, and all pages get their checksums.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        if self.failed {
            return Ok(()); // The next open recovers it.
        }
        if self.depth > 0 {
            self.roll_back_all()?;
        }
        for (at, bytes) in self.log.give_up() {
            self.alloc.free(at, bytes);
        }
        self.use_aside();
        self.seal()?;
        // A damaged region is not scanned again: it closes all the same.
        if self.stats.collections > 0 && !self.watch.is_damaged() {
            self.free_sealed_lines();
        }
        self.fence(Fence::Header)?;
        self.commit.closed = true;
        self.write_commit()?;
        self.close_medium()
    }

    /// Its bytes, closed in order, up to where objects end.
    pub(crate) fn into_image(mut self) -> Result<Image> {
        self.finish()?;
        let end = self.alloc.end().next_multiple_of(GROWTH);
        let mut image = std::mem::replace(&mut self.image, Image::memory(&[], 0));
        image.shrink(end).map_err(|source| Error::Io {
            path: self.path.clone(),
            what: "the file cannot be made shorter",
            source,
        })?;
        Ok(image)
    }

    // ---- the medium -------------------------------------------------------------------------------------------------------------

    pub(crate) fn flush(&mut self, offset: u64, bytes: u64) {
        self.domain
            .write_back(self.image.address(offset, bytes), bytes);
    }

    pub(crate) fn fence(&mut self, why: Fence) -> Result<()> {
        self.stats.fences += 1;
        self.works()?;
        match self.domain.fence(why) {
            Ok(()) if !self.watch.is_gone() => Ok(()),
            done => Err(self.fail(done)),
        }
    }

    /// That the medium has not failed so far.
    #[inline]
    pub(crate) fn works(&self) -> Result<()> {
        match self.failed {
            false => Ok(()),
            true => Err(Error::Failed(self.path.clone())),
        }
    }

    /// After a failure the medium's contents are unknown, and a repeated sync may report success: nothing more is stored.
    #[cold]
    fn fail(&mut self, done: std::io::Result<()>) -> Error {
        self.failed = true;
        let path = self.path.clone();
        match done {
            Err(source) => Error::Io {
                path,
                what: "the medium failed to write",
                source,
            },
            Ok(()) => Error::Gone(path),
        }
    }

    fn grow_to(&mut self, bytes: u64) -> Result<()> {
        let path = &self.path;
        let roomy = match bytes <= self.image.capacity() {
            true => self.domain.make_room(bytes),
            false => Ok(()),
        };
        roomy
            .and_then(|()| self.image.grow(bytes))
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::OutOfMemory => Error::Full {
                    path: path.clone(),
                    bytes: bytes - self.image.len(),
                    max: self.image.capacity(),
                },
                _ => Error::Io {
                    path: path.clone(),
                    what: "the file cannot grow",
                    source,
                },
            })?;
        self.domain.grown(bytes);
        self.alloc.grow(bytes);
        Ok(())
    }

    /// The error that there is no room for `bytes` bytes.
    fn full(&self, bytes: u64) -> Error {
        Error::Full {
            path: self.path.clone(),
            bytes,
            max: self.image.capacity(),
        }
    }

    /// Room for `bytes` bytes, a multiple of [`OBJECT_ALIGN`]. The pages are open.
    #[inline]
    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64> {
        if bytes > PAGE {
            self.make_room_to_commit(bytes)?;
        }
        match self.alloc.allocate(bytes, self.depth > 0) {
            Some(at) if self.alloc.fresh.is_none() => Ok(at),
            found => self.allocate_slowly(bytes, found),
        }
    }

    #[cold]
    fn make_room_to_commit(&mut self, bytes: u64) -> Result<()> {
        let made = self.domain.make_room_to_commit(bytes);
        made.map_err(|source| Error::Io {
            path: self.path.clone(),
            what: "there is no room for the commit",
            source,
        })
    }

    #[inline(never)]
    fn allocate_slowly(&mut self, bytes: u64, mut found: Option<u64>) -> Result<u64> {
        self.works()?;
        loop {
            let Some(at) = found else {
                found = self.allocate_more(bytes)?;
                continue;
            };
            if let Some((from, to)) = self.alloc.fresh.take() {
                if let Err(e) = self.fill_holes(from, to) {
                    self.alloc.free_fresh(from, to);
                    return Err(e);
                }
                match self.open_pages(from, to - from) {
                    Ok(()) => {}
                    Err(Error::Damaged { .. }) => {
                        // Its lines stay taken: nothing is lost that was there.
                        self.alloc.abandon(bytes);
                        found = self.alloc.allocate(bytes, self.depth > 0);
                        continue;
                    }
                    Err(e) => return Err(e),
                }
                if self.depth > 0 {
                    self.fresh.insert(from, to);
                }
            }
            return Ok(at);
        }
    }

    /// If no free run has `bytes` bytes: grows the file, or frees the garbage that marking found.
    fn allocate_more(&mut self, bytes: u64) -> Result<Option<u64>> {
        match self.grow_for(bytes) {
            Ok(()) => Ok(self.alloc.allocate(bytes, self.depth > 0)),
            Err(e) if e.is_full() && self.finish_collection() => {
                match self.alloc.allocate(bytes, self.depth > 0) {
                    None => Err(e),
                    at => Ok(at),
                }
            }
            Err(e) => Err(e),
        }
    }

    /// Sets `bytes` bytes aside, in pieces, unless some are already.
    ///
    /// # Errors
    /// If there is no room for them.
    pub fn set_aside(&mut self, bytes: u64) -> Result<()> {
        if !self.aside.is_empty() {
            return Ok(());
        }
        self.aside = self.alloc.take_free(bytes, LEAST_ASIDE);
        let taken: u64 = self.aside.iter().map(|(from, to)| to - from).sum();
        if taken == bytes {
            return Ok(());
        }
        self.use_aside();
        self.grow_for(bytes)?;
        self.aside = self.alloc.take_free(bytes, LEAST_ASIDE);
        Ok(())
    }

    /// Frees the reserve that was set aside: it is room for objects now.
    pub fn use_aside(&mut self) {
        for (from, to) in std::mem::take(&mut self.aside) {
            self.alloc.free(from, to - from);
        }
    }

    /// Grows the file, so that `bytes` bytes are free in one piece: by a fraction of its size, or by `bytes` alone if the medium has no more room.
    fn grow_for(&mut self, bytes: u64) -> Result<()> {
        let len = self.image.len();
        let covered = self.tables_at.len() as u64 * GROUP_PAGES * PAGE;
        let end = len + bytes.next_multiple_of(GROWTH) + GROWTH;
        let least = match end <= covered {
            true => end,
            // New pages begin with their marks.
            false => {
                let groups = bytes / (GROUP_PAGES * PAGE) + 2;
                covered.max(len) + groups * GROUP_MARKS + (end - len)
            }
        };
        let most = self.image.capacity() / GROWTH * GROWTH;
        let least = least.next_multiple_of(GROWTH);
        if least > most {
            return Err(self.full(bytes));
        }
        let more = (len / GROWS_BY).clamp(LEAST_GROWTH, MOST_GROWTH);
        let wanted = least.max((len + more / GROWTH * GROWTH).min(most));
        match self.grow_to(wanted) {
            Err(e) if wanted > least && e.is_full() => self.grow_to(least)?,
            done => done?,
        }
        self.mark_groups()
    }

    // ---- what others ask --------------------------------------------------------------------------------------------------------

    /// Objects that the program makes in each run and means the same ones. They are never garbage.
    pub fn named(&self) -> &[Named] {
        &self.records.named
    }

    /// Has a field of a type's objects be null in the region, whatever its value: the value belongs to the run.
    pub fn forget_field(&mut self, ty: u32, offset: u32) {
        if let Some(info) = self.infos.get_mut(ty as usize) {
            info.forgets.push(offset);
        }
    }

    /// Whether there may have been objects of a type when the region was opened. Of large regions that is not known.
    pub fn may_have_had(&self, ty: u32) -> bool {
        let alive = self.alive.as_ref();
        alive.is_none_or(|a| a.get(ty as usize).copied().unwrap_or(false))
    }

    /// The region's types and constants.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Its bytes.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Its counters so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The results of recovery when it was opened.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Its latest commit record.
    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Bytes of lines that hold objects, garbage and tables too.
    pub fn used(&self) -> u64 {
        self.alloc.used()
    }

    /// The name of its medium.
    pub fn domain(&self) -> &'static str {
        self.domain.name()
    }

    /// The file's name.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The offset in the file of the object at `heap_offset` bytes from the heap's base, where objects are aligned to 8 bytes.
    pub fn offset_of(heap_offset: u64) -> u64 {
        heap_offset - FILE_START
    }

    /// Where references lead.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }
}

pub(crate) fn unreadable(path: &str, e: Unreadable) -> Error {
    let path = path.to_string();
    match e {
        Unreadable::Foreign => Error::Foreign(path),
        Unreadable::Version(found) => Error::Version { path, found },
        Unreadable::Damaged(what) => Error::Lost { path, what },
    }
}

#[doc(hidden)]
impl Space {
    /// Gives all pages their checksums, as closing does.
    pub fn seal_for_tests(&mut self) {
        self.seal().expect("the medium of tests does not fail");
    }

    /// Whether the line of an offset is taken.
    pub fn holds_for_tests(&self, offset: u64) -> bool {
        let lines = self.alloc.lines_of_page(offset / PAGE);
        lines >> (offset % PAGE / varve_heap::layout::LINE_SIZE) & 1 != 0
    }

    /// Has the domain check the current contents of the medium.
    pub fn flush_for_tests(&mut self) {
        self.flush(0, 1);
    }
}
