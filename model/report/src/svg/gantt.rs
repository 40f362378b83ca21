//! Lanes of spans over time: which program runs where, and when.

use super::frame::{self, Entry};
use super::scale::Placed;
use super::{Canvas, LINE, Plot, begin, broken, colour, rect, text, text_width};
use crate::chart::{Chart, GanttSpan};
use crate::markup::Markup;

/// Height of a lane, in pixels.
const LANE: f64 = 34.0;

pub fn draw(
    chart: &Chart,
    lanes: &[String],
    spans: &[GanttSpan],
    canvas: Canvas,
    page: &mut Markup,
) {
    let mut kinds: Vec<&str> = Vec::new();
    for s in spans {
        if !kinds.contains(&s.kind.as_str()) {
            kinds.push(&s.kind);
        }
    }
    let entry = |(i, kind): (usize, &&str)| Entry::new(kind, format!("span {}", colour(i)));
    let legend: Vec<Entry> = kinds
        .iter()
        .enumerate()
        .filter(|_| kinds.len() > 1)
        .map(entry)
        .collect();
    let legend_height = frame::legend_lines(&legend, canvas.width) as f64 * LINE;
    let longest = lanes.iter().map(|l| text_width(l)).fold(0.0, f64::max);
    let top = 10.0 + legend_height;
    let plot = Plot {
        left: longest.min(canvas.width * 0.34) + 8.0,
        right: canvas.width - 14.0,
        top,
        bottom: top + LANE * lanes.len() as f64,
    };
    // Time ends where the last span ends: empty space there has no meaning.
    let end = spans.iter().map(|s| s.end).reduce(f64::max);
    let axis = chart
        .x
        .clone()
        .between(chart.x.range.0, chart.x.range.1.or(end));
    let ends = spans.iter().flat_map(|s| [s.start, s.end]);
    let x = Placed::new(&axis, ends, (plot.left, plot.right), 64.0, true);
    begin(
        chart,
        "Gantt chart",
        (canvas.width, plot.bottom + 40.0),
        page,
    );
    frame::legend(&legend, canvas.width, page);
    for (l, lane) in lanes.iter().enumerate() {
        let y = plot.top + LANE * l as f64;
        super::line(page, (plot.left, y), (plot.right, y), &"grid");
        let words = broken(lane, plot.left - 8.0, 2);
        let first = y + LANE / 2.0 + 4.0 - (words.len() - 1) as f64 * 6.5;
        for (i, words) in words.iter().enumerate() {
            text(
                page,
                (plot.left - 8.0, first + i as f64 * 13.0),
                "end",
                "note",
                words,
            );
        }
    }
    for s in spans {
        let (from, to) = (x.clamped(s.start), x.clamped(s.end));
        let y = plot.top + LANE * s.lane as f64 + 4.0;
        let kind = kinds.iter().position(|k| *k == s.kind).unwrap_or(0);
        let when = |t: f64| chart.x.format.one(&chart.x.unit, t);
        let tip = format!(
            "{} ({}): {} to {}, {}",
            s.name,
            s.kind,
            when(s.start),
            when(s.end),
            when(s.end - s.start)
        );
        // A span shorter than a pixel is still there.
        let size = ((to - from - 1.0).max(1.0), LANE - 8.0);
        rect(
            page,
            (from, y),
            size,
            &format!("span {}", colour(kind)),
            &tip,
        );
        if text_width(&s.name) + 8.0 <= to - from {
            text(page, (from + 6.0, y + LANE / 2.0), "start", "note", &s.name);
        }
    }
    frame::x_axis(&x, plot, page);
    page.close();
}
