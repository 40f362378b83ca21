//! Random records, written as each tool writes them: what is read is what was written, and what a slow reader finds that looks for
//! one column after another. Nothing makes a reader panic.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::read;
use super::records::{DEFAULT_CHECKS, Records};
use flate2::{Compression, write::ZlibEncoder};
use std::io::Write;

/// Start, end and checks that found it in use, of 20.
type Part = (u64, u64, u64);

/// A record: its end in milliseconds, and its parts by address.
#[derive(Clone, Debug)]
struct Written {
    end: u64,
    parts: Vec<Part>,
}

/// Parts of each size that damo has a unit for, one after another.
fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (0u64..1 << 30, 0u32..44, 1u64..1024, 0u64..=20);
    vec(part, 1..6).prop_map(|all| {
        let mut end = 0;
        let part = |(gap, unit, count, uses): (u64, u32, u64, u64)| {
            let start = end + gap + 1;
            end = start + (count << unit);
            (start, end, uses)
        };
        all.into_iter().map(part).collect()
    })
}

fn written() -> impl Strategy<Value = Vec<Written>> {
    let one = (1u64..1000, parts());
    vec(one, 1..4).prop_map(|all| {
        let mut now = 60_000;
        let record = |(later, parts)| {
            now += later;
            Written { end: now, parts }
        };
        all.into_iter().map(record).collect()
    })
}

fn flat(all: &[Written]) -> Vec<Part> {
    all.iter().flat_map(|one| one.parts.clone()).collect()
}

fn found(records: &Records) -> Vec<Part> {
    let looks = records.looks.iter();
    let parts = looks.flat_map(|look| {
        let checks = look.checks.unwrap_or(DEFAULT_CHECKS);
        let parts = look.regions.iter();
        parts.map(move |one| {
            (
                one.range.start,
                one.range.end,
                one.uses(checks).round() as u64,
            )
        })
    });
    parts.collect()
}

/// `3.949 MiB`, as damo writes sizes for people.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (1..=6).rev().find(|unit| bytes > 1 << (10 * unit));
    match unit {
        Some(unit) => format!(
            "{:.3} {}",
            bytes as f64 / (1u64 << (10 * unit)) as f64,
            units[unit - 1]
        ),
        None => format!("{bytes} B"),
    }
}

/// `94,827,419`.
fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[derive(Clone, Copy, Debug)]
enum RawForm {
    First,
    WithAge,
    Columns,
    Numbers,
}

fn raw(all: &[Written], form: RawForm) -> String {
    let mut text = "base_time_absolute: 1 m 0 s\ndata source: unknown\n\n".to_string();
    for one in all {
        text += &format!("monitoring_start:    {:>16}\n", "0 ns");
        text += &format!("monitoring_end:      {:>16}\n", format!("{} ms", one.end));
        text += &format!("target_id: None\nnr_regions: {}\n", one.parts.len());
        for (start, end, uses) in &one.parts {
            let size = match form {
                RawForm::Numbers => (end - start).to_string(),
                _ => size(end - start),
            };
            text += &match form {
                RawForm::First => format!("{start:012x}-{end:012x}({size:>12}):\t{uses}\n"),
                RawForm::WithAge => {
                    format!("{start:012x}-{end:012x}({size:>12}):\t{uses} (age: -1)\n")
                }
                _ => format!(
                    "{start:012x}-{end:012x} ({size:>12}) {uses:>11} {:>5}\n",
                    12
                ),
            };
        }
        text += "\n";
    }
    text
}

/// Of the columns: before `-`, before `(`, and the first word behind `)`.
fn slow_raw(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.contains('(')) {
        let (dash, open, close) = (line.find('-'), line.find('('), line.find(')'));
        let (dash, open, close) = (dash.unwrap(), open.unwrap(), close.unwrap());
        let hex = |text: &str| u64::from_str_radix(text.trim(), 16).unwrap();
        let behind = line[close + 1..].replace([':', '\t'], " ");
        let uses = behind.split_whitespace().next().unwrap().parse().unwrap();
        found.push((hex(&line[..dash]), hex(&line[dash + 1..open]), uses));
    }
    found
}

fn script(all: &[Written], has_intervals: bool) -> String {
    let mut text = "0-th record\n".to_string();
    if has_intervals {
        text += "intervals: 5000 100000\n";
    }
    for (number, one) in all.iter().enumerate() {
        text += &format!("{number}-th snapshot\n");
        for (start, end, uses) in &one.parts {
            let uses = if has_intervals { *uses } else { uses * 5 };
            text += &format!("{start}-{end} ({}): {uses} 500000\n", end - start);
        }
    }
    text
}

#[derive(Clone, Copy, Debug)]
enum TraceForm {
    Perf,
    Damo,
    TraceCmd,
    OldTraceCmd,
    PerfTrace,
    WithProbes,
    BeforeApply,
}

fn trace(all: &[Written], form: TraceForm) -> String {
    let mut text = "cpus=4\n".to_string();
    for one in all {
        let (seconds, part) = (one.end / 1000, one.end % 1000);
        let time = format!("{seconds}.{part:03}000");
        let number = one.parts.len();
        for (start, end, uses) in &one.parts {
            let fields = format!("target_id=0 nr_regions={number} {start}-{end}: {uses}");
            text += &match form {
                TraceForm::Perf => {
                    format!("  kdamond.0  4452 [000] {time}: damon:damon_aggregated: {fields} 3")
                }
                TraceForm::Damo => {
                    format!("kdamond.x xxxx xxxx {time}: damon:damon_aggregated: {fields} None")
                }
                TraceForm::TraceCmd => {
                    format!("<...>-129 [000] ..... {time}: damon_aggregated:     {fields} 560")
                }
                TraceForm::OldTraceCmd => {
                    format!("kdamond.0-129 [000] {time}: damon_aggregated:     {fields}")
                }
                TraceForm::PerfTrace => format!(
                    "{}.5 kthreadd/12 damon:damon_aggregated({fields} 33)",
                    one.end
                ),
                TraceForm::WithProbes => format!(
                    "<...>-1 [000] ..... {time}: damon_region_aggregated: {fields} 4 probe_hits=14 00"
                ),
                TraceForm::BeforeApply => format!(
                    "k  1 [000] {time}: damon:damos_before_apply: ctx_idx=0 scheme_idx=0 target_idx=0 nr_regions=99 {start}-{end}: {uses} 4"
                ),
            };
            text += "\n";
        }
    }
    text
}

/// The words with `-` and `: ` behind, and the word after it.
fn slow_trace(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.contains("nr_regions=")) {
        let behind = &line[line.find("nr_regions=").unwrap()..];
        let words: Vec<&str> = behind.split_whitespace().collect();
        let (start, end) = words[1].trim_end_matches(':').split_once('-').unwrap();
        let uses = words[2].trim_end_matches(')').parse().unwrap();
        found.push((start.parse().unwrap(), end.parse().unwrap(), uses));
    }
    found
}

fn as_json(all: &[Written], is_for_people: bool, is_percent: bool) -> String {
    let part = |&(start, end, uses): &Part| {
        let accesses = match is_percent {
            true => json!({"samples": null, "percent": uses * 5}),
            false => json!({"samples": uses, "percent": null}),
        };
        json!({"start": commas(start), "end": commas(end), "nr_accesses": accesses,
               "age": {"usec": null, "aggr_intervals": "3"}, "sz_filter_passed": "0 B"})
    };
    let record = |one: &Written| {
        let parts: Vec<Value> = one.parts.iter().map(part).collect();
        let (start, end) = match is_for_people {
            true => (
                "1 m 1 us".to_string(),
                format!("{} s {} ms", one.end / 1000, one.end % 1000),
            ),
            false => ("60000001000".to_string(), (one.end * 1_000_000).to_string()),
        };
        json!({"start_time": start, "end_time": end, "regions": parts})
    };
    let records: Vec<Value> = all.iter().map(record).collect();
    let (sample, all) = match is_for_people {
        true => ("5 ms", "100 ms"),
        false => ("5000", "100000"),
    };
    let record = json!({"intervals": {"sample_us": sample, "aggr_us": all, "ops_update_us": "1 s"},
                        "target_id": null, "snapshots": records});
    serde_json::to_string_pretty(&json!([record])).unwrap()
}

fn slow_json(text: &str) -> Vec<Part> {
    let all: Value = serde_json::from_str(text).unwrap();
    let mut found = Vec::new();
    for record in all.as_array().unwrap() {
        for look in record["snapshots"].as_array().unwrap() {
            for part in look["regions"].as_array().unwrap() {
                let at = |name: &str| {
                    part[name]
                        .as_str()
                        .unwrap()
                        .replace(',', "")
                        .parse()
                        .unwrap()
                };
                let accesses = &part["nr_accesses"];
                let percent = accesses["percent"].as_u64().map(|percent| percent / 5);
                found.push((
                    at("start"),
                    at("end"),
                    accesses["samples"].as_u64().or(percent).unwrap(),
                ));
            }
        }
    }
    found
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn read_all(bytes: &[u8]) -> Records {
    read("d", bytes).unwrap()
}

proptest! {
    #[test]
    fn raw_text_is_read_as_it_was_written(
        all in written(),
        form in prop::sample::select(vec![RawForm::First, RawForm::WithAge, RawForm::Columns, RawForm::Numbers]),
    ) {
        let text = raw(&all, form);
        let records = read_all(text.as_bytes());
        prop_assert_eq!(records.looks.len(), all.len());
        prop_assert_eq!(found(&records), flat(&all));
        prop_assert_eq!(slow_raw(&text), flat(&all));
        prop_assert_eq!(records.to, 60e9 + all.last().unwrap().end as f64 * 1e6);
    }

    /// Each of the lines of a part is needed.
    #[test]
    fn raw_text_without_one_of_its_parts_is_refused(all in written(), which in any::<prop::sample::Index>()) {
        let text = raw(&all, RawForm::Columns);
        let parts: Vec<usize> = text.lines().enumerate().filter(|(_, line)| line.contains('(')).map(|(at, _)| at).collect();
        let lost = parts[which.index(parts.len())];
        let cut: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != lost).map(|(_, line)| line).collect();
        prop_assert!(read("d", cut.join("\n").as_bytes()).is_err());
        let damaged: Vec<String> = text.lines().enumerate().map(|(at, line)| match at == lost {
            true => line.replace(')', " "),
            false => line.to_string(),
        }).collect();
        let said = read("d", damaged.join("\n").as_bytes()).unwrap_err().to_string();
        prop_assert!(said.starts_with(&format!("d:{}: no region", lost + 1)), "{}", said);
    }

    #[test]
    fn scripts_of_damo_are_read_as_they_were_written(all in written(), has_intervals in any::<bool>()) {
        let records = read_all(script(&all, has_intervals).as_bytes());
        prop_assert_eq!(records.looks.len(), all.len());
        prop_assert_eq!(found(&records), flat(&all));
    }

    #[test]
    fn traces_are_read_as_they_were_written(
        all in written(),
        form in prop::sample::select(vec![
            TraceForm::Perf, TraceForm::Damo, TraceForm::TraceCmd, TraceForm::OldTraceCmd, TraceForm::PerfTrace,
            TraceForm::WithProbes, TraceForm::BeforeApply,
        ]),
    ) {
        let text = trace(&all, form);
        let records = read_all(text.as_bytes());
        prop_assert_eq!(found(&records), flat(&all));
        prop_assert_eq!(slow_trace(&text), flat(&all));
        prop_assert!(records.notes.is_empty());
        // A scheme's records end where addresses begin anew.
        if !matches!(form, TraceForm::BeforeApply) {
            prop_assert_eq!(records.looks.len(), all.len());
        }
        prop_assert!((records.to - all.last().unwrap().end as f64 * 1e6).abs() < 1e6);
    }

    #[test]
    fn json_is_read_as_it_was_written(all in written(), is_for_people in any::<bool>(), is_percent in any::<bool>()) {
        let text = as_json(&all, is_for_people, is_percent);
        prop_assert_eq!(slow_json(&text), flat(&all));
        for bytes in [text.clone().into_bytes(), packed(&text)] {
            let records = read_all(&bytes);
            prop_assert_eq!(found(&records), flat(&all));
            prop_assert!(records.looks.iter().all(|look| look.checks == Some(20.0)));
            prop_assert_eq!(records.from, Some(60_000_001_000.0));
            prop_assert_eq!(records.to, all.last().unwrap().end as f64 * 1e6);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = super::damon("d", &bytes[..], None);
        let _ = super::damon("d", &packed(&String::from_utf8_lossy(&bytes))[..], None);
    }

    #[test]
    fn no_words_make_it_panic(words in vec(prop::sample::select(WORDS.to_vec()), 0..60)) {
        let _ = super::damon("d", words.concat().as_bytes(), None);
    }
}

const WORDS: [&str; 30] = [
    "base_time_absolute:",
    "monitoring_start:",
    "monitoring_end:",
    "target_id:",
    "nr_regions:",
    "intervals:",
    "0-th record",
    "0-th snapshot",
    "0-ffffffffffffffff",
    "18446744073709551615",
    "5-4:",
    "10-20",
    "(",
    ")",
    " ( 4 KiB) ",
    ":",
    "-1",
    "%",
    "None",
    "nr_regions=2",
    "\n",
    "\n",
    "\n",
    " ",
    " ",
    "1e300",
    "NaN",
    "damon:damon_aggregated:",
    "damon:damon_aggregated(",
    "[{",
];
