//! Profiles of native programs from what other tools have written.
//!
//! | source | what it has | what is missing |
//! |---|---|---|
//! | heaptrack, raw (`heaptrack --raw`) | sites, objects, bytes, peaks, lifetimes | accesses |
//! | heaptrack, as it is usually | the same without lifetimes; addresses are of that one run | accesses, keys that last |
//! | `perf script` of memory samples | sampled accesses and misses by address | allocations |
//! | DAMON's records (`damo record` and its like) | how often parts of the addresses were in use | allocations, bytes in memory, writes |
//!
//! The last two have only addresses. A map of the process's addresses identifies static variables and stacks.

mod damon;
mod heaptrack;
mod maps;
mod perf;

pub use damon::damon;
pub use heaptrack::heaptrack;
pub use maps::AddressMap;
pub use perf::perf_script;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, BufRead, BufReader};
use varve_sites::native::Profile;

/// A profile, and the data that its source lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The profile that could be built.
    pub profile: Profile,
    /// Missing data, one sentence each.
    pub missing: Vec<String>,
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{file}: {what}")]
    NotOne {
        /// The file.
        file: String,
        /// The expected format.
        what: &'static str,
    },
    /// A line cannot be.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// The problem.
        what: String,
    },
}

/// The text of a file that may be packed by gzip or zstd, as heaptrack writes it.
fn unpacked<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let first = input.fill_buf()?;
    if first.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(input))));
    }
    if first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = StreamingDecoder::new(input).map_err(io::Error::other)?;
        return Ok(Box::new(BufReader::new(decoder)));
    }
    Ok(Box::new(input))
}

/// Calls `each` with the lines of a file. An error of `each` says what is wrong with the line.
fn lines(
    file: &str,
    input: impl BufRead,
    mut each: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), ImportError> {
    let io = |source| ImportError::Io {
        file: file.into(),
        source,
    };
    let mut input = unpacked(input).map_err(io)?;
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes).map_err(io)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&bytes);
        each(text.trim_end_matches(['\n', '\r'])).map_err(|what| ImportError::Line {
            file: file.into(),
            line,
            what,
        })?;
    }
    Ok(())
}
