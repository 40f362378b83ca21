//! Opening a region by its file's name.

use crate::domain::{CacheLines, Domain, FileSync};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::inspect::Inspection;
use crate::layout::*;
use crate::rewrite::{replace, rewritten};
use crate::space::{Space, unreadable};
use crate::types::Tables;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// What kind of medium a region's file is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Medium {
    /// DAX if the file can be mapped so, else an ordinary file, synced at each fence.
    #[default]
    Best,
    /// Persistent memory, mapped synchronously: `MAP_SYNC`.
    Dax,
    /// An ordinary file: synced at each fence, or at an interval.
    File(Option<Duration>),
    /// As DAX, on a file that is none: survives the process, not the machine.
    Memory,
}

/// A region's file, locked, and mapped at its addresses.
pub struct Opened {
    image: Image,
    domain: Box<dyn Domain>,
    path: String,
    medium: Medium,
    /// Whether somebody handed in the domain, which a file that takes the place of this one has too.
    handed_in: bool,
}

/// Opens or creates a region file, and maps it at `at`.
///
/// # Errors
/// If the system refuses, or another process has it open.
///
/// # Safety
/// [`MAX_FILE`] bytes at `at` are reserved, used by nobody else, and outlive what is opened.
pub unsafe fn open_in_place(path: &Path, medium: Medium, at: *mut u8) -> Result<Opened> {
    let name = path.display().to_string();
    let io = |what: &'static str| {
        let path = name.clone();
        move |source| Error::Io { path, what, source }
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(io("the region file cannot be opened"))?;
    lock(&file, &name)?;
    check_begin(&file, &name)?;
    let map = |sync| {
        let file = file.try_clone()?;
        // A file without bytes cannot be mapped, nor be asked whether it is DAX.
        if file.metadata()?.len() < FIRST_SIZE {
            let mut image = Image::unmapped(file, at, MAX_FILE, sync);
            image.grow(FIRST_SIZE)?;
            return Ok(image);
        }
        // SAFETY: the caller's promise.
        unsafe { Image::map(file, at, MAX_FILE, sync) }
    };
    let sync_file = |interval| -> Result<Opened> {
        let image = map(false).map_err(io("the region file cannot be mapped"))?;
        let clone = file
            .try_clone()
            .map_err(io("the region file cannot be opened"))?;
        let domain = FileSync::new(clone, interval).map_err(io("no thread that syncs it"))?;
        Ok(Opened {
            image,
            domain: Box::new(domain),
            path: name.clone(),
            medium,
            handed_in: false,
        })
    };
    let lines = |image, called| Opened {
        image,
        domain: Box::new(CacheLines::new(called)),
        path: name.clone(),
        medium,
        handed_in: false,
    };
    match medium {
        Medium::Best => match map(true) {
            Ok(image) => Ok(lines(image, "dax")),
            Err(_) => sync_file(None),
        },
        Medium::Dax => map(true).map(|image| lines(image, "dax")).map_err(io(
            "its file system does not map it as persistent memory (MAP_SYNC): mount one with DAX, or use --domain file",
        )),
        Medium::File(interval) => sync_file(interval),
        Medium::Memory => map(false)
            .map(|image| lines(image, "memory"))
            .map_err(io("the region file cannot be mapped")),
    }
}

impl Opened {
    /// The same on another medium than the file's own: one that somebody models.
    pub fn on(mut self, domain: Box<dyn Domain>) -> Opened {
        (self.domain, self.handed_in) = (domain, true);
        self
    }

    /// The region in the file; a new one if the file is empty. If the program's types are others than the region's, and its objects fit them,
    /// the region is [rewritten](crate::rewritten) for them first.
    ///
    /// # Errors
    /// As [`Space::open`] and [`Space::create`].
    pub fn region(mut self, tables: &Tables) -> Result<Space> {
        if self.is_new() {
            return Space::create(&self.path, self.image, self.domain, tables.clone());
        }
        if self.differs(tables)? {
            self = self.migrated(tables)?;
        }
        Space::open(&self.path, self.image, self.domain, Some(tables))
    }

    /// Rewrites the region for other tables, and opens the new file in the place of the old one.
    fn migrated(self, tables: &Tables) -> Result<Opened> {
        let copy = Image::memory(&self.image.to_vec(), self.image.len());
        let old = Inspection::of(copy, &self.path)?.whole()?;
        let bytes = rewritten(&old, tables)?;
        let Opened {
            image,
            domain,
            path,
            medium,
            handed_in,
        } = self;
        let at = image.base();
        // The new file takes the name while the old one is locked still.
        replace(Path::new(&path), &bytes)?;
        // A medium that is a file goes with it.
        let domain = handed_in.then_some(domain);
        drop(image);
        // SAFETY: the addresses are those that the old image was lent, which has given them back.
        let opened = unsafe { open_in_place(Path::new(&path), medium, at) }?;
        Ok(match domain {
            Some(domain) => opened.on(domain),
            None => opened,
        })
    }

    /// Whether the program has other types or constants than the region: then the region has to be [rewritten](crate::rewritten) for it.
    ///
    /// # Errors
    /// If its beginning is damaged.
    pub fn differs(&self, tables: &Tables) -> Result<bool> {
        Ok(self.tables()?.is_some_and(|held| held != *tables))
    }

    /// Whether there is no region yet: no bytes, or those of a creation that was interrupted.
    pub fn is_new(&self) -> bool {
        self.image.len() < 8 || self.image.u64(0) == 0
    }

    /// The tables in the file, if it has any.
    ///
    /// # Errors
    /// If its beginning is damaged.
    pub fn tables(&self) -> Result<Option<Tables>> {
        if self.is_new() {
            return Ok(None);
        }
        let (_, tables) =
            crate::header::read(&self.image).map_err(|e| unreadable(&self.path, e))?;
        Ok(Some(tables))
    }
}

/// A region file that no other process opens meanwhile.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes a file that is there.
    ///
    /// # Errors
    /// If there is none, or another process has it.
    pub fn take(path: &Path) -> Result<Lock> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Io {
            path: name.clone(),
            what: "the region file cannot be opened",
            source,
        })?;
        lock(&file, &name)?;
        Ok(Lock { _file: file })
    }
}

/// How long a process that was killed may take to go: it gives its memory back first, and its locks after that.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes the file for this process alone. The lock ends with the process, however that ends.
fn lock(file: &File, name: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        match try_lock(file, name) {
            Err(Error::Locked(_)) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

fn try_lock(file: &File, name: &str) -> Result<()> {
    // SAFETY: a call without memory.
    let failed = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if failed == 0 {
        return Ok(());
    }
    let source = io::Error::last_os_error();
    Err(match source.kind() {
        io::ErrorKind::WouldBlock => Error::Locked(name.into()),
        _ => Error::Io {
            path: name.into(),
            what: "the region file cannot be locked",
            source,
        },
    })
}

/// Refuses a file with something else in it before anything is mapped or made longer.
fn check_begin(file: &File, name: &str) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let mut begin = [0; 8];
    match file.read_at(&mut begin, 0) {
        Ok(0) => Ok(()),
        Ok(8) if begin == MAGIC || begin == [0; 8] => Ok(()),
        Ok(_) => Err(Error::Foreign(name.into())),
        Err(source) => Err(Error::Io {
            path: name.into(),
            what: "the region file cannot be read",
            source,
        }),
    }
}

/// Reads a region file into memory, to look at: the file stays as it is, and nobody is kept from using it.
///
/// # Errors
/// If it cannot be read.
pub fn read_file(path: &Path) -> Result<Image> {
    let bytes = std::fs::read(path).map_err(|source| Error::Io {
        path: path.display().to_string(),
        what: "the region file cannot be read",
        source,
    })?;
    let len = bytes.len() as u64;
    Ok(Image::memory(&bytes, len))
}
