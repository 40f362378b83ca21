//! Charts as SVG: a drawing for a width in pixels, coloured by the page's style sheet.

mod bars;
mod frame;
mod gantt;
mod heat;
mod lines;
mod points;
mod scale;

use crate::chart::{Chart, Data};
use crate::markup::{Markup, Px};
use std::fmt::Display;

/// Height of a line of text, in pixels.
const LINE: f64 = 16.0;

/// Draws a chart into the page, for a column `width` pixels wide.
pub fn draw(chart: &Chart, width: f64, page: &mut Markup) {
    // A narrow drawing is for a finger: no tooltips of single points, no names in the right margin of bars.
    let canvas = Canvas {
        width,
        wide: width > 500.0,
    };
    if is_empty(&chart.data) {
        page.leaf("p", &[("class", &"soft")], "Nothing was recorded.");
        return;
    }
    match &chart.data {
        Data::Lines(series) => lines::draw(chart, series, canvas, page),
        Data::Points(series) => points::draw(chart, series, canvas, page),
        Data::Bars {
            groups,
            bars,
            stacked,
        } => bars::draw(chart, groups, bars, *stacked, canvas, page),
        Data::HeatMap { columns, rows } => heat::draw(chart, columns, rows, canvas, page),
        Data::Gantt { lanes, spans } => gantt::draw(chart, lanes, spans, canvas, page),
    }
}

/// A chart as a picture of its own, with its title and the page's colours; nothing if nothing was recorded.
pub fn picture(chart: &Chart) -> Option<String> {
    const WIDTH: f64 = 760.0;
    if is_empty(&chart.data) {
        return None;
    }
    let mut drawing = Markup::default();
    draw(chart, WIDTH, &mut drawing);
    let drawing = drawing.finish();
    // The style sheet goes where the drawing's own content begins.
    let (begin, content) = drawing.split_once('>')?;
    let style = include_str!("../html/style.css");
    Some(format!(
        "{begin}><style>{style}svg {{ background: var(--paper); font-family: system-ui, sans-serif; }}</style>{content}"
    ))
}

/// Whether there is nothing to draw: axes alone would pretend that there is.
fn is_empty(data: &Data) -> bool {
    match data {
        Data::Lines(series) | Data::Points(series) => {
            series.iter().all(|s| s.points().next().is_none())
        }
        Data::Bars { groups, bars, .. } => groups.is_empty() || bars.is_empty(),
        Data::HeatMap { columns, rows } => columns.is_empty() || rows.is_empty(),
        Data::Gantt { lanes, spans } => lanes.is_empty() || spans.is_empty(),
    }
}

/// Properties of a drawing's target.
#[derive(Clone, Copy)]
struct Canvas {
    width: f64,
    wide: bool,
}

/// The edges of the part of a drawing where data is.
#[derive(Clone, Copy)]
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Begins a drawing of a size, with a description for screen readers.
fn begin(chart: &Chart, kind: &str, (width, height): (f64, f64), page: &mut Markup) {
    let described = format!("{kind}: {}. {}", chart.title, summary(chart));
    let view = format!("0 0 {} {}", Px(width), Px(height));
    // A drawing shrinks with its column as far as it can be read; then it scrolls.
    let least = width * 0.85;
    page.open(
        "svg",
        &[
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("viewBox", &view),
            ("role", &"img"),
            ("aria-label", &described),
            ("style", &format!("min-width:{}px", Px(least))),
        ],
    );
}

/// Contents of a chart, in a sentence.
fn summary(chart: &Chart) -> String {
    let names = |names: Vec<&str>| names.join(", ");
    let (x, y) = (&chart.x.what, &chart.y.what);
    match &chart.data {
        Data::Lines(s) | Data::Points(s) => {
            format!(
                "{y} by {x} of {}.",
                names(s.iter().map(|s| s.name.as_str()).collect())
            )
        }
        Data::Bars { groups, bars, .. } => format!(
            "{y} of {} for {}.",
            names(bars.iter().map(|b| b.name.as_str()).collect()),
            names(groups.iter().map(String::as_str).collect())
        ),
        Data::HeatMap { columns, rows } => {
            format!(
                "{y}: {} rows by {} columns of {x}.",
                rows.len(),
                columns.len()
            )
        }
        Data::Gantt { lanes, spans } => {
            format!(
                "{} spans in {}.",
                spans.len(),
                names(lanes.iter().map(String::as_str).collect())
            )
        }
    }
}

/// About how wide a text of the page's small size is, in pixels. Measured on DejaVu Sans, the widest of
/// the fonts that the page asks for, so that nothing is cut off in a narrower one.
fn text_width(text: &str) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | '|' | '\'' => 3.6,
        ' ' | '.' | ',' | ':' | ';' | '!' | '-' | '/' | '(' | ')' | '[' | ']' | 'f' | 't' | 'r'
        | 'I' => 5.0,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.6,
        'a'..='z' | '0'..='9' => 7.7,
        c if c.is_ascii() => 9.0,
        _ => 12.0,
    };
    text.chars().map(of).sum()
}

/// As much of a text as fits, with an ellipsis where something is left out.
fn fit(text: &str, room: f64) -> String {
    if text_width(text) <= room {
        return text.to_string();
    }
    let mut out = String::new();
    for c in text.chars() {
        if text_width(&out) + 16.0 > room {
            break;
        }
        out.push(c);
    }
    out.trim_end().to_string() + "…"
}

/// A text into lines that fit; the last one shortened where there are too many.
fn broken(text: &str, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("begins with a line");
        if line.is_empty() {
            line.push_str(word);
        } else if text_width(line) + text_width(word) + 5.0 <= room || lines.len() == most {
            let line = lines.last_mut().expect("begins with a line");
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines.iter().map(|l| fit(l, room)).collect()
}

/// The classes of the `i`th colour; beyond eight, the colours come again in dashes.
fn colour(i: usize) -> String {
    format!("c{}{}", i % 8, if i % 16 >= 8 { " again" } else { "" })
}

/// A text at a place; `anchor` is `start`, `middle` or `end`.
fn text(page: &mut Markup, (x, y): (f64, f64), anchor: &str, class: &str, words: &str) {
    page.leaf(
        "text",
        &[
            ("x", &Px(x)),
            ("y", &Px(y)),
            ("text-anchor", &anchor),
            ("class", &class),
        ],
        words,
    );
}

/// A straight line.
fn line(page: &mut Markup, from: (f64, f64), to: (f64, f64), class: &dyn Display) {
    page.empty(
        "line",
        &[
            ("x1", &Px(from.0)),
            ("y1", &Px(from.1)),
            ("x2", &Px(to.0)),
            ("y2", &Px(to.1)),
            ("class", class),
        ],
    );
}

/// A rectangle with a tooltip.
fn rect(page: &mut Markup, (x, y): (f64, f64), (w, h): (f64, f64), class: &dyn Display, tip: &str) {
    let (w, h) = (w.max(0.0), h.max(0.0));
    page.open(
        "rect",
        &[
            ("x", &Px(x)),
            ("y", &Px(y)),
            ("width", &Px(w)),
            ("height", &Px(h)),
            ("class", class),
        ],
    );
    page.leaf("title", &[], tip);
    page.close();
}
