//! GUPS, replayed and counted.

use std::collections::HashMap;

use super::*;
use crate::harness::{self, CallOrder};

const SMALL: &str = "bytes=1MiB,threads=3,updates=2000,values";

fn make(text: &str) -> Steady<Gups> {
    Gups::new(&ENTRIES[0].values(text).unwrap()).unwrap()
}

fn updated_items(gups: &mut Steady<Gups>) -> Vec<(usize, u64)> {
    let base = gups.kernel.array.base;
    let mut items = Vec::new();
    harness::each(gups, CallOrder::RoundRobin, |thread, op| {
        if op.kind == Kind::Update {
            items.push((thread, (op.addr - base) / ITEM));
        }
    });
    items
}

#[test]
fn the_array_holds_what_a_replay_of_the_random_numbers_says() {
    for place in ["shares", "one", "scattered"] {
        let mut gups = make(&format!("{SMALL},place={place}"));
        let mut replay: HashMap<u64, u64> = HashMap::new();
        for mut thread in gups.kernel.threads.clone() {
            for _ in 0..2000 {
                let (item, number) = thread.draw(gups.kernel.to_hot);
                *replay.entry(item).or_default() ^= number;
            }
        }
        harness::run(&mut gups, CallOrder::Random(5), 1 << 20);
        for (index, value) in gups.kernel.values.as_ref().unwrap().iter().enumerate() {
            assert_eq!(*value, replay.get(&(index as u64)).copied().unwrap_or(0));
        }
    }
}

#[test]
fn order_does_not_matter() {
    for place in ["shares", "one", "scattered"] {
        let tally = harness::assert_order_does_not_matter(
            || Box::new(make(&format!("{SMALL},place={place}"))),
            1 << 20,
        );
        assert_eq!(tally.of(Kind::Update), 6000);
        assert_eq!(tally.pages, 256);
    }
}

#[test]
fn each_update_has_a_wait_for_loads_behind_it_and_no_other_has_one() {
    let kinds = |text: &str| {
        let mut gups = make(text);
        let (mut kinds, mut instructions) = (Vec::new(), 0);
        harness::each(&mut gups, CallOrder::OneByOne, |_, op| {
            if matches!(op.kind, Kind::Update | Kind::Fence) {
                kinds.push((op.kind, op.kind == Kind::Fence && op.addr == Op::LOADS));
                instructions += u64::from(op.instructions);
            }
        });
        (kinds, instructions)
    };
    let (serial, more) = kinds("bytes=1MiB,threads=1,updates=500");
    assert_eq!(
        serial,
        [(Kind::Update, false), (Kind::Fence, true)].repeat(500)
    );
    let (overlapping, fewer) = kinds("bytes=1MiB,threads=1,updates=500,serial=no");
    assert_eq!(overlapping, [(Kind::Update, false)].repeat(500));
    assert_eq!(more - fewer, 500 * 44);
}

#[test]
fn nine_of_ten_updates_are_hot_and_hot_is_a_tenth() {
    let mut gups = make("bytes=8MiB,threads=4,updates=25k");
    let share = (8 << 20) / ITEM / 4;
    let items = updated_items(&mut gups);
    assert!(
        items
            .iter()
            .all(|&(thread, item)| item / share == thread as u64)
    );
    let hot = items
        .iter()
        .filter(|&&(_, item)| item % share < share / 10)
        .count();
    // 90 % and a tenth of the remaining 10 %.
    assert!(
        (hot as f64 / items.len() as f64 - 0.91).abs() < 0.005,
        "{hot}"
    );
}

#[test]
fn one_hot_piece_is_contiguous_and_shared() {
    let mut gups = make("bytes=8MiB,threads=2,updates=50k,place=one,to_hot=100%");
    let items = updated_items(&mut gups);
    let n = (8 << 20) / ITEM;
    let HotSet::Run { start, count } = gups.kernel.threads[1].hot else {
        panic!("not one piece")
    };
    assert_eq!(count, n / 10);
    assert!(
        items
            .iter()
            .all(|&(_, item)| (item + n - start) % n < count)
    );
    assert!(items.iter().any(|&(thread, _)| thread == 1));
}

#[test]
fn a_shift_moves_the_hot_set() {
    // The harness lets 10 ns pass per op, so 1000 updates take 10 us. With this seed the two places are apart.
    let mut gups =
        make("bytes=8MiB,threads=1,updates=1900,place=one,to_hot=100%,shift=10us,seed=2,serial=no");
    let items = updated_items(&mut gups);
    let n = (8 << 20) / ITEM;
    let HotSet::Run { start, count } = gups.kernel.threads[0].hot else {
        panic!("not one piece")
    };
    let in_last = |items: &[(usize, u64)]| {
        items
            .iter()
            .filter(|&&(_, item)| (item + n - start) % n < count)
            .count()
    };
    assert!(
        in_last(&items[1600..]) == 300,
        "the end is in the last hot set"
    );
    assert!(in_last(&items[..500]) < 300, "the beginning is elsewhere");
}

#[test]
fn the_clock_ends_it() {
    let mut gups = make("bytes=1MiB,threads=2,updates=0,time=50us,serial=no");
    let tally = harness::run(&mut gups, CallOrder::RoundRobin, 1 << 20);
    let updates = tally.of(Kind::Update);
    assert!((10_000..11_000).contains(&updates), "{updates}");
    // At full size: with a program that is scaled down it is a part of that.
    let mut gups = make("bytes=10MiB,threads=2,updates=0,time=500us,scale=10,serial=no");
    let tally = harness::run(&mut gups, CallOrder::RoundRobin, 1 << 20);
    assert_eq!(tally.of(Kind::Update), updates);
}

#[test]
fn a_run_without_end_is_refused() {
    let values = ENTRIES[0].values("updates=0").unwrap();
    let error = Gups::new(&values).err().unwrap().to_string();
    assert_eq!(
        error,
        "workload `gups`: `updates=0`: the run must end: set `updates` or `time`"
    );
    let values = ENTRIES[0].values("values").unwrap();
    assert!(
        Gups::new(&values)
            .err()
            .unwrap()
            .to_string()
            .contains("bytes=96GiB")
    );
}
