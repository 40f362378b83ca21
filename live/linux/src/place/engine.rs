//! Placing one range with pages of one size.

use super::choose::{Choice, NO_BIN, choose};
use super::error::PlaceError;
use super::memory;
use super::mover::Mover;
use super::pagemap::Pagemap;
use super::reserve::{Pool, Unit, page_bins, populate, unit_bins};
use super::sys;
use super::table::BinTable;

/// Limits of a placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementLimits {
    /// Candidates reserved beyond the pages wanted, at most, as a multiple of them.
    pub extra_factor: f64,
    /// Number of rounds in which they are reserved; a round that is not needed is not taken. With no round at
    /// all the kernel's own frames stay, and are counted.
    pub rounds: u32,
    /// All that is populated at a time, at most, in percent of `MemAvailable`.
    pub memory_percent: f64,
}

impl Default for PlacementLimits {
    fn default() -> PlacementLimits {
        // Random frames that fill a cache exactly leave e^-(1+extra) of its bins empty: 1.8 % at 3.
        PlacementLimits {
            extra_factor: 3.0,
            rounds: 6,
            memory_percent: 50.0,
        }
    }
}

/// Bytes of candidates that even a small range may try: the frames that a small range has just given back
/// are the first that the next one is offered, so a few times its size would be the same few frames again.
const LEAST_EXTRA: usize = 16 << 20;

/// The state of the range when placing begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// A fresh mapping that no other thread knows: populated, and pages in crowded bins replaced.
    Fresh,
    /// Memory in use, such as a heap that has grown: only pages that were never touched are filled, and a
    /// page that another thread touches meanwhile stays as it is.
    Holes,
    /// The same, in memory whose holes are registered with this userfaultfd.
    Registered(i32),
}

/// The result of a placement. Bins are those of base pages, one entry per 4 KiB page.
#[derive(Clone, Debug, Default)]
pub struct PlacementOutcome {
    /// Bin of every page as the kernel gave it first: what the program would have had. [`NO_BIN`] where the
    /// kernel gave no page of the wanted size.
    pub before: Vec<u32>,
    /// Bin of every page in the end, read back from the page map; [`NO_BIN`] for a page not in memory.
    /// These are counted in the table.
    pub after: Vec<u32>,
    /// Base pages that came from the reserve.
    pub moved: u64,
    /// Pages in huge pages, in base pages.
    pub huge: u64,
    /// Most memory held for candidates, bytes.
    pub extra_bytes: u64,
}

impl PlacementOutcome {
    /// Appends the outcome of the range that follows.
    pub fn join(&mut self, next: PlacementOutcome) {
        self.before.extend(next.before);
        self.after.extend(next.after);
        self.moved += next.moved;
        self.huge += next.huge;
        self.extra_bytes = self.extra_bytes.max(next.extra_bytes);
    }
}

/// Places the `units` pages from `start` on, and counts them in the table. Candidates come from `pool`, and those
/// that were not needed stay there.
///
/// # Safety
/// The range must be mapped private, anonymous, readable and writable, aligned to the unit; with
/// [`Fill::Fresh`] no other thread may use it yet.
///
/// # Errors
/// A [`PlaceError`]; the range is then as usable as before, with the kernel's own pages, and not counted.
pub unsafe fn place(
    start: usize,
    units: usize,
    unit: Unit,
    fill: Fill,
    limits: &PlacementLimits,
    table: &mut BinTable,
    pool: &mut Pool,
) -> Result<PlacementOutcome, PlaceError> {
    if units == 0 {
        return Ok(PlacementOutcome::default());
    }
    let geometry = table.bins();
    let bytes = units * unit.bytes();
    let allowed = allowed_extra(bytes, pool.bytes(), limits)?;
    let pagemap = Pagemap::own()?;
    // The frames that the kernel gives first: in place, or in the pool when the range is in use already.
    let (homes, before) = if fill == Fill::Fresh {
        // SAFETY: by this function's contract.
        unsafe { populate(start, bytes, unit) }?;
        let homes = unit_bins(&pagemap, start, units, unit, geometry)?;
        let before = per_page(&homes, unit);
        (homes, before)
    } else {
        let first = pool.grow(units, &pagemap, geometry)?;
        (Vec::new(), per_page(&pool.bins()[first..], unit))
    };

    // Candidates: the homes in place, then the pool.
    let mut bins = [&homes, pool.bins()].concat();
    let wanted = ((units as f64 * limits.extra_factor) as usize).max(LEAST_EXTRA / unit.bytes());
    let extra_units = if limits.rounds == 0 {
        0
    } else {
        wanted.min(allowed / unit.bytes())
    };
    let per_round = extra_units.div_ceil(limits.rounds.max(1) as usize).max(1);
    let mut left = extra_units / per_round;
    let (lock, pick) = loop {
        let pick = select(&bins, units, unit, table);
        if left == 0 || good_enough(&pick, units, unit, table) {
            // Choose again under the lock, because others may have filled gaps since.
            let lock = table.lock()?;
            let pick = select(&bins, units, unit, table);
            if left == 0 || good_enough(&pick, units, unit, table) {
                break (lock, pick);
            }
        }
        left -= 1;
        match pool.grow(per_round, &pagemap, geometry) {
            Ok(first) => bins.extend_from_slice(&pool.bins()[first..]),
            // No memory for more: what there is must do.
            Err(PlaceError::System(..)) => left = 0,
            Err(error) => return Err(error),
        }
    };
    let kept: Vec<u32> = (0..bins.len())
        .filter(|&i| pick.keep[i])
        .flat_map(|i| base_bins(bins[i], unit))
        .collect();
    table.add(kept.iter().copied())?;
    drop(lock);

    let extra_bytes = pool.bytes() as u64;
    let moves = moves(&pick.keep, units, homes.len());
    // SAFETY: the range by this function's contract; the pool is ours.
    let moved = unsafe { carry_out(&moves, start, units, unit, fill, pool) };
    for &(_, index) in &moves {
        pool.used(index);
    }
    let after = match page_bins(&pagemap, start, units * unit.pages(), geometry) {
        Ok(after) => after,
        Err(error) => {
            table.remove(kept);
            return Err(error);
        }
    };
    // Counts the frames that the kernel shows, in case a page did not get the chosen one.
    table.add(after.iter().copied().filter(|&b| b != NO_BIN))?;
    table.remove(kept);
    let huge = if unit == Unit::Huge {
        pick.kept * unit.pages()
    } else {
        0
    } as u64;
    Ok(PlacementOutcome {
        before,
        after,
        moved,
        huge,
        extra_bytes,
    })
}

/// Bytes of candidates that the memory limit leaves for a range of `bytes`, with `held` in the pool already.
fn allowed_extra(bytes: usize, held: usize, limits: &PlacementLimits) -> Result<usize, PlaceError> {
    let available = memory::available_bytes()
        .ok_or_else(|| PlaceError::NoMemory("cannot read MemAvailable in /proc/meminfo".into()))?;
    let available = available as usize + held;
    let allowed = (available as f64 * limits.memory_percent / 100.0) as usize;
    if bytes > allowed {
        return Err(PlaceError::NoMemory(format!(
            "{} MiB at once is more than {} % of the {} MiB that are available",
            bytes >> 20,
            limits.memory_percent,
            available >> 20
        )));
    }
    Ok(allowed.saturating_sub(bytes + held))
}

/// The bins of base pages under the bin of a unit.
fn base_bins(bin: u32, unit: Unit) -> impl Iterator<Item = u32> {
    let n = unit.pages() as u32;
    let range = if bin == NO_BIN {
        0..0
    } else {
        bin * n..(bin + 1) * n
    };
    range.into_iter()
}

/// One entry per base page, [`NO_BIN`] for those of a unit that has none.
fn per_page(of_units: &[u32], unit: Unit) -> Vec<u32> {
    let n = unit.pages();
    let page = |b: u32, i: usize| {
        if b == NO_BIN {
            NO_BIN
        } else {
            b * n as u32 + i as u32
        }
    };
    of_units
        .iter()
        .flat_map(|&b| (0..n).map(move |i| page(b, i)))
        .collect()
}

/// Chooses `units` of the candidates. A huge bin is as loaded as its 512 bins together, in whole pages
/// rounded up, so that a single base page already counts as one.
fn select(bins: &[u32], units: usize, unit: Unit, table: &BinTable) -> Choice {
    match unit {
        Unit::Base => choose(bins, units, table.bins().sets, |b| table.load(b)),
        Unit::Huge => {
            let sets = table.bins().sets / unit.pages() as u32;
            let mut loads = vec![u32::MAX; sets as usize];
            for &b in bins.iter().filter(|&&b| b != NO_BIN) {
                if loads[b as usize] == u32::MAX {
                    let sum: u32 = base_bins(b, unit).map(|base| table.load(base)).sum();
                    loads[b as usize] = sum.div_ceil(unit.pages() as u32);
                }
            }
            choose(bins, units, sets, |b| loads[b as usize])
        }
    }
}

/// No more candidates are needed when every slot is filled and no kept page conflicts, or the fullest bin is
/// no fuller than an even spread of all pages would make it.
fn good_enough(pick: &Choice, units: usize, unit: Unit, table: &BinTable) -> bool {
    let sets = u64::from(table.bins().sets);
    let all = table.pages() + (units * unit.pages()) as u64;
    let even = all.div_ceil(sets).max(u64::from(table.bins().ways));
    pick.kept == units && u64::from(pick.fullest) <= even
}

/// `(slot, index in the pool)` of every move, in order of slots, so that neighbours make runs. Kept homes
/// stay; the other slots get the kept candidates of the pool in their order.
fn moves(keep: &[bool], units: usize, homes: usize) -> Vec<(usize, usize)> {
    let slots = (0..units).filter(|&slot| slot >= homes || !keep[slot]);
    let candidates = (homes..keep.len()).filter(|&i| keep[i]).map(|i| i - homes);
    slots.zip(candidates).collect()
}

/// Moves candidates into their slots. Returns base pages moved. A failed move leaves the slot to the kernel,
/// which gives a page at the first touch.
///
/// # Safety
/// As for [`place`].
unsafe fn carry_out(
    moves: &[(usize, usize)],
    start: usize,
    units: usize,
    unit: Unit,
    fill: Fill,
    pool: &Pool,
) -> u64 {
    let size = unit.bytes();
    if moves.is_empty() {
        return 0;
    }
    // From here until the mover is dropped nothing may be allocated: a thread that touches a hole waits for the
    // end of the registration, and it may hold the allocator's lock.
    let mut mover = match fill {
        Fill::Registered(fd) => Mover::Lent(fd),
        // SAFETY: private anonymous memory by the contract of `place`.
        _ => unsafe { Mover::for_range(start, units * size) },
    };
    if fill != Fill::Fresh && !mover.keeps_present_pages() {
        return 0;
    }
    let mut moved = 0;
    let mut i = 0;
    while i < moves.len() {
        let (slot, index) = moves[i];
        let (dst, src) = (start + slot * size, pool.address(index));
        let mut run = 1;
        while i + run < moves.len()
            && moves[i + run] == (slot + run, index + run)
            && pool.mapping(index + run) == pool.mapping(index)
        {
            run += 1;
        }
        i += run;
        if fill == Fill::Fresh && mover.keeps_present_pages() {
            // SAFETY: fresh memory that no thread uses yet: it holds nothing.
            let _ = unsafe { sys::madvise(dst, run * size, sys::MADV_DONTNEED) };
        }
        // SAFETY: the source is ours, the target by the contract.
        match unsafe { mover.run(src, dst, run * size) } {
            Ok(bytes) => moved += (bytes / super::bins::PAGE) as u64,
            Err(_) => break,
        }
    }
    drop(mover);
    // Slots whose move did not come about must be in memory before the frames are read back.
    if fill == Fill::Fresh {
        // SAFETY: as above; pages that are there stay.
        let _ = unsafe { populate(start, units * size, unit) };
    }
    moved
}
