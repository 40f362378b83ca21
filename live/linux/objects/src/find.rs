//! From the return address of a call to the group of the site: one look-up in most cases. Where sites of different tiers
//! share it, the stack is walked by rules that were computed beforehand, as far as the map knows it.

use crate::entry::Caller;
use crate::map::Map;
use crate::memo::Walk;
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

/// How to walk on from a node: its rule unpacked, and the group of a site that ends there, plus 1.
#[derive(Clone, Copy)]
#[repr(C)]
struct Step {
    /// 0: no further.
    above: i32,
    /// 0: the frame pointer is where it was.
    frame_pointer_at: i16,
    by_frame_pointer: bool,
    ends: u32,
}

/// Slots, a power of two; at most half of them are used. Behind them, a step for each node.
struct Table {
    steps: *const Step,
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
    let bytes = slots * size_of::<Slot>()
        + nodes * size_of::<Step>()
        + size_of::<Table>()
        + align_of::<Table>();
    let at = sys::zeroed(bytes.next_multiple_of(sys::PAGE));
    if at == 0 {
        return;
    }
    let first = at as *mut Slot;
    let steps = (at + slots * size_of::<Slot>()) as *mut Step;
    let table = Table {
        steps,
        slots: first,
        shift: usize::BITS - slots.trailing_zeros(),
        mask: slots - 1,
    };
    for index in 0..nodes {
        let rule = map.rule(index);
        let step = Step {
            above: rule.map_or(0, |r| r.above),
            frame_pointer_at: rule.and_then(|r| r.frame_pointer_at).unwrap_or(0),
            by_frame_pointer: rule.is_some_and(|r| r.by_frame_pointer),
            ends: map.ends(index),
        };
        // SAFETY: there is room for a step of each node, which no other thread knows yet.
        unsafe { steps.add(index).write(step) };
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
        // SAFETY: indices are within the slots, which no other thread knows yet.
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
    // SAFETY: the bytes behind the steps were asked for.
    unsafe {
        let end = steps.add(nodes) as usize;
        let kept = end.next_multiple_of(align_of::<Table>()) as *mut Table;
        kept.write(table);
        TABLE.store(kept, Ordering::Release);
    }
}

/// The group of a call; none if no site decides.
#[inline]
pub fn group(caller: Caller, thread: &Thread) -> Option<usize> {
    let mut table = table()?;
    let mut answer = table.get(caller.address, 0);
    if answer.is_none() && modules::missed(thread) {
        table = self::table()?;
        answer = table.get(caller.address, 0);
    }
    let answer = answer?;
    if answer & WALK == 0 {
        return (answer as usize).checked_sub(1);
    }
    let at = std::ptr::from_ref(table) as usize;
    let known = thread.memo.get(at, &caller);
    let found = known.unwrap_or_else(|| walk(table, caller, (answer & !WALK) as usize, thread));
    (found as usize).checked_sub(1)
}

#[inline]
fn table() -> Option<&'static Table> {
    // SAFETY: null or a table, of which none is given back.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// From a return address that does not decide to its callers. The longest stack that ends on the way decides.
#[cold]
fn walk(table: &Table, caller: Caller, mut node: usize, thread: &Thread) -> u32 {
    let (low, high) = thread.stack;
    let Caller {
        mut stack,
        mut frame,
        ..
    } = caller;
    let mut best = 0;
    let mut walk = Walk::new(std::ptr::from_ref(table) as usize, caller);
    let mut moved = false;
    // A stack of the program's own making is not walked.
    let known = low <= stack && stack < high;
    loop {
        // SAFETY: there is a step for each node.
        let step = unsafe { *table.steps.add(node) };
        if step.ends != 0 {
            best = step.ends;
        }
        if step.by_frame_pointer && !moved {
            walk.by_frame();
        }
        let from = if step.by_frame_pointer { frame } else { stack };
        let end = from.wrapping_add_signed(step.above as isize);
        if !known || step.above == 0 || end < stack + 8 || end > high || end % 8 != 0 {
            break;
        }
        if step.frame_pointer_at != 0 {
            let at = end.wrapping_add_signed(isize::from(step.frame_pointer_at));
            if at < stack || at > end - 8 || at % 8 != 0 {
                break;
            }
            // SAFETY: aligned, and between the stack pointer and the end of this thread's stack, all of which is mapped.
            frame = unsafe { walk.read(at) };
            moved = true;
        }
        // SAFETY: as above.
        let address = unsafe { walk.read(end - 8) };
        stack = end;
        match table.get(address, node as u32 + 1) {
            None => break,
            Some(answer) if answer & WALK == 0 => {
                best = answer;
                break;
            }
            Some(answer) => node = (answer & !WALK) as usize,
        }
    }
    if known {
        walk.end(&thread.memo, best);
    }
    best
}
