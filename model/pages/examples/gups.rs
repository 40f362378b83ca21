//! How pages conflict in a 48 GB DRAM cache: 96 GB of 2 MiB pages over 504 GB of memory, 10 % of them hot and side by
//! side (GUPS, Johnny Cache section 5.2.1), at full size, under every policy for memory mode. No model of a machine: just
//! placement, and one sample after the other for the policy that wants them.
//!
//! `cargo run --release -p varve-pages --example gups`

use varve_access::random::Rng;
use varve_access::{Fault, Pager, Sample, Source};
use varve_pages::{Conflicts, Error, Expected, NodeFrames, Placement, Topology};

const PAGE: u64 = 2 << 20;
const PAGES: u64 = 96 << 9;
const HOT: std::ops::Range<u64> = PAGES / 2..PAGES / 2 + PAGES / 10;

fn main() -> Result<(), Error> {
    let node = NodeFrames {
        frames: 504 << 9,
        fast: false,
        socket: 0,
        bins: Some(48 << 9),
        ways: 1,
        dimms: 0,
    };
    let chance = Expected::by_chance(&node, PAGES, HOT.end - HOT.start);
    println!("                      cache used   hot pages in conflict       moved");
    let used = chance.bins_used * PAGE as f64 / (1u64 << 30) as f64;
    println!(
        "by chance (formula)   {used:6.1} GiB  {:6.2} %",
        100.0 * chance.hot_in_conflict
    );
    let oracle = format!(
        "oracle:hot={:#x}+{}",
        HOT.start * PAGE,
        (HOT.end - HOT.start) * PAGE
    );
    for spec in [
        "first-touch",
        "random:run=2MiB",
        "random",
        "random:run=1GiB",
        "static",
        &oracle,
        "dynamic",
    ] {
        let topology = Topology {
            page_bytes: PAGE,
            nodes: vec![node],
        };
        let mut placement = Placement::on(spec, topology)?;
        let mut frames = fill(&mut placement);
        let moved = sample(&mut placement, &mut frames);
        let pages = placement
            .mapping()
            .map(|(frame, vpn)| (frame, HOT.contains(&vpn)));
        let conflicts = Conflicts::count(placement.topology(), pages);
        let used = (conflicts.bins_used * PAGE) as f64 / (1u64 << 30) as f64;
        let name = spec.split(":hot").next().unwrap_or(spec);
        let share = 100.0 * conflicts.hot_conflict_share();
        let moved = (moved * PAGE) as f64 / (1u64 << 30) as f64;
        println!("{name:<20}  {used:6.1} GiB  {share:6.2} %                  {moved:6.2} GiB");
    }
    Ok(())
}

/// Touches the pages as 16 threads do that fill a sixteenth of the array each and race: whose page comes next is
/// chance. (One thread alone would lay the hot pages side by side, each in a bin of its own.)
fn fill(placement: &mut Placement) -> Vec<u32> {
    let mut frames = vec![0; PAGES as usize];
    let mut done = [0; 16];
    let mut rng = Rng::from_state(7);
    for _ in 0..PAGES {
        let mut thread = rng.below(16) as usize;
        while done[thread] == PAGES / 16 {
            thread = (thread + 1) % 16;
        }
        let vpn = thread as u64 * (PAGES / 16) + done[thread];
        done[thread] += 1;
        let fault = Fault {
            vpn,
            thread: thread as u32,
            socket: 0,
            write: true,
            now: 0,
        };
        frames[vpn as usize] = placement.fault(&fault).expect("504 GB hold 96 GB");
    }
    frames
}

/// Four million sampled updates, nine of ten on hot pages; the daemon wakes after every 1000.
fn sample(placement: &mut Placement, frames: &mut [u32]) -> u64 {
    if placement.daemons().sample_period == 0 {
        return 0;
    }
    let (mut rng, mut moved) = (Rng::from_state(1), 0);
    for i in 0..4_000_000 {
        let vpn = match rng.below(10) {
            0 => rng.below(PAGES),
            _ => HOT.start + rng.below(HOT.end - HOT.start),
        };
        let source = if i % 2 == 0 {
            Source::Slow
        } else {
            Source::Store
        };
        let frame = frames[vpn as usize];
        placement.sample(&Sample {
            vpn,
            frame,
            source,
            thread: 0,
            now: 0,
        });
        if i % 1000 == 0 {
            let mut moves = Vec::new();
            placement.tick(0, &mut moves);
            for done in moves {
                frames[done.vpn as usize] = done.to;
                placement.moved(&done);
                moved += 1;
            }
        }
    }
    moved
}
