//! Callers of allocations: the guest's stack, walked by tables that the recorder makes of each file when it is first
//! met.

use crate::follow::guest;
use crate::scripts::Scripts;
use crate::walk::{Frame, Rule, open, rule_at, walk};
use crate::*;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of a stack is read at once, and in all.
const PIECE_BYTES: usize = 4096;
const MOST_BYTES: usize = 1 << 20;

/// A file that is mapped into the guest.
struct Mapped {
    start: u64,
    end: u64,
    /// Offset in the file of the byte at `start`.
    offset: u64,
    path: String,
    table: Option<Option<Arc<Table>>>,
}

impl Mapped {
    /// Whether the same addresses are of another file, or of another part of it.
    fn is_other(&self, new: &Mapped) -> bool {
        let part = |mapped: &Mapped| mapped.start.wrapping_sub(mapped.offset);
        self.path != new.path || part(self) != part(new)
    }
}

/// A table's file, in words since it has to be aligned.
struct Table {
    words: Vec<u64>,
    bytes: usize,
    /// The interpreter of Python in the file: where its state is (link-time), and its version.
    python: Option<(u64, u32)>,
}

/// State of the process. Threads hold it for the length of a walk.
struct State {
    /// Where the recorder listens.
    tables: Option<PathBuf>,
    /// Addresses of the guest are those of this process.
    sees: bool,
    /// Mappings, the latest last.
    mapped: Vec<Mapped>,
    /// Numbers of the stacks that each slot has reported.
    told: Vec<HashSet<u64>>,
    /// The first thread's stack has been reported.
    has_first_stack: bool,
    /// Mappings for stacks of threads.
    for_stacks: Vec<(u64, u64)>,
    /// Parts of them that are known to be readable: from each address up to the end of its range. All other memory is
    /// read by a call.
    stacks: Vec<(u64, u64)>,
    /// Rules that were looked up, by return address.
    rules: Vec<(u64, Option<Rule>)>,
    /// How often a file was mapped where another had been: the same addresses are other code since.
    epoch: u64,
    /// What interprets a script in this process.
    scripts: Scripts,
}

/// Rules that are kept.
const RULES: usize = 1024;

static mut STATE: Mutex<State> = Mutex::new(State {
    tables: None,
    sees: false,
    mapped: Vec::new(),
    told: Vec::new(),
    has_first_stack: false,
    for_stacks: Vec::new(),
    stacks: Vec::new(),
    rules: Vec::new(),
    epoch: 0,
    scripts: Scripts::NONE,
});

fn state() -> MutexGuard<'static, State> {
    // SAFETY: only `begin_child` replaces it, when there is one thread.
    let state = unsafe { &*core::ptr::addr_of!(STATE) };
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the recorder answers with tables.
pub fn ask_at(path: Option<&[u8]>) {
    state().tables = path.map(|path| Path::new(std::ffi::OsStr::from_bytes(path)).to_path_buf());
}

/// Can stacks be read?
pub fn see(sees: bool) {
    state().sees = sees;
}

/// A forked child has one thread, and perhaps a lock that another thread of its parent held: all begins anew but
/// constants. The parent's state is left where it is.
pub fn begin_child() {
    // SAFETY: there is one thread, which holds no lock. The fields that are read were written before other threads began.
    unsafe {
        let old = core::ptr::addr_of!(STATE).read();
        let old =
            core::mem::ManuallyDrop::new(old.into_inner().unwrap_or_else(PoisonError::into_inner));
        core::ptr::addr_of_mut!(STATE).write(Mutex::new(State {
            tables: old.tables.clone(),
            sees: old.sees,
            mapped: Vec::new(),
            told: Vec::new(),
            has_first_stack: false,
            for_stacks: Vec::new(),
            stacks: Vec::new(),
            rules: Vec::new(),
            epoch: old.epoch,
            scripts: Scripts::NONE,
        }));
    }
}

/// A thread begins in a slot: it has reported nothing.
pub fn begin_thread(slot: usize) {
    let mut state = state();
    if state.told.len() <= slot {
        state.told.resize_with(slot + 1, HashSet::new);
    }
    state.told[slot].clear();
}

/// Takes a line in the form of /proc/PID/maps.
pub fn add_mapping(line: &str) {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.split_ascii_whitespace();
    let range = words.next().and_then(|range| range.split_once('-'));
    let (Some((start, end)), Some(offset)) = (range, words.nth(1)) else {
        return;
    };
    let path: Vec<&str> = words.skip(2).collect();
    if let (Some(start), Some(end), Some(offset)) = (number(start), number(end), number(offset)) {
        let mut state = state();
        state.rules.clear();
        let new = Mapped {
            start,
            end,
            offset,
            path: path.join(" "),
            table: None,
        };
        let before = |old: &&Mapped| old.start < new.end && new.start < old.end;
        if state
            .mapped
            .iter()
            .rev()
            .find(before)
            .is_some_and(|old| old.is_other(&new))
        {
            state.epoch += 1;
        }
        state.mapped.push(new);
    }
}

/// This was mapped for the stack of a thread, or for those of several.
pub fn add_for_stacks(start: u64, bytes: u64) {
    state()
        .for_stacks
        .push((start, start.saturating_add(bytes)));
}

/// This can be read from now on. Where it was mapped for stacks it holds one.
pub fn can_read(start: u64, bytes: u64) {
    let end = start.saturating_add(bytes);
    let mut state = state();
    let holds = |range: &(u64, u64)| range.0 <= start && end <= range.1;
    if state.for_stacks.iter().any(holds) && !state.stacks.iter().any(holds) {
        state.stacks.push((start, end));
    }
}

/// The contents of this range are about to change.
pub fn forget_stacks(start: u64, bytes: u64) {
    cannot_read(start, bytes);
    let end = start.saturating_add(bytes);
    state().for_stacks.retain(is_outside(start, end));
}

/// This may not be readable any more.
pub fn cannot_read(start: u64, bytes: u64) {
    let end = start.saturating_add(bytes);
    state().stacks.retain(is_outside(start, end));
}

fn is_outside(start: u64, end: u64) -> impl Fn(&(u64, u64)) -> bool {
    move |range| range.1 <= start || end <= range.0
}

/// Reports the stack of a call, unless the thread has reported it before: the return address, where it is, and rbp. The C library
/// knows the thread as `thread`. Returns the stack's number.
pub fn tell(slot: usize, [back, place, fp]: [u64; 3], thread: u64) -> u64 {
    let mut state = state();
    let mut stack = [0usize; STACK];
    stack[0] = back as usize;
    let mut count = 1;
    if state.sees {
        let first = Frame {
            return_address: back as usize,
            sp: place as usize + 8,
            fp: fp as usize,
        };
        let holds = |stack: &&(u64, u64)| (stack.0..stack.1).contains(&place);
        let end = state.stacks.iter().find(holds).map_or(0, |stack| stack.1);
        let mut memory = Memory::new(place as usize, end as usize);
        count = walk(
            first,
            &mut stack,
            |at| state.rule(at as u64),
            |at| memory.word(at),
        );
    }
    let mut words = [0; STACK + 2 * LINES];
    for (to, from) in words.iter_mut().zip(&stack[..count]) {
        *to = *from as u64;
    }
    if state.sees {
        count += state.scripts.lines(slot, thread, &mut words[count..]);
    }
    let words = &words[..count];
    let number = hash(state.epoch, words);
    if !state.has_first_stack && state.sees {
        state.has_first_stack = true;
        let stack = calls::write_stack_at(&shared(), place);
        state.stacks.extend(stack);
    }
    let is_new = state
        .told
        .get_mut(slot)
        .is_none_or(|told| told.insert(number));
    drop(state);
    if is_new {
        let shared = shared();
        let mut all = [number; STACK + 2 * LINES + 2];
        // What is mapped later is not where these calls are.
        all[1] = shared.header().module_bytes.load(Acquire).into();
        all[2..count + 2].copy_from_slice(words);
        shared.put(slot, EVENT_STACK, &all[..count + 2]);
    }
    number
}

/// FNV-1a over words.
pub fn hash(epoch: u64, words: &[u64]) -> u64 {
    let add = |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    words.iter().fold(0xcbf2_9ce4_8422_2325 ^ epoch, add)
}

impl State {
    /// How to unwind the frame of a return address; `None` where there is no table.
    fn rule(&mut self, return_address: u64) -> Option<Rule> {
        if self.rules.is_empty() {
            // an address that nothing returns to
            self.rules.resize(RULES, (0, None));
        }
        let place = (return_address ^ return_address >> 10) as usize % RULES;
        if self.rules[place].0 != return_address || return_address == 0 {
            self.rules[place] = (return_address, self.find_rule(return_address));
        }
        self.rules[place].1
    }

    fn find_rule(&mut self, return_address: u64) -> Option<Rule> {
        let call = return_address.wrapping_sub(1);
        let holds = |mapped: &Mapped| (mapped.start..mapped.end).contains(&call);
        let at = self.mapped.iter().rposition(holds)?;
        if self.mapped[at].table.is_none() {
            let table = self.table_of(at);
            self.mapped[at].table = Some(table);
            self.meet_python(at, call);
        }
        let mapped = &self.mapped[at];
        let table = mapped.table.as_ref()?.as_ref()?;
        let (start, _, rows) = table.parts()?;
        let address = table.address(call - mapped.start + mapped.offset)?;
        Some(rule_at(rows, address.wrapping_sub(start)))
    }

    /// Code of a mapped file was met for the first time. If it is an interpreter of Python, its state is in the same file.
    fn meet_python(&mut self, at: usize, call: u64) {
        let mapped = &self.mapped[at];
        let found = || {
            let table = mapped.table.as_ref()?.as_ref()?;
            let (runtime, version) = table.python?;
            let offset = call - mapped.start + mapped.offset;
            let base = call.wrapping_sub(table.address(offset)?);
            Some((base.wrapping_add(runtime), version))
        };
        if let Some((runtime, version)) = found() {
            self.scripts.meet(runtime, version);
        }
    }

    /// The table of a mapped file: one that another mapping of it has, or the recorder's answer.
    fn table_of(&self, at: usize) -> Option<Arc<Table>> {
        let path = &self.mapped[at].path;
        let mut others = self.mapped.iter().filter(|other| other.path == *path);
        let known = others.find_map(|other| other.table.clone());
        known.unwrap_or_else(|| Table::ask(self.tables.as_ref()?, path))
    }
}

impl Table {
    fn ask(tables: &Path, path: &str) -> Option<Arc<Table>> {
        let mut stream = UnixStream::connect(tables).ok()?;
        stream.write_all(format!("{path}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).ok()?;
        let mut said = answer.strip_suffix('\n')?.split('\t');
        let file = said.next().filter(|file| !file.is_empty())?;
        let mut number = || u64::from_str_radix(said.next()?, 16).ok();
        let python = number().zip(number());
        let bytes = std::fs::read(file).ok()?;
        let words = bytes.chunks(8).map(|piece| {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            u64::from_le_bytes(word)
        });
        let table = Table {
            words: words.collect(),
            bytes: bytes.len(),
            python: python.map(|(runtime, version)| (runtime, version as u32)),
        };
        table.parts()?;
        Some(Arc::new(table))
    }

    /// The address (link-time) of a byte of the file.
    fn address(&self, offset: u64) -> Option<u64> {
        let (_, segments, _) = self.parts()?;
        let holds = |segment: &&walk::Segment| {
            offset >= segment.offset && offset - segment.offset < segment.bytes
        };
        let segment = segments.iter().find(holds)?;
        Some(offset - segment.offset + segment.address)
    }

    fn parts(&self) -> Option<(u64, &[walk::Segment], &[walk::Row])> {
        // SAFETY: the words have at least `bytes` bytes.
        open(unsafe { core::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) })
    }
}

/// The stack of the thread that calls, from an address on, read as far as it is asked for.
struct Memory {
    start: usize,
    /// Up to here it is known to be a stack.
    end: usize,
    bytes: Vec<u8>,
}

impl Memory {
    fn new(start: usize, end: usize) -> Memory {
        Memory {
            start,
            end: end.min(start.saturating_add(MOST_BYTES)),
            bytes: Vec::new(),
        }
    }

    /// The word at an address; `None` outside of the stack, or too far up.
    fn word(&mut self, at: usize) -> Option<usize> {
        let from = at.checked_sub(self.start)?;
        let to = from.checked_add(8).filter(|&to| to <= MOST_BYTES)?;
        if at + 8 <= self.end {
            // SAFETY: the calling thread's own stack, which it uses up to here and which is not about to be unmapped.
            return Some(unsafe { (at as *const usize).read_unaligned() });
        }
        while self.bytes.len() < to {
            // up to the end of a page, behind which nothing may be
            let known = self.bytes.len();
            let next = self.start + known;
            let most = PIECE_BYTES - next % PIECE_BYTES;
            self.bytes.resize(known + most, 0);
            let got = guest(next as u64, &mut self.bytes[known..]);
            self.bytes.truncate(known + got);
            if got < most {
                break;
            }
        }
        let word = self.bytes.get(from..to)?;
        Some(usize::from_le_bytes(word.try_into().ok()?))
    }
}
