//! A QEMU plugin that writes every memory access of an unmodified program into shared memory.
//!
//! QEMU calls [`qemu_plugin_install`] with `ring=PATH`, the file behind the shared memory. Everything that can be known
//! when code is translated goes into the table of sites, addresses that follow from others included (`plan.rs`); a run
//! of code then writes its number and the addresses that are left, 8 bytes each.

#[path = "../../src/arch/x86_64/decode.rs"]
mod decode;
#[path = "../../src/arch/x86_64/guest.rs"]
mod guest;
#[path = "../agent/marks.rs"]
mod marks;
#[path = "../ring.rs"]
mod ring;

mod api;
mod calls;
mod follow;
mod plan;
mod stacks;
#[path = "../../../sites/walk/walk.rs"]
mod walk;

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

/// What the plugin knows about one thread of the guest, besides its slot.
#[derive(Clone, Copy)]
struct Vcpu {
    /// Its events are recorded. Its accesses are too, unless it is [`is_unheard`].
    known: bool,
    number: usize,
    args: [u64; 6],
}

/// Where threads that are not recorded write: the same run, over and over.
static mut DEAF: Slot = Slot {
    cursor: null_mut(),
    limit: null_mut(),
    pending: 0,
    start: null_mut(),
    head: core::sync::atomic::AtomicU64::new(0),
    state: AtomicU32::new(FREE),
    process: AtomicU32::new(0),
    pieces: 0,
    piece_at: 0,
    tail: core::sync::atomic::AtomicU64::new(0),
    _line2: [0; 7],
    filled: [const { AtomicU32::new(0) }; RING as usize],
};
/// Room for a run of each of more threads than a process can have under QEMU.
static mut NOWHERE: [u64; 1 << 22] = [0; 1 << 22];
/// The slot of each thread, or [`DEAF`].
static mut SLOT: [*mut Slot; VCPUS] = [null_mut(); VCPUS];
static mut VCPU: [Vcpu; VCPUS] = [Vcpu {
    known: false,
    number: 0,
    args: [0; 6],
}; VCPUS];
static mut SHARED: Shared = Shared { base: null_mut() };
/// The number of this process.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Nothing is recorded any more: a forked child found no place.
static DEAF_FOREVER: AtomicBool = AtomicBool::new(false);
/// The process was another program before; its first thread says so.
static REPLACED: AtomicBool = AtomicBool::new(false);
static MODULES_WRITTEN: AtomicBool = AtomicBool::new(false);
/// Words of QEMU's command line before the program; 0 when other programs are not to be followed.
static WORDS: AtomicU32 = AtomicU32::new(0);
/// The program says when it is recorded.
static MARKED: AtomicBool = AtomicBool::new(false);
/// Ask QEMU for every access.
static ASK_ALL: AtomicBool = AtomicBool::new(false);

fn shared() -> Shared {
    // SAFETY: written once by qemu_plugin_install, before any other callback exists.
    unsafe { SHARED }
}

/// The thread's entry; numbers beyond the table share the last one, which is never recorded.
fn vcpu(number: c_uint) -> *mut Vcpu {
    // SAFETY: inside the table. Each thread only uses its own entry.
    unsafe {
        addr_of_mut!(VCPU)
            .cast::<Vcpu>()
            .add((number as usize).min(VCPUS - 1))
    }
}

#[inline(always)]
fn slot(number: c_uint) -> *mut *mut Slot {
    // SAFETY: inside the table. Each thread only uses its own entry.
    unsafe {
        addr_of_mut!(SLOT)
            .cast::<*mut Slot>()
            .add((number as usize).min(VCPUS - 1))
    }
}

/// Nothing of the thread is recorded.
fn is_deaf(number: c_uint) -> bool {
    // SAFETY: the entry is in the table.
    unsafe { !(*vcpu(number)).known }
}

/// Accesses of the thread are not recorded.
fn is_unheard(number: c_uint) -> bool {
    // SAFETY: the entry is in the table.
    unsafe { *slot(number) == addr_of_mut!(DEAF) }
}

fn make_deaf(number: c_uint) {
    make_unheard(number);
    // SAFETY: the entry is in the table, and its thread's.
    unsafe { (*vcpu(number)).known = false };
}

fn make_unheard(number: c_uint) {
    // SAFETY: the entry is in the table, and its thread's.
    unsafe { *slot(number) = addr_of_mut!(DEAF) };
}

/// No accesses are recorded now, of any process: see [`calls::mark`].
fn is_quiet() -> bool {
    shared().header().quiet.load(Acquire) != 0
}

/// A thread whose events are recorded is heard, or not, as the program has said last. Threads come here when their next run
/// begins, or at their next system call.
fn settle(number: c_uint) {
    let quiet = is_quiet();
    if is_deaf(number) || is_unheard(number) == quiet {
        return;
    }
    if quiet {
        make_unheard(number);
        return rewind_deaf();
    }
    // SAFETY: both entries are this thread's.
    unsafe {
        let slot_of = shared().slot((*vcpu(number)).number);
        (*slot_of).pending = 0;
        (*slot_of).pieces = 0;
        *slot(number) = slot_of;
    }
}

fn rewind_deaf() {
    // SAFETY: threads that are not recorded may race here. Whatever they store, the cursor stays inside NOWHERE: every
    // run begins with a comparison with the limit, which is its start and never moves, and the room behind it is enough
    // for a run of every thread.
    unsafe {
        DEAF.start = addr_of_mut!(NOWHERE).cast();
        DEAF.cursor = DEAF.start;
        DEAF.limit = DEAF.start;
    }
}

/// The slot with room for a run.
#[inline(always)]
fn with_room(number: c_uint) -> *mut Slot {
    // SAFETY: the slot is this thread's.
    unsafe {
        let here = *slot(number);
        if (*here).cursor <= (*here).limit {
            return here;
        }
        chunk_full(number);
        *slot(number)
    }
}

#[cold]
#[inline(never)]
fn chunk_full(number: c_uint) {
    settle(number);
    if is_unheard(number) {
        return rewind_deaf();
    }
    // SAFETY: the entries are this thread's.
    unsafe {
        let slot = *slot(number);
        if (*slot).cursor > (*slot).limit {
            shared().publish((*vcpu(number)).number);
        }
    }
}

/// The first access of a run.
extern "C" fn on_first(number: c_uint, _: u32, addr: u64, site: *mut c_void) {
    // SAFETY: the slot is this thread's and has room for a run.
    unsafe {
        let slot = with_room(number);
        let cursor = (*slot).cursor;
        cursor.write(RUN | site as u64 | (*slot).pending << 32);
        cursor.add(1).write(addr);
        (*slot).pending = 0;
        (*slot).cursor = cursor.add(2);
    }
}

/// Another leader of the run.
extern "C" fn on_next(number: c_uint, _: u32, addr: u64, _: *mut c_void) {
    // SAFETY: the slot is this thread's; the run began with room for all its addresses.
    unsafe {
        let slot = *slot(number);
        let cursor = (*slot).cursor;
        cursor.write(addr);
        (*slot).cursor = cursor.add(1);
    }
}

/// Bits of QEMU's access info.
const LOADS: u32 = 1 << 16;
const STORES: u32 = 1 << 17;

// The same for instructions that load and store.

extern "C" fn on_first_load(number: c_uint, info: u32, addr: u64, site: *mut c_void) {
    if info & LOADS != 0 {
        on_first(number, info, addr, site);
    }
}

extern "C" fn on_next_load(number: c_uint, info: u32, addr: u64, site: *mut c_void) {
    if info & LOADS != 0 {
        on_next(number, info, addr, site);
    }
}

extern "C" fn on_first_store(number: c_uint, info: u32, addr: u64, site: *mut c_void) {
    if info & STORES != 0 {
        on_first(number, info, addr, site);
    }
}

extern "C" fn on_next_store(number: c_uint, info: u32, addr: u64, site: *mut c_void) {
    if info & STORES != 0 {
        on_next(number, info, addr, site);
    }
}

/// Bytes of a vector, above the number of the site in the data of a callback.
const VECTOR_SHIFT: u32 = 32;

/// Is this the first piece of a vector access? QEMU makes as many as it likes.
#[inline(always)]
unsafe fn first_piece(slot: *mut Slot, info: u32, addr: u64, data: *mut c_void) -> bool {
    // SAFETY: the slot is this thread's.
    unsafe {
        let next = addr + (1 << (info >> 4 & 7));
        if (*slot).pieces > 0 && addr == (*slot).piece_at {
            ((*slot).pieces, (*slot).piece_at) = ((*slot).pieces - 1, next);
            return false;
        }
        let pieces = (data as u64 >> VECTOR_SHIFT) >> (info >> 4 & 7);
        ((*slot).pieces, (*slot).piece_at) = (pieces.saturating_sub(1), next);
        true
    }
}

extern "C" fn on_first_vector(number: c_uint, info: u32, addr: u64, data: *mut c_void) {
    // SAFETY: as in `on_first`.
    unsafe {
        let slot = *slot(number);
        if first_piece(slot, info, addr, data) {
            on_first(
                number,
                info,
                addr,
                (data as u64 & 0xffff_ffff) as *mut c_void,
            );
        }
    }
}

extern "C" fn on_next_vector(number: c_uint, info: u32, addr: u64, data: *mut c_void) {
    // SAFETY: as in `on_next`.
    unsafe {
        let slot = *slot(number);
        if first_piece(slot, info, addr, data) {
            on_next(number, info, addr, data);
        }
    }
}

/// An access of which nothing is known beforehand.
extern "C" fn on_single(number: c_uint, info: u32, addr: u64, site: *mut c_void) {
    // SAFETY: the slot is this thread's and has room for a run.
    unsafe {
        let mut slot = *slot(number);
        // what belongs to one instruction stays in one chunk, where the recorder puts it together
        let over = (*slot).cursor.offset_from((*slot).limit);
        let same = over > 0
            && over < MARGIN as isize / 2
            && (*slot).cursor.sub(2).read() as u32 == site as u64 as u32;
        if over > 0 && !same {
            slot = with_room(number);
        }
        if (*slot).pending > 0 {
            let pending = core::mem::take(&mut (*slot).pending);
            if !is_unheard(number) {
                shared().put((*vcpu(number)).number, EVENT_WORK, &[pending]);
            }
        }
        let cursor = (*slot).cursor;
        cursor.write(SINGLE | site as u64 | u64::from(info & 0x3_ffff) << 32);
        cursor.add(1).write(addr);
        (*slot).cursor = cursor.add(2);
    }
}

/// A block without any access has run: only its instructions count.
extern "C" fn on_quiet_block(number: c_uint, instructions: *mut c_void) {
    // SAFETY: as in `on_first`.
    unsafe {
        let slot = *slot(number);
        (*slot).pending += instructions as u64;
        // 16 bits of a head hold the number; a block has 512 instructions at most
        if (*slot).pending >= (1 << 16) - 512 {
            let instructions = core::mem::take(&mut (*slot).pending);
            if !is_unheard(number) {
                shared().put((*vcpu(number)).number, EVENT_WORK, &[instructions]);
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
        // SAFETY: a block has an instruction, whose bytes are valid during the callback.
        let sees = unsafe {
            let insn = qemu_plugin_tb_get_insn(block, 0);
            let bytes = core::slice::from_raw_parts(
                qemu_plugin_insn_data(insn),
                qemu_plugin_insn_size(insn),
            );
            follow::sees_guest(qemu_plugin_insn_vaddr(insn), bytes)
        };
        let words = WORDS.load(Relaxed) as usize;
        stacks::see(sees);
        if sees && words > 0 {
            follow::keep_words(words);
        } else {
            follow::keep_nothing();
        }
    }
    // SAFETY: QEMU's block is valid during the callback, and so are its instructions and their bytes.
    unsafe {
        let count = qemu_plugin_tb_n_insns(block);
        let header = shared().header();
        let mut first = header.sites.fetch_add(count as u32, AcqRel) as usize;
        let mut plan = plan::Plan::new(ASK_ALL.load(Relaxed));
        if first + count > SITES {
            // the last block's entries are shared by all that come too late: every access is asked for, so that
            // addresses stay right
            header.sites.fetch_sub(count as u32, AcqRel);
            header.lost_sites.fetch_add(count as u32, AcqRel);
            first = SITES - 512;
            plan = plan::Plan::new(true);
        }
        let mut accesses = false;
        for index in 0..count {
            let insn = qemu_plugin_tb_get_insn(block, index);
            let bytes = core::slice::from_raw_parts(
                qemu_plugin_insn_data(insn),
                qemu_plugin_insn_size(insn),
            );
            let pc = qemu_plugin_insn_vaddr(insn);
            let mut shape = decode::decode(bytes);
            // QEMU 7.2 ends a block before an instruction that goes on in the next page, but still lists what it has read
            // of it: such a one must not be believed in before it runs
            if index + 1 == count && pc & 0xfff > 0x1000 - decode::LONGEST_INSTRUCTION {
                shape = shape.unknown();
            }
            let known = plan.next(&shape, pc, bytes.len());
            accesses |= known[0].source != NONE;
            shared().site(first + index).write(Site {
                pc,
                block: first as u32,
                count: count as u16,
                vector: shape.vector,
                base: shape.base,
                index: shape.index,
                loads: shape.loads,
                non_temporal: u8::from(shape.non_temporal),
                accesses: known,
            });
            let both = shape.accesses[1].is_some() || known[0].kind == decode::UPDATE;
            for (access, known) in shape.accesses.iter().zip(known) {
                let vector = access.is_some_and(|access| access.vector);
                ask(insn, (first + index) as u64, vector, both, known);
            }
        }
        if !accesses {
            qemu_plugin_register_vcpu_tb_exec_cb(
                block,
                on_quiet_block,
                NO_REGISTERS,
                count as *mut c_void,
            );
        }
    }
}

/// Has QEMU call us for an access, if its address is not known otherwise.
///
/// # Safety
/// `insn` is an instruction of the block that is being translated.
unsafe fn ask(insn: *mut Insn, site: u64, vector: bool, both: bool, known: SiteAccess) {
    let pieces = u64::from(known.size) << VECTOR_SHIFT;
    let loads = known.kind == decode::READ;
    let (callback, data): (OnAccess, _) = match known.source {
        FIRST if vector => (on_first_vector, site | pieces),
        NEXT if vector => (on_next_vector, site | pieces),
        FIRST if both && loads => (on_first_load, site),
        NEXT if both && loads => (on_next_load, site),
        FIRST if both => (on_first_store, site),
        NEXT if both => (on_next_store, site),
        FIRST => (on_first, site),
        NEXT => (on_next, site),
        UNKNOWN => (on_single, site),
        _ => return,
    };
    // SAFETY: promised by the caller.
    unsafe {
        qemu_plugin_register_vcpu_mem_cb(
            insn,
            callback,
            NO_REGISTERS,
            READS_AND_WRITES,
            data as *mut c_void,
        )
    };
}

/// A thread of the guest is about to begin.
extern "C" fn on_thread(_: Id, number: c_uint) {
    if DEAF_FOREVER.load(Relaxed) || number as usize >= VCPUS - 1 {
        return make_deaf(number);
    }
    begin_thread(number);
}

/// Takes a slot for a thread that does not run yet, or for the one that calls.
fn begin_thread(number: c_uint) {
    let Some(taken) = shared().take_slot() else {
        return make_deaf(number);
    };
    // SAFETY: the entry is nobody's but ours.
    unsafe {
        (*vcpu(number)).number = taken;
        let slot_of = shared().slot(taken);
        (*slot_of).pending = 0;
        (*slot_of).pieces = 0;
        if REPLACED.swap(false, SeqCst) {
            shared().put(taken, EVENT_EXEC, &[]);
        }
        stacks::begin_thread(taken);
        shared().start_thread(taken, PROCESS.load(Relaxed));
        (*vcpu(number)).known = true;
        *slot(number) = slot_of;
    }
    settle(number);
}

/// The thread ends by itself.
fn thread_ends(number: c_uint) {
    if !is_deaf(number) {
        make_deaf(number);
        // SAFETY: the entry is this thread's.
        shared().end_thread(unsafe { (*vcpu(number)).number });
    }
}

/// This process is a forked child with one thread: it goes on under a number of its own.
fn begin_child(number: c_uint) {
    rewind_deaf();
    (0..VCPUS).for_each(|other| make_deaf(other as c_uint));
    match shared().add_process(std::process::id()) {
        Some(process) => {
            PROCESS.store(process, SeqCst);
            stacks::begin_child();
            calls::write_modules(&shared());
            begin_thread(number);
        }
        None => DEAF_FOREVER.store(true, SeqCst),
    }
}

/// Is QEMU's access info laid out as the recorder reads it? (Bits 4-6: log2 of the size; bit 17: store.)
fn info_is_known() -> bool {
    (0..1u32 << 18)
        .step_by(16)
        .filter(|info| info >> 16 != 0)
        .all(|info| {
            // SAFETY: pure functions of their argument.
            let (shift, store) = unsafe {
                (
                    qemu_plugin_mem_size_shift(info),
                    qemu_plugin_mem_is_store(info),
                )
            };
            shift == info >> 4 & 7 && store == (info >> 17 & 1 == 1)
        })
}

/// Entry: called by QEMU when it has loaded the plugin.
///
/// # Safety
/// `info` and `argv` are QEMU's and valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: promised by the caller.
    let (info, args) = unsafe { (&*info, core::slice::from_raw_parts(argv, argc as usize)) };
    // SAFETY: QEMU passes strings that end in a zero byte.
    let words: Vec<&CStr> = args
        .iter()
        .map(|&arg| unsafe { CStr::from_ptr(arg) })
        .collect();
    let value = |name: &[u8]| {
        words
            .iter()
            .find_map(|word| word.to_bytes_with_nul().strip_prefix(name))
    };
    let ring = value(b"ring=").and_then(|path| CStr::from_bytes_with_nul(path).ok());
    let Some(ring) = ring else {
        eprintln!("varve: the QEMU plugin is started by varve, not by hand (no ring= argument)");
        return 1;
    };
    if info.oldest_version > qemu_plugin_version || info.whole_system || !info_is_known() {
        eprintln!(
            "varve: this QEMU's plugin interface differs from version 1 (Debian 12: apt install qemu-user)"
        );
        return 1;
    }
    let Some(shared) = attach(ring) else {
        eprintln!(
            "varve: the QEMU plugin cannot map the recorder's memory ({})",
            ring.to_string_lossy()
        );
        return 1;
    };
    let number = |text: &[u8]| {
        core::str::from_utf8(text.strip_suffix(b"\0")?)
            .ok()?
            .parse()
            .ok()
    };
    stacks::ask_at(value(b"tables=").and_then(|path| path.strip_suffix(b"\0")));
    WORDS.store(value(b"words=").and_then(number).unwrap_or(0), Relaxed);
    ASK_ALL.store(value(b"ask=all").is_some(), Relaxed);
    MARKED.store(value(b"marked=yes").is_some(), Relaxed);
    // SAFETY: no callback is registered yet, so nobody reads it.
    unsafe { SHARED = shared };
    rewind_deaf();
    (0..VCPUS).for_each(|number| make_deaf(number as c_uint));
    match shared.begin_program(std::process::id()) {
        Some((process, replaced)) => {
            PROCESS.store(process, SeqCst);
            REPLACED.store(replaced, SeqCst);
        }
        None => DEAF_FOREVER.store(true, SeqCst),
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
