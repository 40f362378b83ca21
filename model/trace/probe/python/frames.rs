//! The frames of a thread of a Python program.

use super::layout::{Layout, OWNED_BY_NONE};
use super::{MOST_BYTES, Memory, word_in};

/// Interpreters and threads of a process that are looked through, and frames that are no function's.
const MOST_INTERPRETERS: usize = 64;
const MOST_THREADS: usize = 4096;
const MOST_STEPS: usize = 64;

/// Where a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Address of its code object.
    pub code: u64,
    /// Address of its instruction.
    pub instruction: u64,
}

/// The interpreter of a process.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    pub layout: Layout,
    /// Where its state is.
    pub runtime: u64,
}

impl Interpreter {
    /// The frames of a thread of the C library, the innermost first: as many as there is room for. Returns how many. `known`
    /// is where the thread's state was before, 0 if it is not known.
    pub fn frames(
        &self,
        thread: u64,
        known: &mut u64,
        places: &mut [Place],
        memory: &mut impl Memory,
    ) -> usize {
        let l = &self.layout;
        let Some(current) = self.current(thread, known, memory) else {
            return 0;
        };
        let (mut at, mut count) = (current, 0);
        let bytes = [l.code, l.previous, l.instruction, l.owner];
        let bytes = bytes.iter().max().map_or(0, |most| *most as usize + 8);
        for _ in 0..MOST_STEPS {
            let mut piece = [0; MOST_BYTES];
            let Some(frame) = piece.get_mut(..bytes) else {
                break;
            };
            if at == 0 || count == places.len() || !memory.read(at, frame) {
                break;
            }
            let word = |at| word_in(frame, at).unwrap_or(0);
            let owner = frame.get(l.owner as usize).copied();
            if owner.is_some_and(|owner| owner < OWNED_BY_NONE) {
                // Since 3.14 the lowest bits of references have a meaning of their own.
                places[count] = Place {
                    code: word(l.code) & !7,
                    instruction: word(l.instruction),
                };
                count += 1;
            }
            at = word(l.previous);
        }
        count
    }

    /// The innermost frame of a thread.
    fn current(&self, thread: u64, known: &mut u64, memory: &mut impl Memory) -> Option<u64> {
        let l = &self.layout;
        let is_known = *known != 0 && self.has(*known, thread, memory);
        if !is_known {
            *known = self.find(thread, memory).unwrap_or(0);
        }
        if *known == 0 {
            return None;
        }
        let current = memory.word(known.wrapping_add(l.current))?;
        match l.in_between {
            Some(at) => memory.word(current.wrapping_add(at)),
            None => Some(current),
        }
    }

    /// Is this still the state of the thread? The states of threads that are gone are in no list.
    fn has(&self, state: u64, thread: u64, memory: &mut impl Memory) -> bool {
        let l = &self.layout;
        let mut word = |at: u64, offset: u64| memory.word(at.wrapping_add(offset));
        if word(state, l.thread) != Some(thread) {
            return false;
        }
        let listed = match word(state, l.previous_thread) {
            Some(0) => word(state, l.interpreter).and_then(|all| word(all, l.threads)),
            Some(before) => word(before, l.next_thread),
            None => None,
        };
        listed == Some(state)
    }

    /// The state of a thread: interpreters have lists of theirs.
    fn find(&self, thread: u64, memory: &mut impl Memory) -> Option<u64> {
        let l = &self.layout;
        let mut word = |at: u64, offset: u64| memory.word(at.wrapping_add(offset));
        let mut interpreter = word(self.runtime, l.interpreters)?;
        for _ in 0..MOST_INTERPRETERS {
            if interpreter == 0 {
                break;
            }
            let mut state = word(interpreter, l.threads)?;
            for _ in 0..MOST_THREADS {
                if state == 0 {
                    break;
                }
                if word(state, l.thread)? == thread {
                    return Some(state);
                }
                state = word(state, l.next_thread)?;
            }
            interpreter = word(interpreter, l.next_interpreter)?;
        }
        None
    }
}
