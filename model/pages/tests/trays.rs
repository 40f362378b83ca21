//! Colours on DIMMs, as stories, and against invariants.

use proptest::prelude::*;
use std::collections::BTreeMap;
use varve_access::{Fault, Move, Pager};
use varve_machine::Machine;
use varve_pages::governor::Decision;
use varve_pages::trays::{Colour, DimmMap, Trays};
use varve_pages::{Frames, NodeFrames, Placement, Topology};

/// Two sockets with four DIMMs of eight frames each.
fn topology() -> Topology {
    let node = |socket| NodeFrames {
        frames: 32,
        fast: true,
        socket,
        bins: None,
        ways: 1,
        dimms: 4,
    };
    Topology {
        page_bytes: 4096,
        nodes: vec![node(0), node(1)],
    }
}

fn trays(hot: usize, limit: Option<u32>) -> (Trays, Frames) {
    let topology = topology();
    let map = DimmMap::of(&topology).unwrap();
    let trays = Trays::new(&map, hot, limit).unwrap();
    (trays, Frames::in_order(&topology))
}

fn put(trays: &mut Trays, frames: &mut Frames, colour: Colour, pages: u32) -> Vec<u32> {
    let place = |_| trays.place(frames, 0, colour).unwrap();
    (0..pages).map(place).collect()
}

/// Carries out all remaps; how many there were.
fn settle(trays: &mut Trays, frames: &mut Frames) -> usize {
    let mut remaps = Vec::new();
    trays.remaps(frames, &mut remaps);
    for r in &remaps {
        trays.moved(*r);
        assert!(frames.give(r.from));
    }
    remaps.len()
}

#[test]
fn cold_pages_fill_one_dimm_after_the_other_and_hot_ones_take_theirs_in_turn() {
    let (mut trays, mut frames) = trays(2, None);
    assert_eq!(put(&mut trays, &mut frames, Colour::Hot, 4), [0, 8, 1, 9]);
    let cold = put(&mut trays, &mut frames, Colour::Cold, 10);
    assert_eq!(cold, [16, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
    assert_eq!(trays.state().pages[0], [(2, 0), (2, 0), (0, 8), (0, 2)]);
}

#[test]
fn where_a_colour_finds_no_room_it_takes_the_other_ones_dimms_and_then_the_other_socket() {
    let (mut trays, mut frames) = trays(1, None);
    put(&mut trays, &mut frames, Colour::Cold, 30);
    assert_eq!(trays.state().pages[0], [(0, 6), (0, 8), (0, 8), (0, 8)]);
    put(&mut trays, &mut frames, Colour::Hot, 4);
    assert_eq!(trays.state().pages[0][0], (2, 6));
    assert_eq!(trays.state().pages[1][0], (2, 0));
    assert_eq!(
        trays.place(&mut frames, 7, Colour::Cold),
        Some(40),
        "an unknown socket is the last"
    );
}

#[test]
fn more_hot_dimms_move_hot_pages_apart_and_cold_ones_out_of_the_way() {
    let (mut trays, mut frames) = trays(1, None);
    put(&mut trays, &mut frames, Colour::Hot, 6);
    put(&mut trays, &mut frames, Colour::Cold, 5);
    assert_eq!(settle(&mut trays, &mut frames), 0, "nothing changed");
    trays.set_hot(3);
    assert_eq!(settle(&mut trays, &mut frames), 4 + 5);
    assert_eq!(trays.state().pages[0], [(2, 0), (2, 0), (2, 0), (0, 5)]);
    assert_eq!(settle(&mut trays, &mut frames), 0, "once is enough");
    trays.set_hot(1);
    settle(&mut trays, &mut frames);
    assert_eq!(trays.state().pages[0], [(6, 0), (0, 0), (0, 0), (0, 5)]);
}

#[test]
fn a_full_hot_dimm_makes_another_one_hot() {
    let (mut trays, mut frames) = trays(1, Some(4));
    put(&mut trays, &mut frames, Colour::Cold, 3);
    put(&mut trays, &mut frames, Colour::Hot, 4);
    assert_eq!((trays.hot(), trays.state().overflows), (1, 0));
    assert_eq!(
        put(&mut trays, &mut frames, Colour::Hot, 1),
        [11],
        "beside the cold ones, for now"
    );
    assert_eq!((trays.hot(), trays.state().overflows), (2, 1));
    settle(&mut trays, &mut frames);
    assert_eq!(trays.state().pages[0], [(3, 0), (2, 0), (0, 3), (0, 0)]);
    put(&mut trays, &mut frames, Colour::Hot, 12);
    assert_eq!(
        (trays.hot(), trays.state().overflows),
        (4, 3),
        "all, and then no more"
    );
}

#[test]
fn a_machine_that_interleaves_and_maps_with_holes_are_refused() {
    let optane = Machine::load("optane-6242").unwrap();
    let error = |spec: &str, m: &Machine| {
        let made = Placement::new(spec, m, 2 << 20);
        made.err().expect(spec).to_string()
    };
    assert!(error("channels", &optane).contains("channels of this machine are interleaved"));
    let haswell = Machine::load("haswell-2620v3").unwrap();
    let says = |spec: &str| error(spec, &haswell);
    assert_eq!(
        says("trays:hot=0+0,map=0+16GiB/0x800000000+32GiB/0x1000000000+64GiB"),
        "the DIMM map does not cover the memory: no DIMM has the 17179869184 B from 0x400000000 on; name each DIMM as BASE+BYTES, \
         joined by /"
    );
    assert!(says("trays:hot=0+0,map=0+64GiB").contains("does not cover the memory"));
    assert!(
        says("trays:hot=0+0,map=0+64GiB/0x1000000000+32GiB/0x200000+2MiB/0x1800000000+32GiB")
            .contains("another DIMM")
    );
    assert!(says("trays:hot=0+0,map=0+128GiB").contains("larger than the rest of"));
    assert!(
        says("trays:hot=0+0,map=0+64GiB/0x1000000000+64GiB/0x2000000000+1GiB")
            .contains("no DRAM of this machine")
    );
    assert!(says("trays:hot=0+0,dimms=5").contains("a socket of this machine has 4"));
    assert!(says("trays:hot=0+0,model=12/10").contains("10 GB/s for 2 DIMMs"));
    assert!(says("trays:hot=0+0,model=x").contains("bandwidths in GB/s"));
    for fits in [
        "trays:hot=0+0",
        "trays:hot=0+0,map=0+64GiB/0x1000000000+64GiB",
        "channels",
    ] {
        assert!(Placement::new(fits, &haswell, 2 << 20).is_ok(), "{fits}");
    }
}

/// The whole policy, as the model calls it: bandwidth rises, two samples agree, hot pages move apart.
#[test]
fn the_governor_moves_pages_when_two_samples_agree() {
    let spec = "trays:hot=0+16KiB,model=10/20/30,sample=1us,tick=1us";
    let mut p = Placement::on(spec, topology()).unwrap();
    for vpn in 0..8 {
        let fault = Fault {
            vpn,
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        };
        p.fault(&fault).unwrap();
    }
    let mut bytes = 0;
    let mut tick = |p: &mut Placement, us: u64, gbps: u64| {
        bytes += gbps * 1000;
        let mut moves: Vec<Move> = Vec::new();
        p.traffic(us * 1000, bytes);
        p.tick(us * 1000, &mut moves);
        moves.iter().for_each(|m| p.moved(m));
        moves.len()
    };
    assert_eq!([tick(&mut p, 1, 5), tick(&mut p, 2, 25)], [0, 0]);
    assert_eq!(
        tick(&mut p, 3, 25),
        2 + 4,
        "hot pages spread, cold ones leave"
    );
    let state = p.policy().trays().unwrap();
    assert_eq!(
        state.pages[0].iter().map(|p| p.0).collect::<Vec<_>>(),
        [2, 1, 1, 0]
    );
    assert_eq!(state.decisions, [(3000, Decision::Remap(3))]);
    // It did not help: undone after ten samples, the first one not counted.
    assert!((4..14).all(|us| tick(&mut p, us, 25) == 0));
    assert_eq!(tick(&mut p, 14, 25), 2);
    assert_eq!(p.policy().trays().unwrap().hot, 1);
}

/// Neighbours are used together, so that a DIMM that becomes hot takes pages from everywhere, and so do those that stay.
#[test]
fn pages_that_make_room_are_evenly_spaced() {
    let (mut trays, mut frames) = trays(1, None);
    let hot = put(&mut trays, &mut frames, Colour::Hot, 8);
    assert_eq!(hot, [0, 1, 2, 3, 4, 5, 6, 7]);
    trays.set_hot(2);
    assert!(trays.is_spreading());
    assert_eq!(settle(&mut trays, &mut frames), 4);
    assert!(!trays.is_spreading());
    let left: Vec<u32> = (0..8).filter(|f| trays.colour(*f).is_some()).collect();
    assert_eq!(left, [0, 2, 4, 6]);
    trays.set_hot(4);
    assert_eq!(settle(&mut trays, &mut frames), 4);
    assert_eq!(trays.state().pages[0], [(2, 0); 4]);
    trays.set_hot(3);
    let mut remaps = Vec::new();
    trays.remaps(&mut frames, &mut remaps);
    let to: Vec<u32> = remaps.iter().map(|r| r.to / 8).collect();
    assert_eq!(to, [0, 1], "in turn, not all to the first one");
    trays.moved(remaps[0]);
    assert!(trays.is_spreading(), "one is still on its way");
    trays.cancelled(remaps[1]);
    assert!(!trays.is_spreading());
}

proptest! {
    /// Whatever comes in whatever order: a page has one frame, DIMMs are never over-full, and after remaps every hot page is on a
    /// hot DIMM and every cold one on a cold one, as long as there is room.
    #[test]
    fn pages_are_where_their_colours_want_them(
        steps in prop::collection::vec((0u8..8, 0u32..64), 1..120), limit in prop::option::of(1u32..9)
    ) {
        let (mut trays, mut frames) = trays(1, limit);
        let mut here: BTreeMap<u32, Colour> = BTreeMap::new();
        for (what, n) in steps {
            match what {
                0..=4 => {
                    let colour = if what < 2 { Colour::Hot } else { Colour::Cold };
                    // Half full: there is room for everything on its own DIMMs.
                    if here.len() < 12
                        && let Some(frame) = trays.place(&mut frames, 0, colour) {
                            prop_assert!(here.insert(frame, colour).is_none(), "frame {frame} twice");
                            prop_assert!(frames.is_used(frame));
                        }
                }
                5 => {
                    if let Some(&frame) = here.keys().nth(n as usize % here.len().max(1)) {
                        here.remove(&frame);
                        trays.freed(frame);
                        frames.give(frame);
                    }
                }
                6 => trays.set_hot(1 + n as usize % 4),
                _ => {
                    let mut remaps = Vec::new();
                    trays.remaps(&mut frames, &mut remaps);
                    for (i, r) in remaps.iter().enumerate() {
                        // Some are not carried out.
                        if n == 0 && i % 3 == 0 {
                            trays.cancelled(*r);
                            frames.give(r.to);
                            continue;
                        }
                        let colour = here.remove(&r.from);
                        prop_assert!(colour.is_some(), "no page was there");
                        prop_assert!(here.insert(r.to, colour.unwrap()).is_none());
                        trays.moved(*r);
                        frames.give(r.from);
                    }
                }
            }
            let state = trays.state();
            let count = |dimm: u32, colour| here.iter().filter(|(f, c)| **f / 8 == dimm && **c == colour).count() as u32;
            for dimm in 0..4 {
                prop_assert_eq!(state.pages[0][dimm as usize], (count(dimm, Colour::Hot), count(dimm, Colour::Cold)));
            }
            prop_assert_eq!(frames.used(), here.len() as u64);
        }
        trays.set_hot(if trays.hot() == 4 { 1 } else { trays.hot() + 1 });
        while settle(&mut trays, &mut frames) > 0 {}
        let state = trays.state();
        let hot = trays.hot();
        let (all, most) = (state.pages[0].iter().map(|p| p.0).sum::<u32>(), state.pages[0].iter().map(|p| p.0).max().unwrap());
        // With all DIMMs hot, cold pages stay where they are and may be in the way.
        if all <= 8 && hot < 4 {
            prop_assert!(state.pages[0][hot..].iter().all(|p| p.0 == 0), "{state:?}");
            prop_assert!(most <= all.div_ceil(hot as u32), "{state:?}");
        }
        if hot < 4 {
            let room = 8 * (4 - hot) as u32;
            if state.pages[0].iter().map(|p| p.1).sum::<u32>() <= room && all <= 8 {
                prop_assert!(state.pages[0][..hot].iter().all(|p| p.1 == 0), "{state:?}");
            }
        }
    }
}
