//! Properties of every shape, whichever threads run it.

use super::{ENTRIES, Random, shapes};
use crate::harness::{self, CallOrder};
use crate::registry::build;
use varve_access::Kind;

/// However many threads share it, the work is the same: speed-up curves compare like with like.
#[test]
fn the_work_does_not_depend_on_the_threads() {
    for entry in ENTRIES {
        let tally = |threads: u32| {
            // A multiple of 12 lines of every array, so that all chunks are equal.
            let line = format!(
                "{}:bytes=3MiB,passes=2,scale=8,threads={threads}",
                entry.name
            );
            harness::run(&mut *build(&line).unwrap(), CallOrder::RoundRobin, 1 << 24)
        };
        let (one, four) = (tally(1), tally(4));
        let off = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs();
        assert!(
            off(one.accesses(), four.accesses()) < 0.05,
            "{}: {} accesses with a thread, {} with four",
            entry.name,
            one.accesses(),
            four.accesses()
        );
        assert!(
            off(one.instructions, four.instructions) < 0.05,
            "{}",
            entry.name
        );
    }
}

/// Reads and writes are those of the shape for each step, and each block is passed over `reuse` times.
#[test]
fn a_step_takes_a_line_of_every_array_as_often_as_the_block_is_reused() {
    let bytes = 64 * 6 * 1000;
    let line = format!("fluidanimate:bytes={bytes},passes=3,threads=2,touch=64");
    let tally = harness::run(&mut *build(&line).unwrap(), CallOrder::Random(3), 1 << 20);
    let s = shapes::FLUIDANIMATE;
    let steps = 1000 * 3 * u64::from(s.reuse);
    assert_eq!(tally.of(Kind::Read), steps * u64::from(s.reads));
    assert_eq!(tally.of(Kind::Update), steps * u64::from(s.writes));
}

#[test]
fn pointers_are_followed_one_after_the_other() {
    assert_eq!(shapes::CANNEAL.random, Random::Chase);
    let tally = harness::run(
        &mut *build("canneal:bytes=1MiB,passes=1,threads=1").unwrap(),
        CallOrder::OneByOne,
        1 << 20,
    );
    assert_eq!(tally.dependent, tally.of(Kind::Read));
}
