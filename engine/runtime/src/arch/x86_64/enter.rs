//! Into compiled code and out of it again, in assembly.
//!
//! `varve_enter` saves the host's registers and an [`EntryRecord`](crate::store::region::EntryRecord), loads the pinned
//! register and calls. Code that returns leaves with status 0; `varve_leave` leaves from any depth with a status of the
//! caller's choice, as traps and uncaught exceptions do.

use crate::store::region::Context;
use std::arch::global_asm;
use std::mem::offset_of;

global_asm!(
    ".globl varve_enter",
    ".type varve_enter,@function",
    // rdi context, rsi trampoline, rdx code, rcx values, r8 new stack pointer or 0
    "varve_enter:",
    "push rbp",
    "mov rbp, rsp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov r15, [rdi + {heap_base}]",
    "push qword ptr [rdi + {entry}]",
    "push qword ptr [rdi + {exit_fp}]",
    "push qword ptr [rdi + {exit_sp}]",
    "mov [rdi + {entry}], rsp",
    "mov rbx, rdi",
    "mov rax, rsi",
    "mov rdi, rdx",
    "mov rsi, rcx",
    "test r8, r8",
    "cmovz r8, rsp",
    "mov rsp, r8",
    "and rsp, -16",
    "call rax",
    "mov rdi, rbx",
    "xor esi, esi",
    // falls through
    ".globl varve_leave",
    ".type varve_leave,@function",
    // rdi context, rsi status
    "varve_leave:",
    "mov rsp, [rdi + {entry}]",
    "pop qword ptr [rdi + {exit_sp}]",
    "pop qword ptr [rdi + {exit_fp}]",
    "pop qword ptr [rdi + {entry}]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "mov rax, rsi",
    "ret",
    ".globl varve_resume",
    ".type varve_resume,@function",
    // rdi context, rsi frame pointer, rdx stack pointer, rcx code, r8 payload
    "varve_resume:",
    "mov r15, [rdi + {heap_base}]",
    "mov rbp, rsi",
    "mov rsp, rdx",
    "mov rax, r8",
    "jmp rcx",
    heap_base = const offset_of!(Context, heap_base),
    entry = const offset_of!(Context, entry),
    exit_fp = const offset_of!(Context, exit_fp),
    exit_sp = const offset_of!(Context, exit_sp),
);

// The assembly uses the context's fields by their offsets, and only passes the store's address on.
#[allow(improper_ctypes)]
unsafe extern "C" {
    /// Calls `trampoline(code, values)` with the pinned register set; 0 if it returned, else the status that
    /// [`varve_leave`] was given.
    pub(crate) fn varve_enter(
        context: *mut Context,
        trampoline: *const u8,
        code: *const u8,
        values: *mut u64,
        stack: usize,
    ) -> u64;
    /// Leaves the innermost entry.
    pub(crate) fn varve_leave(context: *mut Context, status: u64) -> !;
    /// Goes on in compiled code at a handler of the frame `fp`, with `payload` in the first result register.
    pub(crate) fn varve_resume(
        context: *mut Context,
        fp: usize,
        sp: usize,
        code: usize,
        payload: u64,
    ) -> !;
}
