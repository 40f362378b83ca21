//! `trays`: hot pages on few DIMMs, cold ones packed on others, so that those left over sleep (Olson et al., TACO 2018).
//!
//! The application declares hot pages as ranges of addresses; `trays.rs` and `governor.rs` make the other decisions.

use std::ops::Range;

use varve_access::{Daemons, Fault};
use varve_spec::{Param, Values, Want};

use super::entry::{Entry, Live, Made, Needs, Observed};
use crate::error::Error;
use crate::frames::{Frames, Remap};
use crate::governor::{BandwidthModel, Decision, Governor};
use crate::policy::Policy;
use crate::topology::Topology;
use crate::trays::{Colour, DimmMap, TrayError, TrayState, Trays};

/// Its entry in the table of policies.
pub const ENTRY: Entry = Entry {
    source: "Olson et al., TACO 2018, sections 4.1, 7.2 and 8.2.3",
    observes: &[Observed::Traffic],
    period: Some(TICK.key),
    needs: Needs::Trays,
    params: &[
        Param::new(
            "hot",
            Want::Ranges,
            "",
            "hot ranges of virtual addresses, BASE+BYTES joined by /; all else is cold",
        ),
        Param::new(
            "remote",
            Want::Ranges,
            "0+0",
            "ranges whose pages go to the other socket",
        ),
        DIMMS,
        Param::new(
            "map",
            Want::Ranges,
            "0+0",
            "DIMMs as ranges of physical addresses of the machine at full size, in the order of their use; 0+0: those of the machine's file",
        ),
        LIMIT,
        MODEL,
        UNDO,
        SAMPLE,
        TICK,
    ],
    live: Live::Frames,
    ..Entry::new(
        "trays",
        "hot pages on few DIMMs, cold ones packed on others, so that those left over sleep",
        build,
    )
};

const DIMMS: Param = Param::new(
    "dimms",
    Want::Count { min: 0, max: 64 },
    "1",
    "hot DIMMs of each socket in the beginning, 0 for all; Olson et al., TACO 2018, section 8.2.3: one",
);
const LIMIT: Param = Param::scaled(
    "limit",
    Want::Bytes,
    "0",
    "most hot bytes of a DIMM: on overflow another one becomes hot, and pages move; 0: the DIMM's size",
);
const MODEL: Param = Param::new(
    "model",
    Want::Limits,
    "0",
    "GB/s from which on 1, 2, ... hot DIMMs are full, joined by / (`varve machine governor` makes them): bandwidth is watched and pages move; 0: not",
);
const UNDO: Param = Param::new(
    "undo",
    Want::Flag,
    "yes",
    "yes: a remap to more DIMMs is undone if ten samples show neither more bandwidth nor full DIMMs; no: as in the paper",
);
const SAMPLE: Param = Param::scaled(
    "sample",
    Want::Time,
    "1s",
    "time between two samples of the bandwidth; Olson et al., TACO 2018, section 7.2: one second",
);
const TICK: Param = Param::scaled(
    "tick",
    Want::Time,
    "10ms",
    "time between two wake-ups in which pages move; an assumption",
);

/// How pages are put on DIMMs, whatever source declares which of them are hot.
#[derive(Clone, Debug, PartialEq)]
pub struct TraySettings {
    /// Hot DIMMs in the beginning.
    pub hot: usize,
    /// Most hot bytes of a DIMM.
    pub limit: Option<u64>,
    /// Bandwidth that each number of hot DIMMs sustains, if bandwidth is watched.
    pub model: Option<BandwidthModel>,
    /// Whether a remap that did not raise the bandwidth is undone.
    pub undo: bool,
    /// Time between two samples of the bandwidth, ns.
    pub sample_ns: u64,
    /// Time between two wake-ups in which pages move, ns.
    pub tick_ns: u64,
}

impl Default for TraySettings {
    /// One hot DIMM without a limit, as in the paper's first evaluation; a sample a second.
    fn default() -> TraySettings {
        TraySettings::parse("").expect("the defaults can be read")
    }
}

impl TraySettings {
    /// The settings of programs whose objects a heap plan calls hot or cold: those of the policy, but for its ranges. Their
    /// first DIMMs are called `hot`, at least one, and pages move more often, because such runs are short.
    pub const PARAMS: &[Param] = &[
        Param {
            key: "hot",
            want: Want::Count { min: 1, max: 64 },
            about: "hot DIMMs of each socket in the beginning",
            ..DIMMS
        },
        LIMIT,
        MODEL,
        UNDO,
        SAMPLE,
        Param {
            default: "1ms",
            ..TICK
        },
    ];

    /// All DIMMs in turn, whatever the colour: as channel interleaving does, by pages.
    pub fn all_dimms() -> TraySettings {
        TraySettings {
            hot: 0,
            ..TraySettings::default()
        }
    }

    /// Reads `key=value,...` as [`TraySettings::PARAMS`] say.
    ///
    /// # Errors
    /// A key that there is not, or a value that cannot be.
    pub fn parse(text: &str) -> Result<TraySettings, Error> {
        let values = Values::parse("--trays", "", TraySettings::PARAMS, &[], text)?;
        TraySettings::of(&values, "hot")
    }

    /// Those of the policy's own parameters.
    ///
    /// # Errors
    /// As [`TraySettings::parse`].
    pub fn of_policy(given: &str) -> Result<TraySettings, Error> {
        TraySettings::of(&ENTRY.values(given)?, DIMMS.key)
    }

    /// From values, of which `hot` is the number of hot DIMMs.
    fn of(values: &Values, hot: &str) -> Result<TraySettings, Error> {
        let time = |key: &str| match values.count(key) {
            0 => Err(values.refuse(key, "must be a time above 0, such as 1s or 10ms")),
            ns => Ok(ns),
        };
        let model = match values.limits(MODEL.key) {
            [0.0] => None,
            limits => Some(
                BandwidthModel::new(limits.to_vec())
                    .map_err(|e| values.refuse(MODEL.key, e.to_string()))?,
            ),
        };
        Ok(TraySettings {
            hot: values.count(hot) as usize,
            limit: Some(values.count(LIMIT.key)).filter(|bytes| *bytes > 0),
            model,
            undo: values.flag(UNDO.key),
            sample_ns: time(SAMPLE.key)?,
            tick_ns: time(TICK.key)?,
        })
    }
}

/// Returns the colour of a page that is touched for the first time, and the socket near which it is to be.
pub type ColourOf = Box<dyn Fn(&Fault) -> (Colour, u32) + Send>;

/// The policy, with a function that gives the colour of a page.
pub struct TrayPolicy {
    trays: Trays,
    colour: ColourOf,
    meter: Option<Meter>,
    /// Time between two ticks, ns; 0 without any.
    tick: u64,
}

/// The governor and its once-a-period reading of the counters.
pub struct Meter {
    governor: Governor,
    /// Time between two samples, ns.
    period: u64,
    last: (u64, u64),
    /// Decisions, by time, ns.
    log: Vec<(u64, Decision)>,
}

impl Meter {
    /// Samples every `period` ns.
    pub fn new(model: BandwidthModel, trays: &Trays, period: u64, undoes: bool) -> Meter {
        Meter {
            governor: Governor::new(model, trays.hot(), trays.dimms(), undoes),
            period: period.max(1),
            last: (0, 0),
            log: Vec::new(),
        }
    }

    /// Takes the counters at `now`, ns: at the end of a period they are a sample, and the trays follow the governor's
    /// decision.
    pub fn read(&mut self, now: u64, bytes: u64, trays: &mut Trays) {
        let (then, before) = self.last;
        let span = now.saturating_sub(then);
        if span < self.period {
            return;
        }
        self.last = (now, bytes);
        self.governor.changed(trays.hot());
        if trays.is_spreading() {
            self.governor.moving();
            return;
        }
        let decision = self.governor.sample((bytes - before) as f64 / span as f64);
        if decision != Decision::Stay {
            self.log.push((now, decision));
        }
        trays.set_hot(self.governor.hot());
    }
}

impl TrayPolicy {
    /// Pages of the colours that `colour` returns.
    pub fn new(trays: Trays, colour: ColourOf, meter: Option<Meter>, tick: u64) -> TrayPolicy {
        TrayPolicy {
            trays,
            colour,
            meter,
            tick,
        }
    }

    /// The same on these DIMMs, as settings say.
    ///
    /// # Errors
    /// More hot DIMMs than there are.
    pub fn with_settings(
        map: &DimmMap,
        settings: TraySettings,
        page_bytes: u64,
        colour: ColourOf,
    ) -> Result<TrayPolicy, TrayError> {
        let limit = settings.limit;
        let limit = limit.map(|bytes| (bytes / page_bytes).clamp(1, u64::from(u32::MAX)) as u32);
        let trays = Trays::new(map, settings.hot, limit)?;
        let sample = settings.sample_ns;
        let meter = |model| Meter::new(model, &trays, sample, settings.undo);
        let meter = settings.model.map(meter);
        let tick = match meter.is_some() || limit.is_some() {
            true => settings.tick_ns.min(sample),
            false => 0,
        };
        Ok(TrayPolicy::new(trays, colour, meter, tick))
    }
}

/// Pages in the ranges `hot` are hot, all others cold; those in the ranges `remote` belong to the other socket.
pub fn by_ranges(hot: Vec<Range<u64>>, remote: Vec<Range<u64>>) -> ColourOf {
    let holds = |ranges: &[Range<u64>], vpn: u64| ranges.iter().any(|r| r.contains(&vpn));
    Box::new(move |fault| {
        let colour = match holds(&hot, fault.vpn) {
            true => Colour::Hot,
            false => Colour::Cold,
        };
        (colour, fault.socket ^ u32::from(holds(&remote, fault.vpn)))
    })
}

fn build(values: &Values, topology: &Topology) -> Result<Made, Error> {
    let page = topology.page_bytes;
    let pages = |key: &str| {
        let ranges = values.ranges(key).iter().filter(|(_, bytes)| *bytes > 0);
        let whole =
            ranges.map(|(base, bytes)| base / page..base.saturating_add(*bytes).div_ceil(page));
        whole.collect::<Vec<_>>()
    };
    let map = match values.ranges("map") {
        [(0, 0)] | [] => DimmMap::of(topology)?,
        given => {
            // The map is of the machine at full size, and so are messages about it.
            let scale = values.scale();
            let scaled: Vec<_> = given.iter().map(|(b, n)| (b / scale, n / scale)).collect();
            DimmMap::given(topology, &scaled).map_err(|e| e.at_full_size(scale))?
        }
    };
    let settings = TraySettings::of(values, DIMMS.key)?;
    let colour = by_ranges(pages("hot"), pages("remote"));
    let policy = TrayPolicy::with_settings(&map, settings, page, colour)?;
    Ok((Frames::in_order(topology), Box::new(policy)))
}

impl Policy for TrayPolicy {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let (colour, socket) = (self.colour)(fault);
        self.trays.place(frames, socket, colour)
    }

    fn is_hot(&self, frame: u32) -> bool {
        self.trays.colour(frame) == Some(Colour::Hot)
    }

    fn trays(&self) -> Option<TrayState> {
        let mut state = self.trays.state();
        let log = self.meter.as_ref().map(|m| m.log.clone());
        state.decisions = log.unwrap_or_default();
        Some(state)
    }

    fn freed(&mut self, _frames: &mut Frames, frame: u32) {
        self.trays.freed(frame);
    }

    fn daemons(&self) -> Daemons {
        Daemons {
            threads: u32::from(self.tick > 0),
            period: self.tick,
            sample_period: 0,
        }
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        if let Some(meter) = &mut self.meter {
            meter.read(now, bytes, &mut self.trays);
        }
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        self.trays.remaps(frames, remaps);
    }

    fn found(&mut self, _frames: &mut Frames, fault: &Fault, frame: u32) {
        let (colour, _) = (self.colour)(fault);
        self.trays.found(frame, colour);
    }

    fn strayed(&mut self, _frames: &mut Frames, stray: Remap) {
        self.trays.strayed(stray);
    }

    fn recolour(&mut self, frame: u32, colour: Colour) {
        self.trays.recolour(frame, colour);
    }

    fn review(&mut self, _frames: &Frames, _used: &mut dyn Iterator<Item = u32>) {
        self.trays.review();
    }

    fn moved(&mut self, _frames: &mut Frames, done: Remap) {
        self.trays.moved(done);
    }

    fn cancelled(&mut self, _frames: &mut Frames, remap: Remap) {
        self.trays.cancelled(remap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_and_plans_read_the_same_settings() {
        let values = ENTRY
            .values("hot=0+4KiB,limit=8MiB,model=10.1/12.5,undo=0,tick=1ms")
            .unwrap();
        let policy = TraySettings::of(&values, DIMMS.key).unwrap();
        let plans = TraySettings::parse("limit=8MiB,model=10.1/12.5,undo=no").unwrap();
        assert_eq!(policy, plans);
        assert_eq!(plans.limit, Some(8 << 20));
        assert!(!plans.undo);
        assert_eq!(TraySettings::default().tick_ns, 1_000_000);
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let says = |text: &str| TraySettings::parse(text).unwrap_err().to_string();
        assert_eq!(
            says("hot=0"),
            "--trays: `hot=0`: must be a whole number from 1 to 64"
        );
        assert!(
            says("sample=0s").ends_with("`sample=0s`: must be a time above 0, such as 1s or 10ms")
        );
        assert!(says("model=3/2").contains("`model=3/2`: a bandwidth model with 2 GB/s"));
        assert!(says("hots=1").ends_with("(did you mean `hot`?)"));
    }

    /// The program asks for 15 GB/s, of which two DIMMs do not give it more; pages take 5 us to move.
    #[test]
    fn the_governor_waits_until_its_pages_have_moved() {
        let machine = varve_machine::Machine::load("haswell-2620v3").unwrap();
        let topology = Topology::of(&machine, 2 << 20).unwrap();
        let map = DimmMap::of(&topology).unwrap();
        let settings = "model=10/20/30,sample=1us,tick=1us";
        let settings = TraySettings::parse(settings).unwrap();
        let hot = by_ranges(std::iter::once(0..4).collect(), Vec::new());
        let mut policy = TrayPolicy::with_settings(&map, settings, 2 << 20, hot).unwrap();
        let mut frames = Frames::in_order(&topology);
        for vpn in 0..4 {
            let (thread, socket, write, now) = (0, 0, true, 0);
            let fault = Fault {
                vpn,
                thread,
                socket,
                write,
                now,
            };
            policy.place(&mut frames, &fault).unwrap();
        }
        let (mut under_way, mut remaps) = (Vec::new(), Vec::new());
        for us in 1..22 {
            policy.traffic(us * 1000, us * 15_000);
            policy.tick(&mut frames, &mut remaps);
            under_way.extend(remaps.drain(..).map(|r| (us + 5, r)));
            for (_, done) in under_way.extract_if(.., |(at, _)| *at <= us) {
                policy.moved(&mut frames, done);
                frames.give(done.from);
            }
        }
        // From 2 to 7 us pages move, and the sample of 8 us holds some of that. Ten samples show no rise.
        let decided = policy.trays().unwrap().decisions;
        assert_eq!(
            decided,
            [(2_000, Decision::Remap(2)), (18_000, Decision::Undo(1))]
        );
    }
}
