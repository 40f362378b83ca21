//! What `varve tier` says at its beginning and at its end.

use super::tier_frames_said::size;
use serde_json::{Value, json};
use varve_live::nodes::Kinds;
use varve_live::tier::{Begun, TierOptions, TierReport};

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

/// Lines for the beginning.
pub fn beginning(first: &str, o: &TierOptions, begun: &Begun, notes: &[String]) -> Vec<String> {
    let mut lines = vec![first.to_string()];
    match o.way {
        None => lines.push("observed: nothing; the policy does not go by what is in use".into()),
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
            format!("note: {name} ({pid}) is observed by {way}: the monitor is one process's")
        }));
    }
    lines.push(format!(
        "limits: {} moved a second, {} % of a core, and a page that moved stays {} s",
        size(o.rate),
        round(100.0 * o.core),
        round(o.hold.as_secs_f64())
    ));
    let all = notes.iter().chain(&begun.notes);
    lines.extend(all.map(|note| format!("note: {note}")));
    lines
}

fn round(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Lines for the end.
pub fn end(r: &TierReport) -> Vec<String> {
    let mut lines = match &r.frames {
        Some(frames) => super::tier_frames_said::end(r, frames),
        None => of_nodes(r),
    };
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

/// What came of nodes.
fn of_nodes(r: &TierReport) -> Vec<String> {
    let c = &r.counts;
    let mut lines = Vec::new();
    for p in &r.processes {
        lines.push(format!(
            "{} ({}): {} on fast nodes, {} on slow nodes, as the kernel tells (numa_maps)",
            p.name,
            p.pid,
            size(p.on_fast),
            size(p.on_slow)
        ));
        if p.huge_left > 0 {
            lines.push(format!(
                "note: {} of it are huge pages and were left where they are: --page 2MiB moves them",
                size(p.huge_left)
            ));
        }
    }
    lines.push(format!(
        "moved {} to fast and {} to slow memory in {} intervals; the policy asked for {} moves after it had placed what was there",
        size(c.to_fast),
        size(c.to_slow),
        c.intervals,
        c.wishes
    ));
    if c.uses > 0 {
        lines.push(format!(
            "{} uses were seen; hot now: {}, of which {} in fast memory",
            c.uses,
            size(r.hot.0),
            size(r.hot.1)
        ));
    }
    let not: Vec<String> = c
        .refused
        .iter()
        .map(|(why, bytes)| format!("{} {}", size(*bytes), why.words()))
        .collect();
    if !not.is_empty() {
        lines.push(format!("not moved: {}", not.join(", ")));
    }
    let waited: Vec<String> = [
        (c.over_budget, "the budget of fast memory was used up"),
        (c.full, "the node was full"),
        (c.over_rate, "that second's bytes were moved"),
    ]
    .iter()
    .filter(|(times, _)| *times > 0)
    .map(|(times, why)| format!("{times} times because {why}"))
    .collect();
    if !waited.is_empty() {
        lines.push(format!("pages waited: {}", waited.join(", ")));
    }
    if c.without_place > 0 {
        lines.push(format!(
            "{} pages stayed where they were: the policy had no place for them",
            c.without_place
        ));
    }
    if c.by_others > 0 {
        lines.push(format!(
            "others moved {} between fast and slow memory",
            size(c.by_others)
        ));
    }
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
        "frames": r.frames.as_ref().map(super::tier_frames_said::as_json),
        "notes": r.notes,
    })
}
