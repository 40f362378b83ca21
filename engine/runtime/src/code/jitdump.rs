//! Compiled code for Linux's `perf inject --jit`: a file with each piece's address, bytes, name and source lines
//! (tools/perf/Documentation/jitdump-specification.txt of the kernel's sources).
//!
//! ```text
//! header  "DTiJ" version  header's bytes  processor  0  process  time  flags
//! record  kind  bytes with this head  time  ...        lines of a piece of code, then the code; at the end that it ends
//! ```
//!
//! All numbers are little-endian. `perf` finds the file as it sees a page of it being mapped as code. Times are of the clock
//! `CLOCK_MONOTONIC`, so `perf record` has to take that one too: `-k mono`.

use crate::arch::ELF_MACHINE;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const HEADER_BYTES: u32 = 40;
const RECORD_HEAD: usize = 16;
const PAGE: usize = 4096;

/// Kinds of records.
mod kind {
    pub const CODE: u32 = 0;
    pub const LINES: u32 = 2;
    pub const CLOSE: u32 = 3;
}

/// The file in which `perf inject --jit` finds code that this process compiles: `jit-PID.dump`. It stays when the process ends.
#[derive(Debug)]
pub struct JitDump {
    path: PathBuf,
    state: Mutex<State>,
    _marker: Marker,
}

#[derive(Debug)]
struct State {
    /// None once it could not be written: a program is not stopped for that.
    file: Option<File>,
    /// Pieces of code so far.
    pieces: u64,
}

/// A page of the file, mapped as code.
#[derive(Debug)]
struct Marker(*mut libc::c_void);

// SAFETY: no code reads or writes the page.
unsafe impl Send for Marker {}
// SAFETY: as above.
unsafe impl Sync for Marker {}

impl Drop for Marker {
    fn drop(&mut self) {
        // SAFETY: mapped by `JitDump::create`, and no reference into it exists.
        unsafe { libc::munmap(self.0, PAGE) };
    }
}

/// The source of code from an address on.
pub(crate) struct Line<'a> {
    pub address: usize,
    pub file: &'a str,
    pub line: u32,
}

/// Nanoseconds of the clock that `perf record -k mono` takes.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes the time there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A record that is being put together.
struct Bytes(Vec<u8>);

impl Bytes {
    fn record(kind: u32) -> Bytes {
        let mut bytes = Bytes(Vec::with_capacity(128));
        // Its length is known at its end.
        bytes.u32(kind).u32(0).u64(now());
        bytes
    }

    fn u32(&mut self, n: u32) -> &mut Bytes {
        self.0.extend(n.to_le_bytes());
        self
    }

    fn u64(&mut self, n: u64) -> &mut Bytes {
        self.0.extend(n.to_le_bytes());
        self
    }

    /// A text and the zero after it.
    fn text(&mut self, text: &str) -> &mut Bytes {
        self.0.extend(text.bytes().filter(|&b| b != 0));
        self.0.push(0);
        self
    }

    fn done(mut self) -> Vec<u8> {
        let bytes = (self.0.len() as u32).to_le_bytes();
        self.0[4..8].copy_from_slice(&bytes);
        self.0
    }
}

impl JitDump {
    /// Makes the file in a folder; one of an earlier process of this number goes.
    ///
    /// # Errors
    /// The system's error; also if nothing in that folder may be mapped as code.
    pub fn create(folder: &Path) -> io::Result<JitDump> {
        let path = folder.join(format!("jit-{}.dump", std::process::id()));
        // The folder may be one that everybody writes into, so nothing that is there already is followed or written into.
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let mut header = Bytes(Vec::new());
        header.u32(MAGIC).u32(VERSION).u32(HEADER_BYTES);
        header.u32(ELF_MACHINE).u32(0).u32(std::process::id());
        header.u64(now()).u64(0);
        file.write_all(&header.0)?;
        // SAFETY: a fresh mapping that is never accessed.
        let page = unsafe {
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            let fd = file.as_raw_fd();
            libc::mmap(
                std::ptr::null_mut(),
                PAGE,
                protection,
                libc::MAP_PRIVATE,
                fd,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(JitDump {
            path,
            state: Mutex::new(State {
                file: Some(file),
                pieces: 0,
            }),
            _marker: Marker(page),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Code at an address has this name, and these lines, from now on. Lines are in the order of their addresses.
    pub(crate) fn add(&self, start: usize, code: &[u8], name: &str, lines: &[Line<'_>]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        if !lines.is_empty() {
            let mut record = Bytes::record(kind::LINES);
            record.u64(start as u64).u64(lines.len() as u64);
            for line in lines {
                record.u64(line.address as u64).u32(line.line).u32(0);
                record.text(line.file);
            }
            all = record.done();
        }
        let mut record = Bytes::record(kind::CODE);
        // SAFETY: gettid has no conditions.
        let thread = unsafe { libc::gettid() };
        record.u32(std::process::id()).u32(thread as u32);
        record.u64(start as u64).u64(start as u64);
        record.u64(code.len() as u64).u64(state.pieces);
        record.text(&name.replace('`', ""));
        record.0.extend(code);
        all.extend(record.done());
        state.pieces += 1;
        state.write(&all);
    }
}

impl State {
    /// One write for all that belongs together, so that a reader sees whole records while the file grows.
    fn write(&mut self, bytes: &[u8]) {
        if self
            .file
            .as_mut()
            .is_some_and(|f| f.write_all(bytes).is_err())
        {
            self.file = None;
        }
    }
}

impl Drop for JitDump {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let close = Bytes::record(kind::CLOSE).done();
        debug_assert_eq!(close.len(), RECORD_HEAD);
        state.unwrap_or_else(PoisonError::into_inner).write(&close);
    }
}
