//! The links between sockets, and the directory in memory of lines that other sockets may have.
//!
//! A message with a line crosses the link as a header and eight flits of 8 B, one without a line as a header alone (Intel
//! uncore performance monitoring guides, QPI and UPI link layer: nine flits for 64 B). Requests and written lines go one
//! way, lines that were read the other:
//!
//! ```text
//!               read                 line written back        non-temporal store
//! to the home   request              header, line             request; header, line
//! back          header, line         completion               grant; completion
//! ```
//!
//! The directory's rules are those of Intel's processors since Skylake (McCalpin, "Memory directories" in Intel processors,
//! 2023; Lenovo, Tuning UEFI settings on Xeon Scalable, Stale AtoS):
//!
//! - A line that another socket reads goes there exclusively, since it may be changed there. Memory has to know, so that the
//!   whole line is written (a *directory write*), unless it is marked already. A clean line is dropped in silence: it stays
//!   marked.
//! - A socket that reads a marked line of its own memory asks the other socket first. The mark stays.
//! - A line that is written back is unmarked by that write.
//! - A non-temporal store is first granted the line. The directory lookup is a read of memory, and the line is marked
//!   as by a read.

use super::queue::Line;
use super::time::{Ps, ps};
use crate::describe::{Directory, Link};
use std::ops::Range;

/// Flits of a message that carries a line.
const WITH_LINE: u64 = 9;

/// Bytes of a flit that count as data in a link's rate.
const FLIT: f64 = 8.0;

/// How a line gets to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// The caches push it out.
    Evicted,
    /// It is written back, and stays in a cache.
    Cleaned,
    /// A non-temporal store.
    Streamed,
}

/// Timing of a link that all sockets share.
#[derive(Clone, Debug)]
pub struct LinkTiming {
    /// One way, ps.
    pub half: Ps,
    /// Both ways, ps.
    pub whole: Ps,
    /// A message without a line, ps of one direction.
    pub message: Ps,
    /// A message with a line, ps.
    pub line: Ps,
    /// Is there a directory in memory?
    pub directory: bool,
}

impl LinkTiming {
    /// Timing of a machine's link; of none, where it has none.
    pub fn of(link: Option<&Link>) -> LinkTiming {
        let flits = |n: u64| link.map_or(0, |l| ps(n as f64 * FLIT / l.gbps));
        let whole = ps(link.map_or(0.0, |l| l.ns));
        LinkTiming {
            half: whole / 2,
            whole,
            message: flits(1),
            line: flits(WITH_LINE),
            directory: link.is_some_and(|l| l.directory == Directory::Memory),
        }
    }
}

/// Where a socket's messages to others leave it.
#[derive(Clone, Debug, Default)]
pub struct Port {
    leaving: Line,
}

impl Port {
    /// Sends messages that take `work`; returns how long they wait.
    #[inline(always)]
    pub fn send(&mut self, now: Ps, work: Ps) -> Ps {
        self.leaving.read(now, work)
    }
}

/// log2 of the bytes whose marks lie together.
const BLOCK_SHIFT: u32 = 21;

/// Marks of a block's lines.
type Block = [u64; 1 << (BLOCK_SHIFT - 12)];

/// Which lines of a socket's memory are marked: another socket may have them.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Lines that are not as all were in the beginning.
    blocks: Vec<Option<Box<Block>>>,
    /// Addresses whose lines were marked in the beginning.
    marked: Vec<Range<u64>>,
}

impl Marks {
    /// The lines of these physical addresses are marked.
    pub fn new(marked: Vec<Range<u64>>) -> Marks {
        Marks {
            blocks: Vec::new(),
            marked,
        }
    }

    /// Was no line ever marked?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.marked.is_empty()
    }

    #[inline(always)]
    fn place(physical: u64) -> (usize, usize, u64) {
        let line = physical >> 6;
        let word = (line >> 6) as usize % (1 << (BLOCK_SHIFT - 12));
        ((physical >> BLOCK_SHIFT) as usize, word, 1 << (line & 63))
    }

    /// Is the line of an address marked?
    pub fn has(&self, physical: u64) -> bool {
        let (block, word, bit) = Self::place(physical);
        let block = self.blocks.get(block).and_then(|b| b.as_deref());
        let was = self.marked.iter().any(|m| m.contains(&physical));
        block.is_some_and(|b| b[word] & bit != 0) != was
    }

    /// Marks the line of an address; was it unmarked?
    pub fn set(&mut self, physical: u64) -> bool {
        let new = !self.has(physical);
        if new {
            self.change(physical);
        }
        new
    }

    /// Unmarks the line of an address.
    pub fn clear(&mut self, physical: u64) {
        if self.has(physical) {
            self.change(physical);
        }
    }

    fn change(&mut self, physical: u64) {
        let (block, word, bit) = Self::place(physical);
        if self.blocks.len() <= block {
            self.blocks.resize_with(block + 1, || None);
        }
        let empty = || Box::new([0; 1 << (BLOCK_SHIFT - 12)]);
        self.blocks[block].get_or_insert_with(empty)[word] ^= bit;
    }
}

#[cfg(test)]
mod tests;
