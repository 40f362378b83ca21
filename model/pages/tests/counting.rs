//! Pages are counted as they come, go, move and change their colours, and no policy notices.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use common::{tiered, touch, with_dimms};
use proptest::prelude::*;
use varve_access::{Daemons, Fault, Move, Pager, Sample, Source};
use varve_pages::heat::Heat;
use varve_pages::trays::{Colour, DimmMap, TrayState};
use varve_pages::{Counting, Frames, InUse, Placement, Policy, Remap};

const OWNERS: usize = 3;

/// Frames of fast memory where there is slow memory too, and frames of a DIMM where there are DIMMs.
const FAST: u32 = 10;
const DIMM: u32 = 5;

fn owner(vpn: u64) -> usize {
    vpn as usize % OWNERS
}

#[derive(Clone, Debug)]
enum Step {
    Fault,
    Unmap(prop::sample::Index),
    Sample(prop::sample::Index),
    Recolour(prop::sample::Index, bool),
    Found(prop::sample::Index),
    Strayed(prop::sample::Index, prop::sample::Index),
    /// The daemon wakes, and at most this number of the moves that it wants are carried out.
    Tick(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => Just(Step::Fault),
        3 => index().prop_map(Step::Unmap),
        3 => index().prop_map(Step::Sample),
        3 => (index(), any::<bool>()).prop_map(|(page, hot)| Step::Recolour(page, hot)),
        1 => index().prop_map(Step::Found),
        2 => (index(), index()).prop_map(|(page, to)| Step::Strayed(page, to)),
        2 => (0usize..6).prop_map(Step::Tick),
    ]
}

/// A placement, and a plain map that is counted anew after each step.
struct World {
    placement: Placement,
    colours: bool,
    /// Pages by frame.
    pages: BTreeMap<u32, u64>,
    next_vpn: u64,
    most: InUse,
    most_fast: u64,
}

impl World {
    /// With DIMMs and colours, or with two memories.
    fn new(colours: bool) -> World {
        let (spec, topology) = match colours {
            true => ("trays:hot=0+40MiB,limit=6MiB", with_dimms(2, DIMM)),
            false => ("hotset", tiered(FAST, 30)),
        };
        let counting = Counting::new(OWNERS, owner);
        let counting = match colours {
            true => counting.on(DimmMap::of(&topology).unwrap()),
            false => counting,
        };
        let placement = Placement::on(spec, topology).unwrap().counted(counting);
        World {
            most: placement.counting().unwrap().most().clone(),
            placement,
            colours,
            pages: BTreeMap::new(),
            next_vpn: 0,
            most_fast: 0,
        }
    }

    fn page(&self, index: &prop::sample::Index) -> Option<(u32, u64)> {
        let at = index.index(self.pages.len().max(1));
        self.pages.iter().nth(at).map(|(&frame, &vpn)| (frame, vpn))
    }

    fn free(&self, index: &prop::sample::Index) -> Option<u32> {
        let frames = self.placement.frames();
        let free: Vec<u32> = (0..frames.len()).filter(|&f| !frames.is_used(f)).collect();
        free.get(index.index(free.len().max(1))).copied()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Fault => {
                if let Ok(frame) = self.placement.fault(&touch(self.next_vpn)) {
                    self.pages.insert(frame, self.next_vpn);
                    self.next_vpn += 1;
                }
            }
            Step::Unmap(page) => {
                if let Some((frame, vpn)) = self.page(page) {
                    self.placement.unmap(vpn, frame);
                    self.pages.remove(&frame);
                }
            }
            Step::Sample(page) => {
                if let Some((frame, vpn)) = self.page(page) {
                    common::sample(&mut self.placement, vpn, frame, Source::Slow, 9);
                }
            }
            Step::Recolour(page, hot) => {
                if let Some((frame, _)) = self.page(page) {
                    let colour = if *hot { Colour::Hot } else { Colour::Cold };
                    self.placement.recolour(frame, colour);
                }
            }
            Step::Found(frame) => {
                if let Some(frame) = self.free(frame) {
                    self.placement.found(&touch(self.next_vpn), frame);
                    self.pages.insert(frame, self.next_vpn);
                    self.next_vpn += 1;
                }
            }
            Step::Strayed(page, to) => {
                if let (Some((from, vpn)), Some(to)) = (self.page(page), self.free(to)) {
                    self.placement.strayed(from, to);
                    self.pages.remove(&from);
                    self.pages.insert(to, vpn);
                }
            }
            Step::Tick(most) => {
                let moves = common::tick(&mut self.placement);
                for Move { vpn, from, to } in moves.into_iter().take(*most) {
                    self.placement.moved(&Move { vpn, from, to });
                    self.pages.remove(&from);
                    self.pages.insert(to, vpn);
                    self.note();
                }
            }
        }
        self.note();
    }

    fn counted(&self) -> InUse {
        let mut all = InUse {
            owners: vec![[0; 2]; OWNERS],
            dimms: vec![(0, 0); if self.colours { 8 } else { 0 }],
        };
        for (&frame, &vpn) in &self.pages {
            let fast = match self.colours {
                true => self.placement.policy().is_hot(frame),
                false => frame < FAST,
            };
            all.owners[owner(vpn)][usize::from(fast)] += 1;
            if let Some((hot, cold)) = all.dimms.get_mut((frame / DIMM) as usize) {
                *(if fast { hot } else { cold }) += 1;
            }
        }
        all
    }

    fn note(&mut self) {
        let now = self.counted();
        let pages = |of: &InUse| of.fast() + of.slow();
        self.most_fast = self.most_fast.max(now.fast());
        if pages(&now) >= pages(&self.most) {
            self.most = now;
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let counting = self.placement.counting().unwrap();
        let now = self.counted();
        prop_assert_eq!(now.fast() + now.slow(), self.pages.len() as u64);
        prop_assert_eq!(counting.now(), &now);
        prop_assert_eq!(counting.most(), &self.most);
        prop_assert_eq!(counting.most_fast(), self.most_fast);
        Ok(())
    }
}

proptest! {
    #[test]
    fn counts_are_those_of_a_plain_map(
        steps in prop::collection::vec(step(), 1..200),
        colours: bool,
    ) {
        let mut world = World::new(colours);
        for step in &steps {
            world.take(step);
            world.check()?;
        }
    }
}

/// A policy that records its notifications and queries.
struct Probe {
    heard: Arc<Mutex<Vec<&'static str>>>,
    /// Where the page is that it wants to have moved.
    page: u32,
}

impl Probe {
    fn hear(&self, what: &'static str) {
        self.heard.lock().unwrap().push(what);
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "calls that the trait gains are to be recorded here too"
)]
impl Policy for Probe {
    fn place(&mut self, frames: &mut Frames, _: &Fault) -> Option<u32> {
        self.hear("place");
        frames.take_from(0)
    }

    fn freed(&mut self, _: &mut Frames, _: u32) {
        self.hear("freed");
    }

    fn daemons(&self) -> Daemons {
        self.hear("daemons");
        Daemons::default()
    }

    fn sample(&mut self, _: &mut Frames, _: u32, _: Source) {
        self.hear("sample");
    }

    fn traffic(&mut self, _: u64, _: u64) {
        self.hear("traffic");
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        self.hear("tick");
        let (from, to) = (self.page, frames.take_from(0).unwrap());
        remaps.push(Remap { from, to });
    }

    fn moved(&mut self, _: &mut Frames, done: Remap) {
        self.hear("moved");
        self.page = done.to;
    }

    fn cancelled(&mut self, _: &mut Frames, _: Remap) {
        self.hear("cancelled");
    }

    fn heat(&self) -> Option<&Heat> {
        self.hear("heat");
        None
    }

    fn is_hot(&self, _: u32) -> bool {
        self.hear("is_hot");
        false
    }

    fn trays(&self) -> Option<TrayState> {
        self.hear("trays");
        None
    }

    fn found(&mut self, _: &mut Frames, _: &Fault, _: u32) {
        self.hear("found");
    }

    fn strayed(&mut self, _: &mut Frames, stray: Remap) {
        self.hear("strayed");
        self.page = stray.to;
    }

    fn fixed(&mut self, _: &Frames, _: u32) {
        self.hear("fixed");
    }

    fn recolour(&mut self, _: u32, _: Colour) {
        self.hear("recolour");
    }

    fn review(&mut self, _: &Frames, _: &mut dyn Iterator<Item = u32>) {
        self.hear("review");
    }

    fn bytes(&self) -> u64 {
        self.hear("bytes");
        0
    }
}

/// Calls to a policy of a placement that does everything once, and moves where its page is.
fn heard(counted: bool) -> (Vec<&'static str>, Vec<Move>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let probe = Probe {
        heard: Arc::clone(&heard),
        page: 0,
    };
    let topology = with_dimms(1, 4);
    let counting = Counting::of_one().on(DimmMap::of(&topology).unwrap());
    let frames = Frames::in_order(&topology);
    let placement = Placement::with("probe", topology, frames, Box::new(probe));
    let mut placement = match counted {
        true => placement.counted(counting),
        false => placement,
    };
    let mut moves = Vec::new();
    let frame = placement.fault(&touch(0)).unwrap();
    placement.found(&touch(1), 15);
    placement.sample(&Sample {
        vpn: 0,
        frame,
        source: Source::Fast,
        thread: 0,
        now: 0,
    });
    placement.traffic(0, 0);
    placement.tick(0, &mut moves);
    placement.moved(&moves[0]);
    placement.tick(0, &mut moves);
    // The second one is passed over.
    placement.strayed(moves[1].from, 14);
    placement.fixed(14);
    placement.recolour(14, Colour::Hot);
    placement.review();
    placement.unmap(1, 15);
    placement.daemons();
    placement.bytes();
    assert!(placement.policy().heat().is_none());
    assert!(placement.policy().trays().is_none());
    assert!(!placement.policy().is_hot(14));
    let heard = heard.lock().unwrap().clone();
    (heard, moves)
}

#[test]
fn a_policy_hears_the_same_whether_its_pages_are_counted_or_not() {
    let (mut bare, moves) = heard(false);
    let (mut counted, same_moves) = heard(true);
    assert_eq!(moves, same_moves);
    assert_eq!(BTreeSet::from_iter(&bare).len(), 17, "{bare:?}");
    // A counting placement asks this once more.
    bare.retain(|what| *what != "is_hot");
    counted.retain(|what| *what != "is_hot");
    assert_eq!(bare, counted);
}
