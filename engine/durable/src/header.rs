//! The beginning of a region file: its magic number, where its tables are, how it was closed.

use crate::image::Image;
use crate::layout::*;
use crate::types::Tables;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;
use varve_heap::ObjectAlign;

/// The state of a region that changes while it is in use, apart from objects. Two records are written in turn; the later valid one counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Counts records.
    pub number: u64,
    /// Bytes of the tables.
    pub tables: u64,
    /// Checksum of the tables.
    pub tables_sum: u32,
    /// How often the region was opened for writing.
    pub opened: u64,
    /// Whether it was closed in order since.
    pub closed: bool,
    /// The medium that it was open on.
    pub domain: String,
    /// Bytes of live objects that the last walk found.
    #[serde(default)]
    pub alive: u64,
    /// The offset up to which records are whole.
    #[serde(default)]
    pub records: u64,
    /// The file that it was opened in; none in older regions, and in those that are no files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileId>,
}

/// Which file of its file system a file is. It stays the same when the file gets another name, and when the system is started again, and a copy
/// of the file is another one. The number of the device is none of it: that may be another one after a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// Its number, which another file has once it is removed.
    pub inode: u64,
    /// When it was made, in nanoseconds of the Unix epoch, where the file system keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<u64>,
}

impl FileId {
    /// Of a file.
    pub(crate) fn of(file: &File) -> Option<FileId> {
        let metadata = file.metadata().ok()?;
        let born = metadata.created().ok();
        let born = born.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        Some(FileId {
            inode: metadata.ino(),
            born: born.map(|t| t.as_nanos() as u64),
        })
    }
}

impl Commit {
    /// Whether this was read from another file than the one that the region was in when it was open, and not closed since: a copy that was
    /// made while it was open, or after a crash.
    pub(crate) fn is_of_copy(&self, file: &File) -> bool {
        let (Some(then), Some(now)) = (self.file, FileId::of(file)) else {
            return false;
        };
        let other_birth = then.born.is_some() && now.born.is_some() && then.born != now.born;
        !self.closed && (then.inode != now.inode || other_birth)
    }
}

/// The beginning of a region: all that is needed to read the rest of the file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The version of its format.
    pub version: u32,
    /// The commit record that counts.
    pub commit: Commit,
    /// Types and constants.
    pub tables: Tables,
    /// The offset of the first object.
    pub first: u64,
    /// The alignment of objects.
    pub align: ObjectAlign,
    /// Whether one of the two copies of the tables is damaged.
    pub half_tables: bool,
}

/// A record: checksum, length, JSON.
pub(crate) fn record(bytes: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(8 + bytes.len());
    record.extend(crc32fast::hash(bytes).to_le_bytes());
    record.extend((bytes.len() as u32).to_le_bytes());
    record.extend(bytes);
    record
}

/// The bytes of the record at an offset that has `room`, if it is whole.
pub(crate) fn read_record(image: &Image, offset: u64, room: u64) -> Option<Vec<u8>> {
    if offset + room > image.len() || room < 8 {
        return None;
    }
    let (sum, bytes) = (image.u32(offset), u64::from(image.u32(offset + 4)));
    if bytes == 0 || bytes > room - 8 {
        return None;
    }
    let bytes = image.bytes(offset + 8, bytes);
    (crc32fast::hash(&bytes) == sum).then_some(bytes)
}

/// Why the beginning of a file is none of a region.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is something else.
    Foreign,
    /// It has this version.
    Version(u32),
    /// It is damaged.
    Damaged(String),
}

/// The place of a commit record, by its number.
pub(crate) fn commit_place(number: u64) -> u64 {
    COMMITS + number % 2 * COMMIT_STRIDE
}

/// Reads the beginning of a region.
///
/// # Errors
/// If it is none.
pub fn read(image: &Image) -> Result<Header, Unreadable> {
    if image.len() < 16 || image.bytes(0, 8) != MAGIC {
        return Err(Unreadable::Foreign);
    }
    let version = image.u32(8);
    let at = match version {
        VERSION => TABLES,
        2 => TABLES_2,
        other => return Err(Unreadable::Version(other)),
    };
    let damaged = |what: String| Unreadable::Damaged(what);
    if image.len() < at + GROWTH {
        return Err(damaged(format!(
            "it ends after {} bytes, in the middle of its header",
            image.len()
        )));
    }
    let align = match version {
        2 => Some(ObjectAlign::LEAST),
        _ => ObjectAlign::of_shift(image.u32(ALIGN_SHIFT)),
    };
    let Some(align) = align else {
        return Err(damaged("the alignment of objects is invalid".into()));
    };
    let mut commits: Vec<Commit> = (0..2)
        .filter_map(|slot| read_record(image, commit_place(slot), COMMIT_STRIDE))
        .filter_map(|bytes| serde_json::from_slice(&bytes).ok())
        .collect();
    commits.sort_by_key(|commit| std::cmp::Reverse(commit.number));
    if commits.is_empty() {
        return Err(damaged("neither commit record is valid".into()));
    }
    // The record before may be for other tables: it is not asked.
    let commit = commits.swap_remove(0);
    let copies = match version {
        2 => 1,
        _ => 2,
    };
    let room = tables_room(commit.tables);
    if room
        .checked_mul(copies)
        .and_then(|bytes| bytes.checked_add(at))
        .is_none_or(|end| end > image.len())
    {
        return Err(damaged("the file ends in the middle of its tables".into()));
    }
    let whole: Vec<Vec<u8>> = (0..copies)
        .map(|copy| image.bytes(at + copy * room, commit.tables))
        .filter(|bytes| crc32fast::hash(bytes) == commit.tables_sum)
        .collect();
    let Some(bytes) = whole.first() else {
        return Err(damaged("the tables' checksum is wrong".into()));
    };
    let tables: Tables = serde_json::from_slice(bytes)
        .map_err(|e| damaged(format!("the tables do not read: {e}")))?;
    if let Some(what) = tables.broken() {
        return Err(damaged(format!("the tables are invalid: {what}")));
    }
    Ok(Header {
        version,
        first: match version {
            2 => objects_after_2(commit.tables),
            _ => objects_after(commit.tables),
        },
        align,
        half_tables: whole.len() < copies as usize,
        commit,
        tables,
    })
}
