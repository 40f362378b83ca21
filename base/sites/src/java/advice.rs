//! Advice from a Java program's profile: the size of the young generation, and the sites that fill the old one.

use super::{Ages, Profile, names};
use crate::Counts;
use std::collections::HashMap;

/// Sizes of the young generation that are weighed, as multiples of what it is.
pub const FACTORS: [f64; 8] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
/// A doubling pays if it saves such a part of what is promoted,
const MUCH: f64 = 0.1;
/// and such a part of all that is allocated.
const NOTHING: f64 = 0.01;

/// The promotion that a size of the young generation would cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Multiple of the size that it had.
    pub factor: f64,
    /// Bytes allocated between two of its collections.
    pub between: f64,
    /// Bytes that would be promoted.
    pub promoted: f64,
}

/// The advice on the young generation.
#[derive(Clone, Debug, PartialEq)]
pub enum Young {
    /// Nothing can be said, for this reason.
    Unknown(&'static str),
    /// Hardly anything is promoted as it is.
    Enough,
    /// The smallest size at which no further doubling pays, by its place among the sizes.
    Choose(usize),
}

/// The promotion at each size; empty if the machine's collections are not known, or were too few.
///
/// An object is promoted when it survives more collections than the threshold, `n` in all. Of those that live for `l` bytes of
/// allocation, collections `e` bytes apart promote the part `l / e - n + 1`, between 0 and 1, since they begin anywhere. Objects
/// that were old and not found dead count as if they lived for ever; those that were young at the end do not count.
pub fn sizes(profile: &Profile) -> Vec<Size> {
    let heap = &profile.heap;
    let collections = heap.young_collections + heap.full_collections;
    let (Some(tenuring), 3..) = (heap.tenuring, collections) else {
        return Vec::new();
    };
    let between = heap.allocated_bytes as f64 / collections as f64;
    let size = |factor| {
        let between = between * factor;
        let promoted = profile.lifetimes.iter().map(|&(end, bytes)| {
            let part: f64 = end as f64 / between - f64::from(tenuring);
            bytes as f64 * part.clamp(0.0, 1.0)
        });
        Size {
            factor,
            between,
            promoted: promoted.sum::<f64>() + heap.kept_bytes as f64,
        }
    };
    FACTORS.into_iter().map(size).collect()
}

/// Whether it is known which old objects died: the old generation was collected, or some of it was freed.
pub fn is_old_known(profile: &Profile) -> bool {
    let freed: u64 = profile.sites.iter().map(|s| s.ages.old_freed_bytes).sum();
    freed > 0 || profile.heap.full_collections > 0
}

/// Whether the heap is too small, or the program asks for collections all the time: for such a share of the time the machine stood
/// still, and collected everything several times.
pub fn is_heap_short(profile: &Profile) -> bool {
    let (heap, sampled) = (&profile.heap, &profile.sampled);
    let paused = heap.paused_ms as f64 > PAUSED * sampled.milliseconds as f64;
    paused && heap.full_collections >= SEVERAL
}

/// See [`is_heap_short`].
const PAUSED: f64 = 0.1;
const SEVERAL: u64 = 5;

/// The advice: the smallest size at which no further doubling pays. One pays if it saves a tenth of what is promoted, and a hundredth
/// of what is allocated.
pub fn young(profile: &Profile, sizes: &[Size]) -> Young {
    let heap = &profile.heap;
    let promoted: u64 = profile.sites.iter().map(|s| s.ages.old_bytes).sum();
    let allocated = heap.allocated_bytes as f64;
    if heap.old_by.is_empty() {
        return Young::Unknown(
            "this collector's collections of the young generation are not known",
        );
    }
    if is_heap_short(profile) {
        return Young::Unknown("the heap is too small");
    }
    if sizes.is_empty() {
        return Young::Unknown("there were fewer than three collections");
    }
    if (promoted as f64) < NOTHING * allocated {
        return Young::Enough;
    }
    if !is_old_known(profile) {
        return Young::Unknown(
            "the old generation was not collected, so it is unknown which old objects died soon (run longer, or `jcmd PID GC.run`)",
        );
    }
    let pays = |pair: &[Size]| {
        let saved = pair[0].promoted - pair[1].promoted;
        saved >= MUCH * pair[0].promoted && saved >= NOTHING * allocated
    };
    // Lifetimes may come in heaps: a doubling that saves nothing says nothing of the next.
    let last = sizes.windows(2).rposition(pays);
    Young::Choose(last.map_or(0, |last| last + 1))
}

/// Why the machine's own samples are not drawn evenly over all bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skewed {
    /// Threads have no buffers to allocate from, and most samples are missing.
    WithoutBuffers,
    /// Objects that are about as large as the distance of samples are sampled too seldom, and those beside them too often.
    BesideLarge,
}

/// The first Java whose samples were found to be right in both cases; 17 is wrong in both, and those between were not tried.
pub const UNSKEWED: u32 = 25;
/// Sizes of objects that skew others' samples, in distances of samples, and the least share of all bytes that they have.
const LARGE: [f64; 2] = [0.125, 4.0];
const LEAST: f64 = 0.05;

/// Whether the machine's samples are skewed, as is known of older ones.
pub fn skewed(profile: &Profile) -> Option<Skewed> {
    if profile.heap.java >= UNSKEWED {
        return None;
    }
    if profile.sampled.without_tlabs {
        return Some(Skewed::WithoutBuffers);
    }
    let [least, most] = LARGE.map(|times| times * profile.sampled.interval_bytes as f64);
    let is_large = |counts: &Counts| {
        let size = counts.bytes as f64 / counts.objects.max(1) as f64;
        (least..=most).contains(&size)
    };
    let bytes = |large: bool| -> u64 {
        let of = profile.sites.iter().map(|site| &site.counts);
        let of = of.filter(|counts| !large || is_large(counts));
        of.map(|counts| counts.bytes).sum()
    };
    let share = bytes(true) as f64 / bytes(false).max(1) as f64;
    (LEAST..=1.0 - LEAST)
        .contains(&share)
        .then_some(Skewed::BesideLarge)
}

/// Sites that readers cannot distinguish: one line of the program, one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its name, by [`names::name`].
    pub name: String,
    /// Its sites, by their numbers in the profile.
    pub sites: Vec<usize>,
    /// The counts of all.
    pub counts: Counts,
    /// The fate of all.
    pub ages: Ages,
}

/// The lines of a profile, in no order.
pub fn lines(profile: &Profile) -> Vec<Line> {
    let (mut lines, mut places): (Vec<Line>, HashMap<_, usize>) = (Vec::new(), HashMap::new());
    for (number, site) in profile.sites.iter().enumerate() {
        let own = site.stack.get(names::own(&site.stack));
        // Two classes may have one name in two packages, and so may files.
        let key = (
            own.map(|frame| (&frame.class, names::place(frame))),
            &site.class,
            names::name(&site.stack, &site.class),
        );
        let at = *places.entry(key).or_insert_with(|| {
            lines.push(Line {
                name: names::name(&site.stack, &site.class),
                ..Line::default()
            });
            lines.len() - 1
        });
        lines[at].sites.push(number);
        lines[at].counts.add(&site.counts);
        lines[at].ages.add(&site.ages);
    }
    lines
}

/// What a line does with the old generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fills {
    /// At least half of what it brought there stayed, and hardly any of it is used: for slow memory, or for memory outside of the heap.
    Cold,
    /// At least half of it stayed, and it is used: for fast memory.
    Used,
    /// At least half of it stayed. Whether it is used is not known.
    Stays,
    /// More than half of it was found dead there: a candidate for a larger young generation, or for reuse.
    Dies,
}

/// Of what stays, a line is cold if at most such a share of its pages is used in a look.
const COLD: f64 = 0.01;

/// A line that brings at least so large a part of what reaches the old generation is named.
const FILLS: f64 = 0.05;

/// The lines that fill the old generation, the most first: each brings at least a twentieth of it.
pub fn fills(lines: &[Line]) -> Vec<(usize, Fills)> {
    let all: u64 = lines.iter().map(|line| line.ages.old_bytes).sum();
    let mut fills: Vec<usize> = (0..lines.len())
        .filter(|&n| lines[n].ages.old_bytes > 0)
        .filter(|&n| lines[n].ages.old_bytes as f64 >= FILLS * all as f64)
        .collect();
    fills.sort_by_key(|&n| {
        (
            std::cmp::Reverse(lines[n].ages.old_bytes),
            lines[n].name.clone(),
        )
    });
    fills.into_iter().map(|n| (n, does(&lines[n]))).collect()
}

/// What a line does with the old generation.
fn does(line: &Line) -> Fills {
    let ages = &line.ages;
    match ages.used() {
        _ if 2 * ages.old_freed_bytes > ages.old_bytes => Fills::Dies,
        Some(used) if used <= COLD => Fills::Cold,
        Some(_) => Fills::Used,
        None => Fills::Stays,
    }
}

/// Old objects that were not found dead, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OldUse {
    /// Of lines that are used.
    pub used: u64,
    /// Of lines that are hardly used.
    pub cold: u64,
    /// Of all others.
    pub unknown: u64,
}

/// How much of the old generation is used.
pub fn old(lines: &[Line]) -> OldUse {
    let mut old = OldUse::default();
    for line in lines {
        let stays = line
            .ages
            .old_bytes
            .saturating_sub(line.ages.old_freed_bytes);
        let sum = match does(line) {
            Fills::Used => &mut old.used,
            Fills::Cold => &mut old.cold,
            Fills::Stays | Fills::Dies => &mut old.unknown,
        };
        *sum = sum.saturating_add(stays);
    }
    old
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, Heap, Site};
    use super::*;

    /// A program whose objects have `lifetimes` in bytes of allocation, promoted when they survive two collections that are 1000
    /// bytes apart.
    fn living(lifetimes: &[(u64, u64)], kept_bytes: u64) -> Profile {
        let old = kept_bytes
            + lifetimes
                .iter()
                .filter(|l| l.0 > 2000)
                .map(|l| l.1)
                .sum::<u64>();
        let site = Site {
            ages: Ages {
                old_bytes: old,
                old_freed_bytes: old - kept_bytes,
                ..Ages::default()
            },
            ..Site::default()
        };
        Profile {
            heap: Heap {
                old_by: "address".into(),
                young_collections: 100,
                full_collections: 0,
                tenuring: Some(1),
                allocated_bytes: 100_000,
                kept_bytes,
                ..Heap::default()
            },
            lifetimes: lifetimes.to_vec(),
            sites: vec![site],
            ..Profile::default()
        }
    }

    /// Java 17 allocates one half of its bytes in objects of the first size, and the other half in objects of the other.
    #[test]
    fn samples_that_the_machine_skews_are_told() {
        let site = |size: u64| Site {
            counts: Counts {
                objects: (100 << 20) / size,
                bytes: 100 << 20,
                ..Counts::default()
            },
            ..Site::default()
        };
        let mut profile = Profile {
            heap: Heap {
                java: 17,
                ..Heap::default()
            },
            ..Profile::default()
        };
        profile.sampled.interval_bytes = 512 << 10;
        let mut of = |sizes: [u64; 2], java, without_tlabs| {
            profile.sites = sizes.map(site).into();
            (profile.heap.java, profile.sampled.without_tlabs) = (java, without_tlabs);
            skewed(&profile)
        };
        assert_eq!(of([1000, 2000], 17, false), None);
        assert_eq!(of([1000, 512 << 10], 17, false), Some(Skewed::BesideLarge));
        assert_eq!(of([1000, 8 << 20], 17, false), None, "each is a sample");
        assert_eq!(of([1000, 512 << 10], 25, false), None);
        assert_eq!(of([1000, 2000], 17, true), Some(Skewed::WithoutBuffers));
    }

    #[test]
    fn a_heap_that_is_collected_all_the_time_is_too_small() {
        let mut profile = living(&[(1500, 40_000)], 7000);
        profile.sampled.milliseconds = 1000;
        (profile.heap.full_collections, profile.heap.paused_ms) = (50, 90);
        assert!(!is_heap_short(&profile), "short pauses");
        profile.heap.paused_ms = 500;
        assert!(is_heap_short(&profile));
        let all = sizes(&profile);
        assert_eq!(
            young(&profile, &all),
            Young::Unknown("the heap is too small")
        );
        profile.heap.full_collections = 1;
        assert!(!is_heap_short(&profile), "one long pause");
    }

    fn chosen(profile: &Profile) -> f64 {
        let sizes = sizes(profile);
        match young(profile, &sizes) {
            Young::Choose(at) => sizes[at].factor,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_size_promotes_is_what_outlives_its_collections() {
        let profile = living(&[(1500, 40_000)], 7000);
        let promoted: Vec<f64> = sizes(&profile).iter().map(|s| s.promoted).collect();
        // 1500 bytes hold two collections that are 1000 bytes apart half of the time, and always two that are 500 apart.
        assert_eq!(promoted[..4], [47_000.0, 47_000.0, 27_000.0, 7000.0]);
    }

    #[test]
    fn the_smallest_size_is_chosen_at_which_no_doubling_pays() {
        // All that is promoted and dies lives for 5000 bytes: two collections 8000 bytes apart never both see it.
        assert_eq!(chosen(&living(&[(100, 60_000), (5000, 30_000)], 2000)), 8.0);
        // Promoted objects stay, so a small one suffices.
        assert_eq!(chosen(&living(&[(100, 60_000), (2600, 10)], 30_000)), 0.25);
    }

    #[test]
    fn what_is_not_known_is_no_advice() {
        let mut profile = living(&[(100, 60_000)], 30_000);
        let all = sizes(&profile);
        assert!(
            matches!(young(&profile, &all), Young::Unknown(why) if why.contains("was not collected"))
        );
        profile.heap.kept_bytes = 0;
        profile.sites.clear();
        assert_eq!(young(&profile, &all), Young::Enough);
        profile.heap.tenuring = None;
        assert!(sizes(&profile).is_empty());
        assert!(matches!(young(&profile, &[]), Young::Unknown(_)));
        profile.heap.old_by.clear();
        assert!(
            matches!(young(&profile, &all), Young::Unknown(why) if why.contains("this collector"))
        );
    }

    /// What stays is for slow memory only if it is known not to be used.
    #[test]
    fn what_stays_and_is_used_is_for_fast_memory() {
        let line = |name: &str, looks, looked_bytes, used_bytes| Line {
            name: name.into(),
            ages: Ages {
                old_bytes: 100,
                looks,
                looked_bytes,
                used_bytes,
                ..Ages::default()
            },
            ..Line::default()
        };
        let lines = [
            line("cold", 1000, 1000, 0),
            line("a page in use", 1000, 1000, 10),
            line("a map", 1000, 1000, 100),
            line("few looks", 10, 10, 0),
        ];
        let why: Vec<Fills> = fills(&lines).into_iter().map(|(_, why)| why).collect();
        // By name.
        assert_eq!(why, [Fills::Used, Fills::Cold, Fills::Cold, Fills::Stays]);
        let sums = OldUse {
            used: 100,
            cold: 200,
            unknown: 100,
        };
        assert_eq!(old(&lines), sums);
    }

    #[test]
    fn lines_that_fill_the_old_generation_are_told_from_those_whose_objects_die_there() {
        let site = |caller, class: &str, old_bytes, old_freed_bytes| Site {
            stack: vec![
                Frame {
                    class: "shop.Orders".into(),
                    method: "order".into(),
                    file: "Orders.java".into(),
                    line: 24,
                },
                Frame {
                    line: caller,
                    ..Frame::default()
                },
            ],
            class: class.into(),
            ages: Ages {
                old_bytes,
                old_freed_bytes,
                ..Ages::default()
            },
            ..Site::default()
        };
        let profile = Profile {
            sites: vec![
                site(1, "shop.Item", 300, 0),
                site(2, "shop.Item", 300, 10),
                site(1, "byte[]", 390, 300),
                site(1, "char[]", 10, 0),
            ],
            ..Profile::default()
        };
        let lines = lines(&profile);
        assert_eq!(lines.len(), 3, "two callers are one line");
        let fills: Vec<(&str, Fills)> = fills(&lines)
            .into_iter()
            .map(|(n, why)| (&*lines[n].name, why))
            .collect();
        assert_eq!(
            fills,
            [
                ("Orders.java:24 Item", Fills::Stays),
                ("Orders.java:24 byte[]", Fills::Dies)
            ]
        );
    }
}
