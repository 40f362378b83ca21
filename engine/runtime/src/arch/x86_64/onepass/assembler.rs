//! Encodes instructions.

/// Registers: general ones are 0 to 15, and those for floats 16 to 31.
pub(super) type Reg = u8;

pub(super) const RAX: Reg = 0;
pub(super) const RCX: Reg = 1;
pub(super) const RDX: Reg = 2;
pub(super) const RBX: Reg = 3;
pub(super) const RSP: Reg = 4;
pub(super) const RBP: Reg = 5;
pub(super) const RSI: Reg = 6;
pub(super) const RDI: Reg = 7;
pub(super) const R8: Reg = 8;
pub(super) const R9: Reg = 9;
pub(super) const R10: Reg = 10;
/// Holds no value from one instruction to the next.
pub(super) const SCRATCH: Reg = 11;
pub(super) const R12: Reg = 12;
pub(super) const R13: Reg = 13;
pub(super) const R14: Reg = 14;
/// Holds the heap's base.
pub(super) const PINNED: Reg = 15;
pub(super) const XMM0: Reg = 16;
/// As [`SCRATCH`].
pub(super) const FLOAT_SCRATCH: Reg = 31;

pub(super) fn is_float(reg: Reg) -> bool {
    reg >= XMM0
}

/// Where an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Reg(Reg),
    Memory { base: Reg, offset: i32 },
}

pub(super) fn memory(base: Reg, offset: i32) -> Place {
    Place::Memory { base, offset }
}

/// A slot of the frame.
pub(super) fn slot(offset: i32) -> Place {
    memory(RBP, offset)
}

/// Conditions, by their numbers in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cond(pub u8);

impl Cond {
    pub const BELOW: Cond = Cond(2);
    pub const ABOVE_EQUAL: Cond = Cond(3);
    pub const EQUAL: Cond = Cond(4);
    pub const NOT_EQUAL: Cond = Cond(5);
    pub const BELOW_EQUAL: Cond = Cond(6);
    pub const ABOVE: Cond = Cond(7);
    pub const PARITY: Cond = Cond(10);
    pub const NO_PARITY: Cond = Cond(11);
    pub const LESS: Cond = Cond(12);
    pub const GREATER_EQUAL: Cond = Cond(13);
    pub const LESS_EQUAL: Cond = Cond(14);
    pub const GREATER: Cond = Cond(15);

    pub fn not(self) -> Cond {
        Cond(self.0 ^ 1)
    }
}

/// Operations with two operands, by the digit in their opcodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alu {
    Add = 0,
    Or = 1,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Shifts, by the digit in their opcodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shift {
    RotateLeft = 0,
    RotateRight = 1,
    Left = 4,
    Right = 5,
    Arithmetic = 7,
}

/// Bytes of an operation, from which prefixes follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    Byte,
    Half,
    Word,
    Double,
}

/// Code as it grows.
pub(super) struct Assembler {
    pub code: Vec<u8>,
}

impl Assembler {
    /// Writes into this memory, whatever is in it.
    pub fn new(mut code: Vec<u8>) -> Assembler {
        code.clear();
        Assembler { code }
    }

    pub fn at(&self) -> u32 {
        self.code.len() as u32
    }

    fn byte(&mut self, byte: u8) {
        self.code.push(byte);
    }

    pub fn word(&mut self, word: i32) {
        self.code.extend_from_slice(&word.to_le_bytes());
    }

    /// An instruction with a register and an operand that may be in memory. `opcode` has its escape bytes; `bytes` says that registers
    /// stand for their lowest bytes.
    fn emit(&mut self, prefix: u8, wide: bool, opcode: u32, reg: u8, place: Place, bytes: bool) {
        if prefix != 0 {
            self.byte(prefix);
        }
        let reg = reg & 15;
        let base = match place {
            Place::Reg(r) => r & 15,
            Place::Memory { base, .. } => base,
        };
        let named = |r: u8| bytes && (4..8).contains(&r);
        let byte_register = named(reg) || matches!(place, Place::Reg(r) if named(r));
        let rex = u8::from(wide) << 3 | (reg >> 3) << 2 | base >> 3;
        if rex != 0 || byte_register {
            self.byte(0x40 | rex);
        }
        self.opcode(opcode);
        self.operand(reg, place);
    }

    fn opcode(&mut self, opcode: u32) {
        if opcode > 0xFFFF {
            self.byte((opcode >> 16) as u8);
        }
        if opcode > 0xFF {
            self.byte((opcode >> 8) as u8);
        }
        self.byte(opcode as u8);
    }

    fn operand(&mut self, reg: u8, place: Place) {
        let reg = (reg & 7) << 3;
        let (base, offset) = match place {
            Place::Reg(r) => return self.byte(0xC0 | reg | r & 7),
            Place::Memory { base, offset } => (base, offset),
        };
        let mode = match offset {
            0 if base & 7 != RBP => 0,
            -128..=127 => 1,
            _ => 2,
        };
        self.byte(mode << 6 | reg | base & 7);
        if base & 7 == RSP {
            self.byte(0x24);
        }
        match mode {
            0 => {}
            1 => self.byte(offset as u8),
            _ => self.word(offset),
        }
    }

    fn sized(&mut self, size: Size, opcode: u32, reg: u8, place: Place) {
        let prefix = if size == Size::Half { 0x66 } else { 0 };
        // Operations on bytes have the opcode before.
        let bytes = size == Size::Byte;
        let opcode = if bytes { opcode - 1 } else { opcode };
        self.emit(prefix, size == Size::Double, opcode, reg, place, bytes);
    }

    // ---- moves ------------------------------------------------------------------------------------------------------------------

    pub fn mov(&mut self, to: Reg, from: Reg) {
        match is_float(to) {
            _ if to == from => {}
            true => self.emit(0, false, 0x0F28, to, Place::Reg(from), false),
            false => self.emit(0, true, 0x8B, to, Place::Reg(from), false),
        }
    }

    /// The lower half, with zeros above.
    pub fn mov_word(&mut self, to: Reg, from: Reg) {
        self.emit(0, false, 0x8B, to, Place::Reg(from), false);
    }

    /// A constant. Leaves the flags alone.
    pub fn constant(&mut self, to: Reg, value: i64) {
        if let Ok(value) = u32::try_from(value) {
            if to >= 8 {
                self.byte(0x41);
            }
            self.byte(0xB8 | to & 7);
            self.word(value as i32);
        } else if let Ok(value) = i32::try_from(value) {
            self.emit(0, true, 0xC7, 0, Place::Reg(to), false);
            self.word(value);
        } else {
            self.byte(0x48 | to >> 3);
            self.byte(0xB8 | to & 7);
            self.code.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// A field of 8 bytes that is filled when the code is linked; where it is.
    pub fn constant_field(&mut self, to: Reg) -> u32 {
        self.byte(0x48 | to >> 3);
        self.byte(0xB8 | to & 7);
        let at = self.at();
        self.code.extend_from_slice(&[0; 8]);
        at
    }

    /// The address of what is linked; where the field of its distance is.
    pub fn address_field(&mut self, to: Reg) -> u32 {
        // No base but the instruction's own end.
        self.byte(0x48 | (to >> 3) << 2);
        self.byte(0x8D);
        self.byte((to & 7) << 3 | 5);
        let at = self.at();
        self.word(0);
        at
    }

    /// All of a register from memory, or to it.
    pub fn load(&mut self, to: Reg, from: Place) {
        match is_float(to) {
            true => self.emit(0xF2, false, 0x0F10, to, from, false),
            false => self.emit(0, true, 0x8B, to, from, false),
        }
    }

    pub fn store(&mut self, to: Place, from: Reg) {
        match is_float(from) {
            true => self.emit(0xF2, false, 0x0F11, from, to, false),
            false => self.emit(0, true, 0x89, from, to, false),
        }
    }

    /// A part of a register, with zeros above.
    pub fn load_part(&mut self, size: Size, to: Reg, from: Place) {
        match size {
            Size::Byte => self.emit(0, false, 0x0FB6, to, from, true),
            Size::Half => self.emit(0, false, 0x0FB7, to, from, false),
            Size::Word => self.emit(0, false, 0x8B, to, from, false),
            Size::Double => self.emit(0, true, 0x8B, to, from, false),
        }
    }

    /// A part of a register, with its sign above.
    pub fn load_signed(&mut self, size: Size, wide: bool, to: Reg, from: Place) {
        match size {
            Size::Byte => self.emit(0, wide, 0x0FBE, to, from, true),
            Size::Half => self.emit(0, wide, 0x0FBF, to, from, false),
            Size::Word => self.emit(0, true, 0x63, to, from, false),
            Size::Double => self.emit(0, true, 0x8B, to, from, false),
        }
    }

    pub fn store_part(&mut self, size: Size, to: Place, from: Reg) {
        self.sized(size, 0x89, from, to);
    }

    /// A constant into memory: of its lowest 32 bits what the size asks for, with their sign.
    pub fn store_constant(&mut self, size: Size, to: Place, value: i32) {
        self.sized(size, 0xC7, 0, to);
        match size {
            Size::Byte => self.byte(value as u8),
            Size::Half => self.code.extend_from_slice(&(value as i16).to_le_bytes()),
            _ => self.word(value),
        }
    }

    pub fn load_float(&mut self, double: bool, to: Reg, from: Place) {
        self.float(double, 0x10, to, from);
    }

    pub fn store_float(&mut self, double: bool, to: Place, from: Reg) {
        self.float(double, 0x11, from, to);
    }

    /// The bits of a general register into one for floats.
    pub fn bits_to_float(&mut self, double: bool, to: Reg, from: Reg) {
        self.emit(0x66, double, 0x0F6E, to, Place::Reg(from), false);
    }

    pub fn bits_of_float(&mut self, double: bool, to: Reg, from: Reg) {
        self.emit(0x66, double, 0x0F7E, from, Place::Reg(to), false);
    }

    /// `to = base + offset`.
    pub fn address(&mut self, wide: bool, to: Reg, base: Reg, offset: i32) {
        self.emit(0, wide, 0x8D, to, memory(base, offset), false);
    }

    /// `to = base + index << shift`.
    pub fn address_of_element(&mut self, to: Reg, base: Reg, index: Reg, shift: u8) {
        self.byte(0x48 | (to >> 3) << 2 | (index >> 3) << 1 | base >> 3);
        self.byte(0x8D);
        // A base of rbp or r13 needs an offset.
        let offset = base & 7 == RBP;
        self.byte(u8::from(offset) << 6 | (to & 7) << 3 | 4);
        self.byte(shift << 6 | (index & 7) << 3 | base & 7);
        if offset {
            self.byte(0);
        }
    }

    pub fn push(&mut self, place: Place) {
        self.emit(0, false, 0xFF, 6, place, false);
    }

    pub fn pop(&mut self, place: Place) {
        self.emit(0, false, 0x8F, 0, place, false);
    }

    // ---- arithmetic -------------------------------------------------------------------------------------------------------------

    /// `to = to op from`, or a comparison.
    pub fn alu(&mut self, op: Alu, size: Size, to: Reg, from: Place) {
        self.sized(size, (op as u32) << 3 | 3, to, from);
    }

    pub fn alu_constant(&mut self, op: Alu, size: Size, to: Place, value: i32) {
        match i8::try_from(value) {
            Ok(short) if size != Size::Byte => {
                self.sized(size, 0x83, op as u8, to);
                self.byte(short as u8);
            }
            _ => {
                self.sized(size, 0x81, op as u8, to);
                match size {
                    Size::Byte => self.byte(value as u8),
                    Size::Half => self.code.extend_from_slice(&(value as i16).to_le_bytes()),
                    _ => self.word(value),
                }
            }
        }
    }

    pub fn test(&mut self, size: Size, a: Reg, b: Reg) {
        self.sized(size, 0x85, b, Place::Reg(a));
    }

    pub fn test_constant(&mut self, size: Size, a: Reg, value: i32) {
        self.sized(size, 0xF7, 0, Place::Reg(a));
        match size {
            Size::Byte => self.byte(value as u8),
            Size::Half => self.code.extend_from_slice(&(value as i16).to_le_bytes()),
            _ => self.word(value),
        }
    }

    pub fn multiply(&mut self, wide: bool, to: Reg, from: Reg) {
        self.emit(0, wide, 0x0FAF, to, Place::Reg(from), false);
    }

    pub fn multiply_constant(&mut self, wide: bool, to: Reg, from: Reg, value: i32) {
        self.emit(0, wide, 0x69, to, Place::Reg(from), false);
        self.word(value);
    }

    /// By a constant.
    pub fn shift(&mut self, op: Shift, wide: bool, to: Reg, by: u8) {
        self.emit(0, wide, 0xC1, op as u8, Place::Reg(to), false);
        self.byte(by);
    }

    /// By what is in rcx.
    pub fn shift_variable(&mut self, op: Shift, wide: bool, to: Reg) {
        self.emit(0, wide, 0xD3, op as u8, Place::Reg(to), false);
    }

    /// rax and rdx by `by`.
    pub fn divide(&mut self, signed: bool, wide: bool, by: Reg) {
        let digit = if signed { 7 } else { 6 };
        self.emit(0, wide, 0xF7, digit, Place::Reg(by), false);
    }

    /// The sign of rax into all of rdx.
    pub fn sign_into_rdx(&mut self, wide: bool) {
        if wide {
            self.byte(0x48);
        }
        self.byte(0x99);
    }

    /// Counts of bits, with the prefix that makes them newer than the first x86-64 processors: `lzcnt`, `tzcnt`, `popcnt`.
    pub fn count(&mut self, opcode: u32, wide: bool, to: Reg, from: Reg) {
        self.emit(0xF3, wide, opcode, to, Place::Reg(from), false);
    }

    pub fn set(&mut self, cond: Cond, to: Reg) {
        self.emit(
            0,
            false,
            0x0F90 | u32::from(cond.0),
            0,
            Place::Reg(to),
            true,
        );
    }

    pub fn move_if(&mut self, cond: Cond, to: Reg, from: Reg) {
        self.emit(
            0,
            true,
            0x0F40 | u32::from(cond.0),
            to,
            Place::Reg(from),
            false,
        );
    }

    /// `to = to op from` of floats: `opcode` is the last byte.
    pub fn float(&mut self, double: bool, opcode: u8, to: Reg, from: Place) {
        let prefix = if double { 0xF2 } else { 0xF3 };
        self.emit(prefix, false, 0x0F00 | u32::from(opcode), to, from, false);
    }

    pub fn compare_floats(&mut self, double: bool, a: Reg, b: Reg) {
        let prefix = if double { 0x66 } else { 0 };
        self.emit(prefix, false, 0x0F2E, a, Place::Reg(b), false);
    }

    /// `and`, `andnot`, `or`, `xor` of all bits, by the opcode's last byte: 0x54 to 0x57.
    pub fn float_bits(&mut self, opcode: u8, to: Reg, from: Reg) {
        self.emit(
            0,
            false,
            0x0F00 | u32::from(opcode),
            to,
            Place::Reg(from),
            false,
        );
    }

    /// An integer in `from` to a float.
    pub fn convert_integer(&mut self, double: bool, wide: bool, to: Reg, from: Reg) {
        let prefix = if double { 0xF2 } else { 0xF3 };
        self.emit(prefix, wide, 0x0F2A, to, Place::Reg(from), false);
    }

    /// A float to an integer, towards zero.
    pub fn truncate(&mut self, double: bool, wide: bool, to: Reg, from: Reg) {
        let prefix = if double { 0xF2 } else { 0xF3 };
        self.emit(prefix, wide, 0x0F2C, to, Place::Reg(from), false);
    }

    /// Rounds to an integer in the way of `mode`: 0 nearest, 1 down, 2 up, 3 towards zero.
    pub fn round(&mut self, double: bool, to: Reg, from: Reg, mode: u8) {
        let opcode = if double { 0x0F3A0B } else { 0x0F3A0A };
        self.emit(0x66, false, opcode, to, Place::Reg(from), false);
        self.byte(mode);
    }

    // ---- control ----------------------------------------------------------------------------------------------------------------

    /// A jump; where the field of its distance is.
    pub fn jump(&mut self) -> u32 {
        self.byte(0xE9);
        self.word(0);
        self.at() - 4
    }

    pub fn jump_if(&mut self, cond: Cond) -> u32 {
        self.byte(0x0F);
        self.byte(0x80 | cond.0);
        self.word(0);
        self.at() - 4
    }

    pub fn jump_to(&mut self, place: Place) {
        self.emit(0, false, 0xFF, 4, place, false);
    }

    pub fn call_to(&mut self, place: Place) {
        self.emit(0, false, 0xFF, 2, place, false);
    }

    /// A call of what is linked; where the field of its distance is.
    pub fn call_field(&mut self) -> u32 {
        self.byte(0xE8);
        self.word(0);
        self.at() - 4
    }

    /// Has the field at `field` lead to `target`.
    pub fn patch(&mut self, field: u32, target: u32) {
        let distance = target as i32 - (field as i32 + 4);
        self.patch_word(field, distance);
    }

    pub fn patch_word(&mut self, field: u32, value: i32) {
        let field = field as usize;
        self.code[field..field + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// An instruction that is none.
    pub fn trap(&mut self) {
        self.code.extend_from_slice(&[0x0F, 0x0B]);
    }

    /// The frame's beginning; where the field of its size is.
    pub fn enter(&mut self) -> u32 {
        // push rbp; mov rbp, rsp; sub rsp, size
        self.code
            .extend_from_slice(&[0x55, 0x48, 0x89, 0xE5, 0x48, 0x81, 0xEC]);
        self.word(0);
        self.at() - 4
    }

    /// The frame's end.
    pub fn leave(&mut self) {
        self.byte(0xC9);
    }

    /// Returns, and pops `bytes` bytes from the caller's stack.
    pub fn ret(&mut self, bytes: u16) {
        match bytes {
            0 => self.byte(0xC3),
            _ => {
                self.byte(0xC2);
                self.code.extend_from_slice(&bytes.to_le_bytes());
            }
        }
    }
}
