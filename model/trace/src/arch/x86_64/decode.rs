//! The part of the x86-64 instruction format that the recorder needs: the accesses of an instruction, their addresses,
//! and its effect on the general registers. A result that is known here must be right, since QEMU is not asked then;
//! QEMU reports the accesses of all other instructions as they run.

use crate::ring::NO_REGISTER;

/// Bytes of an instruction, at most.
pub const LONGEST_INSTRUCTION: u64 = 15;

pub const RAX: u8 = 0;
pub const RCX: u8 = 1;
pub const RDX: u8 = 2;
pub const RSP: u8 = 4;
pub const RBP: u8 = 5;

pub const READ: u8 = 0;
pub const WRITE: u8 = 1;
pub const UPDATE: u8 = 2;

/// How an address is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// [`NO_REGISTER`] when there is none.
    pub base: u8,
    pub index: u8,
    /// Logarithm of the index's factor.
    pub scale: u8,
    /// Prefix byte of the segment; 0 for none.
    pub segment: u8,
    /// The displacement counts from the end of the instruction.
    pub relative: bool,
    /// 32-bit arithmetic, which wraps.
    pub narrow: bool,
    pub displacement: i64,
}

/// One access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub place: Place,
    pub kind: u8,
    /// Bytes.
    pub size: u8,
    /// QEMU may make it in pieces.
    pub vector: bool,
}

/// Effect of an instruction on the general registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// All may have changed.
    pub all: bool,
    /// One bit per register that changes in a way that is not followed.
    pub clobbers: u16,
    /// Register, and the register and distance that it is then: `add rsp, 8`, `mov rbp, rsp`, `lea rax, [rbx+16]`.
    pub assigns: Option<(u8, u8, i64)>,
    /// Change of the stack pointer, bytes.
    pub stack: i64,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    /// Nothing is known of its accesses but that it may make some.
    pub unknown: bool,
    pub accesses: [Option<Access>; 2],
    pub effect: Effect,
    /// Register that it loads.
    pub loads: u8,
    /// Registers of its operand's address.
    pub base: u8,
    pub index: u8,
    pub non_temporal: bool,
    /// Width of a whole vector that it may access in pieces, for instructions of which nothing more is known too.
    pub vector: u8,
}

impl Insn {
    fn new() -> Insn {
        Insn {
            unknown: false,
            accesses: [None; 2],
            effect: Effect::default(),
            loads: NO_REGISTER,
            base: NO_REGISTER,
            index: NO_REGISTER,
            non_temporal: false,
            vector: 0,
        }
    }

    /// The same with nothing known of its accesses and effects.
    pub fn unknown(mut self) -> Insn {
        self.unknown = true;
        self.accesses = [None; 2];
        self.effect = Effect {
            all: true,
            ..Effect::default()
        };
        self
    }

    fn access(&mut self, place: Place, kind: u8, size: u8) {
        let at = usize::from(self.accesses[0].is_some());
        self.accesses[at] = Some(Access {
            place,
            kind,
            size,
            vector: false,
        });
    }

    fn clobber(&mut self, register: u8) {
        self.effect.clobbers |= 1 << register;
    }

    fn push(&mut self) {
        self.access(stack(-8), WRITE, 8);
        self.effect.stack = -8;
    }
}

/// A place relative to the stack pointer.
fn stack(displacement: i64) -> Place {
    Place {
        base: RSP,
        index: NO_REGISTER,
        scale: 0,
        segment: 0,
        relative: false,
        narrow: false,
        displacement,
    }
}

/// The bytes before the operand.
struct Head {
    at: usize,
    /// 0x66, 0xf2, 0xf3 or 0.
    prefix: u8,
    operand_16: bool,
    segment: u8,
    narrow: bool,
    repeat: bool,
    /// Bits: 1 B, 2 X, 4 R, 8 W.
    rex: u8,
    has_rex: bool,
    vex: bool,
    map: u8,
    opcode: u8,
    width: u8,
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

fn head(bytes: &[u8]) -> Head {
    let byte = |at| byte(bytes, at);
    let mut head = Head {
        at: 0,
        prefix: 0,
        operand_16: false,
        segment: 0,
        narrow: false,
        repeat: false,
        rex: 0,
        has_rex: false,
        vex: false,
        map: 0,
        opcode: 0,
        width: 16,
    };
    loop {
        match byte(head.at) {
            0x66 => head.operand_16 = true,
            code @ (0xf2 | 0xf3) => {
                head.prefix = code;
                head.repeat = true;
            }
            code @ (0x64 | 0x65) => head.segment = code,
            0x67 => head.narrow = true,
            0xf0 | 0x2e | 0x36 | 0x3e | 0x26 => {}
            _ => break,
        }
        head.at += 1;
    }
    if head.operand_16 && head.prefix == 0 {
        head.prefix = 0x66;
    }
    match byte(head.at) {
        code @ 0x40..=0x4f => {
            (head.rex, head.has_rex) = (code & 15, true);
            head.at += 1;
        }
        code @ (0xc4 | 0xc5) => {
            head.vex = true;
            let last = byte(head.at + if code == 0xc5 { 1 } else { 2 });
            head.rex = !byte(head.at + 1) >> 5 & 7;
            head.map = 1;
            if code == 0xc5 {
                head.rex &= 4;
            } else {
                head.rex |= last >> 4 & 8;
                head.map = byte(head.at + 1) & 0x1f;
            }
            head.prefix = [0, 0x66, 0xf3, 0xf2][usize::from(last & 3)];
            head.width = if last & 4 != 0 { 32 } else { 16 };
            head.at += if code == 0xc5 { 2 } else { 3 };
        }
        _ => {}
    }
    if !head.vex && byte(head.at) == 0x0f {
        head.at += 1;
        head.map = 1;
        if matches!(byte(head.at), 0x38 | 0x3a) {
            head.map = if byte(head.at) == 0x38 { 2 } else { 3 };
            head.at += 1;
        }
    }
    head.opcode = byte(head.at);
    head.at += 1;
    head
}

/// The operand byte and the bytes after it: the place in memory, if it names one, and the index after it.
fn operand(bytes: &[u8], head: &Head) -> (u8, Option<Place>, usize) {
    let byte = |at| byte(bytes, at);
    let word = |at| i32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
    let code = byte(head.at);
    let mut at = head.at + 1;
    let mode = code >> 6;
    if mode == 3 {
        return (code, None, at);
    }
    let mut place = Place {
        base: NO_REGISTER,
        index: NO_REGISTER,
        scale: 0,
        segment: head.segment,
        relative: false,
        narrow: head.narrow,
        displacement: 0,
    };
    let mut long = mode == 2;
    match code & 7 {
        4 => {
            let scale = byte(at);
            at += 1;
            let index = scale >> 3 & 7 | (head.rex & 2) << 2;
            if index != RSP {
                (place.index, place.scale) = (index, scale >> 6);
            }
            if scale & 7 == 5 && mode == 0 {
                long = true;
            } else {
                place.base = scale & 7 | (head.rex & 1) << 3;
            }
        }
        5 if mode == 0 => (place.relative, long) = (true, true),
        low => place.base = low | (head.rex & 1) << 3,
    }
    if long {
        place.displacement = i64::from(word(at));
        at += 4;
    } else if mode == 1 {
        place.displacement = i64::from(byte(at) as i8);
        at += 1;
    }
    (code, Some(place), at)
}

/// Reads one instruction.
pub fn decode(bytes: &[u8]) -> Insn {
    let head = head(bytes);
    let mut insn = Insn::new();
    if head.narrow && head.map == 0 && head.opcode == 0xe3 {
        return insn.unknown();
    }
    let has_operand = match head.map {
        0 => one_byte_operand(head.opcode),
        1 => two_byte_operand(head.opcode),
        _ => true,
    };
    if !has_operand {
        return without_operand(&head, insn);
    }
    let (code, place, end) = operand(bytes, &head);
    let register = code >> 3 & 7 | (head.rex & 4) << 1;
    let other = code & 7 | (head.rex & 1) << 3;
    if let Some(place) = place {
        (insn.base, insn.index) = (place.base, place.index);
        if loads_register(head.map, head.opcode) {
            insn.loads = register;
        }
        insn.non_temporal = head.map == 1 && matches!(head.opcode, 0x2b | 0xc3 | 0xe7);
        if full_vector(head.map, head.opcode, head.prefix) {
            insn.vector = head.width;
        }
    }
    let known = match head.map {
        0 => one_byte(&mut insn, &head, bytes, code, register, other, place, end),
        1 => two_bytes(&mut insn, &head, code, register, other, place),
        _ => {
            insn.clobber(register);
            insn.clobber(other);
            let vector = insn.vector > 0 && head.map == 2 && head.opcode < 0xf0;
            match place {
                None => matches!((head.map, head.opcode), (2, 0x00..=0xdf)),
                Some(place) if vector => {
                    insn.access(place, READ, head.width);
                    true
                }
                Some(_) => false,
            }
        }
    };
    if !known {
        return insn.unknown();
    }
    if insn.vector > 8
        && let Some(access) = &mut insn.accesses[0]
        && access.size == insn.vector
    {
        access.vector = true;
    }
    insn
}

/// Instructions without an operand byte.
fn without_operand(head: &Head, mut insn: Insn) -> Insn {
    let low = head.opcode & 7 | (head.rex & 1) << 3;
    match (head.map, head.opcode) {
        (0, 0x50..=0x57 | 0x68 | 0x6a | 0xe8) if !head.operand_16 => insn.push(),
        (0, 0x58..=0x5f) if !head.operand_16 => {
            insn.access(stack(0), READ, 8);
            (insn.base, insn.loads) = (RSP, low);
            insn.effect.stack = 8;
            insn.clobber(low);
        }
        (0, 0xc3) => {
            insn.access(stack(0), READ, 8);
            insn.base = RSP;
            insn.effect.stack = 8;
        }
        (0, 0xc9) if !head.operand_16 => {
            insn.access(
                Place {
                    base: RBP,
                    ..stack(0)
                },
                READ,
                8,
            );
            insn.effect.clobbers = 1 << RBP;
            insn.effect.assigns = Some((RSP, RBP, 8));
        }
        (
            0,
            0x04 | 0x0c | 0x14 | 0x1c | 0x24 | 0x2c | 0x34 | 0x3c | 0x05 | 0x0d | 0x15 | 0x1d
            | 0x25 | 0x2d | 0x35 | 0x3d,
        ) => {
            insn.clobber(RAX);
        }
        (0, 0x70..=0x7f | 0xa8 | 0xa9 | 0xe9 | 0xeb) => {}
        (0, 0x90) if head.rex & 1 == 0 => {}
        (0, 0x90..=0x97) => {
            insn.clobber(RAX);
            insn.clobber(low);
        }
        (0, 0x98) => insn.clobber(RAX),
        (0, 0x99) => insn.clobber(RDX),
        (0, 0xb0..=0xbf) => {
            insn.clobber(low);
            insn.clobber(low & 3);
        }
        (0, 0xe0..=0xe3) => insn.clobber(RCX),
        (1, 0x05 | 0x0b | 0x31 | 0xa2) => insn.effect.all = true,
        (1, 0x80..=0x8f) => {}
        (1, 0xc8..=0xcf) => insn.clobber(low),
        (1, 0x77) => {}
        _ => return insn.unknown(),
    }
    insn
}

/// Instructions of the first table with an operand byte. `false`: not known.
#[allow(clippy::too_many_arguments, reason = "the parts of one instruction")]
fn one_byte(
    insn: &mut Insn,
    head: &Head,
    bytes: &[u8],
    code: u8,
    register: u8,
    other: u8,
    place: Option<Place>,
    end: usize,
) -> bool {
    let opcode = head.opcode;
    let wide = head.rex & 8 != 0;
    let operand = if wide {
        8
    } else if head.operand_16 {
        2
    } else {
        4
    };
    let size = if opcode & 1 == 0 { 1 } else { operand };
    let extension = code >> 3 & 7;
    // registers 4 to 7 of a byte without a REX prefix are the second bytes of registers 0 to 3
    let both = |insn: &mut Insn, register: u8| {
        insn.clobber(register);
        if opcode & 1 == 0 && !head.has_rex {
            insn.clobber(register & 3);
        }
    };
    // the operand is changed: in memory, or in a register
    let changes = |insn: &mut Insn| match place {
        Some(place) => insn.access(place, UPDATE, size),
        None => both(insn, other),
    };
    let reads = |insn: &mut Insn, size: u8| {
        if let Some(place) = place {
            insn.access(place, READ, size);
        }
    };
    match opcode {
        0x00..=0x3b => {
            let compares = opcode >> 3 == 7;
            if opcode & 2 != 0 || compares {
                reads(insn, size);
                if !compares {
                    both(insn, register);
                }
            } else {
                changes(insn);
            }
        }
        0x63 => {
            reads(insn, 4);
            insn.clobber(register);
        }
        0x69 | 0x6b => {
            reads(insn, operand);
            insn.clobber(register);
        }
        0x80 | 0x81 | 0x83 => {
            let value = match opcode {
                0x83 => i64::from(byte(bytes, end) as i8),
                _ => i64::from(i32::from_le_bytes([
                    byte(bytes, end),
                    byte(bytes, end + 1),
                    byte(bytes, end + 2),
                    byte(bytes, end + 3),
                ])),
            };
            match (extension, place) {
                (7, _) => reads(insn, size),
                (0 | 5, None) if wide && opcode != 0x80 => {
                    insn.effect.assigns =
                        Some((other, other, if extension == 0 { value } else { -value }));
                }
                _ => changes(insn),
            }
        }
        0x84 | 0x85 => reads(insn, size),
        0x86 | 0x87 => {
            changes(insn);
            both(insn, register);
        }
        0x88 | 0x89 => match place {
            Some(place) => insn.access(place, WRITE, size),
            None if wide && opcode == 0x89 => insn.effect.assigns = Some((other, register, 0)),
            None => both(insn, other),
        },
        0x8a | 0x8b => match place {
            None if wide && opcode == 0x8b => insn.effect.assigns = Some((register, other, 0)),
            _ => {
                reads(insn, size);
                both(insn, register);
            }
        },
        0x8d => match place {
            Some(place)
                if wide
                    && place.base != NO_REGISTER
                    && place.index == NO_REGISTER
                    && !place.narrow =>
            {
                insn.effect.assigns = Some((register, place.base, place.displacement));
            }
            _ => insn.clobber(register),
        },
        0xc0 | 0xc1 | 0xd0..=0xd3 => changes(insn),
        0xc6 | 0xc7 if extension == 0 => match place {
            Some(place) => insn.access(place, WRITE, size),
            None => both(insn, other),
        },
        0xd8..=0xdf if place.is_none() => insn.clobber(RAX),
        0xf6 | 0xf7 => match extension {
            0 | 1 => reads(insn, size),
            2 | 3 => changes(insn),
            _ => {
                reads(insn, size);
                insn.clobber(RAX);
                insn.clobber(RDX);
            }
        },
        0xfe | 0xff => match (extension, place) {
            (0 | 1, None) if wide && opcode == 0xff => {
                insn.effect.assigns = Some((other, other, if extension == 0 { 1 } else { -1 }));
            }
            (0 | 1, _) => changes(insn),
            (2 | 6, _) if opcode == 0xff && !head.operand_16 => {
                reads(insn, 8);
                insn.push();
            }
            (4, _) if opcode == 0xff => reads(insn, 8),
            _ => return false,
        },
        _ => return false,
    }
    true
}

/// Instructions of the second table with an operand byte. `false`: not known.
fn two_bytes(
    insn: &mut Insn,
    head: &Head,
    code: u8,
    register: u8,
    other: u8,
    place: Option<Place>,
) -> bool {
    let (opcode, prefix) = (head.opcode, head.prefix);
    let operand = if head.rex & 8 != 0 {
        8
    } else if head.operand_16 {
        2
    } else {
        4
    };
    let vector = head.width;
    let Some(place) = place else {
        // registers only; whatever is written is one of the two, but for a few
        insn.clobber(register);
        insn.clobber(other);
        insn.clobber(other & 3);
        return match opcode {
            0x0d
            | 0x10..=0x17
            | 0x18..=0x1f
            | 0x28..=0x2f
            | 0x40..=0x76
            | 0x7c..=0x7f
            | 0x90..=0x9f => true,
            0xa3..=0xa5 | 0xab..=0xad | 0xaf | 0xb3 | 0xb6..=0xb8 | 0xba..=0xbf => true,
            0xc2 | 0xc4..=0xc6 | 0xd0..=0xf6 | 0xf8..=0xfe => true, // 0xf7 stores at rdi
            0xae => prefix == 0 && !head.vex,                       // fences
            _ => false,
        };
    };
    let scalar = match prefix {
        0xf3 => Some(4),
        0xf2 => Some(8),
        _ => None,
    };
    // (kind, bytes)
    let access = match opcode {
        0x0d | 0x18..=0x1f => return true, // hints
        0x10 => (READ, scalar.unwrap_or(vector)),
        0x11 => (WRITE, scalar.unwrap_or(vector)),
        0x12 | 0x16 if matches!(prefix, 0 | 0x66) => (READ, 8),
        0x13 | 0x17 => (WRITE, 8),
        0x14 | 0x15 => (READ, vector),
        0x28 => (READ, vector),
        0x29 | 0x2b if scalar.is_none() => (WRITE, vector),
        0x2a if scalar.is_some() => (READ, operand),
        0x2c | 0x2d if scalar.is_some() => (READ, scalar.unwrap_or(8)),
        0x2e | 0x2f if scalar.is_none() => (READ, if prefix == 0x66 { 8 } else { 4 }),
        0x40..=0x4f if !head.vex => (READ, operand),
        0x51 | 0x58 | 0x59 | 0x5c..=0x5f => (READ, scalar.unwrap_or(vector)),
        0x54..=0x57 if scalar.is_none() => (READ, vector),
        0x5a if scalar.is_some() => (READ, scalar.unwrap_or(8)),
        0x60..=0x6d | 0x74..=0x76 if prefix == 0x66 => (READ, vector),
        0x6e if prefix == 0x66 => (READ, if head.rex & 8 != 0 { 8 } else { 4 }),
        0x6f if matches!(prefix, 0x66 | 0xf3) => (READ, vector),
        0x70 if prefix != 0 => (READ, vector),
        0x7e if prefix == 0xf3 => (READ, 8),
        0x7e if prefix == 0x66 => (WRITE, if head.rex & 8 != 0 { 8 } else { 4 }),
        0x7f if matches!(prefix, 0x66 | 0xf3) => (WRITE, vector),
        0x90..=0x9f if !head.vex => (WRITE, 1),
        0xaf => (READ, operand),
        0xb6 | 0xbe => (READ, 1),
        0xb7 | 0xbf => (READ, 2),
        0xb8 if prefix == 0xf3 => (READ, operand),
        0xba if code >> 3 & 7 == 4 => (READ, operand),
        0xba if code >> 3 & 7 > 4 => (UPDATE, operand),
        0xbc | 0xbd => (READ, operand),
        0xc0 => (UPDATE, 1),
        0xc1 => (UPDATE, operand),
        0xc2 => (READ, scalar.unwrap_or(vector)),
        0xc3 if prefix == 0 => (WRITE, operand),
        0xc6 if scalar.is_none() => (READ, vector),
        0xd6 if prefix == 0x66 => (WRITE, 8),
        0xe7 if prefix == 0x66 => (WRITE, vector),
        0xd4
        | 0xd5
        | 0xd8..=0xdf
        | 0xe0
        | 0xe3..=0xe5
        | 0xe8..=0xef
        | 0xf4..=0xf6
        | 0xf8..=0xfe
            if prefix == 0x66 =>
        {
            (READ, vector)
        }
        _ => return false,
    };
    if access.1 == vector {
        insn.vector = vector;
    }
    insn.access(place, access.0, access.1);
    insn.clobber(register);
    if matches!(opcode, 0xc0) {
        insn.clobber(register & 3);
    }
    true
}

fn one_byte_operand(opcode: u8) -> bool {
    match opcode {
        0x00..=0x3f => opcode & 7 < 4,
        0x62 | 0x63 | 0x69 | 0x6b | 0x80..=0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7 => true,
        0xd0..=0xd3 | 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff => true,
        _ => false,
    }
}

fn two_byte_operand(opcode: u8) -> bool {
    !matches!(opcode, 0x05..=0x0c | 0x0e | 0x30..=0x37 | 0x77 | 0x80..=0x8f | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf)
}

fn loads_register(map: u8, opcode: u8) -> bool {
    match map {
        0 => {
            matches!(opcode, 0x8a | 0x8b | 0x63 | 0x69 | 0x6b)
                || opcode < 0x38 && matches!(opcode & 7, 2 | 3)
        }
        1 => matches!(opcode, 0x40..=0x4f | 0xaf | 0xb6 | 0xb7 | 0xb8 | 0xbc..=0xbf),
        _ => false,
    }
}

/// Loads and stores of a whole vector register, which QEMU 7.2 does as pieces of 8 bytes.
fn full_vector(map: u8, opcode: u8, prefix: u8) -> bool {
    match map {
        1 => match opcode {
            0x10 | 0x11 | 0x51 | 0x54..=0x59 | 0x5c..=0x5f => matches!(prefix, 0 | 0x66),
            0x14 | 0x15 | 0x28 | 0x29 | 0x2b | 0x5b | 0xc6 | 0xe7 => true,
            0x6f | 0x7f | 0x70 => prefix != 0,
            0x60..=0x6d
            | 0x74..=0x76
            | 0xd0..=0xd5
            | 0xd8..=0xdf
            | 0xe0..=0xe5
            | 0xe8..=0xef
            | 0xf1..=0xfe => prefix == 0x66,
            0xf0 => prefix == 0xf2,
            _ => false,
        },
        2 => {
            matches!(opcode, 0x00..=0x0b | 0x10 | 0x14..=0x17 | 0x1c..=0x1e | 0x28..=0x2b | 0x37..=0x41 | 0xdb..=0xdf)
        }
        3 => matches!(opcode, 0x08 | 0x09 | 0x0c..=0x0f | 0x44 | 0x60..=0x63 | 0xdf),
        _ => false,
    }
}
