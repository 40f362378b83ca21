//! Reads finished code: where its jumps are, and what else says how far something is away.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Code as the code generator left it. Offsets ascend.
pub(crate) struct Finished<'a> {
    pub code: &'a [u8],
    /// Where blocks start.
    pub blocks: &'a [u32],
    /// Fields that lead to what is elsewhere, and are filled later.
    pub fields: &'a [u32],
    /// Instructions that trap.
    pub traps: &'a [u32],
}

/// What a jump is, and so how it may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// To a place in the code, on a condition: its four bits.
    If(u8),
    /// To a place in the code.
    Always,
    /// Elsewhere: a call, a return, a jump to what a register says. Stays as it is.
    Out,
    /// No jump: constants begin here, whose alignment stays.
    Constants,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Jump {
    /// Where the instruction begins that the processor fuses with the jump: else the jump itself.
    pub fused: u32,
    pub at: u32,
    pub end: u32,
    pub kind: Kind,
    /// Of [`Kind::If`] and [`Kind::Always`].
    pub target: u32,
}

/// A field of four bytes: how far `target` is from `from`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distance {
    pub field: u32,
    pub from: From,
    pub target: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    /// The end of an instruction.
    End(u32),
    /// The start of a table of distances.
    Start(u32),
}

#[derive(Default, Debug)]
pub(super) struct Read {
    /// In order.
    pub jumps: Vec<Jump>,
    pub distances: Vec<Distance>,
}

/// One bit for each byte where an instruction starts.
struct Starts(Vec<u64>);

impl Starts {
    fn set(&mut self, at: u32) {
        self.0[at as usize / 64] |= 1 << (at % 64);
    }

    fn has(&self, at: u32) -> bool {
        let word = self.0.get(at as usize / 64);
        word.is_some_and(|word| word >> (at % 64) & 1 != 0)
    }
}

/// What is in the code; none if it is not understood in full. Blocks follow each other without gaps but for tables of distances, each of
/// which is behind the jump that reads it. Behind the last block are instructions that trap, and then constants.
pub(super) fn read(finished: &Finished) -> Option<Read> {
    let code = finished.code;
    let len = u32::try_from(code.len()).ok()?;
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut read = Read::default();
    let mut starts = Starts(vec![0; code.len() / 64 + 1]);
    let mut blocks = finished.blocks.iter().copied().peekable();
    let mut fields = finished.fields.iter().copied().peekable();
    let mut traps = finished.traps.iter().copied().peekable();
    // Where the code reads tables, the last one.
    let mut table = None;
    let mut before = None;
    // Up to where there is code for certain: some instructions of the code generator's are several, which jump among themselves.
    let mut furthest = 0;
    let mut constants = len;
    while decoder.position() < code.len() {
        let at = decoder.position() as u32;
        while blocks.next_if(|&block| block <= at).is_some() {}
        while traps.next_if(|&trap| trap < at).is_some() {}
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return None;
        }
        starts.set(at);
        let end = decoder.position() as u32;
        while fields.next_if(|&field| field < at).is_some() {}
        let filled_later = fields.peek().is_some_and(|&field| field < end);
        if instruction.is_ip_rel_memory_operand() && !filled_later {
            let target = u32::try_from(instruction.ip_rel_memory_address()).ok()?;
            let offsets = decoder.get_constant_offsets(&instruction);
            if offsets.displacement_size() != 4 {
                return None;
            }
            let field = at + offsets.displacement_offset() as u32;
            let from = From::End(end);
            read.distances.push(Distance {
                field,
                from,
                target,
            });
            if instruction.mnemonic() == Mnemonic::Lea {
                table = Some(target);
            }
        }
        let near = instruction.op0_kind() == OpKind::NearBranch64;
        let (kind, leaves) = match instruction.mnemonic() {
            Mnemonic::Jmp if near && !filled_later => (Some(Kind::Always), true),
            Mnemonic::Jmp | Mnemonic::Ret => (Some(Kind::Out), true),
            Mnemonic::Call if !near || filled_later => (Some(Kind::Out), false),
            Mnemonic::Ud2 => (None, true),
            _ if near => {
                let bytes = &code[at as usize..end as usize];
                (Some(Kind::If(condition(bytes)?)), false)
            }
            _ => (None, false),
        };
        if let Some(kind) = kind {
            let fused = match (kind, before) {
                (Kind::If(_), Some(before)) => before,
                _ => at,
            };
            let target = match kind {
                Kind::If(_) | Kind::Always => {
                    u32::try_from(instruction.near_branch_target()).ok()?
                }
                Kind::Out | Kind::Constants => 0,
            };
            furthest = furthest.max(target);
            read.jumps.push(Jump {
                fused,
                at,
                end,
                kind,
                target,
            });
        }
        before = fuses(&instruction).then_some(at);
        if instruction.mnemonic() == Mnemonic::Jmp && table == Some(end) {
            let limit = blocks.peek().or(traps.peek()).copied().unwrap_or(len);
            let after = distances(code, end, limit, &mut read.distances)?;
            decoder.set_position(after as usize).ok()?;
            decoder.set_ip(u64::from(after));
        }
        let end = decoder.position() as u32;
        while traps.next_if(|&trap| trap < end).is_some() {}
        let goes_on = blocks.peek().is_some() || traps.peek() == Some(&end) || furthest >= end;
        if leaves && !goes_on {
            constants = end;
            break;
        }
    }
    let is_code = |at: u32| starts.has(at);
    let jumps = &read.jumps;
    let inside = |jump: &&Jump| matches!(jump.kind, Kind::If(_) | Kind::Always);
    let whole = jumps.iter().filter(inside).all(|j| is_code(j.target))
        && finished.blocks.iter().all(|&block| is_code(block))
        && finished.traps.iter().all(|&trap| is_code(trap))
        && read.distances.iter().all(|d| match d.from {
            From::End(_) => d.target < len,
            From::Start(_) => is_code(d.target),
        });
    if constants < len {
        read.jumps.push(Jump {
            fused: constants,
            at: constants,
            end: constants,
            kind: Kind::Constants,
            target: 0,
        });
    }
    whole.then_some(read)
}

/// The four bits of a jump's condition; none for `loop` and its like.
fn condition(bytes: &[u8]) -> Option<u8> {
    match *bytes {
        [0x0f, second @ 0x80..=0x8f, ..] => Some(second & 0xf),
        [first @ 0x70..=0x7f, _] => Some(first & 0xf),
        _ => None,
    }
}

/// The table at `start`, up to `limit`: distances from its start. Its end.
fn distances(code: &[u8], start: u32, limit: u32, all: &mut Vec<Distance>) -> Option<u32> {
    let bytes = code.get(start as usize..limit as usize)?;
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut field = start;
    for &word in words {
        let target = start.checked_add_signed(i32::from_le_bytes(word))?;
        let from = From::Start(start);
        all.push(Distance {
            field,
            from,
            target,
        });
        field += 4;
    }
    Some(limit)
}

/// Whether the processor makes one operation of the instruction and a jump behind it. Some of these do so with a few conditions only, and
/// none where memory and a constant are compared, or memory is written.
fn fuses(instruction: &Instruction) -> bool {
    use Mnemonic::{Add, And, Cmp, Dec, Inc, Sub, Test};
    let mut operands = instruction.op_kinds();
    let first = operands.next();
    let second = operands.next();
    match instruction.mnemonic() {
        Add | And | Sub | Inc | Dec => first == Some(OpKind::Register),
        Cmp | Test => first == Some(OpKind::Register) || second == Some(OpKind::Register),
        _ => false,
    }
}
