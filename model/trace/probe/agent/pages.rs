//! Pages on nodes: which nodes a range is to be on, where its pages are, and moving them.

use super::heap::Range;
use core::ffi::{c_int, c_long};
use std::collections::BTreeMap;
use std::io::Error;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

// linux/mempolicy.h and the numbers of system calls on x86-64
const SYS_MBIND: c_long = 237;
const SYS_MOVE_PAGES: c_long = 279;
const PREFERRED: c_int = 1;
const PREFERRED_MANY: c_int = 5;
pub const MOVE: c_int = 2;
pub const PAGE: u64 = 4096;

/// Nodes that a set has room for.
const NODES: usize = 1024;
/// Limit of the pages of a range that are scanned.
const LOOKED_AT: u64 = 1 << 20;
/// Pages that the kernel is asked about at a time: a multiple of a large page's 512.
const BATCH: u64 = 4096;
/// Bytes of a large page. It moves as a whole, to one node.
const LARGE: u64 = 2 << 20;

/// A set of nodes.
#[derive(Clone, Copy, PartialEq)]
pub struct Nodes([u64; NODES / 64]);

impl Nodes {
    pub const NONE: Nodes = Nodes([0; NODES / 64]);

    /// Nodes such as `0+2`; a part that is no node is left out.
    pub fn parse(text: &str) -> Nodes {
        let mut nodes = Nodes::NONE;
        let numbers = text.split('+').filter_map(|node| node.parse().ok());
        for node in numbers.filter(|&node: &usize| node < NODES) {
            nodes.0[node / 64] |= 1 << (node % 64);
        }
        nodes
    }

    pub fn is_empty(&self) -> bool {
        *self == Nodes::NONE
    }

    pub fn list(&self) -> Vec<usize> {
        let has = |node: &usize| self.0[node / 64] >> (node % 64) & 1 == 1;
        (0..NODES).filter(has).collect()
    }

    /// Has pages of a range come from these nodes, and from others only if these are full.
    pub fn prefer(&self, start: u64, bytes: u64, flags: c_int) -> Result<(), Error> {
        let one = self.0.iter().map(|word| word.count_ones()).sum::<u32>() == 1;
        let mode = if one { PREFERRED } else { PREFERRED_MANY };
        let first = start / PAGE * PAGE;
        let bytes = (start + bytes).next_multiple_of(PAGE) - first;
        // SAFETY: the call changes where pages are and no byte of them; the kernel reads one bit less than the given
        // number.
        let result = unsafe {
            syscall(
                SYS_MBIND,
                first,
                bytes,
                mode,
                self.0.as_ptr(),
                NODES + 1,
                flags,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

/// Asks where pages are, or moves each to a node: by page its node then, or a negative number, as where it is not in memory.
fn move_pages(pages: &[u64], to: Option<&[c_int]>) -> Option<Vec<c_int>> {
    let mut status = vec![-1; pages.len()];
    let nodes = to.map_or(core::ptr::null(), <[c_int]>::as_ptr);
    // SAFETY: as many pages, nodes and answers as stated; contents stay as they are.
    let asked = unsafe {
        let (count, status) = (pages.len(), status.as_mut_ptr());
        syscall(
            SYS_MOVE_PAGES,
            0,
            count,
            pages.as_ptr(),
            nodes,
            status,
            MOVE,
        )
    };
    // More than 0: the number of pages that were not moved.
    (asked >= 0).then_some(status)
}

/// Bytes of a range that are in memory, by node, from the kernel. Of a very large one some pages stand for all.
pub fn positions(range: &Range) -> BTreeMap<i32, u64> {
    let mut found = BTreeMap::new();
    let first = range.start.next_multiple_of(PAGE);
    let pages = (range.start + range.bytes).saturating_sub(first) / PAGE;
    let step = pages.div_ceil(LOOKED_AT).max(1);
    let mut at = (0..pages)
        .step_by(step as usize)
        .map(|page| first + page * PAGE);
    loop {
        let batch: Vec<u64> = at.by_ref().take(BATCH as usize).collect();
        if batch.is_empty() {
            return found;
        }
        let Some(status) = move_pages(&batch, None) else {
            return found;
        };
        // Negative: not in memory.
        for node in status.into_iter().filter(|&node| node >= 0) {
            *found.entry(node).or_default() += PAGE * step;
        }
    }
}

/// Result of a move.
#[derive(Clone, Copy, Default)]
pub struct Moved {
    /// Bytes that are where they were to go, and were not before.
    pub bytes: u64,
    /// Bytes that are somewhere else nevertheless.
    pub elsewhere: u64,
}

/// Moves the pages of a range that are in memory to some nodes, while the program runs. Large pages need no check: a
/// page of one moves all of it. Several nodes get their parts by turns, as long as they have room.
pub fn move_to(start: u64, end: u64, nodes: &Nodes, moved: &mut Moved) {
    let nodes = nodes.list();
    let mut is_full = nodes.is_empty();
    // Batches begin where large pages do.
    let mut at = start / (BATCH * PAGE) * (BATCH * PAGE);
    while at < end {
        let next = at + BATCH * PAGE;
        let pages = (at.max(start / PAGE * PAGE)..next.min(end)).step_by(PAGE as usize);
        let mut pages: Vec<u64> = pages.collect();
        at = next;
        if !keep_others(&mut pages, &nodes) {
            return;
        }
        let all = pages.len();
        let mut open = nodes.clone();
        while !pages.is_empty() && !open.is_empty() && !is_full {
            let to = |page: &u64| open[(page / LARGE) as usize % open.len()];
            let targets: Vec<c_int> = pages.iter().map(|page| to(page) as c_int).collect();
            let before = pages.len();
            move_pages(&pages, Some(&targets));
            // The answer for a page of a large one that has moved already is an error, so where they are is asked again.
            if !keep_others(&mut pages, &nodes) {
                return;
            }
            // The kernel ends at the first page that it finds no room for; its moves until then may have made some. If
            // not, other nodes may have room for the rest.
            if let Some(full) = pages.first().map(to)
                && pages.len() == before
            {
                open.retain(|node| *node != full);
            }
        }
        is_full |= all > 0 && pages.len() == all;
        moved.bytes += (all - pages.len()) as u64 * PAGE;
        moved.elsewhere += pages.len() as u64 * PAGE;
    }
}

/// Keeps those of these pages that are in memory, and on none of these nodes; `false` if the kernel does not say.
fn keep_others(pages: &mut Vec<u64>, nodes: &[usize]) -> bool {
    let Some(status) = move_pages(pages, None) else {
        return false;
    };
    let mut status = status.into_iter();
    pages.retain(|_| {
        let node = status.next().unwrap_or(-1);
        node >= 0 && !nodes.contains(&(node as usize))
    });
    true
}
