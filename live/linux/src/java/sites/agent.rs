//! Computations of the agent inside Java virtual machines: the number of objects that a sample stands for, and the fate of samples.

#[allow(dead_code, reason = "the agent uses all of it")]
#[path = "../../../sites/follow.rs"]
mod follow;
#[path = "../../../sites/uses.rs"]
mod uses;
#[path = "../../../sites/weight.rs"]
mod weight;

use crate::sampled::used;
use follow::{Followed, Now, Place, Sample, class_end};
use std::collections::BTreeSet;
use weight::stands_for;

/// Numbers between 0 and 1, the same ones in every run.
fn random(seed: &mut u64) -> f64 {
    *seed = seed
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    ((*seed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Samples at distances that are drawn as the machine draws them, of objects much smaller and much larger than the interval: the
/// sum of the weights is the number of objects of each size.
#[test]
fn weights_of_samples_add_up_to_all_objects_of_each_size() {
    const INTERVAL: u64 = 4096;
    const OBJECTS: u64 = 400_000;
    let sizes = [16u64, 256, 4096, 20_000];
    let (mut seed, mut estimated) = (1, [0.0; 4]);
    let mut until = -random(&mut seed).ln() * INTERVAL as f64;
    for n in 0..OBJECTS {
        let which = (n % 4) as usize;
        until -= sizes[which] as f64;
        if until <= 0.0 {
            estimated[which] += stands_for(sizes[which], INTERVAL);
            // The process has no memory: where in the object it was hit does not matter.
            until = -random(&mut seed).ln() * INTERVAL as f64;
        }
    }
    for (size, estimated) in sizes.iter().zip(estimated) {
        let part = estimated / (OBJECTS / 4) as f64;
        // Of the smallest ones about 390 are sampled.
        assert!((0.85..1.15).contains(&part), "{size}: {part}");
    }
}

#[test]
fn every_object_is_a_sample_without_an_interval() {
    assert_eq!(stands_for(24, 0), 1.0);
    assert_eq!(stands_for(1 << 40, 512 << 10), 1.0, "none is missed");
    let small = stands_for(16, 1 << 19);
    assert!((small / 32768.5 - 1.0).abs() < 1e-4, "{small}");
}

fn born(handle: u32, now: Now) -> Sample<u32> {
    Sample {
        handle,
        site: 0,
        bytes: 100,
        weight: 10.0,
        born: now.clock,
        young: now.young,
        full: now.full,
        age: 0,
        seen: 0,
        old: false,
        alive: now.clock,
    }
}

/// The time after a number of collections, 1 MiB of allocation apart.
fn after(young: u64, full: u64) -> Now {
    Now {
        young,
        full,
        clock: (young + full) << 20,
        tenuring: Some(3),
    }
}

fn ignored(_: u32) {}

/// Objects that a collection survived, by collection.
fn survived(followed: &Followed<u32>) -> Vec<f64> {
    let all = followed.sites[0].survived.iter().map(|sum| sum.objects);
    all.take_while(|objects| *objects > 0.0).collect()
}

#[test]
fn an_object_survives_as_many_collections_as_it_meets() {
    let mut followed = Followed::new(100, true);
    followed.add(born(1, after(0, 0)), ignored);
    followed.add(born(2, after(0, 0)), ignored);
    let mut dropped = Vec::new();
    // The first one dies in the third collection, the other one lives on.
    for collection in 1..=4 {
        let place = |sample: &Sample<u32>| match sample.handle == 1 && collection == 3 {
            true => Place::Dead,
            false => Place::Young,
        };
        followed.look(after(collection, 0), place, |handle| dropped.push(handle));
    }
    // Nothing has happened since.
    followed.look(after(4, 0), |_| Place::Young, ignored);
    followed.finish(|handle| dropped.push(handle));
    assert_eq!(dropped, [1, 2], "each reference is given back once");
    assert_eq!(survived(&followed), [20.0, 20.0, 10.0, 10.0]);
    let counts = &followed.sites[0];
    assert_eq!(counts.died[2].bytes, 1000.0);
    assert_eq!((counts.freed.objects, counts.live.objects), (10.0, 10.0));
    // It was alive at 2 MiB and dead at 3 MiB.
    assert_eq!(counts.lifetime, 10.0 * 2.5 * f64::from(1 << 20));
    let lived = followed.lifetimes.iter().enumerate();
    for (class, _) in lived.filter(|(_, bytes)| **bytes > 0.0) {
        let end = class_end(class) / f64::from(1 << 20);
        assert!((2.0..3.3).contains(&end), "{end}");
    }
    assert_eq!(followed.lifetimes.iter().sum::<f64>(), 1000.0);
    assert_eq!((followed.kept, followed.undecided), (0.0, 1000.0));
}

/// Collections of the young generation yield nothing about objects that they do not trace.
#[test]
fn an_old_object_grows_no_older_in_collections_of_the_young_generation() {
    let mut followed = Followed::new(100, true);
    followed.add(born(1, after(0, 0)), ignored);
    followed.look(after(1, 0), |_| Place::Young, ignored);
    followed.look(after(2, 0), |_| Place::Old, ignored);
    for collection in 3..10 {
        followed.look(after(collection, 0), |_| Place::Old, ignored);
    }
    // A full collection finds it dead: it died somewhere since it was promoted.
    followed.look(after(9, 1), |_| Place::Dead, ignored);
    assert_eq!(survived(&followed), [10.0, 10.0]);
    let counts = &followed.sites[0];
    assert_eq!(counts.old.bytes, 1000.0);
    assert_eq!(counts.old_freed.bytes, 1000.0);
    assert!(counts.died.iter().all(|sum| sum.objects == 0.0));
    assert_eq!(counts.lifetime, 10.0 * 6.0 * f64::from(1 << 20), "2 to 10");
}

#[test]
fn without_addresses_an_object_is_old_by_its_age_or_after_a_full_collection() {
    let old = |looks: &[Now], born_at: Now| {
        let mut followed = Followed::new(100, true);
        followed.add(born(1, born_at), ignored);
        for now in looks {
            followed.look(*now, |_| Place::Alive, ignored);
        }
        followed.finish(ignored);
        followed.sites[0].old.objects > 0.0
    };
    assert!(!old(&[after(3, 0)], after(0, 0)), "the threshold is 3");
    assert!(old(&[after(3, 0), after(4, 0)], after(0, 0)));
    assert!(!old(&[after(4, 0)], after(1, 0)));
    assert!(old(&[after(1, 1)], after(1, 0)));
    let never = Now {
        tenuring: None,
        ..after(40, 0)
    };
    assert!(!old(&[never], after(0, 0)), "a threshold that is not known");
}

/// A late check cannot tell when an object died, and does not count the survivors: they would be too many.
#[test]
fn what_several_collections_did_counts_for_none_of_them() {
    let mut followed = Followed::new(100, true);
    followed.add(born(1, after(0, 0)), ignored);
    followed.add(born(2, after(0, 0)), ignored);
    followed.look(after(1, 0), |_| Place::Young, ignored);
    let place = |sample: &Sample<u32>| match sample.handle {
        1 => Place::Dead,
        _ => Place::Young,
    };
    followed.look(after(3, 0), place, ignored);
    // The next one is the fourth of the one that lives.
    followed.look(after(4, 0), |_| Place::Old, ignored);
    followed.finish(ignored);
    let counts = &followed.sites[0];
    let survived = counts.survived.map(|sum| sum.objects);
    assert_eq!(survived[..5], [20.0, 0.0, 0.0, 10.0, 0.0]);
    assert!(counts.died.iter().all(|sum| sum.objects == 0.0));
    assert_eq!((counts.freed.objects, counts.old.objects), (10.0, 10.0));
    assert_eq!(followed.late, 1);
}

#[test]
fn a_collector_without_known_collections_tells_who_is_alive_and_nothing_of_ages() {
    let mut followed = Followed::new(100, false);
    followed.add(born(1, Now::default()), ignored);
    followed.add(born(2, Now::default()), ignored);
    let now = Now {
        clock: 1 << 20,
        ..Now::default()
    };
    let place = |sample: &Sample<u32>| match sample.handle {
        1 => Place::Dead,
        _ => Place::Alive,
    };
    followed.look(now, place, ignored);
    followed.finish(ignored);
    let counts = &followed.sites[0];
    assert_eq!((counts.freed.objects, counts.live.objects), (10.0, 10.0));
    assert_eq!(counts.old.objects, 0.0);
    assert!(survived(&followed).is_empty());
    assert!(counts.died.iter().all(|sum| sum.objects == 0.0));
}

/// Half of the samples are given up when there are too many, and the others stand for them: the factor is reported as well.
#[test]
fn memory_is_bounded_and_what_is_said_stays_without_bias() {
    const SAMPLES: u32 = 100_000;
    let mut followed = Followed::new(1000, true);
    let mut dropped = 0;
    for n in 0..SAMPLES {
        followed.add(born(n, after(0, 0)), |_| dropped += 1);
        assert!(followed.len() < 1000);
    }
    assert_eq!(followed.len() + dropped, SAMPLES as usize);
    assert_eq!(followed.thinned, 7, "100,000 samples in room for 1000");
    // A quarter of them dies in the first collection.
    let place = |sample: &Sample<u32>| match sample.handle % 4 {
        0 => Place::Dead,
        _ => Place::Young,
    };
    followed.look(after(1, 0), place, ignored);
    followed.finish(ignored);
    let counts = &followed.sites[0];
    assert_eq!(counts.samples, u64::from(SAMPLES));
    assert_eq!(counts.born.objects, 10.0 * f64::from(SAMPLES));
    for (part, expected) in [(counts.survived[0], 0.75), (counts.died[0], 0.25)] {
        let part = part.objects / counts.born.objects;
        assert!((part / expected - 1.0).abs() < 0.15, "{part}");
    }
}

/// Looks count at the site of the object whose page was looked at, by the bytes that the object stands for.
#[test]
fn looks_at_pages_add_up_by_site() {
    let mut followed = Followed::new(100, true);
    followed.add(born(1, after(0, 0)), ignored);
    assert_eq!(followed.old().count(), 0, "it is young");
    followed.look(after(1, 0), |_| Place::Old, ignored);
    assert_eq!(followed.old().count(), 1);
    followed.looked(0, 1000.0, true);
    followed.looked(0, 500.0, false);
    followed.looked(7, 500.0, true);
    let counts = &followed.sites[0];
    assert_eq!((counts.looks, counts.looked), ([2, 1], [1500.0, 1000.0]));
}

/// Of each object one page is looked at, of a large one a page of its own; no two pages lie side by side.
#[test]
fn pages_of_objects_are_apart_from_each_other() {
    let mut seed = 3;
    let mut random = || (random(&mut seed) * 1e15) as u64;
    // A large one that ends within a page, small ones beside each other, and one far away.
    let object = |address, size, site, stands_for| uses::OldObject {
        address,
        size,
        site,
        stands_for,
    };
    let mut objects = vec![
        object(0x10_0800, 0x1_0000, 0, 1.0),
        object(0x90_0000, 64, 2, 1.0),
    ];
    objects.extend((0..600).map(|n| object(0x20_0000 + n * 64, 64, 1, 2.0)));
    for _ in 0..50 {
        let watched = uses::choose(&objects, uses::PAGE, &mut random);
        let pages: BTreeSet<u64> = watched.iter().map(|of| of.page).collect();
        for page in &pages {
            assert!(page.is_multiple_of(uses::PAGE) && !pages.contains(&(page + uses::PAGE)));
        }
        for of in &watched {
            match of.site {
                0 => assert!((0x10_1000..0x11_0000).contains(&of.page)),
                1 => assert!((0x20_0000..0x20_a000).contains(&of.page) && of.bytes == 2.0),
                _ => assert_eq!(of.page, 0x90_0000),
            }
        }
        // Several objects are on one page.
        assert!(watched.len() > pages.len() && pages.len() > 3);
    }
    let many: Vec<uses::OldObject> = (0..5000).map(|n| object(n << 20, 16, 0, 1.0)).collect();
    assert_eq!(
        uses::choose(&many, uses::PAGE, &mut random).len(),
        uses::MOST
    );
    assert_eq!(uses::choose(&[], uses::PAGE, &mut random), []);
}

#[test]
fn what_the_kernel_says_of_pages_is_read() {
    let smaps = "\
c0000000-c0a00000 rw-p 00000000 00:00 0
Size:              10240 kB
Referenced:         9000 kB
AnonHugePages:         0 kB
c0a00000-c0a01000 rw-p 00000000 00:00 0
Referenced:            4 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac dd sd
c0a05000-c0a06000 rw-p 00000000 00:00 0
Referenced:            0 kB
7f0000000000-7f0000400000 rw-p 00000000 00:00 0                          [heap]
AnonHugePages:      2048 kB
";
    let pages = BTreeSet::from([0xc0a0_0000, 0xc0a0_5000, 0xc0b0_0000]);
    let mappings = used::read(smaps.as_bytes()).unwrap();
    let seen: Vec<(u64, bool)> = uses::used(&mappings, &pages).into_iter().collect();
    assert_eq!(seen, [(0xc0a0_0000, true), (0xc0a0_5000, false)]);
    let bytes = |range| uses::page_bytes(&mappings, &range);
    assert_eq!(bytes(0xc000_0000..0xd000_0000), uses::PAGE);
    assert_eq!(bytes(0x7f00_0000_0000..0x7f00_0040_0000), uses::LARGE);
}
