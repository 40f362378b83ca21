//! From the return address of a call to the group of the site: one look-up in most cases. Where sites of different tiers
//! share it, the stack is walked by rules that were computed beforehand, as far as the map knows it.

use crate::entry::Caller;
use crate::map::{Map, map};
use crate::modules;
use crate::sys;
use crate::thread::Thread;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A return address in this process, below a node (plus 1; 0 for none).
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    /// 0 for an empty slot.
    address: usize,
    below: u32,
    /// A group plus 1; or a node to walk on from, and this bit.
    answer: u32,
}

const WALK: u32 = 1 << 31;

/// Slots, a power of two; at most half of them are used.
struct Table {
    slots: *const Slot,
    shift: u32,
    mask: usize,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

#[inline]
fn hash(address: usize, below: u32) -> usize {
    // An odd number with well mixed bits (the golden ratio's).
    const MIX: usize = 0x9e37_79b9_7f4a_7c15;
    (address ^ (below as usize) << 44).wrapping_mul(MIX)
}

impl Table {
    #[inline]
    fn get(&self, address: usize, below: u32) -> Option<u32> {
        let mut at = hash(address, below) >> self.shift;
        loop {
            // SAFETY: the index is within the slots.
            let slot = unsafe { &*self.slots.add(at) };
            if slot.address == address && slot.below == below {
                return Some(slot.answer);
            }
            if slot.address == 0 {
                return None;
            }
            at = (at + 1) & self.mask;
        }
    }
}

/// Makes the look-up anew, from where modules are now. The old one stays, since threads may be reading it.
pub fn build(map: &Map) {
    let nodes = map.nodes();
    let slots = (2 * nodes).next_power_of_two().max(8);
    let bytes = slots * size_of::<Slot>() + size_of::<Table>();
    let at = sys::zeroed(bytes.next_multiple_of(sys::PAGE));
    if at == 0 {
        return;
    }
    let first = at as *mut Slot;
    let table = Table {
        slots: first,
        shift: usize::BITS - slots.trailing_zeros(),
        mask: slots - 1,
    };
    for index in 0..nodes {
        let node = map.node(index);
        let Some(base) = modules::base(node.module) else {
            continue;
        };
        let address = base.wrapping_add(node.address as usize);
        let answer = match map.decided(index) {
            0 => WALK | index as u32,
            group => group,
        };
        let mut place = hash(address, node.parent) >> table.shift;
        // SAFETY: indices are within the slots, which nobody else knows yet.
        unsafe {
            while (*first.add(place)).address != 0 {
                place = (place + 1) & table.mask;
            }
            first.add(place).write(Slot {
                address,
                below: node.parent,
                answer,
            });
        }
    }
    // SAFETY: the bytes behind the slots were asked for.
    unsafe {
        let kept = first.add(slots).cast::<Table>();
        kept.write(table);
        TABLE.store(kept, Ordering::Release);
    }
}

/// The group of a call; none if no site decides.
#[inline]
pub fn group(caller: Caller, thread: &Thread) -> Option<usize> {
    // SAFETY: null or a table, of which none is given back.
    let table = unsafe { TABLE.load(Ordering::Acquire).as_ref() }?;
    match table.get(caller.address, 0) {
        Some(answer) if answer & WALK == 0 => (answer as usize).checked_sub(1),
        Some(answer) => walk(table, caller, (answer & !WALK) as usize, thread),
        None => {
            modules::missed(thread);
            None
        }
    }
}

/// From a return address that does not decide to its callers. The longest stack that ends on the way decides.
fn walk(table: &Table, caller: Caller, mut node: usize, thread: &Thread) -> Option<usize> {
    let map = map()?;
    let (low, high) = thread.stack;
    let Caller {
        mut stack,
        mut frame,
        ..
    } = caller;
    let mut best = map.ends(node);
    // A stack of the program's own making is not walked.
    while low <= stack && stack < high {
        let Some(rule) = map.rule(node) else { break };
        let from = if rule.by_frame_pointer { frame } else { stack };
        let end = from.wrapping_add_signed(rule.above as isize);
        if end < stack + 8 || end > high || end % 8 != 0 {
            break;
        }
        if let Some(at) = rule.frame_pointer_at {
            let at = end.wrapping_add_signed(isize::from(at));
            if at < stack || at > end - 8 || at % 8 != 0 {
                break;
            }
            // SAFETY: aligned, and between the stack pointer and the end of this thread's stack, all of which is mapped.
            frame = unsafe { *(at as *const usize) };
        }
        // SAFETY: as above.
        let address = unsafe { *((end - 8) as *const usize) };
        stack = end;
        match table.get(address, node as u32 + 1) {
            None => break,
            Some(answer) if answer & WALK == 0 => {
                best = answer;
                break;
            }
            Some(answer) => {
                node = (answer & !WALK) as usize;
                match map.ends(node) {
                    0 => {}
                    longer => best = longer,
                }
            }
        }
    }
    (best as usize).checked_sub(1)
}
