//! Memory outside the allocator: mappings that the program makes, and its static variables.

use crate::budget;
use crate::divided::{self, LEAST};
use crate::entry::Caller;
use crate::find;
use crate::format::{FAST, OWN_GROUPS, SLOW};
use crate::map::{Map, map};
use crate::memory;
use crate::pieces::{Piece, Pieces};
use crate::sampled;
use crate::sandbox;
use crate::sys::{self, MPOL_MF_MOVE, PAGE};
use crate::thread::{self, Thread};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Mappings that are counted until they are freed. Those beyond stay counted.
const KEPT: usize = 1024;
/// Pieces of one mapping that are moved together.
const TOGETHER: usize = 16;

struct Kept {
    busy: AtomicBool,
    pieces: UnsafeCell<Pieces<KEPT>>,
}

// SAFETY: only the thread that has set `busy` uses the pieces.
unsafe impl Sync for Kept {}

static KEPT_PIECES: Kept = Kept {
    busy: AtomicBool::new(false),
    pieces: UnsafeCell::new(Pieces::new()),
};
/// Whether there is any, or was.
static ANY: AtomicBool = AtomicBool::new(false);

/// Does something with the mappings that are known. A signal handler that interrupts a thread inside waits in vain, and goes on
/// without.
fn kept<T>(action: impl FnOnce(&mut Pieces<KEPT>) -> T) -> Option<T> {
    const PATIENCE: u32 = 1 << 20;
    let free = || !KEPT_PIECES.busy.swap(true, Ordering::Acquire);
    let mut tries = 0;
    while !free() {
        tries += 1;
        if tries == PATIENCE {
            return None;
        }
        std::hint::spin_loop();
    }
    // SAFETY: `busy` was not set, and is now.
    let result = action(unsafe { &mut *KEPT_PIECES.pieces.get() });
    KEPT_PIECES.busy.store(false, Ordering::Release);
    Some(result)
}

/// In the child of a fork: who was at it is in the parent.
pub fn after_fork() {
    KEPT_PIECES.busy.store(false, Ordering::Release);
}

/// Calls `told` for each piece that is counted.
pub fn each(mut told: impl FnMut(Piece)) {
    kept(|pieces| pieces.all().iter().for_each(|piece| told(*piece)));
}

/// Bytes of static variables that are bound: fast, slow; and those that are on no page of their own.
pub static VARIABLES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

pub unsafe extern "C" fn plain_mmap(
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's call. The C library's function would be our own.
    unsafe {
        let file = c_long::from(file);
        libc::syscall(libc::SYS_mmap, at, bytes, protection, flags, file, offset) as *mut c_void
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "those of mmap, and where it was called"
)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    // SAFETY: the caller's call.
    let mapping = unsafe { plain_mmap(at, bytes, protection, flags, file, offset) };
    if mapping == libc::MAP_FAILED {
        return mapping;
    }
    if flags & libc::MAP_FIXED != 0 {
        sys::keeping_errno(|| uncount(&take(mapping as usize, bytes)));
    }
    let private = flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_SHARED == 0;
    if private && bytes >= LEAST {
        let caller = Caller {
            address,
            stack,
            frame,
        };
        sys::keeping_errno(|| place(mapping as usize, bytes, caller));
        sampled::mapped(mapping as usize, bytes, caller);
    }
    mapping
}

fn place(at: usize, bytes: usize, caller: Caller) -> Option<()> {
    let map = map()?;
    let thread = thread::current(map)?;
    let group = find::group(caller, thread)?;
    if settle(
        map,
        thread,
        group,
        at,
        bytes.next_multiple_of(PAGE),
        FAST,
        0,
    ) {
        thread.born(group);
    }
    Some(())
}

/// Bytes that a program gave a color to, and that stay where they are: the allocator has other blocks there next.
pub static OF_BLOCKS: AtomicU64 = AtomicU64::new(0);

/// Whole pages become memory that the program asked for, hot or cold, and migrate: whatever they were before, a site's or of the
/// other color. They are the program's own mappings; blocks of the allocator keep their tier.
pub fn color(start: usize, bytes: usize, color: c_int) {
    let (first, last) = memory::range();
    let end = start.saturating_add(bytes);
    sys::keeping_errno(|| {
        let before = (start, end.min(first.max(start)));
        let after = (start.max(last.min(end)), end);
        // Without ranges, `first` is `last`, and all is after it.
        for (start, end) in [before, after] {
            if start < end {
                color_mapping(start, end - start, color);
            }
        }
        let own = end.min(last).saturating_sub(start.max(first));
        if map().is_some() {
            OF_BLOCKS.fetch_add(own as u64, Relaxed);
        }
    });
}

fn color_mapping(at: usize, bytes: usize, color: c_int) -> Option<()> {
    let map = map()?;
    let thread = thread::current(map)?;
    if sandbox::closed() {
        return None;
    }
    let (tier, own) = match color {
        0 => (FAST, 1),
        _ => (SLOW, 2),
    };
    let group = map.groups() - OWN_GROUPS + own;
    let old = take(at, bytes);
    // What the range had of the budget is free for its new color.
    uncount(&old);
    match settle(map, thread, group, at, bytes, tier, MPOL_MF_MOVE) {
        true => thread.born(group),
        false => old.all().iter().for_each(|piece| {
            thread.mapped(piece.group, piece.tier, piece.bytes());
            keep(*piece);
        }),
    }
    Some(())
}

/// Binds memory of a group: as much of it as the budget allows to fast nodes, the rest to slow ones. `flags` say whether what is there
/// moves. False if that is refused.
#[allow(clippy::too_many_arguments, reason = "a range, whose it is, and how")]
fn settle(
    map: &Map,
    thread: &Thread,
    group: usize,
    at: usize,
    bytes: usize,
    most: u64,
    flags: u32,
) -> bool {
    thread.flush();
    let fast = match most {
        FAST => divided::fast_part(at, bytes, budget::room(group)),
        _ => 0,
    };
    if most == FAST && fast < bytes && budget::is_fast(group) {
        thread.refused(group);
    }
    let mut bound = false;
    for (start, bytes, tier) in [(at, fast, FAST), (at + fast, bytes - fast, SLOW)] {
        if bytes > 0 && sys::bind(start, bytes, map.nodes_of(tier), flags) {
            bound = true;
            thread.mapped(group, tier, bytes);
            keep(Piece {
                start,
                end: start + bytes,
                group,
                tier,
            });
        }
    }
    bound
}

fn keep(piece: Piece) {
    ANY.store(true, Relaxed);
    kept(|pieces| pieces.add(piece));
}

/// Removes and returns the pieces of a range.
fn take(at: usize, bytes: usize) -> Pieces<TOGETHER> {
    let mut taken = Pieces::new();
    if ANY.load(Relaxed) {
        let end = at.saturating_add(bytes).next_multiple_of(PAGE);
        kept(|pieces| {
            pieces.take(at, end, |piece| {
                if !taken.add(piece) {
                    // More than one call can return.
                    uncount_one(&piece);
                }
            })
        });
    }
    taken.sort();
    taken
}

fn uncount_one(piece: &Piece) {
    thread::taken(piece.group, piece.tier, piece.bytes());
}

fn uncount(pieces: &Pieces<TOGETHER>) {
    pieces.all().iter().for_each(uncount_one);
}

pub unsafe fn munmap(at: *mut c_void, bytes: usize) -> c_int {
    sampled::unmapped(at as usize, bytes);
    // An address that is not page-aligned is refused.
    let taken = match (at as usize).is_multiple_of(PAGE) {
        true => take(at as usize, bytes),
        false => Pieces::new(),
    };
    // SAFETY: the caller's call.
    let result = unsafe { libc::syscall(libc::SYS_munmap, at, bytes) as c_int };
    sys::keeping_errno(|| match result {
        0 => uncount(&taken),
        _ => taken.all().iter().for_each(|piece| keep(*piece)),
    });
    result
}

/// A mapping that grows, shrinks or moves. What is added is the last piece's. The kernel moves no mapping of several pieces: these go
/// one by one.
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's call.
    let plain = || unsafe {
        libc::syscall(libc::SYS_mremap, old, old_bytes, new_bytes, flags, to) as *mut c_void
    };
    let start = old as usize;
    let whole = start.is_multiple_of(PAGE) && old_bytes > 0 && new_bytes > 0;
    // With MREMAP_DONTUNMAP the old mapping stays, and stays counted; the new one is not.
    if !whole || flags & libc::MREMAP_DONTUNMAP != 0 {
        return plain();
    }
    if flags & libc::MREMAP_FIXED != 0 {
        sys::keeping_errno(|| uncount(&take(to as usize, new_bytes)));
    }
    let old_bytes = old_bytes.next_multiple_of(PAGE);
    let new_bytes = new_bytes.next_multiple_of(PAGE);
    let pieces = take(start, old_bytes);
    let moves = new_bytes > old_bytes || flags & libc::MREMAP_FIXED != 0;
    let result = match pieces.all() {
        [_, _, ..] if moves => {
            // SAFETY: the caller's call; these are all pieces of its mapping.
            unsafe { in_pieces(&pieces, start, old_bytes, new_bytes, flags, to as usize) }
        }
        _ => plain(),
    };
    sys::keeping_errno(|| {
        if result == libc::MAP_FAILED {
            return pieces.all().iter().for_each(|piece| keep(*piece));
        }
        sampled::moved(start, result as usize, new_bytes);
        for piece in pieces.all() {
            let cut = (start + new_bytes).clamp(piece.start, piece.end);
            let (stays, goes) = (
                Piece { end: cut, ..*piece },
                Piece {
                    start: cut,
                    ..*piece
                },
            );
            keep(stays.moved(start, result as usize));
            uncount_one(&goes);
        }
        let Some(last) = pieces.all().last() else {
            return;
        };
        if let Some(map) = map()
            && let Some(thread) = thread::current(map)
            && new_bytes > old_bytes
        {
            let (at, more) = (result as usize + old_bytes, new_bytes - old_bytes);
            settle(map, thread, last.group, at, more, last.tier, 0);
        }
    });
    result
}

/// Moves one piece: null is refused.
unsafe fn move_piece(piece: &Piece, bytes: usize, to: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the caller says whose the places are.
    unsafe {
        libc::syscall(
            libc::SYS_mremap,
            piece.start,
            piece.bytes(),
            bytes,
            flags,
            to,
        ) as usize
            == to
    }
}

/// `mremap` of a mapping that the kernel has as several, since their nodes differ.
unsafe fn in_pieces(
    pieces: &Pieces<TOGETHER>,
    start: usize,
    old_bytes: usize,
    new_bytes: usize,
    flags: c_int,
    to: usize,
) -> *mut c_void {
    let refused = |error: c_int| {
        // SAFETY: this thread's.
        unsafe { *libc::__errno_location() = error };
        libc::MAP_FAILED
    };
    let mut own = pieces.clone();
    let all = own.all_mut();
    let count = all.len();
    let tiles = all.windows(2).all(|two| two[0].end == two[1].start);
    if !tiles || all[0].start != start || all[count - 1].end != start + old_bytes {
        return refused(libc::EFAULT);
    }
    let fixed = flags & libc::MREMAP_FIXED != 0;
    let more = new_bytes.saturating_sub(old_bytes);
    let last = all[count - 1];
    if !fixed {
        // SAFETY: the last piece grows where it is, if there is room behind it.
        let grown = unsafe {
            libc::syscall(
                libc::SYS_mremap,
                last.start,
                last.bytes(),
                last.bytes() + more,
                0,
            )
        };
        if grown as usize == last.start {
            return start as *mut c_void;
        }
        if flags & libc::MREMAP_MAYMOVE == 0 {
            return refused(libc::ENOMEM);
        }
    }
    if fixed && (to < start + old_bytes && start < to + new_bytes || !to.is_multiple_of(PAGE)) {
        return refused(libc::EINVAL);
    }
    let target = match fixed {
        true => to,
        false => sys::reserve(new_bytes),
    };
    if target == 0 {
        return refused(libc::ENOMEM);
    }
    if new_bytes < old_bytes {
        // SAFETY: the program wants less of its mapping.
        unsafe { sys::unmap(start + new_bytes, old_bytes - new_bytes) };
        let end = start + new_bytes;
        all.iter_mut()
            .for_each(|piece| piece.end = piece.end.clamp(piece.start, end.max(piece.start)));
    }
    for (number, piece) in all
        .iter()
        .enumerate()
        .filter(|(_, piece)| piece.bytes() > 0)
    {
        let bytes = piece.bytes() + if number + 1 == count { more } else { 0 };
        // SAFETY: from the program's mapping to addresses that it named, or that were reserved for it.
        if unsafe { move_piece(piece, bytes, target + (piece.start - start)) } {
            continue;
        }
        for piece in &all[..number] {
            let there = piece.moved(start, target);
            // SAFETY: back to where it was a moment ago.
            unsafe { move_piece(&there, there.bytes(), piece.start) };
        }
        if !fixed {
            // SAFETY: reserved above; nothing is there any more.
            unsafe { sys::unmap(target, new_bytes) };
        }
        return refused(libc::ENOMEM);
    }
    target as *mut c_void
}

/// Binds and moves the static variables of a module. Pages that they share with others stay where they are.
pub fn place_variables(map: &Map, module: usize, base: usize) {
    for index in 0..map.statics() {
        let variable = map.variable(index);
        if variable.module != module {
            continue;
        }
        let first = base.wrapping_add(variable.address as usize);
        let (start, end) = (
            first.next_multiple_of(PAGE),
            (first + variable.bytes as usize) / PAGE * PAGE,
        );
        let whole = end.saturating_sub(start);
        let nodes = map.nodes_of(variable.tier);
        let bound = whole > 0 && sys::bind(start, whole, nodes, MPOL_MF_MOVE);
        let bound = if bound { whole as u64 } else { 0 };
        VARIABLES[variable.tier as usize & 1].fetch_add(bound, Relaxed);
        VARIABLES[2].fetch_add(variable.bytes - bound, Relaxed);
    }
}
