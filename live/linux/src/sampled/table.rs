//! Reads the file in which a process under the shim keeps its samples. The process goes on writing meanwhile.

use super::format::{self, HEADER_WORDS, SLOT_WORDS, SLOTS, STACK_BYTES, STACKS};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file of one process.
pub struct SlotTable {
    file: File,
}

/// Its content at one time.
#[derive(Default)]
pub struct TableSnapshot {
    /// Another one after an `exec`.
    pub life: u64,
    /// Addresses of the shim's objects.
    pub range: Range<u64>,
    /// Those with an object, living or not.
    pub slots: Vec<Slot>,
}

/// An object that is or was followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Number of the slot.
    pub number: usize,
    /// Number of the object, from 1.
    pub serial: u64,
    pub state: u64,
    pub address: u64,
    pub bytes: u64,
    /// Bytes that it stands for.
    pub weight: u64,
    /// The program mapped it itself.
    pub mapped: bool,
    /// Registers of the caller: return address, stack pointer, frame pointer.
    pub registers: [u64; 3],
    /// Bytes of its stack that were kept.
    pub copied: u64,
    /// Bytes that the program had asked for at its birth, and at its death.
    pub born: u64,
    pub died: u64,
    /// Its pages that are watched.
    pub pages: Vec<u64>,
}

impl SlotTable {
    /// Opens a file; an error if it is none of samples.
    pub fn open(path: &Path) -> io::Result<SlotTable> {
        let table = SlotTable {
            file: File::open(path)?,
        };
        match table.header()?[0] {
            format::MAGIC => Ok(table),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    fn words(&self, at: usize, count: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * 8];
        self.file.read_exact_at(&mut bytes, at as u64)?;
        let words = bytes.as_chunks().0.iter();
        Ok(words.map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn header(&self) -> io::Result<Vec<u64>> {
        self.words(0, 8)
    }

    /// Its content now. While the process thins its samples, this waits.
    pub fn read(&self) -> io::Result<TableSnapshot> {
        for _ in 0..1000 {
            let before = self.header()?;
            let words = self.words(HEADER_WORDS * 8, SLOTS * SLOT_WORDS)?;
            let after = self.header()?;
            if before[format::CHANGING] != after[format::CHANGING]
                || after[format::CHANGING] % 2 == 1
            {
                std::thread::yield_now();
                continue;
            }
            let slots = words.chunks(SLOT_WORDS).enumerate();
            return Ok(TableSnapshot {
                life: after[format::LIFE],
                range: after[format::RANGE]..after[format::RANGE + 1],
                slots: slots
                    .filter_map(|(number, words)| slot(number, words))
                    .collect(),
            });
        }
        Err(io::Error::from(io::ErrorKind::TimedOut))
    }

    /// The words of the stack that were kept with an object.
    pub fn stack(&self, slot: &Slot) -> io::Result<Vec<u64>> {
        let count = (slot.copied as usize).min(STACK_BYTES) / 8;
        self.words(STACKS + slot.number * STACK_BYTES, count)
    }
}

fn slot(number: usize, words: &[u64]) -> Option<Slot> {
    let pages = (words[format::PAGES] as usize).min(format::WATCHED);
    (words[format::SERIAL] != 0).then(|| Slot {
        number,
        serial: words[format::SERIAL],
        state: words[format::STATE],
        address: words[format::ADDRESS],
        bytes: words[format::BYTES],
        weight: words[format::WEIGHT],
        mapped: words[format::MAPPED] != 0,
        registers: [
            words[format::RETURN],
            words[format::STACK],
            words[format::FRAME],
        ],
        copied: words[format::COPIED],
        born: words[format::BORN],
        died: words[format::DIED],
        pages: words[format::PAGES + 1..][..pages].to_vec(),
    })
}
