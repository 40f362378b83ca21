//! Power over time: the energy of each span between two snapshots of a run.

use super::{Energy, NoEnergyData};
use crate::describe::Machine;
use crate::model::{ChannelActivity, Outcome, Snapshot};

/// A span of a run and the energy of its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergySpan {
    /// Where it begins, s of virtual time.
    pub begin: f64,
    /// Where it ends.
    pub end: f64,
    /// The energy.
    pub energy: Energy,
}

/// The energy of a run over time, span by span; nothing where the run took no snapshots (`Options::snapshot_ns`).
///
/// # Errors
/// As [`Energy::of`].
pub fn series(m: &Machine, run: &Outcome) -> Result<Vec<EnergySpan>, NoEnergyData> {
    between(m, &run.snapshots, &run.activity)
}

/// The same between any readings of the counters.
///
/// # Errors
/// As there.
pub fn between(
    m: &Machine,
    readings: &[Snapshot],
    activity: &[Vec<Vec<ChannelActivity>>],
) -> Result<Vec<EnergySpan>, NoEnergyData> {
    let mut spans = Vec::new();
    let mut before: (u64, Option<&Vec<Vec<ChannelActivity>>>) = (0, None);
    for (snapshot, sockets) in readings.iter().zip(activity) {
        let (begin, end) = (before.0 as f64 / 1e9, snapshot.now_ns as f64 / 1e9);
        let earlier = |socket: usize, channel: usize| before.1?.get(socket)?.get(channel);
        let since = sockets.iter().enumerate().map(|(i, socket)| {
            let channels = socket.iter().enumerate();
            channels
                .map(|(j, c)| c.since(earlier(i, j)))
                .collect::<Vec<_>>()
        });
        let did: Vec<Vec<ChannelActivity>> = since.collect();
        spans.push(EnergySpan {
            begin,
            end,
            energy: Energy::during(m, end - begin, &did)?,
        });
        before = (snapshot.now_ns, Some(sockets));
    }
    Ok(spans)
}
