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
#[path = "../python/mod.rs"]
mod python;
#[path = "../ring.rs"]
mod ring;

mod api;
mod calls;
mod follow;
mod lines;
mod plan;
mod scripts;
mod stacks;
#[path = "../../../../base/symbols/walk/walk.rs"]
mod walk;

use api::*;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use lines::Lines;
use ring::phases::INTERVAL;
use ring::*;

/// The version of the interface that this plugin speaks.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// QEMU numbers threads from 0 and reuses the numbers of the newest ones.
const VCPUS: usize = 1024;

/// The plugin's state of one thread of the guest, besides its slot.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Vcpu {
    /// Where it writes: its slot of the shared memory, or [`DEAF`].
    slot: *mut Slot,
    /// Instructions of blocks without an access since the last run.
    pending: u64,
    /// Instructions that it may still record of the window.
    left: i64,
    /// It is recorded in a window of which the phase is to be known.
    sees: bool,
    /// Its events are recorded. Its accesses are too, unless it is [`is_unheard`].
    known: bool,
    number: usize,
    args: [u64; 6],
    /// Instructions while it was unheard, not yet added to the shared count.
    skipped: u64,
    /// Lines that it touched meanwhile; null until there is one.
    lines: *mut Lines,
}

/// Instructions of a thread that are reported at a time.
const SKIPPED: u64 = 1 << 14;

/// Where threads that are not recorded write: the same run, over and over.
static mut DEAF: Slot = Slot {
    cursor: null_mut(),
    limit: null_mut(),
    start: null_mut(),
    head: core::sync::atomic::AtomicU64::new(0),
    state: AtomicU32::new(FREE),
    process: AtomicU32::new(0),
    pieces: 0,
    piece_at: 0,
    _line1: 0,
    tail: core::sync::atomic::AtomicU64::new(0),
    _line2: [0; 7],
    had: 0,
    filled: [const { AtomicU32::new(0) }; RING as usize],
};
/// Room for a run of each of more threads than a process can have under QEMU.
static mut NOWHERE: [u64; 1 << 22] = [0; 1 << 22];
static mut VCPU: [Vcpu; VCPUS] = [Vcpu {
    slot: null_mut(),
    pending: 0,
    left: i64::MAX,
    sees: false,
    known: false,
    number: 0,
    args: [0; 6],
    skipped: 0,
    lines: null_mut(),
}; VCPUS];
/// By site that begins a run: instructions of its block, up to the next such site.
static mut LENGTHS: [u16; SITES] = [0; SITES];
static mut SHARED: Shared = Shared { base: null_mut() };
/// The number of this process.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The process that this one was forked from; [`NO_PARENT`] for none.
static PARENT: AtomicU32 = AtomicU32::new(NO_PARENT);
const NO_PARENT: u32 = u32::MAX;

fn parent() -> Option<u32> {
    Some(PARENT.load(Relaxed)).filter(|parent| *parent != NO_PARENT)
}
/// Nothing is recorded any more: a forked child found no place.
static DEAF_FOREVER: AtomicBool = AtomicBool::new(false);
/// The process was another program before; its first thread reports that.
static REPLACED: AtomicBool = AtomicBool::new(false);
static MODULES_WRITTEN: AtomicBool = AtomicBool::new(false);
/// Words of QEMU's command line before the program; 0 when other programs are not to be followed.
static WORDS: AtomicU32 = AtomicU32::new(0);
/// The program marks when it is recorded.
static MARKED: AtomicBool = AtomicBool::new(false);
/// Parts of the run may be left out.
static PARTS: AtomicBool = AtomicBool::new(false);
/// The process has had one thread so far. QEMU translates code anew when it gets a second one.
static ALONE: AtomicBool = AtomicBool::new(true);
/// Ask QEMU for every access.
static ASK_ALL: AtomicBool = AtomicBool::new(false);

fn shared() -> Shared {
    // SAFETY: written once by qemu_plugin_install, before any other callback exists.
    unsafe { SHARED }
}

/// The thread's entry; numbers beyond the table share the last one, which is never recorded.
#[inline(always)]
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
    // SAFETY: a field of an entry of the table.
    unsafe { addr_of_mut!((*vcpu(number)).slot) }
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

/// Nothing of the thread is recorded now.
fn is_quiet_for(number: c_uint) -> bool {
    // SAFETY: the entry is this thread's.
    shared().is_quiet(unsafe { (*vcpu(number)).number })
}

/// Starts or stops recording the accesses of a thread with recorded events, if it has become quiet or the quiet has ended
/// for it. Threads come here when their next run begins, or at their next system call.
fn settle(number: c_uint) {
    if is_deaf(number) {
        return;
    }
    let quiet = is_quiet_for(number);
    if is_unheard(number) == quiet {
        return;
    }
    if quiet {
        window_ends(number);
        make_unheard(number);
        return rewind_deaf();
    }
    // SAFETY: both entries are this thread's.
    unsafe {
        let slot_of = shared().slot((*vcpu(number)).number);
        tell_skipped(number);
        (*vcpu(number)).pending = 0;
        (*slot_of).pieces = 0;
        *slot(number) = slot_of;
        (*vcpu(number)).left = match shared().header().quota.load(Acquire) {
            0 => i64::MAX,
            quota => quota.min(i64::MAX as u64) as i64,
        };
        shared().enter_window((*vcpu(number)).number);
        if let Some(lines) = (*vcpu(number)).lines.as_mut() {
            interval_ends(lines);
            lines.tell(shared(), (*vcpu(number)).number);
            let header = shared().header();
            (*vcpu(number)).sees =
                header.samples.load(Relaxed) != 0 && header.window.load(Acquire) > 0;
        }
    }
}

/// An interval that was not recorded is over.
fn interval_ends(lines: &mut Lines) {
    if shared().header().samples.load(Relaxed) != 0 {
        shared().passed(&core::mem::take(&mut lines.accessed));
    }
}

/// The thread's part of a window is over: it tells the phase of the window.
fn window_ends(number: c_uint) {
    // SAFETY: the entry is in the table, and its thread's; the lines are never freed, and only this thread uses them.
    unsafe {
        let vcpu = vcpu(number);
        if !core::mem::take(&mut (*vcpu).sees) {
            return;
        }
        if let Some(lines) = (*vcpu).lines.as_mut() {
            let header = shared().header();
            let quota = header.quota.load(Acquire) as i64;
            let mut window = core::mem::take(&mut lines.accessed);
            window.instructions = (quota - (*vcpu).left).max(0) as u64;
            let number = header.window.load(Acquire);
            header.with_phases(|phases| phases.window(number, &window));
        }
    }
}

/// The thread accesses an address in a window of which the phase is to be known.
#[cold]
#[inline(never)]
fn see(number: c_uint, address: u64, store: bool) {
    // SAFETY: as in `window_ends`.
    if let Some(lines) = unsafe { (*vcpu(number)).lines.as_mut() } {
        lines.see(address, store);
    }
}

/// A thread whose accesses are not recorded begins a run at a site by touching an address. `false` when they are
/// recorded from here on.
#[inline(always)]
fn unheard(number: c_uint, site: u64, address: u64, store: bool) -> bool {
    if !is_quiet() {
        settle(number);
        if !is_unheard(number) {
            return false;
        }
    }
    // SAFETY: the entry is in the table, and its thread's.
    unsafe {
        let vcpu = vcpu(number);
        (*vcpu).skipped += length_of(site);
        match (*vcpu).lines.as_mut() {
            Some(lines) if (*vcpu).skipped < SKIPPED => lines.note(address, store),
            _ => {
                skip(number, 0);
                touch(number, address, store);
            }
        }
    }
    true
}

/// A thread that is unheard touches an address.
#[inline(never)]
fn touch(number: c_uint, address: u64, store: bool) {
    // SAFETY: the entry is in the table, and its thread's; the lines are never freed, and only this thread uses them.
    unsafe {
        let vcpu = vcpu(number);
        if (*vcpu).lines.is_null() {
            // between marks of the program, caches begin empty
            if is_deaf(number) || MARKED.load(Relaxed) {
                return;
            }
            (*vcpu).lines = Lines::new();
        }
        if let Some(lines) = (*vcpu).lines.as_mut() {
            lines.note(address, store);
        }
    }
}

/// Instructions of the run that begins at a site.
#[inline(always)]
fn length_of(site: u64) -> u64 {
    // SAFETY: inside the table; the entry was written before the code ran.
    u64::from(unsafe {
        *addr_of_mut!(LENGTHS)
            .cast::<u16>()
            .add(site as usize % SITES)
    })
}

/// The thread has recorded its part of the window. The run that begins is the first that does not belong to it.
#[cold]
#[inline(never)]
fn part_over(number: c_uint) {
    window_ends(number);
    // SAFETY: the entry is in the table, and its thread's.
    let slot = unsafe {
        (*vcpu(number)).left = i64::MAX;
        // the window closed before its part was over
        if is_unheard(number) {
            return;
        }
        let pending = core::mem::take(&mut (*vcpu(number)).pending);
        shared().put((*vcpu(number)).number, EVENT_WORK, &[pending]);
        (*vcpu(number)).number
    };
    shared().publish(slot);
    shared().had_part(slot);
    settle(number);
}

/// Instructions of a thread that is unheard.
fn skip(number: c_uint, instructions: u64) {
    if is_deaf(number) {
        return;
    }
    // SAFETY: the entry is in the table, and its thread's.
    let skipped = unsafe {
        (*vcpu(number)).skipped += instructions;
        (*vcpu(number)).skipped
    };
    if skipped >= SKIPPED {
        tell_skipped(number);
    }
}

fn tell_skipped(number: c_uint) {
    // SAFETY: the entry is in the table, and its thread's.
    let skipped = unsafe { core::mem::take(&mut (*vcpu(number)).skipped) };
    if skipped == 0 {
        return;
    }
    shared().skip(skipped);
    // SAFETY: the entry is in the table, and its thread's; the lines are never freed, and only this thread uses them.
    if let Some(lines) = unsafe { (*vcpu(number)).lines.as_mut() } {
        lines.accessed.instructions += skipped;
        if lines.accessed.instructions >= INTERVAL {
            interval_ends(lines);
        }
    }
}

fn rewind_deaf() {
    // SAFETY: threads that are not recorded may race here. Whatever they store, the cursor stays inside NOWHERE: every
    // run begins with a comparison with the limit, which is before its start and never moves, so that it comes here,
    // and the room behind it is enough for a run of every thread. The two words before the start may be read.
    unsafe {
        DEAF.start = addr_of_mut!(NOWHERE).cast::<u64>().add(2);
        DEAF.cursor = DEAF.start;
        DEAF.limit = DEAF.start.sub(1);
    }
}

/// The slot with room for a run, which begins at a site.
#[inline(always)]
fn with_room(number: c_uint, site: u64) -> *mut Slot {
    // SAFETY: the slot is this thread's.
    unsafe {
        let here = *slot(number);
        if (*here).cursor <= (*here).limit {
            return here;
        }
        chunk_full(number, site);
        *slot(number)
    }
}

#[cold]
#[inline(never)]
fn chunk_full(number: c_uint, site: u64) {
    settle(number);
    if is_unheard(number) {
        skip(number, length_of(site));
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

/// Bits of QEMU's access info.
const LOADS: u32 = 1 << 16;
const STORES: u32 = 1 << 17;

// Callbacks of QEMU for the first access of a run, and for its other leaders. If all of a run is recorded, they do not
// ask whether this is a recorded part of it (`PARTS`).
//
// The data of the first is the head of the run but for the instructions before it. Vectors have their bytes above.

/// Bytes of a vector in the data of a callback.
const VECTOR_SHIFT: u32 = 54;
const VECTOR: u64 = 127 << VECTOR_SHIFT;
/// The site in it.
const SITE: u64 = SITES as u64 - 1;

#[inline(always)]
fn first<const PARTS: bool>(number: c_uint, info: u32, addr: u64, head: u64) {
    // SAFETY: the slot is this thread's, and has room for a run below its limit.
    unsafe {
        let vcpu = vcpu(number);
        let slot = (*vcpu).slot;
        let (cursor, pending) = ((*slot).cursor, (*vcpu).pending);
        let over = PARTS && (*vcpu).left <= 0;
        // nothing is called on the quick way, so that it needs no frame
        if cursor > (*slot).limit || pending >= MOST_PENDING || over {
            return first_with_more::<PARTS>(number, info, addr, head);
        }
        cursor.write(head | pending << 32);
        cursor.add(1).write(addr);
        (*vcpu).pending = 0;
        (*slot).cursor = cursor.add(2);
        if PARTS {
            (*vcpu).left -= length_of(head & SITE) as i64;
            if (*vcpu).sees {
                see(number, addr, info & STORES != 0);
            }
        }
    }
}

/// The same where something has to be done before.
#[inline(never)]
fn first_with_more<const PARTS: bool>(number: c_uint, info: u32, addr: u64, head: u64) {
    // SAFETY: as in `first`.
    unsafe {
        let vcpu = vcpu(number);
        if PARTS && (*vcpu).left <= 0 {
            part_over(number);
        }
        let mut slot = (*vcpu).slot;
        if (*slot).cursor > (*slot).limit {
            let deaf = PARTS && slot == addr_of_mut!(DEAF);
            if deaf && unheard(number, head & SITE, addr, info & STORES != 0) {
                return;
            }
            slot = with_room(number, head & SITE);
        }
        if (*vcpu).pending >= MOST_PENDING {
            tell_pending(number);
        }
        let cursor = (*slot).cursor;
        cursor.write(head | (*vcpu).pending << 32);
        cursor.add(1).write(addr);
        (*vcpu).pending = 0;
        (*slot).cursor = cursor.add(2);
        if PARTS {
            (*vcpu).left -= length_of(head & SITE) as i64;
            if (*vcpu).sees {
                see(number, addr, info & STORES != 0);
            }
        }
    }
}

#[inline(always)]
fn next<const PARTS: bool>(number: c_uint, info: u32, addr: u64) {
    // SAFETY: the slot is this thread's; the run began with room for all its addresses.
    unsafe {
        let slot = (*vcpu(number)).slot;
        if PARTS && slot == addr_of_mut!(DEAF) {
            return touch(number, addr, info & STORES != 0);
        }
        let cursor = (*slot).cursor;
        cursor.write(addr);
        (*slot).cursor = cursor.add(1);
        if PARTS && (*vcpu(number)).sees {
            see(number, addr, info & STORES != 0);
        }
    }
}

/// The head of a run has room for fewer instructions.
const MOST_PENDING: u64 = 1 << 16;

/// The thread has run more blocks without an access than the head of a run can count.
#[cold]
#[inline(never)]
fn tell_pending(number: c_uint) {
    // SAFETY: the entry is this thread's.
    let (pending, slot) = unsafe {
        let vcpu = vcpu(number);
        (core::mem::take(&mut (*vcpu).pending), (*vcpu).number)
    };
    if !is_unheard(number) {
        shared().put(slot, EVENT_WORK, &[pending]);
    }
}

extern "C" fn on_first<const PARTS: bool>(number: c_uint, info: u32, addr: u64, data: *mut c_void) {
    first::<PARTS>(number, info, addr, data as u64);
}

extern "C" fn on_next<const PARTS: bool>(number: c_uint, info: u32, addr: u64, _: *mut c_void) {
    next::<PARTS>(number, info, addr);
}

/// The same for instructions that load and store: only the loads, or only the stores.
extern "C" fn on_first_of<const PARTS: bool, const WHICH: u32>(
    number: c_uint,
    info: u32,
    addr: u64,
    data: *mut c_void,
) {
    if info & WHICH != 0 {
        first::<PARTS>(number, info, addr, data as u64);
    }
}

extern "C" fn on_next_of<const PARTS: bool, const WHICH: u32>(
    number: c_uint,
    info: u32,
    addr: u64,
    _: *mut c_void,
) {
    if info & WHICH != 0 {
        next::<PARTS>(number, info, addr);
    }
}

/// Is this the first piece of a vector access? QEMU splits it into any number of pieces.
#[inline(always)]
unsafe fn first_piece(slot: *mut Slot, info: u32, addr: u64, data: u64) -> bool {
    // SAFETY: the slot is this thread's.
    unsafe {
        let next = addr + (1 << (info >> 4 & 7));
        if (*slot).pieces > 0 && addr == (*slot).piece_at {
            ((*slot).pieces, (*slot).piece_at) = ((*slot).pieces - 1, next);
            return false;
        }
        let pieces = (data & VECTOR) >> VECTOR_SHIFT >> (info >> 4 & 7);
        ((*slot).pieces, (*slot).piece_at) = (pieces.saturating_sub(1), next);
        true
    }
}

/// The same for vectors.
extern "C" fn on_first_vector<const PARTS: bool>(
    number: c_uint,
    info: u32,
    addr: u64,
    data: *mut c_void,
) {
    // SAFETY: as in `first`.
    if unsafe { first_piece(*slot(number), info, addr, data as u64) } {
        first::<PARTS>(number, info, addr, data as u64 & !VECTOR);
    }
}

extern "C" fn on_next_vector<const PARTS: bool>(
    number: c_uint,
    info: u32,
    addr: u64,
    data: *mut c_void,
) {
    // SAFETY: as in `next`.
    if unsafe { first_piece(*slot(number), info, addr, data as u64) } {
        next::<PARTS>(number, info, addr);
    }
}

/// An access of which nothing is known beforehand.
extern "C" fn on_single(number: c_uint, info: u32, addr: u64, site: *mut c_void) {
    // SAFETY: the slot is this thread's and has room for a run.
    unsafe {
        let mut slot = *slot(number);
        // the accesses of one instruction stay in one chunk, where the recorder puts them together
        let over = (*slot).cursor.offset_from((*slot).limit);
        let same = over > 0
            && over < MARGIN as isize / 2
            && (*slot).cursor.sub(2).read() as u32 == site as u64 as u32;
        if over > 0 && !same {
            slot = with_room(number, site as u64);
        }
        if (*vcpu(number)).pending > 0 {
            tell_pending(number);
        }
        if slot == addr_of_mut!(DEAF) {
            // later accesses of the same instruction are not counted again
            (*slot).cursor = (*slot).start.add(2);
            (*slot).start.write(site as u64);
            return touch(number, addr, info & STORES != 0);
        }
        let cursor = (*slot).cursor;
        cursor.write(SINGLE | site as u64 | u64::from(info & 0x3_ffff) << 32);
        cursor.add(1).write(addr);
        (*slot).cursor = cursor.add(2);
    }
}

/// A block without any access has run: only its instructions count. Where all of a run is recorded, and by one thread, QEMU
/// adds them without a call.
extern "C" fn on_quiet_block<const PARTS: bool>(number: c_uint, instructions: *mut c_void) {
    // SAFETY: as in `first`.
    unsafe {
        if PARTS && is_unheard(number) {
            if !is_quiet() {
                settle(number);
            }
            if is_unheard(number) {
                return skip(number, instructions as u64);
            }
        }
        (*vcpu(number)).pending += instructions as u64;
        if PARTS {
            (*vcpu(number)).left -= instructions as i64;
            if (*vcpu(number)).left <= 0 {
                part_over(number);
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
        let mut asked = Vec::with_capacity(count);
        // where the current run begins, and where its count does
        let (mut begins, mut counted) = (None, 0);
        for index in 0..count {
            let insn = qemu_plugin_tb_get_insn(block, index);
            let bytes = core::slice::from_raw_parts(
                qemu_plugin_insn_data(insn),
                qemu_plugin_insn_size(insn),
            );
            let pc = qemu_plugin_insn_vaddr(insn);
            let mut shape = decode::decode(bytes);
            // QEMU 7.2 ends a block before an instruction that continues in the next page, but still lists the bytes
            // that it has read: such an instruction must not be trusted before it runs
            if index + 1 == count && pc & 0xfff > 0x1000 - decode::LONGEST_INSTRUCTION {
                shape = shape.unknown();
            }
            let known = plan.next(&shape, pc, bytes.len());
            accesses |= known[0].source != NONE;
            if known
                .iter()
                .any(|known| matches!(known.source, FIRST | UNKNOWN))
            {
                if let Some(begins) = begins {
                    lengthen(begins, index - counted);
                    counted = index;
                }
                begins = Some(first + index);
            }
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
            asked.push((insn, shape, known));
        }
        if let Some(begins) = begins {
            lengthen(begins, count - counted);
        }
        let parts = PARTS.load(Relaxed);
        for (index, (insn, shape, known)) in asked.iter().enumerate() {
            let both = shape.accesses[1].is_some() || known[0].kind == decode::UPDATE;
            let mut head = RUN | (first + index) as u64;
            if known.iter().any(|known| known.source == FIRST) {
                let rest = asked[index..].iter().flat_map(|(_, _, known)| known);
                head |= (leaders(rest) as u64) << RUN_COUNT_SHIFT;
            }
            for (access, &known) in shape.accesses.iter().zip(known) {
                let vector = access.is_some_and(|access| access.vector);
                match parts {
                    true => ask::<true>(*insn, head, vector, both, known),
                    false => ask::<false>(*insn, head, vector, both, known),
                }
            }
        }
        if !accesses && !parts && ALONE.load(Relaxed) {
            let pending = addr_of_mut!((*vcpu(0)).pending).cast();
            qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, pending, count as u64);
        } else if !accesses {
            let callback: OnRun = match parts {
                true => on_quiet_block::<true>,
                false => on_quiet_block::<false>,
            };
            let data = count as *mut c_void;
            qemu_plugin_register_vcpu_tb_exec_cb(block, callback, NO_REGISTERS, data);
        }
    }
}

/// How many addresses a run writes that begins with the first of some accesses; the recorder counts them in the same way.
fn leaders<'a>(accesses: impl Iterator<Item = &'a SiteAccess>) -> usize {
    let mut seen = 0;
    for access in accesses {
        if access.source == UNKNOWN || access.source == FIRST && seen > 0 {
            break;
        }
        seen += usize::from(matches!(access.source, FIRST | NEXT));
    }
    seen
}

/// Records how many instructions a run stands for that begins at a site.
fn lengthen(site: usize, instructions: usize) {
    // SAFETY: the site is in the table; its block is not translated by two threads, and does not run yet.
    unsafe { *addr_of_mut!(LENGTHS).cast::<u16>().add(site % SITES) = instructions as u16 };
}

/// Has QEMU call us for an access, if its address is not known otherwise.
///
/// # Safety
/// `insn` is an instruction of the block that is being translated.
unsafe fn ask<const PARTS: bool>(
    insn: *mut Insn,
    head: u64,
    vector: bool,
    both: bool,
    known: SiteAccess,
) {
    let bytes = u64::from(known.size) << VECTOR_SHIFT & VECTOR;
    let loads = known.kind == decode::READ;
    let (callback, data): (OnAccess, _) = match known.source {
        FIRST if vector => (on_first_vector::<PARTS>, head | bytes),
        NEXT if vector => (on_next_vector::<PARTS>, bytes),
        FIRST if both && loads => (on_first_of::<PARTS, LOADS>, head),
        NEXT if both && loads => (on_next_of::<PARTS, LOADS>, 0),
        FIRST if both => (on_first_of::<PARTS, STORES>, head),
        NEXT if both => (on_next_of::<PARTS, STORES>, 0),
        FIRST => (on_first::<PARTS>, head),
        NEXT => (on_next::<PARTS>, 0),
        UNKNOWN => (on_single, head & SITE),
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
    if number > 0 {
        ALONE.store(false, SeqCst);
    }
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
    // SAFETY: only this thread uses the entry.
    unsafe {
        (*vcpu(number)).number = taken;
        let slot_of = shared().slot(taken);
        (*vcpu(number)).pending = 0;
        (*slot_of).pieces = 0;
        if REPLACED.swap(false, SeqCst) {
            shared().put(taken, EVENT_EXEC, &[]);
        }
        stacks::begin_thread(taken);
        shared().start_thread(taken, PROCESS.load(Relaxed), parent());
        (*vcpu(number)).skipped = 0;
        (*vcpu(number)).sees = false;
        if let Some(lines) = (*vcpu(number)).lines.as_mut() {
            lines.clear();
        }
        (*vcpu(number)).known = true;
    }
    // It may come in the middle of a window: then it has a part of it as others have.
    make_unheard(number);
    settle(number);
}

/// The thread ends by itself.
fn thread_ends(number: c_uint) {
    if !is_deaf(number) {
        tell_skipped(number);
        window_ends(number);
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
            PARENT.store(PROCESS.swap(process, SeqCst), SeqCst);
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
    PARTS.store(value(b"parts=yes").is_some(), Relaxed);
    // SAFETY: no callback is registered yet, so no thread reads it.
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
