//! Weights of interleaving, so that each memory gets pages in proportion to its bandwidth.

use crate::curves::LiveCurve;
use crate::probe::Topology;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Weights add up to about this: few pages in a row on one node, and a small error. The kernel's own (`weightiness` in
/// mm/mempolicy.c).
const SUM: f64 = 32.0;

/// Measurements of `varve machine calibrate here --json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Measured {
    /// Which nodes the curves are of.
    places: Vec<MeasuredPlace>,
    measured: Vec<LiveCurve>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct MeasuredPlace {
    id: String,
    node: u32,
}

/// The file has no such curves.
#[derive(Debug, thiserror::Error)]
#[error(
    "no output of `varve machine calibrate here --json` ({0}); write one: varve machine calibrate here --quick --json > here.json"
)]
pub struct MeasuredError(serde_json::Error);

impl Measured {
    /// Reads what the command printed.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(text: &str) -> Result<Measured, MeasuredError> {
        serde_json::from_str(text).map_err(MeasuredError)
    }

    /// Bandwidth by node, MB/s: the most that was read with any number of threads, or written past the caches if that is less, as the kernel takes
    /// the less of both.
    fn bandwidths(&self) -> BTreeMap<u32, f64> {
        let most = |id: &str| {
            let curve = self.measured.iter().find(|curve| curve.id == id)?;
            curve
                .points
                .iter()
                .map(|p| p.median * 1000.0)
                .reduce(f64::max)
        };
        let of = |place: &MeasuredPlace| {
            let read = most(&format!("threads/{}/read", place.id))?;
            let write = most(&format!("threads/{}/ntstore", place.id)).unwrap_or(read);
            Some((place.node, read.min(write)))
        };
        self.places.iter().filter_map(of).collect()
    }
}

/// Bandwidth of each node with memory, MB/s; `None` if one is not known. What was measured counts, and else what the firmware
/// states.
pub fn bandwidths(topology: &Topology, measured: Option<&Measured>) -> Option<BTreeMap<u32, f64>> {
    let measured = measured.map(Measured::bandwidths);
    let of = |node: &crate::probe::Node| match &measured {
        Some(measured) => Some((node.id, *measured.get(&node.id)?)),
        None => {
            let nearest = node.attached.iter().min_by_key(|a| a.class)?;
            Some((
                node.id,
                nearest.read_mb_per_s.min(nearest.write_mb_per_s) as f64,
            ))
        }
    };
    let with_memory = topology.nodes.iter().filter(|node| node.bytes > 0);
    let all: Option<BTreeMap<u32, f64>> = with_memory.map(of).collect();
    all.filter(|all| all.values().all(|bandwidth| *bandwidth > 0.0))
}

/// Whole weights from 1 on in proportion to bandwidths, as small as can be.
pub fn weights(bandwidths: &BTreeMap<u32, f64>) -> BTreeMap<u32, u32> {
    let sum: f64 = bandwidths.values().sum();
    let whole = |(node, bandwidth): (&u32, &f64)| {
        let weight = (bandwidth * SUM / sum).round().max(1.0);
        (*node, weight as u32)
    };
    let mut all: BTreeMap<u32, u32> = bandwidths.iter().map(whole).collect();
    let divisor = all.values().copied().fold(0, gcd).max(1);
    all.values_mut().for_each(|weight| *weight /= divisor);
    all
}

fn gcd(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// Do these weights divide pages otherwise than those, by more than rounding to [`SUM`] parts explains?
pub fn differ(now: &BTreeMap<u32, u32>, wanted: &BTreeMap<u32, u32>) -> bool {
    let share = |of: &BTreeMap<u32, u32>, node: u32| {
        // Nodes that are not asked about have no pages here.
        let sum: u32 = wanted.keys().filter_map(|node| of.get(node)).sum();
        f64::from(of.get(&node).copied().unwrap_or(0)) / f64::from(sum.max(1))
    };
    let far = |node: &u32| (share(now, *node) - share(wanted, *node)).abs() > 1.0 / SUM;
    wanted.keys().any(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_in_proportion_and_small() {
        let of = |a: f64, b: f64| weights(&BTreeMap::from([(0, a), (1, b)]));
        assert_eq!(of(100.0, 100.0), BTreeMap::from([(0, 1), (1, 1)]));
        assert_eq!(of(300.0, 100.0), BTreeMap::from([(0, 3), (1, 1)]));
        assert_eq!(of(1e6, 1.0), BTreeMap::from([(0, 32), (1, 1)]));
        assert!(differ(&of(1.0, 1.0), &of(3.0, 1.0)));
        assert!(!differ(&of(300.0, 100.0), &of(301.0, 100.0)));
    }
}
