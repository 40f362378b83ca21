//! Ownership of region files: one process for each *name*, whatever replaces the file under it.
//!
//! A lock (`flock`) is on a file, and files are replaced: by compaction, by migration. So a process that has waited for a lock checks whether the
//! name still leads to the locked file, and starts over if not. A process that replaces a file locks the new one before it renames it. A new file is
//! made beside the old one, under a hidden name, and takes the name once all of it is in the medium: a crash leaves the old file, the new one, or no
//! file where there was none.

use crate::error::{Error, Result};
use crate::layout::MAGIC;
use std::ffi::{CString, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A file that no other process owns meanwhile.
pub(crate) struct Owned {
    pub file: File,
    /// The file's own name, where links lead to.
    pub path: PathBuf,
}

/// The file found under a name.
pub(crate) enum Found {
    /// A file with something in it, which is ours.
    File(Owned),
    /// No file, or one of no bytes, which is ours.
    New(Draft),
}

/// How long a process that was killed may take to go: it gives its memory back first, and its locks after that.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two attempts to take a lock that another process has.
const PAUSE: Duration = Duration::from_millis(20);

/// Takes the file of a name, or the right to make it.
pub(crate) fn own(path: &Path) -> Result<Found> {
    let path = resolved(path)?;
    let begun = Instant::now();
    loop {
        let file = match open_regular(&path, OpenOptions::new().read(true).write(true)) {
            Ok(file) => file,
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                match Draft::begin(&path, None, begun)? {
                    // Another process made the file meanwhile.
                    draft if path.exists() => drop(draft),
                    draft => return Ok(Found::New(draft)),
                }
                continue;
            }
            Err(e) => return Err(e),
        };
        lock(&file, &path, begun)?;
        if !is_named(&file, &path) {
            continue;
        }
        let owned = Owned { file, path };
        // Its length is known for certain only now.
        let len = owned.file.metadata().map(|m| m.len());
        if len.is_ok_and(|n| n == 0) {
            let draft = Draft::begin(&owned.path.clone(), Some(owned.file), begun)?;
            return Ok(Found::New(draft));
        }
        check_begin(&owned)?;
        return Ok(Found::File(owned));
    }
}

/// Takes a file that is there and has something in it.
pub(crate) fn own_file(path: &Path) -> Result<Owned> {
    match std::fs::metadata(path) {
        Ok(m) if m.is_file() && m.len() == 0 => return Err(empty(path)),
        Ok(_) => {}
        Err(e) => return Err(io_error(path, "the region file cannot be opened", e)),
    }
    match own(path)? {
        Found::File(owned) => Ok(owned),
        Found::New(_) => Err(empty(path)),
    }
}

/// Opens a file that is a regular one: to open something else may wait for another process, or do something.
pub(crate) fn open_regular(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let failed = |e| io_error(path, "the region file cannot be opened", e);
    let no_file = |m: &Metadata| {
        let t = m.file_type();
        let is = [
            (t.is_dir(), "a directory"),
            (t.is_fifo(), "a FIFO"),
            (t.is_socket(), "a socket"),
            (t.is_char_device() || t.is_block_device(), "a device"),
        ];
        let is = is.iter().find(|(is, _)| *is);
        (!m.is_file()).then(|| Error::NoFile {
            path: path.display().to_string(),
            is: is.map_or("something else", |(_, name)| name),
        })
    };
    match std::fs::metadata(path) {
        Ok(m) => no_file(&m).map_or(Ok(()), Err)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(failed(e)),
    }
    // It may have been replaced meanwhile.
    let file = options.custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(failed)?;
    match no_file(&file.metadata().map_err(failed)?) {
        None => Ok(file),
        Some(e) => Err(e),
    }
}

fn empty(path: &Path) -> Error {
    Error::Empty {
        path: path.display().to_string(),
        has: "has no bytes",
    }
}

/// A file opened for reading, and whether it was locked against owners: not if another process owns it.
pub(crate) fn share(path: &Path) -> Result<(File, bool)> {
    let io = |e| io_error(path, "the region file cannot be read", e);
    loop {
        let file = open_regular(path, OpenOptions::new().read(true))?;
        // SAFETY: a call without memory.
        let failed = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
        let free = failed == 0;
        if !free {
            let e = io::Error::last_os_error();
            if e.kind() != io::ErrorKind::WouldBlock {
                return Err(not_locked(path, e));
            }
        }
        if file.metadata().map_err(io)?.len() == 0 {
            return Err(empty(path));
        }
        if is_named(&file, path) {
            return Ok((file, free));
        }
    }
}

/// A file of a name for this process alone, whatever is in it; made if there is none.
pub(crate) fn own_any(path: &Path) -> Result<File> {
    let path = resolved(path)?;
    let begun = Instant::now();
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_regular(&path, &mut options)?;
        lock(&file, &path, begun)?;
        if is_named(&file, &path) {
            return Ok(file);
        }
    }
}

impl Owned {
    /// Whether the name still leads to the file.
    pub fn is_named(&self) -> bool {
        is_named(&self.file, &self.path)
    }
}

/// Drafts of this process, which are to go if it is interrupted.
static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes files that were not finished, before the process ends in the middle of making them.
pub fn abandon_drafts() {
    let mut drafts = drafts();
    for beside in drafts.drain(..) {
        let _ = std::fs::remove_file(beside);
    }
    // Nothing takes its name any more.
    std::mem::forget(drafts);
}

/// A new file beside the one whose name it is to take. It goes if it does not.
pub(crate) struct Draft {
    file: Option<File>,
    beside: PathBuf,
    path: PathBuf,
    /// The file that it replaces, whose lock is held until then.
    old: Option<File>,
}

impl Draft {
    /// Makes the new file, which has no bytes. The leftover of a killed process is overwritten.
    pub fn begin(path: &Path, old: Option<File>, begun: Instant) -> Result<Draft> {
        let beside = beside(path);
        loop {
            // Held from before the file is there until it is in the list: an interruption finds it there, or it is never made.
            let mut drafts = drafts();
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(if old.is_some() { 0o600 } else { 0o666 })
                .custom_flags(libc::O_NOFOLLOW)
                .open(&beside)
                .map_err(|e| io_error(path, "no file can be made beside it", e))?;
            if !try_lock(&file, path, begun)? {
                // It is another process's, which is waited for without the list.
                drop(drafts);
                std::thread::sleep(PAUSE);
                continue;
            }
            if !is_named(&file, &beside) {
                continue;
            }
            let mut first = [0; 8];
            let read = file.read_at(&mut first, 0).unwrap_or(0);
            if read > 0 && first != MAGIC && first != [0; 8] {
                return Err(Error::Foreign(beside.display().to_string()));
            }
            file.set_len(0)
                .map_err(|e| io_error(path, "no file can be made beside it", e))?;
            drafts.push(beside.clone());
            return Ok(Draft {
                file: Some(file),
                beside,
                path: path.into(),
                old,
            });
        }
    }

    /// Refuses to make a region of a file that is there: it has no bytes, and may have had some.
    pub fn of_no_file(&self) -> Result<()> {
        match self.old {
            None => Ok(()),
            Some(_) => Err(empty(&self.path)),
        }
    }

    /// To replace an owned file.
    pub fn replacing(old: Owned) -> Result<Draft> {
        Draft::begin(&old.path.clone(), Some(old.file), Instant::now())
    }

    /// The new file.
    pub fn file(&self) -> &File {
        self.file.as_ref().expect("until it is published")
    }

    /// The name that it is to take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has the new file take the name, with all that is in it in the medium. It has the mode, the owner and the extended attributes of the file
    /// that it replaces.
    pub fn publish(mut self) -> Result<Owned> {
        let mut drafts = drafts();
        let file = self.file.take().expect("once");
        let done = self.place(&file);
        drafts.retain(|d| *d != self.beside);
        if let Err(e) = done {
            let _ = std::fs::remove_file(&self.beside);
            return Err(io_error(
                &self.path,
                "the new file cannot take its place",
                e,
            ));
        }
        Ok(Owned {
            file,
            path: self.path.clone(),
        })
    }

    fn place(&self, file: &File) -> io::Result<()> {
        if let Some(old) = &self.old {
            let like = old.metadata()?;
            if like.nlink() > 1 {
                return Err(io::Error::other(
                    "it has several names (hard links), and the others would keep the old bytes",
                ));
            }
            if !is_named(old, &self.path) {
                return Err(io::Error::other("it was replaced or removed meanwhile"));
            }
            keep_attributes(old, &like, file)?;
        }
        file.sync_all()?;
        match self.old {
            Some(_) => std::fs::rename(&self.beside, &self.path)?,
            None => rename_new(&self.beside, &self.path)?,
        }
        sync_folder(&self.path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.file.is_some() {
            let mut drafts = drafts();
            let _ = std::fs::remove_file(&self.beside);
            drafts.retain(|d| *d != self.beside);
        }
    }
}

/// The hidden name beside a file.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".varve-new");
    path.with_file_name(name)
}

/// Removes the leftover beside a file of a process that was killed while it made a new one.
pub(crate) fn tidy(owned: &Owned) {
    let left = beside(&owned.path);
    if left.exists()
        && let Ok(draft) = Draft::begin(&owned.path, None, Instant::now())
    {
        drop(draft);
    }
}

/// Where a name leads, through links; a file that is not there yet is where the last one leads.
pub(crate) fn resolved(path: &Path) -> Result<PathBuf> {
    let io = |e| io_error(path, "the region file cannot be opened", e);
    let mut at = path.to_path_buf();
    for _ in 0..40 {
        match std::fs::canonicalize(&at) {
            Ok(path) => return Ok(path),
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io(e)),
            Err(e) => {
                let folder = at.parent().filter(|p| !p.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                let folder = std::fs::canonicalize(folder).map_err(io)?;
                let Some(name) = at.file_name() else {
                    return Err(io(e));
                };
                let here = folder.join(name);
                match std::fs::read_link(&here) {
                    Ok(target) => at = folder.join(target),
                    Err(_) => return Ok(here),
                }
            }
        }
    }
    Err(io(io::Error::from_raw_os_error(libc::ELOOP)))
}

/// Whether a name leads to this file.
fn is_named(file: &File, path: &Path) -> bool {
    let same = |a: Metadata, b: Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(a), Ok(b)) => same(a, b),
        _ => false,
    }
}

/// Takes the file for this process alone. The lock ends with the process, however that ends.
fn lock(file: &File, path: &Path, begun: Instant) -> Result<()> {
    while !try_lock(file, path, begun)? {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Takes the file for this process alone, if no other has it; an error if one has had it for too long since `begun`.
fn try_lock(file: &File, path: &Path, begun: Instant) -> Result<bool> {
    loop {
        // SAFETY: a call without memory.
        let failed = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        if failed == 0 {
            return Ok(true);
        }
        let e = io::Error::last_os_error();
        match e.kind() {
            io::ErrorKind::WouldBlock if begun.elapsed() < PATIENCE => return Ok(false),
            io::ErrorKind::WouldBlock => return Err(Error::Locked(path.display().to_string())),
            io::ErrorKind::Interrupted => {}
            _ => return Err(not_locked(path, e)),
        }
    }
}

/// Why there is no lock, though no other process has one.
fn not_locked(path: &Path, e: io::Error) -> Error {
    match e.raw_os_error() {
        Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS) => Error::NoLocks {
            path: path.display().to_string(),
            why: e,
        },
        _ => io_error(path, "the region file cannot be locked", e),
    }
}

/// Refuses a file with something else in it before anything is mapped or made longer.
fn check_begin(owned: &Owned) -> Result<()> {
    let mut begin = [0; 8];
    match owned.file.read_at(&mut begin, 0) {
        Ok(8) if begin == MAGIC => Ok(()),
        Ok(_) if begin == [0; 8] => Err(Error::Empty {
            path: owned.path.display().to_string(),
            has: "begins with zeroes",
        }),
        Ok(_) => Err(Error::Foreign(owned.path.display().to_string())),
        Err(e) => Err(io_error(&owned.path, "the region file cannot be read", e)),
    }
}

/// Gives a new file the attributes of an old one: mode, owner, group, extended attributes, which access lists are among.
fn keep_attributes(old: &File, like: &Metadata, new: &File) -> io::Result<()> {
    let now = new.metadata()?;
    if (now.uid(), now.gid()) != (like.uid(), like.gid()) {
        std::os::unix::fs::fchown(new, Some(like.uid()), Some(like.gid()))?;
    }
    new.set_permissions(like.permissions())?;
    for name in attributes(old)? {
        let value = attribute(old, &name)?;
        // SAFETY: the name ends with a zero byte, and the value is as long as is said.
        let failed = unsafe {
            libc::fsetxattr(
                new.as_raw_fd(),
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                0,
            )
        };
        if failed != 0 {
            let e = io::Error::last_os_error();
            // Attributes that only the system may set (labels) are set on the new file too.
            let own = name.as_bytes().starts_with(b"security.");
            if !own {
                return Err(e);
            }
        }
    }
    Ok(())
}

fn attributes(file: &File) -> io::Result<Vec<CString>> {
    // SAFETY: without a buffer the call asks for the length.
    let bytes = unsafe { libc::flistxattr(file.as_raw_fd(), std::ptr::null_mut(), 0) };
    if bytes < 0 {
        let e = io::Error::last_os_error();
        return match e.raw_os_error() {
            Some(libc::ENOTSUP) => Ok(Vec::new()),
            _ => Err(e),
        };
    }
    let mut names = vec![0u8; bytes as usize];
    // SAFETY: the buffer is as long as is said.
    let bytes =
        unsafe { libc::flistxattr(file.as_raw_fd(), names.as_mut_ptr().cast(), names.len()) };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    names.truncate(bytes as usize);
    let names = names.split(|&b| b == 0).filter(|n| !n.is_empty());
    Ok(names.filter_map(|n| CString::new(n).ok()).collect())
}

fn attribute(file: &File, name: &CString) -> io::Result<Vec<u8>> {
    // SAFETY: without a buffer the call asks for the length.
    let bytes =
        unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), std::ptr::null_mut(), 0) };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut value = vec![0u8; bytes as usize];
    // SAFETY: the buffer is as long as is said.
    let bytes = unsafe {
        libc::fgetxattr(
            file.as_raw_fd(),
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    value.truncate(bytes as usize);
    Ok(value)
}

/// Gives a file a name that nothing has.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let c = |p: &Path| CString::new(p.as_os_str().as_bytes()).map_err(io::Error::other);
    let (old, new) = (c(from)?, c(to)?);
    // SAFETY: both names end with a zero byte.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            old.as_ptr(),
            libc::AT_FDCWD,
            new.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    if failed == 0 {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    match e.raw_os_error() {
        // A file system without that call: a second name, which fails if there is one, and the first one goes.
        Some(libc::EINVAL | libc::ENOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        _ => Err(e),
    }
}

/// A file of no name on the same file system, or in memory.
pub(crate) fn unnamed_beside(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_TMPFILE)
        .open(folder.unwrap_or(Path::new(".")));
    if opened.is_ok() {
        return opened;
    }
    // SAFETY: a name that ends with a zero byte; the descriptor is a new file's, which this owns alone.
    unsafe {
        let fd = libc::memfd_create(c"varve region".as_ptr(), libc::MFD_CLOEXEC);
        match fd {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(std::os::fd::FromRawFd::from_raw_fd(fd)),
        }
    }
}

/// Has a file's name in the medium.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn io_error(path: &Path, what: &'static str, source: io::Error) -> Error {
    Error::Io {
        path: path.display().to_string(),
        what,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_named() {
        for code in [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS] {
            let e = not_locked(Path::new("a.region"), io::Error::from_raw_os_error(code));
            let text = e.to_string();
            assert!(
                text.starts_with("a.region: its file system locks no files"),
                "{text}"
            );
        }
        let e = not_locked(
            Path::new("a.region"),
            io::Error::from_raw_os_error(libc::EIO),
        );
        assert!(matches!(e, Error::Io { .. }));
    }
}
