//! What `varve tier` says of policies that choose frames.

use serde_json::{Value, json};
use varve_live::tier::{FrameReport, TierReport};
use varve_report::fmt::bytes;

pub(super) fn size(number: u64) -> String {
    bytes(number as f64)
}

/// Lines for the end.
pub fn end(r: &TierReport, f: &FrameReport) -> Vec<String> {
    let mut lines = Vec::new();
    let page = r.page_bytes;
    let kinds: Vec<String> = f
        .kinds
        .iter()
        .map(|(kind, bytes)| format!("{} of {}", size(*bytes), kind.words()))
        .collect();
    if !kinds.is_empty() {
        lines.push(format!("in the account: {}", kinds.join(", ")));
    }
    let not: Vec<String> = f
        .unplaced
        .iter()
        .map(|(why, bytes)| format!("{} {}", size(*bytes), why.words()))
        .collect();
    if !not.is_empty() {
        lines.push(format!("in no account: {}", not.join(", ")));
    }
    lines.push(match f.state.dimms.is_empty() {
        true => format!(
            "hot: {}, of which {} conflict with hot pages of their bins; the most at a time were {}",
            size(f.state.hot * page),
            size(f.state.misplaced * page),
            size(f.most_misplaced * page)
        ),
        false => format!(
            "hot: {}, of which {} are on DIMMs for cold pages; the most at a time were {}",
            size(f.state.hot * page),
            size(f.state.misplaced * page),
            size(f.most_misplaced * page)
        ),
    });
    if !f.state.dimms.is_empty() {
        let of = |(at, (hot, cold)): (usize, &(u64, u64))| {
            format!(
                "{}. {} hot, {} cold",
                at + 1,
                size(hot * page),
                size(cold * page)
            )
        };
        let all: Vec<String> = f.state.dimms.iter().enumerate().map(of).collect();
        lines.push(format!("on the DIMMs: {}", all.join("; ")));
        if !f.state.governed.is_empty() {
            let one = |&(at, hot, undone): &(u64, usize, bool)| {
                let back = if undone {
                    ", since the last remap did not raise the bandwidth"
                } else {
                    ""
                };
                format!("{hot} from {:.0} s on{back}", at as f64 / 1e9)
            };
            let all: Vec<String> = f.state.governed.iter().map(one).collect();
            lines.push(format!(
                "hot DIMMs of each node, by bandwidth: {}",
                all.join("; ")
            ));
        }
        if let Some((before, after)) = f.watts {
            lines.push(format!(
                "power of the DRAM: {before:.2} W before the first exchange, {after:.2} W after the last one (RAPL)"
            ));
        }
    }
    lines.push(format!(
        "exchanged the frames of {} in {} intervals; the policy asked for {} exchanges; the reserve is {}",
        size(r.counts.exchanged),
        r.counts.intervals,
        r.counts.wishes,
        size(f.reserve)
    ));
    let told = |bytes: u64, what: &str| (bytes > 0).then(|| format!("{} {what}", size(bytes)));
    let others: Vec<String> = [
        told(f.elsewhere, "came into other frames than the chosen ones"),
        told(r.counts.by_others, "were moved by others"),
        told(f.brought_home, "were on another node for a while"),
        told(f.away, "are on another node still"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !others.is_empty() {
        lines.push(format!("besides: {}", others.join(", ")));
    }
    let refused: Vec<String> = r
        .counts
        .refused
        .iter()
        .map(|(why, bytes)| format!("{} {}", size(*bytes), why.words()))
        .collect();
    if !refused.is_empty() {
        lines.push(format!("not moved: {}", refused.join(", ")));
    }
    if r.counts.over_rate > 0 {
        lines.push(format!(
            "exchanges waited {} times because that interval's bytes or time were used up",
            r.counts.over_rate
        ));
    }
    lines
}

/// The same as data.
pub fn as_json(f: &FrameReport) -> Value {
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
