//! Page policies for programs that run on this machine: the policy and its frames are those of the model, what is seen and moved
//! is `varve_live::tier`'s.
//!
//! Where nodes are chosen, a frame stands for room in fast or in slow memory, and which of the kernel's frames a page is in is the
//! kernel's choice. Where frames are chosen ([`crate::frames`]), they are the machine's own.

use crate::dimms::Dimms;
use crate::seen::TierEye;
use varve_access::{Fault, Move, Pager, Sample, Source};
use varve_live::tier::{FrameState, Page, Remap, Room, TierPolicy};
use varve_pages::policies::{Live, Observed, TraySettings, entry};
use varve_pages::trays::Colour;
use varve_pages::{Conflicts, NodeFrames, Placement, Topology};

/// Default interval of a live policy. On the model it is 10 ms; scanning the pages of a live
/// program cost more than that leaves.
pub const PERIOD: &str = "1s";

/// Wake-ups without a halving after which a live policy halves all heat. A look finds at most one use of a page, so that heat of
/// few uses lasts for minutes otherwise.
pub const DECAY: &str = "60";

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
                "page policy `{}` runs on models only: {why}; `varve policy` lists those for this machine",
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
    for (key, value) in [("period", PERIOD), ("tick", PERIOD), ("decay", DECAY)] {
        let has = entry.params.iter().any(|param| param.key == key);
        if has && !varve_spec::gives(&spec, key) {
            spec = varve_spec::with(&spec, key, value);
        }
    }
    entry
        .values(varve_spec::split(&spec).1)
        .map_err(|e| e.to_string())?;
    Ok(spec)
}

/// Inputs that a policy needs from a program of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Nanoseconds between two intervals, if the policy says it.
    pub period: Option<u64>,
    /// Accesses.
    pub uses: bool,
    /// The bandwidth of the machine.
    pub traffic: bool,
}

/// The inputs that the policy of a [`live_spec`] needs. `named`: pages are hot by the names of their mappings.
///
/// # Errors
/// As [`live_spec`].
pub fn wants(spec: &str, named: bool) -> Result<Wants, String> {
    let of = || -> Result<Wants, varve_pages::Error> {
        let entry = entry(spec)?;
        let (_, given) = varve_spec::split(spec);
        let period = entry.wakes(given)?;
        // The model knows which pages are hot; here they are observed.
        if entry.observes.contains(&Observed::Traffic) {
            let settings = TraySettings::of_policy(given)?;
            return Ok(Wants {
                period,
                uses: !named,
                traffic: settings.model.is_some(),
            });
        }
        Ok(Wants {
            period,
            uses: entry.goes_by_use(given)?,
            traffic: false,
        })
    };
    of().map_err(|e| e.to_string())
}

/// A page policy that decides for programs of this machine.
pub struct PagePolicy {
    pub(crate) placement: Placement,
    /// Whether frames are chosen, which others give out, rather than nodes.
    frames: bool,
    /// DIMMs, where frames are chosen by them.
    pub(crate) dimms: Option<Dimms>,
    asked: Vec<Move>,
    eye: Option<TierEye>,
}

impl PagePolicy {
    /// The policy of a specification that [`live_spec`] made, for nodes.
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

    /// One that was made elsewhere, for nodes.
    pub fn of(placement: Placement) -> PagePolicy {
        PagePolicy {
            placement,
            frames: false,
            dimms: None,
            asked: Vec::new(),
            eye: None,
        }
    }

    /// A policy from an existing placement, for frames, by DIMMs or not. The steering allocates the frames from now on.
    pub(crate) fn in_frames(mut placement: Placement, dimms: Option<Dimms>) -> PagePolicy {
        placement.withhold();
        PagePolicy {
            frames: true,
            dimms,
            ..PagePolicy::of(placement)
        }
    }

    /// Adds an eye, which sees all calls to the policy.
    pub fn seen_by(self, eye: Option<TierEye>) -> PagePolicy {
        PagePolicy { eye, ..self }
    }
}

impl TierPolicy for PagePolicy {
    fn found(&mut self, page: Page, frame: Option<u32>, hot: bool) -> Option<u32> {
        let fault = Fault {
            vpn: page.key(),
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        };
        let Some(frame) = frame else {
            return self.placement.fault(&fault).ok();
        };
        if let Some(dimms) = &self.dimms {
            dimms.finds(hot);
        }
        self.placement.found(&fault, frame).then_some(frame)
    }

    fn gone(&mut self, frame: u32) {
        if let Some(heat) = self.heat_of_dimms() {
            heat.clear(frame);
        }
        if self.frames {
            self.placement.lost(frame);
        } else if let Some(vpn) = self.placement.page_in(frame) {
            self.placement.unmap(vpn, frame);
        }
    }

    fn used(&mut self, frame: u32, writes: bool, fast: bool) {
        let source = match (writes, fast) {
            (true, _) => Source::Store,
            (false, true) => Source::Fast,
            (false, false) => Source::Slow,
        };
        if let Some(heat) = self.heat_of_dimms() {
            let change = heat.add(frame, source);
            if change.overheated {
                heat.cool();
            }
            if change.became_hot {
                self.placement.recolour(frame, Colour::Hot);
            }
            return;
        }
        let Some(page) = self.page_in(frame) else {
            return;
        };
        if let Some(eye) = &self.eye {
            eye.used(page);
        }
        self.placement.sample(&Sample {
            vpn: page.key(),
            frame,
            source,
            thread: 0,
            now: 0,
        });
    }

    fn decide(&mut self, remaps: &mut Vec<Remap>) {
        if let Some(eye) = &self.eye {
            eye.interval_ends();
        }
        if !self.frames && self.placement.daemons().period == 0 {
            return;
        }
        self.asked.clear();
        self.placement.tick(0, &mut self.asked);
        remaps.extend(self.asked.iter().map(|one| Remap {
            from: one.from,
            to: one.to,
        }));
    }

    fn moved(&mut self, done: Remap) {
        let Some(vpn) = self.placement.page_in(done.from) else {
            return;
        };
        let Remap { from, to } = done;
        if let Some(heat) = self.heat_of_dimms() {
            heat.shift(from, to);
        }
        self.placement.moved(&Move { vpn, from, to });
        if self.frames {
            self.placement.withdraw(from);
        }
    }

    fn page_in(&self, frame: u32) -> Option<Page> {
        self.placement.page_in(frame).map(Page::of_key)
    }

    fn is_fast(&self, frame: u32) -> bool {
        self.placement.frames().is_fast(frame)
    }

    fn is_hot(&self, frame: u32) -> bool {
        let policy = self.placement.policy();
        policy.heat().is_some_and(|heat| heat.is_hot(frame)) || policy.is_hot(frame)
    }

    fn wants_uses(&self) -> bool {
        if let Some(dimms) = &self.dimms {
            return dimms.goes_by_use();
        }
        let daemons = self.placement.daemons();
        daemons.period > 0 && daemons.sample_period > 0
    }

    fn is_at(&mut self, page: Page, fast: Option<bool>) {
        if let Some(eye) = &self.eye {
            eye.is_at(page, fast);
        }
    }

    fn strayed(&mut self, from: u32, to: u32) {
        if let Some(heat) = self.heat_of_dimms() {
            heat.shift(from, to);
        }
        self.placement.strayed(from, to);
    }

    fn offered(&mut self, frame: u32) {
        self.placement.offer(frame);
    }

    fn withdrawn(&mut self, frame: u32) {
        self.placement.withdraw(frame);
    }

    fn fixed(&mut self, frame: u32) {
        self.placement.fixed(frame);
    }

    fn review(&mut self) {
        self.cool_down();
        self.placement.review();
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        self.placement.traffic(now, bytes);
        // The classes of frames of the reserve change with it.
        if let (Some(dimms), Some(trays)) = (&self.dimms, self.placement.policy().trays()) {
            dimms.are_hot(trays.hot);
        }
    }

    fn class(&self, frame: u32) -> u8 {
        match &self.dimms {
            None => {
                let mut mates = self.placement.frames().bin_mates(frame);
                u8::from(!mates.any(|mate| self.is_hot(mate)))
            }
            Some(dimms) => dimms.class(frame),
        }
    }

    fn state(&self) -> FrameState {
        if self.dimms.is_some() {
            return self.on_dimms();
        }
        let pages = self.placement.mapping();
        let pages = pages.map(|(frame, _)| (frame, self.is_hot(frame)));
        let all = Conflicts::count(self.placement.topology(), pages);
        FrameState {
            pages: all.pages,
            hot: all.hot,
            misplaced: all.hot_in_conflict,
            to_move: all.hot_to_move,
            ..FrameState::default()
        }
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
                    let wants = wants(&spec, false).unwrap();
                    assert!(wants.period.is_none_or(|ns| ns == 1_000_000_000));
                    assert_eq!(policy.wants_uses(), wants.uses);
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
        assert_eq!(
            live_spec("hotset:period=5s").unwrap(),
            "hotset:period=5s,decay=60"
        );
        assert_eq!(
            live_spec("hotset:cool=20,decay=0").unwrap(),
            "hotset:cool=20,decay=0,period=1s"
        );
    }

    /// Pages come in order; four fit; two others become hot, and take the places of two cold ones.
    #[test]
    fn a_hot_page_takes_the_place_of_a_cold_one() {
        let mut policy = PagePolicy::new(&live_spec("hotset").unwrap(), &ROOM).unwrap();
        let page = |number| Page::new(3, number);
        let frames: Vec<u32> = (0..8)
            .map(|n| policy.found(page(n), None, false).unwrap())
            .collect();
        assert_eq!(frames.iter().filter(|f| policy.is_fast(**f)).count(), 4);
        for _ in 0..8 {
            for number in [5, 6] {
                policy.used(frames[number], false, false);
            }
        }
        assert!(policy.is_hot(frames[5]) && !policy.is_hot(frames[0]));
        let mut remaps = Vec::new();
        policy.decide(&mut remaps);
        let up: Vec<&Remap> = remaps.iter().filter(|r| policy.is_fast(r.to)).collect();
        assert_eq!(up.len(), 2);
        for remap in &up {
            assert!(policy.page_in(remap.to).is_some(), "fast memory is full");
            assert!(remaps.iter().any(|other| other.from == remap.to));
        }
        let at = up.iter().find(|r| r.from == frames[5]).unwrap().to;
        for remap in remaps.drain(..) {
            policy.moved(remap);
        }
        policy.decide(&mut remaps);
        assert!(remaps.is_empty(), "{remaps:?}");
        policy.gone(at);
        let again = policy.found(page(9), None, false).unwrap();
        assert!(policy.is_fast(again), "room again");
    }
}
