//! Puts the memory of a virtual machine on the nodes of its options: `-agentpath:AGENT=young=0;old=1;report=FILE`.
//!
//! A range is bound as it is reserved, and the pages in it are moved. A heap that grows maps its new part over its
//! reservation, which the kernel takes for new memory without a policy. So the agent is preloaded too, and interposes
//! the mapping call: a mapping inside a bound range is bound before any thread can touch it.

use super::codes::Use;
use super::heap::Range;
use super::pages::{MOVE, move_to};
pub use super::pages::{Moved, Nodes};
use core::ffi::{c_int, c_long, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// The number of the system call on x86-64.
const SYS_MMAP: c_long = 9;
const MAP_FIXED: c_int = 0x10;

/// Ranges that are bound, at most; more than a machine has.
const MOST: usize = 64;

/// Target tier for each kind of JVM memory, and the file for the report.
pub struct Places {
    nodes: [Mutex<Nodes>; Use::ALL.len()],
    /// The file of the report.
    pub report: Option<String>,
    /// The socket of the process that decides where the old generation is.
    pub decide: Option<String>,
    /// A machine whose generations cannot be placed does not run.
    pub must: bool,
}

static PLACES: OnceLock<Places> = OnceLock::new();

/// A range that is bound.
#[derive(Clone, Copy)]
struct Bound {
    start: u64,
    end: u64,
    what: Use,
}

/// No memory may be allocated while it is locked: the allocator might map some.
static BOUND: Mutex<([Option<Bound>; MOST], usize)> = Mutex::new(([None; MOST], 0));

/// The places, if any were given.
pub fn places() -> Option<&'static Places> {
    PLACES.get()
}

/// Reads the agent's options.
pub fn begin(options: &str) {
    let mut places = Places {
        nodes: [const { Mutex::new(Nodes::NONE) }; Use::ALL.len()],
        report: None,
        decide: None,
        must: false,
    };
    for (key, value) in options.split(';').filter_map(|part| part.split_once('=')) {
        match key {
            "report" => places.report = Some(value.into()),
            "decide" => places.decide = Some(value.into()),
            "must" => places.must = true,
            _ => {}
        }
        let named = Use::ALL.into_iter().find(|what| what.name() == key);
        if let Some(what) = named {
            places.nodes[what as usize] = Mutex::new(Nodes::parse(value));
        }
    }
    let _ = PLACES.set(places);
}

impl Places {
    /// The nodes for a use of memory; none if it stays where it is.
    pub fn of(&self, what: Use) -> Nodes {
        // Spaces are parts of their generation.
        match what {
            Use::Eden | Use::Survivor => Nodes::NONE,
            _ => *self.lock(what),
        }
    }

    fn lock(&self, what: Use) -> std::sync::MutexGuard<'_, Nodes> {
        let nodes = self.nodes[what as usize].lock();
        nodes.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether generations are to be in different memories, or one of them to move.
    pub fn tells_generations_apart(&self) -> bool {
        !self.of(Use::Old).is_empty() && self.of(Use::Heap).is_empty()
    }

    /// From now on the old generation is on these nodes: new memory is bound, and existing pages move. Of each of its
    /// ranges at most `bytes` are in memory.
    pub fn move_old(&self, nodes: Nodes, bytes: u64) -> Moved {
        *self.lock(Use::Old) = nodes;
        let bound = *BOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let mut moved = Moved::default();
        let old = bound.0.iter().take(bound.1).flatten();
        for range in old.filter(|range| range.what == Use::Old) {
            // The policy of the whole range changes at once, so that the kernel splits neither it nor a large page in
            // it. Pages that cannot be bound show in the count of those elsewhere.
            let _ = nodes.prefer(range.start, range.end - range.start, 0);
            let end = range.end.min(range.start.saturating_add(bytes));
            move_to(range.start, end, &nodes, &mut moved);
        }
        moved
    }

    /// Binds a range, and moves its pages.
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
        nodes.prefer(range.start, range.bytes, MOVE)
    }
}

/// Memory was mapped: binds the part of it that is in a bound range.
fn mapped(start: u64, bytes: u64) {
    let Some(places) = PLACES.get() else { return };
    let end = start + bytes;
    let bound = *BOUND.lock().unwrap_or_else(PoisonError::into_inner);
    for range in bound.0.iter().take(bound.1).flatten() {
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from < to {
            // The report shows pages that could not be bound.
            let _ = places.of(range.what).prefer(from, to - from, 0);
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
