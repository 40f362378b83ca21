//! Reads and writes through descriptors, and where in a file they take place.

use super::errno::{Errno, Outcome};
use super::guest::Guest;
use super::moved::Place;
use super::table::{Kind, rights};
use crate::host::State;
use rustix::fs::{Advice, FallocateFlags, SeekFrom};
use rustix::io::retry_on_intr;
use std::num::NonZeroU64;
use varve_access::Kind as Access;

/// Bytes that are put together before a stream takes them.
const MOST_AT_ONCE: usize = 64 << 10;

/// Reads into the first buffer that has room only: a second read might wait although there is something to give.
pub fn fd_read(g: &mut Guest, s: &mut State, fd: u32, list: u32, count: u32, done: u32) -> Outcome {
    let buffer = first_buffer(g, list, count)?;
    g.check(done, 4)?;
    let n = match &s.wasi.files.get(fd, rights::READ)?.kind {
        Kind::Input => s.console.input.read(g.bytes_mut(buffer.0, buffer.1)?)?,
        Kind::File(file) => {
            let place = Place::of(g, file, None);
            let to = g.bytes_mut(buffer.0, buffer.1)?;
            let n = retry_on_intr(|| rustix::io::read(file, &mut *to))?;
            Place::note(place, g, Access::Read, &[buffer], n);
            n
        }
        Kind::Directory(_) => return Err(Errno::ISDIR),
        Kind::Output | Kind::Error => return Err(Errno::BADF),
    };
    g.put_u32(done, n as u32)
}

fn first_buffer(g: &Guest, list: u32, count: u32) -> Outcome<(u32, u32)> {
    let buffers = g.buffers(list, count)?;
    let first = buffers.into_iter().find(|&(_, size)| size > 0);
    Ok(first.unwrap_or((0, 0)))
}

pub fn fd_write(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    list: u32,
    count: u32,
    done: u32,
) -> Outcome {
    let buffers = g.buffers(list, count)?;
    g.check(done, 4)?;
    let from = g.slices(&buffers)?;
    let stream = match &s.wasi.files.get(fd, rights::WRITE)?.kind {
        Kind::File(file) => {
            let place = Place::of(g, file, None);
            let n = retry_on_intr(|| rustix::io::writev(file, &from))?;
            Place::note(place, g, Access::Write, &buffers, n);
            return g.put_u32(done, n as u32);
        }
        Kind::Output => &mut s.console.out,
        Kind::Error => &mut s.console.err,
        Kind::Directory(_) => return Err(Errno::ISDIR),
        Kind::Input => return Err(Errno::BADF),
    };
    let total: usize = from.iter().map(|part| part.len()).sum();
    // Small parts are written at once, as a line of text; large ones as they are: many may be of the same memory, and all of them
    // together more than the host has.
    if total <= MOST_AT_ONCE {
        let bytes: Vec<u8> = from.iter().flat_map(|part| part.iter().copied()).collect();
        stream.bytes(&bytes)?;
    } else {
        for part in from.iter().flat_map(|part| part.chunks(MOST_AT_ONCE)) {
            stream.bytes(part)?;
        }
    }
    g.put_u32(done, total as u32)
}

pub fn fd_pread(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    list: u32,
    count: u32,
    offset: u64,
    done: u32,
) -> Outcome {
    let buffer = first_buffer(g, list, count)?;
    g.check(done, 4)?;
    let file = s.wasi.files.file(fd, rights::READ | rights::SEEK)?;
    let place = Place::of(g, file, Some(offset));
    let to = g.bytes_mut(buffer.0, buffer.1)?;
    let n = retry_on_intr(|| rustix::io::pread(file, &mut *to, offset))?;
    Place::note(place, g, Access::Read, &[buffer], n);
    g.put_u32(done, n as u32)
}

pub fn fd_pwrite(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    list: u32,
    count: u32,
    offset: u64,
    done: u32,
) -> Outcome {
    let buffers = g.buffers(list, count)?;
    g.check(done, 4)?;
    let from = g.slices(&buffers)?;
    let file = s.wasi.files.file(fd, rights::WRITE | rights::SEEK)?;
    let place = Place::of(g, file, Some(offset));
    let n = retry_on_intr(|| rustix::io::pwritev(file, &from, offset))?;
    Place::note(place, g, Access::Write, &buffers, n);
    g.put_u32(done, n as u32)
}

pub fn fd_seek(
    g: &mut Guest,
    s: &mut State,
    fd: u32,
    offset: i64,
    whence: u32,
    position: u32,
) -> Outcome {
    g.check(position, 8)?;
    let to = match whence {
        0 => SeekFrom::Start(u64::try_from(offset).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(offset),
        2 => SeekFrom::End(offset),
        _ => return Err(Errno::INVAL),
    };
    let file = s.wasi.files.file(fd, rights::SEEK)?;
    g.put_u64(position, rustix::fs::seek(file, to)?)
}

pub fn fd_tell(g: &mut Guest, s: &mut State, fd: u32, position: u32) -> Outcome {
    let file = s.wasi.files.file(fd, rights::TELL)?;
    g.put_u64(position, rustix::fs::tell(file)?)
}

pub fn fd_close(_: &mut Guest, s: &mut State, fd: u32) -> Outcome {
    s.wasi.files.close(fd).map(drop)
}

pub fn fd_renumber(_: &mut Guest, s: &mut State, from: u32, to: u32) -> Outcome {
    s.wasi.files.renumber(from, to)
}

pub fn fd_sync(_: &mut Guest, s: &mut State, fd: u32) -> Outcome {
    Ok(rustix::fs::fsync(s.wasi.files.file(fd, rights::SYNC)?)?)
}

pub fn fd_datasync(_: &mut Guest, s: &mut State, fd: u32) -> Outcome {
    let file = s.wasi.files.file(fd, rights::DATASYNC)?;
    Ok(rustix::fs::fdatasync(file)?)
}

pub fn fd_advise(
    _: &mut Guest,
    s: &mut State,
    fd: u32,
    offset: u64,
    size: u64,
    advice: u32,
) -> Outcome {
    let advice = match advice {
        0 => Advice::Normal,
        1 => Advice::Sequential,
        2 => Advice::Random,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => return Err(Errno::INVAL),
    };
    let file = s.wasi.files.file(fd, rights::ADVISE)?;
    Ok(rustix::fs::fadvise(
        file,
        offset,
        NonZeroU64::new(size),
        advice,
    )?)
}

pub fn fd_allocate(_: &mut Guest, s: &mut State, fd: u32, offset: u64, size: u64) -> Outcome {
    let file = s.wasi.files.file(fd, rights::ALLOCATE)?;
    let how = FallocateFlags::empty();
    Ok(retry_on_intr(|| {
        rustix::fs::fallocate(file, how, offset, size)
    })?)
}
