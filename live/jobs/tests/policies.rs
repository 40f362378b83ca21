//! Invariants of the policies, for all inputs.

use proptest::prelude::*;
use varve_jobs::policy::order::{Dispatcher, Item, Reason};
use varve_jobs::policy::part::by_need_in_part;
use varve_jobs::policy::place::{
    Arrival, Capacity, PartialSlowdown, Placement, by_need, first_come,
};
use varve_jobs::policy::threads::{Want, share, used, worthwhile};
use varve_jobs::{Class, Memory};

fn class() -> impl Strategy<Value = Class> {
    prop::sample::select(Class::ALL.to_vec())
}

fn memory() -> impl Strategy<Value = Memory> {
    prop::sample::select(Memory::ALL.to_vec())
}

prop_compose! {
    fn arrival()(
        bytes in 1u64..40,
        class in class(),
        slowdown in prop::option::of(1.0f64..20.0),
        pinned in prop::option::weighted(0.1, memory()),
    ) -> Arrival {
        Arrival { name: "p".into(), bytes, class, slowdown, pinned, part: None }
    }
}

prop_compose! {
    /// One that may be in fast memory in part.
    fn placed()(
        a in arrival(),
        has in any::<bool>(),
        share in 0.0f64..1.0,
        slowdown in prop::option::of(0.9f64..4.0),
    ) -> Arrival {
        let fast_bytes = (a.bytes as f64 * share) as u64;
        let part = (has && a.pinned.is_none() && fast_bytes > 0).then_some(PartialSlowdown { fast_bytes, slowdown });
        Arrival { part, ..a }
    }
}

/// Does the part of a program help at all?
fn helps(a: &Arrival) -> Option<PartialSlowdown> {
    let worse = |p: &PartialSlowdown| {
        p.slowdown
            .zip(a.slowdown)
            .is_some_and(|(part, slow)| part >= slow)
    };
    a.part.filter(|p| !worse(p))
}

fn bytes_of(all: &[Arrival], p: &Placement) -> (u64, u64) {
    let fast = p.fast_bytes.iter().sum();
    (fast, all.iter().map(|a| a.bytes).sum::<u64>() - fast)
}

proptest! {
    /// Neither memory ever holds more than it has, and no program is split by need.
    #[test]
    fn no_memory_is_overfull(all in prop::collection::vec(arrival(), 0..12), fast in 0u64..120, slow in 0u64..200) {
        let capacity = Capacity { fast, slow };
        for (placed, whole) in [(first_come(&all, capacity), false), (by_need(&all, capacity), true)] {
            let Ok(placed) = placed else { continue };
            let (in_fast, in_slow) = bytes_of(&all, &placed);
            prop_assert!(in_fast <= fast && in_slow <= slow);
            for (a, &f) in all.iter().zip(&placed.fast_bytes) {
                prop_assert!(f <= a.bytes);
                prop_assert!(!whole || f == 0 || f == a.bytes);
                match a.pinned {
                    Some(Memory::Fast) => prop_assert_eq!(f, a.bytes),
                    Some(Memory::Slow) => prop_assert_eq!(f, 0),
                    None => {}
                }
            }
        }
    }

    /// Only programs bound by the processor are evicted, that are not pinned, once each, for a later one that needs bandwidth
    /// and is in fast memory then; and no program that needs bandwidth is in slow memory while such programs hold enough room.
    #[test]
    fn evictions_are_algorithm_1(all in prop::collection::vec(arrival(), 0..10), fast in 0u64..120) {
        let Ok(placed) = by_need(&all, Capacity { fast, slow: 1 << 20 }) else { return Ok(()) };
        let mut seen = Vec::new();
        for e in &placed.evictions {
            prop_assert!(e.who < e.room_for);
            prop_assert_eq!(all[e.who].class, Class::CpuBound);
            prop_assert!(all[e.who].pinned.is_none());
            prop_assert_eq!(all[e.room_for].class, Class::BandwidthSensitive);
            prop_assert_eq!(placed.fast_bytes[e.who], 0);
            prop_assert_eq!(placed.fast_bytes[e.room_for], all[e.room_for].bytes);
            prop_assert!(!seen.contains(&e.who));
            seen.push(e.who);
        }
        // The last newcomer saw what is there now, but for itself.
        if let Some((last, before)) = all.split_last() {
            let i = before.len();
            let in_slow = placed.fast_bytes[i] == 0;
            if last.class == Class::BandwidthSensitive && last.pinned.is_none() && in_slow {
                let held: u64 = placed.fast_bytes[..i].iter().sum();
                let movable: u64 = (before.iter().zip(&placed.fast_bytes))
                    .filter(|(a, _)| a.class == Class::CpuBound && a.pinned.is_none())
                    .map(|(_, f)| *f)
                    .sum();
                prop_assert!(fast - held + movable < last.bytes);
            }
        }
    }

    /// Neither memory holds more than it has, and who has a part has just that.
    #[test]
    fn parts_keep_the_budget(all in prop::collection::vec(placed(), 0..12), fast in 0u64..120, slow in 0u64..300) {
        let Ok(placed) = by_need_in_part(&all, Capacity { fast, slow }) else { return Ok(()) };
        let (in_fast, in_slow) = bytes_of(&all, &placed);
        prop_assert!(in_fast <= fast && in_slow <= slow);
        for (i, a) in all.iter().enumerate() {
            let has = placed.fast_bytes[i];
            match placed.in_part[i] {
                true => prop_assert_eq!(Some(has), a.part.map(|p| p.fast_bytes)),
                false => prop_assert!(has == 0 || has == a.bytes),
            }
            match a.pinned {
                Some(Memory::Fast) => prop_assert_eq!(has, a.bytes),
                Some(Memory::Slow) => prop_assert_eq!(has, 0),
                None => {}
            }
        }
    }

    /// No program is worse off than under Algorithm 1 alone, but for those that keep a part with which they are hardly slower; none migrates that
    /// would not have; and no memory is left free that a program in slow memory could use.
    #[test]
    fn parts_use_fast_memory_no_worse(all in prop::collection::vec(placed(), 0..12), fast in 0u64..120) {
        let capacity = Capacity { fast, slow: 1 << 20 };
        let Ok(before) = by_need(&all, capacity) else { return Ok(()) };
        let after = by_need_in_part(&all, capacity).unwrap();
        for (i, a) in all.iter().enumerate() {
            let kept = after.in_part[i] && a.part.unwrap().slowdown.unwrap_or(1.0) < 1.5;
            prop_assert!(after.fast_bytes[i] >= before.fast_bytes[i] || kept, "{i}: {after:?} after {before:?}");
        }
        prop_assert!(after.evictions.iter().all(|e| before.evictions.contains(e)));
        prop_assert!(after.evictions.iter().all(|e| after.fast_bytes[e.who] == 0));
        if all.iter().any(|a| a.part.is_some()) {
            let free = fast - after.fast_bytes.iter().sum::<u64>();
            for (a, &has) in all.iter().zip(&after.fast_bytes) {
                if has == 0 && a.pinned != Some(Memory::Slow) {
                    let least = helps(a).map_or(a.bytes, |p| p.fast_bytes);
                    prop_assert!(least > free, "{a:?} with {free} free");
                }
            }
        } else {
            prop_assert_eq!(after, before);
        }
    }

    /// Algorithm 2 against its text: the first number of threads after which one more raises the speed-up by less than a tenth, or the
    /// usual one if that pays all the way from there.
    #[test]
    fn threads_are_added_as_long_as_they_pay(
        times in prop::collection::vec(0.1f64..100.0, 1..24),
        usual in 1usize..26,
    ) {
        let most = times.len();
        let got = worthwhile(|t| times.get(t as usize - 1).copied(), usual as u32, most as u32);
        let speedup = |t: usize| times[0] / times[t - 1];
        let stops = |from: usize| {
            let stop = (from..most).find(|&t| speedup(t + 1) < speedup(t) * 1.1);
            stop.unwrap_or(most)
        };
        let first = stops(1);
        let crosses = first < usual
            && usual <= most
            && speedup(usual) >= speedup(first) * 1.1f64.powi((usual - first) as i32);
        prop_assert_eq!(got as usize, if crosses { stops(usual) } else { first });
    }

    /// Together, programs never have more threads than there are cores, as far as each having one allows; and none has more than
    /// are worthwhile.
    #[test]
    fn threads_fit_the_cores(
        programs in prop::collection::vec((memory(), 1u32..16, 1u32..16, 1.0f64..100.0, 0.0f64..1.0), 1..9),
        cores in 1u32..24,
        at_once in 0u32..3,
    ) {
        // Amdahl's law, by program.
        let curves: Vec<_> = programs
            .iter()
            .map(|p| move |t: u32| Some(p.3 * (p.4 + (1.0 - p.4) / f64::from(t))))
            .collect();
        let wants: Vec<Want> = programs
            .iter()
            .zip(&curves)
            .map(|(p, seconds)| Want { memory: p.0, usual: p.1, worthwhile: p.2, seconds })
            .collect();
        let threads = share(&wants, cores, at_once);
        let least = used(&wants, &vec![1; wants.len()], at_once);
        prop_assert!(used(&wants, &threads, at_once) <= cores.max(least), "{threads:?}");
        for (t, w) in threads.iter().zip(&wants) {
            prop_assert!((1..=w.worthwhile).contains(t));
        }
        // Nothing is left that anybody wants.
        for i in 0..threads.len() {
            let mut more = threads.clone();
            more[i] += 1;
            let gains = curves[i](threads[i]) > curves[i](more[i]);
            let wanted = more[i] <= wants[i].worthwhile && gains;
            prop_assert!(!wanted || used(&wants, &more, at_once) > cores);
        }
    }

    /// Whatever the order in which programs end, each runs once, after those that it waits for, never more at once than may; and nobody
    /// starts beside one that disturbs it while another could.
    #[test]
    fn every_program_has_its_turn(
        items in prop::collection::vec((memory(), class(), any::<bool>(), 0.0f64..5.0), 1..10),
        waits in prop::collection::vec((0usize..10, 0usize..10), 0..8),
        at_once in 0u32..3,
        avoid in any::<bool>(),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 10),
    ) {
        let n = items.len();
        let items: Vec<Item> = (0..n)
            .map(|i| {
                let (memory, class, write_intensive, write_gbps) = items[i];
                // Earlier ones only: no cycle.
                let after = waits.iter().filter(|w| w.0 % n == i && w.1 % n < i).map(|w| w.1 % n).collect();
                Item { rank: i as u32, memory, class, write_intensive, write_gbps, after, held: false }
            })
            .collect();
        let clash = |a: usize, b: usize| {
            let one = |a: &Item, b: &Item| {
                a.memory == Memory::Slow && a.write_intensive && b.memory == Memory::Fast && b.class == Class::BandwidthSensitive
            };
            one(&items[a], &items[b]) || one(&items[b], &items[a])
        };
        let mut d = Dispatcher::new(items.clone(), at_once, avoid);
        let (mut started, mut ended): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for end in &ends {
            while let Some((i, reason)) = d.start() {
                prop_assert!(!started.contains(&i));
                prop_assert!(items[i].after.iter().all(|a| ended.contains(a)));
                let beside: Vec<usize> = d.running().filter(|&r| r != i && clash(r, i)).collect();
                if avoid {
                    prop_assert_eq!(matches!(reason, Reason::Nevertheless(_)), !beside.is_empty());
                    prop_assert!(beside.is_empty() || at_once > 0);
                } else {
                    prop_assert_eq!(reason, Reason::Turn);
                }
                started.push(i);
            }
            let running: Vec<usize> = d.running().collect();
            for memory in Memory::ALL {
                let of = running.iter().filter(|&&r| items[r].memory == memory).count();
                prop_assert!(at_once == 0 || of <= at_once as usize);
            }
            if running.is_empty() {
                break;
            }
            let i = running[end.index(running.len())];
            d.ended(i);
            ended.push(i);
        }
        prop_assert!(d.is_done() && started.len() == n, "{started:?} of {n}");
    }
}

#[test]
fn method_1_and_method_2_reorder_as_the_paper_says() {
    let item = |rank, memory, class, write_intensive, write_gbps| Item {
        rank,
        memory,
        class,
        write_intensive,
        write_gbps,
        after: Vec::new(),
        held: false,
    };
    let (fast, slow) = (Memory::Fast, Memory::Slow);
    let (cpu, bw) = (Class::CpuBound, Class::BandwidthSensitive);
    // lu_cb runs in PM: freqmine goes before ocean_cp.
    let items = vec![
        item(0, slow, cpu, true, 2.0),
        item(1, fast, bw, true, 9.0),
        item(2, fast, cpu, false, 0.1),
    ];
    let mut d = Dispatcher::new(items, 1, true);
    assert_eq!(d.start(), Some((0, Reason::Turn)));
    assert_eq!(d.start(), Some((2, Reason::InsteadOfDisturbed(0))));
    assert_eq!(d.start(), None);
    d.ended(2);
    assert_eq!(d.start(), Some((1, Reason::Nevertheless(0))));
    // ocean_cp runs in DRAM: of three in PM the one that writes least goes first.
    let items = vec![
        item(0, fast, bw, true, 9.0),
        item(1, slow, cpu, true, 2.0),
        item(2, slow, cpu, false, 0.5),
        item(3, slow, cpu, false, 0.1),
    ];
    let mut d = Dispatcher::new(items, 1, true);
    assert_eq!(d.start(), Some((0, Reason::Turn)));
    assert_eq!(d.start(), Some((3, Reason::InsteadOfDisturbing(0))));
}

/// A service takes all of fast memory and needs its young generation alone; a solver needs bandwidth.
#[test]
fn a_program_keeps_its_part_and_another_finds_room() {
    let arrival = |name: &str, class, slowdown, part| Arrival {
        name: name.into(),
        bytes: 10,
        class,
        slowdown: Some(slowdown),
        pinned: None,
        part,
    };
    let part = |slowdown| {
        Some(PartialSlowdown {
            fast_bytes: 2,
            slowdown: Some(slowdown),
        })
    };
    let service = |harm| arrival("service", Class::LatencySensitive, 4.0, part(harm));
    let solver = arrival("solver", Class::BandwidthSensitive, 3.0, None);
    let capacity = Capacity {
        fast: 12,
        slow: 100,
    };
    let placed = by_need_in_part(&[service(1.1), solver.clone()], capacity).unwrap();
    assert_eq!(placed.fast_bytes, [2, 10]);
    assert_eq!(placed.in_part, [true, false]);
    assert!(
        placed.why[0]
            .contains("with which it takes 1.10 times as long, since solver needs the rest"),
        "{:?}",
        placed.why
    );
    assert_eq!(
        placed.why[1],
        "it is bandwidth-sensitive, and service keeps a part alone"
    );
    assert!(placed.evictions.is_empty(), "no program migrates");
    // One that its part slows too much keeps all.
    let placed = by_need_in_part(&[service(1.6), solver], capacity).unwrap();
    assert_eq!(placed.fast_bytes, [10, 0]);
    // And one that finds no room for all of it has its part.
    let other = arrival("other", Class::CpuBound, 1.4, part(1.0));
    let placed = by_need_in_part(&[service(1.6), other], capacity).unwrap();
    assert_eq!(placed.fast_bytes, [10, 2]);
    assert_eq!(
        placed.why[1],
        "fast memory has room for that part, and not for all of it"
    );
}
