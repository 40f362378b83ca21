//! Page policies for programs that run on this machine: the policy and its frames are those of the model, what is seen and moved
//! is `varve_live::tier`'s.
//!
//! A frame stands for room in fast or in slow memory. Which of the kernel's frames a page is in is the kernel's choice.

use varve_access::{Fault, Move, Pager, Sample, Source};
use varve_live::tier::{Decide, Page, Pages, Room, Wish};
use varve_pages::policies::{Live, entry};
use varve_pages::{NodeFrames, Placement, Topology};

/// Time between two intervals of a live policy that says nothing else. On the model it is 10 ms; looks at the pages of a live
/// program cost more than that leaves.
pub const PERIOD: &str = "1s";

/// Parameters that say what the model is to charge, or how it samples.
const OF_THE_MODEL: [&str; 3] = ["sample-period", "threads", "scale"];

/// The same of policies that choose frames.
const OF_DIMMS_OF_THE_MODEL: [&str; 3] = ["hot", "remote", "map"];

/// A policy's specification as it is used live.
///
/// # Errors
/// A policy that is not for nodes of this machine, or a parameter that is of the model; one line each.
pub fn live_spec(spec: &str) -> Result<String, String> {
    let entry = entry(spec).map_err(|e| e.to_string())?;
    match entry.live {
        Live::Nodes | Live::Frames => {}
        Live::Cache => {
            return Err(format!(
                "page policy `{}` places pages under a DRAM cache while a program gets them: `varve run --live -- COMMAND` does it",
                entry.name
            ));
        }
        Live::No(why) => {
            return Err(format!(
                "page policy `{}` is for models alone: {why}; `varve policy` says which are for this machine",
                entry.name
            ));
        }
    }
    let gives = |key: &str| varve_spec::gives(spec, key);
    if let Some(key) = OF_THE_MODEL.into_iter().find(|key| gives(key)) {
        return Err(format!(
            "page policy `{}`: {key} is for the model: leave it out for a program of this machine",
            entry.name
        ));
    }
    let mut spec = spec.to_string();
    if entry.live == Live::Frames {
        // Which pages are hot is seen, or said by the names of mappings.
        if let Some(key) = OF_DIMMS_OF_THE_MODEL.into_iter().find(|key| gives(key)) {
            return Err(format!(
                "page policy `{}`: {key} is for the model: leave it out for a program of this machine; --hot and --dimm-map say such things of it",
                entry.name
            ));
        }
        if entry.params.iter().any(|param| param.key == "hot") {
            spec = varve_spec::with(&spec, "hot", "0+0");
        }
    }
    for key in ["period", "tick"] {
        let has = entry.params.iter().any(|param| param.key == key);
        if has && !varve_spec::gives(&spec, key) {
            spec = varve_spec::with(&spec, key, PERIOD);
        }
    }
    entry
        .values(varve_spec::split(&spec).1)
        .map_err(|e| e.to_string())?;
    Ok(spec)
}

/// A page policy that decides for programs of this machine.
pub struct PagePolicy {
    placement: Placement,
    frames: Pages<u32>,
    moves: Pages<Move>,
    asked: Vec<Move>,
}

impl PagePolicy {
    /// The policy of a specification that [`live_spec`] made.
    ///
    /// # Errors
    /// A policy that does not go with so much memory.
    pub fn new(spec: &str, room: &Room) -> Result<PagePolicy, String> {
        let node = |fast, pages: u64| NodeFrames {
            frames: pages.min(u64::from(u32::MAX / 2)) as u32,
            fast,
            socket: 0,
            bins: None,
            ways: 1,
            dimms: 0,
        };
        let topology = Topology {
            page_bytes: room.page_bytes,
            nodes: vec![node(true, room.fast_pages), node(false, room.slow_pages)],
        };
        let placement = Placement::on(spec, topology).map_err(|e| e.to_string())?;
        Ok(PagePolicy::of(placement))
    }

    /// One that was made elsewhere.
    pub fn of(placement: Placement) -> PagePolicy {
        PagePolicy {
            placement,
            frames: Pages::default(),
            moves: Pages::default(),
            asked: Vec::new(),
        }
    }

    /// Nanoseconds between two intervals, if the policy says it.
    pub fn period(&self) -> Option<u64> {
        Some(self.placement.daemons().period).filter(|period| *period > 0)
    }

    /// Whether it decides by what is in use.
    pub fn goes_by_use(&self) -> bool {
        let daemons = self.placement.daemons();
        daemons.period > 0 && daemons.sample_period > 0
    }
}

impl Decide for PagePolicy {
    fn appeared(&mut self, page: Page, _: bool) -> Option<bool> {
        let fault = Fault {
            vpn: page.key(),
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        };
        let frame = self.placement.fault(&fault).ok()?;
        self.frames.insert(page, frame);
        Some(self.placement.frames().is_fast(frame))
    }

    fn gone(&mut self, page: Page) {
        if let Some(frame) = self.frames.remove(&page) {
            self.moves.remove(&page);
            self.placement.unmap(page.key(), frame);
        }
    }

    fn used(&mut self, page: Page, writes: bool, fast: bool) {
        let Some(&frame) = self.frames.get(&page) else {
            return;
        };
        self.placement.sample(&Sample {
            vpn: page.key(),
            frame,
            source: match (writes, fast) {
                (true, _) => Source::Store,
                (false, true) => Source::Fast,
                (false, false) => Source::Slow,
            },
            thread: 0,
            now: 0,
        });
    }

    fn decide(&mut self, wishes: &mut Vec<Wish>) {
        self.moves.clear();
        self.asked.clear();
        if self.period().is_none() {
            return;
        }
        self.placement.tick(0, &mut self.asked);
        for &one in &self.asked {
            let page = Page::of_key(one.vpn);
            self.moves.insert(page, one);
            wishes.push(Wish {
                page,
                fast: self.placement.frames().is_fast(one.to),
                after: self.placement.page_in(one.to).map(Page::of_key),
            });
        }
    }

    fn moved(&mut self, wish: &Wish) {
        if let Some(done) = self.moves.remove(&wish.page) {
            self.placement.moved(&done);
            self.frames.insert(wish.page, done.to);
        }
    }

    fn is_hot(&self, page: Page) -> bool {
        let heat = self.placement.policy().heat();
        let frame = self.frames.get(&page);
        heat.zip(frame)
            .is_some_and(|(heat, &frame)| heat.is_hot(frame))
    }

    fn wants_uses(&self) -> bool {
        self.goes_by_use()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        page_bytes: 4096,
        fast_pages: 4,
        slow_pages: 100,
    };

    #[test]
    fn policies_that_can_be_live_are_and_others_say_why_not() {
        for entry in varve_pages::policies() {
            let given = match entry.name {
                "oracle" => ":hot=0+0",
                _ => "",
            };
            match (entry.live, live_spec(&format!("{}{given}", entry.name))) {
                (Live::Nodes, Ok(spec)) => {
                    let policy = PagePolicy::new(&spec, &ROOM).unwrap();
                    assert!(policy.period().is_none_or(|ns| ns == 1_000_000_000));
                }
                (Live::Frames, Ok(_)) => {}
                (Live::Cache, Err(why)) => assert!(why.contains("run --live"), "{why}"),
                (Live::No(_), Err(why)) => assert!(!why.contains('\n'), "{why}"),
                (_, other) => panic!("{}: {other:?}", entry.name),
            }
        }
        for spec in [
            "hotset:threads=1",
            "hotset:scale=8",
            "hotset:nonsense=1",
            "hotst",
        ] {
            assert!(live_spec(spec).is_err(), "{spec}");
        }
        assert_eq!(live_spec("hotset:period=5s").unwrap(), "hotset:period=5s");
        assert_eq!(
            live_spec("hotset:cool=20").unwrap(),
            "hotset:cool=20,period=1s"
        );
    }

    /// Pages come in order; four fit; two others become hot, and take the places of two cold ones.
    #[test]
    fn a_hot_page_takes_the_place_of_a_cold_one() {
        let mut policy = PagePolicy::new(&live_spec("hotset").unwrap(), &ROOM).unwrap();
        let page = |number| Page::new(3, number);
        let placed: Vec<_> = (0..8).map(|n| policy.appeared(page(n), false)).collect();
        assert_eq!(placed.iter().filter(|p| **p == Some(true)).count(), 4);
        for _ in 0..8 {
            for number in [5, 6] {
                policy.used(page(number), false, false);
            }
        }
        assert!(policy.is_hot(page(5)) && !policy.is_hot(page(0)));
        let mut wishes = Vec::new();
        policy.decide(&mut wishes);
        let up: Vec<&Wish> = wishes.iter().filter(|w| w.fast).collect();
        assert_eq!(up.len(), 2);
        for wish in up {
            let after = wish.after.expect("fast memory is full");
            assert!(wishes.iter().any(|w| w.page == after && !w.fast));
        }
        for wish in wishes.clone() {
            policy.moved(&wish);
        }
        wishes.clear();
        policy.decide(&mut wishes);
        assert!(wishes.is_empty(), "{wishes:?}");
        policy.gone(page(5));
        assert_eq!(policy.appeared(page(9), false), Some(true), "room again");
    }
}
