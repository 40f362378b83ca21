//! Pictures of a run's observations: the one place that knows both.

use std::collections::BTreeMap;
use varve_report::pictures::{
    By, Cell, Counter, Flame, HeatMap, Lane, Meaning, Pictures, Range, Stack, Timeline,
    TimelineRun, TimelineSpan,
};
use varve_run::{Compared, Heat, RateKind, Seen, Wait};

/// An observed run, and its name.
pub type Run<'a> = (&'a str, &'a Seen);

/// Of these runs, the observed ones.
pub fn runs<'a, R: Compared>(results: &[&'a R]) -> Vec<Run<'a>> {
    let looked_at = |r: &&'a R| Some((r.name(), r.seen()?));
    results.iter().filter_map(looked_at).collect()
}

/// All pictures of runs, with the flame graphs of two of them: by memory, and by code. `None` where none was recorded.
pub fn of(
    title: &str,
    runs: &[Run],
    (flame, code): (Option<Flame>, Option<Flame>),
) -> Option<Pictures> {
    if runs.is_empty() {
        return None;
    }
    let timeline = Timeline {
        title: title.into(),
        runs: runs.iter().map(timeline).collect(),
    };
    Some(Pictures {
        flame,
        code,
        timeline,
        heat: runs
            .iter()
            .map(|(name, seen)| heat(name, &seen.heat))
            .collect(),
    })
}

/// Where threads wait in the run called `fast` and in the one called `slow`; where there is none of these, in the run that waits least
/// and in the one that waits most.
pub fn waits(
    title: &str,
    runs: &[Run],
    (fast, slow): (&str, &str),
) -> (Option<Flame>, Option<Flame>) {
    let flame = |by: By| {
        let sum = |run: &&Run| kind(by, run.1).iter().map(|wait| wait.ns).sum::<u64>();
        let named = |name: &str| runs.iter().find(|run| run.0 == name);
        let fast = named(fast).or_else(|| runs.iter().min_by_key(sum))?;
        let slow = named(slow).or_else(|| runs.iter().max_by_key(sum))?;
        let says = |run: &Run| format!("under `{}`", run.0);
        between(by, title, (Some(says(fast)), fast.1), (says(slow), slow.1))
    };
    (flame(By::Memory), flame(By::Function))
}

/// Which functions wait in two runs, as they stand in a sentence; none where that is not known. One run may stand for both.
pub fn functions(
    title: &str,
    fast: (Option<&str>, Option<&Seen>),
    slow: (&str, Option<&Seen>),
) -> Option<Flame> {
    between(
        By::Function,
        title,
        (fast.0.map(String::from), fast.1?),
        (slow.0.into(), slow.1?),
    )
}

fn kind(by: By, seen: &Seen) -> &[Wait] {
    match by {
        By::Memory => &seen.waits,
        By::Function => &seen.code,
    }
}

fn between(
    by: By,
    title: &str,
    fast: (Option<String>, &Seen),
    slow: (String, &Seen),
) -> Option<Flame> {
    let mut stacks: BTreeMap<&[String], (u64, u64)> = BTreeMap::new();
    for wait in kind(by, fast.1) {
        stacks.entry(&wait.of).or_default().0 += wait.ns;
    }
    for wait in kind(by, slow.1) {
        stacks.entry(&wait.of).or_default().1 += wait.ns;
    }
    if stacks.values().all(|(_, slow)| *slow == 0) {
        return None;
    }
    let stacks = stacks.into_iter().map(|(of, (fast_ns, slow_ns))| Stack {
        frames: of.to_vec(),
        fast_ns,
        slow_ns,
    });
    Some(Flame {
        by,
        title: title.into(),
        fast: fast.0,
        slow: slow.0,
        stacks: stacks.collect(),
    })
}

fn timeline((name, seen): &Run) -> TimelineRun {
    let lanes = seen.lanes.iter().map(|lane| Lane {
        name: lane.name.clone(),
        spans: (lane.spans.iter())
            .map(|span| TimelineSpan {
                name: span.name.clone(),
                begin_ns: span.begin_ns,
                end_ns: span.end_ns,
                count: span.count,
            })
            .collect(),
    });
    let counters = seen.rates.iter().map(|rate| Counter {
        name: rate.name.into(),
        meaning: match rate.kind {
            RateKind::Bytes => Meaning::Bandwidth,
            RateKind::Watts => Meaning::Power,
            RateKind::Percent => Meaning::Share,
            RateKind::Events => Meaning::Rate,
        },
        points: rate.points.clone(),
    });
    TimelineRun {
        name: name.to_string(),
        end_ns: seen.end_ns,
        lanes: lanes.collect(),
        counters: counters.collect(),
    }
}

fn heat(name: &str, heat: &Heat) -> HeatMap {
    let ranges = heat.ranges.iter().map(|range| Range {
        begin: range.begin,
        end: range.end,
        cells: (range.cells.iter())
            .map(|cell| Cell {
                accesses: cell.accesses,
                fast_bytes: cell.fast_bytes,
                slow_bytes: cell.slow_bytes,
            })
            .collect(),
    });
    HeatMap {
        name: name.into(),
        ranges: ranges.collect(),
        end_ns: heat.end_ns,
        memories: heat.tiers,
    }
}
