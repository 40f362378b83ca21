//! Timelines as trace events in JSON, which Perfetto and `chrome://tracing` read.
//!
//! The format: "Trace Event Format", <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>. A run is a
//! process, a lane a thread; times are microseconds.

use super::timeline::{Counter, Timeline};
use serde_json::{Value, json};

/// A timeline; nothing if there is nothing to see.
pub fn write(timeline: &Timeline) -> Option<String> {
    if timeline.is_empty() {
        return None;
    }
    let mut events = Vec::new();
    for (number, run) in timeline.runs.iter().enumerate() {
        let pid = number + 1;
        events.push(meta("process_name", pid, 0, json!({ "name": run.name })));
        events.push(meta(
            "process_sort_index",
            pid,
            0,
            json!({ "sort_index": number }),
        ));
        for (number, lane) in run.lanes.iter().enumerate() {
            let tid = 100 * pid + number + 1;
            events.push(meta("thread_name", pid, tid, json!({ "name": lane.name })));
            events.push(meta(
                "thread_sort_index",
                pid,
                tid,
                json!({ "sort_index": number }),
            ));
            events.extend(lane.spans.iter().map(|span| {
                json!({
                    "ph": "X", "pid": pid, "tid": tid, "name": span.name, "ts": us(span.begin_ns),
                    "dur": us(span.end_ns - span.begin_ns), "args": { "count": span.count },
                })
            }));
        }
        for counter in &run.counters {
            events.extend(points(counter, pid));
        }
    }
    // One event a line, since people read such files.
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let title = json!({ "title": timeline.title });
    Some(format!(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{title},\"traceEvents\":[\n{}\n]}}\n",
        lines.join(",\n")
    ))
}

fn meta(name: &str, pid: usize, tid: usize, args: Value) -> Value {
    json!({ "ph": "M", "pid": pid, "tid": tid, "name": name, "args": args })
}

/// A counter has its value from an event on, so that each stands where its interval begins.
fn points(counter: &Counter, pid: usize) -> impl Iterator<Item = Value> + '_ {
    let (unit, one) = counter.meaning.unit();
    let begins = std::iter::once(0).chain(counter.points.iter().map(|p| p.0));
    let event = move |(begin, value): (u64, f64)| {
        let value = (value * 1e6).round() / 1e6;
        json!({ "ph": "C", "pid": pid, "name": counter.name, "ts": us(begin), "args": { unit: value } })
    };
    let end = counter.points.last().map(|p| (p.0, 0.0));
    let values = counter.points.iter().map(move |p| p.1 / one);
    begins.zip(values).chain(end).map(event)
}

/// ns as microseconds; a whole number where it is one.
fn us(ns: u64) -> Value {
    match ns % 1000 {
        0 => json!(ns / 1000),
        _ => json!(ns as f64 / 1000.0),
    }
}
