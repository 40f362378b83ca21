//! Page policies that choose frames, by bins of a DRAM cache or by DIMMs: what [`PagePolicy`] is for those. The frames are the
//! machine's own.

use crate::dimms::{DimmPlace, Dimms};
use crate::pages::PagePolicy;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use varve_access::Fault;
use varve_live::tier::{DimmFrames, FrameState, Span, Spans};
use varve_pages::governor::Decision;
use varve_pages::heat::{Heat, Thresholds};
use varve_pages::policies::{TrayPolicy, TraySettings};
use varve_pages::trays::{Colour, Dimm, DimmMap};
use varve_pages::{Frames, NodeFrames, Placement, Topology};

/// Pages of a bin that can be told apart (`varve_pages::bins`).
const DEEPEST: u64 = 1 << 15;

/// The DRAM cache in front of each node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOfNodes {
    /// Bytes.
    pub bytes: u64,
    /// Pages that share a bin without conflict; 1 for a direct-mapped cache.
    pub ways: u32,
}

/// When a page is hot by use: as for the other policies that go by it.
const HOT: Thresholds = Thresholds {
    loads: 8,
    stores: 4,
    cool: 16,
};

impl PagePolicy {
    /// The policy of a specification that [`crate::pages::live_spec`] made, about bins of a cache.
    ///
    /// # Errors
    /// A cache that pages do not divide, or that is too small for the machine's memory; one line each.
    pub fn of_bins(
        spec: &str,
        spans: &Spans,
        page_bytes: u64,
        cache: CacheOfNodes,
    ) -> Result<PagePolicy, String> {
        let unit = page_bytes * u64::from(cache.ways.max(1));
        if cache.bytes == 0 || !cache.bytes.is_multiple_of(unit) {
            return Err(format!(
                "--cache: {} bytes are not a whole number of {unit} bytes, pages of {page_bytes} in each of {} ways",
                cache.bytes, cache.ways
            ));
        }
        let bins = u32::try_from(cache.bytes / unit)
            .map_err(|_| "--cache: too many bins: use larger pages (--page 2MiB)")?;
        let nodes = spans.nodes();
        let frames = nodes.iter().map(|span| span.frames);
        let deepest = frames.max().unwrap_or(0).div_ceil(bins);
        if u64::from(deepest) >= DEEPEST {
            return Err(format!(
                "--cache: {deepest} frames of a node would share a bin: the cache is too small for this machine's memory"
            ));
        }
        let node = |(socket, frames): (usize, u32)| NodeFrames {
            frames,
            fast: false,
            socket: socket as u32,
            bins: Some(bins),
            ways: cache.ways,
            dimms: 0,
        };
        let nodes = nodes.iter().map(|span| span.frames).enumerate();
        let topology = Topology {
            page_bytes,
            nodes: nodes.map(node).collect(),
        };
        let placement = Placement::on(spec, topology).map_err(|e| e.to_string())?;
        Ok(PagePolicy::in_frames(placement, None))
    }

    /// The policy of a specification that [`crate::pages::live_spec`] made, about DIMMs. `by_use`: pages are hot that are in use, and
    /// otherwise those that are called so when they are found.
    ///
    /// # Errors
    /// More hot DIMMs than there are, or none at all; one line each.
    pub fn of_dimms(
        spec: &str,
        spans: &Spans,
        dimms: &[DimmFrames],
        page_bytes: u64,
        by_use: bool,
    ) -> Result<PagePolicy, String> {
        let (entry, _) = varve_pages::policies::parse(spec).map_err(|e| e.to_string())?;
        let has_cold = entry.params.iter().any(|param| param.key == "hot");
        let settings = match has_cold {
            true => {
                TraySettings::of_policy(varve_spec::split(spec).1).map_err(|e| e.to_string())?
            }
            false => TraySettings::all_dimms(),
        };
        let node = |(socket, span): (usize, Span)| NodeFrames {
            frames: span.frames,
            fast: true,
            socket: socket as u32,
            bins: None,
            ways: 1,
            dimms: 0,
        };
        let topology = Topology {
            page_bytes,
            nodes: spans.nodes().into_iter().enumerate().map(node).collect(),
        };
        // Sockets are nodes with DIMMs on the map.
        let mut sockets: Vec<u32> = dimms.iter().map(|dimm| dimm.node).collect();
        sockets.dedup();
        if sockets.is_empty() {
            return Err("--dimm-map: no DIMMs".into());
        }
        let map = DimmMap::of_dimms(
            dimms
                .iter()
                .map(|dimm| Dimm {
                    socket: sockets.iter().position(|s| *s == dimm.node).unwrap_or(0) as u32,
                    first: dimm.first,
                    frames: dimm.frames,
                })
                .collect(),
        );
        let hot = Arc::new(AtomicBool::new(!has_cold));
        let told = hot.clone();
        let colour = Box::new(move |fault: &Fault| match told.load(Ordering::Relaxed) {
            true => (Colour::Hot, fault.socket),
            false => (Colour::Cold, fault.socket),
        });
        let policy = TrayPolicy::with_settings(&map, settings, page_bytes, colour);
        let policy = policy.map_err(|e| e.to_string())?;
        let frames = Frames::in_order(&topology);
        let heat = (by_use && has_cold).then(|| Heat::new(frames.len(), HOT));
        let placement = Placement::with(spec, topology, frames, Box::new(policy));
        let place = |(at, dimm): (usize, &DimmFrames)| DimmPlace {
            first: dimm.first,
            frames: dimm.frames,
            place: dimms[..at].iter().filter(|d| d.node == dimm.node).count(),
        };
        let dimms = Dimms {
            hot: Cell::new(1),
            frames: dimms.iter().enumerate().map(place).collect(),
            heat,
            colour: hot,
            all_hot: !has_cold,
        };
        Ok(PagePolicy::in_frames(placement, Some(dimms)))
    }

    /// Heat of pages, where DIMMs are chosen by use.
    pub(crate) fn heat_of_dimms(&mut self) -> Option<&mut Heat> {
        self.dimms.as_mut()?.heat.as_mut()
    }

    /// How things are on DIMMs.
    pub(crate) fn on_dimms(&self) -> FrameState {
        let trays = self.placement.policy().trays().unwrap_or_default();
        if let Some(dimms) = &self.dimms {
            dimms.are_hot(trays.hot);
        }
        // Pages in frames that are on no DIMM of the map have no colour.
        let decision = |&(at, decision): &(u64, Decision)| match decision {
            Decision::Stay => None,
            Decision::Remap(dimms) => Some((at, dimms, false)),
            Decision::Undo(dimms) => Some((at, dimms, true)),
        };
        let mut state = FrameState {
            hot_dimms: trays.hot,
            governed: trays.decisions.iter().filter_map(decision).collect(),
            ..FrameState::default()
        };
        for socket in &trays.pages {
            for (at, &(hot, cold)) in socket.iter().enumerate() {
                let is_hot = at < trays.hot;
                let all_are = trays.hot == socket.len();
                let (hot, cold) = (u64::from(hot), u64::from(cold));
                state.pages += hot + cold;
                state.hot += hot;
                state.misplaced += if is_hot { 0 } else { hot };
                state.to_move += match (is_hot, all_are) {
                    (_, true) => 0,
                    (true, _) => cold,
                    (false, _) => hot,
                };
                state.dimms.push((hot, cold));
            }
        }
        state
    }

    /// Hot pages that have not been in use for a while are cold again.
    pub(crate) fn cool_down(&mut self) {
        let Some(heat) = self.dimms.as_ref().and_then(|dimms| dimms.heat.as_ref()) else {
            return;
        };
        let policy = self.placement.policy();
        let pages = self.placement.mapping().map(|(frame, _)| frame);
        let cold: Vec<u32> = pages
            .filter(|frame| policy.is_hot(*frame) && !heat.is_hot(*frame))
            .collect();
        for frame in cold {
            self.placement.recolour(frame, Colour::Cold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{live_spec, wants};
    use varve_live::tier::{Page, Remap, TierPolicy};

    fn spans() -> Spans {
        Spans::parse("Node 0, zone Normal\n spanned 64\n start_pfn: 0\n", 4096).unwrap()
    }

    fn page(number: u64) -> Page {
        Page::new(1, number)
    }

    /// Frames 3 and 11 share a bin of eight. The reserve has frames of a bin that is hot and of one that is not.
    #[test]
    fn two_hot_pages_of_a_bin_are_parted_by_a_frame_of_the_reserve() {
        let cache = CacheOfNodes {
            bytes: 8 * 4096,
            ways: 1,
        };
        let spec = live_spec("dynamic").unwrap();
        let mut policy = PagePolicy::of_bins(&spec, &spans(), 4096, cache).unwrap();
        for (number, frame) in [3, 11, 4, 21].into_iter().enumerate() {
            policy.found(page(number as u64), Some(frame), false);
        }
        for _ in 0..4 {
            [3, 11, 4]
                .into_iter()
                .for_each(|frame| policy.used(frame, true, false));
        }
        assert_eq!((policy.state().hot, policy.state().misplaced), (3, 2));
        let mut remaps = Vec::new();
        policy.decide(&mut remaps);
        assert_eq!(remaps, [], "there is no reserve");
        policy.offered(20);
        policy.review();
        policy.decide(&mut remaps);
        assert_eq!(remaps, [], "its bin is as hot");
        policy.offered(30);
        policy.review();
        policy.decide(&mut remaps);
        assert_eq!(remaps, [Remap { from: 3, to: 30 }]);
        // It came elsewhere, and from there to where it was to go.
        policy.strayed(3, 12);
        assert_eq!(policy.state().misplaced, 2, "with the one of frame 4");
        remaps.clear();
        policy.decide(&mut remaps);
        assert_eq!(remaps, [Remap { from: 4, to: 30 }]);
        policy.moved(remaps[0]);
        assert_eq!((policy.state().misplaced, policy.state().pages), (0, 4));
        policy.gone(30);
        assert_eq!(policy.state().pages, 3);
        // A page that cannot be moved stays, and the other one goes.
        policy.found(page(9), Some(19), false);
        (0..6).for_each(|_| policy.used(19, true, false));
        (0..9).for_each(|_| policy.used(11, true, false));
        policy.fixed(19);
        policy.offered(30);
        remaps.clear();
        policy.decide(&mut remaps);
        assert_eq!(remaps, [Remap { from: 11, to: 30 }]);
    }

    #[test]
    fn pages_in_use_come_to_the_first_dimm_and_cold_ones_leave_it() {
        let spec = live_spec("trays").unwrap();
        let dimm = |first| DimmFrames {
            name: format!("D{first}"),
            node: 0,
            first,
            frames: 32,
        };
        let dimms = [dimm(0), dimm(32)];
        let mut policy = PagePolicy::of_dimms(&spec, &spans(), &dimms, 4096, true).unwrap();
        for frame in [1, 2, 40, 41] {
            policy.found(page(frame.into()), Some(frame), false);
        }
        [5, 6, 50, 51]
            .into_iter()
            .for_each(|frame| policy.offered(frame));
        (0..4).for_each(|_| policy.used(40, true, false));
        assert_eq!(policy.state().dimms, [(0, 2), (1, 1)]);
        let mut remaps = Vec::new();
        policy.decide(&mut remaps);
        let remap = |from, to| Remap { from, to };
        assert_eq!(remaps, [remap(1, 50), remap(2, 51), remap(40, 5)]);
        remaps.iter().for_each(|done| policy.moved(*done));
        assert_eq!(policy.state().dimms, [(1, 0), (0, 3)]);
        assert_eq!(policy.state().to_move, 0);
        // A page that is no longer accessed becomes cold again.
        (0..200).for_each(|_| policy.used(50, true, false));
        policy.review();
        assert_eq!(policy.state().dimms, [(0, 1), (1, 2)]);
        // By name instead.
        let mut policy = PagePolicy::of_dimms(&spec, &spans(), &dimms, 4096, false).unwrap();
        policy.found(page(1), Some(1), true);
        policy.found(page(2), Some(40), false);
        assert_eq!(policy.state().dimms, [(1, 0), (0, 1)]);
        assert!(!policy.wants_uses());
        let spec = live_spec("channels").unwrap();
        let mut policy = PagePolicy::of_dimms(&spec, &spans(), &dimms, 4096, true).unwrap();
        for frame in 1..5 {
            policy.found(page(frame.into()), Some(frame), false);
        }
        policy.offered(33);
        policy.offered(34);
        policy.decide(&mut remaps);
        assert_eq!(remaps.len(), 3 + 2, "half of them on each");
    }

    /// A second of 12 GB/s after the other, on DIMMs of which one sustains 10: hot pages are spread over two. If that does not
    /// raise the bandwidth they come back; and they do when the load falls.
    #[test]
    fn the_governor_makes_dimms_hot_by_the_bandwidth_that_is_told() {
        let spec = live_spec("trays:model=10/20,sample=1s").unwrap();
        let dimms = [0, 32].map(|first| DimmFrames {
            name: format!("D{first}"),
            node: 0,
            first,
            frames: 32,
        });
        let make = |spec: &str| PagePolicy::of_dimms(spec, &spans(), &dimms, 4096, false).unwrap();
        assert!(wants(&spec, false).unwrap().traffic);
        assert!(!wants(&live_spec("trays").unwrap(), false).unwrap().traffic);
        let told = |policy: &mut PagePolicy, gbps: &[u64]| {
            let mut remaps = Vec::new();
            let mut bytes = 0;
            for (second, gbps) in (1u64..).zip(gbps) {
                bytes += gbps * 1_000_000_000;
                policy.traffic(second * 1_000_000_000, bytes);
                policy.decide(&mut remaps);
                remaps.drain(..).for_each(|done| policy.moved(done));
            }
            policy.state()
        };
        let begin = || {
            let mut policy = make(&spec);
            for frame in 0..4 {
                policy.found(page(frame.into()), Some(frame), true);
            }
            (8..12)
                .chain(40..44)
                .for_each(|frame| policy.offered(frame));
            policy
        };
        let rising = told(&mut begin(), &[12, 12, 15, 18, 18, 18]);
        assert_eq!(rising.hot_dimms, 2);
        assert_eq!(rising.dimms, [(2, 0), (2, 0)], "spread over both");
        assert_eq!(rising.governed, [(2_000_000_000, 2, false)]);
        let useless = told(&mut begin(), &[12; 14]);
        assert_eq!((useless.hot_dimms, useless.governed.len()), (1, 2));
        assert_eq!(useless.governed[1], (13_000_000_000, 1, true));
        assert_eq!(useless.dimms, [(4, 0), (0, 0)], "back again");
        let falling = told(&mut begin(), &[12, 12, 15, 18, 18, 4, 4]);
        assert_eq!(
            (falling.hot_dimms, falling.dimms),
            (1, vec![(4, 0), (0, 0)])
        );
    }

    #[test]
    fn what_does_not_go_with_the_machine_is_refused_in_a_line() {
        let bins = |bytes, ways| {
            let cache = CacheOfNodes { bytes, ways };
            PagePolicy::of_bins("dynamic:period=1s", &spans(), 4096, cache)
                .err()
                .unwrap()
        };
        assert!(bins(5000, 1).starts_with("--cache: 5000 bytes"));
        assert!(bins(8192, 4).contains("in each of 4 ways"));
        for key in ["hot=0+4KiB", "map=0+1GiB", "remote=0+4KiB"] {
            let why = live_spec(&format!("trays:{key}")).unwrap_err();
            assert!(
                why.contains("for the model") && !why.contains('\n'),
                "{why}"
            );
        }
        let spec = live_spec("trays:dimms=3").unwrap();
        let one = DimmFrames {
            name: "A".into(),
            node: 0,
            first: 0,
            frames: 64,
        };
        let why = PagePolicy::of_dimms(&spec, &spans(), &[one], 4096, true)
            .err()
            .unwrap();
        assert!(why.starts_with("3 hot DIMMs"), "{why}");
    }
}
