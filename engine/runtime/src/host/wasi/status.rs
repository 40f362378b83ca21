//! Status of files and descriptors: types, sizes, times, flags.

use super::errno::{Errno, Outcome};
use super::guest::Guest;
use super::table::{Entry, Kind, rights};
use crate::host::State;
use rustix::fs::{FileType, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

/// Flags of descriptors.
pub(crate) mod flags {
    pub const APPEND: u32 = 1;
    pub const DATASYNC: u32 = 2;
    pub const NONBLOCK: u32 = 4;
    pub const READ_SYNC: u32 = 8;
    pub const SYNC: u32 = 16;
}

const UNKNOWN: u8 = 0;
const CHARACTER_DEVICE: u8 = 2;

/// The number that WASI gives a type of files.
pub(crate) fn type_number(t: FileType) -> u8 {
    match t {
        FileType::BlockDevice => 1,
        FileType::CharacterDevice => CHARACTER_DEVICE,
        FileType::Directory => 3,
        FileType::RegularFile => 4,
        FileType::Socket => 6,
        FileType::Symlink => 7,
        FileType::Fifo | FileType::Unknown => UNKNOWN,
    }
}

/// A status as it lies in memory. Its times are ns since 1970.
#[allow(clippy::unnecessary_cast)] // the types of the host's fields differ between processors
pub(crate) fn status(of: &Stat) -> [u8; 64] {
    let time = |s: i64, ns: i64| s.wrapping_mul(1_000_000_000).wrapping_add(ns) as u64;
    let mut bytes = [0; 64];
    let numbers = [
        (0, of.st_dev as u64),
        (8, of.st_ino as u64),
        (
            16,
            type_number(FileType::from_raw_mode(of.st_mode as _)) as u64,
        ),
        (24, of.st_nlink as u64),
        (32, of.st_size as u64),
        (40, time(of.st_atime as i64, of.st_atime_nsec as i64)),
        (48, time(of.st_mtime as i64, of.st_mtime_nsec as i64)),
        (56, time(of.st_ctime as i64, of.st_ctime_nsec as i64)),
    ];
    for (at, n) in numbers {
        bytes[at..at + 8].copy_from_slice(&n.to_le_bytes());
    }
    bytes
}

fn stream_type(kind: &Kind, s: &State) -> Option<u8> {
    let terminal = match kind {
        Kind::Input => s.console.input.is_terminal(),
        Kind::Output => s.console.out.terminal,
        Kind::Error => s.console.err.terminal,
        Kind::File(_) | Kind::Directory(_) => return None,
    };
    Some(if terminal { CHARACTER_DEVICE } else { UNKNOWN })
}

pub fn fd_filestat_get(g: &mut Guest, s: &mut State, fd: u32, at: u32) -> Outcome {
    let entry = s.wasi.files.get(fd, rights::STATUS)?;
    let bytes = match &entry.kind {
        Kind::File(f) => status(&rustix::fs::fstat(f)?),
        Kind::Directory(d) => status(&rustix::fs::fstat(&*d.fd)?),
        stream => {
            let mut bytes = [0; 64];
            bytes[16] = stream_type(stream, s).unwrap_or(UNKNOWN);
            bytes
        }
    };
    g.put(at, &bytes)
}

pub fn fd_fdstat_get(g: &mut Guest, s: &mut State, fd: u32, at: u32) -> Outcome {
    let entry = s.wasi.files.any(fd)?;
    let (file_type, flags) = match &entry.kind {
        Kind::File(f) => {
            let mode = rustix::fs::fstat(f)?.st_mode;
            (type_number(FileType::from_raw_mode(mode)), open_flags(f)?)
        }
        Kind::Directory(_) => (type_number(FileType::Directory), 0),
        stream => (stream_type(stream, s).unwrap_or(UNKNOWN), 0),
    };
    let mut bytes = [0; 24];
    bytes[0] = file_type;
    bytes[2..4].copy_from_slice(&(flags as u16).to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.rights.to_le_bytes());
    bytes[16..].copy_from_slice(&entry.inheriting.to_le_bytes());
    g.put(at, &bytes)
}

/// Which of the host's flags stand for which of WASI's; synchronous flags hold those of data alone, and so come first.
const FLAGS: [(u32, OFlags); 5] = [
    (flags::SYNC, OFlags::SYNC),
    (flags::READ_SYNC, OFlags::RSYNC),
    (flags::DATASYNC, OFlags::DSYNC),
    (flags::NONBLOCK, OFlags::NONBLOCK),
    (flags::APPEND, OFlags::APPEND),
];

/// WASI's flags as the host's.
pub(crate) fn host_flags(flags: u32) -> OFlags {
    let set = FLAGS.iter().filter(|(flag, _)| flags & flag != 0);
    set.fold(OFlags::empty(), |all, (_, host)| all | *host)
}

fn open_flags(file: &std::os::fd::OwnedFd) -> Outcome<u32> {
    let host = rustix::fs::fcntl_getfl(file)?;
    let set = FLAGS.iter().filter(|(_, flag)| host.contains(*flag));
    Ok(set.fold(0, |all, (flag, _)| all | flag))
}

/// Appending and waiting can be changed; whether writes are synchronous is settled when a file is opened.
pub fn fd_fdstat_set_flags(_: &mut Guest, s: &mut State, fd: u32, wanted: u32) -> Outcome {
    let entry = s.wasi.files.get(fd, rights::SET_FLAGS)?;
    let Kind::File(file) = &entry.kind else {
        return if wanted == 0 {
            Ok(())
        } else {
            Err(Errno::NOTSUP)
        };
    };
    let changeable = flags::APPEND | flags::NONBLOCK;
    if (open_flags(file)? ^ wanted) & !changeable != 0 {
        return Err(Errno::NOTSUP);
    }
    let old = rustix::fs::fcntl_getfl(file)?;
    let kept = old - OFlags::APPEND - OFlags::NONBLOCK;
    Ok(rustix::fs::fcntl_setfl(
        file,
        kept | host_flags(wanted & changeable),
    )?)
}

/// Rights can be given up, never gained.
pub fn fd_fdstat_set_rights(
    _: &mut Guest,
    s: &mut State,
    fd: u32,
    base: u64,
    inheriting: u64,
) -> Outcome {
    let Entry {
        rights,
        inheriting: heirs,
        ..
    } = s.wasi.files.any_mut(fd)?;
    if base & !*rights != 0 || inheriting & !*heirs != 0 {
        return Err(Errno::NOTCAPABLE);
    }
    (*rights, *heirs) = (base, inheriting);
    Ok(())
}

pub fn fd_filestat_set_size(_: &mut Guest, s: &mut State, fd: u32, size: u64) -> Outcome {
    let file = s.wasi.files.file(fd, rights::SET_SIZE)?;
    Ok(rustix::io::retry_on_intr(|| {
        rustix::fs::ftruncate(file, size)
    })?)
}

pub fn fd_filestat_set_times(
    _: &mut Guest,
    s: &mut State,
    fd: u32,
    accessed: u64,
    modified: u64,
    which: u32,
) -> Outcome {
    let times = times(accessed, modified, which)?;
    match &s.wasi.files.get(fd, rights::SET_TIMES)?.kind {
        Kind::File(f) => Ok(rustix::fs::futimens(f, &times)?),
        Kind::Directory(d) => Ok(rustix::fs::futimens(&*d.fd, &times)?),
        _ => Err(Errno::INVAL),
    }
}

/// Times to set: given, now, or none, by two bits for each.
pub(crate) fn times(accessed: u64, modified: u64, which: u32) -> Outcome<Timestamps> {
    let time = |given: u64, bits: u32| {
        let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        match bits & 3 {
            0 => Ok(special(UTIME_OMIT)),
            1 => Ok(Timespec {
                tv_sec: (given / 1_000_000_000) as _,
                tv_nsec: (given % 1_000_000_000) as _,
            }),
            2 => Ok(special(UTIME_NOW)),
            _ => Err(Errno::INVAL),
        }
    };
    Ok(Timestamps {
        last_access: time(accessed, which)?,
        last_modification: time(modified, which >> 2)?,
    })
}
