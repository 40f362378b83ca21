//! One transaction in a journal: the lines that changed, with a number and checksums.
//!
//! ```text
//! checksum of the next 28 bytes (u32)   checksum of the body (u32)   number (u64)   offset in the file (u64)   bytes of the body (u64)
//! body: { offset in the region (u64)   bytes (u64)   the bytes } ...
//! ```
//!
//! Checksums are CRC-32C. A transaction begins at a multiple of 512 bytes, with the number after that of the one before. It has its own offset
//! so that bytes of a program which look like one are none.

use super::SECTOR;
use crate::layout::CACHE_LINE;

const HEADER: usize = 32;
const RUN: u64 = 16;

/// Bytes that a transaction with these runs takes in the journal.
pub(super) fn bytes_of(runs: &[(u64, u64)]) -> u64 {
    let body: u64 = runs.iter().map(|(_, bytes)| RUN + bytes).sum();
    (HEADER as u64 + body).next_multiple_of(SECTOR)
}

/// Writes a transaction that is to be at an offset of the file. `copy` adds bytes of the region.
pub(super) fn write(
    into: &mut Vec<u8>,
    number: u64,
    at: u64,
    runs: &[(u64, u64)],
    copy: impl Fn(u64, u64, &mut Vec<u8>),
) {
    into.clear();
    into.resize(HEADER, 0);
    for &(offset, bytes) in runs {
        into.extend(offset.to_le_bytes());
        into.extend(bytes.to_le_bytes());
        copy(offset, bytes, into);
    }
    let body = (into.len() - HEADER) as u64;
    let sum = crc32c::crc32c(&into[HEADER..]);
    into[4..8].copy_from_slice(&sum.to_le_bytes());
    into[8..16].copy_from_slice(&number.to_le_bytes());
    into[16..24].copy_from_slice(&at.to_le_bytes());
    into[24..32].copy_from_slice(&body.to_le_bytes());
    let sum = crc32c::crc32c(&into[4..HEADER]);
    into[..4].copy_from_slice(&sum.to_le_bytes());
    into.resize(into.len().next_multiple_of(SECTOR as usize), 0);
}

/// The contents of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// Changes in their order: the offset in the region, and where the bytes are in the journal.
    pub runs: Vec<(u64, std::ops::Range<usize>)>,
    /// Whole transactions.
    pub transactions: u64,
    /// Whether one is damaged that others follow: it was in the medium before those were begun. Its changes and theirs are missing.
    pub damaged: bool,
}

/// Reads the whole transactions of a journal that is at an offset of the file, of a region that ends there. The first has the number `first`.
pub(super) fn read(journal: &[u8], at: u64, first: u64) -> Read {
    let mut all = Read::default();
    let mut pos = 0;
    loop {
        let number = first.wrapping_add(all.transactions);
        match header(journal, pos, at) {
            Some((found, sum, body)) if found == number => {
                let body = pos + HEADER..pos + HEADER + body;
                if crc32c::crc32c(&journal[body.clone()]) != sum {
                    break;
                }
                let (end, known) = (body.end, all.runs.len());
                if !read_runs(journal, body, at, &mut all.runs) {
                    all.runs.truncate(known);
                    all.damaged = true;
                    return all;
                }
                all.transactions += 1;
                pos = end.next_multiple_of(SECTOR as usize);
            }
            _ => break,
        }
    }
    // A tail that is torn has nothing after it but transactions of before, whose numbers are lower.
    let expected = first.wrapping_add(all.transactions);
    all.damaged = (pos..journal.len())
        .step_by(SECTOR as usize)
        .any(|pos| header(journal, pos, at).is_some_and(|(number, ..)| number > expected));
    all
}

/// The number, the body's checksum and its bytes of a transaction whose header is whole.
fn header(journal: &[u8], pos: usize, at: u64) -> Option<(u64, u32, usize)> {
    let header = journal.get(pos..pos + HEADER)?;
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
    let body = u64_at(24);
    let room = (journal.len() - pos - HEADER) as u64;
    let whole = u64_at(16) == at + pos as u64 && u32_at(0) == crc32c::crc32c(&header[4..]);
    (whole && body <= room).then(|| (u64_at(8), u32_at(4), body as usize))
}

/// Adds the runs of a body, if they make sense.
fn read_runs(
    journal: &[u8],
    body: std::ops::Range<usize>,
    region: u64,
    runs: &mut Vec<(u64, std::ops::Range<usize>)>,
) -> bool {
    let mut pos = body.start;
    while pos < body.end {
        let word = |at: usize| -> Option<u64> {
            let bytes = journal[..body.end].get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        };
        let (Some(offset), Some(bytes)) = (word(pos), word(pos + 8)) else {
            return false;
        };
        let from = pos + RUN as usize;
        let inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= region && bytes <= (body.end - from) as u64);
        let lines = offset.is_multiple_of(CACHE_LINE) && bytes.is_multiple_of(CACHE_LINE);
        if !inside || !lines || bytes == 0 {
            return false;
        }
        pos = from + bytes as usize;
        runs.push((offset, from..pos));
    }
    true
}

/// Calls `write` with the latest bytes of each line that changed, in the order of the file and in pieces as long as can be.
///
/// # Errors
/// Of `write`.
pub(super) fn latest<E>(
    journal: &[u8],
    runs: &[(u64, std::ops::Range<usize>)],
    mut write: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    const LINE: usize = CACHE_LINE as usize;
    let lines = runs.iter().flat_map(|(offset, range)| {
        let places = range.clone().step_by(LINE);
        places
            .enumerate()
            .map(move |(i, from)| (offset + (i * LINE) as u64, from))
    });
    let mut lines: Vec<(u64, usize)> = lines.collect();
    // Stable: of one line's, the last is the latest.
    lines.sort_by_key(|line| line.0);
    let mut piece = Vec::new();
    let mut begin = 0;
    for (i, &(offset, from)) in lines.iter().enumerate() {
        if lines.get(i + 1).is_some_and(|next| next.0 == offset) {
            continue;
        }
        let follows = begin + piece.len() as u64 == offset && piece.len() < MOST_PIECE;
        if !piece.is_empty() && !follows {
            write(begin, &piece)?;
            piece.clear();
        }
        if piece.is_empty() {
            begin = offset;
        }
        piece.extend(&journal[from..from + LINE]);
    }
    match piece.is_empty() {
        true => Ok(()),
        false => write(begin, &piece),
    }
}

/// Bytes that are written at a time.
const MOST_PIECE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 64 << 10;

    /// A journal of transactions that set lines to their number's byte, and where each of them ends.
    fn journal(first: u64, all: &[&[(u64, u64)]]) -> (Vec<u8>, Vec<usize>) {
        let (mut journal, mut one, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (number, runs) in (first..).zip(all) {
            let fill = |_, bytes: u64, into: &mut Vec<u8>| {
                into.resize(into.len() + bytes as usize, number as u8);
            };
            write(&mut one, number, AT + journal.len() as u64, runs, fill);
            assert_eq!(one.len() as u64, bytes_of(runs));
            journal.extend(&one);
            ends.push(journal.len());
        }
        journal.resize(journal.len() + 4096, 0);
        (journal, ends)
    }

    fn applied(journal: &[u8], read: &Read) -> Vec<u8> {
        let mut region = vec![0; AT as usize];
        let write = |offset: u64, bytes: &[u8]| -> Result<(), ()> {
            region[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        };
        latest(journal, &read.runs, write).unwrap();
        region
    }

    #[test]
    fn the_latest_of_each_line_counts() {
        let (journal, _) = journal(5, &[&[(0, 256), (640, 64)], &[(64, 128)], &[(128, 64)]]);
        let found = read(&journal, AT, 5);
        assert_eq!((found.transactions, found.damaged), (3, false));
        let region = applied(&journal, &found);
        let lines: Vec<u8> = region.chunks(64).take(11).map(|line| line[0]).collect();
        assert_eq!(lines, [5, 6, 7, 5, 0, 0, 0, 0, 0, 0, 5]);
        let other = read(&journal, AT, 4);
        assert_eq!((other.transactions, other.damaged), (0, true));
        let later = read(&journal, AT, 9);
        assert_eq!((later.transactions, later.damaged), (0, false));
    }

    /// A bit that is wrong in the last transaction makes it a torn one; in one before it is reported as damage.
    #[test]
    fn every_bit_of_a_transaction_counts() {
        let (journal, ends) = journal(1, &[&[(0, 64)], &[(64, 64), (640, 64)], &[(128, 64)]]);
        let mut from = 0;
        for (i, &end) in ends.iter().enumerate() {
            let used = from + HEADER + [80, 160, 80][i];
            for bit in 8 * from..8 * used {
                let mut flipped = journal.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let found = read(&flipped, AT, 1);
                assert_eq!(found.transactions, i as u64, "bit {bit}");
                assert_eq!(found.damaged, i < 2, "bit {bit}");
            }
            from = end;
        }
    }

    /// Transactions with correct checksums that no journal writes.
    #[test]
    fn runs_that_lead_outside_are_damage() {
        for run in [(AT, 64), (u64::MAX - 63, 64), (32, 64), (0, 0)] {
            let mut journal = Vec::new();
            let fill = |_, bytes: u64, into: &mut Vec<u8>| {
                into.resize(into.len() + bytes as usize, 1);
            };
            write(&mut journal, 1, AT, &[run], fill);
            let found = read(&journal, AT, 1);
            assert_eq!((found.transactions, found.damaged), (0, true), "{run:?}");
            assert!(found.runs.is_empty());
        }
    }
}
