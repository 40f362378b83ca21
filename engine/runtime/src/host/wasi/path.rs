//! Operations by path: opening, making, moving and removing files.
#![allow(clippy::too_many_arguments)] // as WASI has them

use super::errno::{Errno, Outcome};
use super::guest::Guest;
use super::resolve::{self, Place, resolve};
use super::status;
use super::table::{Directory, Entry, Kind, rights};
use crate::host::State;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::sync::Arc;

const FOLLOW: u32 = 1;

/// Follows a path in memory, from a directory that has the right.
fn place(
    g: &Guest,
    s: &mut State,
    right: u64,
    fd: u32,
    lookup: u32,
    at: u32,
    size: u32,
) -> Outcome<Place> {
    let path = g.bytes(at, size)?;
    let directory = s.wasi.files.directory(fd, right)?;
    let answer = resolve(directory, path, lookup & FOLLOW != 0);
    answer.inspect_err(|&e| s.wasi.refuse(fd, path, e))
}

/// As [`place`], for a name that is to be made, moved or removed. A slash at its end says that it is a directory's: it is passed to the host, which
/// follows no link at the end of such a name.
fn name(g: &Guest, s: &mut State, right: u64, fd: u32, at: u32, size: u32) -> Outcome<Place> {
    let path = g.bytes(at, size)?;
    let slashes = match path {
        // No path of WASI begins with one.
        [b'/', ..] => 0,
        _ => path.iter().rev().take_while(|&&b| b == b'/').count() as u32,
    };
    let mut place = place(g, s, right, fd, 0, at, size - slashes)?;
    if slashes > 0 {
        place.name.push(b'/');
    }
    Ok(place)
}

mod how {
    pub const CREATE: u32 = 1;
    pub const DIRECTORY: u32 = 2;
    pub const EXCLUSIVE: u32 = 4;
    pub const TRUNCATE: u32 = 8;
}

pub fn path_open(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    lookup: u32,
    at: u32,
    size: u32,
    how: u32,
    base: u64,
    inheriting: u64,
    flags: u32,
    opened: u32,
) -> Outcome {
    g.check(opened, 4)?;
    let mut needed = rights::PATH_OPEN;
    for (bit, right) in [
        (how::CREATE, rights::PATH_CREATE_FILE),
        (how::TRUNCATE, rights::PATH_SET_SIZE),
    ] {
        if how & bit != 0 {
            needed |= right;
        }
    }
    let path = g.bytes(at, size)?;
    let parent = s.wasi.files.any(fd)?;
    let directory = s.wasi.files.directory(fd, needed)?;
    if how & how::DIRECTORY != 0 && base & rights::WRITE != 0 {
        return Err(Errno::ISDIR);
    }
    if parent.read_only && base & rights::WRITING != 0 && how & how::DIRECTORY == 0 {
        return Err(Errno::ROFS);
    }
    let n = s.wasi.files.free()?;
    // Rights beyond the available ones are dropped.
    let (base, inheriting) = (base & parent.inheriting, inheriting & parent.inheriting);
    let (whole, read_only) = (directory.whole, parent.read_only);
    let flags =
        open_flags(how, base) | status::host_flags(flags) | OFlags::CLOEXEC | OFlags::NOCTTY;
    let answer = resolve::open(directory, path, lookup & FOLLOW != 0, flags);
    let file = answer.inspect_err(|&e| s.wasi.refuse(fd, path, e))?;
    let mode = rustix::fs::fstat(&file)?.st_mode;
    let kind = if FileType::from_raw_mode(mode) == FileType::Directory {
        Kind::Directory(Directory {
            fd: Arc::new(file),
            whole,
            preopened: None,
            listing: Vec::new(),
        })
    } else {
        Kind::File(file)
    };
    let entry = Entry {
        rights: match kind {
            Kind::Directory(_) => base & rights::OF_DIRECTORY,
            _ => base,
        },
        kind,
        inheriting,
        read_only,
    };
    s.wasi.files.put(n, entry);
    g.put_u32(opened, n)
}

fn open_flags(how: u32, base: u64) -> OFlags {
    let write = base & rights::WRITING != 0;
    let read = base & (rights::READ | rights::READ_DIRECTORY) != 0;
    let mut flags = match (read, write) {
        // Directories are never open for writing, whatever may be done with them.
        _ if how & how::DIRECTORY != 0 => OFlags::RDONLY,
        (_, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
    };
    for (bit, flag) in [
        (how::CREATE, OFlags::CREATE),
        (how::DIRECTORY, OFlags::DIRECTORY),
        (how::EXCLUSIVE, OFlags::EXCL),
        (how::TRUNCATE, OFlags::TRUNC),
    ] {
        if how & bit != 0 {
            flags |= flag;
        }
    }
    flags
}

pub fn path_filestat_get(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    lookup: u32,
    at: u32,
    size: u32,
    result: u32,
) -> Outcome {
    let ask = |g: &Guest, s: &mut State, lookup| -> Outcome<_> {
        let p = place(g, s, rights::PATH_STATUS, fd, lookup, at, size)?;
        let stat = rustix::fs::statat(&*p.directory, p.name.as_slice(), p.at_flags());
        stat.map_err(|e| {
            let e = Errno::from(e);
            if let Ok(path) = g.bytes(at, size) {
                s.wasi.refuse(fd, path, e);
            }
            e
        })
    };
    // Few names are links: whether one is need not be asked twice.
    let mut stat = ask(g, s, lookup & !FOLLOW)?;
    if lookup & FOLLOW != 0 && FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        stat = ask(g, s, lookup)?;
    }
    g.put(result, &status::status(&stat))
}

pub fn path_filestat_set_times(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    lookup: u32,
    at: u32,
    size: u32,
    accessed: u64,
    modified: u64,
    which: u32,
) -> Outcome {
    let times = status::times(accessed, modified, which)?;
    let p = place(g, s, rights::PATH_SET_TIMES, fd, lookup, at, size)?;
    Ok(rustix::fs::utimensat(
        &*p.directory,
        p.name.as_slice(),
        &times,
        p.at_flags(),
    )?)
}

pub fn path_create_directory(g: &mut Guest, s: &mut State, fd: u32, at: u32, size: u32) -> Outcome {
    let p = name(g, s, rights::PATH_CREATE_DIRECTORY, fd, at, size)?;
    let mode = Mode::from_raw_mode(0o777);
    Ok(rustix::fs::mkdirat(&*p.directory, p.name.as_slice(), mode)?)
}

pub fn path_remove_directory(g: &mut Guest, s: &mut State, fd: u32, at: u32, size: u32) -> Outcome {
    let p = name(g, s, rights::PATH_REMOVE_DIRECTORY, fd, at, size)?;
    // The way to it leads back through it, so that it has something in it.
    let path = g.bytes(at, size)?;
    let mut names = path.rsplit(|&b| b == b'/').filter(|n| !n.is_empty());
    if names.next() == Some(b"..") {
        return Err(Errno::NOTEMPTY);
    }
    Ok(rustix::fs::unlinkat(
        &*p.directory,
        p.name.as_slice(),
        AtFlags::REMOVEDIR,
    )?)
}

pub fn path_unlink_file(g: &mut Guest, s: &mut State, fd: u32, at: u32, size: u32) -> Outcome {
    let p = name(g, s, rights::PATH_UNLINK_FILE, fd, at, size)?;
    Ok(rustix::fs::unlinkat(
        &*p.directory,
        p.name.as_slice(),
        AtFlags::empty(),
    )?)
}

pub fn path_rename(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    at: u32,
    size: u32,
    new_fd: u32,
    new_at: u32,
    new_size: u32,
) -> Outcome {
    let from = name(g, s, rights::PATH_RENAME_SOURCE, fd, at, size)?;
    let to = name(g, s, rights::PATH_RENAME_TARGET, new_fd, new_at, new_size)?;
    Ok(rustix::fs::renameat(
        &*from.directory,
        from.name.as_slice(),
        &*to.directory,
        to.name.as_slice(),
    )?)
}

pub fn path_link(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    lookup: u32,
    at: u32,
    size: u32,
    new_fd: u32,
    new_at: u32,
    new_size: u32,
) -> Outcome {
    let from = place(g, s, rights::PATH_LINK_SOURCE, fd, lookup, at, size)?;
    let to = name(g, s, rights::PATH_LINK_TARGET, new_fd, new_at, new_size);
    let to = to.map_err(|e| {
        // Of two mistakes, the first one counts.
        let from = rustix::fs::statat(&*from.directory, from.name.as_slice(), from.at_flags());
        from.map_or_else(Errno::from, |_| e)
    })?;
    let flags = if from.follow {
        AtFlags::SYMLINK_FOLLOW
    } else {
        AtFlags::empty()
    };
    Ok(rustix::fs::linkat(
        &*from.directory,
        from.name.as_slice(),
        &*to.directory,
        to.name.as_slice(),
        flags,
    )?)
}

/// The target of the link is checked when it is followed; only a target that is always invalid is refused here.
pub fn path_symlink(
    g: &mut Guest,
    s: &mut State,
    target: u32,
    target_size: u32,
    fd: u32,
    at: u32,
    size: u32,
) -> Outcome {
    let p = name(g, s, rights::PATH_SYMLINK, fd, at, size)?;
    let whole = s.wasi.files.directory(fd, rights::PATH_SYMLINK)?.whole;
    let target = g.bytes(target, target_size)?;
    if target.starts_with(b"/") && !whole {
        return Err(Errno::NOTCAPABLE);
    }
    Ok(rustix::fs::symlinkat(
        target,
        &*p.directory,
        p.name.as_slice(),
    )?)
}

/// Writes as much of the link's text as there is room for.
pub fn path_readlink(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    at: u32,
    size: u32,
    to: u32,
    to_size: u32,
    used: u32,
) -> Outcome {
    g.check(to, to_size)?;
    g.check(used, 4)?;
    let p = place(g, s, rights::PATH_READ_LINK, fd, 0, at, size)?;
    let text = rustix::fs::readlinkat(&*p.directory, p.name.as_slice(), Vec::new())?;
    let text = text.to_bytes();
    let part = &text[..text.len().min(to_size as usize)];
    g.put(to, part)?;
    g.put_u32(used, part.len() as u32)
}
