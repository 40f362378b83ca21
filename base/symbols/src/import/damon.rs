//! Records of the kernel's monitor of accesses (DAMON): which parts of a process's addresses were in use, and how often.
//!
//! ```text
//! damo record                          JSON, packed by zlib (its default) or not
//! damo report access --json            the same with numbers for people
//! perf script, trace-cmd report        lines with damon:damon_aggregated and its like
//! damo report access --raw_form        the same as lines; `damo report raw` before 2.7.2
//! ```
//!
//! Records have addresses, but no allocation sites. With a map of the process's addresses they cover its static
//! variables and stacks; all else is one site.
//!
//! | module | job |
//! |---|---|
//! | `records` | what all forms are read into |
//! | `text` | numbers, times and sizes as damo writes them |
//! | `json`, `raw`, `trace` | a form each |
//! | `profile` | a profile of the records |

mod json;
mod profile;
#[cfg(test)]
mod properties;
mod raw;
mod records;
#[cfg(test)]
mod tests;
mod text;
mod trace;

use std::io::{BufRead, Read};

use flate2::bufread::ZlibDecoder;

use self::raw::Raw;
use self::records::Records;
use self::trace::Trace;
use super::{AddressMap, ImportError, Imported, lines};

/// Imports DAMON's records. `file` is named in errors. `map` says what is where in the process, if that is known.
///
/// The value of a site is the number of its pages that were in use, summed over records: a page that half of the checks found
/// in use counts half. It stands in the profile as misses. Bytes are those of addresses, whether memory is there or not.
///
/// # Errors
/// It cannot be read, has no such records, or one of them is damaged.
pub fn damon(
    file: &str,
    input: impl BufRead,
    map: Option<&AddressMap>,
) -> Result<Imported, ImportError> {
    let records = read(file, input)?;
    if records.looks.is_empty() {
        return Err(ImportError::NotOne {
            file: file.into(),
            what: "no records of DAMON: neither what `damo record` writes, nor text with damon:damon_aggregated, nor \
                   `damo report access --raw_form` (or `--json`; `damo report raw` in older versions)",
        });
    }
    Ok(profile::profile(&records, map))
}

fn read(file: &str, mut input: impl BufRead) -> Result<Records, ImportError> {
    let io = |source| ImportError::Io {
        file: file.into(),
        source,
    };
    let not_one = |what| ImportError::NotOne {
        file: file.into(),
        what,
    };
    let first = input.fill_buf().map_err(io)?;
    match first {
        // zlib's header: deflate with a window of 32 KiB, and one of four levels.
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => {
            let mut text = String::new();
            ZlibDecoder::new(input)
                .read_to_string(&mut text)
                .map_err(io)?;
            json::read(file, &text)
        }
        [b'P', b'E', b'R', b'F', ..] => Err(not_one(
            "perf's own file: give the text that `perf script -i` makes of it",
        )),
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', ..] => Err(not_one(
            "trace-cmd's own file: give the text that `trace-cmd report -i` makes of it",
        )),
        [b'd', b'a', b'm', b'o', b'n', b'_', b'r', b'e', b'c', ..] => Err(not_one(
            "binary records of an old damo: give the text that `damo report raw` of that version makes of it",
        )),
        _ if is_json(first) => {
            let mut text = String::new();
            input.read_to_string(&mut text).map_err(io)?;
            json::read(file, &text)
        }
        _ => of_text(file, input),
    }
}

/// A list of objects. Lines of `perf script` may begin with `[000]`, a processor.
fn is_json(first: &[u8]) -> bool {
    let mut told = first.iter().filter(|byte| !byte.is_ascii_whitespace());
    told.next() == Some(&b'[') && matches!(told.next(), None | Some(b'{' | b']'))
}

/// Lines of `perf script`, `trace-cmd report` and `damo report access --raw_form`.
fn of_text(file: &str, input: impl BufRead) -> Result<Records, ImportError> {
    let (mut raw, mut trace, mut last) = (Raw::default(), Trace::default(), 0);
    lines(file, input, |line| {
        last += 1;
        match trace.line(line)? {
            true => Ok(()),
            false => raw.line(line),
        }
    })?;
    let mut records = raw.finish().map_err(|what| ImportError::Line {
        file: file.into(),
        line: last,
        what,
    })?;
    trace.finish(&mut records);
    Ok(records)
}
