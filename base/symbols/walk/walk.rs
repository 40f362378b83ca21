//! Walks a stack of x86-64 code without frame pointers, by tables that were made from `.eh_frame` beforehand.
//!
//! This file is compiled into probes and shims too, so it uses nothing but `core`, and allocates nothing. It reads
//! memory only through a function that it is given, which refuses what is outside of the thread's stack.
//!
//! A table's file, all numbers little-endian: a [`Header`], its [`Segment`]s, its [`Row`]s.

#![allow(dead_code)] // each of the programs that include this file uses its own part

/// The first bytes of a table's file.
pub const MAGIC: [u8; 8] = *b"VARVEUNW";
/// Changes with every change of the format.
pub const VERSION: u32 = 1;

/// The header of a table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub segments: u32,
    /// The address (link-time) from which rows count.
    pub start: u64,
    pub rows: u64,
}

/// A piece of the module's file that is loaded: bytes of the file, and the address (link-time) of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    pub offset: u64,
    pub bytes: u64,
    pub address: u64,
}

/// From this address on, up to the next row's, frames are unwound by this rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    /// Distance from the table's start.
    pub address: u32,
    pub rule: Rule,
}

/// Where the caller's frame is. The CFA is the value that rsp has after the function has returned; the return address
/// is just below it. Bits 0-1 say from what the CFA is found, bits 2-16 how far from it, bits 17-31 where the caller's
/// rbp is. Distances count words of 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Rule(pub u32);

/// Nothing is known: the walk ends here.
pub const UNKNOWN: Rule = Rule(0);
/// CFA = rsp + distance.
pub const FROM_SP: u32 = 1;
/// CFA = rbp + distance.
pub const FROM_FP: u32 = 2;
/// CFA = the word at rbp - distance, as in functions that align their stack.
pub const AT_FP: u32 = 3;
/// The caller's rbp is where rbp points to, rather than at a distance from the CFA.
pub const FP_AT_FP: u32 = MOST_WORDS;
/// No distance is larger.
pub const MOST_WORDS: u32 = (1 << 15) - 1;

impl Rule {
    /// `saved` is the distance from the CFA down to where the caller's rbp is, 0 if rbp still has it.
    pub const fn new(from: u32, words: u32, saved: u32) -> Rule {
        Rule(from | words << 2 | saved << 17)
    }
}

/// A function that has called another one: where it goes on, and its registers then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub return_address: usize,
    pub sp: usize,
    pub fp: usize,
}

/// No frame is larger.
const MOST_FRAME_BYTES: usize = 1 << 20;
const WORD: usize = 8;

/// Checks the bytes of a table's file, which begin at a multiple of 8, and gives its parts.
pub fn open(bytes: &[u8]) -> Option<(u64, &[Segment], &[Row])> {
    if !bytes.as_ptr().cast::<Header>().is_aligned() || bytes.len() < size_of::<Header>() {
        return None;
    }
    // SAFETY: long enough and aligned, and any bytes are a header.
    let header = unsafe { bytes.as_ptr().cast::<Header>().read() };
    if header.magic != MAGIC || header.version != VERSION {
        return None;
    }
    let rest = &bytes[size_of::<Header>()..];
    let segments = (header.segments as usize).checked_mul(size_of::<Segment>())?;
    let rows = usize::try_from(header.rows)
        .ok()?
        .checked_mul(size_of::<Row>())?;
    if segments.checked_add(rows)? != rest.len() {
        return None;
    }
    let (first, second) = rest.split_at(segments);
    // SAFETY: the lengths were checked; both parts keep the alignment, since their sizes are multiples of 8; any bytes
    // are segments and rows.
    unsafe {
        Some((
            header.start,
            core::slice::from_raw_parts(first.as_ptr().cast(), header.segments as usize),
            core::slice::from_raw_parts(second.as_ptr().cast(), header.rows as usize),
        ))
    }
}

/// The rule for an address, given as its distance from the table's start.
pub fn rule_at(rows: &[Row], distance: u64) -> Rule {
    let after = rows.partition_point(|row| u64::from(row.address) <= distance);
    match after.checked_sub(1) {
        Some(at) => rows[at].rule,
        None => UNKNOWN,
    }
}

/// The frame of a function's caller. `read` gives the word at an address of the thread's stack.
pub fn step(
    rule: Rule,
    frame: Frame,
    read: &mut impl FnMut(usize) -> Option<usize>,
) -> Option<Frame> {
    let words = (rule.0 >> 2 & MOST_WORDS) as usize * WORD;
    let saved = rule.0 >> 17;
    let cfa = match rule.0 & 3 {
        FROM_SP => frame.sp.checked_add(words)?,
        FROM_FP => frame.fp.checked_add(words)?,
        AT_FP => read(frame.fp.checked_sub(words)?)?,
        _ => return None,
    };
    let fp = match saved {
        0 => frame.fp,
        FP_AT_FP => read(frame.fp)?,
        words => read(cfa.checked_sub(words as usize * WORD)?)?,
    };
    above(frame, cfa, fp, read)
}

/// The same for code without a table, if it keeps frame pointers. If it does not, this goes astray, though never out of
/// the stack: the caller checks that each address follows a call.
pub fn step_by_frame_pointer(
    frame: Frame,
    read: &mut impl FnMut(usize) -> Option<usize>,
) -> Option<Frame> {
    let fp = read(frame.fp)?;
    above(frame, frame.fp.checked_add(2 * WORD)?, fp, read)
}

/// A caller's frame lies above its callee's.
fn above(
    frame: Frame,
    cfa: usize,
    fp: usize,
    read: &mut impl FnMut(usize) -> Option<usize>,
) -> Option<Frame> {
    let is_above = cfa > frame.sp && cfa - frame.sp <= MOST_FRAME_BYTES && cfa.is_multiple_of(WORD);
    if !is_above {
        return None;
    }
    let return_address = read(cfa - WORD)?;
    (return_address != 0).then_some(Frame {
        return_address,
        sp: cfa,
        fp,
    })
}

/// Return addresses from a frame on, the innermost first, into `into`; their number. `rule` gives the rule for a return
/// address: that of the call, a byte before. `None` means that the code has no table.
pub fn walk(
    first: Frame,
    into: &mut [usize],
    mut rule: impl FnMut(usize) -> Option<Rule>,
    mut read: impl FnMut(usize) -> Option<usize>,
) -> usize {
    let mut frame = first;
    for (number, place) in into.iter_mut().enumerate() {
        *place = frame.return_address;
        let next = match rule(frame.return_address) {
            Some(rule) => step(rule, frame, &mut read),
            None => step_by_frame_pointer(frame, &mut read),
        };
        match next {
            Some(next) => frame = next,
            None => return number + 1,
        }
    }
    into.len()
}
