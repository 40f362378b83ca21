//! Published beside ours.

use super::{Curve, PublishedCurve};
use serde::{Deserialize, Serialize};

/// One published figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Id of the curve.
    pub curve: String,
    /// Where on the curve, in words.
    pub at: String,
    /// Unit of the figures.
    pub unit: String,
    /// Published value.
    pub published: f64,
    /// Value on the model; `None` where our curve does not reach.
    pub ours: Option<f64>,
    /// How far ours is above (or, negative, below) the published figure, %.
    pub error_percent: Option<f64>,
    /// The machine's description was made from this figure.
    pub is_input: bool,
    /// Publication that the value is from.
    pub source: String,
}

/// Every published point within the measured range, beside ours; along bandwidths and shares of reads on a straight
/// line between our points. Loaded latencies beyond our largest bandwidth stay in the table without a value, since not
/// reaching them is a result.
pub fn table(ours: &[Curve], published: &[PublishedCurve]) -> Vec<Row> {
    let mut rows = Vec::new();
    for p in published {
        let Some(curve) = ours.iter().find(|c| c.id == p.curve) else {
            continue;
        };
        let continuous = curve.axis.contains("GB/s") || curve.axis.contains('%');
        for point in &p.points {
            let value = match continuous {
                true => curve.at(point.x),
                false => curve.named(&point.at),
            };
            // A quick run measures fewer points.
            if value.is_none() && !continuous {
                continue;
            }
            rows.push(Row {
                curve: p.curve.clone(),
                at: point.at.clone(),
                unit: curve.unit.clone(),
                published: point.value,
                ours: value,
                error_percent: value.map(|v| (v / point.value - 1.0) * 100.0),
                is_input: p.is_input,
                source: p.source.clone(),
            });
        }
    }
    rows
}

/// The errors of one curve, in absolute percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveErrors {
    /// Id of the curve.
    pub curve: String,
    /// Points compared; those that ours does not reach, and inputs, apart.
    pub points: usize,
    /// Points that ours does not reach.
    pub missing: usize,
    /// Median of the absolute errors, %.
    pub median_percent: f64,
    /// Largest absolute error, %.
    pub worst_percent: f64,
    /// Where that is.
    pub worst_at: String,
}

/// The errors of each curve, inputs left out.
pub fn summaries(rows: &[Row]) -> Vec<CurveErrors> {
    let mut ids: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|r| !r.is_input) {
        if !ids.contains(&row.curve.as_str()) {
            ids.push(&row.curve);
        }
    }
    ids.into_iter().map(|id| summary(id, rows)).collect()
}

fn summary(id: &str, rows: &[Row]) -> CurveErrors {
    let mine = || rows.iter().filter(|r| r.curve == id && !r.is_input);
    let mut errors: Vec<(f64, &str)> = mine()
        .filter_map(|r| Some((r.error_percent?.abs(), r.at.as_str())))
        .collect();
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = errors.len();
    let median = match n {
        0 => 0.0,
        _ if n % 2 == 1 => errors[n / 2].0,
        _ => (errors[n / 2 - 1].0 + errors[n / 2].0) / 2.0,
    };
    let worst = errors.last().copied().unwrap_or((0.0, ""));
    CurveErrors {
        curve: id.to_string(),
        points: n,
        missing: mine().filter(|r| r.ours.is_none()).count(),
        median_percent: median,
        worst_percent: worst.0,
        worst_at: worst.1.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::Point;

    fn published(curve: &str, is_input: bool, points: &[(f64, f64)]) -> PublishedCurve {
        PublishedCurve {
            curve: curve.into(),
            source: "a study".into(),
            is_input,
            points: points
                .iter()
                .map(|&(x, value)| Point {
                    x,
                    at: format!("{x}"),
                    value,
                })
                .collect(),
        }
    }

    #[test]
    fn errors_are_told_with_their_sign_and_summed_up_without() {
        let mut ours = Curve::new("t", "threads", "GB/s");
        for (x, v) in [(1.0, 11.0), (2.0, 15.0), (4.0, 40.0)] {
            ours.push(x, v);
        }
        let theirs = published(
            "t",
            false,
            &[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0), (4.0, 40.0)],
        );
        let rows = table(&[ours], &[theirs]);
        let errors: Vec<f64> = rows
            .iter()
            .map(|r| r.error_percent.unwrap().round())
            .collect();
        assert_eq!(errors, [10.0, -25.0, 0.0], "3 threads were not measured");
        let s = &summaries(&rows)[0];
        assert_eq!((s.points, s.missing), (3, 0));
        assert_eq!(s.median_percent.round(), 10.0);
        assert_eq!((s.worst_percent.round(), s.worst_at.as_str()), (25.0, "2"));
    }

    #[test]
    fn a_bandwidth_that_ours_does_not_reach_is_told() {
        let mut ours = Curve::new("l", "bandwidth, GB/s", "ns");
        ours.push(0.0, 100.0);
        ours.push(50.0, 200.0);
        let rows = table(
            &[ours],
            &[published("l", false, &[(25.0, 150.0), (80.0, 300.0)])],
        );
        assert_eq!(rows[0].ours, Some(150.0));
        assert_eq!(rows[1].ours, None);
        assert_eq!(summaries(&rows)[0].missing, 1);
    }

    #[test]
    fn inputs_prove_nothing() {
        let mut ours = Curve::new("t", "threads", "GB/s");
        ours.push(1.0, 10.0);
        let rows = table(&[ours], &[published("t", true, &[(1.0, 10.0)])]);
        assert_eq!(rows.len(), 1);
        assert!(summaries(&rows).is_empty());
    }
}
