//! Address ranges: one for all other objects, one for each tier. Each is an arena of mimalloc, so where a block is says
//! whose it is. Beside the tiers' ranges lies a table with the group of each object in them.

use crate::format::{FAST, SLOW};
use crate::ledger::RANGE;
use crate::map::Map;
use crate::sys;
use libmimalloc_sys as mi;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicUsize, Ordering::Relaxed};

/// Bytes of each range, as a power of two. They cost nothing until they are used.
const EACH_BITS: u32 = 40;
const EACH: usize = 1 << EACH_BITS;
const _: () = assert!(EACH as u64 == RANGE);

/// Bytes of a tier's range that are used: between two ranges is a gap, so that the kernel does not take them for one mapping where
/// both tiers have the same nodes.
const USED: usize = EACH - ALIGN;

/// First address of the ranges: others, fast, slow. [`NONE`] when no addresses could be had.
static BASE: AtomicUsize = AtomicUsize::new(NONE);
/// Not a program's address, and no program's address is within reach of it.
const NONE: usize = 1 << 63;
/// The groups of objects in the tiers' ranges.
static GROUPS: AtomicUsize = AtomicUsize::new(0);
static ARENAS: [AtomicI32; 2] = [const { AtomicI32::new(0) }; 2];
/// End of the allocated memory in each tier: scans stop there.
static ENDS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Where mimalloc wants arenas to begin: its segments.
const ALIGN: usize = 32 << 20;
/// Objects in the tiers begin at multiples of this, and are at least as large.
pub const GRAIN: usize = 16;

/// Up to this many bytes, the size of a block is looked up here.
pub const SMALL: usize = 1024;
static BLOCKS: [AtomicU16; SMALL / GRAIN + 1] = [const { AtomicU16::new(0) }; SMALL / GRAIN + 1];

/// Size of the block that mimalloc allocates for `bytes`, at most [`SMALL`].
#[inline]
pub fn small_block(bytes: usize) -> usize {
    usize::from(BLOCKS[bytes.div_ceil(GRAIN)].load(Relaxed))
}

/// The owner of a block.
pub enum Place {
    Others,
    Tier(u64),
    /// Outside of the ranges: of a very large alignment, or another allocator's. Any, when there are no ranges.
    Elsewhere,
}

/// mimalloc says of a failure what it is, and leaves `errno` as it was.
unsafe extern "C" fn failed(error: c_int, _: *mut c_void) {
    if matches!(error, libc::ENOMEM | libc::EOVERFLOW) {
        // SAFETY: this thread's.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
}

/// Has `errno` say that there is no memory, as the C library does.
pub fn set_errno_on_failure() {
    // SAFETY: a function of this library, which stays loaded.
    unsafe { mi::mi_register_error(Some(failed), std::ptr::null_mut()) };
}

/// Takes the addresses, and has mimalloc stay in them: then a block's address says whose it is. Where addresses are few
/// (`ulimit -v`), mimalloc takes them as it needs them, and nothing can be placed.
pub fn reserve() {
    let at = sys::reserve(3 * EACH + ALIGN);
    if at == 0 {
        return;
    }
    let base = at.next_multiple_of(ALIGN);
    // SAFETY: just reserved.
    if unsafe { sys::open_up(base, EACH) } && manage(base, EACH, false).is_some() {
        // SAFETY: sets numbers.
        unsafe {
            mi::mi_option_set(DISALLOW_OS_ALLOC, 1);
            // The ranges have no nodes that it could choose from, so it need not ask on which a thread runs.
            mi::mi_option_set(USE_NUMA_NODES, 1);
        }
        BASE.store(base, Relaxed);
    } else {
        // SAFETY: it holds no object.
        unsafe { sys::unmap(at, 3 * EACH + ALIGN) };
    }
}

/// Where nothing is placed or sampled, huge pages as mimalloc has them in memory that it maps itself, unless MIMALLOC_ALLOW_THP=0.
pub fn prefer_huge_pages() {
    // SAFETY: reads a number.
    if reserved() && unsafe { mi::mi_option_is_enabled(ALLOW_THP) } {
        sys::prefer_huge_pages(BASE.load(Relaxed), EACH);
    }
}

/// Are there ranges?
pub fn reserved() -> bool {
    BASE.load(Relaxed) != NONE
}

/// Addresses that blocks have: the first, and the one behind the last. Both 0 without ranges.
pub fn range() -> (usize, usize) {
    match BASE.load(Relaxed) {
        NONE => (0, 0),
        base => (base, base + 3 * EACH),
    }
}

/// `mi_option_disallow_os_alloc` of mimalloc.h: memory from arenas alone.
const DISALLOW_OS_ALLOC: mi::mi_option_t = 17;
/// `mi_option_use_numa_nodes`: how many nodes there are, 0 to find out.
const USE_NUMA_NODES: mi::mi_option_t = 16;
/// `mi_option_allow_thp`: huge pages where the kernel has them.
const ALLOW_THP: mi::mi_option_t = 37;

fn manage(base: usize, bytes: usize, exclusive: bool) -> Option<i32> {
    let mut id = 0;
    // SAFETY: zeroed memory of ours, readable and writable, that nothing else uses.
    let taken = unsafe {
        mi::mi_manage_os_memory_ex(
            base as *const _,
            bytes,
            true,
            false,
            true,
            -1,
            exclusive,
            &mut id,
        )
    };
    taken.then_some(id)
}

/// Makes the tiers' ranges usable, on their nodes. The reason when that cannot be.
pub fn begin(map: &Map) -> Result<(), &'static str> {
    let base = BASE.load(Relaxed);
    if base == NONE {
        return Err("3 TiB of addresses cannot be reserved: lift the limit (ulimit -v)");
    }
    let table = sys::zeroed(2 * EACH / GRAIN * 2);
    if table == 0 {
        return Err("no address space for the table of objects can be reserved");
    }
    GROUPS.store(table, Relaxed);
    for (grains, block) in BLOCKS.iter().enumerate() {
        // SAFETY: asks for a number.
        block.store(unsafe { mi::mi_good_size(grains * GRAIN) } as u16, Relaxed);
    }
    for tier in [FAST, SLOW] {
        let start = base + EACH * (tier as usize + 1);
        // SAFETY: a tier's part of what was reserved.
        if unsafe { !sys::open_up(start, USED) } {
            return Err("the reserved addresses cannot be used (mprotect)");
        }
        if !sys::bind(start, USED, map.nodes_of(tier), 0) {
            return Err("mbind on the nodes of a tier is refused; a sandbox may forbid it");
        }
        let arena = manage(start, USED, true).ok_or("mimalloc does not take the address range")?;
        ARENAS[tier as usize].store(arena, Relaxed);
        ENDS[tier as usize].store(start, Relaxed);
    }
    Ok(())
}

/// First address of the ranges.
pub fn base() -> usize {
    BASE.load(Relaxed)
}

/// mimalloc's number of a tier's range.
pub fn arena(tier: u64) -> i32 {
    ARENAS[tier as usize].load(Relaxed)
}

#[inline]
pub fn place(block: usize) -> Place {
    match block.wrapping_sub(BASE.load(Relaxed)) >> EACH_BITS {
        0 => Place::Others,
        1 => Place::Tier(FAST),
        2 => Place::Tier(SLOW),
        _ => Place::Elsewhere,
    }
}

/// The entry of the object at an address within the tiers' ranges.
#[inline]
fn entry(object: usize) -> &'static AtomicU16 {
    let from = object - BASE.load(Relaxed) - EACH;
    // SAFETY: the table has an entry for each grain of both ranges, and is never freed.
    unsafe { &*((GROUPS.load(Relaxed) as *const AtomicU16).add(from / GRAIN)) }
}

/// Says whose the object at this address is.
#[inline]
pub fn set_group(object: usize, group: usize) {
    entry(object).store(group as u16 + 1, Relaxed);
}

/// Removes and returns the group of the object.
#[inline]
pub fn take_group(object: usize) -> Option<usize> {
    let entry = entry(object);
    let group = entry.load(Relaxed);
    entry.store(0, Relaxed);
    usize::from(group).checked_sub(1)
}

/// The group of the object.
pub fn group(object: usize) -> Option<usize> {
    usize::from(entry(object).load(Relaxed)).checked_sub(1)
}

/// In the entry behind an object's own, which is no object's: the object is divided, and the next entry says as which.
const DIVIDED: u16 = u16::MAX;

/// Notes that an object is divided, and its number among those.
pub fn set_divided(object: usize, number: usize) {
    entry(object + 2 * GRAIN).store(number as u16, Relaxed);
    entry(object + GRAIN).store(DIVIDED, Relaxed);
}

/// The number of an object that is divided.
#[inline]
pub fn divided(object: usize) -> Option<usize> {
    let marked = entry(object + GRAIN).load(Relaxed) == DIVIDED;
    marked.then(|| usize::from(entry(object + 2 * GRAIN).load(Relaxed)))
}

/// The number of an object that was divided; from now on it is whole.
pub fn take_divided(object: usize) -> Option<usize> {
    let number = divided(object);
    if number.is_some() {
        entry(object + GRAIN).store(0, Relaxed);
        entry(object + 2 * GRAIN).store(0, Relaxed);
    }
    number
}

/// Notes how far a tier's range is in use.
pub fn reached(tier: u64, end: usize) {
    ENDS[tier as usize].fetch_max(end, Relaxed);
}

/// Objects in up to `pages` evenly spread pages of the table, without those that are divided.
pub fn look(tier: u64, pages: usize, mut found: impl FnMut(usize, usize)) {
    let start = BASE.load(Relaxed) + EACH * (tier as usize + 1);
    let end = ENDS[tier as usize].load(Relaxed).max(start);
    // The bytes that a page of the table covers.
    let each = sys::PAGE / 2 * GRAIN;
    let all = (end - start).div_ceil(each);
    let stride = all.div_ceil(pages.max(1)).max(1);
    for at in (0..all).step_by(stride).map(|i| start + i * each) {
        if !sys::resident(std::ptr::from_ref(entry(at)) as usize) {
            continue;
        }
        let mut objects = (at..at + each).step_by(GRAIN);
        while let Some(object) = objects.next() {
            let Some(group) = group(object) else { continue };
            // Objects that are divided begin with a page, so that their entries are in one page of the table.
            if object.is_multiple_of(sys::PAGE) && divided(object).is_some() {
                objects.nth(1);
            } else {
                found(object, group);
            }
        }
    }
}

/// Bytes of a tier's range that are in memory.
pub fn resident(tier: u64) -> usize {
    let start = BASE.load(Relaxed) + EACH * (tier as usize + 1);
    let end = ENDS[tier as usize]
        .load(Relaxed)
        .max(start)
        .next_multiple_of(sys::PAGE);
    sys::resident_bytes(start, end)
}
