//! Managed programs on a machine with one memory whose DIMMs lie one after the other: the memories of a heap's plan are colours
//! of pages there. What the plan has in fast memory is hot, all else is cold; a plan with one memory has its pages on all DIMMs
//! in turn, as channel interleaving does.

use super::pages::Tiers;
use super::{ManagedSpec, Numa};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use varve_machine::model::Outcome;
use varve_machine::{Machine, energy};
use varve_pages::governor::Decision;
pub use varve_pages::policies::TraySettings as TrayOptions;
use varve_pages::policies::{Meter, TrayPolicy, trays};
use varve_pages::trays::{Colour, DimmMap, TrayError, TrayState, Trays};
use varve_pages::{Frames, Placement, Topology};
use varve_runtime::plans;

/// Time between two points of power over time in the beginning, ns; it grows with the run.
pub const FIRST_SNAPSHOT_NS: u64 = 100_000;

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
        trays::ENTRY.name,
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
