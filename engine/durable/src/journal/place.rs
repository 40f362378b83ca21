//! Where a region's journal is: a word in the first sector of the file, and the version beside it. A sector is written as a whole or not at all, so
//! that both change at once.
//!
//! ```text
//! 8     version (u32): 4 while there is a journal, 3 without
//! 64    checksum of the next 28 bytes (u32)   zero (u32)   number of the first transaction (u64)   offset (u64)   bytes (u64)
//! ```

use super::SECTOR;
use crate::layout::{JOURNALED, MAGIC, PAGE, VERSION};

const AT: usize = 64;
const BYTES: usize = 32;

/// A journal's place in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the first transaction that counts.
    pub first: u64,
    /// Its offset: the region's bytes end there. Zero if there is no journal, and `first` is only the next number.
    pub at: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// The contents of the first sector of a region's file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// There is none; numbers go on with this one.
    None(u64),
    At(Place),
    /// There is one, and it cannot be known where.
    Damaged,
}

/// Reads the first sector of a file.
pub(super) fn read(sector: &[u8]) -> Said {
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| sector[at + i]));
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| sector[at + i]));
    if sector.len() < AT + BYTES || sector[..8] != MAGIC {
        return Said::None(1);
    }
    let place = Place {
        first: u64_at(AT + 8),
        at: u64_at(AT + 16),
        bytes: u64_at(AT + 24),
    };
    let whole = u32_at(AT) == crc32c::crc32c(&sector[AT + 4..AT + BYTES]);
    match (u32_at(8), whole) {
        (VERSION | JOURNALED, true) if place.at > 0 && place.at.is_multiple_of(PAGE) => {
            Said::At(place)
        }
        (JOURNALED, _) => Said::Damaged,
        (_, true) => Said::None(place.first.max(1)),
        (_, false) => Said::None(1),
    }
}

/// Writes into a first sector where the journal is.
pub(super) fn write(sector: &mut [u8], place: Place) {
    let version = match place.at {
        0 => VERSION,
        _ => JOURNALED,
    };
    sector[8..12].copy_from_slice(&version.to_le_bytes());
    sector[AT..AT + 8].fill(0);
    sector[AT + 8..AT + 16].copy_from_slice(&place.first.to_le_bytes());
    sector[AT + 16..AT + 24].copy_from_slice(&place.at.to_le_bytes());
    sector[AT + 24..AT + 32].copy_from_slice(&place.bytes.to_le_bytes());
    let sum = crc32c::crc32c(&sector[AT + 4..AT + BYTES]);
    sector[AT..AT + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Has a first sector, of a copy of a region's bytes alone, say that there is no journal.
pub(crate) fn take_off(sector: &mut [u8]) {
    let first = match read(sector) {
        Said::None(_) => return,
        Said::At(place) => place.first,
        Said::Damaged => 1,
    };
    let none = Place {
        first,
        at: 0,
        bytes: 0,
    };
    write(sector, none);
}

const _: () = assert!(AT + BYTES <= SECTOR as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_any_wrong_bit_of_it_is_noticed() {
        let mut sector = [0; SECTOR as usize];
        sector[..8].copy_from_slice(&MAGIC);
        sector[8] = VERSION as u8;
        assert_eq!(read(&sector), Said::None(1));
        let place = Place {
            first: 77,
            at: 1 << 20,
            bytes: 1 << 24,
        };
        write(&mut sector, place);
        assert_eq!(read(&sector), Said::At(place));
        for bit in 8 * AT..8 * (AT + BYTES) {
            let mut flipped = sector;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&flipped), Said::Damaged, "bit {bit}");
        }
        take_off(&mut sector);
        assert_eq!(read(&sector), Said::None(77));
        assert_eq!(sector[8], VERSION as u8);
    }
}
