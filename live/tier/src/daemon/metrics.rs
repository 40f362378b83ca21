//! The state of tiers at work, as OpenMetrics 1.0 has measurements.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::SystemTime;
use varve_live::nodes::Kinds;
use varve_live::tier::TierState;

/// A family of measurements: its name without the ending of its kind, kind, unit if it has one, and what it is.
type Family = (&'static str, &'static str, &'static str, &'static str);

/// Counters of the kernel that tell of migrations (`/proc/vmstat`).
const OF_KERNEL: [&str; 8] = [
    "pgmigrate_success",
    "pgmigrate_fail",
    "pgpromote_success",
    "pgdemote_kswapd",
    "pgdemote_direct",
    "numa_hint_faults",
    "numa_pages_migrated",
    "thp_migration_success",
];

/// What is measured of each tier, in the order of [`values`].
const OF_STATE: [Family; 11] = [
    (
        "varve_tier_fast_budget_bytes",
        "gauge",
        "bytes",
        "Fast memory that the group may have",
    ),
    (
        "varve_tier_hot_bytes",
        "gauge",
        "bytes",
        "Hot pages, by the policy",
    ),
    (
        "varve_tier_hot_in_fast_bytes",
        "gauge",
        "bytes",
        "Hot pages that are in fast memory",
    ),
    (
        "varve_tier_promoted_bytes",
        "counter",
        "bytes",
        "Migrated to fast memory",
    ),
    (
        "varve_tier_demoted_bytes",
        "counter",
        "bytes",
        "Migrated to slow memory",
    ),
    (
        "varve_tier_moved_by_others_bytes",
        "counter",
        "bytes",
        "Migrated by the kernel or other programs",
    ),
    ("varve_tier_looks", "counter", "", "Scans of what is in use"),
    (
        "varve_tier_look_age_seconds",
        "gauge",
        "seconds",
        "Time since the last scan ended",
    ),
    (
        "varve_tier_cpu_seconds",
        "counter",
        "seconds",
        "Processor time of scanning, deciding and migrating",
    ),
    (
        "varve_tier_monitor_cpu_seconds",
        "counter",
        "seconds",
        "Processor time of the kernel's monitors for it",
    ),
    (
        "varve_tier_processes",
        "gauge",
        "",
        "Processes of the group with memory to tier",
    ),
];

/// The measurements of a tier, at a time in seconds since 1970.
fn values(s: &TierState, now: f64) -> [f64; OF_STATE.len()] {
    let processes = s.processes.iter().filter(|p| p.pid > 0).count();
    [
        s.fast_bytes as f64,
        s.hot as f64,
        s.hot_in_fast as f64,
        s.to_fast as f64,
        s.to_slow as f64,
        s.by_others as f64,
        s.looks as f64,
        (now - s.looked).max(0.0),
        s.cpu_seconds,
        s.monitor_seconds,
        processes as f64,
    ]
}

/// All measurements: of these tiers, and of the kernel below `root`.
pub fn text(states: &[TierState], kinds: &Kinds, root: &Path) -> String {
    let now = SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0.0, |since| since.as_secs_f64());
    let mut text = String::new();
    for (at, family) in OF_STATE.into_iter().enumerate() {
        head(&mut text, family);
        for state in states {
            let value = values(state, now)[at];
            sample(&mut text, family, &[("group", name(state))], value);
        }
    }
    let resident = (
        "varve_tier_resident_bytes",
        "gauge",
        "bytes",
        "Memory of the group's processes on nodes of a tier",
    );
    head(&mut text, resident);
    for state in states {
        for (tier, bytes) in [("fast", state.on_fast), ("slow", state.on_slow)] {
            let labels = [("group", name(state)), ("tier", tier.into())];
            sample(&mut text, resident, &labels, bytes as f64);
        }
    }
    for (family, of) in [
        (
            (
                "varve_tier_refused_bytes",
                "counter",
                "bytes",
                "Memory that did not migrate, by reason",
            ),
            (|s| &s.refused) as fn(&TierState) -> &Vec<(String, u64)>,
        ),
        (
            (
                "varve_tier_waits",
                "counter",
                "",
                "Times that pages waited, by reason",
            ),
            |s| &s.waited,
        ),
    ] {
        head(&mut text, family);
        for state in states {
            for (why, amount) in of(state) {
                let labels = [("group", name(state)), ("reason", why.clone())];
                sample(&mut text, family, &labels, *amount as f64);
            }
        }
    }
    of_the_kernel(&mut text, kinds, root);
    text.push_str("# EOF\n");
    text
}

fn of_the_kernel(text: &mut String, kinds: &Kinds, root: &Path) {
    let vmstat = fs::read_to_string(root.join("proc/vmstat")).unwrap_or_default();
    let events = (
        "varve_kernel_events",
        "counter",
        "",
        "Counts of /proc/vmstat for the whole machine, in pages of the kernel",
    );
    head(text, events);
    for event in OF_KERNEL {
        let line = vmstat
            .lines()
            .find_map(|line| line.strip_prefix(event)?.strip_prefix(' '));
        if let Some(count) = line.and_then(|count| count.trim().parse::<u64>().ok()) {
            sample(text, events, &[("event", event.into())], count as f64);
        }
    }
    let nodes = (
        "varve_node_memory_bytes",
        "gauge",
        "bytes",
        "Memory of a node, by state",
    );
    head(text, nodes);
    let kinds = [("fast", &kinds.fast), ("slow", &kinds.slow)];
    for (tier, node) in kinds
        .into_iter()
        .flat_map(|(tier, nodes)| nodes.iter().map(move |node| (tier, node)))
    {
        let file = root.join(format!("sys/devices/system/node/node{node}/meminfo"));
        let meminfo = fs::read_to_string(file).unwrap_or_default();
        for (state, field) in [("total", "MemTotal:"), ("free", "MemFree:")] {
            let kib = meminfo
                .split_once(field)
                .and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
            if let Some(kib) = kib {
                let labels = [
                    ("node", node.to_string()),
                    ("tier", tier.into()),
                    ("state", state.into()),
                ];
                sample(text, nodes, &labels, (kib * 1024) as f64);
            }
        }
    }
}

/// A group's name; of a tier that has none, that of its first process.
fn name(state: &TierState) -> String {
    let first = || state.processes.iter().find(|one| one.pid > 0);
    let name = state.name.clone();
    name.or_else(|| first().map(|one| one.name.clone()))
        .unwrap_or_default()
}

fn head(text: &mut String, (name, kind, unit, what): Family) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {what}.");
}

fn sample(text: &mut String, family: Family, labels: &[(&str, String)], value: f64) {
    let (name, kind, ..) = family;
    let ending = if kind == "counter" { "_total" } else { "" };
    let labels: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
        .collect();
    let _ = writeln!(text, "{name}{ending}{{{}}} {value}", labels.join(","));
}

/// A label's value, as OpenMetrics has it in quotes.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sample_belongs_to_the_family_before_it() {
        let root = tempfile::tempdir().unwrap();
        let node = root.path().join("sys/devices/system/node/node0");
        fs::create_dir_all(&node).unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(
            node.join("meminfo"),
            "Node 0 MemTotal:       2048 kB\nNode 0 MemFree:         512 kB\n",
        )
        .unwrap();
        let vmstat = "nr_free_pages 7\npgpromote_success 17\npgpromote_success_nrl 3\n";
        fs::write(root.path().join("proc/vmstat"), vmstat).unwrap();
        let state = TierState {
            name: Some("a \"b\"\\".into()),
            fast_bytes: 4096,
            to_fast: 8192,
            refused: vec![("a device holds them".into(), 12_288)],
            ..TierState::default()
        };
        let kinds = Kinds {
            fast: vec![0],
            slow: vec![1],
        };
        let text = text(&[state], &kinds, root.path());
        assert!(text.ends_with("# EOF\n"));
        let mut family = String::new();
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                let total = if kind == "counter" { "_total" } else { "" };
                family = format!("{name}{total}{{");
            } else if !line.starts_with('#') {
                assert!(line.starts_with(&family), "{line} is not of {family}");
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        for line in [
            r#"varve_tier_promoted_bytes_total{group="a \"b\"\\"} 8192"#,
            r#"varve_tier_refused_bytes_total{group="a \"b\"\\",reason="a device holds them"} 12288"#,
            r#"varve_kernel_events_total{event="pgpromote_success"} 17"#,
            r#"varve_node_memory_bytes{node="0",tier="fast",state="free"} 524288"#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }
}
