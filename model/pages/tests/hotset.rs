//! Moves of `hotset`.

mod common;

use common::{carry_out, fill, sample, tick, tiered, touch};
use varve_access::{Move, Pager, Source};
use varve_pages::{Placement, Topology};

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

/// Pages 0 to 3 were used much once, and no page is now. Page 4 is used a little, and waits for one of them to cool.
#[test]
fn what_was_hot_cools_with_time_where_uses_are_few() {
    let waits = |spec: &str| {
        let mut placement = Placement::on(spec, tiered(4, 8)).unwrap();
        fill(&mut placement, 8);
        for vpn in 0..4 {
            sample(&mut placement, vpn, vpn as u32, Source::Fast, 15);
        }
        (1..200).find(|wake_up| {
            if wake_up % 10 == 0 {
                let frame = (0..12).find(|f| placement.page_in(*f) == Some(4));
                sample(&mut placement, 4, frame.unwrap(), Source::Slow, 1);
            }
            carry_out(&mut placement) > 0
        })
    };
    // Page 4 itself reaches the cooling threshold with its 16th use.
    assert_eq!(waits("hotset"), Some(160));
    // All are halved at the 61st wake-up, so that the others are cold when page 4 is hot.
    assert_eq!(waits("hotset:decay=60"), Some(110));
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
fn thresholds_that_contradict_each_other_are_refused() {
    let error = Placement::on("hotset:cool=8", tiered(3, 5))
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        "page policy `hotset`: `cool=8`: must be more than hot-loads and hot-stores (8), or no page stays hot"
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
