//! From an object's address to its slot: chains of slots, by a hash of the address. Chains are changed by who holds the
//! slots; whether there is one at all, everybody may ask.

use crate::layout::SLOTS;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;

/// Enough that nearly all are empty: each free reads one.
const HEADS: usize = 1 << 16;

/// First slot of each chain plus 1.
static FIRST: [AtomicU16; HEADS] = [const { AtomicU16::new(0) }; HEADS];
/// The slot behind each in its chain plus 1.
static NEXT: [AtomicU16; SLOTS] = [const { AtomicU16::new(0) }; SLOTS];

#[inline]
fn head(address: usize) -> &'static AtomicU16 {
    // An odd number with well mixed bits (the golden ratio's).
    &FIRST[(address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48]
}

/// False if no slot has this address.
#[inline]
pub fn may_have(address: usize) -> bool {
    head(address).load(Relaxed) != 0
}

/// The slots that may have this address.
pub fn chain(address: usize) -> impl Iterator<Item = usize> {
    let mut at = head(address).load(Relaxed);
    std::iter::from_fn(move || {
        let slot = usize::from(at).checked_sub(1)?;
        at = NEXT[slot].load(Relaxed);
        Some(slot)
    })
}

pub fn add(address: usize, slot: usize) {
    let head = head(address);
    NEXT[slot].store(head.load(Relaxed), Relaxed);
    head.store(slot as u16 + 1, Relaxed);
}

pub fn remove(address: usize, slot: usize) {
    let mut place = head(address);
    loop {
        match usize::from(place.load(Relaxed)).checked_sub(1) {
            None => return,
            Some(at) if at == slot => return place.store(NEXT[slot].load(Relaxed), Relaxed),
            Some(at) => place = &NEXT[at],
        }
    }
}

/// Forgets all.
pub fn clear() {
    FIRST.iter().for_each(|head| head.store(0, Relaxed));
}
