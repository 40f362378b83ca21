//! Small pieces of machine code that no compiler makes: the ways out of compiled code.

use crate::code::memory::CodeMemory;
use crate::error::Result;
use crate::store::region::{CONTEXT, Context, displacement};
use std::mem::offset_of;

fn field(offset: usize) -> [u8; 4] {
    (displacement(CONTEXT) + offset as i32).to_le_bytes()
}

/// A way out to a host function: records where compiled code left, then jumps to `target`.
pub(crate) fn exit(memory: &mut CodeMemory, target: *const u8) -> Result<*const u8> {
    let mut code = Vec::with_capacity(32);
    code.extend([0x49, 0x89, 0xAF]); // mov [r15 + exit_fp], rbp
    code.extend(field(offset_of!(Context, exit_fp)));
    code.extend([0x49, 0x89, 0xA7]); // mov [r15 + exit_sp], rsp
    code.extend(field(offset_of!(Context, exit_sp)));
    code.extend([0x48, 0xB8]); // mov rax, target
    code.extend((target as u64).to_le_bytes());
    code.extend([0xFF, 0xE0]); // jmp rax
    memory.add(&code)
}

/// The jump target of the entries of functions without code, with the function's number in eax: saves the argument registers,
/// asks `compile(vm, number)` for the code, and goes there as if it had been called.
pub(crate) fn lazy(memory: &mut CodeMemory, compile: *const u8) -> Result<*const u8> {
    let mut code = Vec::with_capacity(176);
    code.extend([0x55, 0x48, 0x89, 0xE5]); // push rbp; mov rbp, rsp
    code.extend([0x49, 0x89, 0xAF]); // exit_fp = rbp: a frame of its own, between caller and function
    code.extend(field(offset_of!(Context, exit_fp)));
    code.extend([0x57, 0x56, 0x52, 0x51, 0x41, 0x50, 0x41, 0x51]); // push rdi, rsi, rdx, rcx, r8, r9
    code.extend([0x48, 0x81, 0xEC, 0x80, 0, 0, 0]); // sub rsp, 128
    for xmm in 0..8u8 {
        code.extend([0x0F, 0x11, 0x44 | xmm << 3, 0x24, xmm * 16]); // movups [rsp + 16n], xmmN
    }
    code.extend([0x48, 0x8D, 0x54, 0x24, 0xF8]); // lea rdx, [rsp - 8]: where the return address will lie
    code.extend([0x49, 0x89, 0x97]); // exit_sp = rdx
    code.extend(field(offset_of!(Context, exit_sp)));
    code.extend([0x49, 0x8B, 0xBF]); // mov rdi, [r15 + vm]
    code.extend(field(offset_of!(Context, vm)));
    code.extend([0x89, 0xC6]); // mov esi, eax
    code.extend([0x48, 0xB8]); // mov rax, compile
    code.extend((compile as u64).to_le_bytes());
    code.extend([0xFF, 0xD0]); // call rax
    for xmm in 0..8u8 {
        code.extend([0x0F, 0x10, 0x44 | xmm << 3, 0x24, xmm * 16]); // movups xmmN, [rsp + 16n]
    }
    code.extend([0x48, 0x81, 0xC4, 0x80, 0, 0, 0]); // add rsp, 128
    code.extend([0x41, 0x59, 0x41, 0x58, 0x59, 0x5A, 0x5E, 0x5F]); // pop r9, r8, rcx, rdx, rsi, rdi
    code.extend([0x5D, 0xFF, 0xE0]); // pop rbp; jmp rax
    memory.add(&code)
}

/// Entries of functions that have no code yet: each loads its number and jumps to the [`lazy`] stub. Their addresses.
pub(crate) fn lazy_entries(
    memory: &mut CodeMemory,
    lazy: *const u8,
    numbers: std::ops::Range<u32>,
) -> Result<Vec<*const u8>> {
    let base = memory.next();
    let mut code = Vec::with_capacity(numbers.len() * 10);
    let mut offsets = Vec::with_capacity(numbers.len());
    for number in numbers {
        offsets.push(code.len());
        code.push(0xB8); // mov eax, number
        code.extend(number.to_le_bytes());
        code.push(0xE9); // jmp lazy
        let after = base as i64 + code.len() as i64 + 4;
        code.extend(((lazy as i64 - after) as i32).to_le_bytes());
    }
    let base = memory.add(&code)?;
    Ok(offsets.into_iter().map(|o| base.wrapping_add(o)).collect())
}
