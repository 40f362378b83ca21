//! The files of heaptrack, version 2 and 3.
//!
//! A line is a letter and hexadecimal numbers. Both forms have `+` and `-` for allocations and frees, and `t` for
//! traces, each a call and the trace that led there. In the raw form, calls are addresses, and `m` says where modules
//! are. In the interpreted form, `s` lists strings, `i` calls with their names, `a` sizes with their traces.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use super::{ImportError, Imported, lines};
use crate::Binary;
use varve_sites::Counts;
use varve_sites::native::{Frame, Inlined, Key, Module, Profile, Site};

/// Calls of a stack that are kept, at most; recursion goes deeper.
const MOST_CALLS: usize = 64;

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
    path: String,
}

#[derive(Default)]
struct State {
    version: Option<u64>,
    command: String,
    program: String,
    /// From 1 on in the file, from 0 here, as are calls and traces.
    strings: Vec<String>,
    calls: Vec<Frame>,
    /// Call (number, or address in the raw form) and parent, 0 for none.
    traces: Vec<(u64, usize)>,
    /// Bytes and trace.
    kinds: Vec<(u64, usize)>,
    pieces: Vec<Piece>,
    objects: HashMap<u64, Object>,
    is_raw: bool,
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
    let mut state = State::default();
    lines(file, input, |line| state.line(line))?;
    if state.version.is_none() {
        return Err(ImportError::NotOne {
            file: file.into(),
            what: "no heaptrack file: it has no line `v`",
        });
    }
    Ok(state.finish())
}

/// The words of a line.
struct Words<'a>(std::str::SplitAsciiWhitespace<'a>);

impl Words<'_> {
    fn maybe(&mut self) -> Result<Option<u64>, String> {
        let Some(word) = self.0.next() else {
            return Ok(None);
        };
        let number = u64::from_str_radix(word, 16);
        number
            .map(Some)
            .map_err(|_| format!("`{word}` is not a hexadecimal number"))
    }

    fn number(&mut self) -> Result<u64, String> {
        self.maybe()?.ok_or_else(|| "a number is missing".into())
    }
}

/// Splits a string off that may have its length before it.
fn string(rest: &str, has_length: bool) -> Result<(&str, &str), String> {
    if !has_length {
        return Ok(rest.split_once(' ').unwrap_or((rest, "")));
    }
    let (length, rest) = rest.split_once(' ').ok_or("a string is missing")?;
    let length =
        usize::from_str_radix(length, 16).map_err(|_| format!("`{length}` is no length"))?;
    let short = || format!("the string is shorter than {length} bytes");
    let (text, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    Ok((text, rest.trim_start()))
}

impl State {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        if self.version.is_none() && !matches!(what, "v" | "#" | "") {
            return Err("no heaptrack file: it begins with a line `v`".into());
        }
        let has_length = self.version.is_some_and(|version| version >= 3);
        let mut words = Words(rest.split_ascii_whitespace());
        match what {
            "v" => {
                words.number()?;
                let version = words.number()?;
                if !(2..=3).contains(&version) {
                    return Err(format!(
                        "heaptrack's file version {version}; 2 and 3 can be read"
                    ));
                }
                self.version = Some(version);
            }
            "X" => self.command = rest.into(),
            "x" => {
                self.program = match has_length {
                    true => string(rest, true)?.0.into(),
                    false => rest.into(),
                }
            }
            "s" => {
                let text = match has_length {
                    true => string(rest, true)?.0,
                    false => rest,
                };
                self.strings.push(text.into());
            }
            "m" => self.module(string(rest, has_length)?)?,
            "i" => self.call(words)?,
            "t" => {
                let (call, parent) = (words.number()?, words.number()? as usize);
                // a trace follows its parent in the file
                if parent > self.traces.len() {
                    return Err(format!("there is no trace {parent:x} yet"));
                }
                self.traces.push((call, parent));
            }
            "a" => {
                let (bytes, trace) = (words.number()?, words.number()? as usize);
                self.kinds.push((bytes, trace));
            }
            "+" => self.allocate(words)?,
            "-" => self.free(words)?,
            // time, memory in use, pages, comments, attached, suppressed, the command's own
            "c" | "R" | "I" | "#" | "A" | "S" | "" => {}
            _ => return Err(format!("a line of an unknown kind, `{what}`")),
        }
        Ok(())
    }

    /// Where a module is: what is to be added to its addresses, and its pieces.
    fn module(&mut self, (name, rest): (&str, &str)) -> Result<(), String> {
        self.is_raw = true;
        if name == "-" {
            self.pieces.clear();
            return Ok(());
        }
        let path = if name == "x" {
            self.program.clone()
        } else {
            name.into()
        };
        let mut words = Words(rest.split_ascii_whitespace());
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
        if self.is_raw {
            // objects from before the recording are not known
            if let Some(object) = self.objects.remove(&number) {
                let lived = self
                    .allocated
                    .saturating_sub(object.born.saturating_add(object.bytes));
                self.dies(object.trace, object.bytes, Some(lived));
            }
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

    /// The calls of a trace, the innermost first.
    fn stack(&self, mut trace: usize, mut frame: impl FnMut(u64) -> Frame) -> Vec<Frame> {
        let mut stack = Vec::new();
        while let Some(&(call, parent)) = trace.checked_sub(1).and_then(|at| self.traces.get(at)) {
            if stack.len() == MOST_CALLS {
                break;
            }
            stack.push(frame(call));
            trace = parent;
        }
        stack
    }

    fn finish(self) -> Imported {
        let mut binaries: HashMap<String, Option<Binary>> = HashMap::new();
        let mut known: HashMap<u64, Frame> = HashMap::new();
        let mut frame = |call: u64| {
            if !self.is_raw {
                let at = (call as usize).checked_sub(1);
                return at
                    .and_then(|at| self.calls.get(at))
                    .cloned()
                    .unwrap_or_default();
            }
            let frame = known
                .entry(call)
                .or_insert_with(|| self.raw_frame(call, &mut binaries));
            frame.clone()
        };
        let mut traces: Vec<(&usize, &(Counts, u64))> = self.counts.iter().collect();
        traces.sort_unstable_by_key(|(trace, _)| **trace);
        let site = |(&trace, (counts, _)): (&usize, &(Counts, u64))| Site {
            key: Key::Heap(self.stack(trace, &mut frame)),
            counts: counts.clone(),
        };
        let sites = traces.into_iter().map(site).collect();
        let command: Vec<String> = self
            .command
            .split_ascii_whitespace()
            .map(str::to_string)
            .collect();
        let program = match self.program.is_empty() {
            true => command.first().cloned().unwrap_or_default(),
            false => self.program.clone(),
        };
        let mut paths: Vec<&String> = self.pieces.iter().map(|piece| &piece.path).collect();
        paths.dedup();
        let module = |path: &String| Module {
            name: crate::elf::name(Path::new(path)),
            path: path.clone(),
            build_id: binaries
                .get(path)
                .and_then(Option::as_ref)
                .map_or(String::new(), |b| b.build_id().into()),
        };
        let mut missing = vec!["heaptrack counts no reads, writes or misses".to_string()];
        if !self.is_raw {
            missing.push("this file has no lifetimes, and its addresses are of one run, so its sites are not found again in other profiles; `heaptrack --raw` has both".into());
        }
        let profile = Profile {
            program: crate::elf::name(Path::new(&program)),
            command,
            machine: String::new(),
            sampled: None,
            modules: paths.into_iter().map(module).collect(),
            sites,
        };
        // traces that differ only beyond what is kept are one site
        Imported {
            profile: profile.cut(MOST_CALLS),
            missing,
        }
    }

    fn raw_frame(&self, address: u64, binaries: &mut HashMap<String, Option<Binary>>) -> Frame {
        let holds = |piece: &&Piece| (piece.start..piece.end).contains(&address);
        let Some(piece) = self.pieces.iter().rev().find(holds) else {
            return Frame {
                offset: address,
                ..Frame::default()
            };
        };
        let read = || Binary::read(Path::new(&piece.path)).ok();
        let binary = binaries.entry(piece.path.clone()).or_insert_with(read);
        let offset = address - piece.base;
        // heaptrack tells the call itself, a byte before where it returns to
        let unnamed = || Frame {
            module: crate::elf::name(Path::new(&piece.path)),
            offset: offset + 1,
            ..Frame::default()
        };
        binary
            .as_ref()
            .map_or_else(unnamed, |binary| binary.frame(offset + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_sites::native::names::name;

    const RAW: &str = "v 10400 3
x 7 /none/p
X ./p -x
I 1000 5e298f
m 1 -
m 1 x 1000 0 9b0 1000 5c1
t 2133 0
t 2294 1
t 2299 1
+ 100 2 aa0
+ 40 3 bb0
- aa0
+ 100 2 aa0
- ccc
R 10
c 5
";

    #[test]
    fn raw_files_have_lifetimes_and_addresses_of_the_file() {
        let imported = heaptrack("raw", RAW.as_bytes()).unwrap();
        let profile = imported.profile;
        assert_eq!(
            (
                &profile.program[..],
                profile.command.len(),
                profile.sites.len()
            ),
            ("p", 2, 2)
        );
        let first = &profile.sites[0];
        let offsets: Vec<u64> = first.key.stack().iter().map(|frame| frame.offset).collect();
        assert_eq!(
            offsets,
            [0x1295, 0x1134],
            "return addresses, the innermost first"
        );
        let c = &first.counts;
        assert_eq!(
            (c.objects, c.bytes, c.peak_bytes, c.freed, c.lifetime_bytes),
            (2, 0x200, 0x100, 1, 0x40)
        );
        assert_eq!(profile.sites[1].counts.freed, 0);
        assert_eq!(imported.missing.len(), 1);
        assert_eq!(profile.modules.len(), 1);
    }

    #[test]
    fn packed_files_are_the_same_and_cut_ones_are_refused() {
        use flate2::{Compression, write::GzEncoder};
        use ruzstd::encoding::{CompressionLevel, compress_to_vec};
        use std::io::Write;

        let plain = heaptrack("raw", RAW.as_bytes()).unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(RAW.as_bytes()).unwrap();
        let zstd = compress_to_vec(RAW.as_bytes(), CompressionLevel::Fastest);
        for packed in [gzip.finish().unwrap(), zstd] {
            assert_eq!(heaptrack("raw", &packed[..]).unwrap(), plain);
            let cut = heaptrack("cut.gz", &packed[..packed.len() / 2]);
            let said = cut.unwrap_err().to_string();
            assert!(said.starts_with("cut.gz: "), "{said}");
        }
    }

    const INTERPRETED: &str = "v 10400 3
X ./p
s 3 a/p
s 4 main
s 8 src/a.cc
i 7f01 1 2 3 c
s 9 grow(int)
i 7f02 1 4 3 5 2 3 d
t 1 0
t 2 1
a 20 2
+ 0
+ 0
- 0
";

    #[test]
    fn interpreted_files_have_names_lines_and_inlined_functions() {
        let imported = heaptrack("file", INTERPRETED.as_bytes()).unwrap();
        let site = &imported.profile.sites[0];
        assert_eq!(name(&site.key), "grow (a.cc:5)");
        let frame = &site.key.stack()[0];
        assert_eq!(
            (frame.function.as_deref(), frame.line.as_deref()),
            (Some("main"), Some("a.cc:13"))
        );
        let c = &site.counts;
        assert_eq!(
            (c.objects, c.bytes, c.peak_bytes, c.freed),
            (2, 0x40, 0x40, 1)
        );
        assert_eq!(imported.missing.len(), 2);
        // version 2 has strings without lengths
        let older: Vec<&str> = vec!["v 10100 2", "s main", "i 7f01 0 1", "t 1 0", "a 8 1", "+ 0"];
        let imported = heaptrack("file", older.join("\n").as_bytes()).unwrap();
        assert_eq!(name(&imported.profile.sites[0].key), "main");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let says = |text: &[u8]| heaptrack("f.ht", text).unwrap_err().to_string();
        assert_eq!(says(b""), "f.ht: no heaptrack file: it has no line `v`");
        assert!(says(b"hello\n").starts_with("f.ht:1: no heaptrack file"));
        assert_eq!(
            says(b"v 1 3\n+ 0\n"),
            "f.ht:2: there is no allocation 0 yet"
        );
        assert_eq!(says(b"v 1 3\nt 1 5\n"), "f.ht:2: there is no trace 5 yet");
        assert_eq!(
            says(b"v 1 3\ns 9 abc\n"),
            "f.ht:2: the string is shorter than 9 bytes"
        );
        assert_eq!(
            says(b"v 1 3\n\nt x 0\n"),
            "f.ht:3: `x` is not a hexadecimal number"
        );
        assert!(says(b"v 1 9\n").contains("file version 9"));
        assert!(says(b"v 1 3\nq 1\n").contains("unknown kind, `q`"));
    }
}
