//! Copies between files and the program's memory, for a model of a machine: the system copies it from or to its cache of files.

use super::guest::Guest;
use crate::store::observe::Moved;
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use std::os::fd::OwnedFd;
use varve_access::Kind;

/// A place in a file at which a copy begins.
#[derive(Clone, Copy)]
pub struct Place {
    file: (u64, u64),
    offset: u64,
}

impl Place {
    /// Where the descriptor stands, or at the offset given. None if the program is not observed, or if it is no file that the system keeps in
    /// its cache: a pipe, a terminal.
    pub fn of(g: &Guest, file: &OwnedFd, offset: Option<u64>) -> Option<Place> {
        g.moved.as_ref()?;
        let status = fstat(file).ok()?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return None;
        }
        Some(Place {
            file: (status.st_dev, status.st_ino),
            offset: match offset {
                Some(offset) => offset,
                None => seek(file, SeekFrom::Current(0)).ok()?,
            },
        })
    }

    /// Records a copy from there, or to there, by buffers of the program's memory.
    pub fn note(
        place: Option<Place>,
        g: &mut Guest,
        kind: Kind,
        buffers: &[(u32, u32)],
        bytes: usize,
    ) {
        let (Some(mut place), Some(moved)) = (place, &mut g.moved) else {
            return;
        };
        let mut left = bytes as u64;
        for &(at, size) in buffers {
            let bytes = u64::from(size).min(left);
            if bytes > 0 {
                let (file, offset, at) = (place.file, place.offset, u64::from(at));
                moved.push(Moved {
                    file,
                    offset,
                    at,
                    bytes,
                    kind,
                });
            }
            place.offset += bytes;
            left -= bytes;
        }
    }
}
