//! A thread's memory of walks. A walk is decided by where it begins and by the words of the stack that it reads: while these
//! are the same, so is its end. To compare them is faster than to walk, since nothing has to wait for what was read before.

use crate::entry::Caller;
use std::cell::Cell;

/// Words of the stack that a walk may read to be remembered.
const WORDS: usize = 8;
/// Walks that are remembered, a power of two.
const WALKS: usize = 32;

/// A walk that was made. Zeros are none.
#[derive(Clone, Copy)]
pub struct Walk {
    /// The table of return addresses, which is made anew when modules come.
    table: usize,
    caller: Caller,
    /// Whether the caller's frame pointer mattered.
    by_frame: bool,
    /// The group that was found, plus 1.
    answer: u32,
    count: u32,
    /// Addresses and what was there.
    words: [(usize, usize); WORDS],
}

/// The cached walks.
pub struct Memo([Cell<Walk>; WALKS]);

impl Memo {
    #[inline]
    fn place(&self, caller: &Caller) -> &Cell<Walk> {
        // Stacks are aligned to 16 bytes, and calls are some bytes apart.
        &self.0[(caller.address ^ caller.stack >> 4) % WALKS]
    }

    /// The answer of the same walk, a group plus 1, if it is remembered.
    #[inline]
    pub fn get(&self, table: usize, caller: &Caller) -> Option<u32> {
        // SAFETY: the place is this thread's, and no other thread writes it: a signal handler that does so is
        // through before this goes on, and what it changes is a walk of its own, which is compared like any other.
        let walk = unsafe { &*self.place(caller).as_ptr() };
        let same = walk.caller.address == caller.address
            && walk.caller.stack == caller.stack
            && walk.table == table
            && (!walk.by_frame || walk.caller.frame == caller.frame);
        // SAFETY: words between this stack pointer, where the walk was allowed, and the end of this thread's stack.
        let unchanged = |(at, was): &(usize, usize)| unsafe { *(*at as *const usize) } == *was;
        (same && walk.words[..walk.count as usize].iter().all(unchanged)).then_some(walk.answer)
    }
}

impl Walk {
    /// A walk that begins.
    pub fn new(table: usize, caller: Caller) -> Walk {
        Walk {
            table,
            caller,
            by_frame: false,
            answer: 0,
            count: 0,
            words: [(0, 0); WORDS],
        }
    }

    /// A word of the stack, which the caller has checked to be one.
    ///
    /// # Safety
    /// The address is aligned, and of this thread's stack.
    #[inline]
    pub unsafe fn read(&mut self, at: usize) -> usize {
        // SAFETY: the caller's promise.
        let word = unsafe { *(at as *const usize) };
        if let Some(place) = self.words.get_mut(self.count as usize) {
            *place = (at, word);
        }
        self.count += 1;
        word
    }

    /// The caller's frame pointer mattered.
    #[inline]
    pub fn by_frame(&mut self) {
        self.by_frame = true;
    }

    /// Remembers where it ended, unless it was too long.
    pub fn end(mut self, memo: &Memo, answer: u32) {
        if self.count as usize <= WORDS {
            self.answer = answer;
            memo.place(&self.caller).set(self);
        }
    }
}
