//! Which memory a program is in.
//!
//! ```text
//!            does it fit the free fast memory?
//!             |yes                     |no
//!           fast              is it bandwidth-sensitive?
//!                              |no             |yes
//!                            slow      do cpu-bound programs hold as much fast memory as it needs?
//!                                       |no             |yes
//!                                     slow        their pages move to slow memory, it is in fast
//! ```
//!
//! (Algorithm 1 of Wang et al.) Programs come one after the other, and none is placed again unless it is evicted.

use crate::kinds::{Class, Memory};
use serde::{Deserialize, Serialize};

/// A program that comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Its name, for messages.
    pub name: String,
    /// Memory that it needs, bytes.
    pub bytes: u64,
    /// Its class.
    pub class: Class,
    /// Time in slow memory over time in fast, where it is known: who is evicted first.
    pub slowdown: Option<f64>,
    /// The memory that its user insists on.
    pub pinned: Option<Memory>,
    /// Fast memory in part, where its own memory can be placed.
    pub part: Option<PartialSlowdown>,
}

/// A program's properties with a part of its memory in fast memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartialSlowdown {
    /// Fast memory that this takes, bytes.
    pub fast_bytes: u64,
    /// Time with it over time all in fast memory, where it is known.
    pub slowdown: Option<f64>,
}

/// Bytes of either memory that programs may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// Fast memory.
    pub fast: u64,
    /// Slow memory.
    pub slow: u64,
}

impl Capacity {
    /// Of a memory.
    pub fn of(&self, memory: Memory) -> u64 {
        match memory {
            Memory::Fast => self.fast,
            Memory::Slow => self.slow,
        }
    }
}

/// A program whose pages move to slow memory, for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// The program whose pages migrate.
    pub who: usize,
    /// For whom.
    pub room_for: usize,
}

/// Where programs are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Bytes of each program in fast memory; the rest is in slow memory.
    pub fast_bytes: Vec<u64>,
    /// Programs that have a part of fast memory and are placed in it themselves.
    pub in_part: Vec<bool>,
    /// Pages that moved, in order.
    pub evictions: Vec<Eviction>,
    /// Why, a sentence for each program.
    pub why: Vec<String>,
}

/// A program that fits nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Which.
    pub who: usize,
    /// Bytes of fast memory that are free when it comes.
    pub fast: u64,
    /// Bytes of slow memory likewise.
    pub slow: u64,
}

/// Tells a memory of a program whose pages are split: where most of them are.
pub fn mostly(fast_bytes: u64, bytes: u64) -> Memory {
    match fast_bytes * 2 >= bytes {
        true => Memory::Fast,
        false => Memory::Slow,
    }
}

/// Linux's placement: pages come from fast memory as long as there are any, then from slow memory. Programs may be split.
///
/// # Errors
/// A program for which both together have no room.
pub fn first_come(arrivals: &[Arrival], capacity: Capacity) -> Result<Placement, NoRoom> {
    let mut free = capacity;
    let mut out = Placement::default();
    for (who, a) in arrivals.iter().enumerate() {
        let fast = match a.pinned {
            Some(Memory::Slow) => 0,
            Some(Memory::Fast) => a.bytes,
            None => a.bytes.min(free.fast),
        };
        let slow = a.bytes - fast;
        if fast > free.fast || slow > free.slow {
            let (fast, slow) = (free.fast, free.slow);
            return Err(NoRoom { who, fast, slow });
        }
        let why = match (a.pinned, fast, slow) {
            (Some(m), ..) => format!("its file requests {}", m.words()),
            (_, _, 0) => "fast memory has room when it comes".into(),
            (_, 0, _) => "fast memory is full when it comes".into(),
            (_, f, _) => format!(
                "fast memory has room for {:.0} % of it when it comes",
                100.0 * f as f64 / a.bytes as f64
            ),
        };
        free.fast -= fast;
        free.slow -= slow;
        out.fast_bytes.push(fast);
        out.in_part.push(false);
        out.why.push(why);
    }
    Ok(out)
}

/// Algorithm 1 of Wang et al.
///
/// A newcomer's room is made of whole programs, those that slow memory harms least first. One that would be split is not
/// moved in part: it would then wait for both memories.
///
/// # Errors
/// A program for which neither memory has room.
pub fn by_need(arrivals: &[Arrival], capacity: Capacity) -> Result<Placement, NoRoom> {
    let mut free = capacity;
    let mut out = Placement::default();
    for (who, a) in arrivals.iter().enumerate() {
        let (memory, why) = choose(who, a, arrivals, &mut free, &mut out);
        let room = match memory {
            Memory::Fast => &mut free.fast,
            Memory::Slow => &mut free.slow,
        };
        match room.checked_sub(a.bytes) {
            Some(left) => *room = left,
            None => {
                let (fast, slow) = (free.fast, free.slow);
                return Err(NoRoom { who, fast, slow });
            }
        }
        out.fast_bytes.push(match memory {
            Memory::Fast => a.bytes,
            Memory::Slow => 0,
        });
        out.in_part.push(false);
        out.why.push(why);
    }
    Ok(out)
}

fn choose(
    who: usize,
    a: &Arrival,
    all: &[Arrival],
    free: &mut Capacity,
    out: &mut Placement,
) -> (Memory, String) {
    if let Some(memory) = a.pinned {
        return (memory, format!("its file requests {}", memory.words()));
    }
    if a.bytes <= free.fast {
        let why = "fast memory has room when it comes";
        return (Memory::Fast, why.into());
    }
    if a.class != Class::BandwidthSensitive {
        let why = format!("fast memory is full when it comes, and it is {}", a.class);
        return (Memory::Slow, why);
    }
    let Some(evicted) = evictable(who, a, all, free, out) else {
        let why = "fast memory is full when it comes, and cpu-bound programs there hold less than it needs";
        return (Memory::Slow, why.into());
    };
    let names: Vec<&str> = evicted.iter().map(|&i| all[i].name.as_str()).collect();
    let names = names.join(" and ");
    for i in evicted {
        free.fast += all[i].bytes;
        free.slow -= all[i].bytes;
        out.fast_bytes[i] = 0;
        out.why[i].push_str(&format!(
            "; then its pages move to slow memory, since it is cpu-bound and {} is not",
            a.name
        ));
        out.evictions.push(Eviction {
            who: i,
            room_for: who,
        });
    }
    let why = format!("it is bandwidth-sensitive, and the pages of {names} make room");
    (Memory::Fast, why)
}

/// The programs whose pages make room, or `None` if they cannot.
fn evictable(
    who: usize,
    a: &Arrival,
    all: &[Arrival],
    free: &Capacity,
    out: &Placement,
) -> Option<Vec<usize>> {
    let mut candidates: Vec<usize> = (0..who)
        .filter(|&i| out.fast_bytes[i] > 0)
        .filter(|&i| all[i].class == Class::CpuBound && all[i].pinned.is_none())
        .collect();
    let harm = |i: usize| all[i].slowdown.unwrap_or(1.0);
    candidates.sort_by(|&i, &j| harm(i).total_cmp(&harm(j)));
    let (mut room, mut slow) = (free.fast, free.slow);
    let mut evicted = Vec::new();
    for i in candidates {
        if room >= a.bytes {
            break;
        }
        if let Some(left) = slow.checked_sub(all[i].bytes) {
            slow = left;
            room += all[i].bytes;
            evicted.push(i);
        }
    }
    (room >= a.bytes).then_some(evicted)
}
