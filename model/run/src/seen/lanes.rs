//! Phases, requests, page moves and rates of a run, as its journal has them.

use std::collections::BTreeMap;
use varve_machine::model::{self, Journal, MoveKind, Outcome, SocketCounts};
use varve_machine::{Machine, energy};

/// Limit of the lanes of requests: more cannot be compared side by side.
const MOST_LANES: usize = 64;
/// Bytes of a line.
const LINE: u64 = 64;

/// One or more things that took time, right one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneSpan {
    /// Its name.
    pub name: String,
    /// When the first one began, ns.
    pub begin_ns: u64,
    /// When the last one ended, ns.
    pub end_ns: u64,
    /// How many there were.
    pub count: u64,
}

/// Spans that follow one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// In the order of time.
    pub spans: Vec<LaneSpan>,
}

/// Quantity of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateKind {
    /// Bytes per second.
    Bytes,
    /// Watts.
    Watts,
    /// A share, in percent.
    Percent,
    /// Events per second.
    Events,
}

/// A rate over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Its name.
    pub name: &'static str,
    /// Its quantity.
    pub kind: RateKind,
    /// The end of each interval, ns, and the mean in it.
    pub points: Vec<(u64, f64)>,
}

/// Phases, requests and moves with their times. The names of requests come from `classes`.
pub fn of(outcome: &Outcome, classes: &[String], factor: u64) -> Vec<Lane> {
    let mut lanes = vec![phases(outcome, factor)];
    let mut requests: BTreeMap<(u32, u32), Vec<LaneSpan>> = BTreeMap::new();
    for span in &outcome.journal.requests {
        let name = class(classes, span.kind);
        let lane = requests.entry((span.thread, span.kind)).or_default();
        lane.push(full_size(span, &name, factor));
    }
    let left_out = requests.len().saturating_sub(MOST_LANES);
    for ((thread, kind), spans) in requests.into_iter().take(MOST_LANES) {
        let name = format!("{}, thread {thread}", class(classes, kind));
        lanes.push(Lane { name, spans });
    }
    if left_out > 0 {
        lanes.push(Lane {
            name: format!("({left_out} more lanes of requests are left out)"),
            spans: Vec::new(),
        });
    }
    for (kind, name) in [
        (MoveKind::ToFast, "pages to fast memory"),
        (MoveKind::ToSlow, "pages to slow memory"),
        (MoveKind::Within, "pages within a memory"),
    ] {
        let moves = outcome.journal.moves.iter();
        let spans: Vec<LaneSpan> = moves
            .filter(|span| span.kind == kind as u32)
            .map(|span| full_size(span, "page move", factor))
            .collect();
        if !spans.is_empty() {
            lanes.push(Lane {
                name: name.into(),
                spans,
            });
        }
    }
    lanes
}

fn class(classes: &[String], number: u32) -> String {
    let name = classes.get(number as usize).cloned();
    name.unwrap_or_else(|| format!("request {number}"))
}

fn full_size(span: &model::JournalSpan, name: &str, factor: u64) -> LaneSpan {
    LaneSpan {
        name: name.into(),
        begin_ns: span.begin_ns * factor,
        end_ns: span.end_ns * factor,
        count: span.count,
    }
}

fn phases(outcome: &Outcome, factor: u64) -> Lane {
    let name = |number: u64| match number {
        _ if outcome.phases.len() == 1 => "run".to_string(),
        0 => "initialization".into(),
        1 => "run".into(),
        n => format!("phase {n}"),
    };
    let spans = outcome.phases.iter().map(|phase| LaneSpan {
        name: name(phase.number),
        begin_ns: phase.begin_ns * factor,
        end_ns: phase.end_ns * factor,
        count: 1,
    });
    Lane {
        name: "phases".into(),
        spans: spans.collect(),
    }
}

/// Rates between the points of the journal. A rate that is always zero is left out.
pub fn rates(machine: &Machine, outcome: &Outcome, factor: u64) -> Vec<Rate> {
    let journal = &outcome.journal;
    let memory = |name, count: fn(&SocketCounts) -> u64| Rate {
        name,
        kind: RateKind::Bytes,
        points: per_second(
            journal,
            factor,
            journal.memory.iter().map(|m| LINE * count(m)),
        ),
    };
    let mut rates = vec![
        memory("DRAM read", |m| m.dram.reads),
        memory("DRAM written", |m| m.dram.writes),
        memory("slow memory read", |m| m.pm.reads + m.cxl_reads),
        memory("slow memory written", |m| m.pm.writes + m.cxl_writes),
    ];
    let counts = || journal.points.iter().map(|p| p.counts);
    for (name, kind, values) in [
        (
            "pages moved",
            RateKind::Bytes,
            journal
                .points
                .iter()
                .map(|p| p.moved_bytes)
                .collect::<Vec<u64>>(),
        ),
        (
            "accesses",
            RateKind::Events,
            counts().map(|c| c.accesses).collect(),
        ),
        (
            "requests",
            RateKind::Events,
            counts().map(|c| c.requests).collect(),
        ),
    ] {
        rates.push(Rate {
            name,
            kind,
            // Of a run at a scale, rates are those at full size.
            points: per_second(journal, factor, values.into_iter()),
        });
    }
    let mut before = Default::default();
    let slow = counts().map(|c| {
        let d = c.since(&std::mem::replace(&mut before, c));
        100.0 * d.slow as f64 / d.llc_misses.max(1) as f64
    });
    rates.push(Rate {
        name: "reads of slow memory",
        kind: RateKind::Percent,
        points: journal
            .points
            .iter()
            .map(|p| p.now_ns * factor)
            .zip(slow)
            .collect(),
    });
    let power = energy::between(machine, &journal.points, &journal.activity).unwrap_or_default();
    rates.push(Rate {
        name: "memory power",
        kind: RateKind::Watts,
        points: journal
            .points
            .iter()
            .zip(&power)
            .map(|(point, span)| (point.now_ns * factor, span.energy.watts()))
            .collect(),
    });
    rates.retain(|rate| rate.points.iter().any(|p| p.1 > 0.0));
    rates
}

/// Of counts since the beginning. Times and counts grow alike with the scale.
fn per_second(
    journal: &Journal,
    factor: u64,
    counts: impl Iterator<Item = u64>,
) -> Vec<(u64, f64)> {
    let (mut begin, mut before) = (0, 0);
    let points = journal.points.iter().zip(counts).map(|(point, count)| {
        let seconds = (point.now_ns - begin) as f64 / 1e9;
        let rate = (count - before) as f64 / seconds.max(f64::MIN_POSITIVE);
        (begin, before) = (point.now_ns, count);
        (point.now_ns * factor, rate)
    });
    points.collect()
}
