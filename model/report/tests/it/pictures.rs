//! Pictures in files of their own: their contents, and that none is large.

use crate::golden;
use serde_json::Value;
use std::fs;
use std::path::Path;
use varve_report::pictures::{
    By, Cell, Counter, Flame, HeatMap, Lane, Meaning, Pictures, Range, Stack, Timeline,
    TimelineRun, TimelineSpan,
};
use varve_report::{Origin, RunReport, RunTable, html};

/// No file may be larger, bytes.
const MOST_BYTES: u64 = 5 << 20;

fn stack(frames: &[&str], fast_ns: u64, slow_ns: u64) -> Stack {
    Stack {
        frames: frames.iter().map(|f| f.to_string()).collect(),
        fast_ns,
        slow_ns,
    }
}

fn span(name: &str, begin_ns: u64, end_ns: u64) -> TimelineSpan {
    TimelineSpan {
        name: name.into(),
        begin_ns,
        end_ns,
        count: 1,
    }
}

/// Two collections and a phase, with bandwidth and power; two stacks; two ranges of memory.
fn small() -> Pictures {
    let counter = |name: &str, meaning, points| Counter {
        name: name.into(),
        meaning,
        points,
    };
    let cell = |accesses, fast_bytes, slow_bytes| Cell {
        accesses,
        fast_bytes,
        slow_bytes,
    };
    let range = |begin, cells| Range {
        begin,
        end: begin + 0x1000,
        cells,
    };
    Pictures {
        flame: Some(Flame {
            by: By::Memory,
            title: "sort on cxl-spr".into(),
            fast: Some("with all in DRAM".into()),
            slow: "with all in slow memory".into(),
            stacks: vec![
                stack(
                    &["heap", "main (sort.c:9)", "fill (sort.c:3)"],
                    10_000,
                    30_000,
                ),
                stack(&["stacks of threads"], 9_000, 8_000),
            ],
        }),
        code: Some(Flame {
            by: By::Function,
            title: "sort on cxl-spr".into(),
            fast: Some("with all in DRAM".into()),
            slow: "with all in slow memory".into(),
            stacks: vec![
                stack(&["sort", "main", "merge"], 18_000, 37_000),
                stack(&["libc.so.6", "memcpy"], 1_000, 1_000),
            ],
        }),
        timeline: Timeline {
            title: "sort on cxl-spr".into(),
            runs: vec![TimelineRun {
                name: "kg-n".into(),
                end_ns: 9_000,
                lanes: vec![
                    Lane {
                        name: "phases".into(),
                        spans: vec![span("run", 0, 9_000)],
                    },
                    Lane {
                        name: "collections".into(),
                        spans: vec![span("minor", 1_000, 1_500), span("full", 4_001, 6_250)],
                    },
                ],
                counters: vec![
                    counter(
                        "DRAM read",
                        Meaning::Bandwidth,
                        vec![(4_000, 2.5e9), (9_000, 1e9)],
                    ),
                    counter("memory power", Meaning::Power, vec![(9_000, 12.5)]),
                ],
            }],
        },
        heat: vec![HeatMap {
            name: "kg-n".into(),
            ranges: vec![
                range(0x1000, vec![cell(1, 4096, 0), cell(0, 4096, 0)]),
                range(0x9000, vec![cell(0, 0, 0), cell(500, 0, 4096)]),
            ],
            end_ns: 9_000,
            memories: true,
        }],
    }
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&read(folder, name)).unwrap()
}

#[test]
fn small_pictures_are_these() {
    let folder = tempfile::tempdir().unwrap();
    let files = small().save(folder.path()).unwrap();
    let names: Vec<&str> = files.iter().map(|f| f.file.as_str()).collect();
    assert_eq!(
        names,
        [
            "flame.svg",
            "flame-difference.svg",
            "flame-code.svg",
            "flame-code-difference.svg",
            "heat.svg",
            "heat-memory.svg",
            "timeline.perfetto.json"
        ]
    );
    for name in names {
        let text = read(folder.path(), name);
        if name.ends_with(".svg") {
            let options = roxmltree::ParsingOptions {
                allow_dtd: true,
                ..Default::default()
            };
            roxmltree::Document::parse_with_options(&text, options).unwrap();
        }
        golden::check(name, &text);
    }
}

#[test]
fn what_nobody_saw_is_not_drawn() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Pictures::default().save(folder.path()).unwrap().is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn however_large_the_runs_files_are_small() {
    let run = |number: u64| TimelineRun {
        name: format!("plan {number}"),
        end_ns: 1 << 40,
        lanes: (0..64)
            .map(|lane| Lane {
                name: format!("get, thread {lane}"),
                spans: (0..2_000)
                    .map(|i| span("get", i * 1_000_000, i * 1_000_000 + 999_999))
                    .collect(),
            })
            .collect(),
        counters: (0..9)
            .map(|c| Counter {
                name: format!("counter {c}"),
                meaning: Meaning::Bandwidth,
                points: (1..512)
                    .map(|i| (i * 1_000_003, i as f64 * 1.23456e9))
                    .collect(),
            })
            .collect(),
    };
    let deep = |i: u64| Stack {
        frames: (0..60)
            .map(|d| format!("some_function_{}_of_a_library (file.c:{d})", i % (d + 1)))
            .collect(),
        fast_ns: i,
        slow_ns: 3 * i,
    };
    let noise = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let map = |number: u64| HeatMap {
        name: format!("plan {number}"),
        ranges: (0..512)
            .map(|r| Range {
                begin: r << 21,
                end: (r + 1) << 21,
                cells: (0..256)
                    .map(|c| Cell {
                        accesses: noise(r * 256 + c),
                        fast_bytes: noise(c),
                        slow_bytes: noise(r),
                    })
                    .collect(),
            })
            .collect(),
        end_ns: 1 << 40,
        memories: true,
    };
    let folder = tempfile::tempdir().unwrap();
    let pictures = Pictures {
        flame: Some(Flame {
            stacks: (0..20_000).map(deep).collect(),
            ..small().flame.unwrap()
        }),
        code: Some(Flame {
            stacks: (0..20_000).map(deep).collect(),
            ..small().code.unwrap()
        }),
        timeline: Timeline {
            title: "large".into(),
            runs: (0..12).map(run).collect(),
        },
        heat: (0..20).map(map).collect(),
    };
    for beside in pictures.save(folder.path()).unwrap() {
        let bytes = fs::metadata(folder.path().join(&beside.file))
            .unwrap()
            .len();
        assert!(bytes < MOST_BYTES, "{}: {bytes} bytes", beside.file);
        if beside.file.starts_with("heat") {
            assert!(
                beside.says.contains("14 runs are left out"),
                "{}",
                beside.says
            );
        }
    }
    // Nothing was lost by joining.
    let trace = json(folder.path(), "timeline.perfetto.json");
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let counts = events.filter_map(|e| e["args"]["count"].as_u64());
    assert_eq!(counts.sum::<u64>(), 12 * 64 * 2_000);
}

#[test]
fn the_page_answers_first_and_has_the_pictures() {
    let mut table = RunTable::new("sort on cxl-spr", "plan");
    table.notes = vec!["Note: short.".into(), "Advice: use `kg-n`.".into()];
    let folder = tempfile::tempdir().unwrap();
    let report = RunReport {
        origin: Origin::default(),
        table,
        pictures: small().save(folder.path()).unwrap(),
        ..RunReport::default()
    };
    let page = html::runs(&report).unwrap();
    let at = |text: &str| {
        page.find(text)
            .unwrap_or_else(|| panic!("no {text} in {page}"))
    };
    assert!(at("Advice: use <code>kg-n</code>.") < at("<table"));
    assert!(at("<table") < at("Note: short."));
    assert_eq!(page.matches("Advice").count(), 1);
    assert!(page.contains("<a href=\"flame.svg\">flame.svg</a>: a flame graph"));
    let drawn = report.pictures.iter().filter(|p| p.drawn.is_some()).count();
    assert!(
        drawn >= 4
            && page
                .matches("<img src=\"data:image/svg+xml;base64,")
                .count()
                == drawn
    );
    // A page that is made again from its data has the links.
    let again: RunReport = serde_json::from_str(&report.to_json()).unwrap();
    let page = html::runs(&again).unwrap();
    assert!(page.contains("<a href=\"heat.svg\">") && !page.contains("<img"));
}
