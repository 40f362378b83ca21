//! Page policies for live programs, on a process and nodes that are made up: what is asked of the kernel is asked of a table.

use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use varve_live::tier::{
    Allowance, Memory, MoveLimits, MoveOutcome, Nodes, Observer, OnNodes, Refusal, Room,
    SharedKind, SharedObject, SharedRun, Steering, Use,
};
use varve_tier::pages::{PagePolicy, live_spec};
use varve_tier::seen::TierEye;

const PAGE: u64 = 4096;
const FAST: u32 = 0;
const SLOW: u32 = 1;

/// A fake machine: pages with their nodes, and their migrations.
#[derive(Default)]
struct World {
    /// Node of each page.
    pages: BTreeMap<u64, u32>,
    /// Pages that the kernel does not move.
    pinned: Vec<u64>,
    /// Pages that are used in each interval.
    hot: Vec<u64>,
    interval: u64,
    /// Each move: interval, page, node.
    moves: Vec<(u64, u64, u32)>,
    /// Pages that fast memory can hold.
    capacity: u64,
    /// Error numbers with which calls fail as a whole: those that look, and those that move.
    look_fails: Option<i32>,
    move_fails: Option<i32>,
}

impl World {
    fn on(&self, node: u32) -> u64 {
        self.pages.values().filter(|n| **n == node).count() as u64
    }
}

type Shared = Rc<RefCell<World>>;

fn fail(error: Option<i32>) -> io::Result<()> {
    error.map_or(Ok(()), |number| Err(io::Error::from_raw_os_error(number)))
}

struct Table(Shared);

impl Memory for Table {
    fn pages(&mut self) -> io::Result<Vec<u64>> {
        let world = self.0.borrow();
        fail(world.look_fails)?;
        Ok(world.pages.keys().copied().collect())
    }

    fn nodes(&mut self, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        let world = self.0.borrow();
        Ok(pages.iter().map(|p| world.pages.get(p).copied()).collect())
    }

    fn move_to(&mut self, pages: &[u64], node: u32) -> io::Result<Vec<MoveOutcome>> {
        let mut world = self.0.borrow_mut();
        fail(world.move_fails)?;
        let one = |page: &u64| {
            let refused = match world.pages.get(page) {
                None => Some(Refusal::Gone),
                Some(_) if world.pinned.contains(page) => Some(Refusal::Busy),
                Some(_) if node == FAST && world.on(FAST) >= world.capacity => Some(Refusal::Full),
                Some(_) => None,
            };
            if refused.is_none() {
                world.pages.insert(*page, node);
                let interval = world.interval;
                world.moves.push((interval, *page, node));
            }
            MoveOutcome {
                bytes: if refused.is_none() { PAGE } else { 0 },
                left: if refused.is_none() { 0 } else { PAGE },
                refused,
            }
        };
        Ok(pages.iter().map(one).collect())
    }
}

struct Seen(Shared);

impl Observer for Seen {
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        let world = self.0.borrow();
        let known = world.hot.iter().filter(|page| pages.contains(page));
        uses.extend(known.map(|&page| Use {
            page,
            writes: false,
        }));
        Ok(())
    }
}

/// A process that has a part of the world's pages mapped, from a page of its own on, and no memory besides.
struct Maps {
    world: Shared,
    /// Its first page, and the world's page there.
    at: u64,
    from: u64,
    runs: Vec<SharedRun>,
    ended: Rc<RefCell<bool>>,
}

impl Maps {
    fn new(world: &Shared, at: u64, pages: std::ops::Range<u64>) -> Maps {
        let object = Rc::new(SharedObject {
            kind: SharedKind::Memory,
            name: "/dev/zero (deleted)".into(),
            file: ("00:01".into(), 7),
        });
        let run = SharedRun {
            object,
            start: at * PAGE,
            end: (at + pages.end - pages.start) * PAGE,
            offset: pages.start * PAGE,
        };
        Maps {
            world: world.clone(),
            at,
            from: pages.start,
            runs: vec![run],
            ended: Rc::default(),
        }
    }

    fn of_world(&self, pages: &[u64]) -> Vec<u64> {
        let of = |page: &u64| page - self.at + self.from;
        pages.iter().map(of).collect()
    }
}

impl Memory for Maps {
    fn pages(&mut self) -> io::Result<Vec<u64>> {
        Ok(Vec::new())
    }

    fn nodes(&mut self, _: &[u64]) -> io::Result<Vec<Option<u32>>> {
        Ok(Vec::new())
    }

    fn move_to(&mut self, _: &[u64], _: u32) -> io::Result<Vec<MoveOutcome>> {
        panic!("it has no memory of its own");
    }

    fn shared(&self) -> &[SharedRun] {
        &self.runs
    }

    fn nodes_of_shared(&mut self, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        Table(self.world.clone()).nodes(&self.of_world(pages))
    }

    fn move_shared(&mut self, pages: &[u64], node: u32) -> io::Result<Vec<MoveOutcome>> {
        Table(self.world.clone()).move_to(&self.of_world(pages), node)
    }

    fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }
}

/// Uses these pages of its own in each interval.
struct Uses(Vec<u64>);

impl Observer for Uses {
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        let known = self.0.iter().filter(|page| pages.contains(page));
        uses.extend(known.map(|&page| Use {
            page,
            writes: false,
        }));
        Ok(())
    }
}

struct TwoNodes(Shared);

impl Nodes for TwoNodes {
    fn is_of(&self, fast: bool, node: u32) -> bool {
        fast == (node == FAST)
    }

    fn refresh(&mut self) {}

    fn choose(&self, fast: bool, _: u32, bytes: u64) -> Option<u32> {
        let world = self.0.borrow();
        match fast {
            false => Some(SLOW),
            true => (world.on(FAST) + bytes / PAGE <= world.capacity).then_some(FAST),
        }
    }

    fn went(&mut self, _: u32, _: u32, _: u64) {}
}

type OfNodes = Steering<PagePolicy, OnNodes>;

fn steering(world: &Shared, spec: &str, fast_pages: u64, hold: u64) -> OfNodes {
    let policy = policy(spec, fast_pages);
    steered(world, policy, fast_pages, hold)
}

fn policy(spec: &str, fast_pages: u64) -> PagePolicy {
    let room = Room {
        page_bytes: PAGE,
        fast_pages,
        slow_pages: 10_000,
    };
    PagePolicy::new(&live_spec(spec).unwrap(), &room).unwrap()
}

fn without_processes(world: &Shared, decide: PagePolicy, fast_pages: u64, hold: u64) -> OfNodes {
    let limits = MoveLimits {
        page_bytes: PAGE,
        hold,
    };
    let places = OnNodes::new(Box::new(TwoNodes(world.clone())), PAGE, fast_pages);
    Steering::new(decide, limits, places)
}

fn steered(world: &Shared, decide: PagePolicy, fast_pages: u64, hold: u64) -> OfNodes {
    let mut steering = without_processes(world, decide, fast_pages, hold);
    let (memory, observer) = (Table(world.clone()), Seen(world.clone()));
    steering.add(0, 0, Box::new(memory), Box::new(observer));
    steering
}

fn interval(steering: &mut OfNodes, world: &Shared, bytes: u64) {
    world.borrow_mut().interval += 1;
    assert!(steering.look().is_empty());
    let allowed = Allowance {
        bytes,
        time: Duration::from_secs(1),
    };
    steering.act(&allowed, &|| Duration::ZERO);
}

fn world(pages: u64, node: u32, capacity: u64) -> Shared {
    Rc::new(RefCell::new(World {
        pages: (0..pages).map(|page| (page, node)).collect(),
        capacity,
        ..World::default()
    }))
}

#[test]
fn hot_pages_come_to_fast_memory_and_pages_that_cooled_go_back() {
    for node in [FAST, SLOW] {
        let world = world(200, node, 300);
        let mut steering = steering(&world, "hotset", 40, 3);
        let on_fast = |pages: std::ops::Range<u64>| {
            let world = world.borrow();
            pages.filter(|page| world.pages[page] == FAST).count()
        };
        for hot in [150..180, 20..50, 90..120] {
            world.borrow_mut().hot = hot.clone().collect();
            for _ in 0..40 {
                interval(&mut steering, &world, u64::MAX);
            }
            assert_eq!(on_fast(hot.clone()), 30, "{hot:?} from node {node}");
            assert_eq!(on_fast(0..200), 40, "fast memory is used");
        }
        assert_eq!(steering.counts.wishes % 2, 0, "each takes another's place");
    }
}

/// A daemon that is started anew knows what was hot: pages need not be seen in use eight times.
#[test]
fn heat_of_an_earlier_run_counts_from_the_beginning() {
    let world = world(200, SLOW, 300);
    world.borrow_mut().hot = (150..180).collect();
    let mut first = steering(&world, "hotset", 40, 3);
    for _ in 0..40 {
        interval(&mut first, &world, u64::MAX);
    }
    let kept = first.hot_ranges();
    assert_eq!(kept, [(0, vec![(150 * PAGE, 180 * PAGE)])]);
    for (page, node) in &mut world.borrow_mut().pages {
        *node = if *page < 150 { FAST } else { SLOW };
    }
    let hot_after_a_look = |warmed: bool| {
        let mut again = steering(&world, "hotset", 40, 3);
        again.look();
        if warmed {
            again.warm(0, &kept[0].1);
        }
        again.hot_ranges()[0].1.clone()
    };
    assert_eq!(hot_after_a_look(false), []);
    assert_eq!(hot_after_a_look(true), kept[0].1);
}

/// A prefork service: its first process has made the memory, and workers that have some of it at other addresses use it. Each page is
/// one, and what is known of it outlives who told it.
#[test]
fn pages_that_processes_share_are_placed_once_by_what_all_of_them_use() {
    let world = world(200, SLOW, 300);
    let mut steering = without_processes(&world, policy("hotset", 40), 40, 3);
    let workers = [(5000, 0..120), (9000, 80..200)].map(|(at, pages)| Maps::new(&world, at, pages));
    let ended = workers.each_ref().map(|worker| worker.ended.clone());
    // The world's pages 50 to 59 and 100 to 104, and 105 to 109 and 150 to 159.
    let uses = [vec![5050..5060, 5100..5105], vec![9025..9030, 9070..9080]];
    steering.add(
        0,
        0,
        Box::new(Maps::new(&world, 1000, 0..200)),
        Box::new(Uses(Vec::new())),
    );
    for (number, (worker, uses)) in (1..).zip(workers.into_iter().zip(uses)) {
        let uses = Uses(uses.into_iter().flatten().collect());
        steering.add(number, number, Box::new(worker), Box::new(uses));
    }
    for _ in 0..40 {
        interval(&mut steering, &world, u64::MAX);
    }
    let hot = || (50..60).chain(100..110).chain(150..160);
    let on_fast = |page: &u64| world.borrow().pages[page] == FAST;
    assert_eq!(hot().filter(on_fast).count(), 30);
    assert_eq!(world.borrow().on(FAST), 40);
    assert_eq!(steering.fast_pages(), 40, "each page once");
    // The first process and a worker end: pages that the other one has are known and stay.
    let moves = world.borrow().moves.len();
    *ended[0].borrow_mut() = true;
    steering.processes.retain(|process| process.number != 0);
    assert_eq!(steering.look().len(), 1);
    let there = (80..200).filter(on_fast).count() as u64;
    assert_eq!(steering.fast_pages(), there, "80 to 199 are there");
    for _ in 0..5 {
        interval(&mut steering, &world, 0);
    }
    assert_eq!(world.borrow().moves.len(), moves);
    assert_eq!(steering.fast_pages(), there);
}

#[test]
fn what_is_hot_where_it_should_be_never_moves() {
    let world = world(200, FAST, 300);
    let mut steering = steering(&world, "hotset", 40, 3);
    world.borrow_mut().hot = (100..130).collect();
    for _ in 0..40 {
        interval(&mut steering, &world, u64::MAX);
    }
    let moved = &world.borrow().moves;
    assert!(moved.iter().all(|(_, page, _)| !(100..130).contains(page)));
    assert_eq!(moved.len(), 160, "each cold page once");
}

#[test]
fn a_full_node_and_pinned_pages_are_counted_and_do_no_harm() {
    let world = world(100, SLOW, 10);
    world.borrow_mut().pinned = vec![50, 51];
    world.borrow_mut().hot = (40..60).collect();
    let mut steering = steering(&world, "hotset", 40, 3);
    for _ in 0..60 {
        interval(&mut steering, &world, u64::MAX);
    }
    assert_eq!(world.borrow().on(FAST), 10);
    assert!(steering.counts.full > 0);
    assert!(steering.counts.refused.contains_key(&Refusal::Busy) || steering.counts.full > 0);
    world.borrow_mut().capacity = 100;
    for _ in 0..60 {
        interval(&mut steering, &world, u64::MAX);
    }
    let hot = (40..60).filter(|page| world.borrow().pages[page] == FAST);
    assert_eq!(hot.count(), 18, "all but the pinned ones");
    assert!(steering.counts.refused[&Refusal::Busy] >= 2 * PAGE);
    assert!(steering.counts.rested >= 2);
}

/// The kernel, or another process, moves pages under us: it is seen, and put right.
#[test]
fn what_others_move_is_counted_and_moved_back() {
    let world = world(60, FAST, 100);
    let mut steering = steering(&world, "hotset", 30, 3);
    world.borrow_mut().hot = (0..20).collect();
    for _ in 0..30 {
        interval(&mut steering, &world, u64::MAX);
    }
    for page in 0..10 {
        world.borrow_mut().pages.insert(page, SLOW);
    }
    for _ in 0..30 {
        interval(&mut steering, &world, u64::MAX);
    }
    assert_eq!(steering.counts.by_others, 10 * PAGE);
    let hot = (0..20).filter(|page| world.borrow().pages[page] == FAST);
    assert_eq!(hot.count(), 20);
}

#[test]
fn policies_without_a_daemon_place_what_is_there() {
    for (spec, least, most) in [
        ("slow", 0, 0),
        ("fast", 40, 40),
        ("interleave:fast=1,slow=3", 25, 25),
        ("first-touch", 40, 40),
        // Ten pages are hot; the others may have what these leave.
        ("oracle:hot=0+40KiB", 10, 40),
    ] {
        let world = world(100, SLOW, 300);
        let mut steering = steering(&world, spec, 40, 3);
        for _ in 0..5 {
            interval(&mut steering, &world, u64::MAX);
        }
        let on_fast = world.borrow().on(FAST);
        assert!((least..=most).contains(&on_fast), "{spec}: {on_fast}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a program does: fast memory never grows above the budget, no page moves twice within the time that it is to stay,
    /// no interval moves more than it may, and what is believed, and drawn, is what is so.
    #[test]
    fn budgets_hold(
        pages in 20u64..200,
        first in prop::collection::vec(any::<bool>(), 200),
        budget in 1u64..80,
        hold in 1u64..6,
        rate in 1u64..60,
        pinned in prop::collection::vec(0u64..200, 0..6),
        steps in prop::collection::vec((0u64..200, 1u64..60, 0u8..10), 1..12),
    ) {
        let world = world(pages, SLOW, 10_000);
        for (page, fast) in (0..pages).zip(first) {
            world.borrow_mut().pages.insert(page, if fast { FAST } else { SLOW });
        }
        world.borrow_mut().pinned = pinned;
        let eye = TierEye::new(PAGE);
        let policy = policy("hotset", budget).seen_by(Some(eye.clone()));
        let mut steering = steered(&world, policy, budget, hold);
        for (start, count, gone) in steps {
            {
                let mut world = world.borrow_mut();
                world.hot = (start..start + count).collect();
                // Some memory is given back, and some comes.
                for page in (0..200).skip(gone.into()).step_by(17) {
                    if world.pages.remove(&page).is_none() {
                        world.pages.insert(page, FAST);
                    }
                }
            }
            for _ in 0..12 {
                let before = world.borrow().on(FAST);
                interval(&mut steering, &world, rate * PAGE);
                let world = world.borrow();
                let after = world.on(FAST);
                prop_assert!(after <= budget.max(before), "{before} -> {after} of {budget}");
                let now = world.moves.iter().filter(|m| m.0 == world.interval);
                prop_assert!(now.count() as u64 <= rate);
                prop_assert_eq!(steering.fast_pages(), after);
            }
            let heat = eye.seen().heat;
            let last = heat.ranges.iter().filter_map(|range| range.cells.last());
            let drawn = last.fold((0, 0), |(fast, slow), cell| (fast + cell.fast_bytes, slow + cell.slow_bytes));
            let world = world.borrow();
            // Where others have moved a page it is seen at one of the next looks.
            prop_assert_eq!(drawn, (world.on(FAST) * PAGE, world.on(SLOW) * PAGE));
        }
        let mut last = BTreeMap::new();
        for &(at, page, _) in &world.borrow().moves {
            // Memory that was given back and came again is another page.
            if let Some(before) = last.insert(page, at)
                && page % 17 >= 10
            {
                prop_assert!(at - before >= hold, "page {page} at {before} and {at}");
            }
        }
    }
}

/// A call that is refused as a whole, as when a program has become another user's, is reported, and tried no more than for a page.
#[test]
fn what_the_system_refuses_is_counted_and_told() {
    const EPERM: i32 = 1;
    const ESRCH: i32 = 3;
    let world = world(10, FAST, 100);
    let mut steering = steering(&world, "slow", 4, 1);
    world.borrow_mut().move_fails = Some(EPERM);
    for _ in 0..10 {
        interval(&mut steering, &world, u64::MAX);
    }
    assert!(world.borrow().moves.is_empty());
    assert_eq!(
        steering.counts.refused[&Refusal::Other(EPERM)],
        10 * 3 * PAGE
    );
    assert_eq!(steering.counts.rested, 10);
    // It can no longer be scanned: the reason is reported, once.
    world.borrow_mut().look_fails = Some(EPERM);
    let left = steering.look();
    let why = left[0].1.as_ref().and_then(io::Error::raw_os_error);
    assert_eq!((left[0].0, why), (0, Some(EPERM)));
    assert!(steering.look().is_empty());
    // One that has ended needs no reason.
    let (memory, observer) = (Table(world.clone()), Seen(world.clone()));
    steering.add(1, 1, Box::new(memory), Box::new(observer));
    world.borrow_mut().look_fails = Some(ESRCH);
    let left = steering.look();
    assert!(left.len() == 1 && left[0].1.is_none(), "{left:?}");
}
