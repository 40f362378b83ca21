//! Placing a whole range: huge pages where they fit and are wanted, base pages elsewhere.

use super::bins::{HUGE, PAGE, PAGES_PER_HUGE};
use super::choose::NO_BIN;
use super::engine::{Fill, PlacementLimits, PlacementOutcome, place};
use super::error::PlaceError;
use super::huge;
use super::pagemap::Pagemap;
use super::reserve::{Pools, Unit};
use super::table::BinTable;

/// Places `bytes` from `start` on. With [`Unit::Huge`] the part that 2 MiB pages can cover gets them; where
/// the kernel has none left, and at both ends, base pages are placed.
///
/// # Safety
/// The range must be mapped private, anonymous, readable and writable, and page-aligned; with [`Fill::Fresh`]
/// no other thread may use it yet.
///
/// # Errors
/// A [`PlaceError`] when nothing was placed; the range is then usable with the kernel's own pages.
pub unsafe fn place_range(
    start: usize,
    bytes: usize,
    unit: Unit,
    fill: Fill,
    limits: &PlacementLimits,
    table: &mut BinTable,
    pools: &mut Pools,
) -> Result<PlacementOutcome, PlaceError> {
    table.set_placing(true);
    // SAFETY: passed on.
    let result = unsafe { place_parts(start, bytes, unit, fill, limits, table, pools) };
    table.set_placing(pools.bytes() > 0);
    result
}

/// # Safety
/// As for [`place_range`].
unsafe fn place_parts(
    start: usize,
    bytes: usize,
    unit: Unit,
    fill: Fill,
    limits: &PlacementLimits,
    table: &mut BinTable,
    pools: &mut Pools,
) -> Result<PlacementOutcome, PlaceError> {
    let end = start + bytes;
    let middle = start.next_multiple_of(HUGE).min(end);
    let tail = (end / HUGE * HUGE).max(middle);
    // The holes of a heap are in use already, page by page, and take no huge pages.
    if unit == Unit::Base || fill == Fill::Holes || middle == tail || table.bins().huge().is_none()
    {
        // SAFETY: by this function's contract.
        return unsafe {
            place(
                start,
                bytes / PAGE,
                Unit::Base,
                fill,
                limits,
                table,
                &mut pools.base,
            )
        };
    }

    let mut whole = Whole {
        outcome: PlacementOutcome::default(),
        error: None,
    };
    // SAFETY: parts of the range of the contract, here and below.
    whole.join(start, middle, unsafe {
        place(
            start,
            (middle - start) / PAGE,
            Unit::Base,
            fill,
            limits,
            table,
            &mut pools.base,
        )
    });
    // SAFETY: as above.
    let huge = unsafe {
        place(
            middle,
            (tail - middle) / HUGE,
            Unit::Huge,
            fill,
            limits,
            table,
            &mut pools.huge,
        )
    };
    // SAFETY: as above.
    let huge = huge
        .and_then(|part| unsafe { fill_in_base_pages(part, middle, fill, limits, table, pools) });
    whole.join(middle, tail, huge);
    // SAFETY: as above.
    whole.join(tail, end, unsafe {
        place(
            tail,
            (end - tail) / PAGE,
            Unit::Base,
            fill,
            limits,
            table,
            &mut pools.base,
        )
    });
    match whole.error {
        Some(error) if whole.outcome.after.iter().all(|&b| b == NO_BIN) => Err(error),
        _ => Ok(whole.outcome),
    }
}

/// The parts of a range together. A part that could not be placed stays the kernel's.
struct Whole {
    outcome: PlacementOutcome,
    error: Option<PlaceError>,
}

impl Whole {
    fn join(&mut self, start: usize, end: usize, part: Result<PlacementOutcome, PlaceError>) {
        match part {
            Ok(part) => self.outcome.join(part),
            Err(error) => {
                let none = vec![NO_BIN; (end - start) / PAGE];
                self.outcome.join(PlacementOutcome {
                    before: none.clone(),
                    after: none,
                    ..PlacementOutcome::default()
                });
                self.error = Some(error);
            }
        }
    }
}

/// Places base pages where the kernel had no huge page, in memory placed in huge pages from `start` on.
///
/// # Safety
/// As for [`place_range`].
unsafe fn fill_in_base_pages(
    mut part: PlacementOutcome,
    start: usize,
    fill: Fill,
    limits: &PlacementLimits,
    table: &mut BinTable,
    pools: &mut Pools,
) -> Result<PlacementOutcome, PlaceError> {
    let really_huge = huge::frames(&Pagemap::own()?, start, part.after.len() / PAGES_PER_HUGE)?;
    part.huge = 0;
    for (i, frame) in really_huge.iter().enumerate() {
        if frame.is_some() {
            part.huge += PAGES_PER_HUGE as u64;
            continue;
        }
        let pages = i * PAGES_PER_HUGE..(i + 1) * PAGES_PER_HUGE;
        table.remove(
            part.after[pages.clone()]
                .iter()
                .copied()
                .filter(|&b| b != NO_BIN),
        );
        // SAFETY: by this function's contract.
        match unsafe {
            place(
                start + i * HUGE,
                PAGES_PER_HUGE,
                Unit::Base,
                fill,
                limits,
                table,
                &mut pools.base,
            )
        } {
            Ok(base) => {
                part.after[pages.clone()].copy_from_slice(&base.after);
                part.before[pages].copy_from_slice(&base.before);
                part.moved += base.moved;
            }
            Err(_) => part.after[pages].fill(NO_BIN),
        }
    }
    Ok(part)
}
