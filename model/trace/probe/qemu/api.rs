//! The part of QEMU's plugin interface, version 1, that the plugin uses.
//!
//! Declared from the documentation of the interface, since Debian ships no header for it.

use core::ffi::{c_char, c_int, c_uint, c_void};

pub type Id = u64;
/// A translated block; QEMU's.
pub enum Block {}
/// An instruction of a block; QEMU's.
pub enum Insn {}

/// QEMU's description of itself when it loads the plugin.
#[repr(C)]
pub struct Info {
    pub target: *const c_char,
    pub oldest_version: c_int,
    pub version: c_int,
    pub whole_system: bool,
}

pub type OnVcpu = extern "C" fn(Id, c_uint);
pub type OnBlock = extern "C" fn(Id, *mut Block);
pub type OnRun = extern "C" fn(c_uint, *mut c_void);
pub type OnAccess = extern "C" fn(c_uint, u32, u64, *mut c_void);
pub type OnCall = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub type OnReturn = extern "C" fn(Id, c_uint, i64, i64);

/// The callback reads and writes no guest registers.
pub const NO_REGISTERS: c_int = 0;
/// The only choice: QEMU 7.2 mixes up the others.
pub const READS_AND_WRITES: c_int = 3;

/// The one thing that QEMU does without a call: it adds a number to 8 bytes of the plugin's, not atomically.
pub const ADD: c_int = 0;

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: OnVcpu);
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: OnBlock);
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        callback: OnRun,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_tb_exec_inline(
        block: *mut Block,
        operation: c_int,
        place: *mut c_void,
        number: u64,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        callback: OnAccess,
        flags: c_int,
        which: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_syscall_cb(id: Id, callback: OnCall);
    pub fn qemu_plugin_register_vcpu_syscall_ret_cb(id: Id, callback: OnReturn);
    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Insn;
    pub fn qemu_plugin_insn_data(insn: *const Insn) -> *const u8;
    pub fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    pub fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    pub fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    pub fn qemu_plugin_mem_is_store(info: u32) -> bool;
}
