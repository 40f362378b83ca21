//! What heaptrack writes, of file versions 0 to 3.
//!
//! A line is a letter and hexadecimal numbers. Both forms have `+` and `-` for allocations and frees, and `t` for
//! traces, each a call and the trace that led there. In the raw form, calls are addresses, and `m` says where modules
//! are. In the interpreted form, `s` lists strings, `i` calls with their names, `a` sizes with their traces.
//!
//! | version | of heaptrack | what was new |
//! |---|---|---|
//! | 0 | before 1.0 | none is told; interpreted files have `+` and `-` with addresses, as raw ones |
//! | 1 | 1.0 | `a`; called 10200, without a version of files, in a few files |
//! | 2 | 1.1, 1.2 | inlined functions |
//! | 3 | since 1.3 | strings have lengths, and so blanks |
//!
//! | module | job |
//! |---|---|
//! | `line` | lines and words, of bytes |
//! | `profile` | a profile of what was read |

mod line;
mod profile;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::BufRead;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use self::line::{Words, first_word, shown, string};
use super::{ImportError, Imported, unpacked};
use varve_sites::Counts;
use varve_sites::native::{Frame, Inlined};

/// An object that lives, in the raw form.
struct Object {
    trace: usize,
    bytes: u64,
    /// Bytes that the program had allocated before.
    born: u64,
}

/// A piece of a module in memory.
struct Piece {
    start: u64,
    end: u64,
    base: u64,
    path: PathBuf,
}

#[derive(Default)]
struct State {
    version: Option<u64>,
    command: String,
    program: PathBuf,
    /// From 1 on in the file, from 0 here, as are calls and traces.
    strings: Vec<String>,
    calls: Vec<Frame>,
    /// Call (number, or address in the raw form) and parent, 0 for none.
    traces: Vec<(u64, usize)>,
    /// Bytes and trace.
    kinds: Vec<(u64, usize)>,
    pieces: Vec<Piece>,
    objects: HashMap<u64, Object>,
    /// Calls are addresses.
    is_raw: bool,
    /// `+` and `-` have the addresses of objects.
    has_objects: bool,
    /// Counts by trace, and bytes alive.
    counts: HashMap<usize, (Counts, u64)>,
    allocated: u64,
}

/// Imports what heaptrack has written. `file` is named in errors. Raw files are named with the programs and libraries of
/// this machine, as far as these are still there.
///
/// # Errors
/// It cannot be read or unpacked, is something else, or a line is damaged.
pub fn heaptrack(file: &str, input: impl BufRead) -> Result<Imported, ImportError> {
    let io = |source| ImportError::Io {
        file: file.into(),
        source,
    };
    let mut input = unpacked(input).map_err(io)?;
    let mut state = State::default();
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        let (first, has_lengths) = (number + 1, state.has_lengths());
        if !line::read(&mut input, has_lengths, &mut line, &mut number).map_err(io)? {
            break;
        }
        state.line(&line).map_err(|what| ImportError::Line {
            file: file.into(),
            line: first,
            what,
        })?;
    }
    if state.version.is_none() {
        return Err(ImportError::NotOne {
            file: file.into(),
            what: "no heaptrack file: it has no line `v`",
        });
    }
    Ok(state.finish())
}

impl State {
    fn has_lengths(&self) -> bool {
        self.version.is_some_and(|version| version >= 3)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let (what, rest) = first_word(line.strip_suffix(b"\r").unwrap_or(line));
        // names end as they end
        let names = first_word(line).1;
        if self.version.is_none() && !matches!(what, b"v" | b"#" | b"") {
            return Err("no heaptrack file: it begins with a line `v`".into());
        }
        let has_length = self.has_lengths();
        let mut words = Words(rest);
        match what {
            b"v" => self.version = Some(version(words)?),
            b"X" => self.command = shown(rest),
            b"x" => self.program = path(whole_string(names, has_length)?),
            b"s" => self.strings.push(shown(whole_string(names, has_length)?)),
            b"m" => self.module(string(names, has_length)?)?,
            b"i" => self.call(words)?,
            b"t" => {
                let (call, parent) = (words.number()?, words.number()? as usize);
                // a trace is told after the one that led there
                if parent > self.traces.len() {
                    return Err(format!("there is no trace {parent:x} yet"));
                }
                self.traces.push((call, parent));
            }
            b"a" => {
                let (bytes, trace) = (words.number()?, words.number()? as usize);
                self.kinds.push((bytes, trace));
            }
            b"+" => self.allocate(words)?,
            b"-" => self.free(words)?,
            // time, memory in use, pages, comments, attached, suppressed, the command's own
            b"c" | b"R" | b"I" | b"#" | b"A" | b"S" | b"" => {}
            _ => return Err(format!("a line of an unknown kind, `{}`", shown(what))),
        }
        Ok(())
    }

    /// Where a module is: what is to be added to its addresses, and its pieces.
    fn module(&mut self, (name, rest): (&[u8], &[u8])) -> Result<(), String> {
        self.is_raw = true;
        if name == b"-" {
            self.pieces.clear();
            return Ok(());
        }
        let path = match name {
            b"x" => self.program.clone(),
            name => path(name),
        };
        let mut words = Words(rest);
        let base = words.number()?;
        while let Some(address) = words.maybe()? {
            let start = base.wrapping_add(address);
            self.pieces.push(Piece {
                start,
                end: start.saturating_add(words.number()?),
                base,
                path: path.clone(),
            });
        }
        Ok(())
    }

    fn string(&self, number: u64) -> Result<String, String> {
        let place = (number as usize).checked_sub(1);
        let text = place.and_then(|place| self.strings.get(place));
        text.cloned()
            .ok_or(format!("there is no string {number:x} yet"))
    }

    /// A call with its names: address, module, and for each function its name, file and line, the innermost first.
    fn call(&mut self, mut words: Words) -> Result<(), String> {
        let (offset, module) = (words.number()?, words.number()?);
        let mut functions = Vec::new();
        while let Some(function) = words.maybe()? {
            let mut found = Inlined {
                function: if function == 0 {
                    String::new()
                } else {
                    self.string(function)?
                },
                line: None,
            };
            if let Some(file) = words.maybe()? {
                let line = words.number()?;
                if file > 0 {
                    let path = self.string(file)?;
                    let name = path.rsplit('/').next().unwrap_or_default();
                    found.line = Some(format!("{name}:{line}"));
                }
            }
            functions.push(found);
        }
        let outer = functions.pop().unwrap_or_default();
        let module = if module == 0 {
            String::new()
        } else {
            self.string(module)?
        };
        self.calls.push(Frame {
            module: crate::elf::name(Path::new(&module)),
            build_id: String::new(),
            offset,
            function: Some(outer.function).filter(|name| !name.is_empty()),
            within: None,
            line: outer.line,
            inlined: functions,
        });
        Ok(())
    }

    fn allocate(&mut self, mut words: Words) -> Result<(), String> {
        let first = words.number()?;
        let (bytes, trace) = match words.maybe()? {
            Some(trace) => {
                self.has_objects = true;
                let (object, trace) = (words.number()?, trace as usize);
                let born = self.allocated;
                let object = self.objects.insert(
                    object,
                    Object {
                        trace,
                        bytes: first,
                        born,
                    },
                );
                // a free that was not seen
                if let Some(lost) = object {
                    self.dies(lost.trace, lost.bytes, None);
                }
                (first, trace)
            }
            None => *self
                .kinds
                .get(first as usize)
                .ok_or(format!("there is no allocation {first:x} yet"))?,
        };
        if trace > self.traces.len() {
            return Err(format!("there is no trace {trace:x} yet"));
        }
        self.allocated = self.allocated.saturating_add(bytes);
        let (counts, alive) = self.counts.entry(trace).or_default();
        counts.objects += 1;
        counts.bytes = counts.bytes.saturating_add(bytes);
        *alive = alive.saturating_add(bytes);
        counts.peak_bytes = counts.peak_bytes.max(*alive);
        Ok(())
    }

    fn free(&mut self, mut words: Words) -> Result<(), String> {
        let number = words.number()?;
        if self.is_raw || self.has_objects {
            // objects from before the recording are not known
            if let Some(object) = self.objects.remove(&number) {
                let lived = self
                    .allocated
                    .saturating_sub(object.born.saturating_add(object.bytes));
                self.dies(object.trace, object.bytes, Some(lived));
            }
            return Ok(());
        }
        // the same, in files of before there were kinds
        if self.kinds.is_empty() && self.version < Some(2) {
            return Ok(());
        }
        let kind = self.kinds.get(number as usize);
        let (bytes, trace) = *kind.ok_or(format!("there is no allocation {number:x} yet"))?;
        self.dies(trace, bytes, Some(0));
        Ok(())
    }

    fn dies(&mut self, trace: usize, bytes: u64, lived: Option<u64>) {
        if let Some((counts, alive)) = self.counts.get_mut(&trace) {
            *alive = alive.saturating_sub(bytes);
            if let Some(lived) = lived.filter(|_| counts.freed < counts.objects) {
                counts.freed += 1;
                counts.lifetime_bytes = counts.lifetime_bytes.saturating_add(lived);
            }
        }
    }
}

/// The version of the file, after that of heaptrack.
fn version(mut words: Words) -> Result<u64, String> {
    let heaptrack = words.number()?;
    match words.maybe()? {
        Some(version @ 0..=3) => Ok(version),
        Some(version) => Err(format!(
            "heaptrack's file version {version:x}; 0 to 3 can be read"
        )),
        // before there was one
        None => Ok(u64::from(heaptrack >= 0x1_0000)),
    }
}

/// The one string of a line.
fn whole_string(rest: &[u8], has_length: bool) -> Result<&[u8], String> {
    if !has_length {
        return Ok(rest);
    }
    match string(rest, true)? {
        (text, []) => Ok(text),
        (_, more) => Err(format!("`{}` is behind the string", shown(more))),
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_path_buf()
}
