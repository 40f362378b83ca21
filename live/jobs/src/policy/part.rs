//! Programs that can be in fast memory in part, since their own memory is placed: a third way beside all of it and none.
//!
//! Algorithm 1 decides first, as if there were no such programs. Then, for each program that it has in slow memory, those that need fast
//! memory before those that are cpu-bound, and all of a program before its part:
//!
//! ```text
//! does all of it fit the free fast memory, or the part that it has itself, if that helps?
//!  |yes                     |no
//! fast, or         is it not cpu-bound, and can programs that are there give back enough for the one or the other,
//! in part          each by keeping a part with which it takes less than 1.5 times as long?
//!                   |yes                     |no
//!                  fast, or in part         slow
//! ```
//!
//! So each program has at least the fast memory that Algorithm 1 gave it, but for those that keep a part and are slowed by
//! less than what counts as cpu-bound. No program is migrated that would not be migrated otherwise: a program in part is in part from its start.

use super::place::{Arrival, Capacity, NoRoom, Placement, by_need};
use crate::class::CPU_BOUND;
use crate::kinds::{Class, Memory};

/// Algorithm 1, and then parts.
///
/// # Errors
/// As Algorithm 1: a program for which neither memory has room.
pub fn by_need_in_part(arrivals: &[Arrival], capacity: Capacity) -> Result<Placement, NoRoom> {
    let mut out = by_need(arrivals, capacity)?;
    if arrivals.iter().all(|a| a.part.is_none()) {
        return Ok(out);
    }
    for needy in [true, false] {
        let waits = |who: usize, out: &Placement| {
            let a = &arrivals[who];
            out.fast_bytes[who] == 0
                && a.pinned != Some(Memory::Slow)
                && (a.class != Class::CpuBound) == needy
        };
        // Memory that is freed for one may be room for another that came before it.
        let mut who = 0;
        while who < arrivals.len() {
            let moved = waits(who, &out) && place(who, arrivals, capacity, &mut out);
            who = if moved { 0 } else { who + 1 };
        }
    }
    Ok(out)
}

/// The free memory.
fn free(arrivals: &[Arrival], out: &Placement, capacity: Capacity) -> Capacity {
    let fast: u64 = out.fast_bytes.iter().sum();
    let all: u64 = arrivals.iter().map(|a| a.bytes).sum();
    Capacity {
        fast: capacity.fast - fast,
        slow: capacity.slow - (all - fast),
    }
}

/// Takes a program out of slow memory, all of it or its part, if there is room or room can be made; says whether it did.
fn place(who: usize, all: &[Arrival], capacity: Capacity, out: &mut Placement) -> bool {
    let a = &all[who];
    let free = free(all, out, capacity);
    let helps = |harm: Option<f64>| match (harm, a.slowdown) {
        (Some(part), Some(slow)) => part < slow,
        _ => true,
    };
    let part = a.part.filter(|p| helps(p.slowdown));
    for wanted in [Some(a.bytes), part.map(|p| p.fast_bytes)] {
        let Some(wanted) = wanted else { continue };
        let whole = wanted == a.bytes;
        if wanted <= free.fast {
            let why = match whole {
                true => "what others gave back has room for it",
                false => "fast memory has room for that part, and not for all of it",
            };
            take(who, a, wanted, why.into(), out);
            return true;
        }
        let givers = match a.class {
            Class::CpuBound => None,
            _ => givers(wanted, all, &free, out),
        };
        let Some(givers) = givers else { continue };
        let names: Vec<&str> = givers.iter().map(|&i| all[i].name.as_str()).collect();
        let (names, s) = (names.join(" and "), if names.len() == 1 { "s" } else { "" });
        for i in givers {
            keep_a_part(i, &a.name, &all[i], out);
        }
        let why = format!("it is {}, and {names} keep{s} a part alone", a.class);
        take(who, a, wanted, why, out);
        return true;
    }
    false
}

/// Gives a program in slow memory a part of fast memory. It makes no room for others then.
fn take(who: usize, a: &Arrival, fast: u64, why: String, out: &mut Placement) {
    out.fast_bytes[who] = fast;
    out.in_part[who] = fast < a.bytes;
    out.why[who] = why;
    out.evictions.retain(|e| e.who != who);
}

/// A program in fast memory has its part alone, from its start.
fn keep_a_part(who: usize, newcomer: &str, a: &Arrival, out: &mut Placement) {
    let Some(part) = a.part else { return };
    out.fast_bytes[who] = part.fast_bytes;
    out.in_part[who] = true;
    let times = part.slowdown.map_or(String::new(), |s| {
        format!(", with which it takes {s:.2} times as long")
    });
    out.why[who].push_str(&format!(
        "; then it keeps that part alone{times}, since {newcomer} needs the rest"
    ));
}

/// The programs that keep a part so that this one finds the requested room, those that it harms least first; `None` if they have too little.
fn givers(wanted: u64, all: &[Arrival], free: &Capacity, out: &Placement) -> Option<Vec<usize>> {
    let harm = |i: usize| all[i].part.and_then(|p| p.slowdown).unwrap_or(1.0);
    let gives = |&i: &usize| {
        let part = all[i].part.map_or(u64::MAX, |p| p.fast_bytes);
        out.fast_bytes[i] == all[i].bytes
            && part < all[i].bytes
            && all[i].pinned.is_none()
            && harm(i) < CPU_BOUND
    };
    let mut candidates: Vec<usize> = (0..all.len()).filter(gives).collect();
    candidates.sort_by(|&i, &j| harm(i).total_cmp(&harm(j)));
    // The slow memory that this program would leave is room there.
    let (mut room, mut slow) = (free.fast, free.slow + wanted);
    let mut givers = Vec::new();
    for i in candidates {
        if room >= wanted {
            break;
        }
        let back = all[i].bytes - all[i].part.map_or(0, |p| p.fast_bytes);
        if let Some(left) = slow.checked_sub(back) {
            slow = left;
            room += back;
            givers.push(i);
        }
    }
    (room >= wanted).then_some(givers)
}
