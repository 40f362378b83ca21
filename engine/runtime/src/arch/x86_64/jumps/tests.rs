//! Code that is made of random instructions, read again after its jumps were placed.

use super::*;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use proptest::prelude::*;

/// A part of a block. Blocks are taken by their number modulo how many there are.
#[derive(Clone, Debug)]
enum Part {
    /// Bytes that move anywhere.
    Plain(&'static [u8]),
    Compare(&'static [u8]),
    If(u8, usize),
    TrapIf(u8),
    Call,
    CallRegister,
    LoadThatTraps,
    Constant(u8),
}

#[derive(Clone, Debug)]
enum End {
    Jump(usize),
    Return,
    Trap,
    Table(Vec<usize>),
    /// Goes on in the next block; in the last one, returns.
    On,
}

fn parts() -> impl Strategy<Value = Part> {
    prop_oneof![
        prop::sample::select(vec![
            &[0x90][..],
            &[0x89, 0xc8],
            &[0x48, 0x8b, 0x44, 0x24, 0x08],
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xc5, 0xfb, 0x58, 0xc1],
        ])
        .prop_map(Part::Plain),
        prop::sample::select(vec![
            &[0x39, 0xc8][..],
            &[0x48, 0x81, 0xf9, 0, 1, 0, 0],
            &[0x85, 0xc0],
            &[0x83, 0xc0, 0x01],
            &[0x3b, 0x47, 0x08],
            &[0x83, 0x7f, 0x08, 0x05],
        ])
        .prop_map(Part::Compare),
        (0..16u8, 0..99usize).prop_map(|(condition, to)| Part::If(condition, to)),
        (0..16u8).prop_map(Part::TrapIf),
        Just(Part::Call),
        Just(Part::CallRegister),
        Just(Part::LoadThatTraps),
        (0..4u8).prop_map(Part::Constant),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![
        (0..99usize).prop_map(End::Jump),
        Just(End::Return),
        Just(End::Trap),
        prop::collection::vec(0..99usize, 1..6).prop_map(End::Table),
        Just(End::On),
    ]
}

type Blocks = Vec<(Vec<Part>, End)>;

#[derive(Default)]
struct Made {
    code: Vec<u8>,
    blocks: Vec<u32>,
    fields: Vec<u32>,
    traps: Vec<u32>,
    /// Where instructions start.
    starts: Vec<u32>,
    /// Fields of tables, each with the start of its table and its target.
    entries: Vec<(u32, u32, u32)>,
    constants: u32,
}

impl Made {
    fn at(&self) -> u32 {
        self.code.len() as u32
    }

    fn instruction(&mut self, bytes: &[u8]) {
        self.starts.push(self.at());
        self.code.extend_from_slice(bytes);
    }

    fn patch(&mut self, field: u32, value: u32) {
        let field = field as usize;
        self.code[field..field + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Writes code as Cranelift does.
    fn new(blocks: &Blocks) -> Made {
        let mut made = Made::default();
        let mut to_blocks = Vec::new();
        let mut to_traps = Vec::new();
        let mut to_constants = Vec::new();
        let mut tables = Vec::new();
        for (number, (parts, end)) in blocks.iter().enumerate() {
            made.blocks.push(made.at());
            for part in parts {
                match part {
                    Part::Plain(bytes) | Part::Compare(bytes) => made.instruction(bytes),
                    Part::If(condition, to) => {
                        made.instruction(&[0x0f, 0x80 | condition, 0, 0, 0, 0]);
                        to_blocks.push((made.at() - 4, *to));
                    }
                    Part::TrapIf(condition) => {
                        made.instruction(&[0x0f, 0x80 | condition, 0, 0, 0, 0]);
                        to_traps.push(made.at() - 4);
                    }
                    Part::Call => {
                        made.instruction(&[0xe8, 0, 0, 0, 0]);
                        made.fields.push(made.at() - 4);
                    }
                    Part::CallRegister => made.instruction(&[0xff, 0xd0]),
                    Part::LoadThatTraps => {
                        made.traps.push(made.at());
                        made.instruction(&[0x8b, 0x07]);
                    }
                    Part::Constant(number) => {
                        made.instruction(&[0x48, 0x8b, 0x05, 0, 0, 0, 0]);
                        to_constants.push((made.at() - 4, *number));
                    }
                }
            }
            match end {
                End::Jump(to) => {
                    made.instruction(&[0xe9, 0, 0, 0, 0]);
                    to_blocks.push((made.at() - 4, *to));
                }
                End::Return => made.instruction(&[0xc3]),
                End::On if number + 1 == blocks.len() => made.instruction(&[0xc3]),
                End::On => {}
                End::Trap => {
                    made.traps.push(made.at());
                    made.instruction(&[0x0f, 0x0b]);
                }
                End::Table(to) => {
                    // lea rcx, [rip + table]; movsxd rdx, [rcx + rax * 4]; add rcx, rdx; jmp rcx
                    made.instruction(&[0x48, 0x8d, 0x0d, 9, 0, 0, 0]);
                    made.instruction(&[0x48, 0x63, 0x14, 0x81]);
                    made.instruction(&[0x48, 0x01, 0xd1]);
                    made.instruction(&[0xff, 0xe1]);
                    let start = made.at();
                    tables.extend(
                        to.iter()
                            .zip(0..)
                            .map(|(to, n)| (start, start + 4 * n, *to)),
                    );
                    made.code.extend(to.iter().flat_map(|_| [0; 4]));
                }
            }
        }
        for field in to_traps {
            let at = made.at();
            made.traps.push(at);
            made.instruction(&[0x0f, 0x0b]);
            made.patch(field, at - (field + 4));
        }
        made.constants = made.at();
        if !to_constants.is_empty() {
            made.code.resize(made.code.len().next_multiple_of(16), 0);
            let start = made.at();
            made.code.extend((0..64).map(|n| 0xa0 ^ n));
            for (field, number) in to_constants {
                made.patch(field, start + 16 * u32::from(number) - (field + 4));
            }
        }
        let block = |made: &Made, number: usize| made.blocks[number % made.blocks.len()];
        for (field, to) in to_blocks {
            let target = block(&made, to);
            made.patch(field, target.wrapping_sub(field + 4));
        }
        for (start, field, to) in tables {
            let target = block(&made, to);
            made.patch(field, target.wrapping_sub(start));
            made.entries.push((start, field, target));
        }
        made
    }

    fn place(&self, avoid: bool) -> Placed {
        let finished = Finished {
            code: &self.code,
            blocks: &self.blocks,
            fields: &self.fields,
            traps: &self.traps,
        };
        place_jumps(&finished, avoid).expect("code that is understood")
    }
}

fn decode(code: &[u8], at: u32) -> Instruction {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    decoder.set_position(at as usize).unwrap();
    decoder.set_ip(u64::from(at));
    decoder.decode()
}

fn word(code: &[u8], at: u32) -> u32 {
    u32::from_le_bytes(code[at as usize..at as usize + 4].try_into().unwrap())
}

/// What an instruction is, but for where it is and how long: with the place that it leads to, as `now` has it.
fn meaning(i: &Instruction, is_field: bool, now: impl Fn(u32) -> u32) -> (Mnemonic, u32, String) {
    let to = match i.op0_kind() {
        OpKind::NearBranch64 => i.near_branch_target(),
        _ if i.is_ip_rel_memory_operand() => i.ip_rel_memory_address(),
        _ => {
            return (
                i.mnemonic(),
                0,
                format!("{:?} {:x}", i.code(), i.memory_displacement64()),
            );
        }
    };
    let to = if is_field { 0 } else { now(to as u32) };
    (i.mnemonic(), to, String::new())
}

fn check(made: &Made, avoid: bool) {
    let placed = made.place(avoid);
    let new = &placed.code;
    for (n, &at) in made.starts.iter().enumerate() {
        let old = decode(&made.code, at);
        let is_field = (1..old.len() as u32).any(|byte| made.fields.contains(&(at + byte)));
        let moved = decode(new, placed.byte(at));
        let expected = meaning(&old, is_field, |to| placed.byte(to));
        assert_eq!(meaning(&moved, is_field, |to| to), expected, "at {at}");
        // What fills the space up to the next one does nothing, and an end is before it.
        let mut end = moved.next_ip() as u32;
        if moved.op0_kind() != OpKind::NearBranch64 || is_field {
            assert_eq!(end, placed.end(at + old.len() as u32));
        }
        let next = made
            .starts
            .get(n + 1)
            .filter(|&&next| next == at + old.len() as u32);
        if let Some(&next) = next {
            while end != placed.byte(next) {
                let nothing = decode(new, end);
                assert_eq!(nothing.mnemonic(), Mnemonic::Nop, "before {next}");
                end = nothing.next_ip() as u32;
            }
        }
        if avoid && is_jump(&moved) {
            let start = match n.checked_sub(1).map(|n| made.starts[n]) {
                Some(before) if is_fused(made, before, at) => placed.byte(before),
                _ => moved.ip() as u32,
            };
            let end = moved.next_ip() as u32;
            assert_eq!(start / BOUNDARY, end / BOUNDARY, "at {at}");
        }
    }
    for &(start, field, target) in &made.entries {
        let far = placed.byte(target).wrapping_sub(placed.byte(start));
        assert_eq!(word(new, placed.byte(field)), far);
    }
    let (old, moved) = (made.constants, placed.byte(made.constants));
    if (old as usize) < made.code.len() {
        assert_eq!(made.code[old as usize..], new[moved as usize..]);
        assert_eq!(old % 16, moved % 16);
    }
}

fn is_jump(i: &Instruction) -> bool {
    let jumps = [Mnemonic::Jmp, Mnemonic::Call, Mnemonic::Ret];
    i.op0_kind() == OpKind::NearBranch64 || jumps.contains(&i.mnemonic())
}

/// Comparisons of the parts above that processors fuse with a conditional jump right behind: all but the one of memory and a constant.
fn is_fused(made: &Made, before: u32, at: u32) -> bool {
    let jump = decode(&made.code, at);
    let first = decode(&made.code, before);
    let compares = [Mnemonic::Cmp, Mnemonic::Test, Mnemonic::Add];
    let conditional = jump.op0_kind() == OpKind::NearBranch64
        && !matches!(jump.mnemonic(), Mnemonic::Jmp | Mnemonic::Call);
    conditional
        && before + first.len() as u32 == at
        && compares.contains(&first.mnemonic())
        && first.op0_kind() == OpKind::Register
}

proptest! {
    #[test]
    fn moved_code_means_the_same(
        blocks in prop::collection::vec((prop::collection::vec(parts(), 0..30), ends()), 1..12),
    ) {
        let made = Made::new(&blocks);
        // A last table can only end where something is known to be.
        let unknown_end = matches!(blocks.last(), Some((_, End::Table(_)))) && made.traps.last() < made.entries.last().map(|e| &e.1);
        prop_assume!(!unknown_end);
        check(&made, false);
        check(&made, true);
    }
}

#[test]
fn near_jumps_are_short_and_far_ones_are_not() {
    let nops = |n: usize| vec![Part::Plain(&[0x90]); n];
    let loops = |n: usize| {
        let mut body = nops(n);
        body.push(Part::If(5, 0));
        Made::new(&vec![(body, End::Return)])
            .place(false)
            .code
            .len()
    };
    // The distance counts from the jump's end: 126 bytes and the jump's two are the most that a byte holds.
    assert_eq!(loops(126), 126 + 2 + 1);
    assert_eq!(loops(127), 127 + 6 + 1);
}

#[test]
fn code_that_is_not_understood_stays() {
    let place = |code: &[u8], blocks: &[u32], traps: &[u32]| {
        let (fields, code) = (&[][..], code);
        place_jumps(
            &Finished {
                code,
                blocks,
                fields,
                traps,
            },
            true,
        )
        .is_some()
    };
    assert!(place(&[0x90, 0xc3], &[0], &[]));
    // No instruction; a block within one; a trap within one; a jump into one; `loop`; a call within the code.
    assert!(!place(&[0x06, 0xc3], &[0], &[]));
    assert!(!place(&[0x48, 0x89, 0xc8, 0xc3], &[0, 1], &[]));
    assert!(!place(&[0x48, 0x89, 0xc8, 0xc3], &[0], &[2]));
    assert!(!place(&[0x48, 0x89, 0xc8, 0xeb, 0xfc], &[0], &[]));
    assert!(!place(&[0xe2, 0xfe, 0xc3], &[0], &[]));
    assert!(!place(&[0xe8, 0, 0, 0, 0, 0xc3], &[0], &[]));
}

#[test]
fn what_fills_space_does_nothing() {
    for gap in 0..40 {
        let mut code = Vec::new();
        fill(&mut code, gap);
        assert_eq!(code.len(), gap);
        let mut decoder = Decoder::new(64, &code, DecoderOptions::NONE);
        assert!(decoder.iter().all(|i| i.mnemonic() == Mnemonic::Nop));
    }
}
