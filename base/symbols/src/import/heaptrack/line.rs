//! Lines of heaptrack's files: a letter, and words of bytes. Names are of any bytes.

use std::io::{self, BufRead};

/// Reads a line without its end. `false` at the end of the file. `lengths` says that strings have their lengths before them: one
/// may then go over the end of its line.
pub(super) fn read(
    input: &mut dyn BufRead,
    lengths: bool,
    line: &mut Vec<u8>,
    number: &mut u64,
) -> io::Result<bool> {
    line.clear();
    *number += 1;
    if input.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if lengths && let Some(bytes) = string_end(line) {
        while line.len() <= bytes && input.read_until(b'\n', line)? > 0 {
            *number += 1;
        }
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(true)
}

/// Bytes of a line up to the end of its string, if it has one.
fn string_end(line: &[u8]) -> Option<usize> {
    let rest = line
        .strip_prefix(b"s ")
        .or(line.strip_prefix(b"m "))
        .or(line.strip_prefix(b"x "))?;
    let (length, text) = first_word(rest);
    let length = usize::try_from(hex(length)?).ok()?;
    (line.len() - text.len()).checked_add(length)
}

/// The word before the first blank, and what follows the blank.
pub(super) fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

fn hex(word: &[u8]) -> Option<u64> {
    if !word.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

/// Splits a string off that may have its length before it.
pub(super) fn string(rest: &[u8], has_length: bool) -> Result<(&[u8], &[u8]), String> {
    if !has_length {
        return Ok(first_word(rest));
    }
    let (length, text) = first_word(rest);
    if length.len() == rest.len() {
        return Err("a string is missing".into());
    }
    let bytes = hex(length).and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| format!("`{}` is no length", shown(length)))?;
    let (text, rest) = text
        .split_at_checked(bytes)
        .ok_or_else(|| format!("the string is shorter than {} bytes", shown(length)))?;
    match rest {
        [] | [b'\r'] => Ok((text, &[])),
        [b' ', rest @ ..] => Ok((text, rest)),
        _ => Err(format!("the string is longer than {} bytes", shown(length))),
    }
}

/// As text: what is no UTF-8 is replaced.
pub(super) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Hexadecimal numbers of a line.
pub(super) struct Words<'a>(pub &'a [u8]);

impl Words<'_> {
    pub fn maybe(&mut self) -> Result<Option<u64>, String> {
        self.0 = self.0.trim_ascii_start();
        if self.0.is_empty() {
            return Ok(None);
        }
        let is_blank = |byte: &u8| byte.is_ascii_whitespace();
        let end = self.0.iter().position(is_blank).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        hex(word)
            .map(Some)
            .ok_or_else(|| format!("`{}` is no hexadecimal number", shown(word)))
    }

    pub fn number(&mut self) -> Result<u64, String> {
        self.maybe()?.ok_or_else(|| "a number is missing".into())
    }
}
