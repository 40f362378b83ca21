//! Opening a region by its file's name, and operations on a file as a whole.

use crate::class_data::Late;
use crate::domain::{CacheLines, Domain, FileSync};
use crate::error::{Error, Result};
use crate::header;
use crate::image::{Image, Reservation};
use crate::inspect::Inspection;
use crate::journal::{self, Journal};
use crate::layout::*;
use crate::name::{Draft, Found, Owned, open_regular, own, own_file, resolved, tidy};
use crate::records::Records;
use crate::rewrite::{Later, rewrite};
use crate::source::{CANNOT_MAP, Source, in_use, io_error};
use crate::space::{CHECKED_FIRST, Space, unreadable};
use crate::types::Tables;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;
use varve_heap::ObjectAlign;

/// The kind of medium that a region's file is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Medium {
    /// DAX if the file can be mapped so, else an ordinary file with a journal.
    #[default]
    Best,
    /// Persistent memory, mapped synchronously: `MAP_SYNC`.
    Dax,
    /// An ordinary file: with a journal that is synced at each commit, or the file synced at an interval.
    File(Option<Duration>),
    /// As DAX, on a file that is none: survives the process, not the machine.
    Memory,
}

/// A name that is this process's own, with a region or without one, and the addresses at which it is to be.
pub struct Opened {
    found: Found,
    path: String,
    medium: Medium,
    at: *mut u8,
    align: ObjectAlign,
    /// The size in bytes up to which a region is checked before it is used.
    checked_first: u64,
    /// The medium that the caller passed.
    handed_in: Option<Box<dyn Domain>>,
}

// SAFETY: the addresses were lent to this value alone.
unsafe impl Send for Opened {}

/// The alignment of objects in the region of a file; none if there is no region.
///
/// # Errors
/// If the file cannot be read, or is something else.
pub fn alignment(path: &Path) -> Result<Option<ObjectAlign>> {
    let name = path.display().to_string();
    let file = match open_regular(path, File::options().read(true)) {
        Ok(file) => file,
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    let mut begin = [0; 16];
    let read = std::os::unix::fs::FileExt::read_at(&file, &mut begin, 0);
    match read.map_err(io_error(&name, "the region file cannot be read"))? {
        0 => Ok(None),
        16 if begin[..8] == MAGIC => {
            let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| begin[at + i]));
            Ok(match word(8) {
                VERSION | JOURNALED => ObjectAlign::of_shift(word(ALIGN_SHIFT as usize)),
                _ => Some(ObjectAlign::LEAST),
            })
        }
        n if begin[..n.min(8)] != [0; 8] => Err(Error::Foreign(name)),
        // The one that opens it says what is wrong.
        _ => Ok(None),
    }
}

/// Takes a region file for this process, or the right to make it. Its region will be mapped at `at`, with objects at multiples of `align`: a
/// region where they are at others is rewritten.
///
/// # Errors
/// If the system refuses, another process has it open, or it is something else.
///
/// # Safety
/// [`Addresses::max_file`] bytes are reserved at `at`, no other code uses them, and they outlive the result.
pub unsafe fn open_in_place(
    path: &Path,
    medium: Medium,
    at: *mut u8,
    align: ObjectAlign,
) -> Result<Opened> {
    let opened = Opened {
        found: own(path)?,
        path: path.display().to_string(),
        medium,
        at,
        align,
        checked_first: CHECKED_FIRST,
        handed_in: None,
    };
    match &opened.found {
        Found::File(owned) => tidy(owned),
        Found::New(draft) => draft.of_no_file()?,
    }
    Ok(opened)
}

impl Opened {
    /// The same on another medium than the file's own, such as a modelled one.
    pub fn on(mut self, domain: Box<dyn Domain>) -> Opened {
        self.handed_in = Some(domain);
        self
    }

    /// The same, and a region of any size is checked as a whole before it is used: the file may come from an attacker.
    pub fn verified(mut self) -> Opened {
        self.checked_first = u64::MAX;
        self
    }

    /// The region in the file; a new one if there is no file. If the program's types are others than the region's, and its objects fit them, the
    /// region is rewritten for them first, as it is if its format is an older one.
    ///
    /// # Errors
    /// As [`Opened::prepare`] and [`Prepared::open`].
    pub fn region(self, tables: &Tables) -> Result<Space> {
        self.prepare(tables)?.open()
    }

    /// The same up to the point where the file changes. A new region or a rewritten one is in a draft beside the file, and has been opened in memory; one that
    /// stays as it is has been checked where opening it would write before it checks.
    ///
    /// # Errors
    /// As [`Space::open`] and [`Space::create`]. Not a byte of the file has changed then.
    pub fn prepare(self, tables: &Tables) -> Result<Prepared> {
        let tables = &tables.recorded();
        // Bytes on a modelled medium are in the file as they are in memory.
        let medium = match self.handed_in {
            Some(_) => Medium::Memory,
            None => self.medium,
        };
        let place = Placed {
            path: self.path,
            medium,
            at: self.at,
            most: Addresses(self.align).max_file(),
            checked_first: self.checked_first,
            handed_in: self.handed_in,
        };
        let owned = match self.found {
            Found::New(draft) => {
                write_new(&draft, place.most, |image| {
                    let tables = tables.clone();
                    Space::create(&place.path, image, Box::new(Later), tables, self.align)?.close()
                })?;
                return place.drafted(draft, tables);
            }
            Found::File(owned) => owned,
        };
        let path = &place.path;
        let mut image = Image::private(&owned.file).map_err(io_error(path, CANNOT_MAP))?;
        let journal = image.len();
        if let Some(what) = journal::recover_image(&mut image) {
            return Err(damaged(path, what));
        }
        let journal = journal != image.len();
        let held = header::read(&image).map_err(|e| unreadable(path, e))?;
        // A copy is opened if the caller has all of it verified.
        if place.checked_first < u64::MAX && held.commit.is_of_copy(&owned.file) {
            return Err(Error::Copied(path.clone()));
        }
        if held.align > self.align {
            return Err(Error::Usage(format!(
                "{path}: its objects are aligned to {} bytes, more than was asked for: give a --region-max as before",
                held.align.bytes()
            )));
        }
        if held.version != VERSION || held.tables != *tables || held.align != self.align {
            drop(image);
            let mut old = Inspection::of_owned(&owned, path)?.whole()?;
            old.forget_named(tables)
                .map_err(|what| Error::OtherProgram {
                    path: path.clone(),
                    what,
                })?;
            let draft = rewritten_beside(owned, &old, tables, self.align)?;
            drop(old);
            return place.drafted(draft, tables);
        }
        place.fits(&owned.file)?;
        let late = Records::read(&image).late;
        // A region closed in order is checked before the first write. Recovery writes first, so it is tried here.
        if journal || !held.commit.closed {
            open_in_memory(path, image, tables, place.checked_first)?;
        }
        Ok(Prepared {
            ready: Ready::AsItIs(owned),
            late,
            place,
            tables: tables.clone(),
        })
    }

    /// Whether there is no region yet.
    pub fn is_new(&self) -> bool {
        matches!(self.found, Found::New(_))
    }
}

/// A region that can be opened: all that could refuse it has been asked, and the file is as it was. Dropped, it leaves the file so.
pub struct Prepared {
    ready: Ready,
    late: Vec<Late>,
    place: Placed,
    tables: Tables,
}

enum Ready {
    /// In a file that is to take the name: it is new, or replaces the old one.
    Drafted(Draft),
    /// In the file as it is.
    AsItIs(Owned),
}

impl Prepared {
    /// Class data that programs made while they ran, which the program must be able to make again.
    pub fn late(&self) -> &[Late] {
        &self.late
    }

    /// Has the region be in use: a draft takes the file's name, or the file is recovered after a crash.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn open(self) -> Result<Space> {
        let place = self.place;
        let owned = match self.ready {
            Ready::Drafted(draft) => draft.publish()?,
            Ready::AsItIs(owned) => {
                recovered(&owned.file, &place.path)?;
                owned
            }
        };
        // Mapped under its own name: tools that watch a program know the file's bytes by it.
        let (image, own) = place.mapped(&owned.file)?;
        let unchecked = image.len() > place.checked_first;
        let domain = place.handed_in.unwrap_or(own);
        let (path, tables) = (&place.path, Some(&self.tables));
        let mut space = Space::open_checked(path, image, domain, tables, place.checked_first)?;
        space.keep(owned, unchecked)?;
        Ok(space)
    }
}

/// The place of a region, and its medium.
struct Placed {
    path: String,
    medium: Medium,
    at: *mut u8,
    /// Most bytes of the region.
    most: u64,
    checked_first: u64,
    handed_in: Option<Box<dyn Domain>>,
}

// SAFETY: as [`Opened`], whose addresses these are.
unsafe impl Send for Placed {}

impl Placed {
    fn mapped(&self, file: &File) -> Result<(Image, Box<dyn Domain>)> {
        mapped(file, self.medium, self.at, self.most, &self.path)
    }

    /// That the medium is one that the file can be on: the others take any file.
    fn fits(&self, file: &File) -> Result<()> {
        match self.medium {
            Medium::Dax => self.mapped(file).map(drop),
            _ => Ok(()),
        }
    }

    /// Opens the region in a draft, in memory alone, as it will be opened under the file's name.
    fn drafted(self, draft: Draft, tables: &Tables) -> Result<Prepared> {
        self.fits(draft.file())?;
        let path = &self.path;
        let image = Image::private(draft.file()).map_err(io_error(path, CANNOT_MAP))?;
        let space = open_in_memory(path, image, tables, self.checked_first);
        let space = space.map_err(|e| match e {
            Error::Damaged { what, .. } | Error::Lost { what, .. } => Error::OtherProgram {
                path: path.clone(),
                what: format!(
                    "its objects cannot be copied for this version of the program: {what}"
                ),
            },
            other => other,
        })?;
        Ok(Prepared {
            late: space.late().to_vec(),
            ready: Ready::Drafted(draft),
            place: self,
            tables: tables.clone(),
        })
    }
}

/// Opens a region so that nothing of it is written to its file: to see whether it can be opened.
fn open_in_memory(path: &str, image: Image, tables: &Tables, checked_first: u64) -> Result<Space> {
    Space::open_checked(path, image, Box::new(Later), Some(tables), checked_first)
}

/// Most bytes of any region file: of address range for one that is being written, whose kind is not known yet.
const MOST_FILE: u64 = Addresses(ObjectAlign::MOST).max_file();

/// Replays the journal that a crash left in the file.
fn recovered(file: &File, path: &str) -> Result<()> {
    let failed = || io_error(path, "its journal cannot be brought to its place");
    let mut file = file.try_clone().map_err(failed())?;
    match journal::recover(&mut file).map_err(failed())? {
        None => Ok(()),
        Some(what) => Err(damaged(path, what)),
    }
}

fn damaged(path: &str, what: &str) -> Error {
    Error::Damaged {
        path: path.into(),
        what: what.into(),
    }
}

/// Maps the bytes of a region's file, with the domain that writes them to the medium.
fn mapped(
    file: &File,
    medium: Medium,
    at: *mut u8,
    most: u64,
    path: &str,
) -> Result<(Image, Box<dyn Domain>)> {
    let map = |sync| {
        // SAFETY: the caller that passed the addresses guarantees it.
        unsafe { Image::map(file.try_clone()?, at, most, sync) }
    };
    let journaled = || -> io::Result<(Image, Box<dyn Domain>)> {
        // SAFETY: the caller that passed the addresses guarantees it; the region has the image and its journal, and uses them on one thread.
        let image = unsafe { Image::map_private(file.try_clone()?, at, most) }?;
        // SAFETY: as above.
        let journal = unsafe { Journal::of_file(file.try_clone()?, image.base()) }?;
        Ok((image, Box::new(journal)))
    };
    let synced = |interval| -> Result<(Image, Box<dyn Domain>)> {
        let image = map(false).map_err(io_error(path, CANNOT_MAP))?;
        let clone = file.try_clone().map_err(io_error(path, CANNOT_MAP))?;
        let domain = FileSync::new(clone, interval);
        let domain = domain.map_err(io_error(path, "no thread that syncs it"))?;
        Ok((image, Box::new(domain)))
    };
    // On a medium that is full there is no room for a journal, and a region that is there already needs none.
    let journaled = || match journal::free_bytes(file) >= journal::LEAST {
        true => journaled().map_err(io_error(path, CANNOT_MAP)),
        false => synced(None),
    };
    let lines =
        |image, called| -> (Image, Box<dyn Domain>) { (image, Box::new(CacheLines::new(called))) };
    match medium {
        Medium::Best => match map(true) {
            Ok(image) => Ok(lines(image, "dax")),
            Err(_) => journaled(),
        },
        Medium::Dax => map(true).map(|image| lines(image, "dax")).map_err(io_error(
            path,
            "its file system does not map it as persistent memory (MAP_SYNC): mount one with DAX, or use --domain file",
        )),
        Medium::File(None) => journaled(),
        Medium::File(interval) => synced(interval),
        Medium::Memory => map(false)
            .map(|image| lines(image, "memory"))
            .map_err(io_error(path, CANNOT_MAP)),
    }
}

/// Writes the live objects of a file's region to a new file beside it, for a program with these tables: to take the file's place.
fn rewritten_beside(
    owned: Owned,
    old: &Inspection,
    tables: &Tables,
    align: ObjectAlign,
) -> Result<Draft> {
    let draft = Draft::replacing(owned)?;
    let most = Addresses(align).max_file();
    write_new(&draft, most, |image| rewrite(old, tables, align, image))?;
    Ok(draft)
}

/// Writes a region of at most `most` bytes into a draft's file. `most` bytes of address space are reserved, and an emulator has less of it.
fn write_new<T>(draft: &Draft, most: u64, write: impl FnOnce(Image) -> Result<T>) -> Result<()> {
    let path = draft.path().display().to_string();
    let failed = || io_error(&path, "no new file can be written beside it");
    let file = draft.file().try_clone().map_err(failed())?;
    let (image, _reservation): (Image, Reservation) =
        Image::of_new_file(file, most).map_err(failed())?;
    // The image goes before the addresses do.
    drop(write(image)?);
    Ok(())
}

/// Writes a region under a free name, or over a region that no process has open. Returns its size in bytes.
pub(crate) fn write_into_new(to: &Path, write: impl FnOnce(Image) -> Result<Image>) -> Result<u64> {
    let draft = match own(to)? {
        Found::New(draft) => draft,
        Found::File(owned) => Draft::replacing(owned)?,
    };
    write_new(&draft, MOST_FILE, write)?;
    let made = draft.publish()?;
    Ok(made.file.metadata().map_or(0, |m| m.len()))
}

/// The properties of a copy of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Bytes of the file before.
    pub before: u64,
    /// Bytes of the new file.
    pub bytes: u64,
    /// Live objects.
    pub objects: u64,
}

/// Writes the live objects of a region into a new file, which takes the old one's place.
///
/// # Errors
/// If another process has it open, it is damaged, or there is no room. The file is as it was then.
pub fn compact(path: &Path) -> Result<Copy> {
    let name = path.display().to_string();
    let owned = own_file(path)?;
    tidy(&owned);
    let old = Inspection::of_owned(&owned, &name)?.whole()?;
    if old.commit.is_of_copy(&owned.file) {
        return Err(Error::Copied(name));
    }
    let new = rewritten_beside(owned, &old, &old.tables, old.align)?.publish()?;
    Ok(Copy {
        before: old.image.len(),
        bytes: new.file.metadata().map_or(0, |m| m.len()),
        objects: old.walk.objects.len() as u64,
    })
}

/// Copies a region as it is at one instant, while another process may be using it. A region of `to`'s name is replaced, any other file stays.
/// `progress` is called with the bytes copied so far and the total.
///
/// # Errors
/// If the region is damaged, or there is no room; an existing file `to` stays unchanged then.
pub fn backup(path: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Copy> {
    let name = path.display().to_string();
    is_another(to, path)?;
    let source = Source::of(path)?;
    let copy_name = to.display().to_string();
    let draft = match own(to)? {
        Found::New(draft) => draft,
        Found::File(owned) => Draft::replacing(owned)?,
    };
    let failed = || io_error(&copy_name, "the copy cannot be written");
    let before = source
        .copy(draft.file(), progress)
        .map_err(|e| match source.free {
            true => failed()(e),
            false => in_use(path, &e),
        })?;
    // As after a crash: unfinished operations are rolled back, all is checked, and all pages get their checksums.
    let file = draft.file().try_clone().map_err(failed())?;
    let image = Image::private(&file).map_err(failed())?;
    let region = Inspection::of(image, &name)?.whole()?;
    if source.is_copy(&region.commit) {
        return Err(Error::Copied(name));
    }
    let (objects, version) = (region.walk.objects.len() as u64, region.version);
    drop(region);
    if version == VERSION {
        recovered(draft.file(), &copy_name)?;
        let (image, _reservation) = Image::of_new_file(file, MOST_FILE).map_err(failed())?;
        let image = image.map_all().map_err(failed())?;
        let domain = FileSync::new(draft.file().try_clone().map_err(failed())?, None);
        let domain = Box::new(domain.map_err(failed())?);
        Space::open_checked(&copy_name, image, domain, None, 0)?.close()?;
    }
    let made = draft.publish()?;
    Ok(Copy {
        before,
        bytes: made.file.metadata().map_or(0, |m| m.len()),
        objects,
    })
}

/// Checks that the output has another name than the region, wherever links lead.
pub(crate) fn is_another(to: &Path, path: &Path) -> Result<()> {
    match resolved(path)? == resolved(to)? {
        false => Ok(()),
        true => Err(Error::Usage(format!(
            "{}: the copy needs another name than the region",
            path.display()
        ))),
    }
}
