//! Functions of the C library and of the compiler that stand for another one and know their callers.
//!
//! At the start of a function the return address is at the stack pointer. Arguments are in rdi, rsi, rdx, rcx, r8 and r9.

#![allow(unused_macros)] // each of the probes that include this file uses its own part

/// A function `$name` that is `$inner` with one argument more: its return address, behind `$arguments` arguments.
macro_rules! with_caller {
    ($name:ident = $inner:ident, 1) => { crate::entry::with_caller!(@ $name, $inner, "rsi"); };
    ($name:ident = $inner:ident, 2) => { crate::entry::with_caller!(@ $name, $inner, "rdx"); };
    ($name:ident = $inner:ident, 3) => { crate::entry::with_caller!(@ $name, $inner, "rcx"); };
    (@ $name:ident, $inner:ident, $register:literal) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(concat!("mov ", $register, ", [rsp]"), "jmp {inner}", inner = sym $inner)
        }
    };
}

/// The same with two arguments more: where the return address is, and the frame pointer.
macro_rules! with_callers {
    ($name:ident = $inner:ident, 1) => { crate::entry::with_callers!(@ $name, $inner, "rsi", "rdx"); };
    ($name:ident = $inner:ident, 2) => { crate::entry::with_callers!(@ $name, $inner, "rdx", "rcx"); };
    ($name:ident = $inner:ident, 3) => { crate::entry::with_callers!(@ $name, $inner, "rcx", "r8"); };
    (@ $name:ident, $inner:ident, $place:literal, $frame:literal) => {
        /// The function of the C library with this name.
        ///
        /// # Safety
        /// As for the C function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                concat!("mov ", $place, ", rsp"),
                concat!("mov ", $frame, ", rbp"),
                "jmp {inner}",
                inner = sym $inner
            )
        }
    };
}

/// The same for a function of six arguments: both words are passed on the stack, which stays aligned.
macro_rules! with_callers_of_six {
    ($name:ident = $inner:ident) => {
        /// The function of the C library with this name.
        ///
        /// # Safety
        /// As for the C function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov rax, rsp",
                "sub rsp, 8",
                "push rbp",
                "push rax",
                "call {inner}",
                "add rsp, 24",
                "ret",
                inner = sym $inner
            )
        }
    };
}

/// A function `$name` that calls `$before` and is then `$real`, with any number of arguments: all registers are passed on as they are.
macro_rules! after_call {
    ($name:ident = $real:ident after $before:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {before}",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                concat!("jmp ", stringify!($real), "@PLT"),
                before = sym $before
            )
        }
    };
}

#[allow(unused_imports)]
pub(crate) use {after_call, with_caller, with_callers, with_callers_of_six};
