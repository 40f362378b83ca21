//! Pictures of groups.

use crate::result::GroupResult;
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, GanttSpan};

/// Which program ran when, and in which memory. `end_s`: where the axis ends, so that several can be compared.
pub fn gantt(id: &str, title: &str, result: &GroupResult, end_s: f64) -> Chart {
    let lanes = (result.programs.iter())
        .map(|p| format!("{} x{}", p.name, p.threads))
        .collect();
    let spans = (result.programs.iter().enumerate())
        .filter_map(|(lane, p)| {
            Some(GanttSpan {
                lane,
                name: p.name.clone(),
                kind: p.memory.words().into(),
                start: p.start_s? * 1e9,
                end: p.end_s? * 1e9,
            })
        })
        .collect();
    let time = Axis::new("time", "", Format::DurationNs).between(0.0, end_s * 1e9);
    let lane = Axis::new("program and threads", "", Format::Number);
    Chart::new(id, title, time, lane, Data::Gantt { lanes, spans })
}
