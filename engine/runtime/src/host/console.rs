//! Standard input, output and error. Some programs write bytes, others UTF-16 characters one by one.

use crate::{Error, Result};
use std::io::{self, IsTerminal, Read, Write};

/// Where a program's input comes from, and its output goes.
pub struct Console {
    /// Standard input.
    pub input: Input,
    /// Standard output.
    pub out: Output,
    /// Standard error.
    pub err: Output,
}

impl Console {
    /// The process's own input, output and error.
    pub fn inherit() -> Console {
        Console {
            input: Input(Source::Inherited),
            out: Output {
                terminal: io::stdout().is_terminal(),
                ..Output::new(Box::new(io::stdout()))
            },
            err: Output {
                terminal: io::stderr().is_terminal(),
                ..Output::new(Box::new(io::stderr()))
            },
        }
    }

    /// Writes the buffered rest of both outputs.
    ///
    /// # Errors
    /// [`Error::Output`] with the one that failed.
    pub fn flush(&mut self) -> Result<()> {
        let out = self.out.flush().map_err(out_failed);
        out.and(self.err.flush().map_err(err_failed))
    }
}

/// The error of a program whose standard output failed.
pub(crate) fn out_failed(error: io::Error) -> Error {
    Error::Output {
        stream: "standard output",
        error,
    }
}

/// The error of a program whose standard error failed.
pub(crate) fn err_failed(error: io::Error) -> Error {
    Error::Output {
        stream: "standard error",
        error,
    }
}

/// A stream to read from.
pub struct Input(Source);

enum Source {
    /// The process's own, read without a buffer: unread input is left to other processes.
    Inherited,
    Reader(Box<dyn Read + Send>),
}

impl Input {
    /// A stream from a reader.
    pub fn new(from: Box<dyn Read + Send>) -> Input {
        Input(Source::Reader(from))
    }

    /// Reads some bytes, and waits for the first; zero at the end.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Source::Inherited => Ok(rustix::io::retry_on_intr(|| {
                rustix::io::read(rustix::stdio::stdin(), &mut *to)
            })?),
            Source::Reader(from) => from.read(to),
        }
    }

    /// Whether it is the process's own, that may have nothing to read yet.
    pub(crate) fn is_inherited(&self) -> bool {
        matches!(self.0, Source::Inherited)
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_inherited() && io::stdin().is_terminal()
    }
}

/// A stream that takes bytes, or UTF-16 characters that it writes as UTF-8, a line at a time.
pub struct Output {
    to: Box<dyn Write + Send>,
    line: Vec<u8>,
    /// The first half of a character that takes two.
    high: Option<u16>,
    pub(crate) terminal: bool,
}

/// Bytes after which a line that does not end is written all the same.
const LONGEST: usize = 8192;

impl Output {
    /// A stream onto a writer.
    pub fn new(to: Box<dyn Write + Send>) -> Output {
        Output {
            to,
            line: Vec::new(),
            high: None,
            terminal: false,
        }
    }

    /// Takes one UTF-16 code unit. Halves without partner become the replacement character.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn put(&mut self, unit: u16) -> io::Result<()> {
        let units = match self.high.take() {
            Some(high) if (0xdc00..0xe000).contains(&unit) => vec![high, unit],
            None if (0xd800..0xdc00).contains(&unit) => {
                self.high = Some(unit);
                return Ok(());
            }
            Some(high) => vec![high, unit],
            None => vec![unit],
        };
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.line
                .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        if unit == b'\n' as u16 || self.line.len() >= LONGEST {
            self.flush()?;
        }
        Ok(())
    }

    /// Takes text.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Takes bytes, after those taken before.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.line.extend_from_slice(bytes);
        self.flush()
    }

    /// Writes the rest of the buffer. Output that the writer refuses is dropped: the caller gets the error, and may
    /// write it again.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        let written = self.to.write_all(&self.line);
        self.line.clear();
        written?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, b: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(b);
            Ok(b.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_refuses_is_not_written_twice() {
        struct Full(Shared, bool);
        impl Write for Full {
            fn write(&mut self, b: &[u8]) -> io::Result<usize> {
                match std::mem::take(&mut self.1) {
                    true => Err(io::ErrorKind::StorageFull.into()),
                    false => self.0.write(b),
                }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut out = Output::new(Box::new(Full(Shared(seen.clone()), true)));
        let e = out.bytes(b"once").unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::StorageFull);
        assert!(
            out_failed(e)
                .to_string()
                .starts_with("writing standard output failed: ")
        );
        out.bytes(b"once").unwrap();
        assert_eq!(seen.lock().unwrap().as_slice(), b"once");
    }

    #[test]
    fn lines_come_out_whole_and_in_utf8() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut out = Output::new(Box::new(Shared(seen.clone())));
        for unit in "Grüße 🌍".encode_utf16() {
            out.put(unit).unwrap();
        }
        assert!(seen.lock().unwrap().is_empty(), "the line has not ended");
        out.put(b'\n' as u16).unwrap();
        out.put(0xd83c).unwrap();
        out.put(b'x' as u16).unwrap();
        out.flush().unwrap();
        assert_eq!(
            String::from_utf8(seen.lock().unwrap().clone()).unwrap(),
            "Grüße 🌍\n\u{fffd}x"
        );
    }
}
