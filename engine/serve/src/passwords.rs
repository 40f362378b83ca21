//! Authorized users of a server: names with passwords, from a file.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most names, so that a search stays cheap.
const MOST_NAMES: usize = 64;

/// Names with their passwords.
pub struct Passwords {
    /// Each as clients send it: name, blank, password.
    known: Vec<Vec<u8>>,
    asked: AtomicU64,
    refused: AtomicU64,
}

impl Passwords {
    /// Most bytes that a client may send to authenticate.
    pub const MOST: usize = 1024;

    /// Understands lines of `name:password`; empty ones and those that begin with `#` are none.
    ///
    /// # Errors
    /// The line that is wrong, and why. Passwords are not repeated.
    pub fn parse(text: &str) -> Result<Passwords, String> {
        let mut known = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end_matches('\r');
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| Err(format!("line {}: {what}", number + 1));
            let Some((name, password)) = line.split_once(':') else {
                return wrong("no colon between name and password");
            };
            if name.is_empty() || password.is_empty() {
                return wrong("an empty name or password");
            }
            if name.contains(' ') {
                return wrong("a blank in the name, behind which clients send the password");
            }
            if line.len() > Passwords::MOST {
                return wrong("longer than 1024 bytes");
            }
            known.push(format!("{name} {password}").into_bytes());
        }
        match known.len() {
            0 => Err("no line of name:password".into()),
            1..=MOST_NAMES => Ok(Passwords {
                known,
                asked: AtomicU64::new(0),
                refused: AtomicU64::new(0),
            }),
            n => Err(format!("{n} names: {MOST_NAMES} are the most")),
        }
    }

    /// Reads a file of them.
    ///
    /// # Errors
    /// The file and a message.
    pub fn read(file: &Path) -> Result<Passwords, String> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{shown}: {e}"))?;
        Passwords::parse(&text).map_err(|e| format!("{shown}: {e}"))
    }

    /// Whether a client's name and password are known.
    pub fn admits(&self, said: &[u8]) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        // All are compared, so that the time does not reveal which names exist.
        let found = self
            .known
            .iter()
            .fold(false, |found, known| found | same(known, said));
        self.refused.fetch_add(u64::from(!found), Ordering::Relaxed);
        found
    }

    /// Times that clients asked to be let in, and were not.
    pub fn counts(&self) -> (u64, u64) {
        (
            self.asked.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        )
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passwords", self.known.len())
    }
}

/// Whether two texts are the same, in a time that depends on their lengths alone.
fn same(known: &[u8], said: &[u8]) -> bool {
    let differing = known.iter().zip(said).fold(0, |d, (a, b)| d | (a ^ b));
    known.len() == said.len() && std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_its_password_is_let_in_and_nobody_else() {
        let doors = Passwords::parse("# ours\nanna:se:cret word\r\n\nbert:b\n").unwrap();
        for (said, admitted) in [
            ("anna se:cret word", true),
            ("bert b", true),
            ("bert bb", false),
            ("bert ", false),
            ("anna b", false),
            ("anna:se:cret word", false),
            ("", false),
        ] {
            assert_eq!(doors.admits(said.as_bytes()), admitted, "{said:?}");
        }
        assert_eq!(doors.counts(), (7, 5));
    }

    #[test]
    fn a_wrong_line_is_named_and_its_password_is_not() {
        let long = format!("a:{}", "x".repeat(2000));
        for (text, says) in [
            ("anna secret\n", "line 1: no colon"),
            ("# x\n:secret\n", "line 2: an empty name"),
            ("anna:\n", "line 1: an empty name or password"),
            ("an na:secret\n", "line 1: a blank in the name"),
            (&long, "line 1: longer"),
            ("# nobody\n", "no line of name:password"),
        ] {
            let e = Passwords::parse(text).unwrap_err();
            assert!(e.starts_with(says) && !e.contains("secret"), "{e}");
        }
    }
}
