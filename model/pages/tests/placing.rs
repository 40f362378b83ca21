//! Where new pages go.

mod common;

use common::{cached, fill, per_bin, tiered, touch};
use varve_access::Pager;
use varve_pages::{NodeFrames, Placement, Topology};

/// Pages far apart in a machine of many frames are all listed, in order, and so are their conflicts: from the used part
/// of the machine alone, beside maps without unused frames.
#[test]
fn a_sparse_mapping_is_listed_whole() {
    for (spec, frames, bins) in [
        ("random:run=2MiB,seed=3", 300_000, 10_000),
        ("static:seed=5", 300_001, 9_999),
        ("first-touch", 300_000, 10_000),
    ] {
        let topology = cached(frames, bins);
        let mut placement = Placement::on(spec, topology.clone()).unwrap();
        let mut plain = std::collections::BTreeMap::new();
        for vpn in 0..700 {
            let frame = placement.fault(&touch(vpn)).unwrap();
            assert!(plain.insert(frame, vpn).is_none(), "{spec}: {frame} twice");
            if vpn % 3 == 2 {
                let (&frame, &vpn) = plain.iter().nth(plain.len() / 2).unwrap();
                placement.unmap(vpn, frame);
                plain.remove(&frame);
            }
        }
        let listed: Vec<(u32, u64)> = placement.mapping().collect();
        assert!(listed.iter().copied().eq(plain.clone()), "{spec}");

        let mut in_bin = vec![0u64; bins as usize];
        plain
            .keys()
            .for_each(|frame| in_bin[(frame % bins) as usize] += 1);
        let count = |f: &dyn Fn(u64) -> bool| in_bin.iter().filter(|n| f(**n)).count() as u64;
        let found = placement.dump().conflicts.unwrap();
        assert_eq!(found.bins_used, count(&|n| n > 0), "{spec}");
        assert_eq!(found.bins_by_pages[0], count(&|n| n == 0), "{spec}");
        let deepest = *in_bin.iter().max().unwrap();
        assert_eq!(found.bins_by_pages.len() as u64, deepest + 1, "{spec}");
        let in_conflict: u64 = in_bin.iter().filter(|n| **n > 1).sum();
        assert_eq!(found.pages_in_conflict, in_conflict, "{spec}");
    }
}

#[test]
fn first_touch_on_a_fresh_system_is_contiguous() {
    let mut placement = Placement::on("first-touch", cached(100, 20)).unwrap();
    assert_eq!(fill(&mut placement, 60), (0..60).collect::<Vec<u32>>());
    placement.unmap(7, 7);
    placement.unmap(3, 3);
    assert_eq!(placement.fault(&touch(1000)), Ok(3));
    assert_eq!(placement.fault(&touch(1001)), Ok(7));
}

#[test]
fn first_touch_fills_local_dram_then_local_slow_memory_then_the_other_socket() {
    let node = |socket, fast| NodeFrames {
        frames: 2,
        fast,
        socket,
        bins: None,
        ways: 1,
        dimms: 0,
    };
    let nodes = vec![node(0, true), node(1, true), node(0, false), node(1, false)];
    let mut placement = Placement::on(
        "first-touch",
        Topology {
            page_bytes: 4096,
            nodes,
        },
    )
    .unwrap();
    let mut frames = Vec::new();
    for vpn in 0..8 {
        let fault = varve_access::Fault {
            socket: 1,
            ..touch(vpn)
        };
        frames.push(placement.fault(&fault).unwrap());
    }
    assert_eq!(frames, [2, 3, 6, 7, 0, 1, 4, 5]);
    let error = placement.fault(&touch(8)).unwrap_err().to_string();
    assert!(
        error.starts_with("out of memory: 8 pages of 4096 B are in use"),
        "{error}"
    );
    assert_eq!(placement.counters().refused, 1);
}

#[test]
fn static_puts_two_pages_in_each_bin_when_memory_is_twice_the_cache() {
    // Johnny Cache, section 5.2.1: an array of twice the cache has exactly two pages per bin.
    let bins = 24_576;
    let mut placement = Placement::on("static", cached(262_144, bins)).unwrap();
    let frames = fill(&mut placement, 2 * u64::from(bins));
    let count = per_bin(&frames, bins);
    assert_eq!(count.len(), bins as usize);
    assert!(count.values().all(|&pages| pages == 2));
}

#[test]
fn static_refills_the_bins_that_were_emptied() {
    let mut placement = Placement::on("static", cached(80, 10)).unwrap();
    let frames = fill(&mut placement, 40);
    // Bins 3 and 4 lose all of their pages, bin 5 loses one.
    for (vpn, &frame) in frames.iter().enumerate() {
        if [3, 4].contains(&(frame % 10)) || frame == 5 {
            placement.unmap(vpn as u64, frame);
        }
    }
    let mut again = Vec::new();
    for vpn in 100..109 {
        again.push(placement.fault(&touch(vpn)).unwrap() % 10);
    }
    again.sort_unstable();
    assert_eq!(again, [3, 3, 3, 3, 4, 4, 4, 4, 5]);
}

#[test]
fn random_uses_the_share_of_the_cache_that_chance_says() {
    // 96 GiB of 2 MiB pages over 48 GiB of bins, out of 512 GiB: a bin of 10 or 11 frames stays empty with the
    // probability that none of them is among 49,152 of 262,144 frames, close to (1 - 0.1875)^10.67 = 0.109.
    let bins = 24_576;
    for spec in ["random:run=2MiB", "random"] {
        let mut used = 0.0;
        for seed in 0..4 {
            let separator = if spec.contains(':') { ',' } else { ':' };
            let spec = format!("{spec}{separator}seed={seed}");
            let mut placement = Placement::on(&spec, cached(262_144, bins)).unwrap();
            let frames = fill(&mut placement, 2 * u64::from(bins));
            used += per_bin(&frames, bins).len() as f64 / f64::from(bins) / 4.0;
        }
        assert!((0.885..0.897).contains(&used), "{spec}: {used}");
    }
}

#[test]
fn random_keeps_runs_together_and_hands_freed_frames_out_first() {
    let mut placement = Placement::on("random:run=8MiB,seed=3", cached(1000, 100)).unwrap();
    let frames = fill(&mut placement, 400);
    for run in frames.chunks(4) {
        assert_eq!(run[0] % 4, 0);
        assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
    assert!(
        frames
            .chunks(4)
            .any(|run| run[0] % 100 > frames[0] % 100 && run[0] < frames[0])
    );
    placement.unmap(10, frames[10]);
    placement.unmap(300, frames[300]);
    assert_eq!(placement.fault(&touch(1000)), Ok(frames[300]));
    assert_eq!(placement.fault(&touch(1001)), Ok(frames[10]));
}

#[test]
fn random_hands_out_every_frame_once() {
    let mut placement = Placement::on("random:run=6MiB", cached(1000, 64)).unwrap();
    let mut frames = fill(&mut placement, 1000);
    frames.sort_unstable();
    assert_eq!(frames, (0..1000).collect::<Vec<u32>>());
    assert!(placement.fault(&touch(1000)).is_err());
}

#[test]
fn the_same_seed_places_the_same_way() {
    let place = |spec: &str| fill(&mut Placement::on(spec, cached(500, 50)).unwrap(), 200);
    assert_eq!(place("random:seed=9"), place("random:seed=9"));
    assert_ne!(place("random:seed=9"), place("random:seed=10"));
}

#[test]
fn a_policy_that_does_not_fit_the_machine_says_so() {
    let error = |spec: &str, topology| Placement::on(spec, topology).err().unwrap().to_string();
    assert_eq!(
        error("static", tiered(10, 10)),
        "page policy `static` needs a DRAM cache in front of slow memory, but this machine has fast and slow nodes without a cache; use one with mode = \"memory-mode\""
    );
    let unknown = error("statc", cached(10, 5));
    assert!(
        unknown.starts_with("no page policy is called `statc`; there are first-touch, "),
        "{unknown}"
    );
    let key = error("random:runs=1", cached(10, 5));
    assert_eq!(
        key,
        "page policy `random` has no parameter `runs`; it takes run, seed, scale (did you mean `run`?)"
    );
}

#[test]
fn oracle_puts_the_hot_pages_in_dram_and_keeps_it_for_them() {
    // Hot: pages 10 to 13 of 2 MiB. Cold pages come first and get only frames that the hot ones will not need.
    let spec = "oracle:hot=0x1400000+8MiB";
    let mut placement = Placement::on(spec, tiered(6, 20)).unwrap();
    let frames = fill(&mut placement, 20);
    assert!(frames[10..14].iter().all(|&frame| frame < 6), "{frames:?}");
    assert_eq!(frames.iter().filter(|&&frame| frame < 6).count(), 6);
}

#[test]
fn oracle_keeps_the_place_of_a_hot_page_that_comes_back() {
    let mut placement = Placement::on("oracle:hot=0+4MiB", tiered(2, 20)).unwrap();
    assert_eq!(fill(&mut placement, 2), [0, 1]);
    placement.unmap(0, 0);
    assert_eq!(
        placement.fault(&touch(9)),
        Ok(2),
        "DRAM has a free frame, but a hot page may want it"
    );
    assert_eq!(placement.fault(&touch(0)), Ok(0));
}

#[test]
fn oracle_gives_each_hot_page_a_bin_of_its_own() {
    let spec = "oracle:hot=0+10MiB/40MiB+2MiB/0x2800000+10MiB";
    assert!(
        Placement::on(spec, cached(40, 10)).is_err(),
        "a base is an address, not a size"
    );
    let spec = "oracle:hot=0+10MiB/0x2800000+2MiB/0x2800000+10MiB";
    let mut placement = Placement::on(spec, cached(40, 10)).unwrap();
    let frames = fill(&mut placement, 30);
    let mut bins: Vec<u32> = (0..5).chain(20..25).map(|page| frames[page] % 10).collect();
    bins.sort_unstable();
    assert_eq!(bins, (0..10).collect::<Vec<u32>>());
}

#[test]
fn interleave_takes_turns_by_weight_and_passes_full_nodes() {
    let mut even = Placement::on("interleave", tiered(3, 5)).unwrap();
    assert_eq!(fill(&mut even, 8), [0, 3, 1, 4, 2, 5, 6, 7]);
    assert!(even.fault(&touch(8)).is_err());
    let mut weighted = Placement::on("interleave:fast=2", tiered(4, 2)).unwrap();
    assert_eq!(fill(&mut weighted, 6), [0, 1, 4, 2, 3, 5]);
    let error = Placement::on("interleave:slow=0", cached(4, 2))
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        "page policy `interleave`: `slow=0`: must be a weight above 0, or no node gets any page"
    );
}

#[test]
fn fast_and_slow_keep_to_their_kind() {
    let mut fast = Placement::on("fast", tiered(3, 5)).unwrap();
    assert_eq!(fill(&mut fast, 3), [0, 1, 2]);
    assert!(fast.fault(&touch(3)).is_err());
    let mut slow = Placement::on("slow", tiered(3, 5)).unwrap();
    assert_eq!(fill(&mut slow, 5), [3, 4, 5, 6, 7]);
    assert!(slow.fault(&touch(5)).is_err());
}
