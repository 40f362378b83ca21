//! Shared by charts with axes: headings, grid, levels, legends.

use super::scale::Placed;
use super::{LINE, Plot, fit, line, text, text_width};
use crate::chart::{Chart, Level};
use crate::markup::{Markup, Px};

/// The vertical axis: its heading above, a light line at each tick.
pub fn y_axis(y: &Placed, plot: Plot, page: &mut Markup) {
    text(page, (0.0, plot.top - 14.0), "start", "axis", &y.heading);
    for (value, label) in &y.ticks {
        if let Some(at) = y.at(*value) {
            line(page, (plot.left, at), (plot.right, at), &"grid");
            text(page, (plot.left - 6.0, at + 4.0), "end", "tick", label);
        }
    }
}

/// The horizontal axis: ticks below, its heading below them.
pub fn x_axis(x: &Placed, plot: Plot, page: &mut Markup) {
    line(
        page,
        (plot.left, plot.bottom),
        (plot.right, plot.bottom),
        &"base",
    );
    for (value, label) in &x.ticks {
        if let Some(at) = x.at(*value) {
            line(page, (at, plot.bottom), (at, plot.bottom + 4.0), &"base");
            text(page, (at, plot.bottom + 17.0), "middle", "tick", label);
        }
    }
    x_heading(&x.heading, plot, plot.bottom + 17.0 + LINE, page);
}

/// The horizontal axis' name, in the middle below it.
pub fn x_heading(heading: &str, plot: Plot, at: f64, page: &mut Markup) {
    text(
        page,
        ((plot.left + plot.right) / 2.0, at),
        "middle",
        "axis",
        heading,
    );
}

/// Lines across the chart at values of interest.
pub fn levels(chart: &Chart, y: &Placed, plot: Plot, page: &mut Markup) {
    for level in &chart.levels {
        if let Some(at) = y.at(level.value) {
            line(page, (plot.left, at), (plot.right, at), &"level");
        }
    }
}

/// The levels' names on their lines, for charts without room beside them.
pub fn level_names(chart: &Chart, y: &Placed, plot: Plot, page: &mut Markup) {
    for level in &chart.levels {
        if let Some(at) = y.at(level.value) {
            // Below a line at the top, where the axis' own name is above.
            let at = if at < plot.top + LINE {
                at + 13.0
            } else {
                at - 5.0
            };
            let name = fit(&level.name, plot.right - plot.left - 8.0);
            text(page, (plot.left + 4.0, at), "start", "note halo", &name);
        }
    }
}

/// A name for the right margin: its class, where its line ends, and the words.
pub struct LineLabel {
    pub class: String,
    pub from: f64,
    pub name: String,
}

/// The names of the levels, where their lines end.
pub fn level_ends(chart: &Chart, y: &Placed) -> Vec<LineLabel> {
    let end = |l: &Level| {
        Some(LineLabel {
            class: "level".into(),
            from: y.at(l.value)?,
            name: l.name.clone(),
        })
    };
    chart.levels.iter().filter_map(end).collect()
}

/// The room that names in the right margin need; `None` where they would take the chart's place.
pub fn margin<'a>(names: impl Iterator<Item = &'a str>, width: f64) -> Option<f64> {
    let widest = names.map(text_width).fold(0.0, f64::max);
    (widest <= width * 0.27).then_some(if widest > 0.0 { widest + 14.0 } else { 12.0 })
}

/// Names in the right margin, moved apart where they would touch.
pub fn beside(mut names: Vec<LineLabel>, plot: Plot, page: &mut Markup) {
    names.sort_by(|a, b| a.from.total_cmp(&b.from));
    let wanted: Vec<f64> = names.iter().map(|n| n.from).collect();
    for (n, at) in names
        .iter()
        .zip(apart(&wanted, LINE - 2.0, plot.top - 6.0, plot.bottom))
    {
        line(
            page,
            (plot.right + 2.0, n.from),
            (plot.right + 9.0, at),
            &n.class,
        );
        text(
            page,
            (plot.right + 12.0, at + 4.0),
            "start",
            "note",
            &n.name,
        );
    }
}

/// Places at least `gap` apart, in order, between `low` and `high` as far as there is room.
fn apart(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut at: Vec<f64> = wanted.to_vec();
    for i in 0..at.len() {
        let least = if i == 0 { low } else { at[i - 1] + gap };
        at[i] = at[i].max(least);
    }
    for i in (0..at.len()).rev() {
        let most = if i + 1 == at.len() {
            high
        } else {
            at[i + 1] - gap
        };
        at[i] = at[i].min(most);
    }
    at
}

/// How wide the labels of the ticks are.
pub fn ticks_width(axis: &Placed) -> f64 {
    axis.ticks
        .iter()
        .map(|t| text_width(&t.1))
        .fold(0.0, f64::max)
}

/// An entry of a legend: a name and the classes of its swatch.
pub struct Entry {
    pub name: String,
    pub class: String,
}

impl Entry {
    pub fn new(name: &str, class: String) -> Entry {
        Entry {
            name: name.to_string(),
            class,
        }
    }
}

/// The levels as entries of a legend, for charts without room beside them.
pub fn level_entries(chart: &Chart) -> impl Iterator<Item = Entry> {
    chart
        .levels
        .iter()
        .map(|l| Entry::new(&l.name, "level".into()))
}

/// How many lines a legend takes.
pub fn legend_lines(entries: &[Entry], width: f64) -> usize {
    places(entries, width).last().map_or(0, |p| p.1 + 1)
}

/// A legend at the top: a swatch of each entry with its name.
pub fn legend(entries: &[Entry], width: f64, page: &mut Markup) {
    for ((x, row), entry) in places(entries, width).into_iter().zip(entries) {
        let y = row as f64 * LINE;
        if entry.class.starts_with("line") || entry.class == "level" {
            line(page, (x, y + 6.0), (x + 16.0, y + 6.0), &entry.class);
        } else {
            let (x, y) = (Px(x + 0.5), Px(y + 0.5));
            let size = ("width", &"12" as &dyn std::fmt::Display);
            page.empty(
                "rect",
                &[
                    ("x", &x),
                    ("y", &y),
                    size,
                    ("height", &"12"),
                    ("class", &entry.class),
                ],
            );
        }
        text(
            page,
            (x + 21.0, y + 10.5),
            "start",
            "note",
            &fit(&entry.name, width - 24.0),
        );
    }
}

/// Where each name of a legend begins: pixels from the left, and line.
fn places(entries: &[Entry], width: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (0.0, 0);
    let mut out = Vec::new();
    for entry in entries {
        let needs = 24.0 + text_width(&entry.name);
        if x > 0.0 && x + needs > width {
            (x, row) = (0.0, row + 1);
        }
        out.push((x, row));
        x += needs + 14.0;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_never_touch_where_there_is_room(mut wanted in prop::collection::vec(0.0f64..300.0, 1..12)) {
            wanted.sort_by(f64::total_cmp);
            let at = apart(&wanted, 14.0, 0.0, 300.0);
            for pair in at.windows(2) {
                prop_assert!(pair[1] - pair[0] >= 14.0 - 1e-9);
            }
            prop_assert!(at.iter().all(|a| (-1e-9..=300.0 + 1e-9).contains(a)));
        }
    }
}
