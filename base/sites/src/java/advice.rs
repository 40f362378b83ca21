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

/// Why a line fills the old generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fills {
    /// At least half of what it brought there stayed: a candidate for slow memory, or for memory outside of the heap.
    Stays,
    /// More than half of it was found dead there: a candidate for a larger young generation, or for reuse.
    Dies,
}

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
    let why = |n: usize| match 2 * lines[n].ages.old_freed_bytes > lines[n].ages.old_bytes {
        true => Fills::Dies,
        false => Fills::Stays,
    };
    fills.into_iter().map(|n| (n, why(n))).collect()
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
