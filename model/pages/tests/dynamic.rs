//! Moves of `dynamic`.

mod common;

use common::{cached, carry_out, fill, sample, tick, touch};
use varve_access::{Pager, Source};
use varve_pages::{NodeFrames, Placement, Topology};

#[test]
fn dynamic_parts_two_hot_pages_in_one_bin() {
    let mut placement = Placement::on("dynamic:seed=0", cached(40, 10)).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0", cached(40, 10)).unwrap();
    fill(&mut placement, 20);
    for vpn in 0..10 {
        sample(&mut placement, vpn, vpn as u32, Source::Store, 5);
    }
    assert_eq!(tick(&mut placement), []);
}

#[test]
fn dynamic_gives_up_when_hot_pages_outnumber_the_bins() {
    let mut placement = Placement::on("dynamic:seed=0,cool=255", cached(40, 10)).unwrap();
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
        "every bin has a hot page: no move would help"
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
        dimms: 0,
    };
    let topology = Topology {
        page_bytes: 4096,
        nodes: vec![node],
    };
    let mut placement = Placement::on("dynamic:seed=0", topology).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0", cached(100, 10)).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0,period=1ms", cached(400, 100)).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0,cool=255", cached(40, 10)).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0", cached(60, 10)).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0,rate=1MB/s", cached(40, 10)).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0", cached(40, 10)).unwrap();
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
    let mut placement = Placement::on("dynamic:seed=0", cached(40, 10)).unwrap();
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
