//! Replays the journal that a crash left: into the file when it is opened, or into a private image when it is inspected.

use super::disk::{Disk, Sync};
use super::place::{self, Place, Said};
use super::{SECTOR, transaction};
use crate::image::Image;
use std::io;

/// The message for a journal whose transactions are not all whole.
const DAMAGED: &str = "the journal is damaged: the last stores are missing";
/// The message for a file whose first sector does not say where its journal is.
const NOWHERE: &str = "the place of the journal is damaged: the last stores are missing";
/// The message for a file that was truncated.
const CUT_OFF: &str = "the file ends in the middle of its journal: the last stores are missing";

/// Brings all whole transactions of a file's journal to their places, and takes the journal off. The file has the bytes of its region alone
/// afterwards, and a crash in between changes nothing. Returns the damage, if any: the file stays unchanged then.
///
/// # Errors
/// The system's error.
pub fn recover(disk: &mut dyn Disk) -> io::Result<Option<&'static str>> {
    let mut sector = [0; SECTOR as usize];
    let len = disk.len()?;
    if len < SECTOR {
        return Ok(None);
    }
    disk.read_at(&mut sector, 0)?;
    let place = match place::read(&sector) {
        Said::None(_) => return Ok(None),
        Said::Damaged => return Ok(Some(NOWHERE)),
        Said::At(place) => place,
    };
    let Some(end) = end_of(place, len) else {
        return Ok(Some(CUT_OFF));
    };
    let journal = read_bytes(disk, place.at, end - place.at)?;
    let found = transaction::read(&journal, place.at, place.first);
    if found.damaged {
        return Ok(Some(DAMAGED));
    }
    write_in_place(disk, &journal, &found)?;
    // Numbers are never used again: the next one may be in a torn transaction.
    let next = place.first.wrapping_add(found.transactions + 1);
    take_off(disk, place.at, next)?;
    Ok(None)
}

/// The same in bytes that are this process's own. Whole transactions are applied even if others are damaged.
pub(crate) fn recover_image(image: &mut Image) -> Option<&'static str> {
    if image.len() < SECTOR {
        return None;
    }
    let mut sector = image.bytes(0, SECTOR);
    let wrong = match place::read(&sector) {
        Said::None(_) => return None,
        Said::Damaged => Some(NOWHERE),
        Said::At(place) => {
            let end = end_of(place, image.len());
            let journal = match place.at < image.len() {
                true => image.bytes(place.at, end.unwrap_or(image.len()) - place.at),
                false => Vec::new(),
            };
            image.forget_from(place.at);
            let found = transaction::read(&journal, place.at, place.first);
            let write = |offset: u64, bytes: &[u8]| -> Result<(), ()> {
                // A file that is cut off may end before the region does.
                if offset + bytes.len() as u64 <= image.len() {
                    image.write(offset, bytes);
                }
                Ok(())
            };
            let _ = transaction::latest(&journal, &found.runs, write);
            sector = image.bytes(0, SECTOR);
            match (end, found.damaged) {
                (None, _) => Some(CUT_OFF),
                (_, true) => Some(DAMAGED),
                _ => None,
            }
        }
    };
    place::take_off(&mut sector);
    image.write(0, &sector);
    wrong
}

/// Where a journal ends, if the file has all of it.
fn end_of(place: Place, len: u64) -> Option<u64> {
    let end = place.at.checked_add(place.bytes);
    end.filter(|&end| end <= len)
}

pub(super) fn read_bytes(disk: &dyn Disk, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = vec![0; bytes as usize];
    disk.read_at(&mut read, at)?;
    Ok(read)
}

/// Writes the changes of transactions to their places, in the medium.
pub(super) fn write_in_place(
    disk: &mut dyn Disk,
    journal: &[u8],
    found: &transaction::Read,
) -> io::Result<()> {
    let write = |offset, bytes: &[u8]| disk.write_at(bytes, offset);
    transaction::latest(journal, &found.runs, write)?;
    disk.sync(Sync::InPlace)
}

/// Writes where the journal is; the medium has it then.
pub(super) fn write_place(disk: &mut dyn Disk, place: Place) -> io::Result<()> {
    let mut sector = [0; SECTOR as usize];
    disk.read_at(&mut sector, 0)?;
    place::write(&mut sector, place);
    disk.write_at(&sector, 0)?;
    disk.sync(Sync::Placed)
}

/// Has a file whose journal is not needed any more be its region alone. Until it is, it says that the region ends at the journal.
pub(super) fn take_off(disk: &mut dyn Disk, region: u64, next: u64) -> io::Result<()> {
    let place = |at| Place {
        first: next,
        at,
        bytes: 0,
    };
    write_place(disk, place(region))?;
    disk.cut(region)?;
    disk.sync(Sync::Length)?;
    write_place(disk, place(0))
}
