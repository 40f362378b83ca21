//! The steering on a made-up machine: whatever programs, other mechanisms and the exchanger do, the policy knows each frame with a page
//! once, and gets no impossible event.

use super::*;
use crate::tier::decide::FrameState;
use crate::tier::frames::pages::Unplaced;
use crate::tier::observe::Blind;
use crate::tier::steer::MoveLimits;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const FRAMES: u64 = 24;

/// Processes' pages, and the reserve; frames are the kernel's numbers, from 1 on, all of one node.
#[derive(Default)]
struct World {
    pages: BTreeMap<(u32, u64), u64>,
    reserve: Vec<u64>,
    ended: HashSet<u32>,
    /// The outcomes of the next exchanges.
    fates: Vec<u8>,
}

impl World {
    fn is_free(&self, frame: u64) -> bool {
        !self.reserve.contains(&frame) && !self.pages.values().any(|f| *f == frame)
    }

    fn free(&self, at: usize) -> Option<u64> {
        let free: Vec<u64> = (1..=FRAMES).filter(|f| self.is_free(*f)).collect();
        (!free.is_empty()).then(|| free[at % free.len()])
    }
}

type Shared = Rc<RefCell<World>>;

struct Memory(Shared, u32);

impl FrameMemory for Memory {
    fn look(&mut self) -> io::Result<Vec<PageFrame>> {
        let world = self.0.borrow();
        let own = world.pages.range((self.1, 0)..(self.1 + 1, 0));
        let of = |(&(_, page), &frame): (&(u32, u64), &u64)| PageFrame {
            page,
            frame,
            // Pages from 100 on are shared.
            kind: if page < 100 { Kind::Own } else { Kind::Shared },
            hot: false,
        };
        Ok(own.map(of).collect())
    }

    fn unplaced(&self) -> BTreeMap<Unplaced, u64> {
        BTreeMap::new()
    }

    fn has_ended(&self) -> bool {
        self.0.borrow().ended.contains(&self.1)
    }
}

struct Hands(Shared);

impl Exchanger for Hands {
    /// As on a real machine all pages leave before the first comes back: one may come into a frame that another has left.
    fn exchange(&mut self, process: u32, orders: &[FrameExchange]) -> io::Result<Vec<Landed>> {
        let mut world = self.0.borrow_mut();
        let mut landed = vec![Landed::Stale; orders.len()];
        let mut going = Vec::new();
        for (at, order) in orders.iter().enumerate() {
            if world.pages.get(&(process, order.page)) != Some(&order.from) {
                continue;
            }
            assert!(world.reserve.contains(&order.to), "a frame of the reserve");
            match world.fates.pop().unwrap_or(0) {
                4 => landed[at] = Landed::Refused(Refusal::Busy),
                fate @ 0..4 => going.push((at, fate == 3)),
                _ => {}
            }
        }
        // All who have a page have it nowhere meanwhile.
        let mut mates: Vec<Vec<(u32, u64)>> = Vec::new();
        let mut free = Vec::new();
        for (at, _) in &going {
            let from = orders[*at].from;
            let of = world.pages.iter().filter(|(_, frame)| **frame == from);
            mates.push(of.map(|(key, _)| *key).collect());
            free.push(from);
        }
        for key in mates.iter().flatten() {
            world.pages.remove(key);
        }
        for ((at, strays), mates) in going.iter().zip(&mates) {
            let order = &orders[*at];
            world.reserve.retain(|f| *f != order.to);
            let to = match strays {
                true => world.free(order.page as usize).unwrap_or(order.to),
                false if world.pages.values().any(|f| *f == order.to) => {
                    world.free(0).expect("one was left")
                }
                false => order.to,
            };
            for key in mates {
                world.pages.insert(*key, to);
            }
            landed[*at] = Landed::In(to);
        }
        // The reserve gets what was left.
        for from in free {
            if world.is_free(from) {
                world.reserve.push(from);
            }
        }
        Ok(landed)
    }

    fn reserve(&mut self) -> io::Result<Vec<u64>> {
        Ok(self.0.borrow().reserve.clone())
    }

    fn renew(&mut self, _: &dyn Fn(u64) -> u8) {
        let mut world = self.0.borrow_mut();
        world.reserve.clear();
        if let Some(frame) = world.free(7) {
            world.reserve.push(frame);
        }
    }

    fn bring_home(&mut self) -> (u64, u64) {
        (0, 0)
    }
}

/// Records all calls, and panics at an impossible one.
#[derive(Default)]
struct Mirror {
    pages: BTreeMap<u32, Page>,
    offered: BTreeSet<u32>,
}

impl TierPolicy for Mirror {
    fn found(&mut self, page: Page, frame: Option<u32>, _: bool) -> Option<u32> {
        let at = frame.expect("frames are chosen");
        self.offered.remove(&at);
        assert!(self.pages.insert(at, page).is_none(), "{at} has a page");
        frame
    }

    fn gone(&mut self, frame: u32) {
        assert!(self.pages.remove(&frame).is_some(), "{frame} has none");
    }

    fn strayed(&mut self, from: u32, to: u32) {
        let page = self.pages.remove(&from).expect("it has a page");
        self.offered.remove(&to);
        assert!(self.pages.insert(to, page).is_none(), "{to} has a page");
    }

    fn used(&mut self, frame: u32, _: bool, _: bool) {
        assert!(self.pages.contains_key(&frame));
    }

    fn offered(&mut self, frame: u32) {
        assert!(!self.pages.contains_key(&frame), "{frame} has a page");
        self.offered.insert(frame);
    }

    fn withdrawn(&mut self, frame: u32) {
        self.offered.remove(&frame);
    }

    fn decide(&mut self, remaps: &mut Vec<Remap>) {
        let all = self.pages.keys().zip(&self.offered);
        remaps.extend(all.map(|(&from, &to)| Remap { from, to }));
    }

    fn moved(&mut self, done: Remap) {
        assert!(self.offered.remove(&done.to) || !self.pages.contains_key(&done.to));
        let page = self.pages.remove(&done.from).expect("it has a page");
        self.pages.insert(done.to, page);
    }

    fn fixed(&mut self, frame: u32) {
        assert!(self.pages.contains_key(&frame));
    }

    fn review(&mut self) {}

    fn page_in(&self, frame: u32) -> Option<Page> {
        self.pages.get(&frame).copied()
    }

    fn is_fast(&self, _: u32) -> bool {
        false
    }

    fn is_hot(&self, _: u32) -> bool {
        false
    }

    fn wants_uses(&self) -> bool {
        false
    }

    fn class(&self, _: u32) -> u8 {
        1
    }

    fn state(&self) -> FrameState {
        FrameState::default()
    }
}

fn steering(world: &Shared, processes: u32) -> Steering<Mirror, InFrames> {
    let zones = format!("Node 0, zone Normal\n spanned {FRAMES}\n start_pfn: 1\n");
    let spans = Spans::parse(&zones, 4096).unwrap();
    let limits = MoveLimits {
        page_bytes: 4096,
        hold: 0,
    };
    let hands = Box::new(Hands(world.clone()));
    let places = InFrames::new(spans, hands, Power::of(None), None);
    let mut all = Steering::new(Mirror::default(), limits, places);
    for process in 0..processes {
        all.add(
            process,
            process,
            Box::new(Memory(world.clone(), process)),
            Box::new(Blind),
        );
    }
    all
}

const ALL: Allowance = Allowance {
    bytes: 1 << 30,
    time: Duration::from_secs(1),
};

proptest! {
    #[test]
    fn whoever_decides_knows_each_frame_with_a_page_once(
        steps in prop::collection::vec((0u8..10, 0u32..3, 0u64..6, any::<bool>(), 0usize..24), 1..120),
        fates in prop::collection::vec(0u8..6, 0..80),
    ) {
        let world: Shared = Rc::default();
        world.borrow_mut().fates = fates;
        world.borrow_mut().reserve = vec![3, 9, 20];
        let mut all = steering(&world, 3);
        for (what, process, page, shared, at) in steps {
            let page = if shared { 100 + page } else { page };
            let mut now = world.borrow_mut();
            let key = (process, page);
            let free = now.free(at);
            match (what, free) {
                _ if now.ended.contains(&process) => {}
                (0..4, Some(frame)) => {
                    // Another process's page of this number is the same page if it is shared.
                    let same = now.pages.iter().find(|((_, p), _)| *p == page && shared);
                    let frame = same.map_or(frame, |(_, frame)| *frame);
                    now.pages.entry(key).or_insert(frame);
                }
                (4, _) => drop(now.pages.remove(&key)),
                // Another program migrates it.
                (5, Some(frame)) => if let Some(&old) = now.pages.get(&key) {
                    now.pages.values_mut().filter(|f| **f == old).for_each(|f| *f = frame);
                },
                // Two pages change places.
                (6, _) => {
                    let other = (process, (page + 1) % 6);
                    if let (Some(&a), Some(&b)) = (now.pages.get(&key), now.pages.get(&other)) && !shared {
                        now.pages.insert(key, b);
                        now.pages.insert(other, a);
                    }
                }
                (7, Some(frame)) => {
                    // The kernel moves a frame of the reserve.
                    let at = at % now.reserve.len().max(1);
                    if let Some(one) = now.reserve.get_mut(at) {
                        *one = frame;
                    }
                }
                (8, _) if at == 0 => {
                    now.ended.insert(process);
                    now.pages.retain(|(p, _), _| *p != process);
                }
                _ => {}
            }
            drop(now);
            if what == 9 || at % 3 == 0 {
                all.look();
                let now = world.borrow();
                let expected: BTreeSet<u64> = now.pages.values().copied().collect();
                let known: BTreeSet<u64> =
                    all.decide.pages.keys().map(|f| all.places.spans.kernel(*f).unwrap()).collect();
                prop_assert_eq!(&known, &expected);
                let offered: BTreeSet<u64> =
                    all.decide.offered.iter().map(|f| all.places.spans.kernel(*f).unwrap()).collect();
                prop_assert_eq!(offered, now.reserve.iter().copied().collect::<BTreeSet<u64>>());
                for (frame, owner) in &all.places.owners {
                    let frame = all.places.spans.kernel(*frame).unwrap();
                    let key = (owner.page.process(), owner.page.number());
                    prop_assert_eq!(now.pages.get(&key), Some(&frame), "whose it is");
                    let maps = now.pages.values().filter(|f| **f == frame).count();
                    prop_assert_eq!(owner.maps as usize, maps);
                }
                drop(now);
                all.act(&ALL, &|| Duration::ZERO);
            }
        }
    }
}

#[test]
fn a_page_that_was_exchanged_stays_for_a_while_and_bytes_are_limited() {
    let world: Shared = Rc::default();
    world.borrow_mut().pages = (0..6).map(|page| ((0, page), page + 1)).collect();
    world.borrow_mut().reserve = vec![11, 12, 13, 14, 15, 16];
    let mut all = steering(&world, 1);
    all.limits.hold = 1000;
    let none = Allowance {
        bytes: 1 << 30,
        time: Duration::ZERO,
    };
    all.look();
    all.act(&none, &|| Duration::ZERO);
    assert_eq!(
        (all.counts.exchanged, all.counts.over_rate),
        (0, 6),
        "no time"
    );
    all.look();
    all.act(&ALL, &|| Duration::ZERO);
    assert_eq!(all.counts.exchanged, 6 * 4096);
    let before = world.borrow().pages.clone();
    all.look();
    all.act(&ALL, &|| Duration::ZERO);
    assert_eq!(world.borrow().pages, before, "all are held");
}
