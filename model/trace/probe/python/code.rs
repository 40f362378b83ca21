//! A code object: the function that it is, its file, and which lines its instructions are of.

use super::layout::Layout;
use super::{MOST_BYTES, Memory, word_in};

/// Longer names are cut, and longer tables of lines are not read.
const MOST_LETTERS: usize = 512;
const MOST_TABLE: usize = 1 << 20;

/// A code object as far as it takes to see whether another one is at its address now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    file: u64,
    name: u64,
    lines: u64,
    pub first_line: u32,
}

/// Its names, and its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeObject {
    pub file: String,
    pub name: String,
    pub lines: LineTable,
}

/// Lines of instructions: each range's end, in instructions, and its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineTable(Vec<(u32, u32)>);

/// What is at the address of a code object.
pub fn identity(layout: &Layout, at: u64, memory: &mut impl Memory) -> Option<Identity> {
    let mut piece = [0; MOST_BYTES];
    let bytes = piece.get_mut(..layout.instructions as usize)?;
    if at == 0 || !memory.read(at, bytes) {
        return None;
    }
    Some(Identity {
        file: word_in(bytes, layout.file)?,
        name: word_in(bytes, layout.name)?,
        lines: word_in(bytes, layout.lines)?,
        first_line: word_in(bytes, layout.first_line)? as u32,
    })
}

impl CodeObject {
    /// Reads it. `None` if it is none.
    pub fn read(
        layout: &Layout,
        identity: &Identity,
        memory: &mut impl Memory,
    ) -> Option<CodeObject> {
        Some(CodeObject {
            file: text(layout, identity.file, memory)?,
            name: text(layout, identity.name, memory)?,
            lines: LineTable::of(&bytes(identity.lines, memory)?, identity.first_line),
        })
    }
}

/// A `bytes` object.
fn bytes(at: u64, memory: &mut impl Memory) -> Option<Vec<u8>> {
    let count = memory.word(at.checked_add(16)?)?;
    let count = usize::try_from(count).ok().filter(|&n| n <= MOST_TABLE)?;
    let mut bytes = vec![0; count];
    memory
        .read(at.checked_add(32)?, &mut bytes)
        .then_some(bytes)
}

/// A `str` object, whose characters have one, two or four bytes each.
fn text(layout: &Layout, at: u64, memory: &mut impl Memory) -> Option<String> {
    let letters = memory.word(at.checked_add(16)?)?;
    let state = memory.word(at.checked_add(32)?)?;
    let letters = usize::try_from(letters).ok()?.min(MOST_LETTERS);
    let (width, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
    if is_compact == 0 || !matches!(width, 1 | 2 | 4) {
        return None;
    }
    // One that is not ASCII has two words more before its characters, three up to 3.11.
    let more = match (is_ascii, layout.ascii) {
        (1, _) => 0,
        (_, 48) => 24,
        _ => 16,
    };
    let mut bytes = vec![0; letters * width as usize];
    if !memory.read(at.checked_add(layout.ascii + more)?, &mut bytes) {
        return None;
    }
    let letters = bytes.chunks_exact(width as usize).map(|letter| {
        let mut all = [0; 4];
        all[..letter.len()].copy_from_slice(letter);
        let letter = char::from_u32(u32::from_le_bytes(all));
        letter.filter(|c| !c.is_control()).unwrap_or('?')
    });
    Some(letters.collect())
}

impl LineTable {
    /// Reads a table of places (`Objects/locations.md`), of code that begins in a line.
    pub fn of(table: &[u8], first_line: u32) -> LineTable {
        let mut lines = Vec::new();
        let (mut at, mut end, mut line) = (0, 0u32, i64::from(first_line));
        while let Some(&head) = table.get(at) {
            at += 1;
            end += u32::from(head & 7) + 1;
            let kind = head >> 3 & 15;
            let mut known = line;
            match kind {
                // one byte, for columns of the same line
                0..=9 => at += 1,
                // columns of this line, or of one of the next two
                10..=12 => {
                    line += i64::from(kind - 10);
                    (known, at) = (line, at + 2);
                }
                13 => {
                    line = line.saturating_add(signed(varint(table, &mut at)));
                    known = line;
                }
                14 => {
                    line = line.saturating_add(signed(varint(table, &mut at)));
                    known = line;
                    for _ in 0..3 {
                        varint(table, &mut at);
                    }
                }
                // of no line
                _ => known = 0,
            }
            lines.push((end, u32::try_from(known).unwrap_or(0)));
        }
        LineTable(lines)
    }

    /// The line of an instruction; 0 if it has none.
    pub fn line(&self, instruction: u32) -> u32 {
        let at = self.0.partition_point(|&(end, _)| end <= instruction);
        self.0.get(at).map_or(0, |&(_, line)| line)
    }
}

/// A number in pieces of six bits, the lowest first.
fn varint(table: &[u8], at: &mut usize) -> u64 {
    let (mut number, mut shift) = (0u64, 0);
    while let Some(&byte) = table.get(*at) {
        *at += 1;
        number |= u64::from(byte & 63).checked_shl(shift).unwrap_or(0);
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
    }
    number
}

/// The lowest bit is the sign.
fn signed(number: u64) -> i64 {
    let size = (number >> 1) as i64;
    if number & 1 == 1 { -size } else { size }
}
