//! The lines of `varve top`: the same on a screen and when it is printed.

use super::list::hang;
use varve_live::tier::{HeatOf, Part, TierState};
use varve_live::top::{COUNTERS, NodeNow, ProcessNow, Rates, TopSnapshot, Where};
use varve_report::fmt;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Title,
    Plain,
    Note,
}

/// A line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub kind: LineKind,
    pub text: String,
}

/// Nodes that have a column of their own each; of more, fast and slow ones have one together.
const NODES: usize = 4;
/// From nothing to all.
const RAMP: &[u8] = b" .:-=+*#%@";
/// Bytes of a page of the kernel.
const PAGE: f64 = 4096.0;

/// All of it.
pub fn lines(now: &TopSnapshot, rates: Option<&Rates>, width: usize) -> Vec<Line> {
    let mut all = Vec::new();
    memory(now, rates, &mut all);
    traffic(rates, &mut all);
    moves(now, rates, &mut all);
    processes(now, rates, &mut all);
    for tier in &now.tiers {
        tiering(tier, width, &mut all);
    }
    if !now.notes.is_empty() {
        section("NOT SEEN, OR TO KNOW", &mut all);
        for note in &now.notes {
            wrapped(LineKind::Note, 2, note, &mut all);
        }
    }
    for line in &mut all {
        // A screen may be narrower than all tables.
        line.text = line
            .text
            .chars()
            .take(width)
            .collect::<String>()
            .trim_end()
            .into();
    }
    all
}

fn put(kind: LineKind, text: String, all: &mut Vec<Line>) {
    all.push(Line { kind, text });
}

fn section(title: &str, all: &mut Vec<Line>) {
    if !all.is_empty() {
        put(LineKind::Plain, String::new(), all);
    }
    put(LineKind::Title, title.into(), all);
}

fn wrapped(kind: LineKind, indent: usize, text: &str, all: &mut Vec<Line>) {
    for line in hang("", indent, text).lines() {
        put(kind, line.into(), all);
    }
}

fn size(bytes: u64) -> String {
    fmt::bytes(bytes as f64)
}

fn memory(now: &TopSnapshot, rates: Option<&Rates>, all: &mut Vec<Line>) {
    let head = ["used", "of", "programs", "files", "kernel", "given/s"];
    let head: String = head.iter().map(|word| format!("{word:>11}")).collect();
    section(&format!("MEMORY      {head}"), all);
    for node in &now.nodes {
        let given = rates.and_then(|rates| rates.allocated.get(&node.id));
        let columns = [
            size(node.total - node.free.min(node.total)),
            size(node.total),
            size(node.anonymous),
            size(node.files),
            size(node.kernel),
            given.map_or(fmt::NONE.into(), |pages| size((pages * PAGE) as u64)),
        ];
        let columns: String = columns.iter().map(|text| format!("{text:>11}")).collect();
        put(
            LineKind::Plain,
            format!("node {:<3}{:<4}{columns}", node.id, kind(node)),
            all,
        );
    }
}

fn kind(node: &NodeNow) -> &'static str {
    match node.fast {
        Some(true) => "fast",
        Some(false) => "slow",
        None => "",
    }
}

fn traffic(rates: Option<&Rates>, all: &mut Vec<Line>) {
    let Some(rates) = rates.filter(|rates| !rates.traffic.is_empty()) else {
        return;
    };
    section("TRAFFIC TO MEMORY", all);
    for (part, bytes) in &rates.traffic {
        put(
            LineKind::Plain,
            format!("{part:<12}{:>8.2} GB/s", bytes / 1e9),
            all,
        );
    }
}

fn moves(now: &TopSnapshot, rates: Option<&Rates>, all: &mut Vec<Line>) {
    section(
        &format!("{:<46}{:>12}{:>16}", "MOVES", "a second", "since the start"),
        all,
    );
    for (name, about) in COUNTERS {
        let Some(&count) = now.counters.get(name) else {
            continue;
        };
        let rate = rates.and_then(|rates| rates.counters.get(name));
        // Faults are counted, pages have a size.
        let shown = |number: f64| match name {
            "numa_hint_faults" => format!("{number:.0}"),
            _ => size((number * PAGE) as u64),
        };
        let rate = rate.map_or(fmt::NONE.into(), |rate| shown(*rate));
        put(
            LineKind::Plain,
            format!("{about:<46}{rate:>12}{:>16}", shown(count as f64)),
            all,
        );
    }
}

/// Columns of the table of processes: their heading, and which nodes they are of.
fn columns(now: &TopSnapshot) -> Vec<(String, Vec<u32>)> {
    let there = || now.nodes.iter().filter(|node| node.total > 0);
    if there().count() <= NODES {
        return there()
            .map(|node| (format!("node {}", node.id), vec![node.id]))
            .collect();
    }
    let of = |fast: Option<bool>, name: &str| {
        let nodes: Vec<u32> = there().filter(|n| n.fast == fast).map(|n| n.id).collect();
        (!nodes.is_empty()).then(|| (name.to_string(), nodes))
    };
    let kinds = [
        (Some(true), "fast"),
        (Some(false), "slow"),
        (None, "others"),
    ];
    kinds
        .iter()
        .filter_map(|(fast, name)| of(*fast, name))
        .collect()
}

fn processes(now: &TopSnapshot, rates: Option<&Rates>, all: &mut Vec<Line>) {
    let columns = columns(now);
    let mut head = format!("{:>8} {:<15}{:>10}", "PROCESS", "", "memory");
    columns
        .iter()
        .for_each(|(name, _)| head.push_str(&format!("{name:>10}")));
    head.push_str("  pauses");
    section(&head, all);
    for process in &now.processes {
        let mut row = format!(
            "{:>8} {:<15}{:>10}",
            process.pid,
            process.name,
            size(process.bytes)
        );
        for (_, nodes) in &columns {
            let text = match &process.place {
                Where::Hidden => "?".into(),
                Where::Nodes(by) => size(nodes.iter().filter_map(|n| by.get(n)).sum()),
            };
            row.push_str(&format!("{text:>10}"));
        }
        if let Some(pauses) = paused(process, rates) {
            row.push_str(&format!("  {pauses}"));
        }
        put(LineKind::Plain, row, all);
    }
    if now.more > 0 {
        put(
            LineKind::Note,
            format!("{:>8} and {} smaller ones", "", now.more),
            all,
        );
    }
}

fn paused(process: &ProcessNow, rates: Option<&Rates>) -> Option<String> {
    let pauses = process.pauses.as_ref()?;
    let share = rates.and_then(|rates| rates.pauses.get(&process.pid));
    Some(match share {
        Some(share) => format!("{:.1} %", 100.0 * share),
        None => format!("{:.1} s", pauses.seconds),
    })
}

fn tiering(tier: &TierState, width: usize, all: &mut Vec<Line>) {
    let name = tier.name.as_ref().map_or(String::new(), |name| {
        format!(", {}", varve_spec::shown_name(name))
    });
    section(
        &format!("VARVE TIER {}{name}: {}", tier.pid, tier.policy),
        all,
    );
    let share = 100.0 * tier.cpu_seconds / tier.seconds.max(1e-9);
    let exchanges = tier.exchanged.map(|bytes| {
        format!(
            "hot: {}, of which {} well placed; exchanged the frames of {} in {:.0} s; {share:.2} % of a core",
            size(tier.hot),
            size(tier.hot_in_fast),
            size(bytes),
            tier.seconds
        )
    });
    let of_nodes = || {
        format!(
            "{} of fast memory at most; hot: {}, of which {} in fast memory; promoted {} and demoted {} in {:.0} s; {share:.2} % of a core",
            size(tier.fast_bytes),
            size(tier.hot),
            size(tier.hot_in_fast),
            size(tier.to_fast),
            size(tier.to_slow),
            tier.seconds
        )
    };
    wrapped(LineKind::Plain, 2, &exchanges.unwrap_or_else(of_nodes), all);
    let has_nodes = tier.exchanged.is_none();
    tier.processes
        .iter()
        .for_each(|process| heat(process, has_nodes, width, all));
    if tier.decisions.is_empty() {
        put(LineKind::Note, "  nothing was moved yet".into(), all);
    }
    for decision in tier.decisions.iter().rev() {
        wrapped(LineKind::Plain, 2, decision, all);
    }
}

/// Strips over the addresses: how much is hot, and, between nodes, how much is in fast memory.
fn heat(process: &HeatOf, has_nodes: bool, width: usize, all: &mut Vec<Line>) {
    let (Some(first), Some(last)) = (process.parts.first(), process.parts.last()) else {
        return;
    };
    let what = match process.pid {
        // What processes share is of none.
        0 => format!("  {}, {}", process.name, process.observed_by),
        pid => format!(
            "  {} ({pid}), seen by {}",
            process.name, process.observed_by
        ),
    };
    let line = format!("{what}: {:#x} to {:#x}", first.from, last.to);
    put(LineKind::Plain, line, all);
    let room = width.saturating_sub(12).max(1);
    let strip = |of: &dyn Fn(&Part) -> f32| -> String {
        let parts = process.parts.iter().take(room);
        let shade = |part: &Part| {
            let most = RAMP.len() - 1;
            // Any value above zero is visible.
            let at = (of(part).clamp(0.0, 1.0) * most as f32).ceil() as usize;
            char::from(RAMP[at.min(most)])
        };
        parts.map(shade).collect()
    };
    put(
        LineKind::Plain,
        format!("    hot  |{}|", strip(&|part| part.hot)),
        all,
    );
    if has_nodes {
        put(
            LineKind::Plain,
            format!("    fast |{}|", strip(&|part| part.fast)),
            all,
        );
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A server with two kinds of memory, twice.
    pub fn two_looks() -> (TopSnapshot, Rates) {
        let node = |id, fast, allocated| NodeNow {
            id,
            fast: Some(fast),
            total: 128 << 30,
            free: 32 << 30,
            anonymous: 80 << 30,
            files: 12 << 30,
            kernel: 3 << 30,
            allocated,
            instead: 0,
        };
        let process = |pid, name: &str, place| ProcessNow {
            pid,
            name: name.into(),
            bytes: 40 << 30,
            place,
            pauses: None,
        };
        let java = ProcessNow {
            pauses: Some(varve_live::top::Pauses {
                count: 10,
                seconds: 1.5,
            }),
            ..process(
                20,
                "java",
                Where::Nodes([(0, 30 << 30), (1, 10 << 30)].into()),
            )
        };
        let before = TopSnapshot {
            nodes: vec![node(0, true, 1000), node(1, false, 0)],
            processes: vec![java.clone(), process(9, "sshd", Where::Hidden)],
            more: 31,
            hidden: 1,
            counters: [("pgpromote_success", 256), ("numa_hint_faults", 50)].into(),
            traffic: [("L3 00".to_string(), 0)].into(),
            tiers: vec![TierState {
                pid: 4711,
                policy: "hotset".into(),
                seconds: 60.0,
                cpu_seconds: 0.6,
                fast_bytes: 8 << 30,
                to_fast: 1 << 30,
                to_slow: 1 << 20,
                hot: 9 << 30,
                hot_in_fast: 8 << 30,
                decisions: vec!["59.1 s: moved 4.0 MiB to fast memory".into()],
                processes: vec![HeatOf {
                    pid: 20,
                    name: "java".into(),
                    observed_by: "damon".into(),
                    parts: (0..64)
                        .map(|i| Part {
                            from: 0x7000_0000_0000 + i * 0x1000,
                            to: 0x7000_0000_0000 + (i + 1) * 0x1000,
                            hot: i as f32 / 63.0,
                            fast: f32::from(i > 31),
                        })
                        .collect(),
                }],
                ..TierState::default()
            }],
            notes: vec!["the residency of 1 processes of other users is hidden".into()],
        };
        let mut now = before.clone();
        now.nodes[0].allocated = 3000;
        now.counters = [("pgpromote_success", 512), ("numa_hint_faults", 70)].into();
        now.traffic = [("L3 00".to_string(), 40_000_000_000)].into();
        now.processes[0].pauses.as_mut().unwrap().seconds = 1.7;
        let rates = Rates::between(&before, &now, 2.0);
        (now, rates)
    }

    fn text(lines: &[Line]) -> String {
        lines
            .iter()
            .map(|line| format!("{}\n", line.text))
            .collect()
    }

    #[test]
    fn what_is_shown_is_as_it_was_and_fits_80_columns() {
        let (now, rates) = two_looks();
        let shown = text(&lines(&now, Some(&rates), 80));
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/top.txt");
        if std::env::var_os("VARVE_ACCEPT").is_some() {
            std::fs::write(golden, &shown).unwrap();
        }
        assert_eq!(shown, std::fs::read_to_string(golden).unwrap());
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn many_nodes_are_shown_by_kind() {
        let (mut now, rates) = two_looks();
        for id in 2..8 {
            now.nodes.push(NodeNow {
                id,
                ..now.nodes[1].clone()
            });
        }
        let shown = text(&lines(&now, Some(&rates), 80));
        let head = shown.lines().find(|line| line.contains("PROCESS")).unwrap();
        assert!(
            head.contains("fast") && head.contains("slow") && !head.contains("node"),
            "{head}"
        );
    }

    #[test]
    fn without_a_second_look_nothing_is_a_rate() {
        let (now, _) = two_looks();
        let shown = text(&lines(&now, None, 80));
        assert!(!shown.contains("GB/s"), "{shown}");
        let row = shown
            .lines()
            .find(|line| line.starts_with("promoted"))
            .unwrap();
        assert_eq!(row.split_whitespace().nth(3), Some("-"), "{row}");
    }
}
