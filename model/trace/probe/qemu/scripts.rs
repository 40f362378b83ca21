//! Lines of a Python program that asks for memory: a part of its stack, behind the calls of the interpreter.

use crate::follow::guest;
use crate::python::Memory;
use crate::python::code::{CodeObject, Identity, LineTable, identity};
use crate::python::frames::{Interpreter, Place};
use crate::python::layout::layout;
use crate::ring::{LINE, LINES};
use crate::*;
use std::collections::HashMap;

/// Code objects that are kept.
const MOST_CODES: usize = 1 << 14;

/// What interprets scripts in this process.
pub struct Scripts {
    interpreter: Option<Interpreter>,
    /// Where the interpreter has the state of the thread in each slot; 0 if that is not known.
    threads: Vec<u64>,
    /// Code objects by address.
    codes: Option<HashMap<u64, Known>>,
    memory: Guest,
}

/// A code object that was reported.
struct Known {
    identity: Identity,
    /// Its number in the text about modules.
    number: u64,
    lines: LineTable,
}

const PAGE: usize = 4096;
/// Pages that are kept.
const PAGES: usize = 8;

/// Memory of the guest while a thread waits for the end of its call. Most of what is read is on few pages, which are read as a whole: each
/// read is a system call.
struct Guest {
    /// Addresses of the first pages, and their contents.
    pages: Vec<(u64, [u8; PAGE])>,
    /// How many are of this call.
    count: usize,
}

impl Memory for Guest {
    fn read(&mut self, at: u64, into: &mut [u8]) -> bool {
        let (page, from) = (at & !(PAGE as u64 - 1), at as usize % PAGE);
        let to = from + into.len();
        let known = self.pages.iter().take(self.count);
        let mut place = known.clone().position(|(of, _)| *of == page);
        if place.is_none() && to <= PAGE && self.count < PAGES {
            if self.pages.len() <= self.count {
                self.pages.push((0, [0; PAGE]));
            }
            let new = &mut self.pages[self.count];
            new.0 = page;
            if guest(page, &mut new.1) == PAGE {
                place = Some(self.count);
                self.count += 1;
            }
        }
        let known = place.and_then(|place| self.pages[place].1.get(from..to));
        match known {
            Some(bytes) => into.copy_from_slice(bytes),
            None => return guest(at, into) == into.len(),
        }
        true
    }
}

impl Scripts {
    pub const NONE: Scripts = Scripts {
        interpreter: None,
        threads: Vec::new(),
        codes: None,
        memory: Guest {
            pages: Vec::new(),
            count: 0,
        },
    };

    /// The process has an interpreter of this version (`PY_VERSION_HEX`), whose state is at `runtime`.
    pub fn meet(&mut self, runtime: u64, version: u32) {
        self.memory.count = 0;
        let layout = layout(version, runtime, &mut self.memory);
        self.interpreter = layout.map(|layout| Interpreter { layout, runtime });
        self.codes = None;
    }

    /// The lines that a thread is in, the innermost first, in two words each. Returns how many words there are.
    pub fn lines(&mut self, slot: usize, thread: u64, words: &mut [u64]) -> usize {
        let Some(interpreter) = self.interpreter else {
            return 0;
        };
        if self.threads.len() <= slot {
            self.threads.resize(slot + 1, 0);
        }
        self.memory.count = 0;
        let mut places = [Place::default(); LINES];
        let known = &mut self.threads[slot];
        let count = interpreter.frames(thread, known, &mut places, &mut self.memory);
        let mut at = 0;
        for place in &places[..count] {
            let Some((number, line)) = self.line(&interpreter, place) else {
                break;
            };
            let Some(two) = words.get_mut(at..at + 2) else {
                break;
            };
            two.copy_from_slice(&[LINE | u64::from(line), number]);
            at += 2;
        }
        at
    }

    /// The number of a frame's code, and the line.
    fn line(&mut self, interpreter: &Interpreter, place: &Place) -> Option<(u64, u32)> {
        let layout = &interpreter.layout;
        let identity = identity(layout, place.code, &mut self.memory)?;
        let codes = self.codes.get_or_insert_default();
        if codes
            .get(&place.code)
            .is_none_or(|known| known.identity != identity)
        {
            if codes.len() >= MOST_CODES {
                codes.clear();
            }
            let code = CodeObject::read(layout, &identity, &mut self.memory)?;
            let number = tell(&code, identity.first_line);
            let lines = code.lines;
            codes.insert(
                place.code,
                Known {
                    identity,
                    number,
                    lines,
                },
            );
        }
        let known = codes.get(&place.code)?;
        // Before its first instruction it is at the beginning.
        let bytes = place
            .instruction
            .wrapping_sub(place.code + layout.instructions);
        let line = match u32::try_from(bytes / 2) {
            Ok(instruction) => known.lines.line(instruction),
            Err(_) => identity.first_line,
        };
        Some((known.number, line))
    }
}

/// Writes a line about a code object into the text about modules: the word `code`, its number, its first line, its name and its file,
/// separated by tabs. Returns the number, which is the same in all processes.
fn tell(code: &CodeObject, first_line: u32) -> u64 {
    let mut file = code.file.clone();
    let is_file = !file.starts_with(['/', '<']);
    if is_file && let Ok(folder) = std::env::current_dir() {
        file = folder.join(file).display().to_string();
    }
    let text = format!("{first_line}\t{}\t{file}\n", code.name);
    let words: Vec<u64> = text.bytes().map(u64::from).collect();
    let number = stacks::hash(0, &words);
    let process = PROCESS.load(Relaxed);
    shared().add_modules(format!("{process} code\t{number:x}\t{text}").as_bytes());
    number
}
