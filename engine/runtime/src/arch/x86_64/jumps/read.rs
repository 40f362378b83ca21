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

/// Offsets that ascend, and are asked for in order.
struct Ahead<'a>(&'a [u32]);

impl Ahead<'_> {
    /// The next one that is not below `at`.
    fn from(&mut self, at: u32) -> Option<u32> {
        let below = self.0.iter().take_while(|&&next| next < at).count();
        self.0 = &self.0[below..];
        self.0.first().copied()
    }
}

/// What is in the code; none if it is not understood in full. Blocks follow each other without gaps but for tables of distances, each of
/// which is behind the jump that reads it. Behind the last block are instructions that trap, and then constants.
pub(super) fn read(finished: &Finished) -> Option<Read> {
    let len = u32::try_from(finished.code.len()).ok()?;
    let mut reader = Reader::new(finished);
    let constants = reader.read_code()?;
    if !reader.is_whole(finished) {
        return None;
    }
    let mut read = reader.read;
    if constants < len {
        read.jumps.push(Jump {
            fused: constants,
            at: constants,
            end: constants,
            kind: Kind::Constants,
            target: 0,
        });
    }
    Some(read)
}

struct Reader<'a> {
    code: &'a [u8],
    decoder: Decoder<'a>,
    /// The one at hand.
    instruction: Instruction,
    blocks: Ahead<'a>,
    fields: Ahead<'a>,
    traps: Ahead<'a>,
    starts: Starts,
    /// The last address in the code that was computed: of a table, if a jump is before it.
    address: Option<u32>,
    /// Where the instruction before this one is, if a jump would be fused with it.
    before: Option<u32>,
    /// Up to where there is code for certain: some instructions of the code generator's are several, which jump among themselves.
    furthest: u32,
    read: Read,
}

impl<'a> Reader<'a> {
    fn new(finished: &Finished<'a>) -> Reader<'a> {
        Reader {
            code: finished.code,
            decoder: Decoder::new(64, finished.code, DecoderOptions::NONE),
            instruction: Instruction::default(),
            blocks: Ahead(finished.blocks),
            fields: Ahead(finished.fields),
            traps: Ahead(finished.traps),
            starts: Starts(vec![0; finished.code.len() / 64 + 1]),
            address: None,
            before: None,
            furthest: 0,
            read: Read::default(),
        }
    }

    /// Reads up to where constants begin.
    fn read_code(&mut self) -> Option<u32> {
        while self.decoder.can_decode() {
            let at = self.decoder.position() as u32;
            self.decoder.decode_out(&mut self.instruction);
            if self.instruction.is_invalid() {
                return None;
            }
            self.starts.set(at);
            let end = self.decoder.position() as u32;
            let is_filled_later = self.fields.from(at).is_some_and(|field| field < end);
            if self.instruction.is_ip_rel_memory_operand() && !is_filled_later {
                self.read_distance(at, end)?;
            }
            let leaves = self.read_jump(at, end, is_filled_later)?;
            let end = self.read_table(end)?;
            if leaves && !self.goes_on(end) {
                return Some(end);
            }
        }
        Some(self.code.len() as u32)
    }

    /// Notes how far away the instruction's operand is.
    fn read_distance(&mut self, at: u32, end: u32) -> Option<()> {
        let target = u32::try_from(self.instruction.ip_rel_memory_address()).ok()?;
        let offsets = self.decoder.get_constant_offsets(&self.instruction);
        if offsets.displacement_size() != 4 {
            return None;
        }
        self.read.distances.push(Distance {
            field: at + offsets.displacement_offset() as u32,
            from: From::End(end),
            target,
        });
        if self.instruction.mnemonic() == Mnemonic::Lea {
            self.address = Some(target);
        }
        Some(())
    }

    /// Notes the instruction if it is a jump. Whether control never goes on behind it.
    fn read_jump(&mut self, at: u32, end: u32, is_filled_later: bool) -> Option<bool> {
        let near = self.instruction.op0_kind() == OpKind::NearBranch64;
        let (kind, leaves) = match self.instruction.mnemonic() {
            Mnemonic::Jmp if near && !is_filled_later => (Some(Kind::Always), true),
            Mnemonic::Jmp | Mnemonic::Ret => (Some(Kind::Out), true),
            Mnemonic::Call if !near || is_filled_later => (Some(Kind::Out), false),
            Mnemonic::Ud2 => (None, true),
            _ if near => {
                let bytes = &self.code[at as usize..end as usize];
                (Some(Kind::If(condition(bytes)?)), false)
            }
            _ => (None, false),
        };
        if let Some(kind) = kind {
            let fused = match (kind, self.before) {
                (Kind::If(_), Some(before)) => before,
                _ => at,
            };
            let target = match kind {
                Kind::If(_) | Kind::Always => self.instruction.near_branch_target(),
                Kind::Out | Kind::Constants => 0,
            };
            let target = u32::try_from(target).ok()?;
            self.furthest = self.furthest.max(target);
            self.read.jumps.push(Jump {
                fused,
                at,
                end,
                kind,
                target,
            });
        }
        self.before = fuses(&self.instruction).then_some(at);
        Some(leaves)
    }

    /// Reads the table at `end`, where the instruction ends, if it is a jump by one. Where code goes on.
    fn read_table(&mut self, end: u32) -> Option<u32> {
        if self.instruction.mnemonic() != Mnemonic::Jmp || self.address != Some(end) {
            return Some(end);
        }
        let next = self.blocks.from(end).or_else(|| self.traps.from(end));
        let after = next.unwrap_or(self.code.len() as u32);
        distances(self.code, end, after, &mut self.read.distances)?;
        self.decoder.set_position(after as usize).ok()?;
        self.decoder.set_ip(u64::from(after));
        Some(after)
    }

    /// Whether there is code at `at`, behind an instruction that never goes on there.
    fn goes_on(&mut self, at: u32) -> bool {
        self.blocks.from(at).is_some() || self.traps.from(at) == Some(at) || self.furthest >= at
    }

    /// Whether all that is known to be an instruction was read as one.
    fn is_whole(&self, finished: &Finished) -> bool {
        let is_code = |at: u32| self.starts.has(at);
        let inside = |jump: &&Jump| matches!(jump.kind, Kind::If(_) | Kind::Always);
        self.read
            .jumps
            .iter()
            .filter(inside)
            .all(|j| is_code(j.target))
            && finished.blocks.iter().all(|&block| is_code(block))
            && finished.traps.iter().all(|&trap| is_code(trap))
            && self.read.distances.iter().all(|d| match d.from {
                From::End(_) => (d.target as usize) < self.code.len(),
                From::Start(_) => is_code(d.target),
            })
    }
}

/// The four bits of a jump's condition; none for `loop` and its like.
fn condition(bytes: &[u8]) -> Option<u8> {
    match *bytes {
        [0x0f, second @ 0x80..=0x8f, ..] => Some(second & 0xf),
        [first @ 0x70..=0x7f, _] => Some(first & 0xf),
        _ => None,
    }
}

/// Notes what is in the table from `start` to `end`: distances from its start.
fn distances(code: &[u8], start: u32, end: u32, all: &mut Vec<Distance>) -> Option<()> {
    let (words, rest) = code.get(start as usize..end as usize)?.as_chunks::<4>();
    for (&word, number) in words.iter().zip(0..) {
        all.push(Distance {
            field: start + 4 * number,
            from: From::Start(start),
            target: start.checked_add_signed(i32::from_le_bytes(word))?,
        });
    }
    rest.is_empty().then_some(())
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
