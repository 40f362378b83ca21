//! Directories: those opened in advance, and their entries.

use super::errno::{Errno, Outcome};
use super::guest::Guest;
use super::status::type_number;
use super::table::{Directory, Kind, Listed, rights};
use crate::host::State;

fn preopened(s: &State, fd: u32) -> Outcome<&[u8]> {
    match &s.wasi.files.any(fd)?.kind {
        Kind::Directory(Directory {
            preopened: Some(name),
            ..
        }) => Ok(name),
        _ => Err(Errno::BADF),
    }
}

pub fn fd_prestat_get(g: &mut Guest, s: &mut State, fd: u32, at: u32) -> Outcome {
    let size = preopened(s, fd)?.len() as u64;
    // The first half says that it is a directory: there is nothing else.
    g.put_u64(at, size << 32)
}

pub fn fd_prestat_dir_name(g: &mut Guest, s: &mut State, fd: u32, at: u32, size: u32) -> Outcome {
    let name = preopened(s, fd)?;
    if (size as usize) < name.len() {
        return Err(Errno::NAMETOOLONG);
    }
    g.put(at, name)
}

/// Writes entries until the buffer is full: the last one may be cut off. The cookie of an entry is its number.
pub fn fd_readdir(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    at: u32,
    size: u32,
    cookie: u64,
    used: u32,
) -> Outcome {
    g.check(used, 4)?;
    let to = g.bytes_mut(at, size)?;
    s.wasi.files.directory(fd, rights::READ_DIRECTORY)?;
    let Kind::Directory(directory) = &mut s.wasi.files.any_mut(fd)?.kind else {
        return Err(Errno::NOTDIR);
    };
    if cookie == 0 || directory.listing.is_empty() {
        directory.listing = list(directory)?;
    }
    let mut filled = 0;
    let first = usize::try_from(cookie).unwrap_or(usize::MAX);
    for (i, listed) in directory.listing.iter().enumerate().skip(first) {
        let entry = entry(listed, i as u64 + 1);
        let part = entry.len().min(to.len() - filled);
        to[filled..filled + part].copy_from_slice(&entry[..part]);
        filled += part;
        if part < entry.len() {
            break;
        }
    }
    g.put_u32(used, filled as u32)
}

fn entry(of: &Listed, next: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24 + of.name.len());
    bytes.extend_from_slice(&next.to_le_bytes());
    bytes.extend_from_slice(&of.inode.to_le_bytes());
    bytes.extend_from_slice(&(of.name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[of.file_type, 0, 0, 0]);
    bytes.extend_from_slice(&of.name);
    bytes
}

fn list(directory: &Directory) -> Outcome<Vec<Listed>> {
    let mut all = Vec::new();
    for entry in rustix::fs::Dir::read_from(&*directory.fd)? {
        let entry = entry?;
        all.push(Listed {
            inode: entry.ino(),
            file_type: type_number(entry.file_type()),
            name: entry.file_name().to_bytes().to_vec(),
        });
    }
    Ok(all)
}
