//! Puts the memory of a virtual machine on nodes, where the agent was told to: `-agentpath:AGENT=young=0;old=1;report=FILE`.
//!
//! A range is bound as it is reserved, and what is there is moved. A heap that grows maps its new part over what it had reserved,
//! which the kernel takes for new memory without a policy. So the agent is preloaded too, and interposes the mapping call: what is
//! mapped inside of a bound range is bound before anybody can touch it.

use super::codes::Use;
use super::heap::Range;
use core::ffi::{c_int, c_long, c_void};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

// linux/mempolicy.h and the numbers of system calls on x86-64
const SYS_MMAP: c_long = 9;
const SYS_MBIND: c_long = 237;
const SYS_MOVE_PAGES: c_long = 279;
const PREFERRED: c_int = 1;
const PREFERRED_MANY: c_int = 5;
const MOVE: c_int = 2;
const PAGE: u64 = 4096;
const MAP_FIXED: c_int = 0x10;

/// Nodes that a set has room for.
const NODES: usize = 1024;
/// Ranges that are bound, at most; more than a machine has.
const MOST: usize = 64;
/// Pages of a range that are looked at, at most.
const LOOKED_AT: u64 = 1 << 20;

/// Where memory of each use is to be, and where to say what came of it.
pub struct Places {
    nodes: [Vec<usize>; Use::ALL.len()],
    /// The file of the report.
    pub report: Option<String>,
}

static PLACES: OnceLock<Places> = OnceLock::new();

/// A range that is bound.
#[derive(Clone, Copy)]
struct Bound {
    start: u64,
    end: u64,
    what: Use,
}

/// No memory is asked for while it is locked: whoever asks might map some.
static BOUND: Mutex<([Option<Bound>; MOST], usize)> = Mutex::new(([None; MOST], 0));

/// The places, if any were given.
pub fn places() -> Option<&'static Places> {
    PLACES.get()
}

/// Reads what the agent was given.
pub fn begin(options: &str) {
    let mut places = Places {
        nodes: Default::default(),
        report: None,
    };
    for (key, value) in options.split(';').filter_map(|part| part.split_once('=')) {
        if key == "report" {
            places.report = Some(value.into());
        }
        let named = Use::ALL.into_iter().find(|what| what.name() == key);
        if let Some(what) = named {
            let nodes = value.split('+').filter_map(|node| node.parse().ok());
            places.nodes[what as usize] = nodes.filter(|&node| node < NODES).collect();
        }
    }
    let _ = PLACES.set(places);
}

impl Places {
    /// The nodes for a use of memory; none if it stays where it is.
    pub fn of(&self, what: Use) -> &[usize] {
        // Spaces are parts of their generation.
        match what {
            Use::Eden | Use::Survivor => &[],
            _ => &self.nodes[what as usize],
        }
    }

    /// Binds a range, and moves what is there.
    pub fn bind(&self, range: &Range) -> Result<(), std::io::Error> {
        let nodes = self.of(range.what);
        if nodes.is_empty() {
            return Ok(());
        }
        let end = range.start + range.bytes;
        let mut bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, count) = &mut *bound;
        let same = |b: &&Bound| (b.start, b.end, b.what) == (range.start, end, range.what);
        if all.iter().flatten().any(|b| same(&b)) {
            return Ok(());
        }
        if *count < MOST {
            all[*count] = Some(Bound {
                start: range.start,
                end,
                what: range.what,
            });
            *count += 1;
        }
        drop(bound);
        prefer(range.start, range.bytes, nodes, MOVE)
    }
}

/// Has pages of a range come from these nodes, and from others only if these are full.
fn prefer(start: u64, bytes: u64, nodes: &[usize], flags: c_int) -> Result<(), std::io::Error> {
    let mut mask = [0u64; NODES / 64];
    for node in nodes {
        mask[node / 64] |= 1 << (node % 64);
    }
    let mode = if nodes.len() == 1 {
        PREFERRED
    } else {
        PREFERRED_MANY
    };
    let first = start / PAGE * PAGE;
    let bytes = (start + bytes).next_multiple_of(PAGE) - first;
    // SAFETY: the call changes where pages are and no byte of them; the kernel looks at one bit less than it is told of.
    let result = unsafe {
        syscall(
            SYS_MBIND,
            first,
            bytes,
            mode,
            mask.as_ptr(),
            NODES + 1,
            flags,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Something was mapped: what of it is in a bound range is bound.
fn mapped(start: u64, bytes: u64) {
    let Some(places) = PLACES.get() else { return };
    let end = start + bytes;
    let bound = *BOUND.lock().unwrap_or_else(PoisonError::into_inner);
    for range in bound.0.iter().take(bound.1).flatten() {
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from < to {
            // What cannot be bound is seen in the report.
            let _ = prefer(from, to - from, places.of(range.what), 0);
        }
    }
}

/// The mapping call of everybody in the process, when the agent is preloaded.
///
/// # Safety
/// As `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: promised by the caller.
    let at = unsafe { syscall(SYS_MMAP, address, bytes, prot, flags, fd, offset) };
    if at != -1 && flags & MAP_FIXED != 0 {
        mapped(at as u64, bytes as u64);
    }
    at as *mut c_void
}

/// The same under its other name.
///
/// # Safety
/// As `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: promised by the caller.
    unsafe { mmap(address, bytes, prot, flags, fd, offset) }
}

/// Bytes of a range that are in memory, by node, as the kernel says. Of a very large one some pages stand for all.
pub fn positions(range: &Range) -> BTreeMap<i32, u64> {
    const BATCH: usize = 4096;
    let mut found = BTreeMap::new();
    let first = range.start.next_multiple_of(PAGE);
    let pages = (range.start + range.bytes).saturating_sub(first) / PAGE;
    let step = pages.div_ceil(LOOKED_AT).max(1);
    let mut at = (0..pages)
        .step_by(step as usize)
        .map(|page| first + page * PAGE);
    loop {
        let batch: Vec<u64> = at.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return found;
        }
        let mut status = [-1i32; BATCH];
        // SAFETY: as many pages and answers as stated; no page is moved.
        let asked = unsafe {
            let nowhere = core::ptr::null::<c_int>();
            syscall(
                SYS_MOVE_PAGES,
                0,
                batch.len(),
                batch.as_ptr(),
                nowhere,
                status.as_mut_ptr(),
                0,
            )
        };
        if asked < 0 {
            return found;
        }
        // Negative: not in memory.
        for &node in status[..batch.len()].iter().filter(|&&node| node >= 0) {
            *found.entry(node).or_default() += PAGE * step;
        }
    }
}
