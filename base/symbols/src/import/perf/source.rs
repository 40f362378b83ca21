//! What `data_src` of a sample says, as perf prints it.
//!
//! ```text
//! 68100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A     since Linux 5.19
//! 68100142 L1 hit|SNP None|TLB L1 or L2 hit|LCK No                           before
//! ```
//!
//! A level is `L1`, `LFB`, `LFB/MAB`, `L2`, `L3`, `L4`, `L2 MHB`, `Any cache`, `Remote Cache (1 hop)`, `Memory-side Cache`, `Local RAM`,
//! `Remote RAM (2 hops)`, `RAM`, `PMEM`, `CXL`, `Extension mem`, `I/O`, `Uncached`, `N/A`, or some of them with ` or ` between, and
//! ` hit` or ` miss` behind all. `Remote` and the distance may be before.

use super::event::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Neither a load nor a store of data.
    NoData,
}

/// What a sample says of its access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub access: Access,
    /// Whether it missed all caches, if that is known.
    pub misses: Option<bool>,
    /// It missed a near cache, and it is not known where it hit.
    pub missed_near: bool,
}

impl Source {
    /// Of a sample without `data_src`.
    pub fn of_event(kind: Kind) -> Source {
        Source {
            access: access_of(kind),
            misses: None,
            missed_near: false,
        }
    }

    /// Of the number, and of what is printed behind it.
    pub fn read(kind: Kind, number: &str, decoded: &str) -> Source {
        let parts: Vec<&str> = decoded.split('|').map(str::trim).collect();
        let part = |name: &str| parts.iter().find_map(|part| part.strip_prefix(name));
        let (access, level) = match part("OP ") {
            Some(operation) => (access(kind, operation), part("LVL ")),
            None => (access_of_number(kind, number), parts.first().copied()),
        };
        let (misses, missed_near) = level.map_or((None, false), misses);
        Source {
            access,
            misses,
            missed_near,
        }
    }
}

fn access(kind: Kind, operation: &str) -> Access {
    match operation {
        operation if operation.contains("STORE") => Access::Write,
        // perf counts prefetches as loads too
        operation if operation.contains("LOAD") || operation.contains("PFETCH") => Access::Read,
        operation if operation.contains("EXEC") => Access::NoData,
        _ => match kind {
            Kind::Loads | Kind::Stores => access_of(kind),
            _ => Access::NoData,
        },
    }
}

fn access_of(kind: Kind) -> Access {
    match kind {
        Kind::Stores => Access::Write,
        _ => Access::Read,
    }
}

/// Of the lowest bits of the number: not known, load, store, prefetch, instructions.
fn access_of_number(kind: Kind, number: &str) -> Access {
    let number = u64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap_or(0);
    let names = ["N/A", "LOAD", "STORE", "PFETCH", "EXEC"];
    let named = names
        .iter()
        .enumerate()
        .find(|(bit, _)| number & (1 << bit) != 0);
    access(kind, named.map_or("N/A", |(_, name)| name))
}

/// Whether it missed all caches, and whether it missed one while it is not known where it hit.
fn misses(level: &str) -> (Option<bool>, bool) {
    let (levels, missed) = match (level.strip_suffix(" hit"), level.strip_suffix(" miss")) {
        (Some(levels), _) => (levels, false),
        (None, Some(levels)) => (levels, true),
        (None, None) => (level, false),
    };
    let levels: Vec<&str> = levels.split(" or ").map(place).collect();
    let has = |names: &[&str]| levels.iter().any(|level| names.contains(level));
    // Below the last cache there is memory of whatever kind and distance. Some kernels print the number of a level that they do not
    // know: L6 is the cache at the memory's side, L9 is CXL.
    let memory = ["RAM", "PMEM", "CXL", "mem", "Memory-side", "L6", "L9"];
    let last = ["L3", "L4"];
    let caches = [
        "L0", "L1", "L2", "LFB", "LFB/MAB", "L3", "L4", "cache", "Cache", "MHB", "L5", "L7",
    ];
    let no_cache = ["Uncached", "I/O", "L8", "L10"];
    if has(&memory) || missed && has(&last) {
        return (Some(true), false);
    }
    if missed {
        return (None, has(&caches));
    }
    ((has(&caches) || has(&no_cache)).then_some(false), false)
}

/// The word of a level that says what it is: the last, without the distance behind it.
fn place(level: &str) -> &str {
    let level = level.split(" (").next().unwrap_or_default().trim();
    if level == "Memory-side Cache" {
        return "Memory-side";
    }
    level.rsplit(' ').next().unwrap_or_default()
}
