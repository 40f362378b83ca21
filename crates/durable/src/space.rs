//! A region that is in use: where durable objects are made and stored into.

mod regions;
mod stores;

use crate::alloc::Allocator;
use crate::class_data::{self, Late};
use crate::domain::{Domain, Fence};
use crate::error::{Error, Result};
use crate::header::{self, Commit, Unreadable, commit_place, record};
use crate::image::Image;
use crate::layout::*;
use crate::log::{self, Log};
use crate::types::{Info, Tables, difference};
use crate::walk::{Walk, Walker};
use rustc_hash::FxHashSet;
use varve_heap::Ref;
use varve_heap::layout::*;

/// What a region did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Stores into durable objects.
    pub stores: u64,
    /// Objects that became durable, and their bytes.
    pub moved: u64,
    /// Bytes of those.
    pub moved_bytes: u64,
    /// Regions that ended, and those that were taken back.
    pub regions: u64,
    /// Regions that were taken back.
    pub taken_back: u64,
    /// Cache lines logged in regions.
    pub logged: u64,
    /// Fences.
    pub fences: u64,
    /// Times that durable garbage was collected.
    pub collections: u64,
}

/// What was found when a region was opened.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Stores of a region that was not over, taken back: cache lines.
    pub taken_back: u64,
    /// Whether the region had been closed in order.
    pub closed: bool,
    /// Live objects and their bytes.
    pub objects: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// A region: its bytes, its medium, and what is known of both.
pub struct Space {
    pub(crate) path: String,
    pub(crate) image: Image,
    pub(crate) domain: Box<dyn Domain>,
    pub(crate) tables: Tables,
    pub(crate) infos: Vec<Info>,
    pub(crate) alloc: Allocator,
    pub(crate) stats: Stats,
    pub(crate) late: Vec<Late>,
    /// Objects that the program makes anew and means the same ones, as the last walk found them.
    named: Vec<Ref>,
    /// Bytes of constants that the tables name.
    pub(crate) named_end: u64,
    /// Where the next record of class data goes.
    pub(crate) late_end: u64,
    commit: Commit,
    recovered: Recovered,
    /// Offset of the first object.
    first: u64,
    log: Log,
    /// Regions within regions.
    depth: u32,
    /// The number of the region that is open, or of the last one.
    region: u64,
    /// Cache lines that were logged in this region.
    logged: FxHashSet<u64>,
    /// The one that was logged last.
    last_logged: u64,
    /// Where objects were made in this region, which is not logged: nothing refers to them if it is taken back.
    fresh: Vec<(u64, u64)>,
    /// Bytes in use after which durable garbage is worth collecting.
    threshold: u64,
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
    ) -> Result<Space> {
        let bytes = serde_json::to_vec(&tables).expect("tables are plain data");
        let commit = Commit {
            number: 0,
            tables: bytes.len() as u64,
            tables_sum: crc32fast::hash(&bytes),
            opened: 0,
            closed: true,
            domain: domain.name().into(),
        };
        let mut space = Space::new(path, image, domain, tables, commit);
        space.first = objects_after(bytes.len() as u64);
        let size = (space.first + GROWTH).next_multiple_of(GROWTH);
        space.grow_to(size)?;
        space.alloc = Allocator::new(space.first);
        space.alloc.grow(size);
        space.image.write(TABLES, &bytes);
        space.flush(TABLES, bytes.len() as u64);
        space.image.write(8, &VERSION.to_le_bytes());
        space.write_commit()?;
        // With these bytes it is a region: last.
        space.image.set_u64(0, u64::from_le_bytes(MAGIC));
        space.flush(0, 16);
        space.fence(Fence::Header)?;
        space.reopen()?;
        Ok(space)
    }

    /// Opens a region: takes back what was not over, and finds its objects. `tables` are those of the program that opens it; without them the
    /// region is opened as it is.
    ///
    /// # Errors
    /// If it is no region, of another program, or damaged.
    pub fn open(
        path: &str,
        image: Image,
        mut domain: Box<dyn Domain>,
        tables: Option<&Tables>,
    ) -> Result<Space> {
        domain.grown(image.len());
        let (commit, held) = header::read(&image).map_err(|e| unreadable(path, e))?;
        if let Some(tables) = tables
            && let Some(what) = difference(&held, tables)
        {
            return Err(Error::OtherProgram {
                path: path.into(),
                what,
            });
        }
        let mut space = Space::new(path, image, domain, held, commit);
        space.first = objects_after(space.commit.tables);
        (space.late, space.late_end) = class_data::all(&space.image);
        let restored = log::take_back(&mut space.image);
        space.recovered.taken_back = restored.len() as u64;
        space.recovered.closed = space.commit.closed;
        if !restored.is_empty() {
            for (offset, bytes) in restored {
                space.flush(offset, bytes);
            }
            space.fence(Fence::TakenBack)?;
            space.region = log::finished(&space.image) + 1;
            space.finish_log()?;
        }
        space.region = log::finished(&space.image);
        let walk = space.walk(&[]);
        if let Some(damage) = walk.damages.first() {
            return Err(Error::Damaged {
                path: path.into(),
                what: damage.to_string(),
            });
        }
        space.adopt(&walk);
        space.recovered.objects = walk.objects.len() as u64;
        space.recovered.bytes = walk.bytes;
        space.reopen()?;
        Ok(space)
    }

    fn new(
        path: &str,
        image: Image,
        domain: Box<dyn Domain>,
        tables: Tables,
        commit: Commit,
    ) -> Space {
        Space {
            path: path.into(),
            image,
            domain,
            named_end: tables
                .constants
                .last()
                .map_or(0, |c| u64::from(c.offset) + 8),
            infos: tables.infos(),
            tables,
            alloc: Allocator::default(),
            stats: Stats::default(),
            late: Vec::new(),
            named: Vec::new(),
            late_end: CLASS_DATA,
            commit,
            recovered: Recovered::default(),
            first: 0,
            log: Log::empty(),
            depth: 0,
            region: 0,
            logged: Default::default(),
            last_logged: u64::MAX,
            fresh: Vec::new(),
            threshold: 0,
        }
    }

    /// Takes over what a walk found.
    fn adopt(&mut self, walk: &Walk) {
        if self.alloc.used() == 0 {
            self.alloc = Allocator::new(self.first);
        }
        self.alloc.grow(self.image.len());
        self.alloc.clear_from(self.first);
        self.named.clear();
        for &at in &walk.objects {
            let ty = varve_heap::Header(self.image.u64(at)).type_index();
            let info = &self.infos[ty as usize];
            let bytes = crate::walk::size_of_object(&self.image, at, info);
            self.alloc.take_object(at, bytes);
            if info.named {
                self.named.push(Space::reference(at));
            }
        }
        self.threshold = (2 * self.alloc.used()).max(16 << 20);
    }

    fn reopen(&mut self) -> Result<()> {
        self.threshold = (2 * self.alloc.used()).max(16 << 20);
        self.commit.opened += 1;
        self.commit.closed = false;
        self.commit.domain = self.domain.name().into();
        self.write_commit()
    }

    fn write_commit(&mut self) -> Result<()> {
        self.commit.number += 1;
        let bytes = record(&serde_json::to_vec(&self.commit).expect("a record is plain data"));
        let at = commit_place(self.commit.number);
        self.image.write(at, &bytes);
        self.flush(at, bytes.len() as u64);
        self.fence(Fence::Header)
    }

    /// Closes the region in order: an open region is taken back.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn close(mut self) -> Result<()> {
        if self.depth > 0 {
            self.take_back()?;
        }
        self.commit.closed = true;
        self.write_commit()
    }

    /// Its bytes, closed in order.
    pub(crate) fn into_bytes(mut self) -> Result<Vec<u8>> {
        self.commit.closed = true;
        self.write_commit()?;
        Ok(self.image.to_vec())
    }

    // ---- the medium -------------------------------------------------------------------------------------------------------------

    pub(crate) fn flush(&mut self, offset: u64, bytes: u64) {
        self.domain
            .write_back(self.image.address(offset, bytes), bytes);
    }

    pub(crate) fn fence(&mut self, why: Fence) -> Result<()> {
        self.stats.fences += 1;
        let path = &self.path;
        self.domain.fence(why).map_err(|source| Error::Io {
            path: path.clone(),
            what: "the medium did not take what was written",
            source,
        })
    }

    fn grow_to(&mut self, bytes: u64) -> Result<()> {
        let path = &self.path;
        self.image
            .grow(bytes)
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

    /// Room for so many bytes, a multiple of [`OBJECT_ALIGN`].
    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64> {
        let at = loop {
            if let Some(at) = self.alloc.allocate(bytes) {
                break at;
            }
            let len = self.image.len();
            let needed = bytes.next_multiple_of(GROWTH) + GROWTH;
            let most = self.image.capacity() / GROWTH * GROWTH;
            let wanted = (len + len.min(MOST_GROWTH).max(needed)).min(most);
            if wanted <= len || wanted - len < bytes {
                return Err(Error::Full {
                    path: self.path.clone(),
                    bytes,
                    max: self.image.capacity(),
                });
            }
            self.grow_to(wanted)?;
        };
        if self.depth > 0 {
            match self.fresh.last_mut() {
                Some((_, end)) if *end == at => *end = at + bytes,
                _ => self.fresh.push((at, at + bytes)),
            }
        }
        Ok(at)
    }

    // ---- garbage ----------------------------------------------------------------------------------------------------------------

    /// Whether so much was allocated that looking for garbage is worth it.
    pub fn wants_collection(&self) -> bool {
        self.depth == 0 && self.alloc.used() > self.threshold
    }

    /// Frees what neither the roots nor the program, by the references given, can reach. Nothing moves and nothing is written: which lines
    /// are free is not in the file.
    pub fn collect(&mut self, held: &[Ref]) {
        if self.depth > 0 {
            return; // What the log holds counts too.
        }
        let walk = self.walk(held);
        match walk.damages.is_empty() {
            true => {
                self.adopt(&walk);
                self.stats.collections += 1;
            }
            // All stays as it is, for whoever opens the file next to see; not to be looked at again at each allocation.
            false => self.threshold = 2 * self.alloc.used(),
        }
    }

    pub(crate) fn walk(&self, held: &[Ref]) -> Walk {
        let walker = Walker::new(
            &self.image,
            &self.tables,
            &self.infos,
            &self.late,
            self.first,
        );
        walker.run(&self.roots(), held)
    }

    /// Follows all references from the roots, and says what is wrong.
    pub fn check(&self) -> Walk {
        self.walk(&[])
    }

    // ---- what others ask --------------------------------------------------------------------------------------------------------

    /// Objects whose types are [`named_by`](crate::Type::named_by) something, that were there when the region was opened or garbage was
    /// collected last.
    pub fn named(&self) -> &[Ref] {
        &self.named
    }

    /// The region's types and constants.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Its bytes.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What it did.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// What was found when it was opened.
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

    /// The offset in the file of what is so many bytes from the heap's base.
    pub fn offset_of(heap_offset: u64) -> u64 {
        heap_offset - FILE_START
    }

    /// The reference of the object at an offset in the file.
    pub fn reference(offset: u64) -> Ref {
        Ref(((FILE_START + offset) >> REF_SHIFT) as u32)
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
    /// Has the domain look at what is in the medium by now.
    pub fn flush_for_tests(&mut self) {
        self.flush(0, 1);
    }
}
