//! The run that is next among a thread's words.

use super::super::ring::{EVENT, HEAD, RUN, RUN_COUNT, RUN_COUNT_SHIFT};

/// A run at the front of a thread's words.
pub(super) struct Front<'a> {
    /// How the probe said it, but for its addresses.
    pub what: u64,
    pub addresses: &'a [u64],
    /// The words behind it.
    pub left: &'a [u64],
}

/// A run of a block of QEMU's; none if something else is there.
#[inline(always)]
pub(super) fn front_of_qemu(words: &[u64]) -> Option<Front<'_>> {
    let (&what, rest) = words.split_first()?;
    let count = (what >> RUN_COUNT_SHIFT & RUN_COUNT) as usize;
    let (addresses, left) = rest.split_at_checked(count)?;
    (what & HEAD == RUN).then_some(Front {
        what,
        addresses,
        left,
    })
}

// The head of an access of compiled code: its kind and size, the low half of its call's return address; and the access
// that it is merged with.

const SHAPE: u64 = (1 << CALLER_SHIFT) - 1;
pub(super) const CALLER_SHIFT: u32 = 18;
pub(super) const MERGED: u64 = 1 << 50;
pub(super) const DISTANCE_SHIFT: u32 = 51;
pub(super) const MOST_DISTANCE: u64 = 1 << 10;
/// A bit that every access has, so that none is 0, as empty entries are.
const ACCESS: u64 = 1 << 61;

/// An access of compiled code. A load whose store is the next access, as in `a[i] += x`, is one access to the machine.
#[inline(always)]
pub(super) fn front_of_compiled(words: &[u64]) -> Option<Front<'_>> {
    let (&[head, addr], left) = words.split_first_chunk()?;
    if head & HEAD == EVENT {
        return None;
    }
    let addresses = &words[1..2];
    if head & 3 == 0
        && let Some((&[later, place], after)) = left.split_first_chunk()
        && place == addr
        && (later ^ head) & SHAPE == 1
        && later >> MERGED.trailing_zeros() == 0
    {
        let distance = (later >> CALLER_SHIFT).wrapping_sub(head >> CALLER_SHIFT) & 0xffff_ffff;
        if distance < MOST_DISTANCE {
            return Some(Front {
                what: head | ACCESS | MERGED | distance << DISTANCE_SHIFT,
                addresses,
                left: after,
            });
        }
    }
    Some(Front {
        what: head | ACCESS,
        addresses,
        left,
    })
}

// The estimate of instructions in compiled code. With these numbers, programs that sort, walk a tree and stream over
// arrays (gcc 12 and clang 14, -O1 and -O2) come to 0.8 to 1.3 times QEMU's count of them without the probe.

/// Two calls in the code that are less apart are taken for a straight piece of code.
const STRAIGHT_BYTES: u32 = 128;
/// Bytes that the instrumentation itself takes per access: the call, its argument, and a register moved out of its way.
const CALL_BYTES: u32 = 12;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: u32 = 5;
/// Instructions between accesses that a jump, a call or a return separates; also for the body of a loop of one access.
const JUMP_INSTRUCTIONS: u32 = 4;

/// Instructions of the program between two instrumented accesses, from the distance of the calls in the code.
pub(super) fn estimate(from: u32, to: u32) -> u32 {
    let distance = to.wrapping_sub(from);
    if distance == 0 || distance > STRAIGHT_BYTES {
        JUMP_INSTRUCTIONS
    } else {
        1 + distance.saturating_sub(CALL_BYTES) / INSTRUCTION_BYTES
    }
}
