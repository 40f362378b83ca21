//! A QEMU plugin that writes every memory access of an unmodified program into shared memory.
//!
//! QEMU calls [`qemu_plugin_install`] with `ring=PATH`, the file behind the shared memory. Per access one record of
//! 16 bytes is stored; everything that can be known when code is translated goes into the table of sites instead.

#[path = "../ring.rs"]
mod ring;

mod api;
mod calls;
mod x86;

use api::*;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use ring::*;

/// The version of the interface that this plugin speaks.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// QEMU numbers threads from 0 and reuses the numbers of the newest ones.
const VCPUS: usize = 1024;

/// What the plugin knows about one thread of the guest.
#[derive(Clone, Copy)]
struct Vcpu {
    /// Its slot, or [`DEAF`] for a thread that is not recorded.
    slot: *mut Slot,
    number: usize,
    /// The system call it is in.
    call: i64,
    args: [u64; 6],
}

/// Where threads that are not recorded write: two records, over and over.
static mut DEAF: Slot = Slot {
    cursor: null_mut(),
    limit: null_mut(),
    pending: 0,
    start: null_mut(),
    head: core::sync::atomic::AtomicU64::new(0),
    state: AtomicU32::new(FREE),
    _state: 0,
    _line: [0; 2],
    tail: core::sync::atomic::AtomicU64::new(0),
    _line2: [0; 7],
    filled: [const { AtomicU32::new(0) }; RING as usize],
};
static mut NOWHERE: [Record; CHUNK_RECORDS] = [Record { addr: 0, what: 0 }; CHUNK_RECORDS];
static mut VCPU: [Vcpu; VCPUS] = [Vcpu { slot: null_mut(), number: 0, call: -1, args: [0; 6] }; VCPUS];
static mut SHARED: Shared = Shared { base: null_mut() };
/// Set in a forked child: nothing is recorded any more.
static DEAF_FOREVER: AtomicBool = AtomicBool::new(false);
static RUNNING_THREADS: AtomicU32 = AtomicU32::new(0);
/// The process was another program before; its first thread says so.
static REPLACED: AtomicBool = AtomicBool::new(false);
static MODULES_WRITTEN: AtomicBool = AtomicBool::new(false);

fn shared() -> Shared {
    // SAFETY: written once by qemu_plugin_install, before any other callback exists.
    unsafe { SHARED }
}

/// The thread's entry; numbers beyond the table share the last one, which is never recorded.
fn vcpu(number: c_uint) -> *mut Vcpu {
    // SAFETY: inside the table. Each thread only uses its own entry.
    unsafe { addr_of_mut!(VCPU).cast::<Vcpu>().add((number as usize).min(VCPUS - 1)) }
}

fn is_deaf(entry: *mut Vcpu) -> bool {
    // SAFETY: the entry is in the table.
    unsafe { (*entry).slot == addr_of_mut!(DEAF) }
}

fn rewind_deaf() {
    // SAFETY: threads that are not recorded may race here; whatever they store, the cursor stays inside NOWHERE
    // because every store is followed by a comparison with the limit, which never moves.
    unsafe {
        DEAF.start = addr_of_mut!(NOWHERE).cast();
        DEAF.cursor = DEAF.start;
        DEAF.limit = DEAF.start.add(1);
    }
}

/// The hot path: one record per access.
extern "C" fn on_access(number: c_uint, info: u32, vaddr: u64, site: *mut c_void) {
    // SAFETY: the number is below VCPUS or clamped; the slot is this thread's and its cursor is in an open chunk.
    unsafe {
        let slot = (*vcpu(number)).slot;
        let cursor = (*slot).cursor;
        let what = site as u64 | u64::from(info & 0x3_ffff) << 32 | (*slot).pending << 50;
        cursor.write(Record { addr: vaddr, what });
        (*slot).pending = 0;
        (*slot).cursor = cursor.add(1);
        if cursor.add(1) >= (*slot).limit {
            chunk_full(number);
        }
    }
}

#[cold]
fn chunk_full(number: c_uint) {
    let entry = vcpu(number);
    if is_deaf(entry) {
        rewind_deaf();
    } else {
        // SAFETY: the entry is this thread's.
        shared().publish(unsafe { (*entry).number });
    }
}

/// A block without any access has run: only its instructions count.
extern "C" fn on_quiet_block(number: c_uint, instructions: *mut c_void) {
    // SAFETY: as in `on_access`.
    unsafe {
        let entry = vcpu(number);
        let slot = (*entry).slot;
        (*slot).pending += instructions as u64;
        // 14 bits of a record hold the number; a block has 512 instructions at most
        if (*slot).pending >= (1 << 14) - 512 {
            let instructions = core::mem::take(&mut (*slot).pending);
            if !is_deaf(entry) {
                shared().put((*entry).number, instructions, EVENT_WORK);
            }
        }
    }
}

extern "C" fn on_translate(_: Id, block: *mut Block) {
    if DEAF_FOREVER.load(Relaxed) {
        return;
    }
    if !MODULES_WRITTEN.swap(true, AcqRel) {
        calls::write_modules(&shared());
    }
    // SAFETY: QEMU's block is valid during the callback, and so are its instructions and their bytes.
    unsafe {
        let count = qemu_plugin_tb_n_insns(block);
        let header = shared().header();
        let mut first = header.sites.fetch_add(count as u32, AcqRel) as usize;
        if first + count > SITES {
            // the last block's entries are shared by all that come too late: addresses stay right
            header.sites.fetch_sub(count as u32, AcqRel);
            header.lost_sites.fetch_add(count as u32, AcqRel);
            first = SITES - 512;
        }
        let mut accesses = false;
        for index in 0..count {
            let insn = qemu_plugin_tb_get_insn(block, index);
            let bytes = core::slice::from_raw_parts(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
            let shape = x86::shape(bytes);
            accesses |= shape.accesses;
            shared().site(first + index).write(Site {
                pc: qemu_plugin_insn_vaddr(insn),
                block: first as u32,
                count: count as u16,
                vector: shape.vector,
                base: shape.base,
                index: shape.index,
                loads: shape.loads,
                non_temporal: u8::from(shape.non_temporal),
                _space: [0; 5],
            });
            let site = (first + index) as *mut c_void;
            qemu_plugin_register_vcpu_mem_cb(insn, on_access, NO_REGISTERS, READS_AND_WRITES, site);
        }
        if !accesses {
            qemu_plugin_register_vcpu_tb_exec_cb(block, on_quiet_block, NO_REGISTERS, count as *mut c_void);
        }
    }
}

/// A thread of the guest is about to begin.
extern "C" fn on_thread(_: Id, number: c_uint) {
    let entry = vcpu(number);
    let taken = if DEAF_FOREVER.load(Relaxed) || number as usize >= VCPUS - 1 { None } else { shared().take_slot() };
    // SAFETY: the thread does not run yet, so its entry is nobody's but ours.
    unsafe {
        (*entry).call = -1;
        match taken {
            Some(slot) => {
                (*entry).slot = shared().slot(slot);
                (*entry).number = slot;
                (*(*entry).slot).pending = 0;
                if REPLACED.swap(false, SeqCst) {
                    shared().put(slot, 0, EVENT_EXEC);
                }
                shared().start_thread(RUNNING_THREADS.fetch_add(1, AcqRel) + 1, slot);
            }
            None => (*entry).slot = addr_of_mut!(DEAF),
        }
    }
}

/// The thread ends by itself.
fn thread_ends(number: c_uint) {
    let entry = vcpu(number);
    if !is_deaf(entry) {
        // SAFETY: the entry is this thread's.
        unsafe {
            let slot = (*entry).number;
            (*entry).slot = addr_of_mut!(DEAF);
            shared().end_thread(slot);
        }
        RUNNING_THREADS.fetch_sub(1, AcqRel);
    }
}

/// This process is a forked child: it writes nowhere from now on.
fn go_deaf() {
    DEAF_FOREVER.store(true, SeqCst);
    rewind_deaf();
    for number in 0..VCPUS {
        // SAFETY: a forked child has one thread.
        unsafe { (*vcpu(number as c_uint)).slot = addr_of_mut!(DEAF) };
    }
}

/// Is QEMU's access info laid out as the recorder reads it? (Bits 4-6: log2 of the size; bit 17: store.)
fn info_is_known() -> bool {
    (0..1u32 << 18).step_by(16).filter(|info| info >> 16 != 0).all(|info| {
        // SAFETY: pure functions of their argument.
        let (shift, store) = unsafe { (qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info)) };
        shift == info >> 4 & 7 && store == (info >> 17 & 1 == 1)
    })
}

/// Entry: called by QEMU when it has loaded the plugin.
///
/// # Safety
/// `info` and `argv` are QEMU's and valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(id: Id, info: *const Info, argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: promised by the caller.
    let (info, args) = unsafe { (&*info, core::slice::from_raw_parts(argv, argc as usize)) };
    // SAFETY: QEMU passes strings that end in a zero byte.
    let mut words = args.iter().map(|&arg| unsafe { CStr::from_ptr(arg) });
    let ring = words.find_map(|word| word.to_bytes_with_nul().strip_prefix(b"ring="));
    let Some(ring) = ring.and_then(|path| CStr::from_bytes_with_nul(path).ok()) else {
        eprintln!("varve: the QEMU plugin is started by varve, not by hand (no ring= argument)");
        return 1;
    };
    if info.oldest_version > qemu_plugin_version || info.whole_system || !info_is_known() {
        eprintln!("varve: this QEMU's plugin interface differs from version 1 (Debian 12: apt install qemu-user)");
        return 1;
    }
    let Some(shared) = attach(ring) else {
        eprintln!("varve: the QEMU plugin cannot map the recorder's memory ({})", ring.to_string_lossy());
        return 1;
    };
    // SAFETY: no callback is registered yet, so nobody reads it.
    unsafe {
        SHARED = shared;
        rewind_deaf();
        for number in 0..VCPUS {
            (*vcpu(number as c_uint)).slot = addr_of_mut!(DEAF);
        }
    }
    if shared.header().pid.swap(std::process::id(), SeqCst) != 0 {
        shared.take_over();
        REPLACED.store(true, SeqCst);
    }
    shared.header().mode.store(1, SeqCst);
    // SAFETY: the callbacks have the types that the interface documents.
    unsafe {
        qemu_plugin_register_vcpu_init_cb(id, on_thread);
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
        qemu_plugin_register_vcpu_syscall_cb(id, calls::on_call);
        qemu_plugin_register_vcpu_syscall_ret_cb(id, calls::on_return);
    }
    0
}
