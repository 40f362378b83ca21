//! Every policy of the registry under random faults, unmaps, samples, wake-ups and moves that may be late, passed over
//! or overtaken by the end of their page. A plain map of pages to frames is the reference.

mod common;

use std::collections::BTreeMap;

use common::{cached, spec, tiered, two_sockets_cached, two_sockets_tiered, with_dimms};
use proptest::prelude::*;
use varve_access::{Fault, Move, Pager, Sample, Source};
use varve_pages::{Placement, Topology, policies};

#[derive(Clone, Debug)]
enum Step {
    Fault {
        socket: u32,
        write: bool,
    },
    Unmap(prop::sample::Index),
    Sample {
        page: prop::sample::Index,
        source: u8,
        times: u8,
    },
    /// Wake up; carry out some moves, drop others, unmap the page of one in between.
    Tick {
        drop: u8,
        unmap: Option<prop::sample::Index>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (0u32..3, any::<bool>()).prop_map(|(socket, write)| Step::Fault { socket, write }),
        2 => index().prop_map(Step::Unmap),
        8 => (index(), 0u8..3, 1u8..20)
            .prop_map(|(page, source, times)| Step::Sample { page, source, times }),
        2 => (0u8..6, prop::option::weighted(0.3, index()))
            .prop_map(|(drop, unmap)| Step::Tick { drop, unmap }),
    ]
}

/// Pages and frames as they ought to be.
struct World {
    placement: Placement,
    pages: BTreeMap<u64, u32>,
    next_vpn: u64,
}

impl World {
    fn pick(&self, index: &prop::sample::Index) -> Option<(u64, u32)> {
        let at = index.index(self.pages.len().max(1));
        self.pages.iter().nth(at).map(|(vpn, frame)| (*vpn, *frame))
    }

    fn unmap(&mut self, index: &prop::sample::Index) {
        if let Some((vpn, frame)) = self.pick(index) {
            self.placement.unmap(vpn, frame);
            self.pages.remove(&vpn);
        }
    }

    fn tick(&mut self, drop: u8, unmap: Option<&prop::sample::Index>) -> Result<(), TestCaseError> {
        let mut moves: Vec<Move> = Vec::new();
        self.placement.tick(0, &mut moves);
        for wanted in &moves {
            let frame = self.pages.get(&wanted.vpn);
            prop_assert_eq!(frame, Some(&wanted.from), "moves a page from where it is");
        }
        let mut left = Vec::new();
        for (at, done) in moves.iter().enumerate() {
            // A move into a frame that an earlier one leaves cannot go on when that one was passed over.
            let passed_over = (at as u8 % 5 < drop && drop < 3)
                || self
                    .pages
                    .values()
                    .any(|f| *f == done.to && !left.contains(f));
            if let Some(index) = unmap.filter(|_| at == moves.len() / 2) {
                self.unmap(index);
            }
            if passed_over || self.pages.get(&done.vpn) != Some(&done.from) {
                continue;
            }
            prop_assert!(
                !self.pages.values().any(|frame| *frame == done.to),
                "the target is empty"
            );
            self.placement.moved(done);
            self.pages.insert(done.vpn, done.to);
            left.push(done.from);
        }
        Ok(())
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            &Step::Fault { socket, write } => {
                let vpn = self.next_vpn;
                self.next_vpn += 1;
                let fault = Fault {
                    vpn,
                    thread: 0,
                    socket,
                    write,
                    now: 0,
                };
                if let Ok(frame) = self.placement.fault(&fault) {
                    prop_assert!(
                        !self.pages.values().any(|f| *f == frame),
                        "{frame} handed out twice"
                    );
                    self.pages.insert(vpn, frame);
                }
            }
            Step::Unmap(index) => self.unmap(index),
            Step::Sample {
                page,
                source,
                times,
            } => {
                if let Some((vpn, frame)) = self.pick(page) {
                    let source = [Source::Fast, Source::Slow, Source::Store][*source as usize];
                    for _ in 0..*times {
                        self.placement.sample(&Sample {
                            vpn,
                            frame,
                            source,
                            thread: 0,
                            now: 0,
                        });
                    }
                }
            }
            Step::Tick { drop, unmap } => self.tick(*drop, unmap.as_ref())?,
        }
        self.check()
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let placement = &self.placement;
        let mapping: BTreeMap<u64, u32> = placement.mapping().map(|(f, vpn)| (vpn, f)).collect();
        prop_assert_eq!(&mapping, &self.pages);
        let dump = placement.dump();
        let counters = dump.counters;
        prop_assert_eq!(counters.faults - counters.unmaps, self.pages.len() as u64);
        prop_assert_eq!(
            counters.moves_asked,
            counters.moves_done + counters.moves_cancelled + dump.in_flight
        );
        for node in &dump.nodes {
            prop_assert_eq!(node.frames, node.free + node.pages + node.reserved);
        }
        let reserved: u32 = dump.nodes.iter().map(|node| node.reserved).sum();
        prop_assert_eq!(
            placement.frames().used(),
            self.pages.len() as u64 + u64::from(reserved)
        );
        if let (Some(heat), true) = (placement.policy().heat(), dump.conflicts.is_some()) {
            // A bin is at least as hot as its pages together, up to the highest level.
            for &frame in self.pages.values() {
                let frames = placement.frames();
                let pages: u32 = frames.bin_mates(frame).map(|mate| heat.total(mate)).sum();
                let bin = frames.bin_heat(frame);
                prop_assert!(bin >= pages.min(200), "{bin} for pages of {pages}");
                // Halving rounds the loads and the stores of each page down, and the bin's heat as a whole.
                let rounding = 2 * frames.bin_mates(frame).count() as u32;
                prop_assert!(bin <= pages + rounding, "{bin} for pages of {pages}");
            }
        }
        prop_assert!(dump.to_string().contains("metadata"));
        Ok(())
    }
}

fn machines() -> [Topology; 6] {
    [
        cached(60, 8),
        tiered(10, 40),
        two_sockets_cached(),
        two_sockets_tiered(),
        with_dimms(1, 9),
        with_dimms(2, 3),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_policy_loses_or_doubles_a_frame(steps in prop::collection::vec(step(), 1..160)) {
        let more = ["hotset:spare=6MiB", "hotset:period=1ms", "dynamic:period=1ms,cool=40", "trays:hot=0+16MiB,limit=4MiB,remote=0+6MiB"];
        let specs = policies().iter().map(spec).chain(more.map(String::from));
        for spec in specs {
            let mut fits = 0;
            for topology in machines() {
                let Ok(placement) = Placement::on(&spec, topology) else { continue };
                fits += 1;
                let mut world = World { placement, pages: BTreeMap::new(), next_vpn: 0 };
                for step in &steps {
                    world.take(step)?;
                }
                // Everything can be freed, and then all of memory handed out again, each frame once.
                while let Some((vpn, frame)) = world.pages.pop_first() {
                    world.placement.unmap(vpn, frame);
                }
                world.placement.tick(0, &mut Vec::new());
                world.check()?;
                prop_assert_eq!(world.placement.frames().used(), 0);
                if !["fast:", "slow:"].contains(&spec.as_str()) {
                    for _ in 0..world.placement.frames().len() {
                        world.take(&Step::Fault { socket: 0, write: false })?;
                    }
                    prop_assert_eq!(world.pages.len() as u32, world.placement.frames().len());
                }
            }
            prop_assert!(fits >= 2, "{spec} fits {fits} machines");
        }
    }

    #[test]
    fn static_keeps_bins_even_while_pages_only_come(
        frames in 1u32..400,
        bins in 1u32..40,
        share in 0.0f64..=1.0,
    ) {
        let mut placement = Placement::on("static", cached(frames, bins)).unwrap();
        let pages = (f64::from(frames) * share) as u64;
        let placed = common::fill(&mut placement, pages);
        let count = common::per_bin(&placed, bins);
        // Bins differ in frames by one at most, so that only the last row may be uneven for want of frames.
        let of = |bin| count.get(&bin).copied().unwrap_or(0);
        let (least, most) = (0..bins.min(frames)).map(of).fold((u32::MAX, 0), |(l, m), n| (l.min(n), m.max(n)));
        prop_assert!(most - least <= 1, "{least} to {most}");
    }
}

#[test]
fn the_registry_is_in_order() {
    let mut names: Vec<&str> = policies().iter().map(|entry| entry.name).collect();
    for entry in policies() {
        assert!(
            !entry.about.is_empty() && !entry.source.is_empty(),
            "{}",
            entry.name
        );
        for param in entry.params {
            assert!(!param.about.is_empty(), "{}: {}", entry.name, param.key);
        }
        // Each parameter can be given its own default.
        let given = entry
            .params
            .iter()
            .filter(|param| !param.default.is_empty());
        let given: Vec<String> = given.map(|p| format!("{}={}", p.key, p.default)).collect();
        let spec = format!("{},{}", spec(entry), given.join(","));
        varve_pages::policies::parse(&spec).unwrap();
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), policies().len());
}
