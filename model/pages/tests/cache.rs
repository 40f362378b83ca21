//! Policies in front of a small direct-mapped (or N-way) cache of lines: do their decisions help?
//!
//! The cache is the obvious one: a vector of sets, each a list of lines, most recent first. Accesses are random,
//! nine of ten to the hot pages (GUPS, Johnny Cache section 5.2).

mod common;

use std::collections::HashSet;

use common::{cached, tiered, touch};
use varve_access::random::Rng;
use varve_access::{Pager, Sample, Source};
use varve_pages::{Conflicts, NodeFrames, Placement, Topology};

/// Lines of a page; small, so that the cache is warm soon.
const LINES: u64 = 4;

struct Cache {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl Cache {
    fn hit(&mut self, line: u64) -> bool {
        let at = (line % self.sets.len() as u64) as usize;
        let set = &mut self.sets[at];
        let found = set.iter().position(|l| *l == line);
        found.map(|way| set.remove(way));
        set.insert(0, line);
        set.truncate(self.ways);
        found.is_some()
    }
}

struct Run {
    placement: Placement,
    frames: Vec<u32>,
    hot: Vec<u64>,
    cache: Option<Cache>,
    rng: Rng,
    accesses: u64,
    moved: u64,
}

impl Run {
    fn new(spec: &str, topology: Topology, pages: u64, hot: &[u64], seed: u64) -> Run {
        let node = topology.nodes[0];
        let mut placement = Placement::on(spec, topology).unwrap();
        let frames = (0..pages)
            .map(|vpn| placement.fault(&touch(vpn)).unwrap())
            .collect();
        let cache = node.bins.map(|bins| Cache {
            sets: vec![Vec::new(); bins as usize * LINES as usize],
            ways: node.ways as usize,
        });
        let rng = Rng::from_state(seed);
        Run {
            placement,
            frames,
            hot: hot.to_vec(),
            cache,
            rng,
            accesses: 0,
            moved: 0,
        }
    }

    /// Share of `accesses` that fast memory serves.
    fn hits(&mut self, accesses: u64) -> f64 {
        let daemons = self.placement.daemons();
        let mut hits = 0;
        for _ in 0..accesses {
            self.accesses += 1;
            let vpn = match self.rng.below(10) {
                0 => self.rng.below(self.frames.len() as u64),
                _ => self.hot[self.rng.below(self.hot.len() as u64) as usize],
            };
            let (line, store) = (self.rng.below(LINES), self.rng.below(2) == 0);
            let frame = self.frames[vpn as usize];
            let hit = match &mut self.cache {
                Some(cache) => cache.hit(u64::from(frame) * LINES + line),
                None => self.placement.frames().is_fast(frame),
            };
            hits += u64::from(hit);
            if daemons.sample_period > 0 && self.accesses.is_multiple_of(daemons.sample_period) {
                let source = match (store, hit) {
                    (true, _) => Source::Store,
                    (_, true) => Source::Fast,
                    (_, false) => Source::Slow,
                };
                self.placement.sample(&Sample {
                    vpn,
                    frame,
                    source,
                    thread: 0,
                    now: 0,
                });
            }
            // One access stands for 100 ns.
            if daemons.period > 0 && self.accesses * 100 % daemons.period < 100 {
                let mut moves = Vec::new();
                self.placement.tick(self.accesses * 100, &mut moves);
                for done in moves {
                    self.frames[done.vpn as usize] = done.to;
                    self.placement.moved(&done);
                    self.moved += 1;
                }
            }
        }
        hits as f64 / accesses as f64
    }

    fn conflicts(&self) -> Conflicts {
        let hot: HashSet<u64> = self.hot.iter().copied().collect();
        let pages = self
            .placement
            .mapping()
            .map(|(frame, vpn)| (frame, hot.contains(&vpn)));
        Conflicts::count(self.placement.topology(), pages)
    }
}

/// Twice the cache, 10 % hot: 256 pages on 128 bins, 26 of them hot.
fn gups(spec: &str, seed: u64) -> Run {
    let hot: Vec<u64> = (100..126).collect();
    // The array is touched in the order of a program that fills it by many threads: shuffled.
    let mut run = Run::new(spec, cached(1280, 128), 256, &hot, seed);
    let mut order: Vec<u64> = (0..256).collect();
    for at in (1..256).rev() {
        order.swap(at, run.rng.below(at as u64 + 1) as usize);
    }
    run.hot
        .iter_mut()
        .for_each(|vpn| *vpn = order[*vpn as usize]);
    run
}

const SCALED: &str = "scale=1000";

#[test]
fn dynamic_ends_the_conflicts_between_hot_pages_and_moves_little() {
    for seed in 0..6 {
        let mut run = gups(&format!("dynamic:{SCALED}"), seed);
        let before = run.conflicts();
        let early = run.hits(20_000);
        run.hits(200_000);
        let late = run.hits(40_000);
        let after = run.conflicts();
        assert_eq!(after.hot_in_conflict, 0, "seed {seed}: {after:?}");
        assert!(late >= early, "seed {seed}: {early} to {late}");
        // One page of each pair must move; samples of cold pages may add a few.
        assert!(
            run.moved >= before.hot_to_move && run.moved <= before.hot_to_move + 20,
            "{}",
            run.moved
        );
    }
}

#[test]
fn the_order_of_the_paper_holds() {
    // Mean over placements: dynamic > static > random, and static loses to pairs of hot pages only.
    let mean = |spec: &str| {
        let runs = (0..32).map(|seed| {
            let spec = if spec == "random" {
                format!("random:seed={seed}")
            } else {
                spec.to_string()
            };
            let mut run = gups(&spec, seed);
            run.hits(150_000);
            run.hits(30_000)
        });
        runs.sum::<f64>() / 32.0
    };
    let dynamic = mean(&format!("dynamic:{SCALED}"));
    let (fixed, random) = (mean("static"), mean("random"));
    assert!(
        dynamic > fixed + 0.01 && fixed > random + 0.02,
        "{dynamic} {fixed} {random}"
    );
}

#[test]
fn an_adversary_defeats_static_and_a_rare_daemon_gets_it_back() {
    // The hot pages are those that static pairs when equal bins come in order: page i and page i + 128 share a bin.
    let hot: Vec<u64> = (0..13).flat_map(|page| [page, page + 128]).collect();
    let run = |spec: &str| {
        let mut run = Run::new(spec, cached(1280, 128), 256, &hot, 5);
        run.hits(600_000);
        (run.hits(50_000), run.conflicts())
    };
    let (fixed, conflicts) = run("static:seed=0");
    assert_eq!(conflicts.hot_in_conflict, 26);
    // Sampled five times less often, and woken ten times less often.
    let (dynamic, conflicts) = run("dynamic:seed=0,scale=1000,sample-period=50k,period=100ms");
    assert_eq!(conflicts.hot_in_conflict, 0);
    assert!(dynamic > fixed + 0.3, "{dynamic} against {fixed}");
}

#[test]
fn two_ways_hold_what_one_way_loses() {
    let hot: Vec<u64> = (0..13).flat_map(|page| [page, page + 64]).collect();
    let node = NodeFrames {
        frames: 1280,
        fast: false,
        socket: 0,
        bins: Some(64),
        ways: 2,
        dimms: 0,
    };
    let topology = Topology {
        page_bytes: 2 << 20,
        nodes: vec![node],
    };
    let mut run = Run::new("static:seed=0", topology, 256, &hot, 5);
    run.hits(100_000);
    let conflicts = run.conflicts();
    assert_eq!(
        (conflicts.hot_in_conflict, conflicts.pages_in_conflict),
        (0, 256)
    );
    assert!(run.hits(50_000) > 0.8);
}

#[test]
fn hotset_brings_the_hot_pages_to_dram() {
    let hot: Vec<u64> = (200..226).collect();
    let mut run = Run::new(&format!("hotset:{SCALED}"), tiered(128, 1152), 256, &hot, 1);
    let early = run.hits(2_000);
    run.hits(300_000);
    let late = run.hits(20_000);
    let in_dram = hot
        .iter()
        .filter(|&&vpn| run.frames[vpn as usize] < 128)
        .count();
    assert_eq!(in_dram, 26);
    assert!(early < 0.3 && late > 0.9, "{early} to {late}");
    // Each promotion into full DRAM is an exchange of two pages.
    assert!(run.moved >= 52, "{}", run.moved);
}

#[test]
fn hotset_cannot_help_when_every_page_is_a_little_hot() {
    // Johnny Cache, section 5.2.2: hot items scattered over all pages.
    let all: Vec<u64> = (0..256).collect();
    let mut tiers = Run::new(&format!("hotset:{SCALED}"), tiered(128, 1152), 256, &all, 1);
    tiers.hits(200_000);
    let share = tiers.hits(50_000);
    assert!((0.4..0.62).contains(&share), "{share}");
}
