//! A copy of `/proc/PID/maps`.
//!
//! ```text
//! 7f5c00000000-7f5c00021000 rw-p 00000000 00:00 0                  [heap]
//! 7f5c00200000-7f5c00201000 r--p 00001000 fe:01 1234               /usr/bin/a name (deleted)
//! ```
//!
//! A name is all that follows the fifth word and its blanks. It has any bytes; a newline is written as `\\012`, and a backslash as
//! itself. Memory without a name has none.

use super::Mapping;
use crate::import::ImportError;

/// Reads all lines. `file` is named in errors.
pub(super) fn read(file: &str, text: &[u8]) -> Result<Vec<Mapping>, ImportError> {
    let lines = text.split(|byte| *byte == b'\n').zip(1..);
    let lines = lines.map(|(line, number)| (line.strip_suffix(b"\r").unwrap_or(line), number));
    let told = lines.filter(|(line, _)| !line.trim_ascii().is_empty());
    let mappings = told.map(|(line, number)| {
        mapping(line).ok_or_else(|| ImportError::Line {
            file: file.into(),
            line: number,
            what: "no mapping as in /proc/PID/maps".into(),
        })
    });
    mappings.collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let mut word = || words.next().and_then(|word| std::str::from_utf8(word).ok());
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let rights = word()?.to_owned();
    let offset = Some(hex(word()?)?);
    let (_device, _inode) = (word()?, word()?);
    let name = words.next().unwrap_or_default().trim_ascii_start();
    let is_one = start < end && rights.len() == 4;
    is_one.then(|| Mapping {
        range: start..end,
        rights,
        offset,
        name: with_newlines(name),
    })
}

/// A name with its newlines.
fn with_newlines(name: &[u8]) -> Vec<u8> {
    let mut rest = name;
    let mut found = Vec::with_capacity(name.len());
    while let Some((&first, after)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(after) => {
                found.push(b'\n');
                rest = after;
            }
            None => {
                found.push(first);
                rest = after;
            }
        }
    }
    found
}
