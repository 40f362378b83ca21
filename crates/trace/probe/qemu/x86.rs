//! As much of the x86-64 instruction format as the recorder needs: does an instruction access memory, through which
//! registers, into which register, and is it a vector access that QEMU splits into pieces of 8 bytes.

use crate::ring::NO_REGISTER;

/// What an instruction's bytes say about its accesses.
pub struct Shape {
    pub accesses: bool,
    pub vector: u8,
    pub base: u8,
    pub index: u8,
    pub loads: u8,
    pub non_temporal: bool,
}

const RSP: u8 = 4;

/// Reads one instruction. Unknown bytes count as an access, as most instructions with an operand byte are.
pub fn shape(bytes: &[u8]) -> Shape {
    let none = NO_REGISTER;
    let mut shape = Shape { accesses: false, vector: 0, base: none, index: none, loads: none, non_temporal: false };
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let (mut at, mut prefix) = (0, 0u8);
    while matches!(byte(at), 0x66 | 0xf2 | 0xf3 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x67) {
        if matches!(byte(at), 0x66 | 0xf2 | 0xf3) && prefix != 0xf2 && prefix != 0xf3 {
            prefix = byte(at);
        }
        at += 1;
    }
    let (mut rex, mut map, mut width) = (0u8, 0u8, 16u8);
    match byte(at) {
        0x40..=0x4f => {
            rex = byte(at);
            at += 1;
        }
        0xc5 => {
            rex = (!byte(at + 1) >> 5) & 4;
            map = 1;
            prefix = [0, 0x66, 0xf3, 0xf2][usize::from(byte(at + 1) & 3)];
            width = if byte(at + 1) & 4 != 0 { 32 } else { 16 };
            at += 2;
        }
        0xc4 => {
            rex = !byte(at + 1) >> 5;
            map = byte(at + 1) & 0x1f;
            prefix = [0, 0x66, 0xf3, 0xf2][usize::from(byte(at + 2) & 3)];
            width = if byte(at + 2) & 4 != 0 { 32 } else { 16 };
            at += 3;
        }
        _ => {}
    }
    if map == 0 && byte(at) == 0x0f {
        at += 1;
        map = 1;
        if matches!(byte(at), 0x38 | 0x3a) {
            map = if byte(at) == 0x38 { 2 } else { 3 };
            at += 1;
        }
    }
    let opcode = byte(at);
    at += 1;
    let has_operand_byte = match map {
        0 => one_byte_operand(opcode),
        1 => two_byte_operand(opcode),
        _ => true,
    };
    if !has_operand_byte {
        shape.accesses = implicit_access(map, opcode);
        if map == 0 && matches!(opcode, 0x58..=0x5f) {
            shape.base = RSP;
            shape.loads = opcode & 7 | (rex & 1) << 3;
        }
        return shape;
    }
    let operand = byte(at);
    let register = operand >> 3 & 7 | (rex & 4) << 1;
    if operand >> 6 == 3 {
        // call and push of a register still write the stack
        shape.accesses = map == 0 && opcode == 0xff && matches!(operand >> 3 & 7, 2 | 3 | 6) || (map, opcode) == (0, 0x8f);
        return shape;
    }
    shape.accesses = !matches!((map, opcode), (0, 0x8d) | (1, 0x0d | 0x18..=0x1f));
    match operand & 7 {
        4 => {
            let scale = byte(at + 1);
            let index = scale >> 3 & 7 | (rex & 2) << 2;
            if index != RSP {
                shape.index = index;
            }
            if !(scale & 7 == 5 && operand >> 6 == 0) {
                shape.base = scale & 7 | (rex & 1) << 3;
            }
        }
        5 if operand >> 6 == 0 => {} // relative to the instruction
        low => shape.base = low | (rex & 1) << 3,
    }
    if loads_register(map, opcode) {
        shape.loads = register;
    }
    shape.non_temporal = map == 1 && matches!(opcode, 0x2b | 0xc3 | 0xe7);
    if full_vector(map, opcode, prefix) {
        shape.vector = width;
    }
    shape
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

/// Instructions without an operand byte that access memory: the stack, strings, absolute addresses.
fn implicit_access(map: u8, opcode: u8) -> bool {
    match map {
        0 => matches!(opcode,
            0x50..=0x5f | 0x68 | 0x6a | 0x6c..=0x6f | 0x9c | 0x9d | 0xa0..=0xa7 | 0xaa..=0xaf
            | 0xc2 | 0xc3 | 0xc8..=0xcb | 0xcf | 0xd7 | 0xe8),
        1 => matches!(opcode, 0xa0 | 0xa1 | 0xa8 | 0xa9),
        _ => false,
    }
}

fn loads_register(map: u8, opcode: u8) -> bool {
    match map {
        0 => matches!(opcode, 0x8a | 0x8b | 0x63 | 0x69 | 0x6b) || opcode < 0x38 && matches!(opcode & 7, 2 | 3),
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
            0x60..=0x6d | 0x74..=0x76 | 0xd0..=0xd5 | 0xd8..=0xdf | 0xe0..=0xe5 | 0xe8..=0xef | 0xf1..=0xfe => prefix == 0x66,
            0xf0 => prefix == 0xf2,
            _ => false,
        },
        2 => matches!(opcode, 0x00..=0x0b | 0x10 | 0x14..=0x17 | 0x1c..=0x1e | 0x28..=0x2b | 0x37..=0x41 | 0xdb..=0xdf),
        3 => matches!(opcode, 0x08 | 0x09 | 0x0c..=0x0f | 0x44 | 0x60..=0x63 | 0xdf),
        _ => false,
    }
}
