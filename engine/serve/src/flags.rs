//! The flags of meta commands.

use crate::store::{MOST_KEY, Result};
use crate::words::{FORMAT, signed, unsigned, words};
use std::borrow::Cow;

const INVALID: &str = "CLIENT_ERROR invalid flag";
const DUPLICATE: &str = "CLIENT_ERROR duplicate flag";
const TOKEN: &str = "CLIENT_ERROR bad token in command line format";
/// Most flags of a command, and most bytes of an opaque with its letter, as memcached has it.
const MOST_FLAGS: usize = 17;
const MOST_OPAQUE: usize = 32;

/// The parsed flags of a command.
#[derive(Default)]
pub(crate) struct Flags<'a> {
    /// In their order.
    pub all: Vec<(u8, &'a [u8])>,
}

impl<'a> Flags<'a> {
    /// All flags that any command knows: those that mean nothing to one are let through, as memcached has it, but their tokens must be right.
    fn parse(text: &'a [u8]) -> Result<Flags<'a>, &'static str> {
        let mut flags = Flags::default();
        let mut wrong = None;
        for word in words(text) {
            let (letter, token) = (word[0], &word[1..]);
            if flags.has(letter) || letter >= 127 {
                return Err(DUPLICATE);
            }
            let right = match letter {
                b'N' | b'T' | b'R' => signed(token).is_some(),
                b'C' | b'E' | b'D' | b'J' => unsigned(token).is_some(),
                b'F' => unsigned(token).is_some_and(|flags| u32::try_from(flags).is_ok()),
                b'M' => token.len() == 1,
                b'O' => word.len() <= MOST_OPAQUE,
                b'b' | b'c' | b'f' | b'h' | b'I' | b'k' | b'L' | b'l' | b'P' | b'q' | b's'
                | b't' | b'u' | b'v' | b'x' => true,
                _ => return Err(INVALID),
            };
            if !right {
                wrong = Some(match letter {
                    b'D' => "CLIENT_ERROR invalid numeric delta value",
                    b'J' => "CLIENT_ERROR invalid numeric initial value",
                    b'M' => "CLIENT_ERROR incorrect length for M token",
                    b'O' => "CLIENT_ERROR opaque token too long",
                    b'F' => wrong.unwrap_or(FORMAT),
                    _ => TOKEN,
                });
            }
            flags.all.push((letter, token));
        }
        if flags.all.len() > MOST_FLAGS {
            return Err("CLIENT_ERROR options flags are too long");
        }
        wrong.map_or(Ok(flags), Err)
    }

    pub fn has(&self, letter: u8) -> bool {
        self.all.iter().any(|(l, _)| *l == letter)
    }

    /// Whether a flag stands before another.
    pub fn is_before(&self, letter: u8, other: u8) -> bool {
        let mut letters = self.all.iter().map(|(l, _)| *l);
        letters.find(|&l| l == letter || l == other) == Some(letter)
    }

    pub fn token(&self, letter: u8) -> Option<&'a [u8]> {
        self.all.iter().find(|(l, _)| *l == letter).map(|(_, t)| *t)
    }

    fn signed(&self, letter: u8) -> Option<i64> {
        self.token(letter).and_then(signed)
    }

    pub fn unsigned(&self, letter: u8) -> Option<u64> {
        self.token(letter).and_then(unsigned)
    }

    /// The letter of `M`.
    pub fn mode(&self) -> Option<u8> {
        self.token(b'M').map(|token| token[0])
    }
}

/// A command with its flags understood.
pub(crate) struct Call<'a> {
    pub flags: Flags<'a>,
    /// As the client wrote it.
    pub written: &'a [u8],
    pub key: Cow<'a, [u8]>,
    pub ttl: Option<i64>,
    /// To be compared with.
    pub cas: Option<u64>,
    /// For the stored value.
    pub unique: Option<u64>,
    pub vivify: Option<i64>,
    /// How long before its end a value is to be replaced.
    pub recache: Option<i64>,
}

impl<'a> Call<'a> {
    pub fn new(written: &'a [u8], text: &'a [u8]) -> Result<Call<'a>, &'static str> {
        let flags = Flags::parse(text)?;
        Ok(Call {
            key: stored_key(written, text)?,
            ttl: flags.signed(b'T'),
            cas: flags.unsigned(b'C'),
            unique: flags.unsigned(b'E'),
            vivify: flags.signed(b'N'),
            recache: flags.signed(b'R'),
            flags,
            written,
        })
    }

    /// The letters that every answer echoes.
    pub fn echo(&self, letter: u8, token: &[u8], out: &mut Vec<u8>) {
        match letter {
            b'O' => {
                out.extend_from_slice(b" O");
                out.extend_from_slice(token);
            }
            b'k' => {
                out.extend_from_slice(b" k");
                out.extend_from_slice(self.written);
                if self.flags.has(b'b') {
                    out.extend_from_slice(b" b");
                }
            }
            _ => {}
        }
    }

    /// An answer with a code, and the flags that every answer has.
    pub fn code(&self, code: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(code.as_bytes());
        for &(letter, token) in &self.flags.all {
            self.echo(letter, token, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    pub fn quiet(&self) -> bool {
        self.flags.has(b'q')
    }
}

/// The key that a client means, by its flags.
pub(crate) fn stored_key<'a>(
    written: &'a [u8],
    flags: &[u8],
) -> Result<Cow<'a, [u8]>, &'static str> {
    let key = match words(flags).any(|flag| flag[0] == b'b') {
        true => Cow::Owned(base64(written).ok_or("CLIENT_ERROR error decoding key")?),
        false => Cow::Borrowed(written),
    };
    match key.is_empty() || key.len() > MOST_KEY {
        true => Err(FORMAT),
        false => Ok(key),
    }
}

/// The bytes that a text in base 64 stands for.
pub(crate) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = match text {
        [digits @ .., b'=', b'='] | [digits @ .., b'='] => digits,
        digits => digits,
    };
    if !text.len().is_multiple_of(4) || digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for &digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}
