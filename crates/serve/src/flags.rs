//! The flags of meta commands.

use crate::store::{MOST_KEY, Result};
use crate::words::{signed, unsigned, words};

const INVALID: &str = "CLIENT_ERROR invalid flag";
pub(crate) const TOKEN: &str = "CLIENT_ERROR bad token in command line format";

/// What the flags of a command say.
#[derive(Default)]
pub(crate) struct Flags<'a> {
    /// In their order.
    pub all: Vec<(u8, &'a [u8])>,
}

impl<'a> Flags<'a> {
    /// Those that a command knows.
    fn parse(text: &'a [u8], known: &[u8]) -> Result<Flags<'a>, &'static str> {
        let mut flags = Flags::default();
        for word in words(text) {
            let (letter, token) = (word[0], &word[1..]);
            if !known.contains(&letter) {
                return Err(INVALID);
            }
            if flags.has(letter) {
                return Err("CLIENT_ERROR duplicate flag");
            }
            flags.all.push((letter, token));
        }
        Ok(flags)
    }

    pub fn has(&self, letter: u8) -> bool {
        self.all.iter().any(|(l, _)| *l == letter)
    }

    pub fn token(&self, letter: u8) -> Option<&'a [u8]> {
        self.all.iter().find(|(l, _)| *l == letter).map(|(_, t)| *t)
    }

    pub fn signed(&self, letter: u8) -> Result<Option<i64>, &'static str> {
        let token = self.token(letter);
        token.map(|t| signed(t).ok_or(TOKEN)).transpose()
    }

    pub fn unsigned(&self, letter: u8) -> Result<Option<u64>, &'static str> {
        let token = self.token(letter);
        token.map(|t| unsigned(t).ok_or(TOKEN)).transpose()
    }
}

/// A command with its flags understood.
pub(crate) struct Call<'a> {
    pub flags: Flags<'a>,
    /// As the client wrote it.
    pub written: &'a [u8],
    pub key: Vec<u8>,
    pub ttl: Option<i64>,
    /// To be compared with.
    pub cas: Option<u64>,
    pub vivify: Option<i64>,
}

impl<'a> Call<'a> {
    pub fn new(written: &'a [u8], flags: &'a [u8], known: &[u8]) -> Result<Call<'a>, &'static str> {
        let flags = Flags::parse(flags, known)?;
        let key = match flags.has(b'b') {
            true => base64(written).ok_or("CLIENT_ERROR error decoding key")?,
            false => written.to_vec(),
        };
        if key.is_empty() || key.len() > MOST_KEY {
            return Err("CLIENT_ERROR bad command line format");
        }
        Ok(Call {
            ttl: flags.signed(b'T')?,
            cas: flags.unsigned(b'C')?,
            vivify: flags.signed(b'N')?,
            flags,
            written,
            key,
        })
    }

    /// The letters that every answer gives back.
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

    /// An answer of a code, with what every answer has.
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
