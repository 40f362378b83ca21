//! malloc and its relatives: where a block goes, and where it comes from.

use crate::budget;
use crate::divided::{self, Block, LEAST};
use crate::entry::Caller;
use crate::find;
use crate::format::{FAST, OWN_GROUPS, SLOW};
use crate::life;
use crate::map::map;
use crate::memory::{self, GRAIN, Place, place};
use crate::sampled;
use crate::sys::{self, PAGE};
use crate::thread::{self, Thread};
use crate::vast;
use libmimalloc_sys as mi;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

/// A request for an object.
#[derive(Clone, Copy)]
struct Wish {
    bytes: usize,
    align: usize,
    zero: bool,
}

/// The alignment of every block.
const ANY_ALIGN: usize = 16;

impl Wish {
    fn of(bytes: usize) -> Wish {
        Wish {
            bytes,
            align: ANY_ALIGN,
            zero: false,
        }
    }
}

/// The thread and the group of a call; none if its object is not to be placed.
#[inline(always)]
fn owner(caller: Caller) -> Option<(&'static Thread, usize)> {
    let Some(map) = map() else {
        life::begin();
        return None;
    };
    let thread = thread::current(map)?;
    let group = find::group(caller, thread).or(map.undecided)?;
    Some((thread, group))
}

/// Bytes of fast memory that a group may take now, if it wants `bytes`.
#[inline(always)]
fn room(thread: &Thread, group: usize, bytes: usize) -> i64 {
    if bytes as u64 >= budget::step() {
        thread.flush();
    }
    // Nothing is small enough for a group of slow memory.
    budget::room(group).saturating_sub(thread.pending())
}

/// An object of a group in its tier; null if there is no memory.
#[inline(always)]
fn give(thread: &Thread, group: usize, wish: Wish) -> *mut c_void {
    let room = room(thread, group, wish.bytes);
    if room >= wish.bytes as i64 {
        return give_in(thread, group, FAST, wish);
    }
    if budget::is_fast(group) {
        thread.refused(group);
    }
    if room >= LEAST as i64 && wish.bytes > LEAST {
        return give_divided(thread, group, wish, room);
    }
    give_in(thread, group, SLOW, wish)
}

/// An object of which the first part is fast.
#[cold]
fn give_divided(thread: &Thread, group: usize, wish: Wish, room: i64) -> *mut c_void {
    let object = block(
        thread,
        SLOW,
        Wish {
            zero: false,
            ..wish
        },
    );
    if object.is_null() {
        return object;
    }
    // SAFETY: a block of mimalloc's.
    let usable = unsafe { mi::mi_usable_size(object) };
    let at = object as usize;
    let divided = sys::keeping_errno(|| {
        let map = map()?;
        // SAFETY: a block of mimalloc's with these bytes, which is not given out yet.
        unsafe { divided::divide(map, at, usable, group, room) }
    });
    if wish.zero {
        // Zeroes the part after the fast one, which is zeros already; all if there is none, or if it is locked.
        // SAFETY: within the block, which no other thread knows yet.
        unsafe { zero(at, wish.bytes) };
    }
    match divided {
        Some(block) => {
            memory::set_group(at, group);
            thread.born(group);
            block.count(thread);
            thread.reaches(SLOW, at + usable);
        }
        None => count(thread, group, SLOW, object, usable),
    }
    object
}

/// Makes a new block of pages zeros: by letting go of them, as far as they are whole.
unsafe fn zero(at: usize, bytes: usize) {
    let whole = bytes / PAGE * PAGE;
    // SAFETY: the caller's block.
    let drop = || unsafe { sys::drop_pages(at, whole) };
    let dropped = at.is_multiple_of(PAGE) && sys::keeping_errno(drop);
    let from = if dropped { whole } else { 0 };
    // SAFETY: the caller's block.
    unsafe { std::ptr::write_bytes((at + from) as *mut u8, 0, bytes - from) };
}

/// A block in a tier; null if there is no memory.
#[inline(always)]
fn block(thread: &Thread, tier: u64, wish: Wish) -> *mut c_void {
    let heap = thread.heap(tier);
    if heap.is_null() {
        return null_mut();
    }
    // Two objects must not share an entry of the table.
    let bytes = wish.bytes.max(GRAIN);
    // SAFETY: a heap of this thread.
    unsafe {
        match (wish.zero, wish.align > ANY_ALIGN) {
            (false, false) => mi::mi_heap_malloc(heap, bytes),
            (true, false) => mi::mi_heap_zalloc(heap, bytes),
            (_, true) => mi::mi_heap_malloc_aligned(heap, bytes, wish.align),
        }
    }
}

#[inline(always)]
fn give_in(thread: &Thread, group: usize, tier: u64, wish: Wish) -> *mut c_void {
    let object = block(thread, tier, wish);
    if object.is_null() {
        return object;
    }
    let bytes = wish.bytes.max(GRAIN);
    if bytes <= memory::SMALL && wish.align <= ANY_ALIGN {
        count(thread, group, tier, object, memory::small_block(bytes));
    } else {
        // SAFETY: a block of mimalloc's.
        let usable = unsafe { mi::mi_usable_size(object) };
        count(thread, group, tier, object, usable);
    }
    object
}

/// Counts a new object, and writes down whose it is.
#[inline(always)]
fn count(thread: &Thread, group: usize, tier: u64, object: *mut c_void, usable: usize) {
    memory::set_group(object as usize, group);
    thread.given(group, tier, object as usize, usable);
}

/// An object of a tier as the counts have it: whole, or divided.
#[inline]
unsafe fn counted(object: *mut c_void, tier: u64, group: usize) -> Block {
    if tier == SLOW
        && let Some(divided) = divided::of(object as usize)
    {
        return divided;
    }
    // SAFETY: a block of mimalloc's.
    let bytes = unsafe { mi::mi_usable_size(object) };
    Block {
        start: object as usize,
        bytes,
        group: Some(group),
        fast: if tier == FAST { bytes } else { 0 },
    }
}

/// Counts an object of a tier as freed, and returns its block. Call it before its memory can be reused.
#[inline]
unsafe fn take(object: *mut c_void, tier: u64) -> Option<Block> {
    let group = memory::take_group(object as usize)?;
    // SAFETY: the caller's block.
    let taken = unsafe { counted(object, tier, group) };
    taken.uncount();
    Some(taken)
}

/// Gives the memory of an object that was freed to the allocator.
#[inline]
unsafe fn let_go(object: *mut c_void, taken: Option<Block>) {
    if let Some(taken) = taken
        && taken.is_divided()
        && let Some(map) = map()
    {
        // SAFETY: the caller's block, which is freed.
        sys::keeping_errno(|| unsafe { divided::join(map, taken.start) });
    }
    // SAFETY: the caller's block, which is mimalloc's.
    unsafe { mi::mi_free(object) };
}

macro_rules! caller {
    ($address:ident, $stack:ident, $frame:ident) => {
        Caller {
            address: $address,
            stack: $stack,
            frame: $frame,
        }
    };
}

pub unsafe extern "C" fn malloc(
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    let caller = caller!(address, stack, frame);
    let block = match owner(caller) {
        Some((thread, group)) => give(thread, group, Wish::of(size)),
        // SAFETY: any size can be asked for.
        None => unsafe { mi::mi_malloc(size) },
    };
    sampled::given(block, size, caller);
    block
}

pub unsafe extern "C" fn calloc(
    count: usize,
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    let caller = caller!(address, stack, frame);
    let block = match owner(caller) {
        Some((thread, group)) => match count.checked_mul(size) {
            Some(bytes) => give(
                thread,
                group,
                Wish {
                    zero: true,
                    ..Wish::of(bytes)
                },
            ),
            None => no_memory(),
        },
        // SAFETY: any size can be asked for.
        None => unsafe { mi::mi_calloc(count, size) },
    };
    sampled::given(block, count.wrapping_mul(size), caller);
    block
}

pub unsafe extern "C" fn memalign(
    align: usize,
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    let caller = caller!(address, stack, frame);
    let block = match owner(caller) {
        Some(owner) if align.is_power_of_two() => aligned(owner, align, size),
        // SAFETY: any size and alignment can be asked for.
        _ => unsafe { plain_memalign(align, size) },
    };
    sampled::given(block, size, caller);
    block
}

fn aligned((thread, group): (&Thread, usize), align: usize, size: usize) -> *mut c_void {
    if size > isize::MAX as usize {
        return no_memory();
    }
    if align >= vast::ALIGN {
        return vast::give(align, size, Some((thread, group)));
    }
    give(
        thread,
        group,
        Wish {
            align,
            ..Wish::of(size)
        },
    )
}

pub unsafe extern "C" fn posix_memalign(
    to: *mut *mut c_void,
    align: usize,
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let block = sys::keeping_errno(|| {
        // SAFETY: a power of two.
        unsafe { memalign(align, size, address, stack, frame) }
    });
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's place for the answer.
    unsafe { to.write(block) };
    0
}

pub unsafe extern "C" fn valloc(
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    // SAFETY: a power of two.
    unsafe { memalign(PAGE, size, address, stack, frame) }
}

pub unsafe extern "C" fn pvalloc(
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        // SAFETY: a power of two.
        Some(size) => unsafe { memalign(PAGE, size, address, stack, frame) },
        None => no_memory(),
    }
}

pub unsafe extern "C" fn reallocarray(
    old: *mut c_void,
    count: usize,
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's block.
        Some(bytes) => unsafe { realloc(old, bytes, address, stack, frame) },
        None => no_memory(),
    }
}

/// An object stays in its tier, in place if it can, unless the site of this call is of another.
pub unsafe extern "C" fn realloc(
    old: *mut c_void,
    size: usize,
    address: usize,
    stack: usize,
    frame: usize,
) -> *mut c_void {
    let caller = caller!(address, stack, frame);
    // SAFETY: the caller's block.
    unsafe {
        if old.is_null() {
            return malloc(size, address, stack, frame);
        }
        sampled::taken(old);
        let block = resized(old, size, caller);
        sampled::given(block, size, caller);
        block
    }
}

unsafe fn resized(old: *mut c_void, size: usize, caller: Caller) -> *mut c_void {
    // SAFETY: the caller's block, in all that follows.
    unsafe {
        let from = place(old as usize);
        let Some(map) = map() else {
            life::begin();
            return plain_realloc(old, size);
        };
        let thread = thread::current(map);
        let site = thread.and_then(|t| find::group(caller, t));
        let (thread, group) = match (thread, site, &from) {
            (Some(thread), Some(group), _) => (thread, group),
            // The site where it was made decides.
            (Some(thread), None, Place::Tier(_)) => match memory::group(old as usize) {
                Some(group) => (thread, group),
                None => return moved(old, size, mi::mi_malloc(size)),
            },
            (Some(thread), None, Place::Elsewhere)
                if let Some(group) = vast::of(old).and_then(|block| block.group) =>
            {
                (thread, group)
            }
            (Some(thread), None, _) if map.undecided.is_some() => {
                (thread, map.undecided.unwrap_or_default())
            }
            (_, _, Place::Others) => return mi::mi_realloc(old, size),
            _ => return moved(old, size, mi::mi_malloc(size)),
        };
        let held = match from {
            Place::Tier(tier) => memory::group(old as usize).map(|group| counted(old, tier, group)),
            Place::Elsewhere => vast::of(old),
            Place::Others => None,
        };
        let Some(held) = held else {
            return moved(old, size, give(thread, group, Wish::of(size)));
        };
        // As mimalloc: a block that is not twice as large as need be stays.
        if (held.bytes / 2..=held.bytes).contains(&size) && held.group == Some(group) {
            return old;
        }
        // The new object takes over its part of the budget, though for a moment both exist.
        set_group(old, None);
        held.uncount();
        let new = give(thread, group, Wish::of(size));
        if new.is_null() {
            set_group(old, held.group);
            held.recount(thread);
            return new;
        }
        std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), held.bytes.min(size));
        match place(old as usize) {
            Place::Tier(_) => let_go(old, Some(held)),
            _ => _ = vast::free(old),
        }
        new
    }
}

/// Changes whose a block of a tier or of a very large alignment is.
fn set_group(block: *mut c_void, to: Option<usize>) {
    match (place(block as usize), to) {
        (Place::Tier(_), Some(group)) => memory::set_group(block as usize, group),
        (Place::Tier(_), None) => _ = memory::take_group(block as usize),
        _ => vast::set_group(block, to),
    }
}

/// Copies a block's contents to a new one, which may be null for want of memory.
unsafe fn moved(old: *mut c_void, size: usize, new: *mut c_void) -> *mut c_void {
    // SAFETY: both are blocks of at least as many bytes, and not the same.
    unsafe {
        if !new.is_null() {
            std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), usable(old).min(size));
            free(old);
        }
    }
    new
}

#[inline]
pub unsafe fn free(block: *mut c_void) {
    sampled::taken(block);
    // SAFETY: the caller's block, which goes to the allocator whose it is.
    unsafe {
        match place(block as usize) {
            Place::Others => mi::mi_free(block),
            Place::Tier(tier) => let_go(block, take(block, tier)),
            // Without ranges it is mimalloc's, unless it may be one of few others, or null.
            Place::Elsewhere
                if !memory::reserved() && !(block as usize).is_multiple_of(vast::ALIGN) =>
            {
                mi::mi_free(block)
            }
            Place::Elsewhere => free_elsewhere(block),
        }
    }
}

#[cold]
unsafe fn free_elsewhere(block: *mut c_void) {
    // SAFETY: the caller's block goes to the allocator whose it is.
    unsafe {
        if block.is_null() || vast::free(block) {
        } else if !memory::reserved() {
            mi::mi_free(block);
        } else if let Some(free) = next(c"free") {
            let free: unsafe extern "C" fn(*mut c_void) = std::mem::transmute(free);
            free(block);
        }
    }
}

pub unsafe fn usable(block: *mut c_void) -> usize {
    // SAFETY: the caller's block goes to the allocator whose it is.
    unsafe {
        if block.is_null() {
            return 0;
        }
        if !matches!(place(block as usize), Place::Elsewhere) {
            return mi::mi_usable_size(block);
        }
        vast::of(block)
            .map(|own| own.bytes)
            .unwrap_or_else(|| match next(c"malloc_usable_size") {
                _ if !memory::reserved() => mi::mi_usable_size(block),
                Some(usable) => {
                    let usable: unsafe extern "C" fn(*mut c_void) -> usize =
                        std::mem::transmute(usable);
                    usable(block)
                }
                None => 0,
            })
    }
}

/// The function of that name in the libraries behind this one.
pub fn next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// `varve.h`.
pub unsafe fn asked(size: usize, tier: c_int) -> *mut c_void {
    let owner = map().and_then(|map| Some((map, thread::current(map)?)));
    match owner {
        Some((map, thread)) => {
            let own = map.groups() - OWN_GROUPS;
            give(thread, own + if tier == 0 { 1 } else { 2 }, Wish::of(size))
        }
        // SAFETY: any size can be asked for.
        None => unsafe { mi::mi_malloc(size) },
    }
}

#[cold]
fn no_memory() -> *mut c_void {
    // SAFETY: the C library's pointer to this thread's errno is valid.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

// Without a site map.

pub unsafe extern "C" fn plain_posix_memalign(
    to: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    // SAFETY: a power of two; the caller's place for the answer.
    unsafe {
        let block = sys::keeping_errno(|| plain_memalign(align, size));
        if block.is_null() {
            return libc::ENOMEM;
        }
        to.write(block);
    }
    0
}

pub unsafe extern "C" fn plain_realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's block.
    unsafe {
        match place(old as usize) {
            Place::Elsewhere
                if !old.is_null() && (memory::reserved() || vast::of(old).is_some()) =>
            {
                moved(old, size, mi::mi_malloc(size))
            }
            _ => mi::mi_realloc(old, size),
        }
    }
}

pub unsafe extern "C" fn plain_reallocarray(
    old: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's block.
        Some(bytes) => unsafe { plain_realloc(old, bytes) },
        None => no_memory(),
    }
}

pub unsafe extern "C" fn plain_memalign(align: usize, size: usize) -> *mut c_void {
    // As the C library: alignments that are none are rounded up.
    match align.max(1).checked_next_power_of_two() {
        // SAFETY: any size and alignment can be asked for.
        Some(align) if align < vast::ALIGN => unsafe {
            mi::mi_malloc_aligned(size, align.max(ANY_ALIGN))
        },
        Some(align) => vast::give(align, size, None),
        None => no_memory(),
    }
}

pub unsafe extern "C" fn plain_valloc(size: usize) -> *mut c_void {
    // SAFETY: any size can be asked for.
    unsafe { plain_memalign(PAGE, size) }
}

pub unsafe extern "C" fn plain_pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        // SAFETY: any size can be asked for.
        Some(size) => unsafe { plain_memalign(PAGE, size) },
        None => no_memory(),
    }
}
