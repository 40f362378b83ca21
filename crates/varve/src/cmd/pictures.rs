//! What a run showed of itself as pictures: the one place that knows both.

use varve_report::pictures::{
    Cell, Counter, Flame, HeatMap, Lane, Meaning, Pictures, Range, Span, Stack, Timeline,
    TimelineRun,
};
use varve_run::{Heat, RateKind, Seen, Wait};

/// A run that was looked at, and what it is called.
pub type Run<'a> = (&'a str, &'a Seen);

/// The runs of those that were looked at.
pub fn runs<'a, R>(
    results: &'a [R],
    name: fn(&R) -> &str,
    seen: fn(&R) -> &Option<Box<Seen>>,
) -> Vec<Run<'a>> {
    let looked_at = |r: &'a R| Some((name(r), &**seen(r).as_ref()?));
    results.iter().filter_map(looked_at).collect()
}

/// All pictures of runs, with the flame graph of two of them; none where nobody looked.
pub fn of(title: &str, runs: &[Run], flame: Option<Flame>) -> Option<Pictures> {
    if runs.is_empty() {
        return None;
    }
    let timeline = Timeline {
        title: title.into(),
        runs: runs.iter().map(timeline).collect(),
    };
    Some(Pictures {
        flame,
        timeline,
        heat: runs
            .iter()
            .map(|(name, seen)| heat(name, &seen.heat))
            .collect(),
    })
}

/// Where threads wait in the run called `fast` and in the one called `slow`; where there is none of these, in the run that waits least
/// and in the one that waits most.
pub fn waits(title: &str, runs: &[Run], (fast, slow): (&str, &str)) -> Option<Flame> {
    let sum = |run: &&Run| run.1.waits.iter().map(|wait| wait.ns).sum::<u64>();
    let named = |name: &str| runs.iter().find(|run| run.0 == name);
    let fast = named(fast).or_else(|| runs.iter().min_by_key(sum))?;
    let slow = named(slow).or_else(|| runs.iter().max_by_key(sum))?;
    if sum(&slow) == 0 {
        return None;
    }
    let mut all: Vec<&Vec<String>> = [fast, slow]
        .iter()
        .flat_map(|run| &run.1.waits)
        .map(|w| &w.of)
        .collect();
    all.sort_unstable();
    all.dedup();
    let ns = |run: &Run, of: &Vec<String>| {
        let same = |wait: &&Wait| wait.of == *of;
        run.1.waits.iter().filter(same).map(|wait| wait.ns).sum()
    };
    let stacks = all.into_iter().map(|of| Stack {
        frames: of.clone(),
        fast_ns: ns(fast, of),
        slow_ns: ns(slow, of),
    });
    Some(Flame {
        title: title.into(),
        fast: Some(format!("under `{}`", fast.0)),
        slow: format!("under `{}`", slow.0),
        stacks: stacks.collect(),
    })
}

fn timeline((name, seen): &Run) -> TimelineRun {
    let lanes = seen.lanes.iter().map(|lane| Lane {
        name: lane.name.clone(),
        spans: (lane.spans.iter())
            .map(|span| Span {
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
