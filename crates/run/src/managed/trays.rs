//! Managed programs on a machine with one memory whose DIMMs lie one after the other: the memories of a heap's plan are colours
//! of pages there. What the plan has in fast memory is hot, all else is cold; a plan with one memory has its pages on all DIMMs
//! in turn, as channel interleaving does.

use super::pages::Tiers;
use super::{ManagedSpec, Numa};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use varve_machine::model::Outcome;
use varve_machine::{Bytes, Machine, energy, written};
use varve_pages::governor::{BandwidthModel, Decision};
use varve_pages::policies::{Meter, TrayPolicy};
use varve_pages::trays::{Colour, DimmMap, TrayError, TrayState, Trays};
use varve_pages::{Frames, Placement, Topology};
use varve_runtime::plans;

/// Time between two points of power over time in the beginning, ns; it grows with the run.
pub const FIRST_SNAPSHOT_NS: u64 = 100_000;

/// How pages are put on DIMMs: see [`TrayOptions::parse`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrayOptions {
    /// Hot DIMMs in the beginning.
    pub hot: usize,
    /// Most hot bytes of a DIMM.
    pub limit: Option<u64>,
    /// What so many hot DIMMs sustain, if bandwidth is watched.
    pub model: Option<BandwidthModel>,
    /// Whether a remap that did not raise the bandwidth is undone.
    pub undo: bool,
    /// Time between two samples of the bandwidth, ns.
    pub sample_ns: u64,
    /// Time between two wake-ups in which pages move, ns.
    pub tick_ns: u64,
}

impl Default for TrayOptions {
    /// One hot DIMM without a limit, as in the paper's first evaluation; a sample a second.
    fn default() -> TrayOptions {
        TrayOptions {
            hot: 1,
            limit: None,
            model: None,
            undo: true,
            sample_ns: 1_000_000_000,
            tick_ns: 1_000_000,
        }
    }
}

impl TrayOptions {
    /// Keys, what they take, and what they mean.
    pub const KEYS: [(&'static str, &'static str, &'static str); 6] = [
        ("hot", "1", "hot DIMMs of each socket in the beginning"),
        (
            "limit",
            "8MiB",
            "most hot bytes of a DIMM: on overflow another DIMM becomes hot",
        ),
        (
            "model",
            "10.1/12.5/16.3",
            "GB/s that 1, 2, ... hot DIMMs sustain: bandwidth is watched, and pages move",
        ),
        (
            "undo",
            "yes",
            "whether a remap that did not raise the bandwidth is undone: yes or no",
        ),
        ("sample", "1s", "time between two samples of the bandwidth"),
        (
            "tick",
            "1ms",
            "time between two wake-ups in which pages move",
        ),
    ];

    /// Reads `key=value,...`.
    ///
    /// # Errors
    /// A key that there is not, or a value that cannot be.
    pub fn parse(text: &str) -> Result<TrayOptions, Error> {
        let mut options = TrayOptions::default();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            options.set(key.trim(), value.trim())?;
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let wrong = |want: String| Error::TrayOption {
            key: key.into(),
            value: value.into(),
            want,
        };
        let time = || {
            written::nanoseconds(value)
                .filter(|ns| *ns > 0)
                .ok_or_else(|| wrong("a time above 0, such as 1s or 10ms".into()))
        };
        match key {
            "hot" => {
                let hot = value.parse().ok().filter(|hot| *hot > 0);
                self.hot = hot.ok_or_else(|| wrong("a number of DIMMs, from 1 on".into()))?;
            }
            "limit" => {
                let bytes = value.parse::<Bytes>().ok().filter(|b| b.0 > 0);
                self.limit = Some(bytes.ok_or_else(|| wrong("bytes, such as 8MiB".into()))?.0);
            }
            "model" => {
                let limits = value.split('/').map(|t| t.trim().parse::<f64>());
                let limits = limits.collect::<Result<Vec<f64>, _>>();
                let limits =
                    limits.map_err(|_| wrong("GB/s joined by /, such as 10.1/12.5/16.3".into()))?;
                let model = BandwidthModel::new(limits).map_err(|e| wrong(e.to_string()))?;
                self.model = Some(model);
            }
            "undo" => {
                self.undo = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong("yes or no".into())),
                }
            }
            "sample" => self.sample_ns = time()?,
            "tick" => self.tick_ns = time()?,
            _ => {
                let known: Vec<&str> = TrayOptions::KEYS.iter().map(|k| k.0).collect();
                return Err(wrong(format!(
                    "no such key; there are {}",
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// Where pages of a managed program go.
pub fn placement(
    spec: &ManagedSpec,
    topology: &Topology,
    tiers: Arc<Tiers>,
) -> Result<Placement, Error> {
    let o = &spec.trays;
    let map = DimmMap::of(topology).map_err(|e| match e {
        TrayError::Interleaved => Error::NoTiers(spec.machine.name.clone()),
        e => varve_pages::Error::from(e).into(),
    })?;
    // Whether the plan knows colours at all.
    let profile = spec.config.profile.as_deref();
    let coloured = plans::by_name(&spec.plan, profile).map_or(true, |p| p.plan.tiers() > 1);
    let page = spec.page_bytes;
    let (hot, limit, model) = match coloured {
        true => (o.hot, o.limit, o.model.clone()),
        false => (0, None, None),
    };
    let limit = limit.map(|bytes| (bytes / page).clamp(1, u64::from(u32::MAX)) as u32);
    // What cannot be is refused under every plan, so that nothing has run before it is said.
    Trays::new(&map, o.hot, None).map_err(varve_pages::Error::from)?;
    let trays = Trays::new(&map, hot, limit).map_err(varve_pages::Error::from)?;
    let meter = model.map(|m| Meter::new(m, &trays, o.sample_ns, o.undo));
    let tick = match meter.is_some() || limit.is_some() {
        true => o.tick_ns.min(o.sample_ns),
        false => 0,
    };
    let numa = spec.numa;
    let colour = Box::new(move |fault: &varve_machine::Fault| {
        let colour = match coloured && tiers.of(fault.vpn) > 0 {
            true => Colour::Cold,
            false => Colour::Hot,
        };
        let socket = match numa {
            Numa::Local | Numa::Remote => 0,
            Numa::Auto => (fault.vpn % 2) as u32,
        };
        (colour, socket)
    });
    let policy = TrayPolicy::new(trays, colour, meter, tick);
    let frames = Frames::in_order(topology);
    Ok(Placement::with(
        "trays",
        topology.clone(),
        frames,
        Box::new(policy),
    ))
}

/// What a DIMM held at the end, and took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DimmUse {
    /// Its socket.
    pub socket: u32,
    /// Bytes of hot pages.
    pub hot_bytes: u64,
    /// Bytes of cold pages.
    pub cold_bytes: u64,
    /// Energy of the whole run, J.
    pub joules: f64,
    /// Part of it that is for commands: activates, bursts, refreshes.
    pub operation_j: f64,
    /// Shares of the ranks' time, 0 to 1: active, stand-by, power-down, self-refresh.
    pub states: [f64; 4],
}

/// Colours on DIMMs at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrayUse {
    /// Every DIMM, socket by socket.
    pub dimms: Vec<DimmUse>,
    /// Hot DIMMs of each socket.
    pub hot: u32,
    /// When the governor remapped, s, to how many hot DIMMs, and whether that was to undo a remap.
    pub decisions: Vec<(f64, u32, bool)>,
    /// DIMMs that became hot because the hot ones were full.
    pub overflows: u32,
    /// Bytes that moved between DIMMs.
    pub remapped_bytes: u64,
}

impl TrayUse {
    pub(super) fn of(m: &Machine, outcome: &Outcome, state: &TrayState) -> TrayUse {
        let energy = energy::Energy::of(m, outcome).ok();
        let ranks = m.dram.ranks.max(1) as usize;
        let per_channel = m.dram.dimms_per_channel.max(1) as usize;
        let mut dimms = Vec::new();
        for (socket, pages) in state.pages.iter().enumerate() {
            for (at, &(hot, cold)) in pages.iter().enumerate() {
                let (channel, dimm) = (at / per_channel, at % per_channel);
                let of = |e: &energy::Energy| {
                    let channel = e.sockets.get(socket)?.get(channel)?;
                    Some(channel.dimm(dimm))
                };
                let took = energy.as_ref().and_then(of).unwrap_or_default();
                let times = outcome.ranks.get(socket).and_then(|s| s.get(channel));
                let times = times.map_or(&[][..], Vec::as_slice);
                let mut states = [0.0; 4];
                for t in times.iter().skip(dimm * ranks).take(ranks) {
                    for (sum, ps) in
                        states
                            .iter_mut()
                            .zip([t.active, t.standby, t.powerdown, t.selfrefresh])
                    {
                        *sum += ps as f64;
                    }
                }
                let all: f64 = states.iter().sum::<f64>().max(1.0);
                dimms.push(DimmUse {
                    socket: socket as u32,
                    hot_bytes: u64::from(hot) * outcome.page_bytes,
                    cold_bytes: u64::from(cold) * outcome.page_bytes,
                    joules: took.total(),
                    operation_j: took.operation(),
                    states: states.map(|s| s / all),
                });
            }
        }
        let decision = |(ns, d): &(u64, Decision)| match *d {
            Decision::Stay => None,
            Decision::Remap(hot) => Some((*ns as f64 / 1e9, hot as u32, false)),
            Decision::Undo(hot) => Some((*ns as f64 / 1e9, hot as u32, true)),
        };
        TrayUse {
            dimms,
            hot: state.hot as u32,
            decisions: state.decisions.iter().filter_map(decision).collect(),
            overflows: state.overflows,
            remapped_bytes: outcome.phases.iter().map(|p| p.moves.bytes).sum(),
        }
    }
}

/// Power of each DIMM until a time, since the point before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PowerPoint {
    /// The time, s.
    pub end: f64,
    /// W of each DIMM, socket by socket.
    pub watts: Vec<f64>,
    /// Bytes that were read from and written to DRAM in a second.
    pub bytes_per_second: f64,
}

/// Power of a run over time; nothing if the machine has no data for it.
pub fn power(m: &Machine, outcome: &Outcome) -> Vec<PowerPoint> {
    let Ok(spans) = energy::series(m, outcome) else {
        return Vec::new();
    };
    let lines = outcome.activity.iter().map(|sockets| {
        let channels = sockets.iter().flatten();
        channels.map(|c| c.dram.reads + c.dram.writes).sum::<u64>()
    });
    let mut before = 0;
    let mut points = Vec::new();
    for (span, lines) in spans.iter().zip(lines) {
        let seconds = (span.end - span.begin).max(f64::MIN_POSITIVE);
        let channels = span.energy.sockets.iter().flatten();
        let dimms = channels.flat_map(|c| (0..c.dimms.len()).map(|d| c.dimm(d).total()));
        points.push(PowerPoint {
            end: span.end,
            watts: dimms.map(|j| j / seconds).collect(),
            bytes_per_second: 64.0 * (lines - before) as f64 / seconds,
        });
        before = lines;
    }
    points
}
