//! The output of `varve tier` at its beginning and at its end.

use serde_json::{Value, json};
use varve_live::nodes::Kinds;
use varve_live::tier::{Begun, FrameReport, TierOptions, TierReport, TieredObject};
use varve_report::fmt::bytes;

pub(super) fn size(number: u64) -> String {
    bytes(number as f64)
}

/// The processes to begin with.
pub fn names(begun: &Begun) -> String {
    let of = |(pid, name, _): &(u32, String, &str)| format!("{name} ({pid})");
    let mut names: Vec<String> = begun.processes.iter().take(4).map(of).collect();
    if begun.processes.len() > names.len() {
        let more = begun.processes.len() - names.len();
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// The first line of a policy that chooses nodes.
pub fn nodes_line(spec: &str, o: &TierOptions, begun: &Begun) -> String {
    let room = &begun.room;
    format!(
        "tiering {} by {spec}: at most {} on node {}, the rest on node {}; pages of {}",
        names(begun),
        size(room.fast_pages * room.page_bytes),
        Kinds::list(&o.kinds.fast),
        Kinds::list(&o.kinds.slow),
        size(room.page_bytes)
    )
}

/// Prints the beginning.
pub fn beginning(first: String, o: &TierOptions, begun: &Begun, notes: &[String]) {
    let mut lines = vec![first];
    match o.way {
        None => lines.push("observed: nothing; the policy does not use accesses".into()),
        Some(way) => {
            let [what, cost, unseen] = way.words();
            lines.push(format!("observed: {what}"));
            lines.push(format!("its cost: {cost}"));
            lines.push(format!("not seen: {unseen}"));
        }
    }
    if let Some(way) = o.way {
        let others = begun.processes.iter().filter(|p| p.2 != way.name());
        lines.extend(others.map(|(pid, name, way)| {
            format!("note: {name} ({pid}) is observed by {way}: all monitors watch other processes")
        }));
    }
    lines.push(format!(
        "limits: {} migrated per second, {} % of a core, and a migrated page stays {} s",
        size(o.rate),
        round(100.0 * o.core),
        round(o.hold.as_secs_f64())
    ));
    let all = notes.iter().chain(&begun.notes);
    lines.extend(all.map(|note| format!("note: {note}")));
    say(&lines);
}

/// A program's own output is on standard output; ours goes beside it.
pub fn say(lines: &[String]) {
    lines
        .iter()
        .for_each(|line| crate::ui::message!("varve: {line}"));
}

fn round(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Lines for the end.
pub fn end(r: &TierReport) -> Vec<String> {
    let c = &r.counts;
    let mut lines = match &r.frames {
        Some(frames) => of_frames(r, frames),
        None => of_nodes(r),
    };
    let refused = c.refused.iter().map(|(why, bytes)| (why.words(), *bytes));
    lines.extend(listed("not moved: ", amounts(refused)));
    lines.extend(match r.frames {
        Some(_) => (c.over_rate > 0).then(|| {
            format!(
                "exchanges waited {} times because that interval's bytes or time were used up",
                c.over_rate
            )
        }),
        None => {
            let waited = c.waited().into_iter().filter(|(times, _)| *times > 0);
            let waited = waited.map(|(times, why)| format!("{times} times because {why}"));
            listed("pages waited: ", waited.collect())
        }
    });
    if c.without_place > 0 {
        lines.push(format!(
            "{} pages stayed where they were: the policy had no place for them",
            c.without_place
        ));
    }
    if c.by_others > 0 && r.frames.is_none() {
        lines.push(format!(
            "the kernel or other programs migrated {} between fast and slow memory",
            size(c.by_others)
        ));
    }
    let share = |seconds: f64| 100.0 * seconds / r.seconds.max(1e-9);
    let monitor = match r.monitor_seconds > 0.0 {
        true => format!(
            ", and the kernel's monitor {:.2} %",
            share(r.monitor_seconds)
        ),
        false => String::new(),
    };
    // Of a moment, a start is more than all of it.
    lines.push(match r.seconds >= 1.0 {
        true => format!(
            "cost: {:.2} % of a core ({:.2} of {:.1} s){monitor}",
            share(r.cpu_seconds),
            r.cpu_seconds,
            r.seconds
        ),
        false => format!("cost: {:.3} s of a core", r.cpu_seconds),
    });
    lines.extend(r.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// Sizes, and what they are of.
fn amounts(all: impl IntoIterator<Item = (impl AsRef<str>, u64)>) -> Vec<String> {
    let of = |(what, bytes): (_, u64)| (size(bytes), what);
    let all = all.into_iter().map(of);
    all.map(|(size, what)| format!("{size} {}", what.as_ref()))
        .collect()
}

/// A line of several things, if there are any.
fn listed(first: &str, all: Vec<String>) -> Option<String> {
    (!all.is_empty()).then(|| format!("{first}{}", all.join(", ")))
}

/// The results on nodes.
fn of_nodes(r: &TierReport) -> Vec<String> {
    let c = &r.counts;
    let mut lines = Vec::new();
    for p in &r.processes {
        lines.push(format!(
            "{} ({}): {} on fast nodes, {} on slow nodes (numa_maps)",
            p.name,
            p.pid,
            size(p.on_fast),
            size(p.on_slow)
        ));
        if p.hugetlb > 0 {
            lines.push(format!(
                "note: {} more of it are explicit huge pages (hugetlbfs), which do not migrate",
                size(p.hugetlb)
            ));
        }
        if p.huge_left > 0 {
            lines.push(format!(
                "note: {} of it are huge pages, and did not migrate: --page 2MiB migrates them",
                size(p.huge_left)
            ));
        }
    }
    lines.extend(of_shared(&r.shared));
    lines.push(format!(
        "promoted {} and demoted {} in {} intervals; the policy requested {} migrations after the initial placement",
        size(c.to_fast),
        size(c.to_slow),
        c.intervals,
        c.wishes
    ));
    if c.uses > 0 {
        lines.push(format!(
            "{} accesses observed; hot now: {}, of which {} in fast memory",
            c.uses,
            size(r.hot.0),
            size(r.hot.1)
        ));
    }
    lines
}

/// The largest of what processes share, and the sum of the others.
fn of_shared(all: &[TieredObject]) -> Vec<String> {
    const MOST: usize = 8;
    let line = |what: String, fast: u64, slow: u64| {
        let [fast, slow] = [fast, slow].map(size);
        format!("{what}: {fast} on fast nodes, {slow} on slow nodes (move_pages)")
    };
    let (told, others) = all.split_at(all.len().min(MOST));
    let mut lines: Vec<String> = told
        .iter()
        .map(|one| {
            let processes = match one.processes {
                1 => "a process".into(),
                many => format!("{many} processes"),
            };
            let what = format!("{}, {} of {processes}", one.name, one.kind.words());
            line(what, one.on_fast, one.on_slow)
        })
        .collect();
    if !others.is_empty() {
        let sum = |of: fn(&TieredObject) -> u64| others.iter().map(of).sum();
        let what = format!("{} others that are shared or mapped", others.len());
        lines.push(line(what, sum(|o| o.on_fast), sum(|o| o.on_slow)));
    }
    lines
}

/// The results on frames.
fn of_frames(r: &TierReport, f: &FrameReport) -> Vec<String> {
    let mut lines = Vec::new();
    let pages = |pages: u64| size(pages * r.page_bytes);
    let kinds = f.kinds.iter();
    let kinds = kinds.map(|(kind, bytes)| format!("{} of {}", size(*bytes), kind.words()));
    lines.extend(listed("in the account: ", kinds.collect()));
    let not = f.unplaced.iter().map(|(why, bytes)| (why.words(), *bytes));
    lines.extend(listed("in no account: ", amounts(not)));
    lines.push(format!(
        "hot: {}, of which {} {}; the most at a time were {}",
        pages(f.state.hot),
        pages(f.state.misplaced),
        match f.state.dimms.is_empty() {
            true => "conflict with hot pages of their bins",
            false => "are on DIMMs for cold pages",
        },
        pages(f.most_misplaced)
    ));
    if !f.state.dimms.is_empty() {
        lines.extend(of_dimms(r, f));
    }
    lines.push(format!(
        "exchanged the frames of {} in {} intervals; the policy requested {} exchanges; the reserve is {}",
        size(r.counts.exchanged),
        r.counts.intervals,
        r.counts.wishes,
        size(f.reserve)
    ));
    let besides = [
        ("came into other frames than the chosen ones", f.elsewhere),
        (
            "were migrated by the kernel or other programs",
            r.counts.by_others,
        ),
        ("were on another node for a while", f.brought_home),
        ("are on another node still", f.away),
    ];
    let besides = besides.into_iter().filter(|(_, bytes)| *bytes > 0);
    lines.extend(listed("besides: ", amounts(besides)));
    lines
}

/// The results on DIMMs.
fn of_dimms(r: &TierReport, f: &FrameReport) -> Vec<String> {
    let of = |(at, (hot, cold)): (usize, &(u64, u64))| {
        let [hot, cold] = [hot, cold].map(|pages| size(pages * r.page_bytes));
        format!("{}. {hot} hot, {cold} cold", at + 1)
    };
    let all: Vec<String> = f.state.dimms.iter().enumerate().map(of).collect();
    let mut lines = vec![format!("on the DIMMs: {}", all.join("; "))];
    if !f.state.governed.is_empty() {
        let one = |&(at, hot, undone): &(u64, usize, bool)| {
            let back = match undone {
                true => ", since the last remap did not raise the bandwidth",
                false => "",
            };
            format!("{hot} from {:.0} s on{back}", at as f64 / 1e9)
        };
        let all: Vec<String> = f.state.governed.iter().map(one).collect();
        lines.push(format!(
            "hot DIMMs of each node, by bandwidth: {}",
            all.join("; ")
        ));
    }
    lines.extend(f.watts.map(|(before, after)| {
        format!(
            "power of the DRAM: {before:.2} W before the first exchange, {after:.2} W after the last one (RAPL)"
        )
    }));
    lines
}

/// The same as data.
pub fn as_json(spec: &str, r: &TierReport) -> Value {
    let c = &r.counts;
    let refused = c.refused.iter();
    let refused = refused.map(|(why, bytes)| json!({"why": why.words(), "bytes": bytes}));
    json!({
        "policy": spec,
        "exit_code": r.status.and_then(|status| status.code()),
        "seconds": r.seconds,
        "page_bytes": r.page_bytes,
        "fast_bytes": r.fast_bytes,
        "processes": r.processes.iter().map(|p| json!({
            "pid": p.pid,
            "name": p.name,
            "observed_by": p.observer,
            "on_fast_bytes": p.on_fast,
            "on_slow_bytes": p.on_slow,
            "huge_left_bytes": p.huge_left,
            "hugetlb_bytes": p.hugetlb,
        })).collect::<Vec<_>>(),
        "shared": r.shared.iter().map(|one| json!({
            "kind": one.kind.words(),
            "name": one.name,
            "processes": one.processes,
            "on_fast_bytes": one.on_fast,
            "on_slow_bytes": one.on_slow,
        })).collect::<Vec<_>>(),
        "intervals": c.intervals,
        "uses_seen": c.uses,
        "moves_asked": c.wishes,
        "to_fast_bytes": c.to_fast,
        "to_slow_bytes": c.to_slow,
        "exchanged_bytes": c.exchanged,
        "not_moved": refused.collect::<Vec<_>>(),
        "left_alone_pages": c.rested,
        "waited_for_budget": c.over_budget,
        "waited_for_room": c.full,
        "waited_for_rate": c.over_rate,
        "without_place_pages": c.without_place,
        "moved_by_others_bytes": c.by_others,
        "hot_bytes": r.hot.0,
        "hot_in_fast_bytes": r.hot.1,
        "core_share": r.cpu_seconds / r.seconds.max(1e-9),
        "monitor_core_share": r.monitor_seconds / r.seconds.max(1e-9),
        "frames": r.frames.as_ref().map(frames_as_json),
        "notes": r.notes,
    })
}

/// The part of the document on frames.
fn frames_as_json(f: &FrameReport) -> Value {
    let kinds = f.kinds.iter();
    let kinds = kinds.map(|(kind, bytes)| json!({"what": kind.words(), "bytes": bytes}));
    let unplaced = f.unplaced.iter();
    let unplaced = unplaced.map(|(why, bytes)| json!({"what": why.words(), "bytes": bytes}));
    let dimms = f.state.dimms.iter();
    let dimms = dimms.map(|(hot, cold)| json!({"hot_pages": hot, "cold_pages": cold}));
    let governed = f.state.governed.iter();
    let governed = governed.map(|(at, hot, undone)| json!({"seconds": *at as f64 / 1e9, "hot_dimms": hot, "undone": undone}));
    json!({
        "elsewhere_bytes": f.elsewhere,
        "brought_home_bytes": f.brought_home,
        "away_bytes": f.away,
        "reserve_bytes": f.reserve,
        "in_account": kinds.collect::<Vec<_>>(),
        "in_no_account": unplaced.collect::<Vec<_>>(),
        "pages": f.state.pages,
        "hot_pages": f.state.hot,
        "misplaced_hot_pages": f.state.misplaced,
        "most_misplaced_hot_pages": f.most_misplaced,
        "pages_to_move": f.state.to_move,
        "dimms": dimms.collect::<Vec<_>>(),
        "hot_dimms": f.state.hot_dimms,
        "governed": governed.collect::<Vec<_>>(),
        "dram_watts": f.watts.map(|(before, after)| json!({"before": before, "after": after})),
    })
}
