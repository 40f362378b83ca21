//! DIMMs of a machine whose memory lies one DIMM after the other: pages of each colour, energy, power over time.

use serde::{Deserialize, Serialize};
use varve_machine::model::Outcome;
use varve_machine::{Machine, energy};
use varve_pages::governor::Decision;
use varve_pages::trays::TrayState;

/// Time between two points of power over time in the beginning, ns; it grows with the run.
pub const FIRST_SNAPSHOT_NS: u64 = 100_000;

/// Pages of a DIMM at the end, and its energy.
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
    /// Of a run on a machine, by where pages of each colour were at its end.
    pub fn of(m: &Machine, outcome: &Outcome, state: &TrayState) -> TrayUse {
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
