//! What the daemons move.

mod common;

use common::{cached, fill, tiered, touch};
use varve_machine::{Move, Pager, Sample, Source};
use varve_pages::{NodeFrames, Placement, Topology};

fn sample(placement: &mut Placement, vpn: u64, frame: u32, source: Source, times: usize) {
    for _ in 0..times {
        placement.sample(&Sample {
            vpn,
            frame,
            source,
            thread: 0,
            now: 0,
        });
    }
}

fn tick(placement: &mut Placement) -> Vec<Move> {
    let mut moves = Vec::new();
    placement.tick(0, &mut moves);
    moves
}

fn carry_out(placement: &mut Placement) -> usize {
    let moves = tick(placement);
    moves.iter().for_each(|done| placement.moved(done));
    moves.len()
}

#[test]
fn dynamic_parts_two_hot_pages_in_one_bin() {
    let mut placement = Placement::on("dynamic", cached(40, 10)).unwrap();
    let frames = fill(&mut placement, 20);
    assert_eq!((frames[2], frames[12]), (2, 12));
    sample(&mut placement, 2, 2, Source::Slow, 9);
    assert_eq!(tick(&mut placement), []);
    sample(&mut placement, 12, 12, Source::Slow, 8);
    let moves = tick(&mut placement);
    assert_eq!(moves.len(), 1);
    // The less hot of the two leaves, for a bin that is not its own.
    assert_eq!((moves[0].vpn, moves[0].from), (12, 12));
    assert_ne!(moves[0].to % 10, 2);
    assert_eq!(placement.dump().nodes[0].reserved, 1);
    placement.moved(&moves[0]);
    assert_eq!(placement.page_in(moves[0].to), Some(12));
    assert_eq!(placement.page_in(12), None);
    let dump = placement.dump();
    assert_eq!((dump.nodes[0].hot, dump.nodes[0].reserved), (Some(2), 0));
    assert_eq!(dump.conflicts.unwrap().hot_in_conflict, 0);
    assert_eq!(tick(&mut placement), []);
}

#[test]
fn dynamic_leaves_a_hot_and_a_cold_page_alone() {
    let mut placement = Placement::on("dynamic", cached(40, 10)).unwrap();
    fill(&mut placement, 20);
    for vpn in 0..10 {
        sample(&mut placement, vpn, vpn as u32, Source::Store, 5);
    }
    assert_eq!(tick(&mut placement), []);
}

#[test]
fn dynamic_gives_up_when_hot_pages_outnumber_the_bins() {
    let mut placement = Placement::on("dynamic:cool=255", cached(40, 10)).unwrap();
    let frames = fill(&mut placement, 30);
    for round in 0..20 {
        for (vpn, &frame) in frames.iter().enumerate() {
            sample(
                &mut placement,
                vpn as u64,
                frame,
                Source::Fast,
                1 + round % 2,
            );
        }
    }
    assert_eq!(
        tick(&mut placement),
        [],
        "every bin has a hot page: moving one helps nobody"
    );
}

#[test]
fn dynamic_lets_a_two_way_bin_hold_two_hot_pages() {
    let node = NodeFrames {
        frames: 40,
        fast: false,
        socket: 0,
        bins: Some(5),
        ways: 2,
    };
    let topology = Topology {
        page_bytes: 4096,
        nodes: vec![node],
    };
    let mut placement = Placement::on("dynamic", topology).unwrap();
    let frames = fill(&mut placement, 20);
    for vpn in [0, 5] {
        sample(&mut placement, vpn, frames[vpn as usize], Source::Slow, 9);
    }
    assert_eq!(tick(&mut placement), []);
    sample(&mut placement, 10, frames[10], Source::Slow, 9);
    assert_eq!(tick(&mut placement).len(), 1);
}

#[test]
fn dynamic_avoids_the_bins_that_are_hot() {
    let mut placement = Placement::on("dynamic", cached(100, 10)).unwrap();
    let frames = fill(&mut placement, 10);
    for vpn in 0..5 {
        sample(&mut placement, vpn, frames[vpn as usize], Source::Slow, 6);
    }
    for vpn in 10..25 {
        let frame = placement.fault(&touch(vpn)).unwrap();
        assert!(frame % 10 >= 5, "{frame}");
    }
}

#[test]
fn dynamic_moves_no_more_than_the_rate_and_goes_on_later() {
    // 10 GB/s for 1 ms are 10 MB: four pages of 2 MiB.
    let mut placement = Placement::on("dynamic:period=1ms", cached(400, 100)).unwrap();
    let frames = fill(&mut placement, 200);
    for vpn in (0..20).chain(100..120) {
        sample(&mut placement, vpn, frames[vpn as usize], Source::Slow, 8);
    }
    let moved: Vec<usize> = (0..6).map(|_| carry_out(&mut placement)).collect();
    assert_eq!(moved, [4, 4, 4, 4, 4, 0]);
    assert_eq!(placement.dump().conflicts.unwrap().hot_in_conflict, 0);
}

#[test]
fn dynamic_leaves_pages_where_the_coldest_bin_is_crowded_too() {
    // Bin 0 has two very hot pages, every other bin one that is just hot.
    let mut placement = Placement::on("dynamic:cool=255", cached(40, 10)).unwrap();
    let frames = fill(&mut placement, 20);
    for vpn in 0..10 {
        sample(&mut placement, vpn, frames[vpn as usize], Source::Slow, 8);
    }
    sample(&mut placement, 0, frames[0], Source::Slow, 80);
    sample(&mut placement, 10, frames[10], Source::Slow, 80);
    assert_eq!(tick(&mut placement), []);
}

#[test]
fn dynamic_moves_no_page_to_where_it_meets_more_heat() {
    // Bin 0: two pages hot by a few stores, 5 each, and three cold ones of 1. The others: five pages of 2.
    let mut placement = Placement::on("dynamic", cached(60, 10)).unwrap();
    let frames = fill(&mut placement, 50);
    for vpn in (0..50).filter(|vpn| vpn % 10 != 0) {
        sample(&mut placement, vpn, frames[vpn as usize], Source::Slow, 1);
    }
    sample(&mut placement, 0, frames[0], Source::Store, 4);
    sample(&mut placement, 10, frames[10], Source::Store, 4);
    assert_eq!(placement.dump().conflicts.unwrap().hot_in_conflict, 2);
    assert_eq!(
        tick(&mut placement),
        [],
        "it would leave 8 behind and meet 10"
    );
}

#[test]
fn dynamic_begins_with_the_hottest_bin() {
    let mut placement = Placement::on("dynamic:rate=1MB/s", cached(40, 10)).unwrap();
    let frames = fill(&mut placement, 20);
    for (vpn, times) in [(3, 8), (13, 8), (5, 12), (15, 12), (7, 9), (17, 9)] {
        sample(
            &mut placement,
            vpn,
            frames[vpn as usize],
            Source::Slow,
            times,
        );
    }
    let mut bins = Vec::new();
    for _ in 0..3 {
        let moves = tick(&mut placement);
        bins.push(moves[0].from % 10);
        moves.iter().for_each(|done| placement.moved(done));
    }
    assert_eq!(bins, [5, 7, 3]);
}

#[test]
fn the_heat_of_bins_follows_their_pages_through_samples_in_flight_and_cooling() {
    let mut placement = Placement::on("dynamic", cached(40, 10)).unwrap();
    let frames = fill(&mut placement, 20);
    let heats = |placement: &Placement| {
        let (frames, heat) = (placement.frames(), placement.policy().heat().unwrap());
        let of_pages = |bin| {
            frames
                .bin_mates(bin)
                .map(|frame| heat.total(frame))
                .sum::<u32>()
        };
        (0..10)
            .map(|bin| (frames.bin_heat(bin), of_pages(bin)))
            .collect::<Vec<_>>()
    };
    let same = |placement: &Placement| heats(placement).iter().all(|(bin, pages)| bin == pages);
    sample(&mut placement, 2, frames[2], Source::Slow, 9);
    sample(&mut placement, 12, frames[12], Source::Slow, 8);
    assert!(same(&placement));
    let moves = tick(&mut placement);
    sample(&mut placement, 12, 12, Source::Store, 3);
    placement.moved(&moves[0]);
    assert!(same(&placement), "{:?}", heats(&placement));
    // 10 loads by now; six more halve everything.
    sample(&mut placement, 2, frames[2], Source::Slow, 6);
    let cooled = heats(&placement);
    assert_eq!(cooled[2], (8, 8));
    assert!(cooled.iter().all(|(bin, _)| *bin <= 8), "{cooled:?}");
}

#[test]
fn a_page_that_goes_while_it_is_moved_leaves_nothing_behind() {
    let mut placement = Placement::on("dynamic", cached(40, 10)).unwrap();
    fill(&mut placement, 20);
    sample(&mut placement, 2, 2, Source::Slow, 9);
    sample(&mut placement, 12, 12, Source::Slow, 8);
    let moves = tick(&mut placement);
    placement.unmap(12, 12);
    let again = placement.fault(&touch(12)).unwrap();
    placement.moved(&moves[0]);
    assert_eq!(placement.page_in(again), Some(12));
    let dump = placement.dump();
    assert_eq!(
        (
            dump.nodes[0].pages,
            dump.nodes[0].reserved,
            dump.nodes[0].free
        ),
        (20, 0, 20)
    );
    assert_eq!((dump.counters.moves_cancelled, dump.in_flight), (1, 0));
    // A stale sample and a second unmap are noticed and change nothing.
    sample(&mut placement, 99, 2, Source::Slow, 1);
    placement.unmap(99, 2);
    placement.unmap(0, 4_000_000);
    let counters = placement.counters();
    assert_eq!((counters.stale_samples, counters.stray_unmaps), (1, 2));
}

#[test]
fn hotset_fills_dram_then_slow_memory() {
    let mut placement = Placement::on("hotset", tiered(4, 8)).unwrap();
    assert_eq!(fill(&mut placement, 12), (0..12).collect::<Vec<u32>>());
    assert!(placement.fault(&touch(12)).is_err());
}

#[test]
fn hotset_exchanges_a_hot_page_for_a_cold_one() {
    let mut placement = Placement::on("hotset", tiered(4, 8)).unwrap();
    fill(&mut placement, 8);
    sample(&mut placement, 0, 0, Source::Fast, 8);
    sample(&mut placement, 6, 6, Source::Slow, 8);
    let moves = tick(&mut placement);
    // Page 0 is hot; page 1 has been cold for longest. It leaves first, and page 6 takes its frame.
    let expected = [
        Move {
            vpn: 1,
            from: 1,
            to: 8,
        },
        Move {
            vpn: 6,
            from: 6,
            to: 1,
        },
    ];
    assert_eq!(moves, expected);
    moves.iter().for_each(|done| placement.moved(done));
    assert_eq!(
        (
            placement.page_in(1),
            placement.page_in(8),
            placement.page_in(6)
        ),
        (Some(6), Some(1), None)
    );
    assert_eq!(placement.frames().used(), 8);
    // Both hot pages are in DRAM, and known to be hot.
    assert_eq!(placement.dump().nodes[0].hot, Some(2));
}

#[test]
fn hotset_promotes_pages_that_are_written_first() {
    let mut placement = Placement::on("hotset", tiered(4, 8)).unwrap();
    fill(&mut placement, 8);
    sample(&mut placement, 5, 5, Source::Slow, 9);
    sample(&mut placement, 7, 7, Source::Store, 4);
    let promoted: Vec<u64> = tick(&mut placement)
        .iter()
        .filter(|m| m.to < 4)
        .map(|m| m.vpn)
        .collect();
    assert_eq!(promoted, [7, 5]);
}

#[test]
fn hotset_does_nothing_when_all_of_dram_is_hot() {
    let mut placement = Placement::on("hotset:cool=255", tiered(4, 8)).unwrap();
    fill(&mut placement, 8);
    for vpn in 0..8 {
        sample(&mut placement, vpn, vpn as u32, Source::Fast, 10);
    }
    assert_eq!(tick(&mut placement), []);
}

#[test]
fn hotset_lets_pages_of_dram_cool_and_replaces_them() {
    let mut placement = Placement::on("hotset", tiered(4, 8)).unwrap();
    fill(&mut placement, 8);
    for vpn in 0..4 {
        sample(&mut placement, vpn, vpn as u32, Source::Fast, 8);
    }
    // Page 4 grows super hot: everything is halved, and halved again.
    sample(&mut placement, 4, 4, Source::Slow, 24);
    let moves = tick(&mut placement);
    assert_eq!(moves.len(), 2);
    assert_eq!(moves[1].vpn, 4);
    assert_eq!(placement.dump().coolings, Some(2));
}

#[test]
fn hotset_keeps_spare_dram_for_new_pages() {
    let mut placement = Placement::on("hotset:spare=4MiB", tiered(6, 20)).unwrap();
    assert_eq!(fill(&mut placement, 6), [0, 1, 2, 3, 6, 7]);
    // A hot page does not eat the spare frames: a cold one makes room.
    sample(&mut placement, 4, 6, Source::Slow, 8);
    assert_eq!(carry_out(&mut placement), 2);
    assert_eq!(placement.frames().free(0), 2);
}

#[test]
fn hotset_makes_room_again_when_new_pages_took_the_spare_dram() {
    let mut placement = Placement::on("hotset:spare=4MiB", tiered(6, 2)).unwrap();
    assert_eq!(fill(&mut placement, 8), [0, 1, 2, 3, 6, 7, 4, 5]);
    assert_eq!(
        carry_out(&mut placement),
        0,
        "there is no room for a cold page"
    );
    placement.unmap(4, 6);
    placement.unmap(5, 7);
    assert_eq!(carry_out(&mut placement), 2);
    assert_eq!(placement.frames().free(0), 2);
}

#[test]
fn hotset_moves_no_more_than_the_rate() {
    // 10 GB/s for 1 ms are four pages of 2 MiB: two exchanges.
    let mut placement = Placement::on("hotset:period=1ms", tiered(20, 40)).unwrap();
    fill(&mut placement, 40);
    for vpn in 20..27 {
        sample(&mut placement, vpn, vpn as u32, Source::Slow, 8);
    }
    let moved: Vec<usize> = (0..5).map(|_| carry_out(&mut placement)).collect();
    assert_eq!(moved, [4, 4, 4, 2, 0]);
}

#[test]
fn either_page_of_an_exchange_may_go_at_any_moment() {
    for (gone, after_first) in [(1, false), (6, false), (6, true)] {
        let mut placement = Placement::on("hotset", tiered(4, 8)).unwrap();
        fill(&mut placement, 8);
        sample(&mut placement, 0, 0, Source::Fast, 8);
        sample(&mut placement, 6, 6, Source::Slow, 8);
        let moves = tick(&mut placement);
        if after_first {
            placement.moved(&moves[0]);
        }
        placement.unmap(gone, gone as u32);
        moves.iter().for_each(|done| placement.moved(done));
        let dump = placement.dump();
        assert_eq!(
            (dump.in_flight, placement.frames().used()),
            (0, 7),
            "{gone} {after_first}"
        );
        let pages: Vec<u64> = placement.mapping().map(|(_, page)| page).collect();
        assert!(!pages.contains(&gone) && pages.len() == 7);
    }
}

#[test]
fn oracle_puts_the_hot_pages_in_dram_and_keeps_it_for_them() {
    // Hot: pages 10 to 13 of 2 MiB. Cold pages come first and get only what the hot ones will not need.
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
        "page policy `interleave`: slow=0 will not do: a weight above 0, or no node gets any page"
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

#[test]
fn thresholds_that_contradict_each_other_are_refused() {
    let error = Placement::on("hotset:cool=8", tiered(3, 5))
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        "page policy `hotset`: cool=8 will not do: more than hot-loads and hot-stores (8), or no page stays hot"
    );
}

#[test]
fn a_scaled_machine_is_sampled_and_woken_as_often_per_page() {
    let topology = |scale: u64| Topology {
        page_bytes: (2 << 20) / scale,
        ..tiered(4, 8)
    };
    let full = Placement::on("hotset", topology(1)).unwrap().daemons();
    let scaled = Placement::on("hotset:scale=64", topology(64))
        .unwrap()
        .daemons();
    assert_eq!(
        (full.sample_period, full.period, full.threads),
        (10_000, 10_000_000, 2)
    );
    assert_eq!(
        (scaled.sample_period, scaled.period, scaled.threads),
        (156, 156_250, 2)
    );
}

#[test]
fn each_socket_keeps_to_its_own_memory_while_there_is_room() {
    // Socket 0: 9 frames of DRAM and 30 slow ones; socket 1: 7 and 20. Threads run on socket 0.
    let hot = "oracle:hot=0x1400000+8MiB";
    for (spec, dram) in [("hotset", 0..9u32), (hot, 0..9), ("first-touch", 0..9)] {
        let mut placement = Placement::on(spec, common::two_sockets_tiered()).unwrap();
        let frames = fill(&mut placement, 39);
        let slow: Vec<bool> = frames
            .iter()
            .map(|frame| (16..46).contains(frame))
            .collect();
        assert_eq!(
            slow.iter().filter(|slow| **slow).count(),
            30,
            "{spec}: {frames:?}"
        );
        assert_eq!(
            frames.iter().filter(|frame| dram.contains(frame)).count(),
            9,
            "{spec}"
        );
    }
    let mut placement = Placement::on("hotset", common::two_sockets_tiered()).unwrap();
    let frames = fill(&mut placement, 39);
    sample(&mut placement, 20, frames[20], Source::Slow, 8);
    let moves = tick(&mut placement);
    // The frames of socket 1 are free, and still the page is exchanged for one of its own socket.
    assert_eq!(moves.len(), 2);
    assert!(moves[1].vpn == 20 && moves[1].to < 9, "{moves:?}");
}
