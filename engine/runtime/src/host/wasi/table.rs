//! Descriptors: the program's open files, and its rights to them.

use super::errno::{Errno, Outcome};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Rights, by the numbers that WASI gives them.
pub(crate) mod rights {
    pub const DATASYNC: u64 = 1 << 0;
    pub const READ: u64 = 1 << 1;
    pub const SEEK: u64 = 1 << 2;
    pub const SET_FLAGS: u64 = 1 << 3;
    pub const SYNC: u64 = 1 << 4;
    pub const TELL: u64 = 1 << 5;
    pub const WRITE: u64 = 1 << 6;
    pub const ADVISE: u64 = 1 << 7;
    pub const ALLOCATE: u64 = 1 << 8;
    pub const PATH_CREATE_DIRECTORY: u64 = 1 << 9;
    pub const PATH_CREATE_FILE: u64 = 1 << 10;
    pub const PATH_LINK_SOURCE: u64 = 1 << 11;
    pub const PATH_LINK_TARGET: u64 = 1 << 12;
    pub const PATH_OPEN: u64 = 1 << 13;
    pub const READ_DIRECTORY: u64 = 1 << 14;
    pub const PATH_READ_LINK: u64 = 1 << 15;
    pub const PATH_RENAME_SOURCE: u64 = 1 << 16;
    pub const PATH_RENAME_TARGET: u64 = 1 << 17;
    pub const PATH_STATUS: u64 = 1 << 18;
    pub const PATH_SET_SIZE: u64 = 1 << 19;
    pub const PATH_SET_TIMES: u64 = 1 << 20;
    pub const STATUS: u64 = 1 << 21;
    pub const SET_SIZE: u64 = 1 << 22;
    pub const SET_TIMES: u64 = 1 << 23;
    pub const PATH_SYMLINK: u64 = 1 << 24;
    pub const PATH_REMOVE_DIRECTORY: u64 = 1 << 25;
    pub const PATH_UNLINK_FILE: u64 = 1 << 26;
    pub const POLL: u64 = 1 << 27;
    /// All there are, with those of sockets.
    pub const ALL: u64 = (1 << 30) - 1;
    /// The rights that open a file for writing.
    pub const WRITING: u64 = WRITE | ALLOCATE | SET_SIZE;
    /// Those that mean something for a directory itself: it has no position, no size, and is never written to.
    pub const OF_DIRECTORY: u64 = ALL & !(WRITING | SEEK | TELL);
    /// The rights that no descriptor has in a read-only folder.
    pub const CHANGING: u64 = WRITING
        | SET_TIMES
        | PATH_CREATE_DIRECTORY
        | PATH_CREATE_FILE
        | PATH_LINK_SOURCE
        | PATH_LINK_TARGET
        | PATH_RENAME_SOURCE
        | PATH_RENAME_TARGET
        | PATH_SET_SIZE
        | PATH_SET_TIMES
        | PATH_SYMLINK
        | PATH_REMOVE_DIRECTORY
        | PATH_UNLINK_FILE;
}

pub(crate) enum Kind {
    Input,
    Output,
    Error,
    File(OwnedFd),
    Directory(Directory),
}

pub(crate) struct Directory {
    pub fd: Arc<OwnedFd>,
    /// It is, or is below, the root of the host's files, opened in advance: then no path leads out of the program's files.
    pub whole: bool,
    /// Its name for the program, if it was opened in advance.
    pub preopened: Option<Vec<u8>>,
    /// The listing that `fd_readdir` returns: the names as they were when its first page was read.
    pub listing: Vec<Listed>,
}

/// A name in a directory.
pub(crate) struct Listed {
    pub inode: u64,
    pub file_type: u8,
    pub name: Vec<u8>,
}

pub(crate) struct Entry {
    pub kind: Kind,
    pub rights: u64,
    /// Rights of descriptors that are opened through this.
    pub inheriting: u64,
    /// It is, or is below, a folder that is only to be read. Programs ask for more rights than they use, so these are not taken
    /// away: their use is refused.
    pub read_only: bool,
}

impl Entry {
    pub fn may(&self, right: u64) -> Outcome {
        if self.read_only && right & rights::CHANGING != 0 {
            return Err(Errno::ROFS);
        }
        if self.rights & right == right {
            Ok(())
        } else {
            Err(Errno::NOTCAPABLE)
        }
    }
}

/// Descriptors that a program may have, as on most systems.
const MOST_OPEN: usize = 1024;

pub(crate) struct Table(Vec<Option<Entry>>);

impl Table {
    /// The three standard streams.
    pub fn new() -> Table {
        let stream = |kind, rights| {
            Some(Entry {
                kind,
                rights: rights | rights::STATUS | rights::POLL | rights::SET_FLAGS,
                inheriting: 0,
                read_only: false,
            })
        };
        Table(vec![
            stream(Kind::Input, rights::READ),
            stream(Kind::Output, rights::WRITE),
            stream(Kind::Error, rights::WRITE),
        ])
    }

    /// The lowest free number: for [`Table::put`], once there is something to put there.
    pub fn free(&self) -> Outcome<u32> {
        let free = self.0.iter().position(Option::is_none);
        match free.unwrap_or(self.0.len()) {
            n if n < MOST_OPEN => Ok(n as u32),
            _ => Err(Errno::MFILE),
        }
    }

    /// Gives a free number its meaning.
    pub fn put(&mut self, free: u32, entry: Entry) {
        let free = free as usize;
        if free == self.0.len() {
            self.0.push(None);
        }
        self.0[free] = Some(entry);
    }

    pub fn any(&self, fd: u32) -> Outcome<&Entry> {
        let entry = self.0.get(fd as usize).and_then(Option::as_ref);
        entry.ok_or(Errno::BADF)
    }

    pub fn any_mut(&mut self, fd: u32) -> Outcome<&mut Entry> {
        let entry = self.0.get_mut(fd as usize).and_then(Option::as_mut);
        entry.ok_or(Errno::BADF)
    }

    pub fn get(&self, fd: u32, right: u64) -> Outcome<&Entry> {
        let entry = self.any(fd)?;
        entry.may(right)?;
        Ok(entry)
    }

    /// A file; streams have no position, no size and nothing to keep.
    pub fn file(&self, fd: u32, right: u64) -> Outcome<&OwnedFd> {
        let entry = self.any(fd)?;
        match &entry.kind {
            Kind::File(file) => entry.may(right).map(|()| file),
            Kind::Directory(_) => Err(Errno::ISDIR),
            Kind::Input | Kind::Output | Kind::Error => Err(Errno::SPIPE),
        }
    }

    pub fn directory(&self, fd: u32, right: u64) -> Outcome<&Directory> {
        let entry = self.any(fd)?;
        match &entry.kind {
            Kind::Directory(d) => entry.may(right).map(|()| d),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub fn close(&mut self, fd: u32) -> Outcome<Entry> {
        let entry = self.0.get_mut(fd as usize).and_then(Option::take);
        entry.ok_or(Errno::BADF)
    }

    /// Moves a descriptor onto another, which is closed.
    pub fn renumber(&mut self, from: u32, to: u32) -> Outcome {
        self.any(to)?;
        let entry = self.close(from)?;
        self.0[to as usize] = Some(entry);
        Ok(())
    }
}
