//! Ranges of which some pages are not in memory yet.

use crate::place::bins::PAGE;
use crate::place::engine::Fill;
use crate::place::pagemap::Pagemap;
use crate::place::reserve::Unit;
use crate::state::State;

/// Places the pages between `from` and `to` that are neither in memory nor swapped out.
pub fn place_holes(state: &mut State, from: usize, to: usize, unit: Unit, fill: Fill) {
    if to <= from {
        return;
    }
    let Ok(pagemap) = Pagemap::own() else { return };
    let mut holes: Vec<(usize, usize)> = Vec::new();
    let read = pagemap.read(from, (to - from) / PAGE, |i, entry| {
        // Zero: neither in memory nor swapped out.
        if entry.0 & (3 << 62) == 0 {
            let page = from + i * PAGE;
            match holes.last_mut() {
                Some((_, end)) if *end == page => *end += PAGE,
                _ => holes.push((page, page + PAGE)),
            }
        }
    });
    if read.is_err() {
        return;
    }
    for (start, end) in holes {
        // SAFETY: the heap, .bss and lazy ranges are private anonymous memory; filling holes never touches a
        // page that another thread brings up meanwhile.
        unsafe { state.place(start, end - start, unit, fill) };
    }
}

/// Is this page in memory?
pub fn in_memory(page: usize) -> bool {
    let mut present = false;
    let read =
        Pagemap::own().and_then(|map| map.read(page, 1, |_, entry| present = entry.present()));
    read.is_ok() && present
}
